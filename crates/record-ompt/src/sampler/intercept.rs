//! Functions of the C library that this library intercepts when it is preloaded, as sampling requires:
//!
//! - `pthread_create`, `thrd_create`: threads that OpenMP does not know are sampled too ([`new_threads`]);
//! - `dlopen`, `dlsym`: code that is loaded later is mapped before its first call;
//! - calls that a signal interrupts despite `SA_RESTART` (signal(7)): the timers' signal is deferred until
//!   they return, so the program never gets an `EINTR` caused by the recorder. The weight of the next sample
//!   covers the whole call. Among them are calls on sockets with a timeout, and waits in the kernel that
//!   bypass the C library ([`other_calls`]);
//! - calls that a signal cuts short when a part of the data has gone through (large writes, receiving
//!   with `MSG_WAITALL`): the same;
//! - `sigwait` and its kin: they never hand our signal to the program;
//! - `sigprocmask`, `pthread_sigmask`, `signalfd`: a program that blocks all signals, or reads all, does not mean ours;
//! - `sigaltstack`: an alternate stack of the recorder's is not visible to the program ([`alternate`]);
//! - `pthread_create`, `thrd_create`, `fork`, `system`, `popen`, `posix_spawn`, `posix_spawnp`: if they fail because of a
//!   limit of threads, the recorder's own threads end, and the call is repeated;
//! - `_exit`, `_Exit`: a profile is complete then, too;
//! - `setuid` and its kin: a program that gives up its rights has the recorder's files belong to its new user, for those of later threads;
//! - `prctl`, `syscall`: before a filter that may end the process for calls of the recorder's, the recording ends ([`filters`]).
//!
//! Without preloading none of these is found. Every function passes its arguments to the C library's own, and
//! has no other effect while sampling is off.

mod new_threads;
mod other_calls;

pub use other_calls::look_up as find_after;

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use libc::{fd_set, nfds_t, pollfd, siginfo_t, sigset_t, timespec, timeval};
use taskscope_record::{clock, fork_gate, own_threads, process};

use super::blocking::{self, Blocking, Queue};
use super::host::host;
use super::machine::copy_from_anywhere;
use super::{Clock, Sampler, alternate, filters, settings, signal};

/// The next function of a name after ours.
struct Next {
    name: &'static CStr,
    found: AtomicUsize,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Next { name, found: AtomicUsize::new(0) }
    }

    #[inline]
    fn address(&self) -> usize {
        self.address_by(next_in_order)
    }

    /// [`address`](Self::address) with another lookup, for functions that the process's search order does not
    /// find.
    #[inline]
    fn address_by(&self, look_up: impl FnOnce(&'static CStr) -> *mut c_void) -> usize {
        match self.found.load(Relaxed) {
            0 => self.keep(look_up(self.name)),
            found => found,
        }
    }

    #[cold]
    fn keep(&self, found: *mut c_void) -> usize {
        // Newer than this C library: programs linked to it do not call it, but may look it up.
        let found = if found.is_null() { missing as *const () as usize } else { found as usize };
        self.found.store(found, Relaxed);
        found
    }
}

#[cold]
#[inline(never)]
fn next_in_order(name: &'static CStr) -> *mut c_void {
    if name != c"dlsym" {
        return dlsym_of(libc::RTLD_NEXT, name);
    }
    // Not by `dlsym`, which is ours. SAFETY: looks up C strings.
    let by_version =
        |version: &CStr| unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
    let oldest = by_version(BASE_VERSION);
    if oldest.is_null() { by_version(c"GLIBC_2.34") } else { oldest }
}

/// The [`Next`] of a name.
macro_rules! next_of {
    ($name:ident) => {
        Next::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        })
    };
}
use next_of;

/// A [`Next`] for each name, and [`look_up`](next::look_up) for all of them.
macro_rules! next_functions {
    ($($name:ident)*) => {
        mod next {
            #![allow(non_upper_case_globals, reason = "the names of functions")]

            use super::*;

            $(pub static $name: Next = next_of!($name);)*

            pub fn look_up() {
                for next in [$(&$name),*] {
                    next.address();
                }
                // Failed lookups have left a message, which is not for the program. SAFETY: no preconditions.
                unsafe { libc::dlerror() };
            }
        }
    };
}

