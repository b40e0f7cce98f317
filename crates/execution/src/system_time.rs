//! Worker time that the operating system took: the partition of lost time between the program and the system.
//!
//! Raw facts are the times in which threads could run and had no CPU ([`OffCpu`]), the times in which they blocked, and
//! the number of CPUs that the job may use. For each worker and instant, they decide whether its time is the system's:
//!
//! | the worker | its time is the system's if |
//! | --- | --- |
//! | runs code of the program or the runtime | it has no CPU |
//! | waits in a call of MPI for a late process | that process has code to run and no CPU, or waits for one of which that is so ([`LatePeers`]) |
//! | waits for a lock | the holder has code to run and no CPU, or the lock is handed to it or free and it has no CPU itself |
//! | waits or is idle | no worker works, and one that could has no CPU |
//! | waits where it may start a task | a task is ready for it, and it could run and has no CPU |
//! | waits, and there are more workers than CPUs | no allowed CPU is free for it |
//!
//! With more workers than CPUs, as many waiting workers can lose time to too little work as CPUs are left by those that
//! work or could work; the others could run nothing anyway. The choice among them is free: a waiting worker keeps its
//! role, so that a wait has few pieces. A worker that has not started, or has ended, has no thread that could use a CPU:
//! its time is lost to the system only while other threads of the job have all CPUs, or the program itself has none.
//!
//! Ready tasks (module `ready`) are counted: as many waiting workers lose time to the system as there are tasks beyond those
//! that waiting workers on CPUs are about to take. While no task is ready, or that is not known, a waiting worker waits for
//! the others, with a CPU or without. How much of that is not known is a number of the run (module `unsure`).
//!
//! Every nanosecond has one answer, so times of parts of a run add up to those of the whole: the partition is computed once,
//! for the whole run, and cut with it.

mod activity;
mod cpu_shortage;
mod lock_waits;
mod member;
mod ready;
mod sweep;
mod unsure;

use crate::intervals::{Times, join_intervals, joined, subtract};
use crate::system_cause::{SystemCause, SystemTime};
use crate::track_columns::TrackColumns;
use crate::{
    CpuGroup, Execution, KeptBy, LatePeers, OffCpu, OsSource, ProcessIndex, State, ThreadIndex, ThreadKind,
};
use activity::{Changes, Doing, Now, from};
pub use cpu_shortage::CpuShortage;
use lock_waits::LockWaits;
use member::Member;
use ready::{ReadyTasks, TaskFacts};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use sweep::{Crowd, Lane, Sweep};

