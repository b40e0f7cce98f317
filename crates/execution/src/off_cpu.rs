//! Times in which threads could run and had no CPU, and sections cut at the times of the system.
//!
//! Tracks have a thread's states. This module has the times in which the operating system kept it from these, and in
//! which it was blocked in the kernel: asleep, in a system call, or in a wait of a library. Which loss a time off the
//! CPU is depends on the other threads meanwhile: see [`SystemTime`].

use crate::execution::TrackOfRun;
use crate::os_times::{OffCpu, OsSource, OsTimes, RunDelay};
use crate::track_columns::TakesActivities;
use crate::{Execution, Group, Section, Span, State, SystemCause, SystemTime, ThreadIndex};
use taskscope_event::models::wait::kind;

/// A part of a thread's time, with its state in the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSpan {
    /// The part; in the state of its [`SystemCause`] if its time is the system's.
    pub span: Span,
    /// The state of the track.
    pub under: State,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Runnable,
    Blocked,
}

/// The time that sums are spread over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Recorded waits of threads.
    Waits,
    All,
}

/// Whether the program's own code runs in it.
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

    /// The intervals in which a thread was blocked in the kernel, in order. They overlap none of
    /// [`Execution::off_cpu_of`].
    pub fn blocked_of(&self, thread: ThreadIndex) -> &[OffCpu] {
        let first = self.blocked.partition_point(|off| off.thread < thread);
        let count = self.blocked[first..].partition_point(|off| off.thread == thread);
        &self.blocked[first..first + count]
    }

    /// Adds the times off the CPU of a thread that has none yet: known ones, and shares of sums, in proportion to the
    /// thread's states. Times that overlap an earlier one are cut.
    pub fn add_off_cpu(
        &mut self,
        thread: ThreadIndex,
        source: OsSource,
        exact: &[(u64, u64)],
        delays: &[RunDelay],
    ) {
        let (runnable, run_delays) = (exact.to_vec(), delays.to_vec());
        self.add_os_times(thread, source, OsTimes { runnable, run_delays, ..OsTimes::default() });
    }

    /// Adds the system times of a thread that has none yet. Sums go to the time outside of known intervals, first to recorded waits
    /// for other threads or the outside, in which a thread does not run: blocked time to their begins, runnable time to their ends.
    /// The rest of the runnable time is in proportion to the sections of its period, that of the blocked time in states of waits
    /// first. Times that overlap an earlier one are cut.
    pub fn add_os_times(&mut self, thread: ThreadIndex, source: OsSource, mut times: OsTimes) {
        let Some(row) = self.threads.get_mut(thread.index()) else { return };
        (row.os_source, row.os_totals) = (source, times.totals);
        let (first, last) = (row.track.start(), row.track.end());
        let runnable = times.runnable.into_iter().map(|(start, end)| (start, end, Why::Runnable));
        let blocked = times.blocked.into_iter().map(|(start, end)| (start, end, Why::Blocked));
        let mut known: Vec<(u64, u64, Why)> = runnable.chain(blocked).collect();
        known.sort_unstable();
        let mut until = first;
        known.retain_mut(|(start, end, _)| {
            (*start, *end) = ((*start).max(until), (*end).min(last));
            until = until.max(*end);
            start < end
        });
        self.spread(thread, &mut times.blocked_sums, (Why::Blocked, Within::Waits), &mut known);
        self.spread(thread, &mut times.run_delays, (Why::Runnable, Within::Waits), &mut known);
        self.spread(thread, &mut times.run_delays, (Why::Runnable, Within::All), &mut known);
        self.spread(thread, &mut times.blocked_sums, (Why::Blocked, Within::All), &mut known);
        let of = |why: Why| -> Vec<OffCpu> {
            let own = known.iter().filter(|known| known.2 == why);
            own.map(|(start, end, _)| OffCpu { thread, start: *start, end: *end }).collect()
        };
        let at = self.off_cpu.partition_point(|off| off.thread < thread);
        self.off_cpu.splice(at..at, of(Why::Runnable));
        let at = self.blocked.partition_point(|off| off.thread < thread);
        self.blocked.splice(at..at, of(Why::Blocked));
    }

    /// Gives the free time of each period its share of the period's sum in whole nanoseconds, and leaves the rest of the sums.
    fn spread(
        &self,
        thread: ThreadIndex,
        sums: &mut [RunDelay],
        (why, within): (Why, Within),
        known: &mut Vec<(u64, u64, Why)>,
    ) {
        let track = &self.threads[thread.index()].track;
        let (mut until, last) = (track.start(), track.end());
        let mut added = Vec::new();
        let mut next = 0;
        let mut pieces: Vec<(u64, u64, State)> = Vec::new();
        for sum in sums {
            let (start, end) = (sum.start.max(until), sum.end.min(last));
            if start >= end {
                continue;
            }
            until = end;
            // The rest outside known intervals, by sections.
            pieces.clear();
            next += known[next..].partition_point(|known| known.1 <= start);
            let (mut row, mut off) = (track.row_at(start).unwrap_or(track.len()), next);
            let mut at = start;
            while at < end && row < track.len() {
                let span = track.span(row);
                let free_until = known.get(off).map_or(end, |known| known.0.min(end)).min(span.end);
                if free_until > at.max(span.start) {
                    pieces.push((at.max(span.start), free_until, span.section.state));
                }
                match known.get(off) {
                    Some((_, known_end, _)) if free_until < span.end.min(end) => {
                        at = *known_end;
                        off += 1;
                        row += (row..track.len()).take_while(|row| track.span(*row).end <= at).count();
                    }
                    _ => {
                        at = span.end;
                        row += 1;
                    }
                }
            }
            let is_at_begin = (why, within) == (Why::Blocked, Within::Waits);
            let mut take = |all: &[(u64, u64, State)], ns: u64, chosen: &dyn Fn(State) -> bool| -> u64 {
                let chosen = || all.iter().filter(|piece| chosen(piece.2));
                let room: u64 = chosen().map(|(start, end, _)| end - start).sum();
                let ns = ns.min(room);
                let (mut seen, mut given) = (0, 0);
                for (start, end, _) in chosen() {
                    seen += end - start;
                    let owed = (u128::from(seen) * u128::from(ns) / u128::from(room.max(1))) as u64;
                    let part = owed - given;
                    if part > 0 {
                        let (from, until) =
                            if is_at_begin { (*start, start + part) } else { (end - part, *end) };
                        added.push((from, until, why));
                    }
                    given = owed;
                }
                ns
            };
            let ns = sum.ns.min(end - start);
            let taken = match (within, why) {
                (Within::Waits, _) => take(&self.in_waits(thread, &pieces), ns, &|_| true),
                (Within::All, Why::Runnable) => take(&pieces, ns, &|_| true),
                (Within::All, Why::Blocked) => {
                    let waits = take(&pieces, ns, &|state| !counts_in(state));
                    waits + take(&pieces, ns - waits, &counts_in)
                }
            };
            sum.ns -= taken;
        }
        known.extend(added);
        known.sort_unstable();
    }

    /// The parts of times of a thread, which are in order, in recorded waits that it does not spend on a CPU.
    fn in_waits(&self, thread: ThreadIndex, times: &[(u64, u64, State)]) -> Vec<(u64, u64, State)> {
        let mut parts = Vec::new();
        for (start, end, state) in times {
            for wait in self.thread_waits.waits_of(thread, *start, *end) {
                let kind = self.catalog.objects.get(wait.object.index()).map_or(0, |object| object.kind);
                let (from, until) = (wait.start.max(*start), wait.end.min(*end));
                if from < until && kind != kind::SPIN_LOCK {
                    parts.push((from, until, *state));
                }
            }
        }
        parts
    }

    /// The spans of a thread's run that end after `begin`, as in its track.
    pub(crate) fn spans_of_run_from(
        &self,
        thread: ThreadIndex,
        begin: u64,
    ) -> impl Iterator<Item = Span> + '_ {
        let track = &self.threads[thread.index()].track;
        let [before, after] =
            self.edges_of_run(thread).map(|edge| Some(edge).filter(|edge| edge.end > begin.max(edge.start)));
        let first = if begin < track.start() { 0 } else { track.row_at(begin).unwrap_or(track.len()) };
        before.into_iter().chain(track.spans_of(first..track.len())).chain(after)
    }

    /// Sections as of [`Execution::spans_of_run`], with the track's state of the times off the CPU, and without blocked time:
    /// others wait for a blocked thread as for a running one.
    pub fn cut_spans_of_run(&self, thread: ThreadIndex) -> CutSpans<'_> {
        CutSpans(self.cut_of_run(thread))
    }

    fn cut_of_run(&self, thread: ThreadIndex) -> Cut<'_, TrackOfRun<'_>> {
        let (spans, off) = (self.track_of_run(thread), self.system_time_of(thread));
        Cut { spans, off, takes_blocked: false, rest: None }
    }

    /// The same with blocked time in code of the program, as it is shown.
    pub fn shown_spans_of_run(&self, thread: ThreadIndex) -> CutSpans<'_> {
        CutSpans(Cut { takes_blocked: true, ..self.cut_of_run(thread) })
    }

    /// The same for these rows of a thread's track.
    pub fn cut_spans_of_rows(
        &self,
        thread: ThreadIndex,
        rows: std::ops::Range<usize>,
    ) -> impl Iterator<Item = CutSpan> + '_ {
        let spans = self.threads[thread.index()].track.spans_of(rows);
        let off = self.system_time_of(thread);
        let begin = spans.clone().next().map_or(u64::MAX, |span| span.start);
        let off = &off[off.partition_point(|off| off.end <= begin)..];
        Cut { spans, off, takes_blocked: true, rest: None }
    }

    /// Whether each time off the CPU of every worker is known.
    pub fn knows_switches(&self) -> bool {
        self.workers().all(|(_, thread)| thread.os_source == OsSource::Switches)
    }

    /// Whether the times off the CPU of every worker are known or estimated.
    pub fn knows_off_cpu(&self) -> bool {
        let mut workers = self.workers().peekable();
        workers.peek().is_some() && workers.all(|(_, thread)| thread.os_source != OsSource::Unknown)
    }
}

