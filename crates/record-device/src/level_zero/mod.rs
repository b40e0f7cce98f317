//! Intel's GPUs without PTI, by Level Zero's tracing layer (`ZE_ENABLE_TRACING_LAYER=1`).
//!
//! Level Zero has no records: each operation gets an event with timestamps, its own or the program's (pools
//! of the program are created with timestamps), which is read when it is signalled. An immediate command list
//! is a queue. Operations of a recorded list belong to the queue that executes it: (list, index, execution),
//! so a list that is executed three times is three operations each. Only lists that guarantee it run in
//! order. Kernel stamps have few bits; they are unwrapped by the submission.

mod appends;
mod events;
mod library;

use crate::clocks::{self, DeviceClock};
use crate::correlate::{About, Correlator, QueueKey, Stamps};
use crate::hub::{Call, Device, Hub, Source, What, hub, lock, tid};
use events::Events;
use library::*;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use taskscope_event::models::device::kind;
use taskscope_record::own_threads;
use taskscope_reorder::{Operation, VendorKey};

static LEVEL_ZERO: OnceLock<LevelZero> = OnceLock::new();
static CORRELATOR: Correlator = Correlator::new("Level Zero", describe, new_device);
static STATE: Mutex<Option<State>> = Mutex::new(None);

#[derive(Default)]
struct State {
    lists: FxHashMap<usize, List>,
    events: Events,
    /// Submitted operations with events that are not read yet.
    pending: Vec<Pending>,
    devices: Vec<(u32, usize)>,
}

/// A command list.
#[derive(Clone, Default)]
struct List {
    context: usize,
    device: usize,
    is_immediate: bool,
    in_order: bool,
    next: u64,
    executions: u32,
    recorded: Vec<Recorded>,
}

