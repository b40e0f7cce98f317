//! The sections `path` and `whatif`: the critical path, bounds, efficiencies, and predictions beside the
//! error of their replay.

use super::options::{CausesOptions, nanos_within};
use crate::documents::{Named, some_text};
use crate::format::{self, Cell};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_analysis::causes::Causes;
use taskscope_analysis::critical_path::{Step, critical_path, slack};
use taskscope_analysis::pop::{Pop, least_start, pop};
use taskscope_analysis::replay::{CostChange, Costs, replay};
use taskscope_analysis::slo::deciding_inputs;
use taskscope_analysis::span::{Span, span};
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;

/// Values of both sections, computed once.
pub(super) struct Prediction {
    costs: Costs,
    span: Span,
    /// The recorded run replayed without a change; computed on demand.
    baseline_ns: OnceCell<u64>,
    /// Wall time of the run.
    wall_ns: u64,
    /// Lower bound of the time in the start and end of MPI, as part of that.
    start_ns: u64,
}

impl Prediction {
    pub fn of(graph: &TaskGraph) -> Prediction {
        let costs = Costs::of(graph, &deciding_inputs(graph));
        let (begin, end) = graph.range();
        Prediction {
            span: span(graph, &costs),
            baseline_ns: OnceCell::new(),
            wall_ns: end - begin,
            start_ns: least_start(graph, (0, u64::MAX)),
            costs,
        }
    }

    pub fn span(&self) -> &Span {
        &self.span
    }

    fn wall(&self, graph: &TaskGraph, change: &CostChange) -> u64 {
        replay(graph, &self.costs, change).wall_ns
    }

    fn baseline_ns(&self, graph: &TaskGraph) -> u64 {
        *self.baseline_ns.get_or_init(|| self.wall(graph, &CostChange::default()))
    }

    /// Difference between the replay without a change and the recorded run, as a fraction of the run.
    fn error(&self, graph: &TaskGraph) -> f64 {
        (self.baseline_ns(graph) as f64 - self.wall_ns as f64) / self.wall_ns.max(1) as f64
    }
}

/// Steps of a cause that belong to the same.
struct Steps {
    cause: Cause,
    /// Whether an operation of a device ran.
    is_operation: bool,
    /// The task type; empty at start and end.
    task_type: String,
    /// The device operation, or the worker's activity besides executing (a lock, a call, a section); empty
    /// otherwise.
    name: String,
    ns: u64,
}

/// Steps by kind and owner, longest first.
fn by_cause(graph: &TaskGraph, steps: &[Step]) -> Vec<Steps> {
    let mut sums: BTreeMap<(Cause, bool, u32, u32), u64> = BTreeMap::new();
    for step in steps {
        let ty = graph.tasks.ty.get(step.task as usize).copied().unwrap_or(u32::MAX);
        *sums.entry((step.cause, step.is_operation, ty, step.name)).or_default() += step.end - step.start;
    }
    let task_type = |row: u32| graph.types.get(row as usize).map_or(String::new(), |ty| ty.name.clone());
    let name = |row: u32| graph.names.get(row as usize).cloned().unwrap_or_default();
    let rows = sums.into_iter();
    let mut rows: Vec<Steps> = rows
        .map(|((cause, is_operation, ty, of), ns)| Steps {
            cause,
            is_operation,
            task_type: task_type(ty),
            name: name(of),
            ns,
        })
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &Steps| (std::cmp::Reverse(row.ns), row.cause, row.is_operation);
        key(a).cmp(&key(b)).then_with(|| (&a.task_type, &a.name).cmp(&(&b.task_type, &b.name)))
    });
    rows
}

/// Slack of the tasks of a type.
struct SlackOfType {
    ty: usize,
    tasks: u64,
    /// Tasks that have no more slack than the critical ones.
    without: u64,
    least_ns: u64,
    mean_ns: u64,
}

