//! One task in full: its lifetime, creator and dependences.

use super::task_start::StartFacts;
use super::{Page, Predecessor};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::{NO_TIME, Place, State, TaskIndex, TaskStatus, ThreadIndex, TypeIndex};

/// Maximum listed edges; the rest is counted.
const EDGES: usize = 64;

/// Identifies a task. A number alone may belong to several tasks: one of each process, and successive ones of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskQuery {
    /// Its number in its process; `None` for a task without one.
    pub number: Option<u64>,
    /// Its process.
    pub pid: Option<i64>,
    /// Its creation time, or its begin if that is unknown: nanoseconds since the start of the trace.
    pub at: Option<u64>,
}

/// A task in words, and its query.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskReference {
    /// The task in words.
    pub name: String,
    /// Its number in its process, in decimal digits, as scripts have no integers of 64 bits; null for none.
    pub number: Option<String>,
    /// Process id.
    pub pid: Option<i64>,
    /// Creation time, or else its begin; nanoseconds since the start of the trace.
    pub at: Option<u64>,
}

/// A task. Times are nanoseconds since the start of the trace, null if unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskFacts {
    /// Its number in its process; null for none.
    pub task: Option<u64>,
    /// The task.
    pub task_ref: Option<TaskReference>,
    /// Other tasks of the number, 64 at most.
    pub others: Vec<Option<TaskReference>>,
    /// Total number.
    pub others_count: usize,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The name that bars have of its type.
    pub short_type: String,
    /// The line of its type; empty if unknown.
    pub line: String,
    /// Its status at the end of the trace.
    pub status: &'static str,
    /// Creation time.
    pub created: Option<u64>,
    /// Its wait before its start; null if unknown.
    pub start: Option<StartFacts>,
    /// Begin time.
    pub began: Option<u64>,
    /// End time.
    pub ended: Option<u64>,
    /// The track of the thread that created it.
    pub creator: Option<u32>,
    /// The track of the thread that ran it.
    pub runner: Option<u32>,
    /// The number of its parent.
    pub parent: Option<u64>,
    /// Its parent.
    pub parent_ref: Option<TaskReference>,
    /// Its creator's section, in words.
    pub created_in: Option<String>,
    /// Tasks that it depended on, 64 at most.
    pub predecessors: Vec<TaskEdge>,
    /// Total number.
    pub predecessors_count: usize,
    /// Tasks that depended on it, 64 at most.
    pub successors: Vec<TaskEdge>,
    /// Total number.
    pub successors_count: usize,
    /// The predecessor that ended last.
    pub critical_predecessor: Option<TaskEdge>,
}

/// A task that another one depends on, or that depends on it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TaskEdge {
    /// Its number in its process.
    pub task: Option<u64>,
    /// The task.
    pub task_ref: Option<TaskReference>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The name that bars have of its type.
    pub short_type: String,
    /// The address of the dependence, hexadecimal.
    pub address: String,
    /// The track of the thread that ran it.
    pub runner: Option<u32>,
    /// Begin time.
    pub began: Option<u64>,
    /// End time.
    pub ended: Option<u64>,
}

impl Page {
    /// The tasks of the query, in the order of creation.
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

    /// Creation time of a task, or else its begin; nanoseconds since the start of the trace.
    fn task_at(&self, task: TaskIndex) -> Option<u64> {
        let tasks = &self.execution.tasks;
        let time = |column: &[u64]| column.get(task.index()).copied().filter(|at| *at != NO_TIME);
        time(&tasks.created).or_else(|| time(&tasks.began)).map(|at| self.since_start(at))
    }

    /// A task in words, if it is one.
    pub(super) fn task_name(&self, task: TaskIndex) -> Option<String> {
        task.is_some().then(|| self.execution.task_name(task))
    }

    /// A task in words, and its [`TaskQuery`].
    pub(super) fn task_reference(&self, task: TaskIndex) -> Option<TaskReference> {
        let name = self.task_name(task)?;
        let process = self.execution.process_of_task(task);
        let process = process.and_then(|process| self.execution.processes.get(process.index()));
        Some(TaskReference {
            name,
            number: self.execution.tasks.number(task).map(|number| number.to_string()),
            pid: process.map(|process| process.pid),
            at: self.task_at(task),
        })
    }

    /// All known facts of a task; `None` if the row does not exist.
    pub fn task(&self, task: TaskIndex) -> Option<TaskFacts> {
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
        let edges = |edges: &[Predecessor]| -> Vec<TaskEdge> {
            edges.iter().take(EDGES).map(|edge| self.task_edge(*edge)).collect()
        };
        Some(TaskFacts {
            task: tasks.number(task),
            task_ref: self.task_reference(task),
            others: others.take(EDGES).map(|other| self.task_reference(*other)).collect(),
            others_count: same.len().saturating_sub(1),
            ty: name,
            short_type: self.short_type(ty),
            line: site,
            status,
            created: self.known_time(tasks.created[row]),
            start: self.task_start(task),
            began: self.known_time(tasks.began[row]),
            ended: self.known_time(tasks.ended[row]),
            creator: thread(tasks.creator[row]),
            runner: thread(tasks.runner[row]),
            parent: tasks.number(parent),
            parent_ref: self.task_reference(parent),
            created_in: self.created_in(task),
            predecessors: edges(&predecessors),
            predecessors_count: predecessors.len(),
            successors: edges(&successors),
            successors_count: successors.len(),
            critical_predecessor: critical.map(|edge| self.task_edge(edge)),
        })
    }

    /// The name that bars have of a type.
    fn short_type(&self, ty: TypeIndex) -> String {
        self.code_names(&[(State::Task, Place::task_type(ty))]).pop().unwrap_or_default()
    }

    fn task_edge(&self, edge: Predecessor) -> TaskEdge {
        let tasks = &self.execution.tasks;
        let row = edge.task.index();
        let ty = tasks.ty[row];
        TaskEdge {
            task: tasks.number(edge.task),
            task_ref: self.task_reference(edge.task),
            ty: self.names.ask(move |places| places.type_name(ty)),
            short_type: self.short_type(ty),
            address: format!("{:#x}", edge.address),
            runner: tasks.runner[row].is_some().then_some(tasks.runner[row].0),
            began: self.known_time(tasks.began[row]),
            ended: self.known_time(tasks.ended[row]),
        }
    }

    /// The creator's section at the creation of the task.
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