/// An operation of a list.
#[derive(Clone, Copy)]
struct Recorded {
    index: u64,
    event: usize,
    is_ours: bool,
    what: What,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct Pending {
    id: VendorKey,
    queue: QueueKey,
    context: usize,
    event: usize,
    /// Whether the event is returned after reading: it is ours, and of an immediate list.
    give_back: bool,
    operation: Operation,
    what: What,
    bytes: u64,
}

/// Interval of reading events, and of comparing clocks.
const LOOK_EVERY: Duration = Duration::from_micros(500);
const ANCHOR_EVERY: u32 = 100;

thread_local! {
    /// Submissions of the call that this thread is in.
    static SUBMITTING: RefCell<Vec<Pending>> = const { RefCell::new(Vec::new()) };
    /// Operations that the call that this thread is in records into a list.
    static RECORDING: Cell<Option<(usize, Recorded)>> = const { Cell::new(None) };
    static CALL_START: Cell<u64> = const { Cell::new(0) };
    /// The description of a pool that this thread is about to make.
    static POOL: RefCell<Option<Box<PoolDescription>>> = const { RefCell::new(None) };
    /// Whether calls of this thread are our own.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

fn describe(key: &QueueKey) -> String {
    format!("{:#x}", key.queue)
}

fn new_device(device: u64) -> Device {
    let unknown = || Device {
        name: "Level Zero device".to_owned(),
        clock: DeviceClock::Own { nanos_per_tick: 1.0, bits: 64 },
    };
    let Some(ze) = LEVEL_ZERO.get() else { return unknown() };
    // SAFETY: all fields may be zero.
    let mut properties: DeviceProperties = unsafe { std::mem::zeroed() };
    properties.form = DEVICE_PROPERTIES;
    // SAFETY: the device is the program's, the structure is ours.
    if unsafe { (ze.device_properties)(device as usize, &raw mut properties) } != SUCCESS {
        return unknown();
    }
    let last = properties.name.len() - 1;
    properties.name[last] = 0;
    // SAFETY: it ends in NUL now.
    let name = unsafe { crate::dynamic::text(properties.name.as_ptr()) };
    let nanos_per_tick = if properties.nanos_per_tick == 0 { 1.0 } else { properties.nanos_per_tick as f64 };
    Device { name, clock: DeviceClock::Own { nanos_per_tick, bits: properties.stamp_bits.clamp(1, 64) } }
}

/// Starts listening, if Level Zero is there. Returns whether it records.
pub(crate) fn begin(hub: &'static Hub) -> bool {
    let Some(ze) = LevelZero::load() else { return false };
    let _ = LEVEL_ZERO.set(ze);
    // SAFETY: Level Zero's functions, used as documented.
    unsafe {
        let mut tracer = std::ptr::null_mut();
        // A tracer needs an initialised driver, and some user data.
        static USER: u8 = 0;
        let description = [1, 0, &raw const USER as usize];
        if (ze.initialise)(0) != SUCCESS || (ze.tracer)(&raw const description, &raw mut tracer) != SUCCESS {
            return false;
        }
        for (register, before) in appends::all(&ze) {
            register(tracer, BEFORE, before);
            register(tracer, AFTER, after_append);
        }
        (ze.on_list)(tracer, AFTER, after_list);
        (ze.on_immediate)(tracer, AFTER, after_immediate);
        (ze.on_list_reset)(tracer, BEFORE, before_list_reset);
        (ze.on_list_destroy)(tracer, BEFORE, before_list_reset);
        (ze.on_execute)(tracer, BEFORE, before_execute);
        (ze.on_execute)(tracer, AFTER, after_submission);
        (ze.on_pool)(tracer, BEFORE, before_pool);
        (ze.on_event_reset)(tracer, BEFORE, before_event_end);
        (ze.on_event_destroy)(tracer, BEFORE, before_event_end);
        let waits: [(Option<Register>, Callback); 5] = [
            (Some(ze.on_queue_wait), after_queue_wait),
            (Some(ze.on_event_wait), after_event_wait),
            (ze.on_fence_wait, after_fence_wait),
            (ze.on_list_wait, after_list_wait),
            (ze.on_wait_on_events, after_wait_on_events),
        ];
        for (register, after) in waits {
            if let Some(register) = register {
                register(tracer, BEFORE, before_wait);
                register(tracer, AFTER, after);
            }
        }
        if (ze.enable)(tracer, 1) != SUCCESS {
            return false;
        }
    }
    hub.add_source(Source { flush: look, force: look });
    if own_threads::may_start() {
        crate::collector::with_signals_blocked(|| {
            drop(std::thread::Builder::new().name("taskscope-ze".to_owned()).spawn(|| {
                OWN.with(|own| own.set(true));
                let mut turn = 0u32;
                while self::hub().is_some() {
                    std::thread::sleep(LOOK_EVERY);
                    look();
                    turn = turn.wrapping_add(1);
                    if turn.is_multiple_of(ANCHOR_EVERY) {
                        anchor_all();
                    }
                }
            }));
        });
    }
    true
}

fn with<T>(work: impl FnOnce(&LevelZero, &mut State) -> T) -> Option<T> {
    let ze = LEVEL_ZERO.get()?;
    let own = OWN.try_with(|own| own.replace(true)).unwrap_or(true);
    let result = work(ze, lock(&STATE).get_or_insert_default());
    let _ = OWN.try_with(|is_own| is_own.set(own));
    Some(result)
}

fn is_own() -> bool {
    OWN.try_with(Cell::get).unwrap_or(true)
}

/// The value of a call's argument.
unsafe fn argument(arguments: *const *mut usize, index: usize) -> usize {
    // SAFETY: the tracing layer gives a pointer to each argument of the call.
    unsafe { **arguments.add(index) }
}

/// Reads the events that are signalled.
fn look() {
    let Some(hub) = hub() else { return };
    with(|ze, state| {
        let mut index = 0;
        while index < state.pending.len() {
            // SAFETY: the event was given with an operation, and is not destroyed before it is read.
            if unsafe { (ze.event_status)(state.pending[index].event) } == SUCCESS {
                let pending = state.pending.swap_remove(index);
                read(hub, ze, state, &pending);
            } else {
                index += 1;
            }
        }
    });
}

fn read(hub: &'static Hub, ze: &LevelZero, state: &mut State, pending: &Pending) {
    let mut times = [0u64; 4];
    // SAFETY: the event is signalled, the place is ours.
    let status = unsafe { (ze.event_times)(pending.event, &raw mut times) };
    let [start, end, ..] = if status == SUCCESS { times } else { [0; 4] };
    finish(hub, pending, start, end);
    if pending.give_back {
        state.events.give_back(ze, pending.context, pending.event);
    }
}

fn finish(hub: &'static Hub, pending: &Pending, start: u64, end: u64) {
    let about = About { what: pending.what, bytes: pending.bytes, tid: 0 };
    let stamps = Stamps { start, end, ..Stamps::default() };
    CORRELATOR.record(hub, &pending.queue, pending.id, about, stamps);
}

/// Reads the event before its times are lost: a signalled one has its times, others have none.
fn read_before_end(hub: &'static Hub, ze: &LevelZero, state: &mut State, event: usize) {
    while let Some(place) = state.pending.iter().position(|pending| pending.event == event) {
        let pending = state.pending.swap_remove(place);
        // SAFETY: the event still exists.
        if unsafe { (ze.event_status)(event) } == SUCCESS {
            read(hub, ze, state, &pending);
        } else {
            finish(hub, &pending, 0, 0);
        }
    }
}

unsafe extern "C" fn before_event_end(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    if let Some(hub) = hub().filter(|_| !is_own()) {
        // SAFETY: the first argument is the event.
        let event = unsafe { argument(arguments, 0) };
        with(|ze, state| read_before_end(hub, ze, state, event));
    }
}

/// Adds timestamps and host access to the program's pools.
unsafe extern "C" fn before_pool(arguments: *const *mut usize, _: i32, _: *mut c_void, _: *mut *mut c_void) {
    if is_own() {
        return;
    }
    // SAFETY: the second argument is the description; ours lives until this thread makes its next pool.
    unsafe {
        let given = argument(arguments, 1) as *const PoolDescription;
        let Some(given) = given.as_ref() else { return };
        if given.flags & POOL_FOR_OTHER_PROCESSES != 0 {
            return;
        }
        let changed = PoolDescription { flags: given.flags | POOL_FOR_HOST | POOL_WITH_TIMES, ..*given };
        let changed = Box::new(changed);
        **arguments.add(1) = &raw const *changed as usize;
        let _ = POOL.try_with(|pool| pool.replace(Some(changed)));
    }
}

/// A list was created.
unsafe fn list_created(arguments: *const *mut usize, result: i32, is_immediate: bool) {
    if result != SUCCESS || is_own() {
        return;
    }
    // SAFETY: arguments are context, device, description, and the place of the list.
    let (context, device, in_order, list) = unsafe {
        let description = argument(arguments, 2) as *const u8;
        let flags = if is_immediate && !description.is_null() {
            description.add(QUEUE_FLAGS).cast::<u32>().read_unaligned()
        } else {
            0
        };
        let list = argument(arguments, 3) as *const usize;
        (argument(arguments, 0), argument(arguments, 1), flags & QUEUE_IN_ORDER != 0, *list)
    };
    with(|_, state| {
        state.lists.insert(list, List { context, device, is_immediate, in_order, ..List::default() })
    });
}

unsafe extern "C" fn after_list(
    arguments: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    // SAFETY: as the tracing layer's.
    unsafe { list_created(arguments, result, false) };
}

unsafe extern "C" fn after_immediate(
    arguments: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    // SAFETY: as the tracing layer's.
    unsafe { list_created(arguments, result, true) };
}

/// A list is emptied or destroyed: its events serve others.
unsafe extern "C" fn before_list_reset(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub() else { return };
    // SAFETY: the first argument is the list.
    let list = unsafe { argument(arguments, 0) };
    with(|ze, state| {
        let Some(known) = state.lists.get_mut(&list) else { return };
        let (context, recorded) = (known.context, std::mem::take(&mut known.recorded));
        for operation in recorded.into_iter().filter(|operation| operation.is_ours) {
            read_before_end(hub, ze, state, operation.event);
            state.events.give_back(ze, context, operation.event);
        }
    });
}

/// An operation is about to be appended to a list.
unsafe fn before_append(
    arguments: *const *mut usize,
    event_at: usize,
    kind: u32,
    bytes: u64,
    name: impl FnOnce() -> String,
) {
    let _ = RECORDING.try_with(|recording| recording.set(None));
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    // SAFETY: the first argument is the list.
    let list = unsafe { argument(arguments, 0) };
    let what = What::new(kind, hub.name(&name()));
    let start = clocks::now();
    let _ = CALL_START.try_with(|call| call.set(start));
    with(|ze, state| {
        let Some(known) = state.lists.get_mut(&list) else { return };
        let index = known.next;
        known.next += 1;
        let about_list = known.clone_head();
        // SAFETY: the argument is the event, which may be changed.
        let event = unsafe { argument(arguments, event_at) };
        let is_ours = event == 0;
        if about_list.is_immediate && !is_ours {
            // The event is reused: its previous operation is read now or never.
            read_before_end(hub, ze, state, event);
        }
        let event = if is_ours { state.events.take(ze, about_list.context) } else { event };
        if event == 0 {
            return;
        }
        // SAFETY: as above.
        unsafe { **arguments.add(event_at) = event };
        let recorded = Recorded { index, event, is_ours, what, bytes };
        if about_list.is_immediate {
            let queue = queue_key(&about_list, list);
            let pending = announce(hub, state, &about_list, list, queue, 0, &recorded, start);
            let _ = SUBMITTING.try_with(|submitting| *submitting.borrow_mut() = vec![pending]);
        } else {
            let _ = RECORDING.try_with(|recording| recording.set(Some((list, recorded))));
        }
    });
}

fn queue_key(list: &List, queue: usize) -> QueueKey {
    QueueKey { device: list.device as u64, context: list.context as u64, queue: queue as u64 }
}

#[allow(clippy::too_many_arguments, reason = "each is one part of the identity")]
fn announce(
    hub: &'static Hub,
    state: &mut State,
    list: &List,
    handle: usize,
    queue: QueueKey,
    execution: u32,
    recorded: &Recorded,
    append: u64,
) -> Pending {
    let id = VendorKey { scope: handle as u64, id: recorded.index, execution };
    let about = About { what: recorded.what, bytes: recorded.bytes, tid: tid() };
    let device = CORRELATOR.device(hub, queue.device);
    if !state.devices.contains(&(device, list.device)) {
        state.devices.push((device, list.device));
        anchor(hub, device, list.device);
    }
    let in_order = list.is_immediate && list.in_order;
    let operation = CORRELATOR.announce_in(hub, &queue, id, about, append, in_order);
    Pending {
        id,
        queue,
        context: list.context,
        event: recorded.event,
        give_back: recorded.is_ours && list.is_immediate,
        operation,
        what: recorded.what,
        bytes: recorded.bytes,
    }
}

/// An operation was appended: it runs now, or is part of the list.
unsafe extern "C" fn after_append(
    arguments: *const *mut usize,
    result: i32,
    user: *mut c_void,
    instance: *mut *mut c_void,
) {
    if is_own() {
        return;
    }
    let recorded = RECORDING.try_with(Cell::take).ok().flatten();
    if let Some((list, recorded)) = recorded {
        with(|ze, state| {
            let Some(known) = state.lists.get_mut(&list) else { return };
            if result == SUCCESS {
                known.recorded.push(recorded);
            } else if recorded.is_ours {
                let context = known.context;
                state.events.give_back(ze, context, recorded.event);
            }
        });
        return;
    }
    // SAFETY: as the tracing layer's.
    unsafe { after_submission(arguments, result, user, instance) };
}

/// Lists are about to be executed.
unsafe extern "C" fn before_execute(
    arguments: *const *mut usize,
    _: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    let start = clocks::now();
    let _ = CALL_START.try_with(|call| call.set(start));
    // SAFETY: arguments are the queue, a count of 32 bits, and so many lists.
    let (queue, lists) = unsafe {
        let count = (*arguments.add(1)).cast::<u32>().read() as usize;
        let lists = argument(arguments, 2) as *const usize;
        let lists = if lists.is_null() { &[] } else { std::slice::from_raw_parts(lists, count) };
        (argument(arguments, 0), lists)
    };
    let mut submitting = Vec::new();
    for list in lists {
        with(|ze, state| {
            let Some(known) = state.lists.get_mut(list) else { return };
            known.executions += 1;
            let (about_list, recorded) = (known.clone_head(), known.recorded.clone());
            for operation in &recorded {
                // A previous execution is read; its event starts anew.
                read_before_end(hub, ze, state, operation.event);
                if operation.is_ours {
                    // SAFETY: the event is ours.
                    unsafe { (ze.event_reset)(operation.event) };
                }
                let key = queue_key(&about_list, queue);
                let execution = about_list.executions;
                submitting.push(announce(hub, state, &about_list, *list, key, execution, operation, start));
            }
        });
    }
    let _ = SUBMITTING.try_with(|place| *place.borrow_mut() = submitting);
}

/// // The announced operations have been submitted, or the call has failed.
unsafe extern "C" fn after_submission(
    _: *const *mut usize,
    result: i32,
    _: *mut c_void,
    _: *mut *mut c_void,
) {
    let Some(hub) = hub().filter(|_| !is_own()) else { return };
    let submitted = SUBMITTING.try_with(|place| std::mem::take(&mut *place.borrow_mut())).unwrap_or_default();
    let Some(first) = submitted.first().map(|pending| pending.operation) else { return };
    let start = CALL_START.try_with(Cell::get).unwrap_or(0);
    let what = What::new(kind::SUBMITTING_CALL, hub.name("submission to Level Zero"));
    if result != SUCCESS {
        for pending in &submitted {
            CORRELATOR.withdraw(hub, pending.id, pending.operation);
        }
        with(|ze, state| {
            for pending in submitted.iter().filter(|pending| pending.give_back) {
                state.events.give_back(ze, pending.context, pending.event);
            }
        });
    } else {
        let mut last = FxHashMap::default();
        submitted.iter().enumerate().for_each(|(place, pending)| {
            last.insert(pending.event, place);
        });
        // If several operations share an event, only the last one's times can be read.
        let (readable, others): (Vec<_>, Vec<_>) =
            submitted.into_iter().enumerate().partition(|(place, pending)| last[&pending.event] == *place);
        others.iter().for_each(|(_, pending)| finish(hub, pending, 0, 0));
        with(|_, state| state.pending.extend(readable.into_iter().map(|(_, pending)| pending)));
        let operation = Some((first.queue, first.seq));
        hub.call(Call { tid: tid(), start, end: clocks::now(), what, operation });
    }
}

unsafe extern "C" fn before_wait(_: *const *mut usize, _: i32, _: *mut c_void, _: *mut *mut c_void) {
    let _ = CALL_START.try_with(|call| call.set(clocks::now()));
}

fn waited(name: &str, kind: u32) {
    if let Some(hub) = hub().filter(|_| !is_own()) {
        let start = CALL_START.try_with(Cell::get).unwrap_or(0);
        let what = What::new(kind, hub.name(name));
        hub.call(Call { tid: tid(), start, end: clocks::now(), what, operation: None });
        look();
    }
}

/// Callbacks after waiting calls.
macro_rules! after_wait {
    ($($function:ident: $name:literal, $kind:ident;)*) => {$(
        unsafe extern "C" fn $function(_: *const *mut usize, _: i32, _: *mut c_void, _: *mut *mut c_void) {
            waited($name, kind::$kind);
        }
    )*};
}

after_wait! {
    after_queue_wait: "zeCommandQueueSynchronize", WAITING_CALL;
    after_event_wait: "zeEventHostSynchronize", WAITING_CALL;
    after_fence_wait: "zeFenceHostSynchronize", WAITING_CALL;
    after_list_wait: "zeCommandListHostSynchronize", WAITING_CALL;
    // The device waits, not the host.
    after_wait_on_events: "zeCommandListAppendWaitOnEvents", OTHER_CALL;
}

/// Relates a device's clock to the host's.
fn anchor(hub: &Hub, number: u32, device: usize) {
    let Some(device_clock) = LEVEL_ZERO.get().and_then(|ze| ze.device_clock) else { return };
    let (mut host, mut ticks) = (0, 0);
    let before = clocks::now();
    // SAFETY: the device is the program's, the places are ours.
    if unsafe { device_clock(device, &raw mut host, &raw mut ticks) } == SUCCESS {
        hub.anchor(number, ticks, before, clocks::now());
    }
}

fn anchor_all() {
    let devices = lock(&STATE).as_ref().map(|state| state.devices.clone()).unwrap_or_default();
    if let Some(hub) = hub() {
        devices.into_iter().for_each(|(number, device)| anchor(hub, number, device));
    }
}

impl List {
    /// The list without its recorded operations.
    fn clone_head(&self) -> List {
        List { recorded: Vec::new(), ..*self }
    }
}
