//! Shared state of a process's threads: its directory, its metadata, the list of live recorders.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use taskscope_event::layout::{LOOM_PREFIX, PROCESS_PREFIX, STREAM_METADATA, THREAD_PREFIX};
use taskscope_event::{FNV_START, fnv1a};
use taskscope_files::create_directory_below;

use crate::clock::{self, Source};
use crate::cpus::Mask;
use crate::fork_word::wiped_on_fork;
use crate::metadata::{self, About, Describe, FinalPlace, Json, ThreadIdentity};
use crate::os_thread::thread_name;
use crate::os_time::OsTime;
use crate::{event_filter, late_events, limits, own_threads, sync};

/// The environment variable that names the trace directory; if unset, nothing is recorded.
pub const TRACE_DIRECTORY_VARIABLE: &str = "TASKSCOPE_TRACE_DIR";

/// The libovni version with the written stream form.
pub const FORMAT_LIBRARY_VERSION: &str = "1.14.0";
/// Substitute for that library's commit.
pub const FORMAT_LIBRARY_COMMIT: &str = concat!("taskscope-", env!("CARGO_PKG_VERSION"));

/// A recorder's description of its process.
#[derive(Clone, Debug)]
pub struct Config {
    /// The trace directory; made if it does not exist.
    pub trace_directory: PathBuf,
    /// Number of the application in ovni's sense, from 1.
    pub app_id: u32,
    /// ovni's models in `stream.obs`, with versions.
    pub require: Vec<(&'static str, &'static str)>,
    /// taskscope's own models in `taskscope.obs`, with versions. With `taskscope-system` among them, times off
    /// the CPU are recorded ([`crate::os_time`]).
    pub own_require: Vec<(&'static str, &'static str)>,
    /// Further members of the `taskscope` object of `stream.json`.
    pub attributes: Vec<(String, Json)>,
}

/// Names that the caller gives, instead of the host's and the system's.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The loom's name; processes of the same name share their CPUs.
    pub loom: String,
    /// The process's id in the trace.
    pub pid: i32,
    /// Streams are written here and copied to the trace directory when they have ended.
    pub temporary_directory: Option<PathBuf>,
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
            StartError::Directory(path, why) => {
                write!(f, "cannot create directory {}: {why}", path.display())
            }
            StartError::Again => write!(f, "recording has already started in this process"),
        }
    }
}

impl std::error::Error for StartError {}

