//! State of one thread during the replay.

use super::frames::{Frames, Opener, Sticky};
use super::loom_cpus::OnCpu;
use super::task_numbers::{LastBlock, LastTask};
use crate::semantic::sections;
use taskscope_event::models::wait;
use taskscope_execution::{
    ProcessIndex, RegionIndex, Section, State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
};

/// The largest wait kind that is kept apart; see `taskscope_event::models::wait::kind`.
const WAIT_KINDS: usize = 16;

/// Calls that poll, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// Number of the function.
    pub function: u32,
    pub opener: Opener,
    /// The polled request is complete.
    pub found: bool,
    /// The end of the last call, while its section stays open: another one may follow immediately.
    pub ended: Option<u64>,
    /// The end of the call before, and the begin of the one that continues it.
    pub continued: Option<(u64, u64)>,
}

/// A thread with the stack of its open sections.
pub struct ThreadState {
    /// Process of the recorder of the current event: its numbers are that process's.
    pub process: ProcessIndex,
    /// The recorder that provides the thread's CPUs; others provide other data.
    pub placed_by: ProcessIndex,
    /// Number of recorders that have not ended the thread.
    pub recorders: u32,
    pub kind: ThreadKind,
    pub begun: bool,
    /// When the thread ended, if it has.
    pub ended: Option<u64>,
    pub works: bool,
    pub frames: Frames,
    pub sticky: [Option<Sticky>; WAIT_KINDS],
    pub last_lock_kind: u32,
    /// A region that has begun, before its fork section opens.
    pub forking: RegionIndex,
    /// Regions of the teams that the thread belongs to, innermost last. The barrier at a region's end is
    /// outside the section of its implicit task.
    pub member_of: Vec<RegionIndex>,
    /// The task that the thread created last.
    pub last_created: Option<(TaskIndex, TypeIndex)>,
    pub last_task: Option<LastTask>,
    pub last_block: Option<LastBlock>,
    /// The wait for a lock that ended last, and when.
    pub last_lock_wait: Option<(u64, Section)>,
    /// The runtime's idle state of the worker, in any of its subsystems; `None` while it progresses.
    pub idle: Option<State>,
    pub on_cpu: OnCpu,
    /// The worker that its last call of a communication library was recorded for.
    pub calls_as: Option<ThreadIndex>,
    /// Its last call polls for a request that is not complete.
    pub poll: Option<Poll>,
    /// Its runtime records sections: time outside of them is meaningful.
    pub has_subsystems: bool,
    /// See [`Interpreter::is_of_openmp`](crate::semantic::Interpreter::is_of_openmp).
    pub is_of_openmp: bool,
    /// See [`Interpreter::has_os_times`](crate::semantic::Interpreter::has_os_times).
    pub has_os_times: bool,
    /// For a CPU: the threads that run on it; the newest, which it shows, is last.
    pub runs: Vec<ThreadIndex>,
}

impl ThreadState {
    /// Creates the state of a thread that has not begun, recorded by this recorder.
    pub fn of(recorder: ProcessIndex) -> ThreadState {
        ThreadState {
            process: recorder,
            placed_by: recorder,
            recorders: 1,
            kind: ThreadKind::Unknown,
            begun: false,
            ended: None,
            works: false,
            frames: Frames::default(),
            sticky: [None; WAIT_KINDS],
            last_lock_kind: wait::kind::CRITICAL,
            forking: RegionIndex::NONE,
            member_of: Vec::new(),
            last_created: None,
            last_task: None,
            last_block: None,
            last_lock_wait: None,
            idle: None,
            on_cpu: OnCpu::default(),
            calls_as: None,
            poll: None,
            has_subsystems: false,
            is_of_openmp: false,
            has_os_times: false,
            runs: Vec::new(),
        }
    }

    /// The thread's section outside of all recorded ones.
    pub fn base(&self) -> Section {
        Section::of(match self.kind {
            ThreadKind::Initial => State::Serial,
            ThreadKind::Worker => State::Idle,
            ThreadKind::Cpu => State::Idle,
            ThreadKind::Helper | ThreadKind::Unknown if self.has_subsystems => State::NoSubsystem,
            ThreadKind::Helper => State::Idle,
            ThreadKind::Unknown if self.is_of_openmp => State::Serial,
            ThreadKind::Unknown => State::Unknown,
        })
    }

    /// Place and object of waits of this kind; all kinds of locks share one section, so for those it is the
    /// newest one.
    pub fn sticky(&self, kind: u32) -> Option<Sticky> {
        let kind = if sections::mutex_state(kind).is_some() { self.last_lock_kind } else { kind };
        *self.sticky.get(kind as usize)?
    }

    /// The section shown for a thread in this section: the idle state of its worker has priority. A CPU in
    /// sponge mode absorbs noise, even if the runtime calls it resting.
    #[inline(always)]
    pub fn shown(&self, section: Section) -> Section {
        match self.idle {
            None => section,
            Some(_) if section.state == State::AbsorbingNoise => section,
            Some(state) => Section::of(state),
        }
    }

    #[inline(always)]
    pub fn now(&self) -> Section {
        self.shown(self.frames.top().map_or_else(|| self.base(), |frame| frame.section))
    }
}
