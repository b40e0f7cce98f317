//! The meaning of a region's time, by its role and paradigm.

use crate::spans::Activity;
use taskscope_event::models::instrument::class;

const PARADIGM_MPI: u8 = 4;

/// Roles of regions, as OTF2 numbers them.
mod role {
    pub const BARRIER: u8 = 15;
    pub const IMPLICIT_BARRIER: u8 = 16;
    pub const TASK_CREATE: u8 = 21;
    pub const TASK_WAIT: u8 = 22;
    pub const FIRST_COLLECTIVE: u8 = 23;
    pub const LAST_COLLECTIVE: u8 = 26;
    pub const POINT_TO_POINT: u8 = 28;
    pub const RMA: u8 = 29;
    pub const THREAD_CREATE: u8 = 32;
    pub const THREAD_WAIT: u8 = 33;
}

/// The meaning of the time in a region of this role and paradigm.
pub(super) fn activity(role: u8, paradigm: u8) -> Activity {
    match role {
        role::BARRIER | role::IMPLICIT_BARRIER | role::TASK_WAIT | role::THREAD_WAIT
            if paradigm != PARADIGM_MPI =>
        {
            Activity::State(class::SYNCHRONISATION)
        }
        role::TASK_CREATE | role::THREAD_CREATE => Activity::State(class::CREATION),
        role::FIRST_COLLECTIVE..=role::LAST_COLLECTIVE | role::POINT_TO_POINT | role::RMA => {
            Activity::State(class::COMMUNICATION)
        }
        _ if paradigm == PARADIGM_MPI => Activity::State(class::COMMUNICATION),
        _ => Activity::Task,
    }
}
