//! Times off the CPU, from the side stream that each recorded process has.

use super::signals::sleep_through_signals;
use super::stops::{Watched, apply_stops};
use super::thread_ids::threads_by_id;
use crate::recorders::RecorderName;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::system;
use taskscope_execution::{
    Execution, OsSource, OsTimes, OsTotals, ProcessIndex, RunDelay, SystemCause, SystemTime, ThreadIndex,
};
use taskscope_trace::{Event, Location, Trace};

#[derive(Default)]
struct OfThread {
    times: OsTimes,
    /// Totals at the begin and at the end, nanoseconds.
    on_cpu: Option<[u64; 2]>,
    run_delay: Option<[u64; 2]>,
    /// Begin of the thread's blocking, if its return is not recorded yet.
    blocks_since: Option<u64>,
    /// The source of its times by the analysis of the run that this trace is a slice of; then all times are final.
    known: Option<OsSource>,
    /// The times that the system took by that analysis.
    taken: Vec<TakenTime>,
}

impl OfThread {
    fn finish(mut self) -> OsTimes {
        // Blocked to the end of the recording; the track cuts it.
        self.times.blocked.extend(self.blocks_since.map(|since| (since, u64::MAX)));
        let grown = |total: Option<[u64; 2]>| total.map(|[begin, end]| end.saturating_sub(begin));
        self.times.totals = OsTotals { on_cpu_ns: grown(self.on_cpu), run_delay_ns: grown(self.run_delay) };
        self.times
    }
}

/// Sums of runnable time that are more than this part of a thread's time make it estimated.
const MAX_SUMMED: u64 = 20;

/// Adds the intervals and sums of the side streams. A thread that no stream names stays unknown. Returns the times that the system
/// took as a slice has them, by thread: they are final.
pub(crate) fn add_os_times(
    trace: &Trace,
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    execution: &mut Execution,
) -> KnownTimes {
    let mut final_times = KnownTimes::default();
    let by_id = threads_by_id(execution);
    let os_time_locations =
        trace.locations().iter().filter(|location| location.metadata["kind"] == "os-time");
    let mut locations: Vec<(&Location, Read)> =
        os_time_locations.map(|location| (location, read(location))).collect();
    // Of two recorders of a process, the one with known times goes first.
    locations.sort_by_key(|(_, read)| !read.is_final());
    for (location, read) in locations {
        let summed = location.metadata["source"] == "schedstat";
        let is_final = read.is_final();
        let Read { rows, kept, cpus } = read;
        let (mut threads, mut watched) = (Vec::new(), Vec::new());
        let process = process_of(processes, location);
        for (tid, mut own) in rows {
            let threads_with_id = process.and_then(|process| by_id.get(&(process, tid as i64)));
            if let Some(thread) = threads_with_id.and_then(|threads| find(execution, threads)) {
                let (known, taken) = (own.known, std::mem::take(&mut own.taken));
                if known.is_some() {
                    final_times.add(thread, taken);
                }
                let track = &execution.threads[thread.index()].track;
                threads.push((thread, known));
                watched.push(Watched { start: track.start(), end: track.end(), times: own.finish() });
            }
        }
        if is_final {
            final_times.add_cpus(execution, location, &cpus);
        }
        let stopped = if is_final { kept } else { apply_stops(kept, &mut watched) };
        if let Some((thread, _)) = threads.first().filter(|_| !stopped.is_empty()) {
            let process = execution.threads[thread.index()].process;
            execution.processes[process.index()].cpus.get_or_insert_default().stopped = stopped;
        }
        for ((thread, known), Watched { start, end, mut times }) in threads.into_iter().zip(watched) {
            let samples = execution.samples.thread_samples(thread, 0, u64::MAX);
            sleep_through_signals(&mut times, samples, end);
            let in_sums = times.run_delays.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns));
            let is_estimated = summed || in_sums.saturating_mul(MAX_SUMMED) > end.saturating_sub(start);
            let source = if is_estimated { OsSource::Estimated } else { OsSource::Switches };
            execution.add_os_times(thread, known.unwrap_or(source), times);
        }
    }
    final_times
}

/// Times that the system took from threads and CPUs, as the analysis of the run of a slice found them.
#[derive(Default)]
pub(crate) struct KnownTimes {
    /// Threads and CPUs of which all such times are known.
    pub threads: FxHashSet<ThreadIndex>,
    /// Their times.
    pub times: Vec<SystemTime>,
}

impl KnownTimes {
    fn add(&mut self, thread: ThreadIndex, taken: Vec<TakenTime>) {
        if self.threads.insert(thread) {
            let time = |(start, end, cause)| SystemTime { thread, start, end, cause };
            self.times.extend(taken.into_iter().map(time));
        }
    }

    /// Adds those of the CPUs of the location's loom, which are in one of its locations.
    fn add_cpus(&mut self, execution: &Execution, location: &Location, cpus: &[(u32, TakenTime)]) {
        let loom = location.metadata["loom"].as_str().unwrap_or_default();
        for (row, thread) in execution.threads.iter().enumerate() {
            let process = &execution.processes[thread.process.index()];
            if process.has_cpus && process.loom == loom {
                let index = ThreadIndex(row as u32);
                self.threads.insert(index);
                let own = cpus.iter().filter(|(cpu, _)| *cpu == thread.tid as u32);
                self.times.extend(own.map(|(_, (start, end, cause))| SystemTime {
                    thread: index,
                    start: *start,
                    end: *end,
                    cause: *cause,
                }));
            }
        }
    }
}

