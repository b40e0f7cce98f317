//! One thread's time, cut into sections that never overlap: columns, one row per section.
//!
//! A CPU shows what the threads on it are in: its track refers to the rows of theirs, and has columns of its own only
//! once somebody asks for a row by its number.

use crate::splice::{Pieces, Splice};
use crate::{Column, ObjectIndex, Place, RegionIndex, Section, State, TaskIndex};
use std::ops::Range;
use std::sync::Arc;

/// The sections of one thread, in time order. A section ends where the next one starts.
#[derive(Clone, Debug)]
pub struct Track(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Rows(Arc<TrackColumns>),
    Spliced(Box<Splice>),
}

/// The columns of a track, for who stores it.
#[derive(Clone, Debug, Default)]
pub struct TrackColumns {
    /// Starts of sections, strictly rising.
    pub start: Column<u64>,
    /// Numbers of their states.
    pub state: Column<u8>,
    /// Their places.
    pub place: Column<Place>,
    /// Their tasks.
    pub task: Column<TaskIndex>,
    /// Their regions.
    pub region: Column<RegionIndex>,
    /// What they wait for.
    pub object: Column<ObjectIndex>,
    /// When the last one ends.
    pub end: u64,
}

impl TrackColumns {
    /// The sections of these rows, of those that there are.
    pub(crate) fn spans_of(&self, rows: Range<usize>) -> Spans<'_> {
        let count = self.start.len();
        let end = rows.end.min(count);
        Spans {
            // As many as there are sections, so that no row needs a check of its own.
            start: &self.start,
            state: &self.state[..count],
            place: &self.place[..count],
            task: &self.task[..count],
            region: &self.region[..count],
            object: &self.object[..count],
            end: self.end,
            rows: rows.start.min(end)..end,
        }
    }
}

/// A section with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// What the thread was in.
    pub section: Section,
}

impl Span {
    /// Its length in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.end - self.start
    }
}

/// Sections of a track, one after the other: the columns are looked up once, not for each row.
#[derive(Clone, Debug)]
pub struct Spans<'a> {
    start: &'a [u64],
    state: &'a [u8],
    place: &'a [Place],
    task: &'a [TaskIndex],
    region: &'a [RegionIndex],
    object: &'a [ObjectIndex],
    end: u64,
    rows: Range<usize>,
}

impl Spans<'_> {
    /// The section of row `row` of the track.
    ///
    /// # Panics
    /// If the track has no such row.
    #[inline(always)]
    pub fn at(&self, row: usize) -> Span {
        // All columns are equally long; without further panics those that are not used are not read.
        Span {
            start: self.start[row],
            end: self.start.get(row + 1).copied().unwrap_or(self.end),
            section: Section {
                state: self
                    .state
                    .get(row)
                    .and_then(|state| State::ALL.get(usize::from(*state)))
                    .copied()
                    .unwrap_or(State::Unknown),
                place: self.place.get(row).copied().unwrap_or(Place::UNKNOWN),
                task: self.task.get(row).copied().unwrap_or(TaskIndex::NONE),
                region: self.region.get(row).copied().unwrap_or(RegionIndex::NONE),
                object: self.object.get(row).copied().unwrap_or(ObjectIndex::NONE),
            },
        }
    }
}

impl Spans<'_> {
    /// Hands over the sections whose states are wanted, with their rows.
    #[inline(always)]
    pub(crate) fn for_each_of(&self, wanted: &Wanted, mut take: impl FnMut(usize, Span)) {
        let first = self.rows.start;
        for (row, state) in self.state[self.rows.clone()].iter().enumerate() {
            if wanted[usize::from(*state)] {
                take(first + row, self.at(first + row));
            }
        }
    }

    /// Hands sections over for as long as `take` says so; whether it still does at the end. Of the columns only
    /// those that `take` looks at are read, and no section passes through memory.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, mut take: impl FnMut(Span) -> bool) -> bool {
        while self.rows.start < self.rows.end {
            let row = self.rows.start;
            self.rows.start += 1;
            if !take(self.at(row)) {
                return false;
            }
        }
        true
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        self.rows.next().map(|row| self.at(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    /// What `for_each` and the like rest on: the columns' ends are looked at once, not at each row.
    #[inline]
    fn fold<B, F: FnMut(B, Span) -> B>(self, init: B, mut f: F) -> B {
        let (first, count) = (self.rows.start, self.rows.len());
        let start = &self.start[first..][..count];
        let state = &self.state[first..][..count];
        let place = &self.place[first..][..count];
        let task = &self.task[first..][..count];
        let region = &self.region[first..][..count];
        let object = &self.object[first..][..count];
        let end = self.start.get(self.rows.end).copied().unwrap_or(self.end);
        let mut folded = init;
        for row in 0..count {
            let section = Section {
                state: State::ALL.get(state[row] as usize).copied().unwrap_or(State::Unknown),
                place: place[row],
                task: task[row],
                region: region[row],
                object: object[row],
            };
            let end = start.get(row + 1).copied().unwrap_or(end);
            folded = f(folded, Span { start: start[row], end, section });
        }
        folded
    }
}

impl DoubleEndedIterator for Spans<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Span> {
        self.rows.next_back().map(|row| self.at(row))
    }
}

impl ExactSizeIterator for Spans<'_> {}

/// All sections of a track, one after the other.
#[derive(Clone, Debug)]
pub struct TrackSpans<'a>(Parts<'a>);

