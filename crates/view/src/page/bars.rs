//! Sections that are wide enough on a screen for their names.
//!
//! ```text
//!   buckets  |···|···|···|···|···|···|      a section of two widths or more fills a bucket,
//!   section      ├────────────┤             and is the longest in it
//! ```
//! So the buckets of a window find all such sections, in time proportional to the number of buckets.

use super::Page;
use super::rows::View;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use taskscope_execution::lod::Window;
use taskscope_execution::{
    ObjectIndex, Place, PlaceKind, Section, Span, State, TaskIndex, ThreadIndex, TypeIndex,
};

/// Named sections of a window. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Bars {
    /// Distinct names.
    pub words: Vec<String>,
    /// Track, begin, end, position in `words`, number of the state; in the order of tracks, then of time.
    pub bars: Vec<(u32, u64, u64, u32, u8)>,
}

/// The criterion by which sections have the same name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    State(State),
    Place(State, Place),
    Call(u32),
    Task(TaskIndex),
    Region(u32),
    Object(u32),
}

impl Page {
    /// The sections of at least two bucket widths that overlap a window, with their names in a view.
    pub fn bars(&self, view: View, tracks: &[ThreadIndex], window: Window) -> Bars {
        let bars_of_track = |track: &ThreadIndex| {
            let Some(thread) = self.execution.threads.get(track.index()) else { return Vec::new() };
            let mut rows: Vec<u32> = self
                .timeline
                .buckets(&self.execution, *track, window)
                .iter()
                .map(|bucket| bucket.longest)
                .collect();
            rows.dedup();
            let least = 2 << window.width_log2.min(62);
            let spans = rows
                .into_iter()
                .filter(|row| (*row as usize) < thread.track.len())
                .map(|row| thread.track.span(row as usize));
            let named = spans
                .filter(|span| span.nanos() >= least)
                .filter_map(|span| Some((*track, span, self.key(view, *track, &span)?)));
            named.collect::<Vec<_>>()
        };
        let found: Vec<(ThreadIndex, Span, Key)> = tracks.par_iter().map(bars_of_track).flatten().collect();
        let mut number_of: FxHashMap<Key, u32> = FxHashMap::default();
        let mut keys = Vec::new();
        let bars = found.into_iter().map(|(track, span, key)| {
            let number = *number_of.entry(key).or_insert_with(|| {
                keys.push(key);
                keys.len() as u32 - 1
            });
            (
                track.0,
                self.since_start(span.start),
                self.since_start(span.end),
                number,
                span.section.state as u8,
            )
        });
        let bars = bars.collect();
        Bars { bars, words: self.words(keys) }
    }

    /// The key of a section's name; `None` without a name in this view.
    fn key(&self, view: View, track: ThreadIndex, span: &Span) -> Option<Key> {
        let Section { state, place, task, region, object } = span.section;
        let type_key = || {
            self.execution.tasks.ty.get(task.index()).map(|ty| Key::Place(State::Task, Place::task_type(*ty)))
        };
        match view {
            View::State if state == State::Communication => {
                let call = self.call_at(track, span).map(|call| Key::Call(call.function));
                Some(call.unwrap_or(Key::State(state)))
            }
            View::State if state.is_useful() && place != Place::UNKNOWN => Some(Key::Place(state, place)),
            View::State => (!matches!(state, State::NotStarted | State::Ended)).then_some(Key::State(state)),
            View::Type if matches!(place.kind(), PlaceKind::Type(_)) => Some(Key::Place(state, place)),
            View::Type => type_key(),
            View::Task => task.is_some().then_some(Key::Task(task)),
            View::Region => self.region_number(region).map(|_| Key::Region(region.0)),
            View::Place => (place != Place::UNKNOWN).then_some(Key::Place(state, place)),
            View::Object => object.is_some().then_some(Key::Object(object.0)),
        }
    }

