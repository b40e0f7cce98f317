//! Shown items of a thread or a task.

use crate::raw::{Message, Pairs};

/// Items shown for a context at a switch, and the effect of a pop or close: the four variants in Nanos++'s
/// articles, and none.
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
    /// No items are re-emitted at a switch: tasks are taken up and put down with their open state. For
    /// receivers that keep contexts themselves.
    Raw,
}

impl Behaviour {
    /// All behaviours.
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
    pub fn from_name(name: &str) -> Option<Behaviour> {
        Behaviour::ALL.into_iter().find(|behaviour| behaviour.name() == name)
    }

    pub(crate) const fn stacks_states(self) -> bool {
        !matches!(self, Behaviour::Plain | Behaviour::StackedBursts)
    }

    pub(crate) const fn stacks_bursts(self) -> bool {
        !matches!(self, Behaviour::Plain | Behaviour::StackedStates)
    }
}

/// Owner of an item's sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// A thread, by its index.
    Thread(u32),
    /// A task of a process.
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
    /// The task can run.
    Ready {
        task: u64,
    },
    /// This thread has taken the task up.
    Resume {
        task: u64,
        thread: u32,
    },
    /// This thread has put the task down, for good or not.
    Suspend {
        task: u64,
        thread: u32,
        last: bool,
    },
}

/// A step with its place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Sequence of the item.
    pub lane: Lane,
    /// The thread of the event.
    pub thread: u32,
    /// Time of the event.
    pub at: u64,
    /// For tasks: running time until then, nanoseconds.
    pub own_ns: u64,
    /// The item.
    pub shown: Shown<'a>,
}
