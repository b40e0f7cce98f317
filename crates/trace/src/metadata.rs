//! Files with metadata.

use serde_json::Value;
use std::path::Path;
use taskscope_event::layout;
use taskscope_files::read_regular;
use taskscope_metadata::without_comments;

/// Larger metadata files are refused: a JSON tree takes many times the room of its text. That of a loom
/// with thousands of CPUs has less than one megabyte.
pub(crate) const MAX_METADATA_BYTES: u64 = 8 << 20;

/// The whole document of the stream in a directory; null if there is none.
pub(crate) fn read_whole(directory: &Path) -> Value {
    let bytes =
        read_regular(&directory.join(layout::STREAM_METADATA), MAX_METADATA_BYTES).unwrap_or_default();
    serde_json::from_str(&without_comments(&String::from_utf8_lossy(&bytes))).unwrap_or_default()
}
