//! The sections `data` and `queues`: waiting for data under the programmer's names, and ready tasks that waited.

use crate::documents::Named;
use crate::format::{self, Cell};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use taskscope_analysis::causes::{Causes, DataOf};
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;

/// Waiting for data, by the data that decided.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DataWait {
    /// The data in words.
    pub data: String,
    /// Whether the program named it.
    pub named: bool,
    /// The cause of the waiting.
    pub cause: Named<Cause>,
    /// Worker-nanoseconds.
    pub ns: u64,
}

/// The rows of section `data`, largest first.
pub(super) fn data(graph: &TaskGraph, causes: &Causes) -> Vec<DataWait> {
    let rows = causes.by_data.iter().map(|(data, cause, ns)| DataWait {
        data: data.label(graph),
        named: matches!(data, DataOf::Name(_)),
        cause: Named(*cause),
        ns: *ns,
    });
    rows.collect()
}

/// The section `data` as text; shares are of the capacity.
pub(super) fn data_text(rows: &[DataWait], capacity: u64, top: usize, out: &mut String) {
    let total: u64 = rows.iter().map(|row| row.ns).sum();
    let _ = writeln!(out, "  Data that workers waited for ({})", format::time(total));
    for row in rows.iter().take(top) {
        let (name, share) = (Cell(format::fit(&row.data, 44)), format::percent(row.ns, capacity));
        let (cause, time) = (row.cause.0.name(), format::time(row.ns));
        let _ = writeln!(out, "   {cause:<12} {name:<44}{time:>10}{share:>8}");
    }
    if rows.len() > top {
        let more = rows.len() - top;
        let _ = writeln!(out, "   … and {more} more (--top {})", rows.len());
    }
}

/// The ready tasks of a node, as a queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReadyQueue {
    /// The queue in words.
    pub queue: String,
    #[serde(skip)]
    node: u64,
    /// Nanoseconds in which workers of the node were idle meanwhile; all rows sum to `wait.dispatch`.
    pub idle_ns: u64,
    /// Tasks that could start before they did.
    pub tasks: u64,
    /// Nanoseconds that they waited in all.
    pub wait_ns: u64,
    /// The most that were ready at a time.
    pub most_at_a_time: u64,
    /// The longest wait, nanoseconds.
    pub longest_wait_ns: u64,
    /// Its task's number in its process; null for code outside of tasks.
    pub longest_task: Option<u64>,
    /// That task's process (rank 1, process 4711), if there are several.
    pub longest_task_process: Option<String>,
    /// That task's type.
    pub longest_task_type: Option<String>,
}

/// The rows of section `queues`, by node.
pub(super) fn queues(graph: &TaskGraph, causes: &Causes) -> Vec<ReadyQueue> {
    let rows = graph.nodes.iter().zip(&causes.queues).map(|(node, queue)| {
        let task = queue.longest_task as usize;
        let ty = graph.tasks.ty.get(task).map(|ty| &graph.types[*ty as usize].name);
        ReadyQueue {
            queue: format!("ready tasks of node {}", node.id),
            node: node.id,
            idle_ns: queue.idle_ns,
            tasks: queue.tasks,
            wait_ns: queue.wait_ns,
            most_at_a_time: queue.most,
            longest_wait_ns: queue.longest_ns,
            longest_task: graph.tasks.number(task),
            longest_task_process: graph.process_of(queue.longest_task).map(str::to_owned),
            longest_task_type: ty.cloned(),
        }
    });
    rows.collect()
}

/// The section `queues` as text.
pub(super) fn queues_text(queues: &[ReadyQueue], out: &mut String) {
    let idle: u64 = queues.iter().map(|queue| queue.idle_ns).sum();
    let _ = writeln!(out, "  Ready tasks that no worker took ({} of idle time)", format::time(idle));
    for queue in queues {
        let _ = write!(
            out,
            "   node {:<6} workers idle {:>10}; {} waited {} each, at most {} at a time",
            queue.node,
            format::time(queue.idle_ns),
            format::counted(queue.tasks, "task"),
            format::time(queue.wait_ns / queue.tasks.max(1)),
            format::count(queue.most_at_a_time)
        );
        if let Some(ty) = &queue.longest_task_type {
            let name = format::fit(ty, 44);
            let _ = write!(out, "; the longest {}: {name}", format::time(queue.longest_wait_ns));
        }
        out.push('\n');
    }
}
