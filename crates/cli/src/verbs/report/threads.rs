//! The report of a trace by its threads' time.

use super::page::write_html;
use super::request::{Form, Request};
use super::shown;
use crate::output;
use crate::watch::Watch;
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use taskscope_analysis::{Analysis, Problem};
use taskscope_execution::lod::Timeline;
use taskscope_session::Session;
use taskscope_view::instrumentation::LANES_IN_JSON;
use taskscope_view::{CallPaths, ReportOptions, Section, TimelineReport, report_of, timeline_report};

/// Reports a trace.
///
/// # Errors
/// If it cannot be read, or the report cannot be written.
pub fn run(request: &Request) -> anyhow::Result<ExitCode> {
    let watch = Watch::start();
    let session = crate::verbs::open_part_watched(&request.trace, &request.selection, &watch)?;
    watch.stage("analysing");
    if let Form::Page(file) = &request.form {
        return write_html(file, session, &watch);
    }
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    drop(watch);
    let mut out = output::results();
    match &request.form {
        Form::Timeline { json } => {
            let report = timeline(&session, request.width);
            match json {
                true => output::write_json(&mut out, &report)?,
                false => out.write_all(report.text(request.width).as_bytes())?,
            }
        }
        Form::Json => {
            let mut report = taskscope_view::report_json(&session, &analysis, &problems);
            if request.paths.is_asked || !session.execution.whole().samples.rows.is_empty() {
                let paths = CallPaths::from_session(&session, request.paths.context);
                report.call_paths = Some(paths.tables(&request.paths.whole_tables()));
            }
            if request.shown.is_asked || shown::is_in(&session) {
                let lanes = request.top.unwrap_or(LANES_IN_JSON);
                report.instrumentation =
                    Some(request.shown.facts(&request.trace, &request.selection, lanes)?);
            }
            output::write_json(&mut out, &report)?;
        }
        Form::Text | Form::Page(_) => {
            let text = text(request, &session, (&analysis, &problems))?;
            out.write_all(text.as_bytes())?;
        }
    }
    out.flush().context("cannot write the report")?;
    // The process ends here: giving a large run's memory back piece by piece would only take time.
    std::mem::forget((session, analysis));
    Ok(ExitCode::SUCCESS)
}

/// The timeline of the whole trace or its part.
fn timeline(session: &Session, width: usize) -> TimelineReport {
    let (trace, execution) = (session.root.display().to_string(), &session.execution);
    let section_timeline = Timeline::without_buckets(execution);
    let report = timeline_report(trace, execution, &session.devices, &section_timeline, width);
    TimelineReport { notes: taskscope_view::notes_of_filter(session), ..report }
}

/// The requested sections as text.
fn text(
    request: &Request,
    session: &Session,
    (analysis, problems): (&Analysis, &[Problem]),
) -> anyhow::Result<String> {
    let samples_alone = session.execution.knows_samples_alone();
    // After a run of which only queues or samples were recorded there is nothing else to report.
    let queues_alone = session.execution.range() == (0, 0);
    let is_last_word = request.recorded.is_some() && (queues_alone || samples_alone);
    let short = request.is_short() || is_last_word;
    let mut sections = request.run_sections();
    if request.names(Section::Devices) || request.is_short() || is_last_word && queues_alone {
        sections.push(Section::Devices);
    }
    if request.shown.is_asked || (request.all && shown::is_in(session)) {
        sections.push(Section::Instrumentation);
    }
    if request.is_short() && samples_alone {
        sections.push(Section::Threads);
    }
    if request.paths.is_asked || request.all || (samples_alone && short) {
        sections.push(Section::CallPaths);
    }
    let mut report = report_of(session, analysis, problems, &sections);
    let paths_options = match samples_alone && short && !request.paths.is_asked {
        true => request.paths.short_options(request.width),
        false => request.paths.options(request.width, samples_alone),
    };
    if sections.contains(&Section::CallPaths) {
        let paths = CallPaths::from_session(session, request.paths.context);
        report.call_paths = Some(paths.tables(&paths_options.tables(&paths)));
    }
    let instrumentation_top = request.top.unwrap_or(10);
    if sections.contains(&Section::Instrumentation) {
        let shown = request.shown.facts(&request.trace, &request.selection, instrumentation_top)?;
        report.instrumentation = Some(shown);
    }
    let options = ReportOptions {
        sections,
        trace: Some(session.root.clone()),
        top: request.top.unwrap_or(3),
        instrumentation_top,
        paths: paths_options,
        short,
        width: request.width,
        allow: request.allow.clone(),
        floor: request.floor.unwrap_or(taskscope_view::FLOOR),
        recorded: request.recorded.clone(),
    };
    let text = taskscope_view::report_text(&report, &options);
    if !text.trim().is_empty() {
        return Ok(text);
    }
    let all = request.all.then_some("all");
    let names: Vec<&str> = request.sections.iter().map(|section| section.name()).chain(all).collect();
    Ok(format!("  nothing to report for {} in this trace or its selected part\n", names.join(", ")))
}
