//! Shared parts of subcommands that read a trace, besides opening it: violations, problems, `^C`.

use crate::ignored_signals::IgnoredSignals;
use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_event::models;
use taskscope_filter::{Record, Value};
use taskscope_model::{Severity, Violation, ViolationCode};
use taskscope_session::selection::{Selection, field_of_stream, model_name};
use taskscope_trace::Trace;
use taskscope_view::format::{counted, harmless};

/// Maximum printed violations of one kind; further ones are counted, unless all are requested.
const SHOWN_PER_CODE: u64 = 20;

/// Prints violations as they come.
pub struct ViolationPrinter {
    judge: Judge,
    /// Whether violations are listed at all, or only summed up.
    list: bool,
    json: bool,
    /// Lines of each kind, and of how many violations those that were printed are.
    printed: BTreeMap<ViolationCode, (u64, u64)>,
    prefix: &'static str,
    all: bool,
    allowed: Vec<ViolationCode>,
    /// Whether the list is the subcommand's only result, so that it ends without a reader.
    is_all: bool,
    /// Whether the reader of the JSON lines has gone.
    unread: bool,
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
            is_all: true,
            unread: false,
        }
    }

    /// Lifts the limit of twenty printed violations per kind.
    pub fn all(mut self, all: bool) -> Self {
        self.all |= all;
        self
    }

    /// Adapts it for a subcommand that continues after the pipe of the JSON lines is closed.
    pub fn beside_other_work(mut self) -> Self {
        self.is_all = false;
        self
    }

    /// Passes over violations of these rules.
    pub fn allow(mut self, rules: Vec<ViolationCode>) -> Self {
        self.allowed = rules;
        self
    }

    /// Prints in the manner of a tool of this name.
    pub fn in_the_manner_of(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// Counts violations into the verdict, and prints them.
    pub fn take(&mut self, violations: Vec<Violation>, verdict: &mut Verdict) -> anyhow::Result<()> {
        let mut out = self.json.then(output::results);
        let mut printed = Ok(());
        for violation in violations {
            if self.allowed.contains(&violation.code) {
                continue;
            }
            verdict.add(&violation);
            let severity = self.judge.severity(violation.code);
            if severity == Severity::Silent || !(self.list || self.json) {
                continue;
            }
            let (lines, reported) = self.printed.entry(violation.code).or_default();
            *lines += 1;
            if let Some(out) = &mut out {
                if printed.is_ok() && !self.unread {
                    printed = output::write_json_line(out, &ViolationLine::of(&violation, severity));
                }
            } else if *lines <= SHOWN_PER_CODE || self.all {
                *reported += violation.count;
                self.print(&violation, severity);
            }
        }
        if let Some(out) = &mut out {
            printed = printed.and_then(|()| out.flush());
        }
        self.unread |= printed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        if self.unread && !self.is_all {
            return Ok(());
        }
        printed.context("cannot print")
    }

    fn print(&self, violation: &Violation, severity: Severity) {
        let line = ViolationLine::of(violation, severity);
        if !self.prefix.is_empty() {
            let word = if severity == Severity::Error { "ERROR" } else { "WARN" };
            eprintln!("{}: {word}: {}", self.prefix, harmless(line.text));
            return;
        }
        let is_first = self.printed.get(&violation.code).is_some_and(|(lines, _)| *lines == 1);
        eprint!("{}", line.words(is_first));
    }

    /// Prints the number of all violations.
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
            let (_, reported) = self.printed.get(code).copied().unwrap_or_default();
            let hidden = count.saturating_sub(reported);
            if severity != Severity::Silent && hidden > 0 && !self.all {
                let word = if severity == Severity::Error { "error" } else { "warning" };
                let more = if self.list { "more " } else { "" };
                eprintln!("{word}[{}]: {hidden} {more}({})", code.name(), code.meaning());
            }
        }
        eprintln!("{}, {}", counted(errors, "violation"), counted(warnings, "warning"));
        Ok(())
    }
}

/// Problems of one kind that are printed one by one.
const SHOWN_PROBLEMS: usize = 5;

/// The header of a subcommand's output: the problems of the trace, counted by kind, then the first of each kind with
/// their places. Empty for a trace without problems.
pub fn print_problems(trace: &Trace) {
    let counts = problem_counts(trace);
    if counts.is_empty() {
        return;
    }
    let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    eprintln!("note: problems of the trace: {}", words.join(", "));
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in problems_to_report(trace) {
        let shown = shown.entry(problem.kind.name()).or_default();
        *shown += 1;
        if *shown <= SHOWN_PROBLEMS {
            eprintln!("note: {}", harmless(&problem.to_string()));
        }
    }
}

/// Number of problems of each kind.
fn problem_counts(trace: &Trace) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for problem in problems_to_report(trace) {
        *counts.entry(problem.kind.name()).or_default() += problem.count.max(1);
    }
    counts
}

/// A problem of a trace: an unreadable or irregular part.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-problem/1")]
pub struct ProblemLine<'t> {
    /// Its kind, a stable name.
    kind: &'static str,
    /// The stream's directory below the trace's root.
    stream: &'t str,
    /// The file of the stream.
    file: Option<&'static str>,
    /// Position in the file, bytes.
    byte_offset: Option<u64>,
    /// Time on the trace's clock, nanoseconds.
    clock_ns: Option<i64>,
    /// Number of such problems; 0 if they are not counted.
    count: u64,
    /// One sentence.
    text: &'t str,
}

