//! Parts of any execution add up to the whole: by time, and by thread; so do the tables of one analysis along
//! their common keys.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hash::Hash;
use taskscope_analysis::call_paths::{CallPathOptions, profile_of};
use taskscope_analysis::causes::{Causes, book_causes, book_causes_in};
use taskscope_analysis::slo::{Mode, Slo, SloOptions, attribute};
use taskscope_analysis::{Analysis, FineNanos, StateLedger, analyse, book, thread_states};
use taskscope_event::models::samples::{flag, state};
use taskscope_execution::graph::TaskGraph;
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{
    Blamed, Cause, Change, Execution, ExecutionBuilder, Observer, OsSource, OsTimes, Pattern, Place,
    RegionIndex, Section, State, TaskIndex, ThreadIndex,
};
use taskscope_profile::{Frame, Marker, Metric};
use taskscope_testkit::dice::{Dice, seeds};
use taskscope_testkit::graph_names::graph_of;
use taskscope_testkit::script::{Script, any_program};
use taskscope_testkit::task_rows::{Recipe, random};

/// Events of any program: thread, time since the one before, event, payload. Of short times shares are equal more often.
fn any_choices(dice: &mut Dice) -> Vec<(usize, u16, usize, [u8; 16])> {
    let longest = if dice.chance(30) { 3 } else { 50 };
    let event = |dice: &mut Dice| {
        let mut payload = [0; 16];
        payload.iter_mut().for_each(|byte| *byte = dice.next() as u8);
        (dice.below(5) as usize, dice.below(longest) as u16, dice.below(200) as usize, payload)
    };
    (0..dice.between(1, 120)).map(|_| event(dice)).collect()
}

/// Any events on one to four threads, with any times off the CPU.
fn any_execution(dice: &mut Dice) -> Execution {
    any_execution_with(dice, |program| program.play())
}

fn any_execution_with(dice: &mut Dice, play: impl Fn(&Script) -> Execution) -> Execution {
    let threads = dice.between(1, 4) as usize;
    let choices = any_choices(dice);
    let mut execution = play(&any_program(threads, &choices));
    if dice.chance(50) {
        add_any_os_times(dice, &mut execution);
    }
    execution
}

/// Adds times in which threads are blocked or have no CPU.
fn add_any_os_times(dice: &mut Dice, execution: &mut Execution) {
    for thread in 0..execution.threads.len() as u32 {
        let mut times = OsTimes::default();
        let mut at = 1000;
        for _ in 0..dice.below(6) {
            let start = at + dice.below(600);
            at = start + dice.between(1, 200);
            let list = if dice.chance(50) { &mut times.blocked } else { &mut times.runnable };
            list.push((start, at));
        }
        execution.add_os_times(ThreadIndex(thread), OsSource::Switches, times);
    }
    execution.attribute_system_time();
}

/// Ranges that tile all time, with borders in a run.
fn any_ranges(dice: &mut Dice, (first, last): (u64, u64)) -> Vec<(u64, u64)> {
    let mut borders: Vec<u64> = (0..dice.between(1, 4)).map(|_| dice.between(first, last + 1)).collect();
    borders.extend([0, u64::MAX]);
    borders.sort_unstable();
    borders.windows(2).map(|pair| (pair[0], pair[1])).filter(|(begin, end)| begin < end).collect()
}

/// Nanoseconds by key.
struct Sums<K>(FxHashMap<K, i128>);

impl<K: Copy + Eq + Hash + std::fmt::Debug> Sums<K> {
    fn of(rows: impl IntoIterator<Item = (K, u64)>) -> Self {
        let mut sums = FxHashMap::default();
        for (key, ns) in rows {
            *sums.entry(key).or_default() += i128::from(ns);
        }
        Sums(sums)
    }

