//! Names of the files and directories of a trace.
//!
//! ```text
//! NAME.trace/                          taskscope-run.json  clock-offsets.txt
//!   loom.<host>.<pid>/proc.<pid>/      alive.tail
//!     thread.<tid>/                    stream.json  stream.obs  taskscope.obs  samples.obs
//!   devices.<host>.<pid>/queue.<n>/    taskscope.json  taskscope.obs
//!   graph/                             taskscope.json  taskscope.obs
//! ```

/// An event file of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamFile {
    /// `stream.obs`: ovni's models.
    Standard,
    /// `taskscope.obs`: taskscope's own models.
    Own,
    /// `samples.obs`: call-stack samples, written by a signal handler alone, merged with no other file.
    Samples,
}

impl StreamFile {
    /// All files, in the order in which they are written at the end of a stream.
    pub const ALL: [StreamFile; 3] = [StreamFile::Standard, StreamFile::Own, StreamFile::Samples];

    /// Name of the file.
    pub const fn name(self) -> &'static str {
        match self {
            StreamFile::Standard => "stream.obs",
            StreamFile::Own => "taskscope.obs",
            StreamFile::Samples => "samples.obs",
        }
    }

    /// Name of the file with the newest events of an open stream ([`crate::tail`]).
    pub const fn tail_name(self) -> &'static str {
        match self {
            StreamFile::Standard => "stream.tail",
            StreamFile::Own => "taskscope.tail",
            StreamFile::Samples => "samples.tail",
        }
    }
}

/// Extension of the file with the newest events of an open stream ([`crate::tail`]).
pub const TAIL_EXTENSION: &str = "tail";
/// Extension of the file that replaces the discarded part of a stream that keeps only its newest events.
pub const CHECKPOINT_EXTENSION: &str = "checkpoint";

/// Metadata of a thread's stream. Its presence makes a directory a stream.
pub const STREAM_METADATA: &str = "stream.json";
/// Metadata of a location that is not a thread: a device queue, the times off the CPU of a process, a task graph.
pub const LOCATION_METADATA: &str = "taskscope.json";
/// Facts of the run, in the root of a trace.
pub const RUN_FILE: &str = "taskscope-run.json";
/// Begin and end of the name of the run file of a further rank, `taskscope-run.<rank>.json`.
pub const RUN_FILE_OF_RANK: (&str, &str) = ("taskscope-run.", ".json");
/// Offsets between the clocks of hosts, in the root of a trace.
pub const CLOCK_OFFSETS: &str = "clock-offsets.txt";
/// Drifts of the clocks of hosts, beside [`CLOCK_OFFSETS`].
pub const CLOCK_DRIFTS: &str = "clock-drift.txt";

/// Begin of the name of a loom's directory.
pub const LOOM_PREFIX: &str = "loom.";
/// Begin of the name of a process's directory.
pub const PROCESS_PREFIX: &str = "proc.";
/// Begin of the name of a thread's directory.
pub const THREAD_PREFIX: &str = "thread.";
/// Begin of the name of a process's directory with device queues.
pub const DEVICES_PREFIX: &str = "devices.";
/// Metadata of a task graph, below the root of a trace.
pub const GRAPH_METADATA: &str = "graph/taskscope.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_have_the_names_of_their_files() {
        for file in StreamFile::ALL {
            let stem = file.name().strip_suffix(".obs").unwrap();
            assert_eq!(
                file.tail_name().strip_suffix(TAIL_EXTENSION).and_then(|name| name.strip_suffix('.')),
                Some(stem)
            );
        }
    }
}
