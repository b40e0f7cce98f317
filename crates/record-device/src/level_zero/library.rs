//! Level Zero's functions and numbers (specification and headers of 1.8 and later), by the loader that
//! the program has loaded.

use crate::dynamic::{Library, functions};
use std::ffi::{c_char, c_void};

pub(super) const SUCCESS: i32 = 0;

/// Registered before (0) or after (1) a call.
pub(super) const BEFORE: u32 = 0;
pub(super) const AFTER: u32 = 1;

/// Called with pointers to the call's arguments, which may be changed before it.
pub(super) type Callback = unsafe extern "C" fn(*const *mut usize, i32, *mut c_void, *mut *mut c_void);
pub(super) type Register = unsafe extern "C" fn(*mut c_void, u32, Callback) -> i32;

/// `ze_event_pool_desc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PoolDescription {
    pub form: u32,
    pub next: *const c_void,
    pub flags: u32,
    pub count: u32,
}

pub(super) const POOL_DESCRIPTION: u32 = 0x10;
pub(super) const POOL_FOR_HOST: u32 = 1;
pub(super) const POOL_FOR_OTHER_PROCESSES: u32 = 2;
pub(super) const POOL_WITH_TIMES: u32 = 4;

/// `ze_event_desc_t`.
#[repr(C)]
pub(super) struct EventDescription {
    pub form: u32,
    pub next: *const c_void,
    pub index: u32,
    pub signal: u32,
    pub wait: u32,
}

pub(super) const EVENT_DESCRIPTION: u32 = 0x11;
pub(super) const SCOPE_HOST: u32 = 4;

/// Flags of `ze_command_queue_desc_t`: operations run one after the other.
pub(super) const QUEUE_IN_ORDER: u32 = 2;
/// Offset of the flags.
pub(super) const QUEUE_FLAGS: usize = 24;

/// `ze_device_properties_t`, in the form with a resolution in nanoseconds.
#[repr(C)]
pub(super) struct DeviceProperties {
    pub form: u32,
    pub next: *mut c_void,
    pub kind: u32,
    pub vendor: u32,
    pub device: u32,
    pub flags: u32,
    pub subdevice: u32,
    pub clock_rate: u32,
    pub max_memory: u64,
    pub counts: [u32; 7],
    pub nanos_per_tick: u64,
    pub clock_bits: u32,
    pub stamp_bits: u32,
    pub uuid: [u8; 16],
    pub name: [c_char; 256],
}

pub(super) const DEVICE_PROPERTIES: u32 = 3;

functions! {
    /// The used part of Level Zero.
    LevelZero {
        needed {
            initialise: fn(u32) -> i32 = c"zeInit";
            tracer: fn(*const [usize; 3], *mut *mut c_void) -> i32 = c"zelTracerCreate";
            enable: fn(*mut c_void, u8) -> i32 = c"zelTracerSetEnabled";
            on_kernel: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendLaunchKernelRegisterCallback";
            on_copy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendMemoryCopyRegisterCallback";
            on_fill: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendMemoryFillRegisterCallback";
            on_list: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListCreateRegisterCallback";
            on_immediate: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListCreateImmediateRegisterCallback";
            on_list_reset: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListResetRegisterCallback";
            on_list_destroy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListDestroyRegisterCallback";
            on_execute: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandQueueExecuteCommandListsRegisterCallback";
            on_pool: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerEventPoolCreateRegisterCallback";
            on_event_reset: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerEventHostResetRegisterCallback";
            on_event_destroy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerEventDestroyRegisterCallback";
            on_queue_wait: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandQueueSynchronizeRegisterCallback";
            on_event_wait: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerEventHostSynchronizeRegisterCallback";
            pool_create: fn(usize, *const PoolDescription, u32, *const usize, *mut usize) -> i32 = c"zeEventPoolCreate";
            event_create: fn(usize, *const EventDescription, *mut usize) -> i32 = c"zeEventCreate";
            event_status: fn(usize) -> i32 = c"zeEventQueryStatus";
            event_reset: fn(usize) -> i32 = c"zeEventHostReset";
            event_times: fn(usize, *mut [u64; 4]) -> i32 = c"zeEventQueryKernelTimestamp";
            device_properties: fn(usize, *mut DeviceProperties) -> i32 = c"zeDeviceGetProperties";
        }
        may {
            device_clock: fn(usize, *mut u64, *mut u64) -> i32 = c"zeDeviceGetGlobalTimestamps";
            kernel_name: fn(usize, *mut usize, *mut c_char) -> i32 = c"zeKernelGetName";
            on_cooperative: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendLaunchCooperativeKernelRegisterCallback";
            on_indirect: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendLaunchKernelIndirectRegisterCallback";
            on_several: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendLaunchMultipleKernelsIndirectRegisterCallback";
            on_barrier: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendBarrierRegisterCallback";
            on_memory_barrier: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendMemoryRangesBarrierRegisterCallback";
            on_region_copy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendMemoryCopyRegionRegisterCallback";
            on_foreign_copy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendMemoryCopyFromContextRegisterCallback";
            on_image_copy: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendImageCopyRegisterCallback";
            on_image_region: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendImageCopyRegionRegisterCallback";
            on_image_out: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendImageCopyToMemoryRegisterCallback";
            on_image_in: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendImageCopyFromMemoryRegisterCallback";
            on_wait_on_events: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListAppendWaitOnEventsRegisterCallback";
            on_fence_wait: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerFenceHostSynchronizeRegisterCallback";
            on_list_wait: fn(*mut c_void, u32, Callback) -> i32 = c"zelTracerCommandListHostSynchronizeRegisterCallback";
        }
    }
}

impl LevelZero {
    /// The loader, if the program is linked with it.
    pub fn load() -> Option<LevelZero> {
        Library::loaded("libze_loader.so.1").and_then(LevelZero::find)
    }
}
