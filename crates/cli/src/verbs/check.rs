//! `taskscope check`: every violation of our consistency rules.

use super::choices::Rule;
use crate::opening::{SelectionArgs, TraceArgs, TracePart};
use crate::output;
use crate::reading::{Interruption, ViolationLine, ViolationPrinter, select_violations};
use anyhow::Context;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_check::{device_rules, emulation};
use taskscope_execution::view::NoViews;
use taskscope_model::{Machine, MachineOptions};
use taskscope_view::format::counted;

/// Check a trace against every consistency rule, and list all violations.
///
/// The exit code is 1 if there are any. Differences from ovni's rules (`emulate -l`): docs/ovni-compatibility.md.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// List violations as JSON lines
    #[arg(long)]
    pub json: bool,
    /// List every violation instead of the first twenty of each kind
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Permit violations of this kind (can be repeated)
    #[arg(long, value_name = "NAME", value_enum, hide_possible_values = true)]
    pub allow: Vec<Rule>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Problems of the trace are violations here.
    let part = TracePart::open(args.trace.clone(), args.selection.parse()?, true)?.require_range()?;
    let (trace, selection) = (&part.trace, &part.selection);
    let (system, violations) = emulation::system_of(trace);
    let mut machine = Machine::new(&system, MachineOptions::default(), NoViews);
    let mut verdict = Verdict::default();
    let thread_rules = args.allow.iter().filter_map(|rule| match rule {
        Rule::OfThreads(code) => Some(*code),
        Rule::OfDevices(_) => None,
    });
    let printer = ViolationPrinter::new(Judge::Own, true, args.json).all(args.all);
    let mut printer = printer.allow(thread_rules.collect());
    let select = |violations| select_violations(violations, trace, selection);
    printer.take(select(violations), &mut verdict)?;
    let interruption = Interruption::watch()?;
    let played = part.play(
        &mut machine,
        &interruption,
        |_| true,
        |_, machine| {
            if machine.has_violations() {
                printer.take(select(machine.take_violations()), &mut verdict)?;
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    if played.interrupted {
        let kept = format!("checked {} of {}", played.events, counted(trace.event_count(), "event"));
        return Err(interruption.failure(kept).into());
    }
    printer.summary(&verdict)?;
    let devices = taskscope_session::devices::read_devices(trace);
    let broken = device_rules::violations(&devices);
    let broken: Vec<_> = broken
        .into_iter()
        // Device queues are not threads: filters do not apply to their events.
        .filter(|_| selection.filter.is_none())
        .filter(|violation| !args.allow.contains(&Rule::OfDevices(violation.rule)))
        .collect();
    print_of_devices(&broken, &args)?;
    if verdict.accepts(Judge::Own) && broken.is_empty() {
        let queues = match devices.queues.len() {
            0 => String::new(),
            count => format!(" and {}", counted(count as u64, "device queue")),
        };
        eprintln!(
            "{}: {} in {}{queues}, no violations{}",
            taskscope_view::format::path(trace.root()),
            counted(played.events, "event"),
            counted(trace.streams().len() as u64, "stream"),
            selection.words.as_ref().map(|words| format!(" of {words}")).unwrap_or_default()
        );
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(1))
}

/// Violations of one rule that are shown without `--all`.
const SHOWN: u64 = 20;

fn print_of_devices(broken: &[device_rules::Violation], args: &Args) -> anyhow::Result<()> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut out = args.json.then(output::results);
    for device_rules::Violation { rule, location, seq, text } in broken {
        let count = counts.entry(rule).or_default();
        *count += 1;
        let meaning = device_rules::RULES.iter().find(|(name, _)| name == rule);
        let line = ViolationLine {
            code: rule,
            severity: "error",
            stream: location,
            byte_offset: None,
            time_ns: None,
            event: None,
            operation: *seq,
            count: 1,
            text,
            meaning: meaning.map_or("", |(_, meaning)| meaning),
        };
        if let Some(out) = &mut out {
            output::write_json_line(out, &line).context("cannot print")?;
        } else if *count <= SHOWN || args.all {
            eprint!("{}", line.words(*count == 1));
        }
    }
    for (rule, count) in counts.iter().filter(|(_, count)| **count > SHOWN && !args.all && !args.json) {
        eprintln!("error[{rule}]: {} more", count - SHOWN);
    }
    if !broken.is_empty() {
        eprintln!("{} of device queues", counted(broken.len() as u64, "violation"));
    }
    if let Some(out) = &mut out {
        out.flush().context("cannot print")?;
    }
    Ok(())
}
