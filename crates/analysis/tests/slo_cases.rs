//! Every case of the corpus, if it is beside the repository, and a few of our own.

use serde_json::Value;
use std::path::{Path, PathBuf};
use taskscope_analysis::slo::{Mode, Prepared, Slo, SloOptions};
use taskscope_analysis::{FineNanos, Letter, Shares};
use taskscope_execution::graph::{NONE, TaskGraph};
use taskscope_import::neutral::read_json;

const TOLERANCE_NS: f64 = 1e-3;

fn near(what: &str, ours: FineNanos, theirs: &Value) {
    let theirs = theirs.as_f64().unwrap_or_else(|| panic!("{what}: no number: {theirs}"));
    let ours = ours.raw() as f64 / (1_u64 << 60) as f64;
    assert!((ours - theirs).abs() <= TOLERANCE_NS, "{what}: {ours} instead of {theirs}");
}

fn compare(what: &str, ours: &Shares, theirs: &Value) {
    for (letter, key) in
        [(Letter::Starvation, "starvation"), (Letter::Latency, "latency"), (Letter::Overhead, "overhead")]
    {
        near(&format!("{what} {key}"), ours.get(letter), &theirs[key]);
    }
    assert_eq!(ours.get(Letter::Contention), FineNanos::ZERO);
}

fn check_mode(name: &str, graph: &TaskGraph, slo: &Slo, expected: &Value) {
    let what = format!("{name} {}", slo.mode.name());
    let totals = &expected["totals"];
    compare(&what, &slo.total, totals);
    let whole = |ns: u64| FineNanos::from_nanos(ns as i64);
    near(&what, whole(slo.execution_ns), &totals["execution"]);
    near(&what, whole(slo.drain_ns), &totals["tail_drain"]);
    near(&what, whole(slo.shutdown_ns), &totals["tail_shutdown"]);
    near(&what, whole(slo.capacity_ns), &totals["capacity"]);
    near(&what, FineNanos::from_nanos(slo.total.total()), &totals["idle"]);

    let intervals = expected["intervals"].as_array().unwrap();
    assert_eq!(slo.intervals.len(), intervals.len(), "{what}: number of intervals");
    for (ours, theirs) in slo.intervals.iter().zip(intervals) {
        let at = format!("{what} interval {} of worker {}", theirs["begin"], theirs["worker"]);
        assert_eq!(graph.workers[ours.worker as usize].id, theirs["worker"], "{at}");
        assert_eq!(
            (ours.begin, ours.end),
            (theirs["begin"].as_u64().unwrap(), theirs["end"].as_u64().unwrap())
        );
        assert_eq!(graph.tasks.id[ours.task as usize], theirs["task"], "{at}");
        let id = |row: u32| if row == NONE { Value::Null } else { graph.data.id[row as usize].into() };
        assert_eq!(id(ours.deciding.last_produced), theirs["last_produced"], "{at}");
        assert_eq!(id(ours.deciding.last_arrived), theirs["last_arrived"], "{at}");
        compare(&at, &ours.shares, theirs);
    }
    for (worker, ours) in graph.workers.iter().zip(&slo.by_worker) {
        compare(&format!("{what} worker {}", worker.id), ours, &expected["by_worker"][worker.id.to_string()]);
    }
    for (node, ours) in graph.nodes.iter().zip(&slo.by_node) {
        match &expected["by_node"][node.id.to_string()] {
            Value::Null => assert_eq!(*ours, Shares::default(), "{what}: a node without idle intervals"),
            theirs => compare(&format!("{what} node {}", node.id), ours, theirs),
        }
    }
    for (window, ours) in expected["windows"].as_array().unwrap().iter().zip(&slo.windows) {
        compare(&format!("{what} window {}", window["begin"]), ours, window);
    }
    let mut charges = 0;
    for (letter, key) in
        [(Letter::Starvation, "starvation"), (Letter::Latency, "latency"), (Letter::Overhead, "overhead")]
    {
        let theirs = expected["blame"][key].as_object().unwrap();
        charges += theirs.len();
        for (who, time) in theirs {
            let ours = slo.blame.iter().filter(|b| b.letter == letter && b.who.label(graph) == *who);
            near(&format!("{what} blame {who}"), ours.map(|b| b.time).sum(), time);
        }
    }
    assert_eq!(slo.blame.len(), charges, "{what}: {:?}", slo.blame);
}

fn check_file(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let case = read_json(&text).unwrap_or_else(|errors| panic!("{}: {errors}", path.display()));
    let prepared = Prepared::new(&case.graph);
    for mode in Mode::ALL {
        let options = SloOptions { intervals: true, windows: case.windows.clone(), ..SloOptions::default() };
        let slo = prepared.attribute(mode, &options);
        check_mode(&case.name, &case.graph, &slo, &whole["expected"][mode.name()]);
    }
}

fn case_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json") && !path.ends_with("manifest.json"));
    files.sort();
    files
}

#[test]
fn cases_of_the_corpus_are_met_in_three_modes() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/slo/cases");
    for file in case_files(&beside) {
        check_file(&file);
    }
}

#[test]
fn own_cases_are_met_in_three_modes() {
    let own = case_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"));
    assert!(!own.is_empty());
    for file in own {
        check_file(&file);
    }
}
