//! The critical path and the replay: invariants on random graphs, and predictions beside the truth.

use std::path::Path;
use taskscope_analysis::critical_path::{critical_path, slack};
use taskscope_analysis::replay::{CostChange, Costs, replay};
use taskscope_analysis::slo::deciding_inputs;
use taskscope_analysis::span::span;
use taskscope_execution::Cause;
use taskscope_execution::graph::{ActivityKind, GraphBuilder, NONE, NewTask, TaskGraph, TaskType};
use taskscope_import::neutral::read_json;
use taskscope_testkit::dice::seeds;
use taskscope_testkit::task_rows::{Recipe, random};

#[test]
fn steps_tile_the_wall_time() {
    for seed in seeds(1_000) {
        let graph = random(seed, Recipe::SMALL).graph().unwrap();
        let (begin, end) = graph.range();
        let mut now = begin;
        for step in critical_path(&graph) {
            assert_eq!(step.start, now, "seed {seed}");
            assert!(step.end > step.start);
            now = step.end;
        }
        assert_eq!(now, end, "seed {seed}");
    }
}

#[test]
fn the_task_that_ends_last_has_the_slack_of_the_end() {
    for seed in seeds(500) {
        let graph = random(seed, Recipe::SMALL).graph().unwrap();
        let slack = slack(&graph);
        let (_, end) = graph.range();
        let last = graph.tasks.end.iter().max().unwrap();
        assert_eq!(slack.iter().min(), Some(&(end - last)), "seed {seed}");
    }
}

fn wall(graph: &TaskGraph, costs: &Costs, change: &CostChange) -> u64 {
    let replayed = replay(graph, costs, change);
    assert_eq!(replayed.tasks as usize, graph.tasks.len(), "every task is replayed");
    replayed.wall_ns
}

#[test]
fn bounds_hold_and_nothing_is_slower_on_endless_workers() {
    for seed in seeds(500) {
        let graph = random(seed, Recipe::SMALL).graph().unwrap();
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let span = span(&graph, &costs);
        let free = CostChange { runtime: 0.0, network: 0.0, ..CostChange::default() };
        let ideal = wall(&graph, &costs, &free);
        assert!(span.span_ns <= span.burdened_span_ns && span.span_ns <= span.work_ns, "seed {seed}");
        assert!(ideal >= span.lower_bound_ns(graph.workers.len() as u64), "seed {seed}");
        wall(&graph, &costs, &CostChange { workers_per_node: Some(50), ..CostChange::default() });
    }
}

/// A worker loses its CPU for 480 of the 500 ns between two tasks: the rest is the cost of both.
#[test]
fn time_without_a_cpu_is_no_cost_of_a_task() {
    let mut builder = GraphBuilder::new();
    builder.add_worker(0, 0, 0, 1000);
    let ty = builder.add_type(TaskType::default());
    for (id, start) in [(1, 0), (2, 600)] {
        builder.add_task(NewTask::new(id, ty));
        builder.add_piece(0, id, start, start + 100);
    }
    builder.add_activity(0, ActivityKind::OffCpu(Cause::CpuNone), NONE, 100, 580);
    let graph = builder.finish().unwrap();
    let costs = Costs::of(&graph, &deciding_inputs(&graph));
    assert_eq!(span(&graph, &costs).metg_ns(), 10);
}

/// Replay error, and predictions beside the walls that the simulator gave for the changed program.
#[test]
fn predictions_are_near_the_truth() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/slo/cases");
    let Ok(entries) = std::fs::read_dir(beside) else { return };
    let mut errors = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let truth = &value["ground_truth"];
        if truth.is_null() {
            continue;
        }
        let graph = read_json(&text).unwrap().graph;
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        for (key, runtime, network) in [
            ("wall", 1.0, 1.0),
            ("wall_ideal_network", 1.0, 0.0),
            ("wall_zero_overhead", 0.0, 1.0),
            ("wall_ideal_network_zero_overhead", 0.0, 0.0),
        ] {
            let ours = wall(&graph, &costs, &CostChange { runtime, network, ..CostChange::default() });
            let theirs = truth[key].as_u64().unwrap();
            let error = (ours as f64 - theirs as f64) / theirs as f64;
            println!(
                "{:<22} {key:<34} {theirs:>8} predicted {ours:>8}  {:+.1} %",
                value["name"].as_str().unwrap(),
                error * 100.0
            );
            errors.push(error.abs());
        }
    }
    errors.sort_by(f64::total_cmp);
    let (median, high) = (errors[errors.len() / 2], errors[errors.len() * 9 / 10]);
    println!("median error {:.1} %, 90th percentile {:.1} %", median * 100.0, high * 100.0);
    assert!(median <= 0.02 && high <= 0.15, "median {median}, 90th percentile {high}");
}
