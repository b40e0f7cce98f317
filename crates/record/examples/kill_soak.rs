//! Kills a recording program at random moments, repeatedly, and checks for missing events.
//!
//! `cargo run --release -p taskscope-record --example kill_soak [KILLS [DIRECTORY]]`
//!
//! With `TASKSCOPE_TAIL_DIR` set, the tails are there, and a process that drains them is killed, too, in
//! turns: the program alone, the drainer some time before the program, the program some time before the
//! drainer, both together.
//!
//! The program has four threads, which number their events, and store the number of the last completed one in
//! a shared page. After `kill -9`, every stream must hold all numbers up to that one, and must be readable
//! without any problem except that it is unfinished.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

use taskscope_event::StreamFile;
use taskscope_event::models::ovni;
use taskscope_prerequisite::dice::Dice;
use taskscope_record::drain::{DRAINER_VARIABLE, Drainer};
use taskscope_record::{TAIL_DIRECTORY_VARIABLE, enter, process, thread};
use taskscope_trace::{OpenOptions, ProblemKind, Trace};

const THREADS: usize = 4;
/// Different sizes of events, so that regions end at all offsets.
const PAYLOAD_BYTES: [usize; 4] = [8, 10, 12, 16];

/// Shared values of the threads: thread id and last completed number, of each.
type Progress = [[AtomicU64; 2]; THREADS];

fn map_progress(path: &Path) -> &'static Progress {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    use std::os::fd::AsRawFd;
    // SAFETY: a new shared mapping of a file of sufficient size, never unmapped while it is used.
    unsafe {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let base =
            libc::mmap(std::ptr::null_mut(), size_of::<Progress>(), protection, kind, file.as_raw_fd(), 0);
        assert_ne!(base, libc::MAP_FAILED);
        &*base.cast::<Progress>()
    }
}

