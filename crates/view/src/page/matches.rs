//! The matches of a search.

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;
use taskscope_execution::lod::Marks;
use taskscope_execution::{Place, State, TaskIndex, ThreadIndex};
use taskscope_filter::Filter;

/// The sections that pass a filter or contain a word, marked per thread on demand.
pub struct Matches {
    pub(super) text: String,
    pub(super) pattern: Pattern,
    pub(super) marks: Vec<OnceLock<Marks>>,
    pub(super) lanes: Vec<OnceLock<Marks>>,
    /// Marks of rows of code by samples.
    pub(super) code: Vec<OnceLock<Marks>>,
}

/// The criterion of a search.
pub(super) enum Pattern {
    /// States, places and threads with the text in their words.
    Words { states: [bool; State::ALL.len()], places: FxHashSet<Place>, threads: FxHashSet<ThreadIndex> },
    /// These tasks.
    Tasks(FxHashSet<TaskIndex>),
    /// Sections that pass a filter; with the words of places, if it uses them.
    Filter { filter: Filter, words: FxHashMap<Place, String> },
}
