//! The sections `data` and `queues`: waiting for data under the programmer's names, and ready tasks that waited.

use super::CausesOptions;
use crate::format;
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::causes::{Causes, DataOf};
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;

pub(super) fn data_json(graph: &TaskGraph, causes: &Causes) -> Value {
    let rows = causes.by_data.iter().map(|(data, cause, ns)| {
        json!({
            "data": data.label(graph),
            "named": matches!(data, DataOf::Name(_)),
            "cause": cause.name(),
            "ns": ns,
        })
    });
    rows.collect()
}

pub(super) fn data_text(graph: &TaskGraph, causes: &Causes, options: &CausesOptions, out: &mut String) {
    let total: u64 = causes.by_data.iter().map(|(_, _, ns)| ns).sum();
    let _ = writeln!(out, "  Data that workers waited for ({})", format::time(total));
    for (data, cause, ns) in causes.by_data.iter().take(options.top) {
        let (name, share) = (format::fit(&data.label(graph), 44), format::percent(*ns, causes.capacity_ns));
        let _ = writeln!(out, "   {:<12} {name:<44}{:>10}{share:>8}", cause.name(), format::time(*ns));
    }
    if causes.by_data.len() > options.top {
        let more = causes.by_data.len() - options.top;
        let _ = writeln!(out, "   … and {more} more (--top {})", causes.by_data.len());
    }
}

pub(super) fn queues_json(graph: &TaskGraph, causes: &Causes) -> Value {
    let rows = graph.nodes.iter().zip(&causes.queues).map(|(node, queue)| {
        let task = queue.longest_task as usize;
        let ty = graph.tasks.ty.get(task).map(|ty| &graph.types[*ty as usize].name);
        json!({
            "queue": format!("ready tasks of node {}", node.id),
            "idle_ns": queue.idle_ns,
            "tasks": queue.tasks,
            "wait_ns": queue.wait_ns,
            "most_at_a_time": queue.most,
            "longest_wait_ns": queue.longest_ns,
            "longest_task": graph.tasks.number(task),
            "longest_task_process": graph.process_of(queue.longest_task),
            "longest_task_type": ty,
        })
    });
    rows.collect()
}

pub(super) fn queues_text(graph: &TaskGraph, causes: &Causes, out: &mut String) {
    let idle = causes.by_cause[Cause::WaitDispatch as usize];
    let _ = writeln!(out, "  Ready tasks that no worker took ({} of idle time)", format::time(idle));
    for (node, queue) in graph.nodes.iter().zip(&causes.queues) {
        let _ = write!(
            out,
            "   node {:<6} workers idle {:>10}; {} waited {} each, at most {} at a time",
            node.id,
            format::time(queue.idle_ns),
            format::counted(queue.tasks, "task"),
            format::time(queue.wait_ns / queue.tasks.max(1)),
            format::count(queue.most)
        );
        if let Some(ty) = graph.tasks.ty.get(queue.longest_task as usize) {
            let name = format::fit(&graph.types[*ty as usize].name, 44);
            let _ = write!(out, "; the longest {}: {name}", format::time(queue.longest_ns));
        }
        out.push('\n');
    }
}
