//! Nanoseconds of `CLOCK_MONOTONIC`, read from the time-stamp counter.
//!
//! A line `ns0 + (tsc - tsc0) * rate`, called an anchor, holds for a span of at most 100 ms. The
//! first event after a span takes a new anchor from the kernel's clock; all threads share one table
//! of one anchor, guarded by a sequence number, and keep a copy of their own.
//!
//! ```text
//!   ns │            ┌─ valid until ─┐
//!      │        ___/                 a new anchor starts at max(kernel's clock, end of the old line):
//!      │    ___/                     no thread has used the old line beyond its span, so none
//!      │___/                         ever sees time go back, and the error stays that of one span
//!      └──────────────────── tsc
//! ```
//!
//! The error of a line is bounded: a sample of counter and kernel's clock is one kernel reading between two
//! of the counter; half of their distance is its uncertainty. The uncertainties of two samples over their
//! distance are that of the rate, and the line holds until the sum reaches [`MAX_ERROR_NS`] (so a busy
//! machine and the first milliseconds of a process have shorter spans). Beyond that, only a kernel that
//! changes its clock's own rate within a span moves it.
//!
//! If the counter is not invariant, or [`CLOCK_VARIABLE`] requests it, every reading is a `clock_gettime`.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*, fence};

/// Longest time that an anchor holds.
const MAX_SPAN_NS: u64 = 100_000_000;
/// Maximum error of a line at the end of its span, from the uncertainty of its samples. Half of the
/// guaranteed error: a line that starts ahead of the kernel's clock, to keep time monotonic, has both lines'
/// errors.
const MAX_ERROR_NS: u64 = 100;
/// Time over which the rate is measured before the first anchor; readings use the kernel's clock meanwhile.
const FIRST_MEASUREMENT_NS: u64 = 1_000_000;

/// `kernel`: every reading is the kernel's, even if the counter is usable.
pub const CLOCK_VARIABLE: &str = "TASKSCOPE_CLOCK";

/// Source of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The invariant time-stamp counter, anchored to `CLOCK_MONOTONIC`.
    Counter,
    /// `clock_gettime(CLOCK_MONOTONIC)` at every reading.
    Kernel,
}

/// A line from counter ticks to nanoseconds. All zero: no line, use the kernel's clock. `taskscope.h` depends
/// on the order of the fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Anchor {
    tsc0: u64,
    ns0: u64,
    /// Nanoseconds per tick, as a binary fraction with 32 bits after the point.
    rate: u64,
    /// Ticks from `tsc0` for which the line holds.
    span: u64,
}

impl Anchor {
    /// For ticks within the span, so that the product, which is nanoseconds with 32 bits after the point, fits.
    #[inline(always)]
    fn ns_at(&self, ticks_since_tsc0: u64) -> u64 {
        self.ns0 + (ticks_since_tsc0.wrapping_mul(self.rate) >> 32)
    }

    fn end_ns(&self) -> u64 {
        self.ns_at(self.span)
    }

    /// The line from `sample` on, with the rate since `from`; `None` if the samples do not determine one.
    fn next(&self, from: Sample, sample: Sample) -> Option<Anchor> {
        let (ticks, elapsed) = (sample.tsc.wrapping_sub(from.tsc).max(1), sample.ns.saturating_sub(from.ns));
        let rate = (((elapsed as u128) << 32) / ticks as u128) as u64;
        let ns_of = |ticks: u64| (ticks as u128 * rate as u128).div_ceil(1 << 32) as u64;
        let (sample_error, from_error) = (ns_of(sample.uncertain_ticks), ns_of(from.uncertain_ticks));
        // error at t after the sample = sample_error + t * (sample_error + from_error) / elapsed. With a slow kernel
        // clock (no vDSO, an emulator) the error is no smaller.
        let largest = MAX_ERROR_NS.max(3 * sample_error.min(from_error));
        let growing = largest.checked_sub(sample_error)? as u128;
        let certain_ns = growing * elapsed as u128 / (sample_error + from_error).max(1) as u128;
        let span_ns = certain_ns.min(MAX_SPAN_NS as u128) as u64;
        let span = (((span_ns as u128) << 32) / rate.max(1) as u128) as u64;
        let start = sample.ns.max(self.end_ns());
        // A line that starts ahead of the kernel's clock meets it again at the end of the span.
        let ahead = (start - sample.ns).min(span_ns / 2);
        let correction = (((ahead as u128) << 32) / span.max(1) as u128) as u64;
        (span > 0).then_some(Anchor {
            tsc0: sample.tsc,
            ns0: start,
            rate: rate.saturating_sub(correction),
            span,
        })
    }
}

