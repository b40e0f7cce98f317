//! Data computed from a trace, kept in a file, so that opening it again is immediate.
//!
//! The file is beside the trace (`NAME.trace.cache`), or, if that directory is not writable, below
//! `XDG_CACHE_HOME`. It is used only if its [`Key`] fits: this version of taskscope, and for every file of
//! the trace its path, size, time, inode and hashes of its first and last 64 KiB. It can be deleted at
//! any time. It is written under another name and renamed, so a reader never sees half of it. Data that is
//! computed later is in separate files beside it (`NAME.trace.cache.PART`).
//!
//! ```text
//! 8 bytes   "tskcache"
//! 8 bytes   length of the header, little-endian
//! 8 bytes   XXH3 of the header, as all hashes
//! header    JSON: [`Header`]
//! blocks    columns as this machine writes them, each at a multiple of 8
//! ```

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::hash::Hasher;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use taskscope_event::layout;
use taskscope_execution::SharedBytes;
use taskscope_files::{NewFile, open_regular, write_file};
use taskscope_trace::UnchangingFile;
use xxhash_rust::xxh3::{Xxh3Default as Xxh3, xxh3_64};

const MAGIC: &[u8; 8] = b"tskcache";
/// Version of the form. Raise it when stored data changes.
const FORM: u32 = 25;
/// Bytes that are hashed at either end of a file.
const END_BYTES: u64 = 64 * 1024;

/// State of a trace at the time of a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The key of a trace directory as it is now; `None` while it is being written, or if it cannot be read.
    pub fn of(root: &Path) -> Option<Key> {
        let mut files = Vec::new();
        list(root, &mut files).ok()?;
        files.sort();
        let unfinished =
            files.iter().any(|file| file.extension().is_some_and(|ending| ending == layout::TAIL_EXTENSION));
        if files.is_empty() || unfinished {
            return None;
        }
        let hashes: Vec<u64> =
            files.par_iter().map(|file| file_hash(root, file).ok()).collect::<Option<_>>()?;
        let mut all = Xxh3::new();
        hashes.iter().for_each(|hash| all.write_u64(*hash));
        Some(Key(format!("{} {FORM} {} {:016x}", env!("CARGO_PKG_VERSION"), files.len(), all.finish())))
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Path below the root, size, time, inode, and both ends.
fn file_hash(root: &Path, path: &Path) -> io::Result<u64> {
    let (mut file, _) = open_regular(path)?;
    let metadata = file.metadata()?;
    let mut hash = Xxh3::new();
    hash.write(path.strip_prefix(root).unwrap_or(path).as_os_str().as_encoded_bytes());
    hash.write_u64(metadata.len());
    hash.write_i64(metadata.mtime());
    hash.write_i64(metadata.mtime_nsec());
    hash.write_u64(metadata.ino());
    let mut bytes = Vec::new();
    (&mut file).take(END_BYTES).read_to_end(&mut bytes)?;
    if metadata.len() > END_BYTES {
        file.seek(SeekFrom::Start(metadata.len() - END_BYTES))?;
        file.take(END_BYTES).read_to_end(&mut bytes)?;
    }
    hash.write(&bytes);
    Ok(hash.finish())
}

/// Possible places of a trace's cache, the better one first.
pub fn places(root: &Path) -> Vec<PathBuf> {
    places_of(root, "")
}

/// Possible places of a part of the cache; its name comes after the ending.
fn places_of(root: &Path, part: &str) -> Vec<PathBuf> {
    match part {
        "" => places_beside(root, ".cache"),
        part => places_beside(root, &format!(".cache.{part}")),
    }
}

/// Possible places of a file with this ending that belongs to a trace, the better one first.
pub(crate) fn places_beside(root: &Path, ending: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let Ok(root) = root.canonicalize() else { return places };
    if let Some(name) = root.file_name() {
        let mut name = name.to_owned();
        name.push(ending);
        places.push(root.with_file_name(name));
    }
    if let Some(directory) = directory() {
        let hash = xxh3_64(root.as_os_str().as_encoded_bytes());
        places.push(directory.join(format!("{hash:016x}{ending}")));
    }
    places
}

/// Directory of caches that cannot be beside their traces.
pub(crate) fn directory() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(cache.or_else(home)?.join("taskscope"))
}