    /// Checks that parts add up to it, each row.
    fn check<'a>(&self, parts: impl IntoIterator<Item = &'a Self>, what: &str)
    where
        K: 'a,
    {
        let mut sums: FxHashMap<K, i128> = FxHashMap::default();
        for (key, ns) in parts.into_iter().flat_map(|part| &part.0) {
            *sums.entry(*key).or_default() += ns;
        }
        for key in self.0.keys().chain(sums.keys()) {
            let (whole, parts) = (self.0.get(key).unwrap_or(&0), sums.get(key).unwrap_or(&0));
            assert_eq!(whole, parts, "{what}, {key:?}: of the whole, and the sum of the parts");
        }
    }
}

/// The tables of the states.
struct States {
    wall: u64,
    capacity: u64,
    causes: Sums<(State, Place)>,
    by_thread: Sums<(ThreadIndex, State)>,
    starting: Sums<State>,
    charged: Sums<State>,
    culprits: Sums<(taskscope_analysis::Culprit, State)>,
    /// Losses by blame.
    findings: Sums<Blame>,
    /// Further tables: table and column, row.
    tables: Sums<(&'static str, u32)>,
}

/// The cause of a finding, its blame, its pattern, and the state and place of the culprit.
type Blame = (Cause, Blamed, Option<Pattern>, State, Place);

fn findings(analysis: &Analysis) -> Sums<Blame> {
    // Waits of a hang are losses, too.
    let losses = analysis.findings.iter().filter(|finding| finding.hang.is_none());
    Sums::of(losses.map(|of| ((of.cause, of.blamed, of.pattern, of.state, of.place), of.ns)))
}

/// Columns of tables that are sums of the time of threads: efficiency, task types, constructs, locks.
fn tables(analysis: &Analysis) -> Vec<((&'static str, u32), u64)> {
    let e = &analysis.efficiency;
    let mut rows = vec![
        (("useful", 0), e.useful_ns),
        (("cpu_availability", 0), e.cpu_availability_ns),
        (("serialization", 0), e.serialization_ns),
        (("load_balance", 0), e.load_balance_ns),
        (("device_offload", 0), e.device_offload_ns),
        (("blocked", 0), e.blocked_ns),
        (("runtime_overhead", 0), e.runtime_overhead_ns),
        (("unknown", 0), e.unknown_ns),
        (("start", 0), e.start_ns),
    ];
    for ty in &analysis.task_types {
        rows.extend([(("bodies", ty.ty.0), ty.body_ns), (("blocked in bodies", ty.ty.0), ty.blocked_ns)]);
    }
    rows.extend(analysis.works.iter().map(|work| (("worksharing", work.ty.0), work.load.busy_ns)));
    rows.extend(analysis.regions.iter().map(|region| (("regions", region.site.0), region.load.busy_ns)));
    for lock in &analysis.locks {
        rows.extend([
            (("waited", lock.object.0), lock.waited_ns),
            (("unheld", lock.object.0), lock.unheld_ns),
        ]);
        let holders: u64 = lock.holders.iter().map(|holder| holder.ns).sum();
        assert_eq!(holders + lock.unheld_ns, lock.waited_ns, "{lock:?}");
    }
    rows.retain(|(_, ns)| *ns > 0);
    rows
}

fn states(execution: &Execution) -> States {
    let ledger: StateLedger = book(execution);
    let charges = ledger.charges();
    let workers = ledger.threads.iter().filter(|time| time.worker);
    let by_thread: Vec<_> =
        workers.flat_map(|time| time.by_state.iter().map(|(state, ns)| ((time.thread, state), ns))).collect();
    let culprits: Vec<_> = charges
        .iter()
        .flat_map(|charge| charge.by_state.iter().map(|(state, ns)| ((charge.culprit, state), ns)))
        .collect();
    // One analysis: sums by state and place, by thread and by culprit equal those by state alone.
    let total = Sums::of(ledger.by_state.iter());
    total.check([&Sums::of(ledger.causes.iter().map(|cause| (cause.state, cause.ns)))], "causes");
    total.check([&Sums::of(by_thread.iter().map(|((_, state), ns)| (*state, *ns)))], "threads");
    assert_eq!(ledger.by_state.total(), ledger.capacity_ns);
    let charged = Sums::of(culprits.iter().map(|((_, state), ns)| (*state, *ns)));
    for (state, ns) in &charged.0 {
        assert_eq!(total.0.get(state), Some(ns), "{state:?} charged");
    }
    let analysis = analyse(execution).0;
    States {
        wall: ledger.wall_ns,
        capacity: ledger.capacity_ns,
        causes: Sums::of(ledger.causes.iter().map(|cause| ((cause.state, cause.place), cause.ns))),
        by_thread: Sums::of(by_thread),
        starting: Sums::of(ledger.starting.iter()),
        charged,
        culprits: Sums::of(culprits),
        findings: findings(&analysis),
        tables: Sums::of(tables(&analysis)),
    }
}

/// How a run is divided into parts.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Time,
    Threads,
}

fn check_states(by: By, whole: &States, parts: &[States], what: &str) {
    assert_eq!(whole.capacity, parts.iter().map(|part| part.capacity).sum::<u64>(), "{what}: capacity");
    whole.causes.check(parts.iter().map(|part| &part.causes), what);
    whole.by_thread.check(parts.iter().map(|part| &part.by_thread), what);
    whole.starting.check(parts.iter().map(|part| &part.starting), what);
    whole.charged.check(parts.iter().map(|part| &part.charged), what);
    whole.findings.check(parts.iter().map(|part| &part.findings), what);
    if by == By::Time {
        assert_eq!(whole.wall, parts.iter().map(|part| part.wall).sum::<u64>(), "{what}: wall");
    }
    whole.tables.check(parts.iter().map(|part| &part.tables), what);
    whole.culprits.check(parts.iter().map(|part| &part.culprits), what);
}

fn check_tables_of_graph(graph: &TaskGraph, causes: &Causes, what: &str) {
    let total = Sums::of(Cause::ALL.into_iter().zip(causes.by_cause));
    assert_eq!(causes.by_cause.iter().sum::<u64>(), causes.capacity_ns, "{what}: capacity");
    total.check([&Sums::of(causes.rows.iter().map(|c| (c.cause, c.ns)))], what);
    let worker_causes = causes.by_worker.iter().flat_map(|leaves| Cause::ALL.into_iter().zip(*leaves));
    total.check([&Sums::of(worker_causes)], what);
    for cause in Cause::ALL.into_iter().filter(|cause| cause.is_in(Cause::Wait)) {
        let ready: u64 = causes.ready[cause as usize].iter().sum();
        assert_eq!(ready, causes.by_cause[cause as usize], "{what}: ready work in {cause:?}");
    }
    let data_causes = Sums::of(causes.by_data.iter().map(|(_, cause, ns)| (*cause, *ns)));
    for (cause, ns) in data_causes.0 {
        assert!(ns <= i128::from(causes.by_cause[cause as usize]), "{what}: data in {cause:?}");
    }
    let queues: u64 = causes.queues.iter().map(|queue| queue.idle_ns).sum();
    assert_eq!(queues, causes.by_cause[Cause::WaitDispatch as usize], "{what}: queues");
    let slow = causes.slow;
    let letters = slow.work_ns + slow.starvation_ns + slow.latency_ns + slow.overhead_ns + slow.contention_ns;
    assert_eq!(letters, causes.capacity_ns, "{what}: letters");
    assert_eq!(causes.by_worker.len(), graph.workers.len());
}

fn check_graph(whole: &Causes, parts: &[Causes], what: &str) {
    let sum = |of: &dyn Fn(&Causes) -> u64| parts.iter().map(of).sum::<u64>();
    assert_eq!(whole.capacity_ns, sum(&|part| part.capacity_ns), "{what}: capacity");
    type Table = (Vec<((usize, Cause), u64)>, Vec<((Cause, usize), u64)>);
    let tables = |causes: &Causes| -> Table {
        let workers = causes.by_worker.iter().enumerate();
        let by_worker = workers.flat_map(|(worker, leaves)| {
            Cause::ALL.into_iter().zip(*leaves).map(move |(cause, ns)| ((worker, cause), ns))
        });
        let ready = Cause::ALL.into_iter().zip(causes.ready);
        let ready = ready.flat_map(|(cause, row)| {
            row.into_iter().enumerate().map(move |(place, ns)| ((cause, place), ns))
        });
        (by_worker.collect(), ready.collect())
    };
    let part_tables: Vec<_> = parts.iter().map(tables).map(|(a, b)| (Sums::of(a), Sums::of(b))).collect();
    let (by_worker, ready) = tables(whole);
    Sums::of(by_worker).check(part_tables.iter().map(|part| &part.0), what);
    Sums::of(ready).check(part_tables.iter().map(|part| &part.1), what);
    let by_data =
        |causes: &Causes| Sums::of(causes.by_data.iter().map(|(data, cause, ns)| ((*data, *cause), *ns)));
    by_data(whole).check(&parts.iter().map(by_data).collect::<Vec<_>>(), what);
    for (node, queue) in whole.queues.iter().enumerate() {
        assert_eq!(queue.idle_ns, sum(&|part| part.queues[node].idle_ns), "{what}: idle before queue {node}");
    }
    let charges = |causes: &Causes| Sums::of(causes.rows.iter().map(|c| ((c.cause, c.who, c.symptom), c.ns)));
    charges(whole).check(&parts.iter().map(charges).collect::<Vec<_>>(), what);
}

fn check_idle(whole: &Slo, parts: &[Slo], what: &str) {
    let total = |slo: &Slo| (slo.execution_ns, slo.drain_ns, slo.shutdown_ns, slo.capacity_ns);
    let sums = parts
        .iter()
        .map(total)
        .fold((0, 0, 0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2, sum.3 + part.3));
    assert_eq!(sums, total(whole), "{what}: time that is not idle");
    for (worker, shares) in whole.by_worker.iter().enumerate() {
        let mut sum = taskscope_analysis::Shares::default();
        parts.iter().for_each(|part| sum.add(&part.by_worker[worker]));
        assert_eq!(sum, *shares, "{what}: idle time of worker {worker}");
    }
    let blame = |slo: &Slo, who| -> FineNanos {
        slo.blame.iter().filter(|row| row.who == who).map(|row| row.time).sum()
    };
    for row in parts.iter().chain([whole]).flat_map(|part| &part.blame) {
        let sum: FineNanos = parts.iter().map(|part| blame(part, row.who)).sum();
        assert_eq!(sum, blame(whole, row.who), "{what}: {:?}", row.who);
    }
}

fn check_ranges_of_graph(graph: &TaskGraph, ranges: &[(u64, u64)], what: &str) {
    let whole = book_causes(graph);
    check_tables_of_graph(graph, &whole, what);
    let parts: Vec<Causes> = ranges.iter().map(|range| book_causes_in(graph, *range)).collect();
    parts.iter().for_each(|part| check_tables_of_graph(graph, part, what));
    check_graph(&whole, &parts, what);
    for (node, queue) in whole.queues.iter().enumerate() {
        let waits: u64 = parts.iter().map(|part| part.queues[node].wait_ns).sum();
        assert_eq!(waits, queue.wait_ns, "{what}: waits in queue {node}");
    }
    for mode in Mode::ALL {
        let of = |range| attribute(graph, mode, &SloOptions { range, ..SloOptions::default() });
        let parts: Vec<Slo> = ranges.iter().map(|range| of(*range)).collect();
        check_idle(&of((0, u64::MAX)), &parts, &format!("{what}, {mode:?}"));
    }
}

#[test]
fn ranges_of_any_execution_add_up() {
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let whole = any_execution(&mut dice);
        let ranges = any_ranges(&mut dice, whole.range());
        let parts = ranges.iter().map(|(begin, end)| {
            let mut part = whole.clone();
            part.cut(*begin, *end);
            states(&part)
        });
        let what = format!("seed {seed}, {ranges:?}");
        check_states(By::Time, &states(&whole), &parts.collect::<Vec<_>>(), &what);
        check_ranges_of_graph(&graph_of(&whole), &ranges, &what);
    }
}

