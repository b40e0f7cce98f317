//! Worker time that the operating system took: the partition of lost time between the program and the system.
//!
//! Raw facts are the times in which threads could run and had no CPU ([`OffCpu`]), the times in which they blocked, and
//! the number of CPUs that the job may use. For each worker and instant, they decide whether its time is the system's:
//!
//! | the worker | its time is the system's if |
//! | --- | --- |
//! | runs code of the program or the runtime | it has no CPU |
//! | waits for a lock | the holder has code to run and no CPU, or the lock is handed to it or free and it has no CPU itself |
//! | waits or is idle | no worker works, and one that could has no CPU |
//! | waits, and there are more workers than CPUs | no allowed CPU is free for it |
//!
//! With more workers than CPUs, as many waiting workers can lose time to too little work as CPUs are left by those that
//! work or could work; the others could run nothing anyway. The choice among them is free: a waiting worker keeps its
//! role, so that a wait has few pieces. A worker that has not started, or has ended, has no thread that could use a CPU:
//! its time is lost to the system only while other threads of the job have all CPUs, or the program itself has none.
//!
//! Every nanosecond has one answer, so times of parts of a run add up to those of the whole: the partition is computed once,
//! for the whole run, and cut with it.

use crate::system_cause::{SystemCause, SystemTime};
use crate::track_columns::TrackColumns;
use crate::{
    CpuGroup, Execution, Group, Holders, OffCpu, OsSource, ProcessIndex, Span, State, ThreadIndex, ThreadKind,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A worker's activity, as far as CPUs are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// Runs code of the program or of the runtime.
    Works,
    /// Waits for others, or has nothing to do.
    Waits,
    /// Waits for a lock; whether that is the system's doing.
    WaitsForLock { system: bool },
    /// Has not started, or has ended.
    Absent,
    /// Communicates, waits for a device, or is not known: for others it works, and its own time is not decided here.
    Other,
    /// Outside of the run of its process.
    Elsewhere,
}

impl Doing {
    fn of(state: State) -> Doing {
        match state {
            State::NotStarted | State::Ended => Doing::Absent,
            State::Communication => Doing::Other,
            state => match state.group() {
                Group::Useful | Group::Runtime | Group::Off | Group::Blocked => Doing::Works,
                Group::Mutex => Doing::WaitsForLock { system: false },
                Group::Sync | Group::Idle => Doing::Waits,
                Group::Device | Group::Start | Group::Unknown => Doing::Other,
            },
        }
    }

    fn is_wait(self) -> bool {
        matches!(self, Doing::Waits | Doing::WaitsForLock { .. })
    }
}

/// A worker's activity from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Now {
    doing: Doing,
    /// Whether it could run and has no CPU.
    off: bool,
    /// Whether it sleeps.
    blocked: bool,
}

impl Now {
    const ELSEWHERE: Now = Now { doing: Doing::Elsewhere, off: false, blocked: false };
}

/// Spans of time in order, apart from each other.
type Times = [(u64, u64)];

/// The changes of one worker, in order.
struct Changes<'a, I> {
    spans: I,
    span: Option<Span>,
    at: u64,
    off: &'a Times,
    blocked: &'a Times,
    device: &'a Times,
    lock: &'a Times,
}

/// The times that are not over at `begin`.
fn from(times: &Times, begin: u64) -> &Times {
    &times[times.partition_point(|(_, end)| *end <= begin)..]
}

/// Whether `at` is in one of `times`, of which those that are over are dropped, and when that changes.
fn inside(times: &mut &Times, at: u64) -> (bool, u64) {
    while let Some((_, later)) = times.split_first().filter(|(first, _)| first.1 <= at) {
        *times = later;
    }
    match times.first() {
        Some((start, end)) if *start <= at => (true, *end),
        Some((start, _)) => (false, *start),
        None => (false, u64::MAX),
    }
}

