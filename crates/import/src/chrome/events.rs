//! Trace events to a run, one by one.

use super::devices::Devices;
use super::elements::Elements;
use super::flows::{FlowHalf, Phase, add_flows};
use super::lanes::{Half, Lane};
use super::number::{integer, nanoseconds, picoseconds, shown};
use super::rows::{Args, Row};
use crate::spans::{Kind, KindRow, Point, Process, ProcessRow, Run, Span, Thread, ThreadRow, activity_of};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Categories of Kineto's flows from calls to operations.
const FLOWS_OF_DEVICES: [&str; 2] = ["ac2g", "async_gpu"];

/// The field of a row with an error, and a sentence.
pub(super) type RowError = (String, String);

/// Reads rows into a run.
pub(super) struct Reader<'e, 'a> {
    elements: &'e Elements<'a>,
    pub run: Run,
    processes: FxHashMap<String, ProcessRow>,
    pub lanes: Vec<Lane>,
    known_lanes: FxHashMap<(ProcessRow, String), u32>,
    flows: Vec<FlowHalf>,
    pub devices: Devices,
    /// File and line of functions, by name (viztracer).
    functions: BTreeMap<String, (String, u32)>,
    last: u64,
}

impl<'e, 'a> Reader<'e, 'a> {
    pub fn new(elements: &'e Elements<'a>) -> Reader<'e, 'a> {
        let mut run = Run::of("Chrome trace events");
        if elements.is_cut {
            run.losses.add("ends of the file", "the array of events ends early", String::new);
        }
        // Those beside the events, with their own table of frames.
        let samples = elements.others.get("samples");
        let samples = samples.and_then(|rows| serde_json::from_str::<Vec<IgnoredAny>>(rows.get()).ok());
        let count = samples.map_or(0, |samples| samples.len() as u64);
        run.losses.add_many("samples", "they have no addresses", count);
        if let Some(base) = elements.others.get("baseTimeNanoseconds") {
            run.origin_unix_ns = integer(base).map(i128::from);
        }
        Reader {
            elements,
            run,
            processes: FxHashMap::default(),
            lanes: Vec::new(),
            known_lanes: FxHashMap::default(),
            flows: Vec::new(),
            devices: Devices::default(),
            functions: functions(elements),
            last: 0,
        }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// If the row is malformed.
    pub fn take(&mut self, number: usize) -> Result<(), RowError> {
        let row: Row<'a> = serde_json::from_str(self.elements.row(number).get()).map_err(|error| {
            let message = error.to_string();
            let end = message.find(" at line ").unwrap_or(message.len());
            (String::new(), message[..end].to_owned())
        })?;
        match &*row.ph {
            "X" => self.complete(number, &row),
            "B" | "E" => self.half(number, &row),
            "M" => {
                self.metadata(&row);
                Ok(())
            }
            "s" | "t" | "f" => self.flow(number, &row),
            "i" | "I" | "R" => self.instant(number, &row),
            phase => {
                let (content, why) = match phase {
                    "b" | "n" | "e" | "S" | "T" | "p" | "F" => {
                        ("asynchronous events", "they belong to no thread")
                    }
                    "C" => ("values of counters", "a trace has no counters of programs"),
                    "N" | "O" | "D" => ("snapshots of objects", "a trace has no objects"),
                    "P" => ("samples", "they have no addresses"),
                    "v" | "V" => ("dumps of memory", "a trace has none"),
                    "c" => ("marks of clocks", "all times are of one clock"),
                    "(" | ")" | "=" => ("contexts and links", "a trace has none"),
                    _ => ("events of unknown phase", "their meaning is not known"),
                };
                self.lose(number, content, why);
                Ok(())
            }
        }
    }

    pub fn lose(&mut self, number: usize, content: &'static str, why: &'static str) {
        let elements = self.elements;
        self.run.losses.add(content, why, || elements.place(number));
    }

    /// The run, when all rows are taken.
    pub fn finish(mut self) -> Run {
        self.join_halves();
        self.name_lanes();
        let Reader { elements, mut run, lanes, flows, devices, .. } = self;
        devices.add_to(&mut run, &lanes);
        add_flows(&mut run, &lanes, flows, |number| elements.place(number));
        run
    }

    fn complete(&mut self, number: usize, row: &Row<'a>) -> Result<(), RowError> {
        let (start, end) = interval(row)?;
        let category = row.cat.as_deref().unwrap_or_default();
        if category == "Trace" && row.pid.is_some_and(|pid| pid.get() == "\"Spans\"") {
            self.lose(number, "spans of the profiler itself", "it is not a thread of the program");
            return Ok(());
        }
        let args = row.args();
        let lane = self.lane(row)?;
        self.last = self.last.max(end);
        if self.take_device_event(number, lane, row, &args, (start, end)) {
            return Ok(());
        }
        let kind = self.kind(row, &args);
        let thread = self.thread(lane);
        self.run.threads[thread as usize].spans.push(Span { start, end, kind });
        Ok(())
    }

    fn half(&mut self, number: usize, row: &Row<'a>) -> Result<(), RowError> {
        let at = time(row)?;
        self.last = self.last.max(at);
        let lane = self.lane(row)?;
        self.thread(lane);
        let begins = (row.ph == "B").then(|| self.kind(row, &row.args()));
        self.lanes[lane as usize].halves.push(Half { at, number, begins });
        Ok(())
    }

    fn instant(&mut self, number: usize, row: &Row<'a>) -> Result<(), RowError> {
        let at = time(row)?;
        if matches!(row.s.as_deref(), Some("g" | "p")) || row.tid.is_none() {
            self.lose(number, "instants of processes and of the run", "points are of threads");
            return Ok(());
        }
        self.last = self.last.max(at);
        let lane = self.lane(row)?;
        let kind = self.kind(row, &Args::default());
        let thread = self.thread(lane);
        self.run.threads[thread as usize].points.push(Point { at, kind });
        Ok(())
    }

    fn flow(&mut self, number: usize, row: &Row<'a>) -> Result<(), RowError> {
        let at = time(row)?;
        let Some(id) = row.id else {
            return Err(("id".to_owned(), "a flow without an id".to_owned()));
        };
        let lane = self.lane(row)?;
        let phase = match &*row.ph {
            "s" => Phase::Begin,
            "t" => Phase::Step,
            _ => Phase::End,
        };
        let [category, name] = [&row.cat, &row.name].map(|text| text.as_deref().unwrap_or_default());
        let domain = if category.is_empty() { name } else { category };
        let domain = self.run.domain(if domain.is_empty() { "flow" } else { domain });
        let key = format!("{}\0{category}\0{name}", key_text(id));
        let is_device = FLOWS_OF_DEVICES.contains(&category);
        let to_next = phase == Phase::End && row.bp.as_deref() != Some("e");
        self.flows.push(FlowHalf { key, at, phase, number, lane, domain, is_device, to_next });
        Ok(())
    }

    fn metadata(&mut self, row: &Row<'a>) {
        let args = row.args();
        let text = args.name.or(args.labels).unwrap_or_default().into_owned();
        match row.name.as_deref() {
            Some("process_name") if row.pid.is_some() => {
                let process = self.process(row);
                self.run.processes[process as usize].name = text;
            }
            Some("process_labels") if row.pid.is_some() => {
                let process = self.process(row);
                self.devices.labels.insert(process, text);
            }
            Some("thread_name") if row.tid.is_some() => {
                if let Ok(lane) = self.lane(row) {
                    self.lanes[lane as usize].name = text;
                }
            }
            // Orders and colours of viewers.
            _ => {}
        }
    }

    fn kind(&mut self, row: &Row<'a>, args: &Args<'a>) -> KindRow {
        let name = row.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("without a name");
        let place = self.functions.get(name).cloned().unwrap_or_else(|| {
            let line = args.line.and_then(integer).and_then(|line| u32::try_from(line).ok());
            (args.file.as_deref().unwrap_or_default().to_owned(), line.unwrap_or(0))
        });
        let (file, line) = place;
        let activity = activity_of(row.cat.as_deref().unwrap_or_default());
        self.run.kind(Kind { name: name.to_owned(), file, line, activity })
    }

    fn process(&mut self, row: &Row<'a>) -> ProcessRow {
        let key = row.pid.map(key_text).unwrap_or_default();
        if let Some(known) = self.processes.get(&key) {
            return *known;
        }
        let process = self.run.processes.len() as u32;
        self.run.processes.push(Process { pid: key.parse().ok(), ..Process::default() });
        self.processes.insert(key, process);
        process
    }

    fn lane(&mut self, row: &Row<'a>) -> Result<u32, RowError> {
        let process = self.process(row);
        // A file of one process or thread may leave the numbers out.
        let tid = row.tid.map(key_text).unwrap_or_default();
        if let Some(known) = self.known_lanes.get(&(process, tid.clone())) {
            return Ok(*known);
        }
        let lane = self.lanes.len() as u32;
        self.lanes.push(Lane { process, tid: tid.clone(), ..Lane::default() });
        self.known_lanes.insert((process, tid), lane);
        Ok(lane)
    }

    /// The thread of a lane, which is added at its first event.
    pub fn thread(&mut self, lane: u32) -> ThreadRow {
        let lane = &mut self.lanes[lane as usize];
        *lane.thread.get_or_insert_with(|| {
            let tid = lane.tid.parse().ok();
            self.run.threads.push(Thread { process: lane.process, tid, ..Thread::default() });
            self.run.threads.len() as u32 - 1
        })
    }

    /// Gives each end the newest open begin of its thread.
    fn join_halves(&mut self) {
        for lane in 0..self.lanes.len() {
            let mut halves = std::mem::take(&mut self.lanes[lane].halves);
            let Some(thread) = self.lanes[lane].thread else { continue };
            halves.sort_by_key(|half| half.at);
            let mut open = Vec::new();
            for Half { at, number, begins } in halves {
                match begins {
                    Some(kind) => open.push((at, number, kind)),
                    None => match open.pop() {
                        Some((start, _, kind)) => {
                            self.run.threads[thread as usize].spans.push(Span { start, end: at, kind });
                        }
                        None => self.lose(number, "ends of sections", "they have no begin"),
                    },
                }
            }
            for (start, number, kind) in open {
                self.lose(
                    number,
                    "ends of open sections",
                    "the file has none: they are open until its last time",
                );
                let end = self.last.max(start);
                self.run.threads[thread as usize].spans.push(Span { start, end, kind });
            }
        }
    }

    fn name_lanes(&mut self) {
        for lane in &self.lanes {
            if let Some(thread) = lane.thread {
                let name = if lane.name.is_empty() && lane.tid.parse::<i64>().is_err() {
                    &lane.tid
                } else {
                    &lane.name
                };
                self.run.threads[thread as usize].name.clone_from(name);
            }
            if let Some(queue) = lane.queue {
                let name = if lane.name.is_empty() {
                    format!("stream {}", lane.tid)
                } else {
                    lane.name.trim().to_owned()
                };
                self.run.queues[queue as usize].name = name;
            }
        }
    }
}

