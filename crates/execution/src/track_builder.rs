//! A track while it grows.
//!
//! A merged trace goes from thread to thread with each event. So the newest sections of a thread lie beside
//! each other, where one line of the cache holds two of them, and go to the columns by the dozen.
//!
//! Of each section half of its start and a number of what it is are kept; its task, its region and what it waits for
//! only where they are not those of the section before.

use crate::activities::{Activities, ActivityNumbers, RARE, RareRow, rare_activity, set_rare};
use crate::growing::{FileParts, GrowingColumn};
use crate::runs::{RunSlices, RunsBuilder};
use crate::starts::Starts;
use crate::track::Track;
use crate::{Group, ObjectIndex, RegionIndex, Section, SharedBytes, State, TaskIndex, TrackColumns};
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
    start: GrowingColumn<u32>,
    start_high: RunsBuilder<u32>,
    activity: GrowingColumn<u16>,
    rare: Vec<RareRow>,
    task: RunsBuilder<TaskIndex>,
    region: RunsBuilder<RegionIndex>,
    object: RunsBuilder<ObjectIndex>,
    end: u64,
    /// The last section in the columns, where there is one.
    stored: Row,
    /// What follows the columns; never empty once there is a section. It lies in place, as each change looks for it.
    newest: [Row; WAITING],
    waiting: usize,
}

impl Default for TrackBuilder {
    fn default() -> Self {
        TrackBuilder {
            start: GrowingColumn::default(),
            start_high: RunsBuilder::default(),
            activity: GrowingColumn::default(),
            rare: Vec::new(),
            task: RunsBuilder::default(),
            region: RunsBuilder::default(),
            object: RunsBuilder::default(),
            end: 0,
            stored: Row { start: 0, section: Section::of(State::Unknown) },
            newest: [Row { start: 0, section: Section::of(State::Unknown) }; WAITING],
            waiting: 0,
        }
    }
}

impl TrackBuilder {
    /// Makes room for so many sections, so that the columns need not be moved while they grow: in a file, if there is
    /// one.
    pub(crate) fn expect(&mut self, sections: usize, mut parts: Option<&mut FileParts>) {
        self.start.expect(sections, parts.as_deref_mut());
        self.activity.expect(sections, parts);
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
    pub(crate) fn set(&mut self, at: u64, section: Section, numbers: &mut ActivityNumbers) -> u64 {
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
            self.push(at, section, numbers);
        }
        back
    }

    /// A section starts at `start`, later than those before.
    #[inline(always)]
    pub(crate) fn push(&mut self, start: u64, section: Section, numbers: &mut ActivityNumbers) {
        if self.waiting == WAITING {
            self.store(WAITING - 1, numbers);
        }
        self.newest[self.waiting] = Row { start, section };
        self.waiting += 1;
    }

    /// The section that ended at `at` was this one, if it was a wait for a lock too.
    pub(crate) fn amend(&mut self, at: u64, section: Section, numbers: &mut ActivityNumbers) {
        let is_wait = |state: State| state.group() == Group::Mutex;
        let newest = &mut self.newest[..self.waiting];
        if let Some(row) = newest.iter().rposition(|row| row.start < at) {
            let end = newest.get(row + 1).map_or(self.end, |next| next.start);
            if end == at && is_wait(newest[row].section.state) {
                newest[row].section = section;
            }
            return;
        }
        // What follows the columns starts later: rare, as waits are told of when they end.
        let starts = StoredStarts { low: &self.start, high: self.start_high.slices() };
        let Some(row) = starts.partition_point(|start| start < at).checked_sub(1) else {
            return;
        };
        let next = starts.get(row + 1).or(newest.first().map(|row| row.start));
        let activity = numbers.activity(self.activity.get(row)).or_else(|| rare_activity(&self.rare, row));
        if next == Some(at) && activity.is_some_and(|(state, _)| is_wait(state)) {
            self.replace(row, section, numbers);
        }
    }

