//! When threads could run and had no CPU: an overlay over their tracks.
//!
//! Tracks tell what a thread was in; here is when the operating system kept it from that. A time off the
//! CPU counts only where the thread was in code of the program: what a thread waits for goes on meanwhile, whether it
//! spins, yields or has lost its CPU, and calls into the runtime or a communication library keep their name.

use crate::execution::TrackOfRun;
use crate::track::TakesActivities;
use crate::{Execution, Group, ObjectIndex, Section, Span, State, ThreadIndex};

/// What tells the times off the CPU of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OsSource {
    /// Nothing: not known, which is not none.
    #[default]
    Unknown,
    /// Its context switches: each time is known.
    Switches,
    /// Sums over periods of about 10 ms, spread over what the thread was in: estimated.
    Estimated,
}

impl OsSource {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            OsSource::Unknown => "unknown",
            OsSource::Switches => "context-switches",
            OsSource::Estimated => "estimated",
        }
    }
}

/// A time in which a thread could run and had no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// The thread.
    pub thread: ThreadIndex,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

/// A sum: somewhere from `start` to `end` the thread had no CPU for `ns` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunDelay {
    /// First nanosecond of the period.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// How much of it.
    pub ns: u64,
}

/// A part of a thread's time, and what its track says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSpan {
    /// The part; out of CPU where the system kept the thread off.
    pub span: Span,
    /// The state of the track.
    pub under: State,
}

/// Whether time off the CPU is told apart from this.
fn counts_in(state: State) -> bool {
    state.group() == Group::Useful
}

impl Execution {
    /// The times off the CPU of a thread, in order.
    pub fn off_cpu_of(&self, thread: ThreadIndex) -> &[OffCpu] {
        let first = self.off_cpu.partition_point(|off| off.thread < thread);
        let count = self.off_cpu[first..].partition_point(|off| off.thread == thread);
        &self.off_cpu[first..first + count]
    }

    /// Adds the times off the CPU of a thread that has none yet: those that are known, and shares of
    /// sums, in proportion to what the thread was in. Times that overlap an earlier one are cut.
    pub fn add_off_cpu(
        &mut self,
        thread: ThreadIndex,
        source: OsSource,
        exact: &[(u64, u64)],
        delays: &[RunDelay],
    ) {
        let Some(row) = self.threads.get_mut(thread.index()) else { return };
        row.os_source = source;
        let (first, last) = (row.track.start(), row.track.end());
        let mut own: Vec<OffCpu> = Vec::with_capacity(exact.len());
        let mut until = first;
        let mut sorted = exact.to_vec();
        sorted.sort_unstable();
        for (start, end) in sorted {
            let (start, end) = (start.max(until), end.min(last));
            if start < end {
                own.push(OffCpu { thread, start, end });
                until = end;
            }
        }
        for delay in delays {
            let (start, end) = (delay.start.max(until), delay.end.min(last));
            if start < end {
                self.spread(thread, RunDelay { start, end, ns: delay.ns.min(end - start) }, &mut own);
                until = end;
            }
        }
        let at = self.off_cpu.partition_point(|off| off.thread < thread);
        self.off_cpu.splice(at..at, own);
    }

    /// Gives each section of a period its share of the delay, at the section's end, in whole nanoseconds
    /// that sum to it.
    fn spread(&self, thread: ThreadIndex, delay: RunDelay, own: &mut Vec<OffCpu>) {
        let track = &self.threads[thread.index()].track;
        let period = u128::from(delay.end - delay.start);
        let mut row = track.row_at(delay.start).unwrap_or(track.len());
        let mut given = 0;
        while row < track.len() {
            let span = track.span(row);
            if span.start >= delay.end {
                break;
            }
            let (start, end) = (span.start.max(delay.start), span.end.min(delay.end));
            let owed = u128::from(end - delay.start) * u128::from(delay.ns) / period;
            let share = (owed as u64 - given).min(end - start);
            given = owed as u64;
            if share > 0 {
                own.push(OffCpu { thread, start: end - share, end });
            }
            row += 1;
        }
    }

