//! Rules of instrumentation: contexts fit, names are declared and unique, messages have two halves.

use super::{Current, Machine};
use crate::semantic::payload::{readable, u32_at, u64_at};
use crate::violation::ViolationCode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use taskscope_context::{Behaviour, Contexts, Item, Message, Out, Problem, Raw};
use taskscope_event::Code;
use taskscope_event::models::instrument as i;
use taskscope_execution::view::ViewObserver;

/// Kind of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Space {
    Key,
    State,
    Domain,
    Kind,
}

impl Space {
    fn word(self) -> &'static str {
        match self {
            Space::Key => "key",
            Space::State => "state",
            Space::Domain => "message domain",
            Space::Kind => "task kind",
        }
    }
}

/// One half of a message: number of sends minus receives, and its first place.
type Half = (i64, Current);

/// Instrumentation state of a trace.
pub(super) struct Checker {
    contexts: Contexts,
    named: FxHashSet<(u32, Space, u32)>,
    /// Uses of numbers without a name: count and first place.
    unnamed: BTreeMap<(u32, Space, u32), (u64, Current)>,
    /// The first meaning of a name, over all processes.
    meanings: FxHashMap<(Space, Vec<u8>), Vec<u8>>,
    domains: FxHashMap<(u32, u32), Vec<u8>>,
    halves: FxHashMap<(u32, u32, u64), Half>,
    problems: Vec<(u32, Problem)>,
    /// Mistakes noticed by the recorder, by process, kind and text: count, and first place.
    mistakes: BTreeMap<(u32, u32, Vec<u8>), (u64, Current)>,
    /// Processes that have lost events: place of the first loss, and number of later misfits.
    lossy: BTreeMap<u32, (u64, Current)>,
}

