//! The numbers of a run that two runs are compared by, and the comparison.

use crate::CallPaths;
use crate::call_paths::profile_facts::states_of;
use crate::findings::{Findings, Whose};
use crate::named_finding::NamedFinding;
use crate::report_rows::FACTORS;
use std::collections::{BTreeMap, BTreeSet};
use taskscope_analysis::Analysis;
use taskscope_analysis::causes::book_causes;
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;
use taskscope_execution::{OsSource, State, TypeIndex};
use taskscope_profile::{Profile, key};
use taskscope_session::Session;

/// The kind of a number; its order is the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberGroup {
    /// Totals of the run, nanoseconds.
    Run,
    /// Nanoseconds by cause.
    Cause,
    /// Factors, shares of 1.
    Efficiency,
    /// Worker-nanoseconds by finding.
    Finding,
    /// Mean nanoseconds of a task of a type.
    TaskType,
}

impl NumberGroup {
    pub(crate) const ALL: [NumberGroup; 5] = [
        NumberGroup::Run,
        NumberGroup::Cause,
        NumberGroup::Efficiency,
        NumberGroup::Finding,
        NumberGroup::TaskType,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            NumberGroup::Run => "run",
            NumberGroup::Efficiency => "efficiency",
            NumberGroup::Cause => "cause",
            NumberGroup::Finding => "finding",
            NumberGroup::TaskType => "task_type",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            NumberGroup::Run => "The run",
            NumberGroup::Efficiency => "Efficiency",
            NumberGroup::Cause => "Time by cause",
            NumberGroup::Finding => "Findings",
            NumberGroup::TaskType => "Mean task of a type",
        }
    }

    /// A number of this group in words.
    pub(crate) fn label(self, name: &str) -> String {
        let words = match self {
            NumberGroup::Run => RUN_LABELS.iter().find(|(key, _)| *key == name).map(|(_, label)| *label),
            NumberGroup::Efficiency => FACTORS.iter().find(|(key, _)| *key == name).map(|(_, label)| *label),
            NumberGroup::Cause => Cause::named(name).map(Cause::label),
            NumberGroup::Finding | NumberGroup::TaskType => None,
        };
        words.unwrap_or(name).to_owned()
    }
}

/// Numbers of the whole run in words.
const RUN_LABELS: [(&str, &str); 5] = [
    ("wall_ns", "wall time"),
    ("capacity_ns", "capacity (worker-time)"),
    ("lost_ns", "lost worker-time"),
    ("threads_ns", "thread-time"),
    ("queues_ns", "queue-time"),
];

/// A non-numeric property of a run: two runs that differ in one are hard to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The program and its arguments.
    Command,
    /// The kind of recording: a trace, a profile, samples alone, device queues alone, a task graph.
    Mode,
    /// The host.
    Host,
    /// Variables of the environment that set up runtimes and libraries.
    Settings,
    /// The runtime that schedules the work.
    Runtime,
    /// Number of processes.
    Processes,
    /// Number of workers.
    Workers,
    /// CPUs that the processes may use.
    Cpus,
    /// The source of off-CPU times.
    OffCpu,
    /// The part of the run.
    Part,
}

impl Fact {
    pub(crate) const ALL: [Fact; 10] = [
        Fact::Command,
        Fact::Mode,
        Fact::Host,
        Fact::Settings,
        Fact::Runtime,
        Fact::Processes,
        Fact::Workers,
        Fact::Cpus,
        Fact::OffCpu,
        Fact::Part,
    ];

    /// The name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Fact::Command => "command",
            Fact::Mode => "mode",
            Fact::Host => "host",
            Fact::Settings => "settings",
            Fact::Runtime => "runtime",
            Fact::Processes => "processes",
            Fact::Workers => "workers",
            Fact::Cpus => "cpus",
            Fact::OffCpu => "off_cpu",
            Fact::Part => "part",
        }
    }

    /// The words in text.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Fact::Cpus => "CPUs allowed",
            Fact::OffCpu => "times off the CPU",
            Fact::Part => "part of the run",
            fact => fact.name(),
        }
    }
}

/// The detail of a source of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Source {
    /// States of workers, with events.
    #[default]
    Events,
    /// States of workers, summed while the program ran.
    Profile,
    /// Threads and samples.
    Samples,
    /// Device queues.
    Queues,
    /// Tasks, their dependences and their data.
    Graph,
}

