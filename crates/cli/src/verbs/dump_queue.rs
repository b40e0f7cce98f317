//! `taskscope dump --queue QUEUE`: the records of a device queue in the order of their release.

use crate::messages::Failure;
use crate::output;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use taskscope_analysis::devices::submitter;
use taskscope_event::models::device::split_values;
use taskscope_execution::devices::{DeviceOperation, Devices, Queue};
use taskscope_session::Session;
use taskscope_view::format::harmless;

/// Prints the queue that is called `name`, by its name or its path in the trace.
pub fn run(trace: &Path, name: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    let session = super::open(trace)?;
    let queue = find(&session.devices, name, trace)?;
    let mut out = output::results();
    if as_json {
        for operation in &queue.operations {
            output::write_json_line(&mut out, &QueueRecord::of(&session, queue, operation))?;
        }
    } else {
        for operation in &queue.operations {
            writeln!(out, "{}", line(queue, operation))?;
        }
    }
    out.flush()?;
    if queue.operations.is_empty() {
        eprintln!("note: {} has no operations", harmless(&queue.name));
    }
    Ok(ExitCode::SUCCESS)
}

fn find<'a>(devices: &'a Devices, name: &str, trace: &Path) -> anyhow::Result<&'a Queue> {
    let is_it = |queue: &&Queue| queue.name == name || queue.path == name.trim_end_matches('/');
    let found: Vec<&Queue> = devices.queues.iter().filter(is_it).collect();
    if let [one] = found[..] {
        return Ok(one);
    }
    let names = |queues: &[&Queue]| {
        let shown: Vec<String> =
            queues.iter().take(20).map(|q| format!("{}  ({})", q.name, q.path)).collect();
        shown.join("\n")
    };
    let all: Vec<&Queue> = devices.queues.iter().collect();
    Err(match found.len() {
        0 if all.is_empty() => Failure::new(format!("there is no queue {name} in {}", trace.display()))
            .why("the trace has no device queues"),
        0 => Failure::new(format!("there is no queue {name} in {}", trace.display()))
            .why("the trace has these queues:")
            .remedy(names(&all)),
        _ => Failure::new(format!("several queues are called {name}"))
            .why("processes and devices name their queues by themselves")
            .remedy(format!("give the path of one:\n{}", names(&found))),
    }
    .into())
}

/// A record of a device queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-queue-record/1")]
pub struct QueueRecord {
    /// The columns of the imported file; or, of a recorded queue: `queue`, `kind`, `op`, `id`, `thread`, times in
    /// nanoseconds of the trace's clock (`append`, `start`, `end`), times of the device's clock (`raw_submit`, `raw_start`,
    /// `raw_end`), `bytes`, the submitter (`call`, `task`, `task_type`), and numbers of the vendor.
    #[serde(flatten)]
    columns: IndexMap<String, Cell>,
    /// Its number in the queue. A column of this name is called `column_seq`, and likewise for the keys below.
    seq: u64,
    /// The lane of an out-of-order queue in which it is drawn; null of one without usable times.
    lane: Option<u32>,
    /// Delivery delay, nanoseconds.
    late_ns: u64,
    /// Problems of its times.
    anomalies: Vec<&'static str>,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
enum Cell {
    /// A number.
    Unsigned(u64),
    /// A negative number.
    Signed(i64),
    /// Anything else.
    Text(String),
    /// Null: not known.
    Unknown,
}

impl Cell {
    /// A number if the text is exactly JSON's form of one.
    fn of(text: &str) -> Cell {
        if let Ok(number) = text.parse::<u64>()
            && number.to_string() == text
        {
            return Cell::Unsigned(number);
        }
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Cell::Signed(number),
            _ => Cell::Text(text.to_owned()),
        }
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Unsigned(number)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        u64::try_from(number).map_or(Cell::Signed(number), Cell::Unsigned)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Unknown, Into::into)
    }
}

impl QueueRecord {
    fn of(session: &Session, queue: &Queue, operation: &DeviceOperation) -> QueueRecord {
        let mut columns: IndexMap<String, Cell> = IndexMap::new();
        let mut put = |name: &str, value: Cell| drop(columns.insert(name.to_owned(), value));
        match &operation.columns {
            Some((file, values)) => {
                let names = queue.columns.get(*file as usize).map_or(&[][..], Vec::as_slice);
                for (name, value) in names.iter().zip(split_values(values)) {
                    put(name, Cell::of(value));
                }
                // A field that a file names differently is printed under its own name and this one.
                let DeviceOperation { id, thread, raw: (start, end), .. } = *operation;
                for (name, number, is_known) in [
                    ("id", id.into(), id != 0),
                    ("start", start.into(), true),
                    ("end", end.into(), true),
                    ("thread", thread.into(), thread != 0),
                ] {
                    if is_known && !columns.contains_key(name) {
                        columns.insert(name.to_owned(), number);
                    }
                }
            }
            None => {
                put("queue", queue.name.as_str().into());
                put("kind", operation.kind_name().into());
                put("op", queue.name_of(operation.name).into());
                put("id", operation.id.into());
                put("thread", operation.thread.into());
                put("append", operation.append.into());
                put("start", operation.start.into());
                put("end", operation.end.into());
                put("raw_submit", operation.submit.into());
                put("raw_start", operation.raw.0.into());
                put("raw_end", operation.raw.1.into());
                put("bytes", operation.bytes.into());
                let submitter = submitter(&session.execution, &session.devices, queue, operation);
                let tasks = &session.execution.tasks;
                let task_type = submitter.task.map(|task| session.places.type_name(tasks.ty[task.index()]));
                put("call", submitter.call.as_deref().into());
                put("task", submitter.task.and_then(|task| tasks.number(task)).into());
                put("task_type", task_type.as_deref().into());
                for (name, value) in queue.numbers_of(operation.seq) {
                    put(name, value.into());
                }
            }
        }
        for name in ["schema", "seq", "lane", "late_ns", "anomalies"] {
            if let Some(column) = columns.shift_remove(name) {
                columns.insert(format!("column_{name}"), column);
            }
        }
        QueueRecord {
            columns,
            seq: operation.seq,
            lane: operation.lane,
            late_ns: operation.late_by,
            anomalies: operation.anomaly_names().collect(),
        }
    }
}

fn line(queue: &Queue, operation: &DeviceOperation) -> String {
    let lane = operation.lane.map_or("–".to_owned(), |lane| lane.to_string());
    let anomalies: Vec<&str> = operation.anomaly_names().collect();
    let name = match queue.name_of(operation.name) {
        "" => operation.kind_name(),
        name => name,
    };
    let name = harmless(name);
    let text = format!(
        "{:>8} lane {lane:<3} {} {} {:>12} ns  thread {}  {name}  {}",
        operation.seq,
        operation.start,
        operation.end,
        operation.end.saturating_sub(operation.start),
        operation.thread,
        anomalies.join(" ")
    );
    text.trim_end().to_owned()
}
