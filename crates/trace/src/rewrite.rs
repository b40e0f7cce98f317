//! Stream files written anew: always a new file first, which then takes the old one's name, so that
//! a crash leaves either the old or the new content.

use crate::stream::{File, Stream};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use taskscope_event::framing::{FILE_HEADER_BYTES, file_header};

/// Writes a file under another name, makes it durable, and gives it its name.
///
/// # Errors
/// Those of the file system; the old file is then untouched and the new one removed.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let attempt = || {
        let mut out = BufWriter::new(fs::File::create(&new)?);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&new, path)
    };
    let result = attempt();
    if result.is_err() {
        let _ = fs::remove_file(&new);
    }
    result
}

impl Stream {
    /// Writes the regions of unsorted events of a file in their order. Bytes after the last whole
    /// event stay as they are. Returns whether there was anything to do.
    ///
    /// # Errors
    /// Those of the file system; the file is then as it was.
    pub fn sort_file(&self, which: File) -> io::Result<bool> {
        let Some(file) = self.file(which).filter(|file| file.needs_sorting()) else { return Ok(false) };
        let bytes = file.bytes();
        replace_file(&self.directory.join(which.name()), |out| {
            out.write_all(&file_header())?;
            let mut position = FILE_HEADER_BYTES;
            for (begin, end, order) in file.windows() {
                out.write_all(&bytes[position..begin])?;
                for event in order {
                    out.write_all(&bytes[event])?;
                }
                position = end;
            }
            out.write_all(&bytes[position..])
        })?;
        Ok(true)
    }
}