    /// Moves the first of the newest sections to the columns.
    #[inline(never)]
    fn store(&mut self, count: usize, numbers: &mut ActivityNumbers) {
        let before = self.start.len();
        // Rows are numbered by 32 bits: what is beyond, some 30 GB of memory, is what the last one is.
        let rows = &self.newest[..count.min(u32::MAX as usize - before)];
        if let Some(first) = rows.first().filter(|_| before == 0) {
            self.task.push(0, first.section.task);
            self.start_high.push(0, (first.start >> 32) as u32);
            self.region.push(0, first.section.region);
            self.object.push(0, first.section.object);
            self.stored = *first;
        }
        let mut starts = [0; WAITING];
        rows.iter().zip(&mut starts).for_each(|(row, start)| *start = row.start as u32);
        self.start.extend(&starts[..rows.len()]);
        let (mut activities, mut has_rare) = ([0; WAITING], false);
        let mut last = &self.stored;
        for (number, (row, activity)) in rows.iter().zip(&mut activities).enumerate() {
            let section = &row.section;
            *activity = numbers.number(section.state, section.place);
            has_rare |= *activity == RARE;
            // Nearly always only the task, if anything.
            let same = (row.start ^ last.start) >> 32 == 0
                && section.region == last.section.region
                && section.object == last.section.object;
            if section.task != last.section.task || !same {
                self.task.push(before + number, section.task);
                self.start_high.push(before + number, (row.start >> 32) as u32);
                self.region.push(before + number, section.region);
                self.object.push(before + number, section.object);
            }
            last = row;
        }
        self.activity.extend(&activities[..rows.len()]);
        if has_rare {
            for ((row, Row { section, .. }), activity) in (before..).zip(rows).zip(&activities) {
                if *activity == RARE {
                    set_rare(&mut self.rare, row, section.state, section.place);
                }
            }
        }
        self.stored = rows.last().copied().unwrap_or(self.stored);
        self.newest.copy_within(count..self.waiting, 0);
        self.waiting -= count;
    }

    fn replace(&mut self, row: usize, section: Section, numbers: &mut ActivityNumbers) {
        let rows = self.start.len();
        let activity = numbers.number(section.state, section.place);
        self.activity.set(row, activity);
        if activity == RARE {
            set_rare(&mut self.rare, row, section.state, section.place);
        }
        if row + 1 == rows {
            self.stored.section = section;
        }
        self.task.replace(row, rows, section.task);
        self.region.replace(row, rows, section.region);
        self.object.replace(row, rows, section.object);
    }

    /// The last section ends at `at`, or where it started, if that is later.
    pub(crate) fn close(&mut self, at: u64) {
        self.end = self.newest[..self.waiting].last().map_or(at, |last| at.max(last.start));
    }

    /// Moves all sections to the columns, when no more will come.
    pub(crate) fn store_all(&mut self, numbers: &mut ActivityNumbers) {
        self.store(self.waiting, numbers);
        self.start.complete();
        self.activity.complete();
    }

    /// The columns of the track, of which all sections were stored; `file` is what they were stored in, if anything.
    pub(crate) fn finish_columns(
        self,
        activities: &Arc<Activities>,
        file: Option<&SharedBytes>,
    ) -> TrackColumns {
        TrackColumns {
            start: self.start.finish(file),
            start_high: self.start_high.finish(),
            activity: self.activity.finish(file),
            rare: self.rare.into(),
            task: self.task.finish(),
            region: self.region.finish(),
            object: self.object.finish(),
            end: self.end,
            activities: activities.clone(),
        }
    }

    /// The track.
    pub(crate) fn finish(self, activities: &Arc<Activities>, file: Option<&SharedBytes>) -> Track {
        Track::of(self.finish_columns(activities, file))
    }
}

/// When the sections in the columns start.
#[derive(Clone, Copy)]
struct StoredStarts<'a> {
    low: &'a GrowingColumn<u32>,
    high: RunSlices<'a, u32>,
}

