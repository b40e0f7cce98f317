//! Rows of instrumented threads' or tasks' states, in any of the behaviours.

use super::Page;
use super::values::{ValueFacts, ViewRow};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use taskscope_session::instrumentation::{Behaviour, By, DrawnName, DrawnView, Views};

/// The available views of a program's instrumentation; empty without any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ShownList {
    /// The instrumented states.
    pub what: Vec<NameAndLabel>,
    /// The owners of rows: threads, tasks.
    pub per: Vec<&'static str>,
    /// The possible effects of a task switch.
    pub behaviours: Vec<&'static str>,
}

/// A name in addresses and its words.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NameAndLabel {
    /// The name in addresses.
    pub name: String,
    /// The words for a person.
    pub label: String,
}

/// A view of a program's instrumentation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShownView {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: Vec<ViewRow>,
    /// Words of values.
    pub values: Vec<(i64, String)>,
    /// Tasks without a row.
    pub tasks_left_out: u64,
    /// Whether it ends before the trace does.
    pub is_cut: bool,
}

impl Page {
    /// The views of the trace's instrumentation; `None` without a trace to replay.
    pub fn shown_views(&self) -> Option<&Arc<Views>> {
        self.derived.shown.get_or_init(|| Views::open(&self.root).ok().map(Arc::new)).as_ref()
    }

    /// A view; plays the trace if it was not yet.
    pub fn shown_view(&self, name: DrawnName) -> Option<Arc<DrawnView>> {
        self.shown_views()?.view(name)
    }

    /// All combinations of state, owner and behaviour; empty if the program is not instrumented.
    pub fn shown_list(&self) -> ShownList {
        let views = self.shown_views().filter(|views| views.is_known());
        let Some(views) = views else { return ShownList::default() };
        let what = views.drawn().into_iter();
        let what = what.map(|(what, label)| NameAndLabel { name: what.to_string(), label });
        let behaviours = Behaviour::ALL.iter().filter(|behaviour| **behaviour != Behaviour::Raw);
        ShownList {
            what: what.collect(),
            per: By::ALL.map(By::name).to_vec(),
            behaviours: behaviours.map(|behaviour| behaviour.name()).collect(),
        }
    }

    /// The rows of a view and the words of its values.
    pub fn shown_view_facts(&self, name: DrawnName) -> Option<ShownView> {
        let view = self.shown_view(name)?;
        let streams = self.shown_views()?.trace().streams();
        let rows = view.rows.iter().enumerate().map(|(number, row)| {
            let stream = row.stream.and_then(|stream| streams.get(stream));
            let thread = stream.and_then(|stream| self.tracks_by_stream.get(&stream.relative_path));
            ViewRow { track: number, label: row.label.clone(), thread: thread.copied() }
        });
        Some(ShownView {
            name: name.to_string(),
            rows: rows.collect(),
            values: view.kept.labels.clone(),
            tasks_left_out: view.tasks_left_out,
            is_cut: view.is_cut,
        })
    }

    /// The value of a row at a time, or the next or previous value. Times are nanoseconds since the start of
    /// the trace.
    pub fn shown_at(&self, name: DrawnName, row: u32, at: u64, step: Option<bool>) -> Option<ValueFacts> {
        let view = self.shown_view(name)?;
        let found = self.value_of(&view.kept, row, at, step)?;
        let value = u64::try_from(found.value).unwrap_or(0);
        let word = value.checked_sub(1).and_then(|value| view.words.get(value as usize));
        let label = word.map_or("nothing", String::as_str).to_owned();
        Some(ValueFacts { label: Some(label), view: name.to_string(), ..found })
    }
}
