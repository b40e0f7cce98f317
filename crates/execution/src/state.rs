//! What a thread can be doing. Every worker-nanosecond has exactly one of these states.

/// The state of a thread at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum State {
    /// In the body of an explicit task.
    Task,
    /// In the body of a worksharing construct: loop, sections, single, distribute.
    Worksharing,
    /// In the body of a masked construct.
    Masked,
    /// In a parallel region's own code, outside the constructs above.
    ImplicitTask,
    /// In user code outside any parallel region.
    Serial,
    /// Creating tasks, where the runtime reports begin and end of it (a taskloop, for instance).
    TaskCreation,
    /// Registering or releasing dependences.
    Dependences,
    /// Starting or ending a parallel region.
    ForkJoin,
    /// In the runtime's scheduler.
    Scheduling,
    /// In another part of the runtime.
    Runtime,
    /// Waiting in a barrier inside a region.
    Barrier,
    /// Waiting in the barrier at the end of a region.
    JoinBarrier,
    /// Waiting for the children of the current task.
    Taskwait,
    /// Waiting for the dependences of a `taskwait depend`.
    TaskwaitDepend,
    /// Waiting for the tasks of a taskgroup.
    Taskgroup,
    /// In a taskyield.
    Taskyield,
    /// Waiting for a critical construct.
    CriticalWait,
    /// Waiting for a simple or nestable lock.
    LockWait,
    /// Waiting for its turn in an ordered construct.
    OrderedWait,
    /// Waiting for an atomic construct.
    AtomicWait,
    /// Waiting for a device.
    TargetWait,
    /// In a communication library: MPI, TAMPI.
    Communication,
    /// Starting or ending a communication library: MPI_Init, MPI_Finalize.
    MpiStart,
    /// A worker in no region, or with no task to run.
    Idle,
    /// On a CPU that the runtime leaves free, by its configuration, for the noise of the system: Nanos6's sponge mode.
    AbsorbingNoise,
    /// Kept off the CPU by the operating system, or waiting for a thread that is.
    OutOfCpu,
    /// One of more workers than CPUs: none of the CPUs that it may use stands free for it.
    Oversubscribed,
    /// Blocked in the kernel, in code of the program: asleep, in a system call, or in a wait that the runtime does not
    /// report.
    Blocked,
    /// Of its own will: its task is blocked, or it left its CPU to another thread of the runtime.
    Paused,
    /// Before the thread's first event.
    NotStarted,
    /// After the thread's end.
    Ended,
    /// In no instrumented section of a runtime that tells its sections (Nanos6, nOS-V, NODES): what these
    /// runtimes' documentation calls "no subsystem".
    NoSubsystem,
    /// Events were lost, or none that tells.
    Unknown,
}

/// How a state counts in an efficiency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Group {
    /// The program's own work.
    Useful,
    /// The runtime's work.
    Runtime,
    /// A library of the job is being started or ended, which efficiencies leave out.
    Start,
    /// Waiting for other tasks or threads of the team.
    Sync,
    /// Waiting for one's turn: a lock, a critical construct, ordered, atomic.
    Mutex,
    /// Waiting for a device.
    Device,
    /// Nothing to do: no region, not started, ended.
    Idle,
    /// Taken away by the operating system, or paused.
    Off,
    /// Blocked in the kernel, in code of the program.
    Blocked,
    /// Not known.
    Unknown,
}

impl State {
    /// All states, in the order of their numbers.
    pub const ALL: [State; 33] = [
        State::Task,
        State::Worksharing,
        State::Masked,
        State::ImplicitTask,
        State::Serial,
        State::TaskCreation,
        State::Dependences,
        State::ForkJoin,
        State::Scheduling,
        State::Runtime,
        State::Barrier,
        State::JoinBarrier,
        State::Taskwait,
        State::TaskwaitDepend,
        State::Taskgroup,
        State::Taskyield,
        State::CriticalWait,
        State::LockWait,
        State::OrderedWait,
        State::AtomicWait,
        State::TargetWait,
        State::Communication,
        State::MpiStart,
        State::Idle,
        State::AbsorbingNoise,
        State::OutOfCpu,
        State::Oversubscribed,
        State::Blocked,
        State::Paused,
        State::NotStarted,
        State::Ended,
        State::NoSubsystem,
        State::Unknown,
    ];