next_functions! {
    nanosleep clock_nanosleep usleep sleep thrd_sleep pause poll __poll_chk select epoll_wait sem_timedwait
    sem_clockwait semop semtimedop msgrcv msgsnd aio_suspend aio_suspend64 gai_suspend write writev send sendto sendmsg recv recvfrom recvmsg
    ppoll pselect epoll_pwait __ppoll_chk epoll_pwait2 sigsuspend sigwait sigwaitinfo sigtimedwait signal
    bsd_signal ssignal sysv_signal __sysv_signal sigaction sigaltstack pthread_create thrd_create dlopen dlsym _exit _Exit
    sigprocmask pthread_sigmask signalfd setsockopt read __read_chk readv accept accept4 connect recvmmsg sendmmsg __recv_chk __recvfrom_chk syscall
    fork system popen posix_spawn posix_spawnp prctl setuid seteuid setreuid setresuid
}

/// The C library's `dlsym`.
fn dlsym_of(handle: *mut c_void, name: &CStr) -> *mut c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const libc::c_char) -> *mut c_void;
    // SAFETY: the symbol of this name has this type.
    unsafe { core::mem::transmute::<usize, Dlsym>(next::dlsym.address())(handle, name.as_ptr()) }
}

/// Replaces a function that the C library does not have.
unsafe extern "C" fn missing() -> isize {
    // SAFETY: `errno` is the thread's own.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// The oldest version of the C library's symbols on this machine's architecture.
const BASE_VERSION: &CStr = if cfg!(target_arch = "aarch64") { c"GLIBC_2.17" } else { c"GLIBC_2.2.5" };

/// Blocks our signal on the calling thread; returns whether that changed the mask.
#[inline]
fn hold() -> bool {
    let number = signal::number();
    // A program that handles it must get its own.
    if number == 0
        || signal::is_handled_by_program()
        || settings().is_none_or(|settings| settings.clock == Clock::Cpu)
    {
        return false;
    }
    with_sampler(|sampler| sampler.begin_blocking(clock::kernel_ns()));
    // SAFETY: the sets are local.
    unsafe {
        let mut before = MaybeUninit::<sigset_t>::uninit();
        libc::pthread_sigmask(libc::SIG_BLOCK, &signal::ours(), before.as_mut_ptr());
        libc::sigismember(before.as_ptr(), number) == 0
    }
}

/// Calls `change` with the thread's sampler, if it is sampled.
fn with_sampler(change: impl FnOnce(&Sampler)) {
    if let Some(recording) = taskscope_record::enter() {
        // SAFETY: the recorder's own thread state, held open.
        let sampler = host().and_then(|host| unsafe { (host.sampler_of)(recording.user()) });
        if let Some(sampler) = sampler {
            change(sampler);
        }
    }
}

/// Unblocks the signal after a call of this function.
#[inline]
fn release(held: bool, called: usize) {
    if !held || filters::has_left() {
        return;
    }
    with_sampler(|sampler| sampler.mark_blocking(called));
    // SAFETY: the set is local.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &signal::ours(), core::ptr::null_mut());
    }
    with_sampler(Sampler::end_blocking);
}

/// A copy of the program's mask for the time of a call, with our signal in it.
unsafe fn masked(mask: *const sigset_t, copy: &mut MaybeUninit<sigset_t>) -> *const sigset_t {
    if mask.is_null() || signal::number() == 0 || signal::is_handled_by_program() {
        return mask;
    }
    // SAFETY: the program's own set, by contract of the function that it called.
    unsafe {
        copy.write(*mask);
        libc::sigaddset(copy.as_mut_ptr(), signal::number());
    }
    copy.as_ptr()
}

/// A copy of the signals that the program waits for, without ours.
unsafe fn without_ours(set: *const sigset_t, copy: &mut MaybeUninit<sigset_t>) -> *const sigset_t {
    if set.is_null() || signal::number() == 0 || signal::is_handled_by_program() {
        return set;
    }
    // SAFETY: as in `masked`.
    unsafe {
        copy.write(*set);
        libc::sigdelset(copy.as_mut_ptr(), signal::number());
    }
    copy.as_ptr()
}

