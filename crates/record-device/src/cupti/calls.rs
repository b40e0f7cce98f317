//! Calls that submit work or wait for it, by CUPTI's callbacks: the operation is announced before such a
//! call, so the order of a stream is known before any record arrives.
//!
//! A call of the runtime contains one of the driver, and either id may be the record's: the outer call
//! announces, the inner one is another name of the same operation.

use super::captures::{self, Captures};
use super::library::{CallData, Cupti, STREAM_PER_THREAD, domain};
use super::state::{CORRELATOR, all_have_ended, cupti, stream_key};
use crate::clocks;
use crate::correlate::{About, Announced};
use crate::dynamic::text;
use crate::hub::{Call, Hub, KindAndName, hub, lock, tid};
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use taskscope_event::models::device::kind;
use taskscope_reorder::{Operation, VendorKey};

/// Position of a call's stream in its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    At(usize),
    /// At this offset of the structure that the first argument points to.
    InFirst(usize),
    Default,
}

/// Effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Submit(u32, Stream),
    /// A copy or fill, as [`Does::Submit`]; its size is at [`SIZE_OF_MOVE`]. A size of 0 submits nothing.
    Move(u32, Stream),
    WaitForAll,
    Wait,
    /// A stream waits for an event, which does not block the host.
    StreamWait,
    RecordEvent,
    BeginCapture,
    EndCapture,
    Nothing,
}

impl Does {
    /// The kind and stream of the operation that the call submits.
    fn submits(self) -> Option<(u32, Stream)> {
        match self {
            Does::Submit(kind, stream) | Does::Move(kind, stream) => Some((kind, stream)),
            _ => None,
        }
    }
}

/// Offset of a size, or number of values, in the arguments of a [`Does::Move`].
const SIZE_OF_MOVE: usize = 16;

const INTO: u32 = kind::COPY_IN;
const OUT: u32 = kind::COPY_OUT;
const COPY: u32 = kind::COPY;
const FILL: u32 = kind::FILL;
const KERNEL: u32 = kind::KERNEL;

