//! Times of a thread that the operating system took, flagged if significant.
//!
//! Only those in useful and runtime sections are flagged: a thread that waits anyway loses nothing while it has no CPU.
//!
//! Estimated times are at the end of nearly every section, so a flag on each bucket with one would be on all of them. A
//! bucket is flagged if such times take at least an eighth of it, or if it holds a part of one that is long for the
//! run.

use super::{Bucket, CLASSES, FlagRules, Flags, Marks, Pyramid, Values, Window, edge};
use crate::{Execution, Group, State, SystemCause, SystemTime, ThreadIndex};

/// A bucket is flagged when this part of it is off the CPU.
const PART_OF_BUCKET: u64 = 8;

/// Intervals in order and apart from each other, with sums.
#[derive(Clone, Debug, Default)]
struct Intervals {
    start: Vec<u64>,
    end: Vec<u64>,
    /// Nanoseconds of all intervals before each.
    before: Vec<u64>,
    sum: u64,
}

/// Times off the CPU of one thread.
#[derive(Clone, Debug, Default)]
pub struct OffTimes {
    all: Intervals,
    /// Times in sections that want a CPU.
    lost: Intervals,
    long: Marks,
    /// Whether there is a time by any cause.
    any: bool,
    /// Times by cause.
    under: [Under; SystemCause::ALL.len()],
}

/// The track's states while a thread's time is lost to a cause.
#[derive(Clone, Debug, Default)]
struct Under {
    /// One more than the number of the state; 0 at all other times.
    states: Values,
    pyramid: Pyramid,
}

impl OffTimes {
    /// Off-CPU times of a thread; see [`new`](Self::new).
    pub fn of(execution: &Execution, thread: ThreadIndex, long_ns: u64) -> OffTimes {
        let off = execution.system_time_of(thread);
        let is_off =
            |state: State| SystemCause::ALL.iter().any(|cause| cause.is_off_cpu() && cause.state() == state);
        let lost = execution.shown_spans_of_run(thread).filter(|cut| {
            let state = cut.span.section.state;
            cut.under != state && is_off(state) && matches!(cut.under.group(), Group::Useful | Group::Runtime)
        });
        let mut times = OffTimes::new(off, lost.map(|cut| (cut.span.start, cut.span.end)), long_ns);
        for cause in SystemCause::ALL.into_iter().filter(|cause| off.iter().any(|part| part.cause == *cause))
        {
            let Under { states, pyramid } = &mut times.under[cause as usize];
            for cut in execution.shown_spans_of_run(thread) {
                let state = cut.span.section.state;
                let is_lost = state == cause.state() && cut.under != state;
                states.write(cut.span.start, if is_lost { cut.under as i64 + 1 } else { 0 });
                states.end = cut.span.end;
            }
            *pyramid = Pyramid::build(states, &FlagRules::default());
        }
        times
    }

    /// Nanoseconds that the system took in every bucket of a window, by the track's state meanwhile and the cause:
    /// `put(bucket, state, cause, ns)`.
    pub fn shares_of(&self, window: Window, mut put: impl FnMut(usize, usize, SystemCause, u64)) {
        for (Under { states, pyramid }, cause) in self.under.iter().zip(SystemCause::ALL) {
            pyramid.shares_of(states, window, |bucket, class, ns| {
                if let Some(state) = usize::from(class).checked_sub(1) {
                    put(bucket, state, cause, ns);
                }
            });
        }
    }

    /// Moves the system's time in `[from, to)` from the track's states to the states of the causes. Time of a thread that is
    /// not there is in no state of a track.
    pub fn move_sums(&self, from: u64, to: u64, sums: &mut [u64; CLASSES]) {
        for (Under { states, pyramid }, cause) in self.under.iter().zip(SystemCause::ALL) {
            for (class, ns) in pyramid.sums(states, from, to).into_iter().enumerate() {
                let under = class.checked_sub(1).and_then(|state| sums.get_mut(state));
                if let Some(under) = under.filter(|under| **under >= ns) {
                    *under -= ns;
                    sums[cause.state() as usize] += ns;
                }
            }
        }
    }

