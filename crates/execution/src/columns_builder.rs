//! The columns of a track while they grow.
//!
//! Each section keeps half of its start and the number of its activity. Its task, region and awaited object are kept
//! only if they differ from those of the previous section.

use crate::activities::{Activities, ActivityNumbers, RARE, RareRow, rare_activity, set_rare};
use crate::growing::{FileParts, GrowingColumn};
use crate::kept_times::KeptTimes;
use crate::newest::{Amendment, Row, WAITING, can_be_amended};
use crate::runs::{RunSlices, RunsBuilder};
use crate::starts::{ByRow, Starts};
use crate::{Joined, ObjectIndex, RegionIndex, Section, SharedBytes, TaskIndex, TrackColumns};
use std::sync::Arc;

/// Takes the sections of one thread, in time order.
#[derive(Debug, Default)]
pub(crate) struct ColumnsBuilder {
    start: GrowingColumn<u32>,
    start_high: RunsBuilder<u32>,
    activity: GrowingColumn<u16>,
    rare: Vec<RareRow>,
    task: RunsBuilder<TaskIndex>,
    region: RunsBuilder<RegionIndex>,
    object: RunsBuilder<ObjectIndex>,
    /// The last section, if any, and the number of its activity.
    last: Row,
    last_activity: u16,
    /// Times of all sections but the last.
    times: KeptTimes,
}

impl ColumnsBuilder {
    /// Makes room for so many sections, so that the columns need not be moved while they grow: in a file, if there is
    /// one.
    pub fn expect(&mut self, sections: usize, mut parts: Option<&mut FileParts>) {
        self.start.expect(sections, parts.as_deref_mut());
        self.activity.expect(sections, parts);
        // A thread that goes from task to task is in something else between two of them.
        self.task.expect(sections / 2);
    }

    /// Takes sections.
    pub fn store(&mut self, rows: &[Row], numbers: &mut ActivityNumbers) {
        rows.chunks(WAITING).for_each(|rows| self.store_some(rows, numbers));
    }

    #[inline(never)]
    fn store_some(&mut self, rows: &[Row], numbers: &mut ActivityNumbers) {
        let before = self.start.len();
        // Rows are numbered by 32 bits: rows beyond, some 30 GB of memory, repeat the last one.
        let rows = &rows[..rows.len().min(u32::MAX as usize - before)];
        if let Some(first) = rows.first().filter(|_| before == 0) {
            self.task.push(0, first.section.task);
            self.start_high.push(0, (first.start >> 32) as u32);
            self.region.push(0, first.section.region);
            self.object.push(0, first.section.object);
            self.last = *first;
            self.last_activity = numbers.number(first.section.state, first.section.place);
        }
        // Values are written in place: storing them one by one and copying them as a whole would stall on
        // store forwarding.
        self.start.extend(rows.iter().map(|row| row.start as u32));
        let (mut has_rare, mut last_start, mut last_activity) = (false, self.last.start, self.last_activity);
        let times = &mut self.times;
        self.activity.extend(rows.iter().map(|Row { start, section }| {
            times.add(last_activity, start - last_start);
            let activity = numbers.number(section.state, section.place);
            has_rare |= activity == RARE;
            (last_start, last_activity) = (*start, activity);
            activity
        }));
        let mut last = &self.last;
        for (row, now) in (before..).zip(rows) {
            let section = &now.section;
            // Nearly always only the task, if anything.
            let same = (now.start ^ last.start) >> 32 == 0
                && section.region == last.section.region
                && section.object == last.section.object;
            if section.task != last.section.task || !same {
                self.task.push(row, section.task);
                self.start_high.push(row, (now.start >> 32) as u32);
                self.region.push(row, section.region);
                self.object.push(row, section.object);
            }
            last = now;
        }
        if has_rare {
            for (row, Row { section, .. }) in (before..).zip(rows) {
                if self.activity.get(row) == RARE {
                    set_rare(&mut self.rare, row, section.state, section.place);
                }
            }
        }
        self.last = rows.last().copied().unwrap_or(self.last);
        self.last_activity = last_activity;
    }

    /// A section that is stored was another one.
    pub fn amend(&mut self, amendment: &Amendment, numbers: &mut ActivityNumbers) {
        let Amendment { at, section, next } = *amendment;
        let starts = StoredStarts { low: &self.start, high: self.start_high.slices() };
        let Some(row) = starts.partition_point(|start| start < at).checked_sub(1) else {
            return;
        };
        let end = starts.get(row + 1).or(next);
        let activity = numbers.activity(self.activity.get(row)).or_else(|| rare_activity(&self.rare, row));
        if end == Some(at) && activity.is_some_and(|(state, _)| can_be_amended(state)) {
            let stored_time = starts.get(row + 1).map_or(0, |end| end - starts.at(row));
            let before = self.activity.get(row);
            self.replace(row, section, numbers);
            self.times.add(before, stored_time.wrapping_neg());
            self.times.add(self.activity.get(row), stored_time);
        }
    }

    fn replace(&mut self, row: usize, section: Section, numbers: &mut ActivityNumbers) {
        let rows = self.start.len();
        let activity = numbers.number(section.state, section.place);
        self.activity.set(row, activity);
        if activity == RARE {
            set_rare(&mut self.rare, row, section.state, section.place);
        }
        if row + 1 == rows {
            self.last.section = section;
            self.last_activity = activity;
        }
        self.task.replace(row, rows, section.task);
        self.region.replace(row, rows, section.region);
        self.object.replace(row, rows, section.object);
    }

    /// No more sections come, and these are joined.
    pub fn complete(&mut self, joined: &Joined) {
        self.rare.iter_mut().for_each(|row| row.join(joined));
        self.start.complete();
        self.activity.complete();
    }

