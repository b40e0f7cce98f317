//! Activity records: conversion of each kind.

use super::calls;
use super::library::{Cupti, SUCCESS, activity, layout};
use super::state::{CORRELATOR, count_dropped, cupti, device_number, host_time};
use crate::buffers::{BUFFER_BYTES, Buffers, Record, walk};
use crate::clocks;
use crate::correlate::{About, QueueKey, Stamps};
use crate::hub::{Call, Hub, KindAndName, hub};
use std::ffi::c_void;
use taskscope_event::models::device::kind;

static BUFFERS: Buffers = Buffers::new();

/// Gives CUPTI an empty buffer. With none, CUPTI drops records and counts them.
pub(super) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let given = BUFFERS.give();
    // SAFETY: CUPTI's own places.
    unsafe {
        *buffer = given;
        *size = if given.is_null() { 0 } else { BUFFER_BYTES };
        *most = 0;
    }
}

/// Takes a buffer back and hands its records on.
pub(super) unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if !BUFFERS.has(buffer) {
        return;
    }
    if let (Some(hub), Some(cupti)) = (hub(), cupti()) {
        read(hub, cupti, buffer, valid.min(BUFFER_BYTES));
        count_dropped(hub, cupti);
    }
    BUFFERS.take_back(buffer);
}

fn read(hub: &'static Hub, cupti: &Cupti, buffer: *mut u8, valid: usize) {
    // SAFETY: the buffer is ours, and filled so far; CUPTI's function on CUPTI's buffer.
    unsafe {
        walk(
            buffer,
            valid,
            |record| (cupti.next_record)(buffer, valid, record) == SUCCESS,
            |record| take(hub, record),
        );
    }
}

fn take(hub: &'static Hub, record: Record<'_>) {
    match record.u32(0) {
        activity::OVERHEAD => overhead(hub, record),
        activity::DEVICE => name_device(hub, record),
        activity::SYNCHRONISATION => synchronisation(hub, record),
        kind => operation(hub, kind, record),
    }
}

fn operation(hub: &'static Hub, record_kind: u32, record: Record<'_>) {
    let Some(layout) = layout(record_kind).filter(|layout| record.0.len() >= layout.size) else { return };
    let queue = QueueKey {
        device: u64::from(record.u32(layout.device)),
        context: u64::from(record.u32(layout.context)),
        queue: u64::from(record.u32(layout.stream)),
    };
    let kind = match record_kind {
        activity::MEMCPY => match record.u8(4) {
            1 | 3 => kind::COPY_IN,
            2 | 4 => kind::COPY_OUT,
            _ => kind::COPY,
        },
        activity::MEMCPY_PEER => kind::COPY,
        activity::MEMSET => kind::FILL,
        activity::GRAPH => kind::GRAPH,
        _ => kind::KERNEL,
    };
    let name = match layout.name {
        0 => copy_name(record_kind, record),
        // SAFETY: the name of a kernel's record is a text of CUPTI's that stays.
        place => unsafe { record.text(place) },
    };
    let bytes = if layout.bytes == 0 { 0 } else { record.u64(layout.bytes) };
    let about = About { what: KindAndName::new(kind, hub.name(&name)), bytes, tid: 0 };
    let submit = if layout.submitted == 0 { 0 } else { record.u64(layout.submitted) };
    let stamps = Stamps { append: 0, submit, start: record.u64(layout.start), end: record.u64(layout.end) };
    let id = calls::key(record.u32(layout.correlation));
    let operation = CORRELATOR.record(hub, &queue, id, about, stamps);
    let graph = record.u32(layout.graph);
    if graph != 0 {
        hub.number(operation.queue, operation.seq, hub.name("graph"), u64::from(graph));
    }
}

/// A copy is called by its direction.
fn copy_name(record_kind: u32, record: Record<'_>) -> String {
    const DIRECTIONS: [&str; 11] =
        ["", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"];
    match record_kind {
        activity::MEMSET => "memset".to_owned(),
        activity::GRAPH => "graph".to_owned(),
        activity::MEMCPY_PEER => "memcpy PtoP".to_owned(),
        _ => match DIRECTIONS.get(usize::from(record.u8(4))) {
            Some(direction) if !direction.is_empty() => format!("memcpy {direction}"),
            _ => "memcpy".to_owned(),
        },
    }
}

const OVERHEAD_OF_THREAD: u32 = 2;

/// Time that CUPTI itself, or the driver's compiler, takes from a thread.
fn overhead(hub: &'static Hub, record: Record<'_>) {
    let (object, thread) = (record.u32(8), record.u32(16));
    let (start, end) = (record.u64(24), record.u64(32));
    if start == 0 || end < start {
        return;
    }
    let tid = if object == OVERHEAD_OF_THREAD { thread } else { hub.process() };
    let name = match record.u32(4) {
        1 => "driver compiler",
        0x1_0000 => "CUPTI: buffer flush",
        0x2_0000 => "CUPTI: instrumentation",
        0x3_0000 => "CUPTI: resource",
        0x4_0000 => "loading of a module",
        0x5_0000 => "loading of a function",
        0x6_0000 => "command buffer full",
        0x7_0000 => "CUPTI: buffer request",
        0x8_0000 => "CUPTI: start of unified memory counters",
        _ => "overhead",
    };
    let what = KindAndName::new(kind::OVERHEAD, hub.name(name));
    let [start, end] = [start, end].map(|stamp| host_time(stamp).unwrap_or_else(clocks::now));
    hub.host_record(Call { tid, start, end, what, operation: None });
}

const SYNCHRONISATION_SIZE: usize = 40;

/// Records a wait without a callback: CUPTI has one subscriber, which may be another tool.
fn synchronisation(hub: &'static Hub, record: Record<'_>) {
    if record.0.len() < SYNCHRONISATION_SIZE || calls::is_recorded_wait(record.u32(24)) {
        return;
    }
    let [start, end] = [8, 16].map(|offset| record.u64(offset));
    if start == 0 || end < start {
        return;
    }
    let (kind, name) = match record.u32(4) {
        1 => (kind::WAITING_CALL, "wait for an event"),
        2 => (kind::OTHER_CALL, "a stream waits for an event"),
        3 => (kind::WAITING_CALL, "wait for a stream"),
        4 => (kind::WAITING_CALL, "wait for a context"),
        _ => (kind::OTHER_CALL, "synchronisation"),
    };
    let what = KindAndName::new(kind, hub.name(name));
    let [start, end] = [start, end].map(|stamp| host_time(stamp).unwrap_or_else(clocks::now));
    // The record does not name the calling thread.
    hub.host_record(Call { tid: hub.process(), start, end, what, operation: None });
}

const DEVICE_NUMBER: usize = 112;
const DEVICE_NAME: usize = 136;

fn name_device(hub: &'static Hub, record: Record<'_>) {
    if record.0.len() < DEVICE_NAME + 8 {
        return;
    }
    // SAFETY: the name of a device's record is a text of CUPTI's that stays.
    let name = unsafe { record.text(DEVICE_NAME) };
    if !name.is_empty() {
        let number = record.u32(DEVICE_NUMBER);
        hub.name_device(device_number(hub, u64::from(number)), &format!("{name} [{number}]"));
    }
}
