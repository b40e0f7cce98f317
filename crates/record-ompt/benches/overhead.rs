//! Measures the cost of recording an OpenMP program: wall time with the tool over wall time without it.
//!
//! `cargo bench -p taskscope-record-ompt --bench overhead [-- [--rounds N] [--threads N] [--only VARIANT,…] [PROGRAM…]]`
//!
//! In each round every program runs once in each variant, in a rotating order. `--only` restricts the
//! variants, which narrows the interval sooner:
//!
//! | variant | |
//! | --- | --- |
//! | declined | another tool, a function that declines: the runtime's cost of the lookup |
//! | idle | the tool is attached and disabled |
//! | callbacks | another tool, with empty callbacks: the runtime's cost of the calls |
//! | least | another tool, which reads the counter and writes as many bytes for each task: a trace could not do less |
//! | trace | everything is recorded |
//! | sampled-trace | and sampled at 100 Hz |
//! | least-profile | another tool, which reads the counter and adds at begin, end and wait of tasks, and timers of 100 Hz with an empty handler: the minimum of a profile |
//! | profile | `--mode profile`, with its 100 Hz |
//! | timers | no tool, but timers of 1 kHz with a handler that does nothing |
//! | profile-timers | `--mode profile` without samples, and the timers of `timers`; its ratio is that to `timers` |
//! | 1kHz | sampled at 1 kHz in profile mode; its ratio is that to `profile-timers`: the cost of samples |
//!
//! Each run gets its own directory below one that is removed at the very end; until then its files are only
//! truncated. ext4 releases the inodes of removed files later and scans them when it creates a file, so
//! removing one run's files would slow the next run. For the same reason each run's dirty pages are written
//! (`sync`) before the next run starts.
//!
//! A round gives one ratio per variant, relative to the run without a tool. The report shows the median of
//! the ratios and the order-statistics interval that contains the true median with at least 95 % confidence,
//! for any distribution. The last column is the additional user and system CPU time per event, which a busy
//! machine disturbs less. It includes threads that spin while they wait, so it is meaningful only with
//! `--threads 1` and programs with many tasks.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const PROGRAMS: [&str; 6] = ["loop", "depend", "hydro", "hydro-long", "fib", "empty"];

/// Source and arguments of a program. `hydro-long` separates the constant start and end costs of `hydro`.
fn source_and_arguments(program: &str) -> (&str, &'static [&'static str]) {
    match program {
        "hydro-long" => ("hydro", &["120", "2000"]),
        name => (name, &[]),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    WithoutTool,
    Declined,
    Idle,
    Callbacks,
    Least,
    Trace,
    SampledTrace,
    LeastProfile,
    Profile,
    Timers,
    ProfileTimers,
    Sampled,
}
use Variant::*;

const VARIANTS: [(Variant, &str); 12] = [
    (WithoutTool, "without"),
    (Declined, "declined"),
    (Idle, "idle"),
    (Callbacks, "callbacks"),
    (Least, "least"),
    (Trace, "trace"),
    (SampledTrace, "sampled-trace"),
    (LeastProfile, "least-profile"),
    (Profile, "profile"),
    (Timers, "timers"),
    (ProfileTimers, "profile-timers"),
    (Sampled, "1kHz"),
];

impl Variant {
    /// The variant that the ratio is relative to.
    fn base(self) -> Variant {
        match self {
            Sampled => ProfileTimers,
            ProfileTimers => Timers,
            _ => WithoutTool,
        }
    }

    /// Environment variables of the recorder; `None` if the recorder is not attached.
    fn settings(self) -> Option<&'static [(&'static str, &'static str)]> {
        match self {
            WithoutTool | Declined | Callbacks | Least | LeastProfile | Timers => None,
            Idle | Trace => Some(&[]),
            SampledTrace => Some(&[("TASKSCOPE_SAMPLE", "100")]),
            Profile => Some(&[("TASKSCOPE_MODE", "profile"), ("TASKSCOPE_SAMPLE", "100")]),
            // One sample in more time than any of them runs.
            ProfileTimers => Some(&[("TASKSCOPE_MODE", "profile"), ("TASKSCOPE_SAMPLE", "0.01")]),
            Sampled => Some(&[("TASKSCOPE_MODE", "profile"), ("TASKSCOPE_SAMPLE", "1000")]),
        }
    }
}

