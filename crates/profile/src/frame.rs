//! One step of a call path.

use taskscope_cause::{Blamed, Group, State, Text};

/// Module of a frame outside of all modules; its offset is then an unchanged address.
pub const NO_MODULE: u32 = u32::MAX;

/// Kind of a step of a call path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FrameKind {
    /// The program's own code, libraries that it called included.
    User = 1,
    /// Code of the parallel runtime, and its callees. Hidden in views by default.
    Runtime = 2,
    /// The thread's state outside of its own code: a [`Marker`]. Placed below the user frames and above the
    /// runtime's.
    State = 3,
    /// The path from here outwards is the creation path of the region or task with the number in the offset,
    /// which is not known yet. In a file: it never became known.
    Pending = 4,
    /// Unwinding stopped here; outer frames are unknown.
    Cut = 5,
    /// User code: the outermost frame of a parallel region's body. Its outer frames are the path of its
    /// creation.
    Region = 6,
    /// User code: the outermost frame of an explicit task's body. Its outer frames are the path of its
    /// creation.
    Task = 7,
}

impl FrameKind {
    /// Whether it is the program's own code.
    pub const fn is_user(self) -> bool {
        matches!(self, FrameKind::User | FrameKind::Region | FrameKind::Task)
    }

    pub(crate) fn of(number: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [User, Runtime, State, Pending, Cut, Region, Task].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// State of a thread outside of user code, and the place of unattributed time. The numbers up to 11 are those
/// of waits in `taskscope_event::models::wait::kind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Marker {
    /// Barrier inside a region.
    Barrier = 1,
    /// Barrier at the end of a region.
    JoinBarrier = 2,
    /// For the children of the current task.
    Taskwait = 3,
    /// For the dependences of a `taskwait depend`.
    TaskwaitDepend = 4,
    /// For the tasks of a taskgroup.
    Taskgroup = 5,
    /// For a critical construct.
    Critical = 6,
    /// For a simple lock.
    Lock = 7,
    /// For a nestable lock.
    NestLock = 8,
    /// For the turn in an ordered construct.
    Ordered = 9,
    /// For an atomic construct.
    Atomic = 10,
    /// For a device operation.
    Target = 11,
    /// A worker in no region, or with no task to run.
    Idle = 12,
    /// In the runtime, not waiting: creating, scheduling, forking.
    Runtime = 13,
    /// Waiting while no thread worked, or for a lock without a holder.
    Nobody = 14,
    /// Waiting while all threads with work had no CPU.
    OutOfCpu = 15,
    /// Waited for while all CPUs worked, as there are more workers than CPUs.
    Oversubscribed = 16,
}

impl Marker {
    /// All markers, by number.
    pub const ALL: [Marker; 16] = [
        Marker::Barrier,
        Marker::JoinBarrier,
        Marker::Taskwait,
        Marker::TaskwaitDepend,
        Marker::Taskgroup,
        Marker::Critical,
        Marker::Lock,
        Marker::NestLock,
        Marker::Ordered,
        Marker::Atomic,
        Marker::Target,
        Marker::Idle,
        Marker::Runtime,
        Marker::Nobody,
        Marker::OutOfCpu,
        Marker::Oversubscribed,
    ];

    /// The marker with this number.
    pub fn of(number: u64) -> Option<Marker> {
        Marker::ALL.into_iter().find(|marker| *marker as u64 == number)
    }

    /// Its texts in the vocabulary: of a state, of a group of states, or of blamed code.
    pub const fn text(self) -> &'static Text {
        match self {
            Marker::Barrier => State::Barrier.text(),
            Marker::JoinBarrier => State::JoinBarrier.text(),
            Marker::Taskwait => State::Taskwait.text(),
            Marker::TaskwaitDepend => State::TaskwaitDepend.text(),
            Marker::Taskgroup => State::Taskgroup.text(),
            Marker::Critical => State::CriticalWait.text(),
            Marker::Lock | Marker::NestLock => State::LockWait.text(),
            Marker::Ordered => State::OrderedWait.text(),
            Marker::Atomic => State::AtomicWait.text(),
            Marker::Target => State::TargetWait.text(),
            Marker::Idle => Group::Idle.text(),
            Marker::Runtime => Group::Runtime.text(),
            Marker::Nobody => Blamed::Nobody.text(),
            Marker::OutOfCpu => State::OutOfCpu.text(),
            Marker::Oversubscribed => State::Oversubscribed.text(),
        }
    }

