//! What the threads of a process share: its directory, its metadata, the list of live recorders.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::clock::{self, Source};
use crate::metadata::Json;
use crate::thread::{self, ThreadRecorder};

/// The environment variable that names the trace directory; unset, nothing is recorded.
pub const TRACE_DIRECTORY_VARIABLE: &str = "TASKSCOPE_TRACE_DIR";

/// The libovni whose stream form is written.
const FORMAT_LIBRARY_VERSION: &str = "1.14.0";

/// What a recorder says about its process.
#[derive(Clone, Debug)]
pub struct Config {
    /// The trace directory; made if it does not exist.
    pub trace_directory: PathBuf,
    /// Number of the application in ovni's sense, from 1.
    pub app_id: u32,
    /// ovni's models in `stream.obs`, with versions.
    pub require: Vec<(&'static str, &'static str)>,
    /// taskscope's own models in `taskscope.obs`, with versions.
    pub own_require: Vec<(&'static str, &'static str)>,
    /// Further members of the `taskscope` object of `stream.json`.
    pub attributes: Vec<(String, Json)>,
}

/// Why recording could not start. The program is to run on without it.
#[derive(Debug)]
pub enum StartError {
    /// The trace directory or one below it cannot be made.
    Directory(PathBuf, std::io::Error),
    /// Recording has started, or has ended, in this process.
    Again,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Directory(path, why) => write!(f, "cannot make directory {}: {why}", path.display()),
            StartError::Again => write!(f, "recording has already started in this process"),
        }
    }
}

impl std::error::Error for StartError {}

/// The recorded process. Never freed, since threads may look at it to the very end.
pub(crate) struct Process {
    pid: i32,
    loom: String,
    directory: PathBuf,
    config: Mutex<Config>,
    cpus: Vec<usize>,
    threads: Mutex<Vec<RecorderPointer>>,
    unrecorded_threads: AtomicU64,
    finished: AtomicU32,
}

#[derive(PartialEq)]
struct RecorderPointer(*mut ThreadRecorder);
// SAFETY: the pointer is only followed under the protocol of `thread`.
unsafe impl Send for RecorderPointer {}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());

/// Starts recording in this process: clock, directories. Call before any [`thread::attach`].
pub fn start(config: Config) -> Result<(), StartError> {
    if !PROCESS.load(Acquire).is_null() {
        return Err(StartError::Again);
    }
    let process = Box::leak(Box::new(Process::create(config)?));
    PROCESS.store(process, Release);
    Ok(())
}

/// Whether [`start`] succeeded and [`finish`] has not been called.
pub fn is_recording() -> bool {
    current().is_some()
}

/// Adds or replaces a member of the `taskscope` object in the metadata that is written from now on.
pub fn set_attribute(key: &str, value: Json) {
    if let Some(process) = current() {
        let mut config = lock(&process.config);
        config.attributes.retain(|(known, _)| known != key);
        config.attributes.push((key.to_owned(), value));
    }
}

/// Closes the streams of all threads that still live, and ends recording in this process. Returns
/// how many streams could not be closed properly because their thread did not leave an event in
/// time.
pub fn finish() -> usize {
    let Some(process) = current() else { return 0 };
    process.finished.store(1, Release);
    let threads = std::mem::take(&mut *lock(&process.threads));
    threads
        .into_iter()
        // SAFETY: registered by `attach`, and no longer in the list.
        .filter(|recorder| !unsafe { thread::close_from_outside(recorder.0, process) })
        .count()
}

/// The process that records now; in a forked child a new one.
pub(crate) fn current() -> Option<&'static Process> {
    // SAFETY: set to a leaked box, or null.
    let process = unsafe { PROCESS.load(Acquire).as_ref() }?;
    // SAFETY: no preconditions.
    if process.pid != unsafe { libc::getpid() } {
        return restart_in_child(process);
    }
    (process.finished.load(Acquire) == 0).then_some(process)
}

