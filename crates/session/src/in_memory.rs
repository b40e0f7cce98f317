//! A session of an execution that was never on disk.

use crate::names::Places;
use crate::session::Session;
use std::path::PathBuf;
use taskscope_execution::Execution;

impl Session {
    /// Creates a session from an execution in memory, as if it had been opened from `root`: complete, without problems,
    /// without a run file. For tests and benchmarks of code that shows sessions.
    pub fn in_memory(root: impl Into<PathBuf>, execution: Execution) -> Session {
        Session {
            devices: taskscope_execution::devices::Devices::default(),
            root: root.into(),
            places: Places::of(&execution),
            run: None,
            streams: Vec::new(),
            problems: Vec::new(),
            run_file_problem: None,
            events: execution.threads.iter().map(|thread| thread.events).sum(),
            events_by_model: Vec::new(),
            clocks_too_far: 0,
            clock_offsets: None,
            lacks_resting: false,
            unreadable_samples: 0,
            part: None,
            filtered: false,
            execution,
            range: None,
            times: (0, u64::MAX),
        }
    }
}