#[test]
fn threads_of_any_execution_add_up() {
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let whole = any_execution(&mut dice);
        let parts: Vec<Execution> = (0..whole.threads.len())
            .map(|wanted| {
                let mut part = whole.clone();
                let selected: Vec<bool> = (0..whole.threads.len()).map(|thread| thread == wanted).collect();
                part.select(&selected);
                part
            })
            .collect();
        let what = format!("seed {seed}");
        // Constructs have the load of the whole team, for any selected threads.
        let thread_states = |execution: &Execution| {
            let mut states = states(execution);
            states.tables.0.retain(|(table, _), _| !["worksharing", "regions"].contains(table));
            states
        };
        check_states(
            By::Threads,
            &thread_states(&whole),
            &parts.iter().map(thread_states).collect::<Vec<_>>(),
            &what,
        );
        let booked = |execution: &Execution| {
            let graph = graph_of(execution);
            let causes = book_causes(&graph);
            check_tables_of_graph(&graph, &causes, &what);
            (causes, attribute(&graph, Mode::Root, &SloOptions::default()))
        };
        let (causes, slo) = booked(&whole);
        let (part_causes, slo_of_parts): (Vec<_>, Vec<_>) = parts.iter().map(booked).unzip();
        check_graph(&causes, &part_causes, &what);
        check_idle(&slo, &slo_of_parts, &what);
    }
}

