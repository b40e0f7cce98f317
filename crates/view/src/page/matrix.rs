//! Communication between processes as a matrix: messages and bytes by sender and receiver, waits by the late process.

use super::Page;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use taskscope_execution::{ProcessIndex, ThreadIndex};

/// Cells of a matrix: those with most waiting, then most bytes.
const MAX_CELLS: usize = 4096;

/// Communication between processes in a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CommunicationMatrix {
    /// The processes that communicate, by rank.
    pub processes: Vec<MatrixProcess>,
    /// Pairs of processes, by sender, then receiver.
    pub cells: Vec<MatrixCell>,
    /// Further pairs that were left out.
    pub left_out: usize,
}

/// A process of a matrix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MatrixProcess {
    /// Its rank; null if unknown.
    pub rank: Option<u32>,
    /// Its process id.
    pub pid: i64,
}

/// Communication from one process to another: places in `processes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MatrixCell {
    /// The sender; of waits, the late process.
    pub from: usize,
    /// The receiver; of waits, the waiting process.
    pub to: usize,
    /// Messages that arrived in the time.
    pub messages: u64,
    /// Bytes of these, as far as their sizes are known.
    pub bytes: u64,
    /// Nanoseconds that calls of the receiver waited for the sender, collective operations included.
    pub wait_ns: u64,
}

impl Page {
    /// The matrix of the part of the time between two times since the start of the trace.
    pub fn communication_matrix(&self, from: u64, to: u64) -> CommunicationMatrix {
        let (low, high) = (self.start().saturating_add(from), self.start().saturating_add(to));
        let communication = &self.execution.communication;
        let process = |thread: ThreadIndex| self.execution.threads.get(thread.index()).map(|row| row.process);
        let mut cells: BTreeMap<(ProcessIndex, ProcessIndex), MatrixCell> = BTreeMap::new();
        for message in communication.messages.iter().filter(|row| (low..high).contains(&row.received)) {
            let Some(pair) = process(message.sender).zip(process(message.receiver)) else { continue };
            let cell = cells.entry(pair).or_default();
            cell.messages += 1;
            // Sizes are those of the trace, whatever they are.
            cell.bytes = cell.bytes.saturating_add(if message.bytes == u64::MAX { 0 } else { message.bytes });
        }
        for call in &communication.calls {
            let Some((wait, waiting)) = call.wait.zip(process(call.thread)) else { continue };
            let ns = wait.until.min(call.end).min(high).saturating_sub(call.start.max(low));
            if ns > 0 {
                cells.entry((wait.culprit, waiting)).or_default().wait_ns += ns;
            }
        }
        let rank = |process: ProcessIndex| communication.ranks.get(&process.0).map(|rank| rank.rank);
        let members: BTreeSet<(Option<u32>, ProcessIndex)> = cells
            .keys()
            .flat_map(|(one, other)| [*one, *other])
            .map(|process| (rank(process), process))
            .collect();
        let places: BTreeMap<ProcessIndex, usize> =
            members.iter().enumerate().map(|(place, (_, process))| (*process, place)).collect();
        let processes = members.iter().map(|(rank, process)| MatrixProcess {
            rank: *rank,
            pid: self.execution.processes.get(process.0 as usize).map_or(0, |row| row.pid),
        });
        let mut rows: Vec<MatrixCell> = cells
            .into_iter()
            .map(|((sender, receiver), cell)| MatrixCell {
                from: places[&sender],
                to: places[&receiver],
                ..cell
            })
            .collect();
        let left_out = rows.len().saturating_sub(MAX_CELLS);
        rows.sort_by_key(|cell| std::cmp::Reverse((cell.wait_ns, cell.bytes, cell.messages)));
        rows.truncate(MAX_CELLS);
        rows.sort_by_key(|cell| (cell.from, cell.to));
        CommunicationMatrix { processes: processes.collect(), cells: rows, left_out }
    }
}
