//! The sections of `taskscope report` that explain lost time by the task graph.

use super::report::Args;
use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use taskscope_analysis::slo::Mode;
use taskscope_execution::graph::{GraphError, TaskGraph};
use taskscope_session::graph::{GraphTrace, GraphTraceError, read_graph};
use taskscope_view::advice::Runtime;
use taskscope_view::format::shell_word;
use taskscope_view::{CausesOptions, CausesSection, WhatIf, causes_json, causes_text};

/// What only these sections know.
#[derive(clap::Args)]
pub struct CausesArgs {
    /// What waiting for a worker that is itself idle counts as: starvation (direct, the published
    /// formula), starvation or overhead (chained), or whatever that worker waits for (root).
    #[arg(long, value_name = "MODE", default_value = "root", value_parser = ["direct", "chained", "root"])]
    mode: String,
    /// In the JSON of section idle: list every idle interval.
    #[arg(long)]
    intervals: bool,
    /// Partial sums of section idle from BEGIN to END, nanoseconds of the trace's clock. Can be repeated.
    #[arg(long, value_name = "BEGIN:END", value_parser = window)]
    window: Vec<(u64, u64)>,
    /// In section whatif: replay the run with these factors, for instance runtime=0, network=0.5,
    /// gemm=0.5 (work of task types with that name), workers=8 (on each node); commas join changes. Can be
    /// repeated.
    #[arg(long, value_name = "CHANGES", value_parser = WhatIf::parse)]
    what_if: Vec<WhatIf>,
}

fn window(text: &str) -> Result<(u64, u64), String> {
    let (begin, end) = text.split_once(':').ok_or("give BEGIN:END in nanoseconds")?;
    let number =
        |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number of nanoseconds"));
    match (number(begin)?, number(end)?) {
        (begin, end) if begin <= end => Ok((begin, end)),
        _ => Err("it ends before it begins".to_owned()),
    }
}

/// Prints the sections if they are asked for, or if the trace tells nothing but its graph.
///
/// # Errors
/// If the graph cannot be read or the report not be written.
pub fn run(args: &Args) -> anyhow::Result<Option<ExitCode>> {
    let asked = |section: &&CausesSection| args.section.iter().any(|name| name == section.name());
    let mut sections: Vec<CausesSection> = CausesSection::ALL.iter().filter(asked).copied().collect();
    // Opening a large trace takes time: do it here only if it tells a graph.
    if sections.is_empty() && !args.trace.join("graph/taskscope.json").exists() {
        return Ok(None);
    }
    let GraphToExplain { graph, range, notes, runtime } = match read_graph(&args.trace) {
        Ok(Some(_)) if args.selection.parse()?.words.is_some() => {
            return Err(Failure::new("a task graph that was imported is told whole")
                .why("its tasks are no events of threads, so nothing of it can be selected")
                .remedy(format!("taskscope report {}", shell_word(&args.trace)))
                .into());
        }
        Ok(Some(trace)) => {
            tell_losses(&trace);
            GraphToExplain { graph: trace.graph, range: None, notes: Vec::new(), runtime: None }
        }
        // The other sections say in their own words why a trace cannot be opened.
        Ok(None) | Err(GraphTraceError::Open(_)) if sections.is_empty() => return Ok(None),
        Ok(None) | Err(GraphTraceError::Open(_)) => graph_of_execution(args, &sections)?,
        Err(GraphTraceError::Broken(errors)) => return Err(broken(&args.trace, &errors).into()),
    };
    refuse_picture(args, &sections)?;
    if sections.is_empty() {
        sections = CausesSection::ALL.to_vec();
    }
    let causes = &args.causes;
    let mode = Mode::ALL.into_iter().find(|mode| mode.name() == causes.mode).unwrap_or(Mode::Root);
    // Sections of a cut run have a graph of their own.
    let (of_whole, of_part): (Vec<_>, Vec<_>) =
        sections.iter().copied().partition(|section| range.is_some() && section.is_of_the_whole());
    let (first, second) = if of_whole.is_empty() { (of_part, of_whole) } else { (of_whole, of_part) };
    let second = match second.is_empty() {
        true => None,
        false => Some((graph_of_execution(args, &second)?.graph, second)),
    };
    let mut options = CausesOptions {
        sections: first,
        range: range.unwrap_or((0, u64::MAX)),
        mode,
        intervals: causes.intervals,
        windows: causes.window.clone(),
        what_if: causes.what_if.clone(),
        top: args.top_or(3),
        notes,
        runtime,
    };
    if let Some((what, name)) =
        options.what_if.iter().find_map(|what| Some((what, what.unknown_types(&graph).next()?)))
    {
        return Err(Failure::new(format!("no task type is called {name}"))
            .why(format!("--what-if {} asks about it", what.text))
            .remedy("taskscope report --section path TRACE        (names the types)")
            .into());
    }
    let mut out = output::results();
    let trace = args.trace.display().to_string();
    if args.json {
        let mut report = causes_json(&trace, &graph, &options);
        if let Some((graph, sections)) = second {
            (options.sections, options.range) = (sections, (0, u64::MAX));
            if let (Some(report), Value::Object(more)) =
                (report.as_object_mut(), causes_json(&trace, &graph, &options))
            {
                for (key, value) in more {
                    report.entry(key).or_insert(value);
                }
            }
        }
        serde_json::to_writer_pretty(&mut out, &report).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(causes_text(&graph, &options).as_bytes())?;
        if let Some((graph, sections)) = second {
            (options.sections, options.range) = (sections, (0, u64::MAX));
            out.write_all(causes_text(&graph, &options).as_bytes())?;
        }
    }
    out.flush().context("cannot write the report")?;
    Ok(Some(ExitCode::SUCCESS))
}

