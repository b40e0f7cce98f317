//! A track while it grows.
//!
//! A merged trace goes from thread to thread with each event. So the newest sections of a thread lie beside
//! each other, where one line of the cache holds two of them, and go to the six columns by the dozen.
//!
//! Most threads never wait for a named object, and those of many runtimes are in no region: of these columns nothing
//! is kept while they name nothing, a third of a track's memory.

use crate::column::SharedBytes;
use crate::track::Track;
use crate::{Column, Group, ObjectIndex, Place, RegionIndex, Section, State, TaskIndex, TrackColumns};
use bytemuck::Pod;
use std::sync::Arc;

/// So many sections wait. 64 threads' fit into the first cache of a core.
const WAITING: usize = 16;

/// A section that goes on until the next one starts.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    section: Section,
}

/// Takes the sections of one thread, in time order.
#[derive(Debug)]
pub(crate) struct TrackBuilder {
    start: Vec<u64>,
    state: Vec<u8>,
    place: Vec<Place>,
    task: Vec<TaskIndex>,
    region: MostlyNone<RegionIndex>,
    object: MostlyNone<ObjectIndex>,
    end: u64,
    /// What follows the columns; never empty once there is a section. It lies in place, as each change looks for it.
    newest: [Row; WAITING],
    waiting: usize,
}

impl Default for TrackBuilder {
    fn default() -> Self {
        TrackBuilder {
            start: Vec::new(),
            state: Vec::new(),
            place: Vec::new(),
            task: Vec::new(),
            region: MostlyNone::default(),
            object: MostlyNone::default(),
            end: 0,
            newest: [Row { start: 0, section: Section::of(State::Unknown) }; WAITING],
            waiting: 0,
        }
    }
}

impl TrackBuilder {
    /// Makes room for so many sections, so that the columns need not be moved while they grow. Room that is not used
    /// takes no memory.
    pub(crate) fn expect(&mut self, sections: usize) {
        self.start.reserve_exact(sections);
        self.state.reserve_exact(sections);
        self.place.reserve_exact(sections);
        self.task.reserve_exact(sections);
        self.region.expected = sections;
        self.object.expected = sections;
    }

