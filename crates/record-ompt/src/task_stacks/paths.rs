//! Creation paths: what lies on the stack between the creation of a region or task and the start of
//! the task which creates.
//!
//! A path is unwound once and remembered together with the stack slots that hold its return
//! addresses:
//!
//! ```text
//!   remembered: code pointer, depth ▸ [slot, return address] … ▸ number of the path
//!   next time:  same code pointer and depth, and every slot holds what it held  ▸ same path
//! ```
//! The depth is that of the stack from the start of the task, and slots are counted from the innermost
//! frame: wherever a task lies on the stack, the same return addresses in the same slots are the same
//! calls. So a creation costs a few loads rather than a walk, and a program that creates a million tasks
//! at a few places walks a few times.

use core::ffi::c_void;
use core::ops::Range;

use taskscope_event::models::samples::{self, flag};

use super::{levels, regions};
use crate::abi::Data;
use crate::payload::two;
use crate::profiling;
use crate::sampler::code_map::{self, Owner};
use crate::sampler::walk::{self, Bounds, Frames, registers_here, stack_pointer_here};
use crate::sampler::{OwnStack, is_active};
use crate::thread::Moment;

const REMEMBERED: usize = 64;
/// Places in which a path or a creation may be remembered. With one, a program of few creations would often have two that
/// drive each other out.
const WAYS: usize = 4;
const TYPES: usize = 64;

/// What a thread remembers of paths.
#[derive(Default)]
pub struct Cache(Option<Box<Content>>);

impl Cache {
    /// Forgets all paths: code at their addresses may be another module's.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

struct Content {
    unwinding: walk::Cache,
    frames: Frames,
    bounds: Bounds,
    remembered: [Remembered; REMEMBERED],
    /// In a profile, what was created.
    creations: [Creation; REMEMBERED],
    /// The way that was taken last.
    turn: usize,
    /// Per type, the path that was written last: type, path.
    told: [(u32, u32); TYPES],
    /// The same per site of calls.
    told_of_calls: [(u32, u32); TYPES],
    addresses: Vec<u64>,
    /// The number of the path without frames; 0 where it is not known.
    empty_path: u32,
}

#[derive(Default)]
struct Remembered {
    codeptr: u64,
    depth: u64,
    /// Bytes from the innermost frame, and what lies there.
    slots: Vec<(u64, u64)>,
    path: u32,
}

impl Remembered {
    /// Whether the stack is as it was.
    #[inline(always)]
    fn is_here(&self, codeptr: u64, sp: u64, depth: u64) -> bool {
        self.path != 0
            && (self.codeptr, self.depth) == (codeptr, depth)
            // SAFETY: the slots lie between `sp` and the start of the task, which is as far away as when
            // they were read; of an initial task, `sp` itself is the same.
            && self.slots.iter().all(|(slot, value)| unsafe { ((sp + *slot) as *const u64).read() } == *value)
    }
}

/// A path, where it is remembered, and the stack pointer that its slots are counted from.
struct Found {
    path: u32,
    place: usize,
    sp: u64,
}

/// Something that was created, as [`Remembered`], with the creator's context and its own.
#[derive(Default)]
struct Creation {
    codeptr: u64,
    /// 0, which no creation has: nothing is remembered here.
    depth: u64,
    creator: u32,
    /// Where it was created, and as what.
    created: Created,
    /// Bytes from the stack pointer that was given, and what lies there.
    slots: Box<[(u64, u64)]>,
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

/// The path of what was created, and its context.
#[derive(Clone, Copy, Default)]
pub struct Created {
    /// From its creator on.
    pub path: u32,
    /// Its own.
    pub context: u32,
}

/// What is created: by which call, in which task.
#[derive(Clone, Copy)]
pub struct Creating {
    /// Where the call returns to.
    pub codeptr: u64,
    /// Where the runtime left to the creating task's code.
    pub exit: u64,
    /// The stack pointer of who asks.
    pub sp: u64,
    /// The creator's context.
    pub creator: u32,
}

impl Creating {
    /// Where it may be remembered.
    #[inline(always)]
    fn ways(self) -> Range<usize> {
        let key = self.codeptr ^ depth_of(self.sp, self.exit).rotate_left(20) ^ u64::from(self.creator) << 40;
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % REMEMBERED / WAYS * WAYS;
        first..first + WAYS
    }
}

/// How deep the stack is from the start of the task; of an initial task, whose start is not known, the
/// stack pointer, which tells as much.
#[inline(always)]
fn depth_of(sp: u64, exit: u64) -> u64 {
    if exit > sp { exit - sp } else { sp }
}

impl Content {
    fn new(bounds: Bounds) -> Option<Box<Content>> {
        Some(Box::new(Content {
            unwinding: walk::Cache::default(),
            frames: Frames::new(),
            bounds,
            remembered: core::array::from_fn(|_| Remembered::default()),
            creations: core::array::from_fn(|_| Creation::default()),
            turn: 0,
            told: [(0, 0); TYPES],
            told_of_calls: [(0, 0); TYPES],
            addresses: Vec::new(),
            empty_path: 0,
        }))
    }

