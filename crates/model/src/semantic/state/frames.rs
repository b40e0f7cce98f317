//! The stack of sections that a thread is in.

use crate::semantic::sections::Subsystem;
use taskscope_event::Code;
use taskscope_execution::{ObjectIndex, Place, RegionIndex, Section, State, TaskIndex, TypeIndex};

/// The opener of a section, which must close it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    Subsystem(Subsystem),
    Task(TaskIndex),
    Work(TypeIndex),
    Masked,
    /// An activity of a thread for a device, by the event that began it.
    Device(Code),
    /// A part of a runtime: model letter and value of its view.
    Part(u8, i16),
    TaskPaused(TaskIndex),
    Paused,
    /// Recording is paused.
    NotRecorded,
    OutOfCpu,
    /// A state with this number, of a program that instruments itself.
    Named(u32),
}

impl Opener {
    /// Whether it ends with `outer`, in which it was opened. ovni keeps a stack for each kind of section: those of different
    /// ones need not nest.
    fn ends_with(self, outer: Opener) -> bool {
        use Opener::*;
        match (self, outer) {
            (Paused | NotRecorded | OutOfCpu, _) | (_, Paused | NotRecorded | OutOfCpu) => false,
            // A task may pause in a call that ends before it resumes.
            (TaskPaused(_), Part(..)) => false,
            (Part(own, _), Part(other, _)) => own == other,
            (Subsystem(_), Task(_) | Work(_)) => false,
            // The body of a region encloses all sections begun there.
            (Task(_) | Work(_), Subsystem(around)) => around == self::Subsystem::UserMicrotask,
            _ => true,
        }
    }
}

/// An open section.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub opener: Opener,
    /// When it was opened.
    pub since: u64,
    pub section: Section,
}

/// Place of waits of one kind, until the next such event.
#[derive(Clone, Copy)]
pub struct Sticky {
    pub place: Place,
    pub object: ObjectIndex,
    pub kind: u32,
}

/// A thread's open sections, innermost last.
#[derive(Debug, Default)]
pub struct Frames {
    open: Vec<Frame>,
    /// Whether ends may be missing, as events were lost: then an end is the end of all that was opened since its begin.
    pub may_lack_ends: bool,
}

/// How an end matched.
#[derive(PartialEq, Eq, Debug)]
pub enum Closed {
    /// The event closed the innermost section, or the innermost of its kind.
    Innermost,
    /// The event closed a section with open ones inside, which should have ended before it and were closed,
    /// too.
    WithInner,
    /// No section of this kind is open.
    Nothing,
}

/// Maximum number of open sections of a thread: more are in damaged traces only.
const MAX_OPEN: usize = 1 << 16;

impl Frames {
    /// Opens a section. Beyond the limit the oldest are forgotten, so memory stays bounded.
    #[inline(always)]
    pub fn push(&mut self, frame: Frame) {
        if self.open.len() == MAX_OPEN {
            self.open.drain(..MAX_OPEN / 2);
        }
        self.open.push(frame);
    }

    /// Closes the innermost section of this opener.
    #[inline(always)]
    pub fn pop(&mut self, opener: Opener) -> Closed {
        if self.open.last().is_some_and(|top| top.opener == opener) {
            self.open.pop();
            return Closed::Innermost;
        }
        self.pop_with_inner(opener)
    }

    #[inline(never)]
    fn pop_with_inner(&mut self, opener: Opener) -> Closed {
        let Some(row) = self.open.iter().rposition(|frame| frame.opener == opener) else {
            return Closed::Nothing;
        };
        let closed = self.open[row].section;
        let around = row.checked_sub(1).map_or(TaskIndex::NONE, |outer| self.open[outer].section.task);
        // A pause of recording loses no ends.
        let ends_all = self.may_lack_ends && opener != Opener::NotRecorded;
        let before = self.open.len();
        let mut at = 0;
        self.open.retain_mut(|frame| {
            at += 1;
            if at <= row {
                return true;
            }
            if frame.section.task == closed.task {
                frame.section.task = around;
            }
            at > row + 1 && !ends_all && !frame.opener.ends_with(opener)
        });
        if self.open.len() + 1 == before { Closed::Innermost } else { Closed::WithInner }
    }

    /// The innermost section.
    #[inline(always)]
    pub fn top(&self) -> Option<&Frame> {
        self.open.last()
    }

    /// The innermost section, to change it.
    pub fn top_mut(&mut self) -> Option<&mut Frame> {
        self.open.last_mut()
    }

    /// The innermost open section of this opener, if any.
    pub fn find(&self, opener: Opener) -> Option<&Frame> {
        self.open.iter().rfind(|frame| frame.opener == opener)
    }

    /// Mutable access to the innermost section.
    pub fn find_mut(&mut self, opener: Opener) -> Option<&mut Frame> {
        self.open.iter_mut().rfind(|frame| frame.opener == opener)
    }

    /// The open implicit task of the thread in this region, if any, and whether it has no open sections.
    pub fn implicit_task_mut(&mut self, region: RegionIndex) -> Option<(&mut Frame, bool)> {
        let opener = Opener::Subsystem(Subsystem::UserMicrotask);
        let row = self.open.iter().rposition(|f| f.opener == opener && f.section.region == region)?;
        let innermost = row + 1 == self.open.len();
        Some((&mut self.open[row], innermost))
    }

    /// Moves the implicit task that began at `at`, and the sections opened in it since, into `region`.
    /// Returns whether there is one.
    pub fn adopt_region(&mut self, at: u64, region: RegionIndex, place: Place) -> bool {
        let opener = Opener::Subsystem(Subsystem::UserMicrotask);
        let begun = |frame: &Frame| frame.opener == opener && frame.since == at;
        let Some(row) = self.open.iter().rposition(begun) else { return false };
        let before = self.open[row].section.region;
        self.open[row].section.place = place;
        for frame in self.open[row..].iter_mut().filter(|frame| frame.section.region == before) {
            frame.section.region = region;
        }
        true
    }

    /// The region of which the thread is a member by its innermost implicit task.
    pub fn region(&self) -> RegionIndex {
        self.open.last().map_or(RegionIndex::NONE, |frame| frame.section.region)
    }

    /// The innermost explicit task.
    pub fn task(&self) -> TaskIndex {
        self.open.last().map_or(TaskIndex::NONE, |frame| frame.section.task)
    }

    /// Turns all sections of the region that has ended, which is at `place`, into idle time, if the innermost is a wait in
    /// it: the runtime reports the end of a worker's last barrier only when it next needs the worker.
    pub fn idle_after(&mut self, region: RegionIndex, place: Place) -> bool {
        let waits = self.top().is_some_and(|top| {
            top.section.region == region && top.section.state.group() == taskscope_execution::Group::Sync
        });
        if waits {
            for frame in self.open.iter_mut().filter(|frame| frame.section.region == region) {
                frame.section = Section { place, ..Section::of(State::Idle) };
            }
        }
        waits
    }
}
