//! Files of modules that a recorder kept in the trace, since their own may be gone when names are looked up.

use std::path::{Path, PathBuf};
use taskscope_event::{FNV_START, fnv1a};

/// Directories with kept files, each named after the build id of its module.
#[derive(Clone, Debug, Default)]
pub struct KeptModules {
    directories: Vec<PathBuf>,
}

impl KeptModules {
    /// Name of the directory in a trace.
    pub const DIRECTORY: &str = "modules";

    /// The kept files of the trace in a directory.
    pub fn in_trace(directory: &Path) -> KeptModules {
        KeptModules { directories: vec![directory.join(KeptModules::DIRECTORY)] }
    }

    /// The kept files beside profiles.
    pub fn beside_profiles<'a>(files: impl IntoIterator<Item = &'a Path>) -> KeptModules {
        let beside = files.into_iter().filter_map(|file| Some(file.parent()?.join(KeptModules::DIRECTORY)));
        let mut directories: Vec<PathBuf> = beside.collect();
        directories.sort();
        directories.dedup();
        KeptModules { directories }
    }

    /// Larger maps of code that was generated at run time are neither kept nor read.
    pub const MAX_MAP_BYTES: u64 = 64 << 20;
    /// More maps are not read.
    const MAX_MAPS: usize = 256;

    /// The content of the kept maps of code that was generated at run time, which compilers wrote. Links are not followed.
    pub(crate) fn code_maps(&self) -> impl Iterator<Item = Vec<u8>> {
        self.maps("perf-", ".map")
    }

    /// The content of the kept dumps of such code (jitdump).
    pub(crate) fn code_dumps(&self) -> impl Iterator<Item = Vec<u8>> {
        self.maps("jit-", ".dump")
    }

    /// The content of the lists of executable memory that held code of no file when processes ended.
    pub(crate) fn generated_code(&self) -> impl Iterator<Item = Vec<u8>> {
        self.maps("generated-", ".map")
    }

    /// The content of the descriptions of Python's code objects.
    pub(crate) fn python_code(&self) -> impl Iterator<Item = Vec<u8>> {
        self.maps("python-", ".map")
    }

    /// The content of the maps with names that begin and end with these.
    fn maps(&self, begin: &str, end: &str) -> impl Iterator<Item = Vec<u8>> {
        let entries = self.directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok());
        let mut maps: Vec<PathBuf> = (entries.flatten().flatten())
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let is_small = |found: std::fs::Metadata| found.len() <= KeptModules::MAX_MAP_BYTES;
                name.starts_with(begin)
                    && name.ends_with(end)
                    && entry.file_type().is_ok_and(|kind| kind.is_file())
                    && entry.metadata().is_ok_and(is_small)
            })
            .map(|entry| entry.path())
            .take(KeptModules::MAX_MAPS)
            .collect();
        maps.sort();
        maps.into_iter().filter_map(|map| std::fs::read(map).ok())
    }

    /// The kept file of a module. Links are not followed.
    pub(crate) fn find(&self, build_id: &str) -> Option<PathBuf> {
        let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'~';
        if build_id.is_empty() || build_id.len() > 128 || !build_id.bytes().all(is_digit) {
            return None;
        }
        let files = self.directories.iter().map(|directory| directory.join(build_id));
        let is_file = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        files.into_iter().find(is_file)
    }
}

/// Bytes of a file's start that its fingerprint is of.
const FINGERPRINT_BYTES: usize = 4096;

/// The replacement for the build id of a file without one: `~` and the FNV-1a hash of its first page, which holds its
/// headers.
pub(crate) fn fingerprint(file: &[u8]) -> String {
    let page = &file[..file.len().min(FINGERPRINT_BYTES)];
    format!("~{:016x}", fnv1a(FNV_START, page))
}
