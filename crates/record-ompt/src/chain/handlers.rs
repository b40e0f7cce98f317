//! The callbacks that call both tools.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use super::tool_data::{
    begin_fork, begin_member, end_fork, end_member, ours, ours_of_fork, ours_of_member, release, renew,
    theirs, theirs_of_fork, theirs_of_member,
};
use crate::abi::{Callback, Data, Dependence, Lookup, OmptFrame, endpoint, event, status};
use crate::profiling::{self, Profile};
use crate::sink::Sink;
use crate::trace_sink::Trace;
use crate::{device, memory, mutexes, parallel, sync, tasks, work};

/// One more than the largest number of a callback.
const EVENTS: usize = 38;

/// Their callbacks by event number; 0 is none.
pub(super) static THEIRS: [AtomicUsize; EVENTS] = [const { AtomicUsize::new(0) }; EVENTS];
/// The argument that one of the tools gets: tool data are translated, all else is handed on.
macro_rules! argument {
    ($translate:ident, data, $name:ident) => {
        $translate($name)
    };
    (ours, fork, $name:ident) => {
        ours_of_fork($name)
    };
    (theirs, fork, $name:ident) => {
        theirs_of_fork($name)
    };
    (ours, member, $name:ident) => {
        ours_of_member($name)
    };
    (theirs, member, $name:ident) => {
        theirs_of_member($name)
    };
    ($translate:ident, plain, $name:ident) => {
        $name
    };
}

/// `name [EVENT] (role argument: type, …) = our callback or none, before { … } after { … };`
macro_rules! handlers {
    ($( $name:ident [$event:expr] ( $($role:ident $arg:ident : $type:ty),* ) = $own:expr, $before:block $after:block; )*) => {
        $(
            unsafe extern "C" fn $name<S: Sink>($($arg: $type),*) {
                $before
                type Function = unsafe extern "C" fn($($type),*);
                let own: Option<Function> = $own;
                if let Some(own) = own {
                    // SAFETY: our callback of this event, with the runtime's arguments and translated tool
                    // data.
                    unsafe { own($(argument!(ours, $role, $arg)),*) };
                }
                let next = THEIRS.get($event as usize).map_or(0, |callback| callback.load(Acquire));
                if next != 0 {
                    // SAFETY: registered for this event by the other tool, so of this type.
                    unsafe { transmute::<usize, Function>(next)($(argument!(theirs, $role, $arg)),*) };
                }
                $after
            }
        )*
        /// Every event that one of the sink's callbacks takes, or that names tool data.
        fn handlers_of<S: Sink>() -> Vec<Handler> {
            vec![$({
                let own: Option<unsafe extern "C" fn($($type),*)> = $own;
                // SAFETY: only changes the types under which the addresses are passed on.
                unsafe {
                    Handler {
                        event: $event,
                        own: own.map(|own| transmute::<*const (), Callback>(own as *const ())),
                        both: transmute::<*const (), Callback>($name::<S> as *const ()),
                    }
                }
            }),*]
        }
    };
}

/// Every event that one of our callbacks takes, or that names tool data, in this process's mode.
pub fn handlers() -> Vec<Handler> {
    if profiling::is_on() { handlers_of::<Profile>() } else { handlers_of::<Trace>() }
}

/// The callbacks of an event that can be registered.
pub struct Handler {
    /// The event's number.
    pub event: c_int,
    /// Our own callback, if any.
    pub own: Option<Callback>,
    /// Calls both tools' callbacks.
    pub both: Callback,
}

