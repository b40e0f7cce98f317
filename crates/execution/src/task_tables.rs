//! The tables of tasks while they grow.

use crate::{
    Change, Dependence, Joined, NO_TIME, Queued, TaskIndex, TaskStatus, Tasks, ThreadIndex, WaitDependence,
};
use rustc_hash::FxHashMap;

/// Tables of tasks while they grow.
#[derive(Debug, Default)]
pub(crate) struct TaskTables {
    pub tasks: Tasks,
    pub queued: Vec<Queued>,
    pub dependences: Vec<Dependence>,
    pub wait_dependences: Vec<WaitDependence>,
    pub detached: Vec<TaskIndex>,
    /// Tasks that are able to run and do not, since when.
    ready: FxHashMap<TaskIndex, u64>,
}

impl TaskTables {
    /// No more changes come, and these are joined.
    pub fn complete(&mut self, joined: &Joined) {
        if !joined.is_none() {
            self.tasks.ty.iter_mut().for_each(|ty| *ty = joined.ty(*ty));
        }
    }

    /// A change of a task; others are none of these tables.
    pub fn change(&mut self, thread: ThreadIndex, at: u64, change: Change) {
        let tasks = &mut self.tasks;
        match change {
            Change::TaskCreated { task, ty, parent, region } => {
                tasks.grow_to(task);
                let row = task.index();
                tasks.ty[row] = ty;
                tasks.parent[row] = parent;
                tasks.region[row] = region;
                tasks.creator[row] = thread;
                // A start that another thread's clock puts before the creation: clamp (zero length).
                tasks.created[row] = at.min(tasks.began[row]);
            }
            Change::TaskFound { task, ty, region } => {
                tasks.grow_to(task);
                tasks.ty[task.index()] = ty;
                tasks.region[task.index()] = region;
            }
            Change::TaskUnseen { task } => {
                tasks.grow_to(task);
                if tasks.status[task.index()] == TaskStatus::Created {
                    tasks.status[task.index()] = TaskStatus::Unseen;
                }
            }
            Change::TaskReady { task } => {
                tasks.grow_to(task);
                // One that runs is able to run again when it is put down.
                self.ready.entry(task).or_insert(at);
            }
            Change::TaskIsOver { task } => {
                tasks.grow_to(task);
                self.ready.remove(&task);
                tasks.status[task.index()] = TaskStatus::Ended;
            }
            Change::TaskStarts { task } => {
                tasks.grow_to(task);
                if let Some(ready) = self.ready.remove(&task).map(|ready| ready.max(tasks.left(task)))
                    && ready < at
                {
                    self.queued.push(Queued { task, ready, began: at });
                }
                let row = task.index();
                if tasks.began[row] == NO_TIME {
                    tasks.began[row] = at;
                    tasks.runner[row] = thread;
                }
                tasks.status[row] = TaskStatus::Running;
            }
            Change::TaskEnds { task } => {
                tasks.grow_to(task);
                tasks.ended[task.index()] = at;
                tasks.status[task.index()] = TaskStatus::Ended;
            }
            Change::TaskSuspends { task } => {
                tasks.grow_to(task);
                tasks.status[task.index()] = TaskStatus::Suspended;
            }
            Change::TaskCancelled { task } => {
                tasks.grow_to(task);
                tasks.status[task.index()] = TaskStatus::Cancelled;
            }
            Change::TaskDetaches { task } => self.detached.push(task),
            Change::TaskDepends { task, address, kind } => {
                let dependence = Dependence { task, address, kind: u32::from(kind) };
                self.dependences.push(dependence);
            }
            Change::WaitDepends { address, kind } => {
                let dependence = WaitDependence { thread, at, address, kind: u32::from(kind) };
                self.wait_dependences.push(dependence);
            }
            _ => {}
        }
    }
}
