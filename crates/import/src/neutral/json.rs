//! The neutral form as JSON.
//!
//! Rows are cut out of the text first and read one by one, so that every error knows its line.

use super::rows::{CopyRow, DataRow, MAX_ERRORS, Rows, RuntimeRow, Source, TaskRow, WorkerRow, role};
use crate::{ImportError, ImportErrors};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use taskscope_execution::graph::{Table, TaskGraph};

/// A neutral trace as stored in its file.
#[derive(Debug)]
pub struct Case {
    /// Name of the run; may be empty.
    pub name: String,
    /// The graph.
    pub graph: TaskGraph,
    /// Windows of time for which the file asks partial sums.
    pub windows: Vec<(u64, u64)>,
    /// Keys of the trace and of the first row of each table that are not of the form, as `trace.copies`; they were not read.
    pub unread: Vec<String>,
}

/// The version of the form that is read.
pub const SCHEMA: &str = "slo-case/1";

#[derive(Deserialize)]
struct RawCase<'a> {
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    trace: RawTrace<'a>,
    #[serde(default)]
    windows: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct RawTrace<'a> {
    #[serde(default)]
    time_unit: Option<String>,
    #[serde(borrow)]
    workers: Vec<&'a RawValue>,
    #[serde(borrow)]
    tasks: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    data: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    runtime: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonWorker<'a> {
    id: u64,
    node: u64,
    begin: u64,
    end: u64,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct JsonTask<'a> {
    id: u64,
    #[serde(rename = "type", borrow)]
    ty: Cow<'a, str>,
    node: u64,
    worker: u64,
    start: u64,
    end: u64,
    #[serde(default)]
    inputs: Vec<u64>,
    #[serde(default)]
    runtime_uniform: u64,
    #[serde(default)]
    created: Option<u64>,
    #[serde(default)]
    creator: Option<u64>,
    #[serde(default)]
    ready: Option<u64>,
    #[serde(default)]
    function: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u32,
}

#[derive(Deserialize)]
struct JsonData {
    id: u64,
    #[serde(default)]
    producer: Option<u64>,
    #[serde(default)]
    produced: Option<u64>,
    home: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    copies: Vec<JsonCopy>,
}

#[derive(Deserialize)]
struct JsonCopy {
    node: u64,
    arrived: u64,
    #[serde(default)]
    sent: Option<u64>,
}

#[derive(Deserialize)]
struct JsonRuntime<'a> {
    worker: u64,
    start: u64,
    end: u64,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// Reads a neutral trace.
///
/// # Errors
/// All errors, each with line and field: invalid JSON, missing fields, wrong types, unknown ids, impossible
/// times.
pub fn read_json(text: &str) -> Result<Case, ImportErrors> {
    let one = |line, field: &str, text| {
        ImportErrors(vec![ImportError { file: String::new(), line, field: field.to_owned(), text }])
    };
    let raw: RawCase<'_> = serde_json::from_str(text).map_err(|error| {
        let line = error.line();
        one(line, "", without_position(&error))
    })?;
    match raw.schema.as_deref() {
        Some(SCHEMA) | None => {}
        Some(other) => {
            let text_of = format!("schema `{other}` is not known; this reads `{SCHEMA}`");
            return Err(one(line_of_key(text, text, "schema"), "schema", text_of));
        }
    }
    if let Some(unit) = raw.trace.time_unit.as_deref().filter(|unit| *unit != "ns") {
        let text_of = format!("times in `{unit}` are not read; give integers in nanoseconds, `ns`");
        return Err(one(line_of_key(text, text, "time_unit"), "trace.time_unit", text_of));
    }
    let mut source = JsonSource { text, trace: &raw.trace, copy_rows: Vec::new() };
    let (mut rows, mut errors) = (Rows::default(), Vec::new());
    let mut wrong_kinds = Vec::new();
    source.read(Table::Workers, &mut errors, |row: JsonWorker<'_>| {
        let role = row.kind.as_deref().map(role).transpose().unwrap_or_else(|text| {
            wrong_kinds.push((rows.workers.len(), text));
            None
        });
        rows.workers.push(WorkerRow { id: row.id, node: row.node, begin: row.begin, end: row.end, role });
    });
    errors.extend(
        wrong_kinds
            .into_iter()
            .take(MAX_ERRORS)
            .map(|(row, text)| source.error(Table::Workers, row, "kind", text)),
    );
    source.read(Table::Tasks, &mut errors, |row: JsonTask<'_>| {
        rows.tasks.push(TaskRow {
            id: row.id,
            ty: row.ty.into_owned(),
            node: row.node,
            worker: row.worker,
            start: row.start,
            end: row.end,
            inputs: row.inputs,
            uniform: row.runtime_uniform,
            created: row.created,
            creator: row.creator,
            ready: row.ready,
            function: row.function,
            file: row.file,
            line: row.line,
        });
    });
    let mut copy_rows = Vec::new();
    let mut without_time = Vec::new();
    source.read(Table::Data, &mut errors, |row: JsonData| {
        if row.produced.is_none() && row.producer.is_some() {
            without_time.push(rows.data.len());
        }
        for copy in &row.copies {
            copy_rows.push(rows.data.len());
            rows.copies.push(CopyRow {
                data: row.id,
                node: copy.node,
                sent: copy.sent,
                arrived: copy.arrived,
            });
        }
        let JsonData { id, producer, produced, home, bytes, name, .. } = row;
        rows.data.push(DataRow { id, producer, produced: produced.unwrap_or(0), home, bytes, name });
    });
    source.copy_rows = copy_rows;
    for row in without_time.into_iter().take(MAX_ERRORS) {
        errors.push(source.error(
            Table::Data,
            row,
            "produced",
            "a producer, but no time of production".to_owned(),
        ));
    }
    source.read(Table::Activities, &mut errors, |row: JsonRuntime<'_>| {
        rows.runtime.push(RuntimeRow {
            worker: row.worker,
            start: row.start,
            end: row.end,
            kind: row.kind.into_owned(),
        });
    });
    if !errors.is_empty() {
        return Err(ImportErrors(errors));
    }
    let graph = rows.graph(&source)?;
    Ok(Case { unread: unread_keys(text, &raw.trace), name: raw.name, graph, windows: raw.windows })
}

