//! The events of ovni's `nanos6` model, version 1.1.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'6';
/// The model version that these events belong to.
pub const VERSION: &str = "1.1.0";

events! {
    TYPE_CREATE = b"6Yc" jumbo (typeid: u32, label: str) Rule, "creates task type {typeid} named \"{label}\"";
    TASK_CREATE = b"6Tc" plain (taskid: u32, typeid: u32) Rule, "creates task {taskid} of type {typeid}";
    TASK_EXECUTE = b"6Tx" plain (taskid: u32) Rule, "executes task {taskid}";
    TASK_END = b"6Te" plain (taskid: u32) Rule, "ends task {taskid}";
    TASK_PAUSE = b"6Tp" plain (taskid: u32) Rule, "pauses task {taskid}";
    TASK_RESUME = b"6Tr" plain (taskid: u32) Rule, "resumes task {taskid}";
    WORKER_LOOKING_FOR_WORK_BEGIN = b"6W[" plain () Push(Channel::Subsystem, 19, "Worker: Looking for work"), "begins Worker: Looking for work";
    WORKER_LOOKING_FOR_WORK_END = b"6W]" plain () Pop(Channel::Subsystem, 19, "Worker: Looking for work"), "ends Worker: Looking for work";
    WORKER_HANDLING_TASK_BEGIN = b"6Wt" plain () Push(Channel::Subsystem, 18, "Worker: Handling task"), "begins Worker: Handling task";
    WORKER_HANDLING_TASK_END = b"6WT" plain () Pop(Channel::Subsystem, 18, "Worker: Handling task"), "ends Worker: Handling task";
    WORKER_SWITCHING_TO_ANOTHER_THREAD_BEGIN = b"6Ww" plain () Push(Channel::Subsystem, 20, "Worker: Switching to another thread"), "begins Worker: Switching to another thread";
    WORKER_SWITCHING_TO_ANOTHER_THREAD_END = b"6WW" plain () Pop(Channel::Subsystem, 20, "Worker: Switching to another thread"), "ends Worker: Switching to another thread";
    WORKER_MIGRATING_CPU_BEGIN = b"6Wm" plain () Push(Channel::Subsystem, 21, "Worker: Migrating CPU"), "begins Worker: Migrating CPU";
    WORKER_MIGRATING_CPU_END = b"6WM" plain () Pop(Channel::Subsystem, 21, "Worker: Migrating CPU"), "ends Worker: Migrating CPU";
    WORKER_SUSPENDING_THREAD_BEGIN = b"6Ws" plain () Push(Channel::Subsystem, 22, "Worker: Suspending thread"), "begins Worker: Suspending thread";
    WORKER_SUSPENDING_THREAD_END = b"6WS" plain () Pop(Channel::Subsystem, 22, "Worker: Suspending thread"), "ends Worker: Suspending thread";
    WORKER_RESUMING_ANOTHER_THREAD_BEGIN = b"6Wr" plain () Push(Channel::Subsystem, 23, "Worker: Resuming another thread"), "begins Worker: Resuming another thread";
    WORKER_RESUMING_ANOTHER_THREAD_END = b"6WR" plain () Pop(Channel::Subsystem, 23, "Worker: Resuming another thread"), "ends Worker: Resuming another thread";
    WORKER_SPONGE_MODE_BEGIN = b"6Wg" plain () Push(Channel::Subsystem, 24, "Worker: Sponge mode"), "begins Worker: Sponge mode";
    WORKER_SPONGE_MODE_END = b"6WG" plain () Pop(Channel::Subsystem, 24, "Worker: Sponge mode"), "ends Worker: Sponge mode";
    POINT_WAKES_WORKER = b"6W*" plain () Ignore, "point: wakes another worker";
    IDLE_PROGRESSING = b"6Pp" plain () Set(Channel::Idle, 100, "Progressing"), "becomes Progressing";
    IDLE_RESTING = b"6Pr" plain () Set(Channel::Idle, 101, "Resting"), "becomes Resting";
    IDLE_ABSORBING_NOISE = b"6Pa" plain () Set(Channel::Idle, 102, "Absorbing noise"), "becomes Absorbing noise";
    TASK_CREATING_BEGIN = b"6C[" plain () Push(Channel::Subsystem, 3, "Task: Creating"), "begins Task: Creating";
    TASK_CREATING_END = b"6C]" plain () Pop(Channel::Subsystem, 3, "Task: Creating"), "ends Task: Creating";
    TASK_SUBMITTING_BEGIN = b"6U[" plain () Push(Channel::Subsystem, 4, "Task: Submitting"), "begins Task: Submitting";
    TASK_SUBMITTING_END = b"6U]" plain () Pop(Channel::Subsystem, 4, "Task: Submitting"), "ends Task: Submitting";
    TASK_SPAWNING_FUNCTION_BEGIN = b"6F[" plain () Push(Channel::Subsystem, 5, "Task: Spawning function"), "begins Task: Spawning function";
    TASK_SPAWNING_FUNCTION_END = b"6F]" plain () Pop(Channel::Subsystem, 5, "Task: Spawning function"), "ends Task: Spawning function";
    TASK_FOR_COLLABORATOR_BEGIN = b"6t[" plain () Ignore, "point: starts as task-for collaborator";
    TASK_FOR_COLLABORATOR_END = b"6t]" plain () Ignore, "point: stops as task-for collaborator";
    TASK_RUNNING_TASK_FOR_BEGIN = b"6O[" plain () Push(Channel::Subsystem, 6, "Task: Running task for"), "begins Task: Running task for", Trace;
    TASK_RUNNING_TASK_FOR_END = b"6O]" plain () Pop(Channel::Subsystem, 6, "Task: Running task for"), "ends Task: Running task for", Trace;
    MEMORY_ALLOCATING_BEGIN = b"6Ma" plain () Push(Channel::Subsystem, 16, "Memory: Allocating"), "begins Memory: Allocating";
    MEMORY_ALLOCATING_END = b"6MA" plain () Pop(Channel::Subsystem, 16, "Memory: Allocating"), "ends Memory: Allocating";
    MEMORY_FREEING_BEGIN = b"6Mf" plain () Push(Channel::Subsystem, 17, "Memory: Freeing"), "begins Memory: Freeing";
    MEMORY_FREEING_END = b"6MF" plain () Pop(Channel::Subsystem, 17, "Memory: Freeing"), "ends Memory: Freeing";
    DEPENDENCY_REGISTERING_BEGIN = b"6Dr" plain () Push(Channel::Subsystem, 10, "Dependency: Registering"), "begins Dependency: Registering";
    DEPENDENCY_REGISTERING_END = b"6DR" plain () Pop(Channel::Subsystem, 10, "Dependency: Registering"), "ends Dependency: Registering";
    DEPENDENCY_UNREGISTERING_BEGIN = b"6Du" plain () Push(Channel::Subsystem, 11, "Dependency: Unregistering"), "begins Dependency: Unregistering";
    DEPENDENCY_UNREGISTERING_END = b"6DU" plain () Pop(Channel::Subsystem, 11, "Dependency: Unregistering"), "ends Dependency: Unregistering";
    SCHEDULER_SERVING_TASKS_BEGIN = b"6S[" plain () Push(Channel::Subsystem, 9, "Scheduler: Serving tasks"), "begins Scheduler: Serving tasks";
    SCHEDULER_SERVING_TASKS_END = b"6S]" plain () Pop(Channel::Subsystem, 9, "Scheduler: Serving tasks"), "ends Scheduler: Serving tasks";
    SCHEDULER_ADDING_READY_TASKS_BEGIN = b"6Sa" plain () Push(Channel::Subsystem, 7, "Scheduler: Adding ready tasks"), "begins Scheduler: Adding ready tasks";
    SCHEDULER_ADDING_READY_TASKS_END = b"6SA" plain () Pop(Channel::Subsystem, 7, "Scheduler: Adding ready tasks"), "ends Scheduler: Adding ready tasks";
    SCHEDULER_PROCESSING_READY_TASKS_BEGIN = b"6Sp" plain () Push(Channel::Subsystem, 8, "Scheduler: Processing ready tasks"), "begins Scheduler: Processing ready tasks";
    SCHEDULER_PROCESSING_READY_TASKS_END = b"6SP" plain () Pop(Channel::Subsystem, 8, "Scheduler: Processing ready tasks"), "ends Scheduler: Processing ready tasks";
    POINT_SELF_ASSIGN = b"6S@" plain () Ignore, "point: assigns a task to itself";
    POINT_RECEIVE_TASK = b"6Sr" plain () Ignore, "point: receives a task from the server";
    POINT_SEND_TASK = b"6Ss" plain () Ignore, "point: sends a task to another thread";
    BLOCKING_BLOCKING_CURRENT_TASK_BEGIN = b"6Bb" plain () Push(Channel::Subsystem, 14, "Blocking: Blocking current task"), "begins Blocking: Blocking current task";
    BLOCKING_BLOCKING_CURRENT_TASK_END = b"6BB" plain () Pop(Channel::Subsystem, 14, "Blocking: Blocking current task"), "ends Blocking: Blocking current task";
    BLOCKING_UNBLOCKING_REMOTE_TASK_BEGIN = b"6Bu" plain () Push(Channel::Subsystem, 15, "Blocking: Unblocking remote task"), "begins Blocking: Unblocking remote task";
    BLOCKING_UNBLOCKING_REMOTE_TASK_END = b"6BU" plain () Pop(Channel::Subsystem, 15, "Blocking: Unblocking remote task"), "ends Blocking: Unblocking remote task";
    BLOCKING_TASKWAIT_BEGIN = b"6Bw" plain () Push(Channel::Subsystem, 12, "Blocking: Taskwait"), "begins Blocking: Taskwait";
    BLOCKING_TASKWAIT_END = b"6BW" plain () Pop(Channel::Subsystem, 12, "Blocking: Taskwait"), "ends Blocking: Taskwait";
    BLOCKING_WAIT_FOR_DEADLINE_BEGIN = b"6Bf" plain () Push(Channel::Subsystem, 13, "Blocking: Wait for deadline"), "begins Blocking: Wait for deadline";
    BLOCKING_WAIT_FOR_DEADLINE_END = b"6BF" plain () Pop(Channel::Subsystem, 13, "Blocking: Wait for deadline"), "ends Blocking: Wait for deadline";
    EXTERNAL_BEGIN = b"6He" plain () Push(Channel::ThreadType, 4, "External"), "begins External", Trace;
    EXTERNAL_END = b"6HE" plain () Pop(Channel::ThreadType, 4, "External"), "ends External";
    WORKER_BEGIN = b"6Hw" plain () Push(Channel::ThreadType, 3, "Worker"), "begins Worker", Trace;
    WORKER_END = b"6HW" plain () Pop(Channel::ThreadType, 3, "Worker"), "ends Worker";
    LEADER_BEGIN = b"6Hl" plain () Push(Channel::ThreadType, 1, "Leader"), "begins Leader", Trace;
    LEADER_END = b"6HL" plain () Pop(Channel::ThreadType, 1, "Leader"), "ends Leader";
    MAIN_BEGIN = b"6Hm" plain () Push(Channel::ThreadType, 2, "Main"), "begins Main", Trace;
    MAIN_END = b"6HM" plain () Pop(Channel::ThreadType, 2, "Main"), "ends Main";
}
