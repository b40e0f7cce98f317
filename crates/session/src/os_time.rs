//! Times off the CPU, from the side stream that each recorded process has.

use crate::recorders::RecorderName;
use rustc_hash::FxHashMap;
use taskscope_event::models::system;
use taskscope_execution::{Execution, OsSource, ProcessIndex, RunDelay, ThreadIndex};
use taskscope_trace::{Location, Trace};

#[derive(Default)]
struct OfThread {
    exact: Vec<(u64, u64)>,
    delays: Vec<RunDelay>,
}

/// Adds what the side streams tell. A thread that no stream names stays unknown.
pub(crate) fn add_os_times(
    trace: &Trace,
    processes: &FxHashMap<RecorderName, ProcessIndex>,
    execution: &mut Execution,
) {
    for location in trace.locations().iter().filter(|location| location.metadata["kind"] == "os-time") {
        let summed = location.metadata["source"] == "schedstat";
        let source = if summed { OsSource::Estimated } else { OsSource::Switches };
        for (tid, own) in read(location) {
            if let Some(thread) = find(processes, execution, location, tid as i64) {
                execution.add_off_cpu(thread, source, &own.exact, &own.delays);
            }
        }
    }
}

/// The thread, if nothing told of its times before: two recorders of a process tell the same.
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

fn read(location: &Location) -> Vec<(u64, OfThread)> {
    let mut rows: Vec<(u64, OfThread)> = Vec::new();
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
                    rows[row].1.exact.push((at.saturating_sub(ns), at));
                }
            }
            system::RUN_DELAY => {
                if let (Some(ns), Some(period), Some(row)) = (first, half(event.payload, 8), known(12)) {
                    let start = at.saturating_sub(period.into());
                    rows[row].1.delays.push(RunDelay { start, end: at, ns });
                }
            }
            _ => {}
        }
    }
    rows
}

fn word(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

fn half(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}