impl Source {
    const fn name(self) -> &'static str {
        match self {
            Source::Events => "trace",
            Source::Profile => "profile",
            Source::Samples => "samples alone",
            Source::Queues => "device queues alone",
            Source::Graph => "task graph",
        }
    }

    /// The finest cause that sources without a task graph can distinguish.
    pub(crate) fn state_cause(cause: Cause) -> Cause {
        if State::ALL.iter().any(|state| state.cause() == cause) { cause } else { cause.category() }
    }
}

/// The numbers of one run, and the facts about it that are known.
#[derive(Clone, Debug, Default)]
pub struct RunNumbers {
    pub(crate) numbers: BTreeMap<(NumberGroup, String), f64>,
    /// Findings in words, by their names.
    pub(crate) labels: BTreeMap<String, String>,
    /// Names of findings whose time is all blocked, also by locks, wakes and sleep.
    pub(crate) blocked: BTreeSet<String>,
    pub(crate) causes: BTreeMap<Cause, f64>,
    /// Names of the run's constructs, with their lines: `main [task at sim.c:21]`.
    pub(crate) constructs: BTreeSet<String>,
    pub(crate) facts: BTreeMap<Fact, String>,
    pub(crate) source: Source,
}

impl RunNumbers {
    /// Collects the numbers of a recorded run.
    pub fn from_session(session: &Session, analysis: &Analysis) -> RunNumbers {
        let mut numbers = RunNumbers::default();
        let (ledger, efficiency) = (&analysis.ledger, &analysis.efficiency);
        let findings = Findings::of(session, analysis);
        numbers.put_facts_of(session);
        match findings.whose {
            Whose::Workers => {
                numbers.put(NumberGroup::Run, "wall_ns", ledger.wall_ns as f64);
                numbers.put(NumberGroup::Run, "capacity_ns", ledger.capacity_ns as f64);
                numbers.put(NumberGroup::Run, "lost_ns", (ledger.capacity_ns - efficiency.useful_ns) as f64);
                let factors = [
                    ("parallel", efficiency.parallel),
                    ("cpu_availability", efficiency.cpu_availability),
                    ("load_balance", efficiency.load_balance),
                    ("serialization", efficiency.serialization),
                    ("device_offload", efficiency.device_offload),
                    ("blocked", efficiency.blocked),
                    ("runtime_overhead", efficiency.runtime_overhead),
                ];
                for (name, share) in factors {
                    numbers.put(NumberGroup::Efficiency, name, share);
                }
                for (state, ns) in ledger.by_state.iter() {
                    numbers.put_cause(state.cause(), ns);
                }
                numbers.fact(Fact::Workers, ledger.workers.to_string());
            }
            whose => {
                let (first, last) = session.devices.range();
                let is_of_queues = whose == Whose::Queues;
                numbers.source = if is_of_queues { Source::Queues } else { Source::Samples };
                let wall = if is_of_queues { last - first } else { ledger.wall_ns };
                numbers.put(NumberGroup::Run, "wall_ns", wall as f64);
                numbers.put(NumberGroup::Run, &format!("{}_ns", whose.name()), findings.base_ns as f64);
                for finding in &findings.rows {
                    numbers.put_cause(finding.cause, finding.ns);
                }
            }
        }
        numbers.fact(Fact::Mode, numbers.source.name().to_owned());
        numbers.put_findings(&findings);
        numbers.put_constructs(session);
        // Each process has its own types, of the same names.
        let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in analysis.task_types.iter().filter(|row| row.began > 0) {
            let (ns, tasks) = types.entry(session.places.type_name(row.ty)).or_default();
            *ns += row.body_ns;
            *tasks += row.began;
        }
        for (name, (ns, tasks)) in types {
            numbers.put(NumberGroup::TaskType, &name, (ns / tasks) as f64);
        }
        numbers
    }

    /// Whether time blocked in code of the program is separated from work.
    pub(crate) fn knows_blocked(&self) -> bool {
        let is_known = |how: &String| !how.split(", ").any(|how| how == "none" || how == "unknown");
        match self.source {
            Source::Events | Source::Profile => self.facts.get(&Fact::OffCpu).is_some_and(is_known),
            Source::Samples | Source::Queues | Source::Graph => true,
        }
    }

