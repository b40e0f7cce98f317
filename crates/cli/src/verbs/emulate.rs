//! `taskscope emulate`: Paraver views of a trace, equal to ovniemu's.

use super::choices::Choice;
use crate::messages::Failure;
use crate::opening::{SelectionArgs, TraceArgs, TracePart, require_range};
use crate::reading::{Interruption, ViolationPrinter};
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_check::emulation;
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_event::StreamFile;
use taskscope_execution::view::{NoViews, ViewFamily};
use taskscope_export::RangeObserver;
use taskscope_export::paraver::{ParaverWriter, ViewFile, write_queues};
use taskscope_filter::{Filter, Literal, TimeRange};
use taskscope_model::{Machine, MachineOptions, System, Violation};
use taskscope_session::instrumentation::Behaviour;
use taskscope_trace::MergedEvent;
use taskscope_view::format::shell_word;

/// Write Paraver views of a trace: the activity of threads and CPUs.
///
/// Damaged traces are read as far as possible. With -l, violations of ovni's rules are listed (--all: every one); the
/// exit code is 1 if there are any.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Also write breakdown views (`<model>-breakdown.prv`)
    #[arg(short = 'b', long)]
    pub breakdown: bool,
    /// Judge as `ovniemu -l` does: list violations, exit with 1 if there are any
    #[arg(short = 'l', long = "strict")]
    pub strict: bool,
    /// With -l, list every violation instead of the first twenty of each kind
    #[arg(long, requires = "strict")]
    pub all: bool,
    /// Enable all models, regardless of the streams' requirements
    #[arg(short = 'a', long)]
    pub all_models: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Restrict to the threads with these ids; short for --where "thread in …"
    #[arg(long, value_name = "TID", value_delimiter = ',', allow_negative_numbers = true)]
    pub threads: Vec<i64>,
    /// Compress the `.prv` files
    #[arg(long)]
    pub gzip: bool,
    /// Write instrumented threads in Nanos++'s numbers (`nanos.prv`) instead: states 9000000, keys 9200000 + number
    #[arg(long, value_name = "BEHAVIOUR", num_args = 0..=1, default_missing_value = "stacked",
          value_parser = BehaviourBeforeTrace,
          conflicts_with_all = ["breakdown", "strict", "all_models", "range", "threads", "gzip", "json"])]
    pub nanos: Option<Behaviour>,
    /// Output directory (default: the trace)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// List violations as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
}

/// Parses the behaviour after `--nanos`, which may be the trace instead.
#[derive(Clone)]
struct BehaviourBeforeTrace;

impl TypedValueParser for BehaviourBeforeTrace {
    type Value = Behaviour;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Behaviour, clap::Error> {
        let names: Vec<String> =
            self.possible_values().into_iter().flatten().map(|value| value.get_name().to_owned()).collect();
        let known = value.to_str().filter(|name| names.iter().any(|known| known == name));
        match known.and_then(|name| Choice::<Behaviour>::from_str(name, false).ok()) {
            Some(Choice(behaviour)) => Ok(behaviour),
            None => Err(command.clone().error(
                ErrorKind::InvalidValue,
                format!(
                    "behaviours are {}; if it is the trace: taskscope emulate {} --nanos",
                    names.join(", "),
                    shell_word(Path::new(value))
                ),
            )),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let choices = Choice::<Behaviour>::value_variants().iter();
        // Nanos++ has no contexts of its own.
        let choices = choices.filter(|choice| choice.0 != Behaviour::Raw);
        Some(Box::new(choices.filter_map(Choice::to_possible_value)))
    }
}

/// The part of a trace to write, and the rules to judge it by.
pub struct Job {
    pub options: MachineOptions,
    pub judge: Judge,
    pub gzip: bool,
    pub directory: PathBuf,
    /// Whether the user named the directory, and so means the pipes in it.
    pub pipes: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(behaviour) = args.nanos {
        let trace = args.trace.chosen()?.open(true)?;
        let directory = args.output.unwrap_or_else(|| trace.root().to_path_buf());
        super::emulate_nanos::write(&trace, &directory, behaviour)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut selection = args.selection.parse()?;
    selection.filter = and_thread_in(selection.filter, &args.threads);
    if args.strict && selection.filter.is_some() {
        return Err(Failure::new("-l excludes --where and --threads")
            .why("without all of its events a trace breaks rules that it does not break")
            .remedy(
                "taskscope check --where FILTER TRACE        (lists the violations of the selected events)",
            )
            .into());
    }
    let mut part = TracePart::open(args.trace, selection, false)?;
    if !args.strict {
        part = part.require_events()?;
    }
    part = part.require_threads(&args.threads)?;
    // With -l, too: ovni's rules say nothing of some.
    if !args.json {
        part = part.print_problems();
    }
    let trace = &part.trace;
    let job = Job {
        options: MachineOptions { all_models: args.all_models, breakdown: args.breakdown },
        judge: if args.strict { Judge::Ovni { lint: true } } else { Judge::Own },
        gzip: args.gzip,
        pipes: args.output.is_some(),
        directory: args.output.unwrap_or_else(|| trace.root().to_path_buf()),
    };
    let printer = ViolationPrinter::new(job.judge, args.strict, args.json).all(args.all).beside_other_work();
    let (system, violations) = emulation::system_of(trace);
    let verdict = emulate(&part, &system, violations, &job, printer, |note| eprintln!("note: {note}"))?;
    // Device queues are not part of ovni's format: they get their own view, with the times of the others. The
    // trace was opened for ovni's events alone.
    let names = std::fs::read_dir(trace.root()).into_iter().flatten().flatten();
    let has_devices =
        names.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("devices"));
    let devices = if has_devices {
        taskscope_session::devices::read_devices(&part.reopened()?)
    } else {
        taskscope_execution::devices::Devices::default()
    };
    let origin = trace.first_clock_ns().unwrap_or_else(|| devices.range().0 as i64);
    write_queues(&devices, origin.max(0) as u64, &job.directory)
        .with_context(|| format!("cannot write device.prv into {}", job.directory.display()))?;
    Ok(ExitCode::from(u8::from(args.strict && !verdict.accepts(job.judge))))
}

/// The value of `--threads`, as a part of the filter.
fn and_thread_in(filter: Option<Filter>, threads: &[i64]) -> Option<Filter> {
    if threads.is_empty() {
        return filter;
    }
    let ids = threads.iter().map(|id| Literal::Integer((*id).into())).collect();
    Some(Filter::And(filter.into_iter().chain([Filter::OneOf("thread".to_owned(), ids)]).collect()))
}

/// Plays the trace into views. Violations go to the printer, remarks to `note`.
pub fn emulate(
    part: &TracePart,
    system: &System,
    violations: Vec<Violation>,
    job: &Job,
    mut printer: ViolationPrinter,
    mut note: impl FnMut(&str),
) -> anyhow::Result<Verdict> {
    let trace = &part.trace;
    let files = view_files(system, job.options);
    let range = range_of_views(part)?;
    // Views of a part without events would have records after their own end.
    require_range(trace, range).map_err(|failure| failure.kept("views that were written before"))?;
    let selected = part.selected();
    let interruption = Interruption::watch()?;
    let cannot_write = |error: io::Error| {
        Failure::new(format!("cannot write views into {}", job.directory.display()))
            .why(error.to_string())
            .kept("the trace is as it was; views that are not whole are removed")
            .remedy(match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
                    if !job.gzip =>
                {
                    "taskscope emulate -o DIRECTORY TRACE        (or --gzip, which needs a tenth of the room)"
                }
                _ => "taskscope emulate -o DIRECTORY TRACE",
            })
    };
    let end_ns = trace.duration_ns().min(range.1);
    let writer =
        ParaverWriter::create(&job.directory, &files, end_ns, job.gzip, job.pipes).map_err(cannot_write)?;