impl<I: Iterator<Item = Span>> Iterator for Changes<'_, I> {
    type Item = (u64, Now);

    fn next(&mut self) -> Option<(u64, Now)> {
        if self.span.is_none_or(|span| self.at >= span.end) {
            self.span = Some(self.spans.find(|span| span.end > self.at && span.end > span.start)?);
        }
        let span = self.span?;
        let at = self.at.max(span.start);
        let (off, off_until) = inside(&mut self.off, at);
        let (blocked, blocked_until) = inside(&mut self.blocked, at);
        let (waits_for_device, device_until) = inside(&mut self.device, at);
        let mut doing = Doing::of(span.section.state);
        if waits_for_device && span.section.state.is_useful() {
            doing = Doing::Other;
        }
        let mut until = span.end.min(off_until).min(blocked_until).min(device_until);
        if let Doing::WaitsForLock { system } = &mut doing {
            let lock_until;
            (*system, lock_until) = inside(&mut self.lock, at);
            until = until.min(lock_until);
        }
        self.at = until;
        Some((at, Now { doing, off: off && doing != Doing::Absent, blocked }))
    }
}

/// A thread in the sweep.
struct Lane {
    thread: ThreadIndex,
    /// Number of its process within the group.
    process: usize,
    /// Number of its crowd.
    crowd: Option<usize>,
    worker: bool,
    now: Now,
    /// The cause of its loss, and the begin.
    lost: Option<SystemCause>,
    since: u64,
    /// Whether it was among those that lose time to too little work.
    kept: bool,
}

impl Lane {
    /// Sets the loss of its time from `at` on.
    fn becomes(&mut self, lost: Option<SystemCause>, at: u64, out: &mut Vec<SystemTime>) {
        if self.lost == lost {
            return;
        }
        if let Some(cause) = self.lost.filter(|_| self.since < at) {
            out.push(SystemTime { thread: self.thread, start: self.since, end: at, cause });
        }
        (self.lost, self.since) = (lost, at);
    }
}

/// Numbers of a process's threads in each activity at an instant.
#[derive(Clone, Copy, Default)]
struct OfProcess {
    /// Run code, communicate, or wait for a device.
    working: u32,
    /// Have code to run, and no CPU.
    could_work: u32,
    /// Wait, could run, and have no CPU.
    woken: u32,
}

impl OfProcess {
    /// Whether its waiting workers wait for the system: none works, and at least one would with a CPU.
    fn waits_for_system(self) -> bool {
        self.working == 0 && self.could_work + self.woken > 0
    }
}

/// One walk over all threads of a set of processes in the order of time.
struct Sweep<'o> {
    lanes: Vec<Lane>,
    processes: Vec<OfProcess>,
    crowds: Vec<OfCrowd>,
    out: &'o mut Vec<SystemTime>,
}

/// More workers than CPUs, which they share.
struct Crowd {
    workers: Vec<ThreadIndex>,
    /// Number of CPUs.
    cpus: u32,
}

/// Numbers of a crowd's workers in each activity at an instant.
#[derive(Clone, Copy, Default)]
struct OfCrowd {
    cpus: u32,
    /// Run code, or have code to run.
    working: u32,
    /// Have a CPU.
    on_cpus: u32,
    waiting: u32,
}

impl OfCrowd {
    /// Number of waiting workers that lose time to too little work.
    fn kept(&self) -> u32 {
        self.cpus.saturating_sub(self.working).min(self.waiting)
    }
}

/// Time of workers without a CPU, by loss and by the thread without one; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShortage {
    /// Lost by workers that could run and had no CPU.
    pub own_ns: u64,
    /// Lost by workers that wait (asleep, or on a CPU) while those that they wait for have no CPU, or all CPUs are taken.
    pub others_ns: u64,
    /// Not lost to the system: workers that could run and had no CPU, waiting meanwhile for others that worked.
    pub waiting_ns: u64,
    /// The part of `own_ns` and `waiting_ns` in which a signal had stopped the process: no `run_delay`.
    pub stopped_ns: u64,
}

impl CpuShortage {
    /// The time lost to the system.
    pub fn lost_ns(&self) -> u64 {
        self.own_ns + self.others_ns
    }

    /// Time in which workers could run and had no CPU, as the kernel's `run_delay` counts it.
    pub fn runnable_ns(&self) -> u64 {
        (self.own_ns + self.waiting_ns).saturating_sub(self.stopped_ns)
    }
}

