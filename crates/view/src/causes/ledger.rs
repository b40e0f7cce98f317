//! The sections `ledger` and `blame`: what every worker-nanosecond went into, and who is to blame.

use super::CausesOptions;
use crate::format;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use taskscope_analysis::Who;
use taskscope_analysis::causes::{ByCause, CauseRow, Causes, ReadyWork};
use taskscope_cause::Cause;
use taskscope_execution::graph::{Role, TaskGraph};

pub(super) fn json(graph: &TaskGraph, causes: &Causes) -> Value {
    let by_cause = |times: &[u64]| -> Value {
        let pairs = Cause::ALL.iter().zip(times).map(|(cause, ns)| (cause.name().to_owned(), (*ns).into()));
        Value::Object(pairs.collect())
    };
    let workers: Map<String, Value> = (graph.workers.iter().zip(&causes.by_worker))
        .filter(|(worker, _)| worker.selected)
        .map(|(worker, times)| (worker.id.to_string(), by_cause(times)))
        .collect();
    let mut ready = Map::new();
    for cause in Cause::ALL.into_iter().filter(|cause| cause.is_in(Cause::Wait)) {
        let times = ReadyWork::ALL.iter().zip(causes.ready[cause as usize]);
        let row: Map<String, Value> = times.map(|(place, ns)| (place.name().to_owned(), ns.into())).collect();
        ready.insert(cause.name().into(), row.into());
    }
    let slow = causes.slow;
    json!({
        "capacity_ns": causes.capacity_ns,
        "causes": by_cause(&causes.by_cause),
        "slow": {
            "work_ns": slow.work_ns,
            "starvation_ns": slow.starvation_ns,
            "latency_ns": slow.latency_ns,
            "overhead_ns": slow.overhead_ns,
            "contention_ns": slow.contention_ns,
        },
        "ready_work": ready,
        "by_worker": workers,
        "by_node": by_node(graph, causes)
            .iter()
            .map(|(node, times)| (node.to_string(), by_cause(times)))
            .collect::<Map<String, Value>>(),
    })
}

/// The times of each node's workers (a rank's, where processes have ranks), by the nodes' numbers.
fn by_node(graph: &TaskGraph, causes: &Causes) -> Vec<(u64, ByCause)> {
    let mut nodes: Vec<(u64, ByCause)> =
        graph.nodes.iter().map(|node| (node.id, [0; Cause::ALL.len()])).collect();
    for (worker, times) in graph.workers.iter().zip(&causes.by_worker) {
        if let Some((_, sums)) = nodes.get_mut(worker.node as usize) {
            sums.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
        }
    }
    nodes
}

/// The four largest largest of each node, where there are several.
fn nodes_text(graph: &TaskGraph, causes: &Causes, out: &mut String) {
    if graph.nodes.len() < 2 {
        return;
    }
    for (node, times) in by_node(graph, causes) {
        let capacity: u64 = times.iter().sum();
        // One of a process of which no thread is a worker.
        if capacity == 0 {
            continue;
        }
        let mut largest: Vec<(Cause, u64)> =
            Cause::ALL.into_iter().zip(times).filter(|(_, ns)| *ns > 0).collect();
        largest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let words = largest
            .iter()
            .take(4)
            .map(|(cause, ns)| format!("{} {}", cause.name(), format::percent(*ns, capacity)));
        let words: Vec<String> = words.collect();
        let _ = writeln!(out, "   node {node:<8} {:>12}: {}", format::time(capacity), words.join(", "));
    }
}

/// Every charge but work itself; rows of one cause sum to it.
pub(super) fn blame_json(graph: &TaskGraph, causes: &Causes) -> Value {
    let lost = causes.rows.iter().filter(|charge| charge.cause != Cause::Work);
    lost.map(|charge| {
        let symptom = place(graph, charge.symptom.unwrap_or(u32::MAX), None);
        json!({
            "cause": charge.cause.name(),
            "blamed": charge.who.blamed().name(),
            "letter": format!("{:?}", charge.who.letter()).to_lowercase(),
            "ns": charge.ns,
            "label": charge.who.label(graph),
            "who": who(graph, charge.who),
            "symptom": symptom,
        })
    })
    .collect()
}