    /// The name in JSON and in the names of metrics.
    pub const fn name(self) -> &'static str {
        self.text().name
    }

    /// The step in text: `<barrier>`.
    pub fn label(self) -> String {
        format!("<{}>", self.text().label)
    }

    /// The wait with the metrics that it counts in: waits for nestable locks are waits for locks.
    pub const fn metric(self) -> Marker {
        match self {
            Marker::NestLock => Marker::Lock,
            marker => marker,
        }
    }

    /// Whether a construct in the body of a region or task is in it. At a region's end the body is left, and
    /// the runtime's other work is around bodies.
    pub const fn is_in_body(self) -> bool {
        self.is_wait() && !matches!(self, Marker::JoinBarrier | Marker::Idle)
    }

    /// Whether there are metrics of its own.
    pub(crate) const fn has_metrics(self) -> bool {
        self.is_wait() && self.metric() as u8 == self as u8
    }

    /// Whether it is a wait that can have blame.
    pub const fn is_wait(self) -> bool {
        !matches!(self, Marker::Runtime | Marker::Nobody | Marker::OutOfCpu | Marker::Oversubscribed)
    }
}

/// One step of a call path: a place in a file of the process, or a marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Frame {
    /// The kind of the step.
    pub kind: FrameKind,
    /// Index into the profile's modules, or [`NO_MODULE`].
    pub module: u32,
    /// For code: a file address (address minus the module's load bias) *inside the instruction* that ran or
    /// called: the program counter of the innermost frame, the return address minus one of all others. For a
    /// state: the [`Marker`]'s number. For a [`body`](Self::body) without code: 0, in no module.
    pub offset: u64,
}

impl Frame {
    /// User code.
    pub const fn user(module: u32, offset: u64) -> Frame {
        Frame { kind: FrameKind::User, module, offset }
    }

    /// Code of the runtime.
    pub const fn runtime(module: u32, offset: u64) -> Frame {
        Frame { kind: FrameKind::Runtime, module, offset }
    }

    /// The state of a thread.
    pub const fn state(marker: Marker) -> Frame {
        Frame { kind: FrameKind::State, module: NO_MODULE, offset: marker as u64 }
    }

    /// Placeholder for the creation path of a region or task, replaced when it is known.
    pub const fn pending(number: u64) -> Frame {
        Frame { kind: FrameKind::Pending, module: NO_MODULE, offset: number }
    }

    /// The body of a region or task (by `kind`) of which no frame is on the stack: its last call was made a jump,
    /// or it is known by events alone.
    pub const fn body(kind: FrameKind) -> Frame {
        Frame { kind, module: NO_MODULE, offset: 0 }
    }

    /// Whether it is a [`body`](Self::body) without code.
    pub fn is_bare_body(self) -> bool {
        matches!(self.kind, FrameKind::Region | FrameKind::Task)
            && (self.module, self.offset) == (NO_MODULE, 0)
    }

    /// Unwinding stopped.
    pub const fn cut() -> Frame {
        Frame { kind: FrameKind::Cut, module: NO_MODULE, offset: 0 }
    }

    /// A state without the line that waits; other steps as they are.
    pub fn without_place(self) -> Frame {
        match self.kind {
            FrameKind::State => Frame { module: NO_MODULE, ..self },
            _ => self,
        }
    }

    /// The marker of a state.
    pub fn marker(self) -> Option<Marker> {
        if self.kind == FrameKind::State { Marker::of(self.offset) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::wait::kind;

    #[test]
    fn waits_have_the_numbers_of_the_event_table() {
        for (marker, number) in [
            (Marker::Barrier, kind::BARRIER),
            (Marker::JoinBarrier, kind::JOIN_BARRIER),
            (Marker::Taskwait, kind::TASKWAIT),
            (Marker::TaskwaitDepend, kind::TASKWAIT_DEPEND),
            (Marker::Taskgroup, kind::TASKGROUP),
            (Marker::Critical, kind::CRITICAL),
            (Marker::Lock, kind::LOCK),
            (Marker::NestLock, kind::NEST_LOCK),
            (Marker::Ordered, kind::ORDERED),
            (Marker::Atomic, kind::ATOMIC),
            (Marker::Target, kind::TARGET),
        ] {
            assert_eq!(marker as u32, number, "{marker:?}");
        }
        for (number, marker) in Marker::ALL.iter().enumerate() {
            assert_eq!(Marker::of(number as u64 + 1), Some(*marker));
        }
    }
}
