//! OMPT's kinds of mutexes, as kinds of waits and states of samples.

use core::ffi::c_int;

use taskscope_event::models::samples::state;
use taskscope_event::models::wait::kind;

use crate::abi::mutex;

/// State of a sample in a thread that waits for a mutex of this OMPT kind.
#[inline]
pub fn wait_state(mutex_kind: c_int) -> u32 {
    match mutex_kind {
        mutex::CRITICAL => state::CRITICAL,
        mutex::NEST_LOCK => state::NEST_LOCK,
        mutex::ORDERED => state::ORDERED,
        mutex::ATOMIC => state::ATOMIC,
        _ => state::LOCK,
    }
}

/// The kind of wait for a mutex of this OMPT kind.
#[inline]
pub fn wait_kind(mutex_kind: c_int) -> u32 {
    match mutex_kind {
        mutex::CRITICAL => kind::CRITICAL,
        mutex::NEST_LOCK | mutex::TEST_NEST_LOCK => kind::NEST_LOCK,
        mutex::ORDERED => kind::ORDERED,
        mutex::ATOMIC => kind::ATOMIC,
        _ => kind::LOCK,
    }
}
