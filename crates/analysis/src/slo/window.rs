//! The part of the capacity in a window of time, and its busy part.

use taskscope_execution::graph::TaskGraph;

/// Nanoseconds of all selected workers inside a window. With the idle time of the window's shares, execution
/// and tail sum to the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTimes {
    /// Nanoseconds of workers' lifetimes.
    pub capacity_ns: u64,
    /// Time in tasks.
    pub execution_ns: u64,
    /// After a worker's last task.
    pub tail_ns: u64,
}

/// The times from `begin` to `end`.
pub fn window_times(graph: &TaskGraph, (begin, end): (u64, u64)) -> WindowTimes {
    let inside = |from: u64, to: u64| to.min(end).saturating_sub(from.max(begin));
    let mut times = WindowTimes::default();
    for (worker, pieces) in
        graph.workers.iter().zip(graph.pieces.iter()).filter(|(worker, _)| worker.selected)
    {
        times.capacity_ns += inside(worker.begin, worker.end);
        times.execution_ns += pieces.iter().map(|piece| inside(piece.start, piece.end)).sum::<u64>();
        times.tail_ns += inside(pieces.last().map_or(worker.begin, |piece| piece.end), worker.end);
    }
    times
}
