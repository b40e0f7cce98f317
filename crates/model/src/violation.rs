//! Broken rules, each with a stable code, two verdicts, and a place.
//!
//! ovniemu's verdict and ours differ on purpose in some rows; `docs/ovni-compatibility.md` lists
//! them, and a test holds that list against [`ViolationCode::ALL`].

use taskscope_event::Code;

/// How much a violation weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Accepted without a word.
    Silent,
    /// Reported; the trace is accepted.
    Warning,
    /// The trace is rejected.
    Error,
    /// The trace is rejected, but only when stacks are checked at the end (`-l`).
    LintError,
}

macro_rules! violation_codes {
    ($( $variant:ident $name:literal $ovni:ident $own:ident $meaning:literal )*) => {
        /// Every rule that a trace can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ViolationCode {
            $( #[doc = $meaning] $variant, )*
        }

        impl ViolationCode {
            /// All codes.
            pub const ALL: &'static [ViolationCode] = &[$( ViolationCode::$variant, )*];

            /// The stable name, as in messages and `--json`.
            pub fn name(self) -> &'static str {
                match self { $( ViolationCode::$variant => $name, )* }
            }

            /// Severity in ovniemu.
            pub fn ovni_severity(self) -> Severity {
                match self { $( ViolationCode::$variant => Severity::$ovni, )* }
            }

            /// Severity in `check`.
            pub fn severity(self) -> Severity {
                match self { $( ViolationCode::$variant => Severity::$own, )* }
            }

            /// Meaning for readers of the trace.
            pub fn meaning(self) -> &'static str {
                match self { $( ViolationCode::$variant => $meaning, )* }
            }
        }
    };
}