handlers! {
    thread_begin [event::THREAD_BEGIN] (plain kind: c_int, plain thread: *mut Data)
        = Some(parallel::thread_begin), {} {};
    thread_end [event::THREAD_END] (plain thread: *mut Data) = Some(parallel::thread_end), {} {};
    parallel_begin [event::PARALLEL_BEGIN] (data task: *mut Data, plain frame: *const OmptFrame,
        data region: *mut Data, plain requested: c_uint, plain flags: c_int, plain codeptr: *const c_void)
        = Some(parallel::parallel_begin), { begin_fork(region) } {};
    parallel_end [event::PARALLEL_END] (fork region: *mut Data, data task: *mut Data, plain flags: c_int,
        plain codeptr: *const c_void) = Some(parallel::parallel_end), {} { end_fork() };
    implicit_task [event::IMPLICIT_TASK] (plain scope: c_int, data region: *mut Data, member task: *mut Data,
        plain team: c_uint, plain index: c_uint, plain flags: c_int) = Some(parallel::implicit_task),
        { if scope == endpoint::BEGIN { begin_member(task) } } { if scope == endpoint::END { end_member(task); parallel::forget_copy(task, index) } };
    task_create [event::TASK_CREATE] (data task: *mut Data, plain frame: *const OmptFrame, data new_task: *mut Data,
        plain flags: c_int, plain has_dependences: c_int, plain codeptr: *const c_void)
        = Some(tasks::task_create::<S>), { renew(new_task) } {};
    task_schedule [event::TASK_SCHEDULE] (data prior: *mut Data, plain prior_status: c_int, data next: *mut Data)
        = Some(tasks::task_schedule::<S>), {} { if ends_task(prior_status) { release(prior) } };
    dependences [event::DEPENDENCES] (data task: *mut Data, plain list: *const Dependence, plain count: c_int)
        = Some(tasks::dependences), {} {};
    task_dependence [event::TASK_DEPENDENCE] (data source: *mut Data, data sink: *mut Data)
        = Some(memory::task_dependence), {} {};
    work_relay [event::WORK] (plain kind: c_int, plain scope: c_int, data region: *mut Data, data task: *mut Data,
        plain count: u64, plain codeptr: *const c_void) = Some(work::work::<S>), {} {};
    dispatch [event::DISPATCH] (data region: *mut Data, data task: *mut Data, plain kind: c_int,
        plain instance: Data) = Some(work::dispatch), {} {};
    masked [event::MASKED] (plain scope: c_int, data region: *mut Data, data task: *mut Data,
        plain codeptr: *const c_void) = Some(work::masked), {} {};
    cancel [event::CANCEL] (data task: *mut Data, plain flags: c_int, plain codeptr: *const c_void)
        = Some(work::cancel), {} {};
    sync_region [event::SYNC_REGION] (plain kind: c_int, plain scope: c_int, data region: *mut Data,
        data task: *mut Data, plain codeptr: *const c_void) = Some(sync::sync_region), {} {};
    sync_region_wait [event::SYNC_REGION_WAIT] (plain kind: c_int, plain scope: c_int, data region: *mut Data,
        data task: *mut Data, plain codeptr: *const c_void) = Some(sync::sync_region_wait::<S>), {} {};
    reduction [event::REDUCTION] (plain kind: c_int, plain scope: c_int, data region: *mut Data,
        data task: *mut Data, plain codeptr: *const c_void) = Some(memory::reduction), {} {};
    mutex_acquire [event::MUTEX_ACQUIRE] (plain kind: c_int, plain hint: c_uint, plain implementation: c_uint,
        plain object: u64, plain codeptr: *const c_void) = Some(mutexes::mutex_acquire), {} {};
    mutex_acquired [event::MUTEX_ACQUIRED] (plain kind: c_int, plain object: u64, plain codeptr: *const c_void)
        = Some(mutexes::mutex_acquired), {} {};
    mutex_released [event::MUTEX_RELEASED] (plain kind: c_int, plain object: u64, plain codeptr: *const c_void)
        = Some(mutexes::mutex_released), {} {};
    nest_lock [event::NEST_LOCK] (plain scope: c_int, plain object: u64, plain codeptr: *const c_void)
        = Some(mutexes::nest_lock), {} {};
    target_old [event::TARGET] (plain kind: c_int, plain scope: c_int, plain device: c_int, data task: *mut Data,
        plain target: u64, plain codeptr: *const c_void) = None, {} {};
    target_emi [event::TARGET_EMI] (plain kind: c_int, plain scope: c_int, plain device: c_int,
        data task: *mut Data, data target_task: *mut Data, plain target: *mut Data, plain codeptr: *const c_void)
        = Some(device::target_emi), {} {};
    target_data_op_emi [event::TARGET_DATA_OP_EMI] (plain scope: c_int, data target_task: *mut Data,
        plain target: *mut Data, plain operation: *mut u64, plain kind: c_int, plain source: *mut c_void,
        plain source_device: c_int, plain destination: *mut c_void, plain destination_device: c_int,
        plain bytes: usize, plain codeptr: *const c_void) = Some(device::target_data_op_emi), {} {};
    target_submit_emi [event::TARGET_SUBMIT_EMI] (plain scope: c_int, plain target: *mut Data,
        plain operation: *mut u64, plain teams: c_uint) = Some(device::target_submit_emi), {} {};
    device_initialize [event::DEVICE_INITIALIZE] (plain device: c_int, plain kind: *const c_char,
        plain handle: *mut c_void, plain lookup: Option<Lookup>, plain documentation: *const c_char)
        = Some(device::device_initialize), {} {};
    device_finalize [event::DEVICE_FINALIZE] (plain device: c_int) = Some(device::device_finalize), {} {};
    device_load [event::DEVICE_LOAD] (plain device: c_int, plain file: *const c_char, plain offset: i64,
        plain address: *mut c_void, plain bytes: usize, plain host: *mut c_void, plain on_device: *mut c_void,
        plain module: u64) = Some(device::device_load), {} {};
    device_unload [event::DEVICE_UNLOAD] (plain device: c_int, plain module: u64)
        = Some(device::device_unload), {} {};
    flush_relay [event::FLUSH] (plain thread: *mut Data, plain codeptr: *const c_void)
        = Some(memory::flush), {} {};
    lock_init [event::LOCK_INIT] (plain kind: c_int, plain hint: c_uint, plain implementation: c_uint,
        plain object: u64, plain codeptr: *const c_void) = Some(memory::lock_init), {} {};
    lock_destroy [event::LOCK_DESTROY] (plain kind: c_int, plain object: u64, plain codeptr: *const c_void)
        = Some(memory::lock_destroy), {} {};
    error_relay [event::ERROR] (plain severity: c_int, plain message: *const c_char, plain length: usize,
        plain codeptr: *const c_void) = Some(memory::error), {} {};
}

fn ends_task(prior_status: c_int) -> bool {
    matches!(
        prior_status,
        status::COMPLETE | status::CANCEL | status::LATE_FULFILL | status::TASKWAIT_COMPLETE
    )
}
