//! Functions of extensions that put an operation into a queue: unified shared memory (SYCL), command buffers
//! (graphs), global variables, external memory. Programs query their addresses by name, and get the layer's; the
//! library's are kept by platform.

use super::dispatch_table::{ENTRIES, INVALID_VALUE, below, call_below, slot};
use super::enqueue::{About, about, submit};
use super::queues::known;
use crate::hub::{self, hub};
use rustc_hash::FxHashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError, RwLock};
use taskscope_event::models::device::kind;

/// The library's function of one name: a platform, and its address there.
type Addresses = RwLock<Vec<(usize, usize)>>;

/// The function of the queue's platform; the only one if the platform is not known.
fn address_of(addresses: &Addresses, queue: usize) -> usize {
    let platform = hub().map_or(0, |hub| known(queue, hub).platform);
    let addresses = addresses.read().unwrap_or_else(PoisonError::into_inner);
    let own = addresses.iter().find(|(of, _)| *of == platform);
    own.or(addresses.first()).map_or(0, |(_, address)| *address)
}

/// Defines a function with this number of words before the event, a queue first, and lists it.
macro_rules! extensions {
    ($($name:ident($($argument:ident),*) $kind:ident, bytes $bytes:expr, blocks $blocks:expr;)*) => {
        #[allow(non_camel_case_types, reason = "OpenCL's own")]
        enum ExtensionIndex { $($name),* }

        $(
            #[allow(non_snake_case, unused_variables, clippy::too_many_arguments, reason = "OpenCL's own")]
            extern "C" fn $name(queue: usize $(, $argument: usize)*, event: *mut usize) -> i32 {
                let about = about!($name $kind, bytes $bytes, blocks $blocks, kernel 0);
                let address = address_of(&EXTENSIONS[ExtensionIndex::$name as usize].addresses, queue);
                submit(queue, event, about, |event| call_below!(at address, queue $(, $argument)*, event))
            }
        )*

        static EXTENSIONS: [Extension; [$(stringify!($name)),*].len()] = [
            $(Extension {
                name: stringify!($name),
                own: Own($name as *const ()),
                addresses: RwLock::new(Vec::new()),
            }),*
        ];
    };
}

/// A function of an extension.
struct Extension {
    name: &'static str,
    own: Own,
    addresses: Addresses,
}

/// The layer's function.
struct Own(*const ());

// SAFETY: the address of code.
unsafe impl Sync for Own {}