/// Returns the set without our signal, if it contains all signals.
unsafe fn all_but_ours(set: *const sigset_t, copy: &mut MaybeUninit<sigset_t>) -> *const sigset_t {
    // SAFETY: the program's own set, by contract of the function that it called.
    unsafe { if set.is_null() || !signal::are_nearly_all(set) { set } else { without_ours(set, copy) } }
}

/// `fn name;`: the C library's functions that change the calling thread's mask.
macro_rules! masks {
    ($( fn $name:ident; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
            type Function = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
            let mut copy = MaybeUninit::uninit();
            // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
            unsafe {
                let set = if how == libc::SIG_UNBLOCK { set } else { all_but_ours(set, &mut copy) };
                core::mem::transmute::<usize, Function>(next::$name.address())(how, set, old)
            }
        }
    )* };
}

masks! {
    fn sigprocmask;
    fn pthread_sigmask;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn signalfd(file: c_int, set: *const sigset_t, flags: c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const sigset_t, c_int) -> c_int;
    let mut copy = MaybeUninit::uninit();
    // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
    unsafe {
        let set = all_but_ours(set, &mut copy);
        core::mem::transmute::<usize, Function>(next::signalfd.address())(file, set, flags)
    }
}

// A cancelled thread unwinds through these functions, hence `C-unwind`, and nothing to drop.

/// `fn name(arguments) -> result, blocks kind;`: the C library's function, with our signal held, if the condition before it
/// holds. The kind is a [`Blocking`].
macro_rules! held {
    ($( $(if ($when:expr))? fn $name:ident($($arg:ident : $type:ty),*) -> $result:ty, blocks $blocking:expr; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            let held = true $(&& $when)? && hold();
            let blocking = $blocking;
            let begun = blocking::begin(blocking);
            // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
            let result = unsafe { core::mem::transmute::<usize, Function>(next::$name.address())($($arg),*) };
            release(held, next::$name.address());
            blocking::end(begun, blocking, result as i64);
            result
        }
    )* };
}

