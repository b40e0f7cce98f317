//! OTF2, the archive of Score-P, Vampir, Scalasca: `traces.otf2`, `traces.def`, `traces/N.def`, `traces/N.evt`.
//!
//! ```text
//! lanes      ▶ locations, in a location group for each process
//! codes      ▶ regions (Enter, Leave), with file and line
//! tasks      ▶ ThreadTaskCreate, ThreadTaskSwitch, ThreadTaskComplete
//! messages   ▶ MpiSend, MpiRecv in one communicator of all processes; the tag is the arrow's number
//! collectives ▶ MpiCollectiveBegin, MpiCollectiveEnd in communicators of their own (collectives.rs)
//! counters   ▶ metrics, on a location of their own for each process
//! samples    ▶ CallingContextSample; call paths are calling contexts
//! ```
//!
//! Events are written as they come; the definitions follow at the end, when the numbers of events are known. Times of a
//! location never decrease, which libotf2 requires. Memory: at most a chunk of 256 KiB for each lane.

mod chunks;
mod collectives;
mod definitions;

use crate::folder::Folder;
use crate::timeline::{
    Arrow, ArrowKind, CallPath, Content, Export, Held, LaneKind, Record, Sample, Section, Timeline,
};
use chunks::{Chunks, EVENT_CHUNK, Fields};
use collectives::Collectives;
use std::collections::BTreeMap;
use std::io;
use taskscope_execution::{ProcessIndex, TaskIndex, TaskStatus};
use taskscope_otf2::event;

/// Type of a metric's values: signed, 8 bytes.
const INT64: u8 = 8;

/// Directories of an archive.
pub const DIRECTORIES: [&str; 1] = ["traces"];

/// Writes an archive.
pub struct Otf2Writer<F: Folder> {
    folder: F,
    lanes: Vec<Chunks>,
    /// The task that each lane runs; none after the end of one, until the next section.
    running: Vec<Option<TaskIndex>>,
    /// The last sampled call path of each lane.
    sampled: Vec<Option<u32>>,
    /// Position of each lane among the threads of its process.
    rank_in_team: Vec<u32>,
    collectives: Collectives,
    /// Locations of counters, by process.
    counters: BTreeMap<ProcessIndex, Chunks>,
}

impl<F: Folder> Otf2Writer<F> {
    /// An archive in `folder`.
    pub fn new(folder: F) -> Self {
        Otf2Writer {
            folder,
            lanes: Vec::new(),
            running: Vec::new(),
            sampled: Vec::new(),
            rank_in_team: Vec::new(),
            collectives: Collectives::default(),
            counters: BTreeMap::new(),
        }
    }

    /// The folder, when the archive is complete.
    pub fn into_inner(self) -> F {
        self.folder
    }

    fn event(&mut self, lane: u32, at: u64, record: &[u8]) -> io::Result<()> {
        self.lanes[lane as usize].event(at, record, &mut self.folder)
    }

    /// A record about a task: its team, and the thread and number that identify it there.
    fn task(&self, timeline: &Timeline<'_>, kind: u8, lane: u32, task: TaskIndex) -> Vec<u8> {
        let process = timeline.lanes()[lane as usize].process;
        let creator = timeline.execution().tasks.creator.get(task.index());
        let creator = creator.map_or(u32::MAX, |thread| timeline.lane_of(*thread));
        let is_known = timeline.lanes().get(creator as usize).is_some_and(|row| row.process == process);
        let thread = self.rank_in_team[if is_known { creator } else { lane } as usize];
        // Number 0 is the thread's own code.
        let number = if task.is_some() { task.0 + 1 } else { 0 };
        let thread = if task.is_some() { thread } else { self.rank_in_team[lane as usize] };
        Fields::default().u32(process.0 + 1).u32(thread).u32(number).record(kind)
    }

    fn enter(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        let Section { lane, start, task, code, .. } = *section;
        let is_thread = matches!(timeline.lanes()[lane as usize].kind, LaneKind::Thread(_));
        if is_thread && self.running[lane as usize].replace(task) != Some(task) {
            let record = self.task(timeline, event::TASK_SWITCH, lane, task);
            self.event(lane, start, &record)?;
        }
        self.event(lane, start, &Fields::default().u32(code).bare(event::ENTER))?;
        match self.collectives.records(timeline, section) {
            Some([begin, _]) => self.event(lane, start, &begin),
            None => Ok(()),
        }
    }

    fn leave(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        let Section { lane, end, task, code, .. } = *section;
        if let Some([_, end_record]) = self.collectives.records(timeline, section) {
            self.event(lane, end, &end_record)?;
        }
        self.event(lane, end, &Fields::default().u32(code).bare(event::LEAVE))?;
        let tasks = &timeline.execution().tasks;
        let is_over = tasks.ended.get(task.index()) == Some(&end)
            && matches!(tasks.status[task.index()], TaskStatus::Ended | TaskStatus::Cancelled);
        if is_over && self.running[lane as usize] == Some(task) {
            let record = self.task(timeline, event::TASK_COMPLETE, lane, task);
            self.event(lane, end, &record)?;
            self.running[lane as usize] = None;
        }
        Ok(())
    }

