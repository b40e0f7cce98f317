//! Receivers of events while the program runs, beside the trace or in its place.
//!
//! ```text
//!  any thread ── event ──▶ one lock: time, the trace, ──▶ Contexts (one per behaviour) ──▶ Sink::event
//! ```
//! A sink says which [`Behaviour`] it wants to see, and hears what each thread shows: exactly the sequence
//! that a view of the trace in that behaviour has. Only while a sink is loaded does an event take
//! this way, which costs a lock; without one, nothing is paid for it.
//!
//! An own sink, which counts how often each state begins on any thread:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::{Arc, Mutex};
//! use taskscope_record::instrument::{StateName, sinks};
//! use taskscope_record::instrument::sinks::{Behaviour, LiveEvent, Shown, Sink};
//!
//! struct Counter(Arc<Mutex<BTreeMap<String, u32>>>);
//!
//! impl Sink for Counter {
//!     fn behaviour(&self) -> Behaviour {
//!         Behaviour::StackedStates
//!     }
//!
//!     fn event(&mut self, event: &LiveEvent<'_>) {
//!         if let Shown::StateStart(state) = event.shown {
//!             *self.0.lock().unwrap().entry(event.names.state(state)).or_default() += 1;
//!         }
//!     }
//! }
//!
//! let counts = Arc::new(Mutex::new(BTreeMap::new()));
//! sinks::add(Counter(counts.clone()));
//!
//! static SOLVING: StateName = StateName::new("solving", "the linear system");
//! for _ in 0..3 {
//!     let _solving = SOLVING.enter();
//! }
//!
//! sinks::remove_all();
//! # if cfg!(feature = "instrument") {
//! assert_eq!(counts.lock().unwrap()["solving"], 3);
//! # }
//! ```
//!
//! **Rules for a sink.** It is called under a lock, on the thread of the event: it should be quick. What it
//! raises itself is not shown, but counted. If it panics it is unloaded, and the trace says so.
//!
//! `TASKSCOPE_SINKS` loads ready-made ones when recording starts: a list, separated by commas, of
//! `trace` (the trace; where the list lacks it, none is written), `text`, `profile`, `nothing`,
//! `graph=FILE.dot` or `graph=FILE.json`; `text=FILE` and `profile=FILE` write there instead of to
//! stderr.

mod graph;
#[cfg(feature = "instrument")]
mod live;
mod profile;
mod text;

pub use graph::TaskGraph;
#[cfg(feature = "instrument")]
pub(crate) use live::thread_ends;
#[cfg(feature = "instrument")]
pub use live::{add, remove_all};
#[cfg(feature = "instrument")]
pub(super) use live::{are_loaded, pass, start_from_environment};
pub use profile::Profile;
pub use taskscope_context::{Behaviour, Shown};
pub use text::LiveText;

#[cfg(feature = "instrument")]
use super::dictionary::{self, Space};

/// The environment variable that chooses sinks.
pub const SINKS_VARIABLE: &str = "TASKSCOPE_SINKS";

/// What a sink hears.
#[derive(Clone, Copy)]
pub struct LiveEvent<'a> {
    /// Nanoseconds of `CLOCK_MONOTONIC`, as in the trace.
    pub at: u64,
    /// The system's id of the thread.
    pub thread: i32,
    /// What the thread shows.
    pub shown: Shown<'a>,
    /// Names of the numbers.
    pub names: Names,
}

/// Names of keys, states and tasks, to be asked while a sink hears of them.
#[derive(Clone, Copy)]
pub struct Names(());

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

#[cfg(feature = "instrument")]
fn name(space: Space, number: u64) -> Option<String> {
    dictionary::look(|names| {
        names.name_of(space, number).map(|name| String::from_utf8_lossy(name).into_owned())
    })
}

#[cfg(not(feature = "instrument"))]
use inert::{Space, name};

/// A receiver of events.
pub trait Sink: Send {
    /// How it wants switches of tasks to look. Asked once.
    fn behaviour(&self) -> Behaviour {
        Behaviour::Raw
    }

    /// An event, in the order of time over all threads.
    fn event(&mut self, event: &LiveEvent<'_>);

    /// There are no more events.
    fn finish(&mut self) {}
}

/// Hears everything and does nothing: what the way to a sink costs.
pub struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _event: &LiveEvent<'_>) {}
}

/// Without the feature `instrument`, no sink hears anything.
#[cfg(not(feature = "instrument"))]
mod inert {
    use super::Sink;

    pub(super) enum Space {
        State,
        Key,
        ValueOf(u32),
        Domain,
        TaskKind,
    }

    pub(super) fn name(_: Space, _: u64) -> Option<String> {
        None
    }

    /// Does nothing.
    pub fn add(_sink: impl Sink + 'static) {}

    /// Does nothing.
    pub fn remove_all() {}
}
#[cfg(not(feature = "instrument"))]
pub use inert::{add, remove_all};
