//! Short sleeps of the recorder itself.

/// Sleeps for a millisecond, as [`nap_for`].
pub fn nap() {
    nap_for(1_000_000);
}

/// Sleeps for less than a second. Sleeping functions and futex calls are intercepted, and would be waits of the program's; this
/// system call is not recorded. Async-signal-safe.
pub fn nap_for(nanos: libc::c_long) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanos };
    // SAFETY: the time is only read.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null_mut::<libc::timespec>()) };
}