/// These sections are text or JSON: who asks for a page or a picture must not be left without either word or file.
fn refuse_picture(args: &Args, sections: &[CausesSection]) -> anyhow::Result<()> {
    let option = match (&args.html, args.timeline) {
        (Some(_), _) => "--html",
        (None, true) => "--timeline",
        (None, false) => return Ok(()),
    };
    let trace = shell_word(&args.trace);
    let failure = match sections.first() {
        None => Failure::new(format!("{} tells nothing but a task graph", args.trace.display()))
            .why(format!("it was imported; no threads with events are in it for {option} to show"))
            .remedy(format!("taskscope report {trace}")),
        Some(section) => Failure::new(format!("section {} is no part of {option}", section.name()))
            .why("it is told as text, or with --json")
            .remedy(format!("taskscope report --section {} {trace}", section.name())),
    };
    Err(failure.into())
}

/// A task graph and its context.
struct GraphToExplain {
    graph: TaskGraph,
    /// The part of the run that is asked about, where the graph is of the whole run.
    range: Option<(u64, u64)>,
    /// Notes on the filter.
    notes: Vec<String>,
    runtime: Option<Runtime>,
}

/// Builds the graph of a trace: of the whole run where one of the sections needs that, else of the part that is asked about.
fn graph_of_execution(args: &Args, sections: &[CausesSection]) -> anyhow::Result<GraphToExplain> {
    let mut selection = args.selection.parse()?;
    selection.whole = sections.iter().any(|section| section.is_of_the_whole());
    let session = super::open_part(&args.trace, &selection)?;
    let (graph, dropped) = session.task_graph().map_err(|errors| broken(&args.trace, &errors))?;
    if dropped > 0 {
        eprintln!("taskscope: {dropped} order relations contradict the clocks of threads and were dropped");
    }
    Ok(GraphToExplain {
        graph,
        range: session.range.filter(|_| selection.whole),
        notes: taskscope_view::notes_of_filter(&session),
        runtime: Runtime::of(&session),
    })
}

fn broken(trace: &Path, errors: &[GraphError]) -> Failure {
    let lines: Vec<&str> = errors.iter().take(10).map(|error| error.text.as_str()).collect();
    Failure::new(format!("the task graph of {} cannot be", trace.display())).why(lines.join("\n"))
}

fn tell_losses(trace: &GraphTrace) {
    for problem in trace.problems.iter().take(5) {
        eprintln!("taskscope: {}", taskscope_view::format::harmless(&problem.to_string()));
    }
    if trace.misfits > 0 {
        eprintln!(
            "taskscope: left out {} that did not fit",
            taskscope_view::format::counted(trace.misfits, "event")
        );
    }
}
