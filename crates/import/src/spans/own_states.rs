//! The states of taskscope by their labels, which its exports write as categories and descriptions; and the rows of exports
//! that are not workers, by their names.

use super::run::{Activity, Run};
use taskscope_event::models::instrument::class;
use taskscope_execution::{Group, State};

/// Kinds of sections in rows beside threads, as `export` names them. Their time is that of a thread once more.
const BESIDE: [&str; 4] = ["uncertain", "device call", "wait for a thread", "collective operation"];

/// Begins of the names of such rows.
const ROWS_BESIDE: [&str; 4] =
    ["uncertain: ", "waits: ", "collective operations: ", "device calls of thread "];

/// The end of the names of threads and CPUs that are not workers, in exports.
const NOT_A_WORKER: &str = ", not a worker";

/// The meaning of the time of a section in this category: that of the state with this label, else code of the program.
pub(crate) fn activity_of(label: &str) -> Activity {
    known_activity(label).unwrap_or(Activity::Task)
}

/// The meaning of the time of a section in this category, if exports have such a category.
pub(crate) fn known_activity(label: &str) -> Option<Activity> {
    if BESIDE.contains(&label.split(':').next().unwrap_or_default()) {
        return Some(Activity::State(class::UNKNOWN));
    }
    State::ALL.into_iter().find(|state| state.label() == label).map(activity)
}

/// Finds the rows that are not workers, by the names that exports give them, and restores the names of their threads.
pub(crate) fn find_rows_beside(run: &mut Run) {
    for thread in &mut run.threads {
        if let Some(name) = thread.name.strip_suffix(NOT_A_WORKER) {
            thread.name.truncate(name.len());
            thread.is_beside = true;
        }
        thread.is_beside |= ROWS_BESIDE.iter().any(|begin| thread.name.starts_with(begin));
        // The number is known without the name.
        if let Some(tid) = thread.tid {
            let own = thread.name.strip_suffix(&format!(" ({tid})"));
            let own = own.or_else(|| (thread.name == format!("thread {tid}")).then_some(""));
            if let Some(length) = own.map(str::len) {
                thread.name.truncate(length);
            }
        }
    }
}

/// The class that a state's time has. States that no class stands for, as those off the CPU, are not known.
fn activity(state: State) -> Activity {
    let class = match state {
        State::TaskCreation => class::CREATION,
        State::Scheduling => class::SCHEDULING,
        State::Communication => class::COMMUNICATION,
        State::Taskyield => class::YIELD,
        State::Paused => class::STOPPED,
        _ => match state.group() {
            Group::Useful => return Activity::Task,
            Group::Runtime => class::RUNTIME,
            Group::Sync | Group::Device => class::SYNCHRONISATION,
            Group::Mutex => class::LOCK,
            Group::Idle => class::IDLE,
            Group::Start | Group::Off | Group::Blocked | Group::Unknown => class::UNKNOWN,
        },
    };
    Activity::State(class)
}
