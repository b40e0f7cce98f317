//! Small tasks and worksharing constructs in a profile: [fast paths](crate::fast_path) of the usual cases,
//! with a known context and no long part of a wait.

use core::ffi::c_void;

use taskscope_event::models::samples::state;
use taskscope_profile::{FrameKind, Marker};
use taskscope_record::FastRecording;

use super::State;
use super::contexts::body_of;
use super::follower::Follower;
use super::waits::{MIN_PART_NS, NO_WAIT};
use crate::abi::{self, Data, OmptFrame, task_flag};
use crate::fast_path::{enter, leave};
use crate::frames::{Frames, Open, Phase};
use crate::sections;
use crate::sink::{Outcome, Sink};
use crate::task_stacks::levels::{exit_of, exit_to_runtime};
use crate::task_stacks::paths::Creating;
use crate::task_stacks::undeferred::OwnFrames;
use crate::tasks;
use crate::thread::{Thread, record_untimed};
use crate::tool_data::{EXPLICIT, STARTED, ToolData, UNRECORDED};

/// The counts of a profile.
pub struct Profile;

impl Sink for Profile {
    const COUNTS: bool = true;

    #[inline(always)]
    unsafe fn create_task(
        creator: *mut Data,
        frame: *const OmptFrame,
        new_task: *mut Data,
        flags: u32,
        codeptr: *const c_void,
        sp: u64,
    ) -> Outcome {
        let is_usual = flags & task_flag::RUNS != 0 && flags & task_flag::UNDEFERRED == 0;
        if !is_usual || !abi::is_object(frame) || !abi::is_object(new_task) {
            return Outcome::SlowPath;
        }
        match enter() {
            Some((recorder, thread)) => {
                // SAFETY: the runtime passes the creating task's frame.
                let done = unsafe { create_deferred(thread, frame, (creator, new_task), codeptr, sp) };
                leave(recorder, done)
            }
            None => Outcome::SlowPath,
        }
    }

    #[inline(always)]
    unsafe fn create_task_slowly(
        creator: *mut Data,
        frame: *const OmptFrame,
        new_task: *mut Data,
        flags: u32,
        codeptr: *const c_void,
        sp: u64,
    ) {
        // SAFETY: by contract.
        unsafe {
            if flags & task_flag::RUNS == 0 || !abi::is_object(frame) || !abi::is_object(new_task) {
                tasks::create_slowly(creator, frame, new_task, flags, codeptr);
            } else {
                create_otherwise(creator, frame, new_task, flags, codeptr, sp);
            }
        }
    }

    #[inline(always)]
    fn begin_task(recorder: &mut FastRecording, thread: &mut Thread, next: *mut Data) -> Option<()> {
        let task = ToolData::load(next);
        if task.flags() != EXPLICIT {
            return None;
        }
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
        let (account, beneath) = (follower.account, frames.task_on_top());
        if !frames.has_room() {
            return None;
        }
        if account.is_in_task() {
            // At once, in the middle of its creator.
            let row = follower.counted.rows.of(beneath)?;
            row.ran(account.switch_from_task(State::Task, recorder.now()?));
        } else {
            let at = recorder.now()?;
            if follower.waits.depth() == frames.depth() && !follower.waits.pause_shortly(at) {
                return None;
            }
            account.switch(State::Task, at);
        }
        task.with(STARTED).store(next);
        account.runs(task.id());
        // SAFETY: it has room.
        unsafe { frames.open_profiled(Open::Task { id: task.id() }, beneath, State::Task) };
        Some(())
    }