violation_codes! {
    // metadata
    MissingPart "missing-part" Error Error "The stream does not say which part of the system it belongs to."
    MissingRequire "missing-require" Error Error "The stream does not say which models it needs."
    MissingFinished "missing-finished" Error Error "The thread did not end its stream; what it did last may be missing."
    NotFreed "not-freed" Error Warning "The thread or its process ended without `ovni_thread_free`; the stream is whole."
    MissingTid "missing-tid" Error Error "The stream does not say which thread wrote it."
    MissingPid "missing-pid" Error Error "The stream does not say which process wrote it."
    MissingLoom "missing-loom" Error Error "The stream does not say on which CPUs it ran."
    MissingLibrary "missing-library-version" Error Warning "The stream does not say which library recorded it."
    MissingCommit "missing-library-commit" Error Warning "The stream does not say from which source its library was built."
    MixedLibraries "mixed-libraries" Warning Warning "Streams were recorded by different versions of the library."
    BadLoomName "bad-loom-name" Error Error "A loom's name holds a slash."
    BadAppId "bad-app-id" Error Error "An application id is missing, not positive, or differs within a process."
    BadRank "bad-rank" Error Error "Ranks of a process differ, are out of range, or only some processes of a loom have one."
    BadCpus "bad-cpus" Error Error "The CPUs of a loom are missing or contradict each other."
    RepeatedThread "repeated-thread" Error Error "Two streams claim to be the same thread."
    BadModelVersion "bad-model-version" Error Error "A stream needs a version of a model that is not supported."
    UnknownModelRequired "unknown-model-required" Silent Warning "A stream needs a model that is not known; its events are skipped."
    BadMark "bad-mark" Error Error "User marks are declared wrongly or differently by threads."
    BadCounters "bad-counters" Error Error "Hardware counters are declared differently by threads."
    UnknownPart "unknown-part" Warning Warning "The stream is of a part that is no thread; it is left out."
    UnknownPartEvents "unknown-part-events" Error Warning "A stream of an unknown part has events, which are left out."
    // reading
    Unreadable "unreadable" Error Error "Something could not be read."
    BadMetadata "bad-metadata" Error Error "A stream.json cannot be understood, or is of another version."
    MissingMetadata "missing-metadata" Silent Error "A stream's events have no stream.json, and are left out."
    BadStream "bad-stream" Error Error "A stream file has no valid header."
    TruncatedEvent "truncated-event" Error Error "A stream ends in the middle of an event; what came later is missing."
    ZeroTail "zero-tail" Error Error "A finished stream ends in zeros."
    EmptyStream "empty-stream" Warning Warning "A stream has no events."
    ClockGoesBack "clock-goes-back" Error Error "A clock is lower than the one before it in the same stream."
    ClockTooLarge "clock-too-large" Error Error "A clock is beyond what 63 bits hold; it is taken as the largest."
    UnsortedRegion "unsorted-region" Error Silent "Regions of unsorted events must be sorted (`taskscope sort`); reading does that by itself."
    OpenUnsortedRegion "open-unsorted-region" Silent Warning "A region of unsorted events is never closed."
    ClockOffsets "clock-offsets" Error Error "The clock offsets cannot be used."
    NoClockOffsets "no-clock-offsets" Warning Warning "Several hosts, and no clock offsets of some or all: their times may not compare."
    ClockGate "clock-gate" Error Error "Clocks of streams start more than an hour apart: the offsets between hosts are missing or wrong."
    EventsLost "events-lost" Silent Warning "The recorder says that it lost events."
    // any event
    UnknownEvent "unknown-event" Error Error "No model declares this event."
    UnknownOwnEvent "unknown-own-event" Silent Error "No model of taskscope declares this event."
    ModelNotEnabled "model-not-enabled" Error Error "The event belongs to a model that no thread requires (`-a` enables all)."
    ThreadNotActive "thread-not-active" Error Error "Only a thread that is running, cooling or warming can do this."
    ThreadNotRunning "thread-not-running" Error Error "Only a running thread can do this."
    ThreadOutOfCpu "thread-out-of-cpu" Error Error "The kernel had taken the thread off its CPU when it did this."
    PayloadSize "payload-size" Error Error "The event has too little payload, or payload of the wrong kind."
    JumboPayload "jumbo-payload" Silent Error "The event's payload is jumbo where its declaration says that it is plain."
    PayloadShort "payload-short" Silent Error "The event has less payload than it declares."
    PayloadExtra "payload-extra" Silent Warning "The event has more payload than it declares."
    LabelNotTerminated "label-not-terminated" Silent Error "A label has no terminating zero byte."
    EventAfterEnd "event-after-end" Silent Warning "The thread has ended and still emits events."
    OldEvent "old-event" Warning Silent "The event is from an old version and is ignored."
    // threads and CPUs
    ThreadState "thread-state" Error Error "The thread cannot change its state like this."
    ThreadHasCpu "thread-has-cpu" Error Error "The thread starts although it is on a CPU already."
    ThreadRestarted "thread-restarted" Silent Warning "The thread executes again after its end."
    ThreadNoCpu "thread-no-cpu" Error Error "The thread is on no CPU."
    UnknownCpu "unknown-cpu" Error Error "No CPU of the loom has this index."
    UnknownThread "unknown-thread" Error Error "No thread of the process or loom has this id."
    AffinityUnchanged "affinity-unchanged" Error Warning "The thread moves to the CPU where it already is."
    TwoThreadsOnCpu "two-threads-on-cpu" Error Error "Two threads run on one CPU at the same time."
    SameInstantHandover "same-instant-handover" Error Silent "One thread leaves a CPU and another enters it at the same nanosecond."
    ThreadNotDead "thread-not-dead" Error Error "The thread never ended."
    FlushTwice "flush-twice" Error Error "A flush begins or ends twice."
    // channels
    PopEmpty "pop-empty" Error Error "A section ends that never began."
    PopMismatch "pop-mismatch" Error Error "A section ends that is not the innermost one."
    StackFull "stack-full" Error Error "More than 512 sections are nested."
    SameValue "same-value" Error Error "The same section or state is entered twice in a row."
    StackNotEmpty "stack-not-empty" LintError Error "A thread ended with sections that never end."
    OtherStackNotEmpty "other-stack-not-empty" Silent Error "A thread ended in a task or label, or as a kind of thread, that never ends."
    // tasks
    UnknownType "unknown-type" Error Error "No task type has this id."
    RepeatedType "repeated-type" Error Error "A task type is created twice."
    BadLabel "bad-label" Error Error "A task type's label is too long."
    LabelCollision "label-collision" Error Warning "Two labels have the same value in views."
    UnknownTask "unknown-task" Error Error "No task has this id."
    RepeatedTask "repeated-task" Error Error "A task is created twice."
    TaskZero "task-zero" Error Error "Task ids start at 1."
    BadBodyId "bad-body-id" Error Error "Parallel tasks have bodies from 1, other tasks none."
    TaskState "task-state" Error Error "The task cannot do this in its state."
    TaskNesting "task-nesting" Error Error "A task starts on top of one that is still running."
    // marks and counters
    UnknownMark "unknown-mark" Error Error "No mark of this type is declared."
    MarkZero "mark-zero" Error Error "A mark's value is 0, which means nothing."
    MarkKind "mark-kind" Error Error "A mark is set on a stack, or pushed where there is none."
    NoCounters "no-counters" Error Error "Hardware counters come without having been declared."
    // instrumentation
    Misuse "instrumentation-misuse" Silent Error "The program's own instrumentation contradicts itself."
    MisuseNoticed "instrumentation-mistake" Silent Error "The program misused its instrumentation, and the recorder noticed."
    UnknownName "unknown-name" Silent Error "An event uses a key, state, domain or kind of tasks that nobody named."
    NameConflict "name-conflict" Silent Error "A key or state has different meanings in two processes."
    MessageUnmatched "message-unmatched" Silent Warning "Half a message has no other half."
    LateEvents "late-events" Silent Error "The program raised events after it had ended the recording."
    // summaries
    BreakdownUntold "breakdown-untold" Error Silent "A stream does not say whether it has what the breakdown needs."
    NoBreakdown "no-breakdown" Warning Silent "The breakdown view cannot be made."
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The broken rule.
    pub code: ViolationCode,
    /// Relative path of the stream; empty for the trace as a whole.
    pub stream: String,
    /// The event that broke it.
    pub event: Option<Code>,
    /// Its byte offset in the stream.
    pub offset: Option<u64>,
    /// Its time, nanoseconds since the first event of the trace.
    pub time_ns: Option<i64>,
    /// Number of occurrences; the place is that of the first.
    pub count: u64,
    /// Description of the event, a sentence without a final period.
    pub text: String,
}