/// Any events with samples of the stacks, in the runtime and outside.
fn any_sampled(dice: &mut Dice) -> Execution {
    let threads = dice.between(1, 4) as usize;
    let choices = any_choices(dice);
    let level = |region, task| [Level { first: 0, end: 1, region, task }];
    let code_levels = [
        level(RegionIndex::NONE, TaskIndex::NONE),
        level(RegionIndex(0), TaskIndex::NONE),
        level(RegionIndex(1), TaskIndex(2)),
    ];
    let stacks: Vec<[u64; 2]> = (0..dice.between(1, 60)).map(|_| [dice.below(3), 9]).collect();
    let states = [0, state::BARRIER_EXPLICIT, state::TASKWAIT, state::LOCK, state::OVERHEAD];
    let mut sample = |addresses| NewSample {
        thread: ThreadIndex(dice.below(threads as u64) as u32),
        at: 1000 + dice.below(8000),
        weight_ns: dice.between(1, 500),
        flags: dice.below(2) as u32 * flag::IN_RUNTIME,
        state: if dice.chance(70) { 0 } else { states[dice.below(states.len() as u64) as usize] },
        levels: &code_levels[dice.below(code_levels.len() as u64) as usize][..dice.below(2) as usize],
        addresses,
    };
    let samples: Vec<NewSample<'_>> = stacks.iter().map(|stack| sample(&stack[..])).collect();
    let mut execution = any_program(threads, &choices).play_with_samples(&samples);
    if dice.chance(50) {
        add_any_os_times(dice, &mut execution);
    }
    execution
}

