//! Nested sections of threads: a row for each level of what the program, its libraries and its recorders report inside
//! of each other.
//!
//! ```text
//! ranges of instrumentation (ITT, NVTX, Kokkos, the program's own) ─┐
//! calls of MPI                                                      ├─▶ intervals ─▶ levels ─▶ a row each
//! waits of threads for each other                                   ┘
//!
//!   level 1   ├── solve ──────────────────────────┤├─ check ─┤
//!   level 2     ├─ assemble ─┤├─ MPI_Allreduce ─┤
//! ```
//! An interval is on the level below the lowest one that is open at its begin, so a row never shows two at once. Intervals
//! that overlap without nesting are on different levels, too. Times are those of the trace's clock.

use super::Page;
use super::shown::NameAndLabel;
use super::values::{ValueFacts, ViewRow};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;
use taskscope_execution::lod::{Counter, Values};
use taskscope_execution::{NO_TIME, ThreadIndex};
use taskscope_session::instrumentation::{MarkKind, Marks};
use taskscope_session::model_views::{KeptView, ValueRow};

/// Levels that have rows.
const MAX_LEVELS: usize = 12;
/// Names that pages receive at once, the longest shown first; all others are sent on request.
const MAX_LABELS: usize = 1000;
/// Recorded counters that are shown, those with most values first.
const MAX_COUNTERS: usize = 24;
/// Traces of more events are not read for a report's counters.
pub(super) const MAX_READ_EVENTS: u64 = 3_000_000;
/// The view's name in addresses.
pub const NESTED: &str = "nested";

/// An interval of a thread with the number of its name, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    thread: ThreadIndex,
    start: u64,
    end: u64,
    name: i64,
}

/// Numbers of names, from 1.
#[derive(Default)]
struct Words {
    numbers: FxHashMap<String, i64>,
    words: Vec<String>,
}

/// A recorded counter.
#[derive(Debug)]
pub struct RecordedCounter {
    /// The words for a person.
    pub label: String,
    /// Its last recorded value at each time.
    pub counter: Counter,
}

/// The nested sections of a run, and its recorded counters.
#[derive(Debug, Default)]
pub struct Nested {
    /// Rows and the names of their values.
    pub view: KeptView,
    /// Thread and level, from 1, of each row.
    rows: Vec<(ThreadIndex, usize)>,
    /// Names of all values: that of value 1 first.
    words: Vec<String>,
    /// Whether there were deeper levels than rows.
    is_cut: bool,
    /// Whether the program or a library reported ranges.
    has_ranges: bool,
    /// Recorded counters.
    pub counters: Vec<RecordedCounter>,
}

/// The rows of nested sections as a page lists them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NestedList {
    /// A row for each level of each thread.
    pub rows: Vec<ViewRow>,
    /// Words of values.
    pub values: Vec<(i64, String)>,
    /// Whether there were deeper levels than rows.
    pub is_cut: bool,
    /// Whether the rows show more than those of threads: ranges, waits for other threads, or sections in sections.
    pub tells_more: bool,
    /// Recorded counters.
    pub counters: Vec<NameAndLabel>,
}

impl Words {
    fn number(&mut self, word: &str) -> i64 {
        if let Some(known) = self.numbers.get(word) {
            return *known;
        }
        self.words.push(word.to_owned());
        let number = self.words.len() as i64;
        self.numbers.insert(word.to_owned(), number);
        number
    }
}

impl Page {
    /// The nested sections; reads the trace on first use if its program is instrumented.
    pub fn nested(&self) -> &Arc<Nested> {
        self.nested.get_or_init(|| Arc::new(self.new_nested()))
    }

    /// The nested sections, if they are known already.
    pub(super) fn known_nested(&self) -> Option<&Nested> {
        self.nested.get().map(Arc::as_ref)
    }

    fn new_nested(&self) -> Nested {
        let mut words = Words::default();
        let mut intervals = self.calls_and_waits(&mut words);
        let mut nested = Nested::default();
        if let Some(views) = self.shown_views().filter(|views| views.is_known()) {
            let marks = views.marks();
            let streams = views.trace().streams().iter();
            let threads: Vec<Option<ThreadIndex>> = streams
                .map(|stream| self.tracks_by_stream.get(&stream.relative_path))
                .map(|track| track.map(|track| ThreadIndex(*track as u32)))
                .collect();
            let before = intervals.len();
            intervals.extend(self.ranges(&marks, &threads, &mut words));
            nested.has_ranges = intervals.len() > before;
            nested.counters = self.recorded_counters(&marks, &threads);
        }
        nested.arrange(intervals, words.words);
        nested
    }

