//! OMPT's events beyond ovni's `openmp` model: regions and teams, dependences, suspended and cancelled tasks,
//! chunks.
//!
//! Region and task ids are per process and 32 bits wide. Flags, kinds and states are OMPT's numbers
//! (OpenMP 5.2, section 19.4.4).

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'X';
/// The model version that these events belong to.
pub const VERSION: &str = "1.1.0";

/// Bytes of one dependence in [`TASK_DEPENDENCES`]: u64 address, u8 OMPT dependence type.
/// The dependences of a `taskwait depend` come under an id that no task has; so do those of a task
/// that is not deferred, which LLVM's runtime waits for before it creates the task.
pub const DEPENDENCE_BYTES: usize = 9;

/// A flag of a region beside OMPT's: not a construct of the program. The runtime has forked it, to run the
/// body of `teams` in it for a member of the league.
pub const RUNTIMES_OWN: u32 = 1 << 29;

events! {
    THREAD_TYPE = b"XHt" plain (r#type: u32) Rule, "is an OpenMP thread of type {type}";
    REGION_BEGIN = b"XRb" plain (region: u32, requested: u32, site: u32, flags: u32) Rule, "begins parallel region {region} at site {site}, {requested} threads requested, flags {flags}";
    TEAM_LIMITS = b"XRl" plain (region: u32, levels: u32, threads: u32, dynamic: u32) Rule, "gets fewer threads than requested for region {region}: max-active-levels-var {levels}, thread-limit-var {threads}, dyn-var {dynamic}; recorded once per site";
    REGION_END = b"XRe" plain (region: u32) Rule, "ends parallel region {region}";
    IMPLICIT_BEGIN = b"XIb" plain (region: u32, index: u32, team: u32) Rule, "joins region {region} as member {index} of {team}";
    IMPLICIT_END = b"XIe" plain (region: u32) Rule, "leaves region {region} (the runtime's report may be late)";
    TASK_DEPENDENCES = b"XTd" jumbo (taskid: u32, dependences: rest) Rule, "declares the dependences {dependences} of task {taskid}";
    TASK_SUSPENDED = b"XTs" plain (taskid: u32, status: u32) Rule, "suspended task {taskid} rather than ended it, OMPT status {status}";
    TASK_CANCELLED = b"XTc" plain (taskid: u32) Rule, "ended task {taskid} because it was cancelled";
    TASK_DETACHED = b"XTp" plain (taskid: u32) Rule, "ran task {taskid} to its end, but its detach event is open";
    TASK_FULFILLED = b"XTf" plain (taskid: u32) Rule, "fulfilled the detach event of task {taskid}";
    CHUNK = b"XCk" plain (start: u64, iterations: u64) Rule, "starts the chunk of {iterations} iterations from {start}";
    MASKED_BEGIN = b"XMb" plain (site: u32) Rule, "begins a masked construct at site {site}";
    MASKED_END = b"XMe" plain () Rule, "ends the masked construct";
    TASKGROUP_BEGIN = b"XGb" plain (site: u32) Rule, "opens a taskgroup at site {site}";
    TASKGROUP_END = b"XGe" plain () Rule, "closes the taskgroup";
    TASK_EDGE = b"XTe" plain (source: u32, sink: u32) Rule, "holds task {sink} back until task {source} has ended, by the runtime's present state";
    REDUCTION_BEGIN = b"XVb" plain (site: u32) Rule, "begins to combine the values of a reduction at site {site}";
    REDUCTION_END = b"XVe" plain () Rule, "has combined them";
    FLUSH = b"XFl" plain (site: u32) Rule, "flushes its view of the memory at site {site}";
    LOCK_INIT = b"XLi" plain (object: u64, site: u32, kind: u32) Rule, "creates lock {object} (kind {kind}) at site {site}";
    LOCK_DESTROY = b"XLd" plain (object: u64, site: u32, kind: u32) Rule, "destroys lock {object} (kind {kind}) at site {site}";
    TARGET_BEGIN = b"XAb" plain (kind: u32, device: i32, site: u32) Rule, "begins a target construct of OMPT kind {kind} on device {device} at site {site}";
    TARGET_END = b"XAe" plain () Rule, "ends the target construct";
    TARGET_DATA_BEGIN = b"XOb" plain (bytes: u64, kind: u32, site: u32) Rule, "begins a data operation of OMPT kind {kind} on {bytes} bytes at site {site}";
    TARGET_DATA_END = b"XOe" plain () Rule, "ends the data operation";
    TARGET_SUBMIT_BEGIN = b"XUb" plain (teams: u32) Rule, "submits a kernel, {teams} teams requested";
    TARGET_SUBMIT_END = b"XUe" plain () Rule, "has submitted the kernel";
    DEVICE_BEGIN = b"XDb" jumbo (device: i32, r#type: str) Rule, "brings device {device} up, of type {type}";
    DEVICE_END = b"XDe" plain (device: i32) Rule, "shuts device {device} down";
    DEVICE_LOAD = b"XDl" plain (bytes: u64, device: i32) Rule, "loads {bytes} bytes of code onto device {device}";
    DEVICE_UNLOAD = b"XDu" plain (device: i32) Rule, "unloads code from device {device}";
    ERROR = b"XEr" jumbo (severity: u32, site: u32, message: str) Rule, "encounters an error directive at site {site}, severity {severity}: {message}";
    CONTROL = b"XCt" plain (command: u64, modifier: u64) Rule, "calls omp_control_tool with command {command} and modifier {modifier}";
    CANCEL = b"XNc" plain (site: u32, flags: u32) Rule, "encounters a cancellation at site {site}, OMPT flags {flags}";
}
