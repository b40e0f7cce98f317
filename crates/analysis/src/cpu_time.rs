//! The CPU time of processes without a runtime, and the causes of its unused part.
//!
//! ```text
//!   capacity = CPUs that the processes may use × time
//!            = used + no CPU + waits + too few threads with work + nothing to do + not known
//! ```
//!
//! At each instant, each CPU that no thread of the program uses is charged in this order:
//!
//! 1. in equal parts to the threads that would use it: to the system for those that could run and had no CPU, and to the
//!    waits of those that would run otherwise;
//! 2. to what is not known, for threads that are blocked in calls that are not recorded;
//! 3. if threads run, to their code: no other thread has work (*alone*);
//! 4. otherwise to sleep, if no thread waits for the outside; else nothing is to be done (*idle*).
//!
//! A thread that waits for requests would not run otherwise: in a wait for a peer, a timer, or the end of a thread, in one that is
//! not over at the end, and in the last one before the thread ends. While a thread waits for one that has no CPU, the system is charged.

use crate::wait_chains::{Call, ChainPart, Root, Tie, follow, object};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_event::models::wait::kind;
use taskscope_execution::{
    CpuFacts, CpuSet, Execution, ObjectIndex, OffCpu, OsSource, Process, ThreadIndex, ThreadWait,
};

/// The reason why CPUs were not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LostTo {
    /// Threads could run and had no CPU, or waited for such threads.
    NoCpu,
    /// Threads wait for another thread.
    Wait {
        /// `taskscope_event::models::wait::kind`.
        kind: u32,
        /// The object.
        object: ObjectIndex,
        /// The call in which they wait.
        at: Call,
        /// The thread waited for.
        first: Tie,
        /// The last thread of the chain of waits, the same in a chain of one.
        last: Tie,
        /// Threads in the chain.
        length: u32,
        /// The sleep or I/O of the last thread; `None` if it ran.
        blocked: Option<(u32, Call)>,
    },
    /// Threads sleep or wait for a device: the kind and call.
    Blocked(u32, Call),
    /// Locks were free, or threads woken, and they did not run yet.
    Handover,
    /// Too few threads have work.
    Alone,
    /// No thread has work.
    Idle,
    /// Threads wait in a recorded call (its kind), and the thread that ends the wait is not known.
    WaitUnknown(u32, Call),
    /// Threads are blocked in calls that are not recorded.
    BlockedUnknown,
    /// The activity of threads is not recorded.
    Unknown,
}

/// CPU time that was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoss {
    /// The charged party.
    pub to: LostTo,
    /// CPU-nanoseconds.
    pub ns: u64,
    /// Nanoseconds of the threads concerned, over the whole time; whether or not CPUs were unused.
    pub threads_ns: u64,
}

/// The CPU time of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// CPUs that the processes may use, in thousandths; over all hosts.
    pub millicpus: u64,
    /// CPU-nanoseconds that the processes could have used.
    pub capacity_ns: u64,
    /// CPU-nanoseconds in which threads ran, outside of recorded waits.
    pub used_ns: u64,
    /// Nanoseconds of all threads, from their begins to their ends.
    pub threads_ns: u64,
    /// The unused rest, largest first; with `used_ns` it sums to `capacity_ns`.
    pub losses: Vec<CpuLoss>,
    /// Times in which threads ran while too few others had work, by thread and time.
    pub alone: Vec<(ThreadIndex, u64, u64)>,
    /// Whether the times of some thread off the CPU are estimated.
    pub is_estimated: bool,
}

/// Pieces of threads' time at most; chains of further waits are not followed.
const MAX_PIECES: usize = 4_000_000;
/// Fraction bits of a charge in thousandths of a CPU-nanosecond.
const BITS: u32 = 32;
/// A thread that sleeps has other work, if it is on a CPU, or could be, for one part in this many of its time.
const WORKS_PARTS: u64 = 20;
/// A thread ends after a wait without having worked, if it lives for less than one part in this many of the wait.
const ENDS_PARTS: u64 = 20;