/// The sections of a thread over the whole run of its process, cut at its switches off and onto CPUs.
pub struct CutSpans<'a>(Cut<'a, TrackOfRun<'a>>);

impl CutSpans<'_> {
    /// Passes activities with their begins, while `to` accepts them; returns whether it still does at the end. For
    /// readers of some of many threads' sections at a time that need states and places alone. Activities of zero length
    /// may be passed too.
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

/// Spans, cut at a thread's switches off and onto CPUs.
struct Cut<'a, I> {
    spans: I,
    /// Times that have not ended yet.
    off: &'a [SystemTime],
    /// Whether blocked time is apart, too.
    takes_blocked: bool,
    rest: Option<Span>,
}

/// The first part of a span that is cut by times off the CPU, and the rest. Times that end before it are dropped, and
/// blocked ones unless `takes_blocked`.
fn first_part(span: Span, off: &mut &[SystemTime], takes_blocked: bool) -> (CutSpan, Option<Span>) {
    let under = span.section.state;
    let passes =
        |off: &SystemTime| off.end <= span.start || (!takes_blocked && off.cause == SystemCause::Blocked);
    while let Some((_, later)) = off.split_first().filter(|(off, _)| passes(off)) {
        *off = later;
    }
    let Some(off) = off.first().filter(|off| off.start < span.end) else {
        return (CutSpan { span, under }, None);
    };
    let until = if off.start > span.start { off.start } else { off.end.min(span.end) };
    let rest = (until < span.end).then_some(Span { start: until, ..span });
    let mut part = Span { end: until, ..span };
    if off.start <= span.start {
        part.section = off.section(&span.section);
    }
    (CutSpan { span: part, under }, rest)
}

