//! Calls that wait in the kernel outside of the C library's functions, and that a signal would interrupt:
//! those of libaio and liburing, and system calls by number. As for the C library's ([`super`]), the timers'
//! signal is deferred until they return, and a recorder of waits is informed of those that wait.
//!
//! Such a library may be visible to a part of the program only (`RTLD_LOCAL`): the loader finds our function
//! first for that part, too, but no next one. Then all loaded libraries are searched.

use core::ffi::{CStr, c_int, c_long, c_uint, c_void};
use core::mem::{MaybeUninit, transmute};

use libc::{sigset_t, timespec};

use super::{Next, dlsym_of, hold, masked, next, next_in_order, next_of, release};
use crate::sampler::blocking::{self, Blocking};
use crate::sampler::{filters, modules};

/// Finds another library's function, which may be loaded at any time, after `ours`.
#[cold]
#[inline(never)]
pub fn look_up(name: &'static CStr, ours: *const ()) -> *mut c_void {
    let next = next_in_order(name);
    let found = if next.is_null() { in_what_is_loaded(name, ours) } else { next };
    // A search in vain has left a message, which is not for the program.
    // SAFETY: no preconditions.
    unsafe { libc::dlerror() };
    found
}

/// The library is not closed again: the address is kept.
fn in_what_is_loaded(name: &CStr, ours: *const ()) -> *mut c_void {
    let search = |module: modules::MappedModule| {
        // SAFETY: a C string; this loads nothing.
        let handle = unsafe { libc::dlopen(module.path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        let found = dlsym_of(handle, name);
        if !found.is_null() && !core::ptr::eq(found, ours.cast()) {
            return Some(found);
        }
        // SAFETY: opened above.
        unsafe { libc::dlclose(handle) };
        None
    };
    modules::all().into_iter().find_map(search).unwrap_or(core::ptr::null_mut())
}

/// `fn name(arguments; mask), waits condition;`: another library's function, with our signal deferred; a mask that it applies
/// is replaced by a copy with our signal in it. It waits for asynchronous operations if the condition holds.
macro_rules! held_elsewhere {
    ($( fn $name:ident($($arg:ident : $type:ty),* $(; $mask:ident)?), waits $waits:expr; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $type,)* $($mask: *const sigset_t)?) -> c_int {
            type Function = unsafe extern "C-unwind" fn($($type,)* $(held_elsewhere!(@set $mask))?) -> c_int;
            static NEXT: Next = next_of!($name);
            let address = NEXT.address_by(|name| look_up(name, $name as *const ()));
            let held = hold();
            let begun = $waits.then(|| blocking::begin(Blocking::Operations));
            // SAFETY: the library's function of this name has this type; the arguments are the caller's.
            let result = unsafe {
                $(let mut copy = MaybeUninit::uninit();
                let $mask = masked($mask, &mut copy);)?
                transmute::<usize, Function>(address)($($arg,)* $($mask)?)
            };
            release(held, address);
            if let Some(begun) = begun {
                blocking::end(begun, Blocking::Operations, i64::from(result));
            }
            result
        }
    )* };
    (@set $mask:ident) => { *const sigset_t };
}

type Pointer = *mut c_void;

// libaio (io_getevents(3)).
held_elsewhere! {
    fn io_getevents(context: Pointer, least: c_long, most: c_long, events: Pointer, timeout: *const timespec), waits least > 0;
    fn io_queue_wait(context: Pointer, timeout: *const timespec), waits true;
    fn io_pgetevents(context: Pointer, least: c_long, most: c_long, events: Pointer, timeout: *const timespec; mask), waits least > 0;
}

// liburing: functions that its header calls, and its public functions.
held_elsewhere! {
    fn __io_uring_get_cqe(ring: Pointer, entry: Pointer, submit: c_uint, least: c_uint; mask), waits least > 0;
    fn __io_uring_sqring_wait(ring: Pointer), waits true;
    fn io_uring_wait_cqes(ring: Pointer, entry: Pointer, least: c_uint, timeout: Pointer; mask), waits true;
    fn io_uring_wait_cqes_min_timeout(ring: Pointer, entry: Pointer, least: c_uint, timeout: Pointer, most: c_uint; mask), waits true;
    fn io_uring_wait_cqe_timeout(ring: Pointer, entry: Pointer, timeout: Pointer), waits true;
    fn io_uring_submit_and_wait(ring: Pointer, least: c_uint), waits least > 0;
    fn io_uring_submit_and_wait_timeout(ring: Pointer, entry: Pointer, least: c_uint, timeout: Pointer; mask), waits least > 0;
    fn io_uring_submit_and_wait_min_timeout(ring: Pointer, entry: Pointer, least: c_uint, timeout: Pointer, most: c_uint; mask), waits least > 0;
    fn io_uring_submit_and_wait_reg(ring: Pointer, entry: Pointer, least: c_uint, index: c_int), waits least > 0;
    // Programs have functions of this name without the last argument, which is not read.
    fn io_uring_enter(ring: c_uint, submit: c_uint, least: c_uint, flags: c_uint, mask: Pointer), waits waits_for_completions(least, flags);
    fn io_uring_enter2(ring: c_uint, submit: c_uint, least: c_uint, flags: c_uint, argument: Pointer, bytes: usize), waits waits_for_completions(least, flags);
}

