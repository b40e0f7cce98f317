//! The anchor and the global definitions.

use super::chunks::{Chunks, DEFINITION_CHUNK, END, EVENT_CHUNK, Fields, HEAD};
use super::collectives::Collectives;
use crate::folder::Folder;
use crate::timeline::{Code, LaneKind, Step, Timeline};
use std::collections::HashMap;
use std::io;
use taskscope_event::{FNV_START, fnv1a};
use taskscope_execution::{Group, ProcessIndex, State};
use taskscope_otf2::{MAGIC, definition as kind, group, location, paradigm, role};

/// Communicator of the messages; those of the processes' threads follow it.
pub(super) const MESSAGES: u32 = 0;
const NO_REFERENCE: u32 = u32::MAX;
/// The source of all samples.
pub(super) const SAMPLER: u32 = 0;
/// Exponent of nanoseconds.
const NANO: i64 = -9;
/// A signed zero.
const NO_EXPONENT: u8 = 0;

/// Numbers of enumerations.
mod value {
    pub const PROCESS: u8 = 1;
    pub const FORK_JOIN: u8 = 1;
    pub const METRIC_OF_USER: u8 = 3;
    /// Absolute, from this time on.
    pub const ABSOLUTE_NEXT: u8 = 1 | 3 << 4;
    pub const INT64: u8 = 8;
    pub const DECIMAL: u8 = 1;
    pub const TIME: u8 = 0;
    pub const ASYNCHRONOUS: u8 = 2;
    pub const ABSTRACT: u8 = 1;
    pub const SCOPE_LOCATION_GROUP: u8 = 1;
}

/// The number of a counter's instance, after those of the classes.
pub(super) fn instance(timeline: &Timeline<'_>, counter: u32) -> u32 {
    timeline.counters().len() as u32 + counter
}

struct Definitions<'f> {
    chunks: Chunks,
    folder: &'f mut dyn Folder,
    count: u64,
    strings: HashMap<String, u32>,
}

impl Definitions<'_> {
    fn add(&mut self, kind: u8, fields: Fields) -> io::Result<()> {
        self.count += 1;
        self.chunks.definition(&fields.record(kind), self.folder)
    }

    /// The number of a text, which is defined at its first use.
    fn string(&mut self, text: &str) -> io::Result<u32> {
        if let Some(number) = self.strings.get(text) {
            return Ok(*number);
        }
        let number = self.strings.len() as u32;
        self.strings.insert(text.to_owned(), number);
        self.add(kind::STRING, Fields::default().u32(number).text(text))?;
        Ok(number)
    }

    fn region(&mut self, number: u32, code: &Code) -> io::Result<()> {
        let name = self.string(&code.name)?;
        let function = self.string(if code.function.is_empty() { &code.name } else { &code.function })?;
        let description = self.string(&code.kind)?;
        let file = if code.file.is_empty() { NO_REFERENCE } else { self.string(&code.file)? };
        let paradigm = match code.state {
            Some(State::Communication | State::MpiStart) => paradigm::MPI,
            Some(state) if state.group() == Group::Useful => paradigm::USER,
            Some(_) => paradigm::OPENMP,
            None if code.kind == "uncertain" => paradigm::MEASUREMENT,
            None if code.kind.starts_with("wait for a thread") => paradigm::PTHREAD,
            None if code.kind.starts_with("collective operation") => paradigm::MPI,
            None if code.kind == "sampled function" => paradigm::USER,
            None => paradigm::OPENCL,
        };
        let fields = Fields::default().u32(number).u32(name).u32(description).byte(0).u32(file);
        let fields = fields.u32(code.line).u32(code.line).u32(function).byte(role::CODE);
        self.add(kind::REGION, fields.byte(paradigm).u32(0))
    }

    fn group(&mut self, number: u32, name: &str, ty: u8, paradigm: u8, members: &[u64]) -> io::Result<()> {
        let name = self.string(name)?;
        // The type that readers before OTF2 1.2 use is unknown.
        let mut fields = Fields::default().u32(number).u32(name).byte(0).u32(members.len() as u32);
        for member in members {
            fields = fields.u64(*member);
        }
        self.add(kind::GROUP, fields.byte(ty).byte(paradigm).u32(0))
    }

    fn communicator(&mut self, number: u32, name: &str, group: u32) -> io::Result<()> {
        let name = self.string(name)?;
        self.add(
            kind::COMMUNICATOR,
            Fields::default().u32(number).u32(name).u32(group).u32(NO_REFERENCE).u32(0),
        )
    }
}

