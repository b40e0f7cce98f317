//! One task in full: its life, its creator, what it depended on.

use super::{Page, Predecessor};
use rayon::prelude::*;
use serde_json::{Value, json};
use taskscope_execution::{NO_TIME, Place, State, TaskIndex, TaskStatus, ThreadIndex};

/// Edges that are listed at most; the rest is counted.
const EDGES: usize = 64;

/// Which task is meant. A number alone may be that of several: one of each process, and of one process those that got it
/// one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskQuery {
    /// Its number in its process; `None` for a task without one.
    pub number: Option<u64>,
    /// Its process.
    pub pid: Option<i64>,
    /// When it was created, or, where that is not known, when it began: nanoseconds since the start of the trace.
    pub at: Option<u64>,
}

impl Page {
    /// The tasks that are meant, in the order of creation.
    pub fn find_tasks(&self, query: &TaskQuery) -> Vec<TaskIndex> {
        let tasks = &self.execution.tasks;
        let pid_of = |task| {
            let process = self.execution.process_of_task(task)?;
            self.execution.processes.get(process.index()).map(|process| process.pid)
        };
        let is_meant = |row: &u32| {
            let task = TaskIndex(*row);
            tasks.number(task) == query.number
                && query.at.is_none_or(|at| self.task_at(task) == Some(at))
                && query.pid.is_none_or(|pid| pid_of(task) == Some(pid))
        };
        (0..tasks.len() as u32).into_par_iter().filter(is_meant).map(TaskIndex).collect()
    }

    /// When a task was created, or else began; nanoseconds since the start of the trace.
    fn task_at(&self, task: TaskIndex) -> Option<u64> {
        let tasks = &self.execution.tasks;
        let time = |column: &[u64]| column.get(task.index()).copied().filter(|at| *at != NO_TIME);
        time(&tasks.created).or_else(|| time(&tasks.began)).map(|at| self.since_start(at))
    }

    /// A task in words, if it is one.
    pub(super) fn task_name(&self, task: TaskIndex) -> Option<String> {
        task.is_some().then(|| self.execution.task_name(task))
    }

    /// A task in words, and the [`TaskQuery`] that means it; null for none.
    pub(super) fn task_reference(&self, task: TaskIndex) -> Value {
        let Some(name) = self.task_name(task) else { return Value::Null };
        let process = self.execution.process_of_task(task);
        let process = process.and_then(|process| self.execution.processes.get(process.index()));
        json!({
            "name": name,
            // Scripts have no integers of 64 bits.
            "number": self.execution.tasks.number(task).map(|number| number.to_string()),
            "pid": process.map(|process| process.pid),
            "at": self.task_at(task),
        })
    }

    /// Everything that is known of a task; `None` where there is no such row.
    pub fn task(&self, task: TaskIndex) -> Option<Value> {
        let tasks = &self.execution.tasks;
        let row = task.index();
        let ty = *tasks.ty.get(row)?;
        let predecessors = self.dependences().predecessors(task);
        let successors = self.dependences().successors(task);
        let critical = self.dependences().critical_predecessor(&self.execution, task);
        let (name, site) = self
            .names
            .ask(move |places| (places.type_name(ty), places.line(places.type_site(ty)).unwrap_or_default()));
        let status = match tasks.status[row] {
            TaskStatus::Created => "created",
            TaskStatus::Running => "running",
            TaskStatus::Suspended => "suspended",
            TaskStatus::Ended => "ended",
            TaskStatus::Cancelled => "cancelled",
            TaskStatus::Unseen => "execution not recorded",
        };
        let thread = |thread: ThreadIndex| if thread.is_some() { Some(thread.0) } else { None };
        let parent = tasks.parent[row];
        let same = TaskQuery { number: tasks.number(task), ..TaskQuery::default() };
        let same = if same.number.is_some() { self.find_tasks(&same) } else { Vec::new() };
        let others = same.iter().filter(|other| **other != task);
        let edges = |edges: &[Predecessor]| -> Vec<Value> {
            edges.iter().take(EDGES).map(|edge| self.task_edge(*edge)).collect()
        };
        Some(json!({
            "task": tasks.number(task),
            "task_ref": self.task_reference(task),
            "others": others.take(EDGES).map(|other| self.task_reference(*other)).collect::<Vec<_>>(),
            "others_count": same.len().saturating_sub(1),
            "type": name,
            "line": site,
            "status": status,
            "created": self.time_or_null(tasks.created[row]),
            "began": self.time_or_null(tasks.began[row]),
            "ended": self.time_or_null(tasks.ended[row]),
            "creator": thread(tasks.creator[row]),
            "runner": thread(tasks.runner[row]),
            "parent": tasks.number(parent),
            "parent_ref": self.task_reference(parent),
            "created_in": self.created_in(task),
            "predecessors": edges(&predecessors),
            "predecessors_count": predecessors.len(),
            "successors": edges(&successors),
            "successors_count": successors.len(),
            "critical_predecessor": critical.map(|edge| self.task_edge(edge)),
        }))
    }

    fn task_edge(&self, edge: Predecessor) -> Value {
        let tasks = &self.execution.tasks;
        let row = edge.task.index();
        let ty = tasks.ty[row];
        json!({
            "task": tasks.number(edge.task),
            "task_ref": self.task_reference(edge.task),
            "type": self.names.ask(move |places| places.type_name(ty)),
            "address": format!("{:#x}", edge.address),
            "runner": if tasks.runner[row].is_some() { Some(tasks.runner[row].0) } else { None },
            "began": self.time_or_null(tasks.began[row]),
            "ended": self.time_or_null(tasks.ended[row]),
        })
    }

    /// What the creator was in when it created the task.
    fn created_in(&self, task: TaskIndex) -> Option<String> {
        let tasks = &self.execution.tasks;
        let track = &self.execution.threads.get(tasks.creator[task.index()].index())?.track;
        let section = track.span(track.row_at(tasks.created[task.index()])?).section;
        let words = self.place_words(section.state, section.place);
        Some(if words.is_empty() || section.place == Place::UNKNOWN || section.state == State::Unknown {
            section.state.label().to_string()
        } else {
            words
        })
    }
}