held! {
    fn nanosleep(wanted: *const timespec, rest: *mut timespec) -> c_int, blocks Blocking::Sleep;
    fn clock_nanosleep(clock: libc::clockid_t, flags: c_int, wanted: *const timespec, rest: *mut timespec) -> c_int, blocks Blocking::Sleep;
    fn usleep(microseconds: u32) -> c_int, blocks Blocking::Sleep;
    fn sleep(seconds: u32) -> u32, blocks Blocking::Sleep;
    fn thrd_sleep(wanted: *const timespec, rest: *mut timespec) -> c_int, blocks Blocking::Sleep;
    fn pause() -> c_int, blocks Blocking::Handler;
    fn poll(list: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int, blocks Blocking::Poll(list as usize, count as usize);
    fn __poll_chk(list: *mut pollfd, count: nfds_t, timeout: c_int, bytes: usize) -> c_int, blocks Blocking::Poll(list as usize, count as usize);
    fn select(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *mut timeval) -> c_int, blocks Blocking::Select(count, read as usize);
    fn epoll_wait(epoll: c_int, events: *mut libc::epoll_event, count: c_int, timeout: c_int) -> c_int, blocks Blocking::Epoll(epoll, events as usize);
    fn sem_timedwait(semaphore: *mut libc::sem_t, until: *const timespec) -> c_int, blocks Blocking::Semaphore(semaphore as usize);
    fn sem_clockwait(semaphore: *mut libc::sem_t, clock: libc::clockid_t, until: *const timespec) -> c_int, blocks Blocking::Semaphore(semaphore as usize);
    fn semop(id: c_int, operations: *mut libc::sembuf, count: usize) -> c_int, blocks Blocking::SemaphoreSet(id, operations as usize, count);
    fn semtimedop(id: c_int, operations: *mut libc::sembuf, count: usize, timeout: *const timespec) -> c_int, blocks Blocking::SemaphoreSet(id, operations as usize, count);
    fn msgrcv(id: c_int, message: *mut c_void, bytes: usize, kind: libc::c_long, flags: c_int) -> isize, blocks Blocking::Receives(Queue::SystemV(id, kind));
    fn msgsnd(id: c_int, message: *const c_void, bytes: usize, flags: c_int) -> c_int, blocks Blocking::Sends(Queue::SystemV(id, type_of(message)));
    fn aio_suspend(list: *const *const libc::aiocb, count: c_int, timeout: *const timespec) -> c_int, blocks Blocking::Operations;
    fn aio_suspend64(list: *const *const libc::aiocb, count: c_int, timeout: *const timespec) -> c_int, blocks Blocking::Operations;
    fn gai_suspend(list: *const *const c_void, count: c_int, timeout: *const timespec) -> c_int, blocks Blocking::Operations;
    if (bytes > WHOLE || SENDING.times_out()) fn write(file: c_int, data: *const c_void, bytes: usize) -> isize, blocks Blocking::Writes(file);
    fn writev(file: c_int, parts: *const libc::iovec, count: c_int) -> isize, blocks Blocking::Writes(file);
    if (bytes > WHOLE || SENDING.times_out()) fn send(socket: c_int, data: *const c_void, bytes: usize, flags: c_int) -> isize, blocks Blocking::Writes(socket);
    if (bytes > WHOLE || SENDING.times_out()) fn sendto(socket: c_int, data: *const c_void, bytes: usize, flags: c_int, to: *const libc::sockaddr, to_bytes: libc::socklen_t) -> isize, blocks Blocking::Writes(socket);
    fn sendmsg(socket: c_int, message: *const libc::msghdr, flags: c_int) -> isize, blocks Blocking::Writes(socket);
    if (SENDING.times_out()) fn sendmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int) -> c_int, blocks Blocking::Writes(socket);
    if (SENDING.times_out()) fn connect(socket: c_int, to: *const libc::sockaddr, to_bytes: libc::socklen_t) -> c_int, blocks Blocking::Writes(socket);
    if (RECEIVING.times_out()) fn accept(socket: c_int, from: *mut libc::sockaddr, from_bytes: *mut libc::socklen_t) -> c_int, blocks Blocking::Reads(socket);
    if (RECEIVING.times_out()) fn accept4(socket: c_int, from: *mut libc::sockaddr, from_bytes: *mut libc::socklen_t, flags: c_int) -> c_int, blocks Blocking::Reads(socket);
    if (RECEIVING.times_out()) fn read(file: c_int, data: *mut c_void, bytes: usize) -> isize, blocks Blocking::Reads(file);
    if (RECEIVING.times_out()) fn __read_chk(file: c_int, data: *mut c_void, bytes: usize, room: usize) -> isize, blocks Blocking::Reads(file);
    if (RECEIVING.times_out()) fn readv(file: c_int, parts: *const libc::iovec, count: c_int) -> isize, blocks Blocking::Reads(file);
    if (RECEIVING.waits_for_all(flags)) fn recv(socket: c_int, data: *mut c_void, bytes: usize, flags: c_int) -> isize, blocks Blocking::Reads(socket);
    if (RECEIVING.waits_for_all(flags)) fn __recv_chk(socket: c_int, data: *mut c_void, bytes: usize, room: usize, flags: c_int) -> isize, blocks Blocking::Reads(socket);
    if (RECEIVING.waits_for_all(flags)) fn recvfrom(socket: c_int, data: *mut c_void, bytes: usize, flags: c_int, from: *mut libc::sockaddr, from_bytes: *mut libc::socklen_t) -> isize, blocks Blocking::Reads(socket);
    if (RECEIVING.waits_for_all(flags)) fn __recvfrom_chk(socket: c_int, data: *mut c_void, bytes: usize, room: usize, flags: c_int, from: *mut libc::sockaddr, from_bytes: *mut libc::socklen_t) -> isize, blocks Blocking::Reads(socket);
    if (RECEIVING.waits_for_all(flags)) fn recvmsg(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize, blocks Blocking::Reads(socket);
    if (RECEIVING.waits_for_all(flags)) fn recvmmsg(socket: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int, timeout: *mut timespec) -> c_int, blocks Blocking::Reads(socket);
}

/// The type of a message of System V; 0 if it is not known.
fn type_of(message: *const c_void) -> libc::c_long {
    if blocking::recorder().is_none() {
        return 0;
    }
    let mut bytes = [0; size_of::<libc::c_long>()];
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let copied = copy_from_anywhere(message as u64, &mut bytes);
        *errno = kept;
        if copied == bytes.len() { libc::c_long::from_ne_bytes(bytes) } else { 0 }
    }
}

