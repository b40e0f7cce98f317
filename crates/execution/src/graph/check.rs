//! The preconditions of a graph, and their violations.

use super::{NONE, TaskGraph};
use crate::NO_TIME;

/// After so many errors no more are looked for.
pub(crate) const MAX_ERRORS: usize = 100;

/// No time may be later, and no sum of lives longer: sums are signed 64-bit numbers of nanoseconds.
const LATEST: u64 = i64::MAX as u64;

/// A table of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Workers.
    Workers,
    /// Tasks.
    Tasks,
    /// Data.
    Data,
    /// Inputs of tasks.
    Inputs,
    /// Copies of data.
    Copies,
    /// Pieces of executions; rows are worker rows if two pieces overlap.
    Pieces,
    /// Activities.
    Activities,
}

/// A precondition that a row breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphError {
    /// The table.
    pub table: Table,
    /// The row, counted from 0 in the order in which rows were added.
    pub row: usize,
    /// The field that is wrong.
    pub field: &'static str,
    /// A sentence that names ids and times.
    pub text: String,
}

/// Rows of the source by rows of the graph.
pub(crate) struct Rows<'a> {
    pub tasks: &'a [u32],
    pub data: &'a [u32],
}

/// Appends the violations of times and order.
pub(crate) fn check(graph: &TaskGraph, rows: &Rows<'_>, errors: &mut Vec<GraphError>) {
    // Whether more are looked for.
    let mut add = |table, row: u32, field, text| {
        if errors.len() < MAX_ERRORS {
            errors.push(GraphError { table, row: row as usize, field, text });
        }
        errors.len() < MAX_ERRORS
    };
    let too_late = |time: u64| format!("{time} is beyond the clock's range of 2^63 - 1 ns");
    let mut capacity = 0_u64;
    for (row, worker) in graph.workers.iter().enumerate() {
        capacity = capacity.saturating_add(worker.end - worker.begin);
        if worker.end > LATEST {
            add(Table::Workers, row as u32, "end", too_late(worker.end));
        } else if capacity > LATEST {
            let text = "the lives of all workers together are beyond 2^63 - 1 ns".to_owned();
            add(Table::Workers, row as u32, "end", text);
        }
    }
    for activity in graph.activities.items().iter().filter(|activity| activity.end > LATEST) {
        add(Table::Activities, 0, "end", too_late(activity.end));
    }
    for (task, uniform) in graph.tasks.uniform.iter().enumerate().filter(|(_, uniform)| **uniform > LATEST) {
        add(Table::Tasks, rows.tasks[task], "runtime_uniform", too_late(*uniform));
    }
    for data in 0..graph.data.len() {
        let arrivals = graph.copies.get(data).iter().map(|copy| copy.arrived);
        if let Some(time) = arrivals.chain([graph.data.produced[data]]).find(|time| *time > LATEST) {
            add(Table::Data, rows.data[data], "produced", too_late(time));
        }
    }
    for (worker, pieces) in graph.workers.iter().zip(graph.pieces.iter()) {
        for piece in pieces {
            let (task, row) = (graph.tasks.id[piece.task as usize], rows.tasks[piece.task as usize]);
            if piece.start >= piece.end {
                let text =
                    format!("task {task} starts at {} and ends at {}; it must last", piece.start, piece.end);
                add(Table::Tasks, row, "end", text);
            }
            if piece.start < worker.begin || piece.end > worker.end {
                let field = if piece.start < worker.begin { "start" } else { "end" };
                let text = format!(
                    "task {task} runs from {} to {}, outside the life of worker {} ({} to {})",
                    piece.start, piece.end, worker.id, worker.begin, worker.end
                );
                add(Table::Tasks, row, field, text);
            }
        }
        for pair in pieces.windows(2).filter(|pair| pair[1].start < pair[0].end) {
            let text = format!(
                "task {} starts at {} on worker {}, while task {} runs there until {}",
                graph.tasks.id[pair[1].task as usize],
                pair[1].start,
                worker.id,
                graph.tasks.id[pair[0].task as usize],
                pair[0].end
            );
            add(Table::Tasks, rows.tasks[pair[1].task as usize], "start", text);
        }
    }
    // By node: the last data with a copy on it.
    let mut last_copied = vec![usize::MAX; graph.nodes.len()];
    for data in 0..graph.data.len() {
        let (id, produced) = (graph.data.id[data], graph.data.produced[data]);
        let producer = graph.data.producer[data];
        if producer != NONE {
            let (start, end) = (graph.tasks.start[producer as usize], graph.tasks.end[producer as usize]);
            let task = graph.tasks.id[producer as usize];
            if start == NO_TIME {
                add(
                    Table::Data,
                    rows.data[data],
                    "producer",
                    format!("data {id} is produced by task {task}, which never ran"),
                );
            } else if produced <= start || produced > end {
                let text = format!(
                    "data {id} is produced at {produced}, but its producer, task {task}, runs from {start} to {end}"
                );
                add(Table::Data, rows.data[data], "produced", text);
            }
        }
        for copy in graph.copies.get(data) {
            let node = graph.nodes[copy.node as usize].id;
            if std::mem::replace(&mut last_copied[copy.node as usize], data) == data {
                add(
                    Table::Data,
                    rows.data[data],
                    "copies",
                    format!("data {id} has two copies on node {node}"),
                );
            }
            if copy.sent != NO_TIME && (copy.sent < produced || copy.sent > copy.arrived) {
                let text = format!(
                    "data {id} is sent to node {node} at {}, but it is produced at {produced} and arrives at {}",
                    copy.sent, copy.arrived
                );
                add(Table::Data, rows.data[data], "sent", text);
            } else if copy.arrived < produced {
                let text = format!(
                    "data {id} arrives on node {node} at {}, before it is produced at {produced}",
                    copy.arrived
                );
                add(Table::Data, rows.data[data], "arrived", text);
            }
        }
    }
    for task in 0..graph.tasks.len() {
        let start = graph.tasks.start[task];
        if start == NO_TIME {
            continue;
        }
        let node = graph.node_of_task(task as u32);
        for data in graph.inputs.get(task) {
            let available = graph.available(*data, node);
            if start < available {
                let (id, read) = (graph.tasks.id[task], graph.data.id[*data as usize]);
                let text = match cycle(graph, task as u32, *data) {
                    Some(path) => format!("task {id} waits for itself: {path}"),
                    None => format!(
                        "task {id} starts at {start}, before its input, data {read}, is available on its node at {available}"
                    ),
                };
                // To look for a cycle takes long.
                if !add(Table::Tasks, rows.tasks[task], "inputs", text) {
                    return;
                }
            }
        }
        let created = graph.tasks.created(task);
        if created != NO_TIME && created > start {
            let text =
                format!("task {} starts at {start}, before it is created at {created}", graph.tasks.id[task]);
            add(Table::Tasks, rows.tasks[task], "created", text);
        }
    }
}

/// The path by which `task` reads its own product through others, if any. `data` is the first input.
fn cycle(graph: &TaskGraph, task: u32, data: u32) -> Option<String> {
    let mut came_from = rustc_hash::FxHashMap::default();
    let mut pending = vec![data];
    came_from.insert(data, NONE);
    while let Some(data) = pending.pop() {
        let producer = graph.data.producer[data as usize];
        if producer == task {
            let mut path = format!("task {}", graph.tasks.id[task as usize]);
            let mut at = data;
            while at != NONE {
                let next = came_from[&at];
                let reader = if next == NONE { task } else { graph.data.producer[next as usize] };
                path += &format!(
                    " → data {} → task {}",
                    graph.data.id[at as usize], graph.tasks.id[reader as usize]
                );
                at = next;
            }
            return Some(path);
        }
        // The error has been found; the search for its name is bounded.
        if producer == NONE || came_from.len() > 100_000 {
            continue;
        }
        for input in graph.inputs.get(producer as usize) {
            if !came_from.contains_key(input) {
                came_from.insert(*input, data);
                pending.push(*input);
            }
        }
    }
    None
}
