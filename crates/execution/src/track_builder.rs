//! A track while it grows.
//!
//! A merged trace goes from thread to thread with each event. So the newest sections of a thread lie beside
//! each other, where one line of the cache holds two of them, and go to the six columns by the dozen.

use crate::track::Track;
use crate::{Group, Section, TrackColumns};

/// So many sections wait. 64 threads' fit into the first cache of a core.
const WAITING: usize = 16;

/// A section that goes on until the next one starts.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: u64,
    section: Section,
}

/// Takes the sections of one thread, in time order.
#[derive(Debug, Default)]
pub(crate) struct TrackBuilder {
    columns: TrackColumns,
    /// What follows the columns; never empty once there is a section.
    newest: Vec<Row>,
}

impl TrackBuilder {
    /// Makes room for so many sections, so that the columns need not be moved while they grow. Room that is not used
    /// takes no memory.
    pub(crate) fn expect(&mut self, sections: usize) {
        self.columns.start.to_mut().reserve_exact(sections);
        self.columns.state.to_mut().reserve_exact(sections);
        self.columns.place.to_mut().reserve_exact(sections);
        self.columns.task.to_mut().reserve_exact(sections);
        self.columns.region.to_mut().reserve_exact(sections);
        self.columns.object.to_mut().reserve_exact(sections);
    }

    /// Whether nothing is known of the thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_empty()
    }

    /// When the last section ends, as far as is known.
    pub(crate) fn end(&self) -> u64 {
        self.columns.end
    }

    /// From `at` on the thread is in `section`. A time before the last section's start is taken as
    /// that start; the answer is how far it was before.
    #[inline]
    pub(crate) fn set(&mut self, at: u64, section: Section) -> u64 {
        let Some(last) = self.newest.last_mut() else {
            self.columns.end = self.columns.end.max(at);
            self.newest.reserve_exact(WAITING);
            self.newest.push(Row { start: at, section });
            return 0;
        };
        let back = last.start.saturating_sub(at);
        let at = at.max(last.start);
        self.columns.end = self.columns.end.max(at);
        if last.start == at {
            last.section = section;
        } else if last.section != section {
            if self.newest.len() == WAITING {
                self.store(WAITING - 1);
            }
            self.newest.push(Row { start: at, section });
        }
        back
    }

    /// The section that ended at `at` was this one, if it was a wait for a lock too.
    pub(crate) fn amend(&mut self, at: u64, section: Section) {
        let is_wait = |section: Section| section.state.group() == Group::Mutex;
        if let Some(row) = self.newest.iter().rposition(|row| row.start < at) {
            let end = self.newest.get(row + 1).map_or(self.columns.end, |next| next.start);
            if end == at && is_wait(self.newest[row].section) {
                self.newest[row].section = section;
            }
            return;
        }
        // What follows the columns starts later: rare, as waits are told of when they end.
        let Some(row) = self.columns.start.partition_point(|start| *start < at).checked_sub(1) else {
            return;
        };
        let next = self.columns.start.get(row + 1).copied().or(self.newest.first().map(|row| row.start));
        if next == Some(at) && is_wait(self.columns.section(row)) {
            self.columns.replace(row, section);
        }
    }

    /// Moves the first of the newest sections to the columns.
    fn store(&mut self, count: usize) {
        let columns = &mut self.columns;
        let rows = &self.newest[..count];
        columns.start.to_mut().extend(rows.iter().map(|row| row.start));
        columns.state.to_mut().extend(rows.iter().map(|row| row.section.state as u8));
        columns.place.to_mut().extend(rows.iter().map(|row| row.section.place));
        columns.task.to_mut().extend(rows.iter().map(|row| row.section.task));
        columns.region.to_mut().extend(rows.iter().map(|row| row.section.region));
        columns.object.to_mut().extend(rows.iter().map(|row| row.section.object));
        self.newest.drain(..count);
    }

    /// The last section ends at `at`, or where it started, if that is later.
    pub(crate) fn close(&mut self, at: u64) {
        self.columns.end = self.newest.last().map_or(at, |last| at.max(last.start));
    }

    /// The track.
    pub(crate) fn finish(mut self) -> Track {
        self.store(self.newest.len());
        Track::of(self.columns)
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
        let track = track.finish();
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
        let track = track.finish();
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
            let track = track.finish();
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
                let track = track.finish();
                let changed: Vec<u64> =
                    track.spans().filter(|s| s.section.state == State::LockWait).map(|s| s.end).collect();
                let is_wait = (told - 1) % 3 == 0;
                assert_eq!(changed, if is_wait { vec![10 * told] } else { Vec::new() }, "{told} of {count}");
                assert!(track.spans().all(|span| span.section.state != State::OrderedWait));
            }
        }
    }
}
