//! The columns of a track, one row per section, and the sections that are read from them.

use crate::activities::{Activities, ActivityTimes, RareRow, rare_activity, rare_rows_before};
use crate::change::Section;
use crate::column::Column;
use crate::ids::{ObjectIndex, Place, RegionIndex, TaskIndex};
use crate::kept_times::KeptTimes;
use crate::longest::{LongestSections, Stretch};
use crate::runs::{RunSlices, Runs};
use crate::starts::{Starts, TrackStarts};
use std::ops::Range;
use std::sync::Arc;
use taskscope_cause::State;

/// The columns of a track, for storage: six bytes per section, and rarely changing values only where they change.
#[derive(Clone, Debug, Default)]
pub struct TrackColumns {
    /// Lower halves of the starts of sections, which rise strictly.
    pub start: Column<u32>,
    /// Upper halves.
    pub start_high: Runs<u32>,
    /// Numbers of their activities, in `activities`.
    pub activity: Column<u16>,
    /// Sections with activities without a number.
    pub rare: Column<RareRow>,
    /// Their tasks.
    pub task: Runs<TaskIndex>,
    /// Their regions.
    pub region: Runs<RegionIndex>,
    /// Awaited objects.
    pub object: Runs<ObjectIndex>,
    /// End of the last one.
    pub end: u64,
    /// Activities by number; the tracks of an execution share them.
    pub activities: Arc<Activities>,
    /// Times of all sections but the last, if they were summed.
    pub times: Option<KeptTimes>,
}

impl TrackColumns {
    pub(crate) fn starts(&self) -> TrackStarts<'_> {
        TrackStarts { low: &self.start, high: self.start_high.slices() }
    }

    pub(crate) fn len(&self) -> usize {
        self.start.len()
    }

    pub(crate) fn slices(&self) -> Slices<'_> {
        let low: &[u32] = &self.start;
        Slices {
            low,
            high: self.start_high.slices(),
            // As many as there are sections, so that no row needs a check of its own.
            activity: &self.activity[..low.len()],
            numbered: self.activities.all(),
            rare: &self.rare,
            task: self.task.slices(),
            region: self.region.slices(),
            object: self.object.slices(),
            end: self.end,
        }
    }

    /// Adds the time of each of these rows to `sums`; the first one begins at `start`, the last one ends at `end`.
    pub(crate) fn add_times(&self, rows: Range<usize>, start: u64, end: u64, sums: &mut ActivityTimes) {
        if let Some(times) = self.times.as_ref().and_then(KeptTimes::whole)
            && rows == (0..self.len())
            && !rows.is_empty()
        {
            let (starts, last) = (self.starts(), rows.end - 1);
            let mut add = |number: u16, ns: u64| {
                sums.will_set_those_of(&[number]);
                if let Some(sum) = sums.by_number(number) {
                    *sum = sum.wrapping_add(ns);
                }
            };
            let known = times.iter().zip(0..).filter(|(ns, _)| **ns > 0);
            known.for_each(|(ns, number)| add(number, *ns));
            add(self.activity[0], starts.at(0).wrapping_sub(start));
            return add(self.activity[last], end.wrapping_sub(starts.at(last)));
        }
        let (columns, mut rare) = (self.slices(), 0);
        sums.will_set_those_of(&columns.activity[rows.clone()]);
        self.for_each_time(rows, start, end, |row, ns| match sums.by_number(columns.activity[row]) {
            Some(sum) => *sum = sum.wrapping_add(ns),
            None => {
                let sum = sums.rare(columns.rare_after(row, &mut rare));
                *sum = sum.wrapping_add(ns);
            }
        });
    }

    /// Takes each of these rows for the longest of its activity; the first one begins at `start`, the last one ends at
    /// `end`.
    pub(crate) fn find_longest(
        &self,
        rows: Range<usize>,
        start: u64,
        end: u64,
        longest: &mut LongestSections,
    ) {
        let (columns, starts, first, mut rare) = (self.slices(), self.starts(), rows.start, 0);
        longest.will_set_those_of(&columns.activity[rows.clone()]);
        let start_of = |row| if row == first { start } else { starts.at(row) };
        self.for_each_time(rows, start, end, |row, ns| match longest.by_number(columns.activity[row]) {
            Some(known) if ns < known.ns => {}
            Some(known) => known.take(Stretch { ns, start: start_of(row) }),
            None => {
                let activity = columns.rare_after(row, &mut rare);
                longest.rare(activity).take(Stretch { ns, start: start_of(row) });
            }
        });
    }

    /// Hands over each of these rows with its time; the first one begins at `start`, the last one ends at `end`.
    #[inline(always)]
    fn for_each_time(&self, rows: Range<usize>, start: u64, end: u64, mut take: impl FnMut(usize, u64)) {
        if rows.is_empty() {
            return;
        }
        let (columns, starts, last) = (self.slices(), self.starts(), rows.end - 1);
        if rows.start == last {
            return take(last, end.saturating_sub(start));
        }
        take(rows.start, starts.at(rows.start + 1).saturating_sub(start));
        let mut row = rows.start + 1;
        let mut run = columns.high.run_of(row);
        while row < last {
            // Lower halves give the time between starts with equal upper halves.
            let until = columns.high.end(run).min(last).max(row + 1);
            for row in row..until - 1 {
                take(row, u64::from(columns.low[row + 1].wrapping_sub(columns.low[row])));
            }
            take(until - 1, starts.at(until) - starts.at(until - 1));
            (row, run) = (until, run + 1);
        }
        take(last, end.saturating_sub(starts.at(last)));
    }

    /// The sections of these rows, of those that there are.
    pub(crate) fn spans_of(&self, rows: Range<usize>) -> Spans<'_> {
        let end = rows.end.min(self.len());
        Spans { columns: self.slices(), rows: rows.start.min(end)..end, now: Alike::default(), rare: 0 }
    }
}

