//! The device queues of a trace, and the calls of the host that concern them.

mod part;
pub(crate) mod work;

pub use part::operations_of_part;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use taskscope_event::models::device;
use taskscope_execution::devices::{
    CallThread, Clock, DeviceCall, DeviceOperation, Devices, LostOperation, Queue, short_name,
};
use taskscope_reorder::clock::{ClockMap, Knot};
use taskscope_symbol::demangle;
use taskscope_trace::{Event, Location, OpenError, OpenOptions, Problem, Trace};

/// The device queues of the trace in `root`, and the problems of its streams.
///
/// # Errors
/// Only if there is nothing to read.
pub fn open_devices(root: &Path) -> Result<(Devices, Vec<Problem>), OpenError> {
    let trace = Trace::open(root, &OpenOptions::default())?;
    Ok((read_devices(&trace), trace.problems().to_vec()))
}

/// The device queues of an opened trace.
pub fn read_devices(trace: &Trace) -> Devices {
    let mut devices = Devices::default();
    for location in trace.locations() {
        match location.metadata["kind"].as_str() {
            Some("device-queue") => {
                add_dropped(&mut devices.dropped, location);
                devices.queues.push(read_queue(location));
            }
            // Imported calls are records of a thread in every respect but the queue.
            Some("device-calls") if location.metadata["pid"].is_null() => {
                devices.queues.push(read_queue(location));
            }
            Some("device-calls") => add_calls(&mut devices.calls, read_calls(location)),
            _ => {}
        }
    }
    devices
}

const DROPPED: &str = "vendor_dropped";

/// Adds the records dropped by a process's vendor. One of its queues has their number; in traces of earlier versions
/// the accounts of all of them.
fn add_dropped(dropped: &mut BTreeMap<String, u64>, location: &Location) {
    let metadata = &location.metadata;
    let reported = metadata[DROPPED].as_u64().or(metadata["account"][DROPPED].as_u64()).unwrap_or(0);
    if reported > 0 {
        let process = Path::new(&location.relative_path).parent().unwrap_or(Path::new(""));
        let known = dropped.entry(process.display().to_string()).or_default();
        *known = reported.max(*known);
    }
}

fn read_queue(location: &Location) -> Queue {
    let metadata = &location.metadata;
    let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
    let map = clock_map(&metadata["clock"]);
    let mut queue = Queue {
        name: text("name"),
        path: location.relative_path.clone(),
        device: text("device"),
        pid: metadata["pid"].as_i64(),
        number: metadata["number"].as_u64().unwrap_or(0),
        in_order: metadata["order"] == "in-order",
        order_from: text("order_from"),
        finished: metadata["finished"] == 1,
        names: vec![String::new()],
        columns: metadata["columns"].as_array().into_iter().flatten().map(strings).collect(),
        account: metadata["account"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)))
            .filter(|(name, _)| name != DROPPED)
            .collect(),
        clock: clock(&metadata["clock"]),
        foreign: metadata["foreign"].as_array().into_iter().flatten().map(foreign).collect(),
        ..Queue::default()
    };
    for event in location.events() {
        let mut fields = Fields(event.payload);
        match event.code {
            device::OPERATION => queue.operations.extend(operation(&mut fields, &map)),
            device::LATE => queue.late.extend(operation(&mut fields, &map)),
            device::COLUMNS => {
                if let (Some(seq), Some(file)) = (fields.u64(), fields.u32())
                    && let Some(last) = queue.operations.last_mut().filter(|last| last.seq == seq)
                {
                    last.columns = Some((file, String::from_utf8_lossy(fields.0).into_owned()));
                }
            }
            device::LOST => queue.lost.extend(lost(&mut fields)),
            device::DUPLICATE => queue.duplicates += 1,
            device::NUMBER => {
                if let (Some(seq), Some(name), Some(value)) = (fields.u64(), fields.u32(), fields.u64()) {
                    queue.numbers.push((seq, name, value));
                }
            }
            device::NAME => take_name(&event, &mut queue.names),
            _ => {}
        }
    }
    // Drivers give the linkage names of kernels.
    for (name, text) in queue.names.iter_mut().enumerate() {
        let function = demangle(text);
        if function != *text {
            queue.short_names.insert(name as u32, short_name(&function));
            *text = function;
        }
    }
    queue.numbers.sort_unstable();
    if queue.account.is_empty() {
        // The recorder could not write its counts: counts of the existing records.
        let lanes = queue.operations.iter().filter_map(|operation| operation.lane).max();
        let counts = [
            ("appended", (queue.operations.len() + queue.lost.len()) as u64),
            ("delivered", queue.operations.len() as u64),
            ("lost", queue.lost.len() as u64),
            ("duplicates", queue.duplicates),
            ("lanes", lanes.map_or(0, |lane| u64::from(lane) + 1)),
        ];
        queue.account = counts.map(|(name, count)| (name.to_owned(), count)).to_vec();
    }
    queue
}

