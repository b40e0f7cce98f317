//! State of a thread, computed from its stack of open constructs, never from `ompt_get_state`, which
//! misreports taskwait, idle and critical.

use taskscope_event::models::samples::state;

use crate::frames::{Open, Phase};
use crate::profiling::Follower;
use crate::task_stacks::regions;
use crate::thread::{Kind, Thread};

impl Thread {
    /// The thread's state, an `ompt_state_t` or one of our own ([`state`]). Time inside the runtime that no
    /// event reports (creating and scheduling tasks) counts as work here.
    pub fn state(&self) -> u32 {
        let Some(top) = self.frames.top() else {
            return match self.kind {
                Kind::Worker | Kind::Helper => state::IDLE,
                Kind::Initial => state::WORK_SERIAL,
                Kind::Unknown => state::NO_OPENMP,
            };
        };
        match top.open {
            Open::Region { .. } => state::OVERHEAD,
            Open::Member { phase: Phase::Running, .. } => state::WORK_PARALLEL,
            // A worker learns of its region's end only at the next fork: until then it seems to wait.
            Open::Member { region, .. } if self.kind == Kind::Worker && !regions::is_open(region) => {
                state::IDLE
            }
            Open::Member { phase: Phase::Joining { league: true }, .. } => state::BARRIER_TEAMS,
            Open::Member { phase: Phase::Joining { league: false }, .. } => state::BARRIER_PARALLEL,
            Open::Member { phase: Phase::Joined, .. } => state::OVERHEAD,
            Open::Section { state, .. } => state,
            Open::Reduction => state::WORK_REDUCTION,
            Open::Device(_) => state::TARGET,
            Open::Task { .. } | Open::Work { .. } | Open::Taskgroup | Open::Masked | Open::Call { .. } => {
                state::WORK_PARALLEL
            }
        }
    }

    /// In profile mode the context that it is in: of its task, else of its team.
    #[inline(always)]
    pub fn context(&self) -> u32 {
        match self.frames.innermost_context().map(|frame| frame.open) {
            Some(Open::Task { id }) => id,
            Some(Open::Member { .. }) => self.profile.as_deref().map_or(0, Follower::context_of_team),
            _ => 0,
        }
    }

    /// The object that the thread waits for: a lock, a critical section or an ordered turn; 0 if it does not
    /// wait.
    pub fn wait_object(&self) -> u64 {
        match self.frames.top().map(|top| top.open) {
            Some(Open::Section { state: state::LOCK..=state::NEST_LOCK, .. }) => self.wait_object.1,
            _ => 0,
        }
    }
}