/// Overlap of both `times`, each in order and disjoint.
fn overlap_ns(times: &Times, others: impl Iterator<Item = (u64, u64)>) -> u64 {
    let (mut left, mut sum) = (times, 0);
    for (start, end) in others {
        left = &left[left.partition_point(|time| time.1 <= start)..];
        let together = left.iter().take_while(|time| time.0 < end);
        sum += together.map(|time| time.1.min(end) - time.0.max(start)).sum::<u64>();
    }
    sum
}

impl Execution {
    /// Time of all workers without a CPU.
    pub fn cpu_shortage(&self) -> CpuShortage {
        let mut shortage = CpuShortage::default();
        for (thread, _) in self.workers() {
            let runnable = self.runnable_times(thread);
            let lost = self.system_time_of(thread).iter().filter(|part| part.cause.is_off_cpu());
            let own = overlap_ns(&runnable, lost.clone().map(|part| (part.start, part.end)));
            let total = |times: &Times| times.iter().map(|time| time.1 - time.0).sum::<u64>();
            shortage.own_ns += own;
            shortage.others_ns += lost.map(|part| part.end - part.start).sum::<u64>() - own;
            shortage.waiting_ns += total(&runnable) - own;
            shortage.stopped_ns += overlap_ns(&runnable, self.stops_of(thread).iter().copied());
        }
        shortage
    }

    /// Times in which a signal had stopped the process of a thread, in order; empty if not known.
    pub fn stops_of(&self, thread: ThreadIndex) -> &[(u64, u64)] {
        let process = &self.processes[self.threads[thread.index()].process.index()];
        process.cpus.as_ref().map_or(&[], |cpus| &cpus.stopped)
    }

    /// Nanoseconds of a thread's time without a CPU in which a signal had stopped its process.
    pub fn stopped_ns(&self, thread: ThreadIndex) -> u64 {
        overlap_ns(&self.runnable_times(thread), self.stops_of(thread).iter().copied())
    }

    /// The times of a thread that the system took, in order.
    pub fn system_time_of(&self, thread: ThreadIndex) -> &[SystemTime] {
        let first = self.system_time.partition_point(|part| part.thread < thread);
        let count = self.system_time[first..].partition_point(|part| part.thread == thread);
        &self.system_time[first..first + count]
    }

    /// Nanoseconds of a thread's time from `from` to `to` that the system took.
    pub fn system_ns(&self, thread: ThreadIndex, from: u64, to: u64) -> u64 {
        let all = self.system_time_of(thread);
        let first = all.partition_point(|part| part.end <= from);
        let parts = all[first..].iter().take_while(|part| part.start < to);
        parts.map(|part| part.end.min(to) - part.start.max(from)).sum()
    }

    /// Decides which time of workers the system took, from the times off the CPU and the CPUs that processes may use. Is
    /// called once, when these are known and before the run is cut.
    pub fn attribute_system_time(&mut self) {
        self.attribute_system_time_and_devices(&[]);
    }

    /// As [`Execution::attribute_system_time`], for threads that waited for devices in calls of the program: these
    /// waits, by thread and time, are neither the system's nor blocked time.
    pub fn attribute_system_time_and_devices(&mut self, device_waits: &[OffCpu]) {
        self.set_sources_of_cpus();
        let mut all = Vec::new();
        let crowds = self.crowds();
        for processes in self.related_processes(&crowds) {
            self.attribute(&processes, &crowds, device_waits, &mut all);
        }
        for (thread, row) in self.threads.iter().enumerate().filter(|(_, row)| !row.worker) {
            self.attribute_own_code(ThreadIndex(thread as u32), row, device_waits, &mut all);
        }
        for (thread, row) in self.threads.iter().enumerate() {
            self.add_blocked_code(ThreadIndex(thread as u32), row, device_waits, &mut all);
        }
        all.sort_unstable_by_key(|part| (part.thread, part.start));
        self.system_time = all;
    }

