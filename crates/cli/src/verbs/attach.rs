//! `taskscope attach PID`: records a running process from outside for some seconds, and prints the report.

use super::record::running::{self, RunningProcess};
use crate::messages::Failure;
use crate::reading::Interruption;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use taskscope_record_attach::Process;

/// Record a running process from outside, without a change to it, and print a summary.
///
/// Each thread's call paths are sampled, on a CPU and blocked; when it had a CPU, waited for one or was blocked is known
/// from the kernel. Nothing is loaded into the process, and none of its threads is stopped or interrupted. What its
/// runtime does, and which thread ends a wait, is not known: for that, start the program with `taskscope record`.
///
/// The kernel must allow it: processes of the same user, if kernel.yama.ptrace_scope is 0; root may record all.
#[derive(clap::Args)]
pub struct Args {
    /// The process.
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    /// Record for this long, if the process does not end before (^C ends it, too).
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    length: Duration,

    /// Write the trace to this directory [default: NAME.PID.trace]. A directory that is not empty is left untouched: the
    /// next free number is added to the name.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Samples of each thread per second.
    #[arg(long, value_name = "HZ", default_value = "100", value_parser = period)]
    sample: Duration,

    /// Let other users read taskscope-run.json (command line, directory), as the umask permits. Default: the owner alone.
    #[arg(long)]
    share: bool,

    /// Print errors only, neither notices nor the summary.
    #[arg(short, long)]
    quiet: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds >= 0.01 && *seconds <= 1e6);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds, from 0.01 to 1000000".to_owned())
}

fn period(text: &str) -> Result<Duration, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate >= 0.1 && *rate <= 1000.0);
    let period = rate.map(|rate| Duration::from_secs_f64(1.0 / rate));
    period.ok_or_else(|| "give samples per second, from 0.1 to 1000".to_owned())
}

/// Records the process.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let process = Process::open(args.pid).map_err(|why| refused(args.pid, &why))?;
    let interruption = Interruption::watch()?;
    let running = RunningProcess { pid: args.pid, process: &process };
    let mut run = running::begin(&running, args.output.as_deref(), args.share)?;
    let end = Instant::now() + args.length;
    let is_over = || interruption.is_requested() || Instant::now() >= end;
    let recorded = process.record(run.trace(), &run.host(), args.sample, &is_over);
    let recorded = recorded.map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => no_process(args.pid),
        _ => not_written(run.trace(), &why),
    });
    let recorded = recorded.inspect_err(|_| run.give_back())?;
    run.end(&recorded, args.quiet);
    Ok(ExitCode::SUCCESS)
}

fn no_process(pid: i32) -> Failure {
    Failure::new(format!("process {pid} does not exist"))
}

fn refused(pid: i32, why: &io::Error) -> Failure {
    match why.kind() {
        io::ErrorKind::NotFound => no_process(pid),
        io::ErrorKind::PermissionDenied => Failure::new(format!("process {pid} may not be read"))
            .why(why_denied())
            .remedy("sudo sysctl kernel.yama.ptrace_scope=0        (until the next boot), or attach as root"),
        _ => Failure::new(format!("process {pid} cannot be read")).why(why.to_string()),
    }
}

/// Why the kernel refuses to let the memory of a process be read.
fn why_denied() -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    match scope.as_deref().map(str::trim) {
        Ok("0") | Err(_) => "it belongs to another user, or has more privileges than this one".to_owned(),
        Ok(scope) => format!(
            "kernel.yama.ptrace_scope is {scope}: only root may read processes that it has not started"
        ),
    }
}

fn not_written(trace: &Path, why: &io::Error) -> Failure {
    Failure::new(format!("cannot write the trace {}", trace.display())).why(why.to_string())
}