/// Whether a signal interrupts this call despite `SA_RESTART`. Signal sets that such a call applies itself
/// are unchanged.
#[inline]
fn is_broken_off(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(number, libc::SYS_poll | libc::SYS_select | libc::SYS_epoll_wait) {
        return true;
    }
    matches!(
        number,
        libc::SYS_io_uring_enter
            | libc::SYS_io_getevents
            | libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_ppoll
            | libc::SYS_pselect6
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semtimedop
    )
}

/// Whether a call of `io_uring_enter` waits for so many completions.
#[inline]
fn waits_for_completions(least: c_uint, flags: c_uint) -> bool {
    const GET_EVENTS: c_uint = 1;
    least > 0 && flags & GET_EVENTS != 0
}

/// The wait of a system call by number. The recorder's own sleep, reads and writes are such calls, and are none of the program's.
#[inline]
fn blocking_of(number: c_long, [a, b, c, d, ..]: [usize; 6]) -> Option<Blocking> {
    let descriptor = a as c_int;
    #[cfg(target_arch = "x86_64")]
    match number {
        libc::SYS_poll => return Some(Blocking::Poll(a, b)),
        libc::SYS_select => return Some(Blocking::Select(descriptor, b)),
        libc::SYS_epoll_wait => return Some(Blocking::Epoll(descriptor, b)),
        _ => {}
    }
    match number {
        libc::SYS_io_uring_enter => {
            waits_for_completions(c as c_uint, d as c_uint).then_some(Blocking::Operations)
        }
        libc::SYS_io_getevents => (b > 0).then_some(Blocking::Operations),
        libc::SYS_ppoll => Some(Blocking::Poll(a, b)),
        libc::SYS_pselect6 => Some(Blocking::Select(descriptor, b)),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Some(Blocking::Epoll(descriptor, b)),
        libc::SYS_semtimedop => Some(Blocking::SemaphoreSet(descriptor, b, c)),
        _ => None,
    }
}

/// System calls by number. A futex call passes the return address on, in the place of the number.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C-unwind" fn syscall() {
    core::arch::naked_asm!(
        "cmp rdi, {number}",
        "je 2f",
        "jmp {other}",
        "2:",
        "mov rdi, [rsp]",
        "jmp {futex}",
        number = const libc::SYS_futex,
        other = sym other_syscall,
        futex = sym futex,
    )
}

/// System calls by number. A futex call passes the return address on, in the place of the number.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C-unwind" fn syscall() {
    core::arch::naked_asm!(
        "cmp x0, {number}",
        "b.eq 2f",
        "b {other}",
        "2:",
        "mov x0, x30",
        "b {futex}",
        number = const libc::SYS_futex,
        other = sym other_syscall,
        futex = sym futex,
    )
}

type Syscall = unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// Declared with a system call's maximum of arguments; missing ones have arbitrary values.
unsafe extern "C-unwind" fn other_syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let address = next::syscall.address();
    match number {
        libc::SYS_seccomp => filters::before_installing(a as u32, c),
        libc::SYS_prctl => filters::before_prctl(a as c_int, b, c),
        _ => {}
    }
    let held = is_broken_off(number) && hold();
    let waits = blocking_of(number, [a, b, c, d, e, f]);
    let begun = waits.map(|call| (blocking::begin(call), call));
    // SAFETY: the C library's function takes its arguments in the positions of this type; they are the
    // caller's.
    let result = unsafe { transmute::<usize, Syscall>(address)(number, a, b, c, d, e, f) };
    release(held, address);
    if let Some((begun, call)) = begun {
        blocking::end(begun, call, result);
    }
    result
}

/// A futex call that returns to `caller`, with the arguments of [`other_syscall`].
unsafe extern "C-unwind" fn futex(
    caller: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let address = next::syscall.address();
    // SAFETY: as in `other_syscall`.
    unsafe {
        let next = transmute::<usize, Syscall>(address);
        match blocking::recorder().filter(|_| !filters::has_left()) {
            Some(recorder) => {
                let next = if waits_for_futex(b) { deferred_syscall } else { next };
                (recorder.futex)(caller, [a, b, c, d, e, f], next)
            }
            None => next(libc::SYS_futex, a, b, c, d, e, f),
        }
    }
}

/// Whether a futex call with this operation waits. The kernel resumes it after a signal, but it returns `EAGAIN` then, without a wake, if
/// the word has changed meanwhile.
fn waits_for_futex(operation: usize) -> bool {
    let operation = operation as c_int & libc::FUTEX_CMD_MASK;
    matches!(operation, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
}

/// A system call with our signal deferred.
unsafe extern "C-unwind" fn deferred_syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let address = next::syscall.address();
    let held = hold();
    // SAFETY: as in `other_syscall`.
    let result = unsafe { transmute::<usize, Syscall>(address)(number, a, b, c, d, e, f) };
    release(held, address);
    result
}
