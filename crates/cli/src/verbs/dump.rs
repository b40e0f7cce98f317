//! `taskscope dump`: events as text or JSON lines, in the total order.

use super::choices::Choice;
use crate::opening::{SelectionArgs, TraceArgs, TracePart};
use crate::output;
use crate::reading::{Interruption, problem_lines};
use anyhow::Context;
use indexmap::IndexMap;
use indexmap::map::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;
use taskscope_event::decode::FieldValue;
use taskscope_event::models;
use taskscope_session::instrumentation::{Behaviour, By};
use taskscope_session::selection::EventRecord;
use taskscope_trace::MergedEvent;
use taskscope_view::format;
use taskscope_view::format::counted;

/// Print the events of a trace in time order.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Print JSON lines, one event each
    #[arg(long)]
    pub json: bool,
    /// Print payloads as hexadecimal bytes instead of sentences
    #[arg(short = 'x', long, conflicts_with = "json")]
    pub hex: bool,
    /// Print only ovni's models (`stream.obs`), not taskscope's own
    #[arg(long)]
    pub standard: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Print the records of this device queue in the order of their release instead of events; a name, or a path in the
    /// trace
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["filter", "range", "hex", "standard"])]
    pub queue: Option<String>,
    /// Print the states shown by instrumented threads or tasks instead of events, with names
    #[arg(long, value_name = "BY", value_enum, conflicts_with_all = ["filter", "hex", "standard", "queue"])]
    pub shown: Option<Choice<By>>,
    /// With --shown, form of a task switch
    #[arg(long, value_name = "NAME", value_enum, default_value = "stacked", requires = "shown")]
    pub behaviour: Choice<Behaviour>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(queue) = &args.queue {
        return super::dump_queue::run(&args.trace.chosen()?.trace, queue, args.json);
    }
    let part = TracePart::open(args.trace, args.selection.parse()?, !args.standard)?
        .print_problems()
        .require_events()?
        .require_range()?;
    let (trace, selected) = (&part.trace, part.selected());
    if let Some(Choice(by)) = args.shown {
        let range = (selected.begin_ns, selected.end_ns);
        return super::dump_shown::run(trace, by, args.behaviour.0, args.json, range);
    }
    let interruption = Interruption::watch()?;
    let mut out = output::results();
    if args.json {
        for problem in problem_lines(trace) {
            output::write_json_line(&mut out, &problem).context("cannot print")?;
        }
    }
    // Events printed to a terminal replace the progress line.
    let mut progress = part.progress().beside_results();
    let mut printed = 0_u64;
    for (number, merged) in trace.merge().enumerate() {
        progress.show_sometimes(number as u64);
        let record = selected.record(merged);
        if record.time_ns >= selected.end_ns || interruption.is_requested() {
            break;
        }
        if !selected.passes(&merged) {
            continue;
        }
        if args.json {
            output::write_json_line(&mut out, &EventLine::of(&record))
        } else {
            let stream = &trace.streams()[merged.stream].relative_path;
            let seconds = format_seconds(record.time_ns);
            let text = text_of(&merged, args.hex);
            let (stream, text) = (format::harmless(stream), format::harmless(&text));
            writeln!(out, "{seconds:>16}  {}  {stream}  {text}", merged.event.code)
        }
        .context("cannot print")?;
        printed += 1;
    }
    progress.finish();
    out.flush().context("cannot print")?;
    if interruption.is_requested() {
        return Err(interruption
            .failure(format!("the printed part ({}) is complete", counted(printed, "event")))
            .into());
    }
    part.print_if_empty(printed == 0);
    Ok(ExitCode::SUCCESS)
}

fn format_seconds(time_ns: i64) -> String {
    format!("{}.{:09}", time_ns / 1_000_000_000, time_ns.unsigned_abs() % 1_000_000_000)
}

/// The sentence of an event, or its payload in hexadecimal.
pub fn text_of(merged: &MergedEvent<'_>, hex: bool) -> String {
    let event = &merged.event;
    if hex {
        let size = (event.payload.len() as u32).to_le_bytes();
        let size = if event.is_jumbo { &size[..] } else { &[] };
        return size.iter().chain(event.payload).map(|byte| format!(":{byte:02x}")).collect();
    }
    match models::find(event.code) {
        Some(spec) => spec.sentence(event.payload).to_string(),
        None => "UNKNOWN".to_owned(),
    }
}

/// An event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-event/1")]
pub struct EventLine<'t> {
    /// Nanoseconds since the first event of the trace.
    time_ns: i64,
    /// Time on the trace's clock, nanoseconds.
    clock_ns: i64,
    /// The event's code, such as `OHx`.
    event: String,
    /// Its name; null of an unknown event.
    name: Option<&'static str>,
    /// The stream's directory below the trace's root.
    stream: &'t str,
    /// The file of the stream.
    file: &'static str,
    /// Position in the file, bytes.
    byte_offset: u64,
    /// Process id.
    process: Option<i64>,
    /// Thread id.
    thread: Option<i64>,
    /// The name that the program gave the thread; null without one.
    thread_name: Option<&'t str>,
    /// The payload's fields by name.
    fields: IndexMap<&'static str, Field>,
    /// Length of the payload, bytes.
    payload_bytes: usize,
    /// One sentence.
    text: String,
}

/// The value of a field.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Field {
    /// An integer.
    Signed(i64),
    /// An integer of 64 bits.
    Unsigned(u64),
    /// Any other value.
    Text(String),
    /// Several fields of one name.
    Several(Vec<Field>),
    /// Null: a field that the payload is too short for.
    Missing,
}

impl<'t> EventLine<'t> {
    fn of(record: &EventRecord<'t>) -> EventLine<'t> {
        let event = &record.merged.event;
        let stream = &record.trace.streams()[record.merged.stream];
        let spec = models::find(event.code);
        let mut fields: IndexMap<&str, Field> = IndexMap::new();
        for (name, value) in spec.into_iter().flat_map(|spec| spec.fields_of(event.payload)) {
            let value = match value {
                Ok(FieldValue::Integer(number)) => {
                    i64::try_from(number).map_or(Field::Unsigned(number as u64), Field::Signed)
                }
                Ok(other) => Field::Text(other.to_string()),
                Err(_) => Field::Missing,
            };
            match fields.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                // Counters: several of one name.
                Entry::Occupied(mut place) => match place.get_mut() {
                    Field::Several(values) => values.push(value),
                    first => {
                        let one = std::mem::replace(first, Field::Missing);
                        *first = Field::Several(vec![one, value]);
                    }
                },
            }
        }
        let thread_name = stream.metadata.recorder.thread_name.as_deref();
        EventLine {
            time_ns: record.time_ns,
            clock_ns: event.clock_ns,
            event: event.code.to_string(),
            name: spec.map(|spec| spec.name),
            stream: &stream.relative_path,
            file: record.merged.file.name(),
            byte_offset: event.offset,
            process: stream.pid(),
            thread: stream.tid(),
            thread_name: thread_name.filter(|name| !name.is_empty()),
            fields,
            payload_bytes: event.payload.len(),
            text: text_of(&record.merged, false),
        }
    }
}