/// Start, end, and cause.
type TakenTime = (u64, u64, SystemCause);

/// The process of a side stream.
fn process_of(
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    location: &Location,
) -> Option<ProcessIndex> {
    let metadata = &location.metadata;
    let name = (metadata["loom"].as_str()?.to_owned(), metadata["pid"].as_i64()?);
    processes.get(&name).copied()
}

/// The first of the threads with an id, unless its times are known already: two recorders of a process report the same.
fn find(execution: &Execution, threads: &[ThreadIndex]) -> Option<ThreadIndex> {
    let is_unknown = |thread: &ThreadIndex| execution.threads[thread.index()].os_source == OsSource::Unknown;
    threads.iter().copied().find(is_unknown)
}

/// Content of a side stream.
#[derive(Default)]
struct Read {
    /// Threads by their ids.
    rows: Vec<(u64, OfThread)>,
    /// Start and end of times in which the recorder's own thread was kept from running; in a slice, the stops.
    kept: Vec<(u64, u64)>,
    /// Times that the system took from CPUs, by their numbers.
    cpus: Vec<(u32, TakenTime)>,
}

impl Read {
    /// Whether its times are those of the analysis of the run that the trace is a slice of.
    fn is_final(&self) -> bool {
        self.rows.iter().any(|(_, row)| row.known.is_some())
    }
}

fn read(location: &Location) -> Read {
    let Read { mut rows, mut kept, mut cpus } = Read::default();
    let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
    for event in location.events() {
        let at = event.clock_ns.max(0) as u64;
        let first = word(event.payload, 0);
        let known = |at: usize| numbers.get(&half(event.payload, at)?).copied();
        match event.code {
            system::THREAD => {
                if let (Some(tid), Some(number)) = (first, half(event.payload, 8)) {
                    numbers.insert(number, rows.len());
                    rows.push((tid, OfThread::default()));
                }
            }
            system::PREEMPTED => {
                if let (Some(ns), Some(row)) = (first, known(8)) {
                    rows[row].1.times.runnable.push((at.saturating_sub(ns), at));
                }
            }
            system::BLOCKED => {
                if let (Some(ns), Some(delay), Some(row)) = (first, half(event.payload, 8), known(12)) {
                    let (start, woken) = (at.saturating_sub(ns), at.saturating_sub(delay.into()));
                    let own = &mut rows[row].1;
                    own.blocks_since = None;
                    own.times.blocked.push((start, woken.max(start)));
                    own.times.runnable.push((woken.max(start), at));
                }
            }
            system::BLOCKS => {
                if let (Some(ns), Some(row)) = (first, known(8)) {
                    rows[row].1.blocks_since = Some(at.saturating_sub(ns));
                }
            }
            system::RUN_DELAY | system::BLOCKED_SUM => {
                if let (Some(ns), Some(period), Some(row)) = (first, half(event.payload, 8), known(12)) {
                    // A period that is too long for its field is as long as its sum at least.
                    let start = at.saturating_sub(ns.max(period.into()));
                    let times = &mut rows[row].1.times;
                    let is_delay = event.code == system::RUN_DELAY;
                    let sums = if is_delay { &mut times.run_delays } else { &mut times.blocked_sums };
                    sums.push(RunDelay { start, end: at, ns });
                }
            }
            system::TOTAL_ON_CPU | system::TOTAL_RUN_DELAY => {
                if let (Some(ns), Some(row)) = (first, known(8)) {
                    let own = &mut rows[row].1;
                    let is_delay = event.code == system::TOTAL_RUN_DELAY;
                    let total = if is_delay { &mut own.run_delay } else { &mut own.on_cpu };
                    total.get_or_insert([ns, ns])[1] = ns;
                }
            }
            system::KNOWN => {
                if let (Some(source), Some(row)) = (half(event.payload, 0), known(4)) {
                    let sources = [OsSource::Unknown, OsSource::Switches, OsSource::Estimated];
                    rows[row].1.known = sources.get(source as usize).copied();
                }
            }
            system::TAKEN => {
                if let (Some(taken), Some(row)) = (taken(first, &event), known(12)) {
                    rows[row].1.taken.push(taken);
                }
            }
            system::TAKEN_OF_CPU => {
                cpus.extend(half(event.payload, 12).zip(taken(first, &event)));
            }
            system::COALESCED => {
                if let (Some(intervals), Some(row)) = (first, known(8)) {
                    rows[row].1.times.coalesced = intervals;
                }
            }
            system::KEPT => {
                kept.extend(first.zip(word(event.payload, 8)).filter(|(start, end)| start < end));
            }
            _ => {}
        }
    }
    Read { rows, kept, cpus }
}

/// The time of a record about a time that the system took.
fn taken(ns: Option<u64>, event: &Event<'_>) -> Option<TakenTime> {
    let (at, cause) = (event.clock_ns.max(0) as u64, half(event.payload, 8)?);
    Some((at.saturating_sub(ns?), at, *SystemCause::ALL.get(cause as usize)?))
}

fn word(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

fn half(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}
