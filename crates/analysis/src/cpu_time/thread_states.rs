//! The activity of each thread over its life, and its time by state.

use taskscope_execution::{Execution, ThreadIndex};

use super::activity::Doing;
use super::scheduling::{Scheduling, ends_of_scheduling};
use crate::wait_chains::{Root, follow, object};

/// A thread's time by its states; the parts sum to its life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStates {
    /// Nanoseconds on a CPU, outside of waits for locks.
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

/// What a thread does at an instant, as far as the kernel and its recorded waits tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadActivity {
    /// Is on a CPU, outside of waits for locks.
    Runs,
    /// Could run and has no CPU; within a recorded wait, since that was ended.
    HasNoCpu,
    /// Is in a recorded wait of this `taskscope_event::models::wait::kind`.
    Waits(u32),
    /// Is blocked in a call that is not recorded.
    IsBlocked,
    /// Nothing is known.
    NotKnown,
}

/// The activities of the threads of an execution.
pub struct ThreadActivities<'a> {
    execution: &'a Execution,
    ends: Vec<u64>,
}

impl<'a> ThreadActivities<'a> {
    /// Those of a run, or of a part of one.
    pub fn of(execution: &'a Execution) -> ThreadActivities<'a> {
        ThreadActivities { execution, ends: ends_of_scheduling(execution) }
    }

    /// Passes the life of a thread in the order of time, in pieces of one activity that tile it.
    pub fn each(&self, thread: ThreadIndex, take: &mut impl FnMut(u64, u64, ThreadActivity)) {
        let execution = self.execution;
        let track = &execution.threads[thread.index()].track;
        let (start, end) = (track.start(), track.end());
        let own = Scheduling::of(execution, thread, &self.ends);
        let mut at = start;
        for wait in execution.thread_waits.waits_of(thread, start, end) {
            let (from, until) = (wait.start.max(at), wait.end.min(end));
            outside_of_waits(&own, at, from.min(end), take);
            if until > from {
                let kind = object(execution, wait.object).map_or(0, |row| row.kind);
                let runs = own.runs_in(kind, wait);
                let waits = |from: u64, until: u64, take: &mut dyn FnMut(u64, u64, ThreadActivity)| {
                    if !runs {
                        return take(from, until, ThreadActivity::Waits(kind));
                    }
                    own.each(from, until, &mut |at, next, doing| {
                        let is_on_cpu = doing == Doing::Runs;
                        take(
                            at,
                            next,
                            if is_on_cpu { ThreadActivity::Runs } else { ThreadActivity::Waits(kind) },
                        );
                    });
                };
                let mut next = from;
                follow(execution, wait, from, until, &mut |part| {
                    if part.root == Root::NoCpu && part.length == 0 {
                        if part.from > next {
                            waits(next, part.from, take);
                        }
                        take(part.from, part.until, ThreadActivity::HasNoCpu);
                        next = part.until;
                    }
                });
                if until > next {
                    waits(next, until, take);
                }
            }
            at = at.max(until);
        }
        outside_of_waits(&own, at, end, take);
    }
}

fn outside_of_waits(
    own: &Scheduling<'_>,
    from: u64,
    until: u64,
    take: &mut impl FnMut(u64, u64, ThreadActivity),
) {
    own.each(from, until, &mut |at, next, doing| {
        let activity = match doing {
            Doing::HasNoCpu => ThreadActivity::HasNoCpu,
            Doing::NotKnown(true) => ThreadActivity::IsBlocked,
            Doing::NotKnown(false) => ThreadActivity::NotKnown,
            _ => ThreadActivity::Runs,
        };
        take(at, next, activity);
    });
}

/// The states of each thread.
pub fn thread_states(execution: &Execution) -> Vec<ThreadStates> {
    let activities = ThreadActivities::of(execution);
    let threads = (0..execution.threads.len() as u32).map(ThreadIndex);
    threads.map(|thread| states_of(&activities, thread)).collect()
}

fn states_of(activities: &ThreadActivities<'_>, thread: ThreadIndex) -> ThreadStates {
    let mut states = ThreadStates::default();
    activities.each(thread, &mut |from, until, activity| {
        *match activity {
            ThreadActivity::Runs => &mut states.running_ns,
            ThreadActivity::HasNoCpu => &mut states.no_cpu_ns,
            ThreadActivity::IsBlocked => &mut states.blocked_ns,
            ThreadActivity::NotKnown => &mut states.unknown_ns,
            ThreadActivity::Waits(kind) => {
                let row = states.waits.partition_point(|(known, _)| *known < kind);
                if states.waits.get(row).is_none_or(|(known, _)| *known != kind) {
                    states.waits.insert(row, (kind, 0));
                }
                &mut states.waits[row].1
            }
        } += until - from;
    });
    states
}
