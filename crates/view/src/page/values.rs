//! Rows of numbers: the views of a trace's models, for threads, CPUs and breakdowns.

use super::Page;
use super::messages::ThreadWaitFacts;
use super::packing::packed_values;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use taskscope_execution::ThreadIndex;
use taskscope_execution::lod::Window;
use taskscope_execution::view::ViewFamily;
use taskscope_session::model_views::{ALL_AT_ONCE_EVENTS, KeptView, ModelViews, ValueRow, ViewName};

/// Buckets of some rows of a model's view, packed as those of threads.
pub fn packed_model_rows(view: &KeptView, rows: &[u32], window: Window) -> Vec<u8> {
    let found = rows.iter().filter_map(|row| Some((view.rows.get(*row as usize)?, *row as usize)));
    let (rows, numbers): (Vec<&ValueRow>, Vec<usize>) = found.unzip();
    packed_values(&rows, window, |row, buckets| {
        if let Some(doubts) = view.doubts.get(numbers[row]) {
            doubts.flag(window, buckets);
        }
    })
}

/// The views that the models of a trace have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModelFamilies {
    /// Families by the kind of their rows.
    pub families: Vec<ModelFamily>,
}

/// Views with the same rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelFamily {
    /// The family's name.
    pub family: &'static str,
    /// Its rows in words.
    pub label: &'static str,
    /// The rows.
    pub rows: Vec<ViewRow>,
    /// The views.
    pub types: Vec<ModelView>,
}

/// A row of a view.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ViewRow {
    /// Its number.
    pub track: usize,
    /// The row in words.
    pub label: String,
    /// The track of its thread; null without one.
    pub thread: Option<usize>,
}

/// A view of a model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelView {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Words of values, as far as they are known.
    pub values: Vec<(i64, String)>,
}

/// A value on a row of a view. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValueFacts {
    /// The row.
    pub track: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// The value.
    pub value: i64,
    /// Its label; null without one.
    pub label: Option<String>,
    /// The view's title.
    pub title: String,
    /// Whether it is uncertain.
    pub uncertain: bool,
    /// The view's name.
    pub view: String,
    /// The track of the row's thread, null without one; only for models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Option<u32>>,
    /// The longest wait for another thread in it; only of nested sections, absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_wait: Option<ThreadWaitFacts>,
}

impl Page {
    /// The views of the trace's models; `None` without a trace to replay.
    pub fn models(&self) -> Option<&Arc<ModelViews>> {
        let open = || {
            let mut models = ModelViews::open(&self.root).ok()?;
            models.keep_files(self.key.clone(), ALL_AT_ONCE_EVENTS);
            Some(Arc::new(models))
        };
        self.derived.models.get_or_init(open).as_ref()
    }

    /// A view of a model; plays the trace if it was not yet.
    pub fn model_view(&self, name: ViewName) -> Option<Arc<KeptView>> {
        self.models()?.view(name)
    }

    /// Which views the models have: families with their rows, and types.
    pub fn model_families(&self) -> ModelFamilies {
        let Some(models) = self.models() else { return ModelFamilies::default() };
        let streams: Vec<Option<usize>> =
            models.thread_streams().map(|path| self.tracks_by_stream.get(path).copied()).collect();
        let families = models.families().iter().map(|(family, description)| {
            let rows = description.rows.iter().enumerate().map(|(row, label)| {
                let thread =
                    if *family == ViewFamily::Thread { streams.get(row).copied().flatten() } else { None };
                ViewRow { track: row, label: label.clone(), thread }
            });
            let types = description.types.iter().filter_map(|known| {
                let name = ViewName { family: *family, number: known.number };
                let kept = models.kept(name);
                if kept.as_ref().is_some_and(|kept| kept.is_empty()) {
                    return None;
                }
                let labels = kept.map_or_else(|| known.values.clone(), |kept| kept.labels.clone());
                let title = known.title.trim().to_owned();
                Some(ModelView { name: name.to_string(), title, values: labels })
            });
            ModelFamily {
                family: family.file_name(),
                label: family_label(*family),
                rows: rows.collect(),
                types: types.collect(),
            }
        });
        ModelFamilies { families: families.collect() }
    }

