//! What a page needs before it draws anything: tracks, states, views, the report.

use super::{CounterKind, Page, View};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use taskscope_analysis::Analysis;
use taskscope_execution::{Execution, NO_TIME, Process, RuntimeRole, State, TypeIndex};
use taskscope_session::Session;

/// Name and version of the form.
const SCHEMA: &str = "taskscope-page/1";

pub(super) fn json(page: &Page) -> Value {
    let execution = &page.execution;
    let states = State::ALL
        .iter()
        .map(|state| json!({ "name": state.name(), "label": state.label(), "group": state.group().name() }));
    let ranks = &execution.communication.ranks;
    let rank = |process: usize| ranks.get(&(process as u32)).map(|rank| rank.rank);
    let nodes = nodes(&execution.processes);
    let processes = execution
        .processes
        .iter()
        .enumerate()
        .map(|(index, process)| json!({ "node": nodes[index], "pid": process.pid, "cpus": process.has_cpus, "rank": rank(index) }));
    let tracks = page.listed_tracks().into_iter().map(|track| {
        let thread = &execution.threads[track.index()];
        json!({
            "track": track.0,
            "process": thread.process.0,
            "tid": thread.tid,
            "name": thread.name,
            "kind": thread.kind.name(),
            "role": thread.role.map(RuntimeRole::name),
            "worker": thread.worker,
            "lost_events": thread.lost_events,
        })
    });
    let views = View::ALL.iter().map(|view| json!({ "name": view.name(), "label": view.label() }));
    let counters = CounterKind::all(page).into_iter();
    let counters = counters.map(|kind| json!({ "name": kind.name(), "label": kind.label(page) }));
    let instances = page.instances.iter().map(|instance| {
        json!({
            "finding": instance.finding,
            "track": instance.thread.0,
            "start": page.since_start(instance.start),
            "end": page.since_start(instance.end),
        })
    });
    json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "start_ns": page.start().to_string(),
        "length_ns": page.length(),
        "states": states.collect::<Vec<_>>(),
        "processes": processes.collect::<Vec<_>>(),
        "tracks": tracks.collect::<Vec<_>>(),
        "views": views.collect::<Vec<_>>(),
        "counters": counters.collect::<Vec<_>>(),
        "devices": page.queues.json(),
        "instances": instances.collect::<Vec<_>>(),
        "histograms": page.histograms,
        "critical_path": page.critical_path,
        "clocks": page.clocks,
        "report": page.report,
    })
}

/// Tasks beyond which the critical path is only computed when `report --section path` asks for it.
const TASKS_OF_A_PATH: usize = 1_000_000;
/// Steps of it that are drawn.
const STEPS: usize = 2000;

/// The critical path with its longest steps in the order of time and the time when it begins; null where there is
/// none. All steps tile its time; where only the longest are listed, `steps_in_all` says how many there are.
pub(super) fn critical_path(session: &Session) -> Value {
    let tasks = session.execution.tasks.len();
    if tasks > TASKS_OF_A_PATH {
        let why = format!("the run has more than {} tasks", crate::format::count(TASKS_OF_A_PATH as u64));
        return json!({ "not_computed": why });
    }
    let graph = if tasks > 0 { session.task_graph().ok() } else { None };
    let Some((graph, _)) = graph else { return Value::Null };
    let mut path = json!(crate::causes::critical_path(&graph, STEPS));
    path["begin_ns"] = graph.range().0.into();
    path
}

/// The node of each process. That of CPUs, which are of no process, is that of one that uses them.
fn nodes(processes: &[Process]) -> Vec<String> {
    let node = |of: &Process| {
        let user = processes.iter().find(|process| !process.has_cpus && process.loom == of.loom);
        node_of(&of.loom, user.filter(|_| of.has_cpus).unwrap_or(of).pid)
    };
    processes.iter().map(node).collect()
}

/// The node of a loom: runtimes name looms `node.pid` or `node`.
fn node_of(loom: &str, pid: i64) -> String {
    let name = loom.strip_prefix("loom.").unwrap_or(loom);
    let node = name.strip_suffix(&pid.to_string()).and_then(|rest| rest.strip_suffix('.')).unwrap_or(name);
    if node.is_empty() { "this node".to_string() } else { node.to_string() }
}

/// Body times of each task type, in the order of the report's: classes of a quarter octave, each
/// with its lower limit in nanoseconds and the number of tasks in it.
pub(super) fn histograms(execution: &Execution, analysis: &Analysis) -> Vec<Vec<(u64, u64)>> {
    let shown = analysis.task_types.iter().map(|row| row.ty).zip(0..);
    let rows: FxHashMap<TypeIndex, usize> = shown.collect();
    let mut classes = vec![[0_u64; CLASSES]; rows.len()];
    // A task mostly is of the type of the one before.
    let mut last = (TypeIndex::NONE, rows.get(&TypeIndex::NONE).copied());
    let begun = execution.tasks.began.iter().zip(&execution.tasks.ty).zip(&analysis.body_times);
    for ((_, ty), ns) in begun.filter(|((began, _), _)| **began != NO_TIME) {
        if last.0 != *ty {
            last = (*ty, rows.get(ty).copied());
        }
        if let Some(row) = last.1 {
            classes[row][quarter_octave(*ns) as usize] += 1;
        }
    }
    let counted = |classes: &[u64; CLASSES]| {
        let rows = classes.iter().enumerate().filter(|(_, count)| **count > 0);
        rows.map(|(class, count)| (lower_limit(class as u32), *count)).collect()
    };
    classes.iter().map(counted).collect()
}

/// Classes of times of 64 bits.
const CLASSES: usize = 252;

/// The class of a time: its power of two and the two bits below.
fn quarter_octave(ns: u64) -> u32 {
    if ns < 4 {
        return ns as u32;
    }
    let power = ns.ilog2();
    4 * (power - 1) + ((ns >> (power - 2)) & 3) as u32
}

fn lower_limit(class: u32) -> u64 {
    if class < 4 { u64::from(class) } else { u64::from(4 + class % 4) << (class / 4 - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_times_start_at_their_lower_limits() {
        assert_eq!(quarter_octave(u64::MAX) as usize + 1, CLASSES);
        for ns in (0..5000).chain([1 << 40, (1 << 40) + (1 << 38), u64::MAX]) {
            let class = quarter_octave(ns);
            assert!(lower_limit(class) <= ns, "{ns}");
            assert!(class == quarter_octave(u64::MAX) || lower_limit(class + 1) > ns, "{ns}");
        }
    }

    #[test]
    fn nodes_are_told_from_looms() {
        assert_eq!(node_of("loom.host.1.77", 77), "host.1");
        assert_eq!(node_of("host", 77), "host");
        assert_eq!(node_of("", 77), "this node");
    }

    #[test]
    fn cpus_are_on_the_node_of_those_who_use_them() {
        let process = |loom: &str, pid, has_cpus| Process {
            loom: loom.into(),
            pid,
            has_cpus,
            first: 0,
            last: 0,
            cpus: None,
        };
        let processes =
            [process("loom.vm.8", 8, false), process("loom.vm.8", 0, true), process("loom.vm.9", 9, false)];
        assert_eq!(nodes(&processes), ["vm", "vm", "vm"]);
    }
}
