//! `taskscope slice`: a part of a trace as a trace of its own.

use super::choices::ModelChoice;
use crate::messages::Failure;
use crate::opening::{SelectionArgs, TraceArgs, TracePart};
use crate::reading::Interruption;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_analysis::lives_of_threads;
use taskscope_filter::TimeRange;
use taskscope_session::devices::{operations_of_part, read_devices};
use taskscope_session::selection::Part;
use taskscope_session::{Session, off_cpu_of_run, waits_of_part};
use taskscope_trace::{KnownWaits, OffCpuOfRun, Slice, Trace};
use taskscope_view::format::{counted, shell_word};

/// Cut a trace by time, threads and models. The result is a valid trace.
///
/// A filter (--where) may remove events that others depend on; a note reports it. Sections open at the borders are opened
/// just before and closed just after. Clocks are corrected in the result. With --models limited to ovni's own models,
/// ovni's tools read it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Directory of the new trace; must be new or empty
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Keep only the threads with these ids
    #[arg(long, value_name = "TID", value_delimiter = ',', allow_negative_numbers = true)]
    pub threads: Vec<i64>,
    /// Keep only these models, besides ovni's base model
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    pub models: Vec<ModelChoice>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let trace_args = args.trace.chosen()?;
    // The analysis of the whole run has the clock offsets beside the trace.
    let has_own_clocks = trace_args.clock_offsets.is_some();
    if std::fs::read_dir(&args.output).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::new(format!("{} is not empty", args.output.display()))
            .remedy("give a new directory: taskscope slice -o NEW TRACE")
            .into());
    }
    if lies_in(&args.output, &trace_args.trace) {
        return Err(Failure::new(format!("{} lies in the trace", args.output.display()))
            .why("its streams would be read as further ones of the trace")
            .kept("the trace is as it was")
            .remedy("give a directory outside of it: taskscope slice -o NEW TRACE")
            .into());
    }
    let part = TracePart::open(trace_args, args.selection.parse()?, true)?
        .require_threads(&args.threads)?
        .print_problems()
        .require_range()?;
    let (trace, selected) = (&part.trace, part.selected());
    let clocks = (part.selection.range != TimeRange::default()).then(|| {
        let clock = |time: i64| if time == i64::MAX { time } else { selected.origin_ns.saturating_add(time) };
        (clock(selected.begin_ns.max(0)), clock(selected.end_ns))
    });
    let models: Vec<String> = args.models.iter().map(|model| model.0.name.to_owned()).collect();
    // Without some sections, times off the CPU are in other states than in the whole run.
    let is_whole = models.is_empty() && part.selection.filter.is_none() && !has_own_clocks;
    let results = if is_whole { Results::of(trace, clocks, &args.threads) } else { Results::default() };
    let operations = clocks.map(|clocks| operations_of_part(&read_devices(trace), clocks));
    let Results { off_cpu, waits } = results;
    let slice = Slice { clocks, threads: args.threads, models, off_cpu, waits, operations };
    let interruption = Interruption::watch()?;
    let mut progress = part.progress();
    let sliced = trace.write_part(
        &slice,
        &args.output,
        |merged| selected.plays(merged),
        |read| {
            progress.show(read);
            if interruption.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    progress.finish();
    if sliced.is_err() && interruption.is_requested() {
        let kept = format!("nothing; {} holds no part of the slice", args.output.display());
        return Err(interruption.failure(kept).into());
    }
    let sliced = sliced.map_err(|error| {
        Failure::new(format!("cannot write {}", args.output.display()))
            .why(error.to_string())
            .kept("nothing of the slice; the trace is as it was")
    })?;
    if sliced.streams == 0 {
        return Err(Failure::new("nothing is left of the trace")
            .why("no thread lives in that part of it")
            .into());
    }
    let added = match sliced.added {
        0 => String::new(),
        added => format!(", and {added} more that they depend on,"),
    };
    let (events, threads) = (counted(sliced.events, "event"), counted(sliced.streams, "thread"));
    eprintln!("{events} of {threads}{added} in {}", taskscope_view::format::path(&args.output));
    let limits = trace.limits_of_slice(&slice, sliced.is_shifted);
    for limit in &limits {
        eprintln!("note: {limit}");
    }
    if !limits.is_empty() {
        eprintln!(
            "note: for causes of a part: taskscope report --range BEGIN..END {}",
            shell_word(trace.root())
        );
    }
    if (0..trace.streams().len()).any(|stream| selected.part_of(stream) == Part::Passing) {
        let slice = shell_word(&args.output);
        eprintln!(
            "note: events that the filter left out may be missed by those that passed: taskscope check {slice}"
        );
        eprintln!("note: to cut by time, --range keeps the states at its begin");
    }
    Ok(ExitCode::SUCCESS)
}

/// What the analysis of the whole run decides; `None` of what it does not have, or if it cannot be analysed.
#[derive(Default)]
struct Results {
    off_cpu: Option<OffCpuOfRun>,
    waits: Option<KnownWaits>,
}

impl Results {
    fn of(trace: &Trace, clocks: Option<(i64, i64)>, threads: &[i64]) -> Results {
        let (has_times, has_waits) = (trace.may_have_os_times(), trace.has_thread_waits());
        let whole = (has_times || has_waits).then(|| Session::open(trace.root()).ok()).flatten();
        let Some(Session { execution, .. }) = whole else { return Results::default() };
        let off_cpu = has_times.then(|| {
            let mut off_cpu = off_cpu_of_run(&execution);
            // Without some of its threads, a CPU has other states.
            off_cpu.rows.retain(|row| threads.is_empty() || row.pid.is_some());
            off_cpu
        });
        let clocks = clocks.unwrap_or((i64::MIN, i64::MAX));
        Results {
            off_cpu,
            waits: has_waits
                .then(|| waits_of_part(&execution, clocks, threads, &lives_of_threads(&execution))),
        }
    }
}

/// Whether a directory, which need not exist yet, is inside another.
fn lies_in(directory: &Path, other: &Path) -> bool {
    let Ok(other) = other.canonicalize() else { return false };
    let mut there = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    loop {
        match there.canonicalize() {
            Ok(there) => return there.starts_with(&other),
            Err(_) if there.pop() => {}
            Err(_) => return false,
        }
    }
}
