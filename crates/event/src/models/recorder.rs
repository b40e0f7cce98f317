//! What the recorder says about itself: losses and switches.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'R';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// `reason` of a loss.
pub mod loss {
    /// The file system or a limit refused more room.
    pub const NO_SPACE: u32 = 1;
    /// The event came from a signal handler that interrupted the recorder.
    pub const REENTERED: u32 = 2;
    /// The configured size was reached.
    pub const SIZE_CAP: u32 = 3;
}

events! {
    // Where the reason is a lack of room, all that begins later is lost; else what was lost came before.
    LOST = b"RLo" plain (events: u64, reason: u32) Rule, "lost {events} events, reason {reason}";
    // Until all that was open in the pause, and is not shown, is over, too.
    PAUSE_BEGIN = b"RPb" plain () Rule, "is not recorded from now on, as recording is paused";
    PAUSE_END = b"RPe" plain () Rule, "is recorded again";
}
