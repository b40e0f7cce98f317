//! Explicit tasks: creation, dependences, scheduling.

use core::ffi::{c_int, c_void};

use taskscope_event::models::samples::state;
use taskscope_event::models::{omp, openmp};

use crate::abi::{self, Data, Dependence, OmptFrame, status, task_flag};
use crate::fast_path::fast_callbacks;
use crate::frames::Open;
use crate::payload::two;
use crate::profiling;
use crate::sampler;
use crate::sections;
use crate::sink::{Outcome, Sink};
use crate::task_stacks::levels;
use crate::task_stacks::undeferred::OwnFrames;
use crate::thread::{Moment, Thread, record, record_untimed};
use crate::tool_data::{EXPLICIT, STARTED, ToolData, UNRECORDED, WAIT};

/// `ompt_callback_task_create`. The runtime calls it for explicit tasks; for deferred target tasks, which run
/// like these, mostly on a thread of the runtime's own; and for `taskwait depend` (a task that never runs;
/// its creation begins the wait).
pub unsafe extern "C" fn task_create<S: Sink>(
    creator: *mut Data,
    frame: *const OmptFrame,
    new_task: *mut Data,
    flags: c_int,
    _has_dependences: c_int,
    codeptr: *const c_void,
) {
    let (flags, sp) = (flags as u32, if S::COUNTS { sampler::stack_pointer_here() } else { 0 });
    // SAFETY: the runtime's own arguments.
    match unsafe { S::create_task(creator, frame, new_task, flags, codeptr, sp) } {
        Outcome::Done => {}
        Outcome::Pending(recorder) => recorder.settle(),
        // SAFETY: as above.
        Outcome::SlowPath => unsafe { S::create_task_slowly(creator, frame, new_task, flags, codeptr, sp) },
    }
}

/// The slow path of [`task_create`].
///
/// # Safety
/// The runtime's own arguments.
#[inline(never)]
pub unsafe fn create_slowly(
    creator: *mut Data,
    frame: *const OmptFrame,
    new_task: *mut Data,
    flags: u32,
    codeptr: *const c_void,
) {
    let runs = flags & task_flag::RUNS != 0;
    if runs && profiling::is_on() {
        return record_untimed(move |moment| {
            // SAFETY: the runtime passes the creating task's frame.
            let exit = unsafe { exit_of(frame, moment.thread) };
            let is_part = is_part_of_running(moment.thread, creator);
            let context =
                if is_part { moment.count_another() } else { moment.create_context(codeptr, exit, true) };
            // In a profile a task's number is its context: tasks of equal creation are equal.
            ToolData::new(context, 0, EXPLICIT).store(new_task);
            // SAFETY: as above.
            unsafe { note_undeferred(moment.thread, flags, frame, (new_task, codeptr)) };
        });
    }
    record(move |moment| {
        if runs {
            let typeid = moment.create_task(new_task, flags, codeptr);
            if sampler::is_active() && typeid != 0 {
                // SAFETY: as above.
                let exit = unsafe { exit_of(frame, moment.thread) };
                if is_part_of_running(moment.thread, creator) {
                    moment.record_empty_path(typeid);
                } else {
                    moment.record_task_path(typeid, exit, codeptr);
                }
                // SAFETY: as above.
                unsafe { note_undeferred(moment.thread, flags, frame, (new_task, codeptr)) };
            }
        } else if flags & task_flag::TASKWAIT != 0 {
            moment.thread.wait_return = codeptr as u64;
            let site = moment.site(codeptr);
            moment.record_call_path(site, codeptr);
            let id = moment.thread.tasks.take();
            ToolData::new(id, site, WAIT).store(new_task);
            moment.record_wait_site(taskscope_event::models::wait::kind::TASKWAIT_DEPEND, site);
            moment.open(Open::Section { codes: sections::DEPEND_WAIT, state: state::TASKWAIT_DEPEND }, site);
        } else {
            ToolData::new(0, 0, UNRECORDED).store(new_task);
        }
    });
}

