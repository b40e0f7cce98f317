//! `taskscope report`: where the time went and what is to blame.

use crate::messages::Failure;
use crate::newest::{UNNAMED, choose};
use crate::output;
use crate::reading::SelectionArgs;
use crate::watch::Watch;
use anyhow::Context;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_execution::lod::Timeline;
use taskscope_files::write_named;
use taskscope_session::Session;
use taskscope_view::page::Page;
use taskscope_view::{CausesSection, ReportOptions, Section, format, html};

/// Say where the time of a recorded run went, and what caused the losses.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory; or a profile, or a directory of profiles [default: the newest in the working directory].
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    pub(super) trace: PathBuf,
    /// Print JSON (schema: docs/report.schema.json).
    #[arg(long)]
    pub(super) json: bool,
    /// Write the report as one HTML file that needs nothing else, and print nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(super) html: Option<PathBuf>,
    /// Print the threads' time as a picture of characters instead.
    #[arg(long, conflicts_with_all = ["json", "html", "section"])]
    pub(super) timeline: bool,
    /// Parts to print: summary, efficiency, time, findings, threads, tasks, constructs, locks, devices,
    /// instrumentation, call-paths (or profile), or all; and by the task graph: ledger, blame, data, queues, diagnosis, idle, path, pop,
    /// whatif.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = sections())]
    pub(super) section: Vec<String>,
    /// Rows of each table [default: 3; 20 of call paths].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: Option<u16>,
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
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) causes: super::report_causes::CausesArgs,
    #[command(flatten)]
    pub(super) shown: super::report_shown::ShownArgs,
    #[command(flatten)]
    pub(super) paths: super::report_paths::PathsArgs,
}

impl Args {
    /// Rows of a table that has so many where nothing is said.
    pub(super) fn top_or(&self, default: usize) -> usize {
        self.top.map_or(default, usize::from)
    }

    pub(super) fn width_of_lines(&self) -> usize {
        self.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100)
    }
}

fn sections() -> clap::builder::PossibleValuesParser {
    let by_graph = CausesSection::ALL.iter().map(|section| section.name());
    Section::ALL
        .iter()
        .map(|section| section.name())
        .chain(["devices", "instrumentation", "call-paths", "profile", "all"])
        .chain(by_graph)
        .collect::<Vec<_>>()
        .into()
}

/// Prints the report.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    choose(&mut args.trace)?;
    if let Some(code) = super::report_paths::run_profile(&args)? {
        return Ok(code);
    }
    if let Some(code) = super::report_causes::run(&args)? {
        return Ok(code);
    }
    let watch = Watch::start();
    let session = super::open_part_watched(&args.trace, &args.selection.parse()?, &watch)?;
    watch.stage("analysing");
    if let Some(file) = &args.html {
        return write_html(file, session, &watch);
    }
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    drop(watch);
    let mut out = output::results();
    let width = args.width_of_lines();
    // A trace of devices alone has nothing to say about threads.
    let of_threads = session.execution.range() != (0, 0);
    if args.timeline {
        let execution = &session.execution;
        let text = taskscope_view::timeline_text(
            execution,
            &session.devices,
            &Timeline::of_sections(execution),
            width,
        );
        out.write_all(text.as_bytes())?;
        for note in taskscope_view::notes_of_filter(&session) {
            writeln!(out, "note: {note}")?;
        }
    } else if args.json {
        let mut report = taskscope_view::report_json(&session, &analysis, &problems);
        if let Some(devices) = taskscope_view::devices::in_time(&session) {
            report["devices"] = json!(devices);
        }
        if super::report_paths::asked(&args) || !session.execution.samples.rows.is_empty() {
            report["call_paths"] = json!(super::report_paths::tables(&session, &args));
        }
        if super::report_shown::asked(&args) || super::report_shown::is_told(&session) {
            report["instrumentation"] = json!(super::report_shown::facts(&args)?);
        }
        output::write_json(&mut out, &report)?;
    } else {
        let wants = |section: &&Section| args.section.iter().any(|n| n == section.name() || n == "all");
        let mut sections: Vec<Section> = Section::ALL.iter().filter(wants).copied().collect();
        let paths = super::report_paths::asked(&args);
        let shown = super::report_shown::asked(&args);
        let is_short = args.section.is_empty() && !paths && !shown;
        if is_short {
            sections = Section::SHORT.to_vec();
        }
        // Without events no worker's state is known, and what is computed from them would be of nothing.
        let samples_alone = taskscope_view::knows_samples_alone(&session, &analysis);
        let splits_threads = samples_alone && (is_short || sections.contains(&Section::Threads));
        if samples_alone {
            sections.retain(|section| *section == Section::Summary);
        }
        let options = ReportOptions {
            sections,
            top: args.top_or(3),
            width,
            allow: args.allow.clone(),
            recorded: args.recorded.clone(),
        };
        let mut text = String::new();
        if of_threads && !options.sections.is_empty() {
            text += &taskscope_view::report_text(&session, &analysis, &problems, &options);
        }
        // After a run of which only queues were recorded there is nothing else to tell.
        let queues_alone = !of_threads && args.recorded.is_some();
        if is_short || queues_alone || args.section.iter().any(|name| name == "devices" || name == "all") {
            text += &narrowed(taskscope_view::devices::report_text(&session), width);
        }
        let all = args.section.iter().any(|name| name == "all");
        if shown || (all && super::report_shown::is_told(&session)) {
            text += &narrowed(super::report_shown::text(&args, width)?, width);
        }
        if splits_threads {
            text += &narrowed(taskscope_view::thread_split_text(&session.execution), width);
        }
        if samples_alone && (is_short || args.recorded.is_some()) {
            text += &narrowed(super::report_paths::short_text(&session, &args, width), width);
        }
        if paths || all {
            text += &narrowed(super::report_paths::text(&session, &args, width, samples_alone), width);
        }
        if text.trim().is_empty() {
            text =
                format!("  nothing in this trace, or the part of it, is of: {}\n", args.section.join(", "));
        }
        out.write_all(text.as_bytes())?;
    }
    out.flush().context("cannot write the report")?;
    // The process ends here: giving a large run's memory back piece by piece would only take time.
    std::mem::forget((session, analysis));
    Ok(ExitCode::SUCCESS)
}

/// A text with tables that are wider than a narrow terminal: their lines are broken between words there. Commands are
/// there to be copied, so they stay whole; where nobody reads (100 characters are the default), nothing changes.
fn narrowed(text: String, width: usize) -> String {
    if width >= 100 {
        return text;
    }
    let lines = text.split('\n').map(|line| match line.contains("taskscope ") {
        true => line.to_string(),
        false => format::broken(line, width).join("\n"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes the report as one page.
fn write_html(file: &Path, session: Session, watch: &Watch) -> anyhow::Result<ExitCode> {
    let page = Page::reported(session);
    watch.stage("writing");
    let written = write_page(file, &html::report(&page), Some(watch));
    // The process ends here: giving a large run's memory back piece by piece would only take time.
    std::mem::forget(page);
    written
}

/// Writes a page, complete or not at all: somebody may be reading the old one.
pub(super) fn write_page(file: &Path, text: &str, watch: Option<&Watch>) -> anyhow::Result<ExitCode> {
    let begun = |temporary: &Path| {
        if let Some(watch) = watch {
            watch.unfinished(Some(temporary));
        }
    };
    let written = write_named(file, begun, |out| out.write_all(text.as_bytes()));
    if let Some(watch) = watch {
        watch.unfinished(None);
    }
    written
        .map_err(|error| Failure::new(format!("cannot write {}", file.display())).why(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