    /// Calls of MPI, and waits of threads for each other.
    fn calls_and_waits(&self, words: &mut Words) -> Vec<Interval> {
        let mut intervals = Vec::new();
        let end_of = |thread: ThreadIndex, end| match end {
            NO_TIME => self.execution.threads.get(thread.index()).map_or(0, |thread| thread.track.end()),
            end => end,
        };
        for call in &self.execution.communication.calls {
            let name = call.function_name().map(|name| format!("MPI_{name}"));
            let name = words.number(name.as_deref().unwrap_or("call of MPI"));
            intervals.push(Interval {
                thread: call.thread,
                start: call.start,
                end: end_of(call.thread, call.end),
                name,
            });
        }
        let waits = &self.execution.thread_waits.waits;
        let mut objects: Vec<_> = waits.iter().map(|wait| wait.object).collect();
        objects.sort_unstable();
        objects.dedup();
        let asked = objects.clone();
        let texts: Vec<String> = self
            .names
            .ask(move |places| asked.into_iter().map(|object| places.object_name(object)).collect());
        let texts = texts.into_iter().map(|text| words.number(&format!("wait for {text}")));
        let numbers: FxHashMap<_, i64> = objects.into_iter().zip(texts).collect();
        for wait in waits {
            if let Some(name) = numbers.get(&wait.object) {
                let (thread, start, end) = (wait.thread, wait.start, wait.end);
                intervals.push(Interval { thread, start, end, name: *name });
            }
        }
        intervals
    }

    /// States and bursts of instrumentation.
    fn ranges(&self, marks: &Marks, threads: &[Option<ThreadIndex>], words: &mut Words) -> Vec<Interval> {
        let known = marks.marks.iter().filter(|mark| mark.kind != MarkKind::Point);
        let ranges = known.filter_map(|mark| {
            let thread = (*threads.get(mark.thread as usize)?)?;
            let name = marks.words.get(mark.name as usize)?;
            let name = match mark.value_name.and_then(|value| marks.words.get(value as usize)) {
                Some(value) => words.number(&format!("{name}: {value}")),
                None => words.number(name),
            };
            let end = mark.end.unwrap_or_else(|| self.execution.threads[thread.index()].track.end());
            Some(Interval { thread, start: mark.start, end, name })
        });
        ranges.collect()
    }

    /// The keys of numbers that change, one counter for each process: those of most values.
    fn recorded_counters(&self, marks: &Marks, threads: &[Option<ThreadIndex>]) -> Vec<RecordedCounter> {
        type Points = Vec<(u64, i64)>;
        let mut points: FxHashMap<(u32, u32), (Points, Option<u32>, bool)> = FxHashMap::default();
        for mark in marks.marks.iter().filter(|mark| mark.kind == MarkKind::Point) {
            let thread = threads.get(mark.thread as usize).copied().flatten();
            let Some((thread, value)) = thread.zip(mark.value) else { continue };
            let process = self.execution.threads[thread.index()].process.0;
            let key = points.entry((process, mark.name)).or_default();
            key.0.push((mark.start, value.cast_signed()));
            (key.1, key.2) = (mark.unit, key.2 || mark.value_name.is_some());
        }
        let is_number = |(points, _, is_named): &(Points, Option<u32>, bool)| {
            !is_named && points.iter().any(|(_, value)| *value != points[0].1)
        };
        let mut counters: Vec<_> = points.into_iter().filter(|(_, key)| is_number(key)).collect();
        counters.sort_unstable_by_key(|((process, name), key)| (Reverse(key.0.len()), *process, *name));
        counters.truncate(MAX_COUNTERS);
        counters.sort_unstable_by_key(|((process, name), _)| (*name, *process));
        let word = |number: u32| marks.words.get(number as usize).map_or("", String::as_str);
        let counter =
            |((process, name), (mut points, unit, _)): ((u32, u32), (Points, Option<u32>, bool))| {
                // Of values at one time the last one counts.
                points.sort_by_key(|(at, _)| *at);
                points.reverse();
                points.dedup_by_key(|(at, _)| *at);
                points.reverse();
                let unit = unit.map(|unit| format!(" [{}]", word(unit))).unwrap_or_default();
                let of = self.process_words(process).map(|of| format!("{of}: ")).unwrap_or_default();
                let label = format!("{of}{}{unit}, last value", word(name));
                RecordedCounter { label, counter: Counter::from_changes(points, self.time().1) }
            };
        counters.into_iter().map(counter).collect()
    }

    /// A process in words, if there are several.
    fn process_words(&self, process: u32) -> Option<String> {
        let processes = &self.execution.processes;
        let own = processes.get(process as usize).filter(|_| processes.len() > 1)?;
        let rank = self.execution.communication.ranks.get(&process).map(|rank| rank.rank);
        Some(crate::names::rank_or_process(rank, own.pid))
    }