#[cold]
fn restart_in_child(parent: &'static Process) -> Option<&'static Process> {
    // Another thread of the parent may have held the lock at the fork: never wait for it.
    let config = parent.config.try_lock().ok()?.clone();
    let child = Box::leak(Box::new(Process::create(config).ok()?));
    PROCESS.store(child, Release);
    Some(child)
}

impl Process {
    fn create(config: Config) -> Result<Self, StartError> {
        clock::start();
        thread::prepare_fence();
        // SAFETY: no preconditions.
        let pid = unsafe { libc::getpid() };
        let trace = &config.trace_directory;
        std::fs::create_dir_all(trace).map_err(|why| StartError::Directory(trace.clone(), why))?;
        // A process id comes again after `exec`, and in containers: the loom's name stays unique.
        let host = host_name();
        for copy in 1u32.. {
            let loom = if copy == 1 { format!("{host}.{pid}") } else { format!("{host}.{pid}-{copy}") };
            let loom_directory = trace.join(format!("loom.{loom}"));
            match std::fs::create_dir(&loom_directory) {
                Ok(()) => {}
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists && copy < 10_000 => continue,
                Err(why) => return Err(StartError::Directory(loom_directory, why)),
            }
            let directory = loom_directory.join(format!("proc.{pid}"));
            std::fs::create_dir(&directory).map_err(|why| StartError::Directory(directory.clone(), why))?;
            return Ok(Process {
                pid,
                loom,
                directory,
                config: Mutex::new(config),
                cpus: allowed_cpus(),
                threads: Mutex::default(),
                unrecorded_threads: AtomicU64::new(0),
                finished: AtomicU32::new(0),
            });
        }
        unreachable!("the loop returns")
    }

    pub fn register(&self, recorder: *mut ThreadRecorder) {
        lock(&self.threads).push(RecorderPointer(recorder));
    }

    /// Whether it was still registered.
    pub fn unregister(&self, recorder: *mut ThreadRecorder) -> bool {
        let mut threads = lock(&self.threads);
        let known = threads.iter().position(|other| other.0 == recorder);
        known.map(|i| threads.swap_remove(i)).is_some()
    }

    pub fn count_unrecorded_thread(&self) {
        self.unrecorded_threads.fetch_add(1, Relaxed);
    }

    /// A new directory for a thread; the id may have been used by one that has ended.
    pub fn make_thread_directory(&self, os_tid: i32) -> Option<PathBuf> {
        for copy in 1..10_000 {
            let name = if copy == 1 { format!("thread.{os_tid}") } else { format!("thread.{os_tid}-{copy}") };
            let directory = self.directory.join(name);
            match std::fs::create_dir(&directory) {
                Ok(()) => return Some(directory),
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(_) => return None,
            }
        }
        None
    }

    /// Writes `stream.json`: at the start without `ovni.finished`, at the end with it and with the
    /// count of lost events. A failure leaves the earlier one in place. Returns whether it worked.
    pub fn write_metadata(&self, directory: &Path, os_tid: i32, finished_with_losses: Option<u64>) -> bool {
        let config = lock(&self.config);
        let versions = |list: &[(&str, &str)]| {
            Json::object(list.iter().map(|(name, version)| (*name, Json::string(version))))
        };
        let mut ovni = vec![
            (
                "lib",
                Json::object([
                    ("version", Json::string(FORMAT_LIBRARY_VERSION)),
                    ("commit", Json::string(concat!("taskscope-", env!("CARGO_PKG_VERSION")))),
                ]),
            ),
            ("part", Json::string("thread")),
            ("tid", Json::integer(unique_tid(directory, os_tid))),
            ("pid", Json::integer(self.pid)),
            ("loom", Json::string(&self.loom)),
            ("app_id", Json::integer(config.app_id)),
            ("require", versions(&config.require)),
            (
                "loom_cpus",
                Json::array(self.cpus.iter().enumerate().map(|(index, phyid)| {
                    Json::object([
                        ("index", Json::integer(index as u64)),
                        ("phyid", Json::integer(*phyid as u64)),
                    ])
                })),
            ),
        ];
        if let Some((rank, ranks)) = rank_and_ranks() {
            ovni.extend([("rank", Json::integer(rank)), ("nranks", Json::integer(ranks))]);
        }
        let mut own = vec![
            ("version".to_owned(), Json::string(env!("CARGO_PKG_VERSION"))),
            ("require".to_owned(), versions(&config.own_require)),
            ("os_tid".to_owned(), Json::integer(os_tid)),
            ("clock".to_owned(), clock_attributes()),
        ];
        if let Some(lost) = finished_with_losses {
            ovni.push(("finished", Json::integer(1)));
            own.push(("lost_events".to_owned(), Json::integer(lost)));
        }
        own.push(("unrecorded_threads".to_owned(), Json::integer(self.unrecorded_threads.load(Relaxed))));
        own.extend(config.attributes.iter().cloned());
        let json = Json::object([
            ("version", Json::integer(3)),
            ("ovni", Json::object(ovni)),
            ("taskscope", Json::object(own)),
        ]);
        json.replace_file(&directory.join("stream.json")).is_ok()
    }
}

/// ovni demands thread ids that are unique in a process, but the system gives them again. The n-th
/// directory of the same id gets the id plus n times 2²², which is above every id of Linux.
fn unique_tid(directory: &Path, os_tid: i32) -> i64 {
    let copy: i64 = directory
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.rsplit_once('-'))
        .and_then(|(_, copy)| copy.parse().ok())
        .unwrap_or(1);
    i64::from(os_tid) + ((copy - 1) << 22)
}

fn clock_attributes() -> Json {
    let (renewals, correction) = clock::renewals_and_largest_correction_ns();
    let source = match clock::source() {
        Source::Counter => "time-stamp counter anchored to CLOCK_MONOTONIC",
        Source::Kernel => "CLOCK_MONOTONIC",
    };
    Json::object([
        ("source", Json::string(source)),
        ("anchors", Json::integer(renewals)),
        ("largest_correction_ns", Json::integer(correction)),
    ])
}

/// The rank that a launcher gave to this process, and the number of ranks.
fn rank_and_ranks() -> Option<(u32, u32)> {
    const VARIABLES: [(&str, &str); 3] = [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ];
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    VARIABLES
        .iter()
        .find_map(|(rank, ranks)| Some((number(rank)?, number(ranks)?)))
        .filter(|(rank, ranks)| rank < ranks)
}

fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is as long as told, and stays NUL-terminated.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(0);
    let name = String::from_utf8_lossy(&buffer[..length]);
    // ovni takes the text up to the first '.' as the host.
    let name = name.split('.').next().unwrap_or_default().replace('/', "_");
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: the set is plain memory of the size that is told.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        let cpus: Vec<_> =
            (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect();
        if cpus.is_empty() { vec![0] } else { cpus }
    }
}

/// A panic while the lock was held cannot have left these lists half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
