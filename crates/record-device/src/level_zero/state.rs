//! Command lists, operations in flight, and the reading of their events.

use super::events::Events;
use super::library::*;
use crate::clocks::{self, DeviceClock};
use crate::correlate::{About, Correlator, QueueKey, Stamps};
use crate::hub::{Device, Hub, KindAndName, hub, lock, tid};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::sync::{Mutex, OnceLock};
use taskscope_reorder::{Operation, VendorKey};

pub(super) static LEVEL_ZERO: OnceLock<LevelZero> = OnceLock::new();
pub(super) static CORRELATOR: Correlator = Correlator::new("Level Zero", describe, new_device);
pub(super) static STATE: Mutex<Option<State>> = Mutex::new(None);

#[derive(Default)]
pub(super) struct State {
    pub lists: FxHashMap<usize, List>,
    pub events: Events,
    /// Submitted operations with events that are not read yet.
    pub pending: Vec<Pending>,
    pub devices: Vec<(u32, usize)>,
}

/// A command list.
#[derive(Clone, Default)]
pub(super) struct List {
    pub context: usize,
    pub device: usize,
    pub is_immediate: bool,
    pub in_order: bool,
    pub next: u64,
    pub executions: u32,
    pub recorded: Vec<Recorded>,
}

/// An operation of a list.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    pub index: u64,
    pub event: usize,
    pub is_ours: bool,
    pub what: KindAndName,
    pub bytes: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub id: VendorKey,
    pub queue: QueueKey,
    pub context: usize,
    pub event: usize,
    /// Whether the event is returned after reading: it is ours, and of an immediate list.
    pub give_back: bool,
    pub operation: Operation,
    pub what: KindAndName,
    pub bytes: u64,
}

impl List {
    /// The list without its recorded operations.
    pub fn clone_head(&self) -> List {
        List { recorded: Vec::new(), ..*self }
    }
}

thread_local! {
    /// Submissions of the call that this thread is in.
    pub(super) static SUBMITTING: RefCell<Vec<Pending>> = const { RefCell::new(Vec::new()) };
    /// Operations that the call that this thread is in records into a list.
    pub(super) static RECORDING: Cell<Option<(usize, Recorded)>> = const { Cell::new(None) };
    pub(super) static CALL_START: Cell<u64> = const { Cell::new(0) };
    /// The description of a pool that this thread is about to make.
    pub(super) static POOL: RefCell<Option<Box<PoolDescription>>> = const { RefCell::new(None) };
    /// Whether calls of this thread are our own.
    pub(super) static OWN: Cell<bool> = const { Cell::new(false) };
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

pub(super) fn with<T>(work: impl FnOnce(&LevelZero, &mut State) -> T) -> Option<T> {
    let ze = LEVEL_ZERO.get()?;
    let own = OWN.try_with(|own| own.replace(true)).unwrap_or(true);
    let result = work(ze, lock(&STATE).get_or_insert_default());
    let _ = OWN.try_with(|is_own| is_own.set(own));
    Some(result)
}

pub(super) fn is_own() -> bool {
    OWN.try_with(Cell::get).unwrap_or(true)
}

/// The value of a call's argument.
pub(super) unsafe fn argument(arguments: *const *mut usize, index: usize) -> usize {
    // SAFETY: the tracing layer gives a pointer to each argument of the call.
    unsafe { **arguments.add(index) }
}

/// Reads the events that are signalled.
pub(super) fn look() {
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

pub(super) fn finish(hub: &'static Hub, pending: &Pending, start: u64, end: u64) {
    let about = About { what: pending.what, bytes: pending.bytes, tid: 0 };
    let stamps = Stamps { start, end, ..Stamps::default() };
    CORRELATOR.record(hub, &pending.queue, pending.id, about, stamps);
}

/// Reads the event before its times are lost: a signalled one has its times, others have none.
pub(super) fn read_before_end(hub: &'static Hub, ze: &LevelZero, state: &mut State, event: usize) {
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

pub(super) fn queue_key(list: &List, queue: usize) -> QueueKey {
    QueueKey { device: list.device as u64, context: list.context as u64, queue: queue as u64 }
}

#[allow(clippy::too_many_arguments, reason = "each is one part of the identity")]
pub(super) fn announce(
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

pub(super) fn anchor_all() {
    let devices = lock(&STATE).as_ref().map(|state| state.devices.clone()).unwrap_or_default();
    if let Some(hub) = hub() {
        devices.into_iter().for_each(|(number, device)| anchor(hub, number, device));
    }
}
