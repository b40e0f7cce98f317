//! Contexts of instrumented programs, and the trace's numbers for their names.

use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_context::{Behaviour, Contexts, Lane, Shown};
use taskscope_event::models::instrument as i;
use taskscope_execution::{ProcessIndex, TaskIndex, TypeIndex};

/// Contexts of a run's instrumented tasks, and the trace's numbers for their names.
pub struct Instrumented {
    pub contexts: Contexts,
    pub tasks: FxHashMap<(ProcessIndex, u64), (TaskIndex, TypeIndex)>,
    pub types: FxHashMap<(ProcessIndex, Named), TypeIndex>,
    pub classes: FxHashMap<(ProcessIndex, u32), u32>,
    /// Message domains of processes, and their numbers in the trace by name.
    pub domains: FxHashMap<(ProcessIndex, u32), u32>,
    pub domain_names: FxHashMap<String, u32>,
    /// Mistakes that recorders noticed: kind and text.
    pub mistakes: FxHashSet<(ProcessIndex, Vec<u8>)>,
    /// Steps of threads and tasks caused by the current event.
    pub steps: Vec<ContextStep>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Named {
    State(u32),
    Kind(u32),
}

pub enum ContextStep {
    Shown(Lane, Shown<'static>),
    Wrong,
}

impl Default for Instrumented {
    fn default() -> Self {
        Instrumented {
            contexts: Contexts::new(Behaviour::StackedStates),
            tasks: FxHashMap::default(),
            types: FxHashMap::default(),
            classes: FxHashMap::default(),
            domains: FxHashMap::default(),
            domain_names: FxHashMap::default(),
            mistakes: FxHashSet::default(),
            steps: Vec::new(),
        }
    }
}

impl Instrumented {
    pub fn domain_of_name(&mut self, name: &str) -> u32 {
        let built_in = i::DOMAINS.iter().position(|known| *known == name);
        let next = i::FIRST_OWN_DOMAIN + self.domain_names.len() as u32;
        match built_in {
            Some(number) => number as u32,
            None => *self.domain_names.entry(name.to_owned()).or_insert(next),
        }
    }
}