/// The activity of a thread at an instant, as far as CPUs are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    HasNoCpu,
    /// Would run otherwise; the number of the loss.
    Waits(u32),
    /// It is not known whether it would run otherwise: a recorded wait, the number of the loss.
    WaitsUnknown(u32),
    /// The same outside of recorded waits: whether it is blocked.
    NotKnown(bool),
    /// Sleeps by itself, without other work; the number of the loss.
    Sleeps(u32),
    /// Waits for requests from outside.
    Listens,
    /// Waits for the end of a thread, or for a wake that does not come.
    Rests,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    thread: ThreadIndex,
    from: u64,
    until: u64,
    doing: Doing,
}

/// A thread's time by its states; the parts sum to its life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// Nanoseconds on a CPU, outside of recorded waits.
    pub running_ns: u64,
    /// Nanoseconds in which it could run and had no CPU.
    pub no_cpu_ns: u64,
    /// Nanoseconds in recorded waits by `taskscope_event::models::wait::kind`, in the order of the kinds.
    pub waits: Vec<(u32, u64)>,
    /// Nanoseconds blocked in calls that are not recorded.
    pub blocked_ns: u64,
    /// Nanoseconds of which nothing is known.
    pub unknown_ns: u64,
}

/// The states of each thread.
pub fn thread_states(execution: &Execution) -> Vec<ThreadStates> {
    let ends = ends_of_scheduling(execution);
    let threads = (0..execution.threads.len() as u32).map(ThreadIndex);
    threads.map(|thread| states_of(execution, thread, &ends)).collect()
}

fn states_of(execution: &Execution, thread: ThreadIndex, ends: &[u64]) -> ThreadStates {
    let mut states = ThreadStates::default();
    let track = &execution.threads[thread.index()].track;
    let (start, end) = (track.start(), track.end());
    let own = Own::of(execution, thread, ends);
    let outside = |states: &mut ThreadStates, from: u64, until: u64| {
        let mut at = from;
        while at < until {
            let (doing, next) = own.at(at);
            let next = next.min(until);
            *match doing {
                Doing::HasNoCpu => &mut states.no_cpu_ns,
                Doing::NotKnown(true) => &mut states.blocked_ns,
                Doing::NotKnown(false) => &mut states.unknown_ns,
                _ => &mut states.running_ns,
            } += next - at;
            at = next;
        }
    };
    let mut at = start;
    for wait in execution.thread_waits.of_thread(thread, start, end) {
        let (from, until) = (wait.start.max(at), wait.end.min(end));
        outside(&mut states, at, from.min(end));
        if until > from {
            let off = &own.off[own.off.partition_point(|off| off.end <= from)..];
            let off = off.iter().take_while(|off| off.start < until);
            let no_cpu: u64 = off.map(|off| off.end.min(until) - off.start.max(from)).sum();
            states.no_cpu_ns += no_cpu;
            let kind = object(execution, wait.object).map_or(0, |row| row.kind);
            let row = states.waits.partition_point(|(known, _)| *known < kind);
            if states.waits.get(row).is_none_or(|(known, _)| *known != kind) {
                states.waits.insert(row, (kind, 0));
            }
            states.waits[row].1 += until - from - no_cpu;
        }
        at = at.max(until);
    }
    outside(&mut states, at, end);
    states
}

