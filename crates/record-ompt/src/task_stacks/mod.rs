//! Which tasks and regions the frames of a stack belong to.

pub mod check;
pub mod levels;
pub mod paths;
pub mod regions;
pub mod sample;
pub mod undeferred;