/// Values by path, innermost first, and metric. Regions and tasks count in each part that they are in.
fn values_by_path(execution: &Execution) -> BTreeMap<(Vec<Frame>, Metric), u64> {
    let tree = profile_of(execution, CallPathOptions::default()).0.tree;
    let adds_up = |metric: Metric| ![Metric::REGIONS, Metric::TASKS].contains(&metric);
    let rows = tree.ids().flat_map(|node| {
        let values = tree.values(node).filter(|(metric, value)| adds_up(*metric) && *value > 0);
        let path: Vec<Frame> = tree.path(node).collect();
        values.map(move |(metric, value)| ((path.clone(), metric), value)).collect::<Vec<_>>()
    });
    rows.collect()
}

fn check_paths(whole: &Execution, ranges: &[(u64, u64)], what: &str) {
    let mut sums = BTreeMap::new();
    for (begin, end) in ranges {
        let mut part = whole.clone();
        part.cut(*begin, *end);
        values_by_path(&part).into_iter().for_each(|(row, value)| *sums.entry(row).or_default() += value);
    }
    assert_eq!(sums, values_by_path(whole), "{what}: sums of the parts, and the whole");
}

/// With samples, which divide the time of a place among the paths to it.
#[test]
fn ranges_of_each_sampled_path_add_up() {
    let mut sums: BTreeMap<Metric, u64> = BTreeMap::new();
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let whole = any_sampled(&mut dice);
        let ranges = any_ranges(&mut dice, whole.range());
        check_paths(&whole, &ranges, &format!("seed {seed}, {ranges:?}"));
        values_by_path(&whole)
            .into_iter()
            .for_each(|((_, metric), ns)| *sums.entry(metric).or_default() += ns);
    }
    let wait = Marker::JoinBarrier;
    for metric in [
        Metric::RUNTIME,
        Metric::WAITING,
        Metric::BLOCKED,
        Metric::OUT_OF_CPU,
        Metric::taken(wait),
        Metric::given(wait),
        Metric::shared(wait),
    ] {
        assert!(sums.contains_key(&metric), "{metric:?} in no run");
    }
}