/// Writes definitions and anchor. `events` are the numbers of events by location: lanes, then the counters of
/// `processes`.
pub(super) fn write(
    timeline: &Timeline<'_>,
    events: &[u64],
    processes: &[ProcessIndex],
    collectives: &Collectives,
    folder: &mut dyn Folder,
) -> io::Result<()> {
    let chunks = Chunks::new("traces.def".to_owned(), DEFINITION_CHUNK);
    let mut definitions = Definitions { chunks, folder, count: 0, strings: HashMap::new() };
    let (begin, end) = timeline.range();
    let unix_ns = timeline.run().start_unix_ns.unwrap_or(u64::MAX);
    let clock = Fields::default().u64(1_000_000_000).u64(begin).u64(end - begin + 1).u64(unix_ns);
    definitions.add(kind::CLOCK, clock)?;
    for (paradigm, name) in
        [(paradigm::OPENMP, "OpenMP"), (paradigm::MPI, "MPI"), (paradigm::USER, "program")]
    {
        let name = definitions.string(name)?;
        let class = if paradigm == paradigm::OPENMP { value::FORK_JOIN } else { 0 };
        definitions.add(kind::PARADIGM, Fields::default().byte(paradigm).u32(name).byte(class))?;
    }
    write_locations(timeline, events, processes, &mut definitions)?;
    for (code, number) in timeline.codes().iter().zip(0..) {
        definitions.region(number, code)?;
    }
    write_calling_contexts(timeline, &mut definitions)?;
    write_communicators(timeline, collectives, &mut definitions)?;
    write_metrics(timeline, processes, &mut definitions)?;
    definitions.chunks.finish(definitions.folder)?;
    let count = definitions.count;
    folder.append("traces.otf2", &anchor(timeline, events, count))
}

/// Location group of lanes without a process.
fn other_group(timeline: &Timeline<'_>) -> u32 {
    timeline.execution().processes.len() as u32
}

fn write_locations(
    timeline: &Timeline<'_>,
    events: &[u64],
    processes: &[ProcessIndex],
    definitions: &mut Definitions<'_>,
) -> io::Result<()> {
    let rows = &timeline.execution().processes;
    let class = definitions.string("node")?;
    let mut nodes: HashMap<&str, u32> = HashMap::new();
    for process in rows {
        let number = nodes.len() as u32;
        if let std::collections::hash_map::Entry::Vacant(vacant) = nodes.entry(process.loom.as_str()) {
            vacant.insert(number);
            let name = definitions.string(if process.loom.is_empty() { "node" } else { &process.loom })?;
            definitions
                .add(kind::NODE, Fields::default().u32(number).u32(name).u32(class).u32(NO_REFERENCE))?;
        }
    }
    if nodes.is_empty() {
        definitions.add(kind::NODE, Fields::default().u32(0).u32(class).u32(class).u32(NO_REFERENCE))?;
    }
    for number in 0..=other_group(timeline) {
        let name = definitions.string(timeline.process_name(ProcessIndex(number)))?;
        let node = rows.get(number as usize).map_or(0, |process| nodes[process.loom.as_str()]);
        let fields = Fields::default().u32(number).u32(name).byte(value::PROCESS).u32(node);
        definitions.add(kind::LOCATION_GROUP, fields.u32(NO_REFERENCE))?;
    }
    let group_of = |process: ProcessIndex| process.0.min(other_group(timeline));
    let lanes = timeline.lanes().iter().map(|lane| {
        let ty = if matches!(lane.kind, LaneKind::Queue(..)) { location::STREAM } else { location::THREAD };
        (lane.name.clone(), ty, lane.process)
    });
    let counters = processes.iter().map(|process| ("counters".to_owned(), location::METRIC, *process));
    for (number, ((name, ty, process), events)) in lanes.chain(counters).zip(events).enumerate() {
        let name = definitions.string(&name)?;
        let fields = Fields::default().u64(number as u64).u32(name).byte(ty).u64(*events);
        definitions.add(kind::LOCATION, fields.u32(group_of(process)))?;
    }
    Ok(())
}

