//! Effects of events that push and pop subsystems: Nanos6, nOS-V, NODES, MPI, TAMPI.
//!
//! The one table from a subsystem to the state of the worker, by the values of ovni's views. The topmost
//! subsystem is the state of the thread.

use taskscope_event::models::{mpi, nanos6, nodes, nosv, tampi};
use taskscope_event::spec::{Channel, Effect};
use taskscope_execution::State;

/// Effect of an event of these models on its thread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Enters a part of the runtime.
    Enter { value: i16, state: State },
    /// Leaves it.
    Leave { value: i16 },
    /// The worker becomes idle (with the idle state), or active again.
    Rest(Option<State>),
}

/// The value of the idle channel of a worker that has something to do.
const PROGRESSING: i64 = 100;
/// State of a CPU that is left free for the noise of the system.
const ABSORBING_NOISE: i64 = 102;

/// Returns the step of an event of this model with this effect, if it belongs to one of these runtimes.
pub(super) fn step(model: u8, effect: Effect) -> Option<Step> {
    if !matches!(model, nanos6::LETTER | nosv::LETTER | nodes::LETTER | mpi::LETTER | tampi::LETTER) {
        return None;
    }
    match effect {
        Effect::Push(Channel::Subsystem | Channel::Function, value, _) => {
            Some(Step::Enter { value: value as i16, state: state(model, value) })
        }
        Effect::Pop(Channel::Subsystem | Channel::Function, value, _) => {
            Some(Step::Leave { value: value as i16 })
        }
        Effect::Set(Channel::Idle, value, _) => Some(Step::Rest(match value {
            PROGRESSING => None,
            ABSORBING_NOISE => Some(State::AbsorbingNoise),
            _ => Some(State::Idle),
        })),
        _ => None,
    }
}

/// The state of a thread with this topmost subsystem.
fn state(model: u8, value: i64) -> State {
    match model {
        nanos6::LETTER => match value {
            // A task-for is work, but the trace does not record its type.
            1 | 6 => State::Task,
            3..=5 => State::TaskCreation,
            7..=9 | 18 | 20..=23 => State::Scheduling,
            10 | 11 => State::Dependences,
            12 => State::Taskwait,
            19 => State::Idle,
            24 => State::AbsorbingNoise,
            _ => State::Runtime,
        },
        nosv::LETTER => match value {
            11 => State::Task,
            12 | 14 => State::TaskCreation,
            7 | 8 | 18 | 32 => State::Scheduling,
            6 => State::Idle,
            16 => State::Taskyield,
            21 | 25 => State::LockWait,
            24 => State::Barrier,
            28..=31 => State::Taskwait,
            _ => State::Runtime,
        },
        nodes::LETTER => match value {
            1 | 2 => State::Dependences,
            3 | 5 => State::Taskwait,
            4 => State::Scheduling,
            _ => State::TaskCreation,
        },
        // MPI_Init, MPI_Init_thread, MPI_Finalize.
        mpi::LETTER if matches!(value, 1..=3) => State::MpiStart,
        _ => State::Communication,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::MODELS;

    #[test]
    fn every_part_of_these_runtimes_is_entered_and_left() {
        let with_parts = [nanos6::LETTER, nosv::LETTER, nodes::LETTER, mpi::LETTER, tampi::LETTER];
        for event in MODELS.iter().filter(|m| with_parts.contains(&m.letter)).flat_map(|m| m.events) {
            let step = step(event.code.model(), event.effect);
            match event.effect {
                Effect::Push(Channel::ThreadType, ..) | Effect::Pop(Channel::ThreadType, ..) => {
                    assert_eq!(step, None);
                }
                Effect::Push(..) => assert!(matches!(step, Some(Step::Enter { .. })), "{}", event.name),
                Effect::Pop(..) => assert!(matches!(step, Some(Step::Leave { .. })), "{}", event.name),
                Effect::Set(..) => assert!(matches!(step, Some(Step::Rest(_))), "{}", event.name),
                Effect::Ignore | Effect::Rule => assert_eq!(step, None, "{}", event.name),
            }
        }
    }
}
