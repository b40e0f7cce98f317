//! Tasks and regions of the frames of a stack.

pub mod check;
pub mod levels;
pub mod paths;
pub mod regions;
pub mod sample;
pub mod undeferred;