    /// Sets the source of each CPU to that of the threads that may run on it.
    fn set_sources_of_cpus(&mut self) {
        let rank = |source: OsSource| match source {
            OsSource::Unknown => 0,
            OsSource::Estimated => 1,
            OsSource::Switches => 2,
        };
        let mut of_looms: FxHashMap<&str, OsSource> = FxHashMap::default();
        let threads = self.threads.iter().filter(|row| row.kind != ThreadKind::Cpu && !row.track.is_empty());
        for row in threads {
            let loom = self.processes[row.process.index()].loom.as_str();
            let weakest = of_looms.entry(loom).or_insert(row.os_source);
            if rank(row.os_source) < rank(*weakest) {
                *weakest = row.os_source;
            }
        }
        for row in self.threads.iter_mut().filter(|row| row.kind == ThreadKind::Cpu) {
            let loom = self.processes[row.process.index()].loom.as_str();
            row.os_source = of_looms.get(loom).copied().unwrap_or_default();
        }
    }

    /// Adds when a thread was blocked, or waited for a device, in code of the program. (There the system takes time only
    /// while the thread could run and did not wait for a device, so these do not overlap others.)
    fn add_blocked_code(
        &self,
        thread: ThreadIndex,
        row: &crate::Thread,
        device_waits: &[OffCpu],
        all: &mut Vec<SystemTime>,
    ) {
        let device = self.device_times(thread, device_waits);
        let mut blocked = self.blocked_times(thread);
        if blocked.is_empty() && device.is_empty() {
            return;
        }
        subtract(&mut blocked, &device);
        let causes = [(SystemCause::Blocked, blocked), (SystemCause::Device, device)];
        for (cause, times) in causes.iter().filter(|(_, times)| !times.is_empty()) {
            let mut times = times.as_slice();
            for span in row.track.spans().filter(|span| span.section.state.is_useful()) {
                times = &times[times.partition_point(|time| time.1 <= span.start)..];
                for (start, end) in times.iter().take_while(|time| time.0 < span.end) {
                    let (start, end) = ((*start).max(span.start), (*end).min(span.end));
                    all.push(SystemTime { thread, start, end, cause: *cause });
                }
            }
        }
    }

    /// Times in which a thread waited for a device in a call; for a CPU, those of the threads that it shows.
    fn device_times(&self, thread: ThreadIndex, device_waits: &[OffCpu]) -> Vec<(u64, u64)> {
        let mut times = Vec::new();
        if self.threads[thread.index()].kind == ThreadKind::Cpu {
            self.add_times_on(thread, device_waits, &mut times);
        } else {
            let first = device_waits.partition_point(|wait| wait.thread < thread);
            let own = device_waits[first..].iter().take_while(|wait| wait.thread == thread);
            times.extend(own.map(|wait| (wait.start, wait.end)));
        }
        join_intervals(&mut times);
        times
    }

    /// Attributes the code of a thread. A thread that is not a worker is outside of the capacity; its time without a
    /// CPU is distinguished all the same.
    fn attribute_own_code(
        &self,
        thread: ThreadIndex,
        row: &crate::Thread,
        device_waits: &[OffCpu],
        all: &mut Vec<SystemTime>,
    ) {
        let off = self.runnable_times(thread);
        if row.kind == ThreadKind::Cpu || off.is_empty() {
            return;
        }
        let mut lane = Lane {
            thread,
            process: 0,
            crowd: None,
            worker: false,
            now: Now::ELSEWHERE,
            lost: None,
            since: 0,
            kept: false,
        };
        let device = self.device_times(thread, device_waits);
        let (blocked, lock): (&Times, &Times) = (&[], &[]);
        let changes = Changes {
            spans: row.track.spans(),
            span: None,
            at: 0,
            off: &off,
            blocked,
            device: &device,
            lock,
        };
        for (at, now) in changes {
            let lost = now.off && now.doing == Doing::Works;
            lane.becomes(lost.then_some(SystemCause::NoCpu), at, all);
        }
        lane.becomes(None, row.track.end(), all);
    }

