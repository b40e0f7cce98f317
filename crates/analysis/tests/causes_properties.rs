//! Properties of every graph's ledger, on many random ones.

use taskscope_analysis::causes::{CauseRow, Causes, book_causes, book_causes_in};
use taskscope_analysis::diagnosis::diagnose;
use taskscope_analysis::replay::Costs;
use taskscope_analysis::slo::{Mode, SloOptions, attribute, deciding_inputs};
use taskscope_analysis::span::span;
use taskscope_analysis::{FineNanos, Letter};
use taskscope_execution::Cause;
use taskscope_execution::graph::{ActivityKind, GraphBuilder, NewTask, TaskGraph, TaskType};
use taskscope_testkit::dice::seeds;
use taskscope_testkit::task_rows::{Recipe, random};

fn check_sums(graph: &TaskGraph, causes: &Causes, what: &str) {
    assert_eq!(causes.by_cause.iter().sum::<u64>(), causes.capacity_ns, "{what}: times");
    assert_eq!(causes.capacity_ns, graph.capacity(), "{what}");
    for (worker, times) in graph.workers.iter().zip(&causes.by_worker) {
        let life = if worker.selected { worker.end - worker.begin } else { 0 };
        assert_eq!(times.iter().sum::<u64>(), life, "{what}: worker {}", worker.id);
    }
    for cause in Cause::ALL {
        let charged: u64 = causes.rows.iter().filter(|c| c.cause == cause).map(|c| c.ns).sum();
        assert_eq!(charged, causes.by_cause[cause as usize], "{what}: {cause:?}");
        let idle: u64 = causes.ready[cause as usize].iter().sum();
        assert_eq!(
            idle,
            if cause.is_in(Cause::Wait) { charged } else { 0 },
            "{what}: ready work in {cause:?}"
        );
    }
    let slow = causes.slow;
    let letters = slow.work_ns + slow.starvation_ns + slow.latency_ns + slow.overhead_ns + slow.contention_ns;
    assert_eq!(letters, causes.capacity_ns, "{what}: SLOW");
    let span = span(graph, &Costs::of(graph, &deciding_inputs(graph)));
    for letter in [Letter::Starvation, Letter::Latency, Letter::Overhead, Letter::Contention] {
        let rows = diagnose(graph, causes, &span).rows.into_iter();
        let sum: u64 = rows.filter(|row| row.letter == letter).map(|row| row.ns).sum();
        let expected = match letter {
            Letter::Starvation => slow.starvation_ns,
            Letter::Latency => slow.latency_ns,
            Letter::Overhead => slow.overhead_ns,
            Letter::Contention => slow.contention_ns,
        };
        assert_eq!(sum, expected, "{what}: situations of {letter:?}");
    }
}

#[test]
fn every_sum_is_exact() {
    for seed in seeds(1_000) {
        let rows = random(seed, Recipe::SMALL);
        let graph = rows.graph().unwrap();
        check_sums(&graph, &book_causes(&graph), &format!("seed {seed}"));
    }
}

/// For some workers the ledger has just their time, in the same causes as in the whole, and so have the three
/// modes.
#[test]
fn a_selection_of_workers_has_exact_sums() {
    for seed in seeds(500) {
        let whole = random(seed, Recipe::SMALL).graph().unwrap();
        let mut part = whole.clone();
        for (row, worker) in part.workers.iter_mut().enumerate() {
            worker.selected = seed >> (row % 8) & 1 == 1;
        }
        let (all, causes) = (book_causes(&whole), book_causes(&part));
        check_sums(&part, &causes, &format!("seed {seed}"));
        let rows = part.workers.iter().zip(all.by_worker.iter().zip(&causes.by_worker));
        for (worker, (expected, times)) in rows.filter(|(worker, _)| worker.selected) {
            assert_eq!(times, expected, "seed {seed}: worker {}", worker.id);
        }
        for mode in Mode::ALL {
            let options = SloOptions { intervals: true, ..SloOptions::default() };
            let (whole_causes, slo) = (attribute(&whole, mode, &options), attribute(&part, mode, &options));
            for (row, worker) in part.workers.iter().enumerate() {
                let expected = if worker.selected { whole_causes.by_worker[row].total() } else { 0 };
                assert_eq!(slo.by_worker[row].total(), expected, "seed {seed}: {mode:?}");
            }
            assert!(slo.intervals.iter().all(|interval| part.workers[interval.worker as usize].selected));
            let sum = slo.execution_ns + slo.drain_ns + slo.shutdown_ns;
            assert_eq!(slo.total.total() + sum as i64, slo.capacity_ns as i64, "seed {seed}: {mode:?}");
            let blamed = slo.blame.iter().map(|row| row.time).fold(FineNanos::ZERO, |sum, time| sum + time);
            let unblamed = slo.total.total() - blamed.rounded();
            assert!(mode != Mode::Root || unblamed.abs() <= 1, "seed {seed}: {unblamed}");
        }
    }
}

