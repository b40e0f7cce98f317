//! The events of ovni's `nosv` model, version 2.7.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'V';
/// The model version that these events belong to.
pub const VERSION: &str = "2.7.0";

events! {
    TASK_CREATE = b"VTc" plain (taskid: u32, typeid: u32) Rule, "creates task {taskid} of type {typeid}";
    PARALLEL_TASK_CREATE = b"VTC" plain (taskid: u32, typeid: u32) Rule, "creates parallel task {taskid} of type {typeid}";
    TASK_EXECUTE = b"VTx" plain (taskid: u32, bodyid: u32) Rule, "executes task {taskid}, body {bodyid}";
    TASK_END = b"VTe" plain (taskid: u32, bodyid: u32) Rule, "ends task {taskid}, body {bodyid}";
    TASK_PAUSE = b"VTp" plain (taskid: u32, bodyid: u32) Rule, "pauses task {taskid}, body {bodyid}";
    TASK_RESUME = b"VTr" plain (taskid: u32, bodyid: u32) Rule, "resumes task {taskid}, body {bodyid}";
    TYPE_CREATE = b"VYc" jumbo (typeid: u32, label: str) Rule, "creates task type {typeid} named \"{label}\"";
    POINT_RECEIVE_TASK = b"VSr" plain () Ignore, "point: receives a task from the server";
    POINT_SEND_TASK = b"VSs" plain () Ignore, "point: sends a task to another thread";
    POINT_SELF_ASSIGN = b"VS@" plain () Ignore, "point: assigns a task to itself";
    SCHEDULER_HUNGRY_BEGIN = b"VSh" plain () Push(Channel::Subsystem, 6, "Scheduler: Hungry"), "begins Scheduler: Hungry";
    SCHEDULER_HUNGRY_END = b"VSf" plain () Pop(Channel::Subsystem, 6, "Scheduler: Hungry"), "ends Scheduler: Hungry";
    SCHEDULER_SERVING_BEGIN = b"VS[" plain () Push(Channel::Subsystem, 7, "Scheduler: Serving"), "begins Scheduler: Serving";
    SCHEDULER_SERVING_END = b"VS]" plain () Pop(Channel::Subsystem, 7, "Scheduler: Serving"), "ends Scheduler: Serving";
    SCHEDULER_SERVING_NONBLOCKING_BEGIN = b"VSN" plain () Push(Channel::Subsystem, 7, "Scheduler: Serving"), "begins Scheduler: Serving";
    SCHEDULER_SERVING_NONBLOCKING_END = b"VSn" plain () Pop(Channel::Subsystem, 7, "Scheduler: Serving"), "ends Scheduler: Serving";
    SCHEDULER_SUBMITTING_BEGIN = b"VU[" plain () Push(Channel::Subsystem, 8, "Scheduler: Submitting"), "begins Scheduler: Submitting";
    SCHEDULER_SUBMITTING_END = b"VU]" plain () Pop(Channel::Subsystem, 8, "Scheduler: Submitting"), "ends Scheduler: Submitting";
    MEMORY_ALLOCATING_BEGIN = b"VMa" plain () Push(Channel::Subsystem, 9, "Memory: Allocating"), "begins Memory: Allocating";
    MEMORY_ALLOCATING_END = b"VMA" plain () Pop(Channel::Subsystem, 9, "Memory: Allocating"), "ends Memory: Allocating";
    MEMORY_FREEING_BEGIN = b"VMf" plain () Push(Channel::Subsystem, 10, "Memory: Freeing"), "begins Memory: Freeing";
    MEMORY_FREEING_END = b"VMF" plain () Pop(Channel::Subsystem, 10, "Memory: Freeing"), "ends Memory: Freeing";
    API_CREATE_BEGIN = b"VAr" plain () Push(Channel::Subsystem, 12, "API: Create"), "begins API: Create";
    API_CREATE_END = b"VAR" plain () Pop(Channel::Subsystem, 12, "API: Create"), "ends API: Create";
    API_DESTROY_BEGIN = b"VAd" plain () Push(Channel::Subsystem, 13, "API: Destroy"), "begins API: Destroy";
    API_DESTROY_END = b"VAD" plain () Pop(Channel::Subsystem, 13, "API: Destroy"), "ends API: Destroy";
    API_SUBMIT_BEGIN = b"VAs" plain () Push(Channel::Subsystem, 14, "API: Submit"), "begins API: Submit";
    API_SUBMIT_END = b"VAS" plain () Pop(Channel::Subsystem, 14, "API: Submit"), "ends API: Submit";
    API_PAUSE_BEGIN = b"VAp" plain () Push(Channel::Subsystem, 15, "API: Pause"), "begins API: Pause";
    API_PAUSE_END = b"VAP" plain () Pop(Channel::Subsystem, 15, "API: Pause"), "ends API: Pause";
    API_YIELD_BEGIN = b"VAy" plain () Push(Channel::Subsystem, 16, "API: Yield"), "begins API: Yield";
    API_YIELD_END = b"VAY" plain () Pop(Channel::Subsystem, 16, "API: Yield"), "ends API: Yield";
    API_WAITFOR_BEGIN = b"VAw" plain () Push(Channel::Subsystem, 17, "API: Waitfor"), "begins API: Waitfor";
    API_WAITFOR_END = b"VAW" plain () Pop(Channel::Subsystem, 17, "API: Waitfor"), "ends API: Waitfor";
    API_SCHEDULING_POINT_BEGIN = b"VAc" plain () Push(Channel::Subsystem, 18, "API: Scheduling point"), "begins API: Scheduling point";
    API_SCHEDULING_POINT_END = b"VAC" plain () Pop(Channel::Subsystem, 18, "API: Scheduling point"), "ends API: Scheduling point";
    API_ATTACH_BEGIN = b"VAa" plain () Push(Channel::Subsystem, 19, "API: Attach"), "begins API: Attach", Trace;
    API_ATTACH_END = b"VAA" plain () Pop(Channel::Subsystem, 19, "API: Attach"), "ends API: Attach";
    API_DETACH_BEGIN = b"VAe" plain () Push(Channel::Subsystem, 20, "API: Detach"), "begins API: Detach";
    API_DETACH_END = b"VAE" plain () Pop(Channel::Subsystem, 20, "API: Detach"), "ends API: Detach";
    API_MUTEX_LOCK_BEGIN = b"VAl" plain () Push(Channel::Subsystem, 21, "API: Mutex lock"), "begins API: Mutex lock";
    API_MUTEX_LOCK_END = b"VAL" plain () Pop(Channel::Subsystem, 21, "API: Mutex lock"), "ends API: Mutex lock";
    API_MUTEX_TRYLOCK_BEGIN = b"VAt" plain () Push(Channel::Subsystem, 22, "API: Mutex trylock"), "begins API: Mutex trylock";
    API_MUTEX_TRYLOCK_END = b"VAT" plain () Pop(Channel::Subsystem, 22, "API: Mutex trylock"), "ends API: Mutex trylock";
    API_MUTEX_UNLOCK_BEGIN = b"VAu" plain () Push(Channel::Subsystem, 23, "API: Mutex unlock"), "begins API: Mutex unlock";
    API_MUTEX_UNLOCK_END = b"VAU" plain () Pop(Channel::Subsystem, 23, "API: Mutex unlock"), "ends API: Mutex unlock";
    API_BARRIER_WAIT_BEGIN = b"VAb" plain () Push(Channel::Subsystem, 24, "API: Barrier wait"), "begins API: Barrier wait";
    API_BARRIER_WAIT_END = b"VAB" plain () Pop(Channel::Subsystem, 24, "API: Barrier wait"), "ends API: Barrier wait";
    API_COND_WAIT_BEGIN = b"VAo" plain () Push(Channel::Subsystem, 25, "API: Cond wait"), "begins API: Cond wait";
    API_COND_WAIT_END = b"VAO" plain () Pop(Channel::Subsystem, 25, "API: Cond wait"), "ends API: Cond wait";
    API_COND_SIGNAL_BEGIN = b"VAg" plain () Push(Channel::Subsystem, 26, "API: Cond signal"), "begins API: Cond signal";
    API_COND_SIGNAL_END = b"VAG" plain () Pop(Channel::Subsystem, 26, "API: Cond signal"), "ends API: Cond signal";
    API_COND_BROADCAST_BEGIN = b"VAk" plain () Push(Channel::Subsystem, 27, "API: Cond broadcast"), "begins API: Cond broadcast";
    API_COND_BROADCAST_END = b"VAK" plain () Pop(Channel::Subsystem, 27, "API: Cond broadcast"), "ends API: Cond broadcast";
    API_JOIN_BEGIN = b"VAj" plain () Push(Channel::Subsystem, 28, "API: Join"), "begins API: Join";
    API_JOIN_END = b"VAJ" plain () Pop(Channel::Subsystem, 28, "API: Join"), "ends API: Join";
    API_JOIN_ALL_BEGIN = b"VAm" plain () Push(Channel::Subsystem, 29, "API: Join all"), "begins API: Join all";
    API_JOIN_ALL_END = b"VAM" plain () Pop(Channel::Subsystem, 29, "API: Join all"), "ends API: Join all";
    API_WAIT_BEGIN = b"VAi" plain () Push(Channel::Subsystem, 30, "API: Wait"), "begins API: Wait";
    API_WAIT_END = b"VAI" plain () Pop(Channel::Subsystem, 30, "API: Wait"), "ends API: Wait";
    API_WAIT_ALL_BEGIN = b"VAn" plain () Push(Channel::Subsystem, 31, "API: Wait all"), "begins API: Wait all";
    API_WAIT_ALL_END = b"VAN" plain () Pop(Channel::Subsystem, 31, "API: Wait all"), "ends API: Wait all";
    ATTACH_BEGIN_OLD = b"VHa" plain () Ignore, "point: starts attaching (old)";
    ATTACH_END_OLD = b"VHA" plain () Ignore, "point: ends attaching (old)";
    THREAD_WORKER_BEGIN = b"VHw" plain () Push(Channel::Subsystem, 32, "Thread: Worker"), "begins Thread: Worker", Trace;
    THREAD_WORKER_END = b"VHW" plain () Pop(Channel::Subsystem, 32, "Thread: Worker"), "ends Thread: Worker";
    THREAD_DELEGATE_BEGIN = b"VHd" plain () Push(Channel::Subsystem, 33, "Thread: Delegate"), "begins Thread: Delegate", Trace;
    THREAD_DELEGATE_END = b"VHD" plain () Pop(Channel::Subsystem, 33, "Thread: Delegate"), "ends Thread: Delegate";
    IDLE_PROGRESSING = b"VPp" plain () Set(Channel::Idle, 100, "Progressing"), "becomes Progressing";
    IDLE_RESTING = b"VPr" plain () Set(Channel::Idle, 101, "Resting"), "becomes Resting";
    IDLE_ABSORBING_NOISE = b"VPa" plain () Set(Channel::Idle, 102, "Absorbing noise"), "becomes Absorbing noise";
    HARDWARE_COUNTERS = b"VWC" jumbo (value: i64) Rule, "counts hardware events {value}";
}
