//! All matches of a search together, and words that were nearly found.

use super::Page;
use super::bars::{short, with_line};
use super::matches::Pattern;
use super::search::{FIELDS, has_text};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use taskscope_execution::{State, ThreadIndex};
use taskscope_filter::bare_times;

/// Listed hints.
const HINTS: usize = 3;

/// All matches of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SearchTotals {
    /// Matching sections.
    pub sections: u64,
    /// Their thread-nanoseconds.
    pub ns: u64,
    /// Matching operations of device queues.
    pub operations: u64,
    /// Stretches of code by samples with a function that matches.
    pub code: u64,
    /// Their thread-nanoseconds.
    pub code_ns: u64,
    /// Similar searches that match something; only if this one matches nothing.
    pub hints: Vec<String>,
    /// Numbers of a filter that are taken as nanoseconds, as they have no unit.
    pub bare_times: Vec<String>,
}

impl Page {
    /// Counts the matches of a search, as [`search`](Page::search) finds them.
    pub fn search_totals(&self, text: &str) -> SearchTotals {
        let pattern = self.pattern(text);
        let is_nothing = pattern.is_nothing();
        let track_totals = |track: u32| {
            let track = ThreadIndex(track);
            let spans = self.execution.threads[track.index()].track.spans();
            let matching = spans.filter(|span| pattern.matches(self, track, span));
            matching.fold((0, 0), |(count, ns), span| (count + 1, ns + span.nanos()))
        };
        let tracks = if is_nothing { 0 } else { self.tracks() as u32 };
        let add = |one: (u64, u64), two: (u64, u64)| (one.0 + two.0, one.1 + two.1);
        let (sections, ns) = (0..tracks).into_par_iter().map(track_totals).reduce(|| (0, 0), add);
        let operations = self.queues.count_named(has_text(text));
        let (code, code_ns) = self.count_code(text);
        let hints = if sections + operations + code == 0 { self.hints(text) } else { Vec::new() };
        // Words may have any signs.
        let is_filter = matches!(pattern, Pattern::Filter { .. });
        let bare_times = if is_filter { bare_times(text, &FIELDS) } else { Vec::new() };
        SearchTotals { sections, ns, operations, code, code_ns, hints, bare_times }
    }

    /// The text with its last word replaced by similar known words.
    fn hints(&self, text: &str) -> Vec<String> {
        let text = text.trim();
        let (begin, end) = last_word(text);
        let wanted = text[begin..end].to_lowercase();
        if wanted.is_empty() {
            return Vec::new();
        }
        let is_filter = text.contains(['=', '~']);
        let states = State::ALL
            .into_iter()
            .map(|state| if is_filter { state.name() } else { state.label() }.to_owned());
        let places = self.words_of_places(|_| true).into_iter().map(|(_, words)| words);
        // Of bars that have lines the names with these.
        let places = places.flat_map(|words| [Some(short(&words).to_owned()), with_line(&words)]).flatten();
        // Those of code without the names around them.
        let last_part = |name: &str| match name.rsplit_once("::") {
            Some((_, last)) if !name.contains('<') => last.to_owned(),
            _ => name.to_owned(),
        };
        let steps = self.samples.steps.iter().map(|step| last_part(self.samples.word(step.name)));
        let known = states.chain(places).chain(steps).filter(|words| !words.is_empty());
        let known: BTreeSet<String> = known.collect();
        let mut near: Vec<(usize, String)> = known
            .into_iter()
            .filter_map(|words| {
                let distance = words
                    .to_lowercase()
                    .split_whitespace()
                    .map(|word| edits(&wanted, word))
                    .chain([edits(&wanted, &words.to_lowercase())])
                    .min()?;
                (distance > 0 && distance <= 1 + wanted.chars().count() / 4).then_some((distance, words))
            })
            .collect();
        near.sort();
        let hints = near.into_iter().map(|(_, words)| format!("{}{}{}", &text[..begin], words, &text[end..]));
        hints.take(HINTS).collect()
    }
}

/// Begin and end of the last word of a text; a name with a line (`main:30`) is one word.
fn last_word(text: &str) -> (usize, usize) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let end = text.trim_end_matches(|c| !is_part(c)).len();
    let begin_of = |end: usize| {
        let before = text[..end].rfind(|c| !is_part(c));
        before.map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))
    };
    let begin = begin_of(end);
    let is_line = !text[begin..end].is_empty() && text[begin..end].bytes().all(|byte| byte.is_ascii_digit());
    match text[..begin].strip_suffix(':').filter(|name| is_line && name.ends_with(is_part)) {
        Some(name) => (begin_of(name.len()), end),
        None => (begin, end),
    }
}

/// The number of inserted, removed or replaced letters between two words.
fn edits(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, letter) in one.chars().take(64).enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (column, other) in two.iter().enumerate() {
            let replaced = corner + usize::from(letter != *other);
            corner = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(corner + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_its_line_is_one_word() {
        let word = |text: &'static str| {
            let (begin, end) = last_word(text);
            &text[begin..end]
        };
        assert_eq!(word("mian:30"), "mian:30");
        assert_eq!(word("place=\"a::mian:30\""), "mian:30");
        assert_eq!(word("state=barier and :7"), "7");
        assert_eq!(word("a.c: trms "), "trms");
        assert_eq!(word("::"), "");
    }

    #[test]
    fn edits_are_counted() {
        for (one, two, expected) in [
            ("gemm", "gemm", 0),
            ("gem", "gemm", 1),
            ("barier", "barrier", 1),
            ("trms", "trsm", 2),
            ("", "ab", 2),
        ] {
            assert_eq!(edits(one, two), expected, "{one} {two}");
        }
    }
}
