//! Calls that put an operation into a queue.

use super::queues::known;
use super::{ENTRIES, SUCCESS, call_below, number, slot, text};
use crate::clocks;
use crate::hub::{self, Call, Hub, Poll, What, hub};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use taskscope_event::models::device::kind;
use taskscope_reorder::QueueIndex;

const COMPLETE: i32 = 0;
const SUBMITTED: i32 = 2;
const QUEUED: i32 = 3;
const EVENT_STATUS: u32 = 0x11D3;
const PROFILING_SUBMIT: u32 = 0x1281;
const PROFILING_START: u32 = 0x1282;
const PROFILING_END: u32 = 0x1283;
const KERNEL_FUNCTION_NAME: u32 = 0x1190;

/// Ids that are shown; OpenCL's events have addresses only, which are used again.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Submission of a call.
struct About {
    name: &'static str,
    kind: u32,
    bytes: u64,
    /// Whether the call may return only after the operation has run.
    blocks: bool,
    /// The kernel that it runs.
    kernel: usize,
}

/// An operation in flight: data for its callback.
struct Pending {
    queue: QueueIndex,
    seq: u64,
}

/// Submits by `call`, which is given a place for the event.
fn submit(queue: usize, event: *mut usize, about: About, call: impl FnOnce(*mut usize) -> i32) -> i32 {
    let Some(hub) = hub().filter(|_| queue != 0) else { return call(event) };
    let known = known(queue, hub);
    let name = match about.kernel {
        0 => hub.name(about.name),
        kernel => text(slot::GET_KERNEL_INFO, kernel, KERNEL_FUNCTION_NAME)
            .map_or_else(|| hub.name(about.name), |name| hub.name(&name)),
    };
    let mut own_event = 0usize;
    let asked_for = !event.is_null();
    let place = if asked_for { event } else { &raw mut own_event };
    // A blocking call cannot hold the lock: it may wait for an operation of the same queue.
    let order = (!about.blocks).then(|| known.submission.lock().unwrap_or_else(PoisonError::into_inner));
    let (seq, beside) = hub::lock(&known.numbers).begin();
    let id = NEXT_ID.fetch_add(1, Relaxed);
    let append = clocks::now();
    let what = What::new(about.kind, name);
    hub.append_beside((known.index, seq, beside), what, id, about.bytes, append);
    let status = call(place);
    hub::lock(&known.numbers).end(seq);
    drop(order);
    // SAFETY: a successful call has put an event there.
    let made = if status == SUCCESS { unsafe { *place } } else { 0 };
    if made == 0 {
        hub.cancel(known.index, seq);
    } else {
        if asked_for {
            call_below!(slot::RETAIN_EVENT, made);
        }
        watch(hub, made, known.index, seq);
    }
    let what = What::new(kind::SUBMITTING_CALL, hub.name(about.name));
    let operation = Some((known.index, seq));
    hub.call(Call { tid: hub::tid(), start: append, end: clocks::now(), what, operation });
    status
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
        let of_queue = (queue, 0)..=(queue, u64::MAX);
        let under_way: Vec<_> = open_events().range(of_queue).map(|(key, event)| (key.1, *event)).collect();
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
fn watch(hub: &Hub, event: usize, queue: QueueIndex, seq: u64) {
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

/// Defines a function of OpenCL's with this number of words before the event, a queue first, and puts it into
/// the table.
macro_rules! enqueues {
    ($($place:literal $name:ident($($argument:ident),*) $kind:ident, bytes $bytes:expr, blocks $blocks:expr, kernel $kernel:expr;)*) => {
        $(
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, reason = "OpenCL's own")]
            extern "C" fn $name(queue: usize $(, $argument: usize)*, event: *mut usize) -> i32 {
                let about = About {
                    name: stringify!($name),
                    kind: kind::$kind,
                    bytes: $bytes as u64,
                    blocks: $blocks,
                    kernel: $kernel,
                };
                submit(queue, event, about, |event| call_below!($place, queue $(, $argument)*, event))
            }
        )*
        /// Replaces functions in the table with the layer's, if the library has them.
        pub(super) fn replace(table: &mut [usize; ENTRIES]) {
            $(
                if table[$place] != 0 {
                    table[$place] = $name as *const () as usize;
                }
            )*
            replace_special(table);
        }
    };
}

