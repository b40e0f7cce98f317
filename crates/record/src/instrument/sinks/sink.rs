//! The interface of a sink, and its events.

use taskscope_context::{Behaviour, Shown};

use crate::instrument::dictionary::{self, Space};

/// The environment variable that chooses sinks.
pub const SINKS_VARIABLE: &str = "TASKSCOPE_SINKS";

/// An event for a sink.
#[derive(Clone, Copy)]
pub struct LiveEvent<'a> {
    /// Nanoseconds of `CLOCK_MONOTONIC`, as in the trace.
    pub at: u64,
    /// The system's id of the thread.
    pub thread: i32,
    /// The shown item.
    pub shown: Shown<'a>,
    /// Names of the numbers.
    pub names: Names,
}

/// Names of keys, states and tasks, for sinks during a call.
#[derive(Clone, Copy)]
pub struct Names(pub(super) ());

impl Names {
    /// The name of a state.
    pub fn state(&self, state: u32) -> String {
        name(Space::State, u64::from(state)).unwrap_or_else(|| format!("number {state}"))
    }

    /// The name of a key.
    pub fn key(&self, key: u32) -> String {
        name(Space::Key, u64::from(key)).unwrap_or_else(|| format!("number {key}"))
    }

    /// The name of a key's value, or its number.
    pub fn value(&self, key: u32, value: u64) -> String {
        name(Space::ValueOf(key), value).unwrap_or_else(|| value.to_string())
    }

    /// The name of a message domain.
    pub fn domain(&self, domain: u32) -> String {
        name(Space::Domain, u64::from(domain)).unwrap_or_else(|| format!("number {domain}"))
    }

    /// The name of a kind of tasks.
    pub fn task_kind(&self, kind: u32) -> String {
        name(Space::TaskKind, u64::from(kind)).unwrap_or_else(|| format!("number {kind}"))
    }
}

fn name(space: Space, number: u64) -> Option<String> {
    dictionary::look(|names| {
        names.name_of(space, number).map(|name| String::from_utf8_lossy(name).into_owned())
    })
}

/// A receiver of events.
pub trait Sink: Send {
    /// Its representation of task switches. Called once.
    fn behaviour(&self) -> Behaviour {
        Behaviour::Raw
    }

    /// An event, in the order of time over all threads.
    fn event(&mut self, event: &LiveEvent<'_>);

    /// Called after the last event.
    fn finish(&mut self) {}
}

/// Receives all events and ignores them: measures the cost of the path to a sink.
pub struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _event: &LiveEvent<'_>) {}
}
