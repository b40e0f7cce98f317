//! Samples of call stacks, and the creation paths that join the stacks of several threads.
//!
//! A sample keeps its recorder's data: return addresses innermost first, cut into levels of tasks. Equal stacks are
//! kept once. The user's path is defined in `taskscope_event::models::samples`; its profile is in
//! `taskscope_analysis::call_paths`.

use crate::{PathIndex, ProcessIndex, RegionIndex, SiteIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Part of a stack that is user code of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    /// First frame, counted from the innermost.
    pub first: u16,
    /// First frame further out that is not this level's.
    pub end: u16,
    /// The region that the task is in, if any.
    pub region: RegionIndex,
    /// The explicit task, if it is one.
    pub task: TaskIndex,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The thread.
    pub thread: ThreadIndex,
    /// Time, nanoseconds of the trace's clock.
    pub at: u64,
    /// The time that it represents, nanoseconds.
    pub weight_ns: u64,
    /// `taskscope_event::models::samples::flag`.
    pub flags: u32,
    /// `taskscope_event::models::samples::state`.
    pub state: u32,
    /// Its frames, as a range of [`Samples::addresses`].
    frames: (u32, u32),
    /// Its levels, as a range of the levels' table.
    levels: (u32, u32),
}

/// The frames on a creator's stack between a creation and the start of the creating task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreationPath {
    /// The process of the addresses.
    pub process: ProcessIndex,
    /// Its number in the events of the process; 0 if never defined.
    pub number: u32,
    /// Return addresses, innermost first.
    pub addresses: Vec<u64>,
    /// First occurrence, nanoseconds of the trace's clock.
    pub at: u64,
}

/// The creation path of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionPath {
    /// The path on the master's stack; none if the region is not a construct: its contents belong to its parent.
    pub path: PathIndex,
    /// The region in which that task is, if any.
    pub parent_region: RegionIndex,
    /// The explicit task which created it, if it was one.
    pub parent_task: TaskIndex,
}

/// All samples and creation paths of a run.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The samples, by thread and time.
    pub rows: Vec<Sample>,
    /// Creation paths, by [`PathIndex`].
    pub paths: Vec<CreationPath>,
    /// Creation paths of regions, if known.
    pub region_paths: FxHashMap<RegionIndex, RegionPath>,
    /// Creation paths of tasks, if known.
    pub task_paths: FxHashMap<TaskIndex, PathIndex>,
    /// Paths by which a thread waits in calls at a site: each from a time on, by time.
    pub call_paths: FxHashMap<(ThreadIndex, SiteIndex), Vec<(u64, PathIndex)>>,
    addresses: Vec<u64>,
    levels: Vec<Level>,
}

impl Samples {
    /// The addresses of a sample's stack, innermost first: that of the interrupted instruction, then
    /// return addresses.
    pub fn frames(&self, sample: &Sample) -> &[u64] {
        self.addresses.get(range(sample.frames)).unwrap_or_default()
    }

    /// The levels of a sample's stack, innermost first; they do not overlap and are within the frames.
    pub fn levels(&self, sample: &Sample) -> &[Level] {
        self.levels.get(range(sample.levels)).unwrap_or_default()
    }

    /// The path of a wait in a call of a thread at a site that begins at a time, if known.
    pub fn path_of_call(&self, thread: ThreadIndex, site: SiteIndex, at: u64) -> Option<PathIndex> {
        let calls = self.call_paths.get(&(thread, site))?;
        let (_, path) = calls.get(calls.partition_point(|(from, _)| *from <= at).checked_sub(1)?)?;
        self.paths.get(path.index()).is_some_and(|path| !path.addresses.is_empty()).then_some(*path)
    }

    /// The newest path of a call, recorded when the call was over, is known from its begin on.
    pub(crate) fn begin_last_call(&mut self, thread: ThreadIndex, site: SiteIndex, begin: u64) {
        if let Some([before @ .., (from, _)]) =
            self.call_paths.get_mut(&(thread, site)).map(Vec::as_mut_slice)
        {
            let least = before.last().map_or(0, |(from, _)| *from);
            *from = (*from).min(begin).max(least);
        }
    }

    /// Keeps the path of a call that begins at a time, which may be before that of other known ones: the end sorts them.
    pub(crate) fn know_call(&mut self, thread: ThreadIndex, site: SiteIndex, at: u64, path: PathIndex) {
        self.call_paths.entry((thread, site)).or_default().push((at, path));
    }

    /// Gives the tasks and regions of all levels new numbers.
    pub(crate) fn renumber_levels(
        &mut self,
        task: impl Fn(TaskIndex) -> TaskIndex,
        region: impl Fn(RegionIndex) -> RegionIndex,
    ) {
        for level in &mut self.levels {
            (level.task, level.region) = (task(level.task), region(level.region));
        }
    }