/// The counter and the kernel's clock at one instant.
#[derive(Clone, Copy, Debug)]
struct Sample {
    tsc: u64,
    ns: u64,
    /// The kernel's clock was read at most so many ticks from `tsc`.
    uncertain_ticks: u64,
}

impl Sample {
    /// The tightest of a few tries.
    fn take() -> Sample {
        let tries = core::iter::repeat_with(|| {
            let before = counter();
            let ns = kernel_ns();
            finish_what_comes_before();
            let uncertain_ticks = counter().wrapping_sub(before).div_ceil(2);
            Sample { tsc: before.wrapping_add(uncertain_ticks), ns, uncertain_ticks }
        });
        let tightest = tries.take(5).min_by_key(|sample| sample.uncertain_ticks);
        tightest.unwrap_or(Sample { tsc: 0, ns: 0, uncertain_ticks: u64::MAX })
    }
}

/// A thread's copy of the anchor, and its last reading, below which it never falls.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadClock {
    anchor: Anchor,
    last_ns: u64,
}

impl ThreadClock {
    /// Nanoseconds of `CLOCK_MONOTONIC`; never less than the thread's previous reading.
    #[inline(always)]
    pub fn now(&mut self) -> u64 {
        let ticks = counter().wrapping_sub(self.anchor.tsc0);
        let ns = if ticks < self.anchor.span { self.anchor.ns_at(ticks) } else { self.refresh() };
        self.last_ns = self.last_ns.max(ns);
        self.last_ns
    }

    /// [`now`](Self::now) as long as the anchor holds.
    #[inline(always)]
    pub fn now_of_anchor(&mut self) -> Option<u64> {
        self.at_counter(counter())
    }

    /// [`now_of_anchor`](Self::now_of_anchor), read after all earlier loads: a thread that has seen another
    /// thread's later write gets no earlier time.
    #[inline(always)]
    pub fn ordered_now_of_anchor(&mut self) -> Option<u64> {
        self.at_counter(ordered_counter())
    }

    #[inline(always)]
    fn at_counter(&mut self, counter: u64) -> Option<u64> {
        let ticks = counter.wrapping_sub(self.anchor.tsc0);
        (ticks < self.anchor.span).then(|| {
            self.last_ns = self.last_ns.max(self.anchor.ns_at(ticks));
            self.last_ns
        })
    }

    /// Sets a lower bound for later readings.
    pub fn raise(&mut self, least: u64) {
        self.last_ns = self.last_ns.max(least);
    }

    /// The latest reading.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    #[cold]
    #[inline(never)]
    pub fn refresh(&mut self) -> u64 {
        if TABLE.source() == Source::Kernel {
            return kernel_ns();
        }
        if !TABLE.rate_is_known() {
            let ns = kernel_ns();
            if ns.wrapping_sub(TABLE.measured_from[1].load(Relaxed)) < FIRST_MEASUREMENT_NS {
                return ns;
            }
        }
        for _ in 0..4 {
            if let Some(anchor) = TABLE.read() {
                self.anchor = anchor;
                let ticks = counter().wrapping_sub(anchor.tsc0);
                if ticks < anchor.span {
                    return anchor.ns_at(ticks);
                }
            }
            if !TABLE.renew() {
                break;
            }
        }
        // Another thread is renewing the anchor and does not get the CPU, or too little is known: do not wait.
        kernel_ns()
    }
}

/// The process's anchor table: one anchor, one writer at a time, any number of readers.
struct Table {
    sequence: AtomicU32,
    writing: AtomicBool,
    anchor: [AtomicU64; 4],
    /// The [`Sample`] that the rate is measured from.
    measured_from: [AtomicU64; 3],
    renewals: AtomicU64,
    largest_correction_ns: AtomicU64,
    source: AtomicU32,
}

static TABLE: Table = Table {
    sequence: AtomicU32::new(0),
    writing: AtomicBool::new(false),
    anchor: [const { AtomicU64::new(0) }; 4],
    measured_from: [const { AtomicU64::new(0) }; 3],
    renewals: AtomicU64::new(0),
    largest_correction_ns: AtomicU64::new(0),
    source: AtomicU32::new(0),
};

impl Table {
    fn source(&self) -> Source {
        if self.source.load(Relaxed) == 1 { Source::Counter } else { Source::Kernel }
    }

    fn rate_is_known(&self) -> bool {
        self.anchor[3].load(Relaxed) != 0
    }

