//! Processes and threads: begin, end, and fork.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taskscope_event::models::{ovni, system};
use taskscope_record::process::{self, Config, FORMAT_LIBRARY_VERSION, Identity};
use taskscope_record::{Describe, enter, thread};

use crate::misuse::misuse;
use crate::thread_metadata::ThreadMetadata;

/// Default trace directory.
const DEFAULT_TRACE_DIRECTORY: &str = "ovni";
/// The original's limit of a loom's name.
const MAX_LOOM_BYTES: usize = 511;

/// `ovni_proc_init` was not called.
const NONE: u32 = 0;
const READY: u32 = 1;
/// Recording could not start, which was reported once.
const FAILED: u32 = 2;
/// `ovni_proc_fini` was called.
const GONE: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NONE);
static APP: AtomicI32 = AtomicI32::new(1);

/// Metadata by the address of the thread's recorder.
static THREADS: Mutex<Option<HashMap<usize, Arc<ThreadMetadata>>>> = Mutex::new(None);

/// The calling thread's metadata.
pub(crate) fn current_thread() -> Option<Arc<ThreadMetadata>> {
    if thread::was_forked() && !restart_in_child(None) {
        return None;
    }
    let address = thread::is_attached().then(thread::address)?;
    lock(&THREADS).as_ref()?.get(&address).cloned()
}

/// [`current_thread`], or a message.
pub(crate) fn thread_for(function: &'static str) -> Option<Arc<ThreadMetadata>> {
    let thread = current_thread();
    if thread.is_none() {
        report_not_initialized(function);
    }
    thread
}

/// Metadata of the process set before a thread is initialized, as older versions of ovni allow: the first
/// thread takes it.
static WITHOUT_THREAD: Mutex<Option<Arc<ThreadMetadata>>> = Mutex::new(None);

/// The calling thread's metadata, else the metadata for the next thread, or a message.
fn process_for(function: &'static str) -> Option<Arc<ThreadMetadata>> {
    if let Some(thread) = current_thread() {
        return Some(thread);
    }
    if STATE.load(Acquire) != READY || crate::misuse::aborts() || is_over() || thread::was_refused() {
        report_not_initialized(function);
        return None;
    }
    let new = || Arc::new(ThreadMetadata::new(APP.load(Relaxed)));
    Some(lock(&WITHOUT_THREAD).get_or_insert_with(new).clone())
}

/// A thread without a recorder is misused, unless recording failed, for it or as a whole, or is over.
pub(crate) fn report_not_initialized(function: &'static str) {
    if STATE.load(Acquire) != FAILED && !is_over() && !thread::was_refused() {
        crate::misuse::report(function, format_args!("the thread is not initialized"));
    }
}

/// Whether the program is at its end, which has closed the streams of threads that run on.
fn is_over() -> bool {
    matches!(STATE.load(Acquire), READY | GONE) && !process::is_recording()
}

/// Starts recording in the process. Numbers are recorded as they are; whether they may be used is for readers to judge.
///
/// # Safety
/// `loom` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_proc_init(app: c_int, loom: *const c_char, pid: c_int) {
    // SAFETY: by contract.
    let loom = unsafe { text(loom) };
    if loom.is_empty() || loom.len() > MAX_LOOM_BYTES || loom.contains('/') {
        return misuse!("ovni_proc_init", "{loom:?} cannot be a loom's name");
    }
    match STATE.load(Acquire) {
        READY => return misuse!("ovni_proc_init", "process {pid} is already initialized"),
        GONE => {
            // The original refuses. Here it is a further process, of the same loom.
            if crate::misuse::aborts() {
                return misuse!("ovni_proc_init", "process {pid} has finished, and cannot begin again");
            }
            process::finish();
        }
        _ => {}
    }
    let directory = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = Config {
        // Other recorders of taskscope in this process write to that variable's directory.
        trace_directory: directory("OVNI_TRACEDIR")
            .or_else(|| directory(process::TRACE_DIRECTORY_VARIABLE))
            .unwrap_or_else(|| DEFAULT_TRACE_DIRECTORY.into()),
        app_id: app.unsigned_abs(),
        require: vec![],
        // Times off the CPU; `TASKSCOPE_OS_TIME=off` leaves them out.
        own_require: vec![("taskscope-system", system::VERSION)],
        attributes: vec![],
    };
    let identity = Identity { loom, pid, temporary_directory: directory("OVNI_TMPDIR") };
    APP.store(app, Relaxed);
    crate::nesting::prepare();
    match process::start_as(config, identity) {
        Ok(()) => STATE.store(READY, Release),
        Err(why) => {
            STATE.store(FAILED, Release);
            eprintln!("taskscope: recording is disabled: {why}\n  kept: the program continues");
        }
    }
}