impl Checker {
    pub fn new(threads: impl Iterator<Item = u32>) -> Checker {
        let mut contexts = Contexts::new(Behaviour::Raw);
        threads.for_each(|process| {
            contexts.add_thread(process);
        });
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

    fn uses(&mut self, process: u32, space: Space, number: u32, place: Current) {
        let built_in = match space {
            Space::State => number < i::STATES.len() as u32,
            Space::Domain => number < i::DOMAINS.len() as u32,
            Space::Key | Space::Kind => false,
        };
        if !built_in && !self.named.contains(&(process, space, number)) {
            self.unnamed.entry((process, space, number)).or_insert((0, place)).0 += 1;
        }
    }

    fn message(&mut self, process: u32, message: Message, sends: bool, place: Current) {
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

    fn note_uses(&mut self, process: u32, raw: &Raw<'_>, place: Current) {
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
    fn name(&mut self, process: u32, code: Code, payload: &[u8]) -> Option<String> {
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

/// Text for a mistake that the recorder noticed.
fn words_of(problem: u32) -> &'static str {
    match problem {
        i::problem::UNKNOWN_NAME => "an unregistered name was used",
        i::problem::REGISTERED_TWICE => "a name was registered again with another meaning",
        i::problem::TOO_MANY_NAMES => "the numbers of names were used up",
        i::problem::DICTIONARY_BUSY => "names could not be registered, the dictionary was locked",
        i::problem::BAD_SETTING => "a setting is invalid",
        i::problem::SINK => "a sink failed",
        i::problem::TOO_LONG => "a text was too long, and cut",
        _ => "unknown mistake",
    }
}

/// The text up to its end, for a terminal.
fn named(bytes: &[u8]) -> String {
    readable(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

struct Problems<'a>(&'a mut Vec<(u32, Problem)>);

impl Out for Problems<'_> {
    fn show(&mut self, _item: Item<'_>) {}

    fn problem(&mut self, thread: u32, _at: u64, problem: Problem) {
        self.0.push((thread, problem));
    }
}

impl<O: ViewObserver> Machine<'_, O> {
    /// Checks an event of the instrument model beyond its declaration.
    pub(super) fn check_instrumentation(&mut self, thread: u32, code: Code, payload: &[u8]) {
        let process = self.system.threads[thread as usize].process;
        let place = self.current;
        let time = place.time_ns.max(0) as u64;
        match Raw::decode(code, payload) {
            Ok(Some(raw)) => {
                let Checker { contexts, problems, .. } = &mut self.instrumentation;
                contexts.event(thread, time, &raw, &mut Problems(problems));
                self.instrumentation.note_uses(process, &raw, place);
                self.report_context_problems();
            }
            // Already reported with the declaration.
            Err(_) => {}
            Ok(None) if code == i::PROBLEM => {
                if let (Some(kind), Some(count)) = (u32_at(payload, 0), u64_at(payload, 4)) {
                    let text = payload.get(12..).unwrap_or_default().to_vec();
                    let mistakes = &mut self.instrumentation.mistakes;
                    let known = mistakes.entry((process, kind, text)).or_insert((0, place));
                    known.0 = known.0.max(count);
                }
            }
            Ok(None) => {
                if let Some(conflict) = self.instrumentation.name(process, code, payload) {
                    self.report(ViolationCode::NameConflict, conflict);
                }
            }
        }
    }

    /// Ends a thread: nothing of its own may be open.
    pub(super) fn check_end_of_thread(&mut self, thread: u32) {
        let time = self.current.time_ns.max(0) as u64;
        let Checker { contexts, problems, .. } = &mut self.instrumentation;
        contexts.thread_ends(thread, time, &mut Problems(problems));
        self.report_context_problems();
    }

    /// The process of this thread has lost events from here on.
    pub(super) fn note_loss(&mut self, thread: u32) {
        let process = self.system.threads[thread as usize].process;
        self.instrumentation.lossy.entry(process).or_insert((0, self.current));
    }

    fn report_context_problems(&mut self) {
        for (thread, problem) in std::mem::take(&mut self.instrumentation.problems) {
            let process = self.system.threads[thread as usize].process;
            if let Some((misfits, _)) = self.instrumentation.lossy.get_mut(&process) {
                *misfits += 1;
                continue;
            }
            let tid = self.system.threads[thread as usize].tid;
            self.report(ViolationCode::Misuse, format!("thread {tid}: {problem} [{}]", problem.name()));
        }
    }

    /// Reports mistakes that only the whole trace shows.
    pub(super) fn finish_instrumentation(&mut self) {
        for ((_, kind, told), (count, place)) in std::mem::take(&mut self.instrumentation.mistakes) {
            let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
            let text = format!("{}: {}{times}", words_of(kind), named(&told));
            self.report_at(ViolationCode::MisuseNoticed, text, place);
        }
        // Losses are reported; misfits that follow from them are not mistakes of the program.
        let lossy = std::mem::take(&mut self.instrumentation.lossy);
        for (misfits, place) in lossy.values().filter(|(misfits, _)| *misfits > 0) {
            let text =
                format!("{misfits} later events of this process do not fit without those that are lost");
            self.report_at(ViolationCode::EventsLost, text, *place);
        }
        for ((process, space, number), (count, place)) in std::mem::take(&mut self.instrumentation.unnamed) {
            if lossy.contains_key(&process) {
                continue;
            }
            let times = if count > 1 { format!(", {count} times") } else { String::new() };
            let text = format!("{} {number} is used{times} and has no name", space.word());
            self.report_at(ViolationCode::UnknownName, text, place);
        }
        // Halves of one message may be in different processes, with different numbers for a domain.
        let mut halves: BTreeMap<(Vec<u8>, u64), Half> = BTreeMap::new();
        for ((process, domain, id), (sent, place)) in std::mem::take(&mut self.instrumentation.halves) {
            let built_in = i::DOMAINS.get(domain as usize).map(|name| name.as_bytes().to_vec());
            let named = self.instrumentation.domains.get(&(process, domain)).cloned();
            let name = named.or(built_in).unwrap_or_else(|| format!("number {domain}").into_bytes());
            let half = halves.entry((name, id)).or_insert((0, place));
            half.0 += sent;
            if (place.time_ns, place.stream) < (half.1.time_ns, half.1.stream) {
                half.1 = place;
            }
        }
        if !lossy.is_empty() {
            return;
        }
        for ((name, id), (sent, place)) in halves.into_iter().filter(|(_, (sent, _))| *sent != 0) {
            let (has, lacks) = if sent > 0 { ("sent", "received") } else { ("received", "sent") };
            let name = readable(&name);
            let text = format!(
                "message {id} of domain \"{name}\" is {has} {} times more than {lacks}",
                sent.unsigned_abs()
            );
            self.report_at(ViolationCode::MessageUnmatched, text, place);
        }
    }
}
