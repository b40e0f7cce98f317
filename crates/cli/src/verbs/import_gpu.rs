//! Profiles of GPUs for `taskscope import`: databases of rocprofv3 (rocpd), exports of Nsight Systems.
//!
//! ```text
//! PROFILE ──▶ python3: `taskscope.gpu` of the Python module ──▶ trace events in a temporary file ──▶ the reader of Chrome's form
//! ```
//!
//! Python reads the profile because its own library has SQLite, and pyarrow every codec of Parquet. The module's file is a part of
//! this command, so nothing needs to be installed beside Python. It runs from a new directory: Python imports nothing from the
//! working directory.

use crate::messages::Failure;
use crate::watch::Watch;
use std::path::Path;
use std::process::{Command, Stdio};
use taskscope_files::read_regular;
use taskscope_import::ImportErrors;
use taskscope_import::chrome::read_chrome;
use taskscope_import::spans::Run;

/// The module, which is a program, too.
const MODULE: &str = include_str!("../../../../python/taskscope/gpu.py");
/// A note of the module on contents that it left out.
const NOTE: &str = "note: left out: ";

/// Reads a profile. Prints what is left out.
///
/// # Errors
/// If Python is missing, or the profile is damaged or of another schema; `broken` makes the error of wrong events.
pub fn read(profile: &Path, max_bytes: u64, broken: impl Fn(ImportErrors) -> Failure) -> anyhow::Result<Run> {
    let shown = profile.display();
    let cannot = |why: String| Failure::new(format!("cannot import {shown}")).why(why);
    let place = tempfile::Builder::new().prefix("taskscope-import-").tempdir();
    let place = place.map_err(|error| cannot(format!("a temporary directory: {error}")))?;
    let watch = Watch::start();
    watch.unfinished(Some(place.path()));
    watch.stage("converting");
    let (module, events) = (place.path().join("gpu.py"), place.path().join("events.json"));
    std::fs::write(&module, MODULE).map_err(|error| cannot(format!("a temporary file: {error}")))?;
    let mut python = Command::new("python3");
    python.arg("-B").arg(&module).arg("--").arg(profile).arg(&events).stdin(Stdio::null());
    let done = python.output().map_err(|error| {
        cannot(format!(
            "profiles of rocprofv3 and Nsight Systems are read by python3, which cannot run: {error}"
        ))
        .remedy(
            "python3 -m taskscope.gpu PROFILE run.json.gz, on a machine with Python; then import run.json.gz",
        )
    })?;
    let messages = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let kept = "nothing: a trace with wrong times or ids would give wrong answers";
        return Err(cannot(reason(&messages)).kept(kept).into());
    }
    let unreadable = |error: std::io::Error| cannot(format!("its events: {error}"));
    let text = String::from_utf8(read_regular(&events, max_bytes).map_err(unreadable)?)?;
    drop(watch);
    let mut run = read_chrome(&text).map_err(broken)?;
    run.source = "profile of a GPU";
    for content in messages.lines().filter_map(|line| line.strip_prefix(NOTE)) {
        eprintln!("note: not imported: {content}");
    }
    Ok(run)
}

/// The reason in the messages of the module; of an error that it does not know, the last line.
fn reason(messages: &str) -> String {
    let known = messages.split_once("\n  why:  ").map(|(_, rest)| rest);
    let known = known.map(|rest| rest.split("\n  kept: ").next().unwrap_or(rest));
    let last = messages.trim_end().lines().next_back().unwrap_or("python3 failed without a message");
    known.unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn reasons_are_those_of_the_module() {
        assert_eq!(reason("error: cannot convert 'x'\n  why:  one\ntwo\n  kept: nothing\n"), "one\ntwo");
        assert_eq!(reason("Traceback:\n  line\nKeyError: 'x'\n"), "KeyError: 'x'");
        assert_eq!(reason(""), "python3 failed without a message");
    }
}