/// Accounts the CPU time of a run; `None` if the CPUs of a process are not known, if nothing is known of the
/// threads' scheduling, or if threads are not selected.
pub fn cpu_time(execution: &Execution) -> Option<CpuTime> {
    let threads = || (0..).map(ThreadIndex).zip(&execution.threads);
    let has_time = |row: &taskscope_execution::Thread| row.track.end() > row.track.start();
    if threads().any(|(_, row)| !row.selected)
        || threads().all(|(_, row)| !has_time(row) || row.os_source == OsSource::Unknown)
    {
        return None;
    }
    let hosts = hosts(execution)?;
    let ends = ends_of_scheduling(execution);
    let mut accounts = Accounts::default();
    let mut time = CpuTime {
        millicpus: 0,
        capacity_ns: 0,
        used_ns: 0,
        threads_ns: 0,
        losses: Vec::new(),
        alone: Vec::new(),
        is_estimated: threads().any(|(_, row)| row.os_source == OsSource::Estimated),
    };
    for host in &hosts {
        let mut pieces = Vec::new();
        for (thread, row) in threads().filter(|(_, row)| host.processes.contains(&row.process.index())) {
            time.threads_ns = time.threads_ns.saturating_add(row.track.end() - row.track.start());
            Pieces { execution, ends: &ends, accounts: &mut accounts, to: &mut pieces }.add(thread);
        }
        time.millicpus += host.millicpus;
        let wall = u128::from(host.last - host.first);
        let capacity = u64::try_from(wall * u128::from(host.millicpus) / 1000).unwrap_or(u64::MAX);
        time.capacity_ns = time.capacity_ns.saturating_add(capacity);
        accounts.charge(host.millicpus, (host.first, host.last), &pieces, &mut time.alone);
        let ran = pieces.iter().filter(|piece| piece.doing == Doing::Runs);
        let ran = ran.map(|piece| piece.until - piece.from).fold(0, u64::saturating_add);
        time.used_ns = time.used_ns.saturating_add(ran);
    }
    accounts.settle(&mut time);
    time.alone.sort_unstable();
    (time.capacity_ns > 0).then_some(time)
}

/// A host with processes that share its CPUs.
struct Host {
    processes: Vec<usize>,
    millicpus: u64,
    first: u64,
    last: u64,
}

/// The hosts; `None` if the CPUs of a process are not known.
fn hosts(execution: &Execution) -> Option<Vec<Host>> {
    let mut hosts: Vec<(&str, Host, CpuSet)> = Vec::new();
    for (number, process) in execution.processes.iter().enumerate() {
        if process.has_cpus || process.last <= process.first {
            continue;
        }
        let facts: &CpuFacts = process.cpus.as_ref().filter(|facts| !facts.allowed.is_empty())?;
        let name = taskscope_execution::host(&process.loom);
        let quota = facts.quota.as_ref().map_or(u64::MAX, |quota| quota.millicpus);
        let found = hosts.iter_mut().find(|(known, ..)| *known == name);
        if let Some((_, host, cpus)) = found {
            host.processes.push(number);
            host.millicpus = host.millicpus.min(quota);
            (host.first, host.last) = (host.first.min(process.first), host.last.max(process.last));
            cpus.add(&facts.allowed);
        } else {
            let (first, last) = (process.first, process.last);
            let host = Host { processes: vec![number], millicpus: quota, first, last };
            hosts.push((name, host, facts.allowed.clone()));
        }
    }
    for (_, host, cpus) in &mut hosts {
        host.millicpus = host.millicpus.min(1000 * cpus.len() as u64);
    }
    Some(hosts.into_iter().map(|(_, host, _)| host).collect())
}

/// The losses of a run while they are summed up.
#[derive(Default)]
struct Accounts {
    numbers: FxHashMap<LostTo, u32>,
    rows: Vec<(LostTo, Sum)>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    /// Thousandths of a CPU-nanosecond, with a fraction of [`BITS`] bits.
    charged: u128,
    threads_ns: u64,
}

impl Accounts {
    fn number(&mut self, to: LostTo) -> u32 {
        *self.numbers.entry(to).or_insert_with(|| {
            self.rows.push((to, Sum::default()));
            self.rows.len() as u32 - 1
        })
    }

    fn add(&mut self, number: u32, charged: u128, threads_ns: u64) {
        if let Some((_, sum)) = self.rows.get_mut(number as usize) {
            sum.charged += charged;
            sum.threads_ns = sum.threads_ns.saturating_add(threads_ns);
        }
    }