    /// The name in JSON and in filters.
    pub const fn name(self) -> &'static str {
        match self {
            State::Task => "task",
            State::Worksharing => "worksharing",
            State::Masked => "masked",
            State::ImplicitTask => "implicit_task",
            State::Serial => "serial",
            State::TaskCreation => "task_creation",
            State::Dependences => "dependences",
            State::ForkJoin => "fork_join",
            State::Scheduling => "scheduling",
            State::Runtime => "runtime",
            State::Barrier => "barrier",
            State::JoinBarrier => "join_barrier",
            State::Taskwait => "taskwait",
            State::TaskwaitDepend => "taskwait_depend",
            State::Taskgroup => "taskgroup",
            State::Taskyield => "taskyield",
            State::CriticalWait => "critical_wait",
            State::LockWait => "lock_wait",
            State::OrderedWait => "ordered_wait",
            State::AtomicWait => "atomic_wait",
            State::TargetWait => "target_wait",
            State::Communication => "communication",
            State::MpiStart => "mpi_start",
            State::Idle => "idle",
            State::AbsorbingNoise => "absorbing_noise",
            State::OutOfCpu => "out_of_cpu",
            State::Oversubscribed => "oversubscribed",
            State::Blocked => "blocked",
            State::Paused => "paused",
            State::NotStarted => "not_started",
            State::Ended => "ended",
            State::NoSubsystem => "no_subsystem",
            State::Unknown => "unknown",
        }
    }

    /// The words for a person.
    pub const fn label(self) -> &'static str {
        match self {
            State::Task => "task bodies",
            State::Worksharing => "worksharing",
            State::Masked => "masked constructs",
            State::ImplicitTask => "parallel region code",
            State::Serial => "serial code",
            State::TaskCreation => "task creation",
            State::Dependences => "dependences",
            State::ForkJoin => "fork and join",
            State::Scheduling => "scheduling",
            State::Runtime => "runtime",
            State::Barrier => "barrier",
            State::JoinBarrier => "barrier at region end",
            State::Taskwait => "taskwait",
            State::TaskwaitDepend => "taskwait depend",
            State::Taskgroup => "taskgroup",
            State::Taskyield => "taskyield",
            State::CriticalWait => "waiting for critical",
            State::LockWait => "waiting for a lock",
            State::OrderedWait => "waiting for ordered",
            State::AtomicWait => "waiting for atomic",
            State::TargetWait => "waiting for a device",
            State::Communication => "communication",
            State::MpiStart => "starting and ending MPI",
            State::Idle => "idle",
            State::AbsorbingNoise => "absorbing noise",
            State::OutOfCpu => "no CPU",
            State::Oversubscribed => "more workers than CPUs",
            State::Blocked => "blocked",
            State::Paused => "paused",
            State::NotStarted => "not started",
            State::Ended => "ended",
            State::NoSubsystem => "no subsystem",
            State::Unknown => "unknown",
        }
    }

    /// How it counts in an efficiency.
    pub const fn group(self) -> Group {
        match self {
            State::Task | State::Worksharing | State::Masked | State::ImplicitTask | State::Serial => {
                Group::Useful
            }
            State::TaskCreation
            | State::Dependences
            | State::ForkJoin
            | State::Scheduling
            | State::Runtime
            | State::AbsorbingNoise => Group::Runtime,
            State::Barrier
            | State::JoinBarrier
            | State::Taskwait
            | State::TaskwaitDepend
            | State::Taskgroup
            | State::Taskyield
            | State::Communication => Group::Sync,
            State::TargetWait => Group::Device,
            State::MpiStart => Group::Start,
            State::CriticalWait | State::LockWait | State::OrderedWait | State::AtomicWait => Group::Mutex,
            State::Idle | State::Paused | State::NotStarted | State::Ended => Group::Idle,
            State::OutOfCpu | State::Oversubscribed => Group::Off,
            State::Blocked => Group::Blocked,
            State::NoSubsystem | State::Unknown => Group::Unknown,
        }
    }

    /// Whether the program's own code runs.
    pub const fn is_useful(self) -> bool {
        matches!(self.group(), Group::Useful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_state_at_its_number() {
        for (number, state) in State::ALL.iter().enumerate() {
            assert_eq!(*state as usize, number);
        }
        assert_eq!(State::Unknown as usize + 1, State::ALL.len());
    }
}
