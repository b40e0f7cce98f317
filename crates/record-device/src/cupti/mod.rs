//! CUDA, by CUPTI's activity and callback interfaces. CUDA's driver loads the library that
//! `CUDA_INJECTION64_PATH` names and calls [`InitializeInjection`] before it starts.
//!
//! ```text
//!  callback before a call ── announce (stream, correlation id) ─┐
//!  callback after it ─────── withdraw, if the call failed       ├▶ correlator ─▶ hub
//!  buffers, per thread, late, in any order ── records ──────────┘
//! ```
//! A graph is one operation each time it is launched.

mod calls;
mod captures;
mod library;
mod records;

use crate::clocks::{self, DeviceClock, Reading};
use crate::correlate::{Announced, Correlator, QueueKey};
use crate::hub::{Device, Hub, Source, hub, lock};
use library::{Cupti, FLUSH_FORCED, SUCCESS, THREAD_ID_SYSTEM, activity, domain};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use taskscope_record::own_threads;

static CUPTI: OnceLock<Cupti> = OnceLock::new();
static CORRELATOR: Correlator = Correlator::new("CUDA", describe, new_device);
static CLOCK: OnceLock<DeviceClock> = OnceLock::new();
/// Offset from CUPTI's stamps to the trace's time; for records of the host.
static OFFSET: AtomicI64 = AtomicI64::new(0);
/// The last wait for a context.
static BARRIER: Mutex<Option<Barrier>> = Mutex::new(None);

/// A wait for all that was submitted to a context.
struct Barrier {
    context: u64,
    /// Operations announced before.
    announced: Vec<Announced>,
    /// When it began.
    start: u64,
}

/// Interval of requests for complete records.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

fn cupti() -> Option<&'static Cupti> {
    CUPTI.get()
}

fn describe(key: &QueueKey) -> String {
    format!("cuda.{}.{}", key.context, key.queue)
}

fn new_device(device: u64) -> Device {
    let clock = CLOCK.get().copied().unwrap_or(DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 });
    Device { name: format!("CUDA device {device}"), clock }
}

fn device_number(hub: &Hub, device: u64) -> u32 {
    CORRELATOR.device(hub, device)
}

/// The queue that a stream is, as records will name it.
fn stream_key(cupti: &Cupti, context: *mut c_void, stream: usize, per_thread: bool) -> Option<QueueKey> {
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

/// Called by CUDA's driver when it is loaded. A failure here does not affect the program.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    if let Some(hub) = hub() {
        let _ = begin(hub);
    }
    1
}

fn begin(hub: &'static Hub) -> Option<()> {
    if CUPTI.get().is_some() {
        return None;
    }
    let cupti = Cupti::load()?;
    let _ = CUPTI.set(cupti);
    let _ = CLOCK.set(find_clock(&cupti)?);
    // SAFETY: CUPTI's functions, used as documented; missing or refused ones reduce the recording.
    unsafe {
        if let Some(thread_ids) = cupti.thread_ids {
            thread_ids(THREAD_ID_SYSTEM);
        }
        if (cupti.register)(records::requested, records::completed) != SUCCESS {
            return None;
        }
        let mut subscriber = std::ptr::null_mut();
        if let (Some(subscribe), Some(enable_domain)) = (cupti.subscribe, cupti.enable_domain)
            && subscribe(&raw mut subscriber, calls::callback, std::ptr::null_mut()) == SUCCESS
        {
            enable_domain(1, subscriber, domain::DRIVER);
            enable_domain(1, subscriber, domain::RUNTIME);
        }
        let kinds = [
            activity::DEVICE,
            activity::CONCURRENT_KERNEL,
            activity::MEMCPY,
            activity::MEMCPY_PEER,
            activity::MEMSET,
            activity::OVERHEAD,
            activity::GRAPH,
            activity::SYNCHRONISATION,
        ];
        let enabled = kinds.into_iter().filter(|kind| (cupti.enable)(*kind) == SUCCESS).count();
        if enabled == 0 {
            return None;
        }
    }
    hub.add_source(Source { flush: || flush(0), force: end });
    if own_threads::may_start() {
        crate::collector::with_signals_blocked(|| {
            let spawned =
                std::thread::Builder::new().name("taskscope-cupti".to_owned()).spawn(flush_now_and_then);
            drop(spawned);
        });
    }
    Some(())
}