/// The recorded process. Never freed, since threads may read it to the very end.
pub(crate) struct Process {
    /// One, and zero in a forked child.
    alive: *const AtomicU32,
    /// System id of the process.
    os_pid: i32,
    pid: i64,
    loom: String,
    directory: PathBuf,
    /// Place of finished streams, if it is another one.
    final_place: Option<FinalPlace>,
    identity: Option<Identity>,
    config: Mutex<Config>,
    cpus: Vec<usize>,
    threads: Mutex<Vec<RecorderPointer>>,
    /// Further members of the `ovni` object of the metadata.
    ovni_members: Mutex<Vec<(&'static str, Json)>>,
    unrecorded_threads: AtomicU64,
    finished: AtomicU32,
    pub(crate) os_time: OsTime,
}

// SAFETY: `alive` points to an atomic in memory that is never unmapped.
unsafe impl Sync for Process {}

#[derive(PartialEq)]
struct RecorderPointer(*mut ());
// SAFETY: the pointer is only followed under the protocol of `thread`.
unsafe impl Send for RecorderPointer {}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(core::ptr::null_mut());

/// Starts recording in this process: clock, directories. Call before any [`thread::attach`](crate::thread::attach).
pub fn start(config: Config) -> Result<(), StartError> {
    if !PROCESS.load(Acquire).is_null() {
        return Err(StartError::Again);
    }
    let process = Box::leak(Box::new(Process::create(config, None)?));
    PROCESS.store(process, Release);
    Ok(())
}

/// [`start`] for callers that need event order and clock without streams: events are discarded, and no
/// directory is created below the trace directory.
pub fn start_without_streams(config: Config) -> Result<(), StartError> {
    if !PROCESS.load(Acquire).is_null() {
        return Err(StartError::Again);
    }
    WITHOUT_STREAMS.store(1, Relaxed);
    start(config)
}

/// Whether this process keeps no streams; its forked children do not either.
static WITHOUT_STREAMS: AtomicU32 = AtomicU32::new(0);

/// Whether events are kept in streams.
pub(crate) fn keeps_streams() -> bool {
    WITHOUT_STREAMS.load(Relaxed) == 0
}

/// The trace directory of the recording that runs, and the name of host and process in it.
pub fn place() -> Option<(PathBuf, String)> {
    let process = current()?;
    Some((lock(&process.config).trace_directory.clone(), process.loom.clone()))
}

/// [`start`] with the caller's names. It may be called again after [`finish`]: later events are another
/// process of the trace.
pub fn start_as(config: Config, identity: Identity) -> Result<(), StartError> {
    if current().is_some() {
        return Err(StartError::Again);
    }
    let process = Box::leak(Box::new(Process::create(config, Some(identity))?));
    PROCESS.store(process, Release);
    Ok(())
}

/// Whether [`start`] succeeded and [`finish`] has not been called.
pub fn is_recording() -> bool {
    current().is_some()
}

/// Whether recording has ended in this process, and has not started again.
pub(crate) fn has_finished() -> bool {
    // SAFETY: as in `current`.
    unsafe { PROCESS.load(Acquire).as_ref() }.is_some_and(|process| process.finished.load(Acquire) != 0)
}

/// Number of the present recording; 0 for none.
pub(crate) fn number() -> usize {
    current().map_or(0, |process| core::ptr::from_ref(process) as usize)
}

/// Adds ovni's models, with versions, that `stream.obs` contains too, to metadata written from now on.
pub fn require(models: &[(&'static str, &'static str)]) {
    if let Some(process) = current() {
        let mut config = lock(&process.config);
        for model in models {
            if !config.require.contains(model) {
                config.require.push(*model);
            }
        }
    }
}

/// Adds or replaces a member of the `taskscope` object in metadata written from now on.
pub fn set_attribute(key: &str, value: Json) {
    if let Some(process) = current() {
        let mut config = lock(&process.config);
        config.attributes.retain(|(known, _)| known != key);
        config.attributes.push((key.to_owned(), value));
    }
}

/// Adds or replaces a member of the `ovni` object in metadata written from now on.
pub fn set_ovni_member(key: &'static str, value: Json) {
    if let Some(process) = current() {
        let mut members = lock(&process.ovni_members);
        members.retain(|(known, _)| *known != key);
        members.push((key, value));
    }
}

pub use crate::ending::{finish, finish_before_exit};

/// Removes empty temporary directories.
pub fn remove_empty_temporary_directories() {
    // SAFETY: set to a leaked box, or null.
    let Some(process) = (unsafe { PROCESS.load(Acquire).as_ref() }) else { return };
    if process.final_place.is_some() {
        for directory in process.directory.ancestors().take(3) {
            if std::fs::remove_dir(directory).is_err() {
                return;
            }
        }
    }
}

/// The process that records now; in a forked child a new one.
pub(crate) fn current() -> Option<&'static Process> {
    // SAFETY: set to a leaked box, or null.
    let process = unsafe { PROCESS.load(Acquire).as_ref() }?;
    // SAFETY: never unmapped.
    if unsafe { &*process.alive }.load(Relaxed) == 0 {
        return restart_in_child(process);
    }
    (process.finished.load(Acquire) == 0).then_some(process)
}

/// Whether this process was forked off one that recorded, and has not started its own recording.
pub fn was_forked() -> bool {
    // SAFETY: as in `current`.
    unsafe { PROCESS.load(Acquire).as_ref().is_some_and(|process| (*process.alive).load(Relaxed) == 0) }
}

/// Whether this process is a child, by `fork` or `vfork`, of one that recorded, and has not started its own recording.
pub fn is_of_parent() -> bool {
    // SAFETY: as in `current`.
    unsafe { PROCESS.load(Acquire).as_ref() }.is_some_and(|process| process.os_pid != own_pid())
}

/// The process if it records itself; a forked child does not start its recording for that.
fn own() -> Option<&'static Process> {
    // SAFETY: as in `current`.
    unsafe { PROCESS.load(Acquire).as_ref() }.filter(|process| process.os_pid == own_pid())
}

/// Gives the directory of this process, with its files, to a user whose rights the program is about to take, so that it can create and
/// replace files there. Without the right to do so nothing changes, nor if other processes have files there, as their profiles.
pub fn give_files_to(user: u32) {
    if let Some(process) = own().filter(|_| keeps_streams()) {
        give_to(&process.directory, user);
    }
}

/// Gives a directory to a user, after what is in it: until then no other user changes it. Links are not followed.
fn give_to(directory: &Path, user: u32) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(of) if of.is_dir() => give_to(&entry.path(), user),
            _ => drop(std::os::unix::fs::lchown(entry.path(), Some(user), None)),
        }
    }
    let _ = std::os::unix::fs::lchown(directory, Some(user), None);
}

