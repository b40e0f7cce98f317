//! `libtaskscope_mpi.so`, which records MPI programs: preloaded, so that it comes before the MPI library.
//! It holds the OMPT tool too, which then must come from it: one process, one recorder.
//!
//! A program that uses MPI without naming it in its headers (Python) is recorded if a launcher starts it.

use super::{launcher, loader, recorder_library};
use std::path::{Path, PathBuf};

/// The library's file name.
pub const FILE_NAME: &str = "libtaskscope_mpi.so";

/// The library, if it is installed beside the OpenMP recorder `tool` and one of the programs may use MPI.
pub fn library_for(programs: &[PathBuf], tool: &Path) -> Option<PathBuf> {
    let expected = launcher::rank().is_some() || programs.iter().any(|program| uses_mpi(program));
    expected.then(|| recorder_library::find_beside(tool, FILE_NAME)).flatten()
}

fn uses_mpi(program: &Path) -> bool {
    launcher::is_launcher(program)
        || loader::objects_of(program).iter().flat_map(|(_, object)| &object.needed).any(|name| {
            name.starts_with("libmpi.so") || name.starts_with("libmpich") || name.starts_with("libmpi_")
        })
}
