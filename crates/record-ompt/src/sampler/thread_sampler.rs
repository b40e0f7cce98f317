//! Per-thread state of sampling. All of it is allocated and touched before the timer is armed.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::alternate::Alternate;
use super::bounds::Bounds;
use super::machine::registers_here;
use super::settings::{Settings, now, settings};
use super::time_limit::Rest;
use super::timer::Timer;
use super::walk::{StackFrames, UnwindCache};
use super::{code_map, excluded_programs, signal};

/// A thread's timer and the handler's memory.
pub struct Sampler {
    pub(crate) settings: Settings,
    pub(crate) bounds: Bounds,
    /// For samples that have no room on the thread's.
    pub(crate) alternate: Option<Alternate>,
    /// Bounds the time of samples.
    pub(crate) rest: Rest,
    /// System id of its thread.
    os_tid: i32,
    /// The next sample comes from a call that was not to be interrupted.
    pub(crate) after_blocking: AtomicBool,
    /// The function that it has called, while that sample may be taken; else 0.
    pub(crate) called: AtomicUsize,
    /// When it called that.
    called_at: AtomicU64,
    /// A sample of the call has been taken.
    call_is_sampled: AtomicBool,
    /// Only the handler touches it.
    pub(crate) memory: Box<UnsafeCell<Memory>>,
    timer: Option<Timer>,
}

/// The handler's memory.
pub struct Memory {
    pub cache: UnwindCache,
    pub frames: StackFrames,
    /// The sampling clock at the sample before, nanoseconds.
    pub last_ns: u64,
    pub is_first: bool,
}

impl Memory {
    /// Takes much of the stack, while it is made.
    #[inline(never)]
    fn new(now: u64) -> Box<UnsafeCell<Memory>> {
        let (cache, frames) = (UnwindCache::default(), StackFrames::new());
        Box::new(UnsafeCell::new(Memory { cache, frames, last_ns: now, is_first: true }))
    }
}

impl Sampler {
    /// Creates the sampler of the calling thread, with its stack bounds and system thread id;
    /// [`arm`](Self::arm) starts it. `None` if sampling is off. Not for [small](Bounds::is_small) stacks.
    pub fn new(bounds: Bounds, os_tid: i32) -> Option<Sampler> {
        let settings = settings()?;
        Some(Sampler {
            settings,
            bounds,
            alternate: Alternate::new(),
            rest: Rest::default(),
            os_tid,
            after_blocking: AtomicBool::new(false),
            called: AtomicUsize::new(0),
            called_at: AtomicU64::new(0),
            call_is_sampled: AtomicBool::new(false),
            memory: Memory::new(now(settings.clock)),
            timer: None,
        })
    }

    /// Arms the timer, after the handler's memory has reached its final place. Returns whether the system had
    /// a timer left.
    #[inline(never)]
    pub fn arm(&mut self) -> bool {
        // One walk touches the memory and caches the outermost frames of every stack.
        if let Some(map) = code_map::current() {
            let memory = self.memory.get_mut();
            memory.frames.walk(map, &mut memory.cache, registers_here(), self.bounds);
        }
        signal::unblock();
        self.timer = Timer::arm(self.settings, self.os_tid);
        self.timer.is_some()
    }

    /// Ends the timer, so that no further signal wakes the thread.
    pub fn disarm(&mut self) {
        // Then by no call of the system.
        if !excluded_programs::has_left()
            && let Some(timer) = self.timer.take()
        {
            timer.stop();
        }
    }
}

impl Sampler {
    /// Adapts the period to the number of threads. Async-signal-safe.
    #[inline(always)]
    pub(crate) fn keep_pace(&self) {
        if let Some(timer) = &self.timer {
            timer.keep_pace();
        }
    }

    /// How late the sample is that is taken now, nanoseconds, if that is known. Async-signal-safe.
    pub(crate) fn late_ns(&self) -> Option<u64> {
        self.timer.as_ref().and_then(Timer::late_ns)
    }

    /// Maximum weight, nanoseconds, of a sample at `time`, if it hit a `called` function that delayed it: the
    /// time since the call, and at least a period. A call longer than a period is always sampled; the time
    /// before it belongs to other samples. Async-signal-safe.
    #[inline(always)]
    pub(crate) fn own_part(&self, time: u64, called: u64) -> u64 {
        if called == 0 {
            return u64::MAX;
        }
        time.saturating_sub(self.called_at.load(Relaxed)).max(self.period_ns())
    }

    /// Whether the thread comes out of a call that has its sample. Async-signal-safe.
    #[inline(always)]
    pub(crate) fn is_second_of_call(&self) -> bool {
        self.called.load(Relaxed) != 0 && self.call_is_sampled.swap(true, Relaxed)
    }

    /// Requested time between two samples, nanoseconds.
    #[inline(always)]
    pub fn asked_ns(&self) -> u64 {
        self.settings.period_ns
    }

    /// The time between two samples of the thread, as things are.
    #[inline(always)]
    pub fn period_ns(&self) -> u64 {
        self.timer.as_ref().map_or(self.settings.period_ns, Timer::period_ns)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if excluded_programs::has_left() {
            // By no call of the system.
            core::mem::forget((self.timer.take(), self.alternate.take()));
            return;
        }
        if let Some(timer) = self.timer.take() {
            timer.stop();
        }
        if let Some(alternate) = self.alternate.take() {
            // SAFETY: no preconditions.
            if unsafe { libc::syscall(libc::SYS_gettid) } == libc::c_long::from(self.os_tid) {
                alternate.remove();
            } else {
                // Its thread may still use it.
                core::mem::forget(alternate);
            }
        }
    }
}

impl Sampler {
    /// Marks the begin of a call during which the signal is blocked.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn begin_blocking(&self, at: u64) {
        self.called_at.store(at, Relaxed);
    }

    /// Marks the end of a call of this function, during which the signal was blocked.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn mark_blocking(&self, called: usize) {
        self.call_is_sampled.store(false, Relaxed);
        self.called.store(called, Relaxed);
        self.after_blocking.store(true, Relaxed);
    }

    /// Ends blocking: a due sample has been taken.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn end_blocking(&self) {
        self.called.store(0, Relaxed);
    }
}
