//! Timers of each thread, which signal that thread alone.
//!
//! If many threads share a CPU, the sampling period of a thread grows, which bounds the handlers' part of a
//! CPU: each CPU gets no more signals than [`THREADS_A_CPU`] threads at the requested rate. Waiting threads
//! are signalled too. With CPU-time timers they are not, and the period stays. A sample's weight is the
//! elapsed time, whatever the period.
//!
//! Wall-time timers fire in all threads at once, at multiples of the period: threads that meet at barriers
//! lose the longest of such interruptions, and would lose their sum if they came one after the other
//! (Petrini, Kerbyson, Pakin: The Case of the Missing Supercomputer Performance, SC 2003). If such a moment
//! is also a kernel tick, which Linux keeps at multiples of its length, one interrupt serves both. If only
//! every second one is, as with 100 Hz at 250 ticks a second, a thread has two alternating timers, of which
//! the second is early by half a tick:
//!
//! ```text
//!   ticks       |   |   |   |   |   |   |   |   |   |   |      every 4 ms
//!   first       x                   x                   x      every 20 ms
//!   second              x                   x
//! ```

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::settings::{Clock, Settings, now};
use super::signal;

/// Threads per CPU that are sampled at the requested rate.
pub const THREADS_A_CPU: u64 = 8;

/// Timers of a thread, at most.
const MAX_TURNS: usize = 2;

/// Timers that run by the time that passes.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// Present factor of all periods.
static STRETCH: AtomicU32 = AtomicU32::new(1);

/// Factor of periods: a power of two, so that it changes seldom. The number of CPUs is read from files, which
/// is skipped for as few threads as one CPU allows.
fn stretch(threads: u64, cpus: impl FnOnce() -> u64) -> u32 {
    if threads <= THREADS_A_CPU {
        return 1;
    }
    let wanted = threads.div_ceil(THREADS_A_CPU * cpus().max(1)).max(1);
    u32::try_from(wanted.next_power_of_two()).unwrap_or(1 << 16).min(1 << 16)
}

/// Adds `change` to the number of running timers.
fn count(change: i64) {
    use std::sync::OnceLock;
    static CPUS: OnceLock<u64> = OnceLock::new();
    let cpus = || *CPUS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
    let running = RUNNING.fetch_add(change as u64, Relaxed).wrapping_add(change as u64);
    STRETCH.store(stretch(running, cpus), Relaxed);
}

/// The running timers of a thread.
pub struct Timer {
    /// One timer, or two alternating ones.
    timers: Vec<libc::timer_t>,
    clock: Clock,
    period_ns: u64,
    stretch: AtomicU32,
    /// Delay of each timer after multiples of its period.
    phases: [AtomicU64; MAX_TURNS],
    /// System id of its thread.
    thread: i32,
}

impl Timer {
    /// Arms a timer for the calling thread. `None` if the system has none left.
    pub fn arm(settings: Settings, thread: i32) -> Option<Timer> {
        let Settings { clock, period_ns } = settings;
        let turns = if clock == Clock::Wall { turns(period_ns, tick_ns()) } else { 1 };
        let mut timers = Vec::with_capacity(turns);
        timers.extend((0..turns).map_while(|_| create(clock, thread)));
        // A single one fires as often as both.
        if timers.is_empty() {
            return None;
        }
        if clock == Clock::Wall {
            count(1);
        }
        let (stretch, phases) = (AtomicU32::new(1), Default::default());
        let timer = Timer { timers, clock, period_ns, stretch, phases, thread };
        timer.set(1);
        Some(timer)
    }

    /// Follows the number of threads, after a sample. Async-signal-safe.
    #[inline(always)]
    pub fn keep_pace(&self) {
        let stretch = STRETCH.load(Relaxed);
        if stretch != self.stretch.load(Relaxed) && self.clock == Clock::Wall {
            self.set(stretch);
        }
    }

    /// The time between two samples.
    #[inline(always)]
    pub fn period_ns(&self) -> u64 {
        self.period_ns * u64::from(self.stretch.load(Relaxed))
    }

    /// Time since a timer expired last, nanoseconds. Async-signal-safe.
    pub fn late_ns(&self) -> Option<u64> {
        if self.clock != Clock::Wall {
            return None;
        }
        let (now_ns, every_ns) = (now(Clock::Wall), self.period_ns() * self.timers.len() as u64);
        let ago = |phase: &AtomicU64| now_ns.saturating_sub(phase.load(Relaxed)) % every_ns.max(1);
        self.phases.iter().take(self.timers.len()).map(ago).min()
    }