/// Whether calls of one direction time out on any socket. Then those on all sockets and files are deferred: a
/// query per call would be a system call, too.
struct Direction(AtomicBool);

static SENDING: Direction = Direction(AtomicBool::new(false));
static RECEIVING: Direction = Direction(AtomicBool::new(false));

impl Direction {
    #[inline]
    fn times_out(&self) -> bool {
        self.0.load(Relaxed)
    }

    #[inline]
    fn waits_for_all(&self, flags: c_int) -> bool {
        flags & libc::MSG_WAITALL != 0 || self.times_out()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    bytes: libc::socklen_t,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, libc::socklen_t) -> c_int;
    /// `SO_RCVTIMEO` and `SO_SNDTIMEO` for 64-bit times, if the C library's are shorter.
    const RECEIVE_64: c_int = 66;
    const SEND_64: c_int = 67;
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | RECEIVE_64) => RECEIVING.0.store(true, Relaxed),
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO | SEND_64) => SENDING.0.store(true, Relaxed),
        _ => {}
    }
    // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
    unsafe {
        core::mem::transmute::<usize, Function>(next::setsockopt.address())(socket, level, name, value, bytes)
    }
}

/// Bytes that a pipe takes whole or not at all.
const WHOLE: usize = libc::PIPE_BUF;

/// Functions that apply a mask of the program's, or wait for signals: that argument is replaced by a copy.
macro_rules! with_set {
    ($( fn $name:ident($($before:ident : $btype:ty),* ; $set:ident by $change:ident ; $($after:ident : $atype:ty),*) -> $result:ty, blocks $blocking:expr $(, as $number:ident($stored:ident))?; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($before: $btype,)* $set: *const sigset_t $(, $after: $atype)*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($btype,)* *const sigset_t $(, $atype)*) -> $result;
            let mut copy = MaybeUninit::uninit();
            let held = hold();
            let blocking = $blocking;
            let begun = blocking::begin(blocking);
            // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
            let result = unsafe {
                let set = $change($set, &mut copy);
                core::mem::transmute::<usize, Function>(next::$name.address())($($before,)* set $(, $after)*)
            };
            release(held, next::$name.address());
            blocking::end(begun, blocking, with_set!(@number result $($number $stored)?));
            result
        }
    )* };
    (@number $result:ident) => { $result as i64 };
    (@number $result:ident $number:ident $stored:ident) => { $number($result, $stored) };
}

/// The signal that `sigwait` has stored; negative if it failed.
fn stored_signal(result: c_int, signal: *const c_int) -> i64 {
    // SAFETY: the call has succeeded, and stored it there.
    if result == 0 { i64::from(unsafe { *signal }) } else { -1 }
}

