//! Findings of a profile: its states are the losses, its call paths the culprits.
//!
//! A profile knows the state of every worker-nanosecond, and for each kind of wait the paths charged with it.
//! A finding without blame has the uncharged rest, so the findings sum to the losses. A cause that cannot be
//! refined is an inner node of the tree of causes.

use super::paths::HotPath;
use super::profile_words::{is_stopped, knows_off_cpu, sharing_processes, source_of_profile};
use super::rows::{Findings, Whose};
use crate::call_paths::profile_facts::{states_of, throttling};
use crate::named_finding::NamedFinding;
use crate::verdict::{Total, verdict_on_workers};
use crate::words::{numbered, sentence};
use std::collections::BTreeMap;
use taskscope_analysis::{Confidence, Grain, is_creation, is_outside_team};
use taskscope_cause::{Blamed, Cause, Pattern};
use taskscope_execution::{Group, State, TypeIndex};
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{Marker, Metric, NodeId};

/// Waits with metrics of their own, and the states that each sums to.
const WAITS: [(Marker, &[State]); 11] = [
    (Marker::Barrier, &[State::Barrier]),
    (Marker::JoinBarrier, &[State::JoinBarrier]),
    (Marker::Taskwait, &[State::Taskwait, State::Taskyield]),
    (Marker::TaskwaitDepend, &[State::TaskwaitDepend]),
    (Marker::Taskgroup, &[State::Taskgroup]),
    (Marker::Critical, &[State::CriticalWait]),
    (Marker::Lock, &[State::LockWait]),
    (Marker::Ordered, &[State::OrderedWait]),
    (Marker::Atomic, &[State::AtomicWait]),
    (Marker::Target, &[State::TargetWait]),
    (Marker::Idle, &[State::Idle, State::Paused, State::NotStarted, State::Ended]),
];

/// Cause, blamed party, state and place.
type Key = (Cause, Blamed, State, String);

/// A loss that is being summed.
struct Loss {
    finding: NamedFinding,
    at: Vec<(NodeId, u64)>,
}

