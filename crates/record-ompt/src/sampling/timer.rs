//! One timer per thread, which signals that thread alone.

use core::mem::MaybeUninit;

use super::{Clock, Settings, signal};

/// A running timer.
pub struct Timer(libc::timer_t);

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
            let every = libc::itimerspec {
                it_value: span(first_ns(settings.period_ns, thread)),
                it_interval: span(settings.period_ns),
            };
            libc::timer_settime(timer, 0, &every, core::ptr::null_mut());
            Some(Timer(timer))
        }
    }

    /// Stops and frees it; from any thread.
    pub fn stop(self) {
        // SAFETY: made by `arm`, and gone after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Threads do not all tick at the same moment: half a period to one and a half.
fn first_ns(period_ns: u64, thread: i32) -> u64 {
    let spread = (thread as u32).wrapping_mul(0x9e37_79b1);
    (period_ns / 2 + ((u128::from(period_ns) * u128::from(spread)) >> 32) as u64).max(1)
}

fn span(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as libc::time_t, tv_nsec: (ns % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_samples_are_spread_over_a_period() {
        let first: Vec<u64> = (1000..1008).map(|thread| first_ns(1_000_000, thread)).collect();
        assert!(first.iter().all(|ns| (500_000..1_500_000).contains(ns)), "{first:?}");
        let distinct: std::collections::HashSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), first.len());
    }
}
