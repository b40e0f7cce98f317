//! Threads that a recorder starts for itself are none of the program's: who intercepts the program's
//! `pthread_create` asks here and leaves them alone, and the program's signals are not delivered to them.
//!
//! Nor do they keep a process alive. It ends with its last thread where `main` left by `pthread_exit`; so from then on they look
//! whether others are left, and else end it as the C library would.

use std::cell::Cell;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

std::thread_local! {
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `spawn`, which starts a thread of the recorder's own.
pub fn start<T>(spawn: impl FnOnce() -> T) -> T {
    let before = STARTING.replace(true);
    let blocked = BlockedSignals::new();
    let started = spawn();
    drop(blocked);
    STARTING.set(before);
    started
}

/// Waits until a thread of the recorder's own is gone, but no longer than `limit`: where the program's
/// threads leave it no CPU it may never come to its end.
///
/// The last thread of a process gives its memory back, and one that wakes up for nothing else does so
/// slowly: 3 ms more for 50 MiB.
pub fn wait_for_end(thread: JoinHandle<()>, limit: Duration) {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + limit;
    let until = libc::timespec {
        tv_sec: until.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(until.subsec_nanos()),
    };
    let thread = thread.into_pthread_t();
    // SAFETY: the thread is joinable, and nobody else joins or detaches it.
    unsafe {
        if libc::pthread_timedjoin_np(thread, std::ptr::null_mut(), &until) != 0 {
            libc::pthread_detach(thread);
        }
    }
}

/// The initial thread is at its end. Maybe the process is; maybe others go on.
static INITIAL_LEAVES: AtomicBool = AtomicBool::new(false);

/// Threads of the recorders' own: process and thread, as a forked child has none of its parent's.
static OWN: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// How often to look for the program's last thread.
const LOOK: Duration = Duration::from_millis(20);

fn entry(tid: i32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(tid.cast_unsigned())
}

/// A thread of the program's is at its end. Says whether it is the initial one, so that the recorders' own are to be woken.
pub(crate) fn leaves(os_tid: i32) -> bool {
    let is_initial = os_tid.cast_unsigned() == std::process::id();
    INITIAL_LEAVES.fetch_or(is_initial, Release);
    is_initial
}

/// Whether the initial thread is at its end, after which own threads are to look more often.
pub fn initial_leaves() -> bool {
    INITIAL_LEAVES.load(Acquire)
}

/// The calling thread is a recorder's own while this lives.
pub struct OwnThread(Option<&'static AtomicU64>);

impl OwnThread {
    /// From now on.
    pub fn begin() -> OwnThread {
        let own = entry(crate::thread::os_tid());
        let takes = |place: &&AtomicU64| {
            let is_free = |other: u64| (other >> 32 != u64::from(std::process::id())).then_some(own);
            place.fetch_update(AcqRel, Relaxed, is_free).is_ok()
        };
        OwnThread(OWN.iter().find(takes))
    }

    /// How long to sleep instead of so long.
    pub fn sleep(&self, wanted: Duration) -> Duration {
        if initial_leaves() { wanted.min(LOOK) } else { wanted }
    }

    /// Ends the process if only recorders' threads are left. Without any lock held: what is to be done at its end is done here.
    pub fn end_process_if_alone(&self) {
        if initial_leaves() && self.0.is_some() && only_own_are_left() == Some(true) {
            // SAFETY: as the program's last thread would.
            unsafe { libc::exit(0) };
        }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        self.0.into_iter().for_each(|place| place.store(0, Release));
    }
}

/// `None` where the system does not tell.
fn only_own_are_left() -> Option<bool> {
    let own = std::process::id().cast_signed();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{own}/stat")).ok()?;
    // The state follows the name, which is in parentheses and may have some.
    if !stat.rsplit_once(')')?.1.trim_start().starts_with('Z') {
        return Some(false);
    }
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let tid: i32 = task.ok()?.file_name().to_str()?.parse().ok()?;
        if tid != own && !OWN.iter().any(|place| place.load(Acquire) == entry(tid)) {
            return Some(false);
        }
    }
    Some(true)
}

/// While it lives, the calling thread takes no signal; a thread that it starts never will.
struct BlockedSignals(u64);

impl BlockedSignals {
    fn new() -> Self {
        BlockedSignals(exchange_mask(u64::MAX))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        exchange_mask(self.0);
    }
}

/// By the kernel's own call: what samples stands before the C library's function, and lets its signal through.
fn exchange_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel has sets of 64 signals.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut before, 8usize);
    }
    before
}

/// Whether the calling thread is in [`start`].
pub fn are_being_started() -> bool {
    STARTING.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Instant;

    #[test]
    fn a_thread_that_ends_is_waited_for_and_one_that_does_not_is_left() {
        static HAS_ENDED: AtomicBool = AtomicBool::new(false);
        let ends = thread::spawn(|| {
            thread::sleep(Duration::from_millis(20));
            HAS_ENDED.store(true, Release);
        });
        wait_for_end(ends, Duration::from_secs(60));
        assert!(HAS_ENDED.load(Acquire));

        let start = Instant::now();
        wait_for_end(thread::spawn(|| thread::sleep(Duration::from_secs(60))), Duration::from_millis(5));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