/// The header of a cache file.
#[derive(Serialize, Deserialize)]
struct Header<K, H> {
    /// The key of the trace.
    key: K,
    /// Length of the file.
    bytes: usize,
    /// The blocks: place, length, and hash of both ends.
    blocks: Vec<(usize, usize, u64)>,
    /// The writer's own part.
    more: H,
}

/// A cache that fits its trace, with a header of the type that its writer gave it.
pub struct Cache<H> {
    bytes: SharedBytes,
    blocks: Vec<Range<usize>>,
    /// The writer's header.
    pub header: H,
}

impl<H: DeserializeOwned> Cache<H> {
    /// The cache of a trace, if there is one that fits.
    pub fn open(root: &Path, key: &Key) -> Option<Cache<H>> {
        places(root).iter().find_map(|place| Cache::load(place, key))
    }

    /// Opens a part that was saved separately.
    pub fn open_part(root: &Path, part: &str, key: &Key) -> Option<Cache<H>> {
        places_of(root, part).iter().find_map(|place| Cache::load(place, key))
    }

    /// The cache in this file, if it is whole and fits.
    pub fn load(path: &Path, key: &Key) -> Option<Cache<H>> {
        let file: SharedBytes = Arc::new(UnchangingFile::open(path).ok()?);
        let bytes = (*file).as_ref();
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        if bytes.get(..8)? != MAGIC {
            return None;
        }
        let length = usize::try_from(word(8)?).ok()?;
        let text = bytes.get(24..24_usize.checked_add(length)?)?;
        if xxh3_64(text) != word(16)? {
            return None;
        }
        // Other versions have other headers.
        let header: Header<String, H> = serde_json::from_slice(text).ok()?;
        if header.key != key.0 || header.bytes != bytes.len() {
            return None;
        }
        let sound = |(start, length, hash): &(usize, usize, u64)| {
            let range = *start..start.checked_add(*length)?;
            (ends_hash(bytes.get(range.clone())?) == *hash).then_some(range)
        };
        // Those of thousands of threads are short: all of them are read.
        let blocks = header.blocks.par_iter().with_min_len(64).map(sound);
        let blocks = blocks.collect::<Option<_>>()?;
        Some(Cache { bytes: file, blocks, header: header.more })
    }
}

impl<H> Cache<H> {
    /// All bytes, for columns in them.
    pub fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }

    /// Positions of the blocks, in the order in which they were given to [`save`].
    pub fn blocks(&self) -> &[Range<usize>] {
        &self.blocks
    }
}

/// Writes a cache for a trace, at the first place that can be written. Gives up when `stop` is set.
///
/// # Errors
/// If it can be written nowhere.
pub fn save(
    root: &Path,
    key: &Key,
    header: &impl Serialize,
    blocks: &[&[u8]],
    stop: &AtomicBool,
) -> io::Result<PathBuf> {
    save_part(root, "", key, header, blocks, stop)
}

