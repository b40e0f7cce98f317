//! The sections of `taskscope report` that explain lost time by the task graph.

use super::graph_args::clocks_of;
use super::request::{Form, Request};
use crate::messages::Failure;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use taskscope_event::layout;
use taskscope_execution::graph::{GraphError, TaskGraph};
use taskscope_session::graph::{GraphTrace, GraphTraceError, read_graph};
use taskscope_session::selection::Selection;
use taskscope_view::format::shell_word;
use taskscope_view::{CausesOptions, Section, causes_report, causes_text};

/// Prints the sections if they are requested, or if the trace has nothing but its graph.
///
/// # Errors
/// If the graph cannot be read or the report cannot be written.
pub fn run(request: &Request) -> anyhow::Result<Option<ExitCode>> {
    let mut sections = request.graph_sections();
    let is_graph_alone = request.trace.join(layout::GRAPH_METADATA).exists();
    // Windows and changes ask for the sections that have them; of a graph alone all sections are shown.
    for (is_asked, section) in [
        (!request.graph.window.is_empty(), Section::Idle),
        (!request.graph.what_if.is_empty(), Section::WhatIf),
    ] {
        if is_asked && !(sections.is_empty() && is_graph_alone) && !sections.contains(&section) {
            sections.push(section);
        }
    }
    // Opening a large trace takes time: do it here only if it has a graph.
    if sections.is_empty() && !is_graph_alone {
        return Ok(None);
    }
    let selection = &request.selection;
    let GraphToExplain { graph, range, notes, runtime } = match read_graph(&request.trace) {
        Ok(Some(_)) if selection.filter.is_some() => {
            return Err(Failure::new("imported task graphs cannot be filtered")
                .why("their tasks are not events of threads; a part of the time can be selected")
                .remedy(format!("taskscope report --range 0%..50% {}", shell_word(&request.trace)))
                .into());
        }
        Ok(Some(trace)) => {
            print_losses(&trace);
            let range = clocks_of(selection.range, trace.graph.range());
            GraphToExplain { graph: trace.graph, range, notes: Vec::new(), runtime: None }
        }
        // The other sections say in their own words why a trace cannot be opened.
        Ok(None) | Err(GraphTraceError::Open(_)) if sections.is_empty() => return Ok(None),
        Ok(None) | Err(GraphTraceError::Open(_)) => graph_of_execution(request, selection)?,
        Err(GraphTraceError::Broken(errors)) => return Err(broken(&request.trace, &errors).into()),
    };
    refuse_picture(request, &sections)?;
    if sections.is_empty() {
        sections = Section::OF_GRAPH.to_vec();
    }
    let run = graph.range();
    if run.0 < run.1 && (range.0 >= run.1 || range.1 <= run.0) {
        return Err(Failure::new("no time of the run is selected")
            .why(format!("the run takes {}", taskscope_view::format::time(run.1 - run.0)))
            .into());
    }
    let options = CausesOptions {
        sections,
        range,
        part: selection.words.clone(),
        mode: request.graph.mode.0,
        intervals: request.graph.intervals && matches!(request.form, Form::Json),
        windows: request.graph.window.iter().map(|window| window.in_run(run)).collect(),
        what_if: request.graph.what_if.clone(),
        top: request.top.unwrap_or(3),
        notes,
        runtime,
    };
    if let Some((what, name)) =
        options.what_if.iter().find_map(|what| Some((what, what.unknown_types(&graph).next()?)))
    {
        return Err(Failure::new(format!("no task type is called {name}"))
            .why(format!("--what-if {} uses it", what.text))
            .remedy("taskscope report --section path TRACE        (names the types)")
            .into());
    }
    let mut out = output::results();
    let trace = request.trace.display().to_string();
    let report = causes_report(&trace, &graph, &options);
    if matches!(request.form, Form::Json) {
        output::write_json(&mut out, &report)?;
    } else {
        out.write_all(causes_text(&report, options.top, request.width).as_bytes())?;
    }
    out.flush().context("cannot write the report")?;
    Ok(Some(ExitCode::SUCCESS))
}

/// Refuses HTML and timeline, which these sections do not have.
fn refuse_picture(request: &Request, sections: &[Section]) -> anyhow::Result<()> {
    let option = match request.form {
        Form::Page(_) => "--html",
        Form::Timeline { .. } => "--timeline",
        Form::Text | Form::Json => return Ok(()),
    };
    let trace = shell_word(&request.trace);
    let failure = match sections.first() {
        None => Failure::new(format!("{} has a task graph only", request.trace.display()))
            .why(format!("it was imported; no threads with events are in it for {option} to show"))
            .remedy(format!("taskscope report {trace}")),
        Some(section) => Failure::new(format!("section {} is not available with {option}", section.name()))
            .why("it is printed as text, or with --json")
            .remedy(format!("taskscope report --section {} {trace}", section.name())),
    };
    Err(failure.into())
}

/// A task graph and its context.
struct GraphToExplain {
    graph: TaskGraph,
    /// The selected part of the run.
    range: (u64, u64),
    /// Notes on the filter.
    notes: Vec<String>,
    runtime: Option<taskscope_cause::Runtime>,
}

/// Builds the graph of the whole run, also for a part of it: causes in a part follow from the whole.
fn graph_of_execution(request: &Request, selection: &Selection) -> anyhow::Result<GraphToExplain> {
    let selection = Selection { whole: true, ..selection.clone() };
    let session = crate::verbs::open_part(&request.trace, &selection)?;
    let (graph, dropped) = session.task_graph().map_err(|errors| broken(&request.trace, &errors))?;
    if dropped > 0 {
        let dropped = taskscope_view::format::counted(dropped, "order relation");
        eprintln!("taskscope: dropped {dropped} in contradiction to the clocks of threads");
    }
    Ok(GraphToExplain {
        graph,
        range: session.range.unwrap_or((0, u64::MAX)),
        notes: taskscope_view::notes_of_filter(&session),
        runtime: taskscope_view::runtime::of(&session),
    })
}

fn broken(trace: &Path, errors: &[GraphError]) -> Failure {
    let lines: Vec<&str> = errors.iter().take(10).map(|error| error.text.as_str()).collect();
    Failure::new(format!("the task graph of {} cannot be", trace.display())).why(lines.join("\n"))
}

fn print_losses(trace: &GraphTrace) {
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
