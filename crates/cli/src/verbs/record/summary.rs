//! Messages of `record` on stderr, before and after the program.

use super::directory::TraceDirectory;
use super::run_file::{NotRecorded, Notice, RunFile};
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use taskscope_files::read_regular;
use taskscope_profile::Profile;
use taskscope_session::MAX_PROFILE_BYTES;
use taskscope_view::format::harmless;

/// A larger trace is not analysed unasked: that would take noticeable time and memory.
const LARGE_TRACE_BYTES: u64 = 1 << 30;

/// One line for a notice.
pub fn print_notice(notice: &Notice) {
    say(&format!("taskscope: {}", notice.text));
}

/// The lines after a run that was recorded: the report's main sections.
///
/// They come from a process of their own, so that neither a limit (`ulimit -v`) nor a fault in an
/// analysis can come between the program's exit code and its reader.
pub fn print(run: &RunFile, trace: &TraceDirectory) {
    let bytes = size_of(&trace.path);
    let about = format!("{}  →  {}", with_unit(bytes), harmless(&trace.shown()));
    // Other ranks of the job may still be recording: one line, no report of half a run.
    if run.rank.is_some() || bytes > LARGE_TRACE_BYTES || !print_report(run, trace, &about) {
        let wall = taskscope_view::format::time(run.wall_ns.unwrap_or(0));
        say(&format!("taskscope: {wall}  {about}        (taskscope report {})", trace.word()));
    }
}

fn print_report(run: &RunFile, trace: &TraceDirectory, about: &str) -> bool {
    let (Ok(own), Ok(stderr)) = (std::env::current_exe(), io::stderr().as_fd().try_clone_to_owned()) else {
        return false;
    };
    let mut report = Command::new(own);
    report.args(["report", "--section", "summary,efficiency,findings,waits", "--recorded", about]);
    for notice in &run.notices {
        report.args(["--allow", notice.name]);
    }
    report.arg("--").arg(Path::new(&trace.shown()));
    let status = report.stdin(Stdio::null()).stdout(Stdio::from(stderr)).status();
    status.is_ok_and(|status| status.success())
}

/// The lines after a run that left nothing.
pub fn print_not_recorded(run: &RunFile, reason: &NotRecorded) {
    let mut wall = taskscope_view::format::time(run.wall_ns.unwrap_or(0));
    if let Some(code) = run.exit_code {
        wall += &format!("  exit code {code}");
    }
    reason.lines(&wall, run.mode.name()).iter().for_each(|line| say(line));
}

/// The lines after a run that was profiled: its main sections, as of a trace.
pub fn print_profiles(run: &RunFile, profiles: &[PathBuf], trace: &TraceDirectory) {
    let about = format!("{}  →  {}", with_unit(size_of(&trace.path)), harmless(&trace.shown()));
    // Other ranks of the job may still be recording.
    if run.rank.is_some() || !print_report(run, trace, &about) {
        let wall = taskscope_view::format::time(run.wall_ns.unwrap_or(0));
        let of = taskscope_view::format::counted(profiles.len() as u64, "process");
        say(&format!(
            "taskscope: {wall}  profile of {of}  {about}        (taskscope report {})",
            trace.word()
        ));
    }
    if run.rank.is_some() {
        return;
    }
    let read = |path: &PathBuf| Profile::read(&read_regular(path, MAX_PROFILE_BYTES).ok()?).ok();
    let profiles: Vec<Profile> = profiles.iter().filter_map(read).collect();
    let modules = profiles.iter().flat_map(|profile| &profile.modules);
    let mut files = modules.filter_map(|module| Path::new(&module.path).file_name()?.to_str());
    let is_known = run.notices.iter().any(|notice| notice.name.starts_with("runtime"));
    if let Some(runtime) = files.find(|file| file.starts_with("libgomp")).filter(|_| !is_known) {
        say(&format!(
            "taskscope: what runs on GCC's OpenMP runtime ({runtime}) is sampled as any code; \
             --preload records it as OpenMP, on LLVM's runtime"
        ));
    }
}

/// Bytes of all files below a directory; unreadable files count nothing.
fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

fn with_unit(bytes: u64) -> String {
    let (unit, size) = match bytes {
        0..=0x3ff => return format!("{bytes} bytes"),
        0x400..=0xf_ffff => ("KiB", bytes as f64 / 1024.0),
        0x10_0000..=0x3fff_ffff => ("MiB", bytes as f64 / 1_048_576.0),
        _ => ("GiB", bytes as f64 / 1_073_741_824.0),
    };
    let decimals = if size < 9.95 { 2 } else { usize::from(size < 99.5) };
    format!("{size:.decimals$} {unit}")
}

pub fn say(line: &str) {
    // A closed stderr must not change the program's outcome.
    let _ = writeln!(io::stderr(), "{}", crate::output::plain(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_significant_figures() {
        let shown: Vec<_> = [0, 1023, 1024, 2_345_678, 123_456_789, 5 << 40].map(with_unit).into();
        assert_eq!(shown, ["0 bytes", "1023 bytes", "1.00 KiB", "2.24 MiB", "118 MiB", "5120 GiB"]);
    }
}
