//! The rows of code by samples of a page: how they are made, and what is sent of them.

use super::Page;
use super::matches::Matches;
use super::packing::packed_values;
use super::sample_rows::{NO_CPU, NO_PATH, SampleRows, SampleView, name_of_value, value_of_name};
use super::samples::{NONE, SampleTime, SampleTimes, times_away};
use super::values::ViewRow;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::lod::{CLASSES, Values, Window};
use taskscope_execution::{State, ThreadIndex};
use taskscope_session::model_views::{KeptView, ValueRow};

/// Levels that have rows.
const MAX_LEVELS: usize = 16;
/// Names that pages receive, the longest shown first.
const MAX_LABELS: usize = 1000;
/// Values with a share of their own in a stack; all others are together at place 0.
const STACKED: usize = CLASSES / 2;

/// The rows of a view of samples as a page lists them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SampleRowList {
    /// The view's name.
    pub name: &'static str,
    /// The view in words.
    pub label: &'static str,
    /// Its rows.
    pub rows: Vec<ViewRow>,
    /// Words of values, those with most time first.
    pub values: Vec<(i64, String)>,
    /// Whether there were deeper levels than rows.
    pub is_cut: bool,
}

/// A row while it is made.
#[derive(Default)]
struct Row {
    values: Values,
    /// The end of the last bar.
    until: Option<u64>,
}

impl Row {
    /// Adds a bar, which begins at the end of the last one or later.
    fn push(&mut self, start: u64, end: u64, value: i64) {
        if let Some(until) = self.until.filter(|until| *until < start) {
            self.values.set(until, 0);
        }
        self.values.set(start, value);
        self.values.end = end;
        self.until = Some(end);
    }
}

/// The values of a thread's pieces over time, one row for each of so many levels.
fn values_of(
    page: &Page,
    view: SampleView,
    (thread, own): (ThreadIndex, &[SampleTime]),
    levels: usize,
) -> Vec<Values> {
    let samples = &page.samples;
    let mut values_of_spots: FxHashMap<u32, Vec<i64>> = FxHashMap::default();
    let mut values = |spot: u32| -> Vec<i64> {
        let known = values_of_spots.entry(spot).or_insert_with(|| match view {
            SampleView::Code => vec![samples.name_number(spot).map_or(NO_PATH, value_of_name)],
            SampleView::Path if samples.name_number(spot).is_none() => vec![NO_PATH],
            SampleView::Path => samples.path(spot).iter().map(|step| value_of_name(step.name)).collect(),
        });
        known.clone()
    };
    let mut bars: Vec<(u64, u64, Vec<i64>)> = SampleTimes::pieces(&page.execution, own)
        .into_iter()
        .map(|piece| (piece.start, piece.end, values(piece.spot)))
        .collect();
    let life = own.first().map_or(0, |row| row.start)..own.last().map_or(0, |row| row.end);
    let away = times_away(&page.execution, thread).into_iter().filter(|(.., is_blocked)| !is_blocked);
    let away = away.map(|(start, end, _)| (start.max(life.start), end.min(life.end), vec![NO_CPU]));
    bars.extend(away.filter(|(start, end, _)| start < end));
    bars.sort_by_key(|(start, ..)| *start);
    let mut rows: Vec<Row> = Vec::new();
    rows.resize_with(levels, Row::default);
    let mut until = 0;
    for (start, end, values) in bars {
        // A time without a CPU may lie between samples that reach back less far, and never in a piece.
        let start = start.max(until);
        if start >= end {
            continue;
        }
        until = end;
        rows.iter_mut().zip(values).for_each(|(row, value)| row.push(start, end, value));
    }
    rows.into_iter().map(|row| row.values).collect()
}

impl Page {
    /// The rows of a view of samples, made on first use.
    pub(super) fn sample_rows(&self, view: SampleView) -> &SampleRows {
        self.derived.sample_rows[view as usize].get_or_init(|| self.new_sample_rows(view))
    }

    fn new_sample_rows(&self, view: SampleView) -> SampleRows {
        let threads: Vec<_> = self.samples.by_thread().zip(self.levels_of_threads(view)).collect();
        let levels_of = |((thread, _), levels): &((ThreadIndex, &[SampleTime]), usize)| {
            let thread = *thread;
            (1..=*levels).map(move |level| (thread, level))
        };
        let rows = threads.iter().flat_map(levels_of).collect();
        let made: Vec<Vec<ValueRow>> = (threads.into_par_iter())
            .map(|(own, levels)| values_of(self, view, own, levels).into_iter().map(ValueRow::of).collect())
            .collect();
        let (title, labels) = (view.title().to_owned(), self.sample_labels(view));
        let view = KeptView { title, labels, rows: made.into_iter().flatten().collect(), doubts: Vec::new() };
        SampleRows { view, rows }
    }

