//! The events of ovni's `nodes` model, version 1.0.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'D';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

events! {
    DEPENDENCIES_REGISTERING_TASK_ACCESSES_BEGIN = b"DR[" plain () Push(Channel::Subsystem, 1, "Dependencies: Registering task accesses"), "begins Dependencies: Registering task accesses";
    DEPENDENCIES_REGISTERING_TASK_ACCESSES_END = b"DR]" plain () Pop(Channel::Subsystem, 1, "Dependencies: Registering task accesses"), "ends Dependencies: Registering task accesses";
    DEPENDENCIES_UNREGISTERING_TASK_ACCESSES_BEGIN = b"DU[" plain () Push(Channel::Subsystem, 2, "Dependencies: Unregistering task accesses"), "begins Dependencies: Unregistering task accesses";
    DEPENDENCIES_UNREGISTERING_TASK_ACCESSES_END = b"DU]" plain () Pop(Channel::Subsystem, 2, "Dependencies: Unregistering task accesses"), "ends Dependencies: Unregistering task accesses";
    IF0_WAITING_FOR_AN_IF0_TASK_BEGIN = b"DW[" plain () Push(Channel::Subsystem, 3, "If0: Waiting for an If0 task"), "begins If0: Waiting for an If0 task";
    IF0_WAITING_FOR_AN_IF0_TASK_END = b"DW]" plain () Pop(Channel::Subsystem, 3, "If0: Waiting for an If0 task"), "ends If0: Waiting for an If0 task";
    IF0_EXECUTING_AN_IF0_TASK_INLINE_BEGIN = b"DI[" plain () Push(Channel::Subsystem, 4, "If0: Executing an If0 task inline"), "begins If0: Executing an If0 task inline";
    IF0_EXECUTING_AN_IF0_TASK_INLINE_END = b"DI]" plain () Pop(Channel::Subsystem, 4, "If0: Executing an If0 task inline"), "ends If0: Executing an If0 task inline";
    TASKWAIT_TASKWAIT_BEGIN = b"DT[" plain () Push(Channel::Subsystem, 5, "Taskwait: Taskwait"), "begins Taskwait: Taskwait";
    TASKWAIT_TASKWAIT_END = b"DT]" plain () Pop(Channel::Subsystem, 5, "Taskwait: Taskwait"), "ends Taskwait: Taskwait";
    ADD_TASK_CREATING_A_TASK_BEGIN = b"DC[" plain () Push(Channel::Subsystem, 6, "Add Task: Creating a task"), "begins Add Task: Creating a task";
    ADD_TASK_CREATING_A_TASK_END = b"DC]" plain () Pop(Channel::Subsystem, 6, "Add Task: Creating a task"), "ends Add Task: Creating a task";
    ADD_TASK_SUBMITTING_A_TASK_BEGIN = b"DS[" plain () Push(Channel::Subsystem, 7, "Add Task: Submitting a task"), "begins Add Task: Submitting a task";
    ADD_TASK_SUBMITTING_A_TASK_END = b"DS]" plain () Pop(Channel::Subsystem, 7, "Add Task: Submitting a task"), "ends Add Task: Submitting a task";
    SPAWN_FUNCTION_SPAWNING_A_FUNCTION_BEGIN = b"DP[" plain () Push(Channel::Subsystem, 8, "Spawn Function: Spawning a function"), "begins Spawn Function: Spawning a function";
    SPAWN_FUNCTION_SPAWNING_A_FUNCTION_END = b"DP]" plain () Pop(Channel::Subsystem, 8, "Spawn Function: Spawning a function"), "ends Spawn Function: Spawning a function";
}
