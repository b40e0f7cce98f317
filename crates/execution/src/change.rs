//! Changes from models to observers: definitions of names, and changes of threads, tasks and regions.

use crate::catalog::TypeKind;
use crate::message_change::MessageChange;
use crate::{
    ObjectIndex, PathIndex, Place, ProcessIndex, RegionIndex, SiteIndex, State, TaskIndex, TeamLimits,
    ThreadIndex, TypeIndex,
};

/// The numbers that runtimes and recorders gave to tasks and regions, each in its process.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Numbers by [`TaskIndex`]; [`NO_NUMBER`](crate::NO_NUMBER) for none.
    pub tasks: Vec<u64>,
    /// Numbers by [`RegionIndex`]; [`NO_NUMBER`](crate::NO_NUMBER) for none.
    pub regions: Vec<u64>,
}

/// The name or origin of a number.
#[derive(Clone, Copy, Debug)]
pub enum Definition<'a> {
    /// A loaded file of a process. Addresses from `start` to before `end` belong to it.
    Module {
        /// The process that loaded it.
        process: ProcessIndex,
        /// Since when it is known to be loaded, nanoseconds of the trace's clock.
        at: u64,
        /// First address.
        start: u64,
        /// First address after it.
        end: u64,
        /// The number to subtract from an address to get one of the file.
        bias: u64,
        /// Build id in hexadecimal; empty if the file has none.
        build_id: &'a str,
        /// Path at run time.
        path: &'a str,
    },
    /// The program names a part of its memory.
    Data {
        /// The process with this memory.
        process: ProcessIndex,
        /// Since when.
        at: u64,
        /// First address.
        start: u64,
        /// First address after it.
        end: u64,
        /// The name; empty removes the names in the range.
        name: &'a str,
    },
    /// A place in the code: the return address of a call into the runtime.
    Site {
        /// Its number.
        site: SiteIndex,
        /// Its number in the events of its process.
        number: u32,
        /// The process of the addresses.
        process: ProcessIndex,
        /// The return address.
        address: u64,
        /// First occurrence, nanoseconds of the trace's clock: another module may be at the address later.
        at: u64,
    },
    /// The construct at a site has an outlined body.
    SiteBody {
        /// The site.
        site: SiteIndex,
        /// Address of the body; 0 if not known.
        body: u64,
        /// Location of the construct as its compiler wrote it (`;file;function;line;column;;`); may be empty.
        location: &'a str,
    },
    /// A type is known to exist, with the label that the runtime gave.
    Type {
        /// Its number.
        ty: TypeIndex,
        /// The process that it belongs to.
        process: ProcessIndex,
        /// Label from the runtime; may be empty.
        label: &'a str,
    },
    /// The place of a type in the source.
    TypeSite {
        /// Its number.
        ty: TypeIndex,
        /// The code site of its construct.
        site: SiteIndex,
        /// Task or worksharing.
        kind: TypeKind,
    },
    /// The frames on a creator's stack when it creates a region or a task.
    Path {
        /// Its number.
        path: PathIndex,
        /// Its number in the events of its process.
        number: u32,
        /// The process of the addresses.
        process: ProcessIndex,
        /// Return addresses, innermost first.
        addresses: &'a [u64],
        /// First occurrence, nanoseconds of the trace's clock.
        at: u64,
    },
    /// Something to wait for.
    Object {
        /// Its number.
        object: ObjectIndex,
        /// The process that it belongs to.
        process: ProcessIndex,
        /// Its address or other id in the process.
        id: u64,
        /// `taskscope_event::models::wait::kind`.
        kind: u32,
    },
}

/// A thread's section from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// Its state.
    pub state: State,
    /// Its place in the code.
    pub place: Place,
    /// The innermost explicit task, if any.
    pub task: TaskIndex,
    /// The innermost parallel region, if any.
    pub region: RegionIndex,
    /// The awaited object, if known.
    pub object: ObjectIndex,
}

impl Section {
    /// A section of which only the state is known.
    pub const fn of(state: State) -> Section {
        Section {
            state,
            place: Place::UNKNOWN,
            task: TaskIndex::NONE,
            region: RegionIndex::NONE,
            object: ObjectIndex::NONE,
        }
    }
}

/// The role of a thread in Nanos6 or nOS-V. Their workers are CPUs, so a role does not affect capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RuntimeRole {
    /// Nanos6: polls services of the runtime.
    Leader,
    /// Nanos6: runs the program's `main` as a task.
    Main,
    /// Executes tasks.
    Worker,
    /// Nanos6: not made by the runtime.
    External,
    /// nOS-V: made by the program and attached to the runtime.
    Attached,
    /// nOS-V: makes threads on behalf of others.
    Delegate,
}

