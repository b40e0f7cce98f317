//! Switches recording on and off for all threads.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::event_filter::{ALL, CURRENT, FILTER, FILTERED, Filter, LIVE, OFF, SINKS, is_on};
use crate::process;
use crate::thread::ThreadRecorder;

/// Switches recording on for all threads.
pub fn switch_on() {
    let on = if FILTER.get().is_none_or(Filter::selects_all) { ALL } else { FILTERED };
    set(on | SINKS.load(Relaxed));
}

/// Sets whether sinks are loaded.
pub(crate) fn set_sinks(loaded: bool) {
    SINKS.store(if loaded { LIVE } else { 0 }, Relaxed);
    if is_on() {
        switch_on();
    }
}

/// Switches recording off for all threads. Ends of sections begun before are still recorded by interfaces
/// that know the begin (guards, and spans of `taskscope.h`).
pub fn switch_off() {
    set(OFF);
}

fn set(wanted: u32) {
    CURRENT.store(wanted, Relaxed);
    for_each_recorder(|filter| filter.store(wanted, Relaxed));
}

/// Calls `change` with the filter of every live recorder.
fn for_each_recorder(change: impl Fn(&AtomicU32)) {
    if let Some(process) = process::current() {
        // SAFETY: registered recorders live, and only an atomic is touched.
        process.for_each_recorder(|recorder| change(unsafe { &(*recorder.cast::<ThreadRecorder>()).filter }));
    }
}
