//! Debug information that was stripped from a file: found under its build id, as distributions keep it, or by the
//! file's link (`objcopy --add-gnu-debuglink`; GDB manual, "Debugging Information in Separate Files").

use crate::object_file::{hexadecimal, read_whole};
use object::Object;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directory of distributions.
const ROOT: &str = "/usr/lib/debug";

/// The content of the file with the debug information of `file`, at `path`.
pub(crate) fn debug_file_of(path: &Path, file: &object::File<'_>) -> Option<Vec<u8>> {
    let id = file.build_id().ok().flatten();
    let by_id = id.and_then(|id| {
        let id = hexadecimal(id);
        let (directory, rest) = id.split_at_checked(2)?;
        Some(PathBuf::from(format!("{ROOT}/.build-id/{directory}/{rest}.debug")))
    });
    let link = file.gnu_debuglink().ok().flatten();
    let linked = link.map(|(name, _)| linked_places(path, Path::new(OsStr::from_bytes(name))));
    by_id.into_iter().chain(linked.into_iter().flatten()).find_map(|place| {
        let bytes = read_whole(&place).ok()?;
        let debug = object::File::parse(&*bytes).ok()?;
        let is_it = match (id, debug.build_id().ok().flatten()) {
            (Some(id), Some(found)) => id == found,
            _ => link.is_some_and(|(_, sum)| crc32fast::hash(&bytes) == sum),
        };
        is_it.then_some(bytes)
    })
}

/// Candidates beside the file, in `.debug` there, and under the common root. A link is a name, not a path.
fn linked_places(path: &Path, link: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(name)) = (path.parent(), link.file_name()) else { return Vec::new() };
    let under_root = Path::new(ROOT).join(directory.strip_prefix("/").unwrap_or(directory));
    [directory.to_path_buf(), directory.join(".debug"), under_root].map(|place| place.join(name)).into()
}