/// Calls of driver and runtime by name without version. Offsets follow from the declarations of the
/// functions: every argument is at the next multiple of its size.
const CALLS: &[(&str, Does)] = {
    use Does::*;
    use Stream::*;
    &[
        ("cuLaunchKernel", Submit(KERNEL, At(40))),
        ("cuLaunchCooperativeKernel", Submit(KERNEL, At(40))),
        ("cuLaunchKernelEx", Submit(KERNEL, InFirst(32))),
        ("cuLaunchGridAsync", Submit(KERNEL, At(16))),
        ("cuLaunchGrid", Submit(KERNEL, Default)),
        ("cuLaunch", Submit(KERNEL, Default)),
        ("cuGraphLaunch", Submit(kind::GRAPH, At(8))),
        ("cuMemcpyHtoDAsync", Move(INTO, At(24))),
        ("cuMemcpyDtoHAsync", Move(OUT, At(24))),
        ("cuMemcpyDtoDAsync", Move(COPY, At(24))),
        ("cuMemcpyAsync", Move(COPY, At(24))),
        ("cuMemcpyHtoAAsync", Submit(INTO, At(32))),
        ("cuMemcpyAtoHAsync", Submit(OUT, At(32))),
        ("cuMemcpy2DAsync", Submit(COPY, At(8))),
        ("cuMemcpy3DAsync", Submit(COPY, At(8))),
        ("cuMemcpyPeerAsync", Submit(COPY, At(40))),
        ("cuMemcpy3DPeerAsync", Submit(COPY, At(8))),
        ("cuMemcpyWithAttributesAsync", Submit(COPY, At(32))),
        ("cuMemsetD8Async", Move(FILL, At(24))),
        ("cuMemsetD16Async", Move(FILL, At(24))),
        ("cuMemsetD32Async", Move(FILL, At(24))),
        ("cuMemsetD2D8Async", Submit(FILL, At(40))),
        ("cuMemsetD2D16Async", Submit(FILL, At(40))),
        ("cuMemsetD2D32Async", Submit(FILL, At(40))),
        ("cuMemcpyHtoD", Move(INTO, Default)),
        ("cuMemcpyDtoH", Move(OUT, Default)),
        ("cuMemcpyDtoD", Move(COPY, Default)),
        ("cuMemcpy", Move(COPY, Default)),
        ("cuMemcpyPeer", Submit(COPY, Default)),
        ("cuMemcpy2D", Submit(COPY, Default)),
        ("cuMemcpy2DUnaligned", Submit(COPY, Default)),
        ("cuMemcpy3D", Submit(COPY, Default)),
        ("cuMemcpyHtoA", Submit(INTO, Default)),
        ("cuMemcpyDtoA", Submit(COPY, Default)),
        ("cuMemcpyAtoD", Submit(COPY, Default)),
        ("cuMemcpyAtoA", Submit(COPY, Default)),
        ("cuMemcpy3DPeer", Submit(COPY, Default)),
        ("cuMemcpyAtoH", Submit(OUT, Default)),
        ("cuMemsetD8", Move(FILL, Default)),
        ("cuMemsetD16", Move(FILL, Default)),
        ("cuMemsetD32", Move(FILL, Default)),
        ("cuMemsetD2D8", Submit(FILL, Default)),
        ("cuMemsetD2D16", Submit(FILL, Default)),
        ("cuMemsetD2D32", Submit(FILL, Default)),
        ("cudaLaunchKernel", Submit(KERNEL, At(48))),
        ("cudaLaunchCooperativeKernel", Submit(KERNEL, At(48))),
        ("cudaLaunchKernelExC", Submit(KERNEL, InFirst(32))),
        ("cudaGraphLaunch", Submit(kind::GRAPH, At(8))),
        ("cudaMemcpyAsync", Move(COPY, At(32))),
        ("cudaMemcpy2DAsync", Submit(COPY, At(56))),
        ("cudaMemcpyToSymbolAsync", Move(INTO, At(40))),
        ("cudaMemcpyFromSymbolAsync", Move(OUT, At(40))),
        ("cudaMemcpyToArrayAsync", Submit(INTO, At(48))),
        ("cudaMemcpyFromArrayAsync", Submit(OUT, At(48))),
        ("cudaMemcpy2DToArrayAsync", Submit(COPY, At(64))),
        ("cudaMemcpy2DFromArrayAsync", Submit(COPY, At(64))),
        ("cudaMemcpy3DAsync", Submit(COPY, At(8))),
        ("cudaMemcpyPeerAsync", Submit(COPY, At(40))),
        ("cudaMemcpy3DPeerAsync", Submit(COPY, At(8))),
        ("cudaMemcpyWithAttributesAsync", Submit(COPY, At(32))),
        ("cudaMemsetAsync", Move(FILL, At(24))),
        ("cudaMemset2DAsync", Submit(FILL, At(40))),
        ("cudaMemset3DAsync", Submit(FILL, At(64))),
        ("cudaMemcpy", Move(COPY, Default)),
        ("cudaMemcpy2D", Submit(COPY, Default)),
        ("cudaMemcpy3D", Submit(COPY, Default)),
        ("cudaMemcpyPeer", Submit(COPY, Default)),
        ("cudaMemcpy3DPeer", Submit(COPY, Default)),
        ("cudaMemcpyToArray", Submit(INTO, Default)),
        ("cudaMemcpyFromArray", Submit(OUT, Default)),
        ("cudaMemcpyArrayToArray", Submit(COPY, Default)),
        ("cudaMemcpy2DToArray", Submit(COPY, Default)),
        ("cudaMemcpy2DFromArray", Submit(COPY, Default)),
        ("cudaMemcpy2DArrayToArray", Submit(COPY, Default)),
        ("cudaMemcpyToSymbol", Move(INTO, Default)),
        ("cudaMemcpyFromSymbol", Move(OUT, Default)),
        ("cudaMemset", Move(FILL, Default)),
        ("cudaMemset2D", Submit(FILL, Default)),
        ("cudaMemset3D", Submit(FILL, Default)),
        ("cuCtxSynchronize", WaitForAll),
        ("cudaDeviceSynchronize", WaitForAll),
        ("cudaThreadSynchronize", WaitForAll),
        ("cuStreamSynchronize", Wait),
        ("cuEventSynchronize", Wait),
        ("cudaStreamSynchronize", Wait),
        ("cudaEventSynchronize", Wait),
        ("cuStreamWaitEvent", StreamWait),
        ("cudaStreamWaitEvent", StreamWait),
        ("cuEventRecord", RecordEvent),
        ("cuEventRecordWithFlags", RecordEvent),
        ("cudaEventRecord", RecordEvent),
        ("cudaEventRecordWithFlags", RecordEvent),
        ("cuStreamBeginCapture", BeginCapture),
        ("cuStreamBeginCaptureToGraph", BeginCapture),
        ("cudaStreamBeginCapture", BeginCapture),
        ("cudaStreamBeginCaptureToGraph", BeginCapture),
        ("cuStreamEndCapture", EndCapture),
        ("cudaStreamEndCapture", EndCapture),
    ]
};

