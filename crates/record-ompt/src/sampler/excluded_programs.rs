//! Programs that the recorder must leave although it was loaded: a memory checker would report its accesses,
//! or a filter ends the program for its system calls ([`filters`](super::filters)).
//!
//! `taskscope record` recognises such programs in its command, and attaches nothing. A program started in
//! another way (a shell, system calls of Go's runtime, …) inherits the variables. It is started anew without
//! them when the library is loaded: before its `main`, with its arguments, descriptors and process id.
//! Constructors of its libraries may run twice. If that is not possible, the recorder does nothing.

#![cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use taskscope_record::attached::{self, Checker, Filters};
use taskscope_record::process;

/// The checker in this process, if it has one.
fn checker() -> Option<Checker> {
    // SAFETY: looks up a C string.
    let is_there = |checker: &Checker| unsafe {
        !libc::dlsym(libc::RTLD_DEFAULT, checker.function().as_ptr()).is_null()
    };
    let found = Checker::ALL.into_iter().find(is_there);
    // A search in vain has left a message, which is not for the program.
    // SAFETY: no preconditions.
    unsafe { libc::dlerror() };
    found
}

const NOT_ASKED: u8 = 0;
const WANTED: u8 = 1;
const UNWANTED: u8 = 2;
static ANSWER: AtomicU8 = AtomicU8::new(NOT_ASKED);

/// Whether this process is not to be recorded.
pub fn is_here() -> bool {
    match ANSWER.load(Relaxed) {
        NOT_ASKED => {
            let is_here = checker().is_some() || are_filters_inherited();
            ANSWER.store(if is_here { UNWANTED } else { WANTED }, Relaxed);
            is_here
        }
        answer => answer == UNWANTED,
    }
}

/// Whether the program began with a filter that `taskscope record` does not have. Reads a file as the loader did just now.
fn are_filters_inherited() -> bool {
    let own = std::env::var(attached::FILTERS).ok().and_then(|value| value.parse().ok()).unwrap_or(0);
    Filters::current_thread().is_some_and(|filters| filters.0 > own)
}

/// Whether the recorder makes no calls any more.
static HAS_LEFT: AtomicBool = AtomicBool::new(false);

/// Whether the recorder makes no calls any more, as a filter of the program's may end it for them.
#[inline(always)]
pub fn has_left() -> bool {
    HAS_LEFT.load(Relaxed)
}

/// Stops all system calls of the recorder.
pub fn leave() {
    HAS_LEFT.store(true, Relaxed);
}

/// Excludes this process from recording.
pub fn decline() {
    ANSWER.store(UNWANTED, Relaxed);
}

/// Starts the program anew without the environment changes of `record`, if it has a checker. Otherwise, and
/// on failure, returns. `arguments` are the program's, as the loader passes them to constructors.
pub fn start_anew(arguments: *const *const c_char) {
    let Some(checker) = checker().filter(|_| !arguments.is_null()) else { return };
    // A program that the loader was asked to run is not the one that the system started. SAFETY: only reads
    // values that the system gave the process.
    if unsafe { libc::getauxval(libc::AT_BASE) } == 0 {
        return;
    }
    let entries = entries();
    let entries: Vec<&[u8]> = entries.iter().map(|entry| entry.to_bytes()).collect();
    let Some(kept) = attached::without_additions(&entries) else { return };
    let kept: Vec<CString> = kept.into_iter().filter_map(|entry| CString::new(entry).ok()).collect();
    let environment: Vec<*const c_char> =
        kept.iter().map(|entry| entry.as_ptr()).chain([core::ptr::null()]).collect();
    let Some(program) = program() else { return };
    report_of(checker.name(), &program);
    let Ok(program) = CString::new(program.into_os_string().into_encoded_bytes()) else { return };
    // SAFETY: C strings in lists that null pointers end. On failure the process is as it was.
    unsafe { libc::execve(program.as_ptr(), arguments, environment.as_ptr()) };
}

/// This process's environment.
fn entries() -> Vec<&'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: a null-terminated list of C strings; no other code changes it before the program begins.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            entries.push(CStr::from_ptr(*next));
            next = next.add(1);
        }
    }
    entries
}

/// File of this program, by the executed path unless that is a script: a process is named after it.
fn program() -> Option<PathBuf> {
    const EXECUTED: &str = "/proc/self/exe";
    let identity = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let own = identity(Path::new(EXECUTED))?;
    let as_reported = || {
        // SAFETY: the system's C string, or null.
        let path = unsafe { (libc::getauxval(libc::AT_EXECFN) as *const c_char).as_ref() }?;
        // SAFETY: as above.
        let path = unsafe { CStr::from_ptr(path) };
        Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
    };
    let is_it = |path: &PathBuf| identity(path) == Some(own);
    let linked = || std::fs::read_link(EXECUTED).ok();
    as_reported().filter(is_it).or_else(|| linked().filter(is_it)).or_else(|| Some(PathBuf::from(EXECUTED)))
}

/// Leaves a report for `taskscope record`, with the reason's name there.
pub fn report(reason: &str) {
    if let Some(program) = program() {
        report_of(reason, &program);
    }
}

/// Without it the program runs just so.
fn report_of(reason: &str, program: &Path) {
    let Some(trace) = std::env::var_os(process::TRACE_DIRECTORY_VARIABLE) else { return };
    let mut text = OsString::from(reason);
    text.push("\n");
    text.push(program.canonicalize().unwrap_or_else(|_| program.to_owned()));
    let file = attached::left_alone_file(Path::new(&trace), std::process::id());
    let _ = std::fs::write(file, text.as_encoded_bytes());
}