/// Adds a thread's calls to one list, together with late reports of a vendor.
fn add_calls(all: &mut Vec<CallThread>, mut thread: CallThread) {
    let Some(known) = all.iter_mut().find(|known| (known.pid, known.tid) == (thread.pid, thread.tid)) else {
        return all.push(thread);
    };
    let names = known.names.len() as u32;
    known.names.append(&mut thread.names);
    known.calls.extend(
        thread.calls.into_iter().map(|call| DeviceCall { name: call.name.saturating_add(names), ..call }),
    );
    known.calls.sort_by_key(|call| call.start);
}

fn read_calls(location: &Location) -> CallThread {
    let mut thread = CallThread {
        path: location.relative_path.clone(),
        pid: location.metadata["pid"].as_i64().unwrap_or(0),
        tid: location.metadata["tid"].as_i64().unwrap_or(0),
        calls: Vec::new(),
        names: vec![String::new()],
    };
    for event in location.events() {
        let mut fields = Fields(event.payload);
        match event.code {
            device::CALL => {
                if let (Some(end), Some(name), Some(kind)) = (fields.u64(), fields.u32(), fields.u32()) {
                    let start = event.clock_ns.max(0) as u64;
                    thread.calls.push(DeviceCall { start, end: end.max(start), name, kind, operation: None });
                }
            }
            device::CALL_OPERATION => {
                if let (Some(queue), Some(seq), Some(last)) =
                    (fields.u64(), fields.u64(), thread.calls.last_mut())
                {
                    last.operation = Some((queue, seq));
                }
            }
            device::NAME => take_name(&event, &mut thread.names),
            _ => {}
        }
    }
    thread
}

/// Little-endian fields of a payload, from the front. A payload that is too short has no more.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u64(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }

    fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }
}

fn operation(fields: &mut Fields<'_>, map: &ClockMap) -> Option<DeviceOperation> {
    let mut operation = DeviceOperation {
        seq: fields.u64()?,
        raw: (fields.u64()?, fields.u64()?),
        ..DeviceOperation::default()
    };
    let host = |ticks: u64| if ticks == 0 { 0 } else { map.host_nanos(ticks) };
    (operation.start, operation.end) = (host(operation.raw.0), host(operation.raw.1));
    operation.append = fields.u64()?;
    operation.submit = fields.u64()?;
    operation.id = fields.u64()?;
    operation.thread = fields.u64()? as i64;
    operation.bytes = fields.u64()?;
    operation.late_by = fields.u64()?;
    operation.lane = Some(fields.u32()?).filter(|lane| *lane != device::NO_LANE);
    operation.kind = fields.u32()?;
    operation.name = fields.u32()?;
    operation.anomalies = fields.u32()?;
    Some(operation)
}

fn lost(fields: &mut Fields<'_>) -> Option<LostOperation> {
    let (seq, append, id, thread) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()? as i64);
    let _kind = fields.u32()?;
    Some(LostOperation { seq, append, id, thread, name: fields.u32()? })
}

/// Names are small numbers; a damaged one must not ask for all the memory.
const MAX_NAMES: usize = 1 << 20;

fn take_name(event: &Event<'_>, names: &mut Vec<String>) {
    let mut fields = Fields(event.payload);
    let Some(name) = fields.u32().map(|name| name as usize).filter(|name| *name < MAX_NAMES) else { return };
    if names.len() <= name {
        names.resize(name + 1, String::new());
    }
    let text = fields.0.strip_suffix(&[0]).unwrap_or(fields.0);
    names[name] = String::from_utf8_lossy(text).into_owned();
}

fn strings(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

fn foreign(value: &Value) -> String {
    let text = |name: &str| match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "id {} of thread {} lay in {}, whose other records are of thread {}",
        text("id"),
        text("thread"),
        text("file"),
        text("files_thread")
    )
}

fn pairs(value: &Value) -> Vec<(u64, i64)> {
    let pair = |pair: &Value| Some((pair[0].as_u64()?, pair[1].as_i64()?));
    value.as_array().into_iter().flatten().filter_map(pair).collect()
}

fn clock(value: &Value) -> Clock {
    let number = |name: &str| value[name].as_u64();
    Clock {
        source: value["source"].as_str().unwrap_or_default().to_owned(),
        knots: pairs(&value["knots"]),
        bounds: number("bounds").unwrap_or(0),
        violated: number("violated").unwrap_or(0),
        worst_violation_ns: number("worst_violation_ns").unwrap_or(0),
        slack_ns: (number("lower_slack_ns"), number("upper_slack_ns")),
        steps: pairs(&value["steps"]),
        drift_ppm: value["drift_ppm"].as_f64().unwrap_or(0.0),
    }
}

/// The stored map; device time is taken as host time if there is none.
fn clock_map(value: &Value) -> ClockMap {
    let mut map = ClockMap::with_host_offset(0);
    let mut knots: Vec<Knot> =
        pairs(&value["knots"]).into_iter().map(|(ticks, nanos)| Knot { ticks, nanos }).collect();
    // For any content of the file, the map is monotone.
    knots.dedup_by(|next, before| next.ticks <= before.ticks || next.nanos < before.nanos);
    if !knots.is_empty() {
        map.knots = knots;
    }
    map.nanos_per_tick = value["nanos_per_tick"].as_f64().filter(|rate| *rate > 0.0).unwrap_or(1.0);
    map
}
