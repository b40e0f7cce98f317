//! `taskscope slice`: a part of a trace as a trace of its own.

use crate::messages::Failure;
use crate::reading::{TraceArgs, open, parse_range};
use anyhow::Context;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_event::models::MODELS;
use taskscope_session::emulation;
use taskscope_trace::Slice;

/// Cuts a trace by time, threads and models. The result is a valid trace.
///
/// What is open at the borders is opened just before and closed just after; clocks are corrected in
/// the result. With --models of ovni's own models, ovni's tools read it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Directory of the new trace; must not exist or be empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Only this part of the time, such as 1.5s..2s or 10%..20%
    #[arg(long, value_name = "BEGIN..END")]
    pub range: Option<String>,
    /// Only the threads with these ids
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub threads: Vec<i64>,
    /// Only these models, besides ovni's base model
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub models: Vec<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let range = parse_range(args.range.as_deref())?;
    for name in &args.models {
        if !MODELS.iter().any(|model| model.name == name) {
            let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            return Err(Failure::new(format!("there is no model called `{name}`"))
                .remedy(format!("one of: {}", names.join(", ")))
                .into());
        }
    }
    if std::fs::read_dir(&args.output).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::new(format!("{} is not empty", args.output.display()))
            .remedy("give a new directory: taskscope slice -o NEW TRACE")
            .into());
    }
    let trace = open(&args.trace, true)?;
    let origin = emulation::first_clock_ns(&trace).unwrap_or(0);
    let clocks = args.range.as_ref().map(|_| {
        let (begin, end) = range.resolve(emulation::duration_ns(&trace));
        let clock = |time: i64| if time == i64::MAX { time } else { origin.saturating_add(time) };
        (clock(begin.max(0)), clock(end))
    });
    let slice = Slice { clocks, threads: args.threads, models: args.models };
    let sliced = trace
        .write_slice(&slice, &args.output)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    if sliced.streams == 0 {
        return Err(Failure::new("nothing is left of the trace")
            .why("no thread lives in that part of it")
            .into());
    }
    for problem in trace.problems() {
        eprintln!("note: {problem}");
    }
    eprintln!("{} events of {} threads in {}", sliced.events, sliced.streams, args.output.display());
    Ok(ExitCode::SUCCESS)
}
