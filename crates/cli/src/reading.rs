//! What all reading verbs share: which trace and how, violations, progress, `^C`.

use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use taskscope_event::decode::FieldValue;
use taskscope_event::models::{self, MODELS};
use taskscope_execution::filter::{Filter, Record, TimeRange, Value};
use taskscope_model::{Severity, Violation, ViolationCode};
use taskscope_session::judgement::{Judge, Verdict};
use taskscope_trace::{ClockSource, MergedEvent, OpenError, OpenOptions, ReadOrder, Trace};

/// Violations of one kind that are printed; further ones are counted, unless all are asked for.
const SHOWN_PER_CODE: u64 = 20;

/// Which trace to read.
#[derive(clap::Args, Clone, Debug)]
pub struct TraceArgs {
    /// Trace directory, or a part of one (a loom, a process, a thread)
    pub trace: PathBuf,
    /// Offsets between the clocks of hosts (default: `clock-offsets.txt` in the trace)
    #[arg(short = 'c', long = "clock-offsets", value_name = "FILE")]
    pub clock_offsets: Option<PathBuf>,
}

impl TraceArgs {
    fn clocks(&self) -> ClockSource {
        self.clock_offsets.clone().map_or(ClockSource::Beside, ClockSource::File)
    }
}

/// Opens the trace for the verbs that play it.
pub fn open(args: &TraceArgs, own_events: bool) -> anyhow::Result<Trace> {
    open_in_order(args, own_events, args.clocks(), ReadOrder::Repaired)
}

/// Opens the trace.
pub fn open_in_order(
    args: &TraceArgs,
    own_events: bool,
    clocks: ClockSource,
    order: ReadOrder,
) -> anyhow::Result<Trace> {
    let options = OpenOptions { clocks, own_events, order };
    Trace::open(&args.trace, &options).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match &error {
            OpenError::Unreadable { .. } => failure.remedy("check the path: a trace is a directory"),
            OpenError::NoStreams { .. } => failure
                .why("a thread's stream is a directory with a stream.json and a stream.obs")
                .remedy("record one: taskscope record -- PROGRAM"),
            OpenError::ClockOffsets { .. } => failure.remedy("measure them again: taskscope sync"),
        }
        .into()
    })
}

/// Prints violations as they come.
pub struct ViolationPrinter {
    judge: Judge,
    /// Whether violations are listed at all, or only summed up.
    list: bool,
    json: bool,
    printed: BTreeMap<ViolationCode, u64>,
    prefix: &'static str,
    all: bool,
    allowed: Vec<ViolationCode>,
}

impl ViolationPrinter {
    /// A printer; with `list` every violation that the judge does not pass over is printed.
    pub fn new(judge: Judge, list: bool, json: bool) -> Self {
        ViolationPrinter {
            judge,
            list,
            json,
            printed: BTreeMap::new(),
            prefix: "",
            all: json,
            allowed: Vec::new(),
        }
    }

    /// Also prints what exceeds twenty violations of a kind.
    pub fn all(mut self, all: bool) -> Self {
        self.all |= all;
        self
    }

    /// Passes over violations with these names.
    pub fn allow(mut self, names: &[String]) -> anyhow::Result<Self> {
        for name in names {
            let code = ViolationCode::ALL.iter().find(|code| code.name() == name);
            let code = code.ok_or_else(|| {
                let names: Vec<&str> = ViolationCode::ALL.iter().map(|code| code.name()).collect();
                Failure::new(format!("there is no kind of violation called `{name}`"))
                    .remedy(format!("one of: {}", names.join(", ")))
            })?;
            self.allowed.push(*code);
        }
        Ok(self)
    }

