//! A run over time as a Paraver trace: states, events, communications, with the numbers of Extrae and Nanos++.
//!
//! ```text
//! lanes      ▶ threads of applications (rows.rs); lanes beside threads are events of these
//! sections   ▶ state records, and events of changed values (numbers.rs)
//! arrows     ▶ communications; the tag is Nanos++'s domain
//! counters   ▶ events of the first thread of their process
//! names      ▶ labels of values (labels.rs)
//! ```
//!
//! Files: `trace.prv`, `trace.pcf`, `trace.row`. Records are in the order of time; at one time states, then events, then
//! communications, so that programs which stream the file read it. The records of one time are kept until the time is over.

mod labels;
mod numbers;
mod rows;

use crate::folder::Folder;
use crate::timeline::{Arrow, Content, Export, Held, LaneKind, Record, Section, Timeline};
use jiff::Timestamp;
use labels::{Functions, Places, Used, is_construct, write_labels};
use numbers::{
    COUNTERS, REGION, TYPES, Type, beside, class_of, mpi_function, nanos_state, state_record, tag,
};
use rows::{Row, Rows};
use std::io::{self, Write};
use taskscope_execution::{State, TaskIndex};

/// Bytes of records that are kept before they are written.
const BUFFER: usize = 256 << 10;

/// The values of a row.
#[derive(Clone, Default)]
struct Now {
    values: [u64; TYPES],
    /// The task that the row runs or has suspended, and the number of its code.
    task: Option<(TaskIndex, u32)>,
}

/// Writes a Paraver trace.
pub struct RunWriter<F: Folder> {
    folder: F,
    rows: Option<Rows>,
    places: Places,
    functions: Functions,
    now: Vec<Now>,
    used: Used,
    /// First row of each process that has counters.
    counters: Vec<(Row, u32)>,
    begin: u64,
    /// The time of the records that are kept.
    at: u64,
    states: Vec<u8>,
    events: Vec<u8>,
    /// Lanes with a section that ended at this time; whether it was the last one.
    left: Vec<(u32, bool)>,
    messages: Vec<u8>,
    out: Vec<u8>,
}

