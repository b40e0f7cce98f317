//! The names of this process: one dictionary for all threads, with its entries in the trace.
//!
//! An entry is an event. It is written by the thread that registers the name, or, if that one does not record
//! or recording has not started, by the next thread that starts to record; a forked child writes all of them
//! again. A lock is held while a name is registered, never when one is used.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use taskscope_event::Code;
use taskscope_event::models::instrument::{self as i, level, problem};

use super::attaching::attach_with_own_stream;
use super::settings::Settings;
use crate::thread::ThreadRecorder;
use crate::{nap, process};

/// Kind of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Space {
    Key,
    /// A value of this key.
    ValueOf(u32),
    State,
    Domain,
    TaskKind,
}

/// Declaration of a name.
#[derive(Clone, Copy)]
pub(super) struct Meaning<'a> {
    pub space: Space,
    pub name: &'a [u8],
    pub description: &'a [u8],
    /// Unit of a key's values, or the file of a task kind.
    pub more: &'a [u8],
    /// Level of a key, class of a state, line of a task kind.
    pub number: u32,
    pub stacked: bool,
}

impl Meaning<'_> {
    /// The name that prefixes of the settings are compared with.
    fn full_name(&self) -> String {
        let name = String::from_utf8_lossy(self.name);
        match self.space {
            Space::Key | Space::ValueOf(_) => name.into_owned(),
            Space::State => format!("state.{name}"),
            Space::Domain => format!("ptp.{name}"),
            Space::TaskKind => format!("task.{name}"),
        }
    }

    fn level(&self) -> u32 {
        if self.space == Space::Key { self.number } else { level::ENABLED }
    }

    /// Distinguishes a name from all others of its space. Tasks of one name at several places are of several
    /// kinds.
    fn identity(&self) -> Vec<u8> {
        let mut identity = without_nul(self.name);
        if self.space == Space::TaskKind {
            identity.push(0);
            identity.extend(without_nul(self.more));
            identity.extend(self.number.to_le_bytes());
        }
        identity
    }
}