/// Whether the runtime creates a task on behalf of `creator` while this thread runs another one, as a part of
/// that. LLVM's divides a large taskloop so, among tasks that create the others, on any thread.
#[inline(always)]
pub fn is_part_of_running(thread: &Thread, creator: *mut Data) -> bool {
    let running = thread.frames.task_on_top();
    running != 0 && abi::is_object(creator) && {
        let creator = ToolData::load(creator);
        !creator.has(EXPLICIT) || creator.id() != running
    }
}

/// Address at which the runtime entered the creating task's user code.
///
/// # Safety
/// `frame` is the runtime's argument.
pub unsafe fn exit_of(frame: *const OmptFrame, thread: &Thread) -> u64 {
    if abi::is_object(frame) {
        // SAFETY: by contract.
        levels::exit_of(unsafe { &*frame }, thread.frames.task_on_top(), &thread.undeferred)
    } else {
        thread.exit_here()
    }
}

/// Stores the creation site of a task that is not deferred.
///
/// # Safety
/// `frame` is the runtime's argument.
#[inline(always)]
pub unsafe fn note_undeferred(
    thread: &mut Thread,
    flags: u32,
    frame: *const OmptFrame,
    (new_task, codeptr): (*mut Data, *const c_void),
) {
    if flags & task_flag::UNDEFERRED != 0 && abi::is_object(frame) {
        // SAFETY: by contract. The task's exit frame identifies its entry into the runtime.
        let frame_pointer = unsafe { (*frame).enter.value };
        let creation = (codeptr as u64, frame_pointer, sampler::stack_pointer_here());
        static OWN: OwnFrames = OwnFrames::new();
        thread.undeferred.note(ToolData::load(new_task).id(), creation, &OWN, thread.bounds);
    }
}

/// `ompt_callback_dependences`. Dependences of a `taskwait depend` (which also precedes an undeferred task
/// with dependences) are recorded under an id that no task has.
pub unsafe extern "C" fn dependences(task: *mut Data, list: *const Dependence, count: c_int) {
    let data = ToolData::load(task);
    if !abi::is_object(list) || count <= 0 || !(data.has(EXPLICIT) || data.has(WAIT)) {
        return;
    }
    // SAFETY: the runtime passes `count` dependences.
    let list = unsafe { core::slice::from_raw_parts(list, count as usize) };
    record(|moment| {
        let scratch = &mut moment.thread.scratch;
        scratch.clear();
        if scratch.try_reserve(list.len() * omp::DEPENDENCE_BYTES).is_err() {
            return;
        }
        for dependence in list {
            // SAFETY: every bit pattern is a number.
            scratch.extend_from_slice(&unsafe { dependence.variable.value }.to_le_bytes());
            scratch.push(dependence.kind as u8);
        }
        let id = data.id().to_le_bytes();
        moment.recorder.own_jumbo(moment.at, omp::TASK_DEPENDENCES, &[&id, &moment.thread.scratch]);
    });
}

/// `ompt_callback_task_schedule`, with fast paths for its usual cases: a new task begins, or one ends.
pub unsafe extern "C" fn task_schedule<S: Sink>(prior: *mut Data, prior_status: c_int, next: *mut Data) {
    // SAFETY: the runtime's own arguments.
    unsafe {
        match prior_status {
            status::SWITCH => task_begins::<S>(prior, prior_status, next),
            status::COMPLETE => task_ends::<S>(prior, prior_status, next),
            _ => schedule_slowly(prior, prior_status, next),
        }
    }
}

