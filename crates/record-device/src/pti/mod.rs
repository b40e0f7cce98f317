//! Intel's GPUs, by the view and callback interfaces of PTI.
//!
//! A callback reports an operation appended to an immediate command list, with its queue and id, before the
//! device sees it; then its queue is released by that sequence, in whatever buffer its record is. Operations
//! of recorded command lists, and of PTI releases without callbacks, become known with their records only:
//! they are ordered by start, and released when the program has waited for their queue.

mod library;
mod records;
mod state;

use crate::clocks::{self, DeviceClock, Reading};
use crate::correlate::About;
use crate::hub::{Hub, KindAndName, Source, hub, tid};
use library::{APPENDED, Appended, AppendedOperation, ENTER, EXIT, Pti, SUCCESS, view};
use state::{CLOCK, CORRELATOR, PTI, key, queue_key};
use std::cell::RefCell;
use std::ffi::c_void;
use std::time::Duration;
use taskscope_event::models::device::kind;
use taskscope_record::own_threads;
use taskscope_reorder::{Operation, VendorKey};

/// Margin of the error of PTI's clock map, nanoseconds.
const MARGIN_NS: u64 = 1_000_000;
/// Interval of requests for records.
const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// Starts PTI, if it is there. Returns whether it records.
pub(crate) fn begin(hub: &'static Hub) -> bool {
    let Some(pti) = Pti::load() else { return false };
    if PTI.set(pti).is_err() {
        return true;
    }
    // SAFETY: PTI's functions, used as documented.
    unsafe {
        if let Some(set_timestamp) = pti.set_timestamp {
            set_timestamp(trace_clock);
        }
        let _ = CLOCK.set(find_clock(&pti));
        if (pti.set_callbacks)(records::requested, records::completed) != SUCCESS {
            return false;
        }
        let views = [
            view::KERNEL,
            view::COPY,
            view::COPY_PEER,
            view::FILL,
            view::RUNTIME_CALL,
            view::OVERHEAD,
            view::SYNCHRONISATION,
        ];
        if views.into_iter().filter(|view| (pti.enable)(*view) == SUCCESS).count() == 0 {
            return false;
        }
        let mut subscriber = std::ptr::null_mut();
        if let (Some(subscribe), Some(enable_domain)) = (pti.subscribe, pti.enable_domain)
            && subscribe(&raw mut subscriber, appended, std::ptr::null_mut()) == SUCCESS
        {
            enable_domain(subscriber, APPENDED, 1, 1);
        }
    }
    hub.add_source(Source { flush, force: flush });
    if own_threads::may_start() {
        drop(own_threads::start(c"taskscope-pti", own_threads::LARGE_STACK, || {
            while self::hub().is_some() {
                taskscope_record::fork_gate::asleep(|| std::thread::sleep(FLUSH_EVERY));
                flush();
            }
        }));
    }
    true
}

extern "C" fn trace_clock() -> u64 {
    clocks::now()
}

/// Clock of the host that PTI's stamps use.
fn find_clock(pti: &Pti) -> DeviceClock {
    let before = Reading::take();
    let Some(timestamp) = pti.timestamp else { return DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 } };
    // SAFETY: no preconditions.
    let stamp = unsafe { timestamp() };
    DeviceClock::found(stamp, stamp, &before, &Reading::take())
}

fn flush() {
    let Some(pti) = PTI.get() else { return };
    let waits = records::take_waits();
    // SAFETY: from a thread of ours, or at exit.
    let status = unsafe { (pti.flush)() };
    let (SUCCESS, Some(hub)) = (status, hub()) else { return };
    // PTI collects ended operations when a wait of the program returns, and has handed them over now.
    for (queue, start) in waits {
        CORRELATOR.none_before(hub, |key| key.queue == queue, start.saturating_sub(MARGIN_NS));
    }
}

thread_local! {
    /// Operations announced by the call that this thread is in.
    static ANNOUNCED: RefCell<Vec<(VendorKey, Operation)>> = const { RefCell::new(Vec::new()) };
}

/// Called by PTI before and after a call that appends operations, in the calling thread.
unsafe extern "C" fn appended(
    domain: u32,
    _group: u32,
    _call: u32,
    _context: usize,
    data: *const c_void,
    _user: *mut c_void,
    _instance: *mut *mut c_void,
) {
    // SAFETY: PTI's own, for the time of the callback, in the form that belongs to the domain.
    let (Some(hub), true, Some(data)) =
        (hub(), domain == APPENDED, unsafe { data.cast::<Appended>().as_ref() })
    else {
        return;
    };
    let _ = ANNOUNCED.try_with(|announced| {
        let Ok(mut announced) = announced.try_borrow_mut() else { return };
        if data.phase == ENTER {
            announced.clear();
        }
        if data.phase == EXIT && data.result != 0 {
            for (id, operation) in announced.drain(..) {
                CORRELATOR.withdraw(hub, id, operation);
            }
            return;
        }
        if data.queue != 0 && !data.operation.is_null() {
            // SAFETY: PTI gives so many of them.
            let operations = unsafe { std::slice::from_raw_parts(data.operation, data.operations as usize) };
            for operation in operations {
                announce(hub, data, operation, &mut announced);
            }
        }
        if data.phase == EXIT {
            announced.clear();
        }
    });
}

fn announce(
    hub: &'static Hub,
    data: &Appended,
    operation: &AppendedOperation,
    announced: &mut Vec<(VendorKey, Operation)>,
) {
    let id = key(operation.id);
    // Both phases may report it.
    if operation.id == 0 || announced.iter().any(|(known, _)| *known == id) {
        return;
    }
    let kind = match operation.kind {
        1 => kind::KERNEL,
        2 => kind::COPY,
        _ => kind::OTHER,
    };
    // SAFETY: PTI's text, for the time of the callback.
    let name = unsafe { crate::dynamic::text(operation.name) };
    let about = About { what: KindAndName::new(kind, hub.name(&name)), bytes: 0, tid: tid() };
    let queue = queue_key(data.queue as u64, data.device as u64);
    let operation = CORRELATOR.announce(hub, &queue, id, about, clocks::now());
    records::submits(data.correlation, operation);
    announced.push((id, operation));
}
