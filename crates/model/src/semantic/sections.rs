//! Section opened or closed by each subsystem event of ovni's `openmp` model, and its state of the thread.

use taskscope_event::Code;
use taskscope_event::models::openmp as p;
use taskscope_event::models::wait::kind;
use taskscope_execution::State;

/// A part of the OpenMP runtime, or of the program, that a thread is in between two events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subsystem {
    BarrierPlain,
    BarrierJoin,
    BarrierFork,
    BarrierTask,
    Acquiring,
    Releasing,
    CriticalSection,
    Distribute,
    DynamicInit,
    DynamicChunk,
    StaticChunk,
    Section,
    Single,
    TaskAllocation,
    CheckDeps,
    TaskDuplicating,
    ReleasingDeps,
    RunningTask,
    RunningTaskIf0,
    Scheduling,
    Taskgroup,
    Taskwait,
    TaskwaitDeps,
    Taskyield,
    Attached,
    InternalMicrotask,
    UserMicrotask,
    WorkerMainLoop,
    ForkCall,
    Initialization,
}

/// Whether an event opens or closes its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    Begin,
    End,
}

impl Subsystem {
    /// The section that `code` opens or closes, if it is a subsystem event.
    pub fn of(code: Code) -> Option<(Subsystem, Edge)> {
        use Edge::{Begin, End};
        use Subsystem::*;
        Some(match code {
            p::BARRIER_PLAIN_BEGIN => (BarrierPlain, Begin),
            p::BARRIER_PLAIN_END => (BarrierPlain, End),
            p::BARRIER_JOIN_BEGIN => (BarrierJoin, Begin),
            p::BARRIER_JOIN_END => (BarrierJoin, End),
            p::BARRIER_FORK_BEGIN => (BarrierFork, Begin),
            p::BARRIER_FORK_END => (BarrierFork, End),
            p::BARRIER_TASK_BEGIN => (BarrierTask, Begin),
            p::BARRIER_TASK_END => (BarrierTask, End),
            p::CRITICAL_ACQUIRING_BEGIN => (Acquiring, Begin),
            p::CRITICAL_ACQUIRING_END => (Acquiring, End),
            p::CRITICAL_RELEASING_BEGIN => (Releasing, Begin),
            p::CRITICAL_RELEASING_END => (Releasing, End),
            p::CRITICAL_SECTION_BEGIN => (CriticalSection, Begin),
            p::CRITICAL_SECTION_END => (CriticalSection, End),
            p::WORK_DISTRIBUTION_DISTRIBUTE_BEGIN => (Distribute, Begin),
            p::WORK_DISTRIBUTION_DISTRIBUTE_END => (Distribute, End),
            p::WORK_DISTRIBUTION_DYNAMIC_FOR_INITIALIZATION_BEGIN => (DynamicInit, Begin),
            p::WORK_DISTRIBUTION_DYNAMIC_FOR_INITIALIZATION_END => (DynamicInit, End),
            p::WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_BEGIN => (DynamicChunk, Begin),
            p::WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_END => (DynamicChunk, End),
            p::WORK_DISTRIBUTION_STATIC_FOR_CHUNK_BEGIN => (StaticChunk, Begin),
            p::WORK_DISTRIBUTION_STATIC_FOR_CHUNK_END => (StaticChunk, End),
            p::WORK_DISTRIBUTION_SECTION_BEGIN => (Section, Begin),
            p::WORK_DISTRIBUTION_SECTION_END => (Section, End),
            p::WORK_DISTRIBUTION_SINGLE_BEGIN => (Single, Begin),
            p::WORK_DISTRIBUTION_SINGLE_END => (Single, End),
            p::TASK_ALLOCATION_BEGIN => (TaskAllocation, Begin),
            p::TASK_ALLOCATION_END => (TaskAllocation, End),
            p::TASK_CHECK_DEPS_BEGIN => (CheckDeps, Begin),
            p::TASK_CHECK_DEPS_END => (CheckDeps, End),
            p::TASK_DUPLICATING_BEGIN => (TaskDuplicating, Begin),
            p::TASK_DUPLICATING_END => (TaskDuplicating, End),
            p::TASK_RELEASING_DEPS_BEGIN => (ReleasingDeps, Begin),
            p::TASK_RELEASING_DEPS_END => (ReleasingDeps, End),
            p::TASK_RUNNING_TASK_BEGIN => (RunningTask, Begin),
            p::TASK_RUNNING_TASK_END => (RunningTask, End),
            p::TASK_RUNNING_TASK_IF0_BEGIN => (RunningTaskIf0, Begin),
            p::TASK_RUNNING_TASK_IF0_END => (RunningTaskIf0, End),
            p::TASK_SCHEDULING_BEGIN => (Scheduling, Begin),
            p::TASK_SCHEDULING_END => (Scheduling, End),
            p::TASK_TASKGROUP_BEGIN => (Taskgroup, Begin),
            p::TASK_TASKGROUP_END => (Taskgroup, End),
            p::TASK_TASKWAIT_BEGIN => (Taskwait, Begin),
            p::TASK_TASKWAIT_END => (Taskwait, End),
            p::TASK_TASKWAIT_DEPS_BEGIN => (TaskwaitDeps, Begin),
            p::TASK_TASKWAIT_DEPS_END => (TaskwaitDeps, End),
            p::TASK_TASKYIELD_BEGIN => (Taskyield, Begin),
            p::TASK_TASKYIELD_END => (Taskyield, End),
            p::RUNTIME_ATTACHED_BEGIN => (Attached, Begin),
            p::RUNTIME_ATTACHED_END => (Attached, End),
            p::RUNTIME_INTERNAL_MICROTASK_BEGIN => (InternalMicrotask, Begin),
            p::RUNTIME_INTERNAL_MICROTASK_END => (InternalMicrotask, End),
            p::RUNTIME_USER_MICROTASK_BEGIN => (UserMicrotask, Begin),
            p::RUNTIME_USER_MICROTASK_END => (UserMicrotask, End),
            p::RUNTIME_WORKER_MAIN_LOOP_BEGIN => (WorkerMainLoop, Begin),
            p::RUNTIME_WORKER_MAIN_LOOP_END => (WorkerMainLoop, End),
            p::RUNTIME_FORK_CALL_BEGIN => (ForkCall, Begin),
            p::RUNTIME_FORK_CALL_END => (ForkCall, End),
            p::RUNTIME_INITIALIZATION_BEGIN => (Initialization, Begin),
            p::RUNTIME_INITIALIZATION_END => (Initialization, End),
            _ => return None,
        })
    }