struct Settings {
    rounds: usize,
    threads: usize,
    programs: Vec<String>,
    variants: Vec<Variant>,
}

fn main() -> ExitCode {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(why) => {
            eprintln!("overhead: {why}");
            return ExitCode::from(2);
        }
    };
    let tool = std::env::current_exe().unwrap().with_file_name("libtaskscope_ompt.so");
    println!(
        "{} rounds, {} threads; ratios to the run without a tool (profile-timers: to timers, 1kHz: to profile-timers), \
         95 % intervals",
        settings.rounds, settings.threads
    );
    let shown = VARIANTS[1..].iter().filter(|(variant, _)| settings.variants.contains(variant));
    let titles: Vec<&str> = shown.map(|(_, title)| *title).collect();
    println!(
        "| program | without, s | {} | events | bytes | CPU ns an event |\n|{}",
        titles.join(" | "),
        " --- |".repeat(titles.len() + 5)
    );
    let traces = Path::new(env!("CARGO_TARGET_TMPDIR")).join("overhead.traces");
    let _ = std::fs::remove_dir_all(&traces);
    let timers = compile_with("empty_handler", &["-shared", "-fPIC", "-ldl"]);
    let declined = compile_with("declined_tool", &["-shared", "-fPIC"]);
    let callbacks = compile_with("empty_callbacks", &["-shared", "-fPIC", "-fopenmp"]);
    let least = compile_with("least_trace", &["-shared", "-fPIC", "-fopenmp"]);
    let least_profile = compile_with("least_profile", &["-shared", "-fPIC", "-fopenmp", "-ldl"]);
    for name in &settings.programs {
        let (source, arguments) = source_and_arguments(name);
        let Some(program) = compile(source) else {
            println!("| {name} | clang-19 is not installed |");
            continue;
        };
        let (tool, timers) = (tool.clone(), timers.clone().unwrap_or_default());
        let callbacks = callbacks.clone().unwrap_or_default();
        let declined = declined.clone().unwrap_or_default();
        let least = least.clone().unwrap_or_default();
        let least_profile = least_profile.clone().unwrap_or_default();
        let (threads, traces) = (settings.threads, traces.join(name));
        let mut bench = Bench {
            program,
            arguments,
            tool,
            timers,
            declined,
            callbacks,
            least,
            least_profile,
            threads,
            traces,
            runs: 0,
        };
        println!("{}", bench.row(name, settings.rounds, &settings.variants));
    }
    let _ = std::fs::remove_dir_all(&traces);
    ExitCode::SUCCESS
}

fn settings() -> Result<Settings, String> {
    let all = VARIANTS.iter().map(|(variant, _)| *variant).collect();
    let mut settings = Settings { rounds: 21, threads: 2, programs: Vec::new(), variants: all };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = |name: &str| {
            let text = arguments.next().ok_or(format!("{name} needs a number"))?;
            text.parse::<usize>().ok().filter(|n| *n > 0).ok_or(format!("{name}: no positive number: {text}"))
        };
        match argument.as_str() {
            "--bench" => {}
            "--rounds" => settings.rounds = number("--rounds")?,
            "--threads" => settings.threads = number("--threads")?,
            "--only" => settings.variants = only(&arguments.next().unwrap_or_default())?,
            name if PROGRAMS.contains(&name) => settings.programs.push(name.to_owned()),
            other => return Err(format!("unknown argument {other}; programs are {}", PROGRAMS.join(", "))),
        }
    }
    if settings.programs.is_empty() {
        settings.programs = PROGRAMS.map(str::to_owned).to_vec();
    }
    Ok(settings)
}

