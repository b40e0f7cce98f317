//! What the analysis of a whole run has found about times off the CPU, as records of the side streams of a slice.
//!
//! ```text
//! YTt thread, YRk source │ YCp, YCb each time without a CPU or blocked │ YRt each time that the system took
//! YKh each time in which the process was stopped                       │ YRc the same of CPUs that are workers
//! ```
//!
//! All times are cut to the range. Records of a CPU are in the first side stream of its loom. A record has the clock of its end,
//! and a thread is named before its first record.

use super::request::{OffCpuOfRun, OffCpuTimes, Process};
use crate::Event;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeMap;
use taskscope_event::Code;
use taskscope_event::models::system;

/// What is known, by process.
#[derive(Default)]
pub(super) struct Known<'a> {
    all: Option<&'a OffCpuOfRun>,
    /// Looms whose CPUs are in a side stream.
    looms: FxHashSet<&'a str>,
}

/// What is known of the threads of a process.
#[derive(Default)]
pub(super) struct KnownOfProcess<'a> {
    /// Times of the slice's threads, by their ids.
    pub threads: BTreeMap<i64, &'a OffCpuTimes>,
    /// CPUs that are workers.
    cpus: Vec<&'a OffCpuTimes>,
    /// Times in which the process was stopped; `None` if not known.
    pub stops: Option<&'a [(i64, i64)]>,
}

impl<'a> Known<'a> {
    pub fn of(all: &'a OffCpuOfRun) -> Self {
        Known { all: Some(all), looms: FxHashSet::default() }
    }

    /// What is known of a process with these threads in the slice, by the loom and the id that its side stream names; with the CPUs
    /// of the loom, once.
    pub fn take(&mut self, process: Process<'_>, in_slice: &FxHashMap<i64, i64>) -> KnownOfProcess<'a> {
        let (Some(all), (Some(loom), Some(pid))) = (self.all, process) else {
            return KnownOfProcess::default();
        };
        let process_rows = || all.rows.iter().filter(move |row| row.pid == Some(pid));
        // Several recorders of one process may name its loom differently.
        let others: FxHashSet<&str> = process_rows().map(|row| &*row.loom).collect();
        let loom = match others.get(loom) {
            Some(_) => others.get(loom),
            None => others.iter().next().filter(|_| others.len() == 1),
        };
        let Some(loom) = loom.copied() else { return KnownOfProcess::default() };
        let threads: BTreeMap<i64, &OffCpuTimes> = process_rows()
            .filter(|row| row.loom == loom && in_slice.contains_key(&row.id))
            .map(|row| (row.id, row))
            .collect();
        let is_first = !threads.is_empty() && self.looms.insert(loom);
        let cpus = all.rows.iter().filter(|row| is_first && row.pid.is_none() && row.loom == loom).collect();
        let stops = all.stops.iter().find(|((other, id), _)| other == loom && *id == pid);
        KnownOfProcess { threads, cpus, stops: Some(stops.map_or(&[], |(_, times)| times)) }
    }
}

impl KnownOfProcess<'_> {
    /// The records of the threads of the slice, of which the side stream names some by numbers, at these clocks; none if nothing
    /// is known.
    pub fn records(
        &self,
        clocks: Option<(i64, i64)>,
        numbers: &FxHashMap<u32, i64>,
        named_at: &FxHashMap<u32, i64>,
    ) -> Vec<Record<'static>> {
        let number_of: FxHashMap<i64, u32> = numbers.iter().map(|(number, tid)| (*tid, *number)).collect();
        let mut next = numbers.keys().max().map_or(0, |number| number.wrapping_add(1));
        let range = clocks.unwrap_or((i64::MIN, i64::MAX));
        let mut records = Vec::new();
        for (tid, times) in &self.threads {
            let number = number_of.get(tid).copied().unwrap_or_else(|| {
                let free = next;
                next = next.wrapping_add(1);
                free
            });
            push_thread(&mut records, range, (number, named_at.get(&number).copied()), times);
        }
        if records.is_empty() {
            return records;
        }
        for cpu in &self.cpus {
            for (start, end, cause) in cut(&cpu.taken, range) {
                let id = (cpu.id as u32).to_le_bytes();
                let payload = [&length(start, end)[..], &cause.to_le_bytes(), &id].concat();
                records.push(Record::plain(end, system::TAKEN_OF_CPU, payload));
            }
        }
        for (start, end) in pairs(self.stops.unwrap_or_default(), range) {
            let payload = [start.cast_unsigned().to_le_bytes(), end.cast_unsigned().to_le_bytes()].concat();
            records.push(Record { is_jumbo: true, ..Record::plain(end, system::KEPT, payload) });
        }
        records
    }
}