    /// Takes a thread's times off the CPU, and those of them that are lost; lost ones of at least `long_ns` are never
    /// hidden.
    fn new(off: &[SystemTime], lost: impl Iterator<Item = (u64, u64)>, long_ns: u64) -> OffTimes {
        let mut times = OffTimes { any: !off.is_empty(), ..OffTimes::default() };
        // A thread that is blocked or waits for a device wants no CPU.
        for part in off.iter().filter(|part| part.cause.is_off_cpu()) {
            times.all.push(part.start, part.end);
        }
        lost.for_each(|(start, end)| times.lost.push(start, end));
        let lost_ranges = times.lost.start.iter().copied().zip(times.lost.end.iter().copied());
        times.long =
            Marks::new(Flags::OFF_CPU, lost_ranges.filter(|(start, end)| end - start >= long_ns).collect());
        times
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Nanoseconds off the CPU in `[from, to)`.
    pub fn nanos(&self, from: u64, to: u64) -> u64 {
        self.all.nanos(from, to)
    }

    /// Flags the buckets of a window.
    pub fn flag(&self, window: Window, buckets: &mut [Bucket]) {
        self.lost.for_each_bucket(window, buckets, |bucket, ns, width| {
            if ns.saturating_mul(PART_OF_BUCKET) >= width {
                bucket.flags = bucket.flags.with(Flags::OFF_CPU);
            }
        });
        self.long.flag(window, buckets);
    }
}

impl Intervals {
    /// Adds one that begins at or after the end of the last; those that touch are joined.
    fn push(&mut self, start: u64, end: u64) {
        match self.end.last_mut() {
            Some(last) if *last == start => *last = end,
            _ => {
                self.start.push(start);
                self.end.push(end);
                self.before.push(self.sum);
            }
        }
        self.sum += end - start;
    }

    /// Nanoseconds of them in `[from, to)`.
    fn nanos(&self, from: u64, to: u64) -> u64 {
        let rank = |at: u64| self.start.partition_point(|start| *start < at);
        self.nanos_before(rank(to), to) - self.nanos_before(rank(from), from)
    }

    /// Nanoseconds before `at`, of which so many intervals begin before it.
    fn nanos_before(&self, begun: usize, at: u64) -> u64 {
        begun
            .checked_sub(1)
            .map_or(0, |last| self.before[last] + self.end[last].min(at).saturating_sub(self.start[last]))
    }