/// Types by their least slack.
fn slack_by_type(graph: &TaskGraph, slack: &[u64]) -> Vec<SlackOfType> {
    let critical = slack.iter().min().copied().unwrap_or(0);
    let mut rows: Vec<(SlackOfType, u128)> = (0..graph.types.len())
        .map(|ty| (SlackOfType { ty, tasks: 0, without: 0, least_ns: u64::MAX, mean_ns: 0 }, 0))
        .collect();
    for (ty, slack) in graph.tasks.ty.iter().zip(slack).filter(|(_, slack)| **slack != u64::MAX) {
        let (row, sum) = &mut rows[*ty as usize];
        row.tasks += 1;
        row.without += u64::from(*slack == critical);
        row.least_ns = row.least_ns.min(*slack);
        *sum += u128::from(*slack);
    }
    let mut rows: Vec<SlackOfType> = (rows.into_iter().filter(|(row, _)| row.tasks > 0))
        .map(|(row, sum)| SlackOfType { mean_ns: (sum / u128::from(row.tasks)) as u64, ..row })
        .collect();
    rows.sort_by_key(|row| (row.least_ns, row.mean_ns, row.ty));
    rows
}

/// The node with most work for its workers: as tasks stay on their node, no run is shorter than that.
fn node_bound(graph: &TaskGraph, costs: &Costs) -> u64 {
    let mut nodes = vec![(0_u64, 0_u64); graph.nodes.len()];
    for worker in graph.executing_workers() {
        nodes[worker.node as usize].1 += 1;
    }
    for (task, work) in costs.work.iter().enumerate() {
        if let Some((sum, _)) = nodes.get_mut(graph.node_of_task(task as u32) as usize) {
            *sum += work;
        }
    }
    nodes.iter().map(|(work, workers)| work.div_ceil((*workers).max(1))).max().unwrap_or(0)
}

/// The part of the critical path in a range, and how much later each task could end.
pub(super) fn path_and_slack(graph: &TaskGraph, range: (u64, u64)) -> (Vec<Step>, Vec<u64>) {
    rayon::join(|| path_in(graph, range), || slack(graph))
}

/// The part of the critical path in a range, cut at its borders.
fn path_in(graph: &TaskGraph, (begin, end): (u64, u64)) -> Vec<Step> {
    let mut steps = critical_path(graph);
    steps.retain_mut(|step| {
        (step.start, step.end) = (step.start.max(begin), step.end.min(end));
        step.start < step.end
    });
    steps
}

/// The critical path, bounds of the run, and slack of its tasks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPath {
    /// The wall time that is tiled, nanoseconds.
    pub wall_ns: u64,
    /// Steps by cause and task type, longest first; they sum to `wall_ns`.
    pub by_cause: Vec<PathCause>,
    /// Work of all tasks, nanoseconds.
    pub work_ns: u64,
    /// Work along the longest chain of dependences, nanoseconds.
    pub span_ns: u64,
    /// The span including the cost of running each task, nanoseconds.
    pub burdened_span_ns: u64,
    /// `work_ns` / `span_ns`.
    #[schemars(range(min = 0))]
    pub parallelism: f64,
    /// Work spread evenly over all workers, nanoseconds.
    pub area_bound_ns: u64,
    /// The bound with tasks kept on their node, nanoseconds.
    pub node_bound_ns: u64,
    /// The least wall time with as many workers, nanoseconds.
    pub lower_bound_ns: u64,
    /// Mean cost of running a task, nanoseconds: the minimum effective granularity.
    pub metg_ns: u64,
    /// Tasks without more slack than the critical ones.
    pub tasks_without_slack: usize,
    /// Slack by task type, the least first.
    pub slack: Vec<TypeSlack>,
    /// The number of steps, if not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_in_all: Option<usize>,
    /// Steps in the order of time; only with `--intervals`. All steps tile the wall time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<PathStep>>,
    /// The wall time of the whole run, nanoseconds, for text.
    #[serde(skip)]
    run_wall_ns: u64,
    /// Workers of the bounds, for text.
    #[serde(skip)]
    workers: u64,
}

/// Steps of one cause.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathCause {
    /// The cause.
    pub cause: Named<Cause>,
    /// Whether an operation of a device ran.
    pub is_operation: bool,
    /// The task type; empty at start and end.
    pub task_type: String,
    /// A device operation, or the worker's activity besides executing.
    pub name: Option<String>,
    /// Nanoseconds.
    pub ns: u64,
}

impl PathCause {
    /// The running or awaited code, in words.
    fn label(&self) -> String {
        match &self.name {
            None => self.task_type.clone(),
            Some(name) if self.task_type.is_empty() => name.clone(),
            Some(name) => format!("{name} ({})", self.task_type),
        }
    }
}