/// The program that is killed.
fn program(directory: &Path) -> ! {
    let progress = map_progress(&directory.join("progress"));
    process::start(process::Config {
        trace_directory: directory.join("trace"),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION)],
        own_require: vec![],
        attributes: vec![],
    })
    .unwrap();
    let threads: Vec<_> = (0..THREADS)
        .map(|i| {
            std::thread::spawn(move || {
                assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
                let tid = enter().unwrap().os_tid() as u64;
                progress[i][0].store(tid, Release);
                for number in 1u64.. {
                    let mut r = enter().unwrap();
                    let at = r.now();
                    let mut payload = [0xa5; 16];
                    payload[..8].copy_from_slice(&number.to_le_bytes());
                    match PAYLOAD_BYTES[i] {
                        8 => r.point(at, ovni::BURST, *payload.first_chunk::<8>().unwrap()),
                        10 => r.point(at, ovni::BURST, *payload.first_chunk::<10>().unwrap()),
                        12 => r.point(at, ovni::BURST, *payload.first_chunk::<12>().unwrap()),
                        _ => r.point(at, ovni::BURST, payload),
                    };
                    drop(r);
                    progress[i][1].store(number, Release);
                    // A long-lived pace: many kills are to hit young streams too.
                    if number.is_multiple_of(4096) {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    unreachable!("the threads never end")
}

/// The process that drains, until it is killed.
fn drainer(place: &Path) -> ! {
    let (_drainer, name) = Drainer::start(place).unwrap();
    println!("{name}");
    std::thread::sleep(Duration::from_secs(3600));
    std::process::exit(1)
}

/// Starts a drainer for the tails in `place`, with the name that programs know it by.
fn start_drainer(place: &Path) -> (Child, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = command.arg("--drainer").arg(place).stdout(Stdio::piped()).spawn().unwrap();
    let mut name = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut name).unwrap();
    (child, name.trim().to_owned())
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[derive(Default)]
struct Totals {
    kills: u64,
    before_start: u64,
    events: u64,
    torn: u64,
    failures: Vec<String>,
}

/// One kill, `after` the start.
fn kill_once(directory: &Path, after: Duration, draining: &mut Option<Draining>, totals: &mut Totals) {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join("progress"), [0; size_of::<Progress>()]).unwrap();
    let progress = map_progress(&directory.join("progress"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--program").arg(directory).stderr(Stdio::null());
    if let Some(draining) = draining {
        command.env(DRAINER_VARIABLE, &draining.name);
    }
    let mut child = command.spawn().unwrap();
    match draining {
        Some(draining) if !totals.kills.is_multiple_of(4) => {
            let (first, second) = match totals.kills % 4 {
                1 => (&mut draining.process, &mut child),
                _ => (&mut child, &mut draining.process),
            };
            let at_once = totals.kills % 4 == 3;
            std::thread::sleep(if at_once { after } else { after / 2 });
            first.kill().unwrap();
            std::thread::sleep(if at_once { Duration::ZERO } else { after / 2 });
            kill(second);
            first.wait().unwrap();
        }
        _ => {
            std::thread::sleep(after);
            kill(&mut child);
        }
    }
    totals.kills += 1;
    check(directory, progress, totals);
    if let Some(draining) = draining {
        draining.remove_tails();
        if draining.process.try_wait().unwrap().is_some() {
            *draining = Draining::start(&draining.place);
        }
    }
    // SAFETY: mapped in this function, and not used any more.
    unsafe { libc::munmap((progress as *const Progress).cast_mut().cast(), size_of::<Progress>()) };
}

/// A process that drains, and the place of the tails.
struct Draining {
    place: PathBuf,
    process: Child,
    name: String,
}

impl Draining {
    fn start(place: &Path) -> Self {
        let (process, name) = start_drainer(place);
        Draining { place: place.to_owned(), process, name }
    }

    /// Dead programs' tails would fill the memory.
    fn remove_tails(&self) {
        for entry in std::fs::read_dir(&self.place).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("taskscope-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
}

fn check(directory: &Path, progress: &Progress, totals: &mut Totals) {
    let completed: Vec<_> =
        progress.iter().map(|[tid, number]| (tid.load(Acquire), number.load(Acquire))).collect();
    let Ok(trace) = Trace::open(directory.join("trace"), &OpenOptions::default()) else {
        if completed.iter().any(|(_, number)| *number > 0) {
            totals.failures.push("no trace, but completed events".to_owned());
        }
        totals.before_start += 1;
        return;
    };
    for problem in trace.problems() {
        match problem.kind {
            // A stream without a first event is empty.
            ProblemKind::UnfinishedStream | ProblemKind::EmptyStream => {}
            ProblemKind::TornEvent => totals.torn += 1,
            // The moment between the creation of the directory and of the files in it.
            _ if completed.iter().all(|(tid, _)| !problem.stream.ends_with(&format!("thread.{tid}"))) => {}
            _ => totals.failures.push(format!("{problem:?}")),
        }
    }
    for (tid, completed) in completed.into_iter().filter(|(tid, _)| *tid > 0) {
        let name = format!("thread.{tid}");
        let Some(stream) = trace.streams().iter().find(|stream| stream.relative_path.ends_with(&name)) else {
            totals.failures.push(format!("no stream of thread {tid}"));
            continue;
        };
        let mut expected = 1;
        for event in stream.events_of(StreamFile::Standard) {
            let number = event.payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            if number != expected || event.payload[8..].iter().any(|byte| *byte != 0xa5) {
                totals.failures.push(format!("thread {tid}: event {number} where {expected} should be"));
                return;
            }
            expected += 1;
        }
        if expected <= completed {
            totals.failures.push(format!("thread {tid}: {} of {completed} events", expected - 1));
        }
        totals.events += expected - 1;
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, directory] = &arguments[..]
        && flag == "--program"
    {
        program(Path::new(directory));
    }
    if let [flag, place] = &arguments[..]
        && flag == "--drainer"
    {
        drainer(Path::new(place));
    }
    let kills: u64 = arguments.first().map_or(10_000, |kills| kills.parse().expect("a number of kills"));
    let parent = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = parent.join(format!("taskscope-kill-soak-{}", std::process::id()));
    // A directory of its own: all tails in it are this soak's.
    let tails =
        std::env::var_os(TAIL_DIRECTORY_VARIABLE).map(|place| Path::new(&place).join("taskscope-kill-soak"));
    let mut draining = tails.map(|tails| {
        std::fs::create_dir_all(&tails).unwrap();
        // SAFETY: no other thread exists yet.
        unsafe { std::env::set_var(TAIL_DIRECTORY_VARIABLE, &tails) };
        Draining::start(&tails)
    });
    let mut totals = Totals::default();
    let mut dice = Dice::new(u64::from(std::process::id()));
    let begin = Instant::now();
    while totals.kills < kills && totals.failures.len() < 10 {
        // Most soon after the start, some late.
        let longest_us = if dice.below(8) == 0 { 60_000 } else { 12_000 };
        // A drainer takes its time to find new tails.
        let longest_us = if draining.is_some() { 8 * longest_us } else { longest_us };
        kill_once(&directory, Duration::from_micros(dice.below(longest_us)), &mut draining, &mut totals);
    }
    if let Some(mut draining) = draining {
        kill(&mut draining.process);
        let _ = std::fs::remove_dir_all(&draining.place);
    }
    let _ = std::fs::remove_dir_all(&directory);
    println!(
        "{} kills in {:.0} s: {} events completed, {} lost or damaged, {} events half written, {} kills before the first stream",
        totals.kills,
        begin.elapsed().as_secs_f64(),
        totals.events,
        totals.failures.len(),
        totals.torn,
        totals.before_start
    );
    totals.failures.iter().for_each(|failure| println!("  {failure}"));
    if totals.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
