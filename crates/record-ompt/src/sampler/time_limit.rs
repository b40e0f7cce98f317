//! Bound on the time that samples take from a thread.
//!
//! ```text
//!   sample   program      signals without a sample         sample
//!   ├─ t ──┤├──────── 3 t ──────────────────────────────┤ ├─ …
//! ```
//! A timer's signals that come during a sample are delivered right after it. A program whose samples take longer than the period
//! (deep stacks at a high rate) would make no progress. After a sample that took more than a quarter of the period, no sample is
//! taken for three times as long: the program has three quarters of the time, whatever a sample does. The next sample
//! has the time of those that were left out as its weight.
//!
//! The time that passed alone does not decide, since a thread may lose its CPU in the handler: it only makes the next
//! sample be measured by the CPU time of the thread, whose clock is a system call.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use taskscope_record::clock;

use super::settings::{Clock, now};

/// The program's time for each nanosecond of a sample that takes long.
const REST_PER_SAMPLE: u64 = 3;

/// A thread's rest from samples. Only its handler uses it.
#[derive(Default)]
pub struct Rest {
    /// The end of the present rest, by the recorder's clock.
    until_ns: AtomicU64,
    /// The last sample took long by the time that passed, so the next one is measured.
    is_measured: AtomicBool,
}

/// A sample that is being taken.
pub struct Begun {
    at_ns: u64,
    /// CPU time of the thread, if the sample is measured.
    cpu_ns: Option<u64>,
}

impl Rest {
    /// A sample begins; `None` if the thread rests from samples. Async-signal-safe.
    #[inline(always)]
    pub fn begin(&self) -> Option<Begun> {
        let at_ns = clock::now();
        if at_ns < self.until_ns.load(Relaxed) {
            return None;
        }
        Some(Begun { at_ns, cpu_ns: self.is_measured.load(Relaxed).then(|| now(Clock::Cpu)) })
    }

    /// It has ended, with this time between two samples. Async-signal-safe.
    #[inline(always)]
    pub fn end(&self, begun: &Begun, period_ns: u64) {
        let at_ns = clock::now();
        let passed_ns = at_ns.saturating_sub(begun.at_ns);
        if begun.cpu_ns.is_some() || is_long(passed_ns, period_ns) {
            let used_ns = begun.cpu_ns.map(|before| now(Clock::Cpu).saturating_sub(before));
            self.decide(at_ns, (passed_ns, used_ns), period_ns);
        }
    }

    /// Decides on the next samples after one that ended at `at_ns`, in which this time passed, of which so much was on a CPU.
    #[cold]
    fn decide(&self, at_ns: u64, (passed_ns, used_ns): (u64, Option<u64>), period_ns: u64) {
        let took_ns = used_ns.unwrap_or(passed_ns).min(passed_ns);
        let is_long = is_long(took_ns, period_ns);
        self.is_measured.store(is_long, Relaxed);
        if is_long && used_ns.is_some() {
            self.until_ns.store(at_ns.saturating_add(took_ns.saturating_mul(REST_PER_SAMPLE)), Relaxed);
        }
    }
}

/// Whether a sample takes more than its part of the period.
#[inline(always)]
fn is_long(ns: u64, period_ns: u64) -> bool {
    ns > period_ns / (1 + REST_PER_SAMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of samples and of the program, for samples that take `cost` where a signal comes every `period`.
    fn shares(period: u64, cost: u64, rounds: u64) -> (u64, u64, u64) {
        let (rest, mut now, mut sampled, mut samples) = (Rest::default(), 0, 0, 0);
        for _ in 0..rounds {
            // A signal that came during the last sample is delivered at once.
            if now >= rest.until_ns.load(Relaxed) {
                let is_measured = rest.is_measured.load(Relaxed);
                (now, sampled, samples) = (now + cost, sampled + cost, samples + 1);
                if is_measured || is_long(cost, period) {
                    rest.decide(now, (cost, is_measured.then_some(cost)), period);
                }
                now += period.saturating_sub(cost);
            } else {
                now += period;
            }
        }
        (sampled, now - sampled, samples)
    }

    #[test]
    fn samples_leave_the_program_three_quarters_of_the_time() {
        // Quick samples are all taken.
        assert_eq!(shares(1000, 250, 1000), (250_000, 750_000, 1000));
        for cost in [251, 500, 999, 1000, 1001, 5000, 100_000] {
            let (sampled, program, samples) = shares(1000, cost, 100_000);
            assert!(samples > 100, "{cost}: {samples}");
            assert!(
                program >= 3 * (sampled - 2 * cost),
                "{cost}: {sampled} of samples, {program} of the program"
            );
        }
    }

    #[test]
    fn a_sample_without_a_cpu_is_followed_by_others() {
        let rest = Rest::default();
        // It lost its CPU: the next one is measured, and was quick.
        rest.decide(10_000, (9000, None), 1000);
        assert_eq!((rest.until_ns.load(Relaxed), rest.is_measured.load(Relaxed)), (0, true));
        rest.decide(20_000, (9000, Some(100)), 1000);
        assert_eq!((rest.until_ns.load(Relaxed), rest.is_measured.load(Relaxed)), (0, false));
        rest.decide(30_000, (900, None), 1000);
        rest.decide(40_000, (900, Some(800)), 1000);
        assert_eq!((rest.until_ns.load(Relaxed), rest.is_measured.load(Relaxed)), (42_400, true));
    }
}
