//! `libtaskscope_threads.so`, which records waits of threads for each other: preloaded, so that it comes before the C library.
//! It holds the OMPT tool too, which then must come from it: one process, one recorder.

use super::environment::Environment;
use super::recorder_library::{self, THREADS_FILE_NAME as FILE_NAME};
use std::path::{Path, PathBuf};

/// Samples a second and thread, if no rate is given. Call paths of waits need the sampler.
pub const SAMPLES_PER_SECOND: f64 = 100.0;

/// The library beside the OpenMP recorder `tool`; `None`, with a notice, if it cannot be used.
pub fn library_for(uses_mpi: bool, tool: &Path, environment: &mut Environment) -> Option<PathBuf> {
    if uses_mpi {
        let text = "waits of threads for each other are not recorded in MPI programs";
        environment.notice("threads-not-recorded", text.to_owned());
        return None;
    }
    let found = recorder_library::find_beside(tool, FILE_NAME);
    if found.is_none() {
        let text = format!("waits of threads for each other are not recorded: {FILE_NAME} is not installed");
        environment.notice("threads-not-recorded", text);
    }
    found
}