/// Four samples have 25 of 100 ns each.
#[test]
fn a_part_has_the_samples_of_its_time() {
    let mut script = Script::new(1, 0, 100);
    script.fork(0, 0, 1, 1, 1).arrive(0, 100).join(0, 100, 1);
    let addresses = [[0x10], [0x20], [0x10], [0x30]];
    let samples: Vec<NewSample<'_>> = (24..100)
        .step_by(25)
        .zip(&addresses)
        .map(|(at, addresses)| NewSample { at, weight_ns: 25, state: 0, addresses, ..ELSEWHERE })
        .collect();
    let whole = script.play_with_samples(&samples);
    let of = |begin, end| {
        let mut part = whole.clone();
        part.cut(begin, end);
        let rows = values_by_path(&part).into_iter().filter(|((_, metric), _)| *metric == Metric::WORK);
        rows.map(|((path, _), ns)| (path[0].offset, ns)).collect::<Vec<_>>()
    };
    assert_eq!(of(0, 200), [(0x10, 50), (0x20, 25), (0x30, 25)]);
    assert_eq!(of(30, 60), [(0x10, 10), (0x20, 20)]);
    // Shorter than the time between two samples.
    assert_eq!(of(80, 85), [(0x30, 5)]);
}

/// Threads of which samples and the kernel's times are all that is known; the first is the worker.
fn any_without_states(dice: &mut Dice) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    for number in 0..dice.between(1, 4) {
        let thread = builder.add_thread(process, 7 + number as i64);
        let start = 1000 + dice.below(500);
        builder.event(thread, start);
        builder.change(thread, start, Change::Becomes(Section::of(State::Unknown)));
        let mut at = start;
        for _ in 0..dice.below(20) {
            let gap = if dice.chance(80) { 0 } else { dice.below(300) };
            let weight_ns = dice.between(1, 500);
            at += gap + weight_ns;
            let state = if dice.chance(70) { 0 } else { state::OVERHEAD };
            let addresses = &[dice.below(3), 9][..];
            builder.sample(&NewSample { thread, at, weight_ns, state, addresses, ..ELSEWHERE });
        }
        let end = at + dice.below(300);
        builder.event(thread, end);
        builder.change(thread, end, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    add_any_os_times(dice, &mut execution);
    execution
}

/// Nanoseconds of threads that ran, had no CPU and were blocked: by path, and by the kernel.
fn times_without_states(execution: &Execution) -> ([u64; 3], [u64; 3]) {
    let tree = profile_of(execution, CallPathOptions::default()).0.tree;
    let ran = tree.total(Metric::WORK) + tree.total(Metric::RUNTIME);
    let of_paths = [ran, tree.total(Metric::OUT_OF_CPU), tree.total(Metric::BLOCKED)];
    let states = thread_states(execution).into_iter();
    let of_kernel = states
        .fold([0; 3], |sum, row| [sum[0] + row.running_ns, sum[1] + row.no_cpu_ns, sum[2] + row.blocked_ns]);
    (of_paths, of_kernel)
}

/// A page has one set of numbers for a range: those of call paths are the kernel's, in the whole and in each part.
#[test]
fn paths_without_states_have_the_times_of_the_kernel_in_each_part() {
    let mut seen = [0; 3];
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let whole = any_without_states(&mut dice);
        if whole.samples.rows.is_empty() {
            continue;
        }
        let ranges = any_ranges(&mut dice, whole.range());
        let what = format!("seed {seed}, {ranges:?}");
        let (paths, kernel) = times_without_states(&whole);
        assert_eq!(paths, kernel, "{what}");
        for (begin, end) in &ranges {
            let mut part = whole.clone();
            part.cut(*begin, *end);
            let (paths, kernel) = times_without_states(&part);
            assert_eq!(paths, kernel, "{what}: {begin}..{end}");
        }
        check_paths(&whole, &ranges, &what);
        (0..3).for_each(|column| seen[column] += kernel[column]);
    }
    assert!(seen.iter().all(|ns| *ns > 0), "{seen:?}");
}