    /// Visits the buckets of a window that they overlap: nanoseconds of them, width of the bucket.
    fn for_each_bucket(
        &self,
        window: Window,
        buckets: &mut [Bucket],
        mut visit: impl FnMut(&mut Bucket, u64, u64),
    ) {
        let mut begun = self.start.partition_point(|start| *start < window.start());
        let mut before = self.nanos_before(begun, window.start());
        for (bucket, number) in buckets.iter_mut().zip(window.first..) {
            let from = edge(number, window.width_log2);
            let to = edge(number.saturating_add(1), window.width_log2);
            // Most buckets hold few; a bucket with many need not be walked.
            let few = self.start[begun..].iter().take(8).take_while(|start| **start < to).count();
            begun += few;
            if few == 8 {
                begun += self.start[begun..].partition_point(|start| *start < to);
            }
            let until = self.nanos_before(begun, to);
            if until > before {
                visit(bucket, until - before, to - from);
            }
            before = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadIndex;

    fn off(times: &[(u64, u64)]) -> Vec<SystemTime> {
        let (thread, cause) = (ThreadIndex(0), SystemCause::NoCpu);
        times.iter().map(|(start, end)| SystemTime { thread, start: *start, end: *end, cause }).collect()
    }

    /// Times of which all are lost.
    fn lost(times: &[SystemTime], long_ns: u64) -> OffTimes {
        OffTimes::new(times, times.iter().map(|time| (time.start, time.end)), long_ns)
    }

    fn flagged(times: &OffTimes, window: Window) -> Vec<usize> {
        let mut buckets = vec![Bucket::EMPTY; window.count as usize];
        times.flag(window, &mut buckets);
        (0..buckets.len()).filter(|bucket| buckets[*bucket].flags.has(Flags::OFF_CPU)).collect()
    }

    #[test]
    fn an_eighth_of_a_bucket_or_a_long_time_is_flagged_and_crumbs_are_not() {
        // Buckets of 64: one with 7 ns off, one with 8, one with four times 2 ns, and one with a long time's end.
        let times = off(&[(10, 17), (70, 78), (130, 132), (140, 142), (150, 152), (160, 162), (200, 258)]);
        let window = Window { first: 0, count: 6, width_log2: 6 };
        assert_eq!(flagged(&lost(&times, u64::MAX), window), [1, 2, 3]);
        assert_eq!(flagged(&lost(&times, 58), window), [1, 2, 3, 4]);
        let narrow = Window { first: 0, count: 5, width_log2: 2 };
        assert_eq!(flagged(&lost(&times, u64::MAX), narrow), [2, 3, 4]);
    }

    #[test]
    fn time_off_the_cpu_in_waits_is_counted_and_not_flagged() {
        let times = OffTimes::new(&off(&[(0, 64), (64, 128)]), [(64, 128)].into_iter(), 1);
        let window = Window { first: 0, count: 3, width_log2: 6 };
        assert_eq!(flagged(&times, window), [1]);
        assert_eq!(times.nanos(0, 192), 128);
    }

    #[test]
    fn sums_are_those_of_a_walk() {
        let times: Vec<(u64, u64)> = (0..500).map(|i| (i * i, i * i + i.min(7 + i % 3))).collect();
        let times = off(&times);
        let kept = lost(&times, u64::MAX);
        for (from, to) in [(0, 1), (3, 3), (0, 250_000), (17, 4000), (123_456, 130_000), (249_000, u64::MAX)]
        {
            let walked: u64 =
                times.iter().map(|off| off.end.min(to).saturating_sub(off.start.max(from))).sum();
            assert_eq!(kept.nanos(from, to), walked, "{from}..{to}");
        }
        for width_log2 in [0, 3, 9, 14] {
            let window = Window { first: 0, count: (250_000 >> width_log2) + 1, width_log2 };
            let walked: Vec<usize> = (0..window.count as usize)
                .filter(|bucket| {
                    let ns = kept.nanos((*bucket as u64) << width_log2, (*bucket as u64 + 1) << width_log2);
                    ns > 0 && ns * 8 >= 1 << width_log2
                })
                .collect();
            assert_eq!(flagged(&kept, window), walked, "{width_log2}");
        }
    }

    /// A thread that has not begun loses its time to other workers, as it does later for a while.
    #[test]
    fn time_of_a_thread_that_is_not_there_is_in_no_state() {
        use crate::lod::Timeline;
        use crate::{Change, ExecutionBuilder, Observer, Section};

        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        for (tid, first, last) in [(1, 100, 200), (2, 0, 300)] {
            let thread = builder.add_thread(process, tid);
            builder.event(thread, first);
            builder.change(thread, first, Change::Becomes(Section::of(State::Task)));
            builder.event(thread, last);
            builder.change(thread, last, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        let (thread, cause) = (ThreadIndex(0), SystemCause::MoreWorkers);
        let lost = [(0, 100), (150, 160)].map(|(start, end)| SystemTime { thread, start, end, cause });
        execution.system_time = lost.to_vec();
        let sums = Timeline::build(&execution).sums(&execution, thread, 0, 300);
        assert_eq!((sums[State::Task as usize], sums[State::Oversubscribed as usize]), (90, 10));
    }
}
