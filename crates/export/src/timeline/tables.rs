//! The tables of a run over time.

use super::arrows::{Arrow, ArrowKind, Arrows, Facts};
use super::codes::{Code, Codes};
use super::content::{Content, Loss};
use super::counters::{Counter, TaskCounts};
use super::lanes::{Lane, LaneKind, Lanes};
use super::samples::{CallPath, FindStep, Sample, Samples, Step};
use rustc_hash::FxHashMap;
use taskscope_execution::devices::Devices;
use taskscope_execution::graph::Names;
use taskscope_execution::{
    Execution, NO_NUMBER, ObjectIndex, Process, ProcessIndex, ProcessNames, RegionIndex, TaskIndex,
    ThreadIndex,
};

/// Facts of the run outside of its execution.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The command, or the trace's name.
    pub name: String,
    /// Nanoseconds since 1970 (UTC) at the begin of the run, if known.
    pub start_unix_ns: Option<u64>,
}

/// The collective operation that a section is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Number of the communicator, the same in all members.
    pub communicator: u64,
    /// Number of the operation in it.
    pub operation: u64,
    /// The root's process, if the operation has one.
    pub root: Option<String>,
}

/// The tables of a run over time; [`Timeline::play`] has its records.
pub struct Timeline<'a> {
    pub(super) execution: &'a Execution,
    pub(super) devices: &'a Devices,
    run: Run,
    pub(super) lanes: Lanes,
    pub(super) codes: Codes,
    pub(super) arrows: Arrows,
    pub(super) tasks: TaskCounts,
    pub(super) samples: Samples,
    process_names: Vec<String>,
}