    /// The replayed fraction of the trace, while a request waits for a view of it.
    pub fn playing(&self) -> Option<f64> {
        let models_progress =
            self.derived.models.get().and_then(Option::as_ref).and_then(|models| models.progress());
        models_progress.or_else(|| self.derived.shown.get()?.as_ref()?.progress())
    }

    /// The value of a row of a model's view at a time, or the next or previous value. Times are nanoseconds
    /// since the start of the trace.
    pub fn value_at(&self, name: ViewName, row: u32, at: u64, step: Option<bool>) -> Option<ValueFacts> {
        let found = self.value_of(&*self.model_view(name)?, row, at, step)?;
        let thread = self.thread_of_row(name, row).map(|thread| thread.0);
        Some(ValueFacts { view: name.to_string(), thread: Some(thread), ..found })
    }

    /// The value of a row of a replayed view at a time, or the next or previous value.
    pub(super) fn value_of(
        &self,
        view: &KeptView,
        row: u32,
        at: u64,
        step: Option<bool>,
    ) -> Option<ValueFacts> {
        let values = &view.rows.get(row as usize)?.values;
        let at = self.start().checked_add(at)?;
        let first = values.start.partition_point(|start| *start <= at);
        let found = match step {
            None if at >= values.end => None,
            None => first.checked_sub(1),
            Some(true) => Some(first).filter(|row| *row < values.start.len()),
            Some(false) => first.checked_sub(2),
        }?;
        let end = values.start.get(found + 1).copied().unwrap_or(values.end);
        let value = values.value[found];
        let doubts = view.doubts.get(row as usize);
        let is_uncertain = doubts.is_some_and(|doubts| doubts.touch(values.start[found], end));
        let label = view.labels.iter().find(|(known, _)| *known == value).map(|(_, label)| label.as_str());
        Some(ValueFacts {
            track: row,
            start: self.since_start(values.start[found]),
            end: self.since_start(end),
            value,
            label: label.map(str::to_owned),
            title: view.title.clone(),
            uncertain: is_uncertain,
            view: String::new(),
            thread: None,
            thread_wait: None,
        })
    }

    /// The track of a row of threads.
    fn thread_of_row(&self, name: ViewName, row: u32) -> Option<ThreadIndex> {
        if name.family != ViewFamily::Thread {
            return None;
        }
        let path = self.models()?.thread_streams().nth(row as usize)?;
        self.tracks_by_stream.get(path).map(|track| ThreadIndex(*track as u32))
    }
}

/// The rows of a family, for a person.
fn family_label(family: ViewFamily) -> &'static str {
    match family {
        ViewFamily::Thread => "threads",
        ViewFamily::Cpu => "CPUs",
        ViewFamily::Nanos6Breakdown => "Nanos6 breakdown",
        ViewFamily::NosvBreakdown => "nOS-V breakdown",
        ViewFamily::OpenmpBreakdown => "OpenMP breakdown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::lod::Values;

    #[test]
    fn only_short_values_have_a_bucket() {
        let mut values = Values::default();
        // Buckets of 1024 ns each: at a begin, inside, over an edge, at an end, and one that fills buckets.
        let somethings = [(1024, 1030), (3000, 3001), (5100, 5130), (7160, 7168), (9000, 12000)];
        values.set(0, 0);
        for (number, (from, to)) in (1..).zip(somethings) {
            values.set(from, number);
            values.set(to, 0);
        }
        values.end = 16384;
        let row = ValueRow::of(values);
        let window = Window { first: 0, width_log2: 10, count: 16 };
        let bytes = packed_values(&[&row], window, |_, _| {});
        let number = |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap());
        for bucket in 0..16_usize {
            let (from, to) = (bucket as u64 * 1024, (bucket as u64 + 1) * 1024);
            let inside = somethings.iter().enumerate().filter(|(_, (a, b))| *a < to && *b > from);
            let (most, busy) = inside.fold((0, 0), |(_, busy), (number, (a, b))| {
                (number as u32 + 1, busy + (*b).min(to) - (*a).max(from))
            });
            assert_eq!(number(16 + bucket), most, "bucket {bucket}");
            assert_eq!(number(bucket) & 255 == 0, busy < 512, "bucket {bucket} of {busy} ns");
        }
    }
}
