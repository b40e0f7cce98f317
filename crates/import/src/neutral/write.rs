//! A task graph in the neutral JSON form, which [`super::read_json`] reads back.

use crate::spans::Losses;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use taskscope_execution::graph::{Activity, ActivityKind, NONE, Role, TaskGraph};
use taskscope_execution::{Cause, NO_TIME};

/// Writes a graph, a row a line. Returns what the form cannot hold.
///
/// # Errors
/// If it cannot be written.
pub fn write_json(graph: &TaskGraph, name: &str, out: &mut dyn Write) -> io::Result<Losses> {
    let mut losses = Losses::default();
    let schema = json!(super::json::SCHEMA);
    write!(
        out,
        "{{\"schema\": {schema},\n \"name\": {},\n \"trace\": {{\n  \"time_unit\": \"ns\"",
        json!(name)
    )?;
    table(out, "workers", workers(graph))?;
    let (ran, pieces) = tasks_with_one_piece(graph, &mut losses);
    table(out, "tasks", ran.iter().map(|(task, worker)| task_row(graph, *task, *worker, &pieces)))?;
    let data = (0..graph.data.len()).filter(|row| is_kept(graph, *row, &pieces));
    table(out, "data", data.map(|row| data_row(graph, row)))?;
    table(out, "runtime", activities(graph, &mut losses))?;
    writeln!(out, "\n }}\n}}")?;
    losses.add_many("marks of ends of waits", "the form has values alone", count(&graph.data.synchronises));
    Ok(losses)
}

fn count(flags: &[bool]) -> u64 {
    flags.iter().filter(|flag| **flag).count() as u64
}

fn table(out: &mut dyn Write, name: &str, rows: impl IntoIterator<Item = Value>) -> io::Result<()> {
    write!(out, ",\n  \"{name}\": [")?;
    for (number, row) in rows.into_iter().enumerate() {
        write!(out, "{}\n   {row}", if number == 0 { "" } else { "," })?;
    }
    write!(out, "]")
}

fn workers(graph: &TaskGraph) -> impl Iterator<Item = Value> + '_ {
    graph.workers.iter().map(|worker| {
        let kind = if worker.role == Role::Runtime { "runtime" } else { "worker" };
        let node = graph.nodes[worker.node as usize].id;
        json!({"id": worker.id, "node": node, "begin": worker.begin, "end": worker.end, "kind": kind})
    })
}

/// Task and worker of each piece, in the order of tasks, and the set of these tasks. The form has one piece a task.
fn tasks_with_one_piece(graph: &TaskGraph, losses: &mut Losses) -> (Vec<(u32, usize)>, FxHashSet<u32>) {
    let mut found: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
    for worker in 0..graph.workers.len() {
        for piece in graph.pieces.get(worker) {
            found.entry(piece.task).or_insert((worker, 0)).1 += 1;
        }
    }
    let mut ran = Vec::new();
    for task in 0..graph.tasks.len() as u32 {
        match found.get(&task) {
            Some((worker, 1)) => ran.push((task, *worker)),
            Some(_) => losses.add_many("suspended tasks", "a task of the form runs to its end", 1),
            None => losses.add_many("tasks that never ran", "a task of the form has a worker", 1),
        }
    }
    let tasks = ran.iter().map(|(task, _)| *task).collect();
    (ran, tasks)
}

/// Whether data are initial, or of a task that is kept.
fn is_kept(graph: &TaskGraph, data: usize, tasks: &FxHashSet<u32>) -> bool {
    let producer = graph.data.producer[data];
    producer == NONE || tasks.contains(&producer)
}

