//! Events of an instrumented runtime or program: keys, states, bursts, points, messages, and tasks that move
//! between threads with all of it.
//!
//! Raw events: pushes, pops and switches, as they happened. Nothing is re-emitted when a task changes its
//! thread; `taskscope-context` derives that on reading. Numbers of keys, states, domains, kinds and tasks are
//! per process; entries of the dictionary (`IK*`) may be in any thread's stream and are merged by name, over
//! processes too. Times of a process's threads agree to some hundred nanoseconds, so an entry may come
//! shortly after its first use.
//!
//! An event belongs to the task that is on the thread, or to the thread itself without a task.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'I';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// `partner` of a message that names none.
pub const NO_PARTNER: u32 = u32::MAX;
/// Bytes of one pair in [`COMPOSITE`]: u32 key, u64 value.
pub const PAIR_BYTES: usize = 12;
/// First number of states that programs register; lower ones are [`STATES`].
pub const FIRST_OWN_STATE: u32 = 32;
/// First number of domains that programs register; lower ones are [`DOMAINS`].
pub const FIRST_OWN_DOMAIN: u32 = 16;
/// The domain of a task's way from thread to thread; ids are task numbers.
pub const DOMAIN_TASK: u32 = 0;

/// `level` of a key, as Nanos++ numbers them. A key is on if its level is at most the chosen one.
pub mod level {
    /// Always on.
    pub const ENABLED: u32 = 0;
    /// The level "none".
    pub const NONE: u32 = 1;
    /// For users of the runtime.
    pub const USER: u32 = 2;
    /// For its developers.
    pub const DEVELOPER: u32 = 3;
    /// The default level.
    pub const DEFAULT: u32 = 4;
    /// Costly, or seldom wanted.
    pub const ADVANCED: u32 = 5;
    /// The choice "everything".
    pub const ALL: u32 = 6;
    /// Off, unless enabled by name.
    pub const DISABLED: u32 = 7;
    /// The levels' names, by number; empty for numbers that cannot be chosen.
    pub const WORDS: [&str; 8] = ["", "none", "user", "developer", "default", "advanced", "all", ""];
}

/// `class` of a state: how its time counts in a report.
pub mod class {
    /// The program's own work.
    pub const USEFUL: u32 = 0;
    /// The runtime's work.
    pub const RUNTIME: u32 = 1;
    /// Looking for a task to run.
    pub const SCHEDULING: u32 = 2;
    /// Making tasks.
    pub const CREATION: u32 = 3;
    /// Waiting for other tasks.
    pub const SYNCHRONISATION: u32 = 4;
    /// Waiting for a lock.
    pub const LOCK: u32 = 5;
    /// Moving data, or waiting for it.
    pub const COMMUNICATION: u32 = 6;
    /// No work available.
    pub const IDLE: u32 = 7;
    /// Stopped on purpose.
    pub const STOPPED: u32 = 8;
    /// Giving way to others.
    pub const YIELD: u32 = 9;
    /// Number of classes for programs.
    pub const COUNT: u32 = 10;
    /// The activity is not known. Imports have it for the time outside of the file's sections.
    pub const UNKNOWN: u32 = 10;
}

/// `problem` of [`PROBLEM`]: mistakes that the recorder notices.
pub mod problem {
    /// A name that was never registered was used.
    pub const UNKNOWN_NAME: u32 = 1;
    /// A name was registered again with another meaning; the first one stays.
    pub const REGISTERED_TWICE: u32 = 2;
    /// The numbers for new names are used up.
    pub const TOO_MANY_NAMES: u32 = 3;
    /// The dictionary was locked, by a signal handler's victim or a forked parent.
    pub const DICTIONARY_BUSY: u32 = 4;
    /// A word of the environment is invalid.
    pub const BAD_SETTING: u32 = 5;
    /// A sink failed, or was called from within itself.
    pub const SINK: u32 = 6;
    /// A text was longer than an entry has room for, and cut.
    pub const TOO_LONG: u32 = 7;
}

