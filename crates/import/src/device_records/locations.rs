//! The second pass: the output of the ordering core, written as one location for each queue.

use super::account::{Foreign, Imported, ImportedQueue, clock_json};
use super::kind_of;
use super::plan::Plan;
use super::table::Table;
use super::{Error, account};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word};
use taskscope_event::{Code, StreamFile, layout, models::device};
use taskscope_files::{append_regular, write_file};
use taskscope_reorder::clock::ClockFit;
use taskscope_reorder::{Anomalies, Output, QueueOrder, Released, Reorder};

/// Bytes that are kept before they are written: queues may be more than files that may be open.
const BUFFER: usize = 64 << 10;

struct Location {
    directory: PathBuf,
    buffer: Vec<u8>,
    clock: u64,
    /// Texts that were given their names.
    named: FxHashSet<u32>,
    least_late: u64,
    by_anomaly: FxHashMap<&'static str, u64>,
}

/// All locations of the new trace.
pub struct Locations<'a> {
    table: &'a Table,
    plan: &'a Plan,
    locations: Vec<Location>,
    /// By file: the thread of nearly all its records.
    main_threads: Vec<Option<u32>>,
    foreign: Vec<Foreign>,
}

impl<'a> Locations<'a> {
    pub fn create(root: &Path, table: &'a Table, plan: &'a Plan) -> Result<Self, Error> {
        let mut locations = Vec::with_capacity(plan.queues.len());
        for number in 0..plan.queues.len() {
            let directory = root.join("devices").join(format!("queue.{number}"));
            fs::create_dir_all(&directory)
                .map_err(|source| Error::Write { path: directory.clone(), source })?;
            locations.push(Location {
                directory,
                buffer: file_header().to_vec(),
                clock: 0,
                named: FxHashSet::default(),
                least_late: u64::MAX,
                by_anomaly: FxHashMap::default(),
            });
        }
        let main_threads = main_threads(table);
        Ok(Locations { table, plan, locations, main_threads, foreign: Vec::new() })
    }

    pub fn take(&mut self, output: &Output) -> Result<(), Error> {
        match output {
            Output::Released(record) => self.released(record),
            Output::Late(record) => self.operation(record, device::LATE),
            Output::Duplicate(again) => {
                let location = &mut self.locations[again.queue.0 as usize];
                let data = words(&[again.seq, again.start, again.end, again.submit]);
                location.put(location.clock, device::DUPLICATE, &[&data])
            }
            Output::Lost { queue, seq, append, detail, .. } => {
                // Only an unreadable spill file loses something in an import.
                let row = &self.table.rows[detail.amount as usize];
                let thread = number_or_zero(&self.table.threads[row.thread_index as usize]);
                let mut data = words(&[*seq, *append, detail.id, thread]);
                data.extend([0; 8]);
                let location = &mut self.locations[queue.0 as usize];
                location.put(location.clock, device::LOST, &[&data])
            }
        }
    }

    fn released(&mut self, record: &Released) -> Result<(), Error> {
        self.operation(record, device::OPERATION)?;
        let row_index = record.detail.amount as usize;
        let row = &self.table.rows[row_index];
        let values = join_values(&self.table.values(row_index));
        let location = &mut self.locations[record.queue.0 as usize];
        let (seq, file) = (record.seq.to_le_bytes(), row.file.to_le_bytes());
        location.put(location.clock, device::COLUMNS, &[&seq, &file, values.as_bytes()])?;
        if record.late_by > 0 {
            location.least_late = location.least_late.min(record.late_by);
        }
        for name in record.anomalies.names() {
            *location.by_anomaly.entry(name).or_default() += 1;
        }
        if let Some(main) = self.main_threads[row.file as usize]
            && row.thread_index != main
        {
            self.foreign.push(Foreign {
                id: row.id,
                queue: self.plan.queues[record.queue.0 as usize].name.clone(),
                seq: record.seq,
                thread: self.table.threads[row.thread_index as usize].clone(),
                file: self.table.files[row.file as usize].path.display().to_string(),
                files_thread: self.table.threads[main as usize].clone(),
            });
        }
        Ok(())
    }

