//! Data between the hub and its collector: messages in rings, tables of devices, queues and names, counts.

use crate::message::{Device, Message, Queue};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use taskscope_record::wake::Wake;
use taskscope_reorder::Rings;

/// Messages that a thread's ring takes; more go a slower way.
const RING_MESSAGES: usize = 8192;

/// Data that the sources fill and the collector takes.
pub(crate) struct Exchange {
    pub pid: i32,
    trace: PathBuf,
    /// Created with the first location; `None` on failure.
    directory: OnceLock<Option<PathBuf>>,
    pub rings: Arc<Rings<Message>>,
    pub devices: Mutex<Vec<Device>>,
    pub queues: Mutex<Vec<Queue>>,
    pub names: Mutex<Vec<String>>,
    /// Operations that were announced and have not ended, as the collector knows it.
    pub open: AtomicU64,
    /// Number of the collector's passes.
    pub passes: AtomicU64,
    /// Number of records that vendors' interfaces have dropped.
    pub dropped: AtomicU64,
    stop: AtomicBool,
    /// Wakes the collector.
    pub wake: Wake,
}

impl Exchange {
    /// For a trace in this directory.
    pub fn new(trace: PathBuf, pid: i32) -> Exchange {
        Exchange {
            pid,
            trace,
            directory: OnceLock::new(),
            rings: Rings::new(RING_MESSAGES),
            devices: Mutex::default(),
            queues: Mutex::default(),
            names: Mutex::new(vec![String::new()]),
            open: AtomicU64::new(0),
            passes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            wake: Wake::default(),
        }
    }

    /// Creates the directory of the locations, if there is none yet; returns whether there is one.
    pub fn make_directory(&self) -> bool {
        self.directory.get_or_init(|| make_directory(&self.trace, self.pid)).is_some()
    }

    pub fn has_directory(&self) -> bool {
        self.directory.get().is_some_and(Option::is_some)
    }

    /// Directory of the locations; the trace's own before there is one.
    pub fn directory(&self) -> &Path {
        self.directory.get().and_then(Option::as_deref).unwrap_or(&self.trace)
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Acquire)
    }

    /// Ends the taking of records.
    pub fn stop(&self) {
        self.stop.store(true, Release);
    }
}

/// `devices.<host>.<pid>`, under a number if a process of that id has been here.
fn make_directory(trace: &Path, pid: i32) -> Option<PathBuf> {
    std::fs::create_dir_all(trace).ok()?;
    let host = taskscope_record::process::host_name();
    for copy in 1..10_000 {
        let name =
            if copy == 1 { format!("devices.{host}.{pid}") } else { format!("devices.{host}.{pid}-{copy}") };
        let directory = trace.join(name);
        match std::fs::create_dir(&directory) {
            Ok(()) => return std::path::absolute(directory).ok(),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(_) => return None,
        }
    }
    None
}

/// A panic while the lock was held leaves these lists whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
