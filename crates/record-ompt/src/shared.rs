//! Entry points for a recorder of another interface (MPI) that is linked into one library with this one: one
//! process, one stream per thread, one stack of open constructs.
//!
//! **The caller** calls [`start_recording`] before anything else, and [`record`] for each of its events,
//! on any thread; a thread that the OpenMP runtime has not announced is attached there.

use core::ffi::c_void;

use crate::frames::Open;
pub use crate::recording::start_recording;
pub use crate::sections::SectionCodes;
pub use crate::thread::{Moment, record};

/// A call into a library that is not the OpenMP runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A call with events in ovni's models.
    Standard(SectionCodes),
    /// An MPI function by its number in `taskscope_event::models::messages`.
    Numbered(u32),
}

impl Moment<'_> {
    /// Begins a call that comes from code site `site`.
    pub fn begin_call(&mut self, call: Call, site: u32) {
        // In a sample, a call is work of its caller.
        let open = match call {
            Call::Standard(codes) => Open::Section { codes, state: self.thread.state() },
            Call::Numbered(function) => Open::Call { function },
        };
        self.open(open, site);
    }

    /// Ends the innermost call of this kind.
    pub fn end_call(&mut self, call: Call) {
        match call {
            Call::Standard(codes) => self.close_section(codes),
            Call::Numbered(function) => self.close_in_context(|open| open == Open::Call { function }),
        }
    }

    /// Returns the code site of a return address; 0 if the address identifies none.
    pub fn code_site(&mut self, return_address: *const c_void) -> u32 {
        self.known_site(return_address)
    }
}
