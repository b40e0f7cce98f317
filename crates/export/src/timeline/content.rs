//! The contents of runs over time, and their forms in formats.

/// A kind of facts that a run over time has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Sections of threads and CPUs.
    Sections,
    /// Files, lines and functions of sections.
    Places,
    /// Numbers of tasks and regions.
    TaskNumbers,
    /// Colours of states.
    Colours,
    /// Arrows from creations of tasks to their starts.
    Creations,
    /// Arrows between tasks that depend on each other.
    Dependences,
    /// Arrows from sends to receives.
    Messages,
    /// Parts of processes in collective operations.
    Collectives,
    /// Counters of processes.
    Counters,
    /// Operations of devices.
    Operations,
    /// Arrows from submissions to operations of devices.
    Submissions,
    /// Calls of the host that concern devices.
    DeviceCalls,
    /// Intervals in which the state of a thread is uncertain, or its events were lost.
    Doubts,
    /// Waits of threads for each other outside of a runtime's constructs.
    ThreadWaits,
    /// Arrows from the threads that end such waits: holders of locks, wakers.
    Wakes,
    /// Samples of call stacks.
    Samples,
}

impl Content {
    /// All kinds.
    pub const ALL: [Content; 16] = [
        Content::Sections,
        Content::Places,
        Content::TaskNumbers,
        Content::Colours,
        Content::Creations,
        Content::Dependences,
        Content::Messages,
        Content::Collectives,
        Content::Counters,
        Content::Operations,
        Content::Submissions,
        Content::DeviceCalls,
        Content::Doubts,
        Content::ThreadWaits,
        Content::Wakes,
        Content::Samples,
    ];

    /// Its plural in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Content::Sections => "sections",
            Content::Places => "source places",
            Content::TaskNumbers => "sections with task numbers",
            Content::Colours => "colours",
            Content::Creations => "task creations",
            Content::Dependences => "dependences",
            Content::Messages => "messages",
            Content::Collectives => "parts in collective operations",
            Content::Counters => "counters",
            Content::Operations => "device operations",
            Content::Submissions => "device submissions",
            Content::DeviceCalls => "device calls",
            Content::Doubts => "uncertain intervals",
            Content::ThreadWaits => "waits of threads for each other",
            Content::Wakes => "ends of waits by other threads",
            Content::Samples => "samples",
        }
    }
}

/// The form of a content in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is kept in this form.
    As(&'static str),
    /// It is lost, for this reason.
    Not(&'static str),
}

/// A content of a run and its form in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The content's name, in the plural.
    pub content: &'static str,
    /// Number in the run.
    pub count: u64,
    /// The form, or the reason why it is lost.
    pub held: Held,
}

/// Something that a format does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The content's name, in the plural.
    pub content: &'static str,
    /// Number of lost ones.
    pub count: u64,
    /// The reason.
    pub why: &'static str,
}