/// Sets the MPI rank of the process, on any of its threads.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_proc_set_rank(rank: c_int, nranks: c_int) {
    if let Some(thread) = process_for("ovni_proc_set_rank") {
        thread.set_rank(rank, nranks);
    }
}

/// Ends recording in the process. Threads that are not freed yet record on until they are, or until
/// the program ends.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_proc_fini() {
    match STATE.compare_exchange(READY, GONE, AcqRel, Acquire) {
        Ok(_) => {
            if lock(&WITHOUT_THREAD).take().is_some() {
                misuse!(
                    "ovni_proc_fini",
                    "a rank or CPUs were set, but no thread was initialized after that"
                );
            }
            process::remove_empty_temporary_directories();
        }
        Err(FAILED) => {}
        Err(_) => misuse!("ovni_proc_fini", "the process is not initialized"),
    }
}

/// Starts recording on the calling thread, with the id `tid` in the trace.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_thread_init(tid: c_int) {
    match STATE.load(Acquire) {
        FAILED => return,
        _ if is_over() => return,
        READY => {}
        _ => return misuse!("ovni_thread_init", "the process is not initialized"),
    }
    if tid == 0 {
        return misuse!("ovni_thread_init", "thread id 0 is none");
    }
    if thread::is_attached() {
        // The original only warns here.
        eprintln!("taskscope: ovni_thread_init: thread {tid} is already initialized; the call is ignored");
        return;
    }
    let metadata = lock(&WITHOUT_THREAD).take();
    let metadata = metadata.unwrap_or_else(|| Arc::new(ThreadMetadata::new(APP.load(Relaxed))));
    if !attach(tid, metadata) {
        static WARNED: AtomicU32 = AtomicU32::new(0);
        if WARNED.swap(1, Relaxed) == 0 {
            eprintln!(
                "taskscope: thread {tid} is not recorded: its files cannot be created\n  kept: the program continues"
            );
        }
    }
}

fn attach(tid: i32, metadata: Arc<ThreadMetadata>) -> bool {
    let options = thread::Options {
        tid: Some(tid),
        own_stream_on_demand: true,
        describe: Some(metadata.clone() as Arc<dyn Describe>),
        samples: false,
    };
    let attached = thread::attach_with(core::ptr::null_mut(), Box::new(|_, _| {}), options);
    if attached {
        lock(&THREADS).get_or_insert_default().insert(thread::address(), metadata);
    }
    attached
}

/// Makes a stream for a thread that lives on in a forked child: with the parent thread's models and
/// attributes, and as a running thread on an unknown CPU, from `at` (or now) on.
pub(crate) fn restart_in_child(at: Option<u64>) -> bool {
    // Another thread of the parent may have held the lock at the fork: never wait for it.
    let Ok(threads) = THREADS.try_lock() else { return false };
    let parent = threads.as_ref().and_then(|threads| threads.get(&thread::address()).cloned());
    drop(threads);
    let Some(parent) = parent else { return false };
    let tid = thread::os_tid();
    if !attach(tid, Arc::new(parent.for_forked_child())) {
        return false;
    }
    if let Some(mut recorder) = enter() {
        let at = at.unwrap_or_else(|| recorder.now());
        let (cpu, tag) = ((-1i32).to_le_bytes(), 0u64.to_le_bytes());
        let mut payload = [0; 16];
        payload[..4].copy_from_slice(&cpu);
        payload[4..8].copy_from_slice(&tid.to_le_bytes());
        payload[8..].copy_from_slice(&tag);
        recorder.point(at, ovni::THREAD_EXECUTES, payload);
    }
    true
}

