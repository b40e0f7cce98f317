//! One task in full: its life, its creator, what it depended on.

use super::{Page, Predecessor};
use serde_json::{Value, json};
use taskscope_execution::{Place, State, TaskIndex, TaskStatus, ThreadIndex};

/// Edges that are listed at most; the rest is counted.
const EDGES: usize = 64;

impl Page {
    /// Everything that is known of a task; `None` where there is none of this number.
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
        let other = |task: TaskIndex| if task.is_some() { Some(task.0) } else { None };
        let edges = |edges: &[Predecessor]| -> Vec<Value> {
            edges.iter().take(EDGES).map(|edge| self.task_edge(*edge)).collect()
        };
        Some(json!({
            "task": task.0,
            "type": name,
            "line": site,
            "status": status,
            "created": self.time_or_null(tasks.created[row]),
            "began": self.time_or_null(tasks.began[row]),
            "ended": self.time_or_null(tasks.ended[row]),
            "creator": thread(tasks.creator[row]),
            "runner": thread(tasks.runner[row]),
            "parent": other(tasks.parent[row]),
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
            "task": edge.task.0,
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