/// The keys of an object.
struct Keys(Vec<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Keys;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, serde::de::IgnoredAny)) = map.next_entry::<String, _>()? {
                    keys.push(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Fields of a worker: keys here, columns in tables.
pub(super) const WORKER_MEMBERS: [&str; 5] = ["id", "node", "begin", "end", "kind"];

/// Fields of a task: keys here, columns in tables.
pub(super) const TASK_MEMBERS: [&str; 14] = [
    "id",
    "type",
    "node",
    "worker",
    "start",
    "end",
    "inputs",
    "runtime_uniform",
    "created",
    "creator",
    "ready",
    "function",
    "file",
    "line",
];

/// A key that is mistyped would be taken as one that was left out.
fn unread_keys(text: &str, trace: &RawTrace<'_>) -> Vec<String> {
    #[derive(Deserialize)]
    struct OfTrace {
        trace: Keys,
    }
    let first = |rows: &[&RawValue]| {
        let keys = rows.first().and_then(|row| serde_json::from_str::<Keys>(row.get()).ok());
        keys.map_or(Vec::new(), |keys| keys.0)
    };
    let trace_keys = serde_json::from_str::<OfTrace>(text).map_or(Vec::new(), |of| of.trace.0);
    let data = ["id", "producer", "produced", "home", "bytes", "name", "copies"];
    let tables: [(&str, Vec<String>, &[&str]); 5] = [
        ("trace", trace_keys, &["time_unit", "workers", "tasks", "data", "runtime"]),
        ("workers[0]", first(&trace.workers), &WORKER_MEMBERS),
        ("tasks[0]", first(&trace.tasks), &TASK_MEMBERS),
        ("data[0]", first(&trace.data), &data),
        ("runtime[0]", first(&trace.runtime), &["worker", "start", "end", "kind"]),
    ];
    let unread = tables.into_iter().flat_map(|(table, keys, known)| {
        let further = keys.into_iter().filter(|key| !known.contains(&key.as_str()));
        further.map(move |key| format!("{table}.{key}"))
    });
    unread.collect()
}

struct JsonSource<'a> {
    text: &'a str,
    trace: &'a RawTrace<'a>,
    /// The data row of each copy.
    copy_rows: Vec<usize>,
}

impl<'a> JsonSource<'a> {
    fn table(&self, table: Table) -> (&'static str, &'a [&'a RawValue]) {
        match table {
            Table::Workers => ("workers", &self.trace.workers),
            Table::Data | Table::Copies => ("data", &self.trace.data),
            Table::Activities => ("runtime", &self.trace.runtime),
            Table::Tasks | Table::Inputs | Table::Pieces => ("tasks", &self.trace.tasks),
        }
    }

    fn read<T: Deserialize<'a>>(&self, table: Table, errors: &mut Vec<ImportError>, mut take: impl FnMut(T)) {
        let (name, rows) = self.table(table);
        for (row, raw) in rows.iter().enumerate() {
            match serde_json::from_str::<T>(raw.get()) {
                Ok(value) => take(value),
                Err(_) if errors.len() >= MAX_ERRORS => return,
                Err(error) => errors.push(self.explain(name, row, raw, &error)),
            }
        }
    }

