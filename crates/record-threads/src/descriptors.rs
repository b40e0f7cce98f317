//! Functions that make, copy and close descriptors: which of them are ends of a pipe, an eventfd or a socket pair of this process.

use core::ffi::{c_int, c_uint};

use taskscope_event::models::wait::kind;
use taskscope_ompt::shared::Blocking;

use crate::c_library::call;
use crate::channels;
use crate::events;
use crate::exchange::inode;
use crate::waits::waits_in;

type Ends = *mut c_int;
type Event = *mut libc::epoll_event;
type File = *mut libc::FILE;

/// Runs `note`, which does not change `errno`.
fn quietly(note: impl FnOnce()) {
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        note();
        *errno = kept;
    }
}

fn made_pipe(result: c_int, ends: Ends) {
    if result == 0 {
        // SAFETY: the call has stored two descriptors there.
        let (reads, writes) = unsafe { (*ends, *ends.add(1)) };
        quietly(|| channels::open(kind::PIPE, inode(reads), reads, writes));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pipe(ends: Ends) -> c_int {
    // SAFETY: the program's own call, passed on.
    let result = unsafe { call!(pipe(ends: Ends) -> c_int) };
    made_pipe(result, ends);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pipe2(ends: Ends, flags: c_int) -> c_int {
    // SAFETY: likewise.
    let result = unsafe { call!(pipe2(ends: Ends, flags: c_int) -> c_int) };
    made_pipe(result, ends);
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn eventfd(count: c_uint, flags: c_int) -> c_int {
    // SAFETY: likewise.
    let made = unsafe { call!(eventfd(count: c_uint, flags: c_int) -> c_int) };
    if made >= 0 {
        quietly(|| channels::open(kind::EVENT, u64::from(made.unsigned_abs()), made, made));
    }
    made
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socketpair(domain: c_int, form: c_int, protocol: c_int, ends: Ends) -> c_int {
    // SAFETY: likewise.
    let result =
        unsafe { call!(socketpair(domain: c_int, form: c_int, protocol: c_int, ends: Ends) -> c_int) };
    if result == 0 {
        // SAFETY: the call has stored two descriptors there.
        let (one, other) = unsafe { (*ends, *ends.add(1)) };
        quietly(|| {
            channels::open(kind::SOCKET_PAIR, inode(other), other, one);
            channels::open(kind::SOCKET_PAIR, inode(one), one, other);
        });
    }
    result
}

/// Before a descriptor is closed: threads that read from the other end are woken.
fn before_close(descriptor: c_int) {
    quietly(|| {
        if let Some(closed) = channels::close(descriptor).filter(|closed| closed.has_waiting) {
            let (kind, object) = closed.channel;
            events::wakes_by_call(kind, object, true);
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn close(descriptor: c_int) -> c_int {
    before_close(descriptor);
    // SAFETY: the program's own call, passed on.
    unsafe { call!(close(descriptor: c_int) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fclose(file: File) -> c_int {
    if !file.is_null() {
        // SAFETY: the program's stream, which is still open.
        quietly(|| before_close(unsafe { libc::fileno(file) }));
    }
    // SAFETY: the program's own call, passed on.
    unsafe { call!(fclose(file: File) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags == 0 {
        let end = last.min(channels::MAX_DESCRIPTORS as c_uint);
        (first..=end).for_each(|descriptor| before_close(descriptor as c_int));
    }
    // SAFETY: the program's own call, passed on.
    unsafe { call!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(from: c_int) -> c_int {
    // SAFETY: likewise.
    let to = unsafe { call!(dup(from: c_int) -> c_int) };
    channels::duplicate(from, to);
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    if from != to {
        before_close(to);
    }
    // SAFETY: likewise.
    let result = unsafe { call!(dup2(from: c_int, to: c_int) -> c_int) };
    if from != to && result >= 0 {
        quietly(|| channels::duplicate(from, to));
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    if from != to {
        before_close(to);
    }
    // SAFETY: likewise.
    let result = unsafe { call!(dup3(from: c_int, to: c_int, flags: c_int) -> c_int) };
    if from != to && result >= 0 {
        quietly(|| channels::duplicate(from, to));
    }
    result
}

/// Declared with its maximum of arguments; a missing one has an arbitrary value.
macro_rules! controls {
    ($( $name:ident; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(descriptor: c_int, command: c_int, argument: usize) -> c_int {
            // SAFETY: the program's own call, passed on.
            let whole = || unsafe { call!($name(descriptor: c_int, command: c_int, argument: usize) -> c_int) };
            match command {
                libc::F_SETLKW | libc::F_OFD_SETLKW => {
                    let is_of_process = command == libc::F_SETLKW;
                    waits_in(Blocking::FileLock { descriptor, is_of_process }, whole, i64::from)
                }
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                    let made = whole();
                    quietly(|| channels::duplicate(descriptor, made));
                    made
                }
                _ => whole(),
            }
        }
    )* };
}

controls! {
    fcntl;
    fcntl64;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(set: c_int, operation: c_int, descriptor: c_int, event: Event) -> c_int {
    // SAFETY: likewise.
    let result =
        unsafe { call!(epoll_ctl(set: c_int, operation: c_int, descriptor: c_int, event: Event) -> c_int) };
    if result == 0 {
        let data = match operation {
            libc::EPOLL_CTL_DEL => None,
            // SAFETY: the call has read it.
            _ => unsafe { event.as_ref() }.map(|event| event.u64),
        };
        channels::enter_set(set, descriptor, data);
    }
    result
}