/// All findings.
pub(super) fn findings(tree: &CallTree) -> Findings {
    let totals: Vec<(State, u64)> = states_of(&tree.totals)
        .into_iter()
        .filter_map(|(name, ns)| Some((State::named(name)?, ns)))
        .collect();
    let sum_of = |is: &dyn Fn(State) -> bool| -> u64 {
        let of = totals.iter().filter(|(state, _)| is(*state));
        // Damaged files have any number.
        of.fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns))
    };
    let no_cpu_percent = no_cpu_percent(tree, sum_of(&State::is_useful));
    let tree = &tree.without_runtime();
    let constructs = Constructs::of(tree);
    let mut losses: BTreeMap<Key, Loss> = BTreeMap::new();
    for (marker, states) in WAITS {
        let owed: Vec<(State, u64)> =
            states.iter().map(|state| (*state, sum_of(&|other| other == *state))).collect();
        charge(tree, &constructs, marker, &owed, &mut losses);
    }
    for (state, ns) in totals.iter().filter(|(state, _)| !WAITS.iter().any(|(_, all)| all.contains(state))) {
        let (cause, blamed) = match state.group() {
            Group::Useful => continue,
            Group::Runtime => (state.cause(), Blamed::Runtime),
            Group::Start | Group::Sync => (state.cause(), Blamed::Call),
            Group::Off => (state.cause(), Blamed::System),
            Group::Blocked => (state.cause(), Blamed::Code),
            Group::Device => (state.cause(), Blamed::Operation),
            Group::Mutex | Group::Idle | Group::Unknown => (state.cause(), Blamed::Nobody),
        };
        let confidence = if blamed == Blamed::System { Confidence::Medium } else { Confidence::High };
        let loss = add(&mut losses, (cause, blamed, *state, String::new()), confidence);
        loss.finding.ns = loss.finding.ns.saturating_add(*ns);
        loss.finding.victims.add(*state, *ns);
        // Evidence for the place of the time: for regions and tasks the number begun, which cost about the
        // same each.
        let metric = match state {
            State::Blocked => Metric::BLOCKED,
            State::ForkJoin => Metric::REGIONS,
            State::TaskCreation => Metric::TASKS,
            _ => continue,
        };
        loss.at = tree.nodes().map(|node| (node, tree.tree.value(node, metric))).collect();
    }
    let knows_off_cpu = knows_off_cpu(tree);
    let mut rows: Vec<NamedFinding> = Vec::new();
    for loss in losses.into_values() {
        let Loss { mut finding, at } = loss;
        let path = HotPath::of(tree, &at);
        finding.evidence = match finding.state {
            State::ForkJoin if finding.blamed == Blamed::Runtime => path.evidence_of("regions", sum_at(&at)),
            State::TaskCreation => path.evidence_of("tasks", sum_at(&at)),
            _ => path.evidence(finding.ns),
        };
        match finding.blamed {
            Blamed::Runtime if matches!(finding.state, State::ForkJoin | State::TaskCreation) => {
                finding.place = path.place();
            }
            Blamed::Serial => finding.place = path.after("serial code", finding.ns),
            Blamed::Nobody if !knows_off_cpu => finding.confidence = Confidence::Low,
            Blamed::Code if finding.cause == Cause::Blocked => finding.place = path.place(),
            _ => {}
        }
        finding.path = path.steps;
        doubt_code_without_cpu(&mut finding, no_cpu_percent);
        rows.push(finding);
    }
    let runtime_ns = sum_of(&|state| state.group() == Group::Runtime);
    constructs.note_tasks(&mut rows, runtime_ns);
    let (throttled, sharing) = (throttling(&tree.processes), sharing_processes(tree));
    let mut source = source_of_profile(tree, "workers");
    source.waits_in_calls = totals.iter().any(|(state, _)| *state == State::Communication);
    for finding in &mut rows {
        if finding.cause == Cause::CpuNone && is_stopped(tree, 2) {
            finding.pattern = Some(Pattern::Stopped);
        } else if finding.cause == Cause::CpuNone && throttled.is_some() {
            finding.pattern = Some(Pattern::Throttled);
        } else if finding.cause == Cause::CpuNone && sharing.is_some() {
            // A process does not know which of the others had the CPUs.
            finding.cause = Cause::Cpu;
        } else if is_outside_team((finding.cause, finding.blamed), &finding.victims) {
            finding.pattern = Some(Pattern::OutsideTeam);
        }
        finding.text = sentence(finding, &source);
    }
    let rows = numbered(rows, |cause| Some(crate::runtime::adviser_of_profiles(tree, cause)));
    let base_ns = sum_of(&|_| true);
    let starting_ns = sum_of(&|state| state.group() == Group::Start);
    let total = Total {
        capacity_ns: base_ns,
        starting_ns,
        lost_ns: base_ns.saturating_sub(starting_ns).saturating_sub(sum_of(&State::is_useful)),
        unknown_ns: sum_of(&|state| state.group() == Group::Unknown),
    };
    let verdict = verdict_on_workers(total, &rows);
    Findings { verdict, rows, base_ns, whose: Whose::Workers, cpu_time: None }
}

/// Percent of the time of workers with code to run in which they had no CPU for it.
fn no_cpu_percent(tree: &CallTree, useful_ns: u64) -> u64 {
    let useful = State::ALL.into_iter().filter(|state| state.is_useful());
    let without = useful.filter_map(|state| tree.totals.get(&format!("no_cpu.{}", state.name())));
    let without: u128 = without.map(|ns| u128::from(*ns)).sum();
    (without * 100 / (without + u128::from(useful_ns)).max(1)) as u64
}

