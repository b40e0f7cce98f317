//! Events of operations in flight: their stamps are read by a callback, and the collector queries their status.

use super::dispatch_table::{SUCCESS, call_below, number, slot};
use crate::hub::{self, Hub, Poll, hub};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};
use taskscope_reorder::QueueIndex;

const COMPLETE: i32 = 0;
const SUBMITTED: i32 = 2;
const QUEUED: i32 = 3;
const EVENT_STATUS: u32 = 0x11D3;
const PROFILING_SUBMIT: u32 = 0x1281;
const PROFILING_START: u32 = 0x1282;
const PROFILING_END: u32 = 0x1283;

/// An operation in flight: data for its callback.
struct Pending {
    queue: QueueIndex,
    seq: u64,
}

/// Events of operations that have not ended, to query whether they have started or failed. An event lives as
/// long as its entry; the thread that removes it reports the operation's end.
static OPEN_EVENTS: Mutex<BTreeMap<(QueueIndex, u64), usize>> = Mutex::new(BTreeMap::new());

fn open_events() -> MutexGuard<'static, BTreeMap<(QueueIndex, u64), usize>> {
    hub::lock(&OPEN_EVENTS)
}

/// Ended events that the collector may be querying at this moment: it releases them. No lock is held during a
/// query, since the library may hold its own around a callback.
static ENDED_EVENTS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Queues that were waited for: operations still in flight there may have failed without a callback.
static WAITED_FOR: Mutex<BTreeSet<QueueIndex>> = Mutex::new(BTreeSet::new());

pub(super) const POLL: Poll = Poll { not_started, look };

/// Held by the collector while it calls functions below the layer. The library's callbacks never take it, for
/// any locks that the library holds around them.
static ASKING: Mutex<()> = Mutex::new(());

/// Waits until the collector has left the functions below; it stays outside as long as the result lives.
pub(super) fn asking_stopped() -> MutexGuard<'static, ()> {
    hub::lock(&ASKING)
}

/// The library below is about to go: gives all events back. No record of operations that are under way will come.
pub(super) fn give_up() {
    let open = std::mem::take(&mut *open_events());
    let ended = std::mem::take(&mut *hub::lock(&ENDED_EVENTS));
    let mut queues: BTreeMap<QueueIndex, u64> = BTreeMap::new();
    for (queue, seq) in open.keys() {
        let before = queues.entry(*queue).or_default();
        *before = (seq + 1).max(*before);
    }
    if let Some(hub) = hub() {
        queues.into_iter().for_each(|(queue, before)| hub.lost(queue, before));
    }
    for event in open.into_values().chain(ended) {
        call_below!(slot::RELEASE_EVENT, event);
    }
}

/// Declares that the program has waited for the queue: its operations have ended, even without a callback, as
/// PoCL's do if their wait list contains a failed event.
pub(super) fn waited_for(queue: QueueIndex) {
    hub::lock(&WAITED_FOR).insert(queue);
}

/// As [`waited_for`], of every queue in which something is under way.
pub(super) fn waited_for_all() {
    let queues: BTreeSet<_> = open_events().keys().map(|(queue, _)| *queue).collect();
    hub::lock(&WAITED_FOR).extend(queues);
}

fn status_of(event: usize) -> Option<i32> {
    number(slot::GET_EVENT_INFO, event, EVENT_STATUS).map(|status| status as u32 as i32)
}

fn not_started(queue: QueueIndex, seq: u64) -> bool {
    let _asking = hub::lock(&ASKING);
    let event = open_events().get(&(queue, seq)).copied();
    match event.and_then(status_of) {
        Some(QUEUED | SUBMITTED) => true,
        Some(..0) => {
            failed(queue, seq);
            false
        }
        _ => false,
    }
}

fn failed(queue: QueueIndex, seq: u64) {
    if take_out(queue, seq)
        && let Some(hub) = hub()
    {
        hub.cancel(queue, seq);
    }
}

fn look() {
    let _asking = hub::lock(&ASKING);
    for queue in std::mem::take(&mut *hub::lock(&WAITED_FOR)) {
        let queue_keys = (queue, 0)..=(queue, u64::MAX);
        let under_way: Vec<_> = open_events().range(queue_keys).map(|(key, event)| (key.1, *event)).collect();
        for (seq, event) in under_way {
            if status_of(event).is_some_and(|status| status < 0) {
                failed(queue, seq);
            }
        }
    }
    let ended = std::mem::take(&mut *hub::lock(&ENDED_EVENTS));
    for event in ended {
        call_below!(slot::RELEASE_EVENT, event);
    }
}

/// Registers the reading of the stamps at the operation's end. Our reference to the event is released later.
pub(super) fn watch(hub: &Hub, event: usize, queue: QueueIndex, seq: u64) {
    open_events().insert((queue, seq), event);
    let pending = Box::into_raw(Box::new(Pending { queue, seq }));
    let callback = completed as *const () as usize;
    let status = call_below!(slot::SET_EVENT_CALLBACK, event, COMPLETE, callback, pending);
    if status != SUCCESS {
        // SAFETY: the callback will not be called.
        drop(unsafe { Box::from_raw(pending) });
        if take_out(queue, seq) {
            hub.complete(queue, seq, 0, 0, 0);
        }
    }
}

/// Removes the event; returns whether it was present. Our reference is released when no query can use it.
fn take_out(queue: QueueIndex, seq: u64) -> bool {
    let event = open_events().remove(&(queue, seq));
    hub::lock(&ENDED_EVENTS).extend(event);
    event.is_some()
}

/// Called by the library when an operation has ended, on any thread.
extern "C" fn completed(event: usize, status: i32, pending: *mut c_void) {
    // SAFETY: made by `watch`, and given once.
    let Pending { queue, seq } = *unsafe { Box::from_raw(pending.cast::<Pending>()) };
    if status != COMPLETE {
        return failed(queue, seq);
    }
    let stamp = |parameter| number(slot::GET_EVENT_PROFILING_INFO, event, parameter).unwrap_or(0);
    let (submit, start, end) = (stamp(PROFILING_SUBMIT), stamp(PROFILING_START), stamp(PROFILING_END));
    if take_out(queue, seq)
        && let Some(hub) = hub()
    {
        hub.complete(queue, seq, submit, start, end);
    }
}
