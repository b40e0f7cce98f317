//! The tables of a graph.

use super::device_work::{Operation, OperationWait};
use super::lists::Lists;
use super::row::NONE;
use crate::{Cause, NO_NUMBER, NO_TIME, OsSource};

/// A shared-memory domain; data moves between nodes by copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number in the source.
    pub id: u64,
}

/// Purpose of a thread in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Executes tasks, one at a time; its life counts in the capacity.
    #[default]
    Executes,
    /// Serves the runtime alone (dispatch, progress of communication) and executes no tasks; its life does not count as
    /// capacity.
    Runtime,
}

/// A thread of the graph; most execute tasks and count in the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its number in the source.
    pub id: u64,
    /// Row of its node.
    pub node: u32,
    /// Begin of its life.
    pub begin: u64,
    /// End of its life.
    pub end: u64,
    /// Its purpose.
    pub role: Role,
    /// Whether its time is selected; false for threads of the runtime. The others are kept because they may
    /// have made selected ones wait.
    pub selected: bool,
}

/// Common properties of task instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskType {
    /// The program's name for it.
    pub name: String,
    /// Function that holds its construct; empty if not known.
    pub function: String,
    /// Source file; empty if not known.
    pub file: String,
    /// Line in it; 0 if not known.
    pub line: u32,
    /// Whether it represents code outside of tasks (a region's own code, serial code).
    pub implicit: bool,
}

/// Task instances, in columns.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// Numbers in the source, ascending.
    pub id: Vec<u64>,
    /// Numbers given to tasks by runtimes, if they differ from `id`; [`NO_NUMBER`] for code outside of tasks.
    pub number: Vec<u64>,
    /// Row of the process in which a task has its number; [`NONE`] for code outside of tasks. Empty if all are of one
    /// process.
    pub process: Vec<u32>,
    /// Row of the type.
    pub ty: Vec<u32>,
    /// Row of the worker that ran its first piece; [`NONE`] for a task that never ran.
    pub worker: Vec<u32>,
    /// First start.
    pub start: Vec<u64>,
    /// Last end.
    pub end: Vec<u64>,
    /// Time of creation; empty if unknown for all tasks.
    pub created: Vec<u64>,
    /// Row of the creating task; empty if unknown for all tasks.
    pub creator: Vec<u32>,
    /// Time from which the runtime could start it; empty if unknown for all tasks.
    pub ready: Vec<u64>,
    /// Nanoseconds of runtime work inside its execution, at unknown positions; empty if all are 0.
    pub uniform: Vec<u64>,
}

impl Tasks {
    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// The number by which the user knows a task; `None` for code outside of tasks, and for no task.
    pub fn number(&self, task: usize) -> Option<u64> {
        let numbers = if self.number.is_empty() { &self.id } else { &self.number };
        numbers.get(task).copied().filter(|number| *number != NO_NUMBER)
    }

    /// Time of creation, or [`NO_TIME`].
    #[inline]
    pub fn created(&self, task: usize) -> u64 {
        self.created.get(task).copied().unwrap_or(NO_TIME)
    }

    /// Row of the creator, or [`NONE`].
    #[inline]
    pub fn creator(&self, task: usize) -> u32 {
        self.creator.get(task).copied().unwrap_or(NONE)
    }

    /// Ready time, or [`NO_TIME`].
    #[inline]
    pub fn ready(&self, task: usize) -> u64 {
        self.ready.get(task).copied().unwrap_or(NO_TIME)
    }

    /// Runtime work inside it at unknown positions.
    #[inline]
    pub fn uniform(&self, task: usize) -> u64 {
        self.uniform.get(task).copied().unwrap_or(0)
    }
}

/// Immutable values, in columns.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Numbers in the source, ascending.
    pub id: Vec<u64>,
    /// Row of the task that computed it; [`NONE`] for initial data.
    pub producer: Vec<u32>,
    /// Production times.
    pub produced: Vec<u64>,
    /// Row of the node of its computation or initial place.
    pub home: Vec<u32>,
    /// Size.
    pub bytes: Vec<u64>,
    /// The programmer's names: rows of [`TaskGraph::names`], [`NONE`] for data without one; empty if no data has one.
    pub name: Vec<u32>,
    /// Whether it represents the end of a wait (a barrier, a taskwait) rather than a value; empty if none
    /// does.
    pub synchronises: Vec<bool>,
}

impl Data {
    /// Number of data.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// Row of its name among the graph's names, or [`NONE`].
    pub fn name(&self, data: usize) -> u32 {
        self.name.get(data).copied().unwrap_or(NONE)
    }

    /// Whether it represents the end of a wait.
    pub fn synchronises(&self, data: usize) -> bool {
        self.synchronises.get(data).copied().unwrap_or(false)
    }
}

/// A transfer of data to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Row of the node that received it.
    pub node: u32,
    /// Send time, or [`NO_TIME`].
    pub sent: u64,
    /// Arrival time.
    pub arrived: u64,
}

/// Time in which a worker executed a task without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Row of the task.
    pub task: u32,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

/// A worker's activity besides executing tasks, or inside of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ActivityKind {
    /// Waiting for a lock; its name is the lock's.
    LockWait,
    /// In a communication call, waiting for another process that has not come to it; its name has the call's and
    /// that process's.
    PeerWait,
    /// In a communication call; its name is the call's.
    Communication,
    /// Waiting for an operation of a device; its name is the running operation.
    Device,
    /// Starting or ending a library of the job (MPI_Init, MPI_Finalize); its name is the call's.
    Start,
    /// On a CPU that is left free for the noise of the system; its name is the runtime's word for that.
    AbsorbingNoise,
    /// In a section of the runtime, or in none that is known; its name is the section's. With the cause that its time counts as.
    Runtime(Cause),
    /// Runnable, but not on a CPU; its name is the competitor's, if known. With the cause of its time.
    OffCpu(Cause),
    /// Blocked in the kernel, in code of the program, as its name states.
    Blocked,
}

