//! Invariants of every valid trace, on many random ones.

use taskscope_analysis::slo::{Mode, Prepared, Slo, SloOptions};
use taskscope_analysis::{FineNanos, Letter, Shares};
use taskscope_testkit::dice::{Dice, seeds};
use taskscope_testkit::slo_oracle;
use taskscope_testkit::task_rows::{Recipe, TaskRows, random};

const S: Letter = Letter::Starvation;
const L: Letter = Letter::Latency;
const O: Letter = Letter::Overhead;

fn attribute(rows: &TaskRows, mode: Mode, windows: &[(u64, u64)]) -> Slo {
    let graph = rows.graph().unwrap_or_else(|errors| panic!("{errors:?}"));
    let options = SloOptions { intervals: true, windows: windows.to_vec(), ..SloOptions::default() };
    Prepared::new(&graph).attribute(mode, &options)
}

fn sum(shares: &[Shares]) -> Shares {
    shares.iter().fold(Shares::default(), |mut sum, s| {
        sum.add(s);
        sum
    })
}

fn all_modes(rows: &TaskRows) -> [Slo; 3] {
    Mode::ALL.map(|mode| attribute(rows, mode, &[]))
}

/// Conservation and the addition of windows, in three modes each.
#[test]
fn time_is_conserved_and_windows_add_up() {
    for seed in seeds(1_000) {
        let rows = random(seed, Recipe::SMALL);
        let mut dice = Dice::new(seed);
        let end = rows.end() + 5;
        let mut borders: Vec<u64> = (0..3).map(|_| dice.below(end)).collect();
        borders.extend([0, end]);
        borders.sort_unstable();
        let windows: Vec<(u64, u64)> = borders.windows(2).map(|b| (b[0], b[1])).collect();
        for mode in Mode::ALL {
            let slo = attribute(&rows, mode, &windows);
            let idle = slo.total.total() as u64;
            assert_eq!(
                slo.execution_ns + idle + slo.drain_ns + slo.shutdown_ns,
                slo.capacity_ns,
                "seed {seed}"
            );
            assert_eq!(sum(&slo.windows), slo.total, "seed {seed} {mode:?}: windows");
            assert_eq!(sum(&slo.by_worker), slo.total, "seed {seed} {mode:?}: workers");
            assert_eq!(sum(&slo.by_node), slo.total, "seed {seed} {mode:?}: nodes");
            for interval in &slo.intervals {
                assert_eq!(interval.shares.total() as u64, interval.end - interval.begin, "seed {seed}");
                for letter in [S, L, O] {
                    assert!(
                        interval.shares.get(letter) >= FineNanos::ZERO,
                        "seed {seed} {mode:?}: {interval:?}"
                    );
                }
            }
            for letter in [S, L, O] {
                let charged: FineNanos =
                    slo.blame.iter().filter(|b| b.letter == letter).map(|b| b.time).sum();
                assert_eq!(charged, slo.total.get(letter), "seed {seed} {mode:?}: blame {letter:?}");
            }
        }
    }
}

#[test]
fn modes_are_ordered() {
    for seed in seeds(500) {
        let [direct, chained, root] = all_modes(&random(seed, Recipe::SMALL));
        for ((d, c), r) in direct.intervals.iter().zip(&chained.intervals).zip(&root.intervals) {
            assert!(r.shares.get(S) <= c.shares.get(S) && c.shares.get(S) <= d.shares.get(S), "seed {seed}");
            assert!(c.shares.get(L) == d.shares.get(L) && d.shares.get(L) <= r.shares.get(L), "seed {seed}");
            assert!(d.shares.get(O) <= c.shares.get(O), "seed {seed}");
        }
    }
}

#[test]
fn brute_force_agrees() {
    for seed in seeds(200) {
        let rows = random(seed, Recipe { tasks: 14, longest: 12, ..Recipe::SMALL });
        let graph = rows.graph().unwrap();
        for (mode, oracle) in Mode::ALL.into_iter().zip([
            slo_oracle::Mode::Direct,
            slo_oracle::Mode::Chained,
            slo_oracle::Mode::Root,
        ]) {
            let slo = attribute(&rows, mode, &[]);
            let expected = slo_oracle::attribute(&rows, oracle);
            assert_eq!(slo.intervals.len(), expected.len());
            for (ours, theirs) in slo.intervals.iter().zip(&expected) {
                for (letter, name) in [(S, 's'), (L, 'l'), (O, 'o')] {
                    let ours = ours.shares.get(letter).to_six_decimals();
                    assert!(
                        (ours - theirs.letter(name)).abs() < 1e-5,
                        "seed {seed} {mode:?}: {theirs:?} {ours}"
                    );
                }
            }
            let mut charges = slo_oracle::Cause::new();
            for sums in expected {
                for (key, ns) in sums.by {
                    *charges.entry(key).or_default() += ns;
                }
            }
            for blame in &slo.blame {
                let letter = ['s', 'l', 'o'][blame.letter as usize];
                let theirs = charges.remove(&(letter, blame.who.label(&graph))).unwrap_or(0.0);
                assert!(
                    (blame.time.to_six_decimals() - theirs).abs() < 1e-4,
                    "seed {seed} {mode:?}: {blame:?}"
                );
            }
            assert!(charges.values().all(|ns| *ns < 1e-4), "seed {seed} {mode:?}: not charged: {charges:?}");
        }
    }
}

