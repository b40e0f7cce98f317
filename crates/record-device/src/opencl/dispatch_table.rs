//! The functions below the layer, in the table that the loader gave.

use std::sync::atomic::{AtomicPtr, Ordering::*};

/// Functions of the table: `struct _cl_icd_dispatch` of the OpenCL 3.0 headers.
pub(super) const ENTRIES: usize = 149;

/// Places in the table.
pub(super) mod slot {
    pub const GET_DEVICE_INFO: usize = 3;
    pub const CREATE_COMMAND_QUEUE: usize = 9;
    pub const RELEASE_COMMAND_QUEUE: usize = 11;
    pub const GET_COMMAND_QUEUE_INFO: usize = 12;
    pub const GET_KERNEL_INFO: usize = 39;
    pub const WAIT_FOR_EVENTS: usize = 41;
    pub const GET_EVENT_INFO: usize = 42;
    pub const RETAIN_EVENT: usize = 43;
    pub const RELEASE_EVENT: usize = 44;
    pub const GET_EVENT_PROFILING_INFO: usize = 45;
    pub const FLUSH: usize = 46;
    pub const FINISH: usize = 47;
    pub const GET_EXTENSION_FUNCTION_ADDRESS: usize = 65;
    pub const SET_EVENT_CALLBACK: usize = 81;
    pub const ENQUEUE_MARKER_WITH_WAIT_LIST: usize = 105;
    pub const GET_EXTENSION_FUNCTION_ADDRESS_FOR_PLATFORM: usize = 107;
    pub const CREATE_COMMAND_QUEUE_WITH_PROPERTIES: usize = 123;
    pub const GET_DEVICE_AND_HOST_TIMER: usize = 140;
}

pub(super) const SUCCESS: i32 = 0;
pub(super) const INVALID_VALUE: i32 = -30;

/// The functions below the layer; null before and after their library is there.
pub(super) static BELOW: AtomicPtr<[usize; ENTRIES]> = AtomicPtr::new(std::ptr::null_mut());
/// The layer's own table.
pub(super) static OWN: AtomicPtr<[usize; ENTRIES]> = AtomicPtr::new(std::ptr::null_mut());

/// The address of a function below the layer; 0 if that library does not have it.
pub(super) fn below(slot: usize) -> usize {
    // SAFETY: null or a leaked table.
    unsafe { BELOW.load(Acquire).as_ref() }.map_or(0, |table| table[slot])
}

/// Calls a function below the layer, by its place in the table or `at` an address. Arguments are integers and
/// pointers, each in a register or stack slot of its own, as the calling conventions of x86-64 and aarch64 have them.
macro_rules! call_below {
    (@word $argument:expr) => { usize };
    (at $address:expr $(, $argument:expr)*) => {{
        let address = $address;
        if address == 0 {
            -59 // CL_INVALID_OPERATION
        } else {
            type Function = unsafe extern "C" fn($($crate::opencl::dispatch_table::call_below!(@word $argument)),*) -> i32;
            // SAFETY: the loader put a function of this form there, or the library gave it by its name.
            let function: Function = unsafe { std::mem::transmute(address) };
            // SAFETY: the arguments are the program's, or valid by the function's contract.
            unsafe { function($($argument as usize),*) }
        }
    }};
    ($slot:expr $(, $argument:expr)*) => {{
        $crate::opencl::dispatch_table::call_below!(at $crate::opencl::dispatch_table::below($slot) $(, $argument)*)
    }};
}
pub(super) use call_below;

/// A text that OpenCL's `get…Info` functions give.
pub(super) fn text(slot: usize, object: usize, parameter: u32) -> Option<String> {
    let mut buffer = [0u8; 256];
    let status = call_below!(slot, object, parameter, buffer.len() - 1, buffer.as_mut_ptr(), 0usize);
    let length = buffer.iter().position(|byte| *byte == 0)?;
    (status == SUCCESS).then(|| String::from_utf8_lossy(&buffer[..length]).trim().to_owned())
}

/// A number that OpenCL's `get…Info` functions give.
pub(super) fn number(slot: usize, object: usize, parameter: u32) -> Option<u64> {
    let mut value = 0u64;
    let status = call_below!(slot, object, parameter, size_of::<u64>(), &raw mut value, 0usize);
    (status == SUCCESS).then_some(value)
}