/// The directory of this process's files, if the rights of the process do not allow it to create files there.
pub fn closed_directory() -> Option<&'static Path> {
    let directory = own()?.directory.as_path();
    let path = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: `path` is NUL-terminated.
    let closed = unsafe {
        libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) != 0
    };
    closed.then_some(directory)
}

/// Prevents a forked child from starting its own recording.
pub fn decline_in_child() {
    // SAFETY: as in `current`.
    if let Some(parent) = unsafe { PROCESS.load(Acquire).as_ref() }
        && was_forked()
    {
        parent.finished.store(1, Release);
    }
}

#[cold]
fn restart_in_child(parent: &'static Process) -> Option<&'static Process> {
    if parent.finished.load(Acquire) != 0 {
        return None;
    }
    // Another thread of the parent may have held the lock at the fork: never wait for it.
    let config = parent.config.try_lock().ok()?.clone();
    let identity = parent.identity.clone().map(|identity| Identity { pid: own_pid(), ..identity });
    let members = parent.ovni_members.try_lock().ok()?.clone();
    let child = Box::leak(Box::new(Process::create(config, identity).ok()?));
    *lock(&child.ovni_members) = members;
    PROCESS.store(child, Release);
    Some(child)
}

fn own_pid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }
}

impl Process {
    fn create(config: Config, identity: Option<Identity>) -> Result<Self, StartError> {
        clock::start();
        sync::prepare_heavy_fence();
        limits::start();
        event_filter::start();
        // A relative path would lead elsewhere when the program changes its directory.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let trace = absolute(&config.trace_directory);
        let Some(alive) = wiped_on_fork(size_of::<AtomicU32>()) else {
            return Err(StartError::Directory(trace, std::io::ErrorKind::OutOfMemory.into()));
        };
        let alive = alive.cast::<AtomicU32>();
        // SAFETY: fresh zeroed memory, page-aligned.
        unsafe { (*alive).store(1, Relaxed) };
        let temporary = identity.as_ref().and_then(|identity| identity.temporary_directory.as_deref());
        let root = temporary.map_or_else(|| trace.clone(), absolute);
        let (loom, pid, directory) = match &identity {
            Some(named) => {
                let name = format!("{LOOM_PREFIX}{}", named.loom);
                let loom_directory = create_directory_below(&root, &name)
                    .map_err(|why| StartError::Directory(root.join(&name), why))?;
                let (directory, copy) =
                    new_directory(&loom_directory, &format!("{PROCESS_PREFIX}{}", named.pid))?;
                (named.loom.clone(), unique_id(named.pid, copy), directory)
            }
            // A process id comes again after `exec`, and in containers: the loom's name stays unique.
            None if !keeps_streams() => {
                make_all(&root)?;
                (format!("{}.{}", host_name(), own_pid()), i64::from(own_pid()), root.clone())
            }
            None => {
                let (host, pid) = (host_name(), own_pid());
                make_all(&root)?;
                let (loom_directory, copy) = new_directory(&root, &format!("{LOOM_PREFIX}{host}.{pid}"))?;
                let loom = if copy == 1 { format!("{host}.{pid}") } else { format!("{host}.{pid}-{copy}") };
                let (directory, _) = new_directory(&loom_directory, &format!("{PROCESS_PREFIX}{pid}"))?;
                (loom, i64::from(pid), directory)
            }
        };
        let final_place = (root != trace)
            .then(|| Some(FinalPlace { below: directory.strip_prefix(&root).ok()?.to_owned(), trace }))
            .flatten();
        let wants_os_time =
            keeps_streams() && config.own_require.iter().any(|(name, _)| *name == "taskscope-system");
        let mask = Mask::process_affinity();
        let wants_os_time = wants_os_time && final_place.is_none();
        let os_time = OsTime::new(&directory, &loom, pid, mask.clone(), wants_os_time);
        if wants_os_time {
            own_threads::ends_by(|| current()?.os_time.give_way());
        }
        Ok(Process {
            os_time,
            alive,
            os_pid: own_pid(),
            pid,
            loom,
            directory,
            final_place,
            identity,
            config: Mutex::new(config),
            // Readers take a loom without CPUs for a mistake.
            cpus: mask.map_or(vec![0], |mask| mask.cpus().collect()),
            threads: Mutex::default(),
            ovni_members: Mutex::default(),
            unrecorded_threads: AtomicU64::new(0),
            finished: AtomicU32::new(0),
        })
    }