    /// The rows, and the words of their values.
    pub fn nested_list(&self) -> NestedList {
        let nested = self.nested();
        let rows = nested.rows.iter().enumerate().map(|(track, (thread, level))| ViewRow {
            track,
            label: format!("level {level}"),
            thread: Some(thread.index()),
        });
        let counters = (0..).zip(&nested.counters).map(|(number, counter)| NameAndLabel {
            name: super::CounterKind::Recorded(number).name(),
            label: counter.label.clone(),
        });
        NestedList {
            rows: rows.collect(),
            values: nested.view.labels.clone(),
            is_cut: nested.is_cut,
            tells_more: nested.has_ranges
                || !self.execution.thread_waits.waits.is_empty()
                || nested.rows.iter().any(|(_, level)| *level > 1),
            counters: counters.collect(),
        }
    }

    /// The interval of a row at a time, or the next or previous one. Times are nanoseconds since the start of the trace.
    pub fn nested_at(&self, row: u32, at: u64, step: Option<bool>) -> Option<ValueFacts> {
        let nested = self.nested();
        let found = self.value_of(&nested.view, row, at, step)?;
        let word =
            usize::try_from(found.value).ok().and_then(|value| nested.words.get(value.checked_sub(1)?));
        let thread = nested.rows.get(row as usize).map(|(thread, _)| thread.0);
        let label = Some(word.map_or("nothing", String::as_str).to_owned());
        Some(ValueFacts { label, view: NESTED.to_owned(), thread: Some(thread), ..found })
    }
}

impl Nested {
    /// Puts intervals into rows.
    fn arrange(&mut self, mut intervals: Vec<Interval>, words: Vec<String>) {
        intervals.retain(|interval| interval.end > interval.start);
        intervals.sort_unstable_by_key(|i| (i.thread, i.start, Reverse(i.end), i.name));
        let mut shown: Vec<u64> = vec![0; words.len() + 1];
        let mut rows = Vec::new();
        for own in intervals.chunk_by(|a, b| a.thread == b.thread) {
            let mut levels: Vec<Values> = Vec::new();
            for interval in own {
                let open = levels.iter().rposition(|level| level.end > interval.start);
                let level = open.map_or(0, |open| open + 1);
                if level >= MAX_LEVELS {
                    self.is_cut = true;
                    continue;
                }
                if level == levels.len() {
                    levels.push(Values::default());
                }
                push(&mut levels[level], interval);
                shown[interval.name as usize] += interval.end - interval.start;
            }
            for (level, values) in (1..).zip(levels) {
                self.rows.push((own[0].thread, level));
                rows.push(ValueRow::of(values));
            }
        }
        let mut labels: Vec<(i64, String)> = (1..).zip(words.iter().cloned()).collect();
        labels.retain(|(value, _)| shown[*value as usize] > 0);
        labels.sort_by_key(|(value, _)| Reverse(shown[*value as usize]));
        labels.truncate(MAX_LABELS);
        self.view = KeptView { title: "nested sections".to_owned(), labels, rows, doubts: Vec::new() };
        self.words = words;
    }
}

/// Adds an interval that begins when the last one has ended, with nothing between them.
fn push(level: &mut Values, interval: &Interval) {
    if !level.start.is_empty() && level.end < interval.start {
        level.start.to_mut().push(level.end);
        level.value.to_mut().push(0);
    }
    level.start.to_mut().push(interval.start);
    level.value.to_mut().push(interval.name);
    level.end = interval.end;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_from_what_is_open() {
        let interval = |start, end, name| Interval { thread: ThreadIndex(0), start, end, name };
        // Two in one, one after them that overlaps without nesting, one without a length.
        let all = vec![
            interval(30, 60, 3),
            interval(10, 100, 1),
            interval(20, 30, 2),
            interval(90, 120, 4),
            interval(110, 130, 5),
            interval(130, 130, 5),
        ];
        let mut nested = Nested::default();
        nested.arrange(all, ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec());
        let row = |at: usize| {
            let Values { start, value, end } = &nested.view.rows[at].values;
            (start.iter().copied().zip(value.iter().copied()).collect::<Vec<_>>(), *end)
        };
        assert_eq!(row(0), (vec![(10, 1)], 100));
        assert_eq!(row(1), (vec![(20, 2), (30, 3), (60, 0), (90, 4)], 120));
        assert_eq!(row(2), (vec![(110, 5)], 130));
        assert_eq!(nested.rows, [1, 2, 3].map(|level| (ThreadIndex(0), level)));
        assert_eq!(nested.view.labels[0], (1, "a".to_owned()));
        assert!(!nested.is_cut);
    }

    #[test]
    fn levels_beyond_the_last_are_reported_as_cut() {
        let deep = (0..20).map(|i| Interval { thread: ThreadIndex(0), start: i, end: 100 - i, name: 1 });
        let mut nested = Nested::default();
        nested.arrange(deep.collect(), vec!["a".to_owned()]);
        assert_eq!(nested.view.rows.len(), MAX_LEVELS);
        assert!(nested.is_cut);
    }
}