impl Execution {
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
        let of_run = OfRun::of(self, &crowds, device_waits);
        for processes in self.related_processes(&crowds) {
            self.attribute(&processes, &of_run, &mut all);
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

    /// Replaces the times that the system took from some threads by those that are known from the run that this execution is a
    /// part of. Empty times, and the parts that overlap an earlier one, are left out.
    pub fn replace_system_time(
        &mut self,
        is_replaced: impl Fn(ThreadIndex) -> bool,
        mut times: Vec<SystemTime>,
    ) {
        self.system_time.retain(|part| !is_replaced(part.thread));
        times.retain(|part| is_replaced(part.thread));
        times.sort_unstable_by_key(|part| (part.thread, part.start));
        let mut last: Option<(ThreadIndex, u64)> = None;
        times.retain_mut(|part| {
            if let Some((_, until)) = last.filter(|(thread, _)| *thread == part.thread) {
                part.start = part.start.max(until);
            }
            let is_kept = part.start < part.end;
            if is_kept {
                last = Some((part.thread, part.end));
            }
            is_kept
        });
        self.system_time.append(&mut times);
        self.system_time.sort_by_key(|part| (part.thread, part.start));
    }

    /// Sets the source of each CPU to that of the threads that may run on it.
    fn set_sources_of_cpus(&mut self) {
        let rank = |source: OsSource| match source {
            OsSource::Unknown => 0,
            OsSource::Estimated => 1,
            OsSource::Switches => 2,
        };
        let mut source_by_loom: FxHashMap<&str, OsSource> = FxHashMap::default();
        let threads = self.threads.iter().filter(|row| row.kind != ThreadKind::Cpu && !row.track.is_empty());
        for row in threads {
            let loom = self.processes[row.process.index()].loom.as_str();
            let weakest = source_by_loom.entry(loom).or_insert(row.os_source);
            if rank(row.os_source) < rank(*weakest) {
                *weakest = row.os_source;
            }
        }
        for row in self.threads.iter_mut().filter(|row| row.kind == ThreadKind::Cpu) {
            let loom = self.processes[row.process.index()].loom.as_str();
            row.os_source = source_by_loom.get(loom).copied().unwrap_or_default();
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
            misses: false,
        };
        let device = self.device_times(thread, device_waits);
        let (blocked, directed): (&Times, &Times) = (&[], &[]);
        let ready = ReadyTasks::default();
        let changes = Changes {
            thread,
            spans: row.track.spans(),
            span: None,
            ready: &ready,
            at: 0,
            off: &off,
            blocked,
            device: &device,
            directed,
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
        let process_of = |thread: &ThreadIndex| self.threads[thread.index()].process.index();
        // A process before it in its group, or itself.
        let mut before: Vec<usize> = (0..self.processes.len()).collect();
        for crowd in crowds {
            for pair in crowd.workers.windows(2) {
                let firsts =
                    [&pair[0], &pair[1]].map(|thread| first_of_group(&mut before, process_of(thread)));
                before[firsts[0].max(firsts[1])] = firsts[0].min(firsts[1]);
            }
        }
        let with_workers: BTreeSet<usize> = self.workers().map(|(thread, _)| process_of(&thread)).collect();
        let mut groups: BTreeMap<usize, Vec<ProcessIndex>> = BTreeMap::new();
        for process in with_workers {
            let first = first_of_group(&mut before, process);
            groups.entry(first).or_default().push(ProcessIndex::of(process));
        }
        groups.into_values().collect()
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
    fn add_times_on(&self, cpu: ThreadIndex, off_cpu: &[OffCpu], times: &mut Vec<(u64, u64)>) {
        if off_cpu.is_empty() {
            return;
        }
        for (start, end, on_it) in self.threads_on(cpu) {
            let first = off_cpu.partition_point(|off| (off.thread, off.end) <= (on_it, start));
            let parts = off_cpu[first..].iter().take_while(|off| off.thread == on_it && off.start < end);
            times.extend(parts.map(|off| (off.start.max(start), off.end.min(end))));
        }
    }

    /// Which threads' sections a CPU shows, in order. The track of a part has sections of its own: those of the whole
    /// run refer to the threads, whose numbers are the same.
    fn threads_on(&self, cpu: ThreadIndex) -> Vec<(u64, u64, ThreadIndex)> {
        let threads = &self.whole().threads;
        let by_columns: FxHashMap<*const TrackColumns, ThreadIndex> = (threads.iter().enumerate())
            .filter_map(|(thread, row)| {
                Some((Arc::as_ptr(row.track.shared_columns()?), ThreadIndex(thread as u32)))
            })
            .collect();
        let sources = threads[cpu.index()].track.sources().into_iter();
        sources.filter_map(|(start, end, columns)| Some((start, end, *by_columns.get(&columns)?))).collect()
    }

    fn attribute<'e>(&'e self, processes: &[ProcessIndex], of_run: &OfRun<'e>, all: &mut Vec<SystemTime>) {
        let OfRun { crowds, peers, .. } = of_run;
        let member = |process: usize, thread: ThreadIndex| {
            let row = &self.threads[thread.index()];
            (row.worker || row.kind == ThreadKind::Helper).then(|| Member {
                thread,
                process,
                crowd: of_run.crowd_of.get(&thread).copied(),
                worker: row.worker,
                off: self.runnable_times(thread),
                blocked: self.blocked_times(thread),
                device: self.device_times(thread, of_run.device_waits),
            })
        };
        let mut members: Vec<Member> = Vec::new();
        for (number, process) in processes.iter().enumerate() {
            let threads = of_run.threads_by_process[process.index()].iter();
            members.extend(threads.filter_map(|thread| member(number, *thread)));
        }
        members.sort_by_key(|member| member.thread);
        let crowded = members.iter().any(|member| member.crowd.is_some());
        let mut directed: Vec<Vec<(u64, u64)>> =
            members.iter().map(|member| call_times(peers, member.thread)).collect();
        let have_cpus = |(member, calls): (&Member, &Vec<_>)| member.off.is_empty() && calls.is_empty();
        if !crowded && members.iter().zip(&directed).all(have_cpus) {
            return;
        }
        let waits = of_run.lock_waits.get_or_init(|| LockWaits::of(self));
        for (member, times) in members.iter().zip(&mut directed) {
            times.extend(waits.system_times(member.thread, &member.off));
            join_intervals(times);
        }
        let windows = match crowded {
            true => vec![(0, u64::MAX)],
            // If each worker has a CPU, no time is charged to the system.
            false => joined(members.iter().map(|member| &member.off).chain(&directed)),
        };
        let ready = ReadyTasks::of(self, &members, processes, &of_run.facts);
        let mut sweep = Sweep::of(&members, processes.len(), crowds, &ready, all);
        for (begin, end) in windows {
            let lanes = members.iter().zip(&directed).map(
                |(Member { thread, off, blocked, device, .. }, directed)| Changes {
                    thread: *thread,
                    spans: self.spans_of_run_from(*thread, begin),
                    span: None,
                    ready: &ready,
                    at: begin,
                    off: from(off, begin),
                    blocked: from(blocked, begin),
                    device: from(device, begin),
                    directed: from(directed, begin),
                },
            );
            sweep.run(lanes.collect(), begin, end);
        }
    }
}

/// Facts of the run, common to all groups of processes.
struct OfRun<'r> {
    crowds: &'r [Crowd],
    /// The first crowd of each thread that is in one.
    crowd_of: FxHashMap<ThreadIndex, usize>,
    threads_by_process: Vec<Vec<ThreadIndex>>,
    device_waits: &'r [OffCpu],
    peers: LatePeers,
    /// Computed if they are needed.
    facts: OnceCell<TaskFacts>,
    lock_waits: OnceCell<LockWaits<'r>>,
}

impl<'r> OfRun<'r> {
    fn of(execution: &'r Execution, crowds: &'r [Crowd], device_waits: &'r [OffCpu]) -> Self {
        let mut crowd_of = FxHashMap::default();
        for (number, crowd) in crowds.iter().enumerate() {
            crowd.workers.iter().for_each(|thread| {
                crowd_of.entry(*thread).or_insert(number);
            });
        }
        OfRun {
            crowds,
            crowd_of,
            threads_by_process: execution.threads_by_process(),
            device_waits,
            peers: LatePeers::of(execution),
            facts: OnceCell::new(),
            lock_waits: OnceCell::new(),
        }
    }
}

/// The first process of a group; shortens the way to it.
fn first_of_group(before: &mut [usize], mut process: usize) -> usize {
    while before[process] != process {
        before[process] = before[before[process]];
        process = before[process];
    }
    process
}

/// The times in which calls of a thread wait for a late process by the system's doing.
fn call_times(peers: &LatePeers, thread: ThreadIndex) -> Vec<(u64, u64)> {
    let waits = peers.waits_of(thread).iter();
    let parts = waits.flat_map(|(start, until, process)| peers.parts(*process, *start, *until));
    let mut times: Vec<(u64, u64)> =
        parts.filter(|part| part.kept_by == KeptBy::System).map(|part| (part.start, part.end)).collect();
    join_intervals(&mut times);
    times
}

#[cfg(test)]
mod tests;