/// Slack of the tasks of a type.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TypeSlack {
    /// The type.
    pub task_type: String,
    /// Number of its tasks.
    pub tasks: u64,
    /// Tasks that have no more slack than the critical ones.
    pub without: u64,
    /// The least slack, nanoseconds.
    pub least_ns: u64,
    /// Mean slack, nanoseconds.
    pub mean_ns: u64,
}

/// A step of the critical path.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathStep {
    /// The cause.
    pub cause: Named<Cause>,
    /// Whether an operation of a device ran.
    pub is_operation: bool,
    /// Begin by the trace's clock, nanoseconds.
    pub begin_ns: u64,
    /// End by the trace's clock, nanoseconds.
    pub end_ns: u64,
    /// The task's number in its process; null for code outside of tasks.
    pub task: Option<u64>,
    /// Its process (rank 1, process 4711), if there are several.
    pub task_process: Option<String>,
    /// Id of the data that was waited for.
    pub data: Option<u64>,
    /// A device operation, or the worker's activity besides executing.
    pub name: Option<String>,
}

/// The path with its longest steps, at most the given number, in order of time; without steps if none are
/// requested. Bounds and slack cover the whole run.
pub(super) fn path(
    graph: &TaskGraph,
    prediction: &Prediction,
    (mut steps, slack): (Vec<Step>, Vec<u64>),
    most_steps: usize,
    range: (u64, u64),
) -> CriticalPath {
    let critical = slack.iter().min().copied().unwrap_or(0);
    let span = prediction.span;
    let workers = graph.executing_workers().count() as u64;
    let rows = by_cause(graph, &steps).into_iter().map(|row| PathCause {
        cause: Named(row.cause),
        is_operation: row.is_operation,
        task_type: row.task_type,
        name: some_text(row.name),
        ns: row.ns,
    });
    let slack_rows = slack_by_type(graph, &slack).into_iter().map(|row| TypeSlack {
        task_type: graph.types[row.ty].name.clone(),
        tasks: row.tasks,
        without: row.without,
        least_ns: row.least_ns,
        mean_ns: row.mean_ns,
    });
    let rows = rows.collect();
    let all = steps.len();
    if most_steps > 0 && all > most_steps {
        steps.sort_by_key(|step| std::cmp::Reverse(step.end - step.start));
        steps.truncate(most_steps);
        steps.sort_by_key(|step| step.start);
    }
    let list = steps.iter().map(|step| PathStep {
        cause: Named(step.cause),
        is_operation: step.is_operation,
        begin_ns: step.start,
        end_ns: step.end,
        task: graph.tasks.number(step.task as usize),
        task_process: graph.process_of(step.task).map(str::to_owned),
        data: graph.data_number(step.data),
        name: graph.names.get(step.name as usize).cloned(),
    });
    CriticalPath {
        wall_ns: nanos_within(graph.range(), range),
        by_cause: rows,
        work_ns: span.work_ns,
        span_ns: span.span_ns,
        burdened_span_ns: span.burdened_span_ns,
        parallelism: span.parallelism(),
        area_bound_ns: span.area_bound_ns(workers),
        node_bound_ns: node_bound(graph, &prediction.costs),
        lower_bound_ns: span.lower_bound_ns(workers),
        metg_ns: span.metg_ns(),
        tasks_without_slack: slack.iter().filter(|ns| **ns == critical).count(),
        slack: slack_rows.collect(),
        steps_in_all: (most_steps > 0 && all > most_steps).then_some(all),
        steps: (most_steps > 0).then(|| list.collect()),
        run_wall_ns: prediction.wall_ns,
        workers,
    }
}