    /// Calls `use_recorder` with every registered recorder, a `ThreadRecorder`.
    pub fn for_each_recorder(&self, use_recorder: impl Fn(*mut ())) {
        lock(&self.threads).iter().for_each(|recorder| use_recorder(recorder.0));
    }

    /// Ends recording in the process; returns the recorders that are registered, which are not any more.
    pub fn end(&self) -> Vec<*mut ()> {
        let mut threads = lock(&self.threads);
        self.finished.store(1, SeqCst);
        std::mem::take(&mut *threads).into_iter().map(|recorder| recorder.0).collect()
    }

    /// Whether [`Process::end`] was called. In one total order with the turns of threads.
    pub fn has_ended(&self) -> bool {
        self.finished.load(SeqCst) != 0
    }

    /// Registers a recorder for [`Process::end`]; false after that.
    #[must_use]
    pub fn register(&self, recorder: *mut ()) -> bool {
        let mut threads = lock(&self.threads);
        let is_recording = self.finished.load(Acquire) == 0;
        if is_recording {
            threads.push(RecorderPointer(recorder));
        }
        is_recording
    }

    /// Whether it was still registered.
    pub fn unregister(&self, recorder: *mut ()) -> bool {
        let mut threads = lock(&self.threads);
        let known = threads.iter().position(|other| other.0 == recorder);
        known.map(|i| threads.swap_remove(i)).is_some()
    }

    pub fn count_unrecorded_thread(&self) {
        self.unrecorded_threads.fetch_add(1, Relaxed);
    }

    /// A new directory for a thread; the id may have been used by one that has ended.
    pub fn make_thread_directory(
        &self,
        os_tid: i32,
        tid: i32,
        describe: Option<Arc<dyn Describe>>,
    ) -> Option<ThreadIdentity> {
        if !keeps_streams() {
            let directory = self.directory.clone();
            return Some(ThreadIdentity {
                directory,
                final_place: None,
                os_tid,
                tid: i64::from(tid),
                ended_with_process: false,
                describe,
            });
        }
        let (directory, copy) = new_directory(&self.directory, &format!("{THREAD_PREFIX}{tid}")).ok()?;
        let final_place = self.final_place.as_ref().and_then(|process| {
            let below = process.below.join(directory.file_name()?);
            Some(FinalPlace { below, ..process.clone() })
        });
        let tid = unique_id(tid, copy);
        Some(ThreadIdentity { directory, final_place, os_tid, tid, ended_with_process: false, describe })
    }

    /// Writes `stream.json`: at the start without `ovni.finished`, at the end with it and with the
    /// count of lost events. A failure leaves the earlier one in place. Returns whether it worked.
    pub fn write_metadata(&self, thread: &ThreadIdentity, finished_with_losses: Option<u64>) -> bool {
        if !keeps_streams() {
            return true;
        }
        let own = self.own_members(thread, finished_with_losses);
        let finished = finished_with_losses.is_some();
        let text = match &thread.describe {
            Some(describe) => {
                let about = About { pid: self.pid, tid: thread.tid, loom: &self.loom, finished };
                describe.stream_json(&about, own)
            }
            None => self.stream_json(thread, finished, own),
        };
        metadata::replace_file(&text, &thread.directory.join(STREAM_METADATA)).is_ok()
    }

    fn own_members(&self, thread: &ThreadIdentity, finished_with_losses: Option<u64>) -> Json {
        let config = lock(&self.config);
        let mut own = vec![("version".to_owned(), Json::string(env!("CARGO_PKG_VERSION")))];
        if !config.own_require.is_empty() {
            own.push(("require".to_owned(), versions(&config.own_require)));
        }
        own.extend([
            ("os_tid".to_owned(), Json::integer(thread.os_tid)),
            ("thread_name".to_owned(), Json::string(&thread_name(thread.os_tid).unwrap_or_default())),
            ("process_image".to_owned(), Json::string(&process_image())),
            ("clock".to_owned(), clock_attributes()),
            ("lost_events".to_owned(), metadata::loss_member(finished_with_losses.unwrap_or(0))),
            ("unrecorded_threads".to_owned(), Json::integer(self.unrecorded_threads.load(Relaxed))),
        ]);
        if finished_with_losses.is_some() {
            own.push(("closed".to_owned(), Json::boolean(true)));
            own.push(("ended_with_process".to_owned(), Json::boolean(thread.ended_with_process)));
        }
        if limits::ring_bytes() > 0 {
            own.push(("ring_bytes".to_owned(), Json::integer(limits::ring_bytes())));
        }
        own.extend(late_events::members());
        own.extend(config.attributes.iter().cloned());
        Json::object(own)
    }