    /// The slots that hold the return addresses of the frames from `first` to `end`; `None` where the machine
    /// keeps one elsewhere, or a frame was interrupted.
    fn slots(&self, first: usize, end: usize) -> Option<Vec<(u64, u64)>> {
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
    fn segment(&self, codeptr: u64, exit: u64) -> (usize, usize) {
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
        // LLVM's runtime knows no exit for the body of a region of one thread: that ends where the
        // runtime begins.
        let is_beyond = |index: &usize| match exit {
            0 => self.frames.owner(*index) == Some(Owner::Runtime),
            _ => self.frames.frame_end(*index) > exit,
        };
        let end = (first..addresses.len()).find(is_beyond).unwrap_or(addresses.len());
        (first, end)
    }
}

impl Cache {
    /// What is created now, if the same was created before by those who ask.
    #[inline(always)]
    pub fn known_creation(&self, creating: Creating) -> Option<Created> {
        for known in self.0.as_deref()?.creations.get(creating.ways())? {
            if known.is_it(creating) {
                return Some(known.created);
            }
        }
        None
    }

    /// Paths of tasks and calls are to be told anew.
    pub fn forget_told(&mut self) {
        if let Some(content) = &mut self.0 {
            content.told = [(0, 0); TYPES];
            content.told_of_calls = [(0, 0); TYPES];
        }
    }
}

impl Moment<'_> {
    /// A region begins that may be sampled. One that `is_body` of `teams` is no construct of its own: what is in it is
    /// in the league. Returns its context, in a profile.
    #[inline(always)]
    pub fn begin_sampled_region(&mut self, region: u32, creating: Creating, is_body: bool) -> u32 {
        code_map::catch_up(self);
        let mut context = 0;
        if profiling::is_on() && is_body {
            self.follow_works();
            self.follow_fork(None);
            context = creating.creator;
        } else if profiling::is_on() {
            context = match self.thread.paths.known_creation(creating) {
                Some(created) => {
                    self.follow_works();
                    self.follow_fork(Some(created.path));
                    self.count_region(created.context);
                    created.context
                }
                None => self.learn_region(creating),
            };
        }
        regions::begin(region, context);
        context
    }

    #[cold]
    #[inline(never)]
    fn learn_region(&mut self, creating: Creating) -> u32 {
        let found = self.find_path(creating.codeptr as *const c_void, creating.exit);
        self.follow_works();
        self.follow_fork(Some(found.path));
        let context = self.count_creation(creating.creator, found.path, false);
        self.remember(creating, &found, context);
        context
    }

    /// The context of what is created here.
    #[inline(always)]
    pub fn create_context(&mut self, codeptr: *const c_void, exit: u64, is_task: bool) -> u32 {
        let path = self.path_here(codeptr, exit);
        let creator = self.context();
        self.count_creation(creator, path, is_task)
    }

    /// The context of a task that is created now, which is remembered.
    pub fn learn_creation(&mut self, creating: Creating) -> u32 {
        let found = self.find_path(creating.codeptr as *const c_void, creating.exit);
        let context = self.count_creation(creating.creator, found.path, true);
        // One of too many, with a region's, is counted elsewhere.
        if profiling::is_of_tasks(context) {
            self.remember(creating, &found, context);
        }
        context
    }

