//! The workers of a slice, and the time in which they exist: those of the whole run, whether or not they have events in the
//! range.
//!
//! Readers choose workers by the events of the whole run: the threads that were in a team of OpenMP, else the initial
//! thread of a process, and the CPUs of a loom whose runtime works on them. Workers exist from the first event of their
//! process to its last one, CPUs from the first event of their loom to its last one. So a slice has a short life outside of
//! the range of each worker that has ended before it or begins after it, and of one thread of each process that exists
//! at a border without a living thread.

use super::bytes::first_u32;
use super::instrument::task_taken_up;
use super::request::Process;
use super::thread_state::makes_worker;
use crate::Event;
use crate::stream::Stream;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::{MODELS_OF_CPUS, omp};

/// The type of an initial thread in `THREAD_TYPE`.
const INITIAL: u32 = 1;

/// What the whole run decides about the workers of its processes.
pub(super) struct Capacity<'a> {
    /// The process of each stream, or its loom alone if the CPUs are the workers.
    units: Vec<Process<'a>>,
    /// Whether a stream is a worker, by stream.
    works: Vec<bool>,
    /// Whether a stream was in a team of OpenMP or ran one of its tasks, by stream.
    has_worked: Vec<bool>,
    /// Whether a stream took up a task of an instrumented program, by stream.
    takes_up_tasks: Vec<bool>,
    /// Types in OpenMP, by stream.
    types: Vec<Option<u32>>,
    /// Workers because no thread of their process had an earlier event.
    earliest: FxHashSet<usize>,
    /// First and last clock of each stream.
    lives: Vec<Option<(i64, i64)>>,
}

/// What is found about one stream while its events are read.
#[derive(Default)]
pub(super) struct Seen {
    has_worked: bool,
    takes_up_tasks: bool,
    openmp_type: Option<u32>,
}

impl Seen {
    /// Takes an event of the stream.
    pub fn take(&mut self, event: &Event<'_>) {
        self.has_worked |= makes_worker(event.code);
        self.takes_up_tasks |= task_taken_up(event).is_some();
        if event.code == omp::THREAD_TYPE && self.openmp_type.is_none() {
            self.openmp_type = Some(first_u32(event.payload));
        }
    }
}

impl<'a> Capacity<'a> {
    /// The workers of a run, from what is seen of each stream; `None` of those that the slice leaves out.
    pub fn of(streams: &'a [Stream], seen: &[Option<Seen>]) -> Self {
        let requires_cpus = |stream: &&Stream| {
            let mut models = stream.metadata.require.iter().flatten();
            !stream.metadata.recorder.threads_are_workers
                && models.any(|(model, _)| MODELS_OF_CPUS.contains(&model.as_str()))
        };
        let has_cpus = |stream: &&Stream| stream.metadata.loom_cpus.iter().flatten().next().is_some();
        let with_cpus: FxHashSet<_> = streams.iter().filter(has_cpus).map(Stream::loom).collect();
        let cpu_looms: FxHashSet<_> = (streams.iter().filter(requires_cpus).map(Stream::loom))
            .filter(|loom| with_cpus.contains(loom))
            .collect();
        let unit = |stream: &'a Stream| {
            (stream.loom(), stream.pid().filter(|_| !cpu_looms.contains(&stream.loom())))
        };
        let lives = (streams.iter().zip(seen))
            .map(|(stream, seen)| seen.as_ref().and(stream.first_clock_ns()).zip(stream.last_clock_ns()))
            .collect();
        let has_worked = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.has_worked);
        let has_worked: Vec<bool> = seen.iter().map(has_worked).collect();
        let takes_up = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.takes_up_tasks);
        let takes_up_tasks: Vec<bool> = seen.iter().map(takes_up).collect();
        let mut capacity = Capacity {
            units: streams.iter().map(unit).collect(),
            works: has_worked.iter().zip(&takes_up_tasks).map(|(team, tasks)| *team || *tasks).collect(),
            has_worked,
            takes_up_tasks,
            types: seen.iter().map(|seen| seen.as_ref().and_then(|seen| seen.openmp_type)).collect(),
            earliest: FxHashSet::default(),
            lives,
        };
        capacity.choose_initial(streams);
        capacity
    }

    /// Makes the initial thread of each process without a worker its worker, as readers do: by its type, by its id, or the
    /// first one with an event.
    fn choose_initial(&mut self, streams: &[Stream]) {
        let mut chosen = FxHashSet::default();
        for stream in 0..self.works.len() {
            let unit = self.units[stream];
            if unit.1.is_none() || !chosen.insert(unit) {
                continue;
            }
            let is_beside = |other: usize| streams[other].metadata.recorder.is_beside;
            let own = || {
                (0..self.works.len()).filter(|other| {
                    self.units[*other] == unit && self.lives[*other].is_some() && !is_beside(*other)
                })
            };
            if own().any(|other| self.works[other]) {
                continue;
            }
            let by_type = own().find(|other| self.types[*other] == Some(INITIAL));
            let known =
                by_type.or_else(|| own().find(|other| streams[*other].tid() == streams[*other].pid()));
            let first = own().min_by_key(|other| self.lives[*other]);
            let Some(worker) = known.or(first) else { continue };
            if known.is_none() {
                self.earliest.insert(worker);
            }
            self.works[worker] = true;
        }
    }

    /// Whether a stream is ever in a team of OpenMP, or runs a task of it.
    pub fn has_worked(&self, stream: usize) -> bool {
        self.has_worked[stream]
    }

    /// Whether a stream ever takes up a task of an instrumented program.
    pub fn takes_up_tasks(&self, stream: usize) -> bool {
        self.takes_up_tasks[stream]
    }

    /// Whether a stream is a worker only because no other one of its process has an earlier event.
    pub fn is_earliest(&self, stream: usize) -> bool {
        self.earliest.contains(&stream)
    }

    /// The type of a stream in OpenMP.
    pub fn openmp_type(&self, stream: usize) -> Option<u32> {
        self.types[stream]
    }

    /// Streams outside of a range that the slice needs: the workers, and one of each process (or loom with CPUs) that
    /// exists there with none of `present`.
    pub fn missing(
        &self,
        (begin, end): (i64, i64),
        outside: impl Fn(usize) -> bool,
        present: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let exists: FxHashSet<Process<'_>> =
            (self.extents().into_iter().filter(|(_, (first, last))| *first < end && *last >= begin))
                .map(|(unit, _)| unit)
                .collect();
        let streams = 0..self.works.len();
        let candidates: Vec<usize> = streams
            .clone()
            .filter(|stream| exists.contains(&self.units[*stream]) && outside(*stream))
            .collect();
        let mut missing: Vec<usize> =
            candidates.iter().copied().filter(|stream| self.works[*stream]).collect();
        let there = streams.filter(|stream| present(*stream)).chain(missing.iter().copied());
        let mut has: FxHashSet<Process<'_>> = there.map(|stream| self.units[stream]).collect();
        missing.extend(candidates.into_iter().filter(|stream| has.insert(self.units[*stream])));
        missing
    }

    /// First and last clock of each process, or loom with CPUs.
    fn extents(&self) -> FxHashMap<Process<'a>, (i64, i64)> {
        let mut extents: FxHashMap<Process<'a>, (i64, i64)> = FxHashMap::default();
        for (unit, life) in self.units.iter().zip(&self.lives) {
            let Some((first, last)) = *life else { continue };
            let extent = extents.entry(*unit).or_insert((first, last));
            *extent = (extent.0.min(first), extent.1.max(last));
        }
        extents
    }
}