/// Lowers the confidence in blamed code that often had no CPU: a profile does not know whether others waited then.
fn doubt_code_without_cpu(finding: &mut NamedFinding, percent: u64) {
    let is_of_code = match finding.blamed {
        Blamed::Serial | Blamed::Task | Blamed::Code | Blamed::Creation => finding.cause == Cause::Wait,
        Blamed::Holder => finding.cause == Cause::Lock,
        _ => false,
    };
    let limit = Confidence::of_share(100 - percent.min(100), 100);
    if is_of_code && limit < finding.confidence {
        finding.confidence = limit;
        let doubt = format!(
            "workers had no CPU in {percent} % of the time in which they had code to run: whether others waited for the code is not known"
        );
        finding.evidence = match finding.evidence.as_str() {
            "" => doubt,
            path => format!("{doubt}; {path}"),
        };
    }
}

fn sum_at(at: &[(NodeId, u64)]) -> u64 {
    at.iter().fold(0, |sum, (_, value)| sum.saturating_add(*value))
}

fn add(losses: &mut BTreeMap<Key, Loss>, key: Key, confidence: Confidence) -> &mut Loss {
    losses.entry(key.clone()).or_insert_with(|| {
        let (cause, blamed, state, place) = key;
        let finding = NamedFinding::new((cause, blamed), (state, place), 0, confidence);
        Loss { finding, at: Vec::new() }
    })
}

/// Divides the waiting time of some states among the paths charged with it. Time taken by the system has its
/// own states.
fn charge(
    tree: &CallTree,
    constructs: &Constructs,
    marker: Marker,
    owed: &[(State, u64)],
    losses: &mut BTreeMap<Key, Loss>,
) {
    let sum = owed.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    if sum == 0 {
        return;
    }
    let mut parts = Parts { owed, sum, running: 0, given: vec![0; owed.len()] };
    let metric = if marker == Marker::Idle { Metric::shared(marker) } else { Metric::given(marker) };
    let is_systems = |node| matches!(tree.waits(node), Some(Marker::OutOfCpu | Marker::Oversubscribed));
    let charged = tree.nodes().map(|node| (node, tree.tree.value(node, metric)));
    let charged: Vec<(NodeId, u64)> = charged.filter(|(node, ns)| *ns > 0 && !is_systems(*node)).collect();
    let total: u128 = charged.iter().map(|(_, ns)| u128::from(*ns)).sum();
    let (mut running, mut until) = (0_u128, 0_u64);
    for (node, ns) in charged {
        // A recorder that lost some of its charges, or made them of waits that are not over, has other sums.
        running += u128::from(ns);
        let next = match total <= u128::from(sum) {
            true => running as u64,
            false => (running * u128::from(sum) / total) as u64,
        };
        let ns = std::mem::replace(&mut until, next).abs_diff(next);
        let (key, confidence) = culprit(tree, constructs, node, marker);
        let loss = add(losses, key, confidence);
        loss.finding.ns = loss.finding.ns.saturating_add(ns);
        loss.at.push((node, ns));
        parts.give(ns, &mut loss.finding);
    }
    if until < sum {
        let key = (owed[0].0.cause(), Blamed::Nobody, owed[0].0, String::new());
        let loss = add(losses, key, Confidence::Low);
        loss.finding.ns += sum - until;
        parts.give(sum - until, &mut loss.finding);
    }
}

/// States that one kind of wait sums to: each charge has its part of every one.
struct Parts<'a> {
    owed: &'a [(State, u64)],
    sum: u64,
    running: u64,
    given: Vec<u64>,
}

impl Parts<'_> {
    fn give(&mut self, ns: u64, finding: &mut NamedFinding) {
        self.running += ns;
        let mut rest = ns;
        for (number, (state, state_ns)) in self.owed.iter().enumerate().skip(1) {
            let until = (u128::from(self.running) * u128::from(*state_ns) / u128::from(self.sum)) as u64;
            let part = (until - self.given[number]).min(rest);
            self.given[number] += part;
            rest -= part;
            finding.victims.add(*state, part);
        }
        finding.victims.add(self.owed[0].0, rest);
    }
}