/// Nanos++'s states by number, with their classes.
pub const STATES: [(&str, u32); 21] = [
    ("NOT CREATED", class::IDLE),
    ("NOT RUNNING", class::IDLE),
    ("STARTUP", class::RUNTIME),
    ("SHUTDOWN", class::RUNTIME),
    ("ERROR", class::RUNTIME),
    ("IDLE", class::IDLE),
    ("RUNTIME", class::RUNTIME),
    ("RUNNING", class::USEFUL),
    ("SYNCHRONIZATION", class::SYNCHRONISATION),
    ("SCHEDULING", class::SCHEDULING),
    ("CREATION", class::CREATION),
    ("MEM TRANSFER ISSUE", class::COMMUNICATION),
    ("CACHE", class::RUNTIME),
    ("YIELD", class::YIELD),
    ("ACQUIRING LOCK", class::LOCK),
    ("CONTEXT SWITCH", class::SCHEDULING),
    ("FILL1", class::RUNTIME),
    ("WAKINGUP", class::IDLE),
    ("STOPPED", class::STOPPED),
    ("SYNCED RUNNING", class::USEFUL),
    ("DEBUG", class::RUNTIME),
];

/// Nanos++'s point-to-point domains by their numbers.
pub const DOMAINS: [&str; 10] = [
    "WD_DOMAIN",
    "WD_DEPENDENCY",
    "WAIT",
    "XFER_DATA",
    "XFER_REQ",
    "WD_REMOTE",
    "AM_WORK",
    "AM_WORK_DONE",
    "XFER_WAIT_REQ_PUT",
    "XFER_FREE_TMP_BUFF",
];

/// Nanos++'s keys by their real numbers, from 1: the order of registration, in which the second
/// `network-transfer` of its sources has no number. Paraver's type is 9200000 plus the number.
pub const NANOS_KEYS: [&str; 74] = [
    "api",
    "wd-id",
    "cache-copy-in",
    "cache-copy-out",
    "cache-local-copy",
    "cache-malloc",
    "cache-free",
    "cache-hit",
    "copy-in",
    "copy-out",
    "user-funct-name",
    "user-code",
    "create-wd-id",
    "create-wd-ptr",
    "wd-num-deps",
    "wd-deps-ptr",
    "lock-addr",
    "num-spins",
    "num-yields",
    "time-yields",
    "user-funct-location",
    "num-ready",
    "graph-size",
    "loop-lower",
    "loop-upper",
    "loop-step",
    "in-cuda-runtime",
    "xfer-size",
    "cache-wait",
    "chunk-size",
    "num-blocks",
    "time-blocks",
    "num-scheds",
    "time-scheds",
    "sched-versioning",
    "dependence",
    "dep-direction",
    "wd-priority",
    "in-opencl-runtime",
    "taskwait",
    "set-num-threads",
    "cpuid",
    "dep-address",
    "copy-data-in",
    "cache-copy-data-in",
    "cache-copy-data-out",
    "sched-affinity-constraint",
    "in-mpi-runtime",
    "wd-ready",
    "wd-blocked",
    "parallel-outline-fct",
    "async-thread",
    "copy-in-gpu",
    "copy-out-gpu",
    "gpu-wd-id",
    "wd-criticality",
    "blev-overheads",
    "blev-overheads-breakdown",
    "critical-wd-id",
    "copy-dir-devices",
    "concurrent-tasks",
    "network-transfer",
    "team-ptr",
    "thread-numa-node",
    "wd-numa-node",
    "steal",
    "in-xdma",
    "accelerator#",
    "reduction",
    "cache-evict",
    "copy-data-alloc",
    "dep-overlap-start",
    "dep-overlap-end",
    "debug",
];

/// The events that give a meaning to numbers which others of the process use.
pub const NAMES: [crate::Code; 5] = [KEY, KEY_VALUE, STATE, DOMAIN, TASK_KIND];