    /// Workers that are more than the CPUs that they share.
    fn crowds(&self) -> Vec<Crowd> {
        let groups = self.cpu_groups().into_iter().filter(CpuGroup::is_oversubscribed);
        // Worker CPUs are counted once.
        let is_thread = |thread: &ThreadIndex| self.threads[thread.index()].kind != ThreadKind::Cpu;
        groups
            .map(|group| Crowd {
                cpus: u32::try_from(group.millicpus.div_ceil(1000)).unwrap_or(u32::MAX),
                workers: group.workers.into_iter().filter(is_thread).collect(),
            })
            .collect()
    }

    /// Processes with workers, grouped by common crowds.
    fn related_processes(&self, crowds: &[Crowd]) -> Vec<Vec<ProcessIndex>> {
        let process_of = |thread: &ThreadIndex| self.threads[thread.index()].process;
        let mut related: Vec<Vec<ProcessIndex>> = Vec::new();
        let alone = self.workers().map(|(thread, _)| vec![process_of(&thread)]);
        for mut set in crowds.iter().map(|crowd| crowd.workers.iter().map(process_of).collect()).chain(alone)
        {
            related.retain_mut(|other: &mut Vec<ProcessIndex>| {
                let apart = !other.iter().any(|process| set.contains(process));
                if !apart {
                    set.append(other);
                }
                apart
            });
            set.sort_unstable();
            set.dedup();
            related.push(set);
        }
        related
    }

    /// Times in which a thread could run and had no CPU, by its recorder or its track: start and end of each,
    /// in order. For a CPU: the times of its threads.
    pub fn runnable_times(&self, thread: ThreadIndex) -> Vec<(u64, u64)> {
        let row = &self.threads[thread.index()];
        let mut times: Vec<(u64, u64)> = Vec::new();
        row.track.for_each_in(
            |state, _| state == State::OutOfCpu,
            |span| times.extend((span.end > span.start).then_some((span.start, span.end))),
        );
        if row.kind == ThreadKind::Cpu {
            self.add_times_on(thread, &self.off_cpu, &mut times);
        } else {
            times.extend(self.off_cpu_of(thread).iter().map(|off| (off.start, off.end)));
        }
        join_intervals(&mut times);
        times
    }

    /// Times in which a thread was blocked in the kernel: start and end of each, in order. For a CPU, those of the
    /// threads that it shows.
    pub fn blocked_times(&self, thread: ThreadIndex) -> Vec<(u64, u64)> {
        if self.threads[thread.index()].kind != ThreadKind::Cpu {
            return self.blocked_of(thread).iter().map(|off| (off.start, off.end)).collect();
        }
        let mut times = Vec::new();
        self.add_times_on(thread, &self.blocked, &mut times);
        join_intervals(&mut times);
        times
    }

    /// Adds the times, given for all threads in order, of the threads that a CPU shows, while it does.
    fn add_times_on(&self, cpu: ThreadIndex, of_threads: &[OffCpu], times: &mut Vec<(u64, u64)>) {
        if of_threads.is_empty() {
            return;
        }
        for (start, end, on_it) in self.threads_on(cpu) {
            let first = of_threads.partition_point(|off| (off.thread, off.end) <= (on_it, start));
            let parts = of_threads[first..].iter().take_while(|off| off.thread == on_it && off.start < end);
            times.extend(parts.map(|off| (off.start.max(start), off.end.min(end))));
        }
    }

    /// Which threads' sections a CPU shows, in order.
    fn threads_on(&self, cpu: ThreadIndex) -> Vec<(u64, u64, ThreadIndex)> {
        let by_columns: FxHashMap<*const TrackColumns, ThreadIndex> = (self.threads.iter().enumerate())
            .filter_map(|(thread, row)| {
                Some((Arc::as_ptr(row.track.shared_columns()?), ThreadIndex(thread as u32)))
            })
            .collect();
        let sources = self.threads[cpu.index()].track.sources().into_iter();
        sources.filter_map(|(start, end, columns)| Some((start, end, *by_columns.get(&columns)?))).collect()
    }

