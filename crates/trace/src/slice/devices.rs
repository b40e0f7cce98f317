//! The device queues of a slice: those of its processes, whole.
//!
//! The reasons for which a queue is idle in the range, and the submitters of operations that run in it, are before and after it.

use crate::location::Location;
use crate::rewrite::replace_file;
use std::io;
use std::path::Path;
use taskscope_event::{StreamFile, layout};
use taskscope_files::{create_directory_below, open_regular};

/// Whether a location has operations of a device queue, or calls that concern them, of a process that the slice has.
pub(super) fn is_device(location: &Location, has: impl Fn(i64) -> bool) -> bool {
    let metadata = &location.metadata;
    let is_device = matches!(metadata["kind"].as_str(), Some("device-queue" | "device-calls"));
    is_device && metadata["pid"].as_i64().is_none_or(has)
}

/// Copies a location's files to the same place below `output`.
pub(super) fn copy(location: &Location, root: &Path, output: &Path) -> io::Result<()> {
    let below = location.directory.strip_prefix(root).unwrap_or(Path::new(&location.relative_path));
    let directory = output.join(below);
    create_directory_below(output, below)?;
    for name in [StreamFile::Own.name(), layout::LOCATION_METADATA] {
        // Readers report a missing file of the whole, too.
        let (mut from, _) = match open_regular(&location.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        replace_file(&directory.join(name), |out| io::copy(&mut from, out).map(drop)).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.join(name).display()))
        })?;
    }
    Ok(())
}