/// Three numbers of a region, multiplied.
fn region_bytes(region: usize) -> u64 {
    if region == 0 {
        return 0;
    }
    // SAFETY: OpenCL demands three numbers there.
    let region = unsafe { *(region as *const [usize; 3]) };
    region.iter().fold(1u64, |product, side| product.saturating_mul(*side as u64))
}

enqueues! {
    48 clEnqueueReadBuffer(buffer, blocking, offset, size, host, events, list) COPY_OUT, bytes size, blocks blocking as u32 != 0, kernel 0;
    49 clEnqueueWriteBuffer(buffer, blocking, offset, size, host, events, list) COPY_IN, bytes size, blocks blocking as u32 != 0, kernel 0;
    50 clEnqueueCopyBuffer(from, to, from_offset, to_offset, size, events, list) COPY, bytes size, blocks false, kernel 0;
    51 clEnqueueReadImage(image, blocking, origin, region, row, slice, host, events, list) COPY_OUT, bytes 0, blocks blocking as u32 != 0, kernel 0;
    52 clEnqueueWriteImage(image, blocking, origin, region, row, slice, host, events, list) COPY_IN, bytes 0, blocks blocking as u32 != 0, kernel 0;
    53 clEnqueueCopyImage(from, to, from_origin, to_origin, region, events, list) COPY, bytes 0, blocks false, kernel 0;
    54 clEnqueueCopyImageToBuffer(from, to, origin, region, offset, events, list) COPY, bytes 0, blocks false, kernel 0;
    55 clEnqueueCopyBufferToImage(from, to, offset, origin, region, events, list) COPY, bytes 0, blocks false, kernel 0;
    58 clEnqueueUnmapMemObject(memory, host, events, list) MAP, bytes 0, blocks false, kernel 0;
    59 clEnqueueNDRangeKernel(code, dimensions, offset, global, local, events, list) KERNEL, bytes 0, blocks false, kernel code;
    60 clEnqueueTask(code, events, list) KERNEL, bytes 0, blocks false, kernel code;
    61 clEnqueueNativeKernel(function, arguments, size, objects, list_of_objects, places, events, list) HOST_CODE, bytes 0, blocks false, kernel 0;
    62 clEnqueueMarker() SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    72 clEnqueueAcquireGLObjects(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    73 clEnqueueReleaseGLObjects(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    86 clEnqueueReadBufferRect(buffer, blocking, buffer_origin, host_origin, region, buffer_row, buffer_slice, host_row, host_slice, host, events, list) COPY_OUT, bytes region_bytes(region), blocks blocking as u32 != 0, kernel 0;
    87 clEnqueueWriteBufferRect(buffer, blocking, buffer_origin, host_origin, region, buffer_row, buffer_slice, host_row, host_slice, host, events, list) COPY_IN, bytes region_bytes(region), blocks blocking as u32 != 0, kernel 0;
    88 clEnqueueCopyBufferRect(from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice, events, list) COPY, bytes region_bytes(region), blocks false, kernel 0;
    102 clEnqueueFillBuffer(buffer, pattern, pattern_size, offset, size, events, list) FILL, bytes size, blocks false, kernel 0;
    103 clEnqueueFillImage(image, colour, origin, region, events, list) FILL, bytes 0, blocks false, kernel 0;
    104 clEnqueueMigrateMemObjects(count, objects, flags, events, list) COPY, bytes 0, blocks false, kernel 0;
    105 clEnqueueMarkerWithWaitList(events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    106 clEnqueueBarrierWithWaitList(events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    120 clEnqueueAcquireEGLObjectsKHR(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    121 clEnqueueReleaseEGLObjectsKHR(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false, kernel 0;
    128 clEnqueueSVMFree(count, pointers, callback, user, events, list) HOST_CODE, bytes 0, blocks false, kernel 0;
    129 clEnqueueSVMMemcpy(blocking, to, from, size, events, list) COPY, bytes size, blocks blocking as u32 != 0, kernel 0;
    130 clEnqueueSVMMemFill(to, pattern, pattern_size, size, events, list) FILL, bytes size, blocks false, kernel 0;
    131 clEnqueueSVMMap(blocking, flags, pointer, size, events, list) MAP, bytes size, blocks blocking as u32 != 0, kernel 0;
    132 clEnqueueSVMUnmap(pointer, events, list) MAP, bytes 0, blocks false, kernel 0;
    139 clEnqueueSVMMigrateMem(count, pointers, sizes, flags, events, list) COPY, bytes 0, blocks false, kernel 0;
}

/// The calls of another form: mapping gives a pointer, and two old ones give no event.
fn replace_special(table: &mut [usize; ENTRIES]) {
    let special: [(usize, usize); 4] = [
        (MAP_BUFFER, map_buffer as *const () as usize),
        (MAP_IMAGE, map_image as *const () as usize),
        (WAIT_IN_QUEUE, wait_in_queue as *const () as usize),
        (BARRIER, barrier as *const () as usize),
    ];
    for (place, function) in special {
        if table[place] != 0 {
            table[place] = function;
        }
    }
}

const MAP_BUFFER: usize = 56;
const MAP_IMAGE: usize = 57;
const WAIT_IN_QUEUE: usize = 63;
const BARRIER: usize = 64;

/// Defines a mapping function: as the others, but it gives a pointer, and the error goes to a place.
macro_rules! maps {
    ($place:ident $name:ident($symbol:literal; $($argument:ident),*), bytes $bytes:expr) => {
        #[allow(clippy::too_many_arguments, reason = "OpenCL's own")]
        extern "C" fn $name(
            queue: usize,
            memory: usize,
            blocking: usize,
            flags: usize,
            $($argument: usize,)*
            event: *mut usize,
            error: *mut i32,
        ) -> usize {
            type Function = unsafe extern "C" fn(
                usize, usize, usize, usize, $(maps!(@word $argument),)* *mut usize, *mut i32,
            ) -> usize;
            let address = super::below($place);
            if address == 0 {
                return 0;
            }
            // SAFETY: the loader put a function of this form there.
            let function: Function = unsafe { std::mem::transmute(address) };
            let about = About {
                name: $symbol,
                kind: kind::MAP,
                bytes: $bytes as u64,
                blocks: blocking as u32 != 0,
                kernel: 0,
            };
            let (mut mapped, mut status) = (0, SUCCESS);
            submit(queue, event, about, |event| {
                // SAFETY: the arguments are the program's.
                mapped = unsafe {
                    function(queue, memory, blocking, flags, $($argument,)* event, &raw mut status)
                };
                status
            });
            if !error.is_null() {
                // SAFETY: the program's place for it.
                unsafe { *error = status };
            }
            mapped
        }
    };
    (@word $argument:ident) => { usize };
}

maps! { MAP_BUFFER map_buffer("clEnqueueMapBuffer"; offset, size, events, list), bytes size }
maps! { MAP_IMAGE map_image("clEnqueueMapImage"; origin, region, row, slice, events, list), bytes 0 }

/// Records a call that submits an unwatched operation.
fn unwatched(name: &str, call: impl FnOnce() -> i32) -> i32 {
    let Some(hub) = hub() else { return call() };
    let start = clocks::now();
    let status = call();
    let what = What::new(kind::OTHER_CALL, hub.name(name));
    hub.call(Call { tid: hub::tid(), start, end: clocks::now(), what, operation: None });
    status
}

extern "C" fn wait_in_queue(queue: usize, count: usize, events: usize) -> i32 {
    unwatched("clEnqueueWaitForEvents", || call_below!(WAIT_IN_QUEUE, queue, count, events))
}

extern "C" fn barrier(queue: usize) -> i32 {
    unwatched("clEnqueueBarrier", || call_below!(BARRIER, queue))
}
