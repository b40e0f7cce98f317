//! `taskscope record [options] -- CMD…`: runs CMD with a recorder attached and passes on everything
//! that is the program's: input, output, signals, exit code.

mod annotations;
mod child;
mod device_library;
mod directory;
mod elf;
mod end;
pub mod environment;
mod inherited;
mod known;
mod launcher;
pub mod libgomp;
mod loader;
mod losses;
mod mpi;
pub mod no_profile;
mod not_recorded;
mod offload;
mod ovni;
mod program;
pub mod recorder_library;
mod run_file;
mod run_time_code;
pub mod running;
mod settings;
mod summary;
mod tails;
mod threads;
mod untouched;
mod watcher;
mod wrapped;

use crate::messages::{self, Failure};
use child::Outcome;
use directory::TraceDirectory;
use environment::Environment;
use nix::sys::signal::Signal;
pub use run_file::RunFile;
use run_file::{NotRecorded, Notice, RecordMode};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_record::SHARE_VARIABLE;
use taskscope_record::attached::{FILTERS, Filters};
use taskscope_record::drain::Drainer;
use taskscope_record::limits::{MAX_SIZE_VARIABLE, RING_VARIABLE, parse_bytes};
use watcher::Watcher;

/// Exit code when recording could not be set up and the program was not run, as with `env`.
pub const CANNOT_RUN: u8 = 125;

/// The clock of the samples' timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
enum SampleClock {
    /// Wall time
    #[default]
    Wall,
    /// CPU time of the thread
    Cpu,
}

impl SampleClock {
    const fn name(self) -> &'static str {
        match self {
            SampleClock::Wall => "wall",
            SampleClock::Cpu => "cpu",
        }
    }
}

/// Run a program with a recorder attached, write a trace directory, print a summary.
///
/// The program's input, output, signals and exit code pass through. If recording cannot be set up, a message says so
/// and the program runs unrecorded; with `--strict` it does not run. Exit codes of taskscope itself follow `env`: 125
/// for wrong options and for refusals of `--strict`, 126 if the program cannot be executed, 127 if it is not found.
///
/// A program built with GCC uses GCC's OpenMP runtime, which cannot be recorded. It runs on LLVM's runtime instead if
/// that is installed and has every function that the program needs. The report mentions the replacement.
#[derive(clap::Args)]
#[command(override_usage = "taskscope record [OPTIONS] [--] CMD [ARGS]...")]
pub struct Args {
    /// Write the trace to this directory [default: CMD.trace]. A directory that is not empty is left untouched: the
    /// next free number is added to the name.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Keep GCC's OpenMP runtime: such a program runs unchanged and unrecorded.
    #[arg(long)]
    no_preload: bool,

    /// Preload LLVM's OpenMP runtime even if the executable is not linked to GCC's, for programs that load OpenMP code
    /// later (Python modules).
    #[arg(long, conflicts_with = "no_preload")]
    preload: bool,

    /// Limit per process (512M, 2G, …); further events are dropped and counted.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,

    /// Keep only the newest SIZE of each thread's events (64M, …), as a flight recorder does. Not for profiles, which have no
    /// events.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ring: Option<u64>,

    /// Do not run the program if recording cannot be set up; exit with 125 instead.
    #[arg(long)]
    strict: bool,

    /// Output: a `trace` with every event, or a `profile` for long runs. A profile is one small file per process, of
    /// constant size: call paths with their time, waiting and blame. It takes 100 samples per second unless --sample is
    /// given.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    mode: RecordMode,

    /// With `--mode profile`: write totals so far (efficiency, largest loss) every SECONDS to DIR/HOST.PID.live.jsonl
    /// while the program runs.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    live: Option<f64>,

    /// Toggle recording when the program receives this signal (a number; 12 is SIGUSR2).
    #[arg(long, value_name = "NUMBER", value_parser = control_signal)]
    control_signal: Option<i32>,

    /// Sample the call stacks of each thread HZ times per second. Programs without OpenMP are then recorded too.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    sample: Option<f64>,

    /// Clock of the samples' timers. The kernel counts CPU time in ticks, so rates above some hundred Hz are not
    /// reached.
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    clock: SampleClock,