/// The culprit that a node represents, for a kind of wait.
fn culprit(tree: &CallTree, constructs: &Constructs, node: NodeId, wait: Marker) -> (Key, Confidence) {
    let at = tree.waits(node);
    let key = |cause, blamed, state, place: String| (cause, blamed, state, place);
    if at == Some(Marker::Nobody) {
        let state = if wait == Marker::Idle { State::Idle } else { state_of(wait) };
        let (cause, blamed) = match state.group() {
            Group::Mutex => (Cause::Lock, Blamed::Runtime),
            _ => (state.cause(), Blamed::Nobody),
        };
        return (key(cause, blamed, state, String::new()), Confidence::Medium);
    }
    let word = match wait {
        Marker::Critical => "critical",
        Marker::Lock => "lock",
        Marker::Ordered => "ordered",
        Marker::Atomic => "atomic",
        Marker::Target => "target",
        _ => "",
    };
    match (wait, at) {
        (Marker::Target, _) => (
            key(Cause::Device, Blamed::Operation, State::TargetWait, place(tree, node, word)),
            Confidence::High,
        ),
        _ if !word.is_empty() => {
            (key(Cause::Lock, Blamed::Holder, State::LockWait, place(tree, node, word)), Confidence::High)
        }
        (_, Some(Marker::Target)) => {
            let place = place(tree, node, "target");
            (key(Cause::Device, Blamed::Operation, State::TargetWait, place), Confidence::Medium)
        }
        (_, Some(Marker::Runtime)) => {
            let place = construct(tree, node).map(|(label, _)| label.text()).unwrap_or_default();
            (key(Cause::Runtime, Blamed::Runtime, State::Runtime, place), Confidence::Medium)
        }
        (_, Some(marker)) if state_of(marker).group() == Group::Mutex => {
            (key(Cause::Lock, Blamed::Runtime, State::LockWait, String::new()), Confidence::Medium)
        }
        (_, Some(_)) => (key(Cause::Wait, Blamed::Nobody, state_of(wait), String::new()), Confidence::Low),
        (_, None) => match construct(tree, node) {
            Some((label, StepKind::Task)) => {
                (key(Cause::Wait, Blamed::Task, State::Task, label.text()), Confidence::Medium)
            }
            Some((label, _)) => {
                let blamed = if constructs.creates(&label.text()) { Blamed::Creation } else { Blamed::Code };
                (key(Cause::Wait, blamed, State::ImplicitTask, label.text()), Confidence::Medium)
            }
            None => (key(Cause::Wait, Blamed::Serial, State::Serial, String::new()), Confidence::High),
        },
    }
}

/// The state that a wait counts as.
fn state_of(wait: Marker) -> State {
    let row = WAITS.iter().find(|(marker, _)| *marker == wait.metric());
    row.map_or(State::Runtime, |(_, states)| states[0])
}

/// The innermost task or region around a node, the node included.
fn construct(tree: &CallTree, node: NodeId) -> Option<(&Label, StepKind)> {
    let labels = tree.tree.path(node).filter_map(|frame| tree.label_of(frame));
    let mut constructs = labels.filter(|label| matches!(label.what, StepKind::Task | StepKind::Parallel));
    constructs.next().map(|label| (label, label.what))
}

/// A construct without a step of its own, in the words that traces have for it.
fn place(tree: &CallTree, node: NodeId, word: &str) -> String {
    let labels = || tree.tree.path(node).filter_map(|frame| tree.label_of(frame));
    let function =
        labels().find(|label| matches!(label.what, StepKind::Function | StepKind::Task | StepKind::Parallel));
    let Some(function) = function else { return String::new() };
    match labels().find(|label| label.what == StepKind::Line).and_then(Label::place) {
        Some(line) => format!("{} [{word} at {line}]", function.function),
        None => format!("{} [{word}]", function.function),
    }
}

