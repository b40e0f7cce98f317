//! OpenMP offload, from the OMPT tool's callbacks (`libtaskscope_ompt.so` loads this library at the first
//! target construct).
//!
//! LLVM's runtime has no device records: it reports begin and end of an operation on the host. A thread's
//! operations on a device are a queue; their times are the host's. If the runtime returns from a launch
//! before the kernel has run, the end is that of the launch.

use crate::clocks::{self, DeviceClock};
use crate::hub::{Call, Device, Floor, KindAndName, Queue, hub, lock, tid};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Mutex;
use taskscope_event::models::device::kind;
use taskscope_reorder::{QueueIndex, QueueOrder};

#[derive(Default)]
struct Known {
    devices: FxHashMap<i32, u32>,
    /// By device and thread: the queue, and its next sequence.
    queues: FxHashMap<(i32, u32), (QueueIndex, u64)>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Open operation and calls of a thread.
struct OpenOperation {
    operation: Option<(QueueIndex, u64)>,
    /// When the call began, and when the operation did, which is after its submission.
    append: u64,
    start: u64,
    call: KindAndName,
    /// The calls in it that have ended, by their starts.
    inner: Vec<Call>,
}

thread_local! {
    static OPEN: RefCell<Vec<OpenOperation>> = const { RefCell::new(Vec::new()) };
}

/// Kinds that `taskscope_target_begin` receives.
mod host_operation {
    pub const KERNEL: u32 = 0;
    pub const TO_DEVICE: u32 = 1;
    pub const FROM_DEVICE: u32 = 2;
    pub const FILL: u32 = 3;
    /// Calls of the host without an operation of the device.
    pub const ALLOCATE: u32 = 4;
    pub const FREE: u32 = 5;
    pub const REGION: u32 = 6;
}

/// The calling thread begins an operation of a device.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_target_begin(device: i32, what: u32, bytes: u64) {
    let Some(hub) = hub() else { return };
    let (operation, name, call) = match what {
        host_operation::KERNEL => (Some(kind::KERNEL), "target kernel", "omp target: launch"),
        host_operation::TO_DEVICE => {
            (Some(kind::COPY_IN), "target copy to device", "omp target: copy to device")
        }
        host_operation::FROM_DEVICE => {
            (Some(kind::COPY_OUT), "target copy from device", "omp target: copy from device")
        }
        host_operation::FILL => (Some(kind::FILL), "target fill", "omp target: fill"),
        host_operation::ALLOCATE => (None, "", "omp target: allocate"),
        host_operation::FREE => (None, "", "omp target: free"),
        host_operation::REGION => (None, "", "omp target"),
        _ => return,
    };
    let call_kind = match (operation, what) {
        (Some(_), _) => kind::SUBMITTING_CALL,
        (None, host_operation::REGION) => kind::WAITING_CALL,
        _ => kind::OTHER_CALL,
    };
    let call = KindAndName::new(call_kind, hub.name(call));
    let tid = tid();
    let operation = operation.map(|operation| {
        let mut known = lock(&KNOWN);
        let known = known.get_or_insert_default();
        let number = *known.devices.entry(device).or_insert_with(|| {
            let clock = DeviceClock::Host(libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC");
            hub.add_device(Device { name: format!("OpenMP device {device}"), clock })
        });
        let queue = known.queues.entry((device, tid)).or_insert_with(|| {
            let queue = Queue {
                name: format!("target.{device}.{tid}"),
                device: number,
                order: QueueOrder::InOrder,
                interface: "OpenMP target",
                floor: Floor::Now,
                poll: None,
            };
            (hub.add_queue(queue), 0)
        });
        queue.1 += 1;
        let (index, seq) = (queue.0, queue.1 - 1);
        let append = clocks::now();
        hub.append_at(index, seq, KindAndName::new(operation, hub.name(name)), seq, bytes, append, tid);
        (index, seq, append)
    });
    let append = operation.map_or_else(clocks::now, |(_, _, append)| append);
    let start = clocks::now().max(append + 1);
    let operation = operation.map(|(queue, seq, _)| (queue, seq));
    let _ = OPEN.try_with(|open| {
        if let Ok(mut open) = open.try_borrow_mut() {
            open.push(OpenOperation { operation, append, start, call, inner: Vec::new() });
        }
    });
}

/// The operation that the calling thread began last has ended.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_target_end() {
    let Some(hub) = hub() else { return };
    let (end, tid) = (clocks::now(), tid());
    let ended =
        OPEN.try_with(|open| end_innermost(&mut *open.try_borrow_mut().ok()?, end, tid)).ok().flatten();
    let Some((completed, calls)) = ended else { return };
    if let Some((queue, seq, start)) = completed {
        hub.complete(queue, seq, 0, start, end.max(start));
    }
    calls.into_iter().for_each(|call| hub.call(call));
}

/// Queue, number and start of an operation that has ended.
type Completed = (QueueIndex, u64, u64);

/// Ends the innermost call. Returns its operation, and the calls to be handed over: a thread's calls go in the order
/// of their starts, so those in another one wait for its end.
fn end_innermost(
    open: &mut Vec<OpenOperation>,
    end: u64,
    tid: u32,
) -> Option<(Option<Completed>, Vec<Call>)> {
    let OpenOperation { operation, append, start, call, inner } = open.pop()?;
    let own = Call { tid, start: append, end: end.max(start), what: call, operation };
    let mut calls = vec![own];
    calls.extend(inner);
    if let Some(outer) = open.last_mut() {
        outer.inner.append(&mut calls);
    }
    Some((operation.map(|(queue, seq)| (queue, seq, start)), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_within_a_construct_come_after_it() {
        let begun = |at: u64| OpenOperation {
            operation: None,
            append: at,
            start: at,
            call: KindAndName::new(kind::OTHER_CALL, at as u32),
            inner: Vec::new(),
        };
        let mut open = vec![begun(10)];
        for (start, end) in [(11, 20), (21, 40)] {
            open.push(begun(start));
            assert!(end_innermost(&mut open, end, 1).unwrap().1.is_empty());
        }
        let calls = end_innermost(&mut open, 50, 1).unwrap().1;
        let times: Vec<_> = calls.iter().map(|call| (call.start, call.end)).collect();
        assert_eq!(times, [(10, 50), (11, 20), (21, 40)]);
        assert!(end_innermost(&mut open, 60, 1).is_none());
    }
}
