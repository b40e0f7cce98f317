//! The run file and the summary of a process that was running before it was recorded.

use super::directory::{self, TraceDirectory};
use super::run_file::{Notice, RecordMode, RunFile};
use super::settings::settings_of;
use super::{run_time_code, summary, write_run_file};
use crate::messages::Failure;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use taskscope_record_attach::{Process, Recorded};
use taskscope_view::format::counted;

/// The process.
pub struct RunningProcess<'p> {
    /// Its id.
    pub pid: i32,
    /// Its files in `/proc`.
    pub process: &'p Process,
}

/// A recording that has not ended.
pub struct RunningRecording {
    trace: TraceDirectory,
    run_file: RunFile,
    begun: Instant,
    /// When the process itself began.
    process_began: SystemTime,
}

/// Takes a directory for the trace, and writes the facts of the process into it.
pub fn begin(
    running: &RunningProcess<'_>,
    output: Option<&Path>,
    share: bool,
) -> Result<RunningRecording, Failure> {
    let (command, program) = running.process.command();
    let name = program.file_name().unwrap_or_else(|| "process".as_ref()).to_string_lossy().into_owned();
    let named = Path::new(&format!("{name}.{}", running.pid)).to_owned();
    let trace = directory::take(output, &named, None, share)?;
    let mut run_file = RunFile::begin(command, &program, RecordMode::Trace, None, Vec::new());
    run_file.cwd = running.process.directory().display().to_string();
    run_file.settings = settings_of(running.process.environment().into_iter());
    write_run_file(&run_file, &trace);
    let age = running.process.age().unwrap_or(Duration::ZERO);
    let process_began = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
    Ok(RunningRecording { trace, run_file, begun: Instant::now(), process_began })
}

impl RunningRecording {
    /// The directory.
    pub fn trace(&self) -> &Path {
        &self.trace.path
    }

    /// The host's name.
    pub fn host(&self) -> String {
        self.run_file.host.clone()
    }

    /// Removes the files of a recording that failed, as far as they are empty.
    pub fn give_back(&self) {
        self.trace.give_back();
    }

    /// Completes the run file, and prints the summary unless it is to be `quiet`.
    pub fn end(&mut self, recorded: &Recorded, quiet: bool) {
        self.run_file.wall_ns = Some(self.begun.elapsed().as_nanos() as u64);
        self.run_file.notices = notices(recorded);
        run_time_code::keep_maps(&self.trace.path, self.process_began);
        write_run_file(&self.run_file, &self.trace);
        if !quiet {
            self.run_file.notices.iter().for_each(summary::print_notice);
            summary::print(&self.run_file, &self.trace);
        }
    }
}

fn notices(recorded: &Recorded) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut add = |name, text: String| notices.push(Notice { name, text });
    if !recorded.saw_running {
        let text = "the kernel does not let threads be sampled while they run (kernel.perf_event_paranoid above 2, or a limit of memory \
                    or of open files): call paths are those of blocked threads alone";
        add("no-running-samples", text.to_owned());
    }
    if recorded.lost > 0 {
        let samples = counted(recorded.lost, "sample");
        add(
            "samples-lost",
            format!("{samples} of running threads found no room, as this process had no CPU"),
        );
    }
    notices
}