/// Whether a span ends before the next off-CPU interval, as nearly all do.
#[inline]
fn is_whole(span: &Span, off: &[SystemTime]) -> bool {
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
        let (part, rest) = first_part(span, &mut self.off, self.takes_blocked);
        self.rest = rest;
        Some(part)
    }

    #[inline]
    fn fold<B, F: FnMut(B, CutSpan) -> B>(self, init: B, mut f: F) -> B {
        let Cut { spans, mut off, takes_blocked, rest } = self;
        let mut each = move |mut folded: B, span: Span| {
            if is_whole(&span, off) {
                return f(folded, CutSpan { span, under: span.section.state });
            }
            let mut left = Some(span);
            while let Some(span) = left {
                let (part, rest) = first_part(span, &mut off, takes_blocked);
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
    use crate::os_times::OsTotals;
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
    fn times_off_the_cpu_split_the_section() {
        use State::{CriticalWait, OutOfCpu, Serial};
        let mut execution = execution(&[(10, Serial), (50, CriticalWait), (60, Serial)], 100);
        let exact = [(20, 30), (25, 28), (45, 70), (95, 200)];
        execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &exact, &[]);
        execution.attribute_system_time();
        let expected = [
            (10, 20, Serial, Serial),
            (20, 30, OutOfCpu, Serial),
            (30, 45, Serial, Serial),
            (45, 50, OutOfCpu, Serial),
            (50, 60, OutOfCpu, CriticalWait),
            (60, 70, OutOfCpu, Serial),
            (70, 95, Serial, Serial),
            (95, 100, OutOfCpu, Serial),
        ];
        assert_eq!(spans(&execution), expected);
        assert!(execution.knows_off_cpu());
    }

    #[test]
    fn blocked_time_is_apart_in_code_of_the_program_and_not_for_those_that_wait() {
        use State::{Barrier, Blocked, OutOfCpu, Task};
        let mut execution = execution(&[(0, Task), (50, Barrier)], 100);
        let times =
            OsTimes { runnable: vec![(20, 25)], blocked: vec![(10, 20), (40, 70)], ..OsTimes::default() };
        execution.add_os_times(ThreadIndex(0), OsSource::Switches, times);
        execution.attribute_system_time();
        let shown: Vec<_> =
            execution.spans_of_run(ThreadIndex(0)).map(|s| (s.end, s.section.state)).collect();
        let expected = [(10, Task), (20, Blocked), (25, OutOfCpu), (40, Task), (50, Blocked), (100, Barrier)];
        assert_eq!(shown, expected);
        let folded = execution.shown_spans_of_run(ThreadIndex(0)).fold(0, |sum, cut| sum + cut.span.nanos());
        assert_eq!(folded, 100);
        let states: Vec<_> = spans(&execution).into_iter().map(|(_, end, state, _)| (end, state)).collect();
        assert_eq!(states, [(20, Task), (25, OutOfCpu), (50, Task), (100, Barrier)]);
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
    fn blocked(execution: &Execution) -> Vec<(u64, u64)> {
        execution.blocked_of(ThreadIndex(0)).iter().map(|off| (off.start, off.end)).collect()
    }

    fn runnable(execution: &Execution) -> Vec<(u64, u64)> {
        execution.off_cpu_of(ThreadIndex(0)).iter().map(|off| (off.start, off.end)).collect()
    }

    #[test]
    fn runnable_and_blocked_intervals_do_not_overlap() {
        let mut execution = execution(&[(10, State::Serial)], 100);
        let times = OsTimes {
            runnable: vec![(40, 45), (0, 20), (90, 95)],
            blocked: vec![(15, 40), (94, u64::MAX)],
            ..OsTimes::default()
        };
        execution.add_os_times(ThreadIndex(0), OsSource::Switches, times);
        assert_eq!(runnable(&execution), [(10, 20), (40, 45), (90, 95)]);
        assert_eq!(blocked(&execution), [(20, 40), (95, 100)]);
    }

    #[test]
    fn sums_fill_unknown_time_and_blocked_time_is_put_into_waits_first() {
        use State::{CriticalWait, Serial};
        let mut execution = execution(&[(0, Serial), (40, CriticalWait), (60, Serial)], 100);
        let times = OsTimes {
            runnable: vec![(10, 20)],
            blocked: vec![(45, 50)],
            run_delays: vec![RunDelay { start: 0, end: 100, ns: 17 }],
            blocked_sums: vec![RunDelay { start: 0, end: 100, ns: 30 }],
            totals: OsTotals { on_cpu_ns: Some(38), run_delay_ns: Some(27) },
            coalesced: 3,
        };
        execution.add_os_times(ThreadIndex(0), OsSource::Estimated, times);
        let sum = |of: &[(u64, u64)]| of.iter().map(|(start, end)| end - start).sum::<u64>();
        assert_eq!((sum(&runnable(&execution)), sum(&blocked(&execution))), (27, 35));
        let in_wait = |of: Vec<(u64, u64)>| -> u64 {
            of.iter().map(|(start, end)| (*end).min(60).saturating_sub((*start).max(40))).sum()
        };
        assert_eq!(in_wait(runnable(&execution)) + in_wait(blocked(&execution)), 20);
        let mut all = [runnable(&execution), blocked(&execution)].concat();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{all:?}");
        assert_eq!(execution.threads[0].os_totals.run_delay_ns, Some(27));
    }

    /// A thread waits for a condition ten times in a period of 1000 ns, 60 ns each, and works for 40 ns in between. The sums of the
    /// period are those of brief waits: 450 ns blocked, and 150 ns until it had a CPU again.
    #[test]
    fn sums_are_put_into_recorded_waits_first() {
        use crate::{Definition, ObjectIndex, SiteIndex, ThreadWaitChange};
        use taskscope_event::models::wait::outcome;
        for (kind, in_waits) in [(kind::CONDITION, (450, 150)), (kind::SPIN_LOCK, (0, 0))] {
            let mut builder = ExecutionBuilder::new();
            let process = builder.add_process("host.1", 1);
            let thread = builder.add_thread(process, 1);
            builder.define(Definition::Object { object: ObjectIndex(0), process, id: 0, kind });
            builder.event(thread, 0);
            builder.change(thread, 0, Change::Becomes(Section::of(State::Unknown)));
            for start in (0..1000).step_by(100) {
                let begins = ThreadWaitChange::Begins { object: ObjectIndex(0), site: SiteIndex(1) };
                let ends = ThreadWaitChange::Ends { outcome: outcome::DONE };
                for (at, change) in [(start, begins), (start + 60, ends)] {
                    builder.event(thread, at);
                    builder.change(thread, at, Change::ThreadWait(change));
                }
            }
            builder.event(thread, 1000);
            let mut execution = builder.finish();
            let period = |ns| vec![RunDelay { start: 0, end: 1000, ns }];
            let times = OsTimes { run_delays: period(150), blocked_sums: period(450), ..OsTimes::default() };
            execution.add_os_times(thread, OsSource::Switches, times);
            let in_wait = |(start, end): (u64, u64)| start % 100 < 60 && end <= start / 100 * 100 + 60;
            let sum = |of: Vec<(u64, u64)>| -> u64 {
                of.iter().filter(|off| in_wait(**off)).map(|(start, end)| end - start).sum()
            };
            if kind == kind::CONDITION {
                assert_eq!((sum(blocked(&execution)), sum(runnable(&execution))), in_waits);
                // Blocked, then runnable.
                assert_eq!((blocked(&execution)[0], runnable(&execution)[0]), ((0, 45), (45, 60)));
            }
            let all = |of: Vec<(u64, u64)>| of.iter().map(|(start, end)| end - start).sum::<u64>();
            assert_eq!((all(blocked(&execution)), all(runnable(&execution))), (450, 150));
        }
    }
}
