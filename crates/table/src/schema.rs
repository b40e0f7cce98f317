//! The list of tables: every column with type, unit and meaning.

/// Version of the tables, major and minor. A minor version adds tables or nullable columns.
pub const VERSION: &str = "1.2";

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Floating point, 64 bits.
    Double,
    /// True or false.
    Boolean,
    /// UTF-8.
    Text,
}

impl Type {
    /// The name in SQL.
    pub const fn sql(self) -> &'static str {
        match self {
            Type::Int32 => "INTEGER",
            Type::Int64 => "BIGINT",
            Type::Double => "DOUBLE",
            Type::Boolean => "BOOLEAN",
            Type::Text => "VARCHAR",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name, which needs no quotes in SQL.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// Whether values may be absent: unknown is null, never zero.
    pub nullable: bool,
    /// Unit; empty for numbers of things and for text.
    pub unit: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name, and that of its directory.
    pub name: &'static str,
    /// The meaning of a row.
    pub meaning: &'static str,
    /// Whether each process has a file of its own.
    pub per_process: bool,
    /// Its columns.
    pub columns: &'static [Column],
}

/// The table of this name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

const fn column(name: &'static str, ty: Type, unit: &'static str, meaning: &'static str) -> Column {
    Column { name, ty, nullable: false, unit, meaning }
}

const fn i32(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Int32, "", meaning)
}

const fn i64(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Int64, "", meaning)
}

const fn ns(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Int64, "ns", meaning)
}

const fn bytes(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Int64, "bytes", meaning)
}

const fn text(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Text, "", meaning)
}

const fn flag(name: &'static str, meaning: &'static str) -> Column {
    column(name, Type::Boolean, "", meaning)
}

/// The column, which may be null.
const fn opt(column: Column) -> Column {
    Column { nullable: true, ..column }
}

const LOCATION: Column = i32("location", "Thread, CPU or device queue: `location.location`");
const START: Column = ns("start_ns", "First nanosecond");
const END: Column = ns("end_ns", "First nanosecond after it");

const fn single(name: &'static str, meaning: &'static str, columns: &'static [Column]) -> Table {
    Table { name, meaning, per_process: false, columns }
}

const fn split(name: &'static str, meaning: &'static str, columns: &'static [Column]) -> Table {
    Table { name, meaning, per_process: true, columns }
}

