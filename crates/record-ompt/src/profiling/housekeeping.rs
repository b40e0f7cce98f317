//! A thread of the profile's own: collects what threads have counted, writes the profile and the totals
//! so far, so that a process that is killed leaves what the last round knew.

use core::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use taskscope_profile::FIRST_MS;
use taskscope_record::own_threads;

use super::live;
use super::run::Run;
use super::write::write;
use crate::sampling::{Clock, code_map, now};

/// The first round comes after this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(FIRST_MS);
/// The longest time between two rounds, where they are short.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Rounds take no larger part of a CPU than this.
const PART_OF_CPU: u32 = 250;

/// It has this long to end.
const LONGEST_END: Duration = Duration::from_millis(2);

/// The thread, as its run knows it.
#[derive(Default)]
pub struct Housekeeping {
    has_ended: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Housekeeping {
    /// Starts it; without it there is a profile at the end only.
    pub fn start(&'static self, run: &'static Run) {
        let thread = std::thread::Builder::new().name("taskscope-profile".to_owned()).stack_size(256 << 10);
        let started = own_threads::start(|| thread.spawn(|| self.keep_house(run)));
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = started.ok();
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

    fn keep_house(&self, run: &Run) {
        let (began, interval) = (Instant::now(), live::interval());
        let mut took = Duration::ZERO;
        loop {
            // Asked for, rounds come as asked for; else rarer and rarer.
            self.sleep(interval.unwrap_or_else(|| pause_after(began.elapsed(), took)));
            if self.has_ended.load(Acquire) {
                return;
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

    /// Returns after `pause`, or at the end.
    fn sleep(&self, pause: Duration) {
        let start = Instant::now();
        while let Some(left) = pause.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if self.has_ended.load(Acquire) {
                return;
            }
            std::thread::park_timeout(left);
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
