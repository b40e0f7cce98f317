//! Critical constructs, locks, ordered, atomic.

use core::ffi::{c_int, c_uint, c_void};

use taskscope_event::models::samples::state;
use taskscope_event::models::wait;

use crate::abi::{endpoint, mutex};
use crate::frames::Open;
use crate::mutex_kind::{wait_kind, wait_state};
use crate::profiling;
use crate::sections;
use crate::thread::{Moment, record};

/// `ompt_callback_mutex_acquire`: called for every acquire, contended or not. A test does not wait.
pub unsafe extern "C" fn mutex_acquire(
    mutex_kind: c_int,
    _hint: c_uint,
    _implementation: c_uint,
    object: u64,
    codeptr: *const c_void,
) {
    if matches!(mutex_kind, mutex::TEST_LOCK | mutex::TEST_NEST_LOCK) {
        return;
    }
    record(|moment| {
        if profiling::is_on() {
            moment.follow_acquire(object);
        }
        let site = moment.site(codeptr);
        moment.record_call_path(site, codeptr);
        moment.record_wait_object(wait_kind(mutex_kind), object, site);
        let state = wait_state(mutex_kind);
        moment.thread.wait_return = codeptr as u64;
        moment.open(Open::Section { codes: sections::ACQUIRING, state }, site);
    });
}

/// `ompt_callback_mutex_acquired`; after a test, only if it succeeded.
pub unsafe extern "C" fn mutex_acquired(mutex_kind: c_int, object: u64, codeptr: *const c_void) {
    record(|moment| {
        if profiling::is_on() {
            moment.follow_acquired(mutex_kind, object, codeptr);
        }
        if matches!(mutex_kind, mutex::TEST_LOCK | mutex::TEST_NEST_LOCK) {
            // A holder records the path here, as a waiter records its own.
            let site = moment.site(codeptr);
            moment.record_call_path(site, codeptr);
            moment.record_wait_object(wait_kind(mutex_kind), object, site);
        } else {
            moment.end_acquiring();
        }
        moment.record_holder(wait::ACQUIRED, object, mutex_kind);
        if mutex_kind == mutex::CRITICAL {
            moment.open(Open::Section { codes: sections::CRITICAL, state: state::WORK_PARALLEL }, 0);
        }
    });
}

/// `ompt_callback_mutex_released`: called after the unlock, so that another thread's `acquired` may
/// be earlier.
pub unsafe extern "C" fn mutex_released(mutex_kind: c_int, object: u64, _codeptr: *const c_void) {
    record(|moment| {
        if profiling::is_on() {
            moment.follow_released(object);
        }
        if mutex_kind == mutex::CRITICAL {
            moment.close_section(sections::CRITICAL);
        }
        moment.record_holder(wait::RELEASED, object, mutex_kind);
    });
}

/// `ompt_callback_nest_lock`: an owner takes its lock once more, which ends an acquire, or gives one
/// of its holds back.
pub unsafe extern "C" fn nest_lock(scope: c_int, _object: u64, _codeptr: *const c_void) {
    if scope == endpoint::BEGIN {
        record(|moment| {
            if profiling::is_on() {
                moment.follow_acquired_again();
            }
            moment.end_acquiring();
        });
    }
}

impl Moment<'_> {
    /// Records the object and site of this thread's wait of this kind, unless they are recorded already.
    #[inline(always)]
    fn record_wait_object(&mut self, kind: u32, object: u64, site: u32) {
        let last = &mut self.thread.wait_object;
        if *last != (kind, object, site) {
            *last = (kind, object, site);
            let mut payload = [0; 16];
            payload[..8].copy_from_slice(&object.to_le_bytes());
            payload[8..12].copy_from_slice(&site.to_le_bytes());
            payload[12..].copy_from_slice(&kind.to_le_bytes());
            self.recorder.own_point(self.at, wait::WAIT_OBJECT, payload);
        }
    }

    #[inline(always)]
    fn record_holder(&mut self, code: taskscope_event::Code, object: u64, mutex_kind: c_int) {
        let mut payload = [0; 12];
        payload[..8].copy_from_slice(&object.to_le_bytes());
        payload[8..].copy_from_slice(&wait_kind(mutex_kind).to_le_bytes());
        self.recorder.own_point(self.at, code, payload);
    }

    #[inline(always)]
    fn end_acquiring(&mut self) {
        self.close_section(sections::ACQUIRING);
    }
}
