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
//! So every second blocked interval of one nap was imposed on it. A nap is one system call, and takes no lock: a wait for a
//! lock behind it, whose holder has no CPU, would look the same. Without switches only the excess of a nap over its requested
//! length, beyond the run delay, is known. A late timer has such an excess, too, but one voluntary context switch; a stop has a
//! second one. The reader also requires that the other threads were off their CPUs meanwhile, and did not sleep through it.

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
    /// Voluntary context switches of the thread before it.
    gave_up: u64,
}

impl Stops {
    /// Begins to watch the calling thread, by `switches` if they are wanted and visible.
    pub(super) fn watch_calling_thread(switches: bool) -> Stops {
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
        let until = start.saturating_add(nap.as_nanos() as u64);
        let gave_up = if sums.is_some() { voluntary_switches() } else { 0 };
        self.nap = Some(Nap { start, until, sums, gave_up });
    }

    /// Ends the nap. Appends start and end of each time in which the thread was stopped.
    pub fn nap_ends(&mut self, found: &mut Vec<[u64; 2]>) {
        let (Some(nap), end) = (self.nap.take(), clock::kernel_ns()) else { return };
        if let Some(switches) = &mut self.switches {
            self.seen.clear();
            switches.read(0, &mut self.seen);
            found.extend(imposed(&self.seen, [nap.start, end]));
            return;
        }
        let gave_up = voluntary_switches().saturating_sub(nap.gave_up);
        let Some((before, after)) = nap.sums.zip(self.schedstat.read()) else { return };
        let delay = after.run_delay.saturating_sub(before.run_delay);
        found.extend(excess([nap.until, end.saturating_sub(delay)], gave_up));
    }
}

/// How often the calling thread has given up its CPU to wait.
fn voluntary_switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place is valid for writing, and zeros are a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nvcsw.cast_unsigned()
}

/// The time between the requested and the actual end of a nap, if a stop is its reason: the thread gave up its CPU once to sleep,
/// and once more to be stopped.
fn excess([until, end]: [u64; 2], gave_up: u64) -> Option<[u64; 2]> {
    (gave_up >= 2 && end.saturating_sub(until) >= MIN_SUMMED_NS).then_some([until, end])
}

/// Blocked intervals of a nap that were imposed on the thread: every second one of those that began in it.
fn imposed(seen: &[OffCpu], [nap, nap_end]: [u64; 2]) -> impl Iterator<Item = [u64; 2]> {
    let blocked = seen.iter().filter_map(move |off| match off.kind {
        Kind::Blocked { delay_ns } if (nap..nap_end).contains(&off.start) => {
            Some([off.start, off.end - delay_ns])
        }
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
        let nap_range = [ms(9), ms(61)];
        assert_eq!(imposed(&seen, nap_range).collect::<Vec<_>>(), [[ms(20), ms(35)], [ms(50), ms(60)]]);
        assert_eq!(imposed(&seen[..2], nap_range).count(), 0);
        // The nap ended before the second one began: a wait for a lock.
        assert_eq!(imposed(&seen[..3], [ms(9), ms(20)]).count(), 0);
    }

    #[test]
    fn a_late_timer_is_no_stop() {
        let late = [10_000_000, 18_000_000];
        assert_eq!(excess(late, 1), None);
        assert_eq!(excess(late, 2), Some(late));
        assert_eq!(excess([10_000_000, 11_000_000], 2), None);
    }

    #[test]
    fn a_sleep_gives_up_the_cpu_once() {
        let (wake, begin) = (crate::wake::Wake::default(), clock::kernel_ns());
        let before = voluntary_switches();
        wake.sleep(Duration::from_millis(20));
        let gave_up = voluntary_switches() - before;
        // It may return early, and systems may not count.
        assert!(gave_up <= 1, "{gave_up} in {} ns", clock::kernel_ns() - begin);
    }
}
