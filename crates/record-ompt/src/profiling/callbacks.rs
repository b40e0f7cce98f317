//! What small tasks and worksharing constructs cost in a profile: creation, begin and end of tasks, taskwaits, begin and end of
//! constructs.
//!
//! They go a [fast path](crate::fast_path) where a context has been met and no part of a wait is long.

use core::ffi::{c_int, c_void};

use taskscope_event::models::samples::state;
use taskscope_profile::{FrameKind, Marker};
use taskscope_record::FastRecording;

use super::Cause;
use super::contexts::body_of;
use super::follower::Follower;
use super::waits::{NO_WAIT, SHORTEST_PART_NS};
use crate::abi::{
    self, Callback, Data, Frame, endpoint, event, sync as sync_kind, task_flag, work as work_kind,
};
use crate::fast_path::{Outcome, enter, fast_callbacks, leave, schedule};
use crate::frames::{Frames, Open, Phase};
use crate::sampler::stack_pointer_here;
use crate::sections;
use crate::task_stacks::levels::{exit_of, exit_to_runtime};
use crate::task_stacks::paths::Creating;
use crate::task_stacks::undeferred::OwnFrames;
use crate::thread::{Thread, record_untimed};
use crate::tool_data::{EXPLICIT, STARTED, ToolData, UNRECORDED};
use crate::{sync, tasks, work};

/// The callback that a profile has for an event, where it has one of its own.
pub fn callback_of(number: c_int) -> Option<Callback> {
    let callback = match number {
        event::TASK_CREATE => task_create as *const (),
        event::TASK_SCHEDULE => task_schedule as *const (),
        event::SYNC_REGION_WAIT => sync_region_wait as *const (),
        event::WORK => work as *const (),
        _ => return None,
    };
    // SAFETY: only changes the type under which the address is passed on.
    Some(unsafe { core::mem::transmute::<*const (), Callback>(callback) })
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

unsafe extern "C" fn task_create(
    task: *mut Data,
    frame: *const Frame,
    new_task: *mut Data,
    flags: c_int,
    has_dependences: c_int,
    codeptr: *const c_void,
) {
    let runs = flags as u32 & task_flag::RUNS != 0;
    if !runs || !abi::is_object(frame) || !abi::is_object(new_task) {
        // SAFETY: the runtime's own arguments.
        return unsafe { tasks::task_create(task, frame, new_task, flags, has_dependences, codeptr) };
    }
    let sp = stack_pointer_here();
    if flags as u32 & task_flag::UNDEFERRED != 0 {
        // SAFETY: the runtime's own arguments.
        return unsafe { create_otherwise(task, frame, new_task, flags, codeptr, sp) };
    }
    let outcome = match enter() {
        Some((recorder, thread)) => {
            // SAFETY: the runtime passes the creating task's frame.
            let done = unsafe { create_deferred(thread, frame, (task, new_task), codeptr, sp) };
            leave(recorder, done)
        }
        None => Outcome::SlowPath,
    };
    match outcome {
        Outcome::Done => {}
        Outcome::Pending(recorder) => recorder.settle(),
        // SAFETY: the runtime's own arguments.
        Outcome::SlowPath => unsafe { create_otherwise(task, frame, new_task, flags, codeptr, sp) },
    }
}

/// A task that is deferred is created, as one was before.
///
/// # Safety
/// The runtime's own arguments.
#[inline(always)]
unsafe fn create_deferred(
    thread: &mut Thread,
    frame: *const Frame,
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
    frame: *const Frame,
    new_task: *mut Data,
    flags: c_int,
    codeptr: *const c_void,
    sp: u64,
) {
    let is_undeferred = flags as u32 & task_flag::UNDEFERRED != 0;
    // SAFETY: by contract.
    let frame = unsafe { Frame::read(frame) };
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
    /// Of the task that creates.
    frame: Frame,
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

unsafe extern "C" fn task_schedule(prior: *mut Data, prior_status: c_int, next: *mut Data) {
    // SAFETY: the runtime's own arguments.
    unsafe { schedule([task_begins, task_ends], prior, prior_status, next) }
}

/// A new task begins, on top of what the thread does.
#[inline(always)]
fn begin(recorder: &mut FastRecording, thread: &mut Thread, next: *mut Data) -> Option<()> {
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
        row.ran(account.switch_from_task(Cause::Task, recorder.now()?));
    } else {
        let at = recorder.now()?;
        if follower.waits.depth() == frames.depth() && !follower.waits.pause_shortly(at) {
            return None;
        }
        account.switch(Cause::Task, at);
    }
    task.with(STARTED).store(next);
    account.runs(task.id());
    // SAFETY: it has room.
    unsafe { frames.open_profiled(Open::Task { id: task.id() }, beneath, Cause::Task) };
    Some(())
}

/// The task that runs, and has nothing open, has ended; what it had interrupted goes on.
#[inline(always)]
fn end(recorder: &mut FastRecording, thread: &mut Thread, prior: *mut Data, next: *mut Data) -> Option<()> {
    let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
    let (top, cause) = frames.top_two()?;
    let (account, id, beneath) = (follower.account, frames.task_on_top(), top.site);
    if top.open != (Open::Task { id }) || ToolData::load(prior) != running(id) || !account.is_in_task() {
        return None;
    }
    // A new task may begin with the same event, or one further down go on.
    let next = ToolData::load(next);
    let goes_on = next == running(beneath) || beneath == 0 && !next.has(EXPLICIT) && !next.has(UNRECORDED);
    let row = follower.counted.rows.of(id).filter(|_| goes_on)?;
    let at = recorder.now()?;
    row.ran(account.switch_from_task(cause, at));
    account.ran(id, at);
    account.runs(beneath);
    // SAFETY: it is the innermost.
    unsafe { frames.close_task_on_top(beneath) };
    if follower.waits.depth() == frames.depth() {
        follower.waits.resume(at);
    }
    Some(())
}

unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    scope: c_int,
    parallel: *mut Data,
    task: *mut Data,
    codeptr: *const c_void,
) {
    // SAFETY: the runtime's own arguments.
    unsafe {
        match (kind, scope) {
            (sync_kind::TASKWAIT, endpoint::BEGIN) => taskwait_begins(kind, scope, parallel, task, codeptr),
            (sync_kind::TASKWAIT, endpoint::END) => taskwait_ends(kind, scope, parallel, task, codeptr),
            (sync_kind::BARRIER_IMPLICIT_PARALLEL, _) => sync::join(scope, codeptr),
            _ => sync::sync_region_wait(kind, scope, parallel, task, codeptr),
        }
    }
}

