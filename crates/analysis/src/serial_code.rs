//! Serial code that is blocked in the kernel: waits of the program, or of the runtime that ends its threads.

use crate::states::StateLedger;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{Execution, Place, PlaceKind, ProcessIndex, Span, State, Thread, ThreadKind};

/// Whether this is code between parallel regions.
pub(crate) fn is_serial(place: Place) -> bool {
    matches!(place.kind(), PlaceKind::Gap(_))
}

/// The places of serial code that is blocked, for more than half of that time while threads of the runtime end. They end with the
/// runtime, or if the program pauses it (omp_pause_resource).
pub(crate) fn ends_threads(execution: &Execution, ledger: &StateLedger) -> FxHashSet<Place> {
    if !ledger.causes.iter().any(|row| row.state == State::Blocked && is_serial(row.place)) {
        return FxHashSet::default();
    }
    let is_ended_worker = |thread: &&Thread| thread.kind == ThreadKind::Worker && thread.ended;
    let mut ends: Vec<(ProcessIndex, u64)> = execution
        .threads
        .iter()
        .filter(is_ended_worker)
        .map(|thread| (thread.process, thread.last_event))
        .collect();
    ends.sort_unstable();
    let mut times: FxHashMap<Place, (u64, u64)> = FxHashMap::default();
    for (thread, row) in execution.workers().filter(|(_, row)| row.kind == ThreadKind::Initial) {
        for Span { start, end, section } in execution.spans_of_run(thread) {
            if section.state == State::Blocked && is_serial(section.place) {
                let next = ends.partition_point(|known| *known < (row.process, start));
                let meets = ends.get(next).is_some_and(|known| *known <= (row.process, end));
                let (all, ending) = times.entry(section.place).or_default();
                *all += end - start;
                *ending += if meets { end - start } else { 0 };
            }
        }
    }
    times.into_iter().filter(|(_, (all, ending))| *ending > all / 2).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book;
    use taskscope_execution::{
        Change, ExecutionBuilder, GapIndex, Observer, OsSource, OsTimes, Section, ThreadIndex,
    };

    /// The initial thread is in serial code until 1000, after its only region; the worker of the runtime ends at `worker_ends`.
    /// Whether the runtime ends its threads while the initial thread is blocked in these times.
    fn is_end_of_threads(worker_ends: u64, blocked: &[(u64, u64)]) -> bool {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        (0..2).for_each(|tid| _ = builder.add_thread(process, tid));
        let (initial, worker) = (ThreadIndex(0), ThreadIndex(1));
        let mut change = |thread, at, change| {
            builder.event(thread, at);
            builder.change(thread, at, change);
        };
        let place = Place::gap(GapIndex(0));
        for (thread, kind, end) in
            [(initial, ThreadKind::Initial, 1000), (worker, ThreadKind::Worker, worker_ends)]
        {
            change(thread, 0, Change::ThreadIs(kind));
            change(thread, 0, Change::ThreadWorks);
            let state = if thread == initial { State::Serial } else { State::Idle };
            change(thread, 0, Change::Becomes(Section { place, ..Section::of(state) }));
            change(thread, end, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        let times = OsTimes { blocked: blocked.to_vec(), ..OsTimes::default() };
        execution.add_os_times(initial, OsSource::Switches, times);
        execution.attribute_system_time();
        let ledger = book(&execution);
        assert_eq!(ledger.causes.iter().filter(|row| row.state == State::Blocked).count(), 1);
        ends_threads(&execution, &ledger).contains(&place)
    }

    #[test]
    fn blocked_serial_code_ends_threads_only_while_they_end() {
        assert!(is_end_of_threads(500, &[(400, 900)]));
        // A sleep before: most of the blocked time, then the smaller part.
        assert!(!is_end_of_threads(800, &[(100, 700), (750, 900)]));
        assert!(is_end_of_threads(800, &[(100, 200), (750, 900)]));
        // It sleeps when all have ended.
        assert!(!is_end_of_threads(300, &[(400, 900)]));
    }
}
