//! The sections `path` and `whatif`: what the end of the run waited for, bounds, efficiencies, and
//! predictions beside the error of their replay.

use super::CausesOptions;
use crate::format;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_analysis::causes::Causes;
use taskscope_analysis::critical_path::{Step, critical_path, slack};
use taskscope_analysis::pop::{Pop, least_start, pop};
use taskscope_analysis::replay::{Change, Costs, replay};
use taskscope_analysis::slo::deciding_inputs;
use taskscope_analysis::span::{Span, span};
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;

/// What the sections say, computed once.
pub(super) struct Prediction {
    costs: Costs,
    span: Span,
    /// The recorded run replayed without a change, once somebody asks.
    baseline_ns: OnceCell<u64>,
    /// Of the whole run.
    wall_ns: u64,
    /// Of that, starting and ending MPI at least.
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

    fn wall(&self, graph: &TaskGraph, change: &Change) -> u64 {
        replay(graph, &self.costs, change).wall_ns
    }

    fn baseline_ns(&self, graph: &TaskGraph) -> u64 {
        *self.baseline_ns.get_or_init(|| self.wall(graph, &Change::default()))
    }

    /// How far the replay without a change is from the recorded run, as a share of it.
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
    /// What ran on a device, or what the worker did besides executing (a lock, a call, a section); else empty.
    name: String,
    ns: u64,
}

impl Steps {
    fn label(&self) -> String {
        match (self.name.is_empty(), self.task_type.is_empty()) {
            (true, _) => self.task_type.clone(),
            (false, true) => self.name.clone(),
            (false, false) => format!("{} ({})", self.name, self.task_type),
        }
    }
}

/// Steps by what they are and what they belong to, longest first.
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

/// The path, and of its steps the longest so many, in the order of time; without steps where none are wanted. Bounds and slack are
/// of the whole run.
pub(super) fn path_json(
    graph: &TaskGraph,
    prediction: &Prediction,
    (mut steps, slack): (Vec<Step>, Vec<u64>),
    most_steps: usize,
    range: (u64, u64),
) -> Value {
    let critical = slack.iter().min().copied().unwrap_or(0);
    let span = prediction.span;
    let workers = graph.executing_workers().count();
    let rows: Vec<Value> = by_cause(graph, &steps)
        .into_iter()
        .map(|row| {
            let text = |text: String| if text.is_empty() { Value::Null } else { text.into() };
            // Start and end have an empty task type, as they always had.
            json!({"cause": row.cause.name(), "is_operation": row.is_operation, "task_type": row.task_type, "name": text(row.name), "ns": row.ns})
        })
        .collect();
    let mut path = json!({
        "wall_ns": super::nanos_within(graph.range(), range),
        "by_cause": rows,
        "work_ns": span.work_ns,
        "span_ns": span.span_ns,
        "burdened_span_ns": span.burdened_span_ns,
        "parallelism": span.parallelism(),
        "area_bound_ns": span.area_bound_ns(workers as u64),
        "node_bound_ns": node_bound(graph, &prediction.costs),
        "lower_bound_ns": span.lower_bound_ns(workers as u64),
        "metg_ns": span.metg_ns(),
        "tasks_without_slack": slack.iter().filter(|s| **s == critical).count(),
        "slack": slack_by_type(graph, &slack).iter().map(|row| json!({
            "task_type": graph.types[row.ty].name,
            "tasks": row.tasks,
            "without": row.without,
            "least_ns": row.least_ns,
            "mean_ns": row.mean_ns,
        })).collect::<Vec<_>>(),
    });
    if most_steps > 0
        && let Some(map) = path.as_object_mut()
    {
        if steps.len() > most_steps {
            map.insert("steps_in_all".into(), steps.len().into());
            steps.sort_by_key(|step| std::cmp::Reverse(step.end - step.start));
            steps.truncate(most_steps);
            steps.sort_by_key(|step| step.start);
        }
        let list = steps.iter().map(|step| {
            json!({
                "cause": step.cause.name(), "is_operation": step.is_operation, "begin_ns": step.start, "end_ns": step.end,
                "task": graph.tasks.number(step.task as usize), "task_process": graph.process_of(step.task),
                "data": graph.data_number(step.data),
                "name": graph.names.get(step.name as usize),
            })
        });
        map.insert("steps".into(), list.collect());
    }
    path
}