/// The trace's problems for JSON.
pub fn problem_lines(trace: &Trace) -> Vec<ProblemLine<'_>> {
    let mut lines = Vec::new();
    for problem in problems_to_report(trace) {
        lines.push(ProblemLine {
            kind: problem.kind.name(),
            stream: &problem.stream,
            file: problem.file.map(taskscope_event::StreamFile::name),
            byte_offset: problem.offset,
            clock_ns: problem.clock_ns,
            count: problem.count,
            text: &problem.text,
        });
    }
    lines
}

/// The problems of which a reader should know.
fn problems_to_report(trace: &Trace) -> impl Iterator<Item = &taskscope_trace::Problem> {
    trace.problems().iter().filter(|problem| problem.kind.is_reported())
}

/// A violation as filters see it: fields of its event and of its stream.
struct ViolationRecord<'a> {
    trace: &'a Trace,
    stream: Option<usize>,
    violation: &'a Violation,
}

impl Record for ViolationRecord<'_> {
    fn field<R>(&self, name: &str, with: impl FnOnce(Option<Value<'_>>) -> R) -> R {
        let code = self.violation.event;
        match (name, self.stream) {
            ("time", _) => with(self.violation.time_ns.map(Value::from)),
            ("event", _) => {
                let text = code.map(|code| code.to_string());
                with(text.as_deref().map(Value::Text))
            }
            ("model", _) => with(code.and_then(model_name).map(Value::Text)),
            ("name", _) => with(code.and_then(models::find).map(|spec| Value::Text(spec.name))),
            (_, Some(stream)) => field_of_stream(self.trace, stream, name, with),
            _ => with(None),
        }
    }
}

/// Keeps the violations of selected events or streams.
pub fn select_violations(violations: Vec<Violation>, trace: &Trace, selection: &Selection) -> Vec<Violation> {
    if selection.is_everything() {
        return violations;
    }
    let selected = selection.of(trace);
    let streams: HashMap<&str, usize> = trace
        .streams()
        .iter()
        .enumerate()
        .map(|(index, found)| (found.relative_path.as_str(), index))
        .collect();
    let keeps = |violation: &Violation| {
        let in_range =
            violation.time_ns.is_none_or(|time| (selected.begin_ns..selected.end_ns).contains(&time));
        let stream = streams.get(violation.stream.as_str()).copied();
        let record = ViolationRecord { trace, stream, violation };
        in_range && selection.filter.as_ref().is_none_or(|filter| filter.matches(&record))
    };
    violations.into_iter().filter(keeps).collect()
}

/// A violation of a rule.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-violation/1")]
pub struct ViolationLine<'v> {
    /// The rule, a stable name.
    pub code: &'static str,
    /// The severity.
    #[schemars(extend("enum" = ["error", "warning"]))]
    pub severity: &'static str,
    /// Directory of the thread's stream or the device queue below the trace's root; empty if it concerns none.
    pub stream: &'v str,
    /// Position in the stream's file, bytes.
    pub byte_offset: Option<u64>,
    /// Nanoseconds since the first event of the trace.
    pub time_ns: Option<i64>,
    /// The event that breaks the rule.
    pub event: Option<String>,
    /// Sequence number of the operation, for a device queue.
    pub operation: Option<u64>,
    /// Number of violations.
    pub count: u64,
    /// One sentence.
    pub text: &'v str,
    /// The rule's demand.
    pub meaning: &'static str,
}

impl<'v> ViolationLine<'v> {
    fn of(violation: &'v Violation, severity: Severity) -> ViolationLine<'v> {
        ViolationLine {
            code: violation.code.name(),
            severity: if severity == Severity::Error { "error" } else { "warning" },
            stream: &violation.stream,
            byte_offset: violation.offset,
            time_ns: violation.time_ns,
            event: violation.event.map(|event| event.to_string()),
            operation: None,
            count: violation.count,
            text: &violation.text,
            meaning: violation.code.meaning(),
        }
    }
}

impl ViolationLine<'_> {
    /// The violation as lines of text, the first of its rule with the rule's demand.
    pub fn words(&self, is_first: bool) -> String {
        let mut out = format!("{}[{}]: {}\n", self.severity, self.code, harmless(self.text));
        let mut place = Vec::new();
        if !self.stream.is_empty() {
            place.push(self.stream.to_owned());
        }
        place.extend(self.byte_offset.map(|offset| format!("byte {offset}")));
        place.extend(self.time_ns.map(|time| format!("at {:.9} s", time as f64 / 1e9)));
        place.extend(self.event.as_ref().map(|event| format!("event {event}")));
        place.extend(self.operation.map(|operation| format!("operation {operation}")));
        if !place.is_empty() {
            out += &format!("  in:   {}\n", harmless(&place.join(", ")));
        }
        if is_first {
            out += &format!("  means: {}\n", self.meaning);
        }
        out
    }
}

/// `^C`, SIGTERM and the end of the terminal, noticed between rounds of events, so that outputs are closed
/// properly. A second one ends the program at once.
pub struct Interruption(Arc<AtomicUsize>);

impl Interruption {
    /// Starts to listen. Call before the first output is made.
    pub fn watch() -> anyhow::Result<Interruption> {
        let (came, signal_number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for signal in IgnoredSignals::ending().map(|signal| signal as i32) {
            // In this order: the first signal finds nothing to end.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&came))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&came)))
                .and_then(|_| {
                    signal_hook::flag::register_usize(signal, Arc::clone(&signal_number), signal as usize)
                })
                .context("cannot listen for signals")?;
        }
        Ok(Interruption(signal_number))
    }

    /// Whether the user wants to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The error of a stopped subcommand: its usable result, and the exit code of shells for a process that a signal
    /// ended.
    pub fn failure(&self, kept: impl Into<String>) -> Failure {
        let signal = self.0.load(Ordering::Relaxed) as u8;
        Failure::new("interrupted").kept(kept).exit_code(128 + signal)
    }
}