/// All tables.
pub const TABLES: &[Table] = &[
    single(
        "run",
        "A recorded run",
        &[
            i32("run", "Its number in the data set"),
            text("source", "Name of the trace, graph or profile"),
            text("command", "Command line; empty if not known"),
            text("host", "Host; empty if not known"),
            opt(ns("began_unix_ns", "Unix time at which the command started, before time 0 of the run")),
            ns("start_ns", "First nanosecond of the exported part"),
            ns("end_ns", "First nanosecond after the exported part"),
            ns(
                "capacity_ns",
                "Time of all selected workers; the sum of `state` over the run, of a profile that of `ledger`",
            ),
            i32("workers", "Selected workers"),
            flag("complete", "Whether every stream ended properly and was read to its end"),
            i64("events", "Events read"),
            i64("lost_events", "Events that recorders lost"),
            opt(text("part", "The exported part, if it is not the whole run")),
            text("recorder", "Recorder; empty if not known"),
        ],
    ),
    single(
        "process",
        "A process",
        &[
            i32("process", "Its number"),
            i32("run", "Its run"),
            i32("node", "Number of its node; key of the directories `node=` of the large tables"),
            text("host", "Name of its node; empty if not known"),
            i64("pid", "Process id; 0 for the holder of a node's CPUs"),
            opt(i32("rank", "Its rank in its job")),
            START,
            END,
        ],
    ),
    single(
        "location",
        "A thread, CPU or device queue",
        &[
            i32("location", "Its number"),
            i32("run", "Its run"),
            i32("node", "Number of its node"),
            opt(i32("process", "Its process")),
            opt(i64("tid", "System thread id")),
            text("kind", "Its role in the runtime, or `device queue`"),
            text("name", "Its name; may be empty"),
            opt(text("device", "Device of a queue; empty if not known")),
            opt(i32("rank", "Rank of its process")),
            flag("worker", "Whether it is a selected worker: its time is in `state`, and counts as capacity"),
            opt(ns("first_ns", "Time of its first event")),
            opt(ns("last_ns", "Time of its last event")),
            i64("events", "Number of its events"),
            i64("lost_events", "Events that its recorder lost"),
        ],
    ),
    single(
        "task_type",
        "A task type, worksharing construct or other named code",
        &[
            i32("task_type", "Its number"),
            i32("run", "Its run"),
            opt(i32("process", "Its process")),
            text("name", "Its name, as reports print it"),
            text("kind", "`task`, `worksharing`, `implicit` or `unknown`"),
            opt(i32("site", "Its place in the code")),
        ],
    ),
    single(
        "site",
        "A place in the code",
        &[
            i32("site", "Its number"),
            i32("run", "Its run"),
            opt(i32("process", "Its process")),
            text("function", "Function; empty if not known"),
            text("file", "Source file; empty if not known"),
            opt(i32("line", "Line")),
            i64("address", "Return address, as a bit pattern; 0 if not known"),
        ],
    ),
    single(
        "object",
        "Something that threads wait for: a lock, a critical section, a condition variable",
        &[
            i32("object", "Its number"),
            i32("run", "Its run"),
            opt(i32("process", "Its process")),
            text("kind", "Its kind"),
            text("name", "Its name, as reports print it"),
            i64("address", "Address or other id, as a bit pattern"),
        ],
    ),
    split(
        "region",
        "A parallel region",
        &[
            i64("region", "Its number"),
            opt(i32("location", "Thread that began it")),
            opt(i32("site", "Place of its construct")),
            opt(i64("parent", "The region around it")),
            opt(ns("start_ns", "Begin")),
            opt(ns("end_ns", "End")),
            opt(i32("requested", "Requested threads")),
            opt(i32("team", "Threads of the team")),
        ],
    ),
    split(
        "state",
        "A section of a worker's time; the sections of a worker tile the time of its process",
        &[
            LOCATION,
            START,
            END,
            text("state", "The runtime's word for the activity"),
            opt(text("cause", "Cause of the time, as in `ledger`")),
            opt(i32("site", "Place in the code")),
            opt(i32("task_type", "Task type or worksharing construct that it runs")),
            opt(i64("task", "Innermost explicit task")),
            opt(i64("region", "Innermost parallel region")),
            opt(i32("object", "Awaited object")),
        ],
    ),
    split(
        "task",
        "A task, by creation",
        &[
            i64("task", "Its number"),
            opt(i64("number", "Number that the runtime or recorder gave it, as a bit pattern")),
            opt(i32("task_type", "Its type")),
            opt(i64("parent", "Task that created it")),
            opt(i64("region", "Region in which it was created")),
            opt(i32("creator", "Location that created it")),
            opt(i32("runner", "Location that started it first")),
            opt(ns("created_ns", "Creation")),
            opt(ns("ready_ns", "First time at which it could run, if the runtime records that")),
            opt(ns("began_ns", "First start")),
            opt(ns("ended_ns", "Last end or suspension")),
            opt(ns("running_ns", "Time in its own body, without suspensions")),
            text("status", "`created`, `running`, `suspended`, `ended`, `cancelled` or `unseen`"),
        ],
    ),
    split(
        "dependence",
        "Two tasks, of which one waits for the other, by successor",
        &[
            opt(i64("pred", "The awaited task; null for data that was there at the start")),
            i64("succ", "The waiting task"),
            text("kind", "`declared`: from declared accesses; `data`: from recorded data"),
            opt(i64("address", "Address or number of the data, as a bit pattern")),
            opt(ns("pred_ended_ns", "End of the awaited task")),
            opt(ns("succ_began_ns", "First start of the waiting task")),
        ],
    ),
    split(
        "wait",
        "A part of a wait of a thread for an object or another thread",
        &[
            LOCATION,
            START,
            END,
            text(
                "kind",
                "`lock`: for a runtime's lock, split over its holders; `thread`: for threads, in the C library",
            ),
            opt(i32("object", "Awaited object")),
            opt(i32("site", "Place of the wait")),
            opt(i32("holder_location", "The holder, or the thread that ended the wait")),
            opt(i64("holder_task", "Task of the holder")),
            opt(i32("holder_site", "Place where the holder took the object, or the wait was ended")),
            opt(text("outcome", "Of waits for threads: `done`, `timed-out`, `failed` or `open`")),
        ],
    ),
    split(
        "message",
        "A message that was sent and received, in the file of the receiver's process",
        &[
            i32("sender", "Sending location"),
            i32("receiver", "Location that noticed the arrival"),
            ns("sent_ns", "Send time"),
            ns("posted_ns", "Time at which a receive was posted"),
            ns("received_ns", "Time at which the arrival was known"),
            opt(bytes("bytes", "Size")),
        ],
    ),
    split(
        "collective",
        "The part of a process in a collective operation",
        &[
            LOCATION,
            i64("comm", "Communicator, the same number in all members, as a bit pattern"),
            i64("sequence", "Number of the operation in its communicator"),
            text("function", "MPI function, without prefix"),
            ns("start_ns", "Begin"),
            opt(ns("end_ns", "Completion; null if it did not complete")),
            opt(bytes("bytes", "Bytes given; null if not known")),
            opt(i32("root", "Process of the root")),
        ],
    ),
    split(
        "device_operation",
        "An operation of a device queue",
        &[
            i32("location", "Its queue: `location.location`"),
            i64("sequence", "Its number in the queue"),
            opt(ns("start_ns", "Begin; null if lost or without usable times")),
            opt(ns("end_ns", "End")),
            opt(ns("append_ns", "Begin of its submission")),
            text("name", "Its name, as reports print it"),
            text("kind", "`kernel`, `copy-in`, `copy-out`, `copy`, `fill`, …"),
            opt(bytes("bytes", "Bytes moved")),
            opt(i32("lane", "Lane of the queue in which it overlaps nothing")),
            opt(i64("tid", "System thread id of the submitter")),
            flag("lost", "Whether no record of it came"),
            flag("late", "Whether its record came after it was declared lost"),
        ],
    ),
    split(
        "sample",
        "A sample of a thread's call path",
        &[
            LOCATION,
            ns("at_ns", "Time"),
            i64("path", "Its call path: `path.path`"),
            opt(i64("task", "Innermost explicit task")),
            ns("weight_ns", "The time that it represents"),
        ],
    ),
    split(
        "path",
        "A step of a sampled call path",
        &[
            i64("path", "Number of the path"),
            i32("depth", "0 for the innermost step"),
            i64("address", "Instruction or return address, as a bit pattern"),
            opt(text("module", "File that holds the address")),
            opt(i64("offset", "Address in that file")),
            opt(text("function", "Function, the innermost one of inlined functions")),
            opt(text("file", "Source file")),
            opt(i32("line", "Line")),
        ],
    ),
    single(
        "call_path",
        "A step of the call tree of a profile",
        &[
            i64("path", "Its number"),
            i32("run", "Its run"),
            opt(i64("parent", "The step that it is in; null for the whole run")),
            i32("depth", "Number of steps that it is in"),
            text("kind", "`run`, `function`, `parallel`, `task`, `loop`, `line`, `state`, or `unknown` code"),
            text("name", "Its name, as reports print it"),
            text("function", "Function; empty if not known"),
            text("file", "Source file; empty if not known"),
            opt(i32("line", "Of a function: the line of its call; of others: their own line")),
            text("module", "File that contains the code; empty if not known"),
            flag("runtime", "Whether it is code of the parallel runtime"),
        ],
    ),
    single(
        "call_path_value",
        "A number of a step of a profile, without those of the steps in it",
        &[
            i64("path", "Its step: `call_path.path`"),
            text("metric", "Metric; those in nanoseconds end in `_ns`, others are counts"),
            i64("value", "Its value"),
        ],
    ),
    split(
        "mark",
        "A state, value or point of an instrumented or annotated program (ITT, NVTX, Kokkos, `taskscope.h`), by thread",
        &[
            LOCATION,
            START,
            opt(ns("end_ns", "First nanosecond after it, the start of a point; null if it has not ended")),
            text(
                "kind",
                "`state`; `burst`: a value over a time; `point`: a value at an instant, as those of counters",
            ),
            text("name", "Name of the state or key"),
            opt(i64("value", "Value of a key, as a bit pattern")),
            opt(text("value_name", "Name of the value")),
            opt(text("unit", "Unit of the values")),
        ],
    ),
    split(
        "off_cpu",
        "Time of a worker that the operating system took",
        &[
            LOCATION,
            START,
            END,
            text(
                "cause",
                "`cpu.…`: without a CPU; `blocked`: blocked in the kernel; `device`: waits for a device",
            ),
        ],
    ),
    split(
        "loss",
        "An interval in which events of a thread were lost",
        &[LOCATION, START, END, i64("events", "Lost events")],
    ),
    split(
        "uncertain",
        "An interval in which the state of a location is uncertain",
        &[
            LOCATION,
            START,
            END,
            text("reason", "`stream-ends`, `does-not-fit`, `clock-goes-back` or `cpu-shared`"),
        ],
    ),
    single(
        "counter",
        "A total of a run, as `info` and `report` print it",
        &[
            i32("run", "Its run"),
            opt(i32("location", "Its location; null for the whole run")),
            text("name", "Its name"),
            i64("value", "Its value"),
        ],
    ),
    single(
        "finding",
        "A loss with its cause, as the report finds it",
        &[
            i32("run", "Its run"),
            i32("finding", "Its number, the largest loss first"),
            text("cause", "Cause of the loss"),
            text("blamed", "Kind of the blamed party"),
            opt(text("pattern", "Pattern that decides the remedy")),
            text("state", "State of the culprit"),
            text("place", "Place of the cause in words; may be empty"),
            opt(i32("site", "Place of the cause in the code")),
            ns("lost_ns", "Worker time lost"),
            ns("sole_ns", "The part during which the culprit alone ran"),
            text("confidence", "`low`, `medium` or `high`"),
        ],
    ),
    single(
        "ledger",
        "Worker time by cause and state: the report's sums",
        &[
            i32("run", "Its run"),
            text(
                "depth",
                "`state`: from the states of workers; `graph`: from a task graph, with deeper causes",
            ),
            opt(i32("location", "The worker")),
            text("cause", "Cause"),
            opt(text("state", "State, at the depth `state`")),
            ns("ns", "Worker time"),
        ],
    ),
    single(
        "blame",
        "Waiting worker time by charged party: the report's sums",
        &[
            i32("run", "Its run"),
            text("cause", "Cause of the waiting time"),
            text("state", "State of those that waited"),
            text("blamed", "Kind of the charged party"),
            text("place", "The charged party in words; may be empty"),
            opt(i32("site", "Its place in the code")),
            ns("ns", "Worker time"),
        ],
    ),
];
