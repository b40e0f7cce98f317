//! Opens a trace: replays it through the models, and keeps the execution and its problems.
//!
//! [`Session::open`] takes a directory; names of code places are resolved on request
//! ([`Session::places`]). Damaged and unfinished traces give their readable part; only a directory without
//! any stream is an error. Speed of opening: see `docs/performance.md`.
//!
//! **Modules**, each importing only those named before it:
//!
//! | modules | content | begin at |
//! | --- | --- | --- |
//! | `run_file`, `profiles`, `cache`, `user_files` | files beside the events | [`RunFile::load`], [`merge_profiles`], [`cache::Cache`], [`read_beside`] |
//! | [`devices`] | device queues, and the calls that concern them | [`devices::read_devices`] |
//! | [`selection`] | which events a command is about | [`selection::Selection`] |
//! | `names` | code sites, data and call paths in words | [`Places`], [`name_call_paths`] |
//! | `recorders`, `playing` | events through the models into an execution | `playing::play` |
//! | `side` | facts that no event states: CPUs, times off the CPU, ranks | `side::add_facts` |
//! | `session`, `open`, `in_memory`, `task_graph` | an opened trace | [`Session::open`] |
//! | [`graph`], [`model_views`], [`instrumentation`] | other readings of a trace | |
//! | `off_cpu_of_run`, `waits_of_part` | results that a slice keeps | [`off_cpu_of_run()`], [`waits_of_part()`] |
#![forbid(unsafe_code)]

pub mod cache;
pub mod devices;
pub mod graph;
mod in_memory;
pub mod instrumentation;
pub mod model_views;
mod names;
mod off_cpu_of_run;
mod open;
mod playing;
mod profiles;
mod recorders;
mod run_file;
pub mod selection;
mod session;
mod side;
mod task_graph;
mod user_files;
mod waits_of_part;

pub use devices::work::{CallWait, call_waits};
pub use names::{
    Caller, FunctionPlace, NamedNode, Places, ProfileWaitNames, kind_of_awaited, name_call_paths, name_nodes,
    name_of_awaited, words_of_code,
};
pub use off_cpu_of_run::off_cpu_of_run;
pub use playing::replay::{MAX_RUN_NS, ReadProgress};
pub use profiles::{MAX_PROFILE_BYTES, MergedProfiles, ProfileProblem, merge_profiles, profile_files};
pub use run_file::{NotRecorded, Notice, RunFile};
pub use session::{Session, StreamInfo};
pub use taskscope_symbol::{CodePlace, KeptModules};
pub use taskscope_trace::{OpenError, Problem, ProblemKind};
pub use user_files::{read_beside, write_beside};
pub use waits_of_part::waits_of_part;

/// The state of the time after an event of this code, if it follows from the event alone.
pub fn state_of_event(code: [u8; 3]) -> Option<taskscope_execution::State> {
    taskscope_model::semantic::state_of_event(taskscope_event::Code(code))
}
