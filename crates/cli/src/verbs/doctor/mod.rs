//! `taskscope doctor`: can I record here? Each finding names its check; each problem has a remedy that can be pasted.

mod finding;
mod machine;
mod openmp;
mod scratch;

use crate::output;
pub use finding::{Finding, Verdict};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

/// Check whether this machine can record, and how to fix what is missing.
///
/// Checks the recorder, OpenMP runtimes with a tools interface, the clock, disk space and limits, and records a small
/// program if a compiler is installed. The exit code is 1 if a problem prevents recording.
#[derive(clap::Args)]
pub struct Args {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Whether recording works on a machine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-doctor/1")]
pub struct Report<'a> {
    /// Whether no finding is a problem.
    can_record: bool,
    /// All checks.
    findings: &'a [Finding],
}

/// Runs all checks; exit code 1 if there is a problem.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut findings = openmp::findings();
    findings.extend(machine::findings());
    let can_record = findings.iter().all(|finding| finding.verdict != Verdict::Problem);
    let mut out = output::results();
    if args.json {
        let report = Report { can_record, findings: &findings };
        output::write_json(&mut out, &report)?;
    } else {
        findings.iter().try_for_each(|finding| write_finding(&mut out, finding))?;
        writeln!(
            out,
            "{}",
            if can_record { "recording works here" } else { "recording does not work here" }
        )?;
    }
    out.flush()?;
    Ok(ExitCode::from(if can_record { 0 } else { 1 }))
}

fn write_finding(out: &mut impl Write, finding: &Finding) -> std::io::Result<()> {
    use anstyle::AnsiColor::{Green, Red, Yellow};
    let (word, colour) = match finding.verdict {
        Verdict::Good => ("ok", Green),
        Verdict::Limited => ("limited", Yellow),
        Verdict::Problem => ("problem", Red),
    };
    let style = colour.on_default();
    writeln!(out, "{style}{word:<8}{style:#} {:<10} {}", finding.name, finding.text)?;
    match &finding.remedy {
        Some(remedy) => writeln!(out, "{:20}try: {remedy}", ""),
        None => Ok(()),
    }
}
