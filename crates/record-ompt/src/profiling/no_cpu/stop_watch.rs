//! Times in which a signal had stopped the whole process, seen by the profile's own thread.
//!
//! That thread sleeps in short naps, and is late after a stop ([`Stops`]). A thread of the program that runs again before it
//! would take the stop for sleep of its own: it defers its reading while the profile's thread is overdue.

use std::time::{Duration, Instant};

use taskscope_record::os_time::{Stops, watch_stops};

/// Nap of a process that has not been stopped yet, and of one that was a short time ago: a stop is known from the end of the nap
/// in which it begins.
const NAP: Duration = Duration::from_millis(50);
const SHORT_NAP: Duration = Duration::from_millis(10);
/// Stops of `cpulimit` follow each other within this time.
const RECENT: Duration = Duration::from_secs(2);

/// The stops of a process.
pub struct StopWatch {
    stops: Option<Stops>,
    last: Option<Instant>,
    found: Vec<[u64; 2]>,
}

impl StopWatch {
    /// Watches the calling thread, if `is_wanted`.
    pub fn begin(is_wanted: bool) -> StopWatch {
        let stops = is_wanted.then(watch_stops);
        StopWatch { stops, last: None, found: Vec::new() }
    }

    /// The thread sleeps no longer than this at a time; `None` is as long as it likes.
    pub fn nap(&self) -> Option<Duration> {
        self.stops.as_ref()?;
        let is_recent = self.last.is_some_and(|last| last.elapsed() < RECENT);
        Some(if is_recent { SHORT_NAP } else { NAP })
    }

    /// The thread is about to sleep for this long at most.
    pub fn nap_begins(&mut self, nap: Duration) {
        if let Some(stops) = &mut self.stops {
            stops.nap_begins(nap);
        }
    }

    /// Ends the nap. Returns begin and end of each stop in it.
    pub fn nap_ends(&mut self) -> &[[u64; 2]] {
        self.found.clear();
        if let Some(stops) = &mut self.stops {
            stops.nap_ends(&mut self.found);
        }
        if !self.found.is_empty() {
            self.last = Some(Instant::now());
        }
        &self.found
    }
}