extensions! {
    clEnqueueMemcpyINTEL(blocking, to, from, size, events, list) COPY, bytes size, blocks blocking as u32 != 0;
    clEnqueueMemFillINTEL(to, pattern, pattern_size, size, events, list) FILL, bytes size, blocks false;
    clEnqueueMemsetINTEL(to, value, size, events, list) FILL, bytes size, blocks false;
    clEnqueueMigrateMemINTEL(pointer, size, flags, events, list) COPY, bytes size, blocks false;
    clEnqueueMemAdviseINTEL(pointer, size, advice, events, list) OTHER, bytes 0, blocks false;
    clEnqueueReadGlobalVariableINTEL(program, name, blocking, size, offset, host, events, list) COPY_OUT, bytes size, blocks blocking as u32 != 0;
    clEnqueueWriteGlobalVariableINTEL(program, name, blocking, size, offset, host, events, list) COPY_IN, bytes size, blocks blocking as u32 != 0;
    clEnqueueReadHostPipeINTEL(program, pipe, blocking, host, size, events, list) COPY_OUT, bytes size, blocks blocking as u32 != 0;
    clEnqueueWriteHostPipeINTEL(program, pipe, blocking, host, size, events, list) COPY_IN, bytes size, blocks blocking as u32 != 0;
    clEnqueueSVMFreeARM(count, pointers, callback, user, events, list) HOST_CODE, bytes 0, blocks false;
    clEnqueueSVMMemcpyARM(blocking, to, from, size, events, list) COPY, bytes size, blocks blocking as u32 != 0;
    clEnqueueSVMMemFillARM(to, pattern, pattern_size, size, events, list) FILL, bytes size, blocks false;
    clEnqueueSVMMapARM(blocking, flags, pointer, size, events, list) MAP, bytes size, blocks blocking as u32 != 0;
    clEnqueueSVMUnmapARM(pointer, events, list) MAP, bytes 0, blocks false;
    clEnqueueAcquireExternalMemObjectsKHR(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false;
    clEnqueueReleaseExternalMemObjectsKHR(count, objects, events, list) SYNCHRONISATION, bytes 0, blocks false;
    clEnqueueWaitSemaphoresKHR(count, semaphores, payloads, events, list) SYNCHRONISATION, bytes 0, blocks false;
    clEnqueueSignalSemaphoresKHR(count, semaphores, payloads, events, list) SYNCHRONISATION, bytes 0, blocks false;
}

static CREATE_BUFFER: Addresses = RwLock::new(Vec::new());
static ENQUEUE_BUFFER: Addresses = RwLock::new(Vec::new());

/// The first queue of each command buffer, in which it runs unless another one is given.
static BUFFER_QUEUES: Mutex<Option<FxHashMap<usize, usize>>> = Mutex::new(None);

/// `clCreateCommandBufferKHR`.
extern "C" fn create_buffer(count: u32, queues: *const usize, properties: usize, error: *mut i32) -> usize {
    // SAFETY: OpenCL demands `count` queues there.
    let queue = if count == 0 || queues.is_null() { 0 } else { unsafe { *queues } };
    let address = if queue == 0 { 0 } else { address_of(&CREATE_BUFFER, queue) };
    if address == 0 {
        if !error.is_null() {
            // SAFETY: the program's place for it.
            unsafe { *error = INVALID_VALUE };
        }
        return 0;
    }
    type Function = unsafe extern "C" fn(u32, *const usize, usize, *mut i32) -> usize;
    // SAFETY: the library gave a function of this form under that name.
    let function: Function = unsafe { std::mem::transmute(address) };
    // SAFETY: the arguments are the program's.
    let buffer = unsafe { function(count, queues, properties, error) };
    if buffer != 0 {
        hub::lock(&BUFFER_QUEUES).get_or_insert_default().insert(buffer, queue);
    }
    buffer
}

/// `clEnqueueCommandBufferKHR`: one operation of the first queue.
extern "C" fn enqueue_buffer(
    count: u32,
    queues: *const usize,
    buffer: usize,
    events: usize,
    list: usize,
    event: *mut usize,
) -> i32 {
    let queue = match count == 0 || queues.is_null() {
        true => hub::lock(&BUFFER_QUEUES).as_ref().and_then(|known| known.get(&buffer).copied()).unwrap_or(0),
        // SAFETY: OpenCL demands `count` queues there.
        false => unsafe { *queues },
    };
    let about =
        About { name: "clEnqueueCommandBufferKHR", kind: kind::GRAPH, bytes: 0, blocks: false, kernel: 0 };
    let address = match queue {
        0 => ENQUEUE_BUFFER.read().unwrap_or_else(PoisonError::into_inner).first().map_or(0, |(_, at)| *at),
        queue => address_of(&ENQUEUE_BUFFER, queue),
    };
    submit(queue, event, about, |event| call_below!(at address, count, queues, buffer, events, list, event))
}

/// The layer's function in place of the library's at `address`, if it observes that.
fn replaced(platform: usize, name: *const c_char, address: usize) -> usize {
    if address == 0 || name.is_null() || hub().is_none() {
        return address;
    }
    // SAFETY: OpenCL demands a text there.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let extension = EXTENSIONS.iter().find(|extension| extension.name.as_bytes() == name);
    let (addresses, own) = match (extension, name) {
        (Some(extension), _) => (&extension.addresses, extension.own.0 as usize),
        (None, b"clCreateCommandBufferKHR") => (&CREATE_BUFFER, create_buffer as *const () as usize),
        (None, b"clEnqueueCommandBufferKHR") => (&ENQUEUE_BUFFER, enqueue_buffer as *const () as usize),
        _ => return address,
    };
    let mut addresses = addresses.write().unwrap_or_else(PoisonError::into_inner);
    match addresses.iter_mut().find(|(of, _)| *of == platform) {
        Some((_, known)) => *known = address,
        None => addresses.push((platform, address)),
    }
    own
}

extern "C" fn address_for_platform(platform: usize, name: *const c_char) -> usize {
    let function = below(slot::GET_EXTENSION_FUNCTION_ADDRESS_FOR_PLATFORM);
    if function == 0 {
        return 0;
    }
    type Function = unsafe extern "C" fn(usize, *const c_char) -> usize;
    // SAFETY: the loader put a function of this form there.
    let function: Function = unsafe { std::mem::transmute(function) };
    // SAFETY: the arguments are the program's.
    replaced(platform, name, unsafe { function(platform, name) })
}

extern "C" fn address(name: *const c_char) -> usize {
    let function = below(slot::GET_EXTENSION_FUNCTION_ADDRESS);
    if function == 0 {
        return 0;
    }
    type Function = unsafe extern "C" fn(*const c_char) -> usize;
    // SAFETY: the loader put a function of this form there.
    let function: Function = unsafe { std::mem::transmute(function) };
    // SAFETY: the argument is the program's.
    replaced(0, name, unsafe { function(name) })
}

/// Puts the layer's functions into the table.
pub(super) fn replace(table: &mut [usize; ENTRIES]) {
    for (place, function) in [
        (slot::GET_EXTENSION_FUNCTION_ADDRESS, address as *const () as usize),
        (slot::GET_EXTENSION_FUNCTION_ADDRESS_FOR_PLATFORM, address_for_platform as *const () as usize),
    ] {
        if table[place] != 0 {
            table[place] = function;
        }
    }
}

/// Forgets all addresses: their library is gone.
pub(super) fn forget_all() {
    let lists = EXTENSIONS.iter().map(|extension| &extension.addresses);
    for addresses in lists.chain([&CREATE_BUFFER, &ENQUEUE_BUFFER]) {
        addresses.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
    hub::lock(&BUFFER_QUEUES).take();
}
