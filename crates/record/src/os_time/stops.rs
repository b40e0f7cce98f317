//! Times in which the whole process was stopped: by SIGSTOP (`cpulimit`, Ctrl-Z), a debugger, or a frozen control group.
//!
//! No record of the kernel has the reason of a blocked interval. The housekeeping thread is stopped with the
//! others, though, and knows the requested length of its sleep:
//!
//! ```text
//!  nap ─────────┐ woken to be stopped               ┌ continued: the rest of the nap, or nothing if it is over
//!  blocked      │ blocked: not by its own wish      │ blocked
//! ```
//!
//! So every second blocked interval of one nap was imposed on it. Without switches only the excess of a nap
//! over its requested length, beyond the run delay, is known. A wait for a lock after the nap looks the same;
//! the reader requires that the other threads were off their CPUs meanwhile, which holders of locks are not.

use super::off_cpu::{Kind, OffCpu};
use super::schedstat::{Schedstat, Sums};
use super::switches::Switches;
use crate::clock;
use std::time::Duration;

/// Shorter ones are not recorded.
const MIN_NS: u64 = 1_000_000;
/// Without switches: readings of three clocks have gaps, and timers are late.
const MIN_SUMMED_NS: u64 = 5_000_000;

/// Watches the calling thread, a housekeeping thread.
pub struct Stops {
    switches: Option<Switches>,
    schedstat: Schedstat,
    nap: Option<Nap>,
    seen: Vec<OffCpu>,
}

struct Nap {
    start: u64,
    until: u64,
    sums: Option<Sums>,
}

impl Stops {
    /// Begins to watch the calling thread, by `switches` if they are wanted and visible.
    pub(super) fn of_calling_thread(switches: bool) -> Stops {
        let own = crate::os_thread::os_tid();
        Stops {
            switches: switches.then(|| Switches::of(own, None)).flatten(),
            schedstat: Schedstat::of(own),
            nap: None,
            seen: Vec::new(),
        }
    }

    /// The thread is about to sleep for this long at most.
    pub fn nap_begins(&mut self, nap: Duration) {
        let sums = if self.switches.is_none() { self.schedstat.read() } else { None };
        let start = clock::kernel_ns();
        self.nap = Some(Nap { start, until: start.saturating_add(nap.as_nanos() as u64), sums });
    }

    /// Ends the nap. Appends start and end of each time in which the thread was stopped.
    pub fn nap_ends(&mut self, found: &mut Vec<[u64; 2]>) {
        let (Some(nap), end) = (self.nap.take(), clock::kernel_ns()) else { return };
        if let Some(switches) = &mut self.switches {
            self.seen.clear();
            switches.read(0, &mut self.seen);
            found.extend(imposed(&self.seen, nap.start));
            return;
        }
        let Some((before, after)) = nap.sums.zip(self.schedstat.read()) else { return };
        let delay = after.run_delay.saturating_sub(before.run_delay);
        let end = end.saturating_sub(delay);
        if end.saturating_sub(nap.until) >= MIN_SUMMED_NS {
            found.push([nap.until, end]);
        }
    }
}

/// Blocked intervals of a nap that were imposed on the thread: every second one.
fn imposed(seen: &[OffCpu], nap: u64) -> impl Iterator<Item = [u64; 2]> {
    let blocked = seen.iter().filter_map(move |off| match off.kind {
        Kind::Blocked { delay_ns } if off.start >= nap => Some([off.start, off.end - delay_ns]),
        _ => None,
    });
    blocked.skip(1).step_by(2).filter(|[start, end]| end - start >= MIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_blocked_interval_of_a_nap_is_imposed() {
        let ms = |ms: u64| ms * 1_000_000;
        let blocked = |start, end, delay_ns| OffCpu {
            start: ms(start),
            end: ms(end),
            kind: Kind::Blocked { delay_ns },
        };
        let preempted = OffCpu { start: ms(40), end: ms(41), kind: Kind::Preempted };
        let seen = [
            // Blocked intervals of an earlier wait.
            blocked(1, 2, 0),
            blocked(10, 20, 0),
            blocked(20, 38, ms(3)),
            preempted,
            blocked(41, 50, 0),
            blocked(50, 60, 0),
        ];
        assert_eq!(imposed(&seen, ms(9)).collect::<Vec<_>>(), [[ms(20), ms(35)], [ms(50), ms(60)]]);
        assert_eq!(imposed(&seen[..2], ms(9)).count(), 0);
    }
}
