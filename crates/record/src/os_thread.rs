//! Threads as the operating system knows them, and the names that programs report for them.
//!
//! Names that an interface of annotations reports (ITT, NVTX) are in a list without locks: a forked child may read it. The newest one
//! of a thread counts; the system's name counts for threads without one.

use crate::watched_process;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// The calling thread's id in the system.
pub fn os_tid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Maximum number of reported names, and their bytes; further ones are ignored, longer ones cut.
const MAX_REPORTED: u32 = 4096;
const MAX_REPORTED_BYTES: usize = 255;

/// A name that the program has reported; never freed.
struct Reported {
    os_tid: i32,
    name: String,
    next: *const Reported,
}

static REPORTED: AtomicPtr<Reported> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The program reports a name for a thread with this id in the system. An empty name is none. Allocates.
pub fn report_name(os_tid: i32, name: &[u8]) {
    let name = String::from_utf8_lossy(name.get(..MAX_REPORTED_BYTES).unwrap_or(name)).into_owned();
    // Without room, names of threads that have ended are forgotten still.
    let is_known = reported(os_tid).unwrap_or_default() == name;
    if is_known || !name.is_empty() && COUNT.fetch_add(1, Relaxed) >= MAX_REPORTED {
        return;
    }
    let node = Box::into_raw(Box::new(Reported { os_tid, name, next: core::ptr::null() }));
    let mut head = REPORTED.load(Acquire);
    loop {
        // SAFETY: not shared yet.
        unsafe { (*node).next = head };
        match REPORTED.compare_exchange_weak(head, node, Release, Acquire) {
            Ok(_) => return,
            Err(other) => head = other,
        }
    }
}

/// The thread with this id ends, and a new one may have it. (Not when that begins: its creator may have named it before.)
pub(crate) fn forget_reported_name(os_tid: i32) {
    if reported(os_tid).is_some_and(|name| !name.is_empty()) {
        report_name(os_tid, b"");
    }
}

fn reported(os_tid: i32) -> Option<&'static str> {
    // SAFETY: null, or a node of the list, which is never freed or changed.
    let mut node = unsafe { REPORTED.load(Acquire).as_ref() };
    while let Some(known) = node {
        if known.os_tid == os_tid {
            return Some(&known.name);
        }
        // SAFETY: as above.
        node = unsafe { known.next.as_ref() };
    }
    None
}

/// Name that a thread of the watched process has now: a reported one, or that of the system (`pthread_setname_np`, `PR_SET_NAME`); none while it is that of the
/// program's file, which no thread has chosen.
pub(crate) fn thread_name(os_tid: i32) -> Option<String> {
    if let Some(name) = reported(os_tid).filter(|name| !name.is_empty()) {
        return Some(name.to_owned());
    }
    let name = std::fs::read(format!("{}/task/{os_tid}/comm", watched_process::directory())).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    let program = std::fs::read_link(format!("{}/exe", watched_process::directory())).ok()?;
    let file = program.file_name()?.as_encoded_bytes();
    let is_programs = name == &file[..file.len().min(MAX_NAME_BYTES)];
    (!is_programs && !name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Bytes of a thread's name, without the null behind it (`TASK_COMM_LEN`).
const MAX_NAME_BYTES: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_reported_name_counts_until_another_thread_has_the_id() {
        // Ids that no thread has.
        let (first, second) = (i32::MAX, i32::MAX - 1);
        report_name(first, b"solver");
        report_name(second, b"reader");
        report_name(first, b"outer solver");
        assert_eq!(thread_name(first).as_deref(), Some("outer solver"));
        forget_reported_name(first);
        assert_eq!(thread_name(first), None);
        assert_eq!(thread_name(second).as_deref(), Some("reader"));
        report_name(second, &[b'x'; 1000]);
        assert_eq!(thread_name(second).map(|name| name.len()), Some(MAX_REPORTED_BYTES));
    }
}
