//! One file for each verb of the command.

pub mod doctor;
pub mod record;