/// The number of the first communicator of collective operations, behind those of messages and of the processes' threads.
pub(super) fn first_own_communicator(timeline: &Timeline<'_>) -> u32 {
    MESSAGES + 1 + timeline.execution().processes.len() as u32
}

/// Communicators: of the processes for messages, of the threads of each process for tasks, of collective operations.
fn write_communicators(
    timeline: &Timeline<'_>,
    collectives: &Collectives,
    definitions: &mut Definitions<'_>,
) -> io::Result<()> {
    let processes = timeline.execution().processes.len() as u32;
    // The locations of threads, and which of them, by number among them, each process has.
    let mut locations: Vec<u64> = Vec::new();
    let mut members: Vec<Vec<u64>> = vec![Vec::new(); processes as usize];
    for (lane, location) in timeline.lanes().iter().zip(0u64..) {
        if matches!(lane.kind, LaneKind::Thread(_)) {
            if let Some(members) = members.get_mut(lane.process.index()) {
                members.push(locations.len() as u64);
            }
            locations.push(location);
        }
    }
    // The rank of a process is its number; one without a thread keeps its place.
    let first =
        |members: &Vec<u64>| members.first().map_or(u64::from(MESSAGES), |of| locations[*of as usize]);
    let masters: Vec<u64> = members.iter().map(first).collect();
    let all: Vec<u64> = (0..masters.len() as u64).collect();
    definitions.group(0, "processes", group::COMM_LOCATIONS, paradigm::MPI, &masters)?;
    definitions.group(1, "all processes", group::COMM_GROUP, paradigm::MPI, &all)?;
    definitions.communicator(MESSAGES, "messages", 1)?;
    definitions.group(2, "threads", group::COMM_LOCATIONS, paradigm::OPENMP, &locations)?;
    for (process, members) in (0..processes).zip(&members) {
        let name = format!("threads of {}", timeline.process_name(ProcessIndex(process)));
        definitions.group(3 + process, &name, group::COMM_GROUP, paradigm::OPENMP, members)?;
        definitions.communicator(1 + process, &name, 3 + process)?;
    }
    for (comm, of) in collectives.communicators() {
        let (name, group) = (format!("communicator {comm:#x}"), 2 + of.number);
        let members: Vec<u64> = of.members.iter().map(|process| u64::from(process.0)).collect();
        definitions.group(group, &name, group::COMM_GROUP, paradigm::MPI, &members)?;
        definitions.communicator(of.number, &name, group)?;
    }
    Ok(())
}

