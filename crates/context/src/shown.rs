//! What a thread or a task shows.

use crate::raw::{Message, Pairs};

/// What is shown of a context at a switch, and how a pop or close looks: the four variants that Nanos++'s
/// articles describe, and none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Behaviour {
    /// The innermost state and, of each key, the newest burst. A pop shows the state below again, a
    /// close the burst below: as a begin, without an end before it.
    Plain,
    /// All states; bursts as in `Plain`.
    StackedStates,
    /// All bursts; states as in `Plain`.
    StackedBursts,
    /// All states and all bursts.
    Stacked,
    /// Nothing is shown again at a switch: tasks are taken up and put down with what they have open. For
    /// receivers that keep contexts themselves.
    Raw,
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Behaviour; 5] = [
        Behaviour::Plain,
        Behaviour::StackedStates,
        Behaviour::StackedBursts,
        Behaviour::Stacked,
        Behaviour::Raw,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Behaviour::Plain => "plain",
            Behaviour::StackedStates => "stacked-states",
            Behaviour::StackedBursts => "stacked-bursts",
            Behaviour::Stacked => "stacked",
            Behaviour::Raw => "raw",
        }
    }

    /// The behaviour of this name.
    pub fn of_name(name: &str) -> Option<Behaviour> {
        Behaviour::ALL.into_iter().find(|behaviour| behaviour.name() == name)
    }

    pub(crate) const fn stacks_states(self) -> bool {
        !matches!(self, Behaviour::Plain | Behaviour::StackedBursts)
    }

    pub(crate) const fn stacks_bursts(self) -> bool {
        !matches!(self, Behaviour::Plain | Behaviour::StackedStates)
    }
}

/// Whose sequence an item belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Of a thread, by its index.
    Thread(u32),
    /// Of a task of a process.
    Task {
        /// The process's index.
        process: u32,
        /// The task's number in it.
        task: u64,
    },
}

/// One step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the event table")]
pub enum Shown<'a> {
    StateStart(u32),
    StateEnd(u32),
    /// A state change while states were hidden.
    SubstateStart(u32),
    SubstateEnd(u32),
    BurstStart {
        key: u32,
        value: u64,
    },
    BurstEnd {
        key: u32,
        value: u64,
    },
    Point {
        key: u32,
        value: u64,
    },
    Composite(Pairs<'a>),
    Send(Message),
    Receive(Message),
    /// On tasks, and on threads with [`Behaviour::Raw`]: the task exists, made by this one (0: by none).
    Created {
        task: u64,
        kind: u32,
        parent: u64,
    },
    /// Likewise: it can run.
    Ready {
        task: u64,
    },
    /// Likewise: this thread has taken it up.
    Resume {
        task: u64,
        thread: u32,
    },
    /// Likewise: this thread has put it down, for good or not.
    Suspend {
        task: u64,
        thread: u32,
        last: bool,
    },
}

/// A step with its place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Whose sequence.
    pub lane: Lane,
    /// The thread whose event it was.
    pub thread: u32,
    /// When, as the event said.
    pub at: u64,
    /// On tasks: nanoseconds that it had run by then.
    pub own_ns: u64,
    /// What.
    pub shown: Shown<'a>,
}
