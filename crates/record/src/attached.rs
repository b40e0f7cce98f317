//! What `taskscope record` adds to the environment of a program, and how it is taken out again.
//!
//! The variables reach all that a command starts. Where the recorder finds itself in a program that it must leave alone, it
//! starts that program anew without them. So `record` names its additions: variables of its own in [`ADDED`], and for each list
//! that users have too ([`LISTS`]) the items that are its own. What others add to such a list meanwhile stays.

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

/// The environment without what `record` has added: entries in their order, each as often as it was there. `None` where `record`
/// has added nothing.
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
    /// It takes the recorder's memory accesses, whose order it cannot see, for races.
    Thread,
    /// It takes all memory that the recorder writes for uninitialized.
    Memory,
}

impl Checker {
    /// All of them.
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

/// The file in a trace directory by which a process reports that it left its program alone: the name of the checker, a line feed,
/// the path of the program.
pub fn left_alone_file(trace: &Path, pid: u32) -> PathBuf {
    trace.join(format!("{LEFT_ALONE}{pid}"))
}

/// The beginning of the names of such files.
pub const LEFT_ALONE: &str = "left-alone.";

#[cfg(test)]
mod tests {
    use super::*;

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