/// A function's name without version, and whether its default stream is the calling thread's.
fn plain_name(name: &str) -> (&str, bool) {
    let mut plain = name;
    let mut per_thread = false;
    // `cuMemcpyHtoDAsync_v2_ptsz`, `cudaLaunchKernel_ptsz_v7000`.
    while let Some((before, last)) = plain.rsplit_once('_') {
        let is_version =
            last.strip_prefix('v').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        match last {
            "ptsz" | "ptds" => per_thread = true,
            _ if is_version => {}
            _ => break,
        }
        plain = before;
    }
    (plain, per_thread)
}

/// Effect of each call id, once looked up: index into [`CALLS`] plus one, the per-thread bit above it.
static KNOWN: [AtomicU64; 2 * CALL_IDS] = [const { AtomicU64::new(0) }; 2 * CALL_IDS];
const CALL_IDS: usize = 2048;
const LOOKED_UP: u64 = 1 << 62;
const PER_THREAD: u64 = 1 << 61;

fn does(domain: u32, id: u32, data: &CallData) -> (Does, bool) {
    let place = (id as usize).checked_add(if domain == domain::DRIVER { 0 } else { CALL_IDS });
    let known = place.filter(|_| (id as usize) < CALL_IDS).map(|place| &KNOWN[place]);
    let word = known.map_or(0, |known| known.load(Relaxed));
    let word = if word != 0 {
        word
    } else {
        // SAFETY: CUPTI's names are constants.
        let name = unsafe { text(data.function) };
        let (plain, per_thread) = plain_name(&name);
        let index = CALLS.iter().position(|(known, _)| *known == plain);
        let word =
            LOOKED_UP | index.map_or(0, |index| index as u64 + 1) | if per_thread { PER_THREAD } else { 0 };
        if let Some(known) = known {
            known.store(word, Relaxed);
        }
        word
    };
    let index = (word & 0xffff) as usize;
    (index.checked_sub(1).map_or(Does::Nothing, |index| CALLS[index].1), word & PER_THREAD != 0)
}

/// A call that this thread is in.
struct OpenCall {
    correlation: u32,
    start: u64,
    what: Does,
    operation: Option<(VendorKey, Operation)>,
    /// For a call that waits for the device: the operations that it waits for.
    announced: Vec<Announced>,
}

thread_local! {
    static OPEN: RefCell<Vec<OpenCall>> = const { RefCell::new(Vec::new()) };
}

static CAPTURES: Captures = Captures::new();

/// Waiting calls, by correlation id, so that their records are not written again; the older half is dropped.
static WAITS: Mutex<Option<[FxHashSet<u32>; 2]>> = Mutex::new(None);
const REMEMBERED: usize = 1 << 14;

