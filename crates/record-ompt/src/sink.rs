//! The destination of callbacks: the events of a trace, or the counts of a profile.
//!
//! A callback that programs of small tasks call often is one function, generic over its sink: it tries the sink's fast path, else
//! takes the slow path. Which sink a process has is known when callbacks are registered.

use core::ffi::c_void;

use taskscope_record::FastRecording;

use crate::abi::{Data, OmptFrame};
use crate::thread::Thread;

/// Fast paths of a sink. Those that return `None` have changed nothing.
pub trait Sink {
    /// Whether it counts: then it needs the callback's stack pointer, and has fast paths for worksharing and taskwaits.
    const COUNTS: bool;

    /// `ompt_callback_task_create` of a usual task; `sp` is the callback's stack pointer (0 unless it
    /// [counts](Self::COUNTS)).
    ///
    /// # Safety
    /// The runtime's own arguments.
    unsafe fn create_task(
        creator: *mut Data,
        frame: *const OmptFrame,
        new_task: *mut Data,
        flags: u32,
        codeptr: *const c_void,
        sp: u64,
    ) -> Outcome;

    /// `ompt_callback_task_create` of any task.
    ///
    /// # Safety
    /// As for [`create_task`](Self::create_task).
    unsafe fn create_task_slowly(
        creator: *mut Data,
        frame: *const OmptFrame,
        new_task: *mut Data,
        flags: u32,
        codeptr: *const c_void,
        sp: u64,
    );

    /// Begins a new task on top of the thread's open constructs.
    fn begin_task(recorder: &mut FastRecording, thread: &mut Thread, next: *mut Data) -> Option<()>;

    /// Ends the running task, which has no open constructs; the thread resumes the interrupted one.
    fn end_task(
        recorder: &mut FastRecording,
        thread: &mut Thread,
        prior: *mut Data,
        next: *mut Data,
    ) -> Option<()>;

    /// Begins a worksharing construct of a team member without other open entries.
    #[inline(always)]
    fn begin_work(_recorder: &mut FastRecording, _thread: &mut Thread, _kind: u8) -> Option<()> {
        None
    }

    /// The construct that is innermost ends.
    #[inline(always)]
    fn end_work(_recorder: &mut FastRecording, _thread: &mut Thread, _kind: u8) -> Option<()> {
        None
    }

    /// An explicit task begins to wait for its children.
    #[inline(always)]
    fn begin_taskwait(_recorder: &mut FastRecording, _thread: &mut Thread, _codeptr: u64) -> Option<()> {
        None
    }

    /// The wait that the thread is in is over, and was short.
    #[inline(always)]
    fn end_taskwait(_recorder: &mut FastRecording, _thread: &mut Thread) -> Option<()> {
        None
    }
}

/// The result of a fast path.
pub enum Outcome {
    /// The event is handled.
    Done,
    /// The event is handled; events of a signal handler are pending in the recorder.
    Pending(FastRecording),
    /// No state changed: the event takes the slow path.
    SlowPath,
}