pub(super) fn path_text(
    graph: &TaskGraph,
    prediction: &Prediction,
    options: &CausesOptions,
    out: &mut String,
) {
    let steps = path_in(graph, options.range);
    let wall = super::nanos_within(graph.range(), options.range);
    let _ = writeln!(out, "  Critical path: what the end of the run waited for ({})", format::time(wall));
    let rows = by_cause(graph, &steps);
    for row in rows.iter().take(options.top) {
        let (name, share) = (format::fit(&row.label(), 44), format::percent(row.ns, wall));
        let _ = writeln!(out, "   {:<14}{name:<44}{:>12}{share:>9}", row.cause.name(), format::time(row.ns));
    }
    if rows.len() > options.top {
        let rest: u64 = rows[options.top..].iter().map(|row| row.ns).sum();
        let _ = writeln!(out, "   … and {} more, {}", rows.len() - options.top, format::time(rest));
    }
    let span = prediction.span;
    let workers = graph.executing_workers().count();
    if wall < prediction.wall_ns {
        let _ = writeln!(out, "   of the whole run, which takes {}:", format::time(prediction.wall_ns));
    }
    let _ = writeln!(
        out,
        "   work {}, longest chain {} ({} with runtime costs): parallelism {:.1}; no run on {} is shorter than {}",
        format::time(span.work_ns),
        format::time(span.span_ns),
        format::time(span.burdened_span_ns),
        span.parallelism(),
        format::counted(workers as u64, "worker"),
        format::time(span.lower_bound_ns(workers as u64))
    );
    let _ = writeln!(
        out,
        "   work spread evenly takes {}; where tasks stay on their node, {}",
        format::time(span.area_bound_ns(workers as u64)),
        format::time(node_bound(graph, &prediction.costs))
    );
    let slack = slack(graph);
    for row in slack_by_type(graph, &slack).iter().take(options.top) {
        let _ = writeln!(
            out,
            "   {:<44} could end {} later on average, the tightest {}; {} of {} critical",
            format::fit(&graph.types[row.ty].name, 44),
            format::time(row.mean_ns),
            format::time(row.least_ns),
            format::count(row.without),
            format::counted(row.tasks, "task")
        );
    }
    let _ = writeln!(
        out,
        "   a task costs {} to run: smaller ones lose more than half",
        format::time(span.metg_ns())
    );
}

/// The efficiencies; those that need a replay are known of a whole run only.
fn efficiencies(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    range: (u64, u64),
) -> (Pop, Option<u64>) {
    let is_whole = super::nanos_within(graph.range(), range) == prediction.wall_ns;
    let ideal = is_whole.then(|| prediction.wall(graph, &Change { network: 0.0, ..Change::default() }));
    (pop(graph, causes, ideal, range), ideal)
}

pub(super) fn pop_json(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    range: (u64, u64),
) -> Value {
    let (pop, ideal) = efficiencies(graph, causes, prediction, range);
    json!({
        "parallel_efficiency": pop.parallel,
        "load_balance": pop.load_balance,
        "communication_efficiency": pop.communication,
        "serialization_efficiency": pop.serialization,
        "transfer_efficiency": pop.transfer,
        "ideal_network_wall_ns": ideal,
        "mpi_start_ns": least_start(graph, range),
    })
}

