//! The report of profiles.

use super::page::write_page;
use super::request::{Form, Request};
use crate::opening::a_profile;
use crate::output;
use crate::verbs::profiles;
use anyhow::Context;
use std::io::Write;
use std::process::ExitCode;
use taskscope_view::{CallPaths, ProfileReport, Section, html, profile_summary};

/// The sections of a report that a profile has.
const SECTIONS: [Section; 4] = [Section::Summary, Section::Efficiency, Section::Time, Section::CallPaths];

/// Reports profiles, if the path is one or a directory of some.
///
/// # Errors
/// If none of the files can be read, the report not be written, or what is asked for is not in a profile.
pub fn run(request: &Request) -> anyhow::Result<Option<ExitCode>> {
    let Some((profile, kept)) = profiles::open_profile(&request.trace)? else { return Ok(None) };
    let asks_for_more = request.sections.iter().any(|name| !SECTIONS.contains(name));
    if matches!(request.form, Form::Timeline) || request.selection.words.is_some() || asks_for_more {
        return Err(a_profile(&request.trace).into());
    }
    profiles::check_context(&request.trace, request.paths.context)?;
    let paths = CallPaths::of(&profile, kept, None);
    let report = || ProfileReport {
        trace: request.trace.display().to_string(),
        call_paths: request.paths.tables(&paths),
    };
    let mut out = output::results();
    match &request.form {
        Form::Page(file) => return write_page(file, &html::profile_page(&report()), None).map(Some),
        Form::Json => output::write_json(&mut out, &report())?,
        Form::Text | Form::Timeline => {
            out.write_all(profile_summary(&paths.tree, request.width).as_bytes())?;
            out.write_all(paths.text(&request.paths.options(request.width, false)).as_bytes())?;
        }
    }
    out.flush().context("cannot write the report")?;
    Ok(Some(ExitCode::SUCCESS))
}
