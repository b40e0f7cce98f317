//! An imported task graph as tables: what it knows, and no more.
//!
//! Its workers are locations. `state` has the pieces of tasks and the time between them, cut where the cause changes: the
//! sums by cause are those of `ledger` at the depth `graph`.

use crate::data_set::{DataSet, Next};
use crate::error::TableError;
use crate::file::TableFile;
use crate::rows::{ROW_GROUP, Value};
use taskscope_analysis::causes::{CauseInterval, Causes, book_intervals_in};
use taskscope_execution::graph::{NONE, TaskGraph, TaskType};
use taskscope_execution::{Cause, NO_TIME, State};

/// Name of a worker's time outside of tasks, in the column `state`.
const OUTSIDE: &str = "outside_tasks";

/// A task graph, and the part of its time that is exported.
pub struct GraphRun<'a> {
    /// Name of the trace.
    pub source: &'a str,
    /// The graph.
    pub graph: &'a TaskGraph,
    /// Begin (included) and end (not included), nanoseconds of the trace's clock.
    pub part: (u64, u64),
    /// The part in words; `None` for the whole.
    pub words: Option<&'a str>,
}

/// A part of a worker's time with one cause and one task.
struct Section {
    worker: u32,
    start: u64,
    end: u64,
    cause: Cause,
    /// The task that runs; [`NONE`] outside of tasks.
    task: u32,
}

/// The causes of workers, cut at the begins and ends of pieces of tasks.
fn sections_of(graph: &TaskGraph, mut intervals: Vec<CauseInterval>) -> Vec<Section> {
    intervals.sort_unstable_by_key(|interval| (interval.worker, interval.start));
    let mut sections = Vec::with_capacity(intervals.len());
    for worker_intervals in intervals.chunk_by(|one, other| one.worker == other.worker) {
        let worker = worker_intervals[0].worker;
        let mut pieces = graph.pieces.get(worker as usize).iter().peekable();
        for CauseInterval { start, end, cause, .. } in worker_intervals {
            let mut at = *start;
            while at < *end {
                while pieces.next_if(|piece| piece.end <= at).is_some() {}
                let (task, until) = match pieces.peek() {
                    Some(piece) if piece.start <= at => (piece.task, piece.end),
                    Some(piece) => (NONE, piece.start),
                    None => (NONE, *end),
                };
                let until = until.min(*end);
                sections.push(Section { worker, start: at, end: until, cause: *cause, task });
                at = until;
            }
        }
    }
    sections
}

/// Writes the tables of an imported task graph, as the next run of the data set. Returns its number.
///
/// # Errors
/// If a file cannot be written.
pub fn write_graph(set: &mut DataSet, run: &GraphRun<'_>) -> Result<u32, TableError> {
    let first = set.next;
    let graph = run.graph;
    set.next.run += 1;
    set.next.process += 1;
    set.next.node += graph.nodes.len().max(1) as u32;
    set.next.location += graph.workers.len() as u32;
    set.next.task_type += graph.types.len() as u32;
    set.next.site += graph.types.len() as u32;
    set.next.task += graph.tasks.len() as u64;
    set.summary.runs.push(run.source.to_owned());
    let tables = Tables { run, number: first.run, first, origin: graph.range().0 };
    let (causes, intervals) = book_intervals_in(graph, run.part);
    tables.names(set, &causes)?;
    tables.states(set, intervals)?;
    tables.tasks(set)?;
    tables.dependences(set)?;
    if !graph.activities.items().is_empty() {
        let lost = graph.activities.items().len();
        set.summary.losses.push(format!("run {}: {lost} activities of workers outside of tasks", first.run));
    }
    Ok(first.run)
}

struct Tables<'a> {
    run: &'a GraphRun<'a>,
    number: u32,
    first: Next,
    origin: u64,
}

