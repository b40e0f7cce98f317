//! Notes on a run: bookmarks with text, in a file beside the trace that can be sent to others.
//!
//! The file has one form everywhere: `NAME.trace.notes.json` beside the trace, the file that the viewer saves, and the one that it
//! loads. A note names its run by the begin and the length of the trace, so notes of another run of the same name are kept, and not
//! shown. Changes are made to the file as it is at that time: two viewers of one trace lose no notes of each other, unless they
//! write within the same milliseconds.

use super::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Mutex;
use taskscope_session::{read_beside, write_beside};

/// The ending of the file beside the trace.
const ENDING: &str = ".notes.json";
/// Longest file of notes, bytes.
pub const MAX_NOTES_BYTES: u64 = 4 << 20;
/// Most notes of a file.
const MAX_NOTES: usize = 10_000;
/// Longest text of a note, characters.
const MAX_TEXT: usize = 4000;
/// Longest address of a view, name of a row, and id, characters.
const MAX_VIEW: usize = 8000;
const MAX_ROW: usize = 400;
const MAX_ID: usize = 64;

/// A file of notes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-notes/1")]
pub struct NoteFile {
    /// Notes, by begin.
    pub notes: Vec<Note>,
}

/// A note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Its name among the notes: a random word.
    pub id: String,
    /// The run: begin of the trace on its own clock and length, nanoseconds, with a full stop between them.
    pub run: String,
    /// Begin, nanoseconds since the start of the trace.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// The thread or queue, in words; empty for all.
    #[serde(default)]
    pub row: String,
    /// The text.
    pub text: String,
    /// The viewer's address from `#` on; empty for none.
    #[serde(default)]
    pub view: String,
}

/// The form of the file, as `NoteFile` writes it.
const SCHEMA: &str = "taskscope-notes/1";

/// The name of its form, which `NoteFile` does not read.
#[derive(Deserialize)]
struct Named {
    schema: Option<String>,
}

impl NoteFile {
    /// Reads a file of notes.
    ///
    /// # Errors
    /// A sentence on the first wrong note, or of the JSON.
    pub fn parse(bytes: &[u8]) -> Result<NoteFile, String> {
        let file: NoteFile =
            serde_json::from_slice(bytes).map_err(|error| format!("these are not notes: {error}"))?;
        // Another version's would lose what this one does not know.
        let named: Named =
            serde_json::from_slice(bytes).map_err(|error| format!("these are not notes: {error}"))?;
        if let Some(other) = named.schema.filter(|schema| schema != SCHEMA) {
            return Err(format!("these notes have another form: {}", crate::format::fit(&other, 40)));
        }
        if file.notes.len() > MAX_NOTES {
            return Err(format!("there are more than {MAX_NOTES} notes"));
        }
        for note in &file.notes {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let longest = [(&note.text, MAX_TEXT), (&note.view, MAX_VIEW), (&note.row, MAX_ROW)];
            if note.id.is_empty() || note.id.len() > MAX_ID || !note.id.chars().all(is_word) {
                return Err("the id of a note is not a word".to_string());
            }
            if note.from_ns > note.to_ns {
                return Err(format!("note {} ends before it begins", note.id));
            }
            // Anything else would lead the page away from its run.
            if !note.view.is_empty() && !note.view.starts_with('#') {
                return Err(format!("note {} has no view of the viewer", note.id));
            }
            if longest.iter().any(|(text, most)| text.chars().count() > *most) {
                return Err(format!("note {} is too long", note.id));
            }
        }
        Ok(file)
    }

    /// Adds notes; of equal ids the new one stays.
    fn merge(&mut self, other: NoteFile) {
        let is_new = |note: &Note| !other.notes.iter().any(|new| new.id == note.id);
        self.notes.retain(is_new);
        self.notes.extend(other.notes);
        self.notes.sort_by(|a, b| (a.from_ns, a.to_ns, &a.id).cmp(&(b.from_ns, b.to_ns, &b.id)));
    }
}

/// Changes of one viewer follow each other.
static CHANGE: Mutex<()> = Mutex::new(());

/// All notes beside a trace.
fn read(root: &Path) -> Result<NoteFile, String> {
    let mut all = NoteFile::default();
    let files = read_beside(root, ENDING, MAX_NOTES_BYTES).map_err(|error| error.to_string())?;
    for (path, bytes) in files {
        all.merge(NoteFile::parse(&bytes).map_err(|why| format!("{}: {why}", path.display()))?);
    }
    Ok(all)
}

fn change(root: &Path, change: impl FnOnce(&mut NoteFile)) -> Result<NoteFile, String> {
    let _one = CHANGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut notes = read(root)?;
    change(&mut notes);
    let bytes = serde_json::to_vec_pretty(&notes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_NOTES_BYTES || notes.notes.len() > MAX_NOTES {
        return Err("the file of notes would be too long".to_string());
    }
    write_beside(root, ENDING, &bytes).map_err(|error| error.to_string())?;
    let kept = read(root)?;
    // A file that cannot be written is read still.
    if kept != notes {
        return Err("a file of notes beside the trace cannot be written: its notes stay".to_string());
    }
    Ok(kept)
}

impl Page {
    /// The notes beside the trace, of this run and of others.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or has no notes.
    pub fn notes(&self) -> Result<NoteFile, String> {
        read(&self.root)
    }

    /// Adds notes to those beside the trace, and returns all; of equal ids the new one stays.
    ///
    /// # Errors
    /// A sentence: the file cannot be read or written.
    pub fn add_notes(&self, notes: NoteFile) -> Result<NoteFile, String> {
        change(&self.root, |all| all.merge(notes))
    }

    /// Removes a note, and returns the others.
    ///
    /// # Errors
    /// Those of [`Page::add_notes`].
    pub fn remove_note(&self, id: &str) -> Result<NoteFile, String> {
        change(&self.root, |all| all.notes.retain(|note| note.id != id))
    }
}