#[derive(Clone, Debug)]
enum Parts<'a> {
    Rows(Spans<'a>),
    Pieces(Pieces<'a>),
}

impl Iterator for TrackSpans<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        match &mut self.0 {
            Parts::Rows(spans) => spans.next(),
            Parts::Pieces(pieces) => pieces.next(),
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Span) -> B>(self, init: B, f: F) -> B {
        match self.0 {
            Parts::Rows(spans) => spans.fold(init, f),
            Parts::Pieces(pieces) => pieces.fold(init, f),
        }
    }
}

impl TrackSpans<'_> {
    /// As [`Spans::hand_over`].
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, take: impl FnMut(Span) -> bool) -> bool {
        match &mut self.0 {
            Parts::Rows(spans) => spans.hand_over(take),
            Parts::Pieces(pieces) => pieces.hand_over(take),
        }
    }
}

/// Which numbers of states are wanted.
pub(crate) type Wanted = [bool; 256];

impl Default for Track {
    fn default() -> Self {
        Track::of(TrackColumns::default())
    }
}

impl Track {
    /// Its columns; those of a spliced track are made now.
    fn columns(&self) -> &TrackColumns {
        match &self.0 {
            Kind::Rows(columns) => columns,
            Kind::Spliced(splice) => splice.columns(),
        }
    }

    /// Its rows, for a track that refers to them.
    pub(crate) fn shared_columns(&self) -> Option<&Arc<TrackColumns>> {
        match &self.0 {
            Kind::Rows(columns) => Some(columns),
            Kind::Spliced(_) => None,
        }
    }

    /// Number of sections.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Rows(columns) => columns.start.len(),
            Kind::Spliced(splice) => splice.len(),
        }
    }

    /// Whether nothing is known of the thread.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the first section starts; `end` where there is none.
    pub fn start(&self) -> u64 {
        match &self.0 {
            Kind::Rows(columns) => columns.start.first().copied().unwrap_or(columns.end),
            Kind::Spliced(splice) => splice.start(),
        }
    }

    /// When the last section ends.
    pub fn end(&self) -> u64 {
        match &self.0 {
            Kind::Rows(columns) => columns.end,
            Kind::Spliced(splice) => splice.end(),
        }
    }

    /// The section of row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn span(&self, row: usize) -> Span {
        let TrackColumns { start, state, place, task, region, object, end } = self.columns();
        Span {
            start: start[row],
            end: start.get(row + 1).copied().unwrap_or(*end),
            section: Section {
                state: State::ALL.get(state[row] as usize).copied().unwrap_or(State::Unknown),
                place: place[row],
                task: task[row],
                region: region[row],
                object: object[row],
            },
        }
    }

    /// All sections in time order.
    pub fn spans(&self) -> TrackSpans<'_> {
        TrackSpans(match &self.0 {
            Kind::Rows(columns) => Parts::Rows(columns.spans_of(0..columns.start.len())),
            Kind::Spliced(splice) => Parts::Pieces(splice.pieces()),
        })
    }

    /// All sections, to be read by the numbers of their rows.
    pub fn rows(&self) -> Spans<'_> {
        self.spans_of(0..self.len())
    }

    /// The sections of these rows, of those that there are.
    pub fn spans_of(&self, rows: Range<usize>) -> Spans<'_> {
        self.columns().spans_of(rows)
    }

    /// The row that holds time `at`, if any.
    pub fn row_at(&self, at: u64) -> Option<usize> {
        if at >= self.end() {
            return None;
        }
        self.columns().start.partition_point(|start| *start <= at).checked_sub(1)
    }

    /// Starts of all sections, strictly rising.
    pub fn start_column(&self) -> &[u64] {
        &self.columns().start
    }

    /// Numbers of the states of all sections.
    pub fn state_column(&self) -> &[u8] {
        &self.columns().state
    }

    /// Hands over the sections whose states are wanted: of the others nothing but the state is read.
    pub fn for_each_in(&self, wanted: impl Fn(State) -> bool, mut take: impl FnMut(Span)) {
        let mut of_number: Wanted = [false; 256];
        for (number, of_number) in of_number.iter_mut().enumerate() {
            *of_number = wanted(State::ALL.get(number).copied().unwrap_or(State::Unknown));
        }
        match &self.0 {
            Kind::Rows(columns) => {
                columns.spans_of(0..columns.start.len()).for_each_of(&of_number, |_, span| take(span));
            }
            Kind::Spliced(splice) => splice.for_each_in(&of_number, take),
        }
    }

    /// Its columns as bytes, in the order of [`TrackColumns`], for who stores it.
    pub fn stored(&self) -> [&[u8]; 6] {
        let TrackColumns { start, state, place, task, region, object, end: _ } = self.columns();
        [
            start.as_bytes(),
            state.as_bytes(),
            place.as_bytes(),
            task.as_bytes(),
            region.as_bytes(),
            object.as_bytes(),
        ]
    }

    /// A track of stored columns; `None` where they are not equally long.
    pub fn from_columns(columns: TrackColumns) -> Option<Track> {
        let TrackColumns { start, state, place, task, region, object, end } = &columns;
        let lengths = [state.len(), place.len(), task.len(), region.len(), object.len()];
        let sound = lengths.iter().all(|length| *length == start.len())
            && start.last().is_none_or(|last| last <= end);
        sound.then(|| Track::of(columns))
    }

    /// A track of columns that were built to be equally long.
    pub(crate) fn of(columns: TrackColumns) -> Track {
        Track(Kind::Rows(Arc::new(columns)))
    }

    /// A track that refers to the rows of others.
    pub(crate) fn spliced(splice: Splice) -> Track {
        Track(Kind::Spliced(Box::new(splice)))
    }
}
