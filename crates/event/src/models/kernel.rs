//! The events of ovni's `kernel` model, version 1.0.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'K';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

events! {
    OUT_OF_CPU = b"KCO" plain () Rule, "leaves the CPU", Thread;
    BACK_ON_CPU = b"KCI" plain () Rule, "is back on the CPU", Thread;
}
