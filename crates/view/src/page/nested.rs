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

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::ThreadIndex;
use taskscope_execution::lod::{Counter, Values};
use taskscope_session::model_views::{KeptView, ValueRow};

/// Levels that have rows.
const MAX_LEVELS: usize = 12;
/// Names that pages receive at once, the longest shown first; all others are sent on request.
const MAX_LABELS: usize = 1000;
/// Traces of more events are not read for a report's counters.
pub(super) const MAX_READ_EVENTS: u64 = 3_000_000;
/// The view's name in addresses.
pub const NESTED: &str = "nested";

/// An interval of a thread with the number of its name, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub thread: ThreadIndex,
    pub start: u64,
    pub end: u64,
    pub name: i64,
}

/// Numbers of names, from 1.
#[derive(Default)]
pub(super) struct Words {
    numbers: FxHashMap<String, i64>,
    pub words: Vec<String>,
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
    pub(super) rows: Vec<(ThreadIndex, usize)>,
    /// Names of all values: that of value 1 first.
    pub(super) words: Vec<String>,
    /// Whether there were deeper levels than rows.
    pub(super) is_cut: bool,
    /// Whether the program or a library reported ranges.
    pub(super) has_ranges: bool,
    /// Recorded counters.
    pub counters: Vec<RecordedCounter>,
}

impl Words {
    pub fn number(&mut self, word: &str) -> i64 {
        if let Some(known) = self.numbers.get(word) {
            return *known;
        }
        self.words.push(word.to_owned());
        let number = self.words.len() as i64;
        self.numbers.insert(word.to_owned(), number);
        number
    }
}

impl Nested {
    /// Puts intervals into rows.
    pub(super) fn arrange(&mut self, mut intervals: Vec<Interval>, words: Vec<String>) {
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
    fn levels_follow_from_open_intervals() {
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
