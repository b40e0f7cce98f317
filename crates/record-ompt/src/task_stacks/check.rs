//! A cross-check of our own account of a thread's state with the runtime's.
//!
//! With `TASKSCOPE_CHECK_STATES` set, every sample queries the runtime too (`ompt_get_state`) and counts
//! agreements and differences. `stream.json` has the counts at the end.

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use taskscope_event::models::samples::state;
use taskscope_record::{Json, process};

use crate::abi::Lookup;

/// Set to anything: states are compared.
const VARIABLE: &str = "TASKSCOPE_CHECK_STATES";
/// Maximum number of distinct pairs of states.
const PAIRS: usize = 128;

static GET_STATE: AtomicUsize = AtomicUsize::new(0);
/// Our state and the runtime's plus one, in 32 bits each; 0 is free.
static KINDS: [AtomicU64; PAIRS] = [const { AtomicU64::new(0) }; PAIRS];
static COUNTS: [AtomicU64; PAIRS] = [const { AtomicU64::new(0) }; PAIRS];
static COMPARED: AtomicU64 = AtomicU64::new(0);

/// Keeps the runtime's `ompt_get_state`, if states are to be compared.
///
/// # Safety
/// `lookup` is the runtime's.
pub unsafe fn set_lookup(lookup: Lookup) {
    if std::env::var_os(VARIABLE).is_some() {
        // SAFETY: looked up by a C string.
        let entry = unsafe { lookup(c"ompt_get_state".as_ptr()) };
        GET_STATE.store(entry.map_or(0, |entry| entry as usize), Relaxed);
    }
}

/// Compares our state of the calling thread with the runtime's. Async-signal-safe.
pub fn compare(ours: u32) {
    let entry = GET_STATE.load(Relaxed);
    if entry == 0 {
        return;
    }
    let mut object = 0u64;
    // SAFETY: this entry point has this type; the standard has it async-signal-safe.
    let theirs = unsafe { transmute::<usize, unsafe extern "C" fn(*mut u64) -> c_int>(entry)(&mut object) };
    COMPARED.fetch_add(1, Relaxed);
    let kind = (u64::from(ours) << 32) | (u64::from(theirs as u32 & 0xffff) + 1);
    for (place, count) in KINDS.iter().zip(&COUNTS) {
        let known = place.load(Relaxed);
        let is_ours = known == kind
            || known == 0
                && (place.compare_exchange(0, kind, Relaxed, Relaxed).is_ok() || place.load(Relaxed) == kind);
        if is_ours {
            count.fetch_add(1, Relaxed);
            return;
        }
    }
}

/// Standard state for our own numbers.
fn standard(ours: u32) -> u32 {
    match ours {
        state::NEST_LOCK => state::LOCK,
        state::TASKWAIT_DEPEND => state::TASKWAIT,
        other => other,
    }
}

/// Stores the counts in the metadata, for later writes.
pub fn store_counts() {
    let compared = COMPARED.load(Relaxed);
    if compared == 0 {
        return;
    }
    let (mut agreements, mut disagreements) = (Vec::new(), Vec::new());
    for (kind, count) in KINDS.iter().zip(&COUNTS) {
        let (kind, count) = (kind.load(Relaxed), Json::integer(count.load(Relaxed)));
        let (ours, theirs) = ((kind >> 32) as u32, (kind as u32).wrapping_sub(1));
        match kind {
            0 => {}
            _ if theirs == standard(ours) => agreements.push((format!("{ours:#05x}"), count)),
            _ => disagreements.push((format!("{ours:#05x}/{theirs:#05x}"), count)),
        }
    }
    process::set_attribute("state_agreements", Json::object(agreements));
    process::set_attribute("state_disagreements", Json::object(disagreements));
    process::set_attribute("states_compared", Json::integer(compared));
}
