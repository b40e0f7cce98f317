//! Waits inside the code of workers: why a worker is blocked in the body of a task, loop or region.
//!
//! ```text
//!   spans of a worker in state `blocked` ∩ its recorded waits ──▶ chains of threads ──▶ losses by place
//! ```
//!
//! A runtime's events know that a worker is blocked in its code, not in which call. Where waits of threads are recorded too, each
//! nanosecond of both is charged as in programs without a runtime ([`cpu_time`](crate::cpu_time)). The rest of the state keeps its own
//! finding. The ledger of states does not change.

use rustc_hash::FxHashMap;
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, Place, State, ThreadWait};

use crate::cpu_time::LostTo;
use crate::wait_chains::{ChainPart, Root, ThreadCall, Tie, follow, object};

/// Blocked time of workers in recorded waits, by the place of their code and the charged party: nanoseconds, in the order of both.
pub fn worker_waits(execution: &Execution) -> Vec<(Place, LostTo, u64)> {
    let mut sums: FxHashMap<(Place, LostTo), u64> = FxHashMap::default();
    if execution.thread_waits.waits.is_empty() {
        return Vec::new();
    }
    for (thread, _) in execution.selected_workers() {
        let blocked = execution.spans_of_run(thread).filter(|span| span.section.state == State::Blocked);
        for span in blocked {
            let mut at = span.start;
            for wait in execution.thread_waits.waits_of(thread, span.start, span.end) {
                let (from, until) = (wait.start.max(at), wait.end.min(span.end));
                if until > from {
                    follow(execution, wait, from, until, &mut |part| {
                        let to = charged(execution, wait, &part);
                        *sums.entry((span.section.place, to)).or_default() += part.until - part.from;
                    });
                }
                at = at.max(until);
            }
        }
    }
    let mut rows: Vec<_> = sums.into_iter().map(|((place, to), ns)| (place, to, ns)).collect();
    rows.sort_unstable();
    rows
}