unsafe extern "C" fn work(
    kind: c_int,
    scope: c_int,
    parallel: *mut Data,
    task: *mut Data,
    count: u64,
    codeptr: *const c_void,
) {
    let is_plain = !matches!(kind as u32, work_kind::SINGLE_OTHER | work_kind::TASKLOOP);
    // SAFETY: the runtime's own arguments.
    unsafe {
        match scope {
            endpoint::BEGIN if is_plain => work_begins(kind, scope, parallel, task, count, codeptr),
            endpoint::END if is_plain => work_ends(kind, scope, parallel, task, count, codeptr),
            _ => work::work(kind, scope, parallel, task, count, codeptr),
        }
    }
}

fast_callbacks! {
    fn work_begins(
        kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, count: u64, codeptr: *const c_void
    ) = |recorder, thread| begin_work(recorder, thread, kind as u8), work::work;
    fn work_ends(
        kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, count: u64, codeptr: *const c_void
    ) = |recorder, thread| end_work(recorder, thread, kind as u8), work::work;
    fn taskwait_begins(kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, codeptr: *const c_void)
        = |recorder, thread| begin_taskwait(recorder, thread, codeptr as u64), sync::sync_region_wait;
    fn taskwait_ends(kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, codeptr: *const c_void)
        = |recorder, thread| end_taskwait(recorder, thread), sync::sync_region_wait;
    fn task_begins(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| begin(recorder, thread, next), tasks::task_schedule;
    fn task_ends(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| end(recorder, thread, prior, next), tasks::task_schedule;
}

/// A member of a team, with nothing else open, comes to a worksharing construct.
#[inline(always)]
fn begin_work(recorder: &mut FastRecording, thread: &mut Thread, kind: u8) -> Option<()> {
    let (frames, follower) = (&mut thread.frames, thread.profile.as_deref()?);
    let is_plain = matches!(frames.top()?.open, Open::Member { phase: Phase::Running, .. });
    if !is_plain || !frames.has_room() || follower.waits.depth() == frames.depth() {
        return None;
    }
    follower.account.switch(Cause::Worksharing, recorder.now()?);
    // SAFETY: it has room.
    unsafe { frames.open_profiled(Open::Work { typeid: 0, kind, codes: None }, 0, Cause::Worksharing) };
    Some(())
}

/// The construct that is innermost ends.
#[inline(always)]
fn end_work(recorder: &mut FastRecording, thread: &mut Thread, kind: u8) -> Option<()> {
    let (frames, follower) = (&mut thread.frames, thread.profile.as_deref()?);
    let (top, cause) = frames.top_two()?;
    let is_it = matches!(top.open, Open::Work { kind: opened, .. } if opened == kind);
    // No wait goes on that was interrupted, as by a task.
    let innermost = follower.waits.depth();
    if !is_it || innermost != NO_WAIT && innermost + 1 >= frames.depth() {
        return None;
    }
    follower.account.switch(cause, recorder.now()?);
    // SAFETY: it is the innermost, and no context.
    unsafe { frames.close_profiled() };
    Some(())
}

const TASKWAIT: Open = Open::Section { codes: sections::TASKWAIT, state: state::TASKWAIT };

/// An explicit task begins to wait for its children.
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
    row.ran(account.switch_from_task(Cause::Taskwait, at));
    thread.wait_return = codeptr;
    // SAFETY: both have room.
    unsafe {
        follower.waits.begin_in_room(Marker::Taskwait, depth + 1, at, (context, codeptr));
        frames.open_profiled(TASKWAIT, 0, Cause::Taskwait);
    }
    Some(())
}

/// The wait that the thread is in is over, and was short.
#[inline(always)]
fn end_taskwait(recorder: &mut FastRecording, thread: &mut Thread) -> Option<()> {
    let (frames, follower) = (&mut thread.frames, thread.profile.as_deref_mut()?);
    let (top, cause) = frames.top_two()?;
    // Nothing else has this cause.
    if follower.waits.depth() != frames.depth() || top.cause != Cause::Taskwait {
        return None;
    }
    let wait = follower.waits.short_so_far()?;
    let row = follower.counted.rows.of(wait.context)?;
    let at = recorder.now()?;
    let last_part = wait.part(at);
    if last_part >= SHORTEST_PART_NS || !row.counts_waits_of(wait.codeptr) {
        return None;
    }
    row.waited(wait.taken + last_part);
    follower.account.switch(cause, at);
    // SAFETY: both are there.
    unsafe {
        follower.waits.forget_innermost();
        frames.close_profiled();
    }
    Some(())
}
