//! POP's efficiencies of a task graph.
//!
//! PE = LB × SerE × TrfE with U_i the useful time of worker i and T the wall time (POP, "Standard metrics";
//! T_ideal from a replay with an ideal network, in the place of Dimemas):
//! LB = avg(U) / max(U), SerE = max(U) / T_ideal, TrfE = T_ideal / T, CommE = SerE × TrfE.

use crate::causes::{Causes, Leaf};
use taskscope_execution::graph::TaskGraph;

/// Efficiencies, each a share of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pop {
    /// avg(U) / T.
    pub parallel: f64,
    /// avg(U) / max(U).
    pub load_balance: f64,
    /// max(U) / T.
    pub communication: f64,
    /// max(U) / T_ideal.
    pub serialization: f64,
    /// T_ideal / T.
    pub transfer: f64,
}

/// Efficiencies from a ledger and the wall time of the run on an ideal network.
pub fn pop(graph: &TaskGraph, causes: &Causes, ideal_network_wall_ns: u64) -> Pop {
    let (begin, end) = graph.range();
    let wall = (end - begin).max(1) as f64;
    let useful: Vec<u64> = causes.by_worker.iter().map(|leaves| leaves[Leaf::Work as usize]).collect();
    let most = useful.iter().copied().max().unwrap_or(0).max(1) as f64;
    let average = useful.iter().sum::<u64>() as f64 / useful.len().max(1) as f64;
    // An ideal run is no longer than the real one, nor shorter than the busiest worker's work.
    let ideal = (ideal_network_wall_ns as f64).clamp(most.min(wall), wall);
    Pop {
        parallel: average / wall,
        load_balance: average / most,
        communication: most / wall,
        serialization: most / ideal,
        transfer: ideal / wall,
    }
}
