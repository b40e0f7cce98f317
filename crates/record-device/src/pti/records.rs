//! View records: conversion of each kind.

use super::library::{
    KERNEL_SYCL_INVOCATION, KERNEL_SYCL_NODE, Layout, NO_SYCL_QUEUE, SUCCESS, layout, view,
};
use super::state::{CORRELATOR, PTI, key, queue_key};
use crate::buffers::{BUFFER_BYTES, Buffers, Record, walk};
use crate::correlate::{About, Stamps};
use crate::hub::{Call, Hub, KindAndName, hub, lock};
use rustc_hash::FxHashMap;
use std::sync::Mutex;
use taskscope_event::models::device::kind;
use taskscope_reorder::Operation;

static BUFFERS: Buffers = Buffers::new();

/// Gives PTI an empty buffer.
pub(super) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize) {
    let given = BUFFERS.give();
    // SAFETY: PTI's own places.
    unsafe {
        *buffer = given;
        *size = if given.is_null() { 0 } else { BUFFER_BYTES };
    }
}

/// Takes a buffer back and hands its records on.
pub(super) unsafe extern "C" fn completed(buffer: *mut u8, _: usize, used: usize) {
    if !BUFFERS.has(buffer) {
        return;
    }
    if let (Some(hub), Some(pti)) = (hub(), PTI.get()) {
        let used = used.min(BUFFER_BYTES);
        // SAFETY: the buffer is ours, and filled so far; PTI's function on PTI's buffer.
        unsafe {
            walk(
                buffer,
                used,
                |record| (pti.next_record)(buffer, used, record) == SUCCESS,
                |record| take(hub, record),
            );
        }
    }
    BUFFERS.take_back(buffer);
}

fn take(hub: &'static Hub, record: Record<'_>) {
    match record.u32(0) {
        view::OVERHEAD => overhead(hub, record),
        view::RUNTIME_CALL | view::DRIVER_CALL => call(hub, record),
        view::SYNCHRONISATION => synchronisation(hub, record),
        kind => {
            if let Some(layout) = layout(kind).filter(|layout| record.0.len() >= layout.size) {
                operation(hub, kind, &layout, record);
            }
        }
    }
}

fn operation(hub: &'static Hub, record_kind: u32, layout: &Layout, record: Record<'_>) {
    let kind = match record_kind {
        view::KERNEL => kind::KERNEL,
        view::FILL => kind::FILL,
        view::COPY => direction(record.u32(4)),
        _ => kind::COPY,
    };
    // SAFETY: names in PTI's records are texts that stay.
    let name = unsafe { record.text(layout.name) };
    let bytes = if layout.bytes == 0 { 0 } else { record.u64(layout.bytes) };
    let about =
        About { what: KindAndName::new(kind, hub.name(&name)), bytes, tid: record.u32(layout.thread) };
    let [append, start, end, submit] = [0, 8, 16, 24].map(|offset| record.u64(layout.append + offset));
    let queue = queue_key(record.u64(layout.queue), record.u64(layout.device));
    let id = key(record.u64(layout.id));
    let stamps = Stamps { append, submit, start, end };
    let operation = CORRELATOR.record(hub, &queue, id, about, stamps);
    submits(record.u32(layout.correlation), operation);
    let mut numbers = vec![("context", record.u64(layout.context))];
    let sycl_queue = record.u64(layout.sycl_queue);
    if sycl_queue != NO_SYCL_QUEUE {
        numbers.push(("sycl_queue", sycl_queue));
    }
    if record_kind == view::KERNEL {
        numbers.push(("sycl_node", record.u64(KERNEL_SYCL_NODE)));
        if record.0.len() >= KERNEL_SYCL_INVOCATION + 4 {
            numbers.push(("sycl_invocation", record.u32(KERNEL_SYCL_INVOCATION).into()));
        }
    }
    numbers.push(("device_uuid", record.u64(layout.device)));
    for (name, value) in numbers.into_iter().filter(|(_, value)| *value != 0) {
        hub.number(operation.queue, operation.seq, hub.name(name), value);
    }
}