    fn read(&self) -> Option<Anchor> {
        let before = self.sequence.load(Acquire);
        if before & 1 != 0 {
            return None;
        }
        let [tsc0, ns0, rate, span] = [0, 1, 2, 3].map(|i| self.anchor[i].load(Relaxed));
        fence(Acquire);
        (self.sequence.load(Relaxed) == before).then_some(Anchor { tsc0, ns0, rate, span })
    }

    /// Takes a new anchor, unless another thread is doing so. `false` if the samples do not determine one.
    fn renew(&self) -> bool {
        if self.writing.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            return true;
        }
        let mut is_known = true;
        let [tsc0, ns0, rate, span] = [0, 1, 2, 3].map(|i| self.anchor[i].load(Relaxed));
        let old = Anchor { tsc0, ns0, rate, span };
        let sample = Sample::take();
        // Another thread may have renewed it meanwhile.
        if sample.tsc.wrapping_sub(old.tsc0) >= old.span {
            let from = self.measured_from();
            if let Some(anchor) = old.next(from, sample) {
                self.note_correction(old, sample);
                self.store(anchor);
                self.renewals.fetch_add(1, Relaxed);
            } else {
                is_known = false;
            }
            // A long base is precise, a fresh one follows the kernel's slewing.
            let is_sharp = sample.uncertain_ticks <= from.uncertain_ticks.saturating_mul(2);
            if is_sharp && sample.ns.saturating_sub(from.ns) >= MAX_SPAN_NS {
                self.measure_from(sample);
            }
        }
        self.writing.store(false, Release);
        is_known
    }

    fn measured_from(&self) -> Sample {
        let [tsc, ns, uncertain_ticks] = [0, 1, 2].map(|i| self.measured_from[i].load(Relaxed));
        Sample { tsc, ns, uncertain_ticks }
    }

    fn measure_from(&self, sample: Sample) {
        for (slot, value) in self.measured_from.iter().zip([sample.tsc, sample.ns, sample.uncertain_ticks]) {
            slot.store(value, Relaxed);
        }
    }

    /// Records the error of the old line at its end, if it was still in use.
    fn note_correction(&self, old: Anchor, sample: Sample) {
        let ticks = sample.tsc.wrapping_sub(old.tsc0);
        if ticks < old.span.saturating_mul(2) {
            self.largest_correction_ns.fetch_max(old.ns_at(ticks).abs_diff(sample.ns), Relaxed);
        }
    }

    fn store(&self, anchor: Anchor) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        for (slot, value) in self.anchor.iter().zip([anchor.tsc0, anchor.ns0, anchor.rate, anchor.span]) {
            slot.store(value, Relaxed);
        }
        self.sequence.store(sequence.wrapping_add(2), Release);
    }
}

/// Chooses the source, and begins to measure the counter's rate; costs no waiting. Call once before
/// any reading, and again in a forked child.
pub(crate) fn start() {
    static STARTED_IN: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id();
    // A thread of the parent that was writing is not in a forked child. One of this process goes on.
    if STARTED_IN.swap(own, Relaxed) != own {
        TABLE.writing.store(false, Relaxed);
        if TABLE.sequence.load(Relaxed) & 1 != 0 {
            TABLE.sequence.fetch_add(1, Relaxed);
        }
    }
    if TABLE.source() == Source::Counter {
        return;
    }
    if !counter_is_invariant() || std::env::var_os(CLOCK_VARIABLE).is_some_and(|source| source == "kernel") {
        return;
    }
    HAS_ORDERED_COUNTER.store(has_ordered_counter(), Relaxed);
    let sample = Sample::take();
    TABLE.measure_from(sample);
    // An anchor without a span: until the rate can be measured, readings use the kernel's clock.
    TABLE.store(Anchor { tsc0: sample.tsc, ns0: sample.ns, rate: 0, span: 0 });
    TABLE.source.store(1, Release);
}

/// Source of readings since [`start`].
pub fn source() -> Source {
    TABLE.source()
}

/// Number of renewals of the anchor, and the largest distance between a line's end and the kernel's
/// clock that was found then, in nanoseconds.
pub fn renewals_and_largest_correction_ns() -> (u64, u64) {
    (TABLE.renewals.load(Relaxed), TABLE.largest_correction_ns.load(Relaxed))
}

/// Nanoseconds of `CLOCK_MONOTONIC` for a thread that has no recorder: of the same line that all
/// recorders of the process use.
pub fn now() -> u64 {
    ThreadClock::default().now()
}

