//! State of the interpreter. It knows nothing of events; the modules beside it change it, one per kind of event.

pub(super) mod frames;
pub(super) mod instrumented;
pub(super) mod loom_cpus;
pub(super) mod message_names;
pub(super) mod names;
pub(super) mod path_numbers;
pub(super) mod regions;
pub(super) mod task_numbers;
pub(super) mod thread_state;
