//! What is known of one thread while its events come.

use super::cpus;
use super::frames::{Frames, Opener, Sticky};
use super::{sections, tasks};
use taskscope_event::models::wait;
use taskscope_execution::{
    ProcessIndex, RegionIndex, Section, State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
};

/// The largest wait kind that is kept apart; see `taskscope_event::models::wait::kind`.
const WAIT_KINDS: usize = 16;

/// Calls that poll, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll {
    /// Number of the function.
    pub function: u32,
    pub opener: Opener,
    /// What it polls for has been found.
    pub found: bool,
    /// The end of the last call, while its section stays open: another one may follow at once.
    pub ended: Option<u64>,
    /// The end of the call before, and the begin of the one that continues it.
    pub continued: Option<(u64, u64)>,
}

/// A thread with the stack of what it is in.
pub(super) struct ThreadState {
    /// Of the recorder whose event is at hand; its numbers are those of this process.
    pub process: ProcessIndex,
    /// The recorder that tells where the thread runs; others that write of it tell other things.
    pub placed_by: ProcessIndex,
    /// Recorders that have not told its end.
    pub recorders: u32,
    pub kind: ThreadKind,
    pub begun: bool,
    /// When the thread ended, if it has.
    pub ended: Option<u64>,
    pub works: bool,
    pub frames: Frames,
    pub sticky: [Option<Sticky>; WAIT_KINDS],
    pub last_lock_kind: u32,
    /// A region that has begun and whose fork section has not opened yet.
    pub forking: RegionIndex,
    /// Regions in whose teams the thread is, innermost last. The barrier at a region's end lies
    /// outside the section of its implicit task.
    pub member_of: Vec<RegionIndex>,
    /// The task that it created last.
    pub last_created: Option<(TaskIndex, TypeIndex)>,
    pub last_task: Option<tasks::LastTask>,
    pub last_block: Option<tasks::LastBlock>,
    /// The wait for a lock that ended last, and when.
    pub last_lock_wait: Option<(u64, Section)>,
    /// The runtime's idle state of the worker, whatever part of it it is in; none while it progresses.
    pub idle: Option<State>,
    pub on_cpu: cpus::OnCpu,
    /// The worker that its last call of a communication library was told of.
    pub calls_as: Option<ThreadIndex>,
    /// Its last call polls for something, and has not found it yet.
    pub poll: Option<Poll>,
    /// Its runtime tells its sections: being in none means something.
    pub has_subsystems: bool,
    /// See [`Interpreter::is_of_openmp`](super::Interpreter::is_of_openmp).
    pub is_of_openmp: bool,
    /// See [`Interpreter::has_os_times`](super::Interpreter::has_os_times).
    pub has_os_times: bool,
    /// Of a CPU: the threads that run on it, the one that came last, which it shows, at the end.
    pub runs: Vec<ThreadIndex>,
}

impl ThreadState {
    /// A thread that has not begun, of which this recorder writes.
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
            on_cpu: cpus::OnCpu::default(),
            calls_as: None,
            poll: None,
            has_subsystems: false,
            is_of_openmp: false,
            has_os_times: false,
            runs: Vec::new(),
        }
    }

    /// What the thread does in no section.
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

    /// What is known of waits of this kind; all kinds of locks share one section, so there it is
    /// what was told last.
    pub fn sticky(&self, kind: u32) -> Option<Sticky> {
        let kind = if sections::mutex_state(kind).is_some() { self.last_lock_kind } else { kind };
        *self.sticky.get(kind as usize)?
    }

    /// What a thread in this section is shown in: the idle state of its worker comes first. A CPU in sponge mode absorbs
    /// noise, also where the runtime calls it resting.
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