/// Tasks by creating region or task.
#[derive(Default)]
struct Constructs {
    by_creator: BTreeMap<String, Created>,
}

#[derive(Default)]
struct Created {
    tasks: u64,
    body_ns: u64,
    /// Time of the creator's own code.
    own_ns: u64,
    /// The tasks in words, if the samples know their construct.
    name: Option<String>,
}

impl Constructs {
    fn of(tree: &CallTree) -> Constructs {
        let mut all = Constructs::default();
        for node in tree.nodes() {
            let value = |metric| tree.tree.value(node, metric);
            let Some((label, _)) = construct(tree, node) else { continue };
            let own = all.by_creator.entry(label.text()).or_default();
            own.tasks = own.tasks.saturating_add(value(Metric::TASKS));
            own.body_ns = own.body_ns.saturating_add(value(Metric::TASK_TIME));
            let own_ns = value(Metric::WORK).saturating_add(value(Metric::RUNTIME));
            own.own_ns = own.own_ns.saturating_add(own_ns);
            if tree.label(node).is_some_and(|label| label.what == StepKind::Task)
                && let Some((creator, _)) = construct(tree, tree.tree.parent(node))
            {
                all.by_creator.entry(creator.text()).or_default().name = tree.label(node).map(Label::text);
            }
        }
        all
    }

    /// Whether a construct is there to create tasks.
    fn creates(&self, construct: &str) -> bool {
        self.by_creator.get(construct).is_some_and(|row| is_creation(row.tasks, row.own_ns))
    }

