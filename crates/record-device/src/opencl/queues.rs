//! Queues: created with profiling, known by their handle, released; and calls that wait for them.

use super::dispatch_table::{ENTRIES, SUCCESS, below, call_below, number, slot, text};
use super::watched_events::{POLL, waited_for, waited_for_all};
use crate::clocks::{self, DeviceClock, Reading};
use crate::hub::{self, Call, Device, Floor, Hub, KindAndName, hub};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use taskscope_event::models::device::kind;
use taskscope_reorder::{QueueIndex, QueueOrder};

const QUEUE_OUT_OF_ORDER: u64 = 1;
const QUEUE_PROFILING: u64 = 2;
const QUEUE_ON_DEVICE: u64 = 4;
const QUEUE_PROPERTIES: usize = 0x1093;
const QUEUE_DEVICE: u32 = 0x1091;
const QUEUE_REFERENCES: u32 = 0x1092;
const QUEUE_PROPERTIES_PARAMETER: u32 = 0x1093;
const DEVICE_NAME: u32 = 0x102B;
const DEVICE_PLATFORM: u32 = 0x1031;
const EVENT_QUEUE: u32 = 0x11D0;
const PROFILING_NOT_AVAILABLE: i32 = -7;
const FAILED_EVENT_AMONG_THEM: i32 = -14;
const PROFILING_START: u32 = 0x1282;
const PROFILING_END: u32 = 0x1283;

/// A queue of the program.
pub(super) struct KnownQueue {
    pub index: QueueIndex,
    pub numbers: Mutex<Numbers>,
    /// The platform of its device; 0 if the library does not name it.
    pub platform: usize,
    /// Whether the program itself requested profiling.
    profiled: AtomicBool,
    /// Held over a submission that does not block, so that the driver's order is that of the sequence.
    pub submission: Mutex<()>,
}

/// Numbers of a queue's operations.
#[derive(Default)]
pub(super) struct Numbers {
    next: u64,
    /// Operations in calls that have not returned.
    submitting: Vec<u64>,
}

impl Numbers {
    /// The number of an operation that is about to be submitted, and the first one that is being submitted.
    pub fn begin(&mut self) -> (u64, Option<u64>) {
        let seq = self.next;
        self.next += 1;
        let beside = self.submitting.iter().copied().min();
        self.submitting.push(seq);
        (seq, beside)
    }

    /// The operation's call has returned.
    pub fn end(&mut self, seq: u64) {
        self.submitting.retain(|of| *of != seq);
    }
}

static QUEUES: RwLock<Option<FxHashMap<usize, Arc<KnownQueue>>>> = RwLock::new(None);
static DEVICES: Mutex<Option<FxHashMap<usize, u32>>> = Mutex::new(None);

/// The queue of this handle, made known if it was created out of sight.
pub(super) fn known(handle: usize, hub: &'static Hub) -> Arc<KnownQueue> {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = queues.as_ref().and_then(|queues| queues.get(&handle)) {
        return Arc::clone(queue);
    }
    drop(queues);
    learn(handle, hub)
}

fn learn(handle: usize, hub: &'static Hub) -> Arc<KnownQueue> {
    let device = number(slot::GET_COMMAND_QUEUE_INFO, handle, QUEUE_DEVICE).unwrap_or(0) as usize;
    let platform = number(slot::GET_DEVICE_INFO, device, DEVICE_PLATFORM).unwrap_or(0) as usize;
    let properties = number(slot::GET_COMMAND_QUEUE_INFO, handle, QUEUE_PROPERTIES_PARAMETER).unwrap_or(0);
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let device = *devices.get_or_insert_default().entry(device).or_insert_with(|| {
        let name = text(slot::GET_DEVICE_INFO, device, DEVICE_NAME).unwrap_or_else(|| "device".to_owned());
        hub.add_device(Device { name, clock: clock_of(handle) })
    });
    drop(devices);
    anchor(handle, device, hub);
    let order = match properties & QUEUE_OUT_OF_ORDER {
        0 => QueueOrder::InOrder,
        _ => QueueOrder::OutOfOrder,
    };
    let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
    let known = queues.get_or_insert_default();
    let number = hub.queue_count();
    let queue = known.entry(handle).or_insert_with(|| {
        let name = format!("opencl.{number}");
        let (interface, floor, poll) = ("OpenCL", Floor::Now, Some(POLL));
        let index = hub.add_queue(hub::Queue { name, device, order, interface, floor, poll });
        let profiled = AtomicBool::new(properties & QUEUE_PROFILING != 0);
        let (numbers, submission) = (Mutex::default(), Mutex::default());
        Arc::new(KnownQueue { index, numbers, platform, profiled, submission })
    });
    Arc::clone(queue)
}

