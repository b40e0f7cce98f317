//! A profile as tables: its call tree with the numbers of each step, and the sums of the run.
//!
//! It has no times, so tables of sections, tasks and waits have no rows of it; `ledger` has the workers' time by state, `counter` all sums.

use crate::data_set::{DataSet, Next};
use crate::error::TableError;
use crate::rows::Value;
use std::collections::BTreeMap;
use taskscope_execution::State;
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, NodeId, Process, ROOT, key};

/// A profile that is exported.
pub struct ProfileRun<'a> {
    /// Name of the profile.
    pub source: &'a str,
    /// Its paths with names, its processes and sums.
    pub tree: &'a CallTree,
    /// Its rows of waits of threads for each other, which the tables do not hold.
    pub thread_waits: usize,
}

/// Prefix of the names of sums by state.
const BY_STATE: &str = "state.";

/// Writes the tables of a profile, as the next run of the data set. Returns its number.
///
/// # Errors
/// If a file cannot be written.
pub fn write_profile(set: &mut DataSet, run: &ProfileRun<'_>) -> Result<u32, TableError> {
    let first = set.next;
    let processes = &run.tree.processes;
    let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
    for process in processes {
        let new = first.node + nodes.len() as u32;
        nodes.entry(word(process, key::HOST)).or_insert(new);
    }
    set.next.run += 1;
    set.next.process += processes.len().max(1) as u32;
    set.next.node += nodes.len().max(1) as u32;
    set.next.path += run.tree.tree.len() as u64;
    set.summary.runs.push(run.source.to_owned());
    run_row(set, run, first)?;
    for (row, process) in (0..).zip(processes) {
        set.push(
            "process",
            [
                (first.process + row).into(),
                first.run.into(),
                nodes.get(word(process, key::HOST)).copied().into(),
                word(process, key::HOST).into(),
                number(process, key::PID).unwrap_or(0).into(),
                number(process, key::RANK).into(),
                0_u64.into(),
                number(process, key::WALL_NS).unwrap_or(0).into(),
            ],
        )?;
    }
    sums(set, run, first.run)?;
    paths(set, run, first)?;
    if run.thread_waits > 0 {
        let lost = run.thread_waits;
        set.summary.losses.push(format!("run {}: {lost} sums of waits of threads for each other", first.run));
    }
    Ok(first.run)
}

fn word<'a>(process: &'a Process, key: &str) -> &'a str {
    process.get(key).map_or("", String::as_str)
}

fn number(process: &Process, key: &str) -> Option<u64> {
    process.get(key)?.parse().ok()
}

fn run_row(set: &mut DataSet, run: &ProfileRun<'_>, first: Next) -> Result<(), TableError> {
    let (processes, totals) = (&run.tree.processes, &run.tree.totals);
    let of_all = |key: &'static str| processes.iter().filter_map(move |process| number(process, key));
    let total = |name: &str| totals.get(name).copied().unwrap_or(0);
    let head = processes.first();
    set.push(
        "run",
        [
            first.run.into(),
            run.source.into(),
            head.map_or("", |process| word(process, key::COMMAND)).into(),
            head.map_or("", |process| word(process, key::HOST)).into(),
            of_all(key::START_UNIX_NS).min().into(),
            0_u64.into(),
            total(key::WALL_NS).into(),
            total("capacity_ns").into(),
            of_all(key::WORKERS).sum::<u64>().into(),
            processes.iter().all(|process| word(process, key::FINISHED) != "no").into(),
            0_u64.into(),
            of_all(key::LOST_SAMPLES).sum::<u64>().into(),
            Value::Null,
            "".into(),
        ],
    )
}

/// The sums of the run, and those by state with their causes.
fn sums(set: &mut DataSet, run: &ProfileRun<'_>, number: u32) -> Result<(), TableError> {
    for (name, value) in &run.tree.totals {
        set.push("counter", [number.into(), Value::Null, name.as_str().into(), (*value).into()])?;
        let state = name.strip_prefix(BY_STATE);
        let state = state.and_then(|name| State::ALL.iter().copied().find(|state| state.name() == name));
        if let Some(state) = state.filter(|_| *value > 0) {
            let (cause, state) = (state.cause().name().into(), state.name().into());
            set.push("ledger", [number.into(), "state".into(), Value::Null, cause, state, (*value).into()])?;
        }
    }
    Ok(())
}

fn paths(set: &mut DataSet, run: &ProfileRun<'_>, first: Next) -> Result<(), TableError> {
    let tree = &run.tree.tree;
    let path = |node: NodeId| first.path + u64::from(node.0);
    let mut depths = vec![0_u32];
    for node in std::iter::once(ROOT).chain(tree.ids()) {
        let (frame, parent) = (tree.frame(node), tree.parent(node));
        let depth = if node == ROOT { 0 } else { depths.get(parent.0 as usize).map_or(0, |depth| depth + 1) };
        if node != ROOT {
            depths.push(depth);
        }
        let label = run.tree.label_of(frame);
        // Of a wait, the line that waits.
        let place = label.or_else(|| run.tree.place_of(frame));
        set.push(
            "call_path",
            [
                path(node).into(),
                first.run.into(),
                (node != ROOT).then(|| path(parent)).into(),
                depth.into(),
                kind(node, label.map(|label| label.what)).into(),
                run.tree.text_of(frame).as_str().into(),
                place.map_or("", |label| label.function.as_str()).into(),
                place.and_then(|label| label.file.as_deref()).unwrap_or("").into(),
                place.and_then(|label| label.line).into(),
                place.map_or("", |label| label.module.as_str()).into(),
                (frame.kind == FrameKind::Runtime).into(),
            ],
        )?;
        let mut values: Vec<_> = tree.values(node).filter(|(_, value)| *value > 0).collect();
        values.sort_unstable_by_key(|(metric, _)| metric.0);
        for (metric, value) in values {
            let name = metric.name().map_or_else(|| format!("metric {}", metric.0), |name| name.to_string());
            set.push("call_path_value", [path(node).into(), name.as_str().into(), value.into()])?;
        }
    }
    Ok(())
}

fn kind(node: NodeId, step: Option<StepKind>) -> &'static str {
    match step {
        _ if node == ROOT => "run",
        None => "state",
        Some(StepKind::Function) => "function",
        Some(StepKind::Parallel) => "parallel",
        Some(StepKind::Task) => "task",
        Some(StepKind::Loop) => "loop",
        Some(StepKind::Line) => "line",
        Some(StepKind::Unknown | StepKind::NoPath) => "unknown",
    }
}
