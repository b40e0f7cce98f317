//! Creation paths: the frames between the creation of a region or task and the start of the creating task.
//!
//! A path is unwound once and remembered together with the stack slots that hold its return
//! addresses:
//!
//! ```text
//!   remembered: code pointer, depth ▸ [slot, return address] … ▸ number of the path
//!   next time:  same code pointer and depth, and every slot is unchanged  ▸ same path
//! ```
//! The depth is that of the stack from the start of the task, and slots are counted from the innermost frame:
//! wherever a task is on the stack, the same return addresses in the same slots are the same calls. So a
//! creation costs a few loads rather than a walk, and a program that creates a million tasks at a few places
//! walks a few times.

use core::ops::Range;

use crate::sampler::bounds::Bounds;
use crate::sampler::code_map::Owner;
use crate::sampler::walk::{self, StackFrames};

pub const REMEMBERED: usize = 64;
/// Places in which a path or a creation may be remembered. With one, a program of few creations would often have two that
/// drive each other out.
pub const WAYS: usize = 4;
pub const TYPES: usize = 64;

/// Per-thread cache of paths.
#[derive(Default)]
pub struct PathCache(pub Option<Box<Content>>);

impl PathCache {
    /// Forgets all paths: code at their addresses may be another module's.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

pub struct Content {
    pub unwinding: walk::UnwindCache,
    pub frames: StackFrames,
    pub bounds: Bounds,
    pub remembered: [Remembered; REMEMBERED],
    /// In a profile, the known creations.
    pub creations: [Creation; REMEMBERED],
    /// The way that was taken last.
    pub turn: usize,
    /// Per type, the path that was written last: type, path.
    pub last_of_types: [(u32, u32); TYPES],
    /// Newest recorded path per site of calls.
    pub last_of_calls: [(u32, u32); TYPES],
    pub addresses: Vec<u64>,
    /// Number of the path without frames; 0 if unknown.
    pub empty_path: u32,
}

#[derive(Default)]
pub struct Remembered {
    pub codeptr: u64,
    pub depth: u64,
    /// Byte offsets from the innermost frame, and the return address in each slot.
    pub slots: Vec<(u64, u64)>,
    pub path: u32,
    /// The path's innermost address.
    pub caller: u64,
}

impl Remembered {
    /// Whether the stack is as it was.
    #[inline(always)]
    pub fn is_here(&self, codeptr: u64, sp: u64, depth: u64) -> bool {
        self.path != 0
            && (self.codeptr, self.depth) == (codeptr, depth)
            // SAFETY: the slots are between `sp` and the start of the task, which is as far away as when they
            // were read; of an initial task, `sp` itself is the same.
            && self.slots.iter().all(|(slot, value)| unsafe { ((sp + *slot) as *const u64).read() } == *value)
    }
}

/// A path, with its cache slot if any, and the stack pointer that its slots are counted from.
pub struct Found {
    pub path: u32,
    /// The path's innermost address; 0 without one.
    pub caller: u64,
    pub place: usize,
    pub sp: u64,
}

/// Something that was created, as [`Remembered`], with the creator's context and its own.
#[derive(Default)]
pub struct Creation {
    pub codeptr: u64,
    /// Depth of the stack; 0, which no creation has, for an empty entry.
    pub depth: u64,
    pub creator: u32,
    /// Creation site and kind.
    pub created: Created,
    /// Byte offsets from the given stack pointer, and the return address in each slot.
    pub slots: Box<[(u64, u64)]>,
}

impl Creation {
    #[inline(always)]
    fn is_it(&self, Creating { codeptr, exit, sp, creator }: Creating) -> bool {
        self.codeptr == codeptr
            && self.depth == depth_of(sp, exit)
            && self.creator == creator
            // SAFETY: as in `Remembered::is_here`.
            && self.slots.iter().all(|(slot, value)| unsafe { ((sp + *slot) as *const u64).read() } == *value)
    }
}

/// Path and context of a created task or region.
#[derive(Clone, Copy, Default)]
pub struct Created {
    /// From its creator on.
    pub path: u32,
    /// Context of the creation itself.
    pub context: u32,
}

/// A creation: its call, and its task.
#[derive(Clone, Copy)]
pub struct Creating {
    /// Return address of the call.
    pub codeptr: u64,
    /// Address at which the runtime entered the creating task's code.
    pub exit: u64,
    /// Stack pointer of the caller.
    pub sp: u64,
    /// The creator's context.
    pub creator: u32,
}

impl Creating {
    /// Cache slots in which it may be stored.
    #[inline(always)]
    pub fn ways(self) -> Range<usize> {
        let key = self.codeptr ^ depth_of(self.sp, self.exit).rotate_left(20) ^ u64::from(self.creator) << 40;
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % REMEMBERED / WAYS * WAYS;
        first..first + WAYS
    }
}

/// Depth of the stack from the start of the task. The start of an initial task is unknown; its stack pointer
/// serves the same purpose.
#[inline(always)]
pub fn depth_of(sp: u64, exit: u64) -> u64 {
    if exit > sp { exit - sp } else { sp }
}

impl Content {
    /// An empty one for a thread with this stack.
    pub fn new(bounds: Bounds) -> Option<Box<Content>> {
        Some(Box::new(Content {
            unwinding: walk::UnwindCache::default(),
            frames: StackFrames::new(),
            bounds,
            remembered: core::array::from_fn(|_| Remembered::default()),
            creations: core::array::from_fn(|_| Creation::default()),
            turn: 0,
            last_of_types: [(0, 0); TYPES],
            last_of_calls: [(0, 0); TYPES],
            addresses: Vec::new(),
            empty_path: 0,
        }))
    }

