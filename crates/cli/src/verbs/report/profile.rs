//! The report of profiles.

use super::page::write_page;
use super::request::{Form, Request};
use crate::opening::a_profile;
use crate::output;
use crate::verbs::profiles;
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use taskscope_view::format::{narrowed, shell_word};
use taskscope_view::{
    CallPaths, Findings, PathsOptions, ProfileReport, Section, findings_text, html, next_text,
    profile_efficiency, profile_summary, profile_times, profile_waits_text, verdict_text,
};

/// The sections of a report that a profile has.
const SECTIONS: [Section; 6] = [
    Section::Summary,
    Section::Efficiency,
    Section::Time,
    Section::Findings,
    Section::Waits,
    Section::CallPaths,
];

/// Reports profiles, if the path is one or a directory of some.
///
/// # Errors
/// If none of the files can be read, the report cannot be written, or the requested part is not in a profile.
pub fn run(request: &Request) -> anyhow::Result<Option<ExitCode>> {
    let Some((profile, kept)) = profiles::open_profile(&request.trace)? else { return Ok(None) };
    let asks_for_more = request.sections.iter().any(|name| !SECTIONS.contains(name));
    if matches!(request.form, Form::Timeline { .. }) || request.selection.words.is_some() || asks_for_more {
        return Err(a_profile(&request.trace).into());
    }
    profiles::check_context(&request.trace, request.paths.context)?;
    let paths = CallPaths::of(&profile, kept, None);
    let (trace, findings) = (request.trace.display().to_string(), Findings::from_profile(&paths));
    let paths_options = request.paths.options(request.width, false);
    let tables = match request.form {
        Form::Text | Form::Timeline { .. } => paths_options.tables(&paths),
        Form::Json | Form::Page(_) => request.paths.whole_tables(),
    };
    let report = ProfileReport::of(trace, findings, paths.waits.table(), paths.tables(&tables));
    let mut out = output::results();
    match &request.form {
        Form::Page(file) => return write_page(file, &html::profile_page(&report), None).map(Some),
        Form::Json => output::write_json(&mut out, &report)?,
        Form::Text | Form::Timeline { .. } => {
            out.write_all(text(request, &report, &paths_options).as_bytes())?
        }
    }
    out.flush().context("cannot write the report")?;
    Ok(Some(ExitCode::SUCCESS))
}

/// The requested sections; all by default.
fn text(request: &Request, report: &ProfileReport, paths: &PathsOptions) -> String {
    let (run, width) = (&report.call_paths, request.width);
    let names = |section| request.is_short() || request.names(section);
    let mut text = String::new();
    if names(Section::Summary) {
        let verdict = verdict_text(report.verdict.as_deref(), width);
        text += &profile_summary(run, &verdict, width, request.recorded.as_deref());
    }
    if names(Section::Efficiency) {
        text += &profile_efficiency(report, width);
    }
    if names(Section::Time) {
        text += &profile_times(run, width);
    }
    if names(Section::Findings) && report.findings_base_ns > 0 {
        let top = request.top.unwrap_or(3);
        text += &findings_text(report.losses(), top, request.floor.unwrap_or(taskscope_view::FLOOR), width);
    }
    if names(Section::Waits) {
        text += &profile_waits_text(&report.thread_waits, request.top.unwrap_or(3), width);
    }
    if names(Section::Findings) && !names(Section::CallPaths) {
        let trace = shell_word(&request.trace);
        let explain = report.findings.first().map(|row| format!("taskscope explain {} {trace}", row.id));
        let whole = request.recorded.is_some().then(|| format!("taskscope report {trace}"));
        text += &next_text(&explain.into_iter().chain(whole).collect::<Vec<_>>(), width);
    }
    if names(Section::CallPaths) || request.paths.is_asked {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &run.text(paths);
    }
    narrowed(&text, width)
}
