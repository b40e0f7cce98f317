//! Measures the cost of one event on this host: a short recording by the calling process itself.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use taskscope_event::models::{openmp, ovni};

use crate::{enter, process, thread};

/// Batches; the median one counts, so that other work on the machine does not.
const BATCHES: usize = 25;
/// Pairs of a begin and an end in a batch. All together about 2.5 MiB and some milliseconds.
const PAIRS: u32 = 4_000;

/// Nanoseconds per event, including the clock reading and page faults, on the file system of `trace`. `None`
/// if recording there is impossible (a full disk). Works once in a process, which can record nothing else: it
/// is for a command that reports on recordings of other processes.
pub fn nanos_per_event(trace: &Path) -> Option<f64> {
    let directory = trace.join(format!(".calibration.{}", std::process::id()));
    // An existing directory is not ours to remove, a link least of all.
    fs::create_dir(&directory).ok()?;
    let measured = measure(&directory);
    remove(&directory);
    measured
}

/// As `fs::remove_dir_all`, with one descriptor at a time: if removal failed for lack of descriptors, the
/// rest would be read as another process of the trace.
fn remove(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    // An entry keeps the descriptor.
    let paths: Vec<_> =
        entries.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect();
    for (path, is_directory) in paths {
        if is_directory {
            remove(&path);
        } else {
            let _ = fs::remove_file(path);
        }
    }
    let _ = fs::remove_dir(directory);
}

fn measure(directory: &Path) -> Option<f64> {
    let config = process::Config {
        trace_directory: directory.to_owned(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION), ("openmp", openmp::VERSION)],
        own_require: Vec::new(),
        attributes: Vec::new(),
    };
    process::start(config).ok()?;
    if !thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})) {
        return None;
    }
    let mut spent = [Duration::ZERO; BATCHES];
    for batch in &mut spent {
        let begin = Instant::now();
        for _ in 0..PAIRS {
            write(|recording, now| recording.begin(now, openmp::TASK_TASKWAIT_BEGIN, [], 0))?;
            write(|recording, now| recording.end(now, openmp::TASK_TASKWAIT_END, []))?;
        }
        *batch = begin.elapsed();
    }
    spent.sort();
    let lost = enter()?.lost_events();
    thread::detach();
    process::finish();
    (lost == 0).then(|| spent[BATCHES / 2].as_nanos() as f64 / f64::from(2 * PAIRS))
}

/// One event as a callback writes it: enter, read the clock, write.
fn write(event: impl FnOnce(&mut thread::Recording, u64)) -> Option<()> {
    let mut recording = enter()?;
    let now = recording.now();
    event(&mut recording, now);
    Some(())
}
