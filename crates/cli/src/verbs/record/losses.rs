//! Losses of the recorders, from their metadata.

use serde_json::Value;
use std::fs;
use std::path::Path;
use taskscope_event::layout;
use taskscope_files::read_regular;
use taskscope_view::format::counted;

/// Longest `stream.json` that is read.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// Sums over all streams of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that were not stored.
    pub events: u64,
    /// Threads without files, as these could not be created.
    pub threads: u64,
}

impl Losses {
    /// Losses of the trace in `directory`; unreadable files count nothing.
    pub fn of(directory: &Path) -> Losses {
        let mut losses = Losses::default();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let inner = Losses::of(&entry.path());
                losses.events += inner.events;
                // Every stream has the threads of its process so far.
                if entry.file_name().as_encoded_bytes().starts_with(layout::THREAD_PREFIX.as_bytes()) {
                    losses.threads = losses.threads.max(inner.threads);
                } else {
                    losses.threads += inner.threads;
                }
            } else if entry.file_name() == layout::STREAM_METADATA {
                let own = read_regular(&entry.path(), MAX_METADATA_BYTES)
                    .ok()
                    .and_then(|text| serde_json::from_slice(&text).ok());
                let own: Value = own.unwrap_or_default();
                let count = |name: &str| own["taskscope"][name].as_u64().unwrap_or(0);
                losses.events += count("lost_events");
                losses.threads = losses.threads.max(count("unrecorded_threads"));
            }
        }
        losses
    }

    /// One line, when there is something to say.
    pub fn sentence(&self) -> Option<String> {
        let events = (self.events > 0).then(|| counted(self.events, "event"));
        let threads = (self.threads > 0).then(|| counted(self.threads, "whole thread"));
        let parts: Vec<String> = events.into_iter().chain(threads).collect();
        (!parts.is_empty()).then(|| {
            format!("taskscope: {} could not be recorded (disk, limits, or --max-size)", parts.join(" and "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_all_streams_are_added() {
        let here = tempfile::tempdir().unwrap();
        for (thread, text) in [
            ("loom.a.1/proc.1/thread.1", r#"{"taskscope":{"lost_events":   3,"unrecorded_threads":1}}"#),
            ("loom.a.1/proc.1/thread.2", r#"{"taskscope":{"lost_events":4,"unrecorded_threads":2}}"#),
            ("loom.a.1/proc.1/thread.3", "no JSON"),
            ("loom.a.2/proc.2/thread.5", r#"{"taskscope":{"unrecorded_threads":3}}"#),
        ] {
            let stream = here.path().join(thread);
            fs::create_dir_all(&stream).unwrap();
            fs::write(stream.join("stream.json"), text).unwrap();
        }
        let losses = Losses::of(here.path());
        assert_eq!(losses, Losses { events: 7, threads: 5 });
        assert!(losses.sentence().unwrap().contains("7 events and 5 whole threads"));
        assert_eq!(Losses::default().sentence(), None);
    }
}