    /// Numbers of tasks of findings, and which of these are due to tasks that are too small.
    fn note_tasks(&self, findings: &mut [NamedFinding], runtime_ns: u64) {
        let is_nobody_wait =
            |finding: &NamedFinding| finding.blamed == Blamed::Nobody && finding.cause == Cause::Wait;
        let nobody_ns: u64 = findings
            .iter()
            .filter(|finding| is_nobody_wait(finding))
            .map(|finding| finding.victims.group_ns(Group::Sync))
            .fold(0, u64::saturating_add);
        let tasks = self.by_creator.values().fold(0, |sum: u64, row| sum.saturating_add(row.tasks));
        let cost_ns = runtime_ns.saturating_add(nobody_ns) / tasks.max(1);
        let grains = self.by_creator.iter().filter_map(|(creator, row)| {
            let grain = Grain::from_tasks(TypeIndex::NONE, (row.tasks, row.body_ns), cost_ns)?;
            Some((row.name.clone().unwrap_or_else(|| format!("tasks of {creator}")), grain))
        });
        let largest = grains.max_by_key(|(_, grain)| grain.tasks);
        for finding in findings {
            if finding.blamed == Blamed::Creation {
                finding.tasks_created = self.by_creator.get(&finding.place).map_or(0, |row| row.tasks);
            }
            if let Some((name, grain)) = &largest {
                let is_due = match finding.blamed {
                    Blamed::Task => finding.place == *name,
                    _ => is_nobody_wait(finding) && finding.victims.group_ns(Group::Sync) > 0,
                };
                if is_due {
                    finding.pattern = Some(Pattern::TooFine);
                    (finding.blamed, finding.state) = (Blamed::Task, State::Task);
                    (finding.place, finding.grain) = (name.clone(), Some(*grain));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_profile::{Frame, FrameKind, ROOT, key};

    fn label(what: StepKind, function: &str, line: u32) -> Label {
        let file = Some("a.c".to_owned());
        Label { what, function: function.to_owned(), file, line: Some(line), module: String::new() }
    }

    /// `main` calls `init`, a region with a lock, and a region that creates tasks; waits of all kinds, of which some are charged
    /// to no path.
    fn tree() -> CallTree {
        let mut tree = CallTree::default();
        let main = tree.child(ROOT, FrameKind::User, label(StepKind::Function, "main", 1));
        let init = tree.child(main, FrameKind::User, label(StepKind::Function, "init", 2));
        let even = tree.child(main, FrameKind::Region, label(StepKind::Parallel, "even", 5));
        let line = tree.child(even, FrameKind::User, label(StepKind::Line, "even", 7));
        let make = tree.child(main, FrameKind::Region, label(StepKind::Parallel, "make", 9));
        let task = tree.child(make, FrameKind::Task, label(StepKind::Task, "make", 10));
        let mut at = |node, metric, ns| tree.tree.add(node, metric, ns);
        at(init, Metric::shared(Marker::Idle), 100);
        at(even, Metric::given(Marker::JoinBarrier), 30);
        at(line, Metric::given(Marker::Critical), 50);
        at(make, Metric::given(Marker::Barrier), 20);
        at(make, Metric::TASKS, 40);
        at(make, Metric::WORK, 4000);
        at(make, Metric::TASK_TIME, 40_000_000);
        at(task, Metric::given(Marker::Taskwait), 10);
        let nobody = tree.tree.child(ROOT, Frame::state(Marker::Nobody));
        tree.tree.add(nobody, Metric::given(Marker::Taskwait), 5);
        let system = tree.tree.child(ROOT, Frame::state(Marker::OutOfCpu));
        tree.tree.add(system, Metric::given(Marker::Barrier), 1000);
        let states = [
            ("idle", 60),
            ("not_started", 40),
            ("join_barrier", 33),
            ("critical_wait", 50),
            ("barrier", 20),
            ("taskwait", 15),
            ("out_of_cpu", 1000),
            ("fork_join", 8),
            ("communication", 6),
            ("task", 500),
        ];
        tree.totals = states.map(|(name, ns)| (format!("state.{name}"), ns)).into();
        tree
    }

    #[test]
    fn findings_of_a_profile_sum_to_its_losses() {
        let found = findings(&tree());
        assert_eq!((found.base_ns, found.whose), (1732, Whose::Workers));
        assert_eq!(found.rows.iter().map(|row| row.ns).sum::<u64>(), 1732 - 500);
        for row in &found.rows {
            assert_eq!(row.victims.total(), row.ns, "{row:?}");
            assert!(!row.text.is_empty() && !row.remedy.is_empty(), "{row:?}");
        }
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.cause, row.blamed, row.place.as_str(), row.ns)).collect();
        assert_eq!(
            rows,
            [
                (Cause::CpuNone, Blamed::System, "", 1000),
                (Cause::Wait, Blamed::Serial, "serial code in init, called by main", 100),
                (Cause::Lock, Blamed::Holder, "even [critical at a.c:7]", 50),
                (Cause::Wait, Blamed::Code, "even [parallel at a.c:5]", 30),
                (Cause::Wait, Blamed::Creation, "make [parallel at a.c:9]", 20),
                (Cause::Wait, Blamed::Task, "make [task at a.c:10]", 10),
                (Cause::RuntimeFork, Blamed::Runtime, "", 8),
                (Cause::Mpi, Blamed::Call, "", 6),
                (Cause::Wait, Blamed::Nobody, "", 5),
                (Cause::Wait, Blamed::Nobody, "", 3),
            ]
        );
        let serial = &found.rows[1];
        assert_eq!((serial.victims.get(State::Idle), serial.victims.get(State::NotStarted)), (60, 40));
        assert_eq!(serial.path, ["main", "init"]);
        assert_eq!(found.rows[4].tasks_created, 40);
        assert!(found.verdict.is_some_and(|text| text.contains("are lost; most to other code on the CPUs")));
    }

    /// A fork has the place of most regions; a job's advice is the launcher's.
    #[test]
    fn the_runtime_has_the_place_that_calls_it_most_and_ranks_share_cpus() {
        let mut tree = tree();
        let regions: Vec<NodeId> = tree.nodes().filter(|node| construct(&tree, *node).is_some()).collect();
        tree.tree.add(regions[0], Metric::REGIONS, 90);
        tree.tree.add(*regions.last().unwrap(), Metric::REGIONS, 10);
        let process_facts =
            [(key::HOST, "node"), (key::WORKERS, "2"), (key::CPUS, "2"), (key::CPU_MASK, "03")];
        let process: BTreeMap<String, String> =
            process_facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        tree.processes = vec![process.clone(), process];
        let found = findings(&tree);
        let fork = found.rows.iter().find(|row| row.cause == Cause::RuntimeFork).unwrap();
        assert_eq!(fork.place, "even [parallel at a.c:5]");
        assert_eq!(
            fork.evidence.split("; ").last().unwrap(),
            "90 of 100 regions at main ▸ even [parallel at a.c:5]"
        );
        let cpu = &found.rows[0];
        assert_eq!((cpu.cause, cpu.blamed, cpu.ns), (Cause::Cpu, Blamed::System, 1000));
        assert!(cpu.text.contains("4 workers of 2 processes share 2 CPUs"), "{}", cpu.text);
        assert!(cpu.remedy.contains("fewer processes"), "{}", cpu.remedy);
        assert_eq!(found.rows.iter().map(|row| row.ns).sum::<u64>(), 1732 - 500);
    }

    /// A recorder that charges more than was waited, as for waits that are not over, makes no more losses.
    #[test]
    fn charges_beyond_the_waited_time_are_scaled() {
        let mut tree = tree();
        let node = tree.nodes().nth(2).unwrap();
        tree.tree.add(node, Metric::shared(Marker::Idle), u64::MAX / 2);
        let found = findings(&tree);
        assert_eq!(found.rows.iter().map(|row| row.ns).sum::<u64>(), 1732 - 500);
    }

    /// Tasks with a mean below the overhead per task cause the waits in which no worker is busy.
    #[test]
    fn tasks_that_are_too_small_are_found_in_a_profile() {
        let mut tree = tree();
        let make = tree.nodes().find(|node| tree.tree.value(*node, Metric::TASKS) > 0).unwrap();
        tree.tree.take(make, Metric::TASK_TIME);
        tree.tree.add(make, Metric::TASK_TIME, 140 * 10);
        tree.tree.add(make, Metric::TASKS, 100);
        *tree.totals.get_mut("state.fork_join").unwrap() = 140 * 20;
        let found = findings(&tree);
        let fine = found.rows.iter().find(|row| row.pattern == Some(Pattern::TooFine)).unwrap();
        let grain = fine.grain.unwrap();
        assert_eq!((grain.tasks, grain.mean_ns, grain.cost_ns), (140, 10, 20));
        assert_eq!(fine.place, "make [task at a.c:10]");
    }
    /// Code that has no CPU for most of its time is no sure cause of the waits of others.
    #[test]
    fn code_without_a_cpu_is_doubted() {
        let confidence_of = |no_cpu_ns: u64| {
            let mut tree = tree();
            tree.totals.insert("no_cpu.task".to_owned(), no_cpu_ns);
            let rows = findings(&tree).rows;
            let of = |blamed| rows.iter().find(|row| row.blamed == blamed && row.ns > 6).unwrap();
            assert_eq!(of(Blamed::System).confidence, Confidence::Medium);
            let doubt = "is not known; ";
            assert_eq!(of(Blamed::Serial).evidence.contains(doubt), no_cpu_ns > 300, "{no_cpu_ns}");
            [Blamed::Serial, Blamed::Holder, Blamed::Task].map(|blamed| of(blamed).confidence)
        };
        // Beside 500 ns on a CPU.
        assert_eq!(confidence_of(100), [Confidence::High, Confidence::High, Confidence::Medium]);
        assert_eq!(confidence_of(500), [Confidence::Medium; 3]);
        assert_eq!(confidence_of(2000), [Confidence::Low; 3]);
    }
}