/// Determines the clock of the device's stamps, from a marker of our own between two readings: OpenCL does
/// not specify it, and not every library can relate its clock to the host's.
fn clock_of(queue: usize) -> DeviceClock {
    let before = Reading::take();
    let mut event = 0usize;
    let submitted = call_below!(slot::ENQUEUE_MARKER_WITH_WAIT_LIST, queue, 0usize, 0usize, &raw mut event);
    let finished = call_below!(slot::FINISH, queue);
    let after = Reading::take();
    if submitted != SUCCESS || event == 0 {
        return DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 };
    }
    let stamp = |parameter| number(slot::GET_EVENT_PROFILING_INFO, event, parameter).unwrap_or(0);
    let (start, end) = (stamp(PROFILING_START), stamp(PROFILING_END));
    call_below!(slot::RELEASE_EVENT, event);
    if finished != SUCCESS {
        return DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 };
    }
    DeviceClock::found(start, end, &before, &after)
}

/// Relates the device's clock to the host's, if the library can.
fn anchor(queue: usize, number_of_device: u32, hub: &Hub) {
    let Some(device) = number(slot::GET_COMMAND_QUEUE_INFO, queue, QUEUE_DEVICE) else { return };
    let (mut ticks, mut host) = (0u64, 0u64);
    let before = clocks::now();
    let status = call_below!(slot::GET_DEVICE_AND_HOST_TIMER, device, &raw mut ticks, &raw mut host);
    if status == SUCCESS && ticks != 0 {
        hub.anchor(number_of_device, ticks, before, clocks::now());
    }
}

/// Puts the layer's functions into the table.
pub(super) fn replace(table: &mut [usize; ENTRIES]) {
    table[slot::CREATE_COMMAND_QUEUE] = create as *const () as usize;
    if table[slot::CREATE_COMMAND_QUEUE_WITH_PROPERTIES] != 0 {
        table[slot::CREATE_COMMAND_QUEUE_WITH_PROPERTIES] = create_with_properties as *const () as usize;
    }
    table[slot::RELEASE_COMMAND_QUEUE] = release as *const () as usize;
    table[slot::FINISH] = finish as *const () as usize;
    table[slot::WAIT_FOR_EVENTS] = wait_for_events as *const () as usize;
    table[slot::GET_COMMAND_QUEUE_INFO] = queue_info as *const () as usize;
    table[slot::GET_EVENT_PROFILING_INFO] = profiling_info as *const () as usize;
}

/// Calls a creating function below, which gives a handle.
fn create_below(slot: usize, context: usize, device: usize, properties: usize, error: *mut i32) -> usize {
    let address = below(slot);
    if address == 0 {
        return 0;
    }
    type Function = unsafe extern "C" fn(usize, usize, usize, *mut i32) -> usize;
    // SAFETY: the loader put a function of this form there, which the program has called.
    let function: Function = unsafe { std::mem::transmute(address) };
    // SAFETY: the arguments are the program's, or a list that ends in zero.
    unsafe { function(context, device, properties, error) }
}

/// Registers a new queue; `profiled` as the program requested it.
fn made(queue: usize, profiled: bool) -> usize {
    if queue != 0
        && let Some(hub) = hub()
    {
        // A handle that was used before is another queue now.
        if let Some(queues) = QUEUES.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            queues.remove(&queue);
        }
        learn(queue, hub).profiled.store(profiled, Relaxed);
    }
    queue
}

extern "C" fn create(context: usize, device: usize, properties: u64, error: *mut i32) -> usize {
    let profiled = properties & QUEUE_PROFILING != 0;
    let with_profiling = (properties | QUEUE_PROFILING) as usize;
    let queue = create_below(slot::CREATE_COMMAND_QUEUE, context, device, with_profiling, error);
    if queue != 0 {
        return made(queue, profiled);
    }
    made(create_below(slot::CREATE_COMMAND_QUEUE, context, device, properties as usize, error), profiled)
}

