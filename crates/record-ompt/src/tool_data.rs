//! The tool's content of `ompt_data_t`, which the runtime keeps per region and per task: no memory is
//! allocated for either.
//!
//! ```text
//!   bits 0–31  id (0: unknown)      32–55  code site (0: unknown)      56–63  flags
//! ```

use crate::abi::{self, Data};

/// An explicit or target task, which runs and is recorded.
pub const EXPLICIT: u8 = 1;
/// An explicit task that has begun to run.
pub const STARTED: u8 = 2;
/// A `taskwait depend`, which OMPT reports as a task that never runs.
pub const WAIT: u8 = 4;
/// A task that is not recorded: its creation was lost.
pub const UNRECORDED: u8 = 8;
/// A region of threads that the runtime runs for itself.
pub const HELPERS: u8 = 16;
/// A league of teams, or a member of one.
pub const LEAGUE: u8 = 32;
/// The region in which the runtime itself runs the body of `teams` for a member of the league, or its member.
pub const TEAMS_BODY: u8 = 64;

/// The content of an `ompt_data_t` of the tool's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ToolData(pub u64);

impl ToolData {
    /// Packs an id, a site (dropped if it does not fit) and flags.
    #[inline(always)]
    pub fn new(id: u32, site: u32, flags: u8) -> Self {
        let site = if site < 1 << 24 { site } else { 0 };
        ToolData(u64::from(id) | u64::from(site) << 32 | u64::from(flags) << 56)
    }

    /// Returns this data with `id`; it must have had none.
    #[inline(always)]
    pub fn with_id(self, id: u32) -> Self {
        ToolData(self.0 | u64::from(id))
    }

    /// The region's or task's id.
    #[inline(always)]
    pub fn id(self) -> u32 {
        self.0 as u32
    }

    /// The code site of its construct.
    #[inline(always)]
    pub fn site(self) -> u32 {
        (self.0 >> 32) as u32 & 0x00ff_ffff
    }

    /// All flags.
    #[inline(always)]
    pub fn flags(self) -> u8 {
        (self.0 >> 56) as u8
    }

    /// Whether all bits of `flag` are set.
    #[inline(always)]
    pub fn has(self, flag: u8) -> bool {
        (self.0 >> 56) as u8 & flag == flag
    }

    /// Returns this data with `flag` set.
    #[inline(always)]
    pub fn with(self, flag: u8) -> Self {
        ToolData(self.0 | u64::from(flag) << 56)
    }

    /// Reads the runtime's `ompt_data_t`; zero for a null or invalid pointer.
    #[inline(always)]
    pub fn load(data: *const Data) -> Self {
        if !abi::is_object(data) {
            return ToolData(0);
        }
        // SAFETY: the runtime passes pointers to live data to its callbacks; all bit patterns are numbers.
        ToolData(unsafe { (*data).value })
    }

    /// Writes the runtime's `ompt_data_t`, if the pointer is valid.
    #[inline(always)]
    pub fn store(self, data: *mut Data) {
        if abi::is_object(data) {
            // SAFETY: as in `load`; the data are the tool's to write.
            unsafe { (*data).value = self.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_return_the_stored_values() {
        let word = ToolData::new(u32::MAX, 0x00ff_ffff, EXPLICIT).with(STARTED);
        assert_eq!((word.id(), word.site()), (u32::MAX, 0x00ff_ffff));
        assert!(word.has(EXPLICIT) && word.has(STARTED) && !word.has(WAIT));
        assert_eq!(ToolData::new(1, 1 << 24, 0).site(), 0, "a site that does not fit is unknown");
    }

    #[test]
    fn offsets_from_null_are_no_words() {
        assert_eq!(ToolData::load(0x220 as *const Data), ToolData(0));
        ToolData(7).store(0x220 as *mut Data);
    }
}
