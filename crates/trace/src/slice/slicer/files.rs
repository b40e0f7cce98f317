//! The files of a slice.

use super::{Slicer, is_after};
use crate::clock_offsets::{ClockOffset, ClockOffsets};
use crate::location::Location;
use crate::rewrite::replace_file;
use crate::slice::bytes::{place_clocks, push};
use crate::slice::devices::{self, DevicePart};
use crate::slice::known_times::Known;
use crate::slice::os_time::{OS_TIME, OsTimes};
use crate::slice::request::Process;
use crate::stream::Stream;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::framing::file_header;
use taskscope_event::models::{device, samples, system};
use taskscope_event::{StreamFile, alive, layout};
use taskscope_files::{create_directory_below, read_regular, write_file};

/// Directory of a trace with files of modules, which may be gone when names are looked up.
const MODULES: &str = "modules";
/// Larger module files are not kept: their code has names only while the original files exist.
const MAX_MODULE_BYTES: u64 = 1 << 30;
/// Place of the flags in a sample's payload.
const FLAGS: usize = 16;

impl Slicer<'_> {
    /// Writes the times off the CPU of the threads that the slice has. Of a process without a side stream, these are the times that
    /// it lost to its number of workers: how many they are in the whole run does not show in a part of it.
    pub(super) fn write_os_times(&self, output: &Path, touched: &[bool], shift: i64) -> io::Result<()> {
        if !self.keeps_model(system::THREAD) {
            return Ok(());
        }
        // Clocks of side streams are not shifted.
        let known = self.slice.off_cpu.as_ref().filter(|_| shift == 0).map(Known::of);
        let mut known = known.unwrap_or_default();
        let mut written = FxHashSet::default();
        for location in self.trace.locations().iter().filter(|location| location.metadata["kind"] == OS_TIME)
        {
            let metadata = &location.metadata;
            let process = (metadata["loom"].as_str(), metadata["pid"].as_i64());
            written.insert(process);
            let threads = self.threads_of(process, touched);
            let known = known.take(process, &threads);
            let part = OsTimes { clocks: self.slice.clocks, threads: &threads, known };
            if let Some(bytes) = part.file_of(location) {
                let below = location.directory.strip_prefix(self.trace.root());
                self.write_files(
                    output,
                    below.unwrap_or(Path::new(&location.relative_path)),
                    &[
                        (StreamFile::Own.name(), &bytes),
                        (layout::LOCATION_METADATA, format!("{metadata:#}\n").as_bytes()),
                    ],
                )?;
            }
        }
        let streams = self.trace.streams().iter().enumerate().filter(|(index, _)| touched[*index]);
        for (index, stream) in streams {
            let process = self.process_of(index);
            let own = stream.directory.strip_prefix(self.trace.root());
            let below = own.unwrap_or(Path::new(&stream.relative_path)).parent();
            let (true, Some(below)) = (written.insert(process), below) else { continue };
            let threads = self.threads_of(process, touched);
            let known = known.take(process, &threads);
            let part = OsTimes { clocks: self.slice.clocks, threads: &threads, known };
            if let Some(bytes) = part.file_of_known() {
                let (loom, pid) = process;
                let metadata = json!({
                    "version": 1,
                    "require": { "taskscope-system": system::VERSION },
                    "kind": OS_TIME,
                    "loom": loom,
                    "pid": pid,
                    "finished": 1,
                });
                let metadata = format!("{metadata:#}\n");
                let files = [
                    (StreamFile::Own.name(), bytes.as_slice()),
                    (layout::LOCATION_METADATA, metadata.as_bytes()),
                ];
                self.write_files(output, &below.join(OS_TIME), &files)?;
            }
        }
        Ok(())
    }

    /// The threads of a process that the slice has, each with the clock of its last event in the whole trace.
    fn threads_of(&self, process: Process<'_>, touched: &[bool]) -> FxHashMap<i64, i64> {
        let streams = self.trace.streams().iter().enumerate();
        let own = streams.filter(|(index, _)| touched[*index] && self.process_of(*index) == process);
        own.filter_map(|(_, stream)| Some((stream.tid()?, stream.last_clock_ns()?))).collect()
    }

    /// Writes the signs of life of processes that did not end, unless the slice ends before: their threads live until then.
    pub(super) fn write_signs_of_life(&self, output: &Path, touched: &[bool], shift: i64) -> io::Result<()> {
        if self.slice.clocks.is_some_and(|(_, end)| end != i64::MAX) {
            return Ok(());
        }
        let mut written = FxHashSet::default();
        let streams = self.trace.streams().iter().zip(touched).filter(|(_, touched)| **touched);
        for (stream, _) in streams.filter(|(stream, _)| stream.alive_until_ns().is_some()) {
            let own = stream.directory.strip_prefix(self.trace.root());
            let below = own.unwrap_or(Path::new(&stream.relative_path)).parent();
            let (Some(from), Some(below)) = (stream.directory.parent(), below) else { continue };
            let page = read_regular(&from.join(alive::FILE), alive::BYTES as u64);
            if let (true, Ok(mut page)) = (written.insert(below), page) {
                let rows =
                    (0..2).flat_map(|table| (0..alive::MAX_ROWS).map(move |row| alive::row(table, row) + 8));
                for at in [alive::UNTIL_OFFSET, alive::look(0), alive::look(1)].into_iter().chain(rows) {
                    let word = page.get_mut(at as usize..).and_then(|rest| rest.first_chunk_mut::<8>());
                    if let Some(word) = word.filter(|word| **word != [0; 8]) {
                        let clock = stream.clock.apply(i64::from_le_bytes(*word)).saturating_add(shift);
                        *word = clock.max(0).to_le_bytes();
                    }
                }
                self.write_files(output, below, &[(alive::FILE, &page)])?;
            }
        }
        Ok(())
    }

    /// Writes the device queues of the processes of the slice.
    pub(super) fn write_devices(&self, output: &Path, touched: &[bool]) -> io::Result<()> {
        if !self.keeps_model(device::OPERATION) {
            return Ok(());
        }
        let streams = self.trace.streams().iter().zip(touched).filter(|(_, touched)| **touched);
        let pids: FxHashSet<i64> = streams.filter_map(|(stream, _)| stream.pid()).collect();
        let locations = self.trace.locations().iter();
        let is_kept = |location: &&Location| devices::is_device(location, |pid| pids.contains(&pid));
        let locations: Vec<&Location> = locations.filter(is_kept).collect();
        let part = DevicePart::of(self.slice, &locations);
        for location in locations {
            devices::write(location, part.as_ref(), self.trace.root(), output)?;
        }
        Ok(())
    }

    /// Writes the files of modules that the trace keeps, by which code has names. Links and unreadable files are left out.
    pub(super) fn write_modules(&self, output: &Path) -> io::Result<()> {
        let modules = Path::new(MODULES);
        let Ok(entries) = std::fs::read_dir(self.trace.root().join(modules)) else { return Ok(()) };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
            let name = entry.file_name();
            if let (Some(name), Ok(bytes)) = (name.to_str(), read_regular(&entry.path(), MAX_MODULE_BYTES)) {
                self.write_files(output, modules, &[(name, &bytes)])?;
            }
        }
        Ok(())
    }

    /// Writes files into a directory below the slice's.
    fn write_files(&self, output: &Path, below: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
        let directory = output.join(below);
        let named = |name: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.join(name).display()))
        };
        create_directory_below(output, below).map_err(|error| named("", error))?;
        for (name, bytes) in files {
            replace_file(&directory.join(name), |out| out.write_all(bytes))
                .map_err(|error| named(name, error))?;
        }
        Ok(())
    }

    /// Writes the table of clock offsets. Clocks in the slice are corrected, except for `shift`. If several hosts are
    /// left, the table has those with known offsets. If some are not known, all clocks stay shifted: a line for these
    /// hosts would pass for a known offset.
    pub(super) fn write_clock_offsets(&self, output: &Path, touched: &[bool], shift: i64) -> io::Result<()> {
        let streams = self.trace.streams().iter().zip(touched).filter(|(_, touched)| **touched);
        let hosts: BTreeSet<&str> = streams.map(|(stream, _)| stream.metadata.host()).collect();
        let is_known =
            |host: &&str| self.trace.clock_offsets().is_some_and(|table| table.offset_ns(host).is_some());
        let known: BTreeSet<&str> = hosts.iter().copied().filter(is_known).collect();
        let (listed, shift) = match hosts.len() {
            0 | 1 if shift == 0 => return Ok(()),
            0 | 1 => (hosts, shift),
            of if known.len() < of => (known, 0),
            _ => (known, shift),
        };
        if listed.is_empty() {
            return Ok(());
        }
        let median_ns = 0.0 - shift as f64;
        let entry = |(rank, host): (i64, &str)| ClockOffset {
            rank,
            host: host.to_owned(),
            median_ns,
            ..ClockOffset::default()
        };
        let table = ClockOffsets { entries: (0..).zip(listed).map(entry).collect() };
        write_file(&output.join(layout::CLOCK_OFFSETS), |out| out.write_all(table.to_text().as_bytes()))
    }

    /// Writes the files of a thread.
    pub(super) fn write_stream(
        &self,
        stream: &Stream,
        output: &Path,
        standard: &[u8],
        own: &[u8],
        metadata: &Value,
        shift: Option<i64>,
    ) -> io::Result<()> {
        // Names that are not UTF-8 are kept unmodified: in escaped form, two could be equal.
        let below = stream.directory.strip_prefix(self.trace.root());
        let mut sampled = self.samples_of(stream);
        place_clocks(&mut sampled, shift);
        let metadata = format!("{metadata:#}\n");
        let mut files = vec![(StreamFile::Standard.name(), standard)];
        let others = [(StreamFile::Own.name(), own), (StreamFile::Samples.name(), &sampled)];
        files.extend(others.into_iter().filter(|(_, bytes)| bytes.len() > file_header().len()));
        files.push((layout::STREAM_METADATA, metadata.as_bytes()));
        self.write_files(output, below.unwrap_or(Path::new(&stream.relative_path)), &files)
    }

    /// The samples of the range, and of the next one the part that represents time in it, at the range's end.
    fn samples_of(&self, stream: &Stream) -> Vec<u8> {
        let mut bytes = file_header().to_vec();
        let (begin, end) = self.slice.clocks.unwrap_or((i64::MIN, i64::MAX));
        let mut has_next = false;
        for event in stream.events_of(StreamFile::Samples) {
            if event.clock_ns < begin || has_next || !self.keeps_model(event.code) {
                continue;
            }
            if !is_after(event.clock_ns, end) {
                push(&mut bytes, event.clock_ns, event.code, event.is_jumbo, event.payload);
            } else if event.code == samples::SAMPLE {
                has_next = true;
                if let Some(payload) = cut_sample(event.payload, event.clock_ns, end) {
                    push(&mut bytes, end, event.code, event.is_jumbo, &payload);
                }
            }
        }
        bytes
    }
}

/// A sample that represents the time until `end` instead of `at`; `None` if it has none before, or if its weight is CPU time.
fn cut_sample(payload: &[u8], at: i64, end: i64) -> Option<Vec<u8>> {
    let weight = u64::from_le_bytes(*payload.first_chunk()?);
    let flags = u32::from_le_bytes(*payload.get(FLAGS..)?.first_chunk()?);
    let left = weight.checked_sub(at.checked_sub(end)?.unsigned_abs()).filter(|left| *left > 0)?;
    (flags & samples::flag::CPU_TIME == 0).then(|| [&left.to_le_bytes(), &payload[8..]].concat())
}
