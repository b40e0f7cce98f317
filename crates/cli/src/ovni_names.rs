//! The command under the names of ovni's tools: their options, their formats.
//!
//! Intended differences: all violations are listed, not the first; `-h` succeeds; sentences of
//! `ovnidump` are our own. See docs/ovni-compatibility.md.

use crate::libovni;
use crate::messages;
use crate::opening::{TraceArgs, TracePart, open_trace};
use crate::output;
use crate::reading::ViolationPrinter;
use crate::verbs::{dump, emulate, sort, top};
use anyhow::Context;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_check::emulation;
use taskscope_check::verdict::Judge;
use taskscope_event::models::MODELS;
use taskscope_event::spec::ModelSpec;
use taskscope_model::{MachineOptions, Severity};
use taskscope_record::process;
use taskscope_session::selection::Selection;
use taskscope_trace::{ClockSource, OpenOptions, ProblemKind, ReadOrder, Trace};
use taskscope_view::format::harmless;

/// Runs the tool of the program's name; `None` for names that are not ovni's.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let name = Path::new(arguments.first()?).file_name()?.to_str()?;
    let result = match name {
        "ovniemu" => parse_as(Ovniemu::command().after_help(available_models()), arguments).and_then(ovniemu),
        "ovnidump" => parse(arguments).and_then(ovnidump),
        "ovnitop" => parse(arguments).and_then(ovnitop),
        "ovnisort" => parse(arguments).and_then(ovnisort),
        "ovnisync" => parse(arguments).and_then(ovnisync),
        "ovniver" => ovniver(),
        _ => return None,
    };
    Some(result.unwrap_or_else(|code| code))
}

type Run = Result<ExitCode, ExitCode>;

fn parse<Options: Parser>(arguments: &[OsString]) -> Result<Options, ExitCode> {
    parse_as(Options::command(), arguments)
}

fn parse_as<Options: Parser>(command: clap::Command, arguments: &[OsString]) -> Result<Options, ExitCode> {
    let matches = command.try_get_matches_from(arguments);
    matches.and_then(|matches| Options::from_arg_matches(&matches)).map_err(|error| {
        let misuse = error.use_stderr();
        let _ = error.print();
        ExitCode::from(u8::from(misuse))
    })
}

/// The models that `ovniemu -h` lists: letter, name, version.
fn available_models() -> String {
    let models = MODELS.iter().filter(|model| !model.own);
    let lines =
        models.map(|model| format!("\n  {} {:<8} {}", model.letter as char, model.name, model.version));
    format!("Available emulation models:{}", lines.collect::<String>())
}

/// ovni's tools know one way to fail.
fn finish(result: anyhow::Result<ExitCode>) -> Run {
    result.map_err(|error| {
        // A closed pipe is not a failure; all other errors are exit code 1.
        if messages::finish(Err(error)) == ExitCode::SUCCESS { ExitCode::SUCCESS } else { ExitCode::from(1) }
    })
}

fn trace_args(trace: PathBuf, clock_offsets: Option<PathBuf>) -> TraceArgs {
    TraceArgs { trace, clock_offsets }
}

/// Emulates a trace and writes Paraver views into it.
#[derive(Parser)]
#[command(name = "ovniemu")]
struct Ovniemu {
    /// Clock offsets
    #[arg(short = 'c')]
    clock_offsets: Option<PathBuf>,
    /// Enable all models
    #[arg(short = 'a')]
    all_models: bool,
    /// Write breakdown views
    #[arg(short = 'b')]
    breakdown: bool,
    /// Accepted and without effect
    #[arg(short = 'd')]
    _debug: bool,
    /// Check at the end that all stacks are empty
    #[arg(short = 'l')]
    lint: bool,
    trace: PathBuf,
}

fn ovniemu(options: Ovniemu) -> Run {
    finish(try_ovniemu(options))
}

fn try_ovniemu(options: Ovniemu) -> anyhow::Result<ExitCode> {
    let info = |text: String| eprintln!("ovniemu: INFO: {text}");
    let args = trace_args(options.trace, options.clock_offsets);
    let part = TracePart::open(args, Selection::default(), false)?;
    let trace = &part.trace;
    info(format!("loaded {} streams", trace.streams().len()));
    let (system, violations) = emulation::system_of(trace);
    info(format!(
        "loaded {} looms, {} processes, {} threads and {} cpus",
        system.looms.len(),
        system.processes.len(),
        system.threads.len(),
        system.physical_cpus().count()
    ));
    let judge = Judge::Ovni { lint: options.lint };
    let job = emulate::Job {
        options: MachineOptions { all_models: options.all_models, breakdown: options.breakdown },
        judge,
        gzip: false,
        directory: trace.root().to_path_buf(),
        pipes: false,
    };
    let is_enabled =
        |model: &&ModelSpec| !model.own && (options.all_models || system.models.contains(&model.letter));
    let mut enabled: Vec<&ModelSpec> = MODELS.iter().filter(is_enabled).collect();
    enabled.sort_by_key(|model| model.letter);
    let count = enabled.len();
    info(match options.all_models {
        true => format!("all {count} models are enabled (-a):"),
        false => format!("the following {count} models are enabled:"),
    });
    for model in enabled {
        let events = model.events.len();
        info(format!("{:>8} {} '{}' ({events} events)", model.name, model.version, model.letter as char));
    }
    info("emulation starts".to_owned());
    let printer = ViolationPrinter::new(judge, true, false).all(true).in_the_manner_of("ovniemu");
    let verdict = emulate::emulate(&part, &system, violations, &job, printer, |note| {
        let is_warning = note.starts_with("large flush");
        eprintln!("ovniemu: {}: {note}", if is_warning { "WARN" } else { "INFO" });
    })?;
    if verdict.accepts(judge) {
        info("emulation finished ok".to_owned());
        return Ok(ExitCode::SUCCESS);
    }
    let count = verdict.count(judge, Severity::Error);
    eprintln!("ovniemu: ERROR: emulation finished with {count} errors");
    Ok(ExitCode::from(1))
}

