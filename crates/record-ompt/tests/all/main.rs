//! Programs under the tool on a real runtime.
//!
//! One test program: it is built with optimisation, as the tool is, and each further one would cost 10 s.

#[path = "../common/mod.rs"]
mod common;

mod chain;
mod construct_names;
mod constructs;
mod hostile;
mod processes;
mod profile;
mod profile_blame;
mod profile_no_cpu;
mod sampling;
mod states;
mod unusual_processes;