/// The thread is blocked at 0x10 until 400 and then runs at 0x20; the sample of the blocked time is taken at its end.
#[test]
fn a_part_has_the_place_of_a_sample_that_is_taken_after_it() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let thread = builder.add_thread(process, 7);
    builder.event(thread, 0);
    builder.change(thread, 0, Change::Becomes(Section::of(State::Unknown)));
    for (at, weight_ns, addresses) in [(400, 400, &[0x10]), (450, 50, &[0x20]), (500, 50, &[0x20])] {
        builder.sample(&NewSample { thread, at, weight_ns, state: 0, addresses, ..ELSEWHERE });
    }
    builder.event(thread, 500);
    builder.change(thread, 500, Change::ThreadEnds);
    let mut whole = builder.finish();
    let times = OsTimes { blocked: vec![(0, 390)], runnable: vec![(390, 400)], ..OsTimes::default() };
    whole.add_os_times(thread, OsSource::Switches, times);
    whole.attribute_system_time();
    let of = |begin, end| {
        let mut part = whole.clone();
        part.cut(begin, end);
        let times = values_by_path(&part).into_iter();
        let times = times.filter(|((_, metric), _)| ![Metric::TIME, Metric::SAMPLES].contains(metric));
        times.map(|((path, metric), ns)| (path[0].offset, metric, ns)).collect::<Vec<_>>()
    };
    assert_eq!(of(100, 300), [(0x10, Metric::BLOCKED, 200)]);
    assert_eq!(
        of(380, 420),
        [(0x10, Metric::OUT_OF_CPU, 10), (0x10, Metric::BLOCKED, 10), (0x20, Metric::WORK, 20)]
    );
    assert_eq!(of(420, 500), [(0x20, Metric::WORK, 80)]);
}

/// A sample in a wait that no thread has: the times of all others are where the events have them.
const ELSEWHERE: NewSample<'_> = NewSample {
    thread: ThreadIndex(0),
    at: 0,
    weight_ns: 1,
    flags: 0,
    state: state::TASKGROUP,
    levels: &[Level { first: 0, end: 1, region: RegionIndex::NONE, task: TaskIndex::NONE }],
    addresses: &[0x7777_7777],
};

/// Plays with a sample elsewhere, in a known state of a worker: of time in an unknown one any sample has a share.
fn play_with_paths(program: &Script) -> Execution {
    let execution = program.play();
    let known = execution.workers().find_map(|(thread, row)| {
        let mut spans = row.track.spans();
        let known = spans.find(|span| span.section.state != State::Unknown && span.nanos() > 0)?;
        Some(NewSample { thread, at: known.start, ..ELSEWHERE })
    });
    known.map_or(execution, |sample| program.play_with_samples(&[sample]))
}

