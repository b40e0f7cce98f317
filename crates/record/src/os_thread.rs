//! Threads as the operating system knows them.

/// The calling thread's id in the system.
pub fn os_tid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Name that a thread of this process has now (`pthread_setname_np`, `PR_SET_NAME`); none while it is that of the
/// program's file, which no thread has chosen.
pub(crate) fn thread_name(os_tid: i32) -> Option<String> {
    let name = std::fs::read(format!("/proc/self/task/{os_tid}/comm")).ok()?;
    let name = name.strip_suffix(b"\n").unwrap_or(&name);
    let program = std::fs::read_link("/proc/self/exe").ok()?;
    let file = program.file_name()?.as_encoded_bytes();
    let is_programs = name == &file[..file.len().min(MAX_NAME_BYTES)];
    (!is_programs && !name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Bytes of a thread's name, without the null behind it (`TASK_COMM_LEN`).
const MAX_NAME_BYTES: usize = 15;
