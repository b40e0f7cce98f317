//! Uses of names and messages of instrumented programs, to find those without a name or a partner.

use super::current::Current;
use crate::payload::{readable, u32_at};
use crate::system::Thread;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use taskscope_context::{Behaviour, Contexts, Message, Problem, Raw};
use taskscope_event::Code;
use taskscope_event::models::instrument as i;

/// Kind of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Space {
    Key,
    State,
    Domain,
    Kind,
}

impl Space {
    pub(super) fn word(self) -> &'static str {
        match self {
            Space::Key => "key",
            Space::State => "state",
            Space::Domain => "message domain",
            Space::Kind => "task kind",
        }
    }
}

/// Sends and receives of one message id: sends minus receives, and the first event.
pub(super) type UnpairedMessage = (i64, Current);

/// Instrumentation state of a trace.
pub(super) struct Checker {
    pub(super) contexts: Contexts,
    pub(super) named: FxHashSet<(u32, Space, u32)>,
    /// Uses of numbers without a name: count and first place.
    pub(super) unnamed: BTreeMap<(u32, Space, u32), (u64, Current)>,
    /// The first meaning of a name, over all processes.
    pub(super) meanings: FxHashMap<(Space, Vec<u8>), Vec<u8>>,
    pub(super) domains: FxHashMap<(u32, u32), Vec<u8>>,
    pub(super) halves: FxHashMap<(u32, u32, u64), UnpairedMessage>,
    pub(super) problems: Vec<(u32, Problem)>,
    /// Mistakes noticed by the recorder, by process, kind and text: count, and first place.
    pub(super) mistakes: BTreeMap<(u32, u32, Vec<u8>), (u64, Current)>,
    /// Processes that have lost events: place of the first loss, and number of later misfits.
    pub(super) lossy: BTreeMap<u32, (u64, Current)>,
}

impl Checker {
    pub(super) fn new(threads: &[Thread]) -> Checker {
        let mut contexts = Contexts::new(Behaviour::Raw);
        for thread in threads {
            let number = contexts.add_thread(thread.process);
            if thread.ends_with_process {
                contexts.ends_with_process(number);
            }
        }
        Checker {
            contexts,
            named: FxHashSet::default(),
            unnamed: BTreeMap::new(),
            meanings: FxHashMap::default(),
            domains: FxHashMap::default(),
            halves: FxHashMap::default(),
            problems: Vec::new(),
            mistakes: BTreeMap::new(),
            lossy: BTreeMap::new(),
        }
    }

    pub(super) fn uses(&mut self, process: u32, space: Space, number: u32, place: Current) {
        let built_in = match space {
            Space::State => number < i::STATES.len() as u32,
            Space::Domain => number < i::DOMAINS.len() as u32,
            Space::Key | Space::Kind => false,
        };
        if !built_in && !self.named.contains(&(process, space, number)) {
            self.unnamed.entry((process, space, number)).or_insert((0, place)).0 += 1;
        }
    }

    pub(super) fn message(&mut self, process: u32, message: Message, sends: bool, place: Current) {
        self.uses(process, Space::Domain, message.domain, place);
        if message.key != 0 {
            self.uses(process, Space::Key, message.key, place);
        }
        let id = (process, message.domain, message.id);
        let half = self.halves.entry(id).or_insert((0, place));
        half.0 += if sends { 1 } else { -1 };
        if half.0 == 0 {
            self.halves.remove(&id);
        }
    }

    pub(super) fn note_uses(&mut self, process: u32, raw: &Raw<'_>, place: Current) {
        match *raw {
            Raw::StatePush { state } => self.uses(process, Space::State, state, place),
            Raw::BurstOpen { key, .. } | Raw::Point { key, .. } | Raw::DeferredPoint { key, .. } => {
                self.uses(process, Space::Key, key, place);
            }
            Raw::StateAndBurstOpen { state, key, .. } => {
                self.uses(process, Space::State, state, place);
                self.uses(process, Space::Key, key, place);
            }
            Raw::Composite(pairs) => {
                pairs.iter().for_each(|(key, _)| self.uses(process, Space::Key, key, place));
            }
            Raw::TaskCreate { kind, .. } => self.uses(process, Space::Kind, kind, place),
            Raw::Send(message) | Raw::DeferredSend { message, .. } => {
                self.message(process, message, true, place);
            }
            Raw::Receive(message) | Raw::DeferredReceive { message, .. } => {
                self.message(process, message, false, place);
            }
            _ => {}
        }
    }

    /// Takes a name; returns its contradiction to another process.
    pub(super) fn name(&mut self, process: u32, code: Code, payload: &[u8]) -> Option<String> {
        let (space, name_at) = match code {
            i::KEY => (Space::Key, 12),
            i::STATE => (Space::State, 8),
            i::DOMAIN => (Space::Domain, 4),
            i::TASK_KIND => (Space::Kind, 8),
            _ => return None,
        };
        let number = u32_at(payload, 0)?;
        let rest = payload.get(name_at..)?;
        let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        let name = rest[..length].to_vec();
        self.named.insert((process, space, number));
        self.unnamed.remove(&(process, space, number));
        if space == Space::Domain {
            self.domains.insert((process, number), name.clone());
        }
        // Several kinds of tasks may have one name at several places.
        if space == Space::Kind {
            return None;
        }
        let meaning = [&payload[4..name_at], &rest[length..]].concat();
        let known = self.meanings.entry((space, name)).or_insert_with(|| meaning.clone());
        (*known != meaning)
            .then(|| format!("{} \"{}\" has another meaning in another process", space.word(), named(rest)))
    }
}

/// The text up to its end, for a terminal.
pub(super) fn named(bytes: &[u8]) -> String {
    readable(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}