    fn attribute(
        &self,
        processes: &[ProcessIndex],
        crowds: &[Crowd],
        device_waits: &[OffCpu],
        all: &mut Vec<SystemTime>,
    ) {
        let runs_code = |row: &crate::Thread| row.worker || row.kind == ThreadKind::Helper;
        let members: Vec<Member> = (0..self.threads.len() as u32)
            .map(ThreadIndex)
            .filter(|thread| runs_code(&self.threads[thread.index()]))
            .filter_map(|thread| {
                let row = &self.threads[thread.index()];
                let process = processes.iter().position(|process| *process == row.process)?;
                let crowd = crowds.iter().position(|crowd| crowd.workers.contains(&thread));
                Some(Member {
                    thread,
                    process,
                    crowd,
                    worker: row.worker,
                    off: self.runnable_times(thread),
                    blocked: self.blocked_times(thread),
                    device: self.device_times(thread, device_waits),
                })
            })
            .collect();
        let crowded = members.iter().any(|member| member.crowd.is_some());
        if !crowded && members.iter().all(|member| member.off.is_empty()) {
            return;
        }
        let waits = LockWaits { execution: self, holders: Holders::of(&self.holds) };
        let locks: Vec<Vec<(u64, u64)>> =
            members.iter().map(|member| waits.system_times(member.thread, &member.off)).collect();
        let windows = match crowded {
            true => vec![(0, u64::MAX)],
            // If each worker has a CPU, no time is charged to the system.
            false => joined(members.iter().map(|member| &member.off).chain(&locks)),
        };
        let mut sweep = Sweep::of(&members, processes.len(), crowds, all);
        for (begin, end) in windows {
            let lanes =
                members.iter().zip(&locks).map(|(Member { thread, off, blocked, device, .. }, lock)| {
                    Changes {
                        spans: self.spans_of_run_from(*thread, begin),
                        span: None,
                        at: begin,
                        off: from(off, begin),
                        blocked: from(blocked, begin),
                        device: from(device, begin),
                        lock: from(lock, begin),
                    }
                });
            sweep.run(lanes.collect(), begin, end);
        }
    }
}

/// Maximum length of a followed chain of threads, each of which holds the object that the previous one waits for.
const MAX_CHAIN: usize = 16;

/// The waits for locks, by culprit.
struct LockWaits<'a> {
    execution: &'a Execution,
    holders: Holders,
}

impl LockWaits<'_> {
    /// The times in which waits of a thread, which could run and had no CPU in `own`, are the system's: the holder has
    /// code to run and no CPU, or the lock is free and the thread has no CPU. A holder that waits for a lock itself is
    /// followed to the holder of that one; in a circle no thread could run, with a CPU or without.
    fn system_times(&self, thread: ThreadIndex, own: &Times) -> Vec<(u64, u64)> {
        let mut times = Vec::new();
        self.execution.threads[thread.index()].track.for_each_in(
            |state, _| state.group() == Group::Mutex,
            |wait| {
                let off = |from, to, times: &mut Vec<(u64, u64)>| add_parts(own, (from, to), times);
                self.add_wait(&wait, (wait.start, wait.end), &mut vec![thread], off, &mut times);
            },
        );
        times
    }

    /// Adds the system's part of a wait between two times; `waiting` ends with the thread that waits, `off` adds when that had
    /// no CPU.
    fn add_wait(
        &self,
        wait: &Span,
        (begin, end): (u64, u64),
        waiting: &mut Vec<ThreadIndex>,
        off: impl Fn(u64, u64, &mut Vec<(u64, u64)>),
        times: &mut Vec<(u64, u64)>,
    ) {
        let Some(thread) = waiting.last().copied() else { return };
        self.holders.split(thread, wait, |hold, start, end_of_part| {
            let (start, end) = (start.max(begin), end_of_part.min(end));
            if start >= end {
                return;
            }
            let Some(hold) = hold else { return off(start, end, times) };
            let (from, to) = (hold.start.clamp(start, end), hold.end.clamp(start, end));
            off(start, from, times);
            if !waiting.contains(&hold.thread) && waiting.len() < MAX_CHAIN {
                waiting.push(hold.thread);
                self.add_holder(hold.thread, (from, to), waiting, times);
                waiting.pop();
            }
            off(to, end, times);
        });
    }

    /// Adds when a holder, the last of `waiting`, keeps others waiting by the system's doing.
    fn add_holder(
        &self,
        holder: ThreadIndex,
        (from, to): (u64, u64),
        waiting: &mut Vec<ThreadIndex>,
        times: &mut Vec<(u64, u64)>,
    ) {
        let execution = self.execution;
        let off = |from, to, times: &mut Vec<(u64, u64)>| {
            let own = execution.off_cpu_of(holder);
            let first = own.partition_point(|off| off.end <= from);
            let parts = own[first..].iter().take_while(|off| off.start < to);
            times.extend(parts.map(|off| (off.start.max(from), off.end.min(to))));
        };
        let spans = execution.spans_of_run_from(holder, from).take_while(|span| span.start < to);
        for span in spans {
            let part = (span.start.max(from), span.end.min(to));
            match span.section.state.group() {
                Group::Mutex => self.add_wait(&span, part, waiting, off, times),
                _ => off(part.0, part.1, times),
            }
        }
    }
}