    /// Collects the numbers of a profile.
    pub fn from_profile(paths: &CallPaths) -> RunNumbers {
        let mut numbers = RunNumbers { source: Source::Profile, ..RunNumbers::default() };
        let tree = &paths.tree;
        let findings = Findings::from_profile(paths);
        numbers.put(NumberGroup::Run, "wall_ns", tree.totals.get(key::WALL_NS).copied().unwrap_or(0) as f64);
        let base = findings.base_ns;
        if findings.whose == Whose::Workers {
            let lost = findings.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.ns));
            numbers.put(NumberGroup::Run, "capacity_ns", base as f64);
            numbers.put(NumberGroup::Run, "lost_ns", lost as f64);
            let states = states_of(&tree.totals);
            let start = states.iter().find(|(name, _)| *name == State::MpiStart.name());
            let counted = base.saturating_sub(start.map_or(0, |(_, ns)| *ns));
            let parallel = base.saturating_sub(lost) as f64 / counted.max(1) as f64;
            numbers.put(NumberGroup::Efficiency, "parallel", parallel);
            for (name, ns) in states {
                if let Some(state) = State::named(name) {
                    numbers.put_cause(state.cause(), ns);
                }
            }
        } else {
            numbers.put(NumberGroup::Run, &format!("{}_ns", findings.whose.name()), base as f64);
            for finding in &findings.rows {
                numbers.put_cause(finding.cause, finding.ns);
            }
        }
        numbers.put_findings(&findings);
        let all = |key: &str| {
            let mut values: Vec<&String> =
                tree.processes.iter().filter_map(|process| process.get(key)).collect();
            values.dedup();
            values.into_iter().take(4).map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let workers = tree.processes.iter().filter_map(|process| Profile::number(process, key::WORKERS));
        numbers.fact(Fact::Command, all(key::COMMAND));
        numbers.fact(Fact::Mode, Source::Profile.name().to_owned());
        numbers.fact(Fact::Host, all(key::HOST));
        numbers.fact(Fact::Runtime, crate::runtime::profile_runtime(tree).name().to_owned());
        numbers.fact(Fact::Processes, tree.processes.len().to_string());
        numbers.fact(Fact::Workers, workers.fold(0, u64::saturating_add).to_string());
        numbers.fact(Fact::Cpus, crate::cpus::header_of_profiles(&tree.processes).unwrap_or_default());
        numbers.fact(Fact::OffCpu, all(key::NO_CPU));
        numbers
    }

    fn put_facts_of(&mut self, session: &Session) {
        let execution = &session.execution;
        if let Some(run) = &session.run {
            self.fact(Fact::Command, run.command.join(" "));
            self.fact(Fact::Host, run.host.clone());
            if let Some(settings) = &run.settings {
                let text = crate::info::settings_text(settings);
                self.fact(Fact::Settings, if text.is_empty() { "none".to_owned() } else { text });
            }
            // A slice has its times from the run that it is cut from.
            let slice = run.notices.iter().find(|notice| notice.name == "slice");
            self.fact(Fact::Part, slice.map(|notice| notice.text.clone()).unwrap_or_default());
        }
        if let Some(part) = &session.part {
            self.fact(Fact::Part, part.clone());
        }
        self.facts.entry(Fact::Part).or_insert_with(|| "whole run".to_owned());
        let runtime = crate::runtime::of(session);
        self.fact(Fact::Runtime, runtime.map(|runtime| runtime.name().to_owned()).unwrap_or_default());
        self.fact(Fact::Processes, execution.process_count().to_string());
        self.fact(Fact::Cpus, crate::cpus::header(execution).unwrap_or_default());
        let sources = execution.threads.iter().map(|thread| thread.os_source);
        let best = [OsSource::Switches, OsSource::Estimated]
            .into_iter()
            .find(|source| sources.clone().any(|own| own == *source));
        self.fact(Fact::OffCpu, best.unwrap_or_default().name().to_owned());
    }

    /// A fact; an empty one is not known.
    fn fact(&mut self, fact: Fact, value: String) {
        if !value.is_empty() {
            self.facts.insert(fact, value);
        }
    }

    /// Notes the constructs that threads were in, and the types of tasks.
    fn put_constructs(&mut self, session: &Session) {
        let activities = &session.execution.activities;
        let code = (0..activities.count()).filter_map(|number| activities.get(u16::try_from(number).ok()?));
        // Serial code and idle time are named after the regions around them.
        let places = code.filter(|(state, _)| !matches!(state, State::Idle | State::Serial));
        self.constructs.extend(places.map(|(state, place)| session.places.name(state, place)));
        let types = (0..session.execution.catalog.types.len() as u32).map(TypeIndex);
        self.constructs.extend(types.map(|ty| session.places.type_name(ty)));
    }

    fn put_findings(&mut self, findings: &Findings) {
        self.put_rows(&findings.rows);
    }

    /// Adds rows of findings.
    pub(crate) fn put_rows(&mut self, rows: &[NamedFinding]) {
        for finding in rows {
            let name = format!("{}: {} {}", finding.cause.name(), finding.blamed.label(), finding.place);
            self.put(NumberGroup::Finding, name.trim_end(), finding.ns as f64);
            self.labels.insert(name.trim_end().to_owned(), crate::verdict::label(finding));
            let blocked = finding.victims.get(State::Blocked);
            if blocked > 0 && blocked == finding.victims.total() {
                self.blocked.insert(name.trim_end().to_owned());
            }
        }
    }

    /// A run of one worker of which only the wall time is known.
    #[cfg(test)]
    pub(crate) fn from_totals(wall_ns: f64) -> RunNumbers {
        let mut numbers = RunNumbers::default();
        numbers.put(NumberGroup::Run, "wall_ns", wall_ns);
        numbers.put(NumberGroup::Run, "capacity_ns", wall_ns);
        numbers
    }

    fn put_cause(&mut self, cause: Cause, ns: u64) {
        *self.causes.entry(cause).or_default() += ns as f64;
    }

    /// Collects the numbers of an imported graph.
    pub fn from_graph(graph: &TaskGraph) -> RunNumbers {
        let mut numbers = RunNumbers { source: Source::Graph, ..RunNumbers::default() };
        let causes = book_causes(graph);
        numbers.fact(Fact::Mode, Source::Graph.name().to_owned());
        numbers.fact(Fact::Workers, graph.selected_workers().count().to_string());
        let (begin, end) = graph.range();
        let work = causes.by_cause[Cause::Work as usize];
        numbers.put(NumberGroup::Run, "wall_ns", (end - begin) as f64);
        numbers.put(NumberGroup::Run, "capacity_ns", causes.capacity_ns as f64);
        numbers.put(NumberGroup::Run, "lost_ns", (causes.capacity_ns - work) as f64);
        numbers.put(NumberGroup::Efficiency, "parallel", work as f64 / causes.capacity_ns.max(1) as f64);
        for (cause, ns) in Cause::ALL.iter().zip(causes.by_cause).filter(|(_, ns)| *ns > 0) {
            numbers.put_cause(*cause, ns);
        }
        for row in causes.rows.iter().filter(|row| row.cause != Cause::Work) {
            let (cause, who) = (row.cause, row.who.label(graph));
            let name = format!("{} {who}", cause.name());
            numbers.labels.insert(name.clone(), format!("{}: {who}", cause.label()));
            *numbers.numbers.entry((NumberGroup::Finding, name)).or_default() += row.ns as f64;
        }
        let mut types: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for piece in graph.pieces.items() {
            let ty = &graph.types[graph.tasks.ty[piece.task as usize] as usize];
            types.entry(&ty.name).or_default().0 += piece.end - piece.start;
        }
        for ty in &graph.tasks.ty {
            types.entry(&graph.types[*ty as usize].name).or_default().1 += 1;
        }
        for (name, (ns, tasks)) in types {
            numbers.put(NumberGroup::TaskType, name, ns as f64 / tasks.max(1) as f64);
        }
        numbers
    }

    /// A fact about the run, if known.
    pub(crate) fn value_of(&self, fact: Fact) -> Option<&str> {
        self.facts.get(&fact).map(String::as_str)
    }

    /// Findings in words, by their names.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&String, &String)> {
        self.labels.iter()
    }

    /// Wall time, nanoseconds; 0 if unknown.
    pub fn wall_ns(&self) -> f64 {
        self.numbers.get(&(NumberGroup::Run, "wall_ns".to_owned())).copied().unwrap_or(0.0)
    }

    fn put(&mut self, group: NumberGroup, name: &str, value: f64) {
        *self.numbers.entry((group, name.to_owned())).or_default() += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_testkit::synthetic::{Shape, execution};

    #[test]
    fn the_mean_of_a_type_is_that_of_its_tasks_in_all_processes() {
        let shape = Shape { threads: 4, team: 2, processes_of_node: 2, events: 20_000, seed: 4 };
        let session = Session::in_memory("synthetic.trace", execution(shape));
        let (analysis, _) = taskscope_analysis::analyse(&session.execution);
        let numbers = RunNumbers::from_session(&session, &analysis).numbers;
        let means = numbers.iter().filter(|((group, _), _)| *group == NumberGroup::TaskType);
        let rows = || analysis.task_types.iter().filter(|row| row.began > 0);
        assert!((1..rows().count()).contains(&means.clone().count()));
        for ((_, name), mean) in means {
            let own = || rows().filter(|row| session.places.type_name(row.ty) == *name);
            let (ns, tasks) = own().fold((0, 0), |sum, row| (sum.0 + row.body_ns, sum.1 + row.began));
            assert_eq!(*mean, (ns / tasks) as f64, "{name}");
        }
    }
}
