//! Columns of everything that is not a section: tasks, regions, worksharing, holds, dependences.

use crate::{Column, ObjectIndex, RegionIndex, SiteIndex, TaskIndex, ThreadIndex, TypeIndex};

/// A time that is not known.
pub const NO_TIME: u64 = u64::MAX;

/// Marks a task or region to which its runtime gave no number.
pub const NO_NUMBER: u64 = u64::MAX;

/// End of a task's life, as far as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskStatus {
    /// Created, never started.
    Created,
    /// Started, not ended.
    Running,
    /// Left its thread before its end.
    Suspended,
    /// Ended.
    Ended,
    /// Ended by cancellation.
    Cancelled,
    /// Created; whether it was executed is not recorded.
    Unseen,
}

/// Task instances, by [`TaskIndex`], which is the order of creation.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// The number that the runtime, or for OpenMP the recorder, gave the task in its process; [`NO_NUMBER`] for none. A
    /// runtime may reuse it once the task has ended. Empty if no task has one.
    pub number: Column<u64>,
    /// Type.
    pub ty: Column<TypeIndex>,
    /// The explicit task that created it, if any.
    pub parent: Column<TaskIndex>,
    /// The region in which it was created, if any.
    pub region: Column<RegionIndex>,
    /// Thread that created it; none if its creation is not in the trace.
    pub creator: Column<ThreadIndex>,
    /// Thread that started it first.
    pub runner: Column<ThreadIndex>,
    /// Time of creation, or [`NO_TIME`].
    pub created: Column<u64>,
    /// Time of its first start, or [`NO_TIME`].
    pub began: Column<u64>,
    /// Time of its last end or suspension, or [`NO_TIME`].
    pub ended: Column<u64>,
    /// Ends of the tasks' lives.
    pub status: Vec<TaskStatus>,
}

impl Tasks {
    /// Number of tasks.
    pub fn len(&self) -> usize {
        self.ty.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ty.is_empty()
    }

    /// The task's number in its process, if it has one; see [`Tasks::number`](struct@Tasks).
    pub fn number(&self, task: TaskIndex) -> Option<u64> {
        self.number.get(task.index()).copied().filter(|number| *number != NO_NUMBER)
    }

    /// Number of begun tasks.
    pub fn began_count(&self) -> u64 {
        self.began.iter().filter(|at| **at != NO_TIME).count() as u64
    }

    /// Time at which a thread last suspended the task; 0 if none has.
    pub(crate) fn left(&self, task: TaskIndex) -> u64 {
        self.ended.get(task.index()).copied().filter(|at| *at != NO_TIME).unwrap_or(0)
    }

    /// Makes room for so many tasks.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.ty.expect(rows);
        self.parent.expect(rows);
        self.region.expect(rows);
        self.creator.expect(rows);
        self.runner.expect(rows);
        self.created.expect(rows);
        self.began.expect(rows);
        self.ended.expect(rows);
        let _ = self.status.try_reserve_exact(rows.saturating_sub(self.status.len()));
    }

    pub(crate) fn grow_to(&mut self, task: TaskIndex) {
        let rows = task.index() + 1;
        if rows > self.len() {
            self.ty.grow_to(rows, TypeIndex::NONE);
            self.parent.grow_to(rows, TaskIndex::NONE);
            self.region.grow_to(rows, RegionIndex::NONE);
            self.creator.grow_to(rows, ThreadIndex::NONE);
            self.runner.grow_to(rows, ThreadIndex::NONE);
            self.created.grow_to(rows, NO_TIME);
            self.began.grow_to(rows, NO_TIME);
            self.ended.grow_to(rows, NO_TIME);
            self.status.resize(rows, TaskStatus::Created);
        }
    }
}

/// A time during which a task was able to run, and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The task.
    pub task: TaskIndex,
    /// Since when it was able to run.
    pub ready: u64,
    /// Time at which a thread took it up.
    pub began: u64,
}

/// A parallel region instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The recorder's number of it in its process; [`NO_NUMBER`] for none.
    pub number: u64,
    /// Place of the construct.
    pub site: SiteIndex,
    /// The region around it, if any.
    pub parent: RegionIndex,
    /// Thread that began it.
    pub master: ThreadIndex,
    /// Time of its begin, or [`NO_TIME`].
    pub begin: u64,
    /// Time of its end, or [`NO_TIME`].
    pub end: u64,
    /// Requested threads; 0 if not known.
    pub requested: u32,
    /// Members that joined.
    pub members: u32,
    /// Size of the team; 0 if not known.
    pub team: u32,
}

/// Control variables of OpenMP under which a team got fewer threads than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamLimits {
    /// `max-active-levels-var`: enclosing regions of more than one thread, this one included, at most.
    pub levels: u32,
    /// `thread-limit-var`: threads of the contention group at most.
    pub threads: u32,
    /// `dyn-var`: the runtime may adjust sizes of teams.
    pub is_dynamic: bool,
}

/// One thread's share of one execution of a worksharing construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkShare {
    /// The construct.
    pub ty: TypeIndex,
    /// The region with the team that shares it.
    pub region: RegionIndex,
    /// The thread.
    pub thread: ThreadIndex,
    /// Number of earlier executions of this construct in this region by this thread.
    pub ordinal: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Chunks reported.
    pub chunks: u32,
    /// Iterations in them.
    pub iterations: u64,
}

/// A time during which a thread held an object, as seen by the next holder: it ends at the report
/// of the release or at the next holder's acquisition, whichever is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Hold {
    /// The object.
    pub object: ObjectIndex,
    /// The holder.
    pub thread: ThreadIndex,
    /// The place of the request for the object.
    pub site: SiteIndex,
    /// The explicit task that it was in, if any.
    pub task: TaskIndex,
    /// Time of the acquisition.
    pub start: u64,
    /// Time of the release.
    pub end: u64,
}

/// A dependence that a `taskwait depend` declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitDependence {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// Time, in the wait.
    pub at: u64,
    /// Address.
    pub address: u64,
    /// OMPT dependence type.
    pub kind: u32,
}

/// A dependence that a task declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Dependence {
    /// Address.
    pub address: u64,
    /// The task.
    pub task: TaskIndex,
    /// OMPT dependence type.
    pub kind: u32,
}
