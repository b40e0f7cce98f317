//! `taskscope dump --queue QUEUE`: the records of a device queue in the order of their release.

use crate::messages::Failure;
use crate::output;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use taskscope_analysis::devices::submitter;
use taskscope_event::models::device::split_values;
use taskscope_execution::devices::{Devices, Operation, Queue};
use taskscope_session::Session;
use taskscope_view::format::harmless;

/// Prints the queue that is called `name`, by its name or its path in the trace.
pub fn run(trace: &Path, name: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    let session = super::open(trace)?;
    let queue = find(&session.devices, name, trace)?;
    let mut out = output::results();
    if as_json {
        for operation in &queue.operations {
            serde_json::to_writer(&mut out, &object(&session, queue, operation))
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
    } else {
        for operation in &queue.operations {
            writeln!(out, "{}", line(queue, operation))?;
        }
    }
    out.flush()?;
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
            .why("the trace tells of no device queue"),
        0 => Failure::new(format!("there is no queue {name} in {}", trace.display()))
            .why("the trace has these queues:")
            .remedy(names(&all)),
        _ => Failure::new(format!("several queues are called {name}"))
            .why("processes and devices name their queues by themselves")
            .remedy(format!("give the path of one:\n{}", names(&found))),
    }
    .into())
}

/// The imported columns, or what a recorder knows; then what the ordering found.
fn object(session: &Session, queue: &Queue, operation: &Operation) -> Value {
    let mut object = Map::new();
    match &operation.columns {
        Some((file, values)) => {
            let names = queue.columns.get(*file as usize).map_or(&[][..], Vec::as_slice);
            for (name, value) in names.iter().zip(split_values(values)) {
                object.insert(name.clone(), typed(value));
            }
            // What a file calls otherwise has its own name, and this one.
            let Operation { id, thread, raw: (start, end), .. } = *operation;
            for (name, number, is_told) in [
                ("id", json!(id), id != 0),
                ("start", json!(start), true),
                ("end", json!(end), true),
                ("thread", json!(thread), thread != 0),
            ] {
                if is_told && !object.contains_key(name) {
                    object.insert(name.into(), number);
                }
            }
        }
        None => {
            object.insert("queue".into(), json!(queue.name));
            object.insert("kind".into(), json!(operation.kind_name()));
            object.insert("op".into(), json!(queue.name_of(operation.name)));
            object.insert("id".into(), json!(operation.id));
            object.insert("thread".into(), json!(operation.thread));
            object.insert("append".into(), json!(operation.append));
            object.insert("start".into(), json!(operation.start));
            object.insert("end".into(), json!(operation.end));
            object.insert("raw_submit".into(), json!(operation.submit));
            object.insert("raw_start".into(), json!(operation.raw.0));
            object.insert("raw_end".into(), json!(operation.raw.1));
            object.insert("bytes".into(), json!(operation.bytes));
            let submitter = submitter(&session.execution, &session.devices, queue, operation);
            let tasks = &session.execution.tasks;
            let task_type = submitter.task.map(|task| session.places.type_name(tasks.ty[task.index()]));
            object.insert("call".into(), json!(submitter.call));
            object.insert("task".into(), json!(submitter.task.and_then(|task| tasks.number(task))));
            object.insert("task_type".into(), json!(task_type));
            for (name, value) in queue.numbers_of(operation.seq) {
                object.insert(name.to_owned(), json!(value));
            }
        }
    }
    let anomalies: Vec<&str> = operation.anomaly_names().collect();
    let found = [
        ("seq", json!(operation.seq)),
        ("lane", json!(operation.lane)),
        ("late_ns", json!(operation.late_by)),
        ("anomalies", json!(anomalies)),
    ];
    for (name, value) in found {
        // A column of that name stays, under another one.
        if let Some(column) = object.shift_remove(name) {
            object.insert(format!("column_{name}"), column);
        }
        object.insert(name.into(), value);
    }
    Value::Object(object)
}

/// A number where the text is one exactly as JSON would write it.
fn typed(text: &str) -> Value {
    if let Ok(number) = text.parse::<u64>()
        && number.to_string() == text
    {
        return json!(number);
    }
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => json!(number),
        _ => json!(text),
    }
}

fn line(queue: &Queue, operation: &Operation) -> String {
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