    /// The earliest path of a wait of a thread, if any is known.
    pub fn first_path_of(&self, thread: ThreadIndex) -> Option<PathIndex> {
        let thread_calls = self.call_paths.iter().filter(|((of, _), _)| *of == thread);
        let first = thread_calls.filter_map(|(_, calls)| calls.first()).min();
        first.map(|(_, path)| *path).filter(|path| path.is_some())
    }

    /// The threads that make a call at a site by a path.
    pub fn threads_of_call(&self, site: SiteIndex, path: PathIndex) -> impl Iterator<Item = ThreadIndex> {
        let calls = self.call_paths.iter().filter(move |((_, of), _)| *of == site);
        calls
            .filter(move |(_, calls)| calls.iter().any(|(_, of)| *of == path))
            .map(|((thread, _), _)| *thread)
    }

    /// The samples of a thread that end after `from` and not after `until`.
    pub fn thread_samples(&self, thread: ThreadIndex, from: u64, until: u64) -> &[Sample] {
        let first = self.rows.partition_point(|row| (row.thread, row.at) <= (thread, from));
        let end = self.rows.partition_point(|row| (row.thread, row.at) <= (thread, until));
        self.rows.get(first..end).unwrap_or_default()
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

/// The data of a sample, before it is kept.
#[derive(Clone, Debug)]
pub struct NewSample<'a> {
    /// The thread.
    pub thread: ThreadIndex,
    /// Time.
    pub at: u64,
    /// The time that it represents.
    pub weight_ns: u64,
    /// Flags.
    pub flags: u32,
    /// State.
    pub state: u32,
    /// Levels, innermost first.
    pub levels: &'a [Level],
    /// Addresses, innermost first.
    pub addresses: &'a [u64],
}

/// Keeps samples, equal stacks once.
#[derive(Debug, Default)]
pub(crate) struct SamplesBuilder {
    samples: Samples,
    stacks: FxHashMap<Box<[u64]>, (u32, u32)>,
    level_lists: FxHashMap<Box<[Level]>, (u32, u32)>,
}

impl SamplesBuilder {
    pub fn samples_mut(&mut self) -> &mut Samples {
        &mut self.samples
    }

    pub fn push(&mut self, new: &NewSample<'_>) {
        let frames = interned(&mut self.stacks, &mut self.samples.addresses, new.addresses);
        // Levels outside of the stack, or overlapping ones, are invalid.
        let mut from = 0;
        let sound = |level: &&Level| {
            let fits = level.first >= from
                && level.first <= level.end
                && usize::from(level.end) <= new.addresses.len();
            if fits {
                from = level.end;
            }
            fits
        };
        let levels: Vec<Level> = new.levels.iter().filter(sound).copied().collect();
        let levels = interned(&mut self.level_lists, &mut self.samples.levels, &levels);
        self.samples.rows.push(Sample {
            thread: new.thread,
            at: new.at,
            weight_ns: new.weight_ns,
            flags: new.flags,
            state: new.state,
            frames,
            levels,
        });
    }

    pub fn finish(mut self) -> Samples {
        self.samples.rows.sort_by_key(|row| (row.thread, row.at));
        self.samples.call_paths.values_mut().for_each(|calls| calls.sort_by_key(|(from, _)| *from));
        self.samples
    }
}

fn interned<T: Copy + Eq + std::hash::Hash>(
    known: &mut FxHashMap<Box<[T]>, (u32, u32)>,
    all: &mut Vec<T>,
    list: &[T],
) -> (u32, u32) {
    if let Some(range) = known.get(list) {
        return *range;
    }
    let (start, end) = (all.len(), all.len() + list.len());
    let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else { return (0, 0) };
    all.extend_from_slice(list);
    known.insert(list.into(), (start, end));
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_kept_once_and_levels_are_checked() {
        let mut builder = SamplesBuilder::default();
        let level = |first, end| Level { first, end, region: RegionIndex::NONE, task: TaskIndex::NONE };
        let levels = [level(1, 2), level(0, 3), level(2, 3), level(3, 9)];
        for at in [20, 10, 30] {
            builder.push(&NewSample {
                thread: ThreadIndex(1),
                at,
                weight_ns: 1,
                flags: 0,
                state: 1,
                levels: &levels,
                addresses: &[7, 8, 9],
            });
        }
        let samples = builder.finish();
        assert_eq!(samples.addresses, [7, 8, 9]);
        assert_eq!(samples.levels(&samples.rows[0]), [level(1, 2), level(2, 3)]);
        assert_eq!(samples.rows.iter().map(|row| row.at).collect::<Vec<_>>(), [10, 20, 30]);
        assert_eq!(samples.thread_samples(ThreadIndex(1), 10, 30).len(), 2);
        assert_eq!(samples.thread_samples(ThreadIndex(0), 0, 100).len(), 0);
    }
}
