//! One thread's time, cut into sections that never overlap: columns, one row per section.

use crate::{Column, ObjectIndex, Place, RegionIndex, Section, State, TaskIndex};

/// The sections of one thread, in time order. A section ends where the next one starts.
#[derive(Clone, Debug, Default)]
pub struct Track {
    start: Column<u64>,
    /// Numbers of states.
    state: Column<u8>,
    place: Column<Place>,
    task: Column<TaskIndex>,
    region: Column<RegionIndex>,
    object: Column<ObjectIndex>,
    end: u64,
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
    rows: std::ops::Range<usize>,
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

impl Track {
    /// Number of sections.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether nothing is known of the thread.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// When the first section starts; `end` where there is none.
    pub fn start(&self) -> u64 {
        self.start.first().copied().unwrap_or(self.end)
    }

    /// When the last section ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The section of row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn span(&self, row: usize) -> Span {
        Span {
            start: self.start[row],
            end: self.start.get(row + 1).copied().unwrap_or(self.end),
            section: Section {
                state: State::ALL.get(self.state[row] as usize).copied().unwrap_or(State::Unknown),
                place: self.place[row],
                task: self.task[row],
                region: self.region[row],
                object: self.object[row],
            },
        }
    }

    /// All sections in time order.
    pub fn spans(&self) -> Spans<'_> {
        self.spans_of(0..self.len())
    }

    /// The sections of these rows, of those that there are.
    pub fn spans_of(&self, rows: std::ops::Range<usize>) -> Spans<'_> {
        let end = rows.end.min(self.len());
        Spans {
            // As many as there are sections, so that no row needs a check of its own.
            start: &self.start,
            state: &self.state[..self.len()],
            place: &self.place[..self.len()],
            task: &self.task[..self.len()],
            region: &self.region[..self.len()],
            object: &self.object[..self.len()],
            end: self.end,
            rows: rows.start.min(end)..end,
        }
    }

    /// The row that holds time `at`, if any.
    pub fn row_at(&self, at: u64) -> Option<usize> {
        if at >= self.end {
            return None;
        }
        self.start.partition_point(|start| *start <= at).checked_sub(1)
    }

    /// Starts of all sections, strictly rising.
    pub fn start_column(&self) -> &[u64] {
        &self.start
    }

    /// Numbers of the states of all sections.
    pub fn state_column(&self) -> &[u8] {
        &self.state
    }

    /// The rows of the sections whose states are wanted: of the others nothing but the state is read.
    pub fn rows_in(&self, wanted: impl Fn(State) -> bool) -> impl Iterator<Item = usize> + '_ {
        let mut of_number = [false; 256];
        for (number, of_number) in of_number.iter_mut().enumerate() {
            *of_number = wanted(State::ALL.get(number).copied().unwrap_or(State::Unknown));
        }
        let rows = self.state.iter().enumerate();
        rows.filter(move |(_, state)| of_number[usize::from(**state)]).map(|(row, _)| row)
    }

    /// Its columns as bytes, in the order of [`TrackColumns`], for who stores it.
    pub fn stored(&self) -> [&[u8]; 6] {
        [
            self.start.as_bytes(),
            self.state.as_bytes(),
            self.place.as_bytes(),
            self.task.as_bytes(),
            self.region.as_bytes(),
            self.object.as_bytes(),
        ]
    }

    /// A track of stored columns; `None` where they are not equally long.
    pub fn from_columns(columns: TrackColumns) -> Option<Track> {
        let TrackColumns { start, state, place, task, region, object, end } = columns;
        let lengths = [state.len(), place.len(), task.len(), region.len(), object.len()];
        let sound = lengths.iter().all(|length| *length == start.len())
            && start.last().is_none_or(|last| *last <= end);
        sound.then_some(Track { start, state, place, task, region, object, end })
    }

    /// A track of columns that were built to be equally long.
    pub(crate) fn of(columns: TrackColumns) -> Track {
        let TrackColumns { start, state, place, task, region, object, end } = columns;
        Track { start, state, place, task, region, object, end }
    }
}
