//! One file for each verb of the command.

pub mod doctor;
pub mod emulate;
mod open_trace;
pub mod record;
pub mod report;

pub use open_trace::open;