/// Parses a list of variant names; adds the variants that their ratios are relative to.
fn only(names: &str) -> Result<Vec<Variant>, String> {
    let mut variants = vec![WithoutTool];
    for name in names.split(',') {
        let found = VARIANTS.iter().find(|(_, title)| *title == name);
        let titles = || VARIANTS.map(|(_, title)| title).join(", ");
        let (variant, _) = found.ok_or_else(|| format!("unknown variant {name}; there are {}", titles()))?;
        // And all that its ratio is to.
        let bases = std::iter::successors(Some(*variant), |variant| Some(variant.base()));
        variants.extend(bases.take_while(|variant| *variant != WithoutTool));
    }
    let in_order = VARIANTS.iter().map(|(variant, _)| *variant);
    Ok(in_order.filter(|variant| variants.contains(variant)).collect())
}

fn compile(name: &str) -> Option<PathBuf> {
    compile_with(name, &["-fopenmp", "-lm"])
}

fn compile_with(name: &str, options: &[&str]) -> Option<PathBuf> {
    // The mini-application is an example, too.
    let directory = if name == "hydro" { "../../examples/openmp" } else { "benches/programs" };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory).join(name).with_extension("c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("overhead-{name}"));
    let status = Command::new("clang-19")
        .arg("-O2")
        .arg(source)
        .args(options)
        .arg("-o")
        .arg(&program)
        .status()
        .ok()?;
    status.success().then_some(program)
}

struct Bench {
    program: PathBuf,
    arguments: &'static [&'static str],
    tool: PathBuf,
    timers: PathBuf,
    declined: PathBuf,
    callbacks: PathBuf,
    least: PathBuf,
    least_profile: PathBuf,
    threads: usize,
    traces: PathBuf,
    runs: usize,
}

impl Bench {
    fn row(&mut self, name: &str, rounds: usize, variants: &[Variant]) -> String {
        let mut ratios = vec![Vec::new(); variants.len()];
        let (mut without, mut size, mut added_cpu) = (Vec::new(), (0, 0), Vec::new());
        self.run(WithoutTool);
        for round in 0..rounds {
            let (mut seconds, mut cpu) = ([0.0; VARIANTS.len()], [0.0; VARIANTS.len()]);
            for turn in 0..variants.len() {
                let variant = variants[(round + turn) % variants.len()];
                let run = self.run(variant);
                (seconds[variant as usize], cpu[variant as usize]) = (run.wall_seconds, run.cpu_seconds);
                if variant == Trace {
                    size = run.events_and_bytes.unwrap_or(size);
                }
            }
            without.push(seconds[WithoutTool as usize]);
            for (variant, ratios) in variants.iter().zip(&mut ratios) {
                ratios.push(seconds[*variant as usize] / seconds[variant.base() as usize]);
            }
            added_cpu.push(cpu[Trace as usize] - cpu[WithoutTool as usize]);
        }
        let (events, bytes) = size;
        let nanos_an_event = match events {
            0 => "–".to_owned(),
            events => format!("{:.0}", Summary::of(added_cpu).median * 1e9 / events as f64),
        };
        let ratios: Vec<String> =
            ratios.into_iter().skip(1).map(|ratios| Summary::of(ratios).to_string()).collect();
        let without = Summary::of(without).median;
        format!("| {name} | {without:.3} | {} | {events} | {bytes} | {nanos_an_event} |", ratios.join(" | "))
    }

