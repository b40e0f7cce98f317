//! The bytes of a stream file: mapped when nobody writes it any more, else read into memory.
#![allow(unsafe_code)]

use crate::decode::EventHead;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use taskscope_event::framing::FILE_HEADER_BYTES;

/// Files below this size are read: a mapping costs more than the copy, and thousands of small
/// streams would use up the mappings that a process may have.
const SMALLEST_MAPPED_BYTES: u64 = 128 * 1024;

/// An unfinished stream file with what its tail adds (form: [`taskscope_event::tail`]), and how many
/// bytes before the tail are missing, which happens only when the machine itself went down.
pub(crate) fn load_unfinished(path: &Path) -> io::Result<(FileBytes, u64)> {
    let mut bytes = match FileBytes::load(path, false)? {
        FileBytes::Read(bytes) => bytes,
        FileBytes::Mapped(map) => map.to_vec(),
    };
    let Ok(tail) = FileBytes::load(&path.with_extension("tail"), false) else {
        return Ok((FileBytes::Read(bytes), 0));
    };
    let Some((base, newest)) = taskscope_event::tail::active(&tail) else {
        return Ok((FileBytes::Read(bytes), 0));
    };
    let (stored, sealed) = taskscope_event::tail::sealed(&tail);
    let missing = stored.min(base).saturating_sub(bytes.len() as u64);
    if missing == 0 {
        bytes.truncate(stored.min(base) as usize);
        sealed.into_iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.extend_from_slice(newest);
        let (target, side) = taskscope_event::tail::side(&tail);
        let model_at_target = target.checked_add(1).and_then(|model| bytes.get(model as usize));
        if target == 0 || model_at_target.is_none_or(|model| *model == 0) {
            append_side(&mut bytes, base as usize, side);
        }
    }
    if let Ok(checkpoint) = FileBytes::load(&path.with_extension("checkpoint"), false) {
        replace_beginning(&mut bytes, &checkpoint);
    }
    Ok((FileBytes::Read(bytes), missing))
}

/// Puts the events that wait in the side area behind the last event from `base` on.
fn append_side(bytes: &mut Vec<u8>, base: usize, side: &[u8]) {
    if side.get(1).is_none_or(|model| *model == 0) {
        return;
    }
    let mut end = if base == 0 { FILE_HEADER_BYTES } else { base };
    while let Some(head) = EventHead::read(bytes, end)
        && head.code.model() != 0
        && head.end <= bytes.len()
    {
        end = head.end;
    }
    bytes.truncate(end);
    bytes.extend_from_slice(side);
}

/// Of a stream that keeps only its newest part: puts the checkpoint in place of what is gone.
fn replace_beginning(bytes: &mut Vec<u8>, checkpoint: &[u8]) {
    let Some((kept_from, events)) = checkpoint.split_first_chunk() else { return };
    let kept_from = u64::from_le_bytes(*kept_from) as usize;
    if (FILE_HEADER_BYTES..=bytes.len()).contains(&kept_from) {
        bytes.splice(FILE_HEADER_BYTES..kept_from, events.iter().copied());
    }
}

/// Asks the processor to fetch the byte at `position`, which will be read soon. Streams are read in turn, too
/// many of them for the processor to see that each is read forwards.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], position: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(position) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is that of a byte of the slice; a prefetch reads nothing into the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, position);
}

/// The content of a small file such as metadata. Refused are files beyond `most` bytes, and what is no
/// regular file: reading a pipe could take for ever, and a device may have no end.
///
/// # Errors
/// If it cannot be read, or is refused.
pub fn read_small_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path)?;
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, format!("it has more than {most} bytes"));
    if length > most {
        return Err(too_long());
    }
    let bytes = read(file, length, most.saturating_add(1))?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// A regular file and its length.
fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // So that opening a pipe does not wait for its writer.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, metadata.len()))
}

/// All bytes of a file that had this length, or the first `most`. Of a file that did not change the system is asked
/// twice only, as thousands of streams are opened.
fn read(mut file: File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(length.min(most)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected)?;
    bytes.resize(expected, 0);
    match file.read(&mut bytes) {
        Ok(first) => bytes.truncate(first),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => bytes.clear(),
        Err(error) => return Err(error),
    }
    let rest = most - bytes.len() as u64;
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The content of a file.
pub(crate) enum FileBytes {
    Read(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl FileBytes {
    /// Loads `path`. With `may_map`, the caller holds that the file does not change any more.
    pub(crate) fn load(path: &Path, may_map: bool) -> io::Result<FileBytes> {
        let (file, length) = open_regular(path)?;
        if may_map && length >= SMALLEST_MAPPED_BYTES {
            // SAFETY: the map is read-only and private, and the metadata beside the file says that
            // its writer has finished. Should something still shrink it, the kernel ends this
            // process with SIGBUS; it cannot make us read memory of another object.
            return Ok(FileBytes::Mapped(unsafe { memmap2::Mmap::map(&file)? }));
        }
        read(file, length, u64::MAX).map(FileBytes::Read)
    }
}

/// The bytes of a file that is only ever replaced as a whole, never changed in place: a cache, for
/// instance. Large ones are mapped.
pub struct UnchangingFile(FileBytes);

impl UnchangingFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> io::Result<UnchangingFile> {
        FileBytes::load(path, true).map(UnchangingFile)
    }

    /// A file without a name, which nobody else can open, and into which nothing is written any more.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn of_nameless(file: &File) -> io::Result<UnchangingFile> {
        // SAFETY: the map is read-only; nobody but the caller, who writes no more, can change or shrink the file.
        unsafe { memmap2::Mmap::map(file) }.map(|map| UnchangingFile(FileBytes::Mapped(map)))
    }
}

impl AsRef<[u8]> for UnchangingFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for FileBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Read(bytes) => bytes,
            FileBytes::Mapped(map) => map,
        }
    }
}