    /// As [`Execution::spans_of_run`], with what the track says of the times off the CPU.
    pub fn cut_spans_of_run(&self, thread: ThreadIndex) -> CutSpans<'_> {
        CutSpans(self.cut_of_run(thread))
    }

    fn cut_of_run(&self, thread: ThreadIndex) -> Cut<'_, TrackOfRun<'_>> {
        Cut { spans: self.track_of_run(thread), off: self.off_cpu_of(thread), rest: None }
    }

    /// The same for these rows of a thread's track.
    pub fn cut_spans_of_rows(
        &self,
        thread: ThreadIndex,
        rows: std::ops::Range<usize>,
    ) -> impl Iterator<Item = CutSpan> + '_ {
        let spans = self.threads[thread.index()].track.spans_of(rows);
        let off = self.off_cpu_of(thread);
        let begin = spans.clone().next().map_or(u64::MAX, |span| span.start);
        Cut { spans, off: &off[off.partition_point(|off| off.end <= begin)..], rest: None }
    }

    /// Whether the times off the CPU of every worker are known or estimated.
    pub fn knows_off_cpu(&self) -> bool {
        let mut workers = self.workers().peekable();
        workers.peek().is_some() && workers.all(|(_, thread)| thread.os_source != OsSource::Unknown)
    }
}

/// The sections of a thread over the whole run of its process, cut where it goes off the CPU and comes back.
pub struct CutSpans<'a>(Cut<'a, TrackOfRun<'a>>);

impl CutSpans<'_> {
    /// Hands over from when on the thread is in what, for as long as `to` says so; whether it still does at the end. For
    /// who reads some of many threads' sections at a time, and wants states and places alone. What takes no time may be
    /// handed over, too.
    #[inline(always)]
    pub fn hand_over_activities(&mut self, to: &mut impl TakesActivities) -> bool {
        if self.0.off.is_empty() && self.0.rest.is_none() {
            return self.0.spans.hand_over_activities(to);
        }
        self.all(|CutSpan { span: Span { start, section: Section { state, place, .. }, .. }, .. }| {
            to.other(start, state, place)
        })
    }
}

impl Iterator for CutSpans<'_> {
    type Item = CutSpan;

    #[inline(always)]
    fn next(&mut self) -> Option<CutSpan> {
        self.0.next()
    }

    #[inline]
    fn fold<B, F: FnMut(B, CutSpan) -> B>(self, init: B, f: F) -> B {
        self.0.fold(init, f)
    }
}

/// Spans, cut where the thread goes off the CPU and comes back.
struct Cut<'a, I> {
    spans: I,
    /// Times that have not ended yet.
    off: &'a [OffCpu],
    rest: Option<Span>,
}

/// The first part of a span that is cut by times off the CPU, and what is left of it. Times that end before it are
/// dropped.
fn first_part(span: Span, off: &mut &[OffCpu]) -> (CutSpan, Option<Span>) {
    let under = span.section.state;
    while let Some((_, later)) = off.split_first().filter(|(off, _)| off.end <= span.start) {
        *off = later;
    }
    let Some(off) = off.first().filter(|off| off.start < span.end && counts_in(under)) else {
        return (CutSpan { span, under }, None);
    };
    let until = if off.start > span.start { off.start } else { off.end.min(span.end) };
    let rest = (until < span.end).then_some(Span { start: until, ..span });
    let mut part = Span { end: until, ..span };
    if off.start <= span.start {
        part.section = Section { state: State::OutOfCpu, object: ObjectIndex::NONE, ..span.section };
    }
    (CutSpan { span: part, under }, rest)
}

