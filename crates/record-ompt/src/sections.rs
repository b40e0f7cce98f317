//! The sections of ovni's `openmp` model that the tool uses: each a begin event and its end.

use core::num::NonZeroU64;

use taskscope_event::Code;
use taskscope_event::models::messages::function_number;
use taskscope_event::models::{mpi, openmp};

/// A begin event and its end, both without payload. One number, so that it is stored and compared in one
/// access: a load that spans two recent stores would wait for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionCodes(NonZeroU64);

impl SectionCodes {
    /// The section that one code opens and the other closes.
    pub const fn new(begin: Code, end: Code) -> SectionCodes {
        let packed = begin.to_u32() as u64 | (end.to_u32() as u64) << 32;
        // Codes are characters, none of them zero.
        SectionCodes(NonZeroU64::MIN.saturating_add(packed - 1))
    }

    /// The number of a call that is such a section, which is that of no function.
    pub const fn call_number(self) -> u32 {
        self.begin().to_u32()
    }

    /// Opens the section.
    #[inline(always)]
    pub const fn begin(self) -> Code {
        code(self.0.get() as u32)
    }

    /// Closes it.
    #[inline(always)]
    pub const fn end(self) -> Code {
        code((self.0.get() >> 32) as u32)
    }
}

/// The call of a profile in the rest of `MPI_Finalize`, after all ranks have come to it.
pub const END_OF_MPI: u32 = mpi::FINALIZE_END.to_u32();

/// Whether a call starts or ends MPI, as in a trace: before all ranks have come to it, `MPI_Finalize` waits for them.
#[inline(always)]
pub fn starts_mpi(call: u32) -> bool {
    const CALLS: [u32; 3] = [mpi::INIT_BEGIN.to_u32(), mpi::INIT_THREAD_BEGIN.to_u32(), END_OF_MPI];
    const SESSION: [u32; 2] = [function_number("Session_init"), function_number("Session_finalize")];
    CALLS.contains(&call) || SESSION.contains(&call)
}

#[inline(always)]
const fn code(number: u32) -> Code {
    let [model, category, value, _] = number.to_le_bytes();
    Code([model, category, value])
}

macro_rules! pairs {
    ($( $(#[$doc:meta])* $name:ident = $begin:ident, $end:ident; )*) => {
        $( $(#[$doc])* pub const $name: SectionCodes = SectionCodes::new(openmp::$begin, openmp::$end); )*
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_holds_its_two_codes() {
        assert_eq!(FORK.begin(), openmp::RUNTIME_FORK_CALL_BEGIN);
        assert_eq!(FORK.end(), openmp::RUNTIME_FORK_CALL_END);
        assert_ne!(BARRIER, JOIN);
    }
}