/// ovni's events with the clocks and in the order in which they are stored.
fn as_stored() -> OpenOptions {
    OpenOptions { clocks: ClockSource::None, own_events: false, order: ReadOrder::Stored, turns: false }
}

/// Prints the events of a trace.
#[derive(Parser)]
#[command(name = "ovnidump")]
struct Ovnidump {
    /// Payloads in hexadecimal
    #[arg(short = 'x')]
    hex: bool,
    trace: PathBuf,
}

fn ovnidump(options: Ovnidump) -> Run {
    finish(try_ovnidump(options))
}

fn try_ovnidump(options: Ovnidump) -> anyhow::Result<ExitCode> {
    let trace = open_trace(&options.trace, &as_stored())?;
    let mut out = output::results();
    for merged in trace.merge() {
        let event = &merged.event;
        let stream = &trace.streams()[merged.stream];
        // ovnidump has no name for a trace that is one stream.
        let stream = if stream.directory == trace.root() { "" } else { &stream.relative_path };
        let (stream, text) = (harmless(stream), dump::text_of(&merged, options.hex));
        writeln!(out, "{:>10}  {}  {stream}  {}", event.clock_ns, event.code, harmless(&text))
            .context("cannot print")?;
    }
    out.flush().context("cannot print")?;
    Ok(complain("ovnidump", &trace))
}

/// Reports the problems of a trace; damage is a failure, even if the rest was read.
fn complain(tool: &str, trace: &Trace) -> ExitCode {
    let mut damaged = false;
    for problem in trace.problems() {
        damaged |= matches!(
            problem.kind,
            ProblemKind::TruncatedEvent | ProblemKind::BadMagic | ProblemKind::StreamVersion
        );
        let is_known = !matches!(problem.kind, ProblemKind::NoClockOffsets | ProblemKind::ClockGate);
        if is_known && problem.kind.is_reported() {
            eprintln!("{tool}: ERROR: {}", harmless(&problem.to_string()));
        }
    }
    ExitCode::from(u8::from(damaged))
}

/// Counts the events of a trace.
#[derive(Parser)]
#[command(name = "ovnitop")]
struct Ovnitop {
    trace: PathBuf,
}

fn ovnitop(options: Ovnitop) -> Run {
    finish((|| {
        let trace = open_trace(&options.trace, &as_stored())?;
        let mut out = output::results();
        for (code, count) in top::sorted(&top::count_all(&trace)) {
            writeln!(out, "{code} {count:>10}").context("cannot print")?;
        }
        out.flush().context("cannot print")?;
        Ok(complain("ovnitop", &trace))
    })())
}

/// Sorts the unsorted regions of a trace, in place.
#[derive(Parser)]
#[command(name = "ovnisort")]
struct Ovnisort {
    /// Only check the order
    #[arg(short = 'c')]
    check: bool,
    /// Accepted and without effect: regions may reach back as far as they like
    #[arg(short = 'n')]
    _look_back: Option<u64>,
    trace: PathBuf,
}

fn ovnisort(options: Ovnisort) -> Run {
    finish(sort::run(sort::Args { trace: trace_args(options.trace, None), check: options.check }))
}

/// Explains how the offsets between the clocks of hosts get into a trace.
#[derive(Parser)]
#[command(name = "ovnisync")]
struct Ovnisync {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _options: Vec<OsString>,
}

fn ovnisync(_options: Ovnisync) -> Run {
    finish(Err(messages::Failure::new("clock offsets are not measured apart from a program")
        .why("`taskscope record` measures them while an MPI program runs, and `taskscope sync` puts them into its trace")
        .remedy("taskscope sync TRACE, or with a table that was measured elsewhere: taskscope sync -c FILE TRACE")
        .into()))
}

/// Prints the output of ovni's command: the library path, and the versions of this command and of the libovni that
/// programs load here. Then the models.
fn ovniver() -> Run {
    let print = || -> anyhow::Result<ExitCode> {
        let mut out = output::results();
        match std::env::var_os("LD_LIBRARY_PATH") {
            Some(path) => writeln!(out, "LD_LIBRARY_PATH set to {}", path.display())?,
            None => writeln!(out, "LD_LIBRARY_PATH not set")?,
        }
        let own = format!("v{} ({})", process::FORMAT_LIBRARY_VERSION, process::FORMAT_LIBRARY_COMMIT);
        match libovni::loaded() {
            Some(libovni::Loaded { version, commit, path }) => {
                writeln!(out, "libovni: build {own}, dynamic v{version} ({commit})")?;
                writeln!(out, "loaded from {}", path.display())?;
            }
            None => writeln!(out, "libovni: build {own}, dynamic: libovni.so.1 is not found")?,
        }
        writeln!(
            out,
            "taskscope {}; reads ovni's metadata version 3, stream version 1",
            env!("CARGO_PKG_VERSION")
        )?;
        for model in MODELS.iter().filter(|model| !model.own) {
            writeln!(out, "{:>8} {}", model.name, model.version)?;
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    };
    finish(print())
}
