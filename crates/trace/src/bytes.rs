//! The bytes of a stream file: mapped if it is finished, else read into memory.
#![allow(unsafe_code)]

use crate::event_head::EventHead;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::Path;
use taskscope_event::framing::FILE_HEADER_BYTES;
use taskscope_event::{layout, tail};
use taskscope_files::{open_regular, read_open, read_regular};

/// Files below this size are read: a mapping costs more than the copy, and thousands of small
/// streams would use up the mappings that a process may have.
const MIN_MAPPED_BYTES: u64 = 128 * 1024;

/// Longest checkpoint: it holds the open states of one thread.
const MAX_CHECKPOINT_BYTES: u64 = 256 << 20;
/// Read of an unfinished stream at once.
const CHUNK_BYTES: usize = 16 << 20;
/// Longest event of an unfinished stream; no recorder writes one of a tenth of it.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// An unfinished stream file and the events of its tail.
pub(crate) struct Unfinished {
    /// The stream.
    pub(crate) bytes: FileBytes,
    /// Bytes before the tail that are missing, which happens only when the machine itself went down.
    pub(crate) missing: u64,
    /// The reason why an existing tail was not used.
    pub(crate) unusable_tail: Option<String>,
}

/// Loads an unfinished stream file with its tail (form: [`taskscope_event::tail`]). Takes memory for its
/// events alone, independent of the file's length.
pub(crate) fn load_unfinished(path: &Path) -> io::Result<Unfinished> {
    let checkpoint_path = path.with_extension(layout::CHECKPOINT_EXTENSION);
    let load_checkpoint = || read_regular(&checkpoint_path, MAX_CHECKPOINT_BYTES).ok();
    let mut checkpoint = load_checkpoint();
    loop {
        let loaded = load_with(path, checkpoint.as_deref())?;
        // The writer may have given up more of the stream meanwhile.
        let now = load_checkpoint();
        if kept_from(now.as_deref()) == kept_from(checkpoint.as_deref()) {
            return Ok(loaded);
        }
        checkpoint = now;
    }
}

/// The position at which a ring's stream continues after the checkpoint.
fn kept_from(checkpoint: Option<&[u8]>) -> Option<u64> {
    checkpoint?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn load_with(path: &Path, checkpoint: Option<&[u8]>) -> io::Result<Unfinished> {
    let (file, length) = open_regular(path)?;
    let header = FILE_HEADER_BYTES as u64;
    let kept_from = kept_from(checkpoint).filter(|from| (header..=length).contains(from)).unwrap_or(header);
    let (mut bytes, is_whole) = read_events(file, kept_from)?;
    // Offsets of the stream before the checkpoint is put into its place.
    let gone = kept_from - header;
    let mut unfinished = Unfinished { bytes: FileBytes::Read(Vec::new()), missing: 0, unusable_tail: None };
    match read_regular(&path.with_extension(layout::TAIL_EXTENSION), tail::FILE_BYTES) {
        Ok(tail) => {
            let missing = append_tail(&mut bytes, &tail, gone);
            // Otherwise earlier damage ends reading anyway.
            unfinished.missing = if is_whole { missing } else { 0 };
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => unfinished.unusable_tail = Some(error.to_string()),
    }
    if let Some((_, events)) = checkpoint.and_then(|checkpoint| checkpoint.split_first_chunk::<8>())
        && kept_from > header
    {
        bytes.splice(FILE_HEADER_BYTES..FILE_HEADER_BYTES, events.iter().copied());
    }
    unfinished.bytes = FileBytes::Read(bytes);
    Ok(unfinished)
}

/// The header of a stream file and its bytes from `from` on, and whether these go to its end: reading stops at the first
/// event without a model letter, as in a file that was made long without content.
fn read_events(mut file: File, from: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    (&mut file).take(FILE_HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(from))?;
    let mut end = bytes.len();
    loop {
        let before = bytes.len();
        (&mut file).take(CHUNK_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.len() - before < CHUNK_BYTES {
            return Ok((bytes, true));
        }
        while let Some(head) = EventHead::read(&bytes, end) {
            if head.code.model() == 0 || head.end - end > MAX_EVENT_BYTES {
                return Ok((bytes, false));
            }
            if head.end > bytes.len() {
                break;
            }
            end = head.end;
        }
    }
}

/// Appends the tail of a stream. `gone` bytes after the header are not in `bytes`. Returns the number of bytes missing
/// between the two.
fn append_tail(bytes: &mut Vec<u8>, tail: &[u8], gone: u64) -> u64 {
    let Some((base, newest)) = tail::active(tail) else { return 0 };
    let (stored, sealed) = tail::sealed(tail);
    let complete = stored.min(base).saturating_sub(gone);
    let missing = complete.saturating_sub(bytes.len() as u64);
    if missing > 0 {
        return missing;
    }
    bytes.truncate(complete as usize);
    sealed.into_iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.extend_from_slice(newest);
    let (target, side) = tail::side(tail);
    let model_at_target =
        target.checked_add(1).and_then(|model| bytes.get(model.checked_sub(gone)? as usize));
    if target == 0 || model_at_target.is_none_or(|model| *model == 0) {
        append_side(bytes, base.saturating_sub(gone) as usize, side);
    }
    0
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

/// The content of a file.
pub(crate) enum FileBytes {
    Read(Vec<u8>),
    Mapped(memmap2::Mmap),
}

impl FileBytes {
    /// Loads `path`. The caller holds that the file does not change any more.
    pub(crate) fn load(path: &Path) -> io::Result<FileBytes> {
        let (file, length) = open_regular(path)?;
        if length >= MIN_MAPPED_BYTES {
            // SAFETY: the map is read-only and private, and the metadata beside the file says that
            // its writer has finished. Should something still shrink it, the kernel ends this
            // process with SIGBUS; it cannot make us read memory of another object.
            return Ok(FileBytes::Mapped(unsafe { memmap2::Mmap::map(&file)? }));
        }
        read_open(file, length, u64::MAX).map(FileBytes::Read)
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
        FileBytes::load(path).map(UnchangingFile)
    }

    /// A file without a name, which no other process can open, and which is complete.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn from_unnamed(file: &File) -> io::Result<UnchangingFile> {
        // SAFETY: the map is read-only; only the caller, which writes no more, could change or shrink the
        // file.
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