    fn set(&self, stretch: u32) {
        self.stretch.store(stretch, Relaxed);
        let turns = self.timers.len() as u64;
        for (turn, timer) in (0..).zip(&self.timers) {
            let period_ns = self.period_ns * u64::from(stretch);
            let (flags, first_ns) = match self.clock {
                Clock::Wall => {
                    let phase_ns = phase_ns(self.period_ns, stretch, self.thread, (turn, turns));
                    if let Some(phase) = self.phases.get(turn as usize) {
                        phase.store(phase_ns, Relaxed);
                    }
                    (libc::TIMER_ABSTIME, next_ns(now(Clock::Wall), period_ns * turns, phase_ns))
                }
                Clock::Cpu => (0, period_ns),
            };
            let every = libc::itimerspec { it_value: span(first_ns), it_interval: span(period_ns * turns) };
            // SAFETY: a timer that runs; POSIX has the function async-signal-safe.
            unsafe { libc::timer_settime(*timer, flags, &every, core::ptr::null_mut()) };
        }
    }

    /// Stops and frees it; from any thread.
    pub fn stop(self) {
        if self.clock == Clock::Wall {
            count(-1);
        }
        self.timers.into_iter().for_each(delete);
    }
}

fn create(clock: Clock, thread: i32) -> Option<libc::timer_t> {
    let clock = match clock {
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
        (libc::timer_create(clock, &mut event, timer.as_mut_ptr()) == 0).then(|| timer.assume_init())
    }
}

fn delete(timer: libc::timer_t) {
    // SAFETY: made by `create`, and gone after this.
    unsafe { libc::timer_delete(timer) };
}

/// Length of the kernel's tick; 0 if unknown.
fn tick_ns() -> u64 {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `tick` is valid for writing.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut tick) };
    tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64
}

/// Number of alternating timers: two, if only every second multiple of the period is a tick.
fn turns(period_ns: u64, tick_ns: u64) -> usize {
    let is_at_ticks = |ns: u64| tick_ns > 0 && ns.is_multiple_of(tick_ns);
    if !is_at_ticks(period_ns) && period_ns > tick_ns && is_at_ticks(2 * period_ns) { 2 } else { 1 }
}

/// Phase of a timer, one of so many alternating ones: its delay after multiples of its own period. With
/// stretched periods, threads get different phases, so that those that share a CPU do not fire at once.
fn phase_ns(period_ns: u64, stretch: u32, thread: i32, (turn, turns): (u64, u64)) -> u64 {
    let slot = u64::from((thread as u32).wrapping_mul(0x9e37_79b1) >> 16) % u64::from(stretch);
    let phase_ns = slot * turns * period_ns + turn * period_ns * u64::from(stretch);
    // With two alternating timers, twice the period is a multiple of the tick, which then has an even length.
    if turns == 2 && !phase_ns.is_multiple_of(2 * period_ns) { phase_ns - tick_ns() / 2 } else { phase_ns }
}

/// The next moment that is so long after a multiple of the period.
fn next_ns(now_ns: u64, period_ns: u64, phase_ns: u64) -> u64 {
    let phase_ns = phase_ns % period_ns;
    let before = now_ns.saturating_sub(phase_ns) / period_ns * period_ns + phase_ns;
    if before > now_ns { before } else { before + period_ns }
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
        let phases = |stretch| -> Vec<u64> {
            let of = |thread| phase_ns(1_000_000, stretch, thread, (0, 1));
            std::collections::BTreeSet::from_iter((1000..1016).map(of)).into_iter().collect()
        };
        assert_eq!(phases(1), [0]);
        assert_eq!(phases(4), [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn the_next_moment_is_after_now() {
        for (now, next) in [(0, 3), (3, 13), (2, 3), (12, 13), (13, 23), (104, 113)] {
            assert_eq!(next_ns(now, 10, 3), next, "{now}");
            assert_eq!(next_ns(now, 10, 13), next, "{now}");
        }
    }

    #[test]
    fn two_timers_take_turns_where_one_would_miss_every_second_tick() {
        let of = |hertz: u64, ticks: u64| turns(1_000_000_000 / hertz, 1_000_000_000 / ticks);
        assert_eq!([of(100, 250), of(100, 1000), of(100, 100), of(1000, 250), of(99, 250)], [2, 1, 1, 1, 1]);
        assert_eq!(turns(10_000_000, 0), 1);
        let tick = tick_ns();
        assert!(tick > 0);
        // Whatever the tick here: two and a half of it are a period.
        for (stretch, thread) in [(1, 7), (2, 7), (4, 8), (8, 9)] {
            let period = tick * 5 / 2;
            let phases = [0, 1].map(|turn| phase_ns(period, stretch, thread, (turn, 2)));
            assert!(phases.iter().all(|phase| phase % tick == 0), "{phases:?}");
            let apart = phases[1] - phases[0];
            assert!(apart.abs_diff(period * u64::from(stretch)) <= tick / 2, "{phases:?}");
        }
    }
}
