//! `taskscope check`: every violation of our consistency rules.

use crate::messages::Failure;
use crate::reading::{Interruption, Progress, TraceArgs, ViolationPrinter, open};
use std::ops::ControlFlow;
use std::process::ExitCode;
use taskscope_execution::view::NoViews;
use taskscope_model::{Machine, MachineOptions};
use taskscope_session::emulation;
use taskscope_session::judgement::{Judge, Verdict};

/// Check a trace against every consistency rule and list all violations.
///
/// The exit code is 1 if there are any. Where these rules differ from ovni's (`emulate -l`):
/// docs/ovni-compatibility.md.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// List violations as JSON lines
    #[arg(long)]
    pub json: bool,
    /// List every violation, not only the first twenty of a kind
    #[arg(long)]
    pub all: bool,
    /// Pass over violations of this kind (may be given several times)
    #[arg(long, value_name = "NAME")]
    pub allow: Vec<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let trace = open(&args.trace, true)?;
    let (system, violations) = emulation::system_of(&trace);
    let mut machine = Machine::new(&system, MachineOptions::default(), NoViews);
    let mut verdict = Verdict::default();
    let mut printer = ViolationPrinter::new(Judge::Own, true, args.json).all(args.all).allow(&args.allow)?;
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
            if interruption.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    progress.finish();
    if let Some(error) = failure {
        return Err(error);
    }
    if played.interrupted {
        let kept = format!("{} of {} events were checked", played.events, trace.event_count());
        return Err(Failure::new("interrupted").kept(kept).exit_code(130).into());
    }
    printer.summary(&verdict)?;
    if verdict.accepts(Judge::Own) {
        eprintln!(
            "{}: {} events in {} streams, no violations",
            trace.root().display(),
            played.events,
            trace.streams().len()
        );
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(1))
}