    /// Record which threads wait for which, in programs whose threads wait in the C library: mutexes, read-write locks, spin
    /// locks, conditions, barriers, semaphores, joins, Python's GIL, sleep and I/O. Also take 100 samples per second, unless
    /// --sample is given.
    #[arg(long)]
    threads: bool,

    /// Let other users read taskscope-run.json (command line, directory), and tails in shared memory while the program
    /// runs, as the umask permits. Default: the owner alone.
    #[arg(long)]
    share: bool,

    /// Print errors only, neither notices nor the summary.
    #[arg(short, long)]
    quiet: bool,

    /// The program to run, and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Whether a command of this name can be run.
pub fn is_program(name: &Path) -> bool {
    program::find(name.as_os_str()).is_ok()
}

/// Runs the program; never returns when the program was killed by a signal.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(why) = without_effect(&args) {
        return Err(Failure::new(why).kept("nothing was run").exit_code(CANNOT_RUN).into());
    }
    child::survive_file_size_limit();
    let program = program::find(&args.command[0])?;
    let rank = launcher::rank();
    let set_up = recorder_library::find().and_then(|tool| {
        Ok((tool, directory::take(args.output.as_deref(), &program, rank.as_ref(), args.share)?))
    });
    match set_up {
        Ok((tool, trace)) => record(&args, &program, &tool, rank, trace),
        Err(failure) if args.strict => Err(failure.kept("nothing was run").exit_code(CANNOT_RUN).into()),
        Err(failure) => {
            messages::print(&failure.kept("the program runs, unrecorded (--strict refuses that)").into());
            let outcome = execute(&program, &args.command, &[], &[], &mut Watcher::new(&|| true))?;
            Ok(outcome.pass_on())
        }
    }
}

/// Requested features that would not work.
fn without_effect(args: &Args) -> Option<&'static str> {
    let profiled = args.mode == RecordMode::Profile;
    if args.live.is_some() && !profiled {
        return Some("--live is for profiles: add --mode profile");
    }
    if args.ring.is_some() && profiled {
        return Some("--ring keeps the newest events, and a profile has no events: leave one of the two out");
    }
    (args.clock == SampleClock::Cpu && args.sample.is_none() && !profiled && !args.threads)
        .then_some("--clock is for samples: add --sample HZ, or --mode profile")
}

fn record(
    args: &Args,
    program: &Path,
    tool: &Path,
    rank: Option<launcher::Rank>,
    trace: TraceDirectory,
) -> anyhow::Result<ExitCode> {
    let untouched = untouched::among(wrapped::programs_of(program, &args.command[1..]));
    let (programs, is_untouched) = (&untouched.others, untouched.is_all);
    let mut environment = Environment { notices: untouched.notices.clone(), ..Environment::default() };
    let Attached { libraries, uses_ovni, drainer } = if is_untouched {
        Attached::default()
    } else {
        attach(args, (program, programs), tool, &trace, &mut environment)
    };
    let names = environment.names();
    let passed_on = launcher::arguments_that_pass_on(program, &names);
    if let Some(list) = launcher::extended_list(program, &names) {
        environment.set("OMPI_MCA_mca_base_env_list", list);
    }

    // One process speaks for a job.
    let speaks = !args.quiet && rank.as_ref().is_none_or(|rank| rank.rank == 0);
    let notices = all_notices(environment.notices, &trace);
    if speaks {
        notices.iter().for_each(summary::print_notice);
    }
    let typed: Vec<String> = args.command.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let mut run_file = RunFile::begin(typed, program, args.mode, rank, notices);
    write_run_file(&run_file, &trace);

    let start = std::time::SystemTime::now();
    // Recorded activity needs no explanation.
    let is_recorded = || trace.has_streams();
    let mut watcher = Watcher::new(&is_recorded);
    let outcome = execute(program, &args.command, &passed_on, &environment.variables, &mut watcher);
    let refused = drainer.map(Drainer::stop).unwrap_or_default();
    drop(libraries);
    let outcome = outcome.inspect_err(|_| trace.give_back())?;

    run_file.wall_ns = Some(outcome.wall.as_nanos() as u64);
    run_file.exit_code = outcome.exit_code();
    run_file.signal = outcome.signal();
    let tails_outside = tails::bring_home(&trace.path);
    end::store(&trace.path, &outcome);
    for notice in untouched::left_alone(&trace.path, &untouched) {
        if speaks {
            summary::print_notice(&notice);
        }
        run_file.notices.push(notice);
    }
    run_time_code::keep_maps(&trace.path, start);
    let profiles = trace.profiles();
    let recorded = trace.has_streams();
    if recorded && run_file.rank.unwrap_or(0) == 0 {
        run_file.recording_cost_ns_per_event = taskscope_record::calibration::nanos_per_event(&trace.path);
    }
    if !recorded && profiles.is_empty() {
        // Some may have been built by the command.
        let programs = &wrapped::programs_of(program, &args.command[1..]);
        let is_preloaded = names.contains(&"LD_PRELOAD");
        let run =
            not_recorded::Run { file: &run_file, programs, seen: &watcher.seen, uses_ovni, is_preloaded };
        run_file.not_recorded = Some(NotRecorded::of(&run));
    }
    write_run_file(&run_file, &trace);
    if speaks {
        match &run_file.not_recorded {
            Some(reason) => summary::print_not_recorded(&run_file, reason),
            None if !profiles.is_empty() && !recorded => {
                summary::print_profiles(&run_file, &profiles, &trace)
            }
            None => summary::print(&run_file, &trace),
        }
    }
    if speaks && let Some(sentence) = losses::Losses::of(&trace.path).sentence() {
        summary::say(&sentence);
    }
    if speaks && let Some(sentence) = tails::refused_sentence(&refused) {
        summary::say(&sentence);
    }
    if speaks && let Some((tails, why)) = tails_outside {
        summary::say(&format!(
            "taskscope: {} with the newest events could not be copied into the trace ({why}); read it \
             on this host before that is restarted",
            taskscope_view::format::counted(tails, "file")
        ));
    }
    Ok(outcome.pass_on())
}

