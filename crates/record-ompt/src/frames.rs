//! One stack of a thread's open constructs: regions, implicit tasks, tasks, worksharing, waits, locks.
//!
//! Runtimes report some ends late and some never (gcc's `single`, a task that moves to another thread). The
//! stack lets every begin event get its end, in order, before the enclosing construct ends.
//!
//! ```text
//!   Region ▸ Member ▸ Work ▸ Wait ▸ Task ▸ Wait        one thread's stack, innermost last
//!   └───────────┴────────────────────┴── contexts: an end in one context never closes an entry
//!                                        of the one beneath
//! ```

use core::cell::Cell;

use crate::profiling::State;
use crate::sections::SectionCodes;

/// ovni's emulator keeps at most 512 values per stack. Beyond this depth only the innermost entry is shown:
/// the one beneath ends while another is above it, and begins again afterwards.
pub const DEEPEST_SHOWN: usize = 480;

/// Progress of an implicit task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In user code.
    Running,
    /// In the barrier at the region's end, or at that of a league of teams.
    Joining { league: bool },
    /// Behind it; the runtime has not reported the end yet.
    Joined,
}

/// Something that is open on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A parallel region that this thread has forked.
    Region { region: u32 },
    /// This thread's implicit task in the team of a region.
    Member { region: u32, phase: Phase },
    /// An explicit task that runs.
    Task { id: u32 },
    /// A worksharing construct of this type and OMPT kind; not every kind is a section of ovni's.
    Work { typeid: u32, kind: u8, codes: Option<SectionCodes> },
    /// A wait or a critical construct; `state` is the thread's state for samples.
    Section { codes: SectionCodes, state: u32 },
    /// The scope of a taskgroup.
    Taskgroup,
    /// A masked construct.
    Masked,
    /// An MPI function of this number that ovni has no section for; of a profile, any, by
    /// [`SectionCodes::call_number`].
    Call { function: u32 },
    /// The combination of a reduction's values.
    Reduction,
    /// A device construct, or a part of one.
    Device(Device),
}

/// An activity of a thread for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A target construct.
    Target,
    /// A data operation.
    Data,
    /// The submission of a kernel.
    Submit,
}

impl Open {
    /// Whether it is a region or a task.
    #[inline]
    pub fn is_context(self) -> bool {
        matches!(self, Open::Region { .. } | Open::Member { .. } | Open::Task { .. })
    }

    /// Whether its end is in `taskscope.obs` alone, and so comes after the ends of the same time in `stream.obs`.
    #[inline]
    pub fn is_own(self) -> bool {
        use Open::*;
        matches!(self, Taskgroup | Masked | Reduction | Device(_) | Call { .. })
    }

    /// The explicit task; 0 for other entries.
    #[inline(always)]
    fn task(self) -> u32 {
        if let Open::Task { id } = self { id } else { 0 }
    }

    /// Whether it is a task to the runtime, implicit or explicit.
    #[inline]
    fn is_task(self) -> bool {
        matches!(self, Open::Member { .. } | Open::Task { .. })
    }
}

/// One entry of the stack.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The open construct.
    pub open: Open,
    /// The code site that opened it; 0 is unknown.
    pub site: u32,
    /// In profile mode, the state that time is counted for while this entry is innermost.
    pub state: State,
    /// Whether the trace shows it: false if it was opened during a pause.
    pub shown: bool,
    /// For a context: the one beneath, as [`Frames::context`].
    pub outer: u32,
}

/// The stack.
#[derive(Default)]
pub struct Frames {
    /// The entries, innermost last.
    pub stack: Vec<Frame>,
    /// Length of the stack up to and including the innermost context; 0 if there is none.
    pub context: usize,
    /// Implicit and explicit tasks among them.
    tasks: u32,
    /// The explicit task that is the innermost context; 0 for other contexts.
    task: u32,
    /// Address at which the runtime entered the innermost context's code, if it was queried; 0 if not, and
    /// for an initial task.
    exit: Cell<u64>,
}

impl Frames {
    /// Number of the runtime's tasks, implicit and explicit, on the thread's stack. Always consistent, so
    /// handlers may read it.
    #[inline]
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Puts an entry on top.
    ///
    /// # Safety
    /// There is room for one more.
    #[inline(always)]
    pub unsafe fn push(&mut self, mut entry: Frame) {
        let depth = self.stack.len();
        let open = entry.open;
        entry.outer = self.context as u32;
        // SAFETY: there is room for one more by contract, and it is initialised before it counts.
        unsafe {
            self.stack.as_mut_ptr().add(depth).write(entry);
            self.stack.set_len(depth + 1);
        }
        if open.is_context() {
            self.context = depth + 1;
            self.tasks += u32::from(open.is_task());
            self.task = open.task();
            self.exit.set(0);
        }
    }

    /// Restores the context after the innermost one has closed; `outer` is the one beneath.
    #[inline(always)]
    pub fn forget_context(&mut self, open: Open, outer: u32) {
        self.context = outer as usize;
        self.exit.set(0);
        self.tasks -= u32::from(open.is_task());
        self.task = self.innermost_context().map_or(0, |frame| frame.open.task());
    }

    /// The innermost region, implicit task or task.
    #[inline(always)]
    pub fn innermost_context(&self) -> Option<&Frame> {
        self.stack.get(self.context.wrapping_sub(1))
    }

