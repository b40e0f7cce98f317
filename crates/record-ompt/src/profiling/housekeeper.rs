//! Control of the profile's housekeeping thread by others: ending, waking, requesting the last profile.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use taskscope_record::own_threads::{self, OwnThread, Started};
use taskscope_record::wake::Wake;

/// Charges others' idleness beside the thread with this state, which has no other user.
pub type Charge = unsafe fn(*mut ());

/// Time limit for its end.
const MAX_END_WAIT: Duration = Duration::from_millis(2);

/// Maximum wait of an exiting thread for the last profile, and the interval of its checks.
const MAX_LAST_WAIT: Duration = Duration::from_secs(1);
static LOOK_AGAIN: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };

/// State of the last profile, for a thread that ends the process.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
mod last {
    pub const NOT_ASKED_FOR: u32 = 0;
    pub const ASKED_FOR: u32 = 1;
    pub const WRITTEN: u32 = 2;
}

/// The thread, as its run knows it.
#[derive(Default)]
pub struct Housekeeping {
    has_ended: AtomicBool,
    thread: Mutex<Option<Started>>,
    is_started: AtomicBool,
    wake: Wake,
    /// A state of [`last`].
    last: AtomicU32,
    /// The thread that requested it, if it is recorded; it stays inside its recorder.
    leaver: AtomicPtr<()>,
    /// Charges others' idleness beside it; a `fn(*mut ())`.
    charge: AtomicUsize,
}

impl Housekeeping {
    /// Keeps the thread, once it is started.
    pub fn set_thread(&self, started: Option<Started>) {
        self.is_started.store(started.is_some(), Release);
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = started;
    }

    /// Whether it begins no round any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Acquire)
    }

    /// Whether an exiting thread has requested the last profile.
    pub fn is_last_asked_for(&self) -> bool {
        self.last.load(Acquire) == last::ASKED_FOR
    }

    /// Charges others' idleness beside the requesting thread.
    pub fn charge_leaver(&self) {
        let leaver = self.leaver.load(Acquire);
        if !leaver.is_null() {
            // SAFETY: stored with the leaver, from a function of this type; its own thread leaves the state to this one for good.
            unsafe { core::mem::transmute::<usize, Charge>(self.charge.load(Relaxed))(leaver) }
        }
    }

    /// The last profile is written.
    pub fn last_is_written(&self) {
        self.last.store(last::WRITTEN, Release);
    }

    /// Ends it for good, for a thread of the program's: the profile is written at the end.
    pub fn give_way(&self) -> Option<Started> {
        self.has_ended.store(true, Release);
        self.wake.wake();
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the thread: it begins no further round.
    pub fn end(&self) {
        self.has_ended.store(true, Release);
        self.wake.wake();
    }

    /// Waits until it is gone, but not for long.
    pub fn wait_for_end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            own_threads::wait_for_end(thread, MAX_END_WAIT);
        }
    }

    /// Has the last profile written before the calling thread ends the process; waits for a limited time. No
    /// other thread accesses `leaver`, the calling thread's state, from now on. Async-signal-safe.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn write_before_exit(&self, leaver: *mut (), charge: Charge) {
        if !self.is_started.load(Acquire) || self.has_ended.load(Acquire) {
            return;
        }
        let asked = self.last.compare_exchange(last::NOT_ASKED_FOR, last::ASKED_FOR, AcqRel, Acquire);
        if asked.is_ok() {
            self.charge.store(charge as usize, Relaxed);
            self.leaver.store(leaver, Release);
            self.wake.wake();
        }
        let start = Instant::now();
        while self.last.load(Acquire) != last::WRITTEN && start.elapsed() < MAX_LAST_WAIT {
            // Sleeping functions are intercepted; this waits for a word that is never woken.
            let (word, operation) = (0u32, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
            // SAFETY: the word and the time are only read.
            unsafe { libc::syscall(libc::SYS_futex, &raw const word, operation, 0, &raw const LOOK_AGAIN) };
        }
    }

    /// Wakes the thread to check its requests.
    pub fn wake(&self) {
        self.wake.wake();
    }

    /// Sleeps until it is woken, for this long at most.
    pub fn nap(&self, length: Duration) {
        self.wake.sleep(length);
    }

    /// Returns after `pause`, at the end, or on a request. Calls `meanwhile` when it is woken; it returns how long it may sleep,
    /// which `nap` does.
    pub fn sleep(
        &self,
        own: &OwnThread,
        pause: Duration,
        mut meanwhile: impl FnMut() -> Option<Duration>,
        mut nap: impl FnMut(Duration),
    ) {
        let start = Instant::now();
        while let Some(left) = pause.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if self.has_ended.load(Acquire) || self.last.load(Acquire) == last::ASKED_FOR {
                return;
            }
            let left = meanwhile().map_or(left, |round| left.min(round));
            nap(own.sleep(left));
            own.end_process_if_alone();
        }
    }
}
