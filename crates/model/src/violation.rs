//! Broken rules, each with a stable code, two verdicts, and a place.
//!
//! ovniemu's verdict and ours differ on purpose in some rows; `docs/ovni-compatibility.md` lists
//! them, and a test holds that list against [`ViolationCode::ALL`].

use taskscope_event::Code;

/// Severity of a violation.
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
    MissingPart "missing-part" Error Error "The stream does not state its part of the system."
    MissingRequire "missing-require" Error Error "The stream does not state its models."
    MissingFinished "missing-finished" Error Error "The thread did not end its stream; its last events may be missing."
    NotFreed "not-freed" Error Warning "The thread or its process ended without `ovni_thread_free`; the stream is complete."
    MissingTid "missing-tid" Error Error "The stream does not state its thread."
    MissingPid "missing-pid" Error Error "The stream does not state its process."
    MissingLoom "missing-loom" Error Error "The stream does not state its loom, a set of CPUs."
    MissingLibrary "missing-library-version" Error Warning "The stream does not state the version of its recording library."
    MissingCommit "missing-library-commit" Error Warning "The stream does not state the commit of its recording library."
    MixedLibraries "mixed-libraries" Warning Warning "Streams were recorded by different versions of the library."
    BadLoomName "bad-loom-name" Error Error "A loom's name contains a slash."
    BadAppId "bad-app-id" Error Error "An application id is missing, not positive, or differs within a process."
    BadRank "bad-rank" Error Error "Ranks of a process differ, are out of range, or only some processes of a loom have one."
    BadCpus "bad-cpus" Error Error "The CPUs of a loom are missing or contradict each other."
    RepeatedThread "repeated-thread" Error Error "Two streams claim to be the same thread."
    BadModelVersion "bad-model-version" Error Error "A stream needs a version of a model that is not supported."
    UnknownModelRequired "unknown-model-required" Silent Warning "A stream needs an unknown model; its events are skipped."
    BadMark "bad-mark" Error Error "Threads declare user marks wrongly or differently."
    BadCounters "bad-counters" Error Error "Threads declare hardware counters differently."
    UnknownPart "unknown-part" Warning Warning "The stream is not of a thread; it is skipped."
    UnknownPartEvents "unknown-part-events" Error Warning "A stream of an unknown part has events, which are skipped."
    // reading
    Unreadable "unreadable" Error Error "A file could not be read."
    BadMetadata "bad-metadata" Error Error "A stream.json is malformed, or has an unsupported version."
    MissingMetadata "missing-metadata" Silent Error "A stream's events have no stream.json, and are skipped."
    BadStream "bad-stream" Error Error "A stream file has no valid header."
    TruncatedEvent "truncated-event" Error Error "A stream ends in the middle of an event; later events are missing."
    ZeroTail "zero-tail" Error Error "A finished stream ends in zeros."
    EmptyStream "empty-stream" Warning Warning "A stream has no events."
    ClockGoesBack "clock-goes-back" Error Error "A clock is lower than the one before it in the same stream."
    ClockTooLarge "clock-too-large" Error Error "A clock exceeds 63 bits; it is clamped."
    UnsortedRegion "unsorted-region" Error Silent "Regions of unsorted events must be sorted (`taskscope sort`); reading sorts them automatically."
    OpenUnsortedRegion "open-unsorted-region" Silent Warning "A region of unsorted events is never closed."
    ClockOffsets "clock-offsets" Error Error "The clock offsets cannot be used."
    NoClockOffsets "no-clock-offsets" Warning Warning "Clock offsets of one or more hosts are missing: their times may not be comparable."
    ClockGate "clock-gate" Error Error "Clocks of streams start more than an hour apart: the offsets between hosts are missing or wrong."
    EventsLost "events-lost" Silent Warning "The recorder has lost events."
    // any event
    UnknownEvent "unknown-event" Error Error "No model declares this event."
    UnknownOwnEvent "unknown-own-event" Silent Error "No model of taskscope declares this event."
    ModelNotEnabled "model-not-enabled" Error Error "The event belongs to a model that no thread requires (`-a` enables all)."
    ThreadNotActive "thread-not-active" Error Error "Only a running, cooling or warming thread may emit this event."
    ThreadNotRunning "thread-not-running" Error Error "Only a running thread may emit this event."
    ThreadOutOfCpu "thread-out-of-cpu" Error Error "The thread emitted this event while the kernel had it off its CPU."
    PayloadSize "payload-size" Error Error "The event's payload is too short, or of the wrong kind."
    JumboPayload "jumbo-payload" Silent Error "The event's payload is jumbo, but declared as plain."
    PayloadShort "payload-short" Silent Error "The event's payload is shorter than declared."
    PayloadExtra "payload-extra" Silent Warning "The event's payload is longer than declared."
    LabelNotTerminated "label-not-terminated" Silent Error "A label has no terminating zero byte."
    EventAfterEnd "event-after-end" Silent Warning "The thread emits events after its end."
    OldEvent "old-event" Warning Silent "The event is from an old version and is ignored."
    // threads and CPUs
    ThreadState "thread-state" Error Error "The thread cannot change its state in this way."
    ThreadHasCpu "thread-has-cpu" Error Error "The thread starts while it is already on a CPU."
    ThreadRestarted "thread-restarted" Silent Warning "The thread executes again after its end."
    ThreadNoCpu "thread-no-cpu" Error Error "The thread is on no CPU."
    UnknownCpu "unknown-cpu" Error Error "No CPU of the loom has this index."
    UnknownThread "unknown-thread" Error Error "No thread of the process or loom has this id."
    AffinityUnchanged "affinity-unchanged" Error Warning "The thread moves to its present CPU."
    TwoThreadsOnCpu "two-threads-on-cpu" Error Error "Two threads run on one CPU at the same time."
    SameInstantHandover "same-instant-handover" Error Silent "One thread leaves a CPU and another enters it at the same nanosecond."
    ThreadNotDead "thread-not-dead" Error Error "The thread never ended."
    FlushTwice "flush-twice" Error Error "A flush begins or ends twice."
    // channels
    PopEmpty "pop-empty" Error Error "A section ends without a begin."
    PopMismatch "pop-mismatch" Error Error "A section ends while another is open inside it."
    StackFull "stack-full" Error Error "More than 512 sections are nested."
    SameValue "same-value" Error Error "The same section or state is entered twice in a row."
    StackNotEmpty "stack-not-empty" LintError Error "A thread ended with open sections."
    OtherStackNotEmpty "other-stack-not-empty" Silent Error "A thread ended in an open task, label or kind of thread."
    // tasks
    UnknownType "unknown-type" Error Error "No task type has this id."
    RepeatedType "repeated-type" Error Error "A task type is created twice."
    BadLabel "bad-label" Error Error "A task type's label is too long."
    LabelCollision "label-collision" Error Warning "Two labels have the same value in views."
    UnknownTask "unknown-task" Error Error "No task has this id."
    RepeatedTask "repeated-task" Error Error "A task is created twice."
    TaskZero "task-zero" Error Error "Task ids start at 1."
    BadBodyId "bad-body-id" Error Error "Parallel tasks have bodies from 1, other tasks none."
    TaskState "task-state" Error Error "The task's state does not permit this event."
    TaskNesting "task-nesting" Error Error "A task starts on top of one that is still running."
    // marks and counters
    UnknownMark "unknown-mark" Error Error "No mark of this type is declared."
    MarkZero "mark-zero" Error Error "A mark's value is 0, which is reserved."
    MarkKind "mark-kind" Error Error "A mark is set although its type is a stack, or pushed although it is not."
    NoCounters "no-counters" Error Error "Hardware counters are not declared."
    // instrumentation
    Misuse "instrumentation-misuse" Silent Error "The program's own instrumentation contradicts itself."
    MisuseNoticed "instrumentation-mistake" Silent Error "The program misused its instrumentation, and the recorder noticed."
    UnknownName "unknown-name" Silent Error "An event uses an undeclared key, state, domain or kind of tasks."
    NameConflict "name-conflict" Silent Error "A key or state has different meanings in two processes."
    MessageUnmatched "message-unmatched" Silent Warning "A message has only one half."
    LateEvents "late-events" Silent Error "The program raised events after it had ended the recording."
    // summaries
    BreakdownUnknown "breakdown-unknown" Error Silent "A stream does not state whether it has the events of the breakdown."
    NoBreakdown "no-breakdown" Warning Silent "The breakdown view is not available."
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
