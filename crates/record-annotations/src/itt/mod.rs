//! The collector of ITT (Intel's Instrumentation and Tracing Technology API): records tasks that programs and libraries report.
//!
//! ```text
//!  program, oneTBB, … ── static part of ITT ── INTEL_LIBITTNOTIFY64 ──▶ connect: fills the table of functions
//!        │                                                                  │
//!        └── __itt_task_begin, … ──────────────────────────────────────────▶ functions ──▶ record::instrument
//! ```
//!
//! Each module with ITT has a static part with a table of functions. At its first call it loads the collector that
//! `INTEL_LIBITTNOTIFY64` names, and has it fill the table ([`connect`]). The layout of the table is that of the public
//! header ([`abi`]), the same since 2011.
//!
//! | ITT | recorded as ([`taskscope_record::instrument`]) |
//! | --- | --- |
//! | task | a state of its name, on the thread's stack of states; class useful |
//! | task of a node without a name (flow graph of oneTBB) | a state with the name of the node |
//! | overlapped task, region | a burst on the key of its name, value 1 |
//! | frame | a burst on the key `frame DOMAIN`, with the frame's number |
//! | user event | a burst on the key of its name, value 1 |
//! | callee of a stitched stack: a thread takes up tasks of a parallel algorithm (oneTBB) | a task of kind `parallel algorithm`, so that the thread is a worker |
//! | synchronisation object, from *prepare* to *acquired* or *cancel* | a state `wait for NAME`, of class lock |
//! | marker, numeric metadata, counter | a point on the key of its name, with the value |
//! | name of a thread | the thread's name |
//! | *pause*, *resume* | the host's switch |
//!
//! Values of counters of floating-point type are rounded to integers; negative values are two's complement.
//!
//! **Not recorded.** Relations, texts of metadata, histograms, heap functions, timestamps of the program's own
//! clocks; the end of an overlapped task on another thread than its begin.
//!
//! **Rules of a guest.** No function aborts, prints or waits. Handles live for the process. A first use of a name takes the
//! dictionary's lock; later uses are loads.

pub mod abi;
mod frames;
mod functions;
mod handles;
mod host;
mod ids;
mod sync_objects;

use core::ffi::CStr;

use abi::Global;
pub use host::Host;

/// Fills the table of a module's static part: functions that are recorded, and empty ones for the rest; without a host
/// empty ones alone.
///
/// # Safety
/// `global` is null, or the argument of `__itt_api_init`: a table that ends with an entry without a name.
pub unsafe fn connect(global: *mut Global, host: Option<&'static Host>) {
    if let Some(host) = host {
        host::set(host);
    }
    // SAFETY: by contract.
    let Some(global) = (unsafe { global.as_ref() }) else { return };
    let mut entry = global.functions;
    // SAFETY: by contract, the table ends with an entry without a name, and pointers of others are valid.
    while let Some(function) = unsafe { entry.as_ref() }.filter(|function| !function.name.is_null()) {
        // SAFETY: as above.
        let name = unsafe { CStr::from_ptr(function.name) }.to_bytes();
        let recorded = host.and_then(|_| functions::find(name.strip_prefix(b"__itt_").unwrap_or(name)));
        if !function.target.is_null() {
            // SAFETY: as above; the static part calls this under its lock.
            unsafe { *function.target = recorded.unwrap_or(function.empty) };
        }
        entry = entry.wrapping_add(1);
    }
}
