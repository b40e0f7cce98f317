//! The host's clocks, and the clock of a device's stamps.

use taskscope_reorder::Completion;
use taskscope_reorder::clock::{ClockFit, Unwrap};

/// Returns the nanoseconds of a clock of the host.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, the clock of traces.
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Clocks of the host that a device's stamps may use, the trace's own first.
const CANDIDATES: [(libc::clockid_t, &str); 4] = [
    (libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC"),
    (libc::CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"),
    (libc::CLOCK_BOOTTIME, "CLOCK_BOOTTIME"),
    (libc::CLOCK_REALTIME, "CLOCK_REALTIME"),
];

/// All candidates at one time.
pub struct Reading([u64; CANDIDATES.len()]);

impl Reading {
    /// Reads all candidates.
    pub fn take() -> Self {
        Reading(CANDIDATES.map(|(clock, _)| read(clock)))
    }
}

/// Kind of a device's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviceClock {
    /// Stamps are of this clock of the host.
    Host(libc::clockid_t, &'static str),
    /// Stamps count ticks from an unknown origin.
    Own {
        /// Nanoseconds of a tick.
        nanos_per_tick: f64,
        /// Valid bits of a stamp.
        bits: u32,
    },
}

impl DeviceClock {
    /// Finds the clock from the stamps of an operation that began after `before` and had ended by `after`.
    /// Assumes that no two clocks agree to a microsecond by chance.
    pub fn found(start: u64, end: u64, before: &Reading, after: &Reading) -> Self {
        const ERROR_NS: u64 = 1000;
        for (index, (clock, name)) in CANDIDATES.into_iter().enumerate() {
            if start + ERROR_NS >= before.0[index] && end <= after.0[index] + ERROR_NS && start != 0 {
                return DeviceClock::Host(clock, name);
            }
        }
        DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 }
    }

    /// Describes the clock for `info`.
    pub fn describe(self) -> String {
        match self {
            DeviceClock::Host(_, name) => format!("{name} of the host, found by comparison"),
            DeviceClock::Own { nanos_per_tick, bits } => {
                format!("the device's own, {nanos_per_tick} ns a tick, {bits} bits")
            }
        }
    }
}

/// A device's clock and its offset, while the program runs.
pub struct LiveClock {
    /// The clock.
    pub clock: DeviceClock,
    /// The fit for the map that is written at the end.
    pub fit: ClockFit,
    /// Host nanoseconds minus device nanoseconds, at the last comparison.
    offset: Option<i128>,
    /// Maximum error of the offset, nanoseconds: large if the comparing thread was preempted meanwhile.
    error: u64,
    sampled: u64,
}

/// Margin beside the offset's error, nanoseconds: the clocks drift until the next comparison.
const MARGIN_NS: u64 = 2_000;
/// Least time between two comparisons with a clock of the host, nanoseconds.
const SAMPLE_EVERY_NS: u64 = 10_000_000;

impl LiveClock {
    /// Creates a clock of this kind, without an offset.
    pub fn new(clock: DeviceClock) -> Self {
        let nanos_per_tick = match clock {
            DeviceClock::Host(..) => 1.0,
            DeviceClock::Own { nanos_per_tick, .. } => nanos_per_tick,
        };
        LiveClock { clock, fit: ClockFit::new(nanos_per_tick), offset: None, error: 0, sampled: 0 }
    }

    /// Compares it with the trace's clock, if it is one of the host's.
    pub fn sample(&mut self, now: u64) {
        let DeviceClock::Host(clock, _) = self.clock else { return };
        if self.offset.is_some() && now < self.sampled + SAMPLE_EVERY_NS {
            return;
        }
        self.sampled = now;
        let (before, ticks, after) = (self::now(), read(clock), self::now());
        self.anchor(ticks, before, after);
    }

    /// Records that the device's clock showed `ticks` between two times of the host.
    pub fn anchor(&mut self, ticks: u64, before: u64, after: u64) {
        self.fit.not_before(ticks, before);
        self.fit.not_after(ticks, after);
        self.offset = Some(i128::from(before.midpoint(after)) - i128::from(self.nanos(ticks)));
        self.error = after.saturating_sub(before).div_ceil(2);
    }

    fn nanos(&self, ticks: u64) -> u64 {
        match self.clock {
            DeviceClock::Own { nanos_per_tick, .. } if nanos_per_tick != 1.0 => {
                (ticks as f64 * nanos_per_tick) as u64
            }
            _ => ticks,
        }
    }

    /// Returns a device time that is not after a time of the host; 0 without an offset.
    pub fn earliest_ticks(&self, host: u64) -> u64 {
        let Some(offset) = self.offset else { return 0 };
        let nanos = (i128::from(host.saturating_sub(MARGIN_NS.saturating_add(self.error))) - offset).max(0);
        match self.clock {
            DeviceClock::Own { nanos_per_tick, .. } if nanos_per_tick != 1.0 => {
                (nanos as f64 / nanos_per_tick) as u64
            }
            _ => nanos as u64,
        }
    }

    /// Extends the stamps of a counter with few bits: an operation starts after its submission, if that is
    /// known; otherwise less than a period before its record arrived.
    pub fn unwrap(&self, completion: &mut Completion, append: Option<u64>, observed: u64) {
        let DeviceClock::Own { bits, .. } = self.clock else { return };
        if bits >= 64 || self.offset.is_none() {
            return;
        }
        let period = 1u64 << bits;
        let counter = Unwrap::new(bits);
        let expected = match append {
            Some(append) if append != 0 => self.earliest_ticks(append),
            _ => self.earliest_ticks(observed).saturating_sub(period - period / 8),
        };
        let whole = |stamp: u64, after: u64| if stamp == 0 { 0 } else { counter.count(stamp, after) };
        completion.start = whole(completion.start, expected);
        completion.end = whole(completion.end, completion.start.max(expected));
        // The submission came first, by at most a period.
        if completion.submit != 0 && completion.start != 0 {
            let back = completion.start.wrapping_sub(completion.submit) & (period - 1);
            completion.submit = completion.start.saturating_sub(back);
        }
    }

    /// Converts device ticks to host nanoseconds, with the error of the offset.
    pub fn host(&self, ticks: u64) -> u64 {
        let nanos = i128::from(self.nanos(ticks)) + self.offset.unwrap_or(0);
        nanos.clamp(0, i128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_stamps_is_found() {
        let began = [1_000_000, 50_000_000_000, 90_000_000_000, 1_700_000_000_000_000_000];
        let at = |later| Reading(began.map(|time: u64| time + later));
        let (before, after) = (at(0), at(10_000_000));
        for (index, (clock, name)) in CANDIDATES.into_iter().enumerate() {
            let [start, end] = [4_000_000, 5_000_000].map(|later| at(later).0[index]);
            assert_eq!(DeviceClock::found(start, end, &before, &after), DeviceClock::Host(clock, name));
        }
        for (start, end) in [(77, 78), (0, 0)] {
            assert!(matches!(DeviceClock::found(start, end, &before, &after), DeviceClock::Own { .. }));
        }
        // However late its last reading comes, the trace's own clock is the first that fits.
        let (before, start, end, after) = (Reading::take(), now(), now(), Reading::take());
        let own = DeviceClock::Host(libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC");
        assert_eq!(DeviceClock::found(start, end, &before, &after), own);
    }

    #[test]
    fn the_earliest_time_is_early_by_the_error_of_the_comparison() {
        let mut clock = LiveClock::new(DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 });
        // The device's clock is 1 s behind; the comparing thread lost its CPU for 4 ms, at its begin or its end.
        for ticks in [10_000_100, 14_000_000] {
            clock.anchor(ticks, 1_010_000_000, 1_014_000_100);
            assert!(clock.earliest_ticks(1_020_000_000) <= 20_000_000 - MARGIN_NS);
            assert!(clock.earliest_ticks(1_020_000_000) >= 20_000_000 - MARGIN_NS - 4_000_200);
        }
    }
}