fn who(graph: &TaskGraph, who: Who) -> Value {
    let name = |row: u32| graph.names.get(row as usize).map(String::as_str);
    match who {
        Who::Task(ty) | Who::Uniform(ty) | Who::Dispatch(ty) | Who::Creator(ty) | Who::Blocked(ty) => {
            place(graph, ty, None)
        }
        Who::Lock(lock, holder) => place(graph, holder, name(lock)),
        Who::Runtime(row)
        | Who::Start(row)
        | Who::AbsorbingNoise(row)
        | Who::Call(row)
        | Who::Peer(row)
        | Who::Device(row)
        | Who::System(row) => place(graph, u32::MAX, name(row)),
        Who::Link(..) | Who::Delivery(_) | Who::Send | Who::Startup | Who::Nobody => {
            place(graph, u32::MAX, Some(&who.label(graph)))
        }
    }
}

/// Function, file, line and task type of a type's row, and an object; null where not known.
fn place(graph: &TaskGraph, ty: u32, object: Option<&str>) -> Value {
    let ty = graph.types.get(ty as usize);
    let text = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    json!({
        "function": ty.map_or(Value::Null, |ty| text(&ty.function)),
        "file": ty.map_or(Value::Null, |ty| text(&ty.file)),
        "line": ty.filter(|ty| ty.line > 0).map(|ty| ty.line),
        "task_type": ty.filter(|ty| !ty.implicit).map(|ty| &ty.name),
        "object": object,
    })
}

pub(super) fn text(graph: &TaskGraph, causes: &Causes, out: &mut String) {
    let capacity = causes.capacity_ns;
    let _ = writeln!(out, "  Where every worker-nanosecond went ({} of capacity)", format::time(capacity));
    match graph.workers.iter().filter(|worker| worker.role == Role::Runtime).count() {
        0 => {}
        threads => {
            let threads = format::counted(threads as u64, "thread");
            let _ = writeln!(out, "   without {threads} of the runtime, which execute no tasks");
        }
    }
    for (cause, ns) in Cause::ALL.into_iter().zip(causes.by_cause).filter(|(_, ns)| *ns > 0) {
        let share = format::percent(ns, capacity);
        let _ = write!(out, "   {:<14}{:>12}{share:>9}  ", cause.name(), format::time(ns));
        if cause.is_in(Cause::Wait) {
            let ready = causes.ready[cause as usize];
            let words = ReadyWork::ALL.iter().zip(ready).filter(|(_, part)| *part > 0);
            let words: Vec<String> = words
                .map(|(place, part)| format!("{} {}", place.name(), format::percent(part, ns)))
                .collect();
            let _ = write!(out, "ready work: {}", words.join(", "));
        }
        while out.ends_with(' ') {
            out.pop();
        }
        out.push('\n');
    }
    let slow = causes.slow;
    let parts = [
        ("work", slow.work_ns),
        ("starvation", slow.starvation_ns),
        ("latency", slow.latency_ns),
        ("overhead", slow.overhead_ns),
        ("contention", slow.contention_ns),
    ];
    let words = parts.map(|(name, ns)| format!("{name} {}", format::percent(ns, capacity)));
    let _ = writeln!(out, "   = {}", words.join(" + "));
    nodes_text(graph, causes, out);
}

pub(super) fn blame_text(graph: &TaskGraph, causes: &Causes, options: &CausesOptions, out: &mut String) {
    let lost: Vec<&CauseRow> = causes.rows.iter().filter(|charge| charge.cause != Cause::Work).collect();
    let total: u64 = lost.iter().map(|charge| charge.ns).sum();
    let _ = writeln!(out, "  Who is to blame for {} of workers' time lost", format::time(total));
    for charge in lost.iter().take(options.top) {
        let who = format::fit(&charge.who.label(graph), 44);
        let share = format::percent(charge.ns, causes.capacity_ns);
        let _ =
            write!(out, "   {:<12} {who:<44}{:>10}{share:>8}", charge.cause.name(), format::time(charge.ns));
        if let Some(ty) = charge.symptom.and_then(|ty| graph.types.get(ty as usize)) {
            let _ = write!(out, "  seen before or in {}", format::fit(&ty.name, 60));
        }
        out.push('\n');
    }
    if lost.len() > options.top {
        let _ = writeln!(out, "   … and {} more (--top {})", lost.len() - options.top, lost.len());
    }
}