/// Clock of the host that CUPTI's stamps use; `None` if the query fails, without a driver or with an
/// unsupported one.
fn find_clock(cupti: &Cupti) -> Option<DeviceClock> {
    let mut stamp = 0;
    let before = Reading::take();
    let host_before = clocks::now();
    // SAFETY: the place is ours.
    let status = unsafe { (cupti.timestamp)(&raw mut stamp) };
    let host = host_before.midpoint(clocks::now());
    if status != SUCCESS {
        return None;
    }
    OFFSET.store(host.wrapping_sub(stamp) as i64, Relaxed);
    Some(DeviceClock::found(stamp, stamp, &before, &Reading::take()))
}

/// Margin of the error of clock maps, nanoseconds.
const MARGIN_NS: u64 = 1_000_000;

/// A stamp that is surely not after a time of the trace.
fn stamp_before(time: u64) -> u64 {
    let stamp = i128::from(time) - i128::from(OFFSET.load(Relaxed)) - i128::from(MARGIN_NS);
    stamp.clamp(0, i128::from(u64::MAX)) as u64
}

/// The trace's time of a stamp that CUPTI took on the host.
fn host_time(stamp: u64) -> Option<u64> {
    stamp.checked_add_signed(OFFSET.load(Relaxed))
}

/// Whether CUPTI may not be called any more: after the end the driver takes its own apart. Held over a flush.
static IS_CLOSED: Mutex<bool> = Mutex::new(false);

fn flush(flags: u32) {
    let is_closed = lock(&IS_CLOSED);
    if let (false, Some(hub), Some(cupti)) = (*is_closed, hub(), cupti()) {
        // SAFETY: from a thread of ours, or at exit; never from a callback.
        unsafe { (cupti.flush_all)(flags) };
        count_dropped(hub, cupti);
    }
}

/// Hands over all records, also unfinished ones, and calls CUPTI for the last time.
fn end() {
    flush(FLUSH_FORCED);
    *lock(&IS_CLOSED) = true;
}

fn count_dropped(hub: &Hub, cupti: &Cupti) {
    let mut dropped = 0usize;
    // SAFETY: no context is the global count; the place is ours.
    if unsafe { (cupti.dropped)(std::ptr::null_mut(), 0, &raw mut dropped) } == SUCCESS && dropped > 0 {
        // CUPTI counts since the last query.
        hub.dropped(dropped as u64);
    }
}

/// Declares that the program has waited for all announced operations of a context: after the next flush,
/// missing records are lost.
fn all_have_ended(cupti: &Cupti, context: *mut c_void, announced: Vec<Announced>, start: u64) {
    let mut number = 0;
    let Some(context_number) = cupti.context_number else { return };
    // SAFETY: the context of the reported call; the result is ours.
    if unsafe { context_number(context, &raw mut number) } == SUCCESS {
        *lock(&BARRIER) = Some(Barrier { context: number.into(), announced, start });
    }
}

fn flush_now_and_then() {
    while hub().is_some() {
        std::thread::sleep(FLUSH_EVERY);
        let barrier = lock(&BARRIER).take();
        flush(0);
        let (Some(Barrier { context, announced, start }), Some(hub)) = (barrier, hub()) else { continue };
        // CUPTI keeps a buffer with unfinished records: all are certainly handed over only if nothing was
        // submitted since, and no operation is open elsewhere.
        let now = CORRELATOR.announced();
        let counts = |all: &[Announced]| all.iter().map(|one| one.count).collect::<Vec<_>>();
        let elsewhere = now.iter().any(|one| one.context != context && one.open > 0);
        if counts(&now) == counts(&announced) && !elsewhere {
            for one in now.iter().filter(|one| one.context == context && one.open > 0) {
                CORRELATOR.lost(hub, one.queue, one.count);
            }
            CORRELATOR.none_before(hub, |key| key.context == context, stamp_before(start));
        }
    }
}
