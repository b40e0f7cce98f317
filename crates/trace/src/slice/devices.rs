//! The device queues of a slice: those of its processes, with the operations that the slice needs, the calls of the range and
//! those that submitted these operations.
//!
//! Which operations are needed depends on the map of the device's clock, and is the caller's choice. Lost, late and further records are
//! kept, as are counts, which are of the whole queue.

use super::bytes::{first_u32, push};
use super::request::{KeptOperation, Slice};
use crate::Event;
use crate::location::Location;
use crate::rewrite::replace_file;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::framing::file_header;
use taskscope_event::models::device;
use taskscope_event::{StreamFile, layout};
use taskscope_files::{create_directory_below, open_regular};

/// Whether a location has operations of a device queue, or calls that concern them, of a process that the slice has.
pub(super) fn is_device(location: &Location, has: impl Fn(i64) -> bool) -> bool {
    let metadata = &location.metadata;
    let is_device = matches!(metadata["kind"].as_str(), Some("device-queue" | "device-calls"));
    is_device && metadata["pid"].as_i64().is_none_or(has)
}

/// The part of the device queues that a slice keeps.
pub(super) struct DevicePart<'a> {
    clocks: (i64, i64),
    operations: &'a FxHashSet<KeptOperation>,
    /// The kept operations as calls name them: process, number of the queue, number of the operation.
    submitted: FxHashSet<(i64, u64, u64)>,
}

impl<'a> DevicePart<'a> {
    /// The part of these locations; `None` if they are kept whole.
    pub fn of(slice: &'a Slice, locations: &[&Location]) -> Option<Self> {
        let (clocks, operations) = slice.clocks.zip(slice.operations.as_ref())?;
        let mut submitted = FxHashSet::default();
        for location in locations {
            let (pid, number) = (&location.metadata["pid"], &location.metadata["number"]);
            let Some(pid) = pid.as_i64() else { continue };
            let kept = location.events().filter(|event| event.code == device::OPERATION);
            let kept = kept.filter_map(|event| key(location, &event)).filter(|key| operations.contains(key));
            submitted.extend(kept.map(|(_, [seq, ..])| (pid, number.as_u64().unwrap_or(0), seq)));
        }
        Some(DevicePart { clocks, operations, submitted })
    }

