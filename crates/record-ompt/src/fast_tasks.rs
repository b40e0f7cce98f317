//! What small tasks cost in a trace: their creation, begin and end, by a [fast path](crate::fast_path).

use core::ffi::{c_int, c_void};

use taskscope_event::models::openmp;
use taskscope_record::FastRecording;

use crate::abi::{self, Callback, Data, Frame, event, task_flag};
use crate::fast_path::{fast_callbacks, schedule};
use crate::outlined;
use crate::payload::two;
use crate::sampler;
use crate::tasks;
use crate::thread::Thread;
use crate::tool_data::{EXPLICIT, STARTED, ToolData, UNRECORDED};

/// The callback that a trace has for an event, where it has one that is short.
pub fn callback_of(number: c_int) -> Option<Callback> {
    let callback = match number {
        event::TASK_CREATE => task_create as *const (),
        event::TASK_SCHEDULE => task_schedule as *const (),
        _ => return None,
    };
    // SAFETY: only changes the type under which the address is passed on.
    Some(unsafe { core::mem::transmute::<*const (), Callback>(callback) })
}

unsafe extern "C" fn task_schedule(prior: *mut Data, prior_status: c_int, next: *mut Data) {
    // SAFETY: the runtime's own arguments.
    unsafe { schedule([task_begins, task_ends], prior, prior_status, next) }
}

fast_callbacks! {
    fn task_create(task: *mut Data, frame: *const Frame, new_task: *mut Data, flags: c_int, has_dependences: c_int,
        codeptr: *const c_void) = |recorder, thread| create(recorder, thread, new_task, flags as u32, codeptr),
        tasks::task_create;
    fn task_begins(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| begin(recorder, thread, next), tasks::task_schedule;
    fn task_ends(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| end(recorder, thread, prior, next), tasks::task_schedule;
}

#[inline(always)]
fn create(
    recorder: &mut FastRecording,
    thread: &mut Thread,
    new_task: *mut Data,
    flags: u32,
    codeptr: *const c_void,
) -> Option<()> {
    // Where samples are taken, the creation's path is told, too.
    if flags & task_flag::RUNS == 0 || sampler::is_active() || !abi::is_object(new_task) {
        return None;
    }
    let body = outlined::of_task(new_task).body;
    let (entry, id) = (thread.cache.known_task_type(codeptr, body, flags)?, thread.tasks.next()?);
    if entry.typeid == 0 {
        return None;
    }
    recorder.point(openmp::TASK_CREATE, two(id, entry.typeid))?;
    thread.tasks.take_next();
    entry.task_data.with_id(id).store(new_task);
    Some(())
}

/// A new task begins, on top of what the thread does.
#[inline(always)]
fn begin(recorder: &mut FastRecording, thread: &mut Thread, next: *mut Data) -> Option<()> {
    let (task, frames) = (ToolData::load(next), &mut thread.frames);
    if task.flags() != EXPLICIT || !frames.has_room_to_show() {
        return None;
    }
    let id = task.id();
    recorder.begin(openmp::TASK_EXECUTE, id.to_le_bytes(), 4)?;
    task.with(STARTED).store(next);
    // SAFETY: there is room.
    unsafe { frames.open_task(id, task.site()) };
    Some(())
}

/// The task that runs, and has nothing open, has ended; what it had interrupted goes on.
#[inline(always)]
fn end(recorder: &mut FastRecording, thread: &mut Thread, prior: *mut Data, next: *mut Data) -> Option<()> {
    let (task, next, frames) = (ToolData::load(prior), ToolData::load(next), &mut thread.frames);
    if task.flags() != EXPLICIT | STARTED || next.has(UNRECORDED) {
        return None;
    }
    let id = task.id();
    let beneath = frames.beneath_task(id)?;
    // A new task may begin with the same event, or one further down go on.
    let goes_on = if next.has(EXPLICIT) { next.has(STARTED) && next.id() == beneath } else { beneath == 0 };
    if !goes_on {
        return None;
    }
    recorder.end(openmp::TASK_END, id.to_le_bytes())?;
    // SAFETY: it is the innermost.
    unsafe { frames.close_task_on_top(beneath) };
    Some(())
}