impl ActivityKind {
    /// The cause that its time counts as.
    pub const fn cause(self) -> Cause {
        match self {
            ActivityKind::LockWait => Cause::Lock,
            ActivityKind::PeerWait => Cause::MpiLate,
            ActivityKind::Communication => Cause::MpiTransfer,
            ActivityKind::Device => Cause::Device,
            ActivityKind::Start => Cause::MpiStart,
            ActivityKind::AbsorbingNoise => Cause::RuntimeNoise,
            ActivityKind::Runtime(cause) | ActivityKind::OffCpu(cause) => cause,
            ActivityKind::Blocked => Cause::Blocked,
        }
    }
}

/// Time that a worker spent in an activity. Activities may overlap each other and pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Its kind.
    pub kind: ActivityKind,
    /// Row of [`TaskGraph::names`].
    pub name: u32,
    /// For a lock wait: row of the place ([`TaskGraph::types`]) of its holder's request; [`NONE`] if unknown.
    pub holder: u32,
    /// For a lock wait: row of the place from which the waiting worker asks for it; [`NONE`] if not known.
    pub waiter: u32,
}

/// Facts that a source reports, whether they occur or not; the others are unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedFacts {
    /// Whether creation times of tasks are recorded.
    pub creation: bool,
    /// Which tasks wait for which. Else a task seems able to start once it is created.
    pub dependences: bool,
    /// Waits for locks.
    pub locks: bool,
    /// Times off the CPU.
    pub off_cpu: bool,
}

/// The graph of a run.
#[derive(Clone, Debug, Default)]
pub struct TaskGraph {
    /// Nodes, ascending by id.
    pub nodes: Vec<Node>,
    /// Workers, ascending by id.
    pub workers: Vec<Worker>,
    /// Task types and other places.
    pub types: Vec<TaskType>,
    /// Names of activities and of data.
    pub names: Vec<String>,
    /// Processes in words, if tasks belong to several.
    pub processes: Vec<String>,
    /// Tasks.
    pub tasks: Tasks,
    /// Data.
    pub data: Data,
    /// The data that each task reads.
    pub inputs: Lists<u32>,
    /// The copies of each data, at most one a node.
    pub copies: Lists<Copy>,
    /// The pieces of each worker.
    pub pieces: Lists<Piece>,
    /// The activities of each worker, ascending by (start, end, name).
    pub activities: Lists<Activity>,
    /// Operations of devices that workers waited for.
    pub operations: Vec<Operation>,
    /// The waits of each worker for these, by their ends.
    pub operation_waits: Lists<OperationWait>,
    /// Source of the times off the CPU; also unknown if the source never reports them.
    pub off_cpu: OsSource,
    /// Facts that its source reports.
    pub recorded: RecordedFacts,
}

impl TaskGraph {
    /// The number by which the user knows some data; `None` for an order of tasks that was derived, and for no data.
    pub fn data_number(&self, data: u32) -> Option<u64> {
        self.data.id.get(data as usize).copied().filter(|_| self.tasks.number.is_empty())
    }

    /// The process of a task in words, if there are several.
    pub fn process_of(&self, task: u32) -> Option<&str> {
        let process = *self.tasks.process.get(task as usize)?;
        self.processes.get(process as usize).map(String::as_str)
    }

    /// The time from which `data` could be read on `node`: the arrival of its copy there, or, without a copy, its
    /// production.
    #[inline]
    pub fn available(&self, data: u32, node: u32) -> u64 {
        match self.copy(data, node) {
            Some(copy) => copy.arrived,
            None => self.data.produced[data as usize],
        }
    }

    /// The copy of `data` on `node`.
    #[inline]
    pub fn copy(&self, data: u32, node: u32) -> Option<&Copy> {
        self.copies.get(data as usize).iter().find(|copy| copy.node == node)
    }

    /// The node that `data` came from: that of its producer's worker, or its home.
    pub fn origin(&self, data: u32) -> u32 {
        match self.data.producer[data as usize] {
            NONE => self.data.home[data as usize],
            task => self.node_of_task(task),
        }
    }

    /// The node that `task` ran on.
    #[inline]
    pub fn node_of_task(&self, task: u32) -> u32 {
        self.tasks
            .worker
            .get(task as usize)
            .map_or(NONE, |w| self.workers.get(*w as usize).map_or(NONE, |w| w.node))
    }

    /// The workers that execute tasks, selected or not.
    pub fn executing_workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| worker.role == Role::Executes)
    }

    /// The selected workers.
    pub fn selected_workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|worker| worker.selected)
    }

    /// Sum of the lives of the selected workers, nanoseconds.
    pub fn capacity(&self) -> u64 {
        self.selected_workers().map(|worker| worker.end - worker.begin).sum()
    }

    /// First begin and last end of a worker that executes tasks; zeros if there is none.
    pub fn range(&self) -> (u64, u64) {
        let begin = self.executing_workers().map(|worker| worker.begin).min().unwrap_or(0);
        let end = self.executing_workers().map(|worker| worker.end).max().unwrap_or(0);
        (begin, end)
    }
}
