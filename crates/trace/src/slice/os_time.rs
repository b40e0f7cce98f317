//! Off-CPU times in a slice: the side stream of each process, with the records on the range and the threads
//! of the slice.
//!
//! Records keep their clocks, even if their intervals reach beyond the range: readers cut them to the
//! lifetimes of threads, which a slice ends at the range's borders. The clocks of side streams are not
//! corrected.
//!
//! Which of these times are losses, and the places of sums, depend on all threads and on all time of the run. If the caller has
//! analysed the run, the results replace the records of each thread: see `known_times`.

use super::known_times::{KnownOfProcess, Record};
use crate::Event;
use crate::location::Location;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::RangeInclusive;
use taskscope_event::Code;
use taskscope_event::framing::file_header;
use taskscope_event::models::system;

/// The kind of the locations that have times off the CPU.
pub(super) const OS_TIME: &str = "os-time";

/// The part of a process's side stream.
pub(super) struct OsTimes<'a> {
    /// Begin (included) and end (not included); `None` for all time.
    pub clocks: Option<(i64, i64)>,
    /// Threads of the slice by their ids, each with the clock of its last event in the whole trace.
    pub threads: &'a FxHashMap<i64, i64>,
    /// The results of the analysis of the whole run.
    pub known: KnownOfProcess<'a>,
}

