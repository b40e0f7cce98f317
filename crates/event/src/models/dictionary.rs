//! Dictionary events: meanings of the small numbers in other events.
//!
//! Ids are per process. A thread writes an entry into its own `taskscope.obs` before any event of
//! its own that uses it; entries of all threads of a process form one dictionary, so a reader
//! collects them before it resolves anything.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'L';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

events! {
    MODULE = b"LMm" jumbo (start: u64, end: u64, bias: u64, build_id: str, path: str) Rule, "names the module {path}, loaded at {start} to {end} with bias {bias} and build id {build_id}";
    DATA = b"LDn" jumbo (address: u64, bytes: u64, name: str) Rule, "names {bytes} bytes of memory from {address} on (no name: removes the names in them): {name}";
    SITE = b"LCs" plain (site: u32, address: u64) Rule, "names code site {site}, return address {address}";
    SITE_BODY = b"LCb" jumbo (site: u32, body: u64, location: str) Rule, "names the outlined body at {body} of the construct at site {site}, and its location by the compiler (may be empty): {location}";
    TASK_TYPE_SITE = b"LTt" plain (typeid: u32, site: u32, flags: u32) Rule, "names the creation site {site} and OMPT flags {flags} of task type {typeid}";
    WORK_TYPE_SITE = b"LTw" plain (typeid: u32, site: u32, kind: u32) Rule, "names the site {site} and OMPT work kind {kind} of worksharing type {typeid}";
}
