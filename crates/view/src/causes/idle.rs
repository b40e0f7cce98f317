//! The section `idle`: starvation, latency, overhead and tail.

use super::{CausesOptions, number};
use crate::format;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use taskscope_analysis::slo::{Interval, Slo, window_times};
use taskscope_analysis::{FineNanos, Letter, Shares};
use taskscope_execution::graph::TaskGraph;

const LETTERS: [(Letter, &str); 3] =
    [(Letter::Starvation, "starvation"), (Letter::Latency, "latency"), (Letter::Overhead, "overhead")];

pub(super) fn json(graph: &TaskGraph, slo: &Slo, options: &CausesOptions) -> Value {
    let mut idle = Map::new();
    idle.insert("mode".into(), slo.mode.name().into());
    insert_shares(&mut idle, &slo.total);
    idle.insert("tail_ns".into(), (slo.drain_ns + slo.shutdown_ns).into());
    idle.insert("tail_drain_ns".into(), slo.drain_ns.into());
    idle.insert("tail_shutdown_ns".into(), slo.shutdown_ns.into());
    idle.insert("idle_ns".into(), slo.total.total().into());
    idle.insert("execution_ns".into(), slo.execution_ns.into());
    idle.insert("capacity_ns".into(), slo.capacity_ns.into());
    let workers = graph.workers.iter().zip(&slo.by_worker).filter(|(worker, _)| worker.selected);
    let by_worker = workers.map(|(worker, row)| (worker.id.to_string(), shares(row)));
    idle.insert("by_worker".into(), Value::Object(by_worker.collect()));
    let by_node = graph.nodes.iter().zip(&slo.by_node).map(|(node, row)| (node.id.to_string(), shares(row)));
    idle.insert("by_node".into(), Value::Object(by_node.collect()));
    let mut blame = Map::new();
    for (letter, name) in LETTERS {
        let rows = named_blame(graph, slo, letter).into_iter().map(|(who, time)| (who, number(time)));
        blame.insert(name.into(), Value::Object(rows.collect()));
    }
    idle.insert("blame".into(), blame.into());
    if !options.windows.is_empty() {
        let rows = options.windows.iter().zip(&slo.windows).map(|((begin, end), row)| {
            let mut window = Map::new();
            window.insert("begin_ns".into(), (*begin).into());
            window.insert("end_ns".into(), (*end).into());
            insert_shares(&mut window, row);
            let times = window_times(graph, within(options.range, (*begin, *end)));
            window.insert("execution_ns".into(), times.execution_ns.into());
            window.insert("tail_ns".into(), times.tail_ns.into());
            window.insert("capacity_ns".into(), times.capacity_ns.into());
            Value::Object(window)
        });
        idle.insert("windows".into(), rows.collect());
    }
    if options.intervals {
        idle.insert("intervals".into(), slo.intervals.iter().map(|row| interval(graph, row)).collect());
    }
    Value::Object(idle)
}

/// A window without what is outside of the range.
fn within(range: (u64, u64), (begin, end): (u64, u64)) -> (u64, u64) {
    let (begin, end) = (begin.max(range.0), end.min(range.1));
    (begin, end.max(begin))
}

fn insert_shares(map: &mut Map<String, Value>, shares: &Shares) {
    for (letter, name) in LETTERS {
        map.insert(format!("{name}_ns"), number(shares.get(letter)));
    }
}

fn shares(row: &Shares) -> Value {
    let mut map = Map::new();
    insert_shares(&mut map, row);
    Value::Object(map)
}

fn interval(graph: &TaskGraph, row: &Interval) -> Value {
    let data = |row: u32| Value::from(graph.data_number(row));
    let mut map = Map::new();
    map.insert("worker".into(), graph.workers[row.worker as usize].id.into());
    map.insert("begin_ns".into(), row.begin.into());
    map.insert("end_ns".into(), row.end.into());
    map.insert("task".into(), graph.tasks.number(row.task as usize).into());
    map.insert("task_process".into(), graph.process_of(row.task).into());
    insert_shares(&mut map, &row.shares);
    map.insert("last_produced".into(), data(row.deciding.last_produced));
    map.insert("last_arrived".into(), data(row.deciding.last_arrived));
    json!(map)
}

/// Culprits of a letter by their names, largest first; types of one name are one row.
fn named_blame(graph: &TaskGraph, slo: &Slo, letter: Letter) -> Vec<(String, FineNanos)> {
    let mut rows: Vec<(String, FineNanos)> = Vec::new();
    for blame in slo.blame.iter().filter(|blame| blame.letter == letter) {
        let label = blame.who.label(graph);
        match rows.iter_mut().find(|(name, _)| *name == label) {
            Some((_, time)) => *time += blame.time,
            None => rows.push((label, blame.time)),
        }
    }
    rows.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    rows
}

pub(super) fn text(graph: &TaskGraph, slo: &Slo, options: &CausesOptions, out: &mut String) {
    let capacity = slo.capacity_ns;
    let mode = slo.mode.name();
    let _ = writeln!(out, "  Idle time, mode {mode} ({} of capacity)", format::Unit::Seconds.show(capacity));
    let mut line = |name: &str, ns: u64| {
        let share = format::percent(ns, capacity);
        let _ = writeln!(out, "   {name:<24}{:>12}{share:>9}", format::time(ns));
    };
    line("executing tasks", slo.execution_ns);
    for (letter, name) in LETTERS {
        line(name, slo.total.get(letter).rounded().max(0) as u64);
    }
    line("tail: others still run", slo.drain_ns);
    line("tail: all tasks done", slo.shutdown_ns);
    windows_text(graph, slo, options, out);
    for (letter, name) in LETTERS {
        let rows = named_blame(graph, slo, letter);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "  {name} is due to");
        for (who, time) in rows.iter().take(options.top) {
            let ns = time.rounded().max(0) as u64;
            let who = format::fit(who, 40);
            let _ = writeln!(out, "   {who:<40}{:>12}{:>9}", format::time(ns), format::percent(ns, capacity));
        }
        if rows.len() > options.top {
            let _ = writeln!(out, "   … and {} more (--top {})", rows.len() - options.top, rows.len());
        }
    }
}

/// A row for each window: its part of the lines above.
fn windows_text(graph: &TaskGraph, slo: &Slo, options: &CausesOptions, out: &mut String) {
    if options.windows.is_empty() {
        return;
    }
    let names = ["executing", "starvation", "latency", "overhead", "tail"];
    let mut line = |name: &str, cells: [String; 5]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        let _ = writeln!(out, "   {name:<22}{cells}");
    };
    line("windows of the run", names.map(str::to_owned));
    let (first, last) = graph.range();
    for ((begin, end), shares) in options.windows.iter().zip(&slo.windows) {
        let (begin, end) = within(options.range, (*begin, *end));
        let times = window_times(graph, (begin, end));
        let [starvation, latency, overhead] =
            LETTERS.map(|(letter, _)| shares.get(letter).rounded().max(0) as u64);
        let cells = [times.execution_ns, starvation, latency, overhead, times.tail_ns].map(format::time);
        let since = |at: u64| format::time(at.min(last).saturating_sub(first));
        line(&format!("{}..{}", since(begin), since(end)), cells);
    }
}