/// The text of a number or a name, which are the same key.
fn key_text(value: &RawValue) -> String {
    let text = value.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
    }
    text.to_owned()
}

fn time(row: &Row<'_>) -> Result<u64, RowError> {
    let field = |text: String| ("ts".to_owned(), text);
    let ts = row.ts.ok_or_else(|| field("the field `ts` is missing".to_owned()))?;
    picoseconds(ts).and_then(|value| nanoseconds(value, &shown(ts))).map_err(field)
}

/// Begin and end of a complete event.
fn interval(row: &Row<'_>) -> Result<(u64, u64), RowError> {
    let start = time(row)?;
    let field = |text: String| ("dur".to_owned(), text);
    let dur = row.dur.ok_or_else(|| field("the field `dur` is missing".to_owned()))?;
    let length = picoseconds(dur).map_err(field)?;
    if length < 0 {
        return Err(field(format!("{} is negative", shown(dur))));
    }
    let begin = row.ts.map_or(Ok(0), picoseconds).map_err(field)?;
    let end =
        nanoseconds(begin.saturating_add(length), &format!("an end after {}", shown(dur))).map_err(field)?;
    Ok((start, end.max(start)))
}

/// `file_info.functions` of viztracer: file and line by name.
fn functions(elements: &Elements<'_>) -> BTreeMap<String, (String, u32)> {
    #[derive(Deserialize)]
    struct FileInfo {
        #[serde(default)]
        functions: BTreeMap<String, (String, u32)>,
    }
    let info =
        elements.others.get("file_info").and_then(|info| serde_json::from_str::<FileInfo>(info.get()).ok());
    let mut functions = info.map_or(BTreeMap::new(), |info| info.functions);
    // Python's names of code without a file.
    functions.retain(|_, (file, _)| !file.starts_with('<'));
    functions
}
