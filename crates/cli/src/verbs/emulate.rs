//! `taskscope emulate`: Paraver views of a trace, equal to ovniemu's.

use crate::messages::Failure;
use crate::reading::{Interruption, Progress, TraceArgs, ViolationPrinter, open};
use anyhow::Context;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_execution::view::View;
use taskscope_export::paraver::{ParaverWriter, ViewFile};
use taskscope_model::{Machine, MachineOptions, System};
use taskscope_session::emulation;
use taskscope_session::judgement::{Judge, Verdict};

/// Writes Paraver views of a trace: what threads and CPUs did, beside the trace or elsewhere.
///
/// Damaged traces are read as far as possible; with -l every violation of ovni's rules is listed,
/// and the exit code is 1 if there was one.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Also write breakdown views (`<model>-breakdown.prv`)
    #[arg(short = 'b', long)]
    pub breakdown: bool,
    /// Judge as `ovniemu -l` does: list all violations, exit code 1 if there is one
    #[arg(short = 'l', long = "strict")]
    pub strict: bool,
    /// Enable all models, whatever the streams require
    #[arg(short = 'a', long)]
    pub all_models: bool,
    /// Compress the `.prv` files
    #[arg(long)]
    pub gzip: bool,
    /// Where to write (default: into the trace)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// List violations as JSON lines on stdout
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let judge = if args.strict { Judge::Ovni { lint: true } } else { Judge::Own };
    let trace = open(&args.trace, false)?;
    let (system, violations) = emulation::system_of(&trace);
    let directory = args.output.clone().unwrap_or_else(|| trace.root().to_path_buf());
    let options = MachineOptions { all_models: args.all_models, breakdown: args.breakdown };
    let files = view_files(&system, options);
    let end_ns = emulation::duration_ns(&trace);
    let writer = ParaverWriter::create(&directory, &files, end_ns, args.gzip)
        .with_context(|| format!("cannot write views into {}", directory.display()))?;

    let mut machine = Machine::new(&system, options, writer);
    let mut verdict = Verdict::default();
    let mut printer = ViolationPrinter::new(judge, args.strict, args.json);
    printer.take(violations, &mut verdict)?;
    let interruption = Interruption::watch()?;
    let mut progress = Progress::new("events", trace.event_count());
    let mut failure = None;
    let played = emulation::play(
        &trace,
        &mut machine,
        |_| true,
        |played, machine| {
            progress.show(played.events);
            if machine.has_violations()
                && let Err(error) = printer.take(machine.take_violations(), &mut verdict)
            {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            if interruption.is_requested() || machine.observer.has_failed() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        },
    );
    progress.finish();
    for note in machine.take_notes() {
        eprintln!("note: {note}");
    }
    let descriptions: Vec<_> = files.iter().map(|file| (file.view, machine.describe(file.view))).collect();
    let writer = machine.into_observer();
    writer
        .finish(|view| {
            descriptions.iter().find(|(other, _)| *other == view).and_then(|(_, found)| found.clone())
        })
        .with_context(|| format!("cannot write views into {}", directory.display()))?;
    if let Some(error) = failure {
        return Err(error);
    }
    printer.summary(&verdict)?;
    if played.interrupted && interruption.is_requested() {
        return Err(Failure::new("interrupted")
            .kept(format!("views up to {:.3} s are complete", played.end_ns as f64 / 1e9))
            .exit_code(130)
            .into());
    }
    let rejected = args.strict && !verdict.accepts(judge);
    Ok(ExitCode::from(u8::from(rejected)))
}

/// The views that will be written.
pub fn view_files(system: &System, options: MachineOptions) -> Vec<ViewFile> {
    let machine = Machine::new(system, options, taskscope_execution::view::NoViews);
    View::ALL
        .into_iter()
        .filter_map(|view| {
            let description = machine.describe(view)?;
            Some(ViewFile { view, rows: description.rows.len() })
        })
        .collect()
}