/// Without samples of their places.
#[test]
fn ranges_of_each_path_add_up() {
    let mut paths = 0;
    for seed in seeds(200) {
        let mut dice = Dice::new(seed);
        let whole = any_execution_with(&mut dice, play_with_paths);
        let ranges = any_ranges(&mut dice, whole.range());
        check_paths(&whole, &ranges, &format!("seed {seed}, {ranges:?}"));
        paths += values_by_path(&whole).len();
    }
    assert!(paths > 1000, "{paths} paths with times");
}

/// Each of three tasks is created by the one before, and runs when that has ended.
#[test]
fn a_task_has_the_path_of_its_creators_that_ended_before_the_part() {
    let mut script = Script::new(1, 0, 100);
    for (number, address) in [(1, 0x100), (2, 0x200), (3, 0x300), (4, 0x400)] {
        script.site(0, 0, number, address).task_type(0, 0, number, number, "");
    }
    script.fork(0, 5, 1, 4, 1);
    script.create(0, 10, 1, 1);
    for (task, start) in [(1, 20), (2, 40), (3, 60)] {
        script.run(0, start, start + 15, task);
        if task < 3 {
            script.create(0, start + 5, task + 1, task + 1);
        }
    }
    script.arrive(0, 80).join(0, 90, 1);
    let whole = script.play_with_samples(&[NewSample { at: 0, ..ELSEWHERE }]);
    let mut part = whole.clone();
    part.cut(58, 78);
    // Cut twice, tasks have the same paths.
    part.cut(60, 75);
    let of = |execution: &Execution, offset: u64| {
        let rows = values_by_path(execution).into_iter();
        let at = rows.filter(|((path, metric), _)| {
            *metric == Metric::TIME && path.iter().any(|frame| frame.offset + 1 == offset)
        });
        at.map(|((path, _), ns)| (path, ns)).collect::<Vec<_>>()
    };
    assert_eq!(of(&part, 0x300), of(&whole, 0x300));
    let inner: Vec<u64> = of(&part, 0x300)[0].0.iter().map(|frame| frame.offset + 1).collect();
    assert!([0x300, 0x200, 0x100, 0x400].iter().all(|site| inner.contains(site)), "{inner:x?}");
    for at in 1..100 {
        check_paths(&whole, &[(0, at), (at, 101)], &format!("cut at {at}"));
    }
}

/// The lock is taken before the part, in a region.
#[test]
fn waits_across_a_part_are_given_at_the_path_of_the_lock_s_holder() {
    let mut script = Script::new(2, 0, 100);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200);
    script.fork(0, 5, 1, 1, 2).join_team(1, 5, 1, 1, 2);
    script.lock(0, 10, 10, 0xabc, 2).unlock(0, 80, 0xabc);
    script.lock(1, 20, 80, 0xabc, 2).unlock(1, 85, 0xabc);
    script.arrive(0, 90).arrive(1, 90).join(0, 95, 1).depart(1, 95, 1);
    let given = |execution: &Execution| -> BTreeMap<Vec<Frame>, u64> {
        let tree = profile_of(execution, CallPathOptions::default()).0.tree;
        let ns_of = |node| tree.value(node, Metric::given(Marker::Lock));
        let rows = tree.ids().filter(|node| ns_of(*node) > 0);
        rows.map(|node| (tree.path(node).collect::<Vec<Frame>>(), ns_of(node))).collect()
    };
    let mut execution = script.play();
    let whole = given(&execution);
    assert_eq!(whole.values().copied().collect::<Vec<_>>(), [60]);
    execution.cut(30, 60);
    let expected: BTreeMap<Vec<Frame>, u64> = whole.into_keys().map(|path| (path, 30)).collect();
    assert_eq!(given(&execution), expected);
}

/// Imported graphs: data between nodes, runtime work at unknown positions.
#[test]
fn ranges_of_any_graph_add_up() {
    for seed in seeds(200) {
        let graph = random(seed, Recipe::SMALL).graph().unwrap();
        let ranges = any_ranges(&mut Dice::new(seed), graph.range());
        check_ranges_of_graph(&graph, &ranges, &format!("seed {seed}, {ranges:?}"));
    }
}