impl RuntimeRole {
    /// All roles.
    pub const ALL: [RuntimeRole; 6] = [
        RuntimeRole::Leader,
        RuntimeRole::Main,
        RuntimeRole::Worker,
        RuntimeRole::External,
        RuntimeRole::Attached,
        RuntimeRole::Delegate,
    ];

    /// The runtime's word, in JSON and for a person.
    pub const fn name(self) -> &'static str {
        match self {
            RuntimeRole::Leader => "leader",
            RuntimeRole::Main => "main",
            RuntimeRole::Worker => "worker",
            RuntimeRole::External => "external",
            RuntimeRole::Attached => "attached",
            RuntimeRole::Delegate => "delegate",
        }
    }
}

/// The role of a thread in its runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadKind {
    /// Runs `main`, or called the runtime first.
    Initial,
    /// Made by the runtime to work in teams.
    Worker,
    /// Made by the runtime for other purposes.
    Helper,
    /// A CPU; its time is spliced from its threads.
    Cpu,
    /// Unknown.
    Unknown,
}

impl ThreadKind {
    /// The name in JSON and for a person.
    pub const fn name(self) -> &'static str {
        match self {
            ThreadKind::Initial => "initial",
            ThreadKind::Worker => "worker",
            ThreadKind::Helper => "other",
            ThreadKind::Cpu => "cpu",
            ThreadKind::Unknown => "unknown",
        }
    }
}

/// Something that happened on a thread.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// The thread exists from here.
    ThreadBegins,
    /// The thread's role is known.
    ThreadIs(ThreadKind),
    /// The runtime's word for the thread is known; the first one stays.
    ThreadServesAs(RuntimeRole),
    /// The thread is a member of a team, so it is a worker of its process.
    ThreadWorks,
    /// The thread has ended.
    ThreadEnds,
    /// Changes to this section: it entered or left one, or its section turned out to be this.
    Becomes(Section),
    /// A CPU shows this thread's sections from here on; none: no thread runs on it, and it is idle.
    Shows(ThreadIndex),
    /// Begin or end of the time in which several threads run on a CPU at once, although only one can.
    IsShared(bool),
    /// Replaces the section that ended at this time; task and region stay.
    Was(Section),
    /// Begins a parallel region.
    RegionBegins {
        /// The region.
        region: RegionIndex,
        /// The region around it, if any.
        parent: RegionIndex,
        /// Place of the construct.
        site: SiteIndex,
        /// Requested threads; 0 if not known.
        requested: u32,
    },
    /// Becomes a member of a region's team.
    RegionJoins {
        /// The region.
        region: RegionIndex,
        /// Number in the team.
        index: u32,
        /// Size of the team; 0 if not known.
        team: u32,
    },
    /// Has fewer threads for a region than requested, under these limits.
    TeamLimits {
        /// The region.
        region: RegionIndex,
        /// The limits.
        limits: TeamLimits,
    },
    /// Ends a parallel region.
    RegionEnds {
        /// The region.
        region: RegionIndex,
    },
    /// The creation path of a region is known.
    RegionPath {
        /// The region.
        region: RegionIndex,
        /// The path on the master's stack; none if the region is not a construct: its contents belong to its parent.
        path: PathIndex,
        /// The region in which it was created, if any.
        parent_region: RegionIndex,
        /// The explicit task that created it, if any.
        parent_task: TaskIndex,
    },
    /// The creation path of a task is known.
    TaskPath {
        /// The task.
        task: TaskIndex,
        /// The path on its creator's stack.
        path: PathIndex,
    },
    /// Waits in calls at a site by this path from now on.
    CallPath {
        /// The site of the call.
        site: SiteIndex,
        /// The path on its stack.
        path: PathIndex,
    },
    /// Creates a task.
    TaskCreated {
        /// The task.
        task: TaskIndex,
        /// Its type.
        ty: TypeIndex,
        /// The explicit task that creates it, if any.
        parent: TaskIndex,
        /// The region in which it is created, if any.
        region: RegionIndex,
    },
    /// A task is known of which the creation is not recorded.
    TaskFound {
        /// The task.
        task: TaskIndex,
        /// Its type.
        ty: TypeIndex,
        /// The region in which it is found, if any.
        region: RegionIndex,
    },
    /// The task may have been executed unseen: whether it was is not recorded.
    TaskUnseen {
        /// The task.
        task: TaskIndex,
    },
    /// Starts or resumes a task.
    TaskStarts {
        /// The task.
        task: TaskIndex,
    },
    /// The body of the task has ended; the task ends when its detach event is fulfilled.
    TaskDetaches {
        /// The task.
        task: TaskIndex,
    },
    /// Ended the task.
    TaskEnds {
        /// The task.
        task: TaskIndex,
    },
    /// The last `TaskEnds` of this task was a suspension.
    TaskSuspends {
        /// The task.
        task: TaskIndex,
    },
    /// The task is able to run.
    TaskReady {
        /// The task.
        task: TaskIndex,
    },
    /// The task has ended, on any thread.
    TaskIsOver {
        /// The task.
        task: TaskIndex,
    },
    /// The task ended by cancellation.
    TaskCancelled {
        /// The task.
        task: TaskIndex,
    },
    /// A task declared a dependence.
    TaskDepends {
        /// The task.
        task: TaskIndex,
        /// Address.
        address: u64,
        /// OMPT dependence type.
        kind: u8,
    },
    /// The `taskwait depend` that the thread is in declared a dependence.
    WaitDepends {
        /// Address.
        address: u64,
        /// OMPT dependence type.
        kind: u8,
    },
    /// Begins its share of a worksharing construct.
    WorkBegins {
        /// The construct.
        ty: TypeIndex,
        /// The region with the team that shares it.
        region: RegionIndex,
    },
    /// Ends its share of the innermost worksharing construct.
    WorkEnds,
    /// Starts a chunk of the innermost worksharing construct.
    Chunk {
        /// First iteration.
        start: u64,
        /// Iterations.
        iterations: u64,
    },
    /// Holds an object.
    Acquires {
        /// The object.
        object: ObjectIndex,
        /// The place of the request.
        site: SiteIndex,
    },
    /// Reports that it has released an object. The report may come after the next holder's.
    Releases {
        /// The object.
        object: ObjectIndex,
    },
    /// A change of messages between processes.
    Message(MessageChange),
    /// Waits for another thread, or ends such a wait.
    ThreadWait(crate::ThreadWaitChange),
    /// Events of this thread were lost between its previous change and here, or, if `lasts`, from here to its end: the
    /// remaining changes end open sections.
    Lost {
        /// Number of events.
        events: u64,
        /// Whether nothing new was recorded from here on.
        lasts: bool,
    },
}

