//! OTF2 archives: those of Score-P, EZTrace, APEX, lo2s, and of `taskscope export --to otf2`.
//!
//! ```text
//!  NAME.otf2       anchor: versions, number of locations
//!  NAME.def        global definitions                       ──▶ Definitions
//!  NAME/N.def      a location's own numbers, clock offsets  ──▶ Local
//!  NAME/N.evt      its events                               ──▶ spans, messages
//! ```
//!
//! | in the archive | in the run |
//! | --- | --- |
//! | location groups, locations of threads | processes, threads |
//! | Enter, Leave | spans; the role of the region is the meaning of its time |
//! | task switches | the open regions of the task that leaves are put down, those of the other one resume |
//! | MPI sends and receives, blocking or not | flows, matched by communicator, ranks and tag in order |
//! | locations of accelerator streams | device queues |
//!
//! Events of other kinds are skipped by their length and counted as lost; attributes of events are skipped. The layout of
//! records is that of libotf2 3.

mod activity;
mod definitions;
mod events;
mod messages;
mod records;

use crate::spans::{Process, Run, find_rows_beside};
use crate::{ImportError, ImportErrors};
use definitions::{Definitions, Local, LocationType};
use messages::Messages;
use records::{Anchor, Chunked};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use taskscope_files::read_regular;

/// Longest file of an archive.
const MAX_FILE_BYTES: u64 = 8 << 30;

/// The anchor of an archive at `path`: the file itself, or the only one in the directory.
pub fn anchor_of(path: &Path) -> Option<PathBuf> {
    let is_anchor = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "otf2")
            && taskscope_files::open_regular(path).is_ok_and(|(mut file, _)| {
                let mut head = [0; 6];
                std::io::Read::read_exact(&mut file, &mut head).is_ok() && head[2..] == *b"OTF2"
            })
    };
    if !path.is_dir() {
        return is_anchor(path).then(|| path.to_owned());
    }
    let names = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.path());
    let mut anchors = names.filter(|path| is_anchor(path));
    anchors.next().filter(|_| anchors.next().is_none())
}

/// Reads the archive with this anchor.
///
/// # Errors
/// The file and byte of the first error: other versions, truncated files, references without a definition, times that go
/// back or are beyond the clock.
pub fn read_otf2(anchor: &Path) -> Result<Run, ImportErrors> {
    read(anchor).map_err(|error| ImportErrors(vec![error]))
}

fn read(anchor: &Path) -> Result<Run, ImportError> {
    let sizes = Anchor::parse(&load(anchor)?).map_err(|(at, text)| at_byte(anchor, at, text))?;
    let global = anchor.with_extension("def");
    let bytes = load(&global)?;
    let chunked = Chunked::new(&bytes, sizes.definition_chunk);
    let definitions = Definitions::read(chunked).map_err(|(at, text)| at_byte(&global, at, text))?;
    let mut run = Run::of("OTF2");
    run.origin_unix_ns = definitions.clock.origin_unix_ns();
    let groups = add_processes(&definitions, &mut run);
    let directory = anchor.with_extension("");
    let mut messages = Messages::default();
    for (id, location) in &definitions.locations {
        if location.ty == LocationType::Metric {
            run.losses.add("locations of metrics", "a trace has no counters of programs", || {
                format!("location {id}")
            });
            continue;
        }
        let local = directory.join(format!("{id}.def"));
        let local_bytes = if local.exists() { load(&local)? } else { Vec::new() };
        let local_definitions = Local::read(Chunked::new(&local_bytes, sizes.definition_chunk))
            .map_err(|(at, text)| at_byte(&local, at, text))?;
        let file = directory.join(format!("{id}.evt"));
        if !file.exists() {
            if location.events > 0 {
                let text = format!("it is missing; location {id} has {} events", location.events);
                return Err(ImportError {
                    file: file.display().to_string(),
                    line: 0,
                    field: String::new(),
                    text,
                });
            }
            continue;
        }
        let bytes = load(&file)?;
        let chunked = Chunked::new(&bytes, sizes.event_chunk);
        let mut reader = events::LocationReader {
            definitions: &definitions,
            local: &local_definitions,
            process: groups.get(&location.group).copied().unwrap_or(0),
            id: *id,
            location,
            messages: &mut messages,
        };
        reader.read(chunked, &mut run).map_err(|(at, text)| at_byte(&file, at, text))?;
    }
    messages.add_to(&mut run);
    find_rows_beside(&mut run);
    if run.threads.is_empty() && run.queues.is_empty() {
        let text = "the archive has no location of a thread or a stream with events".to_owned();
        return Err(ImportError { file: global.display().to_string(), line: 0, field: String::new(), text });
    }
    Ok(run)
}

/// Adds the processes; the answer is the process of each location group.
fn add_processes(definitions: &Definitions, run: &mut Run) -> FxHashMap<u32, u32> {
    let mut groups = FxHashMap::default();
    for (id, group) in &definitions.groups_of_locations {
        groups.insert(*id, run.processes.len() as u32);
        let name = definitions.text(group.name).to_owned();
        run.processes.push(Process {
            name,
            host: definitions.node(group.node).to_owned(),
            ..Process::default()
        });
    }
    if run.processes.is_empty() {
        run.processes.push(Process::default());
    }
    groups
}

fn load(path: &Path) -> Result<Vec<u8>, ImportError> {
    let file = path.display().to_string();
    read_regular(path, MAX_FILE_BYTES).map_err(|error| ImportError {
        file,
        line: 0,
        field: String::new(),
        text: error.to_string(),
    })
}

fn at_byte(path: &Path, byte: usize, text: String) -> ImportError {
    ImportError { file: path.display().to_string(), line: 0, field: format!("byte {byte}"), text }
}
