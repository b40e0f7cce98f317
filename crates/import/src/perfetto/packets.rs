//! Packets of a trace, one at a time, each with the state of the sequence that it belongs to.

use super::wire::{Cursor, Error, Field};
use crate::spans::{
    Flow, Kind, KindRow, Point, Process, ProcessRow, Run, Span, Thread, ThreadRow, activity_of,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io::Read;

/// Field of a packet in a trace.
pub(super) const PACKET: u64 = 1;

/// Numbers of fields.
mod field {
    pub const TIMESTAMP: u64 = 8;
    pub const SEQUENCE: u64 = 10;
    pub const TRACK_EVENT: u64 = 11;
    pub const INTERNED: u64 = 12;
    pub const SEQUENCE_FLAGS: u64 = 13;
    pub const CLOCK: u64 = 58;
    pub const DEFAULTS: u64 = 59;
    pub const DESCRIPTOR: u64 = 60;
    pub const CLOCK_SNAPSHOT: u64 = 6;
    pub const COMPRESSED: u64 = 50;
    pub const PREVIOUS_DROPPED: u64 = 42;
    pub const FIRST_OF_SEQUENCE: u64 = 87;
    /// About the recording, not the run: user, process and machine of the writer, cleared state, synchronisation, the
    /// service's configuration, statistics, events, identity and system.
    pub const OF_RECORDING: [u64; 10] = [3, 41, 79, 98, 36, 33, 35, 69, 89, 45];
}

/// Types of track events.
mod event {
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// Bit of the sequence flags: what was interned before is gone.
const CLEARED: u64 = 1;
/// Bit of the sequence flags: the packet needs what was interned before.
const NEEDS_STATE: u64 = 2;
/// First number of clocks that belong to a sequence.
const FIRST_OWN_CLOCK: u64 = 64;

/// Tracks above a track that are searched for its process.
const MAX_PARENTS: usize = 64;

/// Most bytes of all compressed packets.
const MAX_UNPACKED: usize = 8 << 30;

/// A clock of a sequence.
#[derive(Clone, Copy)]
struct OwnClock {
    /// Nanoseconds of the common clock, minus those of this one.
    offset: i128,
    unit: i128,
    is_incremental: bool,
    last: i128,
}

/// The state of a sequence of packets.
#[derive(Default)]
struct Sequence {
    categories: FxHashMap<u64, String>,
    names: FxHashMap<u64, String>,
    places: FxHashMap<u64, (String, u32)>,
    clocks: FxHashMap<u64, OwnClock>,
    default_clock: u64,
    default_track: u64,
    /// Whether packets were dropped since its state was cleared.
    has_gap: bool,
}

/// A track.
#[derive(Default)]
struct Track {
    parent: u64,
    name: String,
    /// The pid of its process.
    pid: Option<i64>,
    tid: Option<i64>,
    thread_name: String,
    is_counter: bool,
    thread: Option<ThreadRow>,
    halves: Vec<Half>,
}

/// The begin or the end of a slice.
struct Half {
    time: u64,
    /// Its place in the file.
    at: usize,
    /// The kind of the begin; none for an end.
    begins: Option<KindRow>,
}

/// A slice or an instant that has a flow.
#[derive(Clone, Copy)]
struct FlowPoint {
    at: u64,
    thread: ThreadRow,
}

/// Reads packets.
pub(super) struct Packets {
    run: Run,
    sequences: FxHashMap<u64, Sequence>,
    tracks: BTreeMap<u64, Track>,
    processes: FxHashMap<Option<i64>, ProcessRow>,
    /// Names of processes by their pids.
    names: FxHashMap<i64, String>,
    flows: BTreeMap<u64, Vec<FlowPoint>>,
    last: u64,
    /// Bytes that compressed packets may still have.
    room: usize,
}

impl Default for Packets {
    fn default() -> Packets {
        Packets {
            run: Run::of("Perfetto"),
            sequences: FxHashMap::default(),
            tracks: BTreeMap::new(),
            processes: FxHashMap::default(),
            names: FxHashMap::default(),
            flows: BTreeMap::new(),
            last: 0,
            room: MAX_UNPACKED,
        }
    }
}

/// The parts of a packet.
#[derive(Default)]
struct Packet<'a> {
    timestamp: Option<u64>,
    clock: Option<u64>,
    sequence: u64,
    flags: u64,
    interned: Option<Field<'a>>,
    defaults: Option<Field<'a>>,
    descriptor: Option<Field<'a>>,
    snapshot: Option<Field<'a>>,
    event: Option<Field<'a>>,
    compressed: Option<Field<'a>>,
    /// Whether it has contents of another data source.
    is_other: bool,
    follows_gap: bool,
    is_first: bool,
}

impl<'a> Packet<'a> {
    fn of(bytes: &'a [u8], at: usize) -> Result<Packet<'a>, Error> {
        let mut packet = Packet::default();
        each(Cursor::new(bytes, at), |field| {
            match field.number {
                field::TIMESTAMP => packet.timestamp = Some(field.number()),
                field::CLOCK => packet.clock = Some(field.number()),
                field::SEQUENCE => packet.sequence = field.number(),
                field::SEQUENCE_FLAGS => packet.flags = field.number(),
                field::INTERNED => packet.interned = Some(field),
                field::DEFAULTS => packet.defaults = Some(field),
                field::DESCRIPTOR => packet.descriptor = Some(field),
                field::CLOCK_SNAPSHOT => packet.snapshot = Some(field),
                field::TRACK_EVENT => packet.event = Some(field),
                field::COMPRESSED => packet.compressed = Some(field),
                field::PREVIOUS_DROPPED => packet.follows_gap = field.number() != 0,
                field::FIRST_OF_SEQUENCE => packet.is_first = field.number() != 0,
                other => packet.is_other |= !field::OF_RECORDING.contains(&other),
            }
            Ok(())
        })?;
        Ok(packet)
    }
}

impl Packets {
    /// Takes a packet, which begins at this byte.
    pub fn take(&mut self, bytes: &[u8], at: usize) -> Result<(), Error> {
        let packet = Packet::of(bytes, at)?;
        match packet.compressed {
            Some(compressed) => self.unpack(compressed, at),
            None => self.take_plain(&packet, at),
        }
    }

    /// Takes the packets of a compressed one. They have no places of their own in the file.
    fn unpack(&mut self, compressed: Field<'_>, at: usize) -> Result<(), Error> {
        let failed = |text: String| (at, format!("in its compressed packets: {text}"));
        let bytes = unpacked(compressed.bytes().unwrap_or_default(), self.room).map_err(failed)?;
        self.room -= bytes.len();
        let mut cursor = Cursor::new(&bytes, 0);
        while let Some(field) = cursor.next_field().map_err(|(_, text)| failed(text))? {
            if field.number != PACKET {
                continue;
            }
            let inner = field.bytes().unwrap_or_default();
            let packet = Packet::of(inner, 0).map_err(|(_, text)| failed(text))?;
            if packet.compressed.is_some() {
                return Err(failed("they are compressed again".to_owned()));
            }
            self.take_plain(&packet, at).map_err(|(_, text)| failed(text))?;
        }
        Ok(())
    }

    fn take_plain(&mut self, packet: &Packet<'_>, at: usize) -> Result<(), Error> {
        if packet.is_other {
            self.lose(at, "packets of other data sources", "track events alone are read");
        }
        let is_known = self.sequences.contains_key(&packet.sequence);
        let follows_gap = packet.follows_gap && !packet.is_first && is_known;
        if follows_gap {
            self.lose(at, "gaps in sequences of packets", "the recorder dropped the packets before");
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        sequence.has_gap |= follows_gap;
        if packet.flags & CLEARED != 0 {
            *sequence = Sequence { clocks: std::mem::take(&mut sequence.clocks), ..Sequence::default() };
        }
        if sequence.has_gap && packet.flags & NEEDS_STATE != 0 {
            let why = "names and times that they need were in the packets before, which were dropped";
            self.lose(at, "packets after gaps", why);
            return Ok(());
        }
        if let Some(defaults) = packet.defaults {
            each(defaults.fields(), |field| {
                match field.number {
                    field::CLOCK => sequence.default_clock = field.number(),
                    11 => {
                        each(field.fields(), |field| {
                            if field.number == 11 {
                                sequence.default_track = field.number();
                            }
                            Ok(())
                        })?;
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        if let Some(interned) = packet.interned {
            sequence.intern(interned)?;
        }
        if let Some(snapshot) = packet.snapshot {
            sequence.follow(snapshot)?;
        } else if packet.event.is_none() {
            sequence.advance(packet);
        }
        if let Some(descriptor) = packet.descriptor {
            self.describe(descriptor)?;
        }
        match packet.event {
            Some(event) => self.event(packet, event, at),
            None => Ok(()),
        }
    }

    fn event(&mut self, packet: &Packet<'_>, event: Field<'_>, at: usize) -> Result<(), Error> {
        let Some(sequence) = self.sequences.get_mut(&packet.sequence) else { return Ok(()) };
        let clock = packet.clock.unwrap_or(sequence.default_clock);
        let time = packet.timestamp.map(|time| sequence.nanoseconds(clock, time)).transpose();
        let time =
            time.map_err(|text| (at, text))?.ok_or_else(|| (at, "a track event has no time".to_owned()))?;
        let (mut ty, mut track, mut name) = (0, sequence.default_track, None);
        let (mut place, mut flows, mut category) = ((String::new(), 0), Vec::new(), String::new());
        each(event.fields(), |field| {
            match field.number {
                9 => ty = field.number(),
                11 => track = field.number(),
                10 => name = sequence.names.get(&field.number()).cloned(),
                3 => category = sequence.categories.get(&field.number()).cloned().unwrap_or_default(),
                22 => category = field.text(),
                23 => name = Some(field.text()),
                34 => place = sequence.places.get(&field.number()).cloned().unwrap_or_default(),
                47 | 48 => flows.extend(field.eights()),
                36 | 42 => flows.push(field.number()),
                _ => {}
            }
            Ok(())
        })?;
        self.last = self.last.max(time);
        if self.tracks.get(&track).is_some_and(|track| track.is_counter) || ty == event::COUNTER {
            self.lose(at, "values of counters", "a trace has no counters of programs");
            return Ok(());
        }
        let thread = self.thread(track);
        let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "without a name".to_owned());
        let kind = |run: &mut Run| {
            let (file, line) = place.clone();
            run.kind(Kind { name: name.clone(), file, line, activity: activity_of(&category) })
        };
        match ty {
            event::BEGIN | event::END => {
                let begins = (ty == event::BEGIN).then(|| kind(&mut self.run));
                self.tracks.entry(track).or_default().halves.push(Half { time, at, begins });
            }
            event::INSTANT => {
                let kind = kind(&mut self.run);
                self.run.threads[thread as usize].points.push(Point { at: time, kind });
            }
            _ => self.lose(at, "events of unknown type", "their meaning is not known"),
        }
        for flow in flows {
            self.flows.entry(flow).or_default().push(FlowPoint { at: time, thread });
        }
        Ok(())
    }

    fn describe(&mut self, descriptor: Field<'_>) -> Result<(), Error> {
        let (mut uuid, mut process_name) = (0, String::new());
        let mut found = Track::default();
        each(descriptor.fields(), |field| {
            match field.number {
                1 => uuid = field.number(),
                5 => found.parent = field.number(),
                2 | 10 => found.name = field.text(),
                8 => found.is_counter = true,
                3 => each(field.fields(), |field| {
                    match field.number {
                        1 => found.pid = Some(field.number() as i64),
                        6 => process_name = field.text(),
                        _ => {}
                    }
                    Ok(())
                })?,
                4 => each(field.fields(), |field| {
                    match field.number {
                        1 => found.pid = Some(field.number() as i64),
                        2 => found.tid = Some(field.number() as i64),
                        5 => found.thread_name = field.text(),
                        _ => {}
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        if let Some(pid) = found.pid.filter(|_| !process_name.is_empty()) {
            self.names.insert(pid, process_name);
        }
        let known = self.tracks.entry(uuid).or_default();
        let (thread, halves) = (known.thread, std::mem::take(&mut known.halves));
        *known = Track { thread, halves, ..found };
        Ok(())
    }

    /// The thread of a track, which is added at its first event.
    fn thread(&mut self, uuid: u64) -> ThreadRow {
        if let Some(thread) = self.tracks.get(&uuid).and_then(|track| track.thread) {
            return thread;
        }
        let thread = self.run.threads.len() as u32;
        self.run.threads.push(Thread::default());
        self.tracks.entry(uuid).or_default().thread = Some(thread);
        thread
    }

    fn lose(&mut self, at: usize, content: &'static str, why: &'static str) {
        self.run.losses.add(content, why, || format!("byte {at}"));
    }

    /// The run, when all packets are taken.
    pub fn finish(mut self) -> Run {
        let uuids: Vec<u64> = self.tracks.keys().copied().collect();
        for uuid in uuids {
            let Some(thread) = self.tracks[&uuid].thread else { continue };
            self.join_halves(uuid, thread);
            let process = self.process_of(uuid);
            let track = &self.tracks[&uuid];
            let name = if track.thread_name.is_empty() { &track.name } else { &track.thread_name };
            let row = &mut self.run.threads[thread as usize];
            (row.process, row.tid, row.name) = (process, track.tid, name.clone());
        }
        self.set_beside();
        self.add_flows();
        self.run
    }

    /// Tracks without a thread are rows beside the threads of their process, if it has threads with sections.
    fn set_beside(&mut self) {
        let threads = &mut self.run.threads;
        let with_threads: FxHashSet<ProcessRow> = threads
            .iter()
            .filter(|thread| thread.tid.is_some() && !thread.spans.is_empty())
            .map(|thread| thread.process)
            .collect();
        for thread in threads.iter_mut().filter(|thread| thread.tid.is_none()) {
            thread.is_beside = with_threads.contains(&thread.process);
        }
    }

    /// Gives each end the newest open begin of its track, in the order of time: packets of several sequences, which may
    /// share a track, are in the order in which they were written.
    fn join_halves(&mut self, uuid: u64, thread: ThreadRow) {
        let mut halves = std::mem::take(&mut self.tracks.entry(uuid).or_default().halves);
        halves.sort_by_key(|half| half.time);
        let mut open = Vec::new();
        for Half { time, at, begins } in halves {
            match begins {
                Some(kind) => open.push((time, kind)),
                None => match open.pop() {
                    Some((start, kind)) => {
                        self.run.threads[thread as usize].spans.push(Span { start, end: time, kind });
                    }
                    None => self.lose(at, "ends of sections", "they have no begin"),
                },
            }
        }
        for (start, kind) in open {
            let why = "the file has none: they are open until its last time";
            self.run.losses.add("ends of open sections", why, String::new);
            let end = self.last.max(start);
            self.run.threads[thread as usize].spans.push(Span { start, end, kind });
        }
    }

    /// The process of a track: its own, or that of a track above it.
    fn process_of(&mut self, uuid: u64) -> ProcessRow {
        let mut at = uuid;
        // Tracks that are above each other in a circle have no process.
        for _ in 0..MAX_PARENTS {
            match self.tracks.get(&at) {
                Some(track) if track.pid.is_none() && track.parent != 0 && track.parent != at => {
                    at = track.parent
                }
                _ => break,
            }
        }
        let pid = self.tracks.get(&at).and_then(|track| track.pid);
        let known = self.processes.entry(pid).or_insert_with(|| {
            let name = pid.and_then(|pid| self.names.get(&pid).cloned()).unwrap_or_default();
            self.run.processes.push(Process { pid, name, ..Process::default() });
            self.run.processes.len() as u32 - 1
        });
        *known
    }

    /// Joins the points of each flow in the order of time.
    fn add_flows(&mut self) {
        let domain = self.run.domain("flow");
        for mut points in std::mem::take(&mut self.flows).into_values() {
            points.sort_by_key(|point| point.at);
            if points.len() == 1 {
                self.run.losses.add("begins of flows", "they have no end", String::new);
            }
            for pair in points.windows(2) {
                self.run.flows.push(Flow {
                    from: pair[0].thread,
                    from_at: pair[0].at,
                    to: pair[1].thread,
                    to_at: pair[1].at,
                    domain,
                });
            }
        }
    }
}

impl Sequence {
    fn intern(&mut self, interned: Field<'_>) -> Result<(), Error> {
        each(interned.fields(), |entry| {
            let (mut iid, mut name, mut line) = (0, String::new(), 0);
            each(entry.fields(), |field| {
                match field.number {
                    1 => iid = field.number(),
                    2 => name = field.text(),
                    4 => line = u32::try_from(field.number()).unwrap_or(0),
                    _ => {}
                }
                Ok(())
            })?;
            match entry.number {
                1 => {
                    self.categories.insert(iid, name);
                }
                2 => {
                    self.names.insert(iid, name);
                }
                4 => {
                    self.places.insert(iid, (name, line));
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// Takes the values of all clocks at one time.
    fn follow(&mut self, snapshot: Field<'_>) -> Result<(), Error> {
        let mut clocks = Vec::new();
        each(snapshot.fields(), |field| {
            if field.number == 1 {
                let (mut id, mut time, mut is_incremental, mut unit) = (0, 0, false, 1);
                each(field.fields(), |field| {
                    match field.number {
                        1 => id = field.number(),
                        2 => time = field.number(),
                        3 => is_incremental = field.number() != 0,
                        4 => unit = field.number().max(1),
                        _ => {}
                    }
                    Ok(())
                })?;
                clocks.push((id, i128::from(time), is_incremental, i128::from(unit)));
            }
            Ok(())
        })?;
        let Some((_, common, ..)) = clocks.iter().find(|(id, ..)| *id < FIRST_OWN_CLOCK).copied() else {
            return Ok(());
        };
        for (id, time, is_incremental, unit) in clocks {
            if id >= FIRST_OWN_CLOCK {
                let offset = common - time.saturating_mul(unit);
                self.clocks.insert(id, OwnClock { offset, unit, is_incremental, last: time });
            }
        }
        Ok(())
    }

    /// Takes the time of a packet without an event: times of an incremental clock are differences to the packet before.
    fn advance(&mut self, packet: &Packet<'_>) {
        let clock = self.clocks.get_mut(&packet.clock.unwrap_or(self.default_clock));
        if let Some((own, time)) = clock.filter(|own| own.is_incremental).zip(packet.timestamp) {
            own.last += i128::from(time);
        }
    }

    /// Nanoseconds of the common clock.
    fn nanoseconds(&mut self, clock: u64, time: u64) -> Result<u64, String> {
        let ns = match self.clocks.get_mut(&clock) {
            Some(own) => {
                let mut now = i128::from(time);
                if own.is_incremental {
                    own.last += now;
                    now = own.last;
                }
                own.offset.saturating_add(now.saturating_mul(own.unit))
            }
            None if clock >= FIRST_OWN_CLOCK => return Err(format!("clock {clock} has no snapshot before")),
            None => i128::from(time),
        };
        let ns = u64::try_from(ns).ok().filter(|ns| *ns <= i64::MAX as u64);
        ns.ok_or_else(|| format!("time {time} is beyond the clock of 2^63 ns"))
    }
}

/// The content of compressed packets (zlib), of this many bytes at most.
fn unpacked(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut reader = flate2::read::ZlibDecoder::new(bytes).take(most as u64 + 1);
    reader.read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() > most {
        return Err(format!("all compressed packets together have more than {} GiB", MAX_UNPACKED >> 30));
    }
    Ok(content)
}

fn each<'a>(
    mut cursor: Cursor<'a>,
    mut take: impl FnMut(Field<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(field) = cursor.next_field()? {
        take(field)?;
    }
    Ok(())
}
