//! Numbers of rows in the tables of a graph.

/// No row.
pub const NONE: u32 = u32::MAX;