    /// The kept events of a location, as a file.
    fn file_of(&self, location: &Location) -> Vec<u8> {
        let pid = location.metadata["pid"].as_i64();
        let mut kept: Vec<(Event<'_>, bool)> = location.events().map(|event| (event, false)).collect();
        let (mut names, mut numbers) = (FxHashSet::default(), FxHashSet::default());
        let mut is_last_kept = false;
        for place in 0..kept.len() {
            let event = kept[place].0;
            let is_kept = match event.code {
                device::OPERATION => {
                    is_last_kept = key(location, &event).is_none_or(|key| self.operations.contains(&key));
                    is_last_kept
                }
                device::COLUMNS => is_last_kept,
                device::CALL => {
                    let operation = kept.get(place + 1).map(|(next, _)| next);
                    let operation = operation.filter(|next| next.code == device::CALL_OPERATION);
                    let submits = operation.zip(pid).is_some_and(|(next, pid)| {
                        let named = word(next.payload, 0).zip(word(next.payload, 8));
                        named.is_some_and(|(queue, seq)| self.submitted.contains(&(pid, queue, seq)))
                    });
                    let end = word(event.payload, 0).map_or(event.clock_ns, u64::cast_signed);
                    is_last_kept = submits || event.clock_ns < self.clocks.1 && end >= self.clocks.0;
                    is_last_kept
                }
                device::CALL_OPERATION => is_last_kept,
                device::NAME | device::NUMBER => false,
                _ => true,
            };
            kept[place].1 = is_kept;
            if is_kept {
                names.extend(name_of(&event));
                if event.code != device::CALL {
                    numbers.extend(word(event.payload, 0));
                }
            }
        }
        // Vendors' values come before or after the records that they belong to.
        for (event, is_kept) in kept.iter_mut().filter(|(event, _)| event.code == device::NUMBER) {
            *is_kept = word(event.payload, 0).is_none_or(|seq| numbers.contains(&seq));
            names.extend(name_of(event).filter(|_| *is_kept));
        }
        for (event, is_kept) in kept.iter_mut().filter(|(event, _)| event.code == device::NAME) {
            *is_kept = names.contains(&first_u32(event.payload));
        }
        let mut bytes = file_header().to_vec();
        for (event, _) in kept.iter().filter(|(_, is_kept)| *is_kept) {
            push(&mut bytes, event.clock_ns, event.code, event.is_jumbo, event.payload);
        }
        bytes
    }
}

/// Writes a location to the same place below `output`: its part, or all of it.
pub(super) fn write(
    location: &Location,
    part: Option<&DevicePart<'_>>,
    root: &Path,
    output: &Path,
) -> io::Result<()> {
    let Some(part) = part.filter(|_| location.event_count() > 0) else { return copy(location, root, output) };
    let below = location.directory.strip_prefix(root).unwrap_or(Path::new(&location.relative_path));
    let directory = output.join(below);
    create_directory_below(output, below)?;
    let bytes = part.file_of(location);
    let mut metadata = location.metadata.clone();
    if metadata["kind"] == "device-queue"
        && metadata["account"].as_object().is_none_or(|counts| counts.is_empty())
    {
        metadata["account"] = counts(location);
    }
    let metadata = format!("{metadata:#}\n");
    let files = [(StreamFile::Own.name(), &bytes[..]), (layout::LOCATION_METADATA, metadata.as_bytes())];
    for (name, bytes) in files {
        let path = directory.join(name);
        replace_file(&path, |out| out.write_all(bytes))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

/// The counts of a queue whose recorder could not write them, as readers of the whole take them from its records.
fn counts(location: &Location) -> Value {
    let (mut delivered, mut lost, mut duplicates, mut lanes) = (0_u64, 0_u64, 0_u64, 0_u64);
    for event in location.events() {
        match event.code {
            device::OPERATION => {
                delivered += 1;
                let lane = event.payload.get(LANE..).and_then(|rest| rest.first_chunk());
                let lane =
                    lane.map(|bytes| u32::from_le_bytes(*bytes)).filter(|lane| *lane != device::NO_LANE);
                lanes = lanes.max(lane.map_or(0, |lane| u64::from(lane) + 1));
            }
            device::LOST => lost += 1,
            device::DUPLICATE => duplicates += 1,
            _ => {}
        }
    }
    json!({
        "appended": delivered + lost, "delivered": delivered, "lost": lost, "duplicates": duplicates, "lanes": lanes,
    })
}

/// Bytes before the lane of an operation.
const LANE: usize = 72;
/// Bytes before the name of an operation.
const NAME_OF_OPERATION: usize = 80;

/// The operation of an event; `None` if it is cut off, as readers skip it then.
fn key(location: &Location, event: &Event<'_>) -> Option<KeptOperation> {
    let [seq, start, end] = [0, 8, 16].map(|at| word(event.payload, at));
    Some((location.relative_path.clone(), [seq?, start?, end?]))
}

/// The number of the name that an event uses, if it uses one.
fn name_of(event: &Event<'_>) -> Option<u32> {
    let at = match event.code {
        device::OPERATION | device::LATE => NAME_OF_OPERATION,
        device::LOST => 36,
        device::NUMBER | device::CALL => 8,
        _ => return None,
    };
    Some(first_u32(event.payload.get(at..)?))
}

fn word(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

/// Copies a location's files.
fn copy(location: &Location, root: &Path, output: &Path) -> io::Result<()> {
    let below = location.directory.strip_prefix(root).unwrap_or(Path::new(&location.relative_path));
    let directory = output.join(below);
    create_directory_below(output, below)?;
    for name in [StreamFile::Own.name(), layout::LOCATION_METADATA] {
        // Readers report a missing file of the whole, too.
        let (mut from, _) = match open_regular(&location.directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        replace_file(&directory.join(name), |out| io::copy(&mut from, out).map(drop)).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.join(name).display()))
        })?;
    }
    Ok(())
}
