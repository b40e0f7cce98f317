//! `taskscope explain`: what a name in a report means, how it is computed, what usually helps.

use crate::messages::Failure;
use crate::output;
use crate::reading::SelectionArgs;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_view::explain::{EXPLANATIONS, Explanation, find};
use taskscope_view::format;

/// Say what a finding, a cause or a warning means, how it is computed, and what usually helps.
///
/// Without a name it lists all names.
#[derive(clap::Args)]
pub struct Args {
    /// A name as reports print it, or a finding's number (F1) together with its trace.
    name: Option<String>,
    /// The trace that a finding's number belongs to.
    trace: Option<PathBuf>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Characters of a line of text.
const WIDTH: usize = 90;

/// Prints the explanation.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut out = output::results();
    match (&args.name, &args.trace) {
        (None, _) => {
            for explanation in EXPLANATIONS {
                let first = explanation.meaning.split_inclusive(['.', ':']).next().unwrap_or_default();
                writeln!(out, "  {:<22} {}", explanation.name, first.trim_end_matches([':', '.']))?;
            }
        }
        (Some(name), Some(trace)) if is_number(name) => {
            let session = super::open_part(trace, &args.selection.parse()?)?;
            let (analysis, _) = taskscope_analysis::analyse(&session.execution);
            let findings = taskscope_view::findings(&session, &analysis);
            let Some(finding) = findings.iter().find(|f| f.id.eq_ignore_ascii_case(name)) else {
                let why = format!("the trace has {} findings", findings.len());
                return Err(Failure::new(format!("there is no finding {name}")).why(why).into());
            };
            writeln!(out, "{}  {}", finding.id, finding.text)?;
            let capacity = analysis.ledger.capacity_ns;
            let unit = format::Unit::for_total(capacity);
            let lost = unit.show(finding.ns);
            let part = format::percent(finding.ns, capacity);
            let confidence = finding.confidence.name();
            writeln!(
                out,
                "  lost      {lost} {}, {part} of all; confidence {confidence}",
                unit.of_workers()
            )?;
            let victims: Vec<String> = (finding.victims.iter())
                .map(|(state, ns)| format!("{} {}", state.label(), unit.show(ns)))
                .collect();
            writeln!(out, "  lost in   {}", victims.join(", "))?;
            if finding.sole_ns > 0 {
                let alone = format::percent(finding.sole_ns, finding.ns);
                writeln!(out, "  evidence  in {alone} of it the cause was the only thing that ran or held")?;
            }
            for note in taskscope_view::notes_of_filter(&session) {
                writeln!(out, "  note      {note}")?;
            }
            if let Some(explanation) = find(finding.kind.name()) {
                writeln!(out)?;
                write_explanation(&mut out, explanation)?;
            }
        }
        (Some(name), _) => match find(name) {
            Some(explanation) => write_explanation(&mut out, explanation)?,
            None if is_number(name) => {
                return Err(Failure::new(format!("which trace has the finding {name}?"))
                    .why("numbers of findings belong to a report")
                    .remedy(format!("taskscope explain {name} TRACE"))
                    .into());
            }
            None => {
                return Err(Failure::new(format!("nothing is called {name}"))
                    .remedy("taskscope explain        (lists all names)")
                    .into());
            }
        },
    }
    out.flush().context("cannot write the explanation")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the name is a finding's number: F1, F2, …
fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix(['F', 'f']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn write_explanation(out: &mut impl Write, explanation: &Explanation) -> std::io::Result<()> {
    writeln!(out, "{}", explanation.name)?;
    let parts =
        [("meaning", explanation.meaning), ("computed", explanation.computed), ("helps", explanation.helps)];
    for (label, text) in parts {
        for (number, line) in format::wrap(text, WIDTH).iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            writeln!(out, "  {label:<9} {line}")?;
        }
    }
    Ok(())
}