    /// The slots that hold the return addresses of the frames from `first` to `end`; `None` if the machine
    /// keeps one elsewhere, or a frame was interrupted.
    pub fn slots(&self, first: usize, end: usize) -> Option<Vec<(u64, u64)>> {
        if !self.frames.are_calls() {
            return None;
        }
        let addresses = self.frames.addresses();
        let innermost = self.frames.stack_pointer(0);
        (first.max(1)..end.min(addresses.len()))
            .map(|index| {
                let slot = self.frames.stack_pointer(index).checked_sub(8)?;
                let value = *addresses.get(index)?;
                // SAFETY: within the part of the stack that was just walked.
                (self.bounds.is_above(innermost, slot) && unsafe { (slot as *const u64).read() } == value)
                    .then_some((slot - innermost, value))
            })
            .collect()
    }

    /// The user's frames between the code pointer and the start of the task: first, one past the last.
    pub fn segment(&self, codeptr: u64, exit: u64) -> (usize, usize) {
        let addresses = self.frames.addresses();
        let is_users = |index| !matches!(self.frames.owner(index), Some(Owner::Recorder | Owner::Runtime));
        let users = |of: &dyn Fn(u64) -> bool| {
            (0..)
                .zip(addresses)
                .find(|(index, address)| of(**address) && is_users(*index))
                .map(|(index, _)| index)
        };
        // LLVM's runtime names a place in itself for the tasks of a taskloop.
        let first = users(&|address| address == codeptr)
            .or_else(|| users(&|address| address != 0))
            .unwrap_or(addresses.len());
        // LLVM's runtime knows no exit for the body of a region of one thread: the first runtime frame ends
        // it.
        let is_beyond = |index: &usize| match exit {
            0 => self.frames.owner(*index) == Some(Owner::Runtime),
            _ => self.frames.frame_end(*index) > exit,
        };
        let end = (first..addresses.len()).find(is_beyond).unwrap_or(addresses.len());
        (first, end)
    }
}

impl PathCache {
    /// Returns a known creation by the same call path.
    #[inline(always)]
    pub fn known_creation(&self, creating: Creating) -> Option<Created> {
        for known in self.0.as_deref()?.creations.get(creating.ways())? {
            if known.is_it(creating) {
                return Some(known.created);
            }
        }
        None
    }

    /// Clears the newest paths of tasks and calls, so that they are recorded again.
    pub fn forget_last(&mut self) {
        if let Some(content) = &mut self.0 {
            content.last_of_types = [(0, 0); TYPES];
            content.last_of_calls = [(0, 0); TYPES];
        }
    }
}