    #[inline(always)]
    fn end_task(
        recorder: &mut FastRecording,
        thread: &mut Thread,
        prior: *mut Data,
        next: *mut Data,
    ) -> Option<()> {
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
        let (top, state) = frames.top_two()?;
        let (account, id, beneath) = (follower.account, frames.task_on_top(), top.site);
        if top.open != (Open::Task { id }) || ToolData::load(prior) != running(id) || !account.is_in_task() {
            return None;
        }
        // A new task may begin with the same event, or one further down go on.
        let next = ToolData::load(next);
        let goes_on =
            next == running(beneath) || beneath == 0 && !next.has(EXPLICIT) && !next.has(UNRECORDED);
        let row = follower.counted.rows.of(id).filter(|_| goes_on)?;
        let at = recorder.now()?;
        row.ran(account.switch_from_task(state, at));
        account.ran(id, at);
        account.runs(beneath);
        // SAFETY: it is the innermost.
        unsafe { frames.close_task_on_top(beneath) };
        if follower.waits.depth() == frames.depth() {
            follower.waits.resume(at);
        }
        Some(())
    }

    #[inline(always)]
    fn begin_work(recorder: &mut FastRecording, thread: &mut Thread, kind: u8) -> Option<()> {
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref()?);
        let is_plain = matches!(frames.top()?.open, Open::Member { phase: Phase::Running, .. });
        if !is_plain || !frames.has_room() || follower.waits.depth() == frames.depth() {
            return None;
        }
        follower.account.switch(State::Worksharing, recorder.now()?);
        // SAFETY: it has room.
        unsafe { frames.open_profiled(Open::Work { typeid: 0, kind, codes: None }, 0, State::Worksharing) };
        Some(())
    }

    #[inline(always)]
    fn end_work(recorder: &mut FastRecording, thread: &mut Thread, kind: u8) -> Option<()> {
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref()?);
        let (top, state) = frames.top_two()?;
        let is_it = matches!(top.open, Open::Work { kind: opened, .. } if opened == kind);
        // An interrupted wait, for example by a task, is not running.
        let innermost = follower.waits.depth();
        if !is_it || innermost != NO_WAIT && innermost + 1 >= frames.depth() {
            return None;
        }
        follower.account.switch(state, recorder.now()?);
        // SAFETY: it is the innermost, and no context.
        unsafe { frames.close_profiled() };
        Some(())
    }

    #[inline(always)]
    fn begin_taskwait(recorder: &mut FastRecording, thread: &mut Thread, codeptr: u64) -> Option<()> {
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
        let (account, depth) = (follower.account, frames.depth());
        let context = frames.task_on_top();
        let is_plain = account.is_in_task() && follower.waits.depth() != depth;
        if context == 0 || !is_plain || !frames.has_room() || !follower.waits.has_room() {
            return None;
        }
        let row = follower.counted.rows.of(context)?;
        let at = recorder.now()?;
        row.ran(account.switch_from_task(State::Taskwait, at));
        thread.wait_return = codeptr;
        // SAFETY: both have room.
        unsafe {
            follower.waits.begin_in_room(Marker::Taskwait, depth + 1, at, (context, codeptr));
            frames.open_profiled(TASKWAIT, 0, State::Taskwait);
        }
        Some(())
    }

    #[inline(always)]
    fn end_taskwait(recorder: &mut FastRecording, thread: &mut Thread) -> Option<()> {
        let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
        let (top, state) = frames.top_two()?;
        // No other entry has this state.
        if follower.waits.depth() != frames.depth() || top.state != State::Taskwait {
            return None;
        }
        let wait = follower.waits.short_so_far()?;
        let row = follower.counted.rows.of(wait.context)?;
        let at = recorder.now()?;
        let last_part = wait.part(at);
        if last_part >= MIN_PART_NS || !row.counts_waits_of(wait.codeptr) {
            return None;
        }
        row.waited(wait.taken + last_part);
        follower.account.switch(state, at);
        // SAFETY: both are there.
        unsafe {
            follower.waits.forget_innermost();
            frames.close_profiled();
        }
        Some(())
    }
}

/// The context that the thread is in: its task's, else its team's.
#[inline(always)]
fn context(frames: &Frames, follower: &Follower) -> Option<u32> {
    match frames.task_on_top() {
        0 => match frames.innermost_context()?.open {
            Open::Member { .. } => Some(follower.context_of_team()),
            _ => None,
        },
        task => Some(task),
    }
}

/// The word of a task that runs in this context.
#[inline(always)]
fn running(context: u32) -> ToolData {
    ToolData::new(context, 0, EXPLICIT | STARTED)
}

