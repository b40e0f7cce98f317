//! Calls that put an operation into a queue.

use super::dispatch_table::{ENTRIES, SUCCESS, below, call_below, slot, text};
use super::queues::known;
use super::watched_events::watch;
use crate::clocks;
use crate::hub::{self, Call, KindAndName, hub};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use taskscope_event::models::device::kind;

const KERNEL_FUNCTION_NAME: u32 = 0x1190;

/// Ids that are shown; OpenCL's events have addresses only, which are used again.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Submission of a call.
pub(super) struct About {
    pub name: &'static str,
    pub kind: u32,
    pub bytes: u64,
    /// Whether the call may return only after the operation has run.
    pub blocks: bool,
    /// The kernel that it runs.
    pub kernel: usize,
}

/// Submits by `call`, which is given a place for the event.
pub(super) fn submit(
    queue: usize,
    event: *mut usize,
    about: About,
    call: impl FnOnce(*mut usize) -> i32,
) -> i32 {
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
    let what = KindAndName::new(about.kind, name);
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
    let what = KindAndName::new(kind::SUBMITTING_CALL, hub.name(about.name));
    let operation = Some((known.index, seq));
    hub.call(Call { tid: hub::tid(), start: append, end: clocks::now(), what, operation });
    status
}

/// The description of a call of the function `name`.
macro_rules! about {
    ($name:ident $kind:ident, bytes $bytes:expr, blocks $blocks:expr, kernel $kernel:expr) => {
        $crate::opencl::enqueue::About {
            name: stringify!($name),
            kind: taskscope_event::models::device::kind::$kind,
            bytes: $bytes as u64,
            blocks: $blocks,
            kernel: $kernel,
        }
    };
}
pub(super) use about;

/// Defines a function of OpenCL's with this number of words before the event, a queue first, and puts it into
/// the table.
macro_rules! enqueues {
    ($($place:literal $name:ident($($argument:ident),*) $kind:ident, bytes $bytes:expr, blocks $blocks:expr, kernel $kernel:expr;)*) => {
        $(
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, reason = "OpenCL's own")]
            extern "C" fn $name(queue: usize $(, $argument: usize)*, event: *mut usize) -> i32 {
                let about = about!($name $kind, bytes $bytes, blocks $blocks, kernel $kernel);
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
            let address = below($place);
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
    let what = KindAndName::new(kind::OTHER_CALL, hub.name(name));
    hub.call(Call { tid: hub::tid(), start, end: clocks::now(), what, operation: None });
    status
}

extern "C" fn wait_in_queue(queue: usize, count: usize, events: usize) -> i32 {
    unwatched("clEnqueueWaitForEvents", || call_below!(WAIT_IN_QUEUE, queue, count, events))
}

extern "C" fn barrier(queue: usize) -> i32 {
    unwatched("clEnqueueBarrier", || call_below!(BARRIER, queue))
}