/// The section `path` as text.
pub(super) fn path_text(path: &CriticalPath, top: usize, out: &mut String) {
    let wall = path.wall_ns;
    let _ = writeln!(out, "  Critical path: what the end of the run waited for ({})", format::time(wall));
    let rows = &path.by_cause;
    for row in rows.iter().take(top) {
        let (name, share) = (Cell(format::fit(&row.label(), 38)), format::percent(row.ns, wall));
        let _ =
            writeln!(out, "   {:<18} {name:<39}{:>12}{share:>9}", row.cause.0.name(), format::time(row.ns));
    }
    if rows.len() > top {
        let rest: u64 = rows[top..].iter().map(|row| row.ns).sum();
        let _ = writeln!(out, "   … and {} more, {}", rows.len() - top, format::time(rest));
    }
    if wall < path.run_wall_ns {
        let _ = writeln!(out, "   of the whole run, which takes {}:", format::time(path.run_wall_ns));
    }
    let _ = writeln!(
        out,
        "   work {}, longest chain {} ({} with runtime costs): parallelism {:.1}; no run on {} is shorter than {}",
        format::time(path.work_ns),
        format::time(path.span_ns),
        format::time(path.burdened_span_ns),
        path.parallelism,
        format::counted(path.workers, "worker"),
        format::time(path.lower_bound_ns)
    );
    let _ = writeln!(
        out,
        "   work spread evenly takes {}; where tasks stay on their node, {}",
        format::time(path.area_bound_ns),
        format::time(path.node_bound_ns)
    );
    for row in path.slack.iter().take(top) {
        let _ = writeln!(
            out,
            "   {:<44} could end {} later on average, the tightest {}; {} of {} critical",
            Cell(format::fit(&row.task_type, 44)),
            format::time(row.mean_ns),
            format::time(row.least_ns),
            format::count(row.without),
            format::counted(row.tasks, "task")
        );
    }
    let _ = writeln!(
        out,
        "   a task costs {} to run: smaller ones lose more than half",
        format::time(path.metg_ns)
    );
}

/// The efficiencies; those that need a replay are known of a whole run only.
fn efficiencies(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    range: (u64, u64),
) -> (Pop, Option<u64>) {
    let is_whole = nanos_within(graph.range(), range) == prediction.wall_ns;
    let ideal =
        is_whole.then(|| prediction.wall(graph, &CostChange { network: 0.0, ..CostChange::default() }));
    (pop(graph, causes, ideal, range), ideal)
}

/// POP's efficiencies: parallel = load balance × communication; communication = serialization × transfer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PopEfficiencies {
    /// Mean work of a worker over the wall time.
    #[schemars(range(min = 0, max = 1))]
    pub parallel_efficiency: f64,
    /// Mean over maximum of the workers' work.
    #[schemars(range(min = 0, max = 1))]
    pub load_balance: f64,
    /// The largest work over the wall time.
    #[schemars(range(min = 0, max = 1))]
    pub communication_efficiency: f64,
    /// The largest work over the wall time on an ideal network; null of a part of the run.
    #[schemars(range(min = 0, max = 1))]
    pub serialization_efficiency: Option<f64>,
    /// Wall time on an ideal network over the recorded one; null of a part of the run.
    #[schemars(range(min = 0, max = 1))]
    pub transfer_efficiency: Option<f64>,
    /// Wall time on an ideal network, nanoseconds; null of a part of the run.
    pub ideal_network_wall_ns: Option<u64>,
    /// Start and end of MPI, nanoseconds; in no efficiency.
    pub mpi_start_ns: u64,
}

/// The numbers of section `pop`.
pub(super) fn pop_efficiencies(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    range: (u64, u64),
) -> PopEfficiencies {
    let (pop, ideal) = efficiencies(graph, causes, prediction, range);
    PopEfficiencies {
        parallel_efficiency: pop.parallel,
        load_balance: pop.load_balance,
        communication_efficiency: pop.communication,
        serialization_efficiency: pop.serialization,
        transfer_efficiency: pop.transfer,
        ideal_network_wall_ns: ideal,
        mpi_start_ns: least_start(graph, range),
    }
}

/// The section `pop` as text.
pub(super) fn pop_text(pop: &PopEfficiencies, out: &mut String) {
    let (parallel, balance) = (pop.parallel_efficiency, pop.load_balance);
    let communication = match (pop.serialization_efficiency, pop.transfer_efficiency) {
        (Some(serialization), Some(transfer)) => {
            format!("serialization {serialization:.2} × transfer {transfer:.2}")
        }
        _ => format!("communication {:.2}", pop.communication_efficiency),
    };
    let _ =
        writeln!(out, "  Parallel efficiency {parallel:.2} = load balance {balance:.2} × {communication}");
    let start_ns = pop.mpi_start_ns;
    if start_ns > 0 {
        let _ = writeln!(out, "   without the {} in which ranks start and end MPI", format::time(start_ns));
    }
}

