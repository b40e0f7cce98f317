//! The waits of threads for each other that reach into a part of a run, with their ends in the whole, for a slice of it.
//!
//! Which thread ended a wait depends on all wakes, holds and waits before it, and on its end, which may come after the part. So a
//! slice keeps the results. Of the holds of a lock it needs those that overlap the part, and of each wait the last one before
//! and the first one after it.

use rustc_hash::FxHashSet;
use taskscope_event::models::wait::{kind, outcome};
use taskscope_execution::{
    Execution, ObjectIndex, PathIndex, SiteIndex, ThreadIndex, ThreadKind, ThreadWait, WaitOutcome,
};
use taskscope_trace::{KnownCall, KnownHold, KnownThread, KnownWait, KnownWaits};

/// The waits of these threads, or of all if there are none, that overlap the time from `clocks.0` to before `clocks.1`. `lives` has
/// the end of each thread of the run, and whether it has work besides sleep.
pub fn waits_of_part(
    execution: &Execution,
    clocks: (i64, i64),
    threads: &[i64],
    lives: &[(u64, bool)],
) -> KnownWaits {
    let clocks = (clocks.0.max(0).cast_unsigned(), clocks.1.max(0).cast_unsigned());
    let mut part = WaitsOfPart { execution, clocks, written: FxHashSet::default() };
    let is_kept = |wait: &&ThreadWait| {
        let tid = execution.threads[wait.thread.index()].tid;
        wait.start < clocks.1 && wait.end > clocks.0 && (threads.is_empty() || threads.contains(&tid))
    };
    let waits = execution.thread_waits.waits.iter().filter(is_kept);
    let waits = waits.filter_map(|wait| part.wait(wait)).collect();
    let known = execution.threads.iter().zip(lives).filter(|(row, _)| row.kind != ThreadKind::Cpu);
    let known = known.map(|(row, (end, works))| {
        let process = &execution.processes[row.process.index()];
        KnownThread {
            process: (process.loom.clone(), process.pid),
            thread: row.tid,
            end: clock(*end),
            works: *works,
        }
    });
    KnownWaits { waits, threads: known.collect() }
}

struct WaitsOfPart<'a> {
    execution: &'a Execution,
    clocks: (u64, u64),
    /// Holds of earlier waits: object, begin, end.
    written: FxHashSet<(ObjectIndex, u64, u64)>,
}

impl WaitsOfPart<'_> {
    fn wait(&mut self, wait: &ThreadWait) -> Option<KnownWait> {
        let execution = self.execution;
        let thread = &execution.threads[wait.thread.index()];
        let process = &execution.processes[thread.process.index()];
        let object = execution.catalog.objects.get(wait.object.index())?;
        let waker = wait.waker.map(|waker| {
            let call = self.call(waker.thread, waker.site, waker.at);
            // Threads of the slice end after the part, and wake nobody after that.
            (execution.threads[waker.thread.index()].tid, call, clock(waker.at.min(self.clocks.1)))
        });
        Some(KnownWait {
            process: (process.loom.clone(), process.pid),
            thread: thread.tid,
            object: object.id,
            kind: object.kind,
            call: self.call(wait.thread, wait.site, wait.start),
            start: clock(wait.start),
            end: clock(wait.end),
            outcome: match wait.outcome {
                WaitOutcome::Done => outcome::DONE,
                WaitOutcome::TimedOut => outcome::TIMED_OUT,
                WaitOutcome::Failed => outcome::FAILED,
                WaitOutcome::Open => outcome::OPEN,
            },
            waker,
            is_of_others: wait.is_of_others,
            holds: if kind::has_holder(object.kind) { self.holds(wait) } else { Vec::new() },
        })
    }

    fn holds(&mut self, wait: &ThreadWait) -> Vec<KnownHold> {
        let all = self.execution.thread_waits.holds_of(wait.object, wait.start, wait.end);
        let holds_of_others = || all.iter().filter(|hold| hold.thread != wait.thread);
        let (begin, end) = self.clocks;
        let before = holds_of_others().take_while(|hold| hold.end <= begin).last();
        let within = holds_of_others().filter(|hold| hold.end > begin && hold.start < end);
        let after = holds_of_others().find(|hold| hold.start >= end);
        let mut kept = Vec::new();
        for hold in before.into_iter().chain(within).chain(after) {
            if self.written.insert((hold.object, hold.start, hold.end)) {
                kept.push(KnownHold {
                    thread: self.execution.threads[hold.thread.index()].tid,
                    call: self.call(hold.thread, hold.site, hold.end),
                    start: clock(hold.start),
                    end: clock(hold.end),
                });
            }
        }
        kept
    }

    fn call(&self, thread: ThreadIndex, site: SiteIndex, at: u64) -> KnownCall {
        let samples = &self.execution.samples;
        let path = samples.path_of_call(thread, site, at).unwrap_or(PathIndex::NONE);
        KnownCall {
            site: self.execution.catalog.sites.get(site.index()).map_or(0, |row| row.number),
            path: samples.paths.get(path.index()).map_or(0, |row| row.number),
        }
    }
}

fn clock(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