/// Stores that the thread's events need `model` in `version`; the last call for a model counts.
///
/// # Safety
/// Both point to NUL-terminated strings, or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_thread_require(model: *const c_char, version: *const c_char) {
    // SAFETY: by contract.
    let (model, version) = unsafe { (text(model), text(version)) };
    let Some(thread) = thread_for("ovni_thread_require") else { return };
    if model.len() < 2 || model.contains([' ', '.']) || model.len() > 100 {
        misuse!("ovni_thread_require", "{model:?} cannot be a model's name");
    } else if parse_version(&version).is_none() {
        misuse!("ovni_thread_require", "{version:?} is not a version");
    } else {
        thread.require(&model, &version);
    }
}

/// Whether the calling thread records: 1 or 0. May be called anywhere, at any time.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_thread_isready() -> c_int {
    c_int::from(thread::is_attached() || thread::was_forked())
}

/// Ends recording on the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_thread_free() {
    if thread_for("ovni_thread_free").is_none() {
        return;
    }
    crate::last_flush::take_back();
    // Before the end of the recorder: its address may be reused by another thread after that.
    let metadata = lock(&THREADS).as_mut().and_then(|threads| threads.remove(&thread::address()));
    if let Some(metadata) = metadata {
        metadata.free();
    }
    thread::detach();
}

/// Adds a CPU of the loom: its index in events, and the hardware's number.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_add_cpu(index: c_int, phyid: c_int) {
    if index < 0 || phyid < 0 {
        return misuse!("ovni_add_cpu", "CPU {index} ({phyid}) must not be negative");
    }
    if let Some(thread) = process_for("ovni_add_cpu") {
        thread.add_cpu(index, phyid);
    }
}

/// Checks that a program made for `version` can use this library: same major version, no newer minor
/// one.
///
/// # Safety
/// `version` points to a NUL-terminated string, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_version_check_str(version: *const c_char) {
    // SAFETY: by contract.
    let wanted = unsafe { text(version) };
    let got = FORMAT_LIBRARY_VERSION;
    let (Some([major, minor, _]), Some([own_major, own_minor, _])) =
        (parse_version(&wanted), parse_version(got))
    else {
        return misuse!("ovni_version_check_str", "{wanted:?} is not a version");
    };
    if major != own_major {
        misuse!("ovni_version_check_str", "incompatible ovni major version: wants {wanted}, got {got}");
    } else if minor > own_minor {
        misuse!("ovni_version_check_str", "incompatible ovni minor version: wants {wanted}, got {got}");
    }
}

/// The emulated version of ovni, and its commit; static strings.
///
/// # Safety
/// Both pointers may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_version_get(version: *mut *const c_char, commit: *mut *const c_char) {
    static VERSION: &CStr = c"1.14.0";
    static COMMIT: &str = concat!("taskscope-", env!("CARGO_PKG_VERSION"), "\0");
    // SAFETY: by contract.
    unsafe {
        *version = VERSION.as_ptr();
        *commit = COMMIT.as_ptr().cast();
    }
}

fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

/// A C string as text; null is empty.
///
/// # Safety
/// `string` points to a NUL-terminated string, or is null.
pub(crate) unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Runs when the program ends by `exit` or by leaving `main`, after the destructors of everything that is
/// linked to this library: closes threads that were not freed.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        process::finish();
        process::remove_empty_temporary_directories();
    }
    at_exit
};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_format_library() {
        let (mut version, mut commit) = (core::ptr::null(), core::ptr::null());
        // SAFETY: both may be written, and hold strings afterwards.
        unsafe {
            ovni_version_get(&mut version, &mut commit);
            assert_eq!(text(version), FORMAT_LIBRARY_VERSION);
            assert_eq!(text(commit), process::FORMAT_LIBRARY_COMMIT);
        }
    }

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(parse_version("1.14.0"), Some([1, 14, 0]));
        assert_eq!(parse_version("1.14"), None);
        assert_eq!(parse_version("1.14.0.1"), None);
        assert_eq!(parse_version("1.x.0"), None);
    }
}