    /// Prints in the manner of a tool of this name.
    pub fn in_the_manner_of(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// Counts violations into the verdict, and prints them.
    pub fn take(&mut self, violations: Vec<Violation>, verdict: &mut Verdict) -> anyhow::Result<()> {
        let mut out = self.json.then(output::results);
        for violation in violations {
            if self.allowed.contains(&violation.code) {
                continue;
            }
            verdict.add(&violation);
            let severity = self.judge.severity(violation.code);
            if severity == Severity::Silent || !(self.list || self.json) {
                continue;
            }
            let printed = self.printed.entry(violation.code).or_default();
            *printed += 1;
            if let Some(out) = &mut out {
                writeln!(out, "{}", violation_json(&violation, severity)).context("cannot print")?;
            } else if *printed <= SHOWN_PER_CODE || self.all {
                self.print(&violation, severity);
            }
        }
        if let Some(out) = &mut out {
            out.flush().context("cannot print")?;
        }
        Ok(())
    }

    fn print(&self, violation: &Violation, severity: Severity) {
        if !self.prefix.is_empty() {
            let word = if severity == Severity::Error { "ERROR" } else { "WARN" };
            eprintln!("{}: {word}: {}", self.prefix, violation.text);
            return;
        }
        let word = if severity == Severity::Error { "error" } else { "warning" };
        eprintln!("{word}[{}]: {}", violation.code.name(), violation.text);
        let mut place = Vec::new();
        if !violation.stream.is_empty() {
            place.push(violation.stream.clone());
        }
        place.extend(violation.offset.map(|offset| format!("byte {offset}")));
        place.extend(violation.time_ns.map(|time| format!("at {:.9} s", time as f64 / 1e9)));
        place.extend(violation.event.map(|event| format!("event {event}")));
        if !place.is_empty() {
            eprintln!("  in:   {}", place.join(", "));
        }
        if self.printed.get(&violation.code) == Some(&1) {
            eprintln!("  means: {}", violation.code.meaning());
        }
    }

    /// Says how many there were in all.
    pub fn summary(&self, verdict: &Verdict) -> anyhow::Result<()> {
        if !self.prefix.is_empty() {
            return Ok(());
        }
        let errors = verdict.count(self.judge, Severity::Error);
        let warnings = verdict.count(self.judge, Severity::Warning);
        if errors + warnings == 0 {
            return Ok(());
        }
        for (code, count) in &verdict.counts {
            let severity = self.judge.severity(*code);
            let hidden =
                count.saturating_sub(self.printed.get(code).copied().unwrap_or(0).min(SHOWN_PER_CODE));
            if severity != Severity::Silent && hidden > 0 && !self.all {
                let word = if severity == Severity::Error { "error" } else { "warning" };
                let more = if self.list { "more " } else { "" };
                eprintln!("{word}[{}]: {hidden} {more}({})", code.name(), code.meaning());
            }
        }
        eprintln!("{errors} violations, {warnings} warnings");
        Ok(())
    }
}

/// Parses `--where`.
pub fn parse_filter(text: Option<&str>) -> anyhow::Result<Option<Filter>> {
    let Some(text) = text else { return Ok(None) };
    let filter = Filter::parse(text).map_err(|error| {
        Failure::new(format!("cannot understand --where '{text}'"))
            .why(error.to_string())
            .remedy("--where 'thread = 101 and event ~ VT*' (see docs/filter.md)")
    })?;
    for field in filter.fields() {
        let of_payload = MODELS.iter().flat_map(|model| model.events).flat_map(|event| event.fields);
        if !EVENT_FIELDS.contains(&field) && !of_payload.into_iter().any(|known| known.name == field) {
            return Err(Failure::new(format!("events have no field called `{field}`"))
                .remedy(format!(
                    "one of: {}, or a field of a payload (docs/events.md)",
                    EVENT_FIELDS.join(", ")
                ))
                .into());
        }
    }
    Ok(Some(filter))
}

/// Parses `--range`.
pub fn parse_range(text: Option<&str>) -> anyhow::Result<TimeRange> {
    let Some(text) = text else { return Ok(TimeRange::default()) };
    TimeRange::parse(text).map_err(|error| {
        Failure::new(format!("cannot understand --range '{text}'"))
            .why(error.to_string())
            .remedy("--range 1.5s..2s, --range ..200ms, --range 10%..20%")
            .into()
    })
}

/// Fields that every event has.
const EVENT_FIELDS: [&str; 11] =
    ["time", "clock", "thread", "process", "loom", "app", "stream", "model", "event", "name", "file"];

/// An event as filters see it.
#[derive(Clone, Copy)]
pub struct EventRecord<'a> {
    pub trace: &'a Trace,
    pub merged: MergedEvent<'a>,
    /// Nanoseconds since the trace's start.
    pub time_ns: i64,
}

