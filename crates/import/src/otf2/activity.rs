//! The meaning of a region's time, by its role and paradigm.

use crate::spans::Activity;
use taskscope_event::models::instrument::class;
use taskscope_otf2::{paradigm, role};

/// The meaning of the time in a region of this role and paradigm.
pub(super) fn activity(region_role: u8, region_paradigm: u8) -> Activity {
    match region_role {
        role::BARRIER | role::IMPLICIT_BARRIER | role::TASK_WAIT | role::THREAD_WAIT
            if region_paradigm != paradigm::MPI =>
        {
            Activity::State(class::SYNCHRONISATION)
        }
        role::TASK_CREATE | role::THREAD_CREATE => Activity::State(class::CREATION),
        role::FIRST_COLLECTIVE..=role::LAST_COLLECTIVE | role::POINT_TO_POINT | role::RMA => {
            Activity::State(class::COMMUNICATION)
        }
        _ if region_paradigm == paradigm::MPI => Activity::State(class::COMMUNICATION),
        _ => Activity::Task,
    }
}
