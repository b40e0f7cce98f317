//! Rows of tables as words of 64 bits.

use super::super::QueueOperation;
use super::super::samples::{SampleTime, Spot, Step};
use taskscope_execution::messages::{Message, MpiCall, PeerWait, PeerWaitKind};
use taskscope_execution::{Column, ProcessIndex, ThreadIndex};

pub(super) fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

pub(super) fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

pub(super) fn low(word: u64) -> u32 {
    word as u32
}

/// Rows of a table as words, `N` each.
pub(super) fn words<T, const N: usize>(rows: &[T], row: impl Fn(&T) -> [u64; N]) -> Column<u64> {
    rows.iter().flat_map(row).collect::<Vec<u64>>().into()
}

pub(super) fn rows_of<T, const N: usize>(words: &[u64], row: impl Fn([u64; N]) -> T) -> Vec<T> {
    words.as_chunks::<N>().0.iter().map(|words| row(*words)).collect()
}

pub(super) fn words_of_call(call: &MpiCall) -> [u64; 7] {
    let wait = call.wait.map_or(0, |wait| {
        let kind = PeerWaitKind::ALL.iter().position(|kind| *kind == wait.kind).unwrap_or(0);
        pair(kind as u32 + 1, wait.culprit.0)
    });
    let until = call.wait.map_or(0, |wait| wait.until);
    let (who, what) = (pair(call.thread.0, call.function), pair(call.place.packed(), call.count));
    [who, call.start, call.end, wait, until, what, call.bytes]
}

pub(super) fn call_of_words([who, start, end, wait, until, what, bytes]: [u64; 7]) -> MpiCall {
    let kind = high(wait).checked_sub(1).and_then(|kind| PeerWaitKind::ALL.get(kind as usize)).copied();
    let wait = kind.map(|kind| PeerWait { kind, culprit: ProcessIndex(low(wait)), until });
    let (thread, function) = (ThreadIndex(high(who)), low(who));
    let (place, count) = (taskscope_execution::Place::from_packed(high(what)), low(what));
    MpiCall { thread, function, place, start, end, count, bytes, wait }
}

pub(super) fn words_of_message(message: &Message) -> [u64; 7] {
    let Message { sender, sent, receiver, posted, received, call, bytes, tag } = *message;
    let tag = tag.map_or(0, |tag| pair(1, tag.cast_unsigned()));
    [pair(sender.0, receiver.0), sent, posted, received, u64::from(call), bytes, tag]
}

pub(super) fn message_of_words([who, sent, posted, received, call, bytes, tag]: [u64; 7]) -> Message {
    let (sender, receiver) = (ThreadIndex(high(who)), ThreadIndex(low(who)));
    let tag = (high(tag) == 1).then(|| low(tag).cast_signed());
    Message { sender, sent, receiver, posted, received, call: low(call), bytes, tag }
}

pub(super) fn words_of_operation(o: &QueueOperation) -> [u64; 9] {
    let (kind, lane) = (pair(o.kind, o.name), pair(o.lane, o.anomalies));
    [o.seq, o.start, o.end, o.append, o.bytes, o.thread as u64, o.late_by, kind, lane]
}

pub(super) fn operation_of_words(words: [u64; 9]) -> QueueOperation {
    let [seq, start, end, append, bytes, thread, late_by, kind, lane] = words;
    QueueOperation {
        seq,
        start,
        end,
        append,
        bytes,
        thread: thread as i64,
        late_by,
        kind: high(kind),
        name: low(kind),
        lane: high(lane),
        anomalies: low(lane),
    }
}

pub(super) fn words_of_step(step: &Step) -> [u64; 2] {
    [pair(step.outer, step.name), pair(step.file, step.line)]
}

pub(super) fn step_of_words([a, b]: [u64; 2]) -> Step {
    Step { outer: high(a), name: low(a), file: high(b), line: low(b) }
}

pub(super) fn words_of_spot(spot: &Spot) -> [u64; 2] {
    [u64::from(spot.step), pair(spot.file, spot.line)]
}

pub(super) fn spot_of_words([step, place]: [u64; 2]) -> Spot {
    Spot { step: low(step), file: high(place), line: low(place) }
}

pub(super) fn words_of_sample(row: &SampleTime) -> [u64; 3] {
    [pair(row.thread.0, row.spot), row.start, row.end]
}

pub(super) fn sample_of_words([who, start, end]: [u64; 3]) -> SampleTime {
    SampleTime { thread: ThreadIndex(high(who)), spot: low(who), start, end }
}
