//! Names of numbers in a trace's instrumentation.
//!
//! Names of all threads and processes are collected first; those of one name are equal, whatever their numbers in the
//! processes.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use taskscope_context::{Message, Shown};
use taskscope_event::models::instrument as i;
use taskscope_model::readable;
use taskscope_trace::Trace;

/// The kind of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Space {
    /// A key.
    Key,
    /// A value of this key.
    ValueOf(u32),
    /// A state.
    State,
    /// A message domain.
    Domain,
    /// A kind of tasks.
    Kind,
}

/// A name and its attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The name; invalid UTF-8 are shown as `\xNN`.
    pub name: String,
    /// Its description; of a kind of tasks, `FILE:LINE`.
    pub description: String,
    /// The unit of a key's values.
    pub unit: String,
    /// A state's class, or a key's level.
    pub number: u32,
}

/// The threads of a trace, with the names in its instrumentation.
pub struct Names {
    /// The process of each stream.
    pub processes: Vec<u32>,
    by_number: FxHashMap<(u32, Space, u64), Named>,
}

impl Names {
    /// Reads all names of a trace.
    pub fn of(trace: &Trace) -> Names {
        let mut numbers: BTreeMap<(String, i64), u32> = BTreeMap::new();
        let mut processes = Vec::new();
        for stream in trace.streams() {
            let id = (stream.loom().unwrap_or_default().to_owned(), stream.pid().unwrap_or(0));
            let next = numbers.len() as u32;
            processes.push(*numbers.entry(id).or_insert(next));
        }
        let mut names = Names { processes, by_number: FxHashMap::default() };
        for (stream, process) in trace.streams().iter().zip(names.processes.clone()) {
            for event in stream.events_of(taskscope_event::StreamFile::Own) {
                if event.code.0[..2] == *b"IK" {
                    names.take(process, event.code, event.payload);
                }
            }
        }
        names
    }

    fn take(&mut self, process: u32, code: taskscope_event::Code, payload: &[u8]) -> Option<()> {
        let word = |at: usize| Some(u32::from_le_bytes(*payload.get(at..)?.first_chunk()?));
        let texts = |from: usize| -> Option<Vec<String>> {
            Some(payload.get(from..)?.split(|byte| *byte == 0).map(readable).collect())
        };
        let text = |texts: &[String], at: usize| texts.get(at).cloned().unwrap_or_default();
        let number = u64::from(word(0)?);
        let (space, number, named) = match code {
            i::KEY => {
                let t = texts(12)?;
                let named = Named {
                    name: text(&t, 0),
                    description: text(&t, 1),
                    unit: text(&t, 2),
                    number: word(4)?,
                };
                (Space::Key, number, named)
            }
            i::KEY_VALUE => {
                let t = texts(12)?;
                let value = u64::from(word(4)?) | u64::from(word(8)?) << 32;
                let named = Named { name: text(&t, 0), description: text(&t, 1), ..Named::default() };
                (Space::ValueOf(number as u32), value, named)
            }
            i::STATE => {
                let t = texts(8)?;
                let named = Named {
                    name: text(&t, 0),
                    description: text(&t, 1),
                    number: word(4)?,
                    ..Named::default()
                };
                (Space::State, number, named)
            }
            i::DOMAIN => {
                let t = texts(4)?;
                (
                    Space::Domain,
                    number,
                    Named { name: text(&t, 0), description: text(&t, 1), ..Named::default() },
                )
            }
            i::TASK_KIND => {
                let t = texts(8)?;
                let file = text(&t, 1);
                let description = if file.is_empty() { file } else { format!("{file}:{}", word(4)?) };
                (Space::Kind, number, Named { name: text(&t, 0), description, ..Named::default() })
            }
            _ => return None,
        };
        self.by_number.insert((process, space, number), named);
        Some(())
    }

    /// The name of a number of a process; Nanos++'s states and domains always have theirs.
    pub fn get(&self, process: u32, space: Space, number: u64) -> Option<Named> {
        if let Some(named) = self.by_number.get(&(process, space, number)) {
            return Some(named.clone());
        }
        let (name, number) = match space {
            Space::State => i::STATES.get(number as usize).map(|(name, class)| (*name, *class))?,
            Space::Domain => (*i::DOMAINS.get(number as usize)?, 0),
            _ => return None,
        };
        Some(Named { name: name.to_owned(), number, ..Named::default() })
    }

    /// Whether the trace names a number of a process.
    pub fn has(&self, process: u32, space: Space, number: u64) -> bool {
        self.by_number.contains_key(&(process, space, number))
    }

    /// The name, or the number in words.
    pub fn name(&self, process: u32, space: Space, number: u64) -> String {
        let named = self.get(process, space, number).map(|named| named.name);
        named.unwrap_or_else(|| match space {
            Space::ValueOf(_) => number.to_string(),
            _ => format!("number {number}"),
        })
    }

    /// All names of a space, each once: process and number of its first mention.
    pub fn all(&self) -> impl Iterator<Item = (u32, Space, u64, &Named)> {
        self.by_number.iter().map(|((process, space, number), named)| (*process, *space, *number, named))
    }

    /// A step of a sequence in words.
    pub fn words(&self, process: u32, shown: &Shown<'_>) -> String {
        let state = |state: u32| self.name(process, Space::State, u64::from(state));
        let pair = |key: u32, value: u64| {
            let unit = self.get(process, Space::Key, u64::from(key)).map_or(String::new(), |key| key.unit);
            let unit = if unit.is_empty() { unit } else { format!(" {unit}") };
            let value = self.name(process, Space::ValueOf(key), value);
            format!("{} = {value}{unit}", self.name(process, Space::Key, u64::from(key)))
        };
        let message = |m: &Message| {
            let content = if m.key == 0 { String::new() } else { format!(", {}", pair(m.key, m.value)) };
            let partner =
                if m.partner == i::NO_PARTNER { String::new() } else { format!(", partner {}", m.partner) };
            format!("{} {}{partner}{content}", self.name(process, Space::Domain, u64::from(m.domain)), m.id)
        };
        match shown {
            Shown::StateStart(number) => format!("state {} begins", state(*number)),
            Shown::StateEnd(number) => format!("state {} ends", state(*number)),
            Shown::SubstateStart(number) => format!("sub-state {} begins", state(*number)),
            Shown::SubstateEnd(number) => format!("sub-state {} ends", state(*number)),
            Shown::BurstStart { key, value } => format!("burst {} begins", pair(*key, *value)),
            Shown::BurstEnd { key, value } => format!("burst {} ends", pair(*key, *value)),
            Shown::Point { key, value } => format!("point {}", pair(*key, *value)),
            Shown::Composite(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| pair(key, value)).collect();
                format!("point {}", pairs.join(", "))
            }
            Shown::Send(m) => format!("sends {}", message(m)),
            Shown::Receive(m) => format!("receives {}", message(m)),
            Shown::Created { task, kind, parent } => {
                let by = if *parent == 0 { String::new() } else { format!(" by task {parent}") };
                format!("task {task} ({}) is created{by}", self.name(process, Space::Kind, u64::from(*kind)))
            }
            Shown::Ready { task } => format!("task {task} is able to run"),
            Shown::Resume { task, .. } => format!("task {task} is taken up"),
            Shown::Suspend { task, last: false, .. } => format!("task {task} is put down"),
            Shown::Suspend { task, last: true, .. } => format!("task {task} has ended"),
        }
    }
}
