//! One thread's time, cut into sections that never overlap: columns, one row per section.
//!
//! A CPU shows the sections of its threads: its track refers to the rows of theirs, and has columns of its own only
//! after a request for a row by its number.

use crate::activities::ActivityTimes;
use crate::ids::Place;
use crate::longest::LongestSections;
use crate::splice::{Pieces, Splice};
use crate::starts::{Starts, TrackStarts};
use crate::track_columns::{Slices, Span, Spans, TakesActivities, TrackColumns, Wanted};
use std::ops::Range;
use std::sync::Arc;
use taskscope_cause::State;

/// The sections of one thread, in time order. A section ends at the start of the next one.
#[derive(Clone, Debug)]
pub struct Track(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Rows(Arc<TrackColumns>),
    Spliced(Box<Splice>),
}

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
    /// As [`Spans::hand_over_activities`].
    #[inline(always)]
    pub(crate) fn hand_over_activities(&mut self, to: &mut impl TakesActivities) -> bool {
        match &mut self.0 {
            Parts::Rows(spans) => spans.hand_over_activities(&mut None, to),
            Parts::Pieces(pieces) => pieces.hand_over_activities(to),
        }
    }
}

/// The states of a track's sections.
#[derive(Clone, Copy, Debug)]
pub struct TrackStates<'a>(Slices<'a>);

impl TrackStates<'_> {
    /// The state of a row.
    ///
    /// # Panics
    /// If the row does not exist.
    #[inline(always)]
    pub fn at(&self, row: usize) -> State {
        self.0.activity_of(row).0
    }
}

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

    /// For a track that refers to others: begin, end and columns of each shown piece.
    pub(crate) fn sources(&self) -> Vec<(u64, u64, *const TrackColumns)> {
        match &self.0 {
            Kind::Rows(_) => Vec::new(),
            Kind::Spliced(splice) => splice.sources().collect(),
        }
    }

    /// Number of sections.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Rows(columns) => columns.len(),
            Kind::Spliced(splice) => splice.len(),
        }
    }

    /// Whether nothing is known of the thread.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The start of the first section; `end` if there is none.
    pub fn start(&self) -> u64 {
        match &self.0 {
            Kind::Rows(columns) => columns.starts().get(0).unwrap_or(columns.end),
            Kind::Spliced(splice) => splice.start(),
        }
    }

    /// End of the last section.
    pub fn end(&self) -> u64 {
        match &self.0 {
            Kind::Rows(columns) => columns.end,
            Kind::Spliced(splice) => splice.end(),
        }
    }

    /// The section of row `row`.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn span(&self, row: usize) -> Span {
        self.rows().at(row)
    }

    /// All sections in time order.
    pub fn spans(&self) -> TrackSpans<'_> {
        TrackSpans(match &self.0 {
            Kind::Rows(columns) => Parts::Rows(columns.spans_of(0..columns.len())),
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
        self.starts().partition_point(|start| start <= at).checked_sub(1)
    }

    /// Starts of all sections.
    pub fn starts(&self) -> TrackStarts<'_> {
        self.columns().starts()
    }

    /// States of all sections.
    pub fn states(&self) -> TrackStates<'_> {
        TrackStates(self.columns().slices())
    }

    /// Passes the sections with wanted states and places; of the others only the activities are read.
    pub fn for_each_in(&self, wanted: impl Fn(State, Place) -> bool, mut take: impl FnMut(Span)) {
        match &self.0 {
            Kind::Rows(columns) => {
                let wanted = Wanted::of(wanted, &columns.activities, columns.len());
                columns.spans_of(0..columns.len()).for_each_of(&wanted, |_, span| take(span));
            }
            Kind::Spliced(splice) => splice.for_each_in(wanted, take),
        }
    }

    /// Adds the time of each section to `sums`.
    pub fn add_times(&self, sums: &mut ActivityTimes) {
        match &self.0 {
            Kind::Rows(columns) => columns.add_times(0..columns.len(), self.start(), columns.end, sums),
            Kind::Spliced(splice) => splice.add_times(sums),
        }
    }

    /// Finds the longest section of each activity, beside those that `longest` has.
    pub fn find_longest(&self, longest: &mut LongestSections) {
        match &self.0 {
            Kind::Rows(columns) => columns.find_longest(0..columns.len(), self.start(), columns.end, longest),
            Kind::Spliced(splice) => splice.find_longest(longest),
        }
    }

    /// Its columns as bytes, in the order of [`TrackColumns`], for storage.
    pub fn stored(&self) -> [&[u8]; 7] {
        let TrackColumns {
            start,
            start_high,
            activity,
            rare,
            task,
            region,
            object,
            end: _,
            activities: _,
            times: _,
        } = self.columns();
        [
            start.as_bytes(),
            start_high.as_bytes(),
            activity.as_bytes(),
            rare.as_bytes(),
            task.as_bytes(),
            region.as_bytes(),
            object.as_bytes(),
        ]
    }

    /// A track of stored columns; `None` if their lengths differ.
    pub fn from_columns(columns: TrackColumns) -> Option<Track> {
        let starts = columns.starts();
        let sound = columns.activity.len() == starts.len()
            && starts.len().checked_sub(1).is_none_or(|last| starts.at(last) <= columns.end);
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