fn write_metrics(
    timeline: &Timeline<'_>,
    processes: &[ProcessIndex],
    definitions: &mut Definitions<'_>,
) -> io::Result<()> {
    let counters = || timeline.counters().iter().zip(0u32..);
    let mut places: HashMap<ProcessIndex, usize> = HashMap::new();
    for (place, process) in processes.iter().enumerate() {
        places.entry(*process).or_insert(place);
    }
    for (counter, number) in counters() {
        let (name, meaning) = (definitions.string(counter.name)?, definitions.string(counter.meaning)?);
        let unit = definitions.string("#")?;
        let member = Fields::default().u32(number).u32(name).u32(meaning);
        let member = member.byte(value::METRIC_OF_USER).byte(value::ABSOLUTE_NEXT).byte(value::INT64);
        definitions.add(kind::METRIC_MEMBER, member.byte(value::DECIMAL).byte(NO_EXPONENT).u32(unit))?;
    }
    // Classes and instances share their numbers, which readers expect in order.
    for (_, number) in counters() {
        let class = Fields::default().u32(number).byte(1).u32(number);
        definitions.add(kind::METRIC_CLASS, class.byte(value::ASYNCHRONOUS).byte(value::ABSTRACT))?;
    }
    for (counter, number) in counters() {
        let place = places.get(&counter.process).copied().unwrap_or(0);
        let recorder = (timeline.lanes().len() + place) as u64;
        let fields = Fields::default().u32(instance(timeline, number)).u32(number).u64(recorder);
        let scope = u64::from(counter.process.0);
        definitions.add(kind::METRIC_INSTANCE, fields.byte(value::SCOPE_LOCATION_GROUP).u64(scope))?;
    }
    Ok(())
}

/// Regions of sampled functions, behind those of sections, and the paths that they make.
fn write_calling_contexts(timeline: &Timeline<'_>, definitions: &mut Definitions<'_>) -> io::Result<()> {
    if timeline.samples().is_empty() {
        return Ok(());
    }
    let first = timeline.codes().len() as u32;
    for (step, number) in timeline.steps().iter().zip(0u32..) {
        let Step { function, file, line, .. } = step;
        let code = Code {
            name: function.clone(),
            kind: "sampled function".to_owned(),
            state: None,
            function: function.clone(),
            file: file.clone(),
            line: *line,
        };
        definitions.region(first + number, &code)?;
        let file = definitions.string(file)?;
        let place = Fields::default().u32(number).u32(file).u32(*line);
        definitions.add(kind::SOURCE_LOCATION, place)?;
    }
    for (path, number) in timeline.call_paths().iter().zip(0u32..) {
        let fields = Fields::default().u32(number).u32(first + path.step).u32(path.step);
        definitions.add(kind::CALLING_CONTEXT, fields.u32(path.caller.unwrap_or(NO_REFERENCE)))?;
    }
    // Periods may differ; that of the first sample stands for all.
    let period = timeline.samples().first().map_or(0, |sample| sample.weight_ns);
    let name = definitions.string("samples")?;
    let fields = Fields::default().u32(SAMPLER).u32(name).byte(value::TIME).byte(value::DECIMAL);
    definitions.add(kind::INTERRUPT_GENERATOR, fields.u64(NANO as u64).u64(period))
}

/// The anchor: versions, sizes of chunks, numbers of locations and definitions, identity.
fn anchor(timeline: &Timeline<'_>, events: &[u64], definitions: u64) -> Vec<u8> {
    let mut bytes = HEAD.to_vec();
    bytes.extend(MAGIC);
    // Forms of the anchor and of the trace; the version of the library with this form.
    bytes.extend([3, 2, 3, 0, 0]);
    bytes.extend(EVENT_CHUNK.to_le_bytes());
    bytes.extend(DEFINITION_CHUNK.to_le_bytes());
    // Files of the system, without compression.
    bytes.extend([1, 1]);
    bytes.extend((events.len() as u64).to_le_bytes());
    bytes.extend(definitions.to_le_bytes());
    // Machine, creator, description.
    bytes.extend(b"\0taskscope\0\0");
    bytes.extend(0u32.to_le_bytes());
    let numbers = events.iter().copied().chain([definitions, timeline.range().0, timeline.range().1]);
    let start = fnv1a(FNV_START, timeline.run().name.as_bytes());
    let identity = numbers.fold(start, |hash, number| fnv1a(hash, &number.to_le_bytes()));
    bytes.extend(identity.to_le_bytes());
    // No snapshots and thumbnails.
    bytes.extend([0; 8]);
    bytes.extend(END);
    bytes.push(0);
    bytes
}
