//! The sections of ovni's `openmp` model that the tool uses: each a begin event and its end.

use taskscope_event::Code;
use taskscope_event::models::openmp;

/// A begin event and its end, both without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Opens the section.
    pub begin: Code,
    /// Closes it.
    pub end: Code,
}

macro_rules! pairs {
    ($( $(#[$doc:meta])* $name:ident = $begin:ident, $end:ident; )*) => {
        $( $(#[$doc])* pub const $name: Pair = Pair { begin: openmp::$begin, end: openmp::$end }; )*
    };
}

pairs! {
    /// The runtime forks and joins a team.
    FORK = RUNTIME_FORK_CALL_BEGIN, RUNTIME_FORK_CALL_END;
    /// User code of an implicit task.
    MICROTASK = RUNTIME_USER_MICROTASK_BEGIN, RUNTIME_USER_MICROTASK_END;
    /// The barrier at the end of a region.
    JOIN = BARRIER_JOIN_BEGIN, BARRIER_JOIN_END;
    /// Any other barrier.
    BARRIER = BARRIER_PLAIN_BEGIN, BARRIER_PLAIN_END;
    /// Waiting for child tasks.
    TASKWAIT = TASK_TASKWAIT_BEGIN, TASK_TASKWAIT_END;
    /// Waiting for the predecessors of a `taskwait depend`.
    DEPEND_WAIT = TASK_TASKWAIT_DEPS_BEGIN, TASK_TASKWAIT_DEPS_END;
    /// Waiting for the tasks of a taskgroup.
    TASKGROUP = TASK_TASKGROUP_BEGIN, TASK_TASKGROUP_END;
    /// Waiting for a critical, a lock, a turn.
    ACQUIRING = CRITICAL_ACQUIRING_BEGIN, CRITICAL_ACQUIRING_END;
    /// Inside a critical construct.
    CRITICAL = CRITICAL_SECTION_BEGIN, CRITICAL_SECTION_END;
    /// A loop with a static schedule.
    STATIC_LOOP = WORK_DISTRIBUTION_STATIC_FOR_CHUNK_BEGIN, WORK_DISTRIBUTION_STATIC_FOR_CHUNK_END;
    /// A loop with any other schedule.
    DYNAMIC_LOOP = WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_BEGIN, WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_END;
    /// A sections construct.
    SECTIONS = WORK_DISTRIBUTION_SECTION_BEGIN, WORK_DISTRIBUTION_SECTION_END;
    /// The body of a single.
    SINGLE = WORK_DISTRIBUTION_SINGLE_BEGIN, WORK_DISTRIBUTION_SINGLE_END;
    /// A distribute construct.
    DISTRIBUTE = WORK_DISTRIBUTION_DISTRIBUTE_BEGIN, WORK_DISTRIBUTION_DISTRIBUTE_END;
}