fn push_thread(
    records: &mut Vec<Record<'static>>,
    range: (i64, i64),
    (number, named_at): (u32, Option<i64>),
    times: &OffCpuTimes,
) {
    let first = records.len();
    let number = number.to_le_bytes();
    for (start, end) in pairs(&times.runnable, range) {
        let payload = [&length(start, end)[..], &number].concat();
        records.push(Record::plain(end, system::PREEMPTED, payload));
    }
    for (start, end) in pairs(&times.blocked, range) {
        let payload = [&length(start, end)[..], &0_u32.to_le_bytes(), &number].concat();
        records.push(Record::plain(end, system::BLOCKED, payload));
    }
    for (start, end, cause) in cut(&times.taken, range) {
        let payload = [&length(start, end)[..], &cause.to_le_bytes(), &number].concat();
        records.push(Record::plain(end, system::TAKEN, payload));
    }
    let begin = records[first..].iter().map(|record| record.clock_ns).min();
    let begin = begin.unwrap_or(range.0).max(0);
    // The side stream's sums and losses of the thread, which stay, may be before its first known time.
    let named_at = named_at.map_or(begin, |named_at| named_at.min(begin));
    let id = times.id.cast_unsigned().to_le_bytes();
    records.push(Record::plain(named_at, system::THREAD, [&id[..], &number].concat()));
    records.push(Record::plain(begin, system::KNOWN, [times.source.to_le_bytes(), number].concat()));
}

/// Times in the range, cut to it.
fn cut(
    times: &[(i64, i64, u32)],
    (begin, until): (i64, i64),
) -> impl Iterator<Item = (i64, i64, u32)> + use<'_> {
    let within =
        move |(start, end, cause): &(i64, i64, u32)| ((*start).max(begin), (*end).min(until), *cause);
    times.iter().map(within).filter(|(start, end, _)| start < end)
}

fn pairs(times: &[(i64, i64)], range: (i64, i64)) -> impl Iterator<Item = (i64, i64)> + use<'_> {
    let (begin, until) = range;
    let within = move |(start, end): &(i64, i64)| ((*start).max(begin), (*end).min(until));
    times.iter().map(within).filter(|(start, end)| start < end)
}

fn length(start: i64, end: i64) -> [u8; 8] {
    end.saturating_sub(start).cast_unsigned().to_le_bytes()
}

/// A record of a side stream.
pub(super) struct Record<'a> {
    clock_ns: i64,
    code: Code,
    is_jumbo: bool,
    payload: Cow<'a, [u8]>,
}

impl<'a> Record<'a> {
    pub fn of(event: &Event<'a>) -> Self {
        let Event { clock_ns, code, is_jumbo, payload, .. } = *event;
        Record { clock_ns, code, is_jumbo, payload: Cow::Borrowed(payload) }
    }

    fn plain(clock_ns: i64, code: Code, payload: Vec<u8>) -> Self {
        Record { clock_ns, code, is_jumbo: false, payload: Cow::Owned(payload) }
    }

    /// The place among the records of a file.
    pub fn order(&self) -> (i64, u8) {
        let place = match self.code {
            system::THREAD => 0,
            system::KNOWN => 1,
            _ => 2,
        };
        (self.clock_ns, place)
    }

    pub fn push(&self, bytes: &mut Vec<u8>) {
        super::bytes::push(bytes, self.clock_ns, self.code, self.is_jumbo, &self.payload);
    }
}