    /// One run, from start to exit.
    fn run(&mut self, variant: Variant) -> Measured {
        self.runs += 1;
        let directory = self.traces.join(self.runs.to_string());
        // As `record` does before it starts the program.
        let _ = std::fs::create_dir_all(&directory);
        let mut command = Command::new(&self.program);
        command.args(self.arguments);
        command.env("OMP_NUM_THREADS", self.threads.to_string()).stdout(Stdio::null());
        command.env_remove("TASKSCOPE_TRACE_DIR").env_remove("OMP_TOOL_LIBRARIES");
        if let Some(settings) = variant.settings() {
            command.env("OMP_TOOL_LIBRARIES", &self.tool).envs(settings.iter().copied());
            if !settings.is_empty() {
                // Same preload order as `record` with sampling.
                let mut preloaded = self.tool.clone().into_os_string();
                if variant == ProfileTimers {
                    preloaded.push(":");
                    preloaded.push(&self.timers);
                }
                command.env("LD_PRELOAD", preloaded);
            }
            if variant != Idle {
                command.env("TASKSCOPE_TRACE_DIR", &directory);
            }
        } else if variant == Timers {
            command.env("LD_PRELOAD", &self.timers);
        } else if variant == Declined {
            command.env("OMP_TOOL_LIBRARIES", &self.declined);
        } else if variant == Callbacks {
            command.env("OMP_TOOL_LIBRARIES", &self.callbacks);
        } else if variant == Least {
            command.env("OMP_TOOL_LIBRARIES", &self.least).env("TASKSCOPE_TRACE_DIR", &directory);
        }
        if variant == LeastProfile {
            command.env("OMP_TOOL_LIBRARIES", &self.least_profile).env("LD_PRELOAD", &self.least_profile);
        }
        let (start, cpu_before) = (Instant::now(), cpu_seconds_of_children());
        let status = command.status().expect("the program starts");
        let (wall_seconds, cpu_seconds) =
            (start.elapsed().as_secs_f64(), cpu_seconds_of_children() - cpu_before);
        assert!(status.success(), "{} failed", self.program.display());
        let events_and_bytes = (variant == Trace).then(|| events_and_bytes(&directory));
        empty_files(&directory);
        // SAFETY: no preconditions.
        unsafe { libc::sync() };
        Measured { wall_seconds, cpu_seconds, events_and_bytes }
    }
}

struct Measured {
    wall_seconds: f64,
    cpu_seconds: f64,
    /// Events and bytes of a trace.
    events_and_bytes: Option<(u64, u64)>,
}

/// User and system time of all programs that have run and ended.
fn cpu_seconds_of_children() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: fills the structure that is given.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Takes the files' blocks and leaves their names.
fn empty_files(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            empty_files(&path);
        } else {
            let _ = std::fs::OpenOptions::new().write(true).truncate(true).open(path);
        }
    }
}

/// Counts the events and bytes of a finished trace.
fn events_and_bytes(directory: &Path) -> (u64, u64) {
    use taskscope_event::framing::{FILE_HEADER_BYTES, JUMBO_FLAG, payload_bytes};
    let (mut events, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            let (e, b) = events_and_bytes(&path);
            (events, bytes) = (events + e, bytes + b);
        } else if path.extension().is_some_and(|extension| extension == "obs") {
            let stream = std::fs::read(&path).unwrap_or_default();
            bytes += stream.len() as u64;
            let mut at = FILE_HEADER_BYTES;
            while let Some(flags) = stream.get(at) {
                at += if flags & JUMBO_FLAG == 0 {
                    12 + payload_bytes(*flags)
                } else {
                    let size = stream
                        .get(at + 12..at + 16)
                        .and_then(|b| b.try_into().ok())
                        .map_or(0, u32::from_le_bytes);
                    16 + size as usize
                };
                events += 1;
            }
        }
    }
    (events, bytes)
}

/// A median with its interval.
struct Summary {
    median: f64,
    low: f64,
    high: f64,
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Summary {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let outside = ranks_outside(n);
        Summary {
            median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
            low: values[outside],
            high: values[n - 1 - outside],
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.low, self.high)
    }
}

/// Number of values at each end that may be left out so that the rest still has the median with 95 %:
/// the number of values below the median is binomial with p = 1/2.
fn ranks_outside(n: usize) -> usize {
    let (mut probability, mut cumulated, mut outside) = (0.5f64.powi(n as i32), 0.0, 0);
    for k in 0..n / 2 {
        cumulated += probability;
        if 2.0 * cumulated > 0.05 {
            break;
        }
        outside = k;
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    outside
}
