//! Cost of an event for the emitting thread, beside its lower bound: reading the counter and storing the same
//! bytes into fresh, reserved, populated pages of the same kind of mapping.
//!
//! `cargo run --release -p taskscope-record --example event_cost [DIRECTORY [ROUNDS]]`
//! Each line: minimum, median and maximum of the rounds.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use taskscope_event::models::ovni;
use taskscope_record::{enter, process, thread};

const EVENTS: usize = 4_000_000;
const ROUNDS: usize = 7;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn floor<const BYTES: usize>(path: &Path) -> f64 {
    const WINDOW: usize = 2 << 20;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    let begin = cpu_ns();
    let per_window = WINDOW / BYTES;
    let mut offset = 0;
    for _ in 0..EVENTS.div_ceil(per_window) {
        // SAFETY: a fresh mapping of our own file, written within its bounds, unmapped at the end.
        unsafe {
            libc::fallocate(file.as_raw_fd(), 0, offset, WINDOW as i64);
            let base = libc::mmap(
                std::ptr::null_mut(),
                WINDOW,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
            .cast::<u8>();
            libc::madvise(base.cast(), WINDOW, libc::MADV_POPULATE_WRITE);
            let mut to = base;
            for _ in 0..per_window {
                let ticks = counter();
                let mut bytes = [7u8; BYTES];
                bytes[4..12].copy_from_slice(&ticks.to_le_bytes());
                to.cast::<[u8; BYTES]>().write_volatile(bytes);
                to = to.add(BYTES);
            }
            libc::munmap(base.cast(), WINDOW);
        }
        offset += WINDOW as i64;
    }
    let ns = (cpu_ns() - begin) as f64 / EVENTS as f64;
    std::fs::remove_file(path).unwrap();
    ns
}

fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

fn recorded<const N: usize>() -> f64 {
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
    let begin = cpu_ns();
    for i in 0..EVENTS {
        let mut r = enter().expect("attached");
        let at = r.now();
        r.point(at, ovni::BURST, [i as u8; N]);
    }
    let ns = (cpu_ns() - begin) as f64 / EVENTS as f64;
    thread::detach();
    ns
}

fn recorded_jumbo<const N: usize>() -> f64 {
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
    let data = [7u8; N];
    let begin = cpu_ns();
    for _ in 0..EVENTS {
        let mut r = enter().expect("attached");
        let at = r.now();
        r.jumbo(at, ovni::BURST, &[&data]);
    }
    let ns = (cpu_ns() - begin) as f64 / EVENTS as f64;
    thread::detach();
    ns
}

/// Runs `measure` on `threads` threads at once; returns the mean of their results.
fn on_threads(threads: usize, measure: impl Fn(usize) -> f64 + Sync) -> f64 {
    let measure = &measure;
    let sum: f64 = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|i| scope.spawn(move || measure(i))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    sum / threads as f64
}

fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

/// Streams that were measured are not wanted any more.
fn remove_streams(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        for process in std::fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            for thread in std::fs::read_dir(process.path()).into_iter().flatten().flatten() {
                let _ = std::fs::remove_dir_all(thread.path());
            }
        }
    }
}

fn main() {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds = std::env::args().nth(2).map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let directory = parent.join(format!("taskscope-event-cost-{}", std::process::id()));
    process::start(process::Config {
        trace_directory: directory.clone(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION)],
        own_require: vec![],
        attributes: vec![],
    })
    .unwrap();
    type Measure<'a> = (&'a str, Box<dyn Fn(usize) -> f64 + Sync + 'a>);
    let floors: [Measure<'_>; 3] = [
        ("floor, 12 bytes", Box::new(|i| floor::<12>(&directory.join(format!("floor.{i}"))))),
        ("floor, 28 bytes", Box::new(|i| floor::<28>(&directory.join(format!("floor.{i}"))))),
        ("floor, 80 bytes", Box::new(|i| floor::<80>(&directory.join(format!("floor.{i}"))))),
    ];
    let events: [Measure<'_>; 3] = [
        ("event without payload", Box::new(|_| recorded::<0>())),
        ("event with 16 bytes", Box::new(|_| recorded::<16>())),
        ("event with 64 bytes (jumbo)", Box::new(|_| recorded_jumbo::<64>())),
    ];
    for threads in [1, 2] {
        for ((floor_name, floor), (name, event)) in floors.iter().zip(&events) {
            let (mut floor_costs, mut event_costs, mut ratios, mut process_costs) =
                (vec![], vec![], vec![], vec![]);
            for _ in 0..rounds {
                floor_costs.push(on_threads(threads, floor));
                let before = nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID);
                event_costs.push(on_threads(threads, event));
                let process_ns = nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID) - before;
                process_costs.push(process_ns as f64 / (threads * EVENTS) as f64);
                ratios.push(event_costs[event_costs.len() - 1] / floor_costs[floor_costs.len() - 1]);
                remove_streams(&directory);
            }
            let process = "  process, start and end included";
            for (name, values) in [
                (*floor_name, floor_costs),
                (*name, event_costs),
                (process, process_costs),
                ("  ratio", ratios),
            ] {
                let (low, middle, high) = spread(values);
                println!(
                    "Rust, {threads} thread{} {name:34} {low:7.2} {middle:7.2} {high:7.2}",
                    if threads == 1 { " " } else { "s" }
                );
            }
        }
    }
    process::finish();
    std::fs::remove_dir_all(&directory).unwrap();
}