    fn remember(&mut self, creating: Creating, found: &Found, context: u32) {
        let Creating { codeptr, exit, sp, creator } = creating;
        let Some(content) = self.thread.paths.0.as_deref_mut() else { return };
        let slots = content.remembered.get(found.place).filter(|known| known.path == found.path);
        let slots = slots.and_then(|known| {
            let from = |slot: &(u64, u64)| Some(((found.sp + slot.0).checked_sub(sp)?, slot.1));
            known.slots.iter().map(from).collect::<Option<Box<[_]>>>()
        });
        if let Some((slots, ways)) = slots.zip(content.creations.get_mut(creating.ways())) {
            // In the place of the one that was learnt first.
            ways.rotate_right(1);
            let (depth, created) = (depth_of(sp, exit), Created { path: found.path, context });
            if let Some(newest) = ways.first_mut() {
                *newest = Creation { codeptr, depth, creator, created, slots };
            }
        }
    }

    /// The context that this thread is in.
    pub(crate) fn context(&self) -> u32 {
        self.thread.context()
    }

    /// The region on top of the stack, which `task` has forked, ends: tells its path if somebody asked for it.
    #[inline(never)]
    pub fn end_sampled_region(&mut self, task: *mut Data, codeptr: *const c_void, is_body: bool) {
        let Some(region) = self.thread.frames.top_region() else { return };
        if !regions::end(region) || profiling::is_on() {
            return;
        }
        let (parent_region, parent_task) = self.thread.frames.creator_of_top();
        // The path goes on where the parent was created, if that was elsewhere.
        regions::ask(parent_region);
        if is_body {
            return;
        }
        let path = self.path_here(codeptr, levels::exit_of_forking(task, parent_task, self.thread));
        let mut payload = [0; 16];
        for (part, value) in payload.chunks_exact_mut(4).zip([region, path, parent_region, parent_task]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        self.recorder.own_point(self.at, samples::REGION_PATH, payload);
    }

    /// A task of this type is created here: tells its path unless it is that of the one before.
    #[inline(never)]
    pub fn tell_task_path(&mut self, typeid: u32, exit: u64, codeptr: *const c_void) {
        let path = self.path_here(codeptr, exit);
        self.tell_path_of_type(typeid, path);
    }

    /// Nothing of the program lies between the running task and the creation of one of this type.
    #[inline(never)]
    pub fn tell_empty_path(&mut self, typeid: u32) {
        let mut path = self.thread.paths.0.as_deref().map_or(0, |content| content.empty_path);
        if path == 0 {
            path = self.path_number(&[], flag::REACHED_ROOT);
            if self.thread.paths.0.is_none() {
                self.thread.paths.0 = Content::new(self.thread.bounds);
            }
            if let Some(content) = &mut self.thread.paths.0 {
                content.empty_path = path;
            }
        }
        self.tell_path_of_type(typeid, path);
    }

    fn tell_path_of_type(&mut self, typeid: u32, path: u32) {
        let Some(content) = &mut self.thread.paths.0 else { return };
        let Some(told) = content.told.get_mut(typeid as usize % TYPES) else { return };
        if path != 0 && *told != (typeid, path) {
            *told = (typeid, path);
            self.recorder.own_point(self.at, samples::TASK_PATH, two(typeid, path));
        }
    }

    /// The thread waits, or takes a lock, in the call at `site`, which returns to `codeptr`: tells its path unless it is that
    /// of the call before.
    #[inline(always)]
    pub fn tell_call_path(&mut self, site: u32, codeptr: *const c_void) {
        if is_active() && site != 0 && !codeptr.is_null() && self.thread.profile.is_none() {
            self.tell_path_of_call(site, codeptr);
        }
    }

    #[inline(never)]
    fn tell_path_of_call(&mut self, site: u32, codeptr: *const c_void) {
        let path = self.path_here(codeptr, self.thread.exit_here());
        let Some(content) = &mut self.thread.paths.0 else { return };
        let Some(told) = content.told_of_calls.get_mut(site as usize % TYPES) else { return };
        if path != 0 && *told != (site, path) {
            *told = (site, path);
            self.recorder.own_point(self.at, samples::CALL_PATH, two(site, path));
        }
    }

    /// The path from here to the start of the current task, whose `exit` is given (0: an initial one).
    /// 0 where there is none.
    pub fn path_here(&mut self, codeptr: *const c_void, exit: u64) -> u32 {
        self.find_path(codeptr, exit).path
    }

    #[inline(never)]
    fn find_path(&mut self, codeptr: *const c_void, exit: u64) -> Found {
        let (codeptr, sp) = (codeptr as u64, stack_pointer_here());
        let depth = depth_of(sp, exit);
        let hash = (codeptr ^ depth.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let first = hash as usize % REMEMBERED / WAYS * WAYS;
        let content = self.thread.paths.0.as_deref();
        let ways =
            content.and_then(|content| content.remembered.get(first..first + WAYS)).unwrap_or_default();
        match ways.iter().position(|known| known.is_here(codeptr, sp, depth)) {
            Some(way) => Found { path: ways.get(way).map_or(0, |known| known.path), place: first + way, sp },
            None if self.thread.bounds.have_room_below(sp) => {
                self.walk_path(codeptr, exit, registers_here(), (first, sp))
            }
            None => self.walk_path_elsewhere(codeptr, exit, registers_here(), (first, sp)),
        }
    }

    /// The end of the program's stack is the program's.
    #[cold]
    #[inline(never)]
    fn walk_path_elsewhere(
        &mut self,
        codeptr: u64,
        exit: u64,
        from: (u64, walk::Registers),
        (first_way, sp): (usize, u64),
    ) -> Found {
        let mut found = Found { path: 0, place: REMEMBERED, sp };
        if let Some(own) = self.thread.walk_stack.take().or_else(OwnStack::new) {
            own.call(|| found = self.walk_path(codeptr, exit, from, (first_way, sp)));
            self.thread.walk_stack = Some(own);
        }
        found
    }

    #[cold]
    #[inline(never)]
    fn walk_path(
        &mut self,
        codeptr: u64,
        exit: u64,
        from: (u64, walk::Registers),
        (first_way, sp): (usize, u64),
    ) -> Found {
        let depth = depth_of(sp, exit);
        if self.thread.paths.0.is_none() {
            self.thread.paths.0 = Content::new(self.thread.bounds);
        }
        code_map::catch_up(self);
        let (Some(mut content), Some(map)) = (self.thread.paths.0.take(), code_map::current()) else {
            return Found { path: 0, place: REMEMBERED, sp };
        };
        map.note_constructs(codeptr);
        content.frames.walk(map, &mut content.unwinding, from, content.bounds);
        if content.frames.met_unknown_code {
            code_map::suspect();
        }
        let (first, end) = content.segment(codeptr, exit);
        let complete = end < content.frames.addresses().len() || content.frames.reached_root;
        content.addresses.clear();
        let segment = (first..).zip(content.frames.addresses().get(first..end).unwrap_or_default());
        let others = segment.filter(|(index, _)| content.frames.owner(*index) != Some(Owner::Recorder));
        content.addresses.extend(others.map(|(_, address)| *address));
        let flags = if complete { flag::REACHED_ROOT } else { flag::CUT };
        let path = self.path_number(&content.addresses, flags);
        if profiling::is_on() {
            profiling::define_path(path, &content.addresses);
        }
        // A code pointer on the stack says by itself who called the runtime.
        let is_pinned = content.frames.addresses().get(first) == Some(&codeptr);
        let slots = content.slots(if is_pinned { first + 1 } else { 1 }, end);
        content.turn = (content.turn + 1) % WAYS;
        let place = first_way + content.turn;
        if let Some(place) = content.remembered.get_mut(place) {
            *place = match slots {
                Some(slots) => Remembered { codeptr, depth, slots, path },
                None => Remembered::default(),
            };
        }
        self.thread.paths.0 = Some(content);
        Found { path, place, sp }
    }
}