    /// Charges the unused CPUs of a host.
    fn charge(
        &mut self,
        millicpus: u64,
        (first, last): (u64, u64),
        pieces: &[Piece],
        alone: &mut Vec<(ThreadIndex, u64, u64)>,
    ) {
        let sweep = Sweep::over(millicpus, (first, last), pieces);
        let no_cpu = self.number(LostTo::NoCpu);
        for piece in pieces {
            let (from, until) = (sweep.row(piece.from), sweep.row(piece.until));
            let of = |sums: &[u128]| sums[until] - sums[from];
            let ns = piece.until - piece.from;
            match piece.doing {
                Doing::HasNoCpu => self.add(no_cpu, of(&sweep.demand), ns),
                Doing::Waits(number) => self.add(number, of(&sweep.demand), ns),
                Doing::Sleeps(number) => self.add(number, of(&sweep.sleeps), ns),
                Doing::WaitsUnknown(number) => self.add(number, of(&sweep.not_known), ns),
                Doing::NotKnown(is_blocked) => {
                    let to = if is_blocked { LostTo::BlockedUnknown } else { LostTo::Unknown };
                    let number = self.number(to);
                    self.add(number, of(&sweep.not_known), ns);
                }
                Doing::Runs | Doing::Listens | Doing::Rests => {}
            }
            if matches!(piece.doing, Doing::Runs | Doing::HasNoCpu) {
                let charged = of(&sweep.alone);
                if charged > 0 {
                    let number = self.number(LostTo::Alone);
                    self.add(number, charged, 0);
                    sweep.alone_parts(piece, from, until, alone);
                }
            }
            if matches!(piece.doing, Doing::Listens | Doing::Rests) {
                let number = self.number(LostTo::Idle);
                self.add(number, 0, ns);
            }
        }
        if sweep.idle > 0 {
            let number = self.number(LostTo::Idle);
            self.add(number, sweep.idle, 0);
        }
    }

    /// Makes the losses from the charges, in whole nanoseconds.
    fn settle(self, time: &mut CpuTime) {
        let whole = |charged: u128| ((charged / 1000) >> BITS) as u64;
        let rows = self.rows.into_iter();
        time.losses = rows
            .map(|(to, sum)| CpuLoss { to, ns: whole(sum.charged), threads_ns: sum.threads_ns })
            .filter(|loss| loss.ns > 0 || loss.threads_ns > 0)
            .collect();
        let sum = time.losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.ns));
        // A limit that was exceeded for a moment is enforced by times without a CPU.
        let mut over = time.used_ns.saturating_add(sum).saturating_sub(time.capacity_ns);
        time.losses.sort_by_key(|loss| (loss.to != LostTo::NoCpu, Reverse(loss.ns), loss.to));
        for loss in &mut time.losses {
            let part = over.min(loss.ns);
            loss.ns -= part;
            over -= part;
        }
        time.used_ns -= over;
        time.losses.sort_by_key(|loss| (Reverse(loss.ns), loss.to));
        let lost = time.losses.iter().fold(0, |sum: u64, loss| sum.saturating_add(loss.ns));
        let rest = time.capacity_ns.saturating_sub(time.used_ns).saturating_sub(lost);
        match time.losses.first_mut() {
            // Fractions that were cut off, and time before the first or after the last thread.
            Some(loss) => loss.ns += rest,
            None if rest > 0 => time.losses.push(CpuLoss { to: LostTo::Idle, ns: rest, threads_ns: 0 }),
            None => {}
        }
    }
}

/// Sums over time, up to each change of a host's threads, of the charge to one thread in each activity.
struct Sweep {
    times: Vec<u64>,
    demand: Vec<u128>,
    not_known: Vec<u128>,
    alone: Vec<u128>,
    sleeps: Vec<u128>,
    /// The charge of the time in which nothing is to be done.
    idle: u128,
}

