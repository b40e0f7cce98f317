//! Durations of single events, with the stalls when a buffer is written: percentiles, compared with writers
//! that collect 2 MiB in memory and write them in one piece (which lose them when they die).
//!
//! `cargo run --release -p taskscope-record --example event_latency [DIRECTORY]`

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use taskscope_event::framing::{head_word, size_code};
use taskscope_event::models::ovni;
use taskscope_record::{clock, enter, process, thread};

const EVENTS: usize = 8_000_000;
const BUFFER_BYTES: usize = 2 << 20;

/// Nanoseconds of each call, sorted.
fn measure(mut event: impl FnMut(u64)) -> Vec<u32> {
    let mut each = Vec::with_capacity(EVENTS);
    for i in 0..EVENTS as u64 {
        let begin = Instant::now();
        event(i);
        each.push(begin.elapsed().as_nanos() as u32);
    }
    each.sort_unstable();
    each
}

fn recorded() -> Vec<u32> {
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})));
    let each = measure(|i| {
        let mut r = enter().expect("attached");
        let at = r.now();
        r.point(at, ovni::BURST, i.to_le_bytes());
    });
    thread::detach();
    each
}

fn buffered(directory: &Path) -> Vec<u32> {
    let path = directory.join("buffered");
    let mut file = File::create(&path).unwrap();
    let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
    let each = measure(|i| {
        if buffer.len() + 20 > BUFFER_BYTES {
            file.write_all(&buffer).unwrap();
            buffer.clear();
        }
        buffer.extend_from_slice(&head_word(size_code(8), ovni::BURST).to_le_bytes());
        buffer.extend_from_slice(&clock::kernel_ns().to_le_bytes());
        buffer.extend_from_slice(&i.to_le_bytes());
    });
    std::fs::remove_file(path).unwrap();
    each
}

fn main() {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = parent.join(format!("taskscope-event-latency-{}", std::process::id()));
    process::start(process::Config {
        trace_directory: directory.clone(),
        app_id: 1,
        require: vec![],
        own_require: vec![],
        attributes: vec![],
    })
    .unwrap();
    let nothing = measure(|_| {});
    println!("ns of one event with 8 bytes of payload, {EVENTS} events, measuring itself included");
    println!("{:28} {:>8} {:>8} {:>8} {:>10}", "", "p50", "p99", "p99.9", "maximum");
    for (name, each) in
        [("nothing", nothing), ("recorded", recorded()), ("2 MiB in memory, written", buffered(&directory))]
    {
        let at = |per_mille: usize| each[(EVENTS - 1) * per_mille / 1000];
        println!("{name:28} {:8} {:8} {:8} {:10}", at(500), at(990), at(999), each[EVENTS - 1]);
    }
    process::finish();
    std::fs::remove_dir_all(&directory).unwrap();
}
