//! Facts of a task graph: workers of several nodes, tasks with the data that they read, data with its copies,
//! runtime sections. For imports and for runtimes that know their graph.
//!
//! Ids of workers, nodes, tasks and data are 64 bits wide and unique in the trace, so facts may be in any
//! location; the events of a worker ([`WORKER_BEGIN`] to [`ACTIVITY_HOLDER`]) are in the worker's own. A
//! reader collects all facts before it resolves any id. `u64::MAX` stands for "none". An event's clock is the
//! time of the fact, or of its first use if that is unknown.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'G';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// Stands for "none" in place of an id.
pub const NO_ID: u64 = u64::MAX;

/// `kind` of an activity.
pub mod activity {
    /// Waiting for a lock; the name is the lock's.
    pub const LOCK_WAIT: u32 = 1;
    /// In a communication call; the name is the call's.
    pub const COMMUNICATION: u32 = 2;
    /// In the runtime system; the name is the section's.
    pub const RUNTIME: u32 = 3;
    /// Runnable, but not on a CPU.
    pub const OFF_CPU: u32 = 4;
    /// In a communication call, waiting for another process; the name has both.
    pub const PEER_WAIT: u32 = 5;
    /// Waiting for an operation of a device; the name is the operation's.
    pub const DEVICE: u32 = 6;
    /// Starting or ending a library of the job; the name is the call's.
    pub const START: u32 = 7;
    /// On a CPU that is left free for the noise of the system; the name is the runtime's word for that.
    pub const ABSORBING_NOISE: u32 = 8;
    /// Blocked in the kernel, in code of the program.
    pub const BLOCKED: u32 = 9;
}

events! {
    TYPE = b"GTt" jumbo (r#type: u32, line: u32, implicit: u32, name: str, function: str, file: str) Rule, "names task type {type}: {name}, in function {function} at {file}:{line}, code outside of tasks: {implicit}";
    NAME = b"GNn" jumbo (name: u32, text: str) Rule, "gives name {name} the text {text}";
    WORKER_BEGIN = b"GWb" plain (worker: u64, node: u64) Rule, "begins as worker {worker} on node {node}";
    WORKER_OF_RUNTIME = b"GWr" plain () Rule, "is a thread of the runtime, which executes no tasks and adds no capacity";
    WORKER_END = b"GWe" plain () Rule, "ends";
    PIECE_BEGIN = b"GXb" plain (task: u64) Rule, "starts or resumes task {task}";
    PIECE_END = b"GXe" plain (task: u64) Rule, "ends or suspends task {task}";
    ACTIVITY = b"GAa" plain (name: u32, kind: u32, end: u64) Rule, "is until {end} in activity {name} of kind {kind}";
    ACTIVITY_HOLDER = b"GAh" plain (r#type: u32) Rule, "waits, in the preceding activity, for the thread that requested the lock at the place of type {type}";
    TASK = b"GTk" plain (task: u64, r#type: u32) Rule, "knows task {task} of type {type}";
    TASK_CREATED = b"GTc" plain (task: u64, creator: u64) Rule, "knows that task {creator} creates task {task} now";
    TASK_READY = b"GTr" plain (task: u64) Rule, "knows that task {task} can start now";
    TASK_UNIFORM = b"GTu" plain (task: u64, nanoseconds: u64) Rule, "knows of {nanoseconds} ns of runtime work at unknown positions in task {task}";
    TASK_READS = b"GTi" plain (task: u64, data: u64) Rule, "knows that task {task} reads data {data}";
    DATA = b"GDp" plain (data: u64, producer: u64) Rule, "knows that task {producer} has computed data {data} now";
    DATA_HOME = b"GDh" plain (data: u64, node: u64) Rule, "knows that data {data} was computed or stored on node {node}";
    DATA_BYTES = b"GDb" plain (data: u64, bytes: u64) Rule, "knows that data {data} has {bytes} bytes";
    DATA_NAME = b"GDn" jumbo (data: u64, name: str) Rule, "gives data {data} the programmer's name {name}";
    DATA_SYNCHRONISES = b"GDw" plain (data: u64) Rule, "knows that data {data} stands for the end of a wait";
    SENT = b"GCs" plain (data: u64, node: u64) Rule, "knows that data {data} is sent to node {node} now";
    ARRIVED = b"GCa" plain (data: u64, node: u64) Rule, "knows that data {data} has arrived on node {node} now";
}
