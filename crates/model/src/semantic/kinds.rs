//! Kind of each event, by its code: a table, as it is read for every event.
//!
//! Most events of a trace only open or close a subsystem on their thread. Their [`Scope`] is the thread: the caller may
//! play them later than those of other threads, up to the thread's own next event whose scope is the trace (see
//! [`Interpreter::event`](super::Interpreter::event)).

use super::channel_steps::{self, Step};
use super::sections::{Edge, Subsystem};
use taskscope_event::models::{MODELS, kernel, nanos6, nosv, openmp, ovni};
use taskscope_event::spec::Scope;
use taskscope_event::{Code, CodeMap};
use taskscope_execution::{RuntimeRole, State};

/// Effect of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Opens or closes a part of the OpenMP runtime.
    Subsystem(Subsystem, Edge),
    /// Opens a section that shows data of the region, which other threads' events set.
    OfTeam(Subsystem),
    /// Opens a section that is shown as this state, without further data.
    Plain(Subsystem, State),
    /// Enters or leaves a subsystem of another runtime, or becomes idle.
    Step(Step),
    /// The system takes the thread off its CPU.
    OutOfCpu,
    /// The system schedules it again.
    BackOnCpu,
    /// Something of a task.
    Task(TaskStep),
    /// The thread's role in the runtime, and the section that it enters with that.
    ServesAs(RuntimeRole, Option<Step>),
    /// No effect.
    Nothing,
    /// Handled by [`dispatch`](super::dispatch).
    Other,
}

/// Effect on the task that the event names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum TaskStep {
    Created,
    Starts,
    Ends,
    Pauses,
    Resumes,
    /// A collaborator of a task-for, which the event does not name.
    ForStarts,
    ForEnds,
}

#[derive(Clone, Copy)]
struct Row {
    kind: Kind,
    /// The kind of an event whose scope is the thread.
    own: Option<OwnKind>,
}

/// Effect of an event that needs no order.
#[derive(Clone, Copy)]
pub struct OwnKind(pub(super) Kind);

/// The kinds of all events.
pub struct Kinds(Box<CodeMap<Row>>);

const OTHER: Row = Row { kind: Kind::Other, own: None };

/// The kinds of the events that the interpreter knows by their tables.
fn rows() -> impl Iterator<Item = (Code, Row)> + Clone {
    let models = MODELS.iter().filter(|model| !model.own);
    models.flat_map(|model| model.events).map(|event| {
        let kind = kind(event.code, channel_steps::step(event.code.model(), event.effect));
        (event.code, Row { kind, own: (event.scope == Scope::Thread).then_some(OwnKind(kind)) })
    })
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds(Box::new(CodeMap::new(OTHER, rows())))
    }
}

impl Kinds {
    /// Returns the kind of an event with this code.
    #[inline(always)]
    pub(super) fn of(&self, code: Code) -> Kind {
        self.0.get(code).unwrap_or(OTHER).kind
    }

    /// Returns the kind if it needs no order.
    #[inline(always)]
    pub fn own_kind(&self, code: Code) -> Option<OwnKind> {
        self.0.get(code)?.own
    }
}

/// Returns the state of a thread from an event with this code on, if the event alone determines it.
pub fn state_of_event(code: Code) -> Option<State> {
    let event = taskscope_event::models::find(code)?;
    let step_state = |step: Step| match step {
        Step::Enter { state, .. } => Some(state),
        Step::Rest(state) => state,
        Step::Leave { .. } => None,
    };
    match kind(code, channel_steps::step(code.model(), event.effect)) {
        Kind::Step(step) | Kind::ServesAs(_, Some(step)) => step_state(step),
        Kind::Subsystem(subsystem, Edge::Begin) | Kind::OfTeam(subsystem) => subsystem.state(),
        Kind::Plain(_, state) => Some(state),
        Kind::Task(TaskStep::Starts | TaskStep::ForStarts) => Some(State::Task),
        Kind::OutOfCpu => Some(State::OutOfCpu),
        _ => None,
    }
}

