//! The report of a trace by its threads' time.

use super::page::write_html;
use super::request::{Form, Request};
use super::shown;
use crate::output;
use crate::watch::Watch;
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use taskscope_execution::lod::Timeline;
use taskscope_view::{CallPaths, ReportOptions, Section, findings_text, format, report_of, verdict_text};

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
    let width = request.width;
    // A trace of devices alone has nothing to say about threads.
    let of_threads = session.execution.range() != (0, 0);
    match &request.form {
        Form::Timeline => {
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
        }
        Form::Json => {
            let mut report = taskscope_view::report_json(&session, &analysis, &problems);
            report.devices = taskscope_view::devices::in_time(&session);
            if request.paths.is_asked || !session.execution.whole().samples.rows.is_empty() {
                let paths = CallPaths::of_session(&session, request.paths.context);
                report.call_paths = Some(request.paths.tables(&paths));
            }
            if request.shown.is_asked || shown::is_in(&session) {
                report.instrumentation = Some(request.shown.facts(&request.trace, &request.selection)?);
            }
            output::write_json(&mut out, &report)?;
        }
        Form::Text | Form::Page(_) => {
            let mut sections = request.run_sections();
            let is_short = request.is_short();
            // Without events the workers' states are unknown, and results computed from them would be empty.
            let samples_alone = taskscope_view::knows_samples_alone(&session, &analysis);
            let splits_threads = samples_alone && (is_short || sections.contains(&Section::Threads));
            if samples_alone {
                sections.retain(|section| {
                    [Section::Summary, Section::Findings, Section::Waits].contains(section)
                });
            }
            // After a run of which only queues were recorded there is nothing else to report.
            let queues_alone = !of_threads && request.recorded.is_some();
            let is_whole = is_short || queues_alone;
            let names = |section| is_whole || request.names(section);
            if !of_threads {
                sections =
                    [Section::Summary, Section::Findings].into_iter().filter(|own| names(*own)).collect();
            }
            let report = report_of(&session, &analysis, &problems, &sections);
            let options = ReportOptions {
                sections,
                trace: Some(session.root.clone()),
                top: request.top.unwrap_or(3),
                width,
                allow: request.allow.clone(),
                floor: request.floor.unwrap_or(taskscope_view::FLOOR),
                recorded: request.recorded.clone(),
            };
            let mut text = String::new();
            if of_threads && !options.sections.is_empty() {
                text += &taskscope_view::report_text(&report, &options);
            }
            if is_whole || request.names(Section::Devices) || request.names(Section::Summary) {
                text += &narrowed(taskscope_view::devices::header_text(&session), width);
            }
            let has_findings_of_queues = !of_threads && !report.findings.is_empty();
            if !of_threads {
                if names(Section::Summary) {
                    text += &verdict_text(report.verdict.as_deref(), width);
                }
                if names(Section::Findings) && report.findings_base_ns > 0 {
                    text += &findings_text(report.losses(), options.top, options.floor, width);
                }
            }
            if is_whole || request.names(Section::Devices) {
                text += &narrowed(taskscope_view::devices::report_text(&session), width);
            }
            if has_findings_of_queues && is_whole {
                text += &format!("\n  next:  taskscope explain F1 {}\n", format::shell_word(&request.trace));
            }
            if request.shown.is_asked || (request.all && shown::is_in(&session)) {
                text += &narrowed(request.shown.text(&request.trace, &request.selection, width)?, width);
            }
            if splits_threads {
                text += &narrowed(taskscope_view::thread_split_text(&session.execution), width);
            }
            if samples_alone && (is_short || request.recorded.is_some()) {
                text += &narrowed(request.paths.short_text(&session, &request.trace, width), width);
            }
            if request.paths.is_asked || request.all {
                text += &narrowed(request.paths.text(&session, width, samples_alone), width);
            }
            if text.trim().is_empty() {
                let all = request.all.then_some("all");
                let names = request.sections.iter().map(|section| section.name()).chain(all);
                let names: Vec<&str> = names.collect();
                text = format!("  nothing in this trace, or the part of it, is of: {}\n", names.join(", "));
            }
            out.write_all(text.as_bytes())?;
        }
    }
    out.flush().context("cannot write the report")?;
    // The process ends here: giving a large run's memory back piece by piece would only take time.
    std::mem::forget((session, analysis));
    Ok(ExitCode::SUCCESS)
}

/// A text with tables wider than a narrow terminal: their lines are broken between words. Commands to copy stay whole.
/// At the default of 100 columns nothing changes.
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
