//! The events of ovni's `openmp` model, version 1.2.1.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'P';
/// The model version that these events belong to.
pub const VERSION: &str = "1.2.1";

// The team of a region rests on events of its other threads.
events! {
    BARRIER_PLAIN_BEGIN = b"PBb" plain () Push(Channel::Subsystem, 3, "Barrier: Plain"), "begins Barrier: Plain", Trace;
    BARRIER_PLAIN_END = b"PBB" plain () Pop(Channel::Subsystem, 3, "Barrier: Plain"), "ends Barrier: Plain";
    BARRIER_JOIN_BEGIN = b"PBj" plain () Push(Channel::Subsystem, 2, "Barrier: Join"), "begins Barrier: Join", Trace;
    BARRIER_JOIN_END = b"PBJ" plain () Pop(Channel::Subsystem, 2, "Barrier: Join"), "ends Barrier: Join";
    BARRIER_FORK_BEGIN = b"PBf" plain () Push(Channel::Subsystem, 1, "Barrier: Fork"), "begins Barrier: Fork";
    BARRIER_FORK_END = b"PBF" plain () Pop(Channel::Subsystem, 1, "Barrier: Fork"), "ends Barrier: Fork";
    BARRIER_TASK_BEGIN = b"PBt" plain () Push(Channel::Subsystem, 5, "Barrier: Task"), "begins Barrier: Task";
    BARRIER_TASK_END = b"PBT" plain () Pop(Channel::Subsystem, 5, "Barrier: Task"), "ends Barrier: Task";
    BARRIER_SPIN_BEGIN = b"PBs" plain () Ignore, "point: starts to spin in a barrier";
    BARRIER_SPIN_END = b"PBS" plain () Ignore, "point: stops spinning in a barrier";
    CRITICAL_ACQUIRING_BEGIN = b"PIa" plain () Push(Channel::Subsystem, 6, "Critical: Acquiring"), "begins Critical: Acquiring";
    CRITICAL_ACQUIRING_END = b"PIA" plain () Pop(Channel::Subsystem, 6, "Critical: Acquiring"), "ends Critical: Acquiring";
    CRITICAL_RELEASING_BEGIN = b"PIr" plain () Push(Channel::Subsystem, 7, "Critical: Releasing"), "begins Critical: Releasing";
    CRITICAL_RELEASING_END = b"PIR" plain () Pop(Channel::Subsystem, 7, "Critical: Releasing"), "ends Critical: Releasing";
    CRITICAL_SECTION_BEGIN = b"PI[" plain () Push(Channel::Subsystem, 8, "Critical: Section"), "begins Critical: Section";
    CRITICAL_SECTION_END = b"PI]" plain () Pop(Channel::Subsystem, 8, "Critical: Section"), "ends Critical: Section";
    WORK_DISTRIBUTION_DISTRIBUTE_BEGIN = b"PWd" plain () Push(Channel::Subsystem, 9, "Work-distribution: Distribute"), "begins Work-distribution: Distribute";
    WORK_DISTRIBUTION_DISTRIBUTE_END = b"PWD" plain () Pop(Channel::Subsystem, 9, "Work-distribution: Distribute"), "ends Work-distribution: Distribute";
    WORK_DISTRIBUTION_DYNAMIC_FOR_INITIALIZATION_BEGIN = b"PWy" plain () Push(Channel::Subsystem, 11, "Work-distribution: Dynamic for initialization"), "begins Work-distribution: Dynamic for initialization";
    WORK_DISTRIBUTION_DYNAMIC_FOR_INITIALIZATION_END = b"PWY" plain () Pop(Channel::Subsystem, 11, "Work-distribution: Dynamic for initialization"), "ends Work-distribution: Dynamic for initialization";
    WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_BEGIN = b"PWc" plain () Push(Channel::Subsystem, 10, "Work-distribution: Dynamic for chunk"), "begins Work-distribution: Dynamic for chunk";
    WORK_DISTRIBUTION_DYNAMIC_FOR_CHUNK_END = b"PWC" plain () Pop(Channel::Subsystem, 10, "Work-distribution: Dynamic for chunk"), "ends Work-distribution: Dynamic for chunk";
    WORK_DISTRIBUTION_STATIC_FOR_CHUNK_BEGIN = b"PWs" plain () Push(Channel::Subsystem, 12, "Work-distribution: Static for chunk"), "begins Work-distribution: Static for chunk";
    WORK_DISTRIBUTION_STATIC_FOR_CHUNK_END = b"PWS" plain () Pop(Channel::Subsystem, 12, "Work-distribution: Static for chunk"), "ends Work-distribution: Static for chunk";
    WORK_DISTRIBUTION_SECTION_BEGIN = b"PWe" plain () Push(Channel::Subsystem, 13, "Work-distribution: Section"), "begins Work-distribution: Section";
    WORK_DISTRIBUTION_SECTION_END = b"PWE" plain () Pop(Channel::Subsystem, 13, "Work-distribution: Section"), "ends Work-distribution: Section";
    WORK_DISTRIBUTION_SINGLE_BEGIN = b"PWi" plain () Push(Channel::Subsystem, 14, "Work-distribution: Single"), "begins Work-distribution: Single";
    WORK_DISTRIBUTION_SINGLE_END = b"PWI" plain () Pop(Channel::Subsystem, 14, "Work-distribution: Single"), "ends Work-distribution: Single";
    TASK_ALLOCATION_BEGIN = b"PTa" plain () Push(Channel::Subsystem, 15, "Task: Allocation"), "begins Task: Allocation";
    TASK_ALLOCATION_END = b"PTA" plain () Pop(Channel::Subsystem, 15, "Task: Allocation"), "ends Task: Allocation";
    TASK_CHECK_DEPS_BEGIN = b"PTc" plain () Push(Channel::Subsystem, 16, "Task: Check deps"), "begins Task: Check deps";
    TASK_CHECK_DEPS_END = b"PTC" plain () Pop(Channel::Subsystem, 16, "Task: Check deps"), "ends Task: Check deps";
    TASK_DUPLICATING_BEGIN = b"PTd" plain () Push(Channel::Subsystem, 17, "Task: Duplicating"), "begins Task: Duplicating";
    TASK_DUPLICATING_END = b"PTD" plain () Pop(Channel::Subsystem, 17, "Task: Duplicating"), "ends Task: Duplicating";
    TASK_RELEASING_DEPS_BEGIN = b"PTr" plain () Push(Channel::Subsystem, 18, "Task: Releasing deps"), "begins Task: Releasing deps";
    TASK_RELEASING_DEPS_END = b"PTR" plain () Pop(Channel::Subsystem, 18, "Task: Releasing deps"), "ends Task: Releasing deps";
    TASK_RUNNING_TASK_BEGIN = b"PT[" plain () Push(Channel::Subsystem, 19, "Task: Running task"), "begins Task: Running task";
    TASK_RUNNING_TASK_END = b"PT]" plain () Pop(Channel::Subsystem, 19, "Task: Running task"), "ends Task: Running task";
    TASK_RUNNING_TASK_IF0_BEGIN = b"PTi" plain () Push(Channel::Subsystem, 20, "Task: Running task if0"), "begins Task: Running task if0";
    TASK_RUNNING_TASK_IF0_END = b"PTI" plain () Pop(Channel::Subsystem, 20, "Task: Running task if0"), "ends Task: Running task if0";
    TASK_SCHEDULING_BEGIN = b"PTs" plain () Push(Channel::Subsystem, 21, "Task: Scheduling"), "begins Task: Scheduling";
    TASK_SCHEDULING_END = b"PTS" plain () Pop(Channel::Subsystem, 21, "Task: Scheduling"), "ends Task: Scheduling";
    TASK_TASKGROUP_BEGIN = b"PTg" plain () Push(Channel::Subsystem, 22, "Task: Taskgroup"), "begins Task: Taskgroup";
    TASK_TASKGROUP_END = b"PTG" plain () Pop(Channel::Subsystem, 22, "Task: Taskgroup"), "ends Task: Taskgroup";
    TASK_TASKWAIT_BEGIN = b"PTt" plain () Push(Channel::Subsystem, 23, "Task: Taskwait"), "begins Task: Taskwait";
    TASK_TASKWAIT_END = b"PTT" plain () Pop(Channel::Subsystem, 23, "Task: Taskwait"), "ends Task: Taskwait";
    TASK_TASKWAIT_DEPS_BEGIN = b"PTw" plain () Push(Channel::Subsystem, 24, "Task: Taskwait deps"), "begins Task: Taskwait deps";
    TASK_TASKWAIT_DEPS_END = b"PTW" plain () Pop(Channel::Subsystem, 24, "Task: Taskwait deps"), "ends Task: Taskwait deps";
    TASK_TASKYIELD_BEGIN = b"PTy" plain () Push(Channel::Subsystem, 25, "Task: Taskyield"), "begins Task: Taskyield";
    TASK_TASKYIELD_END = b"PTY" plain () Pop(Channel::Subsystem, 25, "Task: Taskyield"), "ends Task: Taskyield";
    RUNTIME_ATTACHED_BEGIN = b"PA[" plain () Push(Channel::Subsystem, 26, "Runtime: Attached"), "begins Runtime: Attached";
    RUNTIME_ATTACHED_END = b"PA]" plain () Pop(Channel::Subsystem, 26, "Runtime: Attached"), "ends Runtime: Attached";
    RUNTIME_INTERNAL_MICROTASK_BEGIN = b"PMi" plain () Push(Channel::Subsystem, 29, "Runtime: Internal microtask"), "begins Runtime: Internal microtask";
    RUNTIME_INTERNAL_MICROTASK_END = b"PMI" plain () Pop(Channel::Subsystem, 29, "Runtime: Internal microtask"), "ends Runtime: Internal microtask";
    RUNTIME_USER_MICROTASK_BEGIN = b"PMu" plain () Push(Channel::Subsystem, 30, "Runtime: User microtask"), "begins Runtime: User microtask", Trace;
    RUNTIME_USER_MICROTASK_END = b"PMU" plain () Pop(Channel::Subsystem, 30, "Runtime: User microtask"), "ends Runtime: User microtask";
    RUNTIME_WORKER_MAIN_LOOP_BEGIN = b"PH[" plain () Push(Channel::Subsystem, 31, "Runtime: Worker main loop"), "begins Runtime: Worker main loop";
    RUNTIME_WORKER_MAIN_LOOP_END = b"PH]" plain () Pop(Channel::Subsystem, 31, "Runtime: Worker main loop"), "ends Runtime: Worker main loop";
    RUNTIME_FORK_CALL_BEGIN = b"PCf" plain () Push(Channel::Subsystem, 27, "Runtime: Fork call"), "begins Runtime: Fork call", Trace;
    RUNTIME_FORK_CALL_END = b"PCF" plain () Pop(Channel::Subsystem, 27, "Runtime: Fork call"), "ends Runtime: Fork call";
    RUNTIME_INITIALIZATION_BEGIN = b"PCi" plain () Push(Channel::Subsystem, 28, "Runtime: Initialization"), "begins Runtime: Initialization";
    RUNTIME_INITIALIZATION_END = b"PCI" plain () Pop(Channel::Subsystem, 28, "Runtime: Initialization"), "ends Runtime: Initialization";
    TYPE_CREATE = b"POc" jumbo (typeid: u32, label: str) Rule, "creates task type {typeid} named \"{label}\"";
    TASK_CREATE = b"PPc" plain (taskid: u32, typeid: u32) Rule, "creates task {taskid} of type {typeid}";
    TASK_EXECUTE = b"PPx" plain (taskid: u32) Rule, "executes task {taskid}";
    TASK_END = b"PPe" plain (taskid: u32) Rule, "ends task {taskid}";
    WORKSHARE_EXECUTE = b"PQx" plain (typeid: u32) Rule, "executes the worksharing type {typeid}";
    WORKSHARE_END = b"PQe" plain (typeid: u32) Rule, "ends the worksharing type {typeid}";
}
