//! Finds `libtaskscope_ompt.so`, the OMPT tool for the OpenMP runtime.

use crate::messages::Failure;
use std::path::{Path, PathBuf};

/// The file that `record` hands to the OpenMP runtime.
pub const FILE_NAME: &str = "libtaskscope_ompt.so";
/// File name of the library that records waits of threads too.
pub const THREADS_FILE_NAME: &str = "libtaskscope_threads.so";

/// Names the library, if it is elsewhere.
pub const VARIABLE: &str = "TASKSCOPE_OMPT_LIBRARY";

/// Finds the library: by [`VARIABLE`], beside the command, in the library directories of an installation, in cargo's
/// directory of dependencies.
pub fn find() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        return match std::path::absolute(&named) {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(Failure::new("cannot find the recorder for OpenMP")
                .why(format!("{VARIABLE} names {}, which is not a file", named.display()))
                .remedy(format!("unset {VARIABLE}"))),
        };
    }
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("."));
    // In cargo's output directory the copy in `deps` is never older than the one beside us.
    let places = ["deps", ".", "../lib/taskscope", "../lib"];
    let found = places.iter().map(|place| beside.join(place).join(FILE_NAME)).find(|path| path.is_file());
    found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
        let failure = Failure::new("cannot find the recorder for OpenMP")
            .why(format!("{FILE_NAME} is neither beside {} nor in ../lib/taskscope", own.display()));
        match profile_of_build_directory(beside) {
            Some("debug") => failure.remedy("cargo build -p taskscope-record-ompt"),
            Some(_) => failure.remedy("cargo build --release -p taskscope-record-ompt"),
            None => failure.remedy(format!("make install, or {VARIABLE}=/path/to/{FILE_NAME}")),
        }
    })
}

/// The profile's name when `directory` is cargo's output directory.
fn profile_of_build_directory(directory: &Path) -> Option<&str> {
    directory.join(".cargo-lock").exists().then(|| directory.file_name()?.to_str()).flatten()
}

/// Another library of the recorders, installed or built beside this one.
pub fn find_beside(recorder: &Path, file_name: &str) -> Option<PathBuf> {
    let places = [
        recorder.with_file_name(file_name),
        // Cargo's directory of dependencies, or the one above it.
        recorder.with_file_name("deps").join(file_name),
        recorder.parent()?.with_file_name(file_name),
    ];
    places.into_iter().find(|path| path.is_file())
}