#[test]
fn shift_and_scale_change_nothing_but_times() {
    for seed in seeds(300) {
        let rows = random(seed, Recipe::SMALL);
        let (mut shifted, mut scaled) = (rows.clone(), rows.clone());
        change_times(&mut shifted, |t| t + 1_234_567, |u| u);
        change_times(&mut scaled, |t| t * 7, |u| u * 7);
        for mode in Mode::ALL {
            let (first, second) = (attribute(&rows, mode, &[]), attribute(&shifted, mode, &[]));
            assert_eq!(first.total, second.total, "seed {seed} {mode:?}");
            assert_eq!(first.blame, second.blame, "seed {seed} {mode:?}");
            let third = attribute(&scaled, mode, &[]);
            for letter in [S, L, O] {
                let (one, seven) = (first.total.get(letter).raw() * 7, third.total.get(letter).raw());
                assert_eq!(one, seven, "seed {seed} {mode:?}");
            }
        }
    }
}

fn change_times(rows: &mut TaskRows, time: impl Fn(u64) -> u64, length: impl Fn(u64) -> u64) {
    for worker in &mut rows.workers {
        (worker.begin, worker.end) = (time(worker.begin), time(worker.end));
    }
    for task in &mut rows.tasks {
        (task.start, task.end, task.uniform) = (time(task.start), time(task.end), length(task.uniform));
    }
    for data in &mut rows.data {
        data.produced = time(data.produced);
        for (_, sent, arrived) in &mut data.copies {
            (*sent, *arrived) = (sent.map(&time), time(*arrived));
        }
    }
    for (_, start, end, _) in &mut rows.runtime {
        (*start, *end) = (time(*start), time(*end));
    }
}

#[test]
fn impossible_causes_are_zero() {
    for seed in seeds(300) {
        let one_node = Recipe { nodes: 1, uniform: 0, runtime: 0, ..Recipe::SMALL };
        let mut rows = random(seed, one_node);
        for data in &mut rows.data {
            data.copies.clear();
            data.produced = if data.producer.is_none() { 0 } else { data.produced };
        }
        for slo in all_modes(&rows) {
            assert_eq!(slo.total.get(L), FineNanos::ZERO, "seed {seed}: no copies, no latency");
        }
        let alone = random(seed, Recipe { nodes: 1, workers: 1, ..Recipe::SMALL });
        if alone.data.iter().all(|d| d.copies.is_empty() && (d.producer.is_some() || d.produced == 0)) {
            for slo in all_modes(&alone) {
                assert_eq!(slo.total.get(S), FineNanos::ZERO, "seed {seed}: one worker");
            }
        }
        for task in &mut rows.tasks {
            task.inputs.clear();
        }
        for slo in all_modes(&rows) {
            assert_eq!(slo.total.get(O), FineNanos::from_nanos(slo.total.total()), "seed {seed}: no data");
        }
    }
}

#[test]
fn a_runtime_interval_moves_starvation_to_overhead_only() {
    for seed in seeds(300) {
        let rows = random(seed, Recipe { uniform: 0, ..Recipe::SMALL });
        let mut dice = Dice::new(seed);
        let mut more = rows.clone();
        let start = dice.below(rows.end());
        let worker = rows.workers[dice.below(rows.workers.len() as u64) as usize].id;
        more.runtime.push((worker, start, start + dice.between(1, 30), "new".into()));
        let (before, after) = (attribute(&rows, Mode::Direct, &[]), attribute(&more, Mode::Direct, &[]));
        assert_eq!(before.total.get(L), after.total.get(L), "seed {seed}");
        assert!(before.total.get(S) >= after.total.get(S), "seed {seed}");
    }
}

#[test]
fn a_later_arrival_moves_overhead_to_latency_only() {
    let mut moved = 0;
    for seed in seeds(500) {
        let rows = random(seed, Recipe { sent: 0, ..Recipe::SMALL });
        let mut later = rows.clone();
        for row in 0..later.data.len() {
            for number in 0..later.data[row].copies.len() {
                let (node, _, arrived) = later.data[row].copies[number];
                let id = later.data[row].id;
                let readers =
                    rows.tasks.iter().filter(|t| t.inputs.contains(&id) && rows.node_of(t.worker) == node);
                let latest = readers.map(|t| t.start).min().unwrap_or(arrived);
                later.data[row].copies[number].2 = latest;
                moved += u32::from(latest > arrived);
            }
        }
        let (before, after) = (attribute(&rows, Mode::Direct, &[]), attribute(&later, Mode::Direct, &[]));
        for (b, a) in before.intervals.iter().zip(&after.intervals) {
            // Another arrival can make another input the last produced one only on a tie of production times.
            if b.deciding.last_produced == a.deciding.last_produced {
                assert_eq!(b.shares.get(S), a.shares.get(S), "seed {seed}");
                assert!(b.shares.get(L) <= a.shares.get(L), "seed {seed}");
            }
        }
    }
    assert!(moved > 100);
}

#[test]
fn inputs_that_do_not_decide_can_go() {
    let mut removed = 0;
    for seed in seeds(300) {
        let mut rows = random(seed, Recipe::SMALL);
        let graph = rows.graph().unwrap();
        let before = attribute(&rows, Mode::Root, &[]);
        for interval in &before.intervals {
            let id = graph.tasks.id[interval.task as usize];
            let task = rows.tasks.iter_mut().find(|t| t.id == id).unwrap();
            let decides = |data: u64| {
                let row = graph.data.id.binary_search(&data).unwrap() as u32;
                row == interval.deciding.last_produced || row == interval.deciding.last_arrived
            };
            let had = task.inputs.len();
            task.inputs.retain(|data| decides(*data));
            removed += had - task.inputs.len();
        }
        assert_eq!(before.total, attribute(&rows, Mode::Root, &[]).total, "seed {seed}");
    }
    assert!(removed > 100);
}