fn remember_wait(correlation: u32) {
    let mut waits = lock(&WAITS);
    let [newer, older] = waits.get_or_insert_default();
    if newer.len() >= REMEMBERED {
        *older = std::mem::take(newer);
    }
    newer.insert(correlation);
}

/// Whether a callback has recorded the waiting call with this id.
pub(super) fn is_recorded_wait(correlation: u32) -> bool {
    lock(&WAITS).as_ref().is_some_and(|halves| halves.iter().any(|half| half.contains(&correlation)))
}

pub(super) fn key(correlation: u32) -> VendorKey {
    VendorKey { scope: 0, id: u64::from(correlation), execution: 0 }
}

/// Called by CUPTI before and after each call, in the calling thread.
pub(super) unsafe extern "C" fn callback(_: *mut c_void, domain: u32, id: u32, data: *const CallData) {
    // SAFETY: CUPTI's own, for the time of the callback.
    let (Some(hub), Some(cupti), Some(data)) = (hub(), cupti(), (unsafe { data.as_ref() })) else { return };
    let (what, per_thread) = does(domain, id, data);
    if what == Does::Nothing {
        return;
    }
    let _ = OPEN.try_with(|open| {
        // A signal handler that interrupts this very place is not seen.
        let Ok(mut open) = open.try_borrow_mut() else { return };
        if data.site == 0 {
            enter(hub, cupti, data, what, per_thread, &mut open);
        } else {
            leave(hub, cupti, data, per_thread, &mut open);
        }
    });
}

fn enter(
    hub: &'static Hub,
    cupti: &Cupti,
    data: &CallData,
    what: Does,
    per_thread: bool,
    open: &mut Vec<OpenCall>,
) {
    let mut call = OpenCall {
        correlation: data.correlation,
        start: clocks::now(),
        what,
        operation: None,
        announced: Vec::new(),
    };
    match open.last_mut() {
        // Within another call that submits: the same operation.
        Some(outer) if what.submits().is_some() && outer.what.submits().is_some() => {
            if outer.operation.is_none() {
                // The outer call had no context yet.
                outer.operation = announce(hub, cupti, data, what, per_thread, outer.start);
            } else if let Some((key_of_outer, _)) = outer.operation {
                CORRELATOR.also_known_as(key_of_outer, key(data.correlation));
            }
        }
        Some(_) => {}
        None => call.operation = announce(hub, cupti, data, what, per_thread, call.start),
    }
    match what {
        Does::EndCapture => {
            if let Some(stream) = stream_at(data, Stream::At(0)) {
                CAPTURES.end(whose(stream, per_thread));
            }
        }
        Does::Wait | Does::StreamWait => remember_wait(data.correlation),
        Does::WaitForAll => {
            remember_wait(data.correlation);
            call.announced = CORRELATOR.announced();
        }
        _ => {}
    }
    open.push(call);
}

fn stream_at(data: &CallData, stream: Stream) -> Option<usize> {
    if data.arguments.is_null() {
        return None;
    }
    // SAFETY: CUPTI passes the call's arguments as a structure of that call's form.
    unsafe {
        match stream {
            Stream::At(offset) => Some(data.arguments.add(offset).cast::<usize>().read_unaligned()),
            Stream::InFirst(offset) => {
                let first = data.arguments.cast::<*const u8>().read_unaligned();
                (!first.is_null()).then(|| first.add(offset).cast::<usize>().read_unaligned())
            }
            Stream::Default => Some(0),
        }
    }
}

/// The stream that a handle means in a call of this thread.
fn whose(stream: usize, per_thread: bool) -> captures::Stream {
    match stream {
        0 if per_thread => (STREAM_PER_THREAD, tid()),
        STREAM_PER_THREAD => (STREAM_PER_THREAD, tid()),
        _ => (stream, 0),
    }
}

