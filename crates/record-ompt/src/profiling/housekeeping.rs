//! A thread of the profile's own: collects what threads have counted, writes the profile and the totals
//! so far, so that a process that is killed leaves what the last round knew.
//!
//! It also writes the last one for a thread that ends the process by `_exit`. That may be in a signal handler, or between
//! `fork` and the end of a child, where nothing may be allocated or locked: the thread only asks, and waits.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use taskscope_profile::FIRST_MS;
use taskscope_record::clock;
use taskscope_record::own_threads::{self, OwnThread};

use super::live;
use super::run::{Run, current};
use super::write::write;
use crate::sampler::{Clock, code_map, now};
use crate::thread::Thread;

/// The first round comes after this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(FIRST_MS);
/// The longest time between two rounds, where they are short.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Rounds take no larger part of a CPU than this.
const PART_OF_CPU: u32 = 250;

/// It has this long to end.
const LONGEST_END: Duration = Duration::from_millis(2);

/// A thread that ends the process waits no longer than this for the last profile, and looks so often whether it is there.
const LONGEST_LAST: Duration = Duration::from_secs(1);
static LOOK_AGAIN: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };

/// What has become of the last profile for a thread that ends the process.
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
    thread: Mutex<Option<JoinHandle<()>>>,
    /// To wake it from a signal handler.
    sleeper: OnceLock<std::thread::Thread>,
    /// One of [`last`].
    last: AtomicU32,
    /// Who asked for it, if it is recorded; it is held at its door.
    leaver: AtomicPtr<Thread>,
}

impl Housekeeping {
    /// Starts it; without it there is a profile at the end only.
    pub fn start(&'static self, run: &'static Run) {
        if !own_threads::may_start() {
            return;
        }
        own_threads::ends_by(|| current()?.housekeeping.give_way());
        let thread = std::thread::Builder::new().name("taskscope-profile".to_owned()).stack_size(256 << 10);
        let started = own_threads::start(|| thread.spawn(|| self.keep_house(run)));
        if let Ok(started) = &started {
            let _ = self.sleeper.set(started.thread().clone());
        }
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = started.ok();
    }

    /// Ends it for good, for a thread of the program's: the profile is written at the end.
    fn give_way(&self) -> Option<JoinHandle<()>> {
        self.has_ended.store(true, Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = &thread {
            thread.thread().unpark();
        }
        thread
    }

    /// It begins no round any more.
    pub fn end(&self) {
        self.has_ended.store(true, Release);
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.thread().unpark();
        }
    }

    /// Waits until it is gone, but not for long.
    pub fn wait_for_end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            own_threads::wait_for_end(thread, LONGEST_END);
        }
    }

    /// The calling thread ends the process: has the last profile written, and waits for it, but not for long. Nobody else
    /// is at `leaver`, the calling thread's state, from now on. Async-signal-safe.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub fn write_before_exit(&self, leaver: *mut Thread) {
        let Some(sleeper) = self.sleeper.get().filter(|_| !self.has_ended.load(Acquire)) else { return };
        let asked = self.last.compare_exchange(last::NOT_ASKED_FOR, last::ASKED_FOR, AcqRel, Acquire);
        if asked.is_ok() {
            self.leaver.store(leaver, Release);
            sleeper.unpark();
        }
        let start = Instant::now();
        while self.last.load(Acquire) != last::WRITTEN && start.elapsed() < LONGEST_LAST {
            // What sleeps is intercepted; this waits for what nobody does.
            let (word, operation) = (0u32, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG);
            // SAFETY: the word and the time are only read.
            unsafe { libc::syscall(libc::SYS_futex, &raw const word, operation, 0, &raw const LOOK_AGAIN) };
        }
    }

    fn write_for_leaver(&self, run: &Run) {
        // SAFETY: null, or what its own thread leaves to this one for good.
        if let Some(leaver) = unsafe { self.leaver.load(Acquire).as_mut() } {
            leaver.charge_idleness(clock::now(), None);
        }
        write(run, true);
        self.last.store(last::WRITTEN, Release);
    }

    /// The thread looks what it is to do.
    pub fn wake(&self) {
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
    }

    fn keep_house(&self, run: &Run) {
        let own = OwnThread::begin();
        let (began, interval) = (Instant::now(), live::interval());
        run.no_cpu.read_limit();
        let mut took = Duration::ZERO;
        loop {
            // Asked for, rounds come as asked for; else rarer and rarer.
            self.sleep(&own, interval.unwrap_or_else(|| pause_after(began.elapsed(), took)));
            if self.has_ended.load(Acquire) {
                return;
            }
            if self.last.load(Acquire) == last::ASKED_FOR {
                return self.write_for_leaver(run);
            }
            let before = now(Clock::Cpu);
            // A program between regions calls nothing of ours that would look at what it loaded.
            code_map::refresh_if_suspected();
            write(run, false);
            if interval.is_some() {
                live::write_line(run);
            }
            took = Duration::from_nanos(now(Clock::Cpu).saturating_sub(before));
        }
    }

    /// Returns after `pause`, at the end, or when it is asked.
    fn sleep(&self, own: &OwnThread, pause: Duration) {
        let start = Instant::now();
        while let Some(left) = pause.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if self.has_ended.load(Acquire) || self.last.load(Acquire) == last::ASKED_FOR {
                return;
            }
            std::thread::park_timeout(own.sleep(left));
            own.end_process_if_alone();
        }
    }
}

/// The time until the next round of a run that is so old, where the last round took so long: until the run has doubled, as
/// each of the many rounds of a short one would be felt, where all CPUs work.
fn pause_after(age: Duration, took: Duration) -> Duration {
    age.clamp(SHORTEST_PAUSE, LONGEST_PAUSE).max(took * PART_OF_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_lost_and_rounds_are_few() {
        let (mut age, mut rounds) = (Duration::ZERO, 0);
        while age < Duration::from_secs(3600) {
            let pause = pause_after(age, Duration::from_micros(400));
            assert!(pause <= SHORTEST_PAUSE.max(age) && pause <= LONGEST_PAUSE);
            (age, rounds) = (age + pause, rounds + 1);
        }
        assert!((360..380).contains(&rounds), "{rounds} in an hour");
        let of_long_round = |age| pause_after(Duration::from_secs(age), Duration::from_millis(100));
        assert_eq!([1, 100].map(of_long_round), [Duration::from_secs(25); 2]);
    }
}
