//! Numbers of names, from the dictionary.

use super::dictionary::{self, Meaning};
use super::feature::IS_COMPILED_IN;
use super::sinks;
use super::site::Answer;
use crate::process;

/// Whether events have a receiver; events after the end of recording are counted.
pub fn has_receivers() -> bool {
    IS_COMPILED_IN && (process::is_recording() || process::has_finished() || sinks::are_loaded())
}

pub(super) fn register(meaning: &Meaning<'_>) -> Answer {
    if !has_receivers() {
        return Answer::Off;
    }
    ask(meaning)
}

/// [`register`] with or without a receiver.
pub(super) fn ask(meaning: &Meaning<'_>) -> Answer {
    if !IS_COMPILED_IN {
        return Answer::Off;
    }
    match dictionary::with(|names| names.register(meaning)) {
        Some(Some((number, true))) => Answer::On(number as u32),
        Some(_) => Answer::Off,
        None => Answer::Later,
    }
}
