//! `stream.json`, written without a JSON library so that traced programs load none.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskscope_event::{StreamFile, layout};
use taskscope_files::{NewFile, create_directory_below, open_regular, overwrite_regular};

use crate::limits::check_file_size;

/// Makes the text of a thread's `stream.json`, for a caller that has metadata of its own.
pub trait Describe: Send + Sync {
    /// The whole text. `own` is to be its member `taskscope`.
    fn stream_json(&self, about: &About<'_>, own: Json) -> String;
}

/// The recorder's metadata on a thread's stream.
#[derive(Debug)]
pub struct About<'a> {
    /// The process's id in the trace.
    pub pid: i64,
    /// The thread's id in the trace.
    pub tid: i64,
    /// The loom's name.
    pub loom: &'a str,
    /// Whether the stream is whole: the recorder closes it now.
    pub finished: bool,
}

/// The place of finished streams, if it differs from the place of writing.
#[derive(Clone)]
pub(crate) struct FinalPlace {
    /// The trace directory.
    pub trace: PathBuf,
    /// Directory below it.
    pub below: PathBuf,
}

impl FinalPlace {
    pub fn directory(&self) -> PathBuf {
        self.trace.join(&self.below)
    }
}

/// Owner and directory of a stream.
#[derive(Clone)]
pub(crate) struct ThreadIdentity {
    pub directory: PathBuf,
    /// Place of the finished stream.
    pub final_place: Option<FinalPlace>,
    pub os_tid: i32,
    /// In the trace; unique in the process.
    pub tid: i64,
    /// Whether the thread still lived when recording of its process ended, on another thread.
    pub ended_with_process: bool,
    pub describe: Option<Arc<dyn Describe>>,
}