fast_callbacks! {
    fn task_begins<S>(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| S::begin_task(recorder, thread, next), schedule_slowly;
    fn task_ends<S>(prior: *mut Data, prior_status: c_int, next: *mut Data)
        = |recorder, thread| S::end_task(recorder, thread, prior, next), schedule_slowly;
}

/// The slow path of [`task_schedule`].
#[inline(never)]
unsafe extern "C" fn schedule_slowly(prior: *mut Data, prior_status: c_int, next: *mut Data) {
    record(move |moment| {
        // Nearly always a new task begins, or one ends.
        if prior_status != status::SWITCH {
            let task = ToolData::load(prior);
            if !matches!(prior_status, status::COMPLETE | status::CANCEL | status::DETACH) {
                if moment.no_switch(task, prior_status) {
                    return;
                }
            } else if task.has(EXPLICIT) {
                moment.end_task(task, prior_status);
            }
        }
        if abi::is_object(next) {
            moment.switch_to(next, prior_status);
        }
    });
}

impl Moment<'_> {
    /// Creates a task. Returns its type; 0 if its creation is not in the trace.
    #[inline(always)]
    fn create_task(&mut self, new_task: *mut Data, flags: u32, codeptr: *const c_void) -> u32 {
        let (entry, id) = (self.task_type(codeptr, new_task, flags), self.thread.tasks.take());
        // A task without a creation event must not have execution events.
        let numbered = id != 0 && entry.typeid != 0 && !self.thread.is_paused;
        let kept = numbered && self.recorder.point(self.at, openmp::TASK_CREATE, two(id, entry.typeid));
        let data = if kept { entry.task_data.with_id(id) } else { self.unrecorded(numbered) };
        data.store(new_task);
        if kept { entry.typeid } else { 0 }
    }

    /// Returns the data of a task without a creation event. Its begin and end are lost too; the creation
    /// itself is already counted if it had numbers and found no room.
    #[cold]
    fn unrecorded(&mut self, creation_is_counted: bool) -> ToolData {
        if self.thread.is_paused {
            return ToolData::new(0, 0, UNRECORDED);
        }
        self.recorder.lose(self.at, if creation_is_counted { 2 } else { 3 });
        ToolData::new(0, 0, UNRECORDED)
    }

    #[inline(always)]
    fn end_task(&mut self, task: ToolData, prior_status: c_int) {
        let id = task.id();
        if task.has(STARTED) {
            self.close_task(id, status::SWITCH as u32);
        }
        if prior_status != status::COMPLETE {
            self.record_unusual_end(id, prior_status);
        }
    }

    /// Handles schedule events that do not switch tasks. Returns whether this is one.
    #[cold]
    #[inline(never)]
    fn no_switch(&mut self, task: ToolData, prior_status: c_int) -> bool {
        match prior_status {
            status::TASKWAIT_COMPLETE => self.close_section(sections::DEPEND_WAIT),
            status::EARLY_FULFILL | status::LATE_FULFILL if task.has(EXPLICIT) => {
                self.recorder.own_point(self.at, omp::TASK_FULFILLED, task.id().to_le_bytes());
            }
            status::EARLY_FULFILL | status::LATE_FULFILL => {}
            _ => return false,
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn record_unusual_end(&mut self, id: u32, prior_status: c_int) {
        let code = if prior_status == status::CANCEL { omp::TASK_CANCELLED } else { omp::TASK_DETACHED };
        self.recorder.own_point(self.at, code, id.to_le_bytes());
    }

    /// Switches this thread to another task: a new one on top of the running one, or a running one further
    /// down, after the tasks above it have moved to other threads (untied tasks).
    #[inline(always)]
    fn switch_to(&mut self, next: *mut Data, prior_status: c_int) {
        let task = ToolData::load(next);
        if !task.has(EXPLICIT) {
            if !task.has(UNRECORDED) {
                self.leave_tasks(prior_status);
            }
            return;
        }
        if task.has(STARTED) {
            let open = Open::Task { id: task.id() };
            if self.thread.frames.innermost_context().is_none_or(|frame| frame.open != open) {
                self.return_to(task, prior_status);
            }
        } else {
            task.with(STARTED).store(next);
            self.open(Open::Task { id: task.id() }, task.site());
        }
    }

    #[cold]
    #[inline(never)]
    fn return_to(&mut self, task: ToolData, prior_status: c_int) {
        let task_frame = Open::Task { id: task.id() };
        if !self.uncover(prior_status as u32, |open| open == task_frame) {
            self.open(task_frame, task.site());
        }
    }

    /// Resumes an implicit task: explicit tasks on top of it have left the thread.
    #[inline(always)]
    fn leave_tasks(&mut self, prior_status: c_int) {
        while self
            .thread
            .frames
            .innermost_context()
            .is_some_and(|frame| matches!(frame.open, Open::Task { .. }))
        {
            self.close_to_context();
            self.close_top(Some(prior_status as u32));
        }
    }
}
