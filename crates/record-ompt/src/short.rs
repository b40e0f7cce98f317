//! The short way of callbacks that programs of small tasks call most.
//!
//! It is made for what nearly always is the case: everything is looked at before anything is changed, nothing is
//! called, no memory is needed, so that no registers are saved. Where that does not do (a buffer that is full, a
//! place not met yet, a thread that is not known, a pause) it has changed nothing, and the event goes the long way of
//! all others (`tasks`, `sync`), which does the same with the same data.

use taskscope_record::{Short, enter_shortly};

use core::ffi::c_int;

use crate::abi::{Data, status};
use crate::thread::Thread;
use crate::{control, tasks};

/// Opens the calling thread's recorder, if the thread is known and in its usual state. As nothing that is
/// called here or in [`leave`] has a result that is waited for, the callbacks need save no registers.
#[inline(always)]
pub fn enter() -> Option<(Short, &'static mut Thread)> {
    let recorder = enter_shortly()?;
    // SAFETY: as in `thread::record`: while the recorder is open, this is the only one in here.
    match unsafe { recorder.user().cast::<Thread>().as_mut() } {
        Some(thread) if !control::is_paused() && !thread.is_paused => Some((recorder, thread)),
        _ => {
            // What is pending is settled by who comes next, on the long way.
            let _ = recorder.leave();
            None
        }
    }
}

/// Closes it, when what is usual is done, or was not to be done.
#[inline(always)]
pub fn leave(recorder: Short, done: Option<()>) -> Outcome {
    match (done, recorder.leave()) {
        (None, _) => Outcome::Unusual,
        (_, None) => Outcome::Done,
        (_, Some(left)) => Outcome::Left(left),
    }
}

/// `fn callback(arguments) = |recorder, thread| the short way, the long way;`
macro_rules! short_callbacks {
    ($(fn $name:ident($($arg:ident: $type:ty),*) = |$recorder:ident, $thread:ident| $short:expr, $long:path;)*) => {$(
        #[inline(never)]
        unsafe extern "C" fn $name($($arg: $type),*) {
            let outcome = match $crate::short::enter() {
                Some((mut recorder, $thread)) => {
                    let $recorder = &mut recorder;
                    let done = $short;
                    $crate::short::leave(recorder, done)
                }
                None => $crate::short::Outcome::Unusual,
            };
            match outcome {
                $crate::short::Outcome::Done => {}
                $crate::short::Outcome::Left(recorder) => recorder.settle(),
                // SAFETY: the runtime's own arguments.
                $crate::short::Outcome::Unusual => unsafe { $long($($arg),*) },
            }
        }
    )*};
}

/// How far the short way went.
pub enum Outcome {
    /// To the end.
    Done,
    /// Done, but for what a signal handler left.
    Left(Short),
    /// Not done: the long way.
    Unusual,
}

pub(crate) use short_callbacks;

type Schedule = unsafe extern "C" fn(*mut Data, c_int, *mut Data);

/// `ompt_callback_task_schedule`, by the short ways of what happens by far most often: a new task begins, or one ends.
///
/// # Safety
/// The runtime's own arguments.
#[inline(always)]
pub unsafe fn schedule(
    [begins, ends]: [Schedule; 2],
    prior: *mut Data,
    prior_status: c_int,
    next: *mut Data,
) {
    // SAFETY: by contract.
    unsafe {
        match prior_status {
            status::SWITCH => begins(prior, prior_status, next),
            status::COMPLETE => ends(prior, prior_status, next),
            _ => tasks::task_schedule(prior, prior_status, next),
        }
    }
}
