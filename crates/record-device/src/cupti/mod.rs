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
mod state;

use crate::clocks::{self, DeviceClock, Reading};
use crate::correlate::Announced;
use crate::hub::{Hub, Source, hub, lock};
use library::{Cupti, FLUSH_FORCED, SUCCESS, THREAD_ID_SYSTEM, activity, domain};
use state::{BARRIER, Barrier, CLOCK, CORRELATOR, CUPTI, OFFSET, count_dropped, cupti, stamp_before};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use taskscope_record::own_threads;

/// Interval of requests for complete records.
const FLUSH_EVERY: Duration = Duration::from_millis(50);

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
        drop(own_threads::start(c"taskscope-cupti", own_threads::LARGE_STACK, flush_now_and_then));
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

fn flush_now_and_then() {
    while hub().is_some() {
        taskscope_record::fork_gate::asleep(|| std::thread::sleep(FLUSH_EVERY));
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