/// Adds the parts of `all` between two times.
fn add_parts(all: &Times, (start, end): (u64, u64), out: &mut Vec<(u64, u64)>) {
    let first = all.partition_point(|part| part.1 <= start);
    let parts = all[first..].iter().take_while(|part| part.0 < end);
    out.extend(parts.map(|part| (part.0.max(start), part.1.min(end))));
}

/// A thread that runs code of a set of processes.
struct Member {
    thread: ThreadIndex,
    /// Number of its process within the set.
    process: usize,
    /// Number of its crowd.
    crowd: Option<usize>,
    worker: bool,
    /// Times in which it could run and had no CPU.
    off: Vec<(u64, u64)>,
    /// Times in which it was blocked in the kernel.
    blocked: Vec<(u64, u64)>,
    /// Times in which it waited for a device in a call.
    device: Vec<(u64, u64)>,
}

/// Takes `others` out of `times`; both are in order and apart.
fn subtract(times: &mut Vec<(u64, u64)>, others: &Times) {
    if others.is_empty() {
        return;
    }
    let mut left = Vec::with_capacity(times.len());
    for (mut start, end) in std::mem::take(times) {
        let first = others.partition_point(|other| other.1 <= start);
        for (from, to) in others[first..].iter().take_while(|other| other.0 < end) {
            left.extend((start < *from).then_some((start, *from)));
            start = (*to).min(end);
        }
        left.extend((start < end).then_some((start, end)));
    }
    *times = left;
}

/// Joins intervals that meet, and sorts them.
pub fn join_intervals(intervals: &mut Vec<(u64, u64)>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, before| {
        let meets = next.0 <= before.1;
        if meets {
            before.1 = before.1.max(next.1);
        }
        meets
    });
}

/// Collects all intervals, joined.
fn joined<'a>(all: impl Iterator<Item = &'a Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
    let mut intervals: Vec<(u64, u64)> = all.flatten().copied().collect();
    join_intervals(&mut intervals);
    intervals
}