/// The charged party of a part of a worker's wait.
fn charged(execution: &Execution, wait: &ThreadWait, part: &ChainPart) -> LostTo {
    let kind = object(execution, wait.object).map_or(0, |row| row.kind);
    let at = ThreadCall::of(execution, wait.thread, wait.site, wait.start);
    match (part.root, part.first.zip(part.last)) {
        (Root::NoCpu, _) => LostTo::NoCpu,
        (Root::NotKnown | Root::Open, _) => LostTo::WaitUnknown(kind, at),
        (Root::Unrecorded, first) if !matches!(first, Some((Tie::Holds(_), _))) => {
            LostTo::WaitUnrecorded { kind, object: wait.object, at, thread: part.thread }
        }
        (_, Some((first, last))) => {
            let (object, length, blocked) = (wait.object, part.length, part.blocked);
            let is_free = part.is_of_free_lock();
            LostTo::Wait { kind, object, at, first, last, length, blocked, is_free }
        }
        (Root::Handover, None) => LostTo::Handover,
        (Root::Slept, None) => LostTo::Blocked(kind::SLEEP, at),
        (Root::Outside, None) if kind == kind::FILE => LostTo::Blocked(kind::FILE, at),
        (Root::Outside, None) => LostTo::Outside(kind, at),
        (Root::TimedOut, None) => LostTo::TimedOut(kind, at),
        // Parts that are too many to be followed.
        (Root::Ran | Root::Unrecorded, None) => LostTo::WaitUnknown(kind, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::wait::outcome;
    use taskscope_execution::{
        Change, Definition, ExecutionBuilder, ObjectIndex, Observer, OsSource, OsTimes, Section, SiteIndex,
        ThreadIndex, ThreadWaitChange,
    };

    const LOCK: ObjectIndex = ObjectIndex(0);

    /// Thread 0 holds the lock, for which thread 1, in a task, waits from 100 to 900. It is blocked from 120 to 850 and from 950 on.
    #[test]
    fn blocked_time_in_a_wait_for_a_lock_is_charged_to_its_holder() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        (0..2).for_each(|tid| _ = builder.add_thread(process, tid));
        builder.define(Definition::Object { object: LOCK, process, id: 0, kind: kind::MUTEX });
        let (holder, waiting) = (ThreadIndex(0), ThreadIndex(1));
        let mut change = |thread, at, change| {
            builder.event(thread, at);
            builder.change(thread, at, change);
        };
        for thread in [holder, waiting] {
            change(thread, 0, Change::ThreadWorks);
            change(thread, 0, Change::Becomes(Section::of(State::Task)));
        }
        let begins = ThreadWaitChange::Begins { object: LOCK, site: SiteIndex(9) };
        change(waiting, 100, Change::ThreadWait(begins));
        let hands_over = ThreadWaitChange::HandsOver { object: LOCK, site: SiteIndex(5) };
        change(holder, 800, Change::ThreadWait(hands_over));
        change(waiting, 900, Change::ThreadWait(ThreadWaitChange::Ends { outcome: outcome::DONE }));
        for thread in [holder, waiting] {
            change(thread, 1000, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        let times = OsTimes { blocked: vec![(120, 850), (950, 1000)], ..OsTimes::default() };
        execution.add_os_times(waiting, OsSource::Switches, times);
        let times = OsTimes { runnable: vec![(300, 400)], ..OsTimes::default() };
        execution.add_os_times(holder, OsSource::Switches, times);
        execution.attribute_system_time();
        let rows = worker_waits(&execution);
        let of = |is: &dyn Fn(LostTo) -> bool| -> u64 {
            rows.iter().filter(|(_, to, _)| is(*to)).map(|(.., ns)| ns).sum()
        };
        let held = |to| matches!(to, LostTo::Wait { kind: kind::MUTEX, first: Tie::Holds(call), .. } if call.site == SiteIndex(5));
        assert_eq!(of(&held), 580, "{rows:?}");
        assert_eq!(of(&|to| to == LostTo::Handover), 50, "{rows:?}");
        assert_eq!(of(&|to| to == LostTo::NoCpu), 100, "{rows:?}");
        assert_eq!(of(&|_| true), 730, "{rows:?}");
    }

    /// A worker in a task waits for a condition from 100 to 400 until its time is over, and for a socket from 500 to 800. It is
    /// blocked all that time.
    #[test]
    fn waits_that_no_thread_ends_are_charged_to_their_call_and_kind() {
        let [condition, socket] = [0, 1].map(ObjectIndex);
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let thread = builder.add_thread(process, 0);
        for (object, kind) in [(condition, kind::CONDITION), (socket, kind::SOCKET)] {
            builder.define(Definition::Object { object, process, id: 0, kind });
        }
        let mut change = |at, change| {
            builder.event(thread, at);
            builder.change(thread, at, change);
        };
        change(0, Change::ThreadWorks);
        change(0, Change::Becomes(Section::of(State::Task)));
        for (object, site, (start, end), outcome) in [
            (condition, SiteIndex(3), (100, 400), outcome::TIMED_OUT),
            (socket, SiteIndex(4), (500, 800), outcome::DONE),
        ] {
            change(start, Change::ThreadWait(ThreadWaitChange::Begins { object, site }));
            change(end, Change::ThreadWait(ThreadWaitChange::Ends { outcome }));
        }
        change(1000, Change::ThreadEnds);
        let mut execution = builder.finish();
        let times = OsTimes { blocked: vec![(100, 400), (500, 790)], ..OsTimes::default() };
        execution.add_os_times(thread, OsSource::Switches, times);
        execution.attribute_system_time();
        let rows = worker_waits(&execution);
        let rows: Vec<(LostTo, u64)> = rows.into_iter().map(|(_, to, ns)| (to, ns)).collect();
        let call = |site, at| ThreadCall::of(&execution, thread, SiteIndex(site), at);
        let expected = [
            (LostTo::TimedOut(kind::CONDITION, call(3, 100)), 300),
            (LostTo::Outside(kind::SOCKET, call(4, 500)), 290),
        ];
        assert_eq!(rows, expected);
    }
}
