//! Cost of instrumentation for the instrumented thread: a disabled site beside an empty loop, and recorded
//! events beside the recorder's plain event. All take turns, so other load affects all alike.
//!
//! `cargo run --release -p taskscope-record --example instrument_cost [DIRECTORY [ROUNDS]]`
//! Each line: minimum, median and maximum of the rounds, in nanoseconds of CPU time an event.

use std::hint::black_box;
use std::path::PathBuf;

use taskscope_event::models::ovni;
use taskscope_record::enter;
use taskscope_record::instrument::{self, Key, Level, StateName, TaskKind};

const EVENTS: u64 = 1_000_000;

static OFF: Key = Key::new("off", "is off").level(Level::Disabled);
static SIZE: Key = Key::new("size", "of a block");
static RUNNING: StateName = StateName::new("RUNNING", "");
static TASK: TaskKind = TaskKind::new("task");

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn measure(events: u64, mut event: impl FnMut(u64)) -> f64 {
    let begin = cpu_ns();
    for i in 0..events {
        event(black_box(i));
    }
    (cpu_ns() - begin) as f64 / events as f64
}

fn main() {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let rounds = std::env::args().nth(2).map_or(9, |rounds| rounds.parse().expect("a number"));
    let directory = parent.join(format!("taskscope-instrument-cost-{}", std::process::id()));
    instrument::start(&directory).expect("a directory");
    let (one, two) = (TASK.create(), TASK.create());
    for task in [one, two] {
        let _on = task.enter();
        (0..4).for_each(|value| SIZE.open(value));
    }
    let mut rows: [(&str, Vec<f64>); 7] = [
        ("empty loop", vec![]),
        ("site that is off", vec![]),
        ("plain event, no payload", vec![]),
        ("plain event, 16 bytes", vec![]),
        ("state push or pop", vec![]),
        ("burst open or close", vec![]),
        ("task switch, 4 bursts open", vec![]),
    ];
    for _ in 0..rounds {
        rows[0].1.push(measure(20 * EVENTS, |i| {
            black_box(i);
        }));
        rows[1].1.push(measure(20 * EVENTS, |i| OFF.point(i)));
        rows[2].1.push(measure(EVENTS, |_| {
            if let Some(mut r) = enter() {
                let at = r.now();
                r.point(at, ovni::BURST, []);
            }
        }));
        rows[3].1.push(measure(EVENTS, |i| {
            if let Some(mut r) = enter() {
                let at = r.now();
                r.point(at, ovni::BURST, [i as u8; 16]);
            }
        }));
        rows[4].1.push(measure(EVENTS / 2, |_| drop(RUNNING.enter())) / 2.0);
        rows[5].1.push(measure(EVENTS / 2, |i| drop(SIZE.burst(i))) / 2.0);
        one.enter_now();
        rows[6].1.push(
            measure(EVENTS / 2, |_| {
                one.switch_to(two);
                two.switch_to(one);
            }) / 2.0,
        );
        one.leave_now();
    }
    let mut medians = Vec::new();
    for (name, values) in &mut rows {
        values.sort_by(f64::total_cmp);
        let (low, middle, high) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        println!("{name:32} {low:7.2} {middle:7.2} {high:7.2}");
        medians.push(middle);
    }
    println!("off above an empty loop          {:7.2} ns (to stay below 1)", medians[1] - medians[0]);
    println!("push or pop / plain event        {:7.2} (1.6)", medians[4] / medians[2]);
    println!("task switch / plain event        {:7.2} (2)", medians[6] / medians[2]);
    instrument::finish();
    std::fs::remove_dir_all(&directory).expect("own directory");
}
