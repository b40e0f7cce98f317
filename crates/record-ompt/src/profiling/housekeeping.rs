//! A thread of the profile's own: collects what threads have counted, writes the profile and the totals
//! so far, so that a process that is killed leaves what the last round knew.

use core::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use taskscope_record::own_threads;

use super::live;
use super::run::Run;
use super::write::write;
use crate::sampling::code_map;

/// The first rounds come early: short runs are killed too.
const FIRST: Duration = Duration::from_secs(1);
/// The usual time between two rounds: a round takes some milliseconds.
const USUAL: Duration = Duration::from_secs(10);

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
        let interval = live::interval();
        let mut pause = FIRST;
        loop {
            // Asked for, rounds come as asked for; else rarer and rarer.
            self.sleep(interval.unwrap_or(pause));
            if self.has_ended.load(Acquire) {
                return;
            }
            // A program between regions calls nothing of ours that would look at what it loaded.
            code_map::refresh_if_suspected();
            write(run, false);
            if interval.is_some() {
                live::write_line(run);
            }
            pause = (pause * 2).min(USUAL);
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