/// Without activities of their own, idle workers have the same losses in the ledger as in mode `root`.
#[test]
fn the_slow_view_agrees_with_starvation_latency_overhead() {
    for seed in seeds(500) {
        let rows = random(seed, Recipe { runtime: 0, uniform: 0, ..Recipe::SMALL });
        let graph = rows.graph().unwrap();
        let (causes, slo) = (book_causes(&graph), attribute(&graph, Mode::Root, &SloOptions::default()));
        for letter in [Letter::Starvation, Letter::Latency, Letter::Overhead] {
            let after_tasks = [Cause::Work, Cause::WaitDrain, Cause::WaitEnd];
            let idle = causes.rows.iter().filter(|c| !after_tasks.contains(&c.cause));
            let ns: u64 = idle.filter(|c| c.who.letter() == letter).map(|c| c.ns).sum();
            assert_eq!(FineNanos::from_nanos(ns as i64), slo.total.get(letter), "seed {seed} {letter:?}");
        }
        let time = |cause: Cause| causes.by_cause[cause as usize];
        assert_eq!(
            (time(Cause::WaitDrain), time(Cause::WaitEnd)),
            (slo.drain_ns, slo.shutdown_ns),
            "seed {seed}"
        );
        assert_eq!(time(Cause::Work), slo.execution_ns, "seed {seed}");
    }
}

/// Worker 0 creates in task 1 until 100; task 2, created at 60, starts on worker 1 at 70. Worker 1 waits inside it
/// for a lock from 80 to 95, then ends at 110. Worker 2 never runs a task.
#[test]
fn creation_locks_and_drain_are_distinguished() {
    let mut builder = GraphBuilder::new();
    for worker in 0..3 {
        builder.add_worker(worker, 0, 0, 120);
    }
    let named = |name: &str| TaskType { name: name.to_owned(), ..TaskType::default() };
    let (creates, works) = (builder.add_type(named("creates")), builder.add_type(named("works")));
    builder.add_task(NewTask::new(1, creates));
    builder.add_task(NewTask { created: 60, creator: Some(1), ..NewTask::new(2, works) });
    builder.add_piece(0, 1, 0, 100);
    builder.add_piece(1, 2, 70, 110);
    let lock = builder.add_name("mutex");
    builder.add_lock_wait(1, lock, (creates, taskscope_execution::graph::NONE), 80, 95);
    let section = builder.add_name("create");
    builder.add_activity(0, ActivityKind::Runtime(Cause::Runtime), section, 20, 50);
    let graph = builder.finish().unwrap();
    let causes = book_causes(&graph);
    check_sums(&graph, &causes, "by hand");
    let time = |cause: Cause| causes.by_cause[cause as usize];
    assert_eq!(time(Cause::Work), 70 + 25);
    assert_eq!(time(Cause::Lock), 15);
    assert_eq!(time(Cause::Runtime), 30);
    assert_eq!(time(Cause::WaitCreate), 60);
    assert_eq!(time(Cause::WaitDispatch), 10);
    assert_eq!((time(Cause::WaitDrain), time(Cause::WaitEnd)), (10 + 110, 20 + 10 + 10 - 10));
    let charged = |cause: Cause, who: &str| -> u64 {
        let rows = causes.rows.iter().filter(|c| c.cause == cause && c.who.label(&graph) == who);
        rows.map(|c| c.ns).sum()
    };
    assert_eq!(charged(Cause::WaitCreate, "task creates"), 30);
    assert_eq!(charged(Cause::WaitCreate, "runtime create"), 30);
    assert_eq!(charged(Cause::Lock, "lock mutex, held from creates"), 15);
    // Worker 2 drains throughout: both run from 70 to 100, then worker 0 drains too.
    assert_eq!(charged(Cause::WaitDrain, "task creates"), 70 + 15);
    assert_eq!(charged(Cause::WaitDrain, "task works"), 15 + 2 * 10);
    let lock_row = causes.rows.iter().find(|c| c.cause == Cause::Lock).unwrap();
    assert_eq!(lock_row.symptom, Some(works));
    // While worker 1 waits for the creation of task 2 nothing is ready; then task 2 is, here.
    assert_eq!(causes.ready[Cause::WaitCreate as usize], [0, 0, 60]);
    assert_eq!(causes.ready[Cause::WaitDispatch as usize], [10, 0, 0]);
}

/// Every cause, and every worker's time in it, is the same in a part as in the whole.
#[test]
fn parts_of_a_run_add_up_to_the_whole() {
    for seed in seeds(300) {
        let graph = random(seed, Recipe::SMALL).graph().unwrap();
        let whole = book_causes(&graph);
        let (first, last) = graph.range();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut cuts: Vec<u64> = (0..5)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                first + (random >> 20) % (last - first).max(1)
            })
            .collect();
        cuts.extend([0, u64::MAX]);
        cuts.sort_unstable();
        let parts: Vec<Causes> =
            cuts.windows(2).map(|cut| book_causes_in(&graph, (cut[0], cut[1]))).collect();
        for cause in Cause::ALL {
            let sum: u64 = parts.iter().map(|part| part.by_cause[cause as usize]).sum();
            assert_eq!(sum, whole.by_cause[cause as usize], "seed {seed}, {cause:?} at {cuts:?}");
            for place in 0..3 {
                let sum: u64 = parts.iter().map(|part| part.ready[cause as usize][place]).sum();
                assert_eq!(sum, whole.ready[cause as usize][place], "seed {seed}, {cause:?} ready {place}");
            }
        }
        assert_eq!(parts.iter().map(|part| part.capacity_ns).sum::<u64>(), whole.capacity_ns, "seed {seed}");
        for charge in &whole.rows {
            let of = |charges: &[CauseRow]| -> u64 {
                let same = charges
                    .iter()
                    .filter(|c| (c.cause, c.who, c.symptom) == (charge.cause, charge.who, charge.symptom));
                same.map(|charge| charge.ns).sum()
            };
            let sum: u64 = parts.iter().map(|part| of(&part.rows)).sum();
            assert_eq!(sum, of(&whole.rows), "seed {seed}: {charge:?}");
        }
    }
}