impl<F: Folder> RunWriter<F> {
    /// A trace that goes to `folder`.
    pub fn new(folder: F) -> Self {
        RunWriter {
            folder,
            rows: None,
            places: Places::default(),
            functions: Functions::default(),
            now: Vec::new(),
            used: Used::default(),
            counters: Vec::new(),
            begin: 0,
            at: 0,
            states: Vec::new(),
            events: Vec::new(),
            left: Vec::new(),
            messages: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The target, when the trace is complete.
    pub fn into_inner(self) -> F {
        self.folder
    }

    fn row(&self, lane: u32) -> io::Result<Row> {
        let rows = self.rows.as_ref().ok_or_else(|| io::Error::other("the trace was not begun"))?;
        Ok(rows.row(lane))
    }

    fn time(&self, at: u64) -> u64 {
        at.saturating_sub(self.begin)
    }

    /// Writes the records of the time before, if the time is another one.
    fn until(&mut self, at: u64) -> io::Result<()> {
        if at == self.at {
            return Ok(());
        }
        for (lane, is_last) in std::mem::take(&mut self.left) {
            let mut values = [0; TYPES];
            // Lanes that left and entered have values of their next section already.
            let row = self.row(lane)?;
            if !is_last {
                values[Type::Application as usize] =
                    self.now[lane as usize].values[Type::Application as usize];
            }
            self.change(lane, row, values)?;
        }
        self.out.append(&mut self.states);
        self.out.append(&mut self.events);
        self.out.append(&mut self.messages);
        self.at = at;
        if self.out.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.folder.append("trace.prv", &self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Writes the changed values as one event.
    fn change(&mut self, lane: u32, row: Row, values: [u64; TYPES]) -> io::Result<()> {
        let before = std::mem::replace(&mut self.now[lane as usize].values, values);
        let mut is_first = true;
        for ty in Type::ALL {
            let value = values[ty as usize];
            if value == before[ty as usize] {
                continue;
            }
            self.used.types[ty as usize] = true;
            if std::mem::take(&mut is_first) {
                write!(self.events, "2:{row}:{}", self.at.saturating_sub(self.begin))?;
            }
            write!(self.events, ":{}:{value}", ty.number())?;
        }
        if is_first { Ok(()) } else { writeln!(self.events) }
    }

    fn enter(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        self.until(section.start)?;
        let (row, lane) = (self.row(section.lane)?, &timeline.lanes()[section.lane as usize]);
        if let Some((ty, _)) = beside(lane.kind) {
            let (at, value) = (self.time(section.start), section.code + 1);
            return writeln!(self.events, "2:{row}:{at}:{ty}:{value}");
        }
        let code = &timeline.codes()[section.code as usize];
        let (begin, end) = (self.time(section.start), self.time(section.end));
        writeln!(self.states, "1:{row}:{begin}:{end}:{}", state_record(code))?;
        let values = self.values(timeline, section);
        self.left.retain(|(left, _)| *left != section.lane);
        // Each section has an event of its code, also if the one before has the same.
        self.now[section.lane as usize].values[Type::Code as usize] = 0;
        self.change(section.lane, row, values)
    }

    fn values(&mut self, timeline: &Timeline<'_>, section: &Section) -> [u64; TYPES] {
        let codes = timeline.codes();
        let code = &codes[section.code as usize];
        let mut values = [0; TYPES];
        let mut set = |ty: Type, value: u64| values[ty as usize] = value;
        set(Type::Code, u64::from(section.code) + 1);
        set(Type::Amount, section.amount.min(i64::MAX as u64));
        let lane = &timeline.lanes()[section.lane as usize];
        if matches!(lane.kind, LaneKind::Thread(_)) {
            set(Type::Application, 1);
        }
        let Some(state) = code.state else { return values };
        let place = State::ALL.iter().position(|known| *known == state);
        set(Type::State, place.map_or(0, |place| place as u64 + 1));
        set(Type::NanosState, nanos_state(state));
        if section.object.is_some() {
            let number = u64::from(section.object.0) + 1;
            set(Type::Object, number);
            self.used.objects.entry(number).or_insert_with(|| timeline.object(section.object).to_owned());
        }
        if let Some(region) = timeline.region_number(section.region) {
            set(Type::Region, REGION);
            set(Type::RegionNumber, region.min(i64::MAX as u64));
        }
        if is_construct(state) {
            set(Type::Construct, u64::from(section.code) + 1);
            set(Type::ConstructPlace, self.places.number(code));
        }
        if let Some(name) = mpi_function(code) {
            set(class_of(name), self.functions.number(name));
        }
        if section.task.is_some() {
            let now = &mut self.now[section.lane as usize];
            if state == State::Task {
                now.task = Some((section.task, section.code));
            }
            set(Type::NanosTask, timeline.task_number(section.task).unwrap_or(0).min(i64::MAX as u64));
            if let Some((_, code)) = now.task.filter(|(task, _)| *task == section.task) {
                let place = self.places.number(&codes[code as usize]);
                for ty in [Type::TaskFunction, Type::NanosFunction] {
                    set(ty, u64::from(code) + 1);
                }
                for ty in [Type::TaskPlace, Type::NanosPlace] {
                    set(ty, place);
                }
            }
        }
        values
    }

    fn leave(&mut self, timeline: &Timeline<'_>, section: &Section) -> io::Result<()> {
        self.until(section.end)?;
        let lane = &timeline.lanes()[section.lane as usize];
        if let Some((ty, _)) = beside(lane.kind) {
            let (row, at) = (self.row(section.lane)?, self.time(section.end));
            return writeln!(self.events, "2:{row}:{at}:{ty}:0");
        }
        self.left.push((section.lane, section.end >= lane.last));
        Ok(())
    }

    fn arrow(&mut self, arrow: &Arrow) -> io::Result<()> {
        let (start, end) = (arrow.position(false), arrow.position(true));
        self.until(start)?;
        let (from, to) = (self.row(arrow.from)?, self.row(arrow.to)?);
        let (start, end) = (self.time(start), self.time(end));
        let bytes = if arrow.bytes == u64::MAX { 0 } else { arrow.bytes.min(i64::MAX as u64) };
        writeln!(self.messages, "3:{from}:{start}:{start}:{to}:{end}:{end}:{bytes}:{}", tag(arrow.kind))
    }
}

impl<F: Folder> Export for RunWriter<F> {
    fn holds(&self, content: Content) -> Held {
        match content {
            Content::Sections => {
                Held::As("state records and events of threads; those of CPUs in an application of their own")
            }
            Content::Places => Held::As(
                "events 60000118, 60000123, 9200021 of tasks and constructs; names of values contain all places",
            ),
            Content::TaskNumbers => Held::As("events 9200002 (tasks) and 9500004 (regions)"),
            Content::Colours => Held::Not("Paraver's own states have their usual colours"),
            Content::Creations => Held::As("communications with tag 0"),
            Content::Dependences => Held::As("communications with tag 1"),
            Content::Messages => Held::As("communications with tag 3"),
            Content::Submissions => Held::As("communications with tag 6"),
            Content::Collectives => Held::As(
                "events of their threads, from type 9700000 on; communicators, roots and bytes are lost",
            ),
            Content::Counters => Held::As("events of the first thread of a process, from type 9500100 on"),
            Content::Operations => Held::As("state records of queues, in an application of their own"),
            Content::DeviceCalls => Held::As("state records of rows in the application of devices"),
            Content::Doubts => Held::As("events of their threads, from type 9501000 on"),
            Content::ThreadWaits => Held::As("events of their threads, from type 9600000 on"),
            Content::Wakes => Held::As("communications with tag 7"),
            Content::Samples => Held::Not("call paths are in --to pprof, speedscope, flamegraph"),
        }
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        let rows = Rows::of(timeline)?;
        let (begin, end) = timeline.range();
        (self.begin, self.at) = (begin, begin);
        self.places = Places::of(timeline.codes());
        self.functions = Functions::of(timeline.codes());
        self.now = vec![Now::default(); timeline.lanes().len()];
        let mut names: Vec<&str> = timeline.counters().iter().map(|counter| counter.name).collect();
        names.sort_unstable();
        names.dedup();
        let first_lanes = timeline.first_lanes();
        for counter in timeline.counters() {
            let lane = first_lanes.get(&counter.process).copied().unwrap_or(0);
            let number = names.iter().position(|name| *name == counter.name).unwrap_or(0);
            self.counters.push((rows.row(lane), COUNTERS + number as u32));
        }
        // Without a known date, that of the largest 32-bit time, as ovni's writers do.
        let ns = timeline.run().start_unix_ns.map_or(i128::from(i32::MAX) * 1_000_000_000, i128::from);
        let date = Timestamp::from_nanosecond(ns).unwrap_or(Timestamp::MAX).strftime("%d/%m/%Y at %H:%M");
        writeln!(self.out, "#Paraver ({date}):{}_ns:{}", self.time(end), rows.header())?;
        let mut text = Vec::new();
        rows.write(&mut text)?;
        self.folder.append("trace.row", &text)?;
        self.rows = Some(rows);
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => self.enter(timeline, section),
            Record::Leave { section, .. } => self.leave(timeline, section),
            Record::ArrowStart { arrow, .. } => self.arrow(arrow),
            // A communication is written at its begin.
            Record::ArrowEnd { .. } => Ok(()),
            Record::Sample(_) => Ok(()),
            Record::Counter { counter, at, value } => {
                self.until(*at)?;
                let (row, ty) = self.counters[*counter as usize];
                writeln!(self.events, "2:{row}:{}:{ty}:{}", self.time(*at), (*value).max(0))
            }
        }
    }

    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.until(u64::MAX)?;
        self.flush()?;
        let mut text = Vec::new();
        write_labels(timeline, &self.places, &self.functions, &self.used, &mut text)?;
        self.folder.append("trace.pcf", &text)
    }
}
