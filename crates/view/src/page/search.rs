//! From one section to the next whose name matches.

use super::Page;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde_json::Value;
use taskscope_execution::{GapIndex, Place, Section, SiteIndex, State, TaskIndex, ThreadIndex, TypeIndex};

/// Which way to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards later times.
    Next,
    /// Towards earlier times.
    Previous,
}

/// What a search looks for.
pub(super) struct Pattern {
    states: [bool; State::ALL.len()],
    places: FxHashSet<Place>,
    task: Option<TaskIndex>,
}

impl Pattern {
    fn matches(&self, section: &Section) -> bool {
        match self.task {
            Some(task) => section.task == task,
            None => self.states[section.state as usize] || self.places.contains(&section.place),
        }
    }

    fn is_nothing(&self) -> bool {
        self.task.is_none() && self.places.is_empty() && !self.states.contains(&true)
    }
}

impl Page {
    /// The nearest section that starts after (before) `at` and whose state, task type, construct or
    /// place has `text` in its words, in lower or upper case; `task 123` finds that task.
    pub fn search(&self, text: &str, at: u64, direction: Direction) -> Option<Value> {
        let pattern = self.pattern(text);
        if pattern.is_nothing() {
            return None;
        }
        let at = self.start().saturating_add(at);
        let found = (0..self.tracks() as u32).into_par_iter().filter_map(|track| {
            let track = ThreadIndex(track);
            let sections = &self.execution.threads[track.index()].track;
            let starts = sections.start_column();
            let matching = |row: &usize| pattern.matches(&sections.span(*row).section);
            let row = match direction {
                Direction::Next => (starts.partition_point(|s| *s <= at)..starts.len()).find(matching),
                Direction::Previous => (0..starts.partition_point(|s| *s < at)).rev().find(matching),
            }?;
            Some((starts[row], track, row))
        });
        let (_, track, row) = match direction {
            Direction::Next => found.min(),
            Direction::Previous => found.max(),
        }?;
        Some(self.section(track, self.execution.threads[track.index()].track.span(row)))
    }

    fn pattern(&self, text: &str) -> Pattern {
        let text = text.trim().to_lowercase();
        let mut pattern =
            Pattern { states: [false; State::ALL.len()], places: FxHashSet::default(), task: None };
        if text.is_empty() {
            return pattern;
        }
        if let Some(number) = text.strip_prefix("task ").and_then(|rest| rest.trim().parse().ok()) {
            pattern.task = Some(TaskIndex(number));
            return pattern;
        }
        for state in State::ALL {
            pattern.states[state as usize] = state.label().contains(&text) || state.name().contains(&text);
        }
        let catalog = &self.execution.catalog;
        let (types, sites, gaps) = (catalog.types.len(), catalog.sites.len(), catalog.gaps.len());
        pattern.places = self.names.ask(move |names| {
            let has = |words: String| words.to_lowercase().contains(&text);
            let types = (0..types as u32).map(TypeIndex).filter(|ty| has(names.type_name(*ty)));
            let mut found: FxHashSet<Place> = types.map(Place::of_type).collect();
            let sites = (0..sites as u32).map(SiteIndex).filter(|site| has(names.construct("", *site)));
            found.extend(sites.map(Place::site));
            let gaps = (0..gaps as u32).map(GapIndex).filter(|gap| has(names.gap_name(*gap)));
            found.extend(gaps.map(Place::gap));
            found
        });
        pattern
    }
}