/// Questions with their changes: those that were asked, or else the usual ones.
fn questions(
    graph: &TaskGraph,
    prediction: &Prediction,
    options: &CausesOptions,
) -> Vec<(String, CostChange)> {
    if !options.what_if.is_empty() {
        return options.what_if.iter().map(|what| (what.text.clone(), what.change(graph))).collect();
    }
    let mut list = vec![
        ("no runtime cost".to_owned(), CostChange { runtime: 0.0, ..CostChange::default() }),
        (
            "neither runtime cost nor time under way".to_owned(),
            CostChange { runtime: 0.0, network: 0.0, ..CostChange::default() },
        ),
    ];
    if !graph.copies.items().is_empty() {
        list.insert(0, ("ideal network".to_owned(), CostChange { network: 0.0, ..CostChange::default() }));
    }
    let mut work = vec![0; graph.types.len()];
    for (task, ns) in prediction.costs.work.iter().enumerate() {
        work[graph.tasks.ty[task] as usize] += ns;
    }
    let mut types: Vec<usize> = (0..work.len()).filter(|ty| work[*ty] > 0).collect();
    types.sort_by_key(|ty| std::cmp::Reverse(work[*ty]));
    for ty in types.into_iter().take(options.top) {
        let change = CostChange { types: vec![(ty as u32, 0.5)], ..CostChange::default() };
        list.push((format!("{} twice as fast", graph.types[ty].name), change));
    }
    let per_node = graph.executing_workers().count().div_ceil(graph.nodes.len().max(1)) as u32;
    let twice = CostChange { workers_per_node: Some(2 * per_node), ..CostChange::default() };
    list.push((format!("{} a node", format::counted(2 * per_node as u64, "worker")), twice));
    list
}

const SCHEDULER: &str =
    "tasks stay on their node; a free worker takes the ready task that started first in the recorded run";

/// The recorded run again with other costs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhatIfTimes {
    /// The scheduler of the replay, in words.
    pub scheduler: &'static str,
    /// Wall time of the recorded run, nanoseconds.
    pub recorded_wall_ns: u64,
    /// Wall time of its replay without a change, nanoseconds.
    pub replayed_wall_ns: u64,
    /// `replayed_wall_ns` / `recorded_wall_ns` − 1.
    pub replay_error: f64,
    /// Start and end of MPI, nanoseconds, which no prediction changes.
    pub mpi_start_ns: u64,
    /// Predictions, in the order of the questions.
    pub predictions: Vec<PredictedTime>,
}

/// A prediction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PredictedTime {
    /// The change in words, or as it was typed.
    pub what: String,
    /// Predicted wall time, nanoseconds.
    pub wall_ns: u64,
}

/// The numbers of section `whatif`.
pub(super) fn what_if(graph: &TaskGraph, prediction: &Prediction, options: &CausesOptions) -> WhatIfTimes {
    let rows = questions(graph, prediction, options).into_iter();
    let rows = rows.map(|(what, change)| PredictedTime { what, wall_ns: prediction.wall(graph, &change) });
    WhatIfTimes {
        scheduler: SCHEDULER,
        recorded_wall_ns: prediction.wall_ns,
        replayed_wall_ns: prediction.baseline_ns(graph),
        replay_error: prediction.error(graph),
        mpi_start_ns: prediction.start_ns,
        predictions: rows.collect(),
    }
}

/// The section `whatif` as text.
pub(super) fn whatif_text(times: &WhatIfTimes, out: &mut String) {
    let error = times.replay_error * 100.0;
    let _ = writeln!(
        out,
        "  What if (replay of the whole recorded run: {}, {error:+.1} % off)",
        format::time(times.replayed_wall_ns)
    );
    for row in &times.predictions {
        let faster = times.replayed_wall_ns as f64 / row.wall_ns.max(1) as f64;
        let text = Cell(format::fit(&row.what, 54));
        let _ = writeln!(out, "   {text:<54}{:>12}   {faster:.2} × as fast", format::time(row.wall_ns));
    }
    if times.mpi_start_ns > 0 {
        let start = format::time(times.mpi_start_ns);
        let _ = writeln!(
            out,
            "   of each, {start} are the start and the end of MPI, which differ from run to run"
        );
    }
    let _ = writeln!(out, "   scheduler: {}", times.scheduler);
}