/// Applies a successful call to captures.
fn follow_captures(data: &CallData, what: Does, per_thread: bool) {
    let [first, second] = [0, 8].map(|offset| stream_at(data, Stream::At(offset)));
    let (Some(first), Some(second)) = (first, second) else { return };
    match what {
        Does::BeginCapture => CAPTURES.begin(whose(first, per_thread)),
        Does::RecordEvent => CAPTURES.recorded(first, whose(second, per_thread)),
        Does::StreamWait => CAPTURES.waits(whose(first, per_thread), second),
        _ => {}
    }
}

fn announce(
    hub: &'static Hub,
    cupti: &Cupti,
    data: &CallData,
    what: Does,
    per_thread: bool,
    start: u64,
) -> Option<(VendorKey, Operation)> {
    let (kind, stream) = what.submits()?;
    let stream = stream_at(data, stream)?;
    if matches!(what, Does::Move(..)) && stream_at(data, Stream::At(SIZE_OF_MOVE)) == Some(0) {
        return None;
    }
    if data.context.is_null() || CAPTURES.has(whose(stream, per_thread)) {
        return None;
    }
    let per_thread = per_thread || stream == STREAM_PER_THREAD;
    let queue = stream_key(cupti, data.context, stream, per_thread)?;
    let name = if data.symbol.is_null() || kind != KERNEL { data.function } else { data.symbol };
    // SAFETY: CUPTI's names stay for the time of the callback.
    let name = unsafe { text(name) };
    let name = if kind == KERNEL { name } else { plain_name(&name).0.to_owned() };
    let about = About { what: KindAndName::new(kind, hub.name(&name)), bytes: 0, tid: tid() };
    let id = key(data.correlation);
    Some((id, CORRELATOR.announce_call(hub, &queue, id, about, start)))
}

fn leave(hub: &'static Hub, cupti: &Cupti, data: &CallData, per_thread: bool, open: &mut Vec<OpenCall>) {
    // A call without a seen begin has no end either.
    let Some(place) = open.iter().rposition(|call| call.correlation == data.correlation) else { return };
    open.truncate(place + 1);
    let Some(mut call) = open.pop() else { return };
    // SAFETY: after a call, CUPTI gives its result.
    let failed = unsafe { data.result.as_ref() }.is_some_and(|result| *result != 0);
    if !failed {
        follow_captures(data, call.what, per_thread);
    }
    if !open.is_empty() {
        return;
    }
    if call.operation.is_none() && !failed {
        // The context came into being within the call.
        call.operation = announce(hub, cupti, data, call.what, per_thread, call.start);
    }
    if let Some((_, operation)) = call.operation {
        CORRELATOR.submitted(operation);
    }
    if let Some((id, operation)) = call.operation.filter(|_| failed) {
        CORRELATOR.withdraw(hub, id, operation);
        call.operation = None;
    }
    let kind = match call.what {
        Does::Submit(..) | Does::Move(..) => kind::SUBMITTING_CALL,
        Does::Wait | Does::WaitForAll => kind::WAITING_CALL,
        Does::StreamWait => kind::OTHER_CALL,
        _ => return,
    };
    if call.what == Does::WaitForAll && !failed {
        let announced = std::mem::take(&mut call.announced);
        all_have_ended(cupti, data.context, announced, call.start);
    }
    // SAFETY: as above.
    let name = unsafe { text(data.function) };
    let what = KindAndName::new(kind, hub.name(plain_name(&name).0));
    let operation = call.operation.map(|(_, operation)| (operation.queue, operation.seq));
    hub.call(Call { tid: tid(), start: call.start, end: clocks::now(), what, operation });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_no_part_of_a_name() {
        assert_eq!(plain_name("cuMemcpyHtoDAsync_v2_ptsz"), ("cuMemcpyHtoDAsync", true));
        assert_eq!(plain_name("cudaLaunchKernel_ptsz_v7000"), ("cudaLaunchKernel", true));
        assert_eq!(plain_name("cudaMemcpy_v3020"), ("cudaMemcpy", false));
        assert_eq!(plain_name("cuLaunchKernel"), ("cuLaunchKernel", false));
    }

    #[test]
    fn every_call_is_known_once() {
        let mut names: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
