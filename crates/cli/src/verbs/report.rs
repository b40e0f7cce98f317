//! `taskscope report`: where the time went and what is to blame.

use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_view::{CausesSection, ReportOptions, Section};

/// Say where the time of a recorded run went, and what caused the losses.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory.
    pub(super) trace: PathBuf,
    /// Print JSON (schema: docs/report.schema.json).
    #[arg(long)]
    pub(super) json: bool,
    /// Parts to print: summary, efficiency, time, findings, threads, tasks, constructs, locks, or all; and by
    /// the task graph: idle.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = sections())]
    pub(super) section: Vec<String>,
    /// Rows of each table.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) top: u16,
    /// Do not print notices of this name.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    allow: Vec<String>,
    /// Print lines of this many characters [default: the terminal's width, or 100].
    #[arg(long, value_name = "N")]
    width: Option<u16>,
    /// Begin as the summary of `record`, with this text about the trace.
    #[arg(long, value_name = "TEXT", hide = true)]
    recorded: Option<String>,
    #[command(flatten)]
    pub(super) causes: super::report_causes::CausesArgs,
}

fn sections() -> clap::builder::PossibleValuesParser {
    let by_graph = CausesSection::ALL.iter().map(|section| section.name());
    Section::ALL
        .iter()
        .map(|section| section.name())
        .chain(["all"])
        .chain(by_graph)
        .collect::<Vec<_>>()
        .into()
}

/// Prints the report.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(code) = super::report_causes::run(&args)? {
        return Ok(code);
    }
    let session = super::open(&args.trace)?;
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let mut out = output::results();
    if args.json {
        let report = taskscope_view::report_json(&session, &analysis, &problems);
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let wants = |section: &&Section| args.section.iter().any(|n| n == section.name() || n == "all");
        let mut sections: Vec<Section> = Section::ALL.iter().filter(wants).copied().collect();
        if args.section.is_empty() {
            sections = Section::SHORT.to_vec();
        }
        let width = args.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100);
        let options = ReportOptions {
            sections,
            top: args.top.into(),
            width,
            allow: args.allow,
            recorded: args.recorded,
        };
        out.write_all(taskscope_view::report_text(&session, &analysis, &problems, &options).as_bytes())?;
    }
    out.flush().context("cannot write the report")?;
    Ok(ExitCode::SUCCESS)
}