    /// Whether nothing is known of the thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// When the last section ends, as far as is known.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// From `at` on the thread is in `section`. A time before the last section's start is taken as
    /// that start; the answer is how far it was before.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: u64, section: Section) -> u64 {
        let Some(last) = self.newest[..self.waiting].last_mut() else {
            self.end = self.end.max(at);
            self.newest[0] = Row { start: at, section };
            self.waiting = 1;
            return 0;
        };
        let back = last.start.saturating_sub(at);
        let at = at.max(last.start);
        self.end = self.end.max(at);
        if last.start == at {
            last.section = section;
        } else if last.section != section {
            self.push(at, section);
        }
        back
    }

    /// A section starts at `start`, later than those before.
    #[inline(always)]
    pub(crate) fn push(&mut self, start: u64, section: Section) {
        if self.waiting == WAITING {
            self.store(WAITING - 1);
        }
        self.newest[self.waiting] = Row { start, section };
        self.waiting += 1;
    }

    /// The section that ended at `at` was this one, if it was a wait for a lock too.
    pub(crate) fn amend(&mut self, at: u64, section: Section) {
        let is_wait = |section: Section| section.state.group() == Group::Mutex;
        let newest = &mut self.newest[..self.waiting];
        if let Some(row) = newest.iter().rposition(|row| row.start < at) {
            let end = newest.get(row + 1).map_or(self.end, |next| next.start);
            if end == at && is_wait(newest[row].section) {
                newest[row].section = section;
            }
            return;
        }
        // What follows the columns starts later: rare, as waits are told of when they end.
        let Some(row) = self.start.partition_point(|start| *start < at).checked_sub(1) else {
            return;
        };
        let next = self.start.get(row + 1).copied().or(newest.first().map(|row| row.start));
        let state = State::ALL.get(usize::from(self.state[row])).copied().unwrap_or(State::Unknown);
        if next == Some(at) && is_wait(Section::of(state)) {
            self.replace(row, section);
        }
    }

    /// Moves the first of the newest sections to the columns.
    #[inline(never)]
    fn store(&mut self, count: usize) {
        let rows = &self.newest[..count];
        self.start.extend(rows.iter().map(|row| row.start));
        self.state.extend(rows.iter().map(|row| row.section.state as u8));
        self.place.extend(rows.iter().map(|row| row.section.place));
        self.task.extend(rows.iter().map(|row| row.section.task));
        self.region.extend(rows.iter().map(|row| row.section.region), RegionIndex::NONE);
        self.object.extend(rows.iter().map(|row| row.section.object), ObjectIndex::NONE);
        self.newest.copy_within(count..self.waiting, 0);
        self.waiting -= count;
    }

    fn replace(&mut self, row: usize, section: Section) {
        self.state[row] = section.state as u8;
        self.place[row] = section.place;
        self.task[row] = section.task;
        self.region.replace(row, section.region, RegionIndex::NONE);
        self.object.replace(row, section.object, ObjectIndex::NONE);
    }

    /// The last section ends at `at`, or where it started, if that is later.
    pub(crate) fn close(&mut self, at: u64) {
        self.end = self.newest[..self.waiting].last().map_or(at, |last| at.max(last.start));
    }

    /// Sections so far.
    pub(crate) fn len(&self) -> usize {
        self.start.len() + self.waiting
    }

    /// The track. `nothing` is as long as the longest of the tracks.
    pub(crate) fn finish(self, nothing: &Nothing) -> Track {
        Track::of(self.finish_columns(nothing))
    }

    /// The columns of the track.
    pub(crate) fn finish_columns(mut self, nothing: &Nothing) -> TrackColumns {
        self.store(self.waiting);
        TrackColumns {
            start: self.start.into(),
            state: self.state.into(),
            place: self.place.into(),
            task: self.task.into(),
            region: self.region.finish(nothing, RegionIndex::NONE),
            object: self.object.finish(nothing, ObjectIndex::NONE),
            end: self.end,
        }
    }
}

/// A column of which nothing is kept while all its rows are none.
#[derive(Debug)]
struct MostlyNone<T> {
    /// Rows, while all are none; later 0.
    none: usize,
    values: Vec<T>,
    /// Rows that there will be, about.
    expected: usize,
}

impl<T> Default for MostlyNone<T> {
    fn default() -> Self {
        MostlyNone { none: 0, values: Vec::new(), expected: 0 }
    }
}

impl<T: Pod + PartialEq> MostlyNone<T> {
    fn extend(&mut self, rows: impl ExactSizeIterator<Item = T> + Clone, none: T) {
        if self.values.is_empty() {
            if rows.clone().all(|row| row == none) {
                self.none += rows.len();
                return;
            }
            self.fill(none);
        }
        self.values.extend(rows);
    }

    fn replace(&mut self, row: usize, value: T, none: T) {
        if self.values.is_empty() {
            if value == none {
                return;
            }
            self.fill(none);
        }
        self.values[row] = value;
    }

    #[cold]
    fn fill(&mut self, none: T) {
        self.values.reserve_exact(self.expected.max(self.none + WAITING));
        self.values.resize(std::mem::take(&mut self.none), none);
    }

    fn finish(mut self, nothing: &Nothing, none: T) -> Column<T> {
        if self.none > 0 {
            match Column::shared(&nothing.0, 0..self.none * size_of::<T>()) {
                Some(column) => return column,
                None => self.fill(none),
            }
        }
        self.values.into()
    }
}

/// Rows of none for the columns of all tracks that name nothing.
pub(crate) struct Nothing(SharedBytes);

impl Nothing {
    /// So many rows.
    pub(crate) fn of(rows: usize) -> Nothing {
        let none: Column<RegionIndex> = vec![RegionIndex::NONE; rows].into();
        Nothing(Arc::new(none))
    }
}