    /// The names that bars have of code in these states.
    pub(super) fn code_names(&self, code: &[(State, Place)]) -> Vec<String> {
        self.words(code.iter().map(|(state, place)| Key::Place(*state, *place)).collect())
    }

    /// The name that the bar of a section has.
    pub(super) fn bar_name(&self, track: ThreadIndex, span: &Span) -> String {
        let key = self.key(View::State, track, span).unwrap_or(Key::State(span.section.state));
        self.words(vec![key]).pop().unwrap_or_default()
    }

    /// Short names that several task types have, as constructs in one function: bars add the line.
    fn shared_names(&self) -> Arc<FxHashSet<String>> {
        let find = || {
            let types = (0..self.execution.catalog.types.len() as u32).map(TypeIndex);
            let names: Vec<String> =
                self.names.ask(move |places| types.map(|ty| places.type_name(ty)).collect());
            let mut whole: FxHashMap<&str, &str> = FxHashMap::default();
            let mut shared = FxHashSet::default();
            for name in &names {
                if *whole.entry(short(name)).or_insert(name) != name.as_str() {
                    shared.insert(short(name).to_owned());
                }
            }
            Arc::new(shared)
        };
        self.derived.shared_names.get_or_init(find).clone()
    }

    fn words(&self, keys: Vec<Key>) -> Vec<String> {
        let execution_word =
            |key: &Key| match *key {
                Key::State(state) => Some(state.label().to_owned()),
                Key::Call(function) => {
                    let known = taskscope_event::models::messages::FUNCTIONS.get(function as usize);
                    Some(known.map_or_else(
                        || State::Communication.label().to_owned(),
                        |name| format!("MPI_{name}"),
                    ))
                }
                Key::Task(task) => self.task_name(task),
                Key::Region(region) => self
                    .region_name(taskscope_execution::RegionIndex(region))
                    .map(|name| format!("region {name}")),
                Key::Place(..) | Key::Object(_) => None,
            };
        let known: Vec<Option<String>> = keys.iter().map(execution_word).collect();
        let asked = keys.clone();
        let (awaited, execution, shared) = (self.awaited(), self.execution.clone(), self.shared_names());
        let place_words: Vec<Option<String>> = self.names.ask(move |places| {
            let words = |key: &Key| match *key {
                Key::Place(state, place) => match short(&places.name(state, place)) {
                    "" => Some(state.label().to_owned()),
                    name if shared.contains(name) => {
                        let line = places.code(places.site_of(place)).frame.line;
                        Some(line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}")))
                    }
                    name => Some(name.to_owned()),
                },
                Key::Object(object) => Some(awaited.words(places, &execution, ObjectIndex(object), None)),
                _ => None,
            };
            asked.iter().map(words).collect()
        });
        let mut place_words = place_words.into_iter();
        known.into_iter().map(|known| known.or(place_words.next().flatten()).unwrap_or_default()).collect()
    }
}

/// A name without its construct and line: `gemm [task at cholesky.c:82]` is `gemm`.
pub(super) fn short(words: &str) -> &str {
    match words.split_once(" [") {
        Some((name, _)) if !name.is_empty() => name,
        _ => words.trim_start_matches('[').trim_end_matches(']'),
    }
}

/// A name with the line of its construct, as bars have it where several constructs have the name: `main [task at pages.c:30]` is `main:30`.
pub(super) fn with_line(words: &str) -> Option<String> {
    let (_, line) = words.strip_suffix(']')?.rsplit_once(':')?;
    line.parse::<u32>().ok()?;
    Some(format!("{}:{line}", short(words)))
}

#[cfg(test)]
mod tests {
    use super::with_line;

    #[test]
    fn constructs_have_a_name_with_their_line() {
        assert_eq!(with_line("main [task at pages.c:30]").as_deref(), Some("main:30"));
        assert_eq!(with_line("main [task at pages.c]"), None);
        assert_eq!(with_line("gemm"), None);
    }
}