fn kind(code: Code, step: Option<Step>) -> Kind {
    /// // Threads and their CPUs.
    const THREADS: [u8; 2] = [ovni::THREAD_ENDS.0[1], ovni::SET_AFFINITY.0[1]];
    match code {
        kernel::OUT_OF_CPU => Kind::OutOfCpu,
        kernel::BACK_ON_CPU => Kind::BackOnCpu,
        openmp::TASK_CREATE | nanos6::TASK_CREATE | nosv::TASK_CREATE | nosv::PARALLEL_TASK_CREATE => {
            Kind::Task(TaskStep::Created)
        }
        openmp::TASK_EXECUTE | nanos6::TASK_EXECUTE | nosv::TASK_EXECUTE => Kind::Task(TaskStep::Starts),
        openmp::TASK_END | nanos6::TASK_END | nosv::TASK_END => Kind::Task(TaskStep::Ends),
        nanos6::TASK_PAUSE | nosv::TASK_PAUSE => Kind::Task(TaskStep::Pauses),
        nanos6::TASK_RESUME | nosv::TASK_RESUME => Kind::Task(TaskStep::Resumes),
        nanos6::TASK_RUNNING_TASK_FOR_BEGIN => Kind::Task(TaskStep::ForStarts),
        nanos6::TASK_RUNNING_TASK_FOR_END => Kind::Task(TaskStep::ForEnds),
        nanos6::LEADER_BEGIN => Kind::ServesAs(RuntimeRole::Leader, step),
        nanos6::MAIN_BEGIN => Kind::ServesAs(RuntimeRole::Main, step),
        nanos6::WORKER_BEGIN => Kind::ServesAs(RuntimeRole::Worker, step),
        nanos6::EXTERNAL_BEGIN => Kind::ServesAs(RuntimeRole::External, step),
        nosv::THREAD_WORKER_BEGIN => Kind::ServesAs(RuntimeRole::Worker, step),
        nosv::THREAD_DELEGATE_BEGIN => Kind::ServesAs(RuntimeRole::Delegate, step),
        nosv::ATTACH_BEGIN_OLD | nosv::API_ATTACH_BEGIN => Kind::ServesAs(RuntimeRole::Attached, step),
        _ if code.model() == ovni::LETTER && !THREADS.contains(&code.0[1]) => Kind::Nothing,
        _ => match (Subsystem::of(code), step) {
            (Some((subsystem, Edge::End)), _) => Kind::Subsystem(subsystem, Edge::End),
            (Some((subsystem, Edge::Begin)), _) if subsystem.is_of_team() => Kind::OfTeam(subsystem),
            (Some((subsystem, Edge::Begin)), _) => match subsystem.plain_state() {
                Some(state) => Kind::Plain(subsystem, state),
                None => Kind::Subsystem(subsystem, Edge::Begin),
            },
            (None, Some(step)) => Kind::Step(step),
            (None, None) => Kind::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::omp;

    #[test]
    fn every_subsystem_is_found_and_only_events_of_one_thread_are_unordered() {
        let kinds = Kinds::default();
        for event in MODELS.iter().flat_map(|model| model.events) {
            let (kind, code) = (kinds.of(event.code), event.code);
            match Subsystem::of(code) {
                Some((subsystem, Edge::End)) => {
                    assert_eq!(kind, Kind::Subsystem(subsystem, Edge::End), "{code}");
                }
                Some((subsystem, Edge::Begin)) => {
                    let expected = match subsystem.plain_state() {
                        _ if subsystem.is_of_team() => Kind::OfTeam(subsystem),
                        Some(state) => Kind::Plain(subsystem, state),
                        None => Kind::Subsystem(subsystem, Edge::Begin),
                    };
                    assert_eq!(kind, expected, "{code}");
                }
                None => {
                    let is_part = matches!(kind, Kind::Subsystem(..) | Kind::Plain(..) | Kind::OfTeam(_));
                    assert!(!is_part, "{code}");
                }
            }
            let rests_on_others =
                matches!(kind, Kind::OfTeam(_) | Kind::Task(_) | Kind::ServesAs(..) | Kind::Other);
            assert!(!rests_on_others || event.scope == Scope::Trace, "{code} needs the order of the trace");
            assert_eq!(kinds.own_kind(code).is_some(), event.scope == Scope::Thread, "{code}");
        }
        for code in [openmp::TASK_CREATE, nosv::TASK_EXECUTE, omp::REGION_END, ovni::THREAD_EXECUTES] {
            assert!(kinds.own_kind(code).is_none(), "{code}");
        }
        for code in [openmp::TASK_ALLOCATION_BEGIN, nosv::API_CREATE_END, nanos6::TASK_CREATING_BEGIN] {
            assert!(kinds.own_kind(code).is_some(), "{code}");
        }
        for code in [Code([255, 255, 255]), Code([b'V', 200, b'a'])] {
            assert!(kinds.own_kind(code).is_none());
        }
    }
}