pub(super) fn pop_text(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    range: (u64, u64),
    out: &mut String,
) {
    let (pop, _) = efficiencies(graph, causes, prediction, range);
    let (parallel, balance) = (pop.parallel, pop.load_balance);
    let communication = match (pop.serialization, pop.transfer) {
        (Some(serialization), Some(transfer)) => {
            format!("serialization {serialization:.2} × transfer {transfer:.2}")
        }
        _ => format!("communication {:.2}", pop.communication),
    };
    let _ =
        writeln!(out, "  Parallel efficiency {parallel:.2} = load balance {balance:.2} × {communication}");
    let start_ns = least_start(graph, range);
    if start_ns > 0 {
        let _ = writeln!(out, "   without the {} in which ranks start and end MPI", format::time(start_ns));
    }
}

/// Questions with their changes: those that were asked, or else the usual ones.
fn questions(graph: &TaskGraph, prediction: &Prediction, options: &CausesOptions) -> Vec<(String, Change)> {
    if !options.what_if.is_empty() {
        return options.what_if.iter().map(|what| (what.text.clone(), what.change(graph))).collect();
    }
    let mut list = vec![
        ("no runtime cost".to_owned(), Change { runtime: 0.0, ..Change::default() }),
        (
            "neither runtime cost nor time under way".to_owned(),
            Change { runtime: 0.0, network: 0.0, ..Change::default() },
        ),
    ];
    if !graph.copies.items().is_empty() {
        list.insert(0, ("ideal network".to_owned(), Change { network: 0.0, ..Change::default() }));
    }
    let mut work = vec![0; graph.types.len()];
    for (task, ns) in prediction.costs.work.iter().enumerate() {
        work[graph.tasks.ty[task] as usize] += ns;
    }
    let mut types: Vec<usize> = (0..work.len()).filter(|ty| work[*ty] > 0).collect();
    types.sort_by_key(|ty| std::cmp::Reverse(work[*ty]));
    for ty in types.into_iter().take(options.top) {
        let change = Change { types: vec![(ty as u32, 0.5)], ..Change::default() };
        list.push((format!("{} twice as fast", graph.types[ty].name), change));
    }
    let per_node = graph.executing_workers().count().div_ceil(graph.nodes.len().max(1)) as u32;
    let twice = Change { workers_per_node: Some(2 * per_node), ..Change::default() };
    list.push((format!("{} a node", format::counted(2 * per_node as u64, "worker")), twice));
    list
}

const SCHEDULER: &str =
    "tasks stay on their node; a free worker takes the ready task that started first in the recorded run";

pub(super) fn whatif_json(graph: &TaskGraph, prediction: &Prediction, options: &CausesOptions) -> Value {
    let rows: Vec<Value> = questions(graph, prediction, options)
        .into_iter()
        .map(|(text, change)| json!({"what": text, "wall_ns": prediction.wall(graph, &change)}))
        .collect();
    json!({
        "scheduler": SCHEDULER,
        "recorded_wall_ns": prediction.wall_ns,
        "replayed_wall_ns": prediction.baseline_ns(graph),
        "replay_error": prediction.error(graph),
        "mpi_start_ns": prediction.start_ns,
        "predictions": rows,
    })
}

pub(super) fn whatif_text(
    graph: &TaskGraph,
    prediction: &Prediction,
    options: &CausesOptions,
    out: &mut String,
) {
    let error = prediction.error(graph) * 100.0;
    let _ = writeln!(
        out,
        "  What if (replay of the whole recorded run: {}, {error:+.1} % off)",
        format::time(prediction.baseline_ns(graph))
    );
    for (text, change) in questions(graph, prediction, options) {
        let wall = prediction.wall(graph, &change);
        let faster = prediction.baseline_ns(graph) as f64 / wall.max(1) as f64;
        let text = format::fit(&text, 54);
        let _ = writeln!(out, "   {text:<54}{:>12}   {faster:.2} × as fast", format::time(wall));
    }
    if prediction.start_ns > 0 {
        let start = format::time(prediction.start_ns);
        let _ = writeln!(
            out,
            "   of each, {start} are the start and the end of MPI, which differ from run to run"
        );
    }
    let _ = writeln!(out, "   scheduler: {SCHEDULER}");
}