impl<'a> Timeline<'a> {
    /// Makes the tables, in two passes over the sections.
    pub fn of(
        execution: &'a Execution,
        devices: &'a Devices,
        names: &mut dyn Names,
        run: Run,
    ) -> Timeline<'a> {
        let lanes = Lanes::of(execution, devices);
        let codes = Codes::of(execution, devices, names);
        let arrows = Arrows::of(execution, devices, &lanes, &codes.last_thread);
        let tasks = TaskCounts::of(execution, &lanes.rows);
        let (samples, process_names) = (Samples::default(), process_names(execution));
        Timeline { execution, devices, run, lanes, codes, arrows, tasks, samples, process_names }
    }

    /// Finds the places of all sampled steps, so that samples are among the records.
    pub fn find_steps(&mut self, find: &mut FindStep<'_>) {
        self.samples = Samples::of(self.execution, &self.lanes, find);
    }

    /// The call paths of samples, callers first.
    pub fn call_paths(&self) -> &[CallPath] {
        &self.samples.paths
    }

    /// The places of sampled steps.
    pub fn steps(&self) -> &[Step] {
        &self.samples.steps
    }

    /// The samples in the order of time.
    pub fn samples(&self) -> &[Sample] {
        &self.samples.rows
    }

    /// The steps of a call path as rows of [`Timeline::steps`], the innermost first.
    pub fn steps_of(&self, path: u32) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(path);
        std::iter::from_fn(move || {
            let path = self.samples.paths.get(next? as usize)?;
            next = path.caller;
            Some(path.step)
        })
    }

    /// The execution.
    pub fn execution(&self) -> &'a Execution {
        self.execution
    }

    /// Facts of the run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Time of the first and after the last record, nanoseconds of the trace's clock.
    pub fn range(&self) -> (u64, u64) {
        let (first, last) = self.execution.range();
        let rows = self.lanes.rows.iter().filter(|lane| lane.last > 0);
        let begin = rows.clone().map(|lane| lane.first).min().unwrap_or(first);
        let end = rows.map(|lane| lane.last).max().unwrap_or(last);
        if last == 0 { (begin, end) } else { (begin.min(first), end.max(last)) }
    }

    /// The lanes, by the number that records have.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes.rows
    }

    /// The code of sections, by the number that they have.
    pub fn codes(&self) -> &[Code] {
        &self.codes.rows
    }

    /// The number of arrows.
    pub fn arrow_count(&self) -> u32 {
        self.arrows.count()
    }

    /// The arrow with this number, which a record has.
    ///
    /// # Panics
    /// If there is none.
    pub fn arrow(&self, number: u32) -> Arrow {
        self.arrows.get(number, &self.facts())
    }

    /// The position of an end of an arrow: twice its number, and one more for its end.
    pub(super) fn position(&self, end: u32) -> u64 {
        self.arrows.position(end, &self.facts())
    }

    fn facts(&self) -> Facts<'_> {
        Facts { execution: self.execution, lanes: &self.lanes, last_thread: &self.codes.last_thread }
    }

    /// The counters, by number.
    pub fn counters(&self) -> &[Counter] {
        &self.tasks.counters
    }

    /// Arrows that cannot be drawn and operations without times, with the reasons.
    pub fn dropped(&self) -> impl Iterator<Item = Loss> {
        let arrows = self.arrows.dropped.iter();
        let arrows = arrows.map(|(why, count)| Loss { content: "arrows", count: *count, why });
        self.lanes.dropped.iter().cloned().chain(arrows)
    }

    /// The name of the object that a section waits for; empty if not known.
    pub fn object(&self, object: ObjectIndex) -> &str {
        self.codes.objects.get(&object).map_or("", String::as_str)
    }

    /// The number of a task in its process, if it has one.
    pub fn task_number(&self, task: TaskIndex) -> Option<u64> {
        self.execution.tasks.number(task)
    }

    /// The number of a region in its process, if it has one.
    pub fn region_number(&self, region: RegionIndex) -> Option<u64> {
        let number = self.execution.regions.get(region.index())?.number;
        (number != NO_NUMBER).then_some(number)
    }

    /// The part in a collective operation that a section is, by `Section::part`.
    pub fn collective(&self, part: Option<u32>) -> Option<Collective> {
        let part = self.execution.communication.participations.get(part? as usize)?;
        let root =
            self.execution.processes.get(part.root.index()).map(|_| self.process_name(part.root).to_owned());
        Some(Collective { communicator: part.comm, operation: part.sequence, root })
    }

    /// A process in words.
    pub fn process_name(&self, process: ProcessIndex) -> &str {
        self.process_names.get(process.index()).map_or("devices", String::as_str)
    }

    /// The lane of a thread.
    pub fn lane_of(&self, thread: ThreadIndex) -> u32 {
        self.lanes.thread_lane(thread)
    }

    /// The lane of the first thread of each process that has one.
    pub fn first_lanes(&self) -> FxHashMap<ProcessIndex, u32> {
        let mut first = FxHashMap::default();
        for (lane, number) in self.lanes().iter().zip(0..) {
            if matches!(lane.kind, LaneKind::Thread(_)) {
                first.entry(lane.process).or_insert(number);
            }
        }
        first
    }

    /// Number of facts of a kind.
    pub fn count(&self, content: Content) -> u64 {
        let count_arrows = |kind: ArrowKind| self.arrows.count_of(kind);
        let execution = self.execution();
        match content {
            Content::Sections => self.codes.sections,
            Content::Places => self.codes().iter().filter(|code| !code.file.is_empty()).count() as u64,
            Content::TaskNumbers => self.codes.with_numbers,
            Content::Colours => self.codes().iter().filter(|code| code.state.is_some()).count() as u64,
            Content::Creations => count_arrows(ArrowKind::Creation),
            Content::Dependences => count_arrows(ArrowKind::Dependence),
            Content::Messages => count_arrows(ArrowKind::Message),
            Content::Submissions => count_arrows(ArrowKind::Submission),
            Content::Collectives => self.lanes.count(|kind| matches!(kind, LaneKind::Collectives(..))),
            Content::Counters => self.counters().len() as u64,
            Content::Operations => self.lanes.count(|kind| matches!(kind, LaneKind::Queue(..))),
            Content::DeviceCalls => self.lanes.count(|kind| matches!(kind, LaneKind::Calls(..))),
            Content::Doubts => (execution.uncertain.len() + execution.losses.len()) as u64,
            Content::ThreadWaits => self.lanes.count(|kind| matches!(kind, LaneKind::Waits(..))),
            Content::Wakes => count_arrows(ArrowKind::Wake),
            Content::Samples => {
                let samples = &execution.samples;
                let is_shown = |thread| (self.lane_of(thread) as usize) < self.lanes.rows.len();
                let shown = samples.rows.iter().filter(|row| is_shown(row.thread));
                shown.filter(|row| !samples.frames(row).is_empty()).count() as u64
            }
        }
    }
}

/// All processes in words.
fn process_names(execution: &Execution) -> Vec<String> {
    let names = ProcessNames::of(execution);
    let name = |(row, process): (usize, &Process)| {
        if process.has_cpus {
            return format!("CPUs of {}", process.loom);
        }
        names.process(ProcessIndex::of(row)).unwrap_or_else(|| format!("process {}", process.pid))
    };
    execution.processes.iter().enumerate().map(name).collect()
}