    /// The number of levels of each thread with samples, 16 at most.
    fn levels_of_threads(&self, view: SampleView) -> Vec<usize> {
        let depths = self.samples.depths();
        let levels = |own: &[SampleTime]| match view {
            SampleView::Code => 1,
            SampleView::Path => {
                let depths = own.iter().map(|row| depths.get(row.spot as usize).copied().unwrap_or(0));
                depths.max().unwrap_or(0).clamp(1, MAX_LEVELS)
            }
        };
        self.samples.by_thread().map(|(_, own)| levels(own)).collect()
    }

    /// The words of the values of a view, functions with most time first.
    fn sample_labels(&self, view: SampleView) -> Vec<(i64, String)> {
        let samples = &self.samples;
        let spots = samples.spots.len() as u32;
        let mut names: Vec<u32> = match view {
            SampleView::Code => (0..spots).filter_map(|spot| samples.name_number(spot)).collect(),
            SampleView::Path => samples.steps.iter().map(|step| step.name).collect(),
        };
        names.sort_unstable();
        names.dedup();
        names.truncate(MAX_LABELS);
        let mut values: Vec<i64> = names.into_iter().map(value_of_name).collect();
        if (0..spots).any(|spot| samples.name_number(spot).is_none()) {
            values.push(NO_PATH);
        }
        if samples.by_thread().any(|(thread, _)| times_away(&self.execution, thread).iter().any(|row| !row.2))
        {
            values.push(NO_CPU);
        }
        values.into_iter().map(|value| (value, self.sample_word(value).to_owned())).collect()
    }

    /// The word of a value of samples.
    pub(super) fn sample_word(&self, value: i64) -> &str {
        match value {
            NO_CPU => State::OutOfCpu.label(),
            NO_PATH => self.samples.name_of(NONE),
            _ => name_of_value(value).map_or("", |name| self.samples.word(name)),
        }
    }

    /// The lists of both views; empty without samples.
    pub fn sample_lists(&self) -> Vec<SampleRowList> {
        if self.samples.is_empty() {
            return Vec::new();
        }
        let is_deep = self.samples.depths().into_iter().any(|depth| depth > MAX_LEVELS);
        // Without the values over time, which only a shown view needs.
        let list = |view: SampleView| {
            let threads = self.samples.by_thread().zip(self.levels_of_threads(view));
            let rows =
                threads.flat_map(|((thread, _), levels)| (1..=levels).map(move |level| (thread, level)));
            let row = |(track, (thread, level)): (usize, (ThreadIndex, usize))| ViewRow {
                track,
                label: match view {
                    SampleView::Code => view.title().to_owned(),
                    SampleView::Path => format!("level {level}"),
                },
                thread: Some(thread.index()),
            };
            SampleRowList {
                name: view.name(),
                label: view.label(),
                rows: rows.enumerate().map(row).collect(),
                values: self.sample_labels(view),
                is_cut: is_deep && view == SampleView::Path,
            }
        };
        SampleView::ALL.map(list).to_vec()
    }

    /// Number of rows of a view of samples.
    pub fn sample_row_count(&self, view: SampleView) -> usize {
        self.sample_rows(view).rows.len()
    }

    /// Buckets of some rows, packed as those of threads; of code with flags on the buckets that contain matches.
    pub fn packed_samples(
        &self,
        view: SampleView,
        rows: &[u32],
        window: Window,
        matches: Option<&Matches>,
    ) -> Vec<u8> {
        let known = &self.sample_rows(view).view.rows;
        let (numbers, rows): (Vec<u32>, Vec<&ValueRow>) =
            rows.iter().filter_map(|row| Some((*row, known.get(*row as usize)?))).unzip();
        packed_values(&rows, window, |row, buckets| {
            let marks = matches.filter(|_| view == SampleView::Code);
            if let Some(marks) = marks.and_then(|matches| matches.code_marks(self, numbers[row])) {
                marks.flag(window, buckets);
            }
        })
    }

    /// Threads that run the code of each value in every bucket of a window, over some rows: `[bucket][value]`, the largest 31, at place 0
    /// all other code; each a little-endian 32-bit float of threads on average.
    pub fn stacked_code(&self, rows: &[u32], window: Window) -> Vec<u8> {
        let known = &self.sample_rows(SampleView::Code).view.rows;
        let zero = || vec![0_u64; STACKED * window.count as usize];
        let add = |mut sums: Vec<u64>, row: &ValueRow| {
            row.pyramid.shares_of(&row.values, window, |bucket, class, ns| {
                let place = if (class as usize) < STACKED { class as usize } else { 0 };
                // Class 0 is nothing.
                if class != 0 {
                    sums[bucket * STACKED + place] += ns;
                }
            });
            sums
        };
        let join = |mut left: Vec<u64>, right: Vec<u64>| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
            left
        };
        let rows = rows.par_iter().filter_map(|row| known.get(*row as usize));
        let sums = rows.fold(zero, add).reduce(zero, join);
        let width = (window.end() - window.start()) as f64 / f64::from(window.count.max(1));
        sums.iter().flat_map(|ns| ((*ns as f64 / width) as f32).to_le_bytes()).collect()
    }
}
