//! The track of a CPU, as pieces of the tracks of the threads that ran on it.
//!
//! ```text
//! thread 7  ├──A──┬───B───┬──C──┬┄┄
//! thread 9        ├──────D──────┴┬──E──┄┄
//! CPU 0     ├A┬───B──┬────D──────┴E┤         7 runs until within B, then 9
//! ```

use crate::activities::{Activities, ActivityNumbers, ActivityTimes};
use crate::longest::{LongestSections, Stretch};
use crate::starts::Starts;
use crate::track_builder::TrackBuilder;
use crate::track_columns::{TakesActivities, TrackColumns, Wanted};
use crate::{Place, Section, Span, Spans, State, ThreadIndex};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A time and the thread shown from it on; without a thread, the CPU is idle.
pub(crate) type Shown = (u64, ThreadIndex);

/// Part of a spliced track, which cuts its first and last row.
#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    end: u64,
    of: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Section(Section),
    Rows(Arc<TrackColumns>, Range<usize>),
}

impl Source {
    fn first(&self) -> Section {
        match self {
            Source::Section(section) => *section,
            Source::Rows(columns, rows) => columns.spans_of(rows.clone()).at(rows.start).section,
        }
    }

    fn last(&self) -> Section {
        match self {
            Source::Section(section) => *section,
            Source::Rows(columns, rows) => columns.spans_of(rows.clone()).at(rows.end - 1).section,
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::Section(_) => 1,
            Source::Rows(_, rows) => rows.len(),
        }
    }
}

/// Pieces that follow each other without a gap. The sections on both sides of a border differ.
#[derive(Clone, Debug)]
pub(crate) struct Splice {
    pieces: Vec<Piece>,
    rows: usize,
    end: u64,
    /// Activities of the pieces' tracks.
    activities: Arc<Activities>,
    columns: OnceLock<TrackColumns>,
}

impl Splice {
    /// The track of the `shown` threads, of which there is at least one, until `end`; `columns` returns the columns of
    /// threads.
    pub fn of<'a>(
        shown: &[Shown],
        end: u64,
        activities: &Arc<Activities>,
        columns: impl Fn(ThreadIndex) -> Option<&'a Arc<TrackColumns>>,
    ) -> Splice {
        let activities = activities.clone();
        let mut splice = Splice { pieces: Vec::new(), rows: 0, end, activities, columns: OnceLock::new() };
        for (number, (start, thread)) in shown.iter().enumerate() {
            let until = shown.get(number + 1).map_or(end, |next| next.0).min(end);
            // Pieces without duration are dropped, except a single one.
            if *start < until || (splice.pieces.is_empty() && number + 1 == shown.len()) {
                let of = source(columns(*thread), *start, until);
                splice.push(Piece { start: *start, end: until.max(*start), of });
            }
        }
        splice.end = splice.pieces.last().map_or(end, |last| last.end);
        splice.rows = splice.pieces.iter().map(|piece| piece.of.len()).sum();
        splice
    }

    /// Adds a piece; continued sections are merged.
    fn push(&mut self, mut piece: Piece) {
        if let Some(last) = self.pieces.last_mut().filter(|last| last.of.last() == piece.of.first()) {
            match &mut last.of {
                Source::Rows(columns, rows) if rows.len() > 1 => {
                    rows.end -= 1;
                    last.end = columns.starts().at(rows.end);
                    piece.start = last.end;
                }
                _ => {
                    piece.start = last.start;
                    self.pieces.pop();
                }
            }
        }
        self.pieces.push(piece);
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn start(&self) -> u64 {
        self.pieces.first().map_or(self.end, |piece| piece.start)
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn pieces(&self) -> Pieces<'_> {
        Pieces { now: None, later: self.pieces.iter() }
    }

    /// The displayed intervals with the source track of each, by the address of its columns.
    pub fn sources(&self) -> impl Iterator<Item = (u64, u64, *const TrackColumns)> + '_ {
        self.pieces.iter().filter_map(|piece| match &piece.of {
            Source::Rows(columns, _) => Some((piece.start, piece.end, Arc::as_ptr(columns))),
            Source::Section(_) => None,
        })
    }

    /// See [`Track::for_each_in`](crate::Track::for_each_in).
    pub fn for_each_in(&self, wanted: impl Fn(State, Place) -> bool, mut take: impl FnMut(Span)) {
        let wanted = Wanted::of(wanted, &self.activities, self.rows);
        for piece in &self.pieces {
            match &piece.of {
                Source::Section(section) => {
                    if wanted.has_activity((section.state, section.place)) {
                        take(Span { start: piece.start, end: piece.end, section: *section });
                    }
                }
                Source::Rows(columns, rows) => {
                    columns.spans_of(rows.clone()).for_each_of(&wanted, |row, mut span| {
                        if row == rows.start {
                            span.start = piece.start;
                        }
                        if row + 1 == rows.end {
                            span.end = piece.end;
                        }
                        take(span);
                    });
                }
            }
        }
    }

    /// See [`Track::add_times`](crate::Track::add_times).
    pub fn add_times(&self, sums: &mut ActivityTimes) {
        for piece in &self.pieces {
            match &piece.of {
                Source::Section(section) => {
                    let sum = sums.rare((section.state, section.place));
                    *sum = sum.wrapping_add(piece.end - piece.start);
                }
                Source::Rows(columns, rows) => {
                    columns.add_times(rows.clone(), piece.start, piece.end, sums);
                }
            }
        }
    }

    /// See [`Track::find_longest`](crate::Track::find_longest).
    pub fn find_longest(&self, longest: &mut LongestSections) {
        for piece in &self.pieces {
            match &piece.of {
                Source::Section(section) => {
                    let stretch = Stretch { ns: piece.end - piece.start, start: piece.start };
                    longest.rare((section.state, section.place)).take(stretch);
                }
                Source::Rows(columns, rows) => {
                    columns.find_longest(rows.clone(), piece.start, piece.end, longest);
                }
            }
        }
    }

    /// Columns of the spliced track, made on first use.
    pub fn columns(&self) -> &TrackColumns {
        self.columns.get_or_init(|| {
            let mut numbers = ActivityNumbers::of(&self.activities);
            let mut track = TrackBuilder::of(&mut numbers, self.rows);
            self.pieces().for_each(|span| track.push(span.start, span.section));
            track.finish(self.end, &self.activities)
        })
    }
}