extern "C" fn create_with_properties(
    context: usize,
    device: usize,
    properties: *const usize,
    error: *mut i32,
) -> usize {
    let mut list = Vec::new();
    let (mut found, mut on_device, mut profiled) = (false, false, false);
    if !properties.is_null() {
        let mut at = properties;
        // SAFETY: OpenCL's lists are pairs of name and value, and end in a zero name.
        unsafe {
            while *at != 0 {
                let (name, mut value) = (*at, *at.add(1));
                if name == QUEUE_PROPERTIES {
                    on_device = value as u64 & QUEUE_ON_DEVICE != 0;
                    profiled = value as u64 & QUEUE_PROFILING != 0;
                    value |= QUEUE_PROFILING as usize;
                    found = true;
                }
                list.extend([name, value]);
                at = at.add(2);
            }
        }
    }
    if !found {
        list.extend([QUEUE_PROPERTIES, QUEUE_PROFILING as usize]);
    }
    list.push(0);
    let slot = slot::CREATE_COMMAND_QUEUE_WITH_PROPERTIES;
    if on_device {
        // The device's own queue takes no operations of the host.
        return create_below(slot, context, device, properties as usize, error);
    }
    let queue = create_below(slot, context, device, list.as_ptr() as usize, error);
    if queue != 0 {
        return made(queue, profiled);
    }
    made(create_below(slot, context, device, properties as usize, error), profiled)
}

extern "C" fn release(queue: usize) -> i32 {
    let mut forgotten = None;
    if number_u32(queue) == Some(1)
        && let Some(queues) = QUEUES.write().unwrap_or_else(PoisonError::into_inner).as_mut()
    {
        forgotten = queues.remove(&queue);
    }
    let status = call_below!(slot::RELEASE_COMMAND_QUEUE, queue);
    if let Some(queue) = forgotten {
        waited_for(queue.index);
    }
    status
}

/// Flushes the queues that were not released, so that submitted operations start.
pub(super) fn flush_all() {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let handles: Vec<usize> = queues.iter().flat_map(|queues| queues.keys().copied()).collect();
    drop(queues);
    for handle in handles {
        call_below!(slot::FLUSH, handle);
    }
}

/// Forgets all queues and devices: their library is gone, and another one may use their handles.
pub(super) fn forget_all() {
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).take();
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Whether profiling is on only because the layer switched it on.
fn is_profiled_in_secret(queue: usize) -> bool {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let known = queues.as_ref().and_then(|queues| queues.get(&queue));
    known.is_some_and(|queue| !queue.profiled.load(Relaxed))
}

/// Answers the program's queries on a queue: it sees the properties that it requested.
extern "C" fn queue_info(queue: usize, parameter: u32, size: usize, value: *mut u64, size_ret: usize) -> i32 {
    let status = call_below!(slot::GET_COMMAND_QUEUE_INFO, queue, parameter, size, value, size_ret);
    let is_whole = !value.is_null() && size >= size_of::<u64>();
    if status == SUCCESS
        && parameter == QUEUE_PROPERTIES_PARAMETER
        && is_whole
        && is_profiled_in_secret(queue)
    {
        // SAFETY: the call has succeeded, so the program's place has so many bytes.
        unsafe { value.write_unaligned(value.read_unaligned() & !QUEUE_PROFILING) };
    }
    status
}

/// Stamps of events: without profiling there are none, as the program may have to find out.
extern "C" fn profiling_info(
    event: usize,
    parameter: u32,
    size: usize,
    value: usize,
    size_ret: usize,
) -> i32 {
    if number(slot::GET_EVENT_INFO, event, EVENT_QUEUE)
        .is_some_and(|queue| is_profiled_in_secret(queue as usize))
    {
        return PROFILING_NOT_AVAILABLE;
    }
    call_below!(slot::GET_EVENT_PROFILING_INFO, event, parameter, size, value, size_ret)
}

fn number_u32(queue: usize) -> Option<u32> {
    number(slot::GET_COMMAND_QUEUE_INFO, queue, QUEUE_REFERENCES).map(|count| count as u32)
}

/// Notes a call that waits.
fn waiting(name: &str, call: impl FnOnce() -> i32) -> i32 {
    let Some(hub) = hub() else { return call() };
    let start = clocks::now();
    let status = call();
    let what = KindAndName::new(kind::WAITING_CALL, hub.name(name));
    hub.call(Call { tid: hub::tid(), start, end: clocks::now(), what, operation: None });
    status
}

extern "C" fn finish(queue: usize) -> i32 {
    let status = waiting("clFinish", || call_below!(slot::FINISH, queue));
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = queues.as_ref().and_then(|queues| queues.get(&queue)) {
        waited_for(known.index);
    }
    status
}

extern "C" fn wait_for_events(count: u32, events: usize) -> i32 {
    let status = waiting("clWaitForEvents", || call_below!(slot::WAIT_FOR_EVENTS, count, events));
    if status == FAILED_EVENT_AMONG_THEM {
        waited_for_all();
    }
    status
}
