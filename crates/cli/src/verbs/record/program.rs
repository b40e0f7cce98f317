//! Finds the program to run as a shell would, and says why it cannot be run.

use crate::messages::Failure;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use taskscope_view::format::shell_word;

/// Exit code when the program exists but cannot be executed, as with `env`.
pub const CANNOT_EXECUTE: u8 = 126;
/// Exit code when the program was not found, as with `env`.
pub const NOT_FOUND: u8 = 127;

/// The file that `name` means: itself when it contains a slash, else the first executable of that
/// name in `PATH`.
pub fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![PathBuf::from(name)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        std::env::split_paths(&path).map(|directory| directory.join(name)).collect()
    };
    if let Some(program) = candidates.iter().find(|candidate| is_executable(candidate)) {
        return Ok(program.clone());
    }
    let shown = name.to_string_lossy();
    Err(match candidates.iter().find(|candidate| candidate.exists()) {
        Some(found) if found.is_dir() => Failure::new(format!("cannot run {shown}"))
            .why(format!("{} is a directory", found.display()))
            .exit_code(CANNOT_EXECUTE),
        Some(found) => Failure::new(format!("cannot run {shown}"))
            .why(format!("{} is not executable", found.display()))
            .remedy(format!("chmod +x {}", shell_word(found)))
            .exit_code(CANNOT_EXECUTE),
        None => not_found(name),
    })
}

fn not_found(name: &OsStr) -> Failure {
    let shown = name.to_string_lossy();
    let failure = Failure::new(format!("command not found: {shown}")).exit_code(NOT_FOUND);
    if name.as_bytes().contains(&b'/') {
        failure.why("no such file")
    } else if is_executable(&Path::new(".").join(name)) {
        failure.why("it is in no directory of PATH").remedy(format!("taskscope record -- ./{shown}"))
    } else {
        failure.why("it is in no directory of PATH")
    }
}

/// Whether a file could be a script: its beginning has no zero byte.
pub fn is_text(file: &Path) -> bool {
    let mut beginning = [0; 256];
    let read = File::open(file).and_then(|mut file| file.read(&mut beginning));
    read.is_ok_and(|length| !beginning[..length].contains(&0) && !beginning.starts_with(b"\x7fELF"))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
}
