//! Receivers of events while the program runs, beside the trace or in its place.
//!
//! ```text
//!  any thread ── event ──▶ one lock: time, the trace, ──▶ Contexts (one per behaviour) ──▶ Sink::event
//! ```
//! A sink chooses a [`Behaviour`], and receives the items of each thread: exactly the sequence of a view of
//! the trace in that behaviour. Events take this path, which costs a lock, only while a sink is loaded.
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
//! **Rules for a sink.** It is called under a lock, on the thread of the event: it should be quick. Events
//! that it raises itself are not shown, but counted. If it panics it is unloaded, and the trace records that.
//!
//! `TASKSCOPE_SINKS` loads ready-made ones when recording starts: a list, separated by commas, of `trace`
//! (the trace; without it, none is written), `text`, `profile`, `nothing`, `graph=FILE.dot` or
//! `graph=FILE.json`; `text=FILE` and `profile=FILE` write to the file instead of stderr.

mod graph;
mod live;
mod profile;
mod sink;
mod text;

pub use graph::TaskGraph;
pub(crate) use live::thread_ends;
pub use live::{add, remove_all};
pub(super) use live::{are_loaded, pass, start_from_environment};
pub use profile::Profile;
pub use sink::{LiveEvent, Names, Nothing, SINKS_VARIABLE, Sink};
pub use taskscope_context::{Behaviour, Shown};
pub use text::LiveText;
