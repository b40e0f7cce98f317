//! The time of each thread by its states.

use taskscope_execution::{Execution, ThreadIndex};

use super::activity::Doing;
use super::scheduling::{Scheduling, ends_of_scheduling};
use crate::wait_chains::{Root, follow, object};

/// A thread's time by its states; the parts sum to its life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// Nanoseconds on a CPU, outside of recorded waits.
    pub running_ns: u64,
    /// Nanoseconds in which it could run and had no CPU; within a recorded wait, since that had been ended.
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
    let own = Scheduling::of(execution, thread, ends);
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
    for wait in execution.thread_waits.waits_of(thread, start, end) {
        let (from, until) = (wait.start.max(at), wait.end.min(end));
        outside(&mut states, at, from.min(end));
        if until > from {
            let mut no_cpu = 0;
            follow(execution, wait, from, until, &mut |part| {
                if part.root == Root::NoCpu && part.length == 0 {
                    no_cpu += part.until - part.from;
                }
            });
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