    fn stream_json(&self, thread: &ThreadIdentity, finished: bool, own: Json) -> String {
        let config = lock(&self.config);
        let mut ovni = vec![
            (
                "lib",
                Json::object([
                    ("version", Json::string(FORMAT_LIBRARY_VERSION)),
                    ("commit", Json::string(FORMAT_LIBRARY_COMMIT)),
                ]),
            ),
            ("part", Json::string("thread")),
            ("tid", Json::integer(thread.tid)),
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
        let members = lock(&self.ovni_members);
        // A rank from MPI itself takes precedence over the launcher's variables.
        if let Some((rank, ranks)) = rank_and_ranks()
            && members.iter().all(|(key, _)| *key != "rank")
        {
            ovni.extend([("rank", Json::integer(rank)), ("nranks", Json::integer(ranks))]);
        }
        ovni.extend(members.iter().cloned());
        drop(members);
        if finished {
            ovni.push(("finished", Json::integer(1)));
        }
        let json =
            Json::object([("version", Json::integer(3)), ("ovni", Json::object(ovni)), ("taskscope", own)]);
        format!("{}\n", json.as_str())
    }
}

fn versions(list: &[(&str, &str)]) -> Json {
    Json::object(list.iter().map(|(name, version)| (*name, Json::string(version))))
}

/// Creates `name` in `parent`, which exists, or `name-2`, … if that exists; returns the path and the number.
fn new_directory(parent: &Path, name: &str) -> Result<(PathBuf, i64), StartError> {
    let mut copy = 1;
    loop {
        let path = parent.join(if copy == 1 { name.to_owned() } else { format!("{name}-{copy}") });
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok((path, copy)),
            Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists && copy < 10_000 => copy += 1,
            Err(why) => return Err(StartError::Directory(path, why)),
        }
    }
}

fn make_all(directory: &Path) -> Result<(), StartError> {
    std::fs::create_dir_all(directory).map_err(|why| StartError::Directory(directory.to_owned(), why))
}

/// ovni demands ids that are unique in their process or loom, but the system gives them again. The
/// n-th directory of the same id gets the id plus n times 2²², which is above every id of Linux.
fn unique_id(id: i32, copy: i64) -> i64 {
    i64::from(id) + ((copy - 1) << 22)
}

/// An id that all recorders of this process share, and that changes after `fork` or `exec`: readers use it to
/// merge several recorders of one process. Computed from the process id and the random bytes that the kernel
/// gives to each new program; those are mixed, as the C library derives secrets from them.
fn process_image() -> String {
    // SAFETY: no preconditions; 0 or the address of 16 bytes that stay.
    let random = unsafe {
        let address = libc::getauxval(libc::AT_RANDOM) as *const [u8; 16];
        address.as_ref().copied().unwrap_or_default()
    };
    // FNV-1a, twice over: the result reveals no byte.
    let hash = fnv1a(fnv1a(FNV_START, &random), &random);
    format!("{}-{:08x}", own_pid(), (hash >> 32) as u32)
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

/// The host as locations name it: up to the first dot, without slashes.
pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer has the given length, and stays NUL-terminated.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let length = buffer.iter().position(|b| *b == 0).unwrap_or(0);
    let name = String::from_utf8_lossy(&buffer[..length]);
    // ovni takes the text up to the first '.' as the host.
    let name = name.split('.').next().unwrap_or_default().replace('/', "_");
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// A panic while the lock was held cannot have left these lists half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn files_are_given_to_a_user_and_those_behind_links_are_not() {
        let here = tempfile::tempdir().unwrap();
        let own = here.path().join("proc.1");
        std::fs::create_dir_all(own.join("thread.1")).unwrap();
        let (outside, inside, link) =
            (here.path().join("outside"), own.join("thread.1/stream.obs"), own.join("link"));
        [&outside, &inside].into_iter().for_each(|file| std::fs::write(file, "").unwrap());
        symlink(&outside, &link).unwrap();
        let user = |path: &PathBuf| path.symlink_metadata().unwrap().uid();
        let before = user(&outside);
        give_to(&own, 65534);
        // Without the right to do so nothing changes.
        let now = if before == 0 { 65534 } else { before };
        assert_eq!([&own, &own.join("thread.1"), &inside, &link].map(user), [now; 4]);
        assert_eq!(user(&outside), before);
    }
}
