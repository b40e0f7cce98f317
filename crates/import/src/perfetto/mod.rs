//! Perfetto's protocol buffers: track events of its SDK, of Chrome, of `taskscope export --to perfetto`.
//!
//! ```text
//!  bytes ──▶ wire: fields with their places ──▶ packets: one at a time, with the state of its sequence ──▶ Run
//! ```
//!
//! | in the file | in the run |
//! | --- | --- |
//! | descriptors of threads and processes, and of tracks below them | threads, processes; a track of its own is a thread of its process |
//! | begins and ends of slices | spans, tasks by name, with file and line |
//! | flows | flows: the slice that has a flow waited for the one before it with the same flow |
//! | instants | points |
//!
//! All others are counted as lost. Times are those of a clock in nanoseconds; clocks of a sequence (from number 64 on) are
//! followed by their snapshots. Field numbers are those of Perfetto's published definitions.

mod packets;
mod wire;

use crate::spans::{Run, find_rows_beside};
use crate::{ImportError, ImportErrors};
use packets::{PACKET, Packets};

/// Whether the bytes look like a trace of Perfetto: a whole packet, and the begin of another one or the end.
pub fn is_perfetto(bytes: &[u8]) -> bool {
    let mut cursor = wire::Cursor::new(bytes, 0);
    let begins_packet = |cursor: &wire::Cursor<'_>| bytes.get(cursor.at()) == Some(&0x0a);
    begins_packet(&cursor) && cursor.next_field().is_ok_and(|field| field.is_some()) && {
        let mut packet = wire::Cursor::new(bytes, 0);
        let whole = packet.next_field().ok().flatten().is_some_and(|field| {
            field.bytes().is_some_and(|inner| wire::Cursor::new(inner, 0).all(|field| field.is_ok()))
        });
        whole && (cursor.is_at_end() || begins_packet(&cursor))
    }
}

/// Reads a trace of Perfetto.
///
/// # Errors
/// The byte and a sentence: a truncated file, a malformed field, a time beyond the clock.
pub fn read_perfetto(bytes: &[u8]) -> Result<Run, ImportErrors> {
    let failed = |(at, text): wire::Error| {
        ImportErrors(vec![ImportError { file: String::new(), line: 0, field: format!("byte {at}"), text }])
    };
    let mut packets = Packets::default();
    let mut cursor = wire::Cursor::new(bytes, 0);
    while let Some(field) = cursor.next_field().map_err(failed)? {
        if field.number == PACKET
            && let Some(packet) = field.bytes()
        {
            packets.take(packet, field.at).map_err(failed)?;
        }
    }
    let mut run = packets.finish();
    find_rows_beside(&mut run);
    if run.threads.is_empty() {
        return Err(failed((0, "it has no slice or instant of a track".to_owned())));
    }
    Ok(run)
}