impl Tables<'_> {
    fn at(&self, clock: u64) -> Value<'static> {
        if clock == NO_TIME { Value::Null } else { Value::Int(clock as i64 - self.origin as i64) }
    }

    fn row(first: u32, row: u32) -> Value<'static> {
        if row == NONE { Value::Null } else { (first + row).into() }
    }

    fn task(&self, row: u32) -> Value<'static> {
        if row == NONE { Value::Null } else { (self.first.task + u64::from(row)).into() }
    }

    fn begin(&self, set: &DataSet, table: &'static str) -> Result<TableFile, TableError> {
        set.begin(table, self.first.node, self.first.process)
    }

    /// The part of an interval that is exported, if any.
    fn cut(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (start, end) = (start.max(self.run.part.0), end.min(self.run.part.1));
        (start < end).then_some((start, end))
    }

    fn names(&self, set: &mut DataSet, causes: &Causes) -> Result<(), TableError> {
        let graph = self.run.graph;
        let (begin, end) = graph.range();
        let (begin, end) = (begin.max(self.run.part.0), end.min(self.run.part.1));
        let number: Value<'static> = self.number.into();
        set.push(
            "run",
            [
                number,
                self.run.source.into(),
                "".into(),
                "".into(),
                Value::Null,
                self.at(begin),
                self.at(end),
                causes.capacity_ns.into(),
                (graph.selected_workers().count() as u64).into(),
                true.into(),
                0_u64.into(),
                0_u64.into(),
                self.run.words.into(),
                "".into(),
            ],
        )?;
        set.push(
            "process",
            [
                self.first.process.into(),
                number,
                self.first.node.into(),
                "".into(),
                0_i64.into(),
                Value::Null,
                self.at(begin),
                self.at(end),
            ],
        )?;
        for (row, worker) in graph.workers.iter().enumerate() {
            let location = Self::row(self.first.location, row as u32);
            set.push(
                "location",
                [
                    location,
                    number,
                    Self::row(self.first.node, worker.node),
                    self.first.process.into(),
                    Value::Null,
                    "worker".into(),
                    format!("worker {}", worker.id).as_str().into(),
                    Value::Null,
                    Value::Null,
                    worker.selected.into(),
                    self.at(worker.begin),
                    self.at(worker.end),
                    0_u64.into(),
                    0_u64.into(),
                ],
            )?;
            let times = Cause::ALL.iter().zip(causes.by_worker[row]).filter(|(_, ns)| *ns > 0);
            for (cause, ns) in times {
                let row = [number, "graph".into(), location, cause.name().into(), Value::Null, ns.into()];
                set.push("ledger", row)?;
            }
        }
        for (row, ty) in (0..).zip(&graph.types) {
            let TaskType { name, function, file, line, implicit } = ty;
            let site = Self::row(self.first.site, row);
            let kind = if *implicit { "implicit" } else { "task" };
            let process: Value<'static> = self.first.process.into();
            let task_type = Self::row(self.first.task_type, row);
            set.push("task_type", [task_type, number, process, name.as_str().into(), kind.into(), site])?;
            let line = (*line > 0).then_some(*line);
            let (function, file) = (function.as_str(), file.as_str());
            let address = 0_i64.into();
            set.push("site", [site, number, process, function.into(), file.into(), line.into(), address])?;
        }
        Ok(())
    }

    /// The causes and tasks of workers; each row group is a time bucket, sorted by location and start.
    fn states(&self, set: &mut DataSet, intervals: Vec<CauseInterval>) -> Result<(), TableError> {
        let graph = self.run.graph;
        let mut sections = sections_of(graph, intervals);
        sections.sort_unstable_by_key(|section| (section.start, section.worker));
        let mut file = self.begin(set, "state")?;
        for bucket in sections.chunks_mut(ROW_GROUP) {
            bucket.sort_unstable_by_key(|section| (section.worker, section.start));
            for section in bucket {
                let ty = graph.tasks.ty.get(section.task as usize).copied().unwrap_or(NONE);
                file.push([
                    Self::row(self.first.location, section.worker),
                    self.at(section.start),
                    self.at(section.end),
                    if section.task == NONE { OUTSIDE } else { State::Task.name() }.into(),
                    section.cause.name().into(),
                    Self::row(self.first.site, ty),
                    Self::row(self.first.task_type, ty),
                    self.task(section.task),
                    Value::Null,
                    Value::Null,
                ])?;
            }
            file.end_group()?;
        }
        set.close("state", file)
    }

    fn tasks(&self, set: &mut DataSet) -> Result<(), TableError> {
        let tasks = &self.run.graph.tasks;
        let mut running = vec![0_u64; tasks.len()];
        for piece in self.run.graph.pieces.items() {
            if let (Some(sum), Some((start, end))) =
                (running.get_mut(piece.task as usize), self.cut(piece.start, piece.end))
            {
                *sum += end - start;
            }
        }
        let mut file = self.begin(set, "task")?;
        for (row, running) in running.into_iter().enumerate() {
            let creator = tasks.creator(row);
            let worker = |task: u32| tasks.worker.get(task as usize).copied().unwrap_or(NONE);
            let began = tasks.worker[row] != NONE;
            file.push([
                self.task(row as u32),
                tasks.number(row).map_or(Value::Null, Value::bits),
                Self::row(self.first.task_type, tasks.ty[row]),
                self.task(creator),
                Value::Null,
                Self::row(self.first.location, worker(creator)),
                Self::row(self.first.location, tasks.worker[row]),
                self.at(tasks.created(row)),
                self.at(tasks.ready(row)),
                if began { self.at(tasks.start[row]) } else { Value::Null },
                if began { self.at(tasks.end[row]) } else { Value::Null },
                running.into(),
                if began { "ended" } else { "created" }.into(),
            ])?;
        }
        set.close("task", file)
    }

    fn dependences(&self, set: &mut DataSet) -> Result<(), TableError> {
        let graph = self.run.graph;
        let (tasks, data) = (&graph.tasks, &graph.data);
        let mut file = self.begin(set, "dependence")?;
        for (task, inputs) in (0..).zip(graph.inputs.iter()) {
            for input in inputs {
                let before = data.producer.get(*input as usize).copied().unwrap_or(NONE);
                let ended = tasks.end.get(before as usize).copied().unwrap_or(NO_TIME);
                file.push([
                    self.task(before),
                    self.task(task),
                    "data".into(),
                    graph.data_number(*input).map_or(Value::Null, Value::bits),
                    self.at(ended),
                    if tasks.worker[task as usize] == NONE {
                        Value::Null
                    } else {
                        self.at(tasks.start[task as usize])
                    },
                ])?;
            }
        }
        set.close("dependence", file)
    }
}