/// Numbers of threads by activity.
#[derive(Clone, Copy, Default)]
struct Now {
    run: i64,
    no_cpu: i64,
    wait: i64,
    not_known: i64,
    sleep: i64,
    listen: i64,
}

impl Now {
    fn of(&mut self, doing: Doing) -> Option<&mut i64> {
        Some(match doing {
            Doing::Runs => &mut self.run,
            Doing::HasNoCpu => &mut self.no_cpu,
            Doing::Waits(_) => &mut self.wait,
            Doing::WaitsUnknown(_) | Doing::NotKnown(_) => &mut self.not_known,
            Doing::Sleeps(_) => &mut self.sleep,
            Doing::Listens => &mut self.listen,
            Doing::Rests => return None,
        })
    }
}

impl Sweep {
    fn over(millicpus: u64, (first, last): (u64, u64), pieces: &[Piece]) -> Sweep {
        let mut changes: Vec<(u64, i64, Doing)> = Vec::with_capacity(2 * pieces.len() + 2);
        for piece in pieces {
            changes.push((piece.from, 1, piece.doing));
            changes.push((piece.until, -1, piece.doing));
        }
        // Borders of the time are changes of nothing.
        changes.extend([(first, 0, Doing::Rests), (last, 0, Doing::Rests)]);
        changes.sort_unstable_by_key(|(at, ..)| *at);
        let mut sweep = Sweep {
            times: Vec::new(),
            demand: Vec::new(),
            not_known: Vec::new(),
            alone: Vec::new(),
            sleeps: Vec::new(),
            idle: 0,
        };
        let mut now = Now::default();
        let mut sums = [0_u128; 4];
        let mut before = changes.first().map_or(0, |change| change.0);
        for (at, step, doing) in changes {
            if at > before || sweep.times.is_empty() {
                if before >= first && at <= last {
                    sweep.take(millicpus, u128::from(at - before), &now, &mut sums);
                }
                sweep.times.push(at);
                let columns = [&mut sweep.demand, &mut sweep.not_known, &mut sweep.alone, &mut sweep.sleeps];
                for (column, sum) in columns.into_iter().zip(sums) {
                    column.push(sum);
                }
                before = at;
            }
            if let Some(count) = now.of(doing) {
                *count += step;
            }
        }
        sweep
    }

    /// Divides the CPUs of an interval.
    fn take(&mut self, millicpus: u64, length: u128, now: &Now, sums: &mut [u128; 4]) {
        let mille = |count: i64| 1000 * count.max(0) as u64;
        let running = mille(now.run);
        let mut free = millicpus.saturating_sub(running);
        let mut give = |count: i64, sum: &mut u128| {
            let part = free.min(mille(count));
            free -= part;
            if part > 0 {
                *sum += ((length * u128::from(part)) << BITS) / count.max(1) as u128;
            }
        };
        let [demand, not_known, alone, sleeps] = sums;
        give(now.no_cpu + now.wait, demand);
        give(now.not_known, not_known);
        let active = (now.run + now.no_cpu).max(0);
        let rest = (length * u128::from(free)) << BITS;
        match () {
            () if active > 0 => *alone += rest / active as u128,
            () if now.sleep > 0 && now.listen <= 0 => *sleeps += rest / now.sleep as u128,
            () => self.idle += rest,
        }
    }

    /// The row of a time at which a thread's activity changes.
    fn row(&self, at: u64) -> usize {
        self.times.partition_point(|time| *time < at).min(self.times.len() - 1)
    }

    /// The times of a piece in which too few other threads had work.
    fn alone_parts(&self, piece: &Piece, from: usize, until: usize, to: &mut Vec<(ThreadIndex, u64, u64)>) {
        for row in from..until {
            if self.alone[row + 1] == self.alone[row] {
                continue;
            }
            let (start, end) = (self.times[row], self.times[row + 1]);
            let has_room = to.len() < MAX_PIECES;
            match to.last_mut() {
                Some((thread, _, last)) if *thread == piece.thread && *last == start => *last = end,
                _ if has_room => to.push((piece.thread, start, end)),
                _ => {}
            }
        }
    }
}