/// A task that is deferred is created, as one was before.
///
/// # Safety
/// The runtime's own arguments.
#[inline(always)]
unsafe fn create_deferred(
    thread: &mut Thread,
    frame: *const OmptFrame,
    (task, new_task): (*mut Data, *mut Data),
    codeptr: *const c_void,
    sp: u64,
) -> Option<()> {
    let follower = thread.profile.as_deref()?;
    let creator = context(&thread.frames, follower)?;
    if tasks::is_part_of_running(thread, task) {
        return None;
    }
    // SAFETY: by contract.
    let exit = unsafe { exit_to_runtime(frame) }?;
    let creating = Creating { codeptr: codeptr as u64, exit, sp, creator };
    let context = thread.paths.known_creation(creating)?.context;
    follower.counted.rows.of(context)?.created();
    ToolData::new(context, 0, EXPLICIT).store(new_task);
    Some(())
}

/// Any task is created, at the stack pointer `sp`.
///
/// # Safety
/// The runtime's own arguments, besides.
#[inline(never)]
unsafe fn create_otherwise(
    task: *mut Data,
    frame: *const OmptFrame,
    new_task: *mut Data,
    flags: u32,
    codeptr: *const c_void,
    sp: u64,
) {
    let is_undeferred = flags & task_flag::UNDEFERRED != 0;
    // SAFETY: by contract.
    let frame = unsafe { OmptFrame::read(frame) };
    let call = Call { codeptr: codeptr as u64, frame, sp, is_undeferred };
    let outcome = match enter() {
        Some((recorder, thread)) => leave(recorder, create(thread, call, (task, new_task))),
        None => Outcome::SlowPath,
    };
    match outcome {
        Outcome::Done => {}
        Outcome::Pending(recorder) => recorder.settle(),
        Outcome::SlowPath => learn_creation(call, (task, new_task)),
    }
}

/// The call of the runtime that creates a task.
#[derive(Clone, Copy)]
struct Call {
    codeptr: u64,
    /// Frame of the creating task.
    frame: OmptFrame,
    sp: u64,
    is_undeferred: bool,
}

impl Call {
    #[inline(always)]
    fn creating(&self, thread: &Thread, creator: u32) -> Creating {
        let exit = exit_of(&self.frame, thread.frames.task_on_top(), &thread.undeferred);
        Creating { codeptr: self.codeptr, exit, sp: self.sp, creator }
    }

    /// The task has been created.
    #[inline(always)]
    fn created(&self, thread: &mut Thread, context: u32, new_task: *mut Data) {
        ToolData::new(context, 0, EXPLICIT).store(new_task);
        if self.is_undeferred {
            // SAFETY: all bit patterns are numbers.
            let frame_pointer = unsafe { self.frame.enter.value };
            static OWN: OwnFrames = OwnFrames::new();
            let call = (self.codeptr, frame_pointer, self.sp);
            thread.undeferred.note(context, call, &OWN, thread.bounds);
        }
    }
}

#[inline(always)]
fn create(thread: &mut Thread, call: Call, (task, new_task): (*mut Data, *mut Data)) -> Option<()> {
    let follower = thread.profile.as_deref()?;
    let creator = context(&thread.frames, follower)?;
    let context = match tasks::is_part_of_running(thread, task) {
        true if body_of(creator) != FrameKind::Region => creator,
        true => return None,
        false => thread.paths.known_creation(call.creating(thread, creator))?.context,
    };
    follower.counted.rows.of(context)?.created();
    call.created(thread, context, new_task);
    Some(())
}

#[cold]
#[inline(never)]
fn learn_creation(call: Call, (task, new_task): (*mut Data, *mut Data)) {
    record_untimed(|moment| {
        let context = match tasks::is_part_of_running(moment.thread, task) {
            true => moment.count_another(),
            false => moment.learn_creation(call.creating(moment.thread, moment.context())),
        };
        call.created(moment.thread, context, new_task);
    });
}

const TASKWAIT: Open = Open::Section { codes: sections::TASKWAIT, state: state::TASKWAIT };
