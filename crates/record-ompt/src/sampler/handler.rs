//! The signal handler.

use core::ffi::{c_int, c_void};

use taskscope_record::{InHandler, enter_in_handler};

use super::alternate::Alternate;
use super::bounds::ROOM;
use super::host::{Host, host};
use super::machine::stack_pointer_here;
use super::signal;

/// The handler of the timers' signal.
pub unsafe extern "C-unwind" fn on_signal(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's own arguments; `errno` is the thread's own.
    unsafe {
        if !signal::is_ours(info) {
            return signal::pass_on(number, info, context);
        }
        let errno = libc::__errno_location();
        let kept = *errno;
        if let Some(host) = host()
            && let Some(recording) = enter_in_handler()
        {
            sample_with_room(host, recording, context.cast());
        }
        *errno = kept;
    }
}

/// Takes the sample on the handler's present stack, if that is the recorder's, or the thread's own with room
/// for a sample. It may be an alternate stack of the program's, of a few kilobytes; the bounds of stacks that
/// a program switches to itself are unknown.
///
/// # Safety
/// Called from the handler with its context.
unsafe fn sample_with_room(host: &Host, mut recording: InHandler, context: *const libc::ucontext_t) {
    // SAFETY: by contract.
    unsafe {
        let Some(sampler) = (host.sampler_of)(recording.user()) else { return };
        let Some(begun) = sampler.rest.begin() else { return };
        let sp = stack_pointer_here();
        let own = sampler.alternate.as_ref().map(Alternate::stack);
        let has_room = match own.and_then(|own| own.room_below(sp)) {
            Some(room) if room < ROOM => return,
            Some(_) => true,
            None => sampler.bounds.have_room_below(sp),
        };
        if has_room {
            (host.take_sample)(&mut recording, context);
        } else if let Some(own) = own {
            own.call(|| (host.take_sample)(&mut recording, context));
        }
        // Before the recording is left: a thread that ends the process frees the sampler then.
        sampler.rest.end(&begun, sampler.period_ns());
    }
}