    /// The state of a thread in this section; `None` if the section does not change it, because the same code
    /// continues inside (the body of a critical construct).
    pub fn state(self) -> Option<State> {
        use Subsystem::*;
        Some(match self {
            BarrierPlain | BarrierTask => State::Barrier,
            BarrierJoin => State::JoinBarrier,
            BarrierFork | WorkerMainLoop => State::Idle,
            Acquiring => State::CriticalWait,
            CriticalSection => return None,
            Distribute | DynamicChunk | StaticChunk | Section | Single => State::Worksharing,
            TaskAllocation | TaskDuplicating => State::TaskCreation,
            CheckDeps | ReleasingDeps => State::Dependences,
            DynamicInit | RunningTask | RunningTaskIf0 | Scheduling => State::Scheduling,
            Taskgroup => State::Taskgroup,
            Taskwait => State::Taskwait,
            TaskwaitDeps => State::TaskwaitDepend,
            Taskyield => State::Taskyield,
            Attached => State::Serial,
            UserMicrotask => State::ImplicitTask,
            ForkCall => State::ForkJoin,
            Releasing | InternalMicrotask | Initialization => State::Runtime,
        })
    }

    /// Whether it shows data of its region, which other threads' events set.
    pub fn is_of_team(self) -> bool {
        use Subsystem::*;
        matches!(self, UserMicrotask | ForkCall | BarrierJoin | BarrierPlain)
    }

    /// [`state`](Subsystem::state), if the section shows no other data: no place, region or object belongs to
    /// it.
    pub fn plain_state(self) -> Option<State> {
        let state = self.state().filter(|state| *state != State::Worksharing)?;
        (!self.is_of_team() && self.wait_kind().is_none()).then_some(state)
    }

    /// The `kind` under which taskscope's wait events describe this section, if it is a wait.
    pub fn wait_kind(self) -> Option<u32> {
        Some(match self {
            Subsystem::BarrierPlain => kind::BARRIER,
            Subsystem::BarrierJoin => kind::JOIN_BARRIER,
            Subsystem::Taskwait => kind::TASKWAIT,
            Subsystem::TaskwaitDeps => kind::TASKWAIT_DEPEND,
            Subsystem::Taskgroup => kind::TASKGROUP,
            Subsystem::Acquiring => kind::CRITICAL,
            _ => return None,
        })
    }
}

/// The state of a thread that waits with this wait kind, for the kinds that share one section.
pub fn mutex_state(wait_kind: u32) -> Option<State> {
    Some(match wait_kind {
        kind::CRITICAL => State::CriticalWait,
        kind::LOCK | kind::NEST_LOCK => State::LockWait,
        kind::ORDERED => State::OrderedWait,
        kind::ATOMIC => State::AtomicWait,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::spec::Effect;

    #[test]
    fn every_push_and_pop_of_the_table_has_its_section() {
        for event in p::EVENTS {
            let found = Subsystem::of(event.code).map(|(_, edge)| edge);
            let expected = match event.effect {
                Effect::Push(..) => Some(Edge::Begin),
                Effect::Pop(..) => Some(Edge::End),
                _ => None,
            };
            assert_eq!(found, expected, "{}", event.name);
        }
    }

    #[test]
    fn begin_and_end_of_a_label_are_one_section() {
        for event in p::EVENTS {
            if let Effect::Push(_, value, _) = event.effect {
                let end = p::EVENTS.iter().find(|e| matches!(e.effect, Effect::Pop(_, v, _) if v == value));
                let end = end.unwrap_or_else(|| panic!("{} has no end", event.name));
                assert_eq!(Subsystem::of(event.code).unwrap().0, Subsystem::of(end.code).unwrap().0);
            }
        }
    }
}