/// Divides the time of threads into pieces.
struct Pieces<'a> {
    execution: &'a Execution,
    ends: &'a [u64],
    accounts: &'a mut Accounts,
    to: &'a mut Vec<Piece>,
}

impl Pieces<'_> {
    fn add(&mut self, thread: ThreadIndex) {
        let execution = self.execution;
        let row = &execution.threads[thread.index()];
        let (start, end) = (row.track.start(), row.track.end());
        if start >= end {
            return;
        }
        let own = Own::of(execution, thread, self.ends);
        let mut at = start;
        for wait in execution.thread_waits.of_thread(thread, start, end) {
            let (from, until) = (wait.start.max(at), wait.end.min(end));
            self.outside_of_waits(&own, at, from.min(end));
            if until > from {
                self.in_wait(&own, wait, from, until);
            }
            at = at.max(until);
        }
        self.outside_of_waits(&own, at, end);
    }

    fn push(&mut self, thread: ThreadIndex, from: u64, until: u64, doing: Doing) {
        if until <= from {
            return;
        }
        match self.to.last_mut() {
            Some(last) if last.thread == thread && last.until == from && last.doing == doing => {
                last.until = until;
            }
            _ => self.to.push(Piece { thread, from, until, doing }),
        }
    }

    /// Time in which a thread runs, has no CPU, or is blocked in calls that are not recorded.
    fn outside_of_waits(&mut self, own: &Own<'_>, from: u64, until: u64) {
        let mut at = from;
        while at < until {
            let (doing, end) = own.at(at);
            let end = end.min(until);
            self.push(own.thread, at, end, doing);
            at = end;
        }
    }

    fn in_wait(&mut self, own: &Own<'_>, wait: &ThreadWait, from: u64, until: u64) {
        let execution = self.execution;
        let kind = object(execution, wait.object).map_or(0, |row| row.kind);
        let ends = own.ends_after(wait, kind);
        if self.to.len() >= MAX_PIECES {
            let number = self.accounts.number(LostTo::Unknown);
            return self.push(own.thread, from, until, Doing::Waits(number));
        }
        let mut parts = Vec::new();
        follow(execution, wait, from, until, &mut |part| parts.push(part));
        for part in parts {
            let doing = self.doing(own, wait, (kind, ends), &part);
            self.push(own.thread, part.from, part.until, doing);
        }
    }

    /// The activity in a part of a wait.
    fn doing(
        &mut self,
        own: &Own<'_>,
        wait: &ThreadWait,
        (kind, ends): (u32, bool),
        part: &ChainPart,
    ) -> Doing {
        match (part.root, part.first.zip(part.last)) {
            (Root::NoCpu, None) => Doing::HasNoCpu,
            (Root::Handover, None) => Doing::Waits(self.accounts.number(LostTo::Handover)),
            _ if kind == kind::JOIN => Doing::Rests,
            (Root::Open, _) => Doing::Rests,
            (Root::NotKnown, _) | (Root::Ran, None) => {
                let call = Call::of(self.execution, wait.thread, wait.site, wait.start);
                Doing::WaitsUnknown(self.accounts.number(LostTo::WaitUnknown(kind, call)))
            }
            (Root::TimedOut, _) => Doing::Listens,
            (Root::Slept, None) => {
                let call = part.blocked.map_or(Call::NONE, |(_, call)| call);
                let number = self.accounts.number(LostTo::Blocked(kind, call));
                if own.works { Doing::Waits(number) } else { Doing::Sleeps(number) }
            }
            (Root::Outside, None) => match part.blocked {
                Some((kind::FILE, call)) => {
                    Doing::Waits(self.accounts.number(LostTo::Blocked(kind::FILE, call)))
                }
                _ => Doing::Listens,
            },
            (Root::Outside, Some(_)) if part.blocked.is_none_or(|(kind, _)| kind != kind::FILE) => {
                // A lock is held by a thread that waits for the outside.
                match part.first {
                    Some(first @ Tie::Holds(_)) => Doing::Waits(self.wait((kind, wait), first, part)),
                    _ => Doing::Listens,
                }
            }
            _ if ends => Doing::Rests,
            (Root::NoCpu, Some(_)) => Doing::Waits(self.accounts.number(LostTo::NoCpu)),
            (Root::Ran | Root::Slept | Root::Outside | Root::Handover, Some((first, _))) => {
                Doing::Waits(self.wait((kind, wait), first, part))
            }
        }
    }

    fn wait(&mut self, (kind, wait): (u32, &ThreadWait), first: Tie, part: &ChainPart) -> u32 {
        let at = Call::of(self.execution, wait.thread, wait.site, wait.start);
        let last = part.last.unwrap_or(first);
        let (object, length, blocked) = (wait.object, part.length, part.blocked);
        self.accounts.number(LostTo::Wait { kind, object, at, first, last, length, blocked })
    }
}

