//! `taskscope report`: where the time went and what is to blame.

use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_analysis::{Analysis, Problem};
use taskscope_execution::lod::Timeline;
use taskscope_session::Session;
use taskscope_view::page::Page;
use taskscope_view::{CausesSection, ReportOptions, Section, html};

/// Say where the time of a recorded run went, and what caused the losses.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory.
    pub(super) trace: PathBuf,
    /// Print JSON (schema: docs/report.schema.json).
    #[arg(long)]
    pub(super) json: bool,
    /// Write the report as one HTML file that needs nothing else, and print nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Print the threads' time as a picture of characters instead.
    #[arg(long, conflicts_with_all = ["json", "html"])]
    timeline: bool,
    /// Parts to print: summary, efficiency, time, findings, threads, tasks, constructs, locks, devices, or
    /// all; and by the task graph: ledger, blame, idle, path, pop, whatif.
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
        .chain(["devices", "all"])
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
    if let Some(file) = &args.html {
        return write_html(file, session, &analysis, &problems);
    }
    let mut out = output::results();
    let width = args.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100);
    if args.timeline {
        let execution = &session.execution;
        let text = taskscope_view::timeline_text(execution, &Timeline::build(execution), width);
        out.write_all(text.as_bytes())?;
    } else if args.json {
        let mut report = taskscope_view::report_json(&session, &analysis, &problems);
        if !session.devices.is_empty() {
            report["devices"] = taskscope_view::devices::report_json(&session);
        }
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let wants = |section: &&Section| args.section.iter().any(|n| n == section.name() || n == "all");
        let mut sections: Vec<Section> = Section::ALL.iter().filter(wants).copied().collect();
        if args.section.is_empty() {
            sections = Section::SHORT.to_vec();
        }
        let options = ReportOptions {
            sections,
            top: args.top.into(),
            width,
            allow: args.allow,
            recorded: args.recorded,
        };
        // A trace of devices alone has nothing to say about threads.
        if session.events > 0 {
            out.write_all(taskscope_view::report_text(&session, &analysis, &problems, &options).as_bytes())?;
        }
        if args.section.is_empty() || args.section.iter().any(|name| name == "devices" || name == "all") {
            out.write_all(taskscope_view::devices::report_text(&session).as_bytes())?;
        }
    }
    out.flush().context("cannot write the report")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the report as one page, complete or not at all: somebody may be reading the old one.
fn write_html(
    file: &Path,
    session: Session,
    analysis: &Analysis,
    problems: &[Problem],
) -> anyhow::Result<ExitCode> {
    let text = html::report(&Page::new(session, analysis, problems));
    let write = || -> std::io::Result<()> {
        // A pipe or a device cannot be renamed over.
        if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return std::fs::write(file, &text);
        }
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let written = std::fs::write(&name, &text).and_then(|()| std::fs::rename(&name, file));
        if written.is_err() {
            let _ = std::fs::remove_file(&name);
        }
        written
    };
    write()
        .map_err(|error| Failure::new(format!("cannot write {}", file.display())).why(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