    let mut machine = Machine::new(system, job.options, RangeObserver::new(writer, range));
    let mut verdict = Verdict::default();
    printer.take(violations, &mut verdict)?;
    let mut are_omitted = false;
    let is_empty = Cell::new(true);
    let plays = |merged: &MergedEvent<'_>| {
        is_empty.set(is_empty.get() && !selected.passes(merged));
        selected.plays(merged)
    };
    // After an error views that were cut are removed with their writer.
    let played = part.play(&mut machine, &interruption, plays, |played, machine| {
        machine.take_notes().iter().for_each(|text| note(text));
        let mut violations = machine.take_violations();
        if part.selection.filter.is_some() {
            // Missing events may be due to the filter, not to the trace.
            are_omitted |= !violations.is_empty();
            violations.clear();
        }
        if !violations.is_empty() {
            printer.take(violations, &mut verdict)?;
        }
        // Before the range everything must be played, after it nothing.
        let past_range = played.end_ns >= range.1 && matches!(job.judge, Judge::Own);
        let ends = past_range || machine.observer.inner().has_failed();
        Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let descriptions: Vec<_> = files.iter().map(|file| (file.view, machine.describe(file.view))).collect();
    let mut writer = machine.into_observer().finish();
    if interruption.is_requested() {
        writer.end_earlier(played.end_ns.max(range.0).min(end_ns));
    }
    writer
        .finish(|view| {
            descriptions.iter().find(|(other, _)| *other == view).and_then(|(_, found)| found.clone())
        })
        .map_err(cannot_write)?;
    if let Some(empty) = part.note_if_empty(is_empty.get() && !interruption.is_requested()) {
        note(&empty);
    }
    if are_omitted {
        note(
            "a part of a trace has no violations of its own; taskscope check --where FILTER TRACE lists those of its events",
        );
    }
    printer.summary(&verdict)?;
    if interruption.is_requested() {
        let kept = format!("views up to {:.9} s are complete", played.end_ns as f64 / 1e9);
        return Err(interruption.failure(kept).into());
    }
    Ok(verdict)
}

/// The range in the time of the views, which begins with the first event of a `stream.obs`; ranges begin
/// with the first event of the trace, which may be one of taskscope's own.
fn range_of_views(part: &TracePart) -> anyhow::Result<(i64, i64)> {
    let (trace, selection) = (&part.trace, &part.selection);
    let in_views = part.selected();
    let has_own = trace.streams().iter().any(|stream| stream.directory.join(StreamFile::Own.name()).exists());
    if selection.range == TimeRange::default() || !has_own {
        return Ok((in_views.begin_ns, in_views.end_ns));
    }
    let whole = part.reopened()?;
    let in_trace = selection.of(&whole);
    let earlier = in_views.origin_ns.saturating_sub(in_trace.origin_ns);
    Ok((in_trace.begin_ns.saturating_sub(earlier), in_trace.end_ns.saturating_sub(earlier)))
}

/// The views that will be written.
fn view_files(system: &System, options: MachineOptions) -> Vec<ViewFile> {
    let machine = Machine::new(system, options, NoViews);
    let described = |view| Some(ViewFile { view, rows: machine.describe(view)?.rows.len() });
    ViewFamily::ALL.into_iter().filter_map(described).collect()
}
