//! Environment changes of `taskscope record`, and their removal.
//!
//! The variables reach all programs that a command starts. If the recorder is loaded into a program that it
//! must leave alone, it starts that program anew without them. So `record` names its additions: variables of
//! its own in [`ADDED`], and its items in each list that users have too ([`LISTS`]). Other additions to such
//! a list are kept.

use std::path::{Path, PathBuf};

/// Names all variables that `record` adds, itself first, separated by colons.
pub const ADDED: &str = "TASKSCOPE_ADDED";

/// Lists, separated by colons, to which `record` adds items; and the variables that name these items.
pub const LISTS: [(&str, &str); 5] = [
    ("LD_PRELOAD", "TASKSCOPE_ADDED_LD_PRELOAD"),
    ("LD_LIBRARY_PATH", "TASKSCOPE_ADDED_LD_LIBRARY_PATH"),
    ("OMP_TOOL_LIBRARIES", "TASKSCOPE_ADDED_OMP_TOOL_LIBRARIES"),
    ("ASAN_OPTIONS", "TASKSCOPE_ADDED_ASAN_OPTIONS"),
    ("OPENCL_LAYERS", "TASKSCOPE_ADDED_OPENCL_LAYERS"),
];

/// The environment without the additions of `record`: entries in their order, with repetitions. `None` if
/// `record` has added nothing.
pub fn without_additions(entries: &[&[u8]]) -> Option<Vec<Vec<u8>>> {
    let value_of = |name: &str| entries.iter().find_map(|entry| value(entry, name));
    let own: Vec<&[u8]> = value_of(ADDED)?.split(|byte| *byte == b':').collect();
    let mut kept = Vec::new();
    for entry in entries {
        let name = entry.split(|byte| *byte == b'=').next().unwrap_or_default();
        if own.contains(&name) {
            continue;
        }
        let list = LISTS.iter().find(|(list, _)| list.as_bytes() == name);
        let added = list.and_then(|(list, variable)| Some((value(entry, list)?, value_of(variable)?)));
        let Some((items, added)) = added else {
            kept.push(entry.to_vec());
            continue;
        };
        let added: Vec<&[u8]> = added.split(|byte| *byte == b':').collect();
        let others: Vec<&[u8]> =
            items.split(|byte| *byte == b':').filter(|item| !added.contains(item)).collect();
        if !others.is_empty() {
            kept.push([name, b"=", &others.join(&b':')].concat());
        }
    }
    Some(kept)
}

fn value<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// Why a program that can load the recorder is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checker {
    /// It reports the recorder's memory accesses as races, as it cannot see their order.
    Thread,
    /// It reports all memory that the recorder writes as uninitialised.
    Memory,
}

impl Checker {
    /// All checkers.
    pub const ALL: [Checker; 2] = [Checker::Thread, Checker::Memory];

    /// A function of its run-time library.
    pub fn function(self) -> &'static std::ffi::CStr {
        match self {
            Checker::Thread => c"__tsan_init",
            Checker::Memory => c"__msan_init",
        }
    }

    /// Its name in notices and files.
    pub fn name(self) -> &'static str {
        match self {
            Checker::Thread => "thread-sanitizer",
            Checker::Memory => "memory-sanitizer",
        }
    }
}

/// The name of the reason of programs that may be ended for the recorder's system calls, in notices and files.
pub const FILTERED: &str = "seccomp-filter";

/// Name of the number of [`Filters`] of `taskscope record`, if it has some.
pub const FILTERS: &str = "TASKSCOPE_SECCOMP_FILTERS";

/// Number of seccomp filters of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters(pub u64);

impl Filters {
    /// `None` if the system does not report it. Uses only system calls that the dynamic loader has used: it
    /// opens, reads and closes a file.
    pub fn current_thread() -> Option<Filters> {
        let mut text = [0u8; 16 << 10];
        let mut length = 0;
        // SAFETY: a C string, and memory of that size.
        unsafe {
            let file = libc::open(c"/proc/thread-self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if file < 0 {
                return None;
            }
            while let Some(rest) = text.get_mut(length..).filter(|rest| !rest.is_empty()) {
                match usize::try_from(libc::read(file, rest.as_mut_ptr().cast(), rest.len())) {
                    Ok(read) if read > 0 => length += read,
                    _ => break,
                }
            }
            libc::close(file);
        }
        Filters::parse(&String::from_utf8_lossy(text.get(..length)?))
    }

    /// Kernels before 5.9 report only whether there are filters.
    fn parse(status: &str) -> Option<Filters> {
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().parse::<u64>().ok()
        };
        let mode = field("Seccomp")?;
        Some(Filters(field("Seccomp_filters").unwrap_or(0).max(u64::from(mode != 0))))
    }
}

/// The file in a trace directory by which a process reports that it leaves its program alone: the name of the reason, a line feed,
/// the path of the program.
pub fn left_alone_file(trace: &Path, pid: u32) -> PathBuf {
    trace.join(format!("{LEFT_ALONE}{pid}"))
}

/// Prefix of the names of such files.
pub const LEFT_ALONE: &str = "left-alone.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_where_the_kernel_counts_them() {
        let of = |status: &str| Filters::parse(status).map(|filters| filters.0);
        assert_eq!(of("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n"), Some(0));
        assert_eq!(of("Seccomp:\t2\nSeccomp_filters:\t3\n"), Some(3));
        assert_eq!(of("Seccomp:\t2\n"), Some(1));
        // Strict mode has no filter.
        assert_eq!(of("Seccomp:\t1\nSeccomp_filters:\t0\n"), Some(1));
        assert_eq!((of("Seccomp:\tmany\n"), of("Name:\tx\n")), (None, None));
    }

    #[test]
    fn additions_are_taken_out_and_the_rest_keeps_its_order() {
        let entries: Vec<&[u8]> = vec![
            b"Z=1",
            b"LD_PRELOAD=/users.so:/ours.so:/later.so",
            b"OMP_TOOL_LIBRARIES=/tool.so",
            b"TASKSCOPE_ADDED=TASKSCOPE_ADDED:TASKSCOPE_TRACE_DIR:CUDA:TASKSCOPE_ADDED_LD_PRELOAD:TASKSCOPE_ADDED_OMP_TOOL_LIBRARIES",
            b"TASKSCOPE_TRACE_DIR=/t",
            b"A=2",
            b"none",
            b"CUDA=x",
            b"TASKSCOPE_ADDED_LD_PRELOAD=/ours.so",
            b"TASKSCOPE_ADDED_OMP_TOOL_LIBRARIES=/tool.so",
            b"TASKSCOPE_FILTER=users",
            b"A=2",
            b"=",
        ];
        let kept = without_additions(&entries).unwrap();
        let expected: [&[u8]; 7] = [
            b"Z=1",
            b"LD_PRELOAD=/users.so:/later.so",
            b"A=2",
            b"none",
            b"TASKSCOPE_FILTER=users",
            b"A=2",
            b"=",
        ];
        assert_eq!(kept, expected);
        let kept: Vec<&[u8]> = kept.iter().map(Vec::as_slice).collect();
        assert_eq!(without_additions(&kept), None);
    }
}
