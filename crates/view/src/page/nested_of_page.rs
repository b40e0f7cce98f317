//! The nested sections and the recorded counters of a page: where they come from, and what is sent of them.

use super::Page;
use super::counters::{CounterKind, counter_of_part};
use super::nested::{Interval, NESTED, Nested, RecordedCounter, Words};
use super::shown::NameAndLabel;
use super::values::{ValueFacts, ViewRow};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;
use taskscope_execution::{NO_TIME, ThreadIndex};
use taskscope_session::instrumentation::{MarkKind, Marks};

/// Recorded counters that are shown, those with most values first.
const MAX_COUNTERS: usize = 24;

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

impl Page {
    /// The nested sections; reads the trace on first use if its program is instrumented.
    pub fn nested(&self) -> &Arc<Nested> {
        self.derived.nested.get_or_init(|| Arc::new(self.new_nested()))
    }

    /// The nested sections, if they are known already.
    pub(crate) fn known_nested(&self) -> Option<&Nested> {
        self.derived.nested.get().map(Arc::as_ref)
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
        let numbers = self.numbers_of_waits(words);
        for (wait, name) in self.execution.thread_waits.waits.iter().zip(numbers) {
            let (thread, start, end) = (wait.thread, wait.start, wait.end);
            intervals.push(Interval { thread, start, end, name });
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
                RecordedCounter { label, counter: counter_of_part(points, self.time()) }
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
            name: CounterKind::Recorded(number).name(),
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
        let thread = nested.rows.get(row as usize).map(|(thread, _)| *thread);
        let time = (self.start() + found.start, self.start() + found.end);
        let thread_wait =
            thread.filter(|_| word.is_some()).and_then(|thread| self.thread_wait_of(thread, time));
        let label = Some(word.map_or("nothing", String::as_str).to_owned());
        let thread = Some(thread.map(|thread| thread.0));
        Some(ValueFacts { label, view: NESTED.to_owned(), thread, thread_wait, ..found })
    }
}