/// Saves a part in its own file.
///
/// # Errors
/// If it can be written nowhere.
pub fn save_part(
    root: &Path,
    part: &str,
    key: &Key,
    header: &impl Serialize,
    blocks: &[&[u8]],
    stop: &AtomicBool,
) -> io::Result<PathBuf> {
    let header = serde_json::value::to_raw_value(header)?;
    let mut last = io::Error::other("there is no place for a cache");
    for place in places_of(root, part) {
        match write(&place, key, &header, blocks, stop) {
            Ok(()) => return Ok(place),
            Err(error) => last = error,
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Err(last)
}

fn write(place: &Path, key: &Key, more: &RawValue, blocks: &[&[u8]], stop: &AtomicBool) -> io::Result<()> {
    if let Some(directory) = place.parent() {
        std::fs::create_dir_all(directory)?;
    }
    write_file(place, |out| write_all(out, key, more, blocks, stop))
}

fn write_all(
    out: &mut BufWriter<NewFile>,
    key: &Key,
    more: &RawValue,
    blocks: &[&[u8]],
    stop: &AtomicBool,
) -> io::Result<()> {
    let up = |at: usize| at.next_multiple_of(8);
    // The header holds places that depend on its own length: leave room for the longest numbers.
    let room = up(24 + 256 + key.0.len() + more.get().len() + blocks.len() * 66);
    let mut at = room;
    let mut rows = Vec::with_capacity(blocks.len());
    for block in blocks {
        rows.push((at, block.len(), ends_hash(block)));
        at = up(at + block.len());
    }
    let header = serde_json::to_string(&Header { key: &key.0, bytes: at, blocks: rows, more })?;
    out.write_all(MAGIC)?;
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&xxh3_64(header.as_bytes()).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut written = 24 + header.len();
    let pad = |out: &mut BufWriter<NewFile>, written: &mut usize, to: usize| -> io::Result<()> {
        let zeros = to.checked_sub(*written).ok_or_else(|| io::Error::other("the header is too long"))?;
        *written = to;
        io::copy(&mut io::repeat(0).take(zeros as u64), out).map(|_| ())
    };
    pad(out, &mut written, room)?;
    for block in blocks {
        for part in block.chunks(8 << 20) {
            if stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            out.write_all(part)?;
        }
        written += block.len();
        let to = up(written);
        pad(out, &mut written, to)?;
    }
    Ok(())
}

/// Hash of a block; for large blocks only of the ends, enough to notice a truncated or foreign file.
fn ends_hash(bytes: &[u8]) -> u64 {
    let end = END_BYTES as usize;
    if bytes.len() <= 2 * end {
        return xxh3_64(bytes);
    }
    xxh3_64(&bytes[..end]) ^ xxh3_64(&bytes[bytes.len() - end..]).rotate_left(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_used_only_for_the_unchanged_trace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("x.trace");
        std::fs::create_dir_all(root.join("loom.a/proc.1")).unwrap();
        let stream = root.join("loom.a/proc.1/stream.obs");
        std::fs::write(&stream, vec![7_u8; 200_000]).unwrap();
        let key = Key::of(&root).unwrap();
        assert_eq!(Key::of(&root).unwrap(), key);
        let big: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        let never = AtomicBool::new(false);
        let more = vec![(1_u64, "one".to_owned())];
        let place = save(&root, &key, &more, &[b"abc", &big, b""], &never).unwrap();
        assert_eq!(place, folder.path().canonicalize().unwrap().join("x.trace.cache"));
        let cache: Cache<Vec<(u64, String)>> = Cache::open(&root, &key).unwrap();
        assert_eq!(cache.header, more);
        assert!(Cache::<Vec<String>>::open(&root, &key).is_none(), "of another form");
        let blocks: Vec<&[u8]> =
            cache.blocks().iter().map(|r| &(**cache.bytes()).as_ref()[r.clone()]).collect();
        assert_eq!(blocks, [&b"abc"[..], &big, b""]);
        // Changed in the middle only: size stays, but not the time.
        let mut bytes = vec![7_u8; 200_000];
        bytes[100_000] = 8;
        std::fs::write(&stream, bytes).unwrap();
        assert_ne!(Key::of(&root).unwrap(), key);
        assert!(Cache::<Vec<(u64, String)>>::open(&root, &Key::of(&root).unwrap()).is_none());
        // Another process writes it.
        std::fs::write(stream.with_extension("tail"), b"x").unwrap();
        assert!(Key::of(&root).is_none());
    }

    #[test]
    fn a_damaged_cache_is_no_cache() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("y.trace");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("stream.obs"), b"1").unwrap();
        let key = Key::of(&root).unwrap();
        let load = |place: &Path| Cache::<()>::load(place, &key);
        let place = save(&root, &key, &(), &[&[5; 100]], &AtomicBool::new(false)).unwrap();
        let whole = std::fs::read(&place).unwrap();
        assert!(load(&place).is_some());
        for cut in [0, 7, 20, 100, whole.len() - 1] {
            std::fs::write(&place, &whole[..cut]).unwrap();
            assert!(load(&place).is_none(), "cut at {cut}");
        }
        for at in [0, 9, 17, 40, whole.len() - 20] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            std::fs::write(&place, bytes).unwrap();
            assert!(load(&place).is_none(), "changed at {at}");
        }
        assert!(save(&root, &key, &(), &[&[5; 100]], &AtomicBool::new(true)).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no part is left");
    }
}