with_set! {
    fn ppoll(list: *mut pollfd, count: nfds_t, timeout: *const timespec; mask by masked;) -> c_int, blocks Blocking::Poll(list as usize, count as usize);
    fn pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, other: *mut fd_set, timeout: *const timespec; mask by masked;) -> c_int, blocks Blocking::Select(count, read as usize);
    fn epoll_pwait(epoll: c_int, events: *mut libc::epoll_event, count: c_int, timeout: c_int; mask by masked;) -> c_int, blocks Blocking::Epoll(epoll, events as usize);
    fn __ppoll_chk(list: *mut pollfd, count: nfds_t, timeout: *const timespec; mask by masked; bytes: usize) -> c_int, blocks Blocking::Poll(list as usize, count as usize);
    fn epoll_pwait2(epoll: c_int, events: *mut libc::epoll_event, count: c_int, timeout: *const timespec; mask by masked;) -> c_int, blocks Blocking::Epoll(epoll, events as usize);
    fn sigsuspend(; mask by masked;) -> c_int, blocks Blocking::Handler;
    fn sigwait(; set by without_ours; signal: *mut c_int) -> c_int, blocks Blocking::Signal, as stored_signal(signal);
    fn sigwaitinfo(; set by without_ours; info: *mut siginfo_t) -> c_int, blocks Blocking::Signal;
    fn sigtimedwait(; set by without_ours; info: *mut siginfo_t, timeout: *const timespec) -> c_int, blocks Blocking::Signal;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaction(
    number: c_int,
    action: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
    unsafe {
        if let Some(action) = action.as_ref() {
            alternate::note(action);
        }
        if number == 0 || number != signal::number() {
            return core::mem::transmute::<usize, Function>(next::sigaction.address())(number, action, old);
        }
        signal::exchange(action, old);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    type Function = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
    unsafe {
        let next = core::mem::transmute::<usize, Function>(next::sigaltstack.address());
        let mut result = None;
        with_sampler(|sampler| {
            let own = sampler.alternate.as_ref();
            result = own.map(|own| own.exchange(new, old));
        });
        result.unwrap_or_else(|| next(new, old))
    }
}

/// `fn name with flags;`: the C library's functions that install a handler and return the one before.
macro_rules! simple_handlers {
    ($( fn $name:ident with $flags:expr; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(number: c_int, handler: usize) -> usize {
            type Function = unsafe extern "C" fn(c_int, usize) -> usize;
            // SAFETY: the C library's function of this name has this type; the actions are local, and all zero is valid.
            unsafe {
                if number == 0 || number != signal::number() {
                    return core::mem::transmute::<usize, Function>(next::$name.address())(number, handler);
                }
                let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
                let mut old: libc::sigaction = MaybeUninit::zeroed().assume_init();
                (new.sa_sigaction, new.sa_flags) = (handler, $flags);
                signal::exchange(&new, &mut old);
                old.sa_sigaction
            }
        }
    )* };
}

mod simple_handlers {
    use super::*;
    simple_handlers! {
        fn signal with libc::SA_RESTART;
        fn bsd_signal with libc::SA_RESTART;
        fn ssignal with libc::SA_RESTART;
        fn sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
        fn __sysv_signal with libc::SA_RESETHAND | libc::SA_NODEFER;
    }
}

/// `fn name;`: functions of the C library that end the process immediately.
macro_rules! exits {
    ($( fn $name:ident; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(status: c_int) -> ! {
            type Function = unsafe extern "C" fn(c_int) -> !;
            if let Some(host) = host().filter(|_| !filters::has_left()) {
                (host.before_exit)();
            }
            // SAFETY: the C library's function of this name has this type.
            unsafe { core::mem::transmute::<usize, Function>(next::$name.address())(status) }
        }
    )* };
}

exits! {
    fn _exit;
    fn _Exit;
}

/// `fn name(arguments) -> result, fails condition;`: process-creating functions of the C library, repeated if
/// one of the recorder's threads used up the limit; with the kind of the wait ([`Blocking`]) if they wait.
macro_rules! tried_again {
    ($( fn $name:ident($($arg:ident : $type:ty),*) -> $result:ty, fails $fails:expr $(, blocks $blocking:expr)?; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            $(let blocking = $blocking;
            let begun = blocking::begin(blocking);)?
            // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
            let attempt = || unsafe { core::mem::transmute::<usize, Function>(next::$name.address())($($arg),*) };
            let fails: fn(&$result) -> bool = $fails;
            let result = own_threads::try_again(attempt, |result| fails(result) && !filters::has_left());
            $(let blocking = $blocking;
            blocking::end(begun, blocking, i64::from(result));)?
            result
        }
    )* };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> libc::pid_t {
    type Function = unsafe extern "C" fn() -> libc::pid_t;
    // SAFETY: the C library's function of this name has this type.
    let fork = || unsafe { core::mem::transmute::<usize, Function>(next::fork.address())() };
    let attempt = || fork_gate::closed(fork);
    let at = clock::kernel_ns();
    let made = own_threads::try_again(attempt, |made| *made == -1 && is_at_limit() && !filters::has_left());
    if made == 0 && super::is_active() && blocking::recorder().is_some() {
        taskscope_record::forked::note(at);
    }
    made
}

tried_again! {
    fn system(command: *const libc::c_char) -> c_int, fails |status| *status == -1 && is_at_limit(), blocks Blocking::Other;
    fn popen(command: *const libc::c_char, mode: *const libc::c_char) -> *mut libc::FILE, fails |file| file.is_null() && is_at_limit();
    fn posix_spawn(pid: *mut libc::pid_t, file: *const libc::c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const libc::c_char, environment: *const *const libc::c_char) -> c_int, fails |failed| *failed == libc::EAGAIN;
    fn posix_spawnp(pid: *mut libc::pid_t, file: *const libc::c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const libc::c_char, environment: *const *const libc::c_char) -> c_int, fails |failed| *failed == libc::EAGAIN;
}

/// Declared with its maximum of arguments; missing ones have arbitrary values.
#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    type Function = unsafe extern "C" fn(c_int, usize, usize, usize, usize) -> c_int;
    filters::before_prctl(option, a, b);
    // SAFETY: the C library's function takes its arguments in the positions of this type; they are the
    // caller's.
    unsafe { core::mem::transmute::<usize, Function>(next::prctl.address())(option, a, b, c, d) }
}

