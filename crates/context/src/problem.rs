//! Mistakes that only the whole of the events shows.

use std::fmt;
use taskscope_event::Counted;

/// An event that does not fit its context, and its interpretation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the texts of `Display` name the fields")]
pub enum Problem {
    PopWithoutPush { state: u32 },
    PopNotInnermost { state: u32, inner: u32 },
    OtherTasksState { state: u32, task: u64 },
    ShowWithoutHide,
    CloseWithoutOpen { key: u32, value: u64 },
    CloseNotNewest { key: u32, value: u64 },
    CloseOtherValue { key: u32, open: u64, closed: u64 },
    OtherTasksBurst { key: u32, value: u64, task: u64 },
    NotCreated { task: u64 },
    CreatedTwice { task: u64 },
    RunsElsewhere { task: u64, thread: u32 },
    RunsHere { task: u64 },
    NotOnThread { task: u64 },
    NotInnermostTask { task: u64, inner: u64 },
    UsedAfterEnd { task: u64 },
    EndsElsewhere { task: u64, thread: u32 },
    OpenAtEnd { task: u64, states: u32, bursts: u32 },
    DeferredUnseen { task: u64, events: u32 },
    TaskAtThreadEnd { task: u64 },
    OpenAtThreadEnd { states: u32, bursts: u32 },
    TooDeep { limit: u32 },
}

impl Problem {
    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Problem::PopWithoutPush { .. } => "state-pop-without-push",
            Problem::PopNotInnermost { .. } => "state-pop-not-innermost",
            Problem::OtherTasksState { .. } => "state-of-another-task",
            Problem::ShowWithoutHide => "states-shown-twice",
            Problem::CloseWithoutOpen { .. } => "burst-close-without-open",
            Problem::CloseNotNewest { .. } => "burst-close-not-newest",
            Problem::CloseOtherValue { .. } => "burst-close-other-value",
            Problem::OtherTasksBurst { .. } => "burst-of-another-task",
            Problem::NotCreated { .. } => "task-not-created",
            Problem::CreatedTwice { .. } => "task-created-twice",
            Problem::RunsElsewhere { .. } => "task-runs-elsewhere",
            Problem::RunsHere { .. } => "task-runs-here",
            Problem::NotOnThread { .. } => "task-not-on-thread",
            Problem::NotInnermostTask { .. } => "task-not-innermost",
            Problem::UsedAfterEnd { .. } => "task-used-after-end",
            Problem::EndsElsewhere { .. } => "task-ends-elsewhere",
            Problem::OpenAtEnd { .. } => "open-at-task-end",
            Problem::DeferredUnseen { .. } => "deferred-unseen",
            Problem::TaskAtThreadEnd { .. } => "task-at-thread-end",
            Problem::OpenAtThreadEnd { .. } => "open-at-thread-end",
            Problem::TooDeep { .. } => "context-too-deep",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Problem::PopWithoutPush { state } => write!(f, "leaves state {state}, which is not entered"),
            Problem::PopNotInnermost { state, inner } => {
                write!(f, "leaves state {state} while {inner} states inside it are open; they end too")
            }
            Problem::OtherTasksState { state, task } => {
                write!(f, "leaves state {state} of another task ({task}); ignored")
            }
            Problem::ShowWithoutHide => write!(f, "shows states that are not hidden"),
            Problem::CloseWithoutOpen { key, value } => {
                write!(f, "closes a burst of key {key}, value {value}, which is not open; ignored")
            }
            Problem::CloseNotNewest { key, value } => {
                write!(f, "closes the burst of key {key}, value {value}, before a newer one of that key")
            }
            Problem::CloseOtherValue { key, open, closed } => {
                write!(f, "closes a burst of key {key} with value {closed}; it was opened with {open}")
            }
            Problem::OtherTasksBurst { key, value, task } => {
                write!(f, "closes a burst of another task ({task}), key {key}, value {value}; ignored")
            }
            Problem::NotCreated { task } => {
                write!(f, "uses task {task} without a creation; it exists from here")
            }
            Problem::CreatedTwice { task } => write!(f, "creates task {task}, which exists; it continues"),
            Problem::RunsElsewhere { task, thread } => {
                write!(
                    f,
                    "resumes task {task}, which is on another thread (number {thread} of the trace); \
                           its events here are kept apart"
                )
            }
            Problem::RunsHere { task } => {
                write!(f, "resumes task {task}, which is on this thread already; later events are kept apart")
            }
            Problem::NotOnThread { task } => {
                write!(f, "suspends task {task}, which is not on this thread; ignored")
            }
            Problem::NotInnermostTask { task, inner } => {
                write!(
                    f,
                    "suspends task {task} while task {inner} is on top of it; that one is suspended too"
                )
            }
            Problem::UsedAfterEnd { task } => {
                write!(f, "uses task {task} after its end; it is created again")
            }
            Problem::EndsElsewhere { task, thread } => {
                write!(
                    f,
                    "ends task {task}, which is on another thread (number {thread} of the trace); \
                           it ends when that one puts it down"
                )
            }
            Problem::OpenAtEnd { task, states, bursts } => {
                write!(
                    f,
                    "ends task {task} with {} and {} open",
                    Counted(u64::from(states), "state"),
                    Counted(u64::from(bursts), "burst")
                )
            }
            Problem::DeferredUnseen { task, events } => {
                write!(
                    f,
                    "task {task} ends; {} left for it were never shown",
                    Counted(u64::from(events), "event")
                )
            }
            Problem::TaskAtThreadEnd { task } => write!(f, "the thread ends with task {task} on it"),
            Problem::OpenAtThreadEnd { states, bursts } => {
                write!(
                    f,
                    "the thread ends with {} and {} of its own open",
                    Counted(u64::from(states), "state"),
                    Counted(u64::from(bursts), "burst")
                )
            }
            Problem::TooDeep { limit } => {
                write!(f, "more than {limit} states, bursts or tasks are nested; ignored")
            }
        }
    }
}
