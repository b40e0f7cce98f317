//! CUPTI's functions, clock and correlator, which callbacks and records share.

use super::library::{Cupti, SUCCESS};
use crate::clocks::DeviceClock;
use crate::correlate::{Announced, Correlator, QueueKey};
use crate::hub::{Device, Hub, lock};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

pub(super) static CUPTI: OnceLock<Cupti> = OnceLock::new();
pub(super) static CORRELATOR: Correlator = Correlator::new("CUDA", describe, new_device);
pub(super) static CLOCK: OnceLock<DeviceClock> = OnceLock::new();
/// Offset from CUPTI's stamps to the trace's time; for records of the host.
pub(super) static OFFSET: AtomicI64 = AtomicI64::new(0);
/// The last wait for a context.
pub(super) static BARRIER: Mutex<Option<Barrier>> = Mutex::new(None);

/// A wait for all that was submitted to a context.
pub(super) struct Barrier {
    pub context: u64,
    /// Operations announced before.
    pub announced: Vec<Announced>,
    /// When it began.
    pub start: u64,
}

pub(super) fn cupti() -> Option<&'static Cupti> {
    CUPTI.get()
}

fn describe(key: &QueueKey) -> String {
    format!("cuda.{}.{}", key.context, key.queue)
}

fn new_device(device: u64) -> Device {
    let clock = CLOCK.get().copied().unwrap_or(DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 });
    Device { name: format!("CUDA device {device}"), clock }
}

pub(super) fn device_number(hub: &Hub, device: u64) -> u32 {
    CORRELATOR.device(hub, device)
}

/// The queue that a stream is, as records will name it.
pub(super) fn stream_key(
    cupti: &Cupti,
    context: *mut c_void,
    stream: usize,
    per_thread: bool,
) -> Option<QueueKey> {
    let (mut context_number, mut device, mut number) = (0, 0, 0);
    // SAFETY: CUPTI's functions on the context and stream of the reported call.
    unsafe {
        if (cupti.context_number?)(context, &raw mut context_number) != SUCCESS {
            return None;
        }
        if (cupti.stream_number?)(context, stream, u8::from(per_thread), &raw mut number) != SUCCESS {
            return None;
        }
        if (cupti.device_number?)(context, &raw mut device) != SUCCESS {
            return None;
        }
    }
    Some(QueueKey { device: device.into(), context: context_number.into(), queue: number.into() })
}

/// Margin of the error of clock maps, nanoseconds.
const MARGIN_NS: u64 = 1_000_000;

/// A stamp that cannot be after a time of the trace.
pub(super) fn stamp_before(time: u64) -> u64 {
    let stamp = i128::from(time) - i128::from(OFFSET.load(Relaxed)) - i128::from(MARGIN_NS);
    stamp.clamp(0, i128::from(u64::MAX)) as u64
}

/// The trace's time of a stamp that CUPTI took on the host.
pub(super) fn host_time(stamp: u64) -> Option<u64> {
    stamp.checked_add_signed(OFFSET.load(Relaxed))
}

pub(super) fn count_dropped(hub: &Hub, cupti: &Cupti) {
    let mut dropped = 0usize;
    // SAFETY: no context is the global count; the place is ours.
    if unsafe { (cupti.dropped)(std::ptr::null_mut(), 0, &raw mut dropped) } == SUCCESS && dropped > 0 {
        // CUPTI counts since the last query.
        hub.dropped(dropped as u64);
    }
}

/// Declares that the program has waited for all announced operations of a context: after the next flush,
/// missing records are lost.
pub(super) fn all_have_ended(cupti: &Cupti, context: *mut c_void, announced: Vec<Announced>, start: u64) {
    let mut number = 0;
    let Some(context_number) = cupti.context_number else { return };
    // SAFETY: the context of the reported call; the result is ours.
    if unsafe { context_number(context, &raw mut number) } == SUCCESS {
        *lock(&BARRIER) = Some(Barrier { context: number.into(), announced, start });
    }
}
