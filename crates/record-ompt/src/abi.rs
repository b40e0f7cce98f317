//! The part of the OMPT C interface (OpenMP 5.2, chapter 19) that the tool uses.
//!
//! Enumerations are plain integers here: a runtime may send values that this version of the
//! standard does not know, and those must not be undefined behaviour.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// A word per thread, region or task that belongs to the tool.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    /// The word as a number.
    pub value: u64,
    /// The word as a pointer.
    pub ptr: *mut c_void,
}

/// `ompt_callback_t`: any callback; cast to its real type by the runtime.
pub type Callback = unsafe extern "C" fn();
/// `ompt_interface_fn_t`: any entry point; cast to its real type by the tool.
pub type EntryPoint = unsafe extern "C" fn();
/// `ompt_function_lookup_t`.
pub type Lookup = unsafe extern "C" fn(name: *const c_char) -> Option<EntryPoint>;
/// `ompt_set_callback_t`.
pub type SetCallback = unsafe extern "C" fn(event: c_int, callback: Option<Callback>) -> c_int;
/// `ompt_initialize_t`: returns non-zero to keep the tool active.
pub type Initialize =
    unsafe extern "C" fn(lookup: Lookup, initial_device: c_int, tool_data: *mut Data) -> c_int;
/// `ompt_finalize_t`.
pub type Finalize = unsafe extern "C" fn(tool_data: *mut Data);

/// `ompt_start_tool`, as a tool library exports it.
pub type StartTool =
    unsafe extern "C" fn(omp_version: c_uint, runtime_version: *const c_char) -> *mut StartToolResult;

/// `ompt_start_tool_result_t`, returned by `ompt_start_tool`.
#[repr(C)]
pub struct StartToolResult {
    /// Called once, early.
    pub initialize: Option<Initialize>,
    /// Called once, when the runtime shuts down.
    pub finalize: Option<Finalize>,
    /// A word of the tool's own.
    pub tool_data: Data,
}

/// One dependence of a task.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dependence {
    /// The address, or an iteration for doacross loops.
    pub variable: Data,
    /// `ompt_dependence_type_t`.
    pub kind: c_int,
}

/// The iterations that a dispatch hands out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Chunk {
    /// First iteration.
    pub start: u64,
    /// Number of iterations.
    pub iterations: u64,
}

/// `ompt_frame_t`: frame addresses at which the runtime called a task's user code, and that code called the
/// runtime again.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OmptFrame {
    /// Frame address of the runtime function that called the user code; 0 in an initial task.
    pub exit: Data,
    /// Frame address of the runtime function that the user code called; 0 while it is in its own.
    pub enter: Data,
    /// `ompt_frame_flag_t`.
    pub exit_flags: c_int,
    /// `ompt_frame_flag_t`.
    pub enter_flags: c_int,
}

impl OmptFrame {
    /// A copy, word by word: the runtime has just written words, for which one wider load would have to wait.
    ///
    /// # Safety
    /// The pointer is to a frame of the runtime's.
    #[inline(always)]
    pub unsafe fn read(frame: *const OmptFrame) -> OmptFrame {
        // SAFETY: by contract.
        unsafe {
            OmptFrame {
                exit: (&raw const (*frame).exit).read_volatile(),
                enter: (&raw const (*frame).enter).read_volatile(),
                exit_flags: (&raw const (*frame).exit_flags).read_volatile(),
                enter_flags: (&raw const (*frame).enter_flags).read_volatile(),
            }
        }
    }
}

/// `ompt_get_task_info_t`.
pub type GetTaskInfo = unsafe extern "C" fn(
    level: c_int,
    flags: *mut c_int,
    task: *mut *mut Data,
    frame: *mut *mut OmptFrame,
    region: *mut *mut Data,
    index: *mut c_int,
) -> c_int;

/// `ompt_callbacks_t`: the numbers under which callbacks are registered.
pub mod event {
    use super::c_int;
    pub const THREAD_BEGIN: c_int = 1;
    pub const THREAD_END: c_int = 2;
    pub const PARALLEL_BEGIN: c_int = 3;
    pub const PARALLEL_END: c_int = 4;
    pub const TASK_CREATE: c_int = 5;
    pub const TASK_SCHEDULE: c_int = 6;
    pub const IMPLICIT_TASK: c_int = 7;
    pub const TARGET: c_int = 8;
    pub const CONTROL_TOOL: c_int = 11;
    pub const DEVICE_INITIALIZE: c_int = 12;
    pub const DEVICE_FINALIZE: c_int = 13;
    pub const DEVICE_LOAD: c_int = 14;
    pub const DEVICE_UNLOAD: c_int = 15;
    pub const SYNC_REGION_WAIT: c_int = 16;
    pub const MUTEX_RELEASED: c_int = 17;
    pub const DEPENDENCES: c_int = 18;
    pub const TASK_DEPENDENCE: c_int = 19;
    pub const WORK: c_int = 20;
    pub const MASKED: c_int = 21;
    pub const SYNC_REGION: c_int = 23;
    pub const LOCK_INIT: c_int = 24;
    pub const LOCK_DESTROY: c_int = 25;
    pub const MUTEX_ACQUIRE: c_int = 26;
    pub const MUTEX_ACQUIRED: c_int = 27;
    pub const NEST_LOCK: c_int = 28;
    pub const FLUSH: c_int = 29;
    pub const CANCEL: c_int = 30;
    pub const REDUCTION: c_int = 31;
    pub const DISPATCH: c_int = 32;
    pub const TARGET_EMI: c_int = 33;
    pub const TARGET_DATA_OP_EMI: c_int = 34;
    pub const TARGET_SUBMIT_EMI: c_int = 35;
    pub const ERROR: c_int = 37;
}