/// A section with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// The thread's section.
    pub section: Section,
}

impl Span {
    /// Its length in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.end - self.start
    }
}

/// Columns that were looked up once: one may be in a file, and finding it there costs more than reading a
/// row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices<'a> {
    low: &'a [u32],
    high: RunSlices<'a, u32>,
    activity: &'a [u16],
    numbered: &'a [(State, Place)],
    rare: &'a [RareRow],
    task: RunSlices<'a, TaskIndex>,
    region: RunSlices<'a, RegionIndex>,
    object: RunSlices<'a, ObjectIndex>,
    end: u64,
}

impl Slices<'_> {
    #[inline(always)]
    pub(crate) fn activity_of(&self, row: usize) -> (State, Place) {
        match self.numbered.get(usize::from(self.activity[row])) {
            Some(activity) => *activity,
            None => self.rare_activity(row),
        }
    }

    #[cold]
    fn rare_activity(&self, row: usize) -> (State, Place) {
        rare_activity(self.rare, row).unwrap_or((State::Unknown, Place::UNKNOWN))
    }

    /// The same, for reading one row after the other; `rare` counts the rows with their own activity after this one.
    #[inline(always)]
    fn activity_after(&self, row: usize, rare: &mut usize) -> (State, Place) {
        match self.numbered.get(usize::from(self.activity[row])) {
            Some(activity) => *activity,
            None => self.rare_after(row, rare),
        }
    }

    #[inline(never)]
    fn rare_after(&self, row: usize, rare: &mut usize) -> (State, Place) {
        *rare += rare_rows_before(self.rare.get(*rare..).unwrap_or(&[]), row);
        let here = self.rare.get(*rare..).unwrap_or(&[]);
        rare_activity(&here[..here.len().min(1)], row).unwrap_or((State::Unknown, Place::UNKNOWN))
    }
}

/// Common values of rows, and their runs.
#[derive(Clone, Copy, Debug)]
struct Alike {
    /// Rows before it have these upper halves of their starts, and of the starts of the rows after them, in their places.
    until_high: usize,
    high: u64,
    high_of_next: u64,
    /// Rows before it have all of this.
    until: usize,
    task: TaskIndex,
    region: RegionIndex,
    object: ObjectIndex,
    runs: [usize; 4],
}