impl Starts for StoredStarts<'_> {
    fn len(self) -> usize {
        self.low.len()
    }

    fn at(self, row: usize) -> u64 {
        u64::from(self.high.at(row, 0)) << 32 | u64::from(self.low.get(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growing::tests::SmallDisk;
    use crate::{Place, SiteIndex, State};
    use std::sync::Mutex;

    /// A track with the numbers of what is in it.
    #[derive(Default)]
    struct Building {
        track: TrackBuilder,
        numbers: ActivityNumbers,
        parts: Option<FileParts>,
    }

    impl Building {
        fn is_empty(&self) -> bool {
            self.track.is_empty()
        }

        fn set(&mut self, at: u64, section: Section) -> u64 {
            self.track.set(at, section, &mut self.numbers)
        }

        fn amend(&mut self, at: u64, section: Section) {
            self.track.amend(at, section, &mut self.numbers);
        }

        fn finish(mut self, end: u64) -> Track {
            self.track.close(end);
            self.track.store_all(&mut self.numbers);
            let file = self.parts.and_then(|parts| parts.shared());
            self.track.finish(&Arc::new(self.numbers.finish()), file.as_ref())
        }
    }

    #[test]
    fn a_section_set_twice_at_one_time_keeps_the_second() {
        let mut track = Building::default();
        track.set(5, Section::of(State::Serial));
        track.set(9, Section::of(State::Task));
        track.set(9, Section::of(State::Barrier));
        let track = track.finish(12);
        let spans: Vec<_> = track.spans().map(|s| (s.start, s.end, s.section.state)).collect();
        assert_eq!(spans, [(5, 9, State::Serial), (9, 12, State::Barrier)]);
        assert_eq!((track.row_at(4), track.row_at(8), track.row_at(12)), (None, Some(0), None));
    }

    #[test]
    fn time_that_runs_back_is_clamped_and_told() {
        let mut track = Building::default();
        assert_eq!((track.is_empty(), track.set(10, Section::of(State::Serial))), (true, 0));
        assert_eq!((track.is_empty(), track.set(7, Section::of(State::Task))), (false, 3));
        let track = track.finish(3);
        assert_eq!((track.len(), track.start(), track.end()), (1, 10, 10));
    }

    #[test]
    fn many_sections_come_out_as_they_went_in_and_those_that_are_alike_join() {
        for count in [1, 15, 16, 17, 31, 32, 33, 1000_u64] {
            let mut track = Building::default();
            for at in 0..count {
                let state = if at % 2 == 0 { State::Task } else { State::Barrier };
                track.set(10 * at, Section::of(state));
                track.set(10 * at + 5, Section::of(state));
            }
            let track = track.finish(10 * count);
            let starts: Vec<u64> = track.spans().map(|span| span.start).collect();
            assert_eq!(starts, (0..count).map(|at| 10 * at).collect::<Vec<_>>());
            assert_eq!(track.end(), 10 * count);
        }
    }

    #[test]
    fn a_wait_is_told_of_at_its_end_and_nothing_else_is_changed() {
        for count in [3, 16, 17, 40_u64] {
            for told in 1..=count {
                let mut track = Building::default();
                for at in 0..count {
                    let state = if at % 3 == 0 { State::CriticalWait } else { State::Task };
                    track.set(10 * at, Section::of(state));
                }
                track.track.close(10 * count);
                track.amend(10 * told, Section::of(State::LockWait));
                track.amend(10 * told - 3, Section::of(State::OrderedWait));
                let track = track.finish(10 * count);
                let changed: Vec<u64> =
                    track.spans().filter(|s| s.section.state == State::LockWait).map(|s| s.end).collect();
                let is_wait = (told - 1) % 3 == 0;
                assert_eq!(changed, if is_wait { vec![10 * told] } else { Vec::new() }, "{told} of {count}");
                assert!(track.spans().all(|span| span.section.state != State::OrderedWait));
            }
        }
    }

    /// What a track is made of may change with each section or hardly ever; it reads as it was written, by row, one
    /// after the other from any row on, and by state.
    #[test]
    fn tracks_read_as_they_were_written() {
        for seed in 1..60_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut dice = |sides: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % sides
            };
            let mut track = Building::default();
            let disk = SmallDisk { bytes: Mutex::default(), most: 900 * (seed % 3), can_be_shared: true };
            let mut parts = FileParts { file: Arc::new(disk), next: 0, newest: 128 };
            match seed % 4 {
                0 => track.track.expect(0, None),
                1 => track.track.expect(300, None),
                _ => track.track.expect(600, Some(&mut parts)),
            }
            track.parts = Some(parts);
            let mut expected: Vec<(u64, Section)> = Vec::new();
            // Upper halves of starts change at once, after some, and by more than one.
            let mut at = (1 << 32) - dice(3) * 200;
            for _ in 0..300 {
                let last = expected.last().map_or(Section::of(State::Serial), |last| last.1);
                let section = Section {
                    state: [State::Task, State::CriticalWait, State::LockWait][dice(3) as usize],
                    place: Place::site(SiteIndex(dice(4) as u32)),
                    task: if dice(5) == 0 { TaskIndex(dice(9) as u32) } else { last.task },
                    region: if dice(40) == 0 { RegionIndex(dice(3) as u32) } else { last.region },
                    object: if dice(3) == 0 { ObjectIndex(7) } else { ObjectIndex::NONE },
                };
                at += 1 + dice(9) + if dice(60) == 0 { 3 << 32 } else { 0 };
                track.set(at, section);
                if section != last {
                    expected.push((at, section));
                }
                if dice(3) == 0 && expected.len() > 20 {
                    // One that was told of late, of those that have been stored too.
                    let row = expected.len() - 2 - dice(18) as usize;
                    let changed = Section { task: TaskIndex(70), ..Section::of(State::OrderedWait) };
                    let is_wait = expected[row].1.state.group() == Group::Mutex;
                    track.amend(expected[row + 1].0, changed);
                    if is_wait {
                        expected[row].1 = changed;
                    }
                }
            }
            let track = track.finish(at + 5);
            let ends = expected[1..].iter().map(|(start, _)| *start).chain([at + 5]);
            let spans: Vec<crate::Span> = (expected.iter().zip(ends))
                .map(|((start, section), end)| crate::Span { start: *start, end, section: *section })
                .collect();
            assert!(track.spans().eq(spans.iter().copied()), "seed {seed}");
            assert!(track.rows().rev().eq(spans.iter().rev().copied()), "seed {seed}");
            let row = dice(spans.len() as u64) as usize;
            assert!(track.spans_of(row..usize::MAX).eq(spans[row..].iter().copied()), "seed {seed}");
            assert_eq!(track.row_at(spans[row].end - 1), Some(row));
            let mut tasks = Vec::new();
            track.for_each_in(|state, _| state == State::Task, |span| tasks.push(span));
            let of_tasks = spans.iter().filter(|span| span.section.state == State::Task);
            assert!(of_tasks.copied().eq(tasks), "seed {seed}");
            assert!((0..track.len()).all(|row| track.states().at(row) == spans[row].section.state));
        }
    }

    #[test]
    fn what_is_beyond_the_numbers_is_kept_all_the_same() {
        let place = |number: u64| Place::site(SiteIndex(number as u32));
        let mut track = Building::default();
        let many = 70_000_u64;
        for at in 0..2 * many {
            track.set(at, Section { place: place(at % many), ..Section::of(State::CriticalWait) });
        }
        track.amend(2 * many - 40, Section { place: place(3 * many), ..Section::of(State::LockWait) });
        track.amend(2 * many - 90, Section::of(State::CriticalWait));
        let track = track.finish(2 * many);
        for (row, span) in track.spans().enumerate() {
            let expected = match row as u64 + 1 {
                end if end == 2 * many - 40 => (State::LockWait, place(3 * many)),
                end if end == 2 * many - 90 => (State::CriticalWait, Place::UNKNOWN),
                _ => (State::CriticalWait, place(row as u64 % many)),
            };
            assert_eq!((span.section.state, span.section.place), expected, "{row}");
        }
        let mut amended = 0;
        track.for_each_in(|state, _| state == State::LockWait, |_| amended += 1);
        assert_eq!(amended, 1);
    }
}
