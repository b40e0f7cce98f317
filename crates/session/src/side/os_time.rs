//! Times off the CPU, from the side stream that each recorded process has.

use super::stops::{Watched, apply_stops};
use crate::recorders::RecorderName;
use rustc_hash::FxHashMap;
use taskscope_event::models::system;
use taskscope_execution::{Execution, OsSource, OsTimes, OsTotals, ProcessIndex, RunDelay, ThreadIndex};
use taskscope_trace::{Location, Trace};

#[derive(Default)]
struct OfThread {
    times: OsTimes,
    /// Totals at the begin and at the end, nanoseconds.
    on_cpu: Option<[u64; 2]>,
    run_delay: Option<[u64; 2]>,
    /// Begin of the thread's blocking, if its return is not recorded yet.
    blocks_since: Option<u64>,
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

/// Adds the intervals and sums of the side streams. A thread that no stream names stays unknown.
pub(crate) fn add_os_times(
    trace: &Trace,
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    execution: &mut Execution,
) {
    for location in trace.locations().iter().filter(|location| location.metadata["kind"] == "os-time") {
        let summed = location.metadata["source"] == "schedstat";
        let Read { rows, kept } = read(location);
        let (mut threads, mut watched) = (Vec::new(), Vec::new());
        for (tid, own) in rows {
            if let Some(thread) = find(processes, execution, location, tid as i64) {
                let track = &execution.threads[thread.index()].track;
                threads.push(thread);
                watched.push(Watched { start: track.start(), end: track.end(), times: own.finish() });
            }
        }
        let stopped = apply_stops(kept, &mut watched);
        if let Some(thread) = threads.first().filter(|_| !stopped.is_empty()) {
            let process = execution.threads[thread.index()].process;
            execution.processes[process.index()].cpus.get_or_insert_default().stopped = stopped;
        }
        for (thread, Watched { start, end, times }) in threads.into_iter().zip(watched) {
            let in_sums = times.run_delays.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns));
            let is_estimated = summed || in_sums.saturating_mul(MAX_SUMMED) > end.saturating_sub(start);
            let source = if is_estimated { OsSource::Estimated } else { OsSource::Switches };
            execution.add_os_times(thread, source, times);
        }
    }
}

/// The thread, unless its times are known already: two recorders of a process report the same.
fn find(
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    execution: &Execution,
    location: &Location,
    tid: i64,
) -> Option<ThreadIndex> {
    let metadata = &location.metadata;
    let (loom, pid) = (metadata["loom"].as_str()?, metadata["pid"].as_i64()?);
    let process = *processes.get(&(loom.to_owned(), pid))?;
    let row = execution.threads.iter().position(|thread| {
        thread.tid == tid && thread.os_source == OsSource::Unknown && thread.process == process
    });
    row.map(|row| ThreadIndex(row as u32))
}

/// Content of a side stream.
#[derive(Default)]
struct Read {
    /// Threads by their ids.
    rows: Vec<(u64, OfThread)>,
    /// Start and end of times in which the recorder's own thread was kept from running.
    kept: Vec<(u64, u64)>,
}

fn read(location: &Location) -> Read {
    let Read { mut rows, mut kept } = Read::default();
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
    Read { rows, kept }
}

fn word(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

fn half(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}