/// `ompt_scope_endpoint_t`; 3 is both at once.
pub mod endpoint {
    use super::c_int;
    /// The scope begins.
    pub const BEGIN: c_int = 1;
    /// The scope ends.
    pub const END: c_int = 2;
}

/// `ompt_task_status_t`: the state of the task that ran before.
pub mod status {
    use super::c_int;
    pub const COMPLETE: c_int = 1;
    pub const CANCEL: c_int = 3;
    pub const DETACH: c_int = 4;
    pub const EARLY_FULFILL: c_int = 5;
    pub const LATE_FULFILL: c_int = 6;
    pub const SWITCH: c_int = 7;
    pub const TASKWAIT_COMPLETE: c_int = 8;
}

/// `ompt_task_flag_t`.
pub mod task_flag {
    pub const INITIAL: u32 = 0x0000_0001;
    pub const EXPLICIT: u32 = 0x0000_0004;
    pub const TARGET: u32 = 0x0000_0008;
    pub const TASKWAIT: u32 = 0x0000_0010;
    /// Tasks that run: LLVM's runtime sets one of them, for `target nowait` the second.
    pub const RUNS: u32 = EXPLICIT | TARGET;
    pub const UNDEFERRED: u32 = 0x0800_0000;
}

/// `ompt_parallel_flag_t`.
pub mod parallel_flag {
    /// The region's threads are a team; else a league.
    pub const TEAM: u32 = 0x8000_0000;
    /// They are the initial threads of teams.
    pub const LEAGUE: u32 = 0x4000_0000;
}

/// `ompt_work_t`.
pub mod work {
    pub const LOOP: u32 = 1;
    pub const SECTIONS: u32 = 2;
    pub const SINGLE_EXECUTOR: u32 = 3;
    pub const SINGLE_OTHER: u32 = 4;
    pub const WORKSHARE: u32 = 5;
    pub const DISTRIBUTE: u32 = 6;
    pub const TASKLOOP: u32 = 7;
    pub const SCOPE: u32 = 8;
    pub const LOOP_STATIC: u32 = 10;
    pub const LOOP_DYNAMIC: u32 = 11;
    pub const LOOP_GUIDED: u32 = 12;
    pub const LOOP_OTHER: u32 = 13;
}

/// `ompt_sync_region_t`.
pub mod sync {
    use super::c_int;
    /// Deprecated, used by old runtimes (LLVM up to 16): end of worksharing, of regions and of leagues.
    pub const BARRIER_IMPLICIT: c_int = 2;
    pub const BARRIER_EXPLICIT: c_int = 3;
    pub const TASKWAIT: c_int = 5;
    pub const TASKGROUP: c_int = 6;
    pub const REDUCTION: c_int = 7;
    pub const BARRIER_IMPLICIT_WORKSHARE: c_int = 8;
    pub const BARRIER_IMPLICIT_PARALLEL: c_int = 9;
    pub const BARRIER_TEAMS: c_int = 10;
}

/// `ompt_mutex_t`.
pub mod mutex {
    use super::c_int;
    pub const TEST_LOCK: c_int = 2;
    pub const NEST_LOCK: c_int = 3;
    pub const TEST_NEST_LOCK: c_int = 4;
    pub const CRITICAL: c_int = 5;
    pub const ATOMIC: c_int = 6;
    pub const ORDERED: c_int = 7;
}

/// `ompt_dispatch_t`.
pub mod dispatch {
    use super::c_int;
    pub const LOOP_CHUNK: c_int = 3;
    pub const TASKLOOP_CHUNK: c_int = 4;
    pub const DISTRIBUTE_CHUNK: c_int = 5;
}

/// Lowest address of an object. LLVM passes field offsets from a null team (0x220 and the like) as pointers.
const MIN_OBJECT_ADDRESS: usize = 64 << 10;

/// Whether the runtime's pointer can point to anything.
#[inline(always)]
pub fn is_object<T>(pointer: *const T) -> bool {
    pointer as usize >= MIN_OBJECT_ADDRESS
}