impl Default for Alike {
    fn default() -> Self {
        Alike {
            until_high: 0,
            high: 0,
            high_of_next: 0,
            until: 0,
            task: TaskIndex::NONE,
            region: RegionIndex::NONE,
            object: ObjectIndex::NONE,
            runs: [0; 4],
        }
    }
}

/// Sections of a track, one after the other.
#[derive(Clone, Debug)]
pub struct Spans<'a> {
    columns: Slices<'a>,
    rows: Range<usize>,
    now: Alike,
    /// Number of read rows that keep their own activity.
    rare: usize,
}

impl Spans<'_> {
    /// The section of row `row` of the track.
    ///
    /// # Panics
    /// If the track has no such row.
    #[inline]
    pub fn at(&self, row: usize) -> Span {
        let Slices { low, high, task, region, object, end, .. } = self.columns;
        let starts = TrackStarts { low, high };
        let (state, place) = self.columns.activity_of(row);
        Span {
            start: starts.at(row),
            end: starts.get(row + 1).unwrap_or(end),
            section: Section {
                state,
                place,
                task: task.at(row, TaskIndex::NONE),
                region: region.at(row, RegionIndex::NONE),
                object: object.at(row, ObjectIndex::NONE),
            },
        }
    }

    /// State and place of a row. The other values of its section need a search.
    ///
    /// # Panics
    /// As [`Spans::at`].
    #[inline]
    pub fn activity_at(&self, row: usize) -> (State, Place) {
        self.columns.activity_of(row)
    }

    /// The task of a row.
    #[inline]
    pub fn task_at(&self, row: usize) -> TaskIndex {
        self.columns.task.at(row, TaskIndex::NONE)
    }

    /// The region of a row.
    #[inline]
    pub fn region_at(&self, row: usize) -> RegionIndex {
        self.columns.region.at(row, RegionIndex::NONE)
    }

    /// The awaited object of a row.
    #[inline]
    pub fn object_at(&self, row: usize) -> ObjectIndex {
        self.columns.object.at(row, ObjectIndex::NONE)
    }

    /// The section of a row at or after the previously read one.
    ///
    /// # Panics
    /// As [`Spans::at`].
    #[inline(always)]
    pub fn read(&mut self, row: usize) -> Span {
        if row >= self.now.until {
            self.find(row);
        }
        let Slices { low, end, .. } = self.columns;
        let Alike { high, high_of_next, task, region, object, .. } = self.now;
        let (state, place) = self.columns.activity_after(row, &mut self.rare);
        Span {
            start: high | u64::from(low[row]),
            end: low.get(row + 1).map_or(end, |low| high_of_next | u64::from(*low)),
            section: Section { state, place, task, region, object },
        }
    }

    /// Finds the runs of a row.
    #[inline(never)]
    fn find(&mut self, row: usize) {
        if row >= self.now.until_high {
            self.find_high(row);
        }
        let Slices { task, region, object, .. } = self.columns;
        let now = &mut self.now;
        let [_, a, b, c] = now.runs;
        let (a, b, c) = match now.until {
            0 => (task.run_of(row), region.run_of(row), object.run_of(row)),
            _ => (task.later(a, row), region.later(b, row), object.later(c, row)),
        };
        now.runs = [now.runs[0], a, b, c];
        now.until = now.until_high.min(task.end(a)).min(region.end(b)).min(object.end(c));
        now.task = task.value(a, TaskIndex::NONE);
        now.region = region.value(b, RegionIndex::NONE);
        now.object = object.value(c, ObjectIndex::NONE);
    }

    #[inline(never)]
    fn find_high(&mut self, row: usize) {
        let high = self.columns.high;
        let now = &mut self.now;
        let run = if now.until_high == 0 { high.run_of(row) } else { high.later(now.runs[0], row) };
        let upper = |run| u64::from(high.value(run, 0)) << 32;
        // The row after the last of a run has another upper half.
        let is_last = high.end(run) == row + 1;
        now.until_high = if is_last { row + 1 } else { high.end(run).saturating_sub(1) };
        (now.high, now.high_of_next) = (upper(run), upper(run + usize::from(is_last)));
        now.runs[0] = run;
    }

    /// Passes the sections with wanted activities, with their rows.
    #[inline(always)]
    pub(crate) fn for_each_of<W: Fn(State, Place) -> bool>(
        &mut self,
        wanted: &Wanted<W>,
        mut take: impl FnMut(usize, Span),
    ) {
        if !wanted.some && self.columns.rare.is_empty() {
            return;
        }
        let (first, columns, mut rare) = (self.rows.start, self.columns, 0);
        for (row, number) in columns.activity[self.rows.clone()].iter().enumerate() {
            if wanted.has(*number, || columns.activity_after(first + row, &mut rare)) {
                take(first + row, self.read(first + row));
            }
        }
    }

    /// Passes the activities of its sections, while `to` accepts them; returns whether it still does at the end. With
    /// `first`, the next section starts then.
    #[inline(always)]
    pub(crate) fn hand_over_activities(
        &mut self,
        first: &mut Option<u64>,
        to: &mut impl TakesActivities,
    ) -> bool {
        while self.rows.start < self.rows.end {
            if self.rows.start >= self.now.until_high {
                self.find_high(self.rows.start);
            }
            let (columns, high) = (self.columns, self.now.high);
            let alike = self.rows.start..self.now.until_high.min(self.rows.end);
            let rows = columns.low[alike.clone()].iter().zip(&columns.activity[alike]);
            for (low, number) in rows {
                let row = self.rows.start;
                self.rows.start += 1;
                let start = first.take().unwrap_or(high | u64::from(*low));
                let goes_on = if usize::from(*number) < columns.numbered.len() {
                    to.numbered(start, *number)
                } else {
                    let (state, place) = columns.rare_after(row, &mut self.rare);
                    to.other(start, state, place)
                };
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }

    /// Number of unread sections.
    pub(crate) fn left(&self) -> usize {
        self.rows.len()
    }
}

/// Receives the activities of a thread's sections, one after the other, and returns whether it accepts more.
pub trait TakesActivities {
    /// Begins an activity at `start`, by its number in the execution.
    fn numbered(&mut self, start: u64, number: u16) -> bool;

    /// Begins a state at a place at `start`.
    fn other(&mut self, start: u64, state: State, place: Place) -> bool;
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let row = self.rows.next()?;
        Some(self.read(row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }

    /// The base of `for_each` and similar methods.
    #[inline]
    fn fold<B, F: FnMut(B, Span) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        for row in self.rows.clone() {
            folded = f(folded, self.read(row));
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

/// The wanted activities.
pub(crate) struct Wanted<W> {
    wanted: W,
    /// By number; empty for tracks with fewer rows than there are numbers, since these look up less than it takes to fill it.
    numbers: Vec<bool>,
    /// Whether any number may be.
    some: bool,
}

impl<W: Fn(State, Place) -> bool> Wanted<W> {
    /// For a track with this number of rows.
    pub fn of(wanted: W, activities: &Activities, rows: usize) -> Wanted<W> {
        if rows < activities.count() {
            return Wanted { wanted, numbers: Vec::new(), some: true };
        }
        let numbers: Vec<bool> =
            activities.all().iter().map(|(state, place)| wanted(*state, *place)).collect();
        let some = numbers.contains(&true);
        Wanted { wanted, numbers, some }
    }

    /// Whether a number, or an activity that is in no table, is in the set.
    #[inline(always)]
    pub fn has(&self, number: u16, activity: impl FnOnce() -> (State, Place)) -> bool {
        match self.numbers.get(usize::from(number)) {
            Some(wanted) => *wanted,
            None => self.has_activity(activity()),
        }
    }

    pub fn has_activity(&self, (state, place): (State, Place)) -> bool {
        (self.wanted)(state, place)
    }
}