/// Until when the scheduling of each process's threads is known. A process that is killed loses the newest records.
fn ends_of_scheduling(execution: &Execution) -> Vec<u64> {
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

/// A thread, and its scheduling as far as recorded.
struct Own<'a> {
    thread: ThreadIndex,
    execution: &'a Execution,
    off: &'a [OffCpu],
    blocked: &'a [OffCpu],
    is_known: bool,
    /// Until when its scheduling is known; a killed process loses the newest records.
    known_until: u64,
    /// Since when it was blocked until the end.
    asleep_since: Option<u64>,
    /// Whether it has work besides sleep.
    works: bool,
}

impl<'a> Own<'a> {
    /// `ends` are those of [`ends_of_scheduling`].
    fn of(execution: &'a Execution, thread: ThreadIndex, ends: &[u64]) -> Own<'a> {
        let whole = execution.whole();
        let row = &whole.threads[thread.index()];
        let (off, blocked) = (whole.off_cpu_of(thread), whole.blocked_of(thread));
        let known_until = ends.get(row.process.index()).copied().unwrap_or(u64::MAX);
        let mut own = Own {
            thread,
            execution: whole,
            off,
            blocked,
            is_known: row.os_source != OsSource::Unknown,
            known_until,
            asleep_since: row.asleep_since,
            works: false,
        };
        own.works = own.has_work();
        own
    }

    /// Whether it runs, or could run, for more than a small part of its life.
    fn has_work(&self) -> bool {
        let track = &self.execution.threads[self.thread.index()].track;
        let (start, end) = (track.start(), track.end());
        let mut active = 0;
        let mut add = |from: u64, until: u64| {
            let mut at = from;
            while at < until {
                let (doing, next) = self.at(at);
                let next = next.min(until);
                if matches!(doing, Doing::Runs | Doing::HasNoCpu) {
                    active += next - at;
                }
                at = next;
            }
        };
        let mut at = start;
        for wait in self.execution.thread_waits.of_thread(self.thread, start, end) {
            add(at, wait.start.min(end));
            at = at.max(wait.end);
        }
        add(at, end);
        active.saturating_mul(WORKS_PARTS) >= end - start
    }

    /// The activity outside of recorded waits at an instant, and until when it is the same.
    fn at(&self, at: u64) -> (Doing, u64) {
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

    /// Whether the thread ends after a wait for a wake without having worked.
    fn ends_after(&self, wait: &ThreadWait, kind: u32) -> bool {
        let is_lock = kind::has_holder(kind) || kind == kind::THREAD_BARRIER;
        let row = &self.execution.threads[self.thread.index()];
        let rest = row.track.end().saturating_sub(wait.end);
        !is_lock && rest.saturating_mul(ENDS_PARTS) < wait.end - wait.start
    }
}

#[cfg(test)]
mod tests;