/// `fn name(arguments), user;`: the C library's functions that make `user` the effective user of the process.
macro_rules! changes_of_user {
    ($( fn $name:ident($($arg:ident),*), $user:ident; )*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: libc::uid_t),*) -> c_int {
            type Function = unsafe extern "C" fn($(changes_of_user!(@uid $arg)),*) -> c_int;
            // -1 keeps the user. SAFETY: no preconditions.
            let changes = $user != libc::uid_t::MAX && $user != unsafe { libc::geteuid() };
            if changes {
                process::give_files_to($user);
            }
            // SAFETY: the C library's function of this name has this type; the arguments are the caller's.
            let result = unsafe { core::mem::transmute::<usize, Function>(next::$name.address())($($arg),*) };
            if changes && result == 0 {
                report_lacking_rights($user);
            }
            result
        }
    )* };
    (@uid $arg:ident) => { libc::uid_t };
}

changes_of_user! {
    fn setuid(user), user;
    fn seteuid(user), user;
    fn setreuid(real, user), user;
    fn setresuid(real, user, saved), user;
}

/// Reports once that the recording's files are out of reach of the process's new user.
#[cold]
fn report_lacking_rights(user: libc::uid_t) {
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if let Some(directory) = process::closed_directory()
        && !IS_REPORTED.swap(true, Relaxed)
    {
        eprintln!(
            "taskscope: the recording is incomplete from now on\n\
             why: user {user}, which the program has become, cannot create files in {}\n\
             try: -o in a directory that this user can enter",
            directory.display()
        );
    }
}

fn is_at_limit() -> bool {
    // SAFETY: `errno` is the thread's own.
    unsafe { *libc::__errno_location() == libc::EAGAIN }
}

/// Before the program loads something.
#[cfg(target_arch = "x86_64")]
extern "C" fn before_dlopen() -> usize {
    super::code_map::suspect();
    next::dlopen.address()
}

/// Runs before the program's symbol lookups, most often in a newly loaded library.
#[cfg(target_arch = "x86_64")]
extern "C" fn before_dlsym() -> usize {
    if super::is_active() {
        super::code_map::refresh_now();
        if let Some(host) = host().filter(|_| taskscope_record::thread::is_attached()) {
            (host.write_modules)();
        }
    }
    next::dlsym.address()
}

/// `name before`: a function that calls `before`, and jumps to the address that it returns. The loader checks
/// the caller of these functions, so the caller's return address stays in its place.
#[cfg(target_arch = "x86_64")]
macro_rules! jumps {
    ($( $name:ident $before:ident; )*) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "call {before}",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                before = sym $before,
            )
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
jumps! {
    dlopen before_dlopen;
    dlsym before_dlsym;
}

/// Whether the program's calls are intercepted: the loader finds another function than the next one. (Our own
/// address cannot decide: it is resolved by the loader too.)
pub fn is_preloaded() -> bool {
    dlsym_of(libc::RTLD_DEFAULT, c"pthread_create") as usize != next::pthread_create.address()
}

/// Whether calls may come here: the loader finds `own`, a function of this name that only this library has.
pub fn is_found(name: &CStr, own: *const c_void) -> bool {
    core::ptr::eq(dlsym_of(libc::RTLD_DEFAULT, name), own)
}

/// Looks all functions up. Not when they are called first: that may be in a handler of the program.
pub fn look_up() {
    next::look_up();
}