/// Values that last as long as the program runs.
#[derive(Default)]
struct Attached {
    /// Keeps the directory of libraries for programs that offload.
    libraries: Option<offload::Directory>,
    uses_ovni: bool,
    drainer: Option<Drainer>,
}

/// Sets the variables that attach the recorders to the command's processes.
fn attach(
    args: &Args,
    (program, programs): (&Path, &[PathBuf]),
    tool: &Path,
    trace: &TraceDirectory,
    environment: &mut Environment,
) -> Attached {
    let mpi_library = mpi::library_for(programs, tool);
    let threads_library =
        if args.threads { threads::library_for(mpi_library.is_some(), tool, environment) } else { None };
    let openmp_tool = mpi_library.as_deref().or(threads_library.as_deref()).unwrap_or(tool);
    environment.attach(openmp_tool, &trace.path);
    annotations::attach(environment, openmp_tool, programs);
    if args.no_preload {
        environment.keep_libgomp(programs);
    } else if !environment.replace_libgomp(programs) && args.preload {
        environment.preload_runtime(programs);
    }
    let profiled = args.mode == RecordMode::Profile;
    if profiled {
        environment.set("TASKSCOPE_MODE", "profile");
        if let Some(seconds) = args.live {
            environment.set("TASKSCOPE_LIVE", seconds.to_string());
        }
    }
    if let Some(signal) = args.control_signal {
        environment.set("TASKSCOPE_CONTROL_SIGNAL", signal.to_string());
    }
    let rate = args.sample.or(threads_library.is_some().then_some(threads::SAMPLES_PER_SECOND));
    if let Some(rate) = rate {
        environment.set("TASKSCOPE_SAMPLE", rate.to_string());
    }
    if rate.is_some() || profiled {
        environment.set("TASKSCOPE_SAMPLE_CLOCK", args.clock.name());
    }
    let has_own_tool = environment.chain_own_tools(programs);
    // A runtime linked into the program does not open the libraries of `OMP_TOOL_LIBRARIES` (Intel's of
    // 2026), but finds a tool that is already loaded.
    let has_runtime_inside = || programs.iter().any(|program| elf::holds_openmp_runtime(program));
    // The recorder is to see that.
    let may_restrict = || programs.iter().any(|program| untouched::may_restrict_itself(program));
    if let Some(Filters(own @ 1..)) = Filters::current_thread() {
        environment.set(FILTERS, own.to_string());
    }
    if rate.is_some()
        || profiled
        || mpi_library.is_some()
        || has_own_tool
        || has_runtime_inside()
        || may_restrict()
    {
        environment.preload(openmp_tool);
    }
    device_library::attach(environment, tool, programs);
    environment.appease_sanitizer(programs);
    let libraries = offload::attach(environment, &trace.path, programs);
    let uses_ovni = ovni::is_used_by(programs);
    // The programs started by a command cannot always be determined. On other hosts we cannot set the
    // loader's paths.
    let may_start_others = !libgomp::uses_openmp(program) && !launcher::is_launcher(program);
    if uses_ovni || may_start_others {
        ovni::attach(environment, &trace.path, uses_ovni);
    }
    for (variable, bytes) in [(MAX_SIZE_VARIABLE, args.max_size), (RING_VARIABLE, args.ring)] {
        if let Some(bytes) = bytes {
            environment.set(variable, bytes.to_string());
        }
    }
    if args.share {
        environment.set(SHARE_VARIABLE, "1");
    }
    let drainer = tails::drain(&trace.path, environment);
    environment.name_additions();
    Attached { libraries, uses_ovni, drainer }
}

