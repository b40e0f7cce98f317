//! One timer per thread, which signals that thread alone.
//!
//! Where many threads share a CPU, the time between two samples of a thread grows, so that what handlers take
//! of a CPU stays bounded: each CPU gets no more signals than [`THREADS_A_CPU`] threads ask for. Threads that
//! wait are signalled, too. By CPU time, threads that wait are not, and nothing has to grow. A sample's
//! weight is the time that has passed, whatever the period.
//!
//! Timers by the time that passes fire in all threads at once, at multiples of the period: threads that meet at
//! barriers lose the longest of such interruptions, and would lose their sum if they came one after the other (Petrini,
//! Kerbyson, Pakin: The Case of the Missing Supercomputer Performance, SC 2003). Where such a moment is also one of
//! the kernel's ticks, which Linux keeps at multiples of their length, one interrupt does for both.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Clock, Settings, now, signal};

/// Threads per CPU that are sampled as often as was asked for.
pub const THREADS_A_CPU: u64 = 8;

/// Timers that run by the time that passes.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// By how much periods are stretched now.
static STRETCH: AtomicU32 = AtomicU32::new(1);

/// By how much periods are to be stretched: a power of two, so that it changes seldom. To ask for the number of CPUs reads
/// some files, which so few threads as one CPU has need not do.
fn stretch(threads: u64, cpus: impl FnOnce() -> u64) -> u32 {
    if threads <= THREADS_A_CPU {
        return 1;
    }
    let wanted = threads.div_ceil(THREADS_A_CPU * cpus().max(1)).max(1);
    u32::try_from(wanted.next_power_of_two()).unwrap_or(1 << 16).min(1 << 16)
}

/// So many more timers run.
fn count(change: i64) {
    use std::sync::OnceLock;
    static CPUS: OnceLock<u64> = OnceLock::new();
    let cpus = || *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
    let running = RUNNING.fetch_add(change as u64, Relaxed).wrapping_add(change as u64);
    STRETCH.store(stretch(running, cpus), Relaxed);
}

/// A running timer.
pub struct Timer {
    timer: libc::timer_t,
    clock: Clock,
    period_ns: u64,
    stretch: AtomicU32,
    /// Its thread, by the system's number.
    thread: i32,
}

impl Timer {
    /// Arms a timer for the calling thread. `None` when the system has no more.
    pub fn arm(settings: Settings, thread: i32) -> Option<Timer> {
        let clock = match settings.clock {
            Clock::Wall => libc::CLOCK_MONOTONIC,
            Clock::Cpu => libc::CLOCK_THREAD_CPUTIME_ID,
        };
        // SAFETY: all zero is a valid event; the timer's memory is a local variable.
        unsafe {
            let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
            event.sigev_value.sival_ptr = signal::value();
            event.sigev_signo = signal::number();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_notify_thread_id = thread;
            let mut timer = MaybeUninit::uninit();
            if libc::timer_create(clock, &mut event, timer.as_mut_ptr()) != 0 {
                return None;
            }
            let timer = timer.assume_init();
            if settings.clock == Clock::Wall {
                count(1);
            }
            let timer = Timer {
                timer,
                clock: settings.clock,
                period_ns: settings.period_ns,
                stretch: AtomicU32::new(1),
                thread,
            };
            timer.set(1);
            Some(timer)
        }
    }

    /// Follows the number of threads, after a sample. Async-signal-safe.
    #[inline(always)]
    pub fn keep_pace(&self) {
        let stretch = STRETCH.load(Relaxed);
        if stretch != self.stretch.load(Relaxed) && self.clock == Clock::Wall {
            self.set(stretch);
        }
    }

    fn set(&self, stretch: u32) {
        self.stretch.store(stretch, Relaxed);
        let (flags, first_ns) = match self.clock {
            Clock::Wall => {
                (libc::TIMER_ABSTIME, first_ns(now(Clock::Wall), self.period_ns, stretch, self.thread))
            }
            Clock::Cpu => (0, self.period_ns),
        };
        let every = libc::itimerspec {
            it_value: span(first_ns),
            it_interval: span(self.period_ns * u64::from(stretch)),
        };
        // SAFETY: a timer that runs; POSIX has the function async-signal-safe.
        unsafe { libc::timer_settime(self.timer, flags, &every, core::ptr::null_mut()) };
    }

    /// Stops and frees it; from any thread.
    pub fn stop(self) {
        if self.clock == Clock::Wall {
            count(-1);
        }
        // SAFETY: made by `arm`, and gone after this.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// When a thread is to be sampled first: at the next multiple of the period, or where periods are stretched, at one of
/// as many of them, so that not all threads that share a CPU want it at once.
fn first_ns(now_ns: u64, period_ns: u64, stretch: u32, thread: i32) -> u64 {
    let later = u64::from((thread as u32).wrapping_mul(0x9e37_79b1) >> 16) % u64::from(stretch);
    (now_ns / period_ns + 1 + later) * period_ns
}

fn span(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_grow_where_many_threads_share_a_cpu() {
        let of = |threads| stretch(threads, || 2);
        assert_eq!([0, 1, 16, 17, 32, 33, 65, 1000].map(of), [1, 1, 1, 2, 2, 4, 8, 64]);
        for threads in 1..5000 {
            assert!(threads / u64::from(of(threads)) <= 2 * THREADS_A_CPU, "{threads}");
        }
        assert_eq!(stretch(u64::MAX / 2, || 0), 1 << 16);
        assert_eq!(stretch(THREADS_A_CPU, || unreachable!("not asked for")), 1);
    }

    #[test]
    fn all_threads_are_sampled_at_once_unless_many_share_a_cpu() {
        let firsts = |stretch| -> Vec<u64> {
            (1000..1016).map(|thread| first_ns(7_300_000, 1_000_000, stretch, thread)).collect()
        };
        assert_eq!(firsts(1), [8_000_000; 16]);
        let of_four: std::collections::BTreeSet<u64> = firsts(4).into_iter().collect();
        assert_eq!(Vec::from_iter(of_four), [8_000_000, 9_000_000, 10_000_000, 11_000_000]);
        assert_eq!(first_ns(8_000_000, 1_000_000, 1, 1), 9_000_000);
    }
}
