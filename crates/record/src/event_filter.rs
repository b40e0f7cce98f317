//! The switch and the filter: which events are wanted at all.
//!
//! Every recorder has a word of its own, so a check costs one relaxed load of a cache line that the event
//! needs anyway.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::OnceLock;

use taskscope_event::Code;
use taskscope_event::models::{self, ovni};

pub use crate::switch::{switch_off, switch_on};

/// The environment variable that selects models and categories; see [`Filter::parse`].
pub const FILTER_VARIABLE: &str = "TASKSCOPE_FILTER";
/// Set to `off`, recording starts switched off.
pub const SWITCH_VARIABLE: &str = "TASKSCOPE_SWITCH";

/// Everything is wanted.
pub(crate) const ALL: u32 = 0;
/// No event is recorded.
pub(crate) const OFF: u32 = 1;
/// The filter selects events.
pub(crate) const FILTERED: u32 = 2;
/// Sinks receive events too.
pub(crate) const LIVE: u32 = 4;

pub(crate) static CURRENT: AtomicU32 = AtomicU32::new(ALL);
pub(crate) static FILTER: OnceLock<Filter> = OnceLock::new();
/// [`LIVE`] while sinks are loaded.
pub(crate) static SINKS: AtomicU32 = AtomicU32::new(0);

/// Reads the environment.
pub(crate) fn start() {
    let filter = FILTER.get_or_init(|| Filter::parse(&std::env::var(FILTER_VARIABLE).unwrap_or_default()));
    let on = if filter.selects_all() { ALL } else { FILTERED };
    let is_off = std::env::var(SWITCH_VARIABLE).is_ok_and(|value| value == "off" || value == "0");
    CURRENT.store(if is_off { OFF } else { on | SINKS.load(Relaxed) }, Relaxed);
}

pub(crate) fn current() -> u32 {
    CURRENT.load(Relaxed)
}

/// Whether events like `code` are wanted now.
pub(crate) fn wants(code: Code) -> bool {
    is_on() && lets_pass(code)
}

/// Whether recording is switched on.
pub fn is_on() -> bool {
    current() != OFF
}

/// Whether the filter lets `code` pass. Events about threads and their CPUs always do.
#[cold]
pub(crate) fn lets_pass(code: Code) -> bool {
    FILTER.get().is_none_or(|filter| filter.lets_pass(code))
}

/// A selection of models and categories.
pub struct Filter {
    /// One bit for each category letter of each model letter.
    pass: Box<[u128; 128]>,
}

impl Filter {
    /// Parses `MODEL`, `MODEL.LETTER` (a category of it), either with a leading `-`, separated by commas; a
    /// model is named or given by its letter. The last word about a category counts. If the first word is an
    /// exclusion, everything else is selected. Unknown models are ignored.
    pub fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let all = words.first().is_none_or(|first| first.starts_with('-'));
        let mut pass = Box::new([if all { u128::MAX } else { 0 }; 128]);
        for word in words {
            let (include, word) = word.strip_prefix('-').map_or((true, word), |rest| (false, rest));
            let (name, category) = word.split_once('.').map_or((word, None), |(name, c)| (name, Some(c)));
            let named = models::MODELS.iter().find(|model| model.name == name).map(|model| model.letter);
            let letter = named.or(<[u8; 1]>::try_from(name.as_bytes()).ok().map(|[letter]| letter));
            let Some(row) = letter.and_then(|letter| pass.get_mut(usize::from(letter))) else { continue };
            let bits = category.and_then(|c| c.bytes().next()).map_or(u128::MAX, |c| 1 << (c & 127));
            *row = if include { *row | bits } else { *row & !bits };
        }
        Filter { pass }
    }

    pub(crate) fn selects_all(&self) -> bool {
        self.pass.iter().all(|row| *row == u128::MAX)
    }

    /// Whether events like `code` are selected.
    pub fn lets_pass(&self, code: Code) -> bool {
        let [model, category, _] = code.0;
        const ALWAYS: [Code; 3] = [ovni::THREAD_EXECUTES, ovni::SET_AFFINITY, ovni::UNSORTED_BEGIN];
        let about_threads = ALWAYS.iter().any(|of| of.0[..2] == [model, category]);
        about_threads || self.pass[usize::from(model & 127)] >> (category & 127) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::nosv;

    #[test]
    fn models_and_categories_are_selected() {
        let all = Filter::parse("");
        assert!(all.selects_all() && all.lets_pass(nosv::TASK_CREATE));
        let only = Filter::parse("nosv.T");
        assert!(only.lets_pass(nosv::TASK_CREATE) && !only.lets_pass(nosv::SCHEDULER_HUNGRY_BEGIN));
        assert!(only.lets_pass(ovni::THREAD_EXECUTES) && !only.lets_pass(ovni::MARK_PUSH));
        let without = Filter::parse("-nosv.S, -V.T");
        assert!(!without.lets_pass(nosv::TASK_CREATE) && !without.lets_pass(nosv::SCHEDULER_HUNGRY_BEGIN));
        assert!(without.lets_pass(nosv::TYPE_CREATE) && without.lets_pass(ovni::MARK_PUSH));
        assert!(!Filter::parse("unknown").selects_all());
    }
}
