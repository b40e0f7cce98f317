//! For a recorder of another interface that is linked into one library with this one (MPI): one
//! process, one stream a thread, one stack of what is open.
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
    /// One for which ovni's models have events.
    Standard(SectionCodes),
    /// An MPI function by its number in `taskscope_event::models::messages`.
    Numbered(u32),
}

impl Moment<'_> {
    /// Begins a call that comes from code site `site`.
    pub fn begin_call(&mut self, call: Call, site: u32) {
        // To a sample, a call is work of whatever it is called from.
        let open = match call {
            Call::Standard(codes) => Open::Section { codes, state: self.thread.state() },
            Call::Numbered(function) => Open::Call { function },
        };
        self.open(open, site);
    }

    /// Ends the innermost such call.
    pub fn end_call(&mut self, call: Call) {
        match call {
            Call::Standard(codes) => self.close_section(codes),
            Call::Numbered(function) => self.close_in_context(|open| open == Open::Call { function }),
        }
    }

    /// The code site of a return address; 0 where that says nothing.
    pub fn code_site(&mut self, return_address: *const c_void) -> u32 {
        self.known_site(return_address)
    }
}