/// A thread's sections from `start` to `end`; idle without a thread.
fn source(columns: Option<&Arc<TrackColumns>>, start: u64, end: u64) -> Source {
    let idle = Source::Section(Section::of(State::Idle));
    let Some(columns) = columns else { return idle };
    let starts = columns.starts();
    let first = starts.partition_point(|row| row <= start).saturating_sub(1);
    let rows = first..starts.partition_point(|row| row < end).max(first + 1);
    if rows.end > columns.len() { idle } else { Source::Rows(columns.clone(), rows) }
}

/// The sections of a spliced track.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    now: Option<OpenPiece<'a>>,
    later: std::slice::Iter<'a, Piece>,
}

/// A partly read piece of a thread's rows.
#[derive(Clone, Debug)]
struct OpenPiece<'a> {
    spans: Spans<'a>,
    /// Start of the piece, until its first section was read.
    first: Option<u64>,
    end: u64,
}

impl OpenPiece<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let span = self.spans.next()?;
        let start = self.first.take().unwrap_or(span.start);
        let end = if self.spans.left() == 0 { self.end } else { span.end };
        Some(Span { start, end, ..span })
    }
}

impl Pieces<'_> {
    /// As [`Spans::hand_over_activities`].
    #[inline(always)]
    pub(crate) fn hand_over_activities(&mut self, to: &mut impl TakesActivities) -> bool {
        loop {
            if let Some(open) = &mut self.now
                && !open.spans.hand_over_activities(&mut open.first, to)
            {
                return false;
            }
            match self.open_next() {
                Some(Some(Span { start, section: Section { state, place, .. }, .. }))
                    if !to.other(start, state, place) =>
                {
                    return false;
                }
                Some(_) => {}
                None => return true,
            }
        }
    }

    /// Opens the next piece, if there is one. A piece of a single section is returned as a whole.
    #[inline(never)]
    fn open_next(&mut self) -> Option<Option<Span>> {
        let piece = self.later.next()?;
        self.now = None;
        match &piece.of {
            Source::Section(section) => {
                Some(Some(Span { start: piece.start, end: piece.end, section: *section }))
            }
            Source::Rows(columns, rows) => {
                let spans = columns.spans_of(rows.clone());
                self.now = Some(OpenPiece { spans, first: Some(piece.start), end: piece.end });
                Some(None)
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        loop {
            if let Some(open) = &mut self.now
                && let Some(span) = open.next()
            {
                return Some(span);
            }
            if let Some(span) = self.open_next()? {
                return Some(span);
            }
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Span) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        loop {
            if let Some(open) = &mut self.now {
                while let Some(span) = open.next() {
                    folded = f(folded, span);
                }
            }
            match self.open_next() {
                Some(Some(span)) => folded = f(folded, span),
                Some(None) => {}
                None => return folded,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Change, Execution, ExecutionBuilder, Observer, Section, Span, State, TaskIndex, ThreadIndex,
    };

    const STATES: [State; 4] = [State::Idle, State::Task, State::LockWait, State::Runtime];

    /// A CPU and three threads that change their sections and its occupant at random times below 300.
    fn execution(seed: u64) -> (Execution, Vec<(u64, Option<usize>)>) {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut dice = move |sides: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % sides
        };
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host", 1);
        let threads: Vec<_> = (0..3).map(|tid| builder.add_thread(process, tid)).collect();
        let cpus = builder.add_cpus_of("host");
        let cpu = builder.add_thread(cpus, 0);
        builder.change(cpu, 0, Change::ThreadBegins);
        builder.change(cpu, 0, Change::Shows(ThreadIndex::NONE));
        for thread in &threads {
            builder.event(*thread, 0);
            builder.change(*thread, 0, Change::Becomes(Section::of(State::Runtime)));
        }
        let mut shown = vec![(0, None)];
        let mut at = 0;
        while at < 290 {
            at += dice(12);
            let thread = dice(3) as usize;
            if dice(4) == 0 {
                let now = (dice(3) > 0).then_some(thread);
                shown.push((at, now));
                builder.change(cpu, at, Change::Shows(now.map_or(ThreadIndex::NONE, |now| threads[now])));
            } else {
                let task = TaskIndex(dice(2) as u32);
                let section = Section { task, ..Section::of(STATES[dice(4) as usize]) };
                builder.event(threads[thread], at);
                builder.change(threads[thread], at, Change::Becomes(section));
            }
        }
        builder.change(cpu, 310, Change::ThreadEnds);
        (builder.finish(), shown)
    }

    #[test]
    fn a_cpu_has_the_state_of_its_thread_at_every_time() {
        for seed in 0..300 {
            let (execution, shown) = execution(seed);
            let tracks: Vec<_> = execution.threads.iter().map(|thread| &thread.track).collect();
            let cpu = tracks[3];
            let spans: Vec<Span> = cpu.spans().collect();
            let mut expected: Vec<Section> = Vec::new();
            for at in 0..310 {
                let on = shown.iter().rev().find(|(since, _)| *since <= at).and_then(|(_, thread)| *thread);
                let last = on
                    .map(|thread| tracks[thread])
                    .map(|track| track.span(track.row_at(at).unwrap_or(track.len() - 1)).section);
                expected.push(last.unwrap_or(Section::of(State::Idle)));
            }
            let found: Vec<Section> = spans
                .iter()
                .flat_map(|span| std::iter::repeat_n(span.section, span.nanos() as usize))
                .collect();
            assert_eq!(found, expected, "seed {seed}");
            assert!(spans.windows(2).all(|two| two[0].end == two[1].start && two[0].end > two[0].start));
            assert_eq!((cpu.start(), cpu.end(), cpu.len()), (0, 310, spans.len()), "seed {seed}");

            // Rows, and the rows of one state, are the same.
            assert!(cpu.rows().eq(spans.iter().copied()), "seed {seed}");
            let mut waits = Vec::new();
            cpu.for_each_in(|state, _| state == State::LockWait, |span| waits.push(span));
            let expected: Vec<Span> =
                spans.iter().filter(|span| span.section.state == State::LockWait).copied().collect();
            assert_eq!(waits, expected, "seed {seed}");
            for track in tracks {
                crate::longest::tests::check(track, &execution.activities);
                crate::kept_times::tests::check(track, &execution.activities);
            }
        }
    }

    #[test]
    fn a_cpu_without_any_thread_is_idle() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_cpus_of("host");
        let cpu = builder.add_thread(process, 0);
        for change in [Change::ThreadBegins, Change::Shows(ThreadIndex::NONE), Change::ThreadEnds] {
            builder.change(cpu, 7, change);
        }
        let track = &builder.finish().threads[0].track;
        let spans: Vec<Span> = track.spans().collect();
        assert_eq!(spans, [Span { start: 7, end: 7, section: Section::of(State::Idle) }]);
        assert_eq!((track.len(), track.rows().len(), track.span(0)), (1, 1, spans[0]));
    }
}
