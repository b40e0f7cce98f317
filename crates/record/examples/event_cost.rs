//! What an event costs on the thread that emits it, beside its floor: reading the counter and
//! storing the same bytes into fresh, reserved, populated pages of the same kind of mapping.
//!
//! `cargo run --release -p taskscope-record --example event_cost [DIRECTORY]`

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use taskscope_event::models::ovni;
use taskscope_record::{enter, process, thread};

const EVENTS: usize = 4_000_000;
const ROUNDS: usize = 15;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn floor<const BYTES: usize>(directory: &Path) -> f64 {
    const WINDOW: usize = 2 << 20;
    let path = directory.join("floor");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
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

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn main() {
    let directory = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = directory.join(format!("taskscope-event-cost-{}", std::process::id()));
    process::start(process::Config {
        trace_directory: directory.clone(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION)],
        own_require: vec![],
        attributes: vec![],
    })
    .unwrap();
    let mut columns: [Vec<f64>; 4] = Default::default();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        columns[0].push(floor::<12>(&directory));
        columns[1].push(recorded::<0>());
        columns[2].push(floor::<28>(&directory));
        columns[3].push(recorded::<16>());
        let _ = std::fs::read_dir(&directory).map(|entries| {
            entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("loom")).for_each(|e| {
                for proc in std::fs::read_dir(e.path()).into_iter().flatten().flatten() {
                    for thread in std::fs::read_dir(proc.path()).into_iter().flatten().flatten() {
                        let _ = std::fs::remove_dir_all(thread.path());
                    }
                }
            })
        });
    }
    println!("ns an event on the emitting thread (min / median / max of {ROUNDS}), {:?}", begin.elapsed());
    let names = ["floor, 12 bytes", "event without payload", "floor, 28 bytes", "event with 16 bytes"];
    let ratio = |over: &[f64], under: &[f64]| over.iter().zip(under).map(|(a, b)| a / b).collect();
    let ratios: [Vec<f64>; 2] = [ratio(&columns[1], &columns[0]), ratio(&columns[3], &columns[2])];
    for (name, values) in names.iter().zip(columns) {
        let (low, middle, high) = median(values);
        println!("{name:24} {low:6.1} {middle:6.1} {high:6.1}");
    }
    for (name, values) in ["ratio without payload", "ratio with 16 bytes"].iter().zip(ratios) {
        let (low, middle, high) = median(values);
        println!("{name:24} {low:6.2} {middle:6.2} {high:6.2}");
    }
    process::finish();
    std::fs::remove_dir_all(&directory).unwrap();
}
