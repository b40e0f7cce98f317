//! A thread's recorded scheduling: whether it ran, had no CPU, or was blocked.

use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, OffCpu, OsSource, Process, ThreadIndex, ThreadWait};

use super::activity::Doing;

/// A thread that sleeps has other work, if it is on a CPU, or could be, for one part in this many of its time.
const WORKS_PARTS: u64 = 20;
/// A thread ends after a wait without having worked, if it lives for less than one part in this many of the wait.
const ENDS_PARTS: u64 = 20;

/// Until when the scheduling of each process's threads is known. A process that is killed loses the newest records.
pub(super) fn ends_of_scheduling(execution: &Execution) -> Vec<u64> {
    let whole = execution.whole();
    let newest_load = |process: &Process| {
        process.cpus.as_ref().and_then(|cpus| cpus.loads.last()).map_or(0, |load| load.end)
    };
    let mut ends: Vec<u64> = whole.processes.iter().map(newest_load).collect();
    let mut is_cut = vec![false; ends.len()];
    for (thread, row) in (0..).map(ThreadIndex).zip(&whole.threads) {
        let (Some(end), Some(is_cut)) =
            (ends.get_mut(row.process.index()), is_cut.get_mut(row.process.index()))
        else {
            continue;
        };
        *is_cut |= !row.ended;
        for off in [whole.off_cpu_of(thread), whole.blocked_of(thread)] {
            *end = (*end).max(off.last().map_or(0, |off| off.end));
        }
    }
    ends.into_iter().zip(is_cut).map(|(end, is_cut)| if is_cut { end } else { u64::MAX }).collect()
}

/// The end of a thread in the run, of which the execution may be a slice.
fn end_of_life(execution: &Execution, thread: ThreadIndex) -> u64 {
    let life = execution.thread_waits.lives.get(&thread);
    life.map_or_else(|| execution.threads[thread.index()].track.end(), |(end, _)| *end)
}

/// The end of each thread in the run, and whether it has work besides sleep.
pub fn lives_of_threads(execution: &Execution) -> Vec<(u64, bool)> {
    let ends = ends_of_scheduling(execution);
    let whole = execution.whole();
    let threads = (0..whole.threads.len()).map(ThreadIndex::of);
    threads
        .map(|thread| (end_of_life(whole, thread), Scheduling::of(execution, thread, &ends).works))
        .collect()
}

/// A thread, and its scheduling as far as recorded.
pub(super) struct Scheduling<'a> {
    pub(super) thread: ThreadIndex,
    pub(super) execution: &'a Execution,
    pub(super) off: &'a [OffCpu],
    pub(super) blocked: &'a [OffCpu],
    pub(super) is_known: bool,
    /// Until when its scheduling is known; a killed process loses the newest records.
    pub(super) known_until: u64,
    /// Since when it was blocked until the end.
    pub(super) asleep_since: Option<u64>,
    /// Whether it has work besides sleep.
    pub(super) works: bool,
}

impl<'a> Scheduling<'a> {
    /// `ends` are those of [`ends_of_scheduling`].
    pub(super) fn of(execution: &'a Execution, thread: ThreadIndex, ends: &[u64]) -> Scheduling<'a> {
        let whole = execution.whole();
        let row = &whole.threads[thread.index()];
        let (off, blocked) = (whole.off_cpu_of(thread), whole.blocked_of(thread));
        let known_until = ends.get(row.process.index()).copied().unwrap_or(u64::MAX);
        let mut own = Scheduling {
            thread,
            execution: whole,
            off,
            blocked,
            is_known: row.os_source != OsSource::Unknown,
            known_until,
            asleep_since: row.asleep_since,
            works: false,
        };
        let life = whole.thread_waits.lives.get(&thread);
        own.works = life.map_or_else(|| own.has_work(), |(_, works)| *works);
        own
    }

    /// Whether it runs, or could run, for more than a small part of its life.
    pub(super) fn has_work(&self) -> bool {
        let mut active = 0;
        self.outside_of_waits(&mut |from, until, doing| {
            if matches!(doing, Doing::Runs | Doing::HasNoCpu) {
                active += until - from;
            }
        });
        let track = &self.execution.threads[self.thread.index()].track;
        active.saturating_mul(WORKS_PARTS) >= track.end().saturating_sub(track.start())
    }

    /// Hands over the times outside of recorded waits, in their order, with the activity in each.
    pub(super) fn outside_of_waits(&self, take: &mut impl FnMut(u64, u64, Doing)) {
        let track = &self.execution.threads[self.thread.index()].track;
        let (start, end) = (track.start(), track.end());
        let mut at = start;
        for wait in self.execution.thread_waits.waits_of(self.thread, start, end) {
            self.each(at, wait.start.min(end), take);
            at = at.max(wait.end);
        }
        self.each(at, end, take);
    }

    /// The activity outside of recorded waits at an instant, and until when it is the same.
    pub(super) fn at(&self, at: u64) -> (Doing, u64) {
        if self.asleep_since.is_some_and(|since| at >= since) {
            return (Doing::NotKnown(true), u64::MAX);
        }
        if !self.is_known || at >= self.known_until {
            return (Doing::NotKnown(false), self.asleep_since.unwrap_or(u64::MAX).max(at + 1));
        }
        let next = |all: &[OffCpu]| all.get(all.partition_point(|off| off.end <= at)).copied();
        let mut until = self.known_until.min(self.asleep_since.unwrap_or(u64::MAX));
        for (off, doing) in [(next(self.off), Doing::HasNoCpu), (next(self.blocked), Doing::NotKnown(true))] {
            match off {
                Some(off) if off.start <= at => return (doing, off.end.min(until).max(at + 1)),
                Some(off) => until = until.min(off.start),
                None => {}
            }
        }
        (Doing::Runs, until.max(at + 1))
    }

    /// Whether the kernel works for the thread while it is on a CPU in a recorded wait, as it copies data or passes a message on. For
    /// locks it may wait on a CPU, and so in a wait in which it was never blocked, as far as is recorded.
    pub(super) fn runs_in(&self, kind: u32, wait: &ThreadWait) -> bool {
        let first = self.blocked.partition_point(|off| off.end <= wait.start);
        !kind::may_spin(kind) && self.blocked.get(first).is_some_and(|off| off.start < wait.end)
    }

    /// Hands over a time in parts, with the activity in each, as outside of recorded waits.
    pub(super) fn each(&self, from: u64, until: u64, take: &mut impl FnMut(u64, u64, Doing)) {
        let mut at = from;
        while at < until {
            let (doing, next) = self.at(at);
            let next = next.min(until);
            take(at, next, doing);
            at = next;
        }
    }

    /// Whether the thread ends after a wait for a wake without having worked.
    pub(super) fn ends_after(&self, wait: &ThreadWait, kind: u32) -> bool {
        let is_lock = kind::has_holder(kind) || kind == kind::THREAD_BARRIER;
        let rest = end_of_life(self.execution, self.thread).saturating_sub(wait.end);
        !is_lock && rest.saturating_mul(ENDS_PARTS) < wait.end - wait.start
    }
}