impl ThreadIdentity {
    /// Copies a finished stream to its final place; on failure it stays in its directory.
    pub fn move_to_final_directory(&self) {
        let Some(place) = &self.final_place else { return };
        let copied = create_directory_below(&place.trace, &place.below).and_then(|to| {
            // The metadata is written last: it marks the stream as complete.
            let files = StreamFile::ALL.map(|file| (file.name(), file != StreamFile::Standard));
            for (name, may_lack) in files.into_iter().chain([(layout::STREAM_METADATA, false)]) {
                match copy(&self.directory.join(name), &to.join(name)) {
                    Err(why) if may_lack && why.kind() == io::ErrorKind::NotFound => {}
                    other => other?,
                }
            }
            Ok(())
        });
        match copied {
            Ok(()) => drop(std::fs::remove_dir_all(&self.directory)),
            Err(why) => eprintln!(
                "taskscope: cannot copy a stream to {}\n  why:  {why}\n  kept: {}",
                place.directory().display(),
                self.directory.display()
            ),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, length) = open_regular(from)?;
    check_file_size(length)?;
    let mut to = NewFile::create(to)?;
    io::copy(&mut from, &mut to)?;
    to.commit()
}

const LOSS_KEY: &str = "\"lost_events\":";
/// Room for every count.
pub(crate) const LOSS_DIGITS: usize = 20;

/// Replaces the count of lost events in a `stream.json`, in place: it works on a full disk.
pub(crate) fn store_loss(directory: &Path, lost: u64) {
    let path = directory.join(layout::STREAM_METADATA);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    // The recorder's own member comes before everything that the program has named.
    let Some(found) = text.find(LOSS_KEY) else { return };
    // Some serializers put a blank there.
    let at = found + LOSS_KEY.len();
    let digits = format!("{lost:>LOSS_DIGITS$}");
    if text[at..].bytes().take_while(|byte| *byte == b' ' || byte.is_ascii_digit()).count() >= LOSS_DIGITS
        && let Ok(file) = overwrite_regular(&path)
    {
        let _ = file.write_all_at(digits.as_bytes(), at as u64);
    }
}

/// A member that is replaced in place: padded, so that every count fits.
pub(crate) fn loss_member(lost: u64) -> Json {
    Json(format!("{lost:>LOSS_DIGITS$}"))
}

/// Builds JSON text. Keys and strings are escaped; bytes that are not UTF-8 must be made text first.
#[derive(Clone, Debug, Default)]
pub struct Json(String);

impl Json {
    /// A string value.
    pub fn string(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{8}' => out.push_str("\\b"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\u{c}' => out.push_str("\\f"),
                '\r' => out.push_str("\\r"),
                c if (c as u32) < 0x20 => {
                    let _ = write!(out, "\\u{:04x}", c as u32);
                }
                c => out.push(c),
            }
        }
        out.push('"');
        Json(out)
    }

    /// `true` or `false`.
    pub fn boolean(value: bool) -> Self {
        Json(value.to_string())
    }

    /// An integer value.
    pub fn integer(value: impl Into<i128>) -> Self {
        Json(value.into().to_string())
    }

    /// A finite number with a fraction.
    pub fn float(value: f64) -> Self {
        Json(format!("{value:?}"))
    }

    /// An object of these members, in this order.
    pub fn object<K: AsRef<str>>(members: impl IntoIterator<Item = (K, Json)>) -> Self {
        let members: Vec<_> = members
            .into_iter()
            .map(|(key, value)| format!("{}:{}", Json::string(key.as_ref()).0, value.0))
            .collect();
        Json(format!("{{{}}}", members.join(",")))
    }

    /// An array.
    pub fn array(items: impl IntoIterator<Item = Json>) -> Self {
        let items: Vec<_> = items.into_iter().map(|item| item.0).collect();
        Json(format!("[{}]", items.join(",")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A write within one page is atomic, whenever the process is killed.
const PAGE_BYTES: usize = 4096;

/// Puts `text` (one JSON value and a line end) into `path`: a process that is killed leaves the old
/// text or the new one.
///
/// A second text that fits the first one's page is written over it: it needs no new block, so it
/// works on a full disk, and costs a tenth of a rename, which makes file systems write the file out.
pub(crate) fn replace_file(text: &str, path: &Path) -> io::Result<()> {
    if text.len() <= PAGE_BYTES
        && let Ok(file) = overwrite_regular(path)
        && let Ok(present) = file.metadata()
        && present.len() > 0
        && present.len() <= PAGE_BYTES as u64
    {
        let padding = (present.len() as usize).saturating_sub(text.len());
        let padded = format!("{}{:padding$}\n", text.trim_end(), "");
        return check_and(padded.len(), || file.write_all_at(padded.as_bytes(), 0));
    }
    check_file_size(text.len() as u64)?;
    let mut file = NewFile::create(path)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

/// Replaces the end of a `stream.json`, from byte `at` on, by `text`, which is at least as long as that end
/// without its blanks. Fails if both are not within one page.
pub(crate) fn replace_end(directory: &Path, at: u64, text: &str) -> io::Result<()> {
    let end = at + text.len() as u64;
    if at / PAGE_BYTES as u64 != end.saturating_sub(1) / PAGE_BYTES as u64 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = overwrite_regular(&directory.join(layout::STREAM_METADATA))?;
    check_and(end as usize, || file.write_all_at(text.as_bytes(), at))
}

fn check_and(bytes: usize, write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    check_file_size(bytes as u64)?;
    write()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let json =
            Json::object([("a\"", Json::string("b\\\n")), ("n", Json::integer(-3)), ("l", Json::array([]))]);
        assert_eq!(json.0, r#"{"a\"":"b\\\n","n":-3,"l":[]}"#);
    }

    #[test]
    fn links_in_the_place_of_a_file_keep_their_content() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path();
        let (victim, json) = (directory.join("victim"), directory.join(layout::STREAM_METADATA));
        let text = r#"{"taskscope":{"lost_events":                    0}}"#;
        std::fs::write(&victim, text).unwrap();
        let unchanged = || assert_eq!(std::fs::read_to_string(&victim).unwrap(), text);

        std::os::unix::fs::symlink(&victim, &json).unwrap();
        assert!(replace_file("{}\n", &json).is_err());
        assert!(replace_end(directory, 2, "x").is_err());
        store_loss(directory, 7);
        unchanged();
        assert!(json.is_symlink());

        std::fs::remove_file(&json).unwrap();
        std::fs::hard_link(&victim, &json).unwrap();
        assert!(replace_end(directory, 2, "x").is_err());
        store_loss(directory, 7);
        unchanged();
        replace_file("{}\n", &json).unwrap();
        unchanged();
        assert_eq!(std::fs::read_to_string(&json).unwrap(), "{}\n");
    }
}