impl Sweep<'_> {
    fn of<'o>(
        members: &[Member],
        processes: usize,
        crowds: &[Crowd],
        out: &'o mut Vec<SystemTime>,
    ) -> Sweep<'o> {
        let lanes = members.iter().map(|member| Lane {
            thread: member.thread,
            process: member.process,
            crowd: member.crowd,
            worker: member.worker,
            now: Now::ELSEWHERE,
            kept: false,
            lost: None,
            since: 0,
        });
        let crowds = crowds.iter().map(|crowd| OfCrowd { cpus: crowd.cpus, ..OfCrowd::default() });
        Sweep {
            lanes: lanes.collect(),
            processes: vec![OfProcess::default(); processes],
            crowds: crowds.collect(),
            out,
        }
    }

    /// Walks over the changes of all lanes from `begin` to `end`.
    fn run(&mut self, mut changes: Vec<Changes<'_, impl Iterator<Item = Span>>>, begin: u64, end: u64) {
        let mut coming: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut next: Vec<Option<(u64, Now)>> = Vec::with_capacity(changes.len());
        for (lane, changes) in changes.iter_mut().enumerate() {
            let first = changes.next();
            coming.extend(first.map(|(at, _)| Reverse((at, lane))));
            next.push(first);
        }
        while let Some(Reverse((at, _))) = coming.peek().copied().filter(|Reverse((at, _))| *at < end) {
            let at = at.max(begin);
            while let Some(Reverse((_, lane))) =
                coming.peek().copied().filter(|Reverse((next, _))| *next <= at)
            {
                coming.pop();
                let Some((_, now)) = next[lane] else { continue };
                self.lanes[lane].now = now;
                let over = changes[lane].at;
                next[lane] =
                    changes[lane].next().or((now != Now::ELSEWHERE).then_some((over, Now::ELSEWHERE)));
                coming.extend(next[lane].map(|(at, _)| Reverse((at, lane))));
            }
            self.decide(at);
        }
        for lane in &mut self.lanes {
            lane.becomes(None, end, self.out);
            (lane.now, lane.kept) = (Now::ELSEWHERE, false);
        }
    }

    /// Decides the cause of each worker's loss from `at` on.
    fn decide(&mut self, at: u64) {
        self.count();
        self.keep();
        for lane in &mut self.lanes {
            let process = self.processes[lane.process];
            let crowd = lane.crowd.map(|crowd| self.crowds[crowd]);
            let taken = match crowd {
                Some(crowd) if crowd.on_cpus >= crowd.cpus => SystemCause::MoreWorkers,
                _ => SystemCause::NoCpu,
            };
            let lost = match lane.now.doing {
                Doing::Works if lane.now.off => Some(taken),
                Doing::Works | Doing::Other | Doing::Elsewhere => None,
                doing if doing.is_wait() && crowd.is_some() && !lane.kept => Some(SystemCause::MoreWorkers),
                Doing::WaitsForLock { system } => system.then_some(taken),
                // Threads that are there have all CPUs.
                Doing::Absent if taken == SystemCause::MoreWorkers => Some(taken),
                Doing::Waits | Doing::Absent => process.waits_for_system().then_some(taken),
            };
            lane.becomes(lost.filter(|_| lane.worker), at, self.out);
        }
    }

    /// Counts the threads in each activity.
    fn count(&mut self) {
        self.processes.fill(OfProcess::default());
        for crowd in &mut self.crowds {
            *crowd = OfCrowd { cpus: crowd.cpus, ..OfCrowd::default() };
        }
        for lane in &self.lanes {
            let process = &mut self.processes[lane.process];
            let Now { doing, off, blocked } = lane.now;
            match doing {
                Doing::Works if off => process.could_work += 1,
                Doing::Works | Doing::Other => process.working += 1,
                // It was woken, or looks whether there is work for it.
                Doing::Waits if off => process.woken += 1,
                _ => {}
            }
            if let Some(crowd) = lane.crowd.map(|crowd| &mut self.crowds[crowd]) {
                crowd.working += u32::from(doing == Doing::Works);
                crowd.waiting += u32::from(doing.is_wait());
                let is_there = !matches!(doing, Doing::Absent | Doing::Elsewhere);
                crowd.on_cpus += u32::from(is_there && !off && !blocked);
            }
        }
    }

    /// Chooses those of the waiting workers of crowds that lose time to too little work, first those that did before.
    fn keep(&mut self) {
        let mut left: Vec<u32> = self.crowds.iter().map(OfCrowd::kept).collect();
        let mut take = |lane: &mut Lane, wanted: bool| {
            let Some(left) = lane.crowd.map(|crowd| &mut left[crowd]) else { return };
            let takes = wanted && *left > 0;
            *left -= u32::from(takes);
            lane.kept |= takes;
        };
        for lane in &mut self.lanes {
            let stays = std::mem::take(&mut lane.kept) && lane.now.doing.is_wait();
            take(lane, stays);
        }
        for lane in self.lanes.iter_mut().filter(|lane| !lane.kept) {
            let waits = lane.now.doing.is_wait();
            take(lane, waits);
        }
    }
}

#[cfg(test)]
mod tests;
