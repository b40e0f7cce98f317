//! Copies of modules' files that may be gone when names are looked up: those in directories for temporary files.

use crate::code::LoadedModule;
use crate::target::Target;
use std::io;
use std::path::Path;
use taskscope_files::{create_directory_below, write_file};

/// Directory in the trace, for files by their build ids. Readers have the same name.
const DIRECTORY: &str = "modules";
/// Larger files are not kept.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Directories with short-lived files.
const TEMPORARY: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/"];

/// Keeps a module's file, if it may be gone later.
///
/// # Errors
/// If it cannot be read or written.
pub fn keep(target: &Target, module: &LoadedModule, trace: &Path) -> io::Result<()> {
    let is_temporary = TEMPORARY.iter().any(|directory| module.path.starts_with(directory));
    let is_named = !module.build_id.is_empty() && module.build_id.len() <= 128;
    if !is_temporary || !is_named {
        return Ok(());
    }
    let mut file = target.open_file(&module.path)?;
    let place = create_directory_below(trace, DIRECTORY)?.join(&module.build_id);
    if file.metadata()?.len() > MAX_FILE_BYTES || place.symlink_metadata().is_ok() {
        return Ok(());
    }
    write_file(&place, |out| io::copy(&mut file, out).map(drop))
}