/// The name in a [`Meaning::identity`].
fn name_in(identity: &[u8]) -> &[u8] {
    identity.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A registered name.
#[derive(Clone)]
struct Known {
    number: u64,
    /// Hash of the rest of its meaning.
    description: Vec<u8>,
    more: Vec<u8>,
    meaning: (u32, bool),
    on: bool,
}

pub(super) struct Dictionary {
    settings: Settings,
    /// By [`Meaning::identity`].
    names: HashMap<(Space, Vec<u8>), Known>,
    by_number: HashMap<(Space, u64), Vec<u8>>,
    /// The next number of each space, and of each key's values.
    next: HashMap<Space, u64>,
    /// Events that declare names and report mistakes.
    entries: Vec<(Code, Vec<u8>)>,
    /// Number of them in the recording of `written_for`.
    written: usize,
    written_for: usize,
    /// Times that each mistake was made.
    problems: HashMap<(u32, Vec<u8>), u64>,
}

/// Different texts of mistakes that are kept apart.
const MAX_PROBLEMS: usize = 1000;
/// Maximum length of a text in the trace: an entry is one event, which must fit into a stream's region.
const MAX_TEXT_BYTES: usize = 32 << 10;

static DICTIONARY: Mutex<Option<Dictionary>> = Mutex::new(None);
/// Registrations that were given up since the dictionary was locked.
static BUSY: AtomicU64 = AtomicU64::new(0);

impl Dictionary {
    pub fn new(settings: Settings) -> Dictionary {
        let mut dictionary = Dictionary {
            settings,
            names: HashMap::new(),
            by_number: HashMap::new(),
            next: HashMap::from([
                (Space::Key, 1),
                (Space::State, u64::from(i::FIRST_OWN_STATE)),
                (Space::Domain, u64::from(i::FIRST_OWN_DOMAIN)),
                (Space::TaskKind, 1),
            ]),
            entries: Vec::new(),
            written: 0,
            written_for: 0,
            problems: HashMap::new(),
        };
        for (number, (name, class)) in i::STATES.iter().enumerate() {
            dictionary.insert_built_in(Space::State, name, *class, number);
        }
        for (number, name) in i::DOMAINS.iter().enumerate() {
            dictionary.insert_built_in(Space::Domain, name, 0, number);
        }
        for text in std::mem::take(&mut dictionary.settings.unknown) {
            eprintln!("taskscope: {text}");
            dictionary.problem(problem::BAD_SETTING, text.as_bytes());
        }
        dictionary
    }

    fn insert_built_in(&mut self, space: Space, name: &str, class: u32, number: usize) {
        let meaning = Meaning {
            space,
            name: name.as_bytes(),
            description: b"",
            more: b"",
            number: class,
            stacked: false,
        };
        let known = Known {
            number: number as u64,
            description: Vec::new(),
            more: Vec::new(),
            meaning: (class, false),
            on: self.settings.is_on(&meaning.full_name(), meaning.level()),
        };
        self.by_number.insert((space, known.number), name.as_bytes().to_vec());
        self.names.insert((space, name.as_bytes().to_vec()), known);
    }

    /// The number of the name, which is registered if it is new, and whether it is on. A name that is known
    /// with another meaning keeps its first one.
    pub fn register(&mut self, meaning: &Meaning<'_>) -> Option<(u64, bool)> {
        let name = without_nul(meaning.name);
        if let Some(known) = self.names.get(&(meaning.space, meaning.identity())) {
            let named = matches!(meaning.space, Space::State | Space::Domain);
            let built_in = named && known.description.is_empty();
            let same = known.meaning == (meaning.number, meaning.stacked)
                && known.description == meaning.description
                && known.more == meaning.more;
            let result = (known.number, known.on);
            if !same && !built_in {
                self.problem(
                    problem::REGISTERED_TWICE,
                    &[b"\"", &name[..], b"\" as \"", meaning.description, b"\""].concat(),
                );
            }
            return Some(result);
        }
        // Numbers are stored as 32 bits, and two of them mean something else at call sites.
        let limit = match meaning.space {
            Space::ValueOf(_) => u64::MAX,
            _ => u64::from(u32::MAX - 2),
        };
        let next = self.next.entry(meaning.space).or_insert(1);
        // A value may have been given a name by its number.
        while *next < limit && self.by_number.contains_key(&(meaning.space, *next)) {
            *next += 1;
        }
        if *next >= limit {
            self.problem(problem::TOO_MANY_NAMES, &name);
            return None;
        }
        let number = *next;
        *next += 1;
        Some((number, self.insert(meaning, number)))
    }

    /// Sets the number of the space's next name.
    pub fn go_on_with(&mut self, space: Space, number: u64) {
        self.next.insert(space, number);
    }

    /// [`Dictionary::register`] for the names of a value; numbers start at `first`, and there are `most` of them.
    pub fn register_value_from(
        &mut self,
        meaning: &Meaning<'_>,
        first: u64,
        most: u64,
    ) -> Option<(u64, bool)> {
        let next = *self.next.entry(meaning.space).or_insert(first);
        let is_known = self.names.contains_key(&(meaning.space, meaning.identity()));
        if is_known || next < first.saturating_add(most) { self.register(meaning) } else { None }
    }

    /// Gives a value of a key a name; the value is the caller's. A value that has a name keeps it.
    pub fn register_value(&mut self, key: u32, value: u64, name: &[u8], description: &[u8]) {
        let space = Space::ValueOf(key);
        let meaning = Meaning { space, name, description, more: b"", number: 0, stacked: false };
        let known = self.names.get(&(space, meaning.identity()));
        if known.is_some_and(|known| known.number == value) {
            return;
        }
        if known.is_none() && !self.by_number.contains_key(&(space, value)) {
            self.insert(&meaning, value);
            return;
        }
        let key = self.name_of(Space::Key, u64::from(key)).unwrap_or_default();
        let text =
            [b"\"", name, b"\" as value ", value.to_string().as_bytes(), b" of \"", key, b"\""].concat();
        self.problem(problem::REGISTERED_TWICE, &text);
    }

    /// Truncates a text for the trace.
    fn fitting(&mut self, text: &[u8]) -> Vec<u8> {
        let text = without_nul(text);
        if text.len() <= MAX_TEXT_BYTES {
            return text;
        }
        self.problem(problem::TOO_LONG, &text);
        let mut end = MAX_TEXT_BYTES - "…".len();
        // Not within a character.
        while end > 0 && text[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        [&text[..end], "…".as_bytes()].concat()
    }

    fn insert(&mut self, meaning: &Meaning<'_>, number: u64) -> bool {
        let on = self.settings.is_on(&meaning.full_name(), meaning.level());
        let small = (number as u32).to_le_bytes();
        let class = meaning.number.to_le_bytes();
        let stacked = u32::from(meaning.stacked).to_le_bytes();
        let name = self.fitting(meaning.name);
        let (description, more) = (self.fitting(meaning.description), self.fitting(meaning.more));
        let (code, parts): (Code, Vec<&[u8]>) = match meaning.space {
            Space::Key => {
                (i::KEY, vec![&small, &class, &stacked, &name, b"\0", &description, b"\0", &more, b"\0"])
            }
            Space::ValueOf(key) => {
                let data = [&key.to_le_bytes()[..], &number.to_le_bytes(), &name, b"\0", &description, b"\0"]
                    .concat();
                self.entries.push((i::KEY_VALUE, data));
                (i::KEY_VALUE, vec![])
            }
            Space::State => (i::STATE, vec![&small, &class, &name, b"\0", &description, b"\0"]),
            Space::Domain => (i::DOMAIN, vec![&small, &name, b"\0", &description, b"\0"]),
            Space::TaskKind => (i::TASK_KIND, vec![&small, &class, &name, b"\0", &more, b"\0"]),
        };
        if !parts.is_empty() {
            self.entries.push((code, parts.concat()));
        }
        let known = Known {
            number,
            description: meaning.description.to_vec(),
            more: meaning.more.to_vec(),
            meaning: (meaning.number, meaning.stacked),
            on,
        };
        self.by_number.insert((meaning.space, number), without_nul(meaning.name));
        self.names.insert((meaning.space, meaning.identity()), known);
        on
    }

    pub fn find(&self, space: Space, name: &[u8]) -> Option<(u64, bool)> {
        self.names.get(&(space, without_nul(name))).map(|known| (known.number, known.on))
    }

    pub fn name_of(&self, space: Space, number: u64) -> Option<&[u8]> {
        self.by_number.get(&(space, number)).map(Vec::as_slice)
    }

    /// Counts a mistake; the trace reports it at its first, second, fourth … time, and at the end of
    /// recording.
    pub fn problem(&mut self, kind: u32, text: &[u8]) {
        let mut text = without_nul(&text[..text.len().min(1000)]);
        if self.problems.len() >= MAX_PROBLEMS && !self.problems.contains_key(&(kind, text.clone())) {
            text = b"(and others)".to_vec();
        }
        let count = self.problems.entry((kind, text.clone())).or_insert(0);
        *count += 1;
        if count.is_power_of_two() {
            let data = [&kind.to_le_bytes()[..], &count.to_le_bytes(), &text, b"\0"].concat();
            self.entries.push((i::PROBLEM, data));
        }
    }

    /// Writes the total counts of mistakes.
    fn report_totals(&mut self) {
        for ((kind, text), count) in &self.problems {
            if !count.is_power_of_two() {
                let data = [&kind.to_le_bytes()[..], &count.to_le_bytes(), text, b"\0"].concat();
                self.entries.push((i::PROBLEM, data));
            }
        }
    }

    /// Changes which names are on.
    pub fn set_prefix(&mut self, prefix: &str, enables: bool) {
        self.settings.set(prefix, enables);
        for ((space, identity), known) in &mut self.names {
            let meaning = Meaning {
                space: *space,
                name: name_in(identity),
                description: b"",
                more: b"",
                number: known.meaning.0,
                stacked: false,
            };
            known.on = self.settings.is_on(&meaning.full_name(), meaning.level());
        }
    }

    /// Writes the entries that this recording lacks.
    fn write_entries(&mut self, recorder: &mut ThreadRecorder) {
        let recording = process::number();
        if self.written_for != recording {
            (self.written, self.written_for) = (0, recording);
        }
        let at = recorder.now();
        for (code, data) in &self.entries[self.written..] {
            recorder.own_jumbo(at, *code, &[data]);
        }
        self.written = self.entries.len();
    }
}

/// Texts in the trace end at a NUL, so one within is shown as a picture of it.
fn without_nul(text: &[u8]) -> Vec<u8> {
    if !text.contains(&0) {
        return text.to_vec();
    }
    text.iter()
        .flat_map(|byte| if *byte == 0 { "␀".as_bytes() } else { std::slice::from_ref(byte) })
        .copied()
        .collect()
}

/// The dictionary; `None` if its holder cannot release it: the code that a signal handler interrupted, or a
/// thread of the process that this one was forked from.
fn lock() -> Option<MutexGuard<'static, Option<Dictionary>>> {
    for _ in 0..200 {
        match DICTIONARY.try_lock() {
            Ok(dictionary) => return Some(dictionary),
            Err(TryLockError::Poisoned(poisoned)) => return Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => {}
        }
        nap::nap_for(50_000);
    }
    BUSY.fetch_add(1, Relaxed);
    None
}

/// Looks a name up or registers it, and writes new entries. `None` if the dictionary is not available.
pub(super) fn with<R>(f: impl FnOnce(&mut Dictionary) -> R) -> Option<R> {
    attach_with_own_stream();
    let mut guard = lock()?;
    let dictionary = guard.get_or_insert_with(|| Dictionary::new(Settings::from_environment()));
    let busy = BUSY.swap(0, Relaxed);
    if busy > 0 {
        dictionary.problem(problem::DICTIONARY_BUSY, b"names that were not registered");
    }
    let result = f(dictionary);
    if dictionary.written < dictionary.entries.len() || dictionary.written_for != process::number() {
        // Names are recorded even if events are switched off.
        if let Some(mut recorder) = crate::thread::enter() {
            dictionary.write_entries(&mut recorder);
        }
    }
    Some(result)
}

/// Looks a name up, for a sink: without attaching the thread, and without writing.
pub(super) fn look<R>(f: impl FnOnce(&Dictionary) -> Option<R>) -> Option<R> {
    f(lock()?.as_ref()?)
}

/// Writes unwritten entries on the calling thread, which has just started to record.
pub(super) fn write_what_is_new() {
    let Some(mut guard) = lock() else { return };
    if let Some(dictionary) = guard.as_mut()
        && let Some(mut recorder) = crate::thread::enter()
    {
        dictionary.write_entries(&mut recorder);
    }
}

/// Ends recording: writes the final count of mistakes made more often than the trace states.
pub(super) fn write_totals() {
    let has_unwritten = |dictionary: &Dictionary| {
        let counts = &mut dictionary.problems.values();
        counts.any(|count| !count.is_power_of_two()).then_some(())
    };
    if process::is_recording() && look(has_unwritten).is_some() {
        with(Dictionary::report_totals);
    }
}

/// Counts a mistake of the program.
#[cold]
pub(super) fn problem(kind: u32, text: &str) {
    with(|dictionary| dictionary.problem(kind, text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &[u8], number: u32) -> Meaning<'_> {
        Meaning { space: Space::Key, name, description: b"d", more: b"", number, stacked: false }
    }

    fn dictionary() -> Dictionary {
        Dictionary::new(Settings::parse("", "", ""))
    }

    #[test]
    fn a_name_keeps_its_number_and_its_first_meaning() {
        let mut names = dictionary();
        assert_eq!(names.register(&key(b"a", level::USER)), Some((1, true)));
        assert_eq!(names.register(&key(b"b", level::ADVANCED)), Some((2, false)));
        assert_eq!(names.register(&key(b"a", level::USER)), Some((1, true)));
        assert!(names.problems.is_empty());
        assert_eq!(names.register(&key(b"a", level::ADVANCED)), Some((1, true)));
        assert_eq!(names.problems.len(), 1);
        names.set_prefix("b", true);
        assert_eq!(names.find(Space::Key, b"b"), Some((2, true)));
        assert_eq!(names.find(Space::Key, b"c"), None);
    }

    #[test]
    fn numbers_run_out_without_harm() {
        let mut names = dictionary();
        for space in [Space::Key, Space::ValueOf(1), Space::State, Space::Domain, Space::TaskKind] {
            let is_value = matches!(space, Space::ValueOf(_));
            names.go_on_with(space, if is_value { u64::MAX - 1 } else { u64::from(u32::MAX - 3) });
            let named = |name| Meaning { space, ..key(name, 0) };
            assert!(names.register(&named(b"last")).is_some());
            assert_eq!(names.register(&named(b"none left")), None);
            assert_eq!(names.register(&named(b"none left")), None);
        }
        assert_eq!(names.problems[&(problem::TOO_MANY_NAMES, b"none left".to_vec())], 10);
    }

    #[test]
    fn a_value_has_one_name_and_a_name_one_value() {
        let mut names = dictionary();
        let color = |name| Meaning { space: Space::ValueOf(1), name, ..key(b"", 0) };
        names.register_value(1, 1, b"white", b"");
        names.register_value(1, 3, b"black", b"");
        assert_eq!(names.register(&color(b"red")), Some((2, true)));
        assert_eq!(names.register(&color(b"blue")), Some((4, true)));
        names.register_value(1, 3, b"black", b"");
        assert!(names.problems.is_empty());
        names.register_value(1, 3, b"dark", b"");
        names.register_value(1, 4, b"red", b"");
        assert_eq!(names.problems.len(), 2);
        let name_of = |value| names.name_of(Space::ValueOf(1), value);
        assert_eq!((name_of(3), name_of(4)), (Some(&b"black"[..]), Some(&b"blue"[..])));
    }

    #[test]
    fn values_of_a_field_are_limited_over_all_threads() {
        let mut names = dictionary();
        let value = |name| Meaning { space: Space::ValueOf(1), name, ..key(b"", 0) };
        let first = names.register_value_from(&value(b"a"), 100, 2);
        assert_eq!(first, Some((100, true)));
        assert_eq!(names.register_value_from(&value(b"b"), 100, 2), Some((101, true)));
        assert_eq!(names.register_value_from(&value(b"c"), 100, 2), None);
        assert_eq!(names.register_value_from(&value(b"a"), 100, 2), first);
        assert!(names.problems.is_empty());
    }

    #[test]
    fn tasks_of_one_name_at_two_places_are_of_two_kinds() {
        let mut names = dictionary();
        let at = |more, number| Meaning {
            space: Space::TaskKind,
            more,
            number,
            description: b"",
            ..key(b"join", 0)
        };
        let first = names.register(&at(b"a.rs", 1));
        assert_eq!(names.register(&at(b"a.rs", 1)), first);
        assert_ne!(names.register(&at(b"a.rs", 2)), first);
        assert_ne!(names.register(&at(b"b.rs", 1)), first);
        assert!(names.problems.is_empty());
        names.set_prefix("task.join", false);
        assert_eq!(names.register(&at(b"b.rs", 1)), Some((3, false)));
    }

    #[test]
    fn long_texts_are_cut_and_reported() {
        let mut names = dictionary();
        let (long, longer) = ("ä".repeat(MAX_TEXT_BYTES), "ä".repeat(MAX_TEXT_BYTES + 1));
        let first = names.register(&Meaning { more: long.as_bytes(), ..key(long.as_bytes(), 0) });
        assert_ne!(names.register(&key(longer.as_bytes(), 0)), first, "they stay distinct");
        assert_eq!(names.problems.values().copied().collect::<Vec<_>>(), [3]);
        let keys = names.entries.iter().filter(|(code, _)| *code == i::KEY);
        for (_, data) in keys {
            assert!(data.len() < 3 * MAX_TEXT_BYTES);
            let name = data[12..].split(|byte| *byte == 0).next().unwrap();
            assert!(std::str::from_utf8(name).unwrap().ends_with('…'));
        }
    }

    #[test]
    fn names_may_have_any_bytes() {
        let mut names = dictionary();
        let (nul, _) = names.register(&key(b"a\0b", 0)).unwrap();
        let (wild, _) = names.register(&key(b"\xff\xfe\n\"", 0)).unwrap();
        assert_ne!(nul, wild);
        assert_eq!(names.name_of(Space::Key, nul), Some("a␀b".as_bytes()));
        assert!(names.entries.iter().all(|(_, data)| data.iter().filter(|byte| **byte == 0).count() >= 3));
    }

    #[test]
    fn states_of_nanos_have_their_numbers() {
        let mut names = dictionary();
        let state = Meaning { space: Space::State, name: b"CACHE", description: b"mine", ..key(b"", 1) };
        assert_eq!(names.register(&state), Some((12, true)));
        let own = Meaning { name: b"mine", ..state };
        assert_eq!(names.register(&own), Some((u64::from(i::FIRST_OWN_STATE), true)));
    }
}
