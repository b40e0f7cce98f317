//! The states of taskscope by their labels, which its exports write as categories and descriptions; and the kinds of rows
//! that exports add beside threads.

use super::run::Activity;
use taskscope_event::models::instrument::class;
use taskscope_execution::{Group, State};

/// Kinds of sections in rows beside threads, as `export` names them. Their time is that of a thread once more.
const BESIDE: [&str; 4] = ["uncertain", "device call", "wait for a thread", "collective operation"];

/// The meaning of the time of a section in this category: that of the state with this label, else code of the program.
pub(crate) fn activity_of(label: &str) -> Activity {
    if BESIDE.contains(&label.split(':').next().unwrap_or_default()) {
        return Activity::State(class::UNKNOWN);
    }
    State::ALL.into_iter().find(|state| state.label() == label).map_or(Activity::Task, activity)
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