fn task_row(graph: &TaskGraph, task: u32, worker: usize, kept: &FxHashSet<u32>) -> Value {
    let (row, tasks) = (task as usize, &graph.tasks);
    let ty = &graph.types[tasks.ty[row] as usize];
    let worker = &graph.workers[worker];
    let inputs = graph.inputs.get(row).iter().filter(|input| is_kept(graph, **input as usize, kept));
    let inputs: Vec<u64> = inputs.map(|input| graph.data.id[*input as usize]).collect();
    let mut members = json!({
        "id": tasks.id[row],
        "type": ty.name,
        "node": graph.nodes[worker.node as usize].id,
        "worker": worker.id,
        "start": tasks.start[row],
        "end": tasks.end[row],
        "inputs": inputs,
    });
    let creator = Some(tasks.creator(row)).filter(|creator| *creator != NONE);
    let numbers = [
        ("runtime_uniform", Some(tasks.uniform(row)).filter(|ns| *ns > 0)),
        ("created", Some(tasks.created(row)).filter(|at| *at != NO_TIME)),
        ("creator", creator.map(|creator| tasks.id[creator as usize])),
        ("ready", Some(tasks.ready(row)).filter(|at| *at != NO_TIME)),
        ("line", Some(u64::from(ty.line)).filter(|line| *line > 0)),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            members[key] = number.into();
        }
    }
    for (key, text) in [("function", &ty.function), ("file", &ty.file)] {
        if !text.is_empty() {
            members[key] = text.as_str().into();
        }
    }
    members
}

fn data_row(graph: &TaskGraph, row: usize) -> Value {
    let data = &graph.data;
    let node = |row: u32| graph.nodes[row as usize].id;
    let mut members = Map::new();
    members.insert("id".to_owned(), data.id[row].into());
    let producer = data.producer[row];
    let producer = (producer != NONE).then(|| graph.tasks.id[producer as usize]);
    members.insert("producer".to_owned(), json!(producer));
    members.insert("produced".to_owned(), data.produced[row].into());
    members.insert("home".to_owned(), node(data.home[row]).into());
    members.insert("bytes".to_owned(), data.bytes[row].into());
    if let Some(name) = graph.names.get(data.name(row) as usize) {
        members.insert("name".to_owned(), name.as_str().into());
    }
    let copies = graph.copies.get(row).iter().map(|copy| {
        let sent = (copy.sent != NO_TIME).then_some(copy.sent);
        json!({"node": node(copy.node), "sent": sent, "arrived": copy.arrived})
    });
    let copies: Vec<Value> = copies.collect();
    if !copies.is_empty() {
        members.insert("copies".to_owned(), copies.into());
    }
    members.into()
}

fn activities(graph: &TaskGraph, losses: &mut Losses) -> Vec<Value> {
    let mut rows = Vec::new();
    for (worker, of) in graph.workers.iter().enumerate() {
        for activity in graph.activities.get(worker) {
            if activity.holder != NONE {
                losses.add_many("holders of locks", "the form has none", 1);
            }
            let kind = kind_of(graph, activity);
            rows.push(json!({"worker": of.id, "start": activity.start, "end": activity.end, "kind": kind}));
        }
    }
    rows
}

/// The kind of an activity: its own name if that is read back as this kind, else that of its cause.
fn kind_of<'g>(graph: &'g TaskGraph, activity: &Activity) -> &'g str {
    let name = graph.names.get(activity.name as usize).map_or("", String::as_str);
    if !name.is_empty() && super::rows::activity_kind(name) == activity.kind {
        return name;
    }
    match activity.kind {
        ActivityKind::LockWait => Cause::Lock.name(),
        ActivityKind::PeerWait => Cause::MpiLate.name(),
        ActivityKind::Communication => Cause::MpiTransfer.name(),
        ActivityKind::Device => Cause::Device.name(),
        ActivityKind::Start => Cause::MpiStart.name(),
        ActivityKind::AbsorbingNoise => Cause::RuntimeNoise.name(),
        ActivityKind::Blocked => Cause::Blocked.name(),
        ActivityKind::Runtime(cause) | ActivityKind::OffCpu(cause) => cause.name(),
    }
}
