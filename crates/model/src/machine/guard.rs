//! Required thread states.

use taskscope_event::models::{mpi, nanos6, nodes, nosv, openmp, tampi};

/// Required state of the thread for an event of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    None,
    Active,
    ActiveOnCpu,
    Running,
}

/// The guard of a model's events.
pub(crate) fn guard_of(model: u8) -> Guard {
    match model {
        nosv::LETTER => Guard::ActiveOnCpu,
        nanos6::LETTER => Guard::Active,
        openmp::LETTER | mpi::LETTER | tampi::LETTER | nodes::LETTER => Guard::Running,
        _ => Guard::None,
    }
}