/// `pti_view_memcpy_type` counts sources by fours: unknown, host, device, shared.
fn direction(copy: u32) -> u32 {
    let (from, to) = (copy / 4, copy % 4);
    match (from, to) {
        (2, 0 | 1) => kind::COPY_OUT,
        (0 | 1, 2) => kind::COPY_IN,
        _ => kind::COPY,
    }
}

/// Operations by correlation id, which connects calls to their submissions; the older half is dropped.
static SUBMITTED: Mutex<Option<[FxHashMap<u32, Operation>; 2]>> = Mutex::new(None);
const REMEMBERED: usize = 1 << 14;

pub(super) fn submits(correlation: u32, operation: Operation) {
    if correlation != 0 {
        let mut submitted = lock(&SUBMITTED);
        let [newer, older] = submitted.get_or_insert_default();
        if newer.len() >= REMEMBERED {
            *older = std::mem::take(newer);
        }
        newer.entry(correlation).or_insert(operation);
    }
}

fn submitted_by(correlation: u32) -> Option<Operation> {
    lock(&SUBMITTED).as_ref()?.iter().find_map(|half| half.get(&correlation)).copied()
}

/// A call of SYCL's runtime or of the driver.
fn call(hub: &'static Hub, record: Record<'_>) {
    let (start, end, group, id) = (record.u64(8), record.u64(16), record.u32(24), record.u32(28));
    let (tid, correlation) = (record.u32(36), record.u32(40));
    let mut name = std::ptr::null();
    let found = PTI.get().and_then(|pti| pti.call_name).is_some_and(|call_name| {
        // SAFETY: the place is ours.
        unsafe { call_name(group, id, &raw mut name) == SUCCESS }
    });
    let name = if found {
        // SAFETY: PTI's text, which stays.
        unsafe { crate::dynamic::text(name) }
    } else {
        format!("call {id} of interface {group}")
    };
    let operation = submitted_by(correlation).map(|operation| (operation.queue, operation.seq));
    let waits = name.contains("Synchronize") || name.contains("Wait");
    let kind = match (operation, waits) {
        (Some(_), _) => kind::SUBMITTING_CALL,
        (None, true) => kind::WAITING_CALL,
        (None, false) => kind::OTHER_CALL,
    };
    host_record(hub, tid, (start, end), kind, &name, operation);
}

/// Time that PTI's collection takes.
fn overhead(hub: &'static Hub, record: Record<'_>) {
    const NAMES: [&str; 6] =
        ["overhead", "overhead", "PTI: resource", "PTI: buffer flush", "driver", "PTI: time"];
    let name = NAMES.get(record.u32(48) as usize).copied().unwrap_or("overhead");
    host_record(hub, record.u32(24), (record.u64(8), record.u64(16)), kind::OVERHEAD, name, None);
}

/// Waits for whole queues since the last flush: queue, and start of the wait.
static WAITS: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
const WAIT_FOR_QUEUE: u32 = 6;

pub(super) fn take_waits() -> Vec<(u64, u64)> {
    std::mem::take(&mut lock(&WAITS))
}

/// Waits of the host; barriers of the device are operations of no id and stay with their queue's calls.
fn synchronisation(hub: &'static Hub, record: Record<'_>) {
    const NAMES: [&str; 7] = [
        "synchronisation",
        "barrier on the device",
        "memory barrier on the device",
        "wait for a fence",
        "wait for an event",
        "wait for a command list",
        "wait for a command queue",
    ];
    let what = record.u32(4);
    let name = NAMES.get(what as usize).copied().unwrap_or(NAMES[0]);
    let kind = if what <= 2 { kind::OTHER_CALL } else { kind::WAITING_CALL };
    let (start, end) = (record.u64(32), record.u64(40));
    if what == WAIT_FOR_QUEUE && start != 0 && record.u64(16) != 0 {
        lock(&WAITS).push((record.u64(16), start));
    }
    host_record(hub, record.u32(48), (start, end), kind, name, None);
}

fn host_record(
    hub: &'static Hub,
    tid: u32,
    (start, end): (u64, u64),
    kind: u32,
    name: &str,
    operation: Option<(taskscope_reorder::QueueIndex, u64)>,
) {
    if start == 0 || end < start {
        return;
    }
    let what = KindAndName::new(kind, hub.name(name));
    hub.host_record(Call { tid, start, end, what, operation });
}