    /// The explicit task that is the innermost context; 0 for other contexts.
    #[inline(always)]
    pub fn task_on_top(&self) -> u32 {
        self.task
    }

    /// Address at which the runtime entered the innermost context's code, as set by
    /// [`know_exit`](Self::know_exit) while that context was on top.
    #[inline(always)]
    pub fn known_exit(&self) -> Option<u64> {
        Some(self.exit.get()).filter(|exit| *exit != 0)
    }

    /// Stores that address; 0 is ignored.
    #[inline]
    pub fn know_exit(&self, exit: u64) {
        self.exit.set(exit);
    }

    /// Whether the innermost context is an explicit task.
    #[inline(always)]
    pub fn in_task(&self) -> bool {
        self.innermost_context().is_some_and(|frame| matches!(frame.open, Open::Task { .. }))
    }

    /// The innermost entry.
    #[inline(always)]
    pub fn top(&self) -> Option<&Frame> {
        self.stack.last()
    }

    /// Number of open frames.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Whether an entry can be opened without allocation.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.stack.len() < self.stack.capacity()
    }

    /// Whether an entry can be opened and shown without allocation.
    #[inline(always)]
    pub fn has_room_to_show(&self) -> bool {
        self.has_room() && self.stack.len() < DEEPEST_SHOWN
    }

    /// Opens an explicit task in a trace.
    ///
    /// # Safety
    /// There is [room to show](Self::has_room_to_show) it.
    #[inline(always)]
    pub unsafe fn open_task(&mut self, id: u32, site: u32) {
        let open = Open::Task { id };
        // SAFETY: by contract.
        unsafe { self.push(Frame { open, site, state: State::Unknown, shown: true, outer: 0 }) }
    }

    /// If this explicit task is the innermost entry and shown, returns the explicit task that is the context
    /// beneath; 0 for another context.
    #[inline(always)]
    pub fn beneath_task(&self, id: u32) -> Option<u32> {
        let top = self.stack.last()?;
        if top.open != (Open::Task { id }) || !top.shown || self.stack.len() > DEEPEST_SHOWN {
            return None;
        }
        match self.stack.get((top.outer as usize).wrapping_sub(1)).map(|frame| frame.open) {
            Some(Open::Task { id }) => Some(id),
            _ => Some(0),
        }
    }

    /// Opens something in a profile; for a task, `site` is the one beneath.
    ///
    /// # Safety
    /// The stack [has room](Self::has_room).
    #[inline(always)]
    pub unsafe fn open_profiled(&mut self, open: Open, site: u32, state: State) {
        // SAFETY: by contract.
        unsafe { self.push(Frame { open, site, state, shown: true, outer: 0 }) }
    }

    /// The innermost entry, and the state beneath it, if there is an entry beneath.
    #[inline(always)]
    pub fn top_two(&self) -> Option<(&Frame, State)> {
        let [.., beneath, top] = self.stack.as_slice() else { return None };
        Some((top, beneath.state))
    }

    /// Closes the innermost entry, an explicit task; `beneath` is the one that is the context beneath, or 0.
    ///
    /// # Safety
    /// The innermost entry is an explicit task.
    #[inline(always)]
    pub unsafe fn close_task_on_top(&mut self, beneath: u32) {
        // SAFETY: by contract there is one; it is plain.
        unsafe {
            let depth = self.stack.len() - 1;
            self.context = (*self.stack.as_ptr().add(depth)).outer as usize;
            self.stack.set_len(depth);
        }
        self.tasks -= 1;
        self.task = beneath;
        self.exit.set(0);
    }

    /// Closes the innermost entry in a profile, no context.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub unsafe fn close_profiled(&mut self) {
        // SAFETY: by contract; it is plain.
        unsafe { self.stack.set_len(self.stack.len() - 1) };
    }

    /// Makes room for further entries; false without memory.
    #[cold]
    #[inline(never)]
    pub fn grow(&mut self) -> bool {
        self.stack.try_reserve(64).is_ok()
    }

    /// Whether the stack is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// The site of the innermost entry that has one.
    #[inline]
    pub fn nearest_site(&self) -> u32 {
        self.stack.iter().rev().map(|frame| frame.site).find(|site| *site != 0).unwrap_or(0)
    }

    /// The region that is the innermost entry.
    #[inline]
    pub fn top_region(&self) -> Option<u32> {
        match self.top()?.open {
            Open::Region { region } => Some(region),
            _ => None,
        }
    }

    /// The task beneath the innermost entry: its region and, for an explicit one, its id.
    pub fn creator_of_top(&self) -> (u32, u32) {
        let mut task = 0;
        for frame in self.stack.iter().rev().skip(1) {
            match frame.open {
                Open::Member { region, .. } => return (region, task),
                Open::Task { id } if task == 0 => task = id,
                _ => {}
            }
        }
        (0, task)
    }

    /// Number of entries above the innermost one in the current context that `wanted` accepts.
    #[inline(always)]
    pub fn above(&self, wanted: impl Fn(Open) -> bool) -> Option<usize> {
        let in_context = self.stack.get(self.context..).unwrap_or_default();
        in_context.iter().rev().position(|frame| wanted(frame.open))
    }

    /// Number of entries above the innermost one in the whole stack that `wanted` accepts.
    #[inline]
    pub fn above_anywhere(&self, wanted: impl Fn(Open) -> bool) -> Option<usize> {
        self.stack.iter().rev().position(|frame| wanted(frame.open))
    }
}
