//! Events about the recorder: losses and switches.

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
    // If the reason is a lack of room, all later begins are lost; otherwise the lost events came before.
    LOST = b"RLo" plain (events: u64, reason: u32) Rule, "lost {events} events, reason {reason}";
    // Until all sections that were opened in the pause, and are not shown, have closed, too.
    PAUSE_BEGIN = b"RPb" plain () Rule, "is not recorded, as recording is paused";
    PAUSE_END = b"RPe" plain () Rule, "is recorded again";
}
