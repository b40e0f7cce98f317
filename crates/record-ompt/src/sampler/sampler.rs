//! What sampling keeps per thread. All of it is allocated and touched before the timer is armed.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use taskscope_event::models::samples::LEVEL_BYTES;
use taskscope_record::clock;

use super::alternate::Alternate;
use super::timer::Timer;
use super::walk::{Bounds, Cache, Frames, registers_here};
use super::{Clock, Settings, code_map, settings, signal};
use std::sync::Arc;

use crate::profiling::{Counted, Recent};
use crate::sampler::filters;
use crate::task_stacks::levels::Levels;

/// A thread's timer and the handler's memory.
pub struct Sampler {
    pub(crate) settings: Settings,
    pub(crate) bounds: Bounds,
    /// For samples that have no room on the thread's.
    pub(crate) alternate: Option<Alternate>,
    /// Its thread, by the system's number.
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
    pub(crate) memory: UnsafeCell<Memory>,
    /// In profile mode, where samples are counted.
    pub(crate) counted: Option<Arc<Counted>>,
    /// What the thread worked at lately. The handler adds to it, but not while a callback runs.
    pub(crate) recent: UnsafeCell<Recent>,
    timer: Option<Timer>,
}

/// The handler's memory.
pub struct Memory {
    pub cache: Cache,
    pub frames: Frames,
    pub levels: Levels,
    pub level_bytes: [u8; 24 * LEVEL_BYTES],
    /// The sampling clock at the sample before, nanoseconds.
    pub last_ns: u64,
    pub is_first: bool,
}

impl Sampler {
    /// Starts to sample the calling thread, whose stack and id in the system are given. `None` when nothing is
    /// to be sampled, or the system has no timer left.
    pub fn start(bounds: Bounds, os_tid: i32, counted: Option<Arc<Counted>>) -> Option<Box<Sampler>> {
        let settings = settings()?;
        if bounds.is_small() { None } else { Sampler::start_on(bounds, settings, os_tid, counted) }
    }

    /// Takes much of the stack, while its memory is made.
    #[inline(never)]
    fn start_on(
        bounds: Bounds,
        settings: Settings,
        os_tid: i32,
        counted: Option<Arc<Counted>>,
    ) -> Option<Box<Sampler>> {
        let mut sampler = Box::new(Sampler {
            settings,
            bounds,
            alternate: Alternate::new(),
            os_tid,
            after_blocking: AtomicBool::new(false),
            called: AtomicUsize::new(0),
            called_at: AtomicU64::new(0),
            call_is_sampled: AtomicBool::new(false),
            memory: UnsafeCell::new(Memory {
                cache: Cache::default(),
                frames: Frames::new(),
                levels: Levels::new(),
                level_bytes: [0; 24 * LEVEL_BYTES],
                last_ns: now(settings.clock),
                is_first: true,
            }),
            counted,
            recent: UnsafeCell::default(),
            timer: None,
        });
        // One walk touches the memory and fills the cache with the frames that every stack ends with.
        if let Some(map) = code_map::current() {
            let memory = sampler.memory.get_mut();
            memory.frames.walk(map, &mut memory.cache, registers_here(), bounds);
        }
        signal::unblock();
        sampler.timer = Timer::arm(settings, os_tid);
        sampler.timer.is_some().then_some(sampler)
    }
}

impl Sampler {
    /// Samples come as often as the number of threads allows from now on. Async-signal-safe.
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

    /// How much of the time before a sample at `time` it may stand for, if it is of a `called` function whose end it waited
    /// for: all of the call, which is sampled whenever a period ends in it; of one that is shorter, a period. The time before
    /// the call belongs to others. Async-signal-safe.
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

    /// The time between two samples that was asked for.
    #[inline(always)]
    pub fn asked_ns(&self) -> u64 {
        self.settings.period_ns
    }

    /// The time between two samples of the thread, as things are.
    #[inline(always)]
    pub fn period_ns(&self) -> u64 {
        self.timer.as_ref().map_or(self.settings.period_ns, Timer::period_ns)
    }

    /// What the thread worked at lately, for a callback on the sampler's thread.
    pub fn recent(&self) -> &Recent {
        // SAFETY: the handler leaves it alone while a callback runs.
        unsafe { &*self.recent.get() }
    }

    /// The same.
    pub fn recent_mut(&mut self) -> &mut Recent {
        self.recent.get_mut()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if filters::has_left() {
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
                // Its thread may still have it.
                core::mem::forget(alternate);
            }
        }
    }
}

/// The sampling clock, nanoseconds.
pub fn now(clock: Clock) -> u64 {
    match clock {
        Clock::Wall => clock::kernel_ns(),
        Clock::Cpu => {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is valid for writing.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        }
    }
}

impl Sampler {
    /// Says that the thread begins a call which the signal is kept away from.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn begin_blocking(&self, at: u64) {
        self.called_at.store(at, Relaxed);
    }

    /// Says that the thread comes out of a call of this function, which the signal was kept away from.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn mark_blocking(&self, called: usize) {
        self.call_is_sampled.store(false, Relaxed);
        self.called.store(called, Relaxed);
        self.after_blocking.store(true, Relaxed);
    }

    /// Its sample has been taken, if one was due.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn end_blocking(&self) {
        self.called.store(0, Relaxed);
    }
}
