//! Rows of what instrumented threads or tasks show, in any of the behaviours.

use super::Page;
use serde_json::{Value, json};
use std::sync::Arc;
use taskscope_session::instrumentation::{Behaviour, By, DrawnName, DrawnView, Views};

impl Page {
    /// The views of the trace's instrumentation; `None` where there is no trace to play.
    pub fn shown_views(&self) -> Option<&Arc<Views>> {
        self.shown.get_or_init(|| Views::open(&self.root).ok().map(Arc::new)).as_ref()
    }

    /// A view; plays the trace if it was not yet.
    pub fn shown_view(&self, name: DrawnName) -> Option<Arc<DrawnView>> {
        self.shown_views()?.view(name)
    }

    /// What can be shown of whom in which behaviour; nothing where the program tells nothing of itself.
    pub fn shown_json(&self) -> Value {
        let views = self.shown_views().filter(|views| views.is_told());
        let Some(views) = views else { return json!({ "what": [], "per": [], "behaviours": [] }) };
        let drawn = views.drawn();
        let what = drawn.iter().map(|(what, label)| json!({ "name": what.to_string(), "label": label }));
        let behaviours = Behaviour::ALL.iter().filter(|behaviour| **behaviour != Behaviour::Raw);
        json!({
            "what": what.collect::<Vec<_>>(),
            "per": By::ALL.map(By::name),
            "behaviours": behaviours.map(|behaviour| behaviour.name()).collect::<Vec<_>>(),
        })
    }

    /// The rows of a view and the words of its values.
    pub fn shown_view_json(&self, name: DrawnName) -> Option<Value> {
        let view = self.shown_view(name)?;
        let streams = self.shown_views()?.trace().streams();
        let rows = view.rows.iter().enumerate().map(|(number, row)| {
            let stream = row.stream.and_then(|stream| streams.get(stream));
            let thread = stream.and_then(|stream| self.tracks_by_stream.get(&stream.relative_path));
            json!({ "track": number, "label": row.label, "thread": thread })
        });
        Some(json!({
            "name": name.to_string(),
            "rows": rows.collect::<Vec<_>>(),
            "values": view.kept.labels,
            "tasks_left_out": view.tasks_left_out,
            "is_cut": view.is_cut,
        }))
    }

    /// What a row shows at a time, or after or before what it shows then. Times are nanoseconds since the start
    /// of the trace.
    pub fn shown_at(&self, name: DrawnName, row: u32, at: u64, step: Option<bool>) -> Option<Value> {
        let view = self.shown_view(name)?;
        let mut found = self.value_of(&view.kept, row, at, step)?;
        let value = found["value"].as_u64().unwrap_or(0);
        let word = value.checked_sub(1).and_then(|value| view.words.get(value as usize));
        found["label"] = word.map_or("nothing", String::as_str).into();
        found["view"] = name.to_string().into();
        Some(found)
    }
}