/// Runs the program to its end.
fn execute(
    program: &Path,
    typed: &[OsString],
    further_arguments: &[OsString],
    variables: &[(&'static str, OsString)],
    watcher: &mut Watcher<'_>,
) -> Result<Outcome, Failure> {
    let arguments = |first: &[&OsStr]| -> Vec<OsString> {
        first.iter().map(|first| (*first).to_owned()).chain(typed[1..].iter().cloned()).collect()
    };
    let mut first: Vec<&OsStr> = vec![&typed[0]];
    first.extend(further_arguments.iter().map(OsString::as_os_str));
    let mut run =
        |program: &Path, first: &[&OsStr]| child::run(program, &arguments(first), variables, watcher);
    let mut started = run(program, &first);
    if started.as_ref().is_err_and(|error| error.raw_os_error() == Some(nix::libc::ENOEXEC))
        && program::is_text(program)
    {
        // A script without `#!`: shells and `env` give it to sh.
        started = run(Path::new("/bin/sh"), &[OsStr::new("/bin/sh"), program.as_os_str()]);
    }
    started.map_err(|error| cannot_execute(program, &error))
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| "give a number of bytes, such as 512K, 64M or 2G".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds >= 0.01 && seconds.is_finite());
    seconds.ok_or_else(|| "give seconds, 0.01 or more".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 20_000.0);
    rate.ok_or_else(|| "give samples per second: above 0, at most 20000".to_owned())
}

fn control_signal(text: &str) -> Result<i32, String> {
    // No program handles the first two, and the C library keeps the others.
    let own = [Signal::SIGKILL as i32, Signal::SIGSTOP as i32, 32, 33];
    let signal = text.parse().ok().filter(|signal| (1..65).contains(signal) && !own.contains(signal));
    signal.ok_or_else(|| "give the number of a signal that a program can handle, such as 10 or 12".to_owned())
}

fn all_notices(mut notices: Vec<Notice>, trace: &TraceDirectory) -> Vec<Notice> {
    if let Some(wanted) = &trace.instead_of {
        let wanted = directory::as_typed(wanted);
        let text = format!("{wanted} is not empty and stays as it is: recording into {}", trace.shown());
        notices.push(Notice { name: "directory-taken", text });
    }
    notices
}

/// Finishes the run file. A failure to write it is reported, and does not change the program's result.
fn write_run_file(run_file: &RunFile, trace: &TraceDirectory) {
    if let Err(error) = run_file.write(&trace.run_file, trace.run_file_mode()) {
        let failure =
            Failure::new(format!("cannot write {}", trace.run_file.display())).why(error.to_string()).kept(
                "the program and its recording continue; the report will lack the command and its exit code",
            );
        messages::print(&failure.into());
    }
}

fn cannot_execute(program: &Path, error: &std::io::Error) -> Failure {
    let failure =
        Failure::new(format!("cannot run {}", program.display())).exit_code(program::CANNOT_EXECUTE);
    match error.raw_os_error() {
        Some(nix::libc::ENOEXEC) => {
            failure.why("it is neither a program for this machine nor a script that begins with #!")
        }
        Some(nix::libc::ENOENT) => failure.why("the interpreter that it names does not exist"),
        _ => failure.why(error.to_string()),
    }
}