    /// Which field made `error`: the last key before its position in the row.
    fn explain(&self, table: &str, row: usize, raw: &'a RawValue, error: &serde_json::Error) -> ImportError {
        // A missing field is reported at its row's end; the row's begin is more useful.
        let missing = error.to_string().starts_with("missing field");
        let below = if missing { 0 } else { error.line().saturating_sub(1) };
        let line = line_at(self.text, raw.get()) + below;
        let field = match field_before(raw.get(), error) {
            Some(field) => format!("{table}[{row}].{field}"),
            None => format!("{table}[{row}]"),
        };
        ImportError { file: String::new(), line, field, text: plain_words(raw.get(), error) }
    }
}

impl Source for JsonSource<'_> {
    fn error(&self, table: Table, row: usize, field: &str, text: String) -> ImportError {
        let row = if table == Table::Copies { self.copy_rows.get(row).copied().unwrap_or(0) } else { row };
        // The life of a row's fields in the file: names of the graph are not always those of the file.
        let (name, rows) = self.table(table);
        let field = if table == Table::Copies { "copies" } else { field };
        let line = rows.get(row).map_or(0, |raw| line_of_key(self.text, raw.get(), field));
        ImportError { file: String::new(), line, field: format!("{name}[{row}].{field}"), text }
    }
}

/// Line, from 1, of the start of `part`, which is a slice of `text`.
fn line_at(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
}

/// Line of the first key `key` in `part`, or of `part` if it has no such key.
fn line_of_key(text: &str, part: &str, key: &str) -> usize {
    let at = part.find(&format!("\"{key}\"")).unwrap_or(0);
    line_at(text, &part[at..])
}

/// The key of the value with an error, by the error's position.
fn field_before(row: &str, error: &serde_json::Error) -> Option<String> {
    let message = error.to_string();
    if let Some(rest) = message.strip_prefix("missing field `") {
        return rest.split('`').next().map(str::to_owned);
    }
    // Take the fields one by one: the first value that alone gives the same complaint is it.
    let value: Value = serde_json::from_str(row).ok()?;
    let number_fields = [
        "id",
        "node",
        "worker",
        "start",
        "end",
        "begin",
        "runtime_uniform",
        "producer",
        "produced",
        "home",
        "bytes",
        "created",
        "creator",
        "ready",
        "line",
    ];
    let object = value.as_object()?;
    for (key, value) in object {
        let wrong = match key.as_str() {
            "producer" | "created" | "creator" | "ready" => !value.is_null() && !value.is_u64(),
            name if number_fields.contains(&name) => !value.is_u64(),
            "type" | "kind" | "name" | "function" | "file" => !value.is_string(),
            "inputs" => !value.as_array().is_some_and(|list| list.iter().all(Value::is_u64)),
            "copies" => !value.as_array().is_some_and(|list| {
                list.iter().all(|copy| {
                    copy["node"].is_u64()
                        && copy["arrived"].is_u64()
                        && (copy["sent"].is_null() || copy["sent"].is_u64())
                })
            }),
            _ => false,
        };
        if wrong {
            return Some(key.clone());
        }
    }
    None
}

fn plain_words(row: &str, error: &serde_json::Error) -> String {
    let message = without_position(error);
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("the field {rest} is missing");
    }
    let field = field_before(row, error);
    let value = field.and_then(|key| serde_json::from_str::<Value>(row).ok().map(|row| row[&key].clone()));
    // The reader's own words name types of its language.
    let expects_number = ["expected u64", "expected u32"].iter().any(|end| message.ends_with(end));
    match value
        .filter(|value| expects_number || value.is_number())
        .as_ref()
        .and_then(|value| not_a_time(value, ""))
    {
        Some((inside, Value::Number(number))) if number.as_f64().is_some_and(|n| n < 0.0) => {
            format!("{inside}{number} is negative; ids and times are integers from 0 on")
        }
        Some((inside, value)) => format!("{inside}{value} is no integer; ids and times are integers"),
        None => message,
    }
}

/// The first value in `value` that is neither an id nor a time, and its path.
fn not_a_time<'v>(value: &'v Value, inside: &str) -> Option<(String, &'v Value)> {
    match value {
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.into_iter().find_map(|(row, item)| not_a_time(item, &format!("{inside}[{row}]")))
        }
        Value::Object(fields) => {
            let dot = if inside.is_empty() { "" } else { "." };
            fields.iter().find_map(|(key, value)| not_a_time(value, &format!("{inside}{dot}{key}")))
        }
        Value::Number(number) if number.is_u64() => None,
        // A time that was not recorded.
        Value::Null if !inside.is_empty() => None,
        other if inside.is_empty() => Some((String::new(), other)),
        other => Some((format!("{inside}: "), other)),
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let end = message.find(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
}