    fn sample(&mut self, timeline: &Timeline<'_>, sample: &Sample) -> io::Result<()> {
        let before = self.sampled[sample.lane as usize].replace(sample.path);
        let distance = before.map_or(1, |before| unwound(timeline.call_paths(), before, sample.path));
        let fields = Fields::default().u32(sample.path).u32(distance).u32(definitions::SAMPLER);
        self.event(sample.lane, sample.at, &fields.record(event::SAMPLE))
    }

    fn message(
        &mut self,
        timeline: &Timeline<'_>,
        number: u32,
        arrow: &Arrow,
        is_end: bool,
    ) -> io::Result<()> {
        let (own, other) = if is_end { (arrow.to, arrow.from) } else { (arrow.from, arrow.to) };
        let partner = timeline.lanes()[other as usize].process.0;
        let bytes = if arrow.bytes == u64::MAX { 0 } else { arrow.bytes };
        let fields = Fields::default().u32(partner).u32(definitions::MESSAGES).u32(number).u64(bytes);
        let kind = if is_end { event::MPI_RECEIVE } else { event::MPI_SEND };
        self.event(own, arrow.position(is_end), &fields.record(kind))
    }
}

/// Calling contexts that ended between two samples, and one for the innermost common one, which made progress. Callers
/// have lower numbers than their callees.
fn unwound(paths: &[CallPath], before: u32, now: u32) -> u32 {
    let (mut before, mut now, mut left) = (Some(before), Some(now), 1);
    while before != now {
        // The larger number is not a caller of the other one.
        if before > now {
            left += 1;
            before = before.and_then(|path| paths.get(path as usize)?.caller);
        } else {
            now = now.and_then(|path| paths.get(path as usize)?.caller);
        }
    }
    left
}

impl<F: Folder> Export for Otf2Writer<F> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => Held::As("regions on locations; those of CPUs on locations of their own"),
            Content::Places => Held::As("file and line of regions"),
            Content::TaskNumbers => {
                Held::As("task events, by the number of creation; not the program's numbers")
            }
            Content::Colours => Held::Not("viewers choose colours by region"),
            Content::Creations => Held::As("task events: create, switch, complete"),
            Content::Dependences => Held::Not("OTF2 has no event for them"),
            Content::Messages => Held::As("MPI sends and receives; the tag is the message's number"),
            Content::Collectives => {
                Held::As("regions on locations of their own, with MPI's collective events")
            }
            Content::Counters => Held::As("metrics of processes"),
            Content::Operations => Held::As("regions on locations of queues, in lanes"),
            Content::Submissions | Content::Wakes => Held::Not("OTF2 has no event for them"),
            Content::DeviceCalls | Content::Doubts | Content::ThreadWaits => {
                Held::As("regions on locations of their own")
            }
            Content::Samples => Held::As("samples of calling contexts; weights are lost"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let mut threads: BTreeMap<ProcessIndex, u32> = BTreeMap::new();
        for (number, lane) in timeline.lanes().iter().enumerate() {
            self.lanes.push(Chunks::new(format!("traces/{number}.evt"), EVENT_CHUNK));
            self.running.push(Some(TaskIndex::NONE));
            self.sampled.push(None);
            let before = threads.entry(lane.process).or_default();
            self.rank_in_team.push(*before);
            if let LaneKind::Thread(_) = lane.kind {
                *before += 1;
            }
        }
        self.collectives = Collectives::of(timeline, definitions::first_own_communicator(timeline));
        let mut number = timeline.lanes().len();
        for counter in timeline.counters() {
            self.counters.entry(counter.process).or_insert_with(|| {
                number += 1;
                Chunks::new(format!("traces/{}.evt", number - 1), EVENT_CHUNK)
            });
        }
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => self.enter(timeline, section),
            Record::Leave { section, .. } => self.leave(timeline, section),
            Record::ArrowStart { number, arrow } => match arrow.kind {
                ArrowKind::Message => self.message(timeline, *number, arrow, false),
                ArrowKind::Creation => {
                    let record = self.task(timeline, event::TASK_CREATE, arrow.from, arrow.task);
                    self.event(arrow.from, arrow.position(false), &record)
                }
                ArrowKind::Dependence | ArrowKind::Submission | ArrowKind::Wake => Ok(()),
            },
            Record::ArrowEnd { number, arrow } if arrow.kind == ArrowKind::Message => {
                self.message(timeline, *number, arrow, true)
            }
            Record::ArrowEnd { .. } => Ok(()),
            Record::Sample(sample) => self.sample(timeline, sample),
            Record::Counter { counter, at, value } => {
                let process = timeline.counters()[*counter as usize].process;
                let Some(chunks) = self.counters.get_mut(&process) else { return Ok(()) };
                let fields = Fields::default().u32(definitions::instance(timeline, *counter)).byte(1);
                let fields = fields.byte(INT64).u64(*value as u64);
                chunks.event(*at, &fields.record(event::METRIC), &mut self.folder)
            }
        }
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let locations = self.lanes.iter_mut().chain(self.counters.values_mut());
        let mut events = Vec::new();
        for (number, chunks) in locations.enumerate() {
            chunks.finish(&mut self.folder)?;
            events.push(chunks.events);
            // Local definitions map numbers; those of all locations are the global ones.
            let mut local = Chunks::new(format!("traces/{number}.def"), chunks::DEFINITION_CHUNK);
            local.finish(&mut self.folder)?;
        }
        let processes: Vec<ProcessIndex> = self.counters.keys().copied().collect();
        definitions::write(timeline, &events, &processes, &self.collectives, &mut self.folder)
    }
}
