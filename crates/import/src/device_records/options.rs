//! Facts that the caller knows and the files do not have.

use taskscope_reorder::Limits;

/// The caller's knowledge beyond the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Queues that are out-of-order, by name.
    pub out_of_order: Vec<String>,
    /// Queues that are in-order, by name.
    pub in_order: Vec<String>,
    /// Memory for records that wait for others.
    pub limits: Limits,
}