impl Record for EventRecord<'_> {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
        let event = &self.merged.event;
        let stream = &self.trace.streams()[self.merged.stream];
        let spec = || models::find(event.code);
        match name {
            "time" => with(Some(Value::Integer(self.time_ns))),
            "clock" => with(Some(Value::Integer(event.clock_ns))),
            "thread" => with(stream.tid().map(Value::Integer)),
            "process" => with(stream.pid().map(Value::Integer)),
            "app" => with(stream.metadata.app_id.map(Value::Integer)),
            "loom" => with(stream.loom().map(Value::Text)),
            "stream" => with(Some(Value::Text(&stream.relative_path))),
            "model" => with(models::model_of(event.code.model()).map(|model| Value::Text(model.name))),
            "event" => with(Some(Value::Text(&event.code.to_string()))),
            "name" => with(spec().map(|spec| Value::Text(spec.name))),
            "file" => with(Some(Value::Text(self.merged.file.name()))),
            _ => {
                let mut fields = spec().into_iter().flat_map(|spec| spec.fields_of(event.payload));
                match fields.find(|(field, _)| *field == name) {
                    Some((_, Ok(FieldValue::Integer(number)))) => {
                        with(i64::try_from(number).ok().map(Value::Integer))
                    }
                    Some((_, Ok(text))) => with(Some(Value::Text(&text.to_string()))),
                    _ => with(None),
                }
            }
        }
    }
}

fn violation_json(violation: &Violation, severity: Severity) -> serde_json::Value {
    serde_json::json!({
        "schema": "taskscope.violation.1",
        "code": violation.code.name(),
        "severity": if severity == Severity::Error { "error" } else { "warning" },
        "stream": violation.stream,
        "byte_offset": violation.offset,
        "time_ns": violation.time_ns,
        "event": violation.event.map(|event| event.to_string()),
        "text": violation.text,
        "meaning": violation.code.meaning(),
    })
}

/// Rate, share and time left, on a terminal and after a second only.
pub struct Progress {
    what: &'static str,
    total: u64,
    started: Instant,
    next: Duration,
    shown: bool,
    enabled: bool,
}

impl Progress {
    /// Progress of `total` things.
    pub fn new(what: &'static str, total: u64) -> Self {
        Progress {
            what,
            total,
            started: Instant::now(),
            next: Duration::from_secs(1),
            shown: false,
            enabled: io::stderr().is_terminal(),
        }
    }

    /// Shows that `done` of them are done.
    pub fn show(&mut self, done: u64) {
        if !self.enabled {
            return;
        }
        let elapsed = self.started.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + Duration::from_millis(200);
        self.shown = true;
        let rate = done as f64 / elapsed.as_secs_f64();
        let share = 100.0 * done as f64 / self.total.max(1) as f64;
        let left = self.total.saturating_sub(done) as f64 / rate.max(1.0);
        eprint!("\r{share:5.1} %  {:.2} M {}/s  {left:.0} s left \x1b[K", rate / 1e6, self.what);
        let _ = io::stderr().flush();
    }

    /// Clears the line.
    pub fn finish(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// `^C`, noticed between rounds of events, so that outputs are closed properly. A second one ends
/// the program at once.
pub struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Starts to listen.
    pub fn watch() -> anyhow::Result<Interruption> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&requested))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&requested)))
                .context("cannot listen for signals")?;
        }
        Ok(Interruption(requested))
    }

    /// Whether the user wants to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
