//! Samples of call stacks, and the creation paths of regions and tasks that join the stacks of
//! several threads to one path as its user wrote it.
//!
//! `SAMPLE` events are in `samples.obs` beside a thread's other streams: they are written by a signal
//! handler, which never writes a stream that normal code writes. All other events of this model are in
//! `taskscope.obs`. The modules of the addresses are `dictionary::MODULE` events of any thread of the
//! process; if two of them overlap, the later one applies from its time on. The member `taskscope.sampling`
//! of `stream.json` gives `clock` (`wall` or `cpu`) and `period_ns`.
//!
//! # The stack of a sample
//!
//! The `stack` of a `SAMPLE` is `levels` entries of [`LEVEL_BYTES`] bytes, then one u64 address per
//! frame, innermost first. The first address is the interrupted instruction itself, all others are
//! return addresses (look up one byte before).
//!
//! ```text
//!   level   0   4  u16 first, u16 end: frames[first..end] are user code of this level
//!           4   4  u32 region, or 0 outside any
//!           8   4  u32 explicit task, or 0 in an implicit or initial one
//! ```
//! Level 0 is the running task, level 1 the one beneath it on the same stack, and so on (OpenMP 5.2, section
//! 19.4.4.29). Frames that belong to no level are the runtime's, with its callees: a function of the C
//! library belongs to its caller. So `first` of level 0 is the number of frames by which the sample was taken
//! inside the runtime, and is not 0 exactly if [`flag::IN_RUNTIME`] is set. Outside OpenMP there is one
//! level, of all frames.
//!
//! # Stitching
//!
//! The user's path of a sample is the frames of its level 0, then the creation path of its task:
//! the path of the task's type (`task` not 0), or of the region (`REGION_PATH`), then that
//! of the task which created it, up to an initial task. `level 0 ▸ level 1 ▸ …` is the execution path
//! instead.
//!
//! A path (`PATH`) is the part of the creator's stack between the creation and the start of the creating
//! task, innermost first, all return addresses, all user code. Paths are numbered per process; one is defined
//! before any thread names it.
//!
//! - `TASK_PATH` comes right after the creation that it describes, and is sticky: it holds for the newest
//!   task of that type created by the same thread, and for all later ones, until the next `TASK_PATH` of the
//!   type. Without any, the creation path is unknown.
//! - `REGION_PATH` comes at a region's end, from the thread that forked it, if any sample was taken in it by
//!   then. A worker's sample requests it by a flag, at no cost; the region's master resolves the path when
//!   its region ends, when its stack is as it was at the fork. For a region that has not ended when its
//!   process does, level 1 of any sample of its master (index 0) in it is the path. `path` 0 is none. A
//!   region that is the runtime's own (`omp::RUNTIMES_OWN`) has no path.
//! - `CALL_PATH` comes before a recorded wait, or hold of a lock, at that site, if the path from the call to
//!   the start of the task has changed since the same thread called there last. It holds for all waits that
//!   begin from then on, until the next one for the site.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'S';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// Bytes of one level in a sample's stack.
pub const LEVEL_BYTES: usize = 12;

/// Bits of `flags`.
pub mod flag {
    /// Taken inside the OpenMP runtime, or in its callees.
    pub const IN_RUNTIME: u32 = 1;
    /// The stack was followed to its root: the thread's first function.
    pub const REACHED_ROOT: u32 = 2;
    /// The stack has more frames than are stored.
    pub const CUT: u32 = 4;
    /// The weight is CPU time of the thread; else time that passed.
    pub const CPU_TIME: u32 = 8;
    /// The runtime's pointers were not usable: levels are those that could be known.
    pub const LEVELS_UNKNOWN: u32 = 16;
    /// The first sample of its thread: its weight counts from the start of sampling there.
    pub const FIRST: u32 = 32;
    /// The thread was in a call that a signal would have broken off; the sample waited for its end
    /// and has the whole of it as weight.
    pub const AFTER_BLOCKING: u32 = 64;
    /// The signal of the sample woke the thread in a system call, which it repeats, or which fails with `EINTR`.
    pub const IN_SYSTEM_CALL: u32 = 128;
}

/// `state` of a sample: the thread's state, by the recorder's own account of the events (runtimes misreport
/// theirs). The numbers are `ompt_state_t`'s (OpenMP 5.2, section 19.4.4.28), with three of our own for
/// further states.
pub mod state {
    /// Code outside any parallel region.
    pub const WORK_SERIAL: u32 = 0x000;
    /// Code of a parallel region, or of a task.
    pub const WORK_PARALLEL: u32 = 0x001;
    /// Combining the values of a reduction.
    pub const WORK_REDUCTION: u32 = 0x002;
    /// The barrier at a parallel region's end.
    pub const BARRIER_PARALLEL: u32 = 0x011;
    /// The barrier at a worksharing construct's end.
    pub const BARRIER_WORKSHARE: u32 = 0x012;
    /// A barrier that the program wrote.
    pub const BARRIER_EXPLICIT: u32 = 0x014;
    /// A barrier that the runtime needs, or of unknown kind.
    pub const BARRIER_IMPLEMENTATION: u32 = 0x015;
    /// The barrier at the end of a `teams` construct.
    pub const BARRIER_TEAMS: u32 = 0x016;
    /// Waiting for child tasks.
    pub const TASKWAIT: u32 = 0x020;
    /// Waiting for the tasks of a taskgroup.
    pub const TASKGROUP: u32 = 0x021;
    /// Waiting for the predecessors of a `taskwait depend`. Our own number.
    pub const TASKWAIT_DEPEND: u32 = 0x022;
    /// Waiting for a lock.
    pub const LOCK: u32 = 0x041;
    /// Waiting for a critical construct.
    pub const CRITICAL: u32 = 0x042;
    /// Waiting for an atomic construct.
    pub const ATOMIC: u32 = 0x043;
    /// Waiting for the turn in an ordered construct.
    pub const ORDERED: u32 = 0x044;
    /// Waiting for a nestable lock. Our own number.
    pub const NEST_LOCK: u32 = 0x045;
    /// Waiting for a device.
    pub const TARGET: u32 = 0x080;
    /// A thread of the runtime without a region.
    pub const IDLE: u32 = 0x100;
    /// Forking, joining, creating or scheduling.
    pub const OVERHEAD: u32 = 0x101;
    /// Not known to OpenMP. Our own use of `ompt_state_undefined`.
    pub const NO_OPENMP: u32 = 0x102;
}

events! {
    SAMPLE = b"SSs" jumbo (weight_ns: u64, object: u64, flags: u32, state: u32, region: u32, task: u32, levels: u32, stack: rest) Rule, "is sampled in state {state}, {weight_ns} ns after the sample before, waiting for object {object} (0: none), in region {region} and task {task}, flags {flags}, with {levels} levels on the stack {stack}";
    PATH = b"SPd" jumbo (path: u32, flags: u32, addresses: rest) Rule, "defines creation path {path}, flags {flags}: the return addresses {addresses}";
    REGION_PATH = b"SRp" plain (region: u32, path: u32, parent_region: u32, parent_task: u32) Rule, "created region {region} by path {path} in task {parent_task} of region {parent_region}";
    TASK_PATH = b"STp" plain (typeid: u32, path: u32) Rule, "sets the creation path of tasks of type {typeid} to {path}";
    CALL_PATH = b"SCp" plain (site: u32, path: u32) Rule, "sets the call path of site {site} to {path}";
}