events! {
    KEY = b"IKk" jumbo (key: u32, level: u32, stacked: u32, name: str, description: str, unit: str) Rule, "names key {key} of level {level} \"{name}\": {description} [{unit}], stacked {stacked}";
    KEY_VALUE = b"IKv" jumbo (key: u32, value: u64, name: str, description: str) Rule, "names value {value} of key {key} \"{name}\": {description}";
    STATE = b"IKs" jumbo (state: u32, class: u32, name: str, description: str) Rule, "names state {state} of class {class} \"{name}\": {description}";
    DOMAIN = b"IKd" jumbo (domain: u32, name: str, description: str) Rule, "names message domain {domain} \"{name}\": {description}";
    TASK_KIND = b"IKt" jumbo (kind: u32, line: u32, name: str, file: str) Rule, "names task kind {kind} \"{name}\", written at {file}:{line}";
    STATE_PUSH = b"ISp" plain (state: u32) Rule, "enters state {state}";
    STATE_POP = b"ISq" plain (state: u32) Rule, "leaves state {state}";
    STATES_HIDE = b"ISh" plain () Rule, "hides state changes from now on: they are sub-states";
    STATES_SHOW = b"ISs" plain () Rule, "shows state changes again";
    BURST_OPEN = b"IBo" plain (key: u32, value: u64) Rule, "opens a burst of key {key}, value {value}";
    BURST_CLOSE = b"IBc" plain (key: u32, value: u64) Rule, "closes the burst of key {key}, value {value}";
    STATE_AND_BURST_OPEN = b"IAo" plain (state: u32, key: u32, value: u64) Rule, "enters state {state} and opens a burst of key {key}, value {value}";
    STATE_AND_BURST_CLOSE = b"IAc" plain (state: u32, key: u32, value: u64) Rule, "closes the burst of key {key}, value {value}, and leaves state {state}";
    POINT = b"IPp" plain (key: u32, value: u64) Rule, "marks a point of key {key}, value {value}";
    COMPOSITE = b"IPc" jumbo (pairs: rest) Rule, "marks a point of the pairs of key and value {pairs}";
    SEND = b"IMs" jumbo (domain: u32, partner: u32, id: u64, key: u32, value: u64) Rule, "sends message {id} of domain {domain} to partner {partner}, key {key}, value {value}";
    RECEIVE = b"IMr" jumbo (domain: u32, partner: u32, id: u64, key: u32, value: u64) Rule, "receives message {id} of domain {domain} from partner {partner}, key {key}, value {value}";
    DEFERRED_POINT = b"IDp" jumbo (task: u64, key: u32, value: u64) Rule, "leaves task {task} a point of key {key}, value {value}, for when it next runs";
    DEFERRED_SEND = b"IDs" jumbo (task: u64, domain: u32, partner: u32, id: u64, key: u32, value: u64) Rule, "leaves task {task} the sending of message {id} of domain {domain} to partner {partner}, key {key}, value {value}, for when it next runs";
    DEFERRED_RECEIVE = b"IDr" jumbo (task: u64, domain: u32, partner: u32, id: u64, key: u32, value: u64) Rule, "leaves task {task} the receipt of message {id} of domain {domain} from partner {partner}, key {key}, value {value}, for when it next runs";
    TASK_CREATE = b"ITc" plain (task: u64, kind: u32) Rule, "creates task {task} of kind {kind}, which can run";
    TASK_READY = b"ITr" plain (task: u64) Rule, "makes task {task} able to run";
    TASK_ENTER = b"ITe" plain (task: u64) Rule, "resumes task {task}";
    TASK_LEAVE = b"ITl" plain (task: u64) Rule, "suspends task {task}, which waits";
    TASK_YIELD = b"ITy" plain (task: u64) Rule, "suspends task {task}, which is still ready";
    TASK_SWITCH = b"ITs" plain (old: u64, new: u64) Rule, "suspends task {old} and resumes task {new}";
    TASK_END = b"ITx" plain (task: u64) Rule, "ends task {task}, and puts it down if it is on this thread";
    PROBLEM = b"IXp" jumbo (problem: u32, count: u64, text: str) Rule, "was wrong (problem {problem}) {count} times so far: {text}";
}
