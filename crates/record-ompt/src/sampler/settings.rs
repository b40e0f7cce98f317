//! Sampling settings: rate and clock.

use std::sync::OnceLock;

use taskscope_record::clock;

use crate::mode;

/// Sampling rate, per second and thread; if unset, no samples are taken.
pub const RATE_VARIABLE: &str = "TASKSCOPE_SAMPLE";
/// `wall` (the default) or `cpu`.
pub const CLOCK_VARIABLE: &str = "TASKSCOPE_SAMPLE_CLOCK";
/// Maximum rate; higher ones are reduced to it.
const MAX_RATE: f64 = 20_000.0;

/// Clock of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Wall time.
    Wall,
    /// CPU time of the thread.
    Cpu,
}

/// Requested settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Nanoseconds between two samples of a thread.
    pub period_ns: u64,
    /// Clock of the period.
    pub clock: Clock,
}

/// Settings from the environment; `None` if sampling is off.
pub fn settings() -> Option<Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    *SETTINGS.get_or_init(|| {
        let usual = std::env::var(mode::MODE_VARIABLE).is_ok_and(|mode| mode == "profile");
        let rate = std::env::var(RATE_VARIABLE).ok().or(usual.then(|| mode::USUAL_RATE.to_owned()))?;
        let clock = std::env::var(CLOCK_VARIABLE).unwrap_or_default();
        parse(&rate, &clock)
    })
}

fn parse(rate: &str, clock: &str) -> Option<Settings> {
    let rate: f64 = rate.trim().parse().ok().filter(|rate: &f64| *rate > 0.0)?;
    let period_ns = (1e9 / rate.min(MAX_RATE)) as u64;
    Some(Settings { period_ns, clock: if clock.trim() == "cpu" { Clock::Cpu } else { Clock::Wall } })
}

/// The sampling clock, nanoseconds.
pub fn now(clock: Clock) -> u64 {
    match clock {
        Clock::Wall => clock::kernel_ns(),
        Clock::Cpu => {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is valid for writing.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_periods() {
        let of = |rate: &str, clock: &str| parse(rate, clock).map(|s| (s.period_ns, s.clock));
        assert_eq!(of("100", ""), Some((10_000_000, Clock::Wall)));
        assert_eq!(of(" 0.5 ", "cpu"), Some((2_000_000_000, Clock::Cpu)));
        assert_eq!(of("1e9", "wall"), Some((50_000, Clock::Wall)), "brought down");
        for none in ["", "0", "-3", "fast", "NaN"] {
            assert_eq!(of(none, ""), None, "{none}");
        }
    }
}