    fn operation(&mut self, record: &Released, code: Code) -> Result<(), Error> {
        let table = self.table;
        let row = &table.rows[record.detail.amount as usize];
        let location = &mut self.locations[record.queue.0 as usize];
        let at = if record.lane.is_some() { location.clock.max(record.start) } else { location.clock };
        let name = match row.name.or(row.kind) {
            Some(text) => location.name(text, table.text(Some(text)), at)?,
            None => 0,
        };
        let thread = number_or_zero(&table.threads[record.thread as usize]);
        let append = row.submission().unwrap_or(0);
        let mut data = words(&[
            record.seq,
            record.start,
            record.end,
            append,
            record.submit,
            record.detail.id,
            thread,
            row.bytes.unwrap_or(0),
            record.late_by,
        ]);
        let kind = kind_of(table.text(row.kind), table.text(row.name));
        for word in [record.lane.unwrap_or(device::NO_LANE), kind, name, record.anomalies.0] {
            data.extend(word.to_le_bytes());
        }
        location.put(at, code, &[&data])
    }

    pub fn finish(mut self, reorder: &Reorder) -> Result<Imported, Error> {
        let mut queues = Vec::with_capacity(self.locations.len());
        self.foreign.sort_by_key(|foreign| foreign.id);
        let mut foreign_of: FxHashMap<&str, Vec<&Foreign>> = FxHashMap::default();
        for foreign in &self.foreign {
            foreign_of.entry(&foreign.queue).or_default().push(foreign);
        }
        for (q, location) in self.locations.iter_mut().enumerate() {
            location.flush()?;
            let planned = &self.plan.queues[q];
            let account = reorder.account(taskscope_reorder::QueueIndex(q as u32));
            let order = if planned.order == QueueOrder::InOrder { "in-order" } else { "out-of-order" };
            let least_late = if location.least_late == u64::MAX { 0 } else { location.least_late };
            let columns: Vec<&[String]> = self.table.files.iter().map(|file| &file.columns[..]).collect();
            let files: Vec<String> =
                self.table.files.iter().map(|file| file.path.display().to_string()).collect();
            let foreign = foreign_of.get(planned.name.as_str()).map_or(&[][..], Vec::as_slice);
            let metadata = json!({
                "version": 1,
                "kind": if planned.is_thread { "device-calls" } else { "device-queue" },
                "require": {"taskscope-device": device::VERSION},
                "finished": 1,
                "name": planned.name,
                "device": self.table.text(planned.device),
                "order": order,
                "order_from": planned.order_from,
                "sequence_from": planned.sequence_from.name(),
                "clock": clock_json(&clock_of(self.table, &planned.operations)),
                "account": ImportedQueue::json(account),
                "foreign": foreign,
                "files": files,
                "columns": columns,
                "import_problems": if q == 0 { &self.table.problems[..] } else { &[] },
            });
            let path = location.directory.join(layout::LOCATION_METADATA);
            write_file(&path, |file| writeln!(file, "{metadata:#}"))
                .map_err(|source| Error::Write { path, source })?;
            let mut anomalies: Vec<(&'static str, u64)> = location.by_anomaly.drain().collect();
            anomalies.sort_unstable();
            queues.push(ImportedQueue {
                name: planned.name.clone(),
                order,
                order_from: planned.order_from,
                sequence_from: planned.sequence_from.name(),
                delivered: account.delivered,
                duplicates: account.duplicates,
                untimed: account.untimed,
                out_of_place: account.out_of_place,
                latest_ns: account.worst_late,
                least_late_ns: least_late,
                inversions: account.inversions,
                overlaps: account.overlaps,
                longest_overlap_ns: account.worst_overlap,
                anomalous: account.anomalous,
                held_peak: account.held_peak,
                lanes: account.lanes,
                anomalies,
            });
        }
        Ok(account::Imported {
            records: self.table.rows.len() as u64,
            held_peak: queues.iter().map(|queue| queue.held_peak).sum(),
            queues,
            foreign: self.foreign,
            problems: self.table.problems.clone(),
        })
    }
}

impl Location {
    fn put(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> Result<(), Error> {
        self.clock = at;
        let size: usize = parts.iter().map(|part| part.len()).sum();
        self.buffer.extend(head_word(JUMBO_FLAG | JUMBO_SIZE_CODE, code).to_le_bytes());
        self.buffer.extend(at.to_le_bytes());
        self.buffer.extend((size as u32).to_le_bytes());
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// The name's number, announced before its first use.
    fn name(&mut self, index: u32, text: &str, at: u64) -> Result<u32, Error> {
        if self.named.insert(index) {
            let text = text.replace('\0', " ");
            self.put(at, device::NAME, &[&(index + 1).to_le_bytes(), text.as_bytes(), &[0]])?;
        }
        Ok(index + 1)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let path = self.directory.join(StreamFile::Own.name());
        append_regular(&path)
            .and_then(|mut file| file.write_all(&self.buffer))
            .map_err(|source| Error::Write { path, source })?;
        self.buffer.clear();
        Ok(())
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Threads are numbers wherever a system gives them; another name is kept in the columns.
fn number_or_zero(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// The clock of a dump's stamps: they are taken unchanged, and contradictions are counted.
fn clock_of(table: &Table, operations: &[u32]) -> taskscope_reorder::clock::ClockMap {
    let mut fit = ClockFit::with_host_offset(0);
    for row in operations.iter().map(|row| &table.rows[*row as usize]) {
        if row.start != 0
            && let Some(earliest) = row.append.max(row.submit)
        {
            fit.not_before(row.start, earliest);
        }
    }
    fit.fit().unwrap_or_else(|| taskscope_reorder::clock::ClockMap::with_host_offset(0))
}

/// For each of several files, the thread of at least four fifths of its records: the vendor's buffers were then kept by
/// thread.
fn main_threads(table: &Table) -> Vec<Option<u32>> {
    let mut counts: Vec<FxHashMap<u32, u64>> = vec![FxHashMap::default(); table.files.len()];
    for row in &table.rows {
        *counts[row.file as usize].entry(row.thread_index).or_default() += 1;
    }
    let main = |counts: &FxHashMap<u32, u64>| {
        let all: u64 = counts.values().sum();
        counts
            .iter()
            .find(|(thread, count)| **thread != 0 && **count * 5 >= all * 4)
            .map(|(thread, _)| *thread)
    };
    let several = table.files.len() > 1;
    counts.iter().map(|counts| if several { main(counts) } else { None }).collect()
}

/// The core's bits are those of the events.
const _: () = assert!(
    Anomalies::UNTIMED.0 == device::anomaly::UNTIMED
        && Anomalies::END_BEFORE_START.0 == device::anomaly::END_BEFORE_START
        && Anomalies::OVERLAP.0 == device::anomaly::OVERLAP
        && Anomalies::START_NOT_AFTER_SUBMIT.0 == device::anomaly::START_NOT_AFTER_SUBMIT
        && Anomalies::START_BEFORE_APPEND.0 == device::anomaly::START_BEFORE_APPEND
        && Anomalies::START_GOES_BACK.0 == device::anomaly::START_GOES_BACK
        && Anomalies::UNANNOUNCED.0 == device::anomaly::UNANNOUNCED
        && Anomalies::AFTER_LOST.0 == device::anomaly::AFTER_LOST
);

/// Values as [`device::split_values`] takes them apart.
fn join_values(values: &[String]) -> String {
    let is_free = |separator: &char| !values.iter().any(|value| value.contains(*separator));
    let begins_as_if =
        values.first().is_some_and(|value| value.starts_with(|first| device::SEPARATORS.contains(&first)));
    match device::SEPARATORS.clone().find(is_free) {
        Some(separator) if begins_as_if || !is_free(&'\t') => {
            values.iter().flat_map(|value| [separator.to_string(), value.clone()]).collect()
        }
        _ => values.join("\t"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_values_are_read_back() {
        let rows: [&[&str]; 7] = [
            &[],
            &["q", "", "a b"],
            &["q", "a\tb", "", "c"],
            &["\t", "\t\t", "\u{1}\u{2}"],
            &["\u{1}x", "y"],
            &["", "\u{1}", "\t"],
            &["é\t", "\u{3}\n"],
        ];
        for row in rows {
            let values: Vec<String> = row.iter().map(|value| (*value).to_owned()).collect();
            let joined = join_values(&values);
            let expected = if row.is_empty() { &[""][..] } else { row };
            assert_eq!(device::split_values(&joined).collect::<Vec<_>>(), expected, "{joined:?}");
        }
        // As in traces that were written before.
        assert_eq!(join_values(&["a".into(), "b".into()]), "a\tb");
    }
}
