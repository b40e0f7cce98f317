//! What `record` says on stderr, before and after the program.

use super::directory::TraceDirectory;
use super::run_file::{Notice, RunFile};
use std::io::{self, Write};

/// One line for a notice.
pub fn print_notice(notice: &Notice) {
    say(&format!("taskscope: {}", notice.text));
}

/// The lines after the run.
pub fn print(run: &RunFile, trace: &TraceDirectory, recorded: bool) {
    let seconds = run.wall_ns.unwrap_or(0) as f64 / 1e9;
    if recorded {
        say(&format!("taskscope: {seconds:.2} s  →  {}", trace.shown()));
    } else {
        say(&format!("taskscope: {seconds:.2} s  nothing was recorded"));
    }
}

fn say(line: &str) {
    // A closed stderr must not change the program's outcome.
    let _ = writeln!(io::stderr(), "{line}");
}
