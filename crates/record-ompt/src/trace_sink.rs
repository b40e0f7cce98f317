//! Small tasks in a trace: [fast paths](crate::fast_path) of their creation, begin and end.

use core::ffi::c_void;

use taskscope_event::models::openmp;
use taskscope_record::FastRecording;

use crate::abi::{self, Data, OmptFrame, task_flag};
use crate::fast_path::{enter, leave};
use crate::outlined;
use crate::payload::two;
use crate::sampler;
use crate::sink::{Outcome, Sink};
use crate::tasks;
use crate::thread::Thread;
use crate::tool_data::{EXPLICIT, STARTED, ToolData, UNRECORDED};

/// The events of a trace.
pub struct Trace;

impl Sink for Trace {
    const COUNTS: bool = false;

    #[inline(always)]
    unsafe fn create_task(
        _creator: *mut Data,
        _frame: *const OmptFrame,
        new_task: *mut Data,
        flags: u32,
        codeptr: *const c_void,
        _sp: u64,
    ) -> Outcome {
        match enter() {
            Some((mut recorder, thread)) => {
                let done = create(&mut recorder, thread, new_task, flags, codeptr);
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
        _sp: u64,
    ) {
        // SAFETY: by contract.
        unsafe { tasks::create_slowly(creator, frame, new_task, flags, codeptr) }
    }

    #[inline(always)]
    fn begin_task(recorder: &mut FastRecording, thread: &mut Thread, next: *mut Data) -> Option<()> {
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

    #[inline(always)]
    fn end_task(
        recorder: &mut FastRecording,
        thread: &mut Thread,
        prior: *mut Data,
        next: *mut Data,
    ) -> Option<()> {
        let (task, next, frames) = (ToolData::load(prior), ToolData::load(next), &mut thread.frames);
        if task.flags() != EXPLICIT | STARTED || next.has(UNRECORDED) {
            return None;
        }
        let id = task.id();
        let beneath = frames.beneath_task(id)?;
        // A new task may begin with the same event, or one further down go on.
        let goes_on =
            if next.has(EXPLICIT) { next.has(STARTED) && next.id() == beneath } else { beneath == 0 };
        if !goes_on {
            return None;
        }
        recorder.end(openmp::TASK_END, id.to_le_bytes())?;
        // SAFETY: it is the innermost.
        unsafe { frames.close_task_on_top(beneath) };
        Some(())
    }
}

#[inline(always)]
fn create(
    recorder: &mut FastRecording,
    thread: &mut Thread,
    new_task: *mut Data,
    flags: u32,
    codeptr: *const c_void,
) -> Option<()> {
    // With sampling, the creation path is recorded too, on the slow path.
    if flags & task_flag::RUNS == 0 || sampler::is_active() || !abi::is_object(new_task) {
        return None;
    }
    let body = outlined::task_construct(new_task).body;
    let (entry, id) = (thread.cache.known_task_type(codeptr, body, flags)?, thread.tasks.next()?);
    if entry.typeid == 0 {
        return None;
    }
    recorder.point(openmp::TASK_CREATE, two(id, entry.typeid))?;
    thread.tasks.take_next();
    entry.task_data.with_id(id).store(new_task);
    Some(())
}