/// Whether a span lies before the next time off the CPU, as nearly all do.
#[inline]
fn is_whole(span: &Span, off: &[OffCpu]) -> bool {
    off.first().is_none_or(|off| off.start >= span.end)
}

impl<I: Iterator<Item = Span>> Iterator for Cut<'_, I> {
    type Item = CutSpan;

    #[inline(always)]
    fn next(&mut self) -> Option<CutSpan> {
        let span = self.rest.take().or_else(|| self.spans.next())?;
        if is_whole(&span, self.off) {
            return Some(CutSpan { span, under: span.section.state });
        }
        let (part, rest) = first_part(span, &mut self.off);
        self.rest = rest;
        Some(part)
    }

    #[inline]
    fn fold<B, F: FnMut(B, CutSpan) -> B>(self, init: B, mut f: F) -> B {
        let Cut { spans, mut off, rest } = self;
        let mut each = move |mut folded: B, span: Span| {
            if is_whole(&span, off) {
                return f(folded, CutSpan { span, under: span.section.state });
            }
            let mut left = Some(span);
            while let Some(span) = left {
                let (part, rest) = first_part(span, &mut off);
                folded = f(folded, part);
                left = rest;
            }
            folded
        };
        let folded = rest.into_iter().fold(init, &mut each);
        spans.fold(folded, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, ExecutionBuilder, Observer};

    fn execution(sections: &[(u64, State)], end: u64) -> Execution {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let thread = builder.add_thread(process, 1);
        for (at, state) in sections {
            builder.event(thread, *at);
            builder.change(thread, *at, Change::Becomes(Section::of(*state)));
        }
        builder.event(thread, end);
        builder.finish()
    }

    fn spans(execution: &Execution) -> Vec<(u64, u64, State, State)> {
        let cut = execution.cut_spans_of_run(ThreadIndex(0));
        cut.map(|c| (c.span.start, c.span.end, c.span.section.state, c.under)).collect()
    }

    #[test]
    fn times_off_the_cpu_cut_what_a_thread_was_in() {
        use State::{CriticalWait, OutOfCpu, Serial};
        let mut execution = execution(&[(10, Serial), (50, CriticalWait), (60, Serial)], 100);
        let exact = [(20, 30), (25, 28), (45, 70), (95, 200)];
        execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &exact, &[]);
        let expected = [
            (10, 20, Serial, Serial),
            (20, 30, OutOfCpu, Serial),
            (30, 45, Serial, Serial),
            (45, 50, OutOfCpu, Serial),
            (50, 60, CriticalWait, CriticalWait),
            (60, 70, OutOfCpu, Serial),
            (70, 95, Serial, Serial),
            (95, 100, OutOfCpu, Serial),
        ];
        assert_eq!(spans(&execution), expected);
        assert!(execution.knows_off_cpu());
    }

    #[test]
    fn sums_are_spread_in_proportion_and_nothing_is_lost() {
        use State::{Serial, Task};
        let mut execution = execution(&[(0, Serial), (30, Task), (40, Serial)], 100);
        let delays = [RunDelay { start: 0, end: 60, ns: 31 }, RunDelay { start: 50, end: 100, ns: 1000 }];
        execution.add_off_cpu(ThreadIndex(0), OsSource::Estimated, &[], &delays);
        let off = |from: u64, to: u64| -> u64 {
            let parts = execution.off_cpu_of(ThreadIndex(0)).iter();
            parts.map(|off| off.end.min(to).saturating_sub(off.start.max(from))).sum()
        };
        assert_eq!((off(0, 30), off(30, 40), off(40, 60)), (15, 5, 11));
        assert_eq!(off(60, 100), 40, "no more than the time that is left");
        let tiled = spans(&execution);
        assert!(tiled.windows(2).all(|pair| pair[0].1 == pair[1].0 && pair[0].0 < pair[0].1));
        assert_eq!((tiled[0].0, tiled[tiled.len() - 1].1), (0, 100));
    }
}