impl OsTimes<'_> {
    /// The file of a process without a side stream: the results of the analysis. `None` without any.
    pub fn file_of_known(&self) -> Option<Vec<u8>> {
        let records = self.known.records(self.clocks, &FxHashMap::default(), &FxHashMap::default());
        (!records.is_empty()).then(|| file(records))
    }

    /// The file of the part; `None` if no record concerns a thread of the slice.
    pub fn file_of(&self, location: &Location) -> Option<Vec<u8>> {
        let mut numbers: FxHashMap<u32, i64> = FxHashMap::default();
        let mut named_at: FxHashMap<u32, i64> = FxHashMap::default();
        // Blocked threads by number, with a return that is not recorded yet.
        let mut blocked: FxHashSet<u32> = FxHashSet::default();
        for event in location.events() {
            let (first, number) = (word(event.payload, 0), number_of(&event));
            match (event.code, first, number) {
                (system::THREAD, Some(tid), Some(number))
                    if self.threads.contains_key(&tid.cast_signed()) =>
                {
                    numbers.insert(number, tid.cast_signed());
                    named_at.entry(number).or_insert(event.clock_ns);
                }
                (system::BLOCKS, _, Some(number)) => _ = blocked.insert(number),
                (system::BLOCKED, _, Some(number)) => _ = blocked.remove(&number),
                _ => {}
            }
        }
        let masks = self.masks(location);
        let readings = self.readings(location);
        let known = self.known.records(self.clocks, &numbers, &named_at);
        let mut records = Vec::new();
        for (place, event) in location.events().enumerate() {
            let number = number_of(&event);
            let is_of_others = number.is_some_and(|number| !numbers.contains_key(&number));
            let is_known = match event.code {
                system::KEPT => self.known.stops.is_some(),
                system::TAKEN_OF_CPU => !known.is_empty(),
                code if is_of_time(code) => {
                    let tid = number.and_then(|number| numbers.get(&number));
                    tid.is_some_and(|tid| self.known.threads.contains_key(tid))
                }
                _ => false,
            };
            let is_kept = match event.code {
                system::CPU_TIME => readings.as_ref().is_some_and(|kept| kept.contains(&place)),
                _ => self.keeps(&event, &blocked, &masks),
            };
            if is_kept && !is_of_others && !is_known {
                records.push(Record::of(&event));
            }
        }
        let has_threads = !numbers.is_empty() || !known.is_empty();
        records.extend(known);
        has_threads.then(|| file(records))
    }

    /// Places among the events of the readings of CPU times that the range needs; those around its borders belong to
    /// intervals that reach across them.
    fn readings(&self, location: &Location) -> Option<RangeInclusive<usize>> {
        let readings = location.events().enumerate().filter(|(_, event)| event.code == system::CPU_TIME);
        let times = readings
            .map(|(place, event)| (place, word(event.payload, 0).map_or(event.clock_ns, u64::cast_signed)));
        let mut kept: Option<RangeInclusive<usize>> = None;
        let mut before: Option<(usize, i64)> = None;
        for (place, at) in times {
            if let Some((first, from)) = before.replace((place, at))
                && self.meets(from, at)
            {
                kept = Some(*kept.as_ref().map_or(&first, RangeInclusive::start)..=place);
            }
        }
        kept
    }

    fn keeps(&self, event: &Event<'_>, blocked: &FxHashSet<u32>, masks: &FxHashMap<u64, i64>) -> bool {
        let (at, first) = (event.clock_ns, word(event.payload, 0));
        let since = |ns: Option<u64>| at.saturating_sub_unsigned(ns.unwrap_or(0));
        match event.code {
            system::PREEMPTED | system::BLOCKED => self.meets(since(first), at),
            system::RUN_DELAY | system::BLOCKED_SUM => {
                self.meets(since(first.max(half(event.payload, 8).map(u64::from))), at)
            }
            // The return record of a blocked thread covers its whole interval.
            system::BLOCKS => {
                let is_blocked = number_of(event).is_some_and(|number| blocked.contains(&number));
                self.clocks.is_none() || is_blocked && self.meets(since(first), i64::MAX)
            }
            system::THROTTLED | system::KEPT => {
                let end = word(event.payload, 8);
                first.zip(end).is_some_and(|(start, end)| self.meets(start.cast_signed(), end.cast_signed()))
            }
            system::TAKEN | system::TAKEN_OF_CPU => self.meets(since(first), at),
            system::UNTOLD => self.meets(at, at),
            // Sums over the life of a thread; the part is unknown.
            system::TOTAL_ON_CPU | system::TOTAL_RUN_DELAY => self.clocks.is_none(),
            system::BOUND => {
                let mask = first.zip(word(event.payload, 8));
                mask.is_some_and(|(at, tid)| masks.get(&tid).is_none_or(|of| *of == at.cast_signed()))
            }
            _ => true,
        }
    }

    /// Time of the longest valid mask of each thread of the slice, which has it in each part of its life.
    fn masks(&self, location: &Location) -> FxHashMap<u64, i64> {
        let mut found: FxHashMap<u64, Vec<(i64, &[u8])>> = FxHashMap::default();
        for event in location.events().filter(|event| event.code == system::BOUND) {
            if let (Some(at), Some(tid), Some(mask)) =
                (word(event.payload, 0), word(event.payload, 8), event.payload.get(16..))
            {
                found.entry(tid).or_default().push((at.cast_signed(), mask));
            }
        }
        let longest = |(tid, masks): (u64, Vec<(i64, &[u8])>)| {
            let last = *self.threads.get(&tid.cast_signed())?;
            let ends = masks.iter().skip(1).map(|(at, _)| *at).chain([last]);
            let mut times: Vec<(i64, i64, &[u8])> = Vec::new();
            for ((at, mask), end) in masks.iter().zip(ends) {
                let ns = end.saturating_sub(*at).max(0);
                match times.iter_mut().find(|(_, _, known)| known == mask) {
                    Some((sum, ..)) => *sum = sum.saturating_add(ns),
                    None => times.push((ns, *at, mask)),
                }
            }
            times.into_iter().max_by_key(|(ns, ..)| *ns).map(|(_, at, _)| (tid, at))
        };
        found.into_iter().filter_map(longest).collect()
    }

    /// Whether something from `start` to `end` has to do with the range.
    fn meets(&self, start: i64, end: i64) -> bool {
        self.clocks.is_none_or(|(begin, until)| {
            (start < until || until == i64::MAX) && (end > begin || start == begin)
        })
    }
}

/// A side stream with these records.
fn file(mut records: Vec<Record<'_>>) -> Vec<u8> {
    records.sort_by_key(Record::order);
    let mut bytes = file_header().to_vec();
    records.iter().for_each(|record| record.push(&mut bytes));
    bytes
}

/// Whether an event names a thread, or has times of it that the analysis of the run has, too.
fn is_of_time(code: Code) -> bool {
    matches!(
        code,
        system::THREAD
            | system::KNOWN
            | system::TAKEN
            | system::PREEMPTED
            | system::BLOCKED
            | system::BLOCKS
            | system::RUN_DELAY
            | system::BLOCKED_SUM
    )
}

/// The number of the thread that an event is about, if it is about one.
fn number_of(event: &Event<'_>) -> Option<u32> {
    match event.code {
        system::THREAD
        | system::TOTAL_ON_CPU
        | system::TOTAL_RUN_DELAY
        | system::COALESCED
        | system::PREEMPTED
        | system::BLOCKS
        | system::UNTOLD => half(event.payload, 8),
        system::KNOWN => half(event.payload, 4),
        system::BLOCKED | system::RUN_DELAY | system::BLOCKED_SUM | system::TAKEN => half(event.payload, 12),
        _ => None,
    }
}

fn word(payload: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

fn half(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}