/// An event that contradicts the known state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Anomaly {
    /// An end without its begin; ignored.
    EndWithoutBegin,
    /// An end that does not match the innermost begin; the sections inside were ended too.
    EndsNotInnermost,
    /// A task or region without a recorded creation; taken as created here.
    NotCreated,
    /// A task or region created after its first use (clocks of threads differ); `ns` apart.
    Inverted {
        /// Difference, nanoseconds.
        ns: u64,
    },
    /// A time before the thread's previous one; set to the previous one.
    TimeRunsBack {
        /// Difference, nanoseconds.
        ns: u64,
    },
    /// A payload shorter than the event's fields; the event was ignored.
    ShortPayload,
    /// An event after the thread's end; ignored.
    AfterEnd,
    /// An event that no model knows; ignored.
    UnknownEvent,
    /// The program's own instrumentation contradicts itself.
    Misuse,
}

impl Anomaly {
    /// The names of all kinds.
    pub const NAMES: [&'static str; 9] = [
        "end-without-begin",
        "ends-not-innermost",
        "not-created",
        "inverted-edge",
        "time-runs-back",
        "short-payload",
        "after-end",
        "unknown-event",
        "instrumentation-misuse",
    ];

    /// The name in JSON and for `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Anomaly::EndWithoutBegin => "end-without-begin",
            Anomaly::EndsNotInnermost => "ends-not-innermost",
            Anomaly::NotCreated => "not-created",
            Anomaly::Inverted { .. } => "inverted-edge",
            Anomaly::TimeRunsBack { .. } => "time-runs-back",
            Anomaly::ShortPayload => "short-payload",
            Anomaly::AfterEnd => "after-end",
            Anomaly::UnknownEvent => "unknown-event",
            Anomaly::Misuse => "instrumentation-misuse",
        }
    }

    /// Whether the thread's sections since its last change are uncertain.
    pub const fn is_of_sections(self) -> bool {
        matches!(self, Anomaly::EndWithoutBegin | Anomaly::EndsNotInnermost)
    }

    /// The distance of the two times, for anomalies of times.
    pub const fn nanos(self) -> u64 {
        match self {
            Anomaly::Inverted { ns } | Anomaly::TimeRunsBack { ns } => ns,
            _ => 0,
        }
    }
}