impl AsRef<[u8]> for Column<RegionIndex> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn a_section_set_twice_at_one_time_keeps_the_second() {
        let mut track = TrackBuilder::default();
        track.set(5, Section::of(State::Serial));
        track.set(9, Section::of(State::Task));
        track.set(9, Section::of(State::Barrier));
        track.close(12);
        let track = track.finish(&Nothing::of(1000));
        let spans: Vec<_> = track.spans().map(|s| (s.start, s.end, s.section.state)).collect();
        assert_eq!(spans, [(5, 9, State::Serial), (9, 12, State::Barrier)]);
        assert_eq!((track.row_at(4), track.row_at(8), track.row_at(12)), (None, Some(0), None));
    }

    #[test]
    fn time_that_runs_back_is_clamped_and_told() {
        let mut track = TrackBuilder::default();
        assert_eq!((track.is_empty(), track.set(10, Section::of(State::Serial))), (true, 0));
        assert_eq!((track.is_empty(), track.set(7, Section::of(State::Task))), (false, 3));
        track.close(3);
        let track = track.finish(&Nothing::of(1000));
        assert_eq!((track.len(), track.start(), track.end()), (1, 10, 10));
    }

    #[test]
    fn many_sections_come_out_as_they_went_in_and_those_that_are_alike_join() {
        for count in [1, 15, 16, 17, 31, 32, 33, 1000_u64] {
            let mut track = TrackBuilder::default();
            for at in 0..count {
                let state = if at % 2 == 0 { State::Task } else { State::Barrier };
                track.set(10 * at, Section::of(state));
                track.set(10 * at + 5, Section::of(state));
            }
            track.close(10 * count);
            let track = track.finish(&Nothing::of(1000));
            let starts: Vec<u64> = track.spans().map(|span| span.start).collect();
            assert_eq!(starts, (0..count).map(|at| 10 * at).collect::<Vec<_>>());
            assert_eq!(track.end(), 10 * count);
        }
    }

    #[test]
    fn a_wait_is_told_of_at_its_end_and_nothing_else_is_changed() {
        for count in [3, 16, 17, 40_u64] {
            for told in 1..=count {
                let mut track = TrackBuilder::default();
                for at in 0..count {
                    let state = if at % 3 == 0 { State::CriticalWait } else { State::Task };
                    track.set(10 * at, Section::of(state));
                }
                track.close(10 * count);
                track.amend(10 * told, Section::of(State::LockWait));
                track.amend(10 * told - 3, Section::of(State::OrderedWait));
                let track = track.finish(&Nothing::of(1000));
                let changed: Vec<u64> =
                    track.spans().filter(|s| s.section.state == State::LockWait).map(|s| s.end).collect();
                let is_wait = (told - 1) % 3 == 0;
                assert_eq!(changed, if is_wait { vec![10 * told] } else { Vec::new() }, "{told} of {count}");
                assert!(track.spans().all(|span| span.section.state != State::OrderedWait));
            }
        }
    }

    #[test]
    fn what_names_nothing_is_kept_once_and_what_names_something_is_kept() {
        for named in [None, Some(0), Some(15), Some(40), Some(99)] {
            let mut track = TrackBuilder::default();
            track.expect(if named == Some(40) { 100 } else { 0 });
            for at in 0..100_u64 {
                let state = if at % 2 == 0 { State::CriticalWait } else { State::Task };
                let region = if named == Some(at) { RegionIndex(7) } else { RegionIndex::NONE };
                track.set(10 * at, Section { region, ..Section::of(state) });
            }
            track.close(1000);
            let amended = Section { object: ObjectIndex(3), ..Section::of(State::LockWait) };
            track.amend(10, amended);
            let track = track.finish(&Nothing::of(100));
            let regions: Vec<u64> =
                track.spans().filter(|s| s.section.region == RegionIndex(7)).map(|s| s.start / 10).collect();
            assert_eq!(regions, named.filter(|at| *at > 0).into_iter().collect::<Vec<_>>());
            let objects = track.spans().filter(|span| span.section.object.is_some()).count();
            assert_eq!((track.len(), objects), (100, 1));
        }
    }
}
