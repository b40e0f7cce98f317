//! Fast path of the callbacks that programs of small tasks call most.
//!
//! A fast path handles the usual case: it checks everything before it changes anything, calls no function and
//! needs no memory, so the compiler saves no registers. In any other case (a full buffer, an unknown place or
//! thread, a pause) it changes nothing, and the event takes the slow path of all callbacks (`tasks`, `sync`),
//! which has the same effect on the same data.

use taskscope_record::{FastRecording, enter_fast};

use crate::pause;
use crate::sink::Outcome;
use crate::thread::Thread;

/// Enters the calling thread's recorder, if the thread is known and records. Neither this nor [`leave`] waits for
/// the result of a call, so that callbacks save no registers.
#[inline(always)]
pub fn enter() -> Option<(FastRecording, &'static mut Thread)> {
    let recorder = enter_fast()?;
    // SAFETY: as in `thread::record`: while the recorder is open, this is the only one in here.
    match unsafe { recorder.user().cast::<Thread>().as_mut() } {
        Some(thread) if !pause::is_paused() && !thread.is_paused => Some((recorder, thread)),
        _ => {
            // Pending events are copied by the slow path.
            let _ = recorder.leave();
            None
        }
    }
}

/// Leaves the recorder after the fast path succeeded (`Some`) or bailed out.
#[inline(always)]
pub fn leave(recorder: FastRecording, done: Option<()>) -> Outcome {
    match (done, recorder.leave()) {
        (None, _) => Outcome::SlowPath,
        (_, None) => Outcome::Done,
        (_, Some(left)) => Outcome::Pending(left),
    }
}

/// Defines callbacks, generic over the sink: `fn callback<S>(arguments) = |recorder, thread| fast path, slow path;`.
macro_rules! fast_callbacks {
    ($(fn $name:ident<$sink:ident>($($arg:ident: $type:ty),*) = |$recorder:ident, $thread:ident| $short:expr, $long:path;)*) => {$(
        #[inline(never)]
        unsafe extern "C" fn $name<$sink: $crate::sink::Sink>($($arg: $type),*) {
            let outcome = match $crate::fast_path::enter() {
                Some((mut recorder, $thread)) => {
                    let $recorder = &mut recorder;
                    let done = $short;
                    $crate::fast_path::leave(recorder, done)
                }
                None => $crate::sink::Outcome::SlowPath,
            };
            match outcome {
                $crate::sink::Outcome::Done => {}
                $crate::sink::Outcome::Pending(recorder) => recorder.settle(),
                // SAFETY: the runtime's own arguments.
                $crate::sink::Outcome::SlowPath => unsafe { $long($($arg),*) },
            }
        }
    )*};
}

pub(crate) use fast_callbacks;