/// `CLOCK_MONOTONIC` in nanoseconds, from the kernel.
pub fn kernel_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether the processor has an instruction that reads the counter after all earlier loads.
static HAS_ORDERED_COUNTER: AtomicBool = AtomicBool::new(false);

/// The counter, after all earlier loads. An instruction that waits for loads only is cheaper before the
/// counter than a fence: 21 ns instead of 23; the unordered counter takes 9.5.
#[inline(always)]
fn ordered_counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if HAS_ORDERED_COUNTER.load(Relaxed) {
        let mut processor = 0;
        // SAFETY: the processor has the instruction, and `processor` may be written.
        return unsafe { core::arch::x86_64::__rdtscp(&mut processor) };
    }
    finish_what_comes_before();
    counter()
}

/// Orders later readings of the counter after all earlier instructions.
#[inline(always)]
pub fn finish_what_comes_before() {
    // SAFETY: every x86-64 processor has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier instruction without operands.
    unsafe {
        core::arch::asm!("isb", options(nomem, nostack));
    }
}

#[inline(always)]
fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user code read the virtual counter.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

#[cfg(target_arch = "aarch64")]
fn counter_is_invariant() -> bool {
    true
}

#[cfg(target_arch = "aarch64")]
fn has_ordered_counter() -> bool {
    false
}

/// Whether there is `rdtscp`, which some virtual machines hide.
#[cfg(target_arch = "x86_64")]
fn has_ordered_counter() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx & (1 << 27) != 0
}

/// Whether the processor guarantees a constant rate of the counter in every power state, and the kernel
/// itself keeps time by it (it monitors the counters of all processors and drops an unreliable one).
#[cfg(target_arch = "x86_64")]
fn counter_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let kernel = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant
        && matches!(kernel.as_deref().map(str::trim), Ok("tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_between_two_readings_of_the_kernels_clock() {
        start();
        let mut clock = ThreadClock::default();
        let mut errors = Vec::new();
        let begin = kernel_ns();
        while kernel_ns() < begin + 400_000_000 {
            let before = kernel_ns();
            let ours = clock.now();
            let after = kernel_ns();
            errors.push(before.saturating_sub(ours).max(ours.saturating_sub(after)));
        }
        errors.sort_unstable();
        // The bound is a promise of the design; a percentile keeps a descheduled sample from failing it.
        assert!(
            errors[errors.len() * 99 / 100] <= 200,
            "99th percentile {} ns",
            errors[errors.len() * 99 / 100]
        );
    }

    const TICK_RATE: u64 = 3 << 30;

    fn ns_of(ticks: u64) -> u64 {
        ((ticks as u128 * TICK_RATE as u128) >> 32) as u64
    }

    /// A sample with a clock reading `late` ticks after its middle.
    fn sampled(tsc: u64, uncertain_ticks: u64, late: i64) -> Sample {
        Sample { tsc, ns: ns_of(tsc.wrapping_add_signed(late)), uncertain_ticks }
    }

    #[test]
    fn a_line_holds_as_long_as_its_samples_allow() {
        for uncertain in [5, 30, 80, 130] {
            for distance in [100_000, 1_500_000, 150_000_000, 15_000_000_000] {
                for (early, late) in [(-1, 1), (1, -1), (1, 1), (-1, -1)] {
                    let from = sampled(1 << 40, uncertain, early * uncertain as i64);
                    let sample = sampled((1 << 40) + distance, uncertain, late * uncertain as i64);
                    let line = Anchor::default().next(from, sample).unwrap();
                    let real = ns_of(line.tsc0 + line.span);
                    let error = line.end_ns().abs_diff(real);
                    let most = MAX_ERROR_NS.max(3 * (ns_of(uncertain) + 1)) + 1;
                    assert!(error <= most, "{error} ns: {uncertain}, {distance}, {line:?}");
                    assert!(ns_of(line.span) <= MAX_SPAN_NS + most);
                }
            }
        }
        // 150 ticks are 112 ns: the thread lost its CPU, and a better sample is possible.
        assert!(Anchor::default().next(sampled(1 << 40, 5, 0), sampled(1 << 41, 150, 0)).is_none());
        // A kernel's clock that always takes 2 µs.
        assert!(Anchor::default().next(sampled(1 << 40, 1500, 0), sampled(1 << 41, 1500, 0)).is_some());
    }

    #[test]
    fn threads_never_see_time_go_back() {
        start();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    let (mut clock, mut last) = (ThreadClock::default(), 0);
                    let end = kernel_ns() + 150_000_000;
                    while last < end {
                        let now = clock.now();
                        assert!(now >= last);
                        last = now;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    }
}