    /// The columns of a track that ends at `end`, when they are complete; `file` is their storage, if any.
    pub fn finish(self, end: u64, activities: &Arc<Activities>, file: Option<&SharedBytes>) -> TrackColumns {
        TrackColumns {
            start: self.start.finish(file),
            start_high: self.start_high.finish(),
            activity: self.activity.finish(file),
            rare: self.rare.into(),
            task: self.task.finish(),
            region: self.region.finish(),
            object: self.object.finish(),
            end,
            activities: activities.clone(),
            times: Some(self.times),
        }
    }
}

/// Start times of the sections in the columns.
#[derive(Clone, Copy)]
struct StoredStarts<'a> {
    low: &'a GrowingColumn<u32>,
    high: RunSlices<'a, u32>,
}

impl Starts for StoredStarts<'_> {
    type InOrder = ByRow<Self>;

    fn in_order(self) -> ByRow<Self> {
        ByRow(self)
    }

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
    use crate::newest::NewestSections;
    use crate::{Group, Place, SiteIndex, State, Track};
    use std::sync::Mutex;

    /// A track with the numbers of its activities.
    #[derive(Default)]
    struct Building {
        newest: NewestSections,
        columns: ColumnsBuilder,
        numbers: ActivityNumbers,
        parts: Option<FileParts>,
    }

    impl Building {
        fn is_empty(&self) -> bool {
            self.newest.is_empty()
        }

        fn set(&mut self, at: u64, section: Section) -> u64 {
            self.newest.set(at, section, |rows| self.columns.store(rows, &mut self.numbers))
        }

        fn amend(&mut self, at: u64, section: Section) {
            if let Some(amendment) = self.newest.amend(at, section) {
                self.columns.amend(&amendment, &mut self.numbers);
            }
        }

        fn finish(self, end: u64) -> Track {
            self.finish_with_activities(end).0
        }

        fn finish_with_activities(mut self, end: u64) -> (Track, Arc<Activities>) {
            self.newest.close(end);
            self.columns.store(self.newest.rows(), &mut self.numbers);
            self.columns.complete(&Joined::default());
            let file = self.parts.and_then(|parts| parts.shared());
            let activities = Arc::new(self.numbers.finish());
            let columns = self.columns.finish(self.newest.end(), &activities, file.as_ref());
            (Track::of(columns), activities)
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
    fn backward_time_is_clamped_and_reported() {
        let mut track = Building::default();
        assert_eq!((track.is_empty(), track.set(10, Section::of(State::Serial))), (true, 0));
        assert_eq!((track.is_empty(), track.set(7, Section::of(State::Task))), (false, 3));
        let track = track.finish(3);
        assert_eq!((track.len(), track.start(), track.end()), (1, 10, 10));
    }

    #[test]
    fn many_sections_are_kept_and_equal_neighbours_are_joined() {
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
    fn changing_a_finished_wait_changes_no_other_section() {
        for count in [3, 16, 17, 40_u64] {
            for reported in 1..=count {
                let mut track = Building::default();
                for at in 0..count {
                    let state = if at % 3 == 0 { State::CriticalWait } else { State::Task };
                    track.set(10 * at, Section::of(state));
                }
                track.newest.close(10 * count);
                track.amend(10 * reported, Section::of(State::LockWait));
                track.amend(10 * reported - 3, Section::of(State::OrderedWait));
                let track = track.finish(10 * count);
                let changed: Vec<u64> =
                    track.spans().filter(|s| s.section.state == State::LockWait).map(|s| s.end).collect();
                let is_wait = (reported - 1) % 3 == 0;
                assert_eq!(
                    changed,
                    if is_wait { vec![10 * reported] } else { Vec::new() },
                    "{reported} of {count}"
                );
                assert!(track.spans().all(|span| span.section.state != State::OrderedWait));
            }
        }
    }

    /// Tracks read as they were written, by row, in sequence from any row, and by state, whether their values change
    /// with each section or hardly ever.
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
                0 => track.columns.expect(0, None),
                1 => track.columns.expect(300, None),
                _ => track.columns.expect(600, Some(&mut parts)),
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
                    // A late event, which may concern a stored row.
                    let row = expected.len() - 2 - dice(18) as usize;
                    let changed = Section { task: TaskIndex(70), ..Section::of(State::OrderedWait) };
                    let is_wait = expected[row].1.state.group() == Group::Mutex;
                    track.amend(expected[row + 1].0, changed);
                    if is_wait {
                        expected[row].1 = changed;
                    }
                }
            }
            let (track, activities) = track.finish_with_activities(at + 5);
            crate::longest::tests::check(&track, &activities);
            crate::kept_times::tests::check(&track, &activities);
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
            let task_spans = spans.iter().filter(|span| span.section.state == State::Task);
            assert!(task_spans.copied().eq(tasks), "seed {seed}");
            assert!((0..track.len()).all(|row| track.states().at(row) == spans[row].section.state));
        }
    }

    #[test]
    fn places_beyond_the_number_table_are_kept() {
        let place = |number: u64| Place::site(SiteIndex(number as u32));
        let mut track = Building::default();
        let many = 70_000_u64;
        for at in 0..2 * many {
            track.set(at, Section { place: place(at % many), ..Section::of(State::CriticalWait) });
        }
        track.amend(2 * many - 40, Section { place: place(3 * many), ..Section::of(State::LockWait) });
        track.amend(2 * many - 90, Section::of(State::CriticalWait));
        let (track, activities) = track.finish_with_activities(2 * many);
        crate::longest::tests::check(&track, &activities);
        crate::kept_times::tests::check(&track, &activities);
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
