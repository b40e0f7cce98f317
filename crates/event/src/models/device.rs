//! Operations of device queues, and calls of the host that concern them.
//!
//! A queue is a location of its own, a directory with `taskscope.json` (kind `device-queue`) and no
//! `stream.json`. Its operations are in the order of their release: by sequence on an in-order queue, by
//! start on an out-of-order one. `start`, `end` and `submit` are in the device's clock, unchanged; the map to
//! the host's clock is in `taskscope.json`. An event's clock is the start on the host's clock, raised to the
//! previous event's if stamps go back. `append` and the times of calls are on the host's clock. Zero means an
//! unknown time.
//!
//! A thread's calls are in a location of kind `device-calls`.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'Q';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// `lane` of an operation without usable times.
pub const NO_LANE: u32 = u32::MAX;

/// `kind` of an operation or call.
pub mod kind {
    /// Unknown.
    pub const OTHER: u32 = 0;
    /// Code on the device.
    pub const KERNEL: u32 = 1;
    /// From the host to the device.
    pub const COPY_IN: u32 = 2;
    /// From the device to the host.
    pub const COPY_OUT: u32 = 3;
    /// Within the device, between devices, or a copy of unknown direction.
    pub const COPY: u32 = 4;
    /// Filling memory with a value.
    pub const FILL: u32 = 5;
    /// Markers, barriers and waits in the queue.
    pub const SYNCHRONISATION: u32 = 6;
    /// Giving the host a view of device memory, or taking it back.
    pub const MAP: u32 = 7;
    /// Code of the host that runs as an operation of the queue.
    pub const HOST_CODE: u32 = 8;
    /// Recorded work as a whole: a graph, or a command list.
    pub const GRAPH: u32 = 9;
    /// A call of the host that submits an operation.
    pub const SUBMITTING_CALL: u32 = 16;
    /// A call of the host that waits for operations.
    pub const WAITING_CALL: u32 = 17;
    /// Any other call of the host.
    pub const OTHER_CALL: u32 = 18;
    /// Time that the vendor's own collection takes.
    pub const OVERHEAD: u32 = 19;
}

/// Bits of `anomalies`.
pub mod anomaly {
    /// A start or end of zero.
    pub const UNTIMED: u32 = 1;
    /// The end is before the start.
    pub const END_BEFORE_START: u32 = 2;
    /// On an in-order queue: it starts before an earlier operation ends.
    pub const OVERLAP: u32 = 4;
    /// It starts at or before its submission.
    pub const START_NOT_AFTER_SUBMIT: u32 = 8;
    /// It starts before its lower bound.
    pub const START_BEFORE_APPEND: u32 = 16;
    /// It starts before a record that was released earlier.
    pub const START_GOES_BACK: u32 = 32;
    /// It was never appended.
    pub const UNANNOUNCED: u32 = 64;
    /// It arrived after it had been declared lost.
    pub const AFTER_LOST: u32 = 128;

    /// Each bit's stable name.
    pub const NAMES: [(u32, &str); 8] = [
        (UNTIMED, "untimed"),
        (END_BEFORE_START, "end-before-start"),
        (OVERLAP, "overlap"),
        (START_NOT_AFTER_SUBMIT, "start-not-after-submit"),
        (START_BEFORE_APPEND, "start-before-append"),
        (START_GOES_BACK, "start-goes-back"),
        (UNANNOUNCED, "unannounced"),
        (AFTER_LOST, "after-lost"),
    ];
}

/// Control characters that may separate the values of [`COLUMNS`], if one contains a tab.
pub const SEPARATORS: core::ops::Range<char> = '\u{1}'..'\t';

/// Imported values of a record, from [`COLUMNS`]: separated by tabs or, if a value contains a tab, by the one
/// of [`SEPARATORS`] that begins the text.
pub fn split_values(joined: &str) -> impl Iterator<Item = &str> {
    match joined.chars().next().filter(|first| SEPARATORS.contains(first)) {
        Some(separator) => joined[1..].split(separator),
        None => joined.split('\t'),
    }
}

events! {
    NAME = b"QNn" jumbo (name: u32, text: str) Rule, "gives name {name} the text {text}";
    OPERATION = b"QOr" jumbo (seq: u64, start: u64, end: u64, append: u64, submit: u64, id: u64, thread: u64, bytes: u64, late_by: u64, lane: u32, kind: u32, name: u32, anomalies: u32) Rule, "runs operation {seq} (name {name}, kind {kind}, vendor's id {id}, {bytes} bytes) from {start} to {end} in lane {lane}, appended by thread {thread} at {append}, submitted at {submit}, arrived late by {late_by}, anomalies {anomalies}";
    COLUMNS = b"QOc" jumbo (seq: u64, file: u32, values: rest) Rule, "has imported columns {values} from file {file} for the preceding operation {seq}";
    NUMBER = b"QOa" jumbo (seq: u64, name: u32, value: u64) Rule, "has the vendor's value {value}, named {name}, for operation {seq}, before or after its record";
    LATE = b"QOx" jumbo (seq: u64, start: u64, end: u64, append: u64, submit: u64, id: u64, thread: u64, bytes: u64, late_by: u64, lane: u32, kind: u32, name: u32, anomalies: u32) Rule, "receives operation {seq} after it was declared lost, fields as of an operation in place";
    LOST = b"QOl" jumbo (seq: u64, append: u64, id: u64, thread: u64, kind: u32, name: u32) Rule, "loses operation {seq} (name {name}, kind {kind}, vendor's id {id}), appended by thread {thread} at {append}";
    DUPLICATE = b"QOd" jumbo (seq: u64, start: u64, end: u64, submit: u64) Rule, "receives operation {seq} again, now from {start} to {end}, submitted at {submit}";
    CALL = b"QCr" plain (end: u64, name: u32, kind: u32) Rule, "is until {end} in call {name} of kind {kind}";
    CALL_OPERATION = b"QCo" plain (queue: u64, seq: u64) Rule, "submits, in the preceding call, operation {seq} of queue {queue}";
}
