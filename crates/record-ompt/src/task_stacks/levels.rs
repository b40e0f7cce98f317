//! Assigns frames of a stack to user code of tasks: the frame rule of OMPT.
//!
//! The runtime keeps, per task, the frame address at which it left to user code (`exit`) and the one
//! at which that entered it again (`enter`). With `sp` the stack pointer of a frame and `end` that of
//! its caller, a frame is user code of level l exactly if
//!
//! ```text
//!     sp > enter(l), or enter(l) = 0        end <= exit(l), or l is an initial task
//! ```
//! Runtimes leave `enter` at 0 in places (LLVM's in locks, criticals and ordered), or name a function that
//! their entry for gcc's programs has called: everything up to the outermost frame in the runtime's own code
//! is the runtime's too. The owner of other functions does not matter: both sides call the same C library.
//!
//! If clang inlines a task's body into its creator's function (`if (0)`), `exit` is the value of the
//! frame-pointer register, and the creator's stack pointer is used instead
//! ([`undeferred`](super::undeferred)).
//!
//! **Not queried.** LLVM's runtime follows a pointer from an explicit task to the interrupted one, which it
//! sets only after it has reported the task's begin: until then the pointer is invalid, and
//! `ompt_get_task_info` crashes. And the tasks beneath those of this stack belong to other threads, which may
//! free them meanwhile. So only tasks that are certainly on this stack are queried.

mod bodies;

use core::ffi::c_int;
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use taskscope_event::models::samples::LEVEL_BYTES;

use super::undeferred::Undeferred;
use crate::abi::{self, Data, GetTaskInfo, Lookup, OmptFrame};
use crate::chain::known_data;
use crate::sampler::bounds::Bounds;
use crate::sampler::code_map::{CodeMap, Owner};
use crate::sampler::walk::{MAX_FRAMES, StackFrames};
use crate::tool_data::{EXPLICIT, LEAGUE, STARTED, TEAMS_BODY, ToolData};

/// A flag of `ompt_frame_flag_t`: the exit frame is the program's (`ompt_frame_application`).
const EXIT_OF_PROGRAM: c_int = 1;

/// Levels that are followed: eight nested regions with a task in each, and room to spare.
const MAX_LEVELS: usize = 24;
/// Outermost frames of a thread started through this library: its own function, and the C library's.
const STARTING: usize = 3;
/// `ompt_task_initial`.
const INITIAL: c_int = 1;
/// `ompt_task_implicit`.
const IMPLICIT: c_int = 2;

static GET_TASK_INFO: AtomicUsize = AtomicUsize::new(0);
/// `OMP_TOOL=disabled`: the runtime takes no tool; it is a library like any other.
static TAKES_NO_TOOL: AtomicBool = AtomicBool::new(false);

/// Reads the environment, as handlers may not.
pub fn look_whether_tools_are_taken() {
    let disabled = std::env::var_os("OMP_TOOL").is_some_and(|value| value == "disabled");
    TAKES_NO_TOOL.store(disabled, Relaxed);
}

/// Keeps the runtime's `ompt_get_task_info`.
///
/// # Safety
/// `lookup` is the runtime's.
pub unsafe fn set_lookup(lookup: Lookup) {
    // SAFETY: looked up by a C string.
    let entry = unsafe { lookup(c"ompt_get_task_info".as_ptr()) };
    GET_TASK_INFO.store(entry.map_or(0, |entry| entry as usize), Relaxed);
}

/// A task on a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    exit: u64,
    enter: u64,
    is_initial: bool,
    /// Whether its code is the body of `teams`.
    is_teams_body: bool,
    /// Its region; 0 outside of any.
    pub region: u32,
    /// The explicit task; 0 for an implicit or initial one.
    pub task: u32,
    /// Its kept frames: first, and one past the last.
    pub frames: (u16, u16),
}

impl Level {
    /// Whether its enter frame is stale: left from the task's creation, with frames of functions that the
    /// task has called further in. If the task has really called the runtime, the runtime's function is
    /// there.
    fn has_stale_enter(&self, frames: &StackFrames, first: usize) -> bool {
        if self.is_initial {
            return false;
        }
        let owner = |index: usize| frames.owner(index);
        let all = first..frames.addresses().len();
        let beyond = all.clone().find(|index| frames.frame_end(*index) > self.exit);
        let entered = all
            .take_while(|index| Some(*index) != beyond && frames.stack_pointer(*index) <= self.enter)
            .last();
        // A runtime that is linked into the program is not known from it.
        beyond.and_then(owner) == Some(Owner::Runtime)
            && matches!(entered.and_then(owner), Some(Owner::Program | Owner::Unknown))
    }
}

/// The data on a stack that does not come from the runtime.
pub struct Stack<'a> {
    /// Its frames.
    pub frames: &'a StackFrames,
    /// Owners of code.
    pub map: &'a CodeMap,
    /// Bounds of the stack.
    pub bounds: Bounds,
    /// Maximum number of the runtime's tasks on it.
    pub most: u32,
    /// Whether a callback was interrupted.
    pub in_callback: bool,
    /// The regions that this thread has forked, with the return addresses of the forks.
    pub forks: &'a [(u32, u64)],
    /// Creation sites of this thread's undeferred tasks.
    pub undeferred: &'a Undeferred,
}

impl Stack<'_> {
    /// The frame that contains a stack address.
    fn frame_at(&self, address: u64) -> Option<usize> {
        let count = self.frames.addresses().len();
        (0..count)
            .find(|index| address < self.frames.frame_end(*index))
            .filter(|index| self.frames.stack_pointer(*index) <= address)
    }

    /// Owner of the frame that contains a stack address.
    fn owner_at(&self, address: u64) -> Option<Owner> {
        self.frame_at(address).and_then(|index| self.frames.owner(index))
    }

    /// Whether the body of the explicit task on top has begun. Frames beyond the runtime's exit decide: the
    /// outermost is the body, or the callback that announces it. The body of an undeferred task is inlined
    /// into its creator's, and may have no frames.
    fn has_begun(&self, exit: u64, enter: u64, announced: bool) -> bool {
        let is_others = |index| matches!(self.frames.owner(index), Some(Owner::Program | Owner::Unknown));
        let frames = 0..self.frames.addresses().len();
        match frames.take_while(|index| self.frames.frame_end(*index) <= exit).last() {
            Some(index) => is_others(index),
            None => self.is_in_body(enter, announced),
        }
    }

    /// Whether the body of a task without frames of its own has begun.
    fn is_in_body(&self, enter: u64, announced: bool) -> bool {
        let is_others = matches!(self.frames.owner(0), Some(Owner::Program | Owner::Unknown));
        announced && !self.in_callback && (enter != 0 || is_others)
    }
}

/// The tasks on a stack, innermost first, and the frames that are kept.
pub struct Levels {
    list: [Level; MAX_LEVELS],
    count: usize,
    kept: [u64; MAX_FRAMES],
    kept_count: usize,
    /// Whether the innermost frame is the runtime's, or of something that it called.
    pub in_runtime: bool,
}

impl Levels {
    /// Creates an empty list.
    pub const fn new() -> Self {
        const NONE: Level = Level {
            exit: 0,
            enter: 0,
            is_initial: false,
            is_teams_body: false,
            region: 0,
            task: 0,
            frames: (0, 0),
        };
        Levels { list: [NONE; MAX_LEVELS], count: 0, kept: [0; MAX_FRAMES], kept_count: 0, in_runtime: false }
    }

    /// The levels.
    pub fn list(&self) -> &[Level] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// The addresses of the frames that are kept: all but this library's own.
    pub fn addresses(&self) -> &[u64] {
        self.kept.get(..self.kept_count).unwrap_or_default()
    }

    /// Writes the levels in the form of a sample.
    pub fn write_to<'a>(&self, bytes: &'a mut [u8; MAX_LEVELS * LEVEL_BYTES]) -> &'a [u8] {
        for (place, level) in bytes.chunks_exact_mut(LEVEL_BYTES).zip(self.list()) {
            let (first, end) = level.frames;
            let packed = u128::from(first)
                | u128::from(end) << 16
                | u128::from(level.region) << 32
                | u128::from(level.task) << 64;
            place.iter_mut().zip(packed.to_le_bytes()).for_each(|(byte, value)| *byte = value);
        }
        bytes.get(..self.count * LEVEL_BYTES).unwrap_or_default()
    }

    /// Sets one level, for a thread unknown to OpenMP.
    pub fn set_outside(&mut self) {
        self.push(Level { is_initial: true, ..Level::default() });
    }

    /// Sets no level: all frames are the runtime's.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    fn push(&mut self, level: Level) -> bool {
        let Some(place) = self.list.get_mut(self.count) else { return false };
        *place = level;
        self.count += 1;
        true
    }

    /// Queries the runtime for the tasks on this stack. Async-signal-safe, as the standard demands of the
    /// runtime's function. Returns whether the query was possible.
    pub fn ask_runtime(&mut self, stack: &Stack<'_>) -> bool {
        self.count = 0;
        let entry = GET_TASK_INFO.load(Relaxed);
        if entry == 0 {
            return false;
        }
        // SAFETY: this entry point has this type.
        self.ask(stack, unsafe { transmute::<usize, GetTaskInfo>(entry) });
        true
    }

    fn ask(&mut self, stack: &Stack<'_>, get: GetTaskInfo) {
        let (sp, bounds) = (stack.frames.stack_pointer(0), stack.bounds);
        let mut most = stack.most;
        // For the creator of a task whose body the program itself calls: its call of the runtime.
        let mut called_inside = None;
        let mut ancestor = 0;
        while ancestor < most.min(MAX_LEVELS as u32) {
            let (mut flags, mut index) = (0, 0);
            let (mut task, mut frame, mut region) =
                (core::ptr::null_mut::<Data>(), core::ptr::null_mut::<OmptFrame>(), core::ptr::null_mut());
            // SAFETY: all pointers are valid for writing.
            let found =
                unsafe { get(ancestor as c_int, &mut flags, &mut task, &mut frame, &mut region, &mut index) };
            if found == 0 || !is_usable(frame) {
                break;
            }
            // SAFETY: `ompt_frame_t` of a live task, and checked as far as that is possible.
            let OmptFrame { exit, enter, exit_flags, .. } = unsafe { frame.read_volatile() };
            // SAFETY: all bit patterns are numbers.
            let (mut exit, enter) = unsafe { (exit.value, enter.value) };
            let enter = called_inside.take().unwrap_or(enter);
            let data = load(task);
            let explicit = data.has(EXPLICIT);
            if explicit && exit_flags & EXIT_OF_PROGRAM != 0 {
                let creator = stack.creator_of(data.id());
                let is_known = creator.is_some() || stack.is_frame_pointer(exit);
                if !is_known && ancestor == 0 && !stack.is_in_body(enter, data.has(STARTED)) {
                    break;
                }
                // Its creator has not called the runtime: the reported enter frame is this exit.
                called_inside = Some(if is_known { 0 } else { enter });
                if !is_known {
                    ancestor += 1;
                    continue;
                }
                exit = creator.unwrap_or(exit);
            }
            // The task that created this team may be on another thread's stack.
            let elsewhere = |address: u64| address != 0 && !bounds.is_above(sp, address);
            if ancestor > 0 && elsewhere(if exit != 0 { exit } else { enter }) {
                break;
            }
            // LLVM's runtime leaves a stale creation frame in a task with dependences: on another stack, or
            // above the task's own frames. Intel's runtime does not report the body of `teams`, so it is not
            // counted.
            let is_unreported = flags & IMPLICIT != 0 && data == ToolData(0);
            most += u32::from(is_unreported);
            let is_teams_body = !explicit && (is_unreported || data.has(TEAMS_BODY));
            let is_left = exit != 0 && enter > exit && !is_teams_body;
            let enter = if elsewhere(enter) || is_left { 0 } else { enter };
            let region = if explicit { load(region).id() } else { data.id() };
            self.settle_unreported(region, data.has(LEAGUE));
            let is_initial = flags & INITIAL != 0;
            let task = if explicit { data.id() } else { 0 };
            if !self.push(Level { exit, enter, is_initial, is_teams_body, region, task, frames: (0, 0) }) {
                break;
            }
            // There is no task beneath an initial one.
            let has_begun = ancestor > 0
                || flags & IMPLICIT != 0
                || stack.has_begun(exit, enter, data.has(EXPLICIT) && data.has(STARTED));
            if is_initial || !has_begun {
                break;
            }
            ancestor += 1;
        }
        self.settle_unreported(0, false);
        self.find_body_of_teams(stack);
        self.find_bodies_that_the_program_calls(stack);
    }

    /// Keeps the function that was called through this library in place of its frames, and of the frames of
    /// its callees. Returns the number of those.
    fn keep_called(&mut self, frames: &StackFrames, called: u64) -> usize {
        let is_ours = |index: &usize| frames.owner(*index) == Some(Owner::Recorder);
        let all = frames.addresses().len();
        let Some(ours) = (0..all).find(is_ours) else { return 0 };
        if let Some(place) = self.kept.first_mut() {
            *place = called;
            self.kept_count = 1;
        }
        (ours..all).find(|index| !is_ours(index)).unwrap_or(all)
    }

    /// Assigns the frames to levels.
    pub fn assign(&mut self, frames: &StackFrames, entry: Entry) {
        let Entry { first_user, called, in_callback } = entry;
        self.kept_count = 0;
        let after_call = if called == 0 { 0 } else { self.keep_called(frames, called) };
        let mut level = 0;
        let has_runtime = !TAKES_NO_TOOL.load(Relaxed);
        let callbacks = if in_callback { frames.addresses().len().saturating_sub(STARTING) } else { 0 };
        for (index, address) in frames.addresses().iter().enumerate().skip(after_call) {
            let owner = frames.owner(index);
            if owner == Some(Owner::Recorder) {
                if let Some(known) = self.list.get_mut(..self.count).and_then(|list| list.get_mut(level))
                    && index < callbacks
                {
                    known.frames = (self.kept_count as u16, self.kept_count as u16);
                }
                continue;
            }
            let Some(place) = self.kept.get_mut(self.kept_count) else { break };
            *place = *address;
            let at = self.kept_count as u16;
            self.kept_count += 1;
            let end = frames.frame_end(index);
            let levels = self.list.get_mut(..self.count).unwrap_or_default();
            while levels.get(level).is_some_and(|known| !known.is_initial && end > known.exit) {
                level += 1;
            }
            let Some(known) = levels.get_mut(level) else { continue };
            if known.enter != 0 && frames.stack_pointer(index) <= known.enter {
                if !known.has_stale_enter(frames, index) {
                    continue;
                }
                known.enter = 0;
            }
            let (first, past) = &mut known.frames;
            if owner == Some(Owner::Runtime) && has_runtime {
                // The frames of this level so far were called by the runtime, which reported its entry for a
                // function further in (`GOMP_taskwait` calls LLVM's own), or not at all.
                (*first, *past) = (at + 1, at + 1);
            } else if first == past || level == 0 && known.enter == 0 && *address == first_user {
                (*first, *past) = (at, at + 1);
            } else {
                *past = at + 1;
            }
        }
        if let Some(caller) = self.list.get_mut(..self.count).and_then(<[Level]>::first_mut)
            && after_call > 0
            && caller.frames.0 == 1
        {
            caller.frames.0 = 0;
        }
        let is_programs = matches!(frames.owner(0), Some(Owner::Program | Owner::Unknown));
        self.in_runtime = self.list().first().is_none_or(|level| {
            let (first, past) = level.frames;
            // The body's exit frame has ended: the program itself calls the body of a region of one thread,
            // or it is inlined into the forking function. For an inlined task (`if(0)`) LLVM's runtime
            // reports the value of the frame-pointer register.
            let is_known = level.exit != 0 || level.task != 0;
            let has_left = is_known && !level.is_initial && level.exit <= frames.stack_pointer(0);
            first > 0 || first == past && !(has_left && is_programs)
        });
    }
}

/// The program's exit from its own code, as far as the stack does not show it.
#[derive(Clone, Copy, Default)]
pub struct Entry {
    /// Return address of the call by which user code entered the runtime (0: unknown).
    pub first_user: u64,
    /// The function that was called through this library, which has just come back from it (0: none).
    pub called: u64,
    /// Whether a callback was interrupted.
    pub in_callback: bool,
}

/// Address at which the runtime entered the current task's user code; 0 for an initial task, and if it is
/// unknown.
pub fn exit_of_current(task: u32, undeferred: &Undeferred) -> u64 {
    task_info(0).map_or(0, |(_, frame)| exit_of(&frame, task, undeferred))
}

/// The exit address of a task with this number, for which the runtime reports `frame`.
#[inline(always)]
pub fn exit_of(frame: &OmptFrame, task: u32, undeferred: &Undeferred) -> u64 {
    // SAFETY: all bit patterns are numbers.
    let exit = unsafe { frame.exit.value };
    match frame.exit_flags & EXIT_OF_PROGRAM {
        0 => exit,
        _ => undeferred.creators_of(task).next().unwrap_or(exit),
    }
}

/// [`exit_of`], if the runtime reports a frame of its own. Reads as [`OmptFrame::read`] does.
///
/// # Safety
/// `frame` is the runtime's frame of the current task.
#[inline(always)]
pub unsafe fn exit_to_runtime(frame: *const OmptFrame) -> Option<u64> {
    // SAFETY: by contract; all bit patterns are numbers.
    let (flags, exit) = unsafe {
        ((&raw const (*frame).exit_flags).read_volatile(), (&raw const (*frame).exit.value).read_volatile())
    };
    (flags & EXIT_OF_PROGRAM == 0).then_some(exit)
}

/// The runtime's data of the current task; null if there is none.
pub fn current_task() -> *mut Data {
    task_info(0).map_or(core::ptr::null_mut(), |(task, _)| known_data(task))
}

/// Exit address of the task that forked the ending region; 0 as above. For a region of one thread the runtime
/// still has that region's task on top.
pub fn exit_of_forking(task: *mut Data, number: u32, undeferred: &Undeferred) -> u64 {
    let frame = match task_info(0) {
        Some((current, _)) if current != task => task_info(1).filter(|(beneath, _)| *beneath == task),
        current => current,
    };
    frame.map_or(0, |(_, frame)| exit_of(&frame, number, undeferred))
}

/// The runtime's data and frames of a task on this thread.
fn task_info(ancestor: c_int) -> Option<(*mut Data, OmptFrame)> {
    let entry = GET_TASK_INFO.load(Relaxed);
    if entry == 0 {
        return None;
    }
    let (mut flags, mut index) = (0, 0);
    let (mut task, mut frame, mut region) =
        (core::ptr::null_mut::<Data>(), core::ptr::null_mut::<OmptFrame>(), core::ptr::null_mut());
    // SAFETY: the entry point of this type; all pointers are valid for writing.
    unsafe {
        let get = transmute::<usize, GetTaskInfo>(entry);
        if get(ancestor, &mut flags, &mut task, &mut frame, &mut region, &mut index) == 0 || !is_usable(frame)
        {
            return None;
        }
        Some((task, *frame))
    }
}

fn is_usable(frame: *const OmptFrame) -> bool {
    abi::is_object(frame) && (frame as usize).is_multiple_of(8) && frame as usize >> 47 == 0
}

fn load(data: *mut Data) -> ToolData {
    if (data as usize).is_multiple_of(8) && data as usize >> 47 == 0 {
        ToolData::load(known_data(data))
    } else {
        ToolData(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Owners of the addresses of these stacks: 1xx are the program's and the C library's, 2xx the runtime's,
    /// 3xx this library's.
    fn owner_of(address: u64) -> Owner {
        match address / 100 {
            1 => Owner::Program,
            2 => Owner::Runtime,
            3 => Owner::Recorder,
            _ => Owner::Unknown,
        }
    }

    /// The user's frames of an explicit task that the runtime has called, with this `enter`: the stack pointers of
    /// frames are 16, 32, … .
    fn frames_of_task(stack: &[u64], exit: u64, enter: u64) -> Vec<u64> {
        let mut levels = Levels::new();
        levels.push(Level { exit, enter, task: 1, ..Level::default() });
        levels.assign(&StackFrames::of(stack, owner_of), Entry::default());
        let (first, past) = levels.list()[0].frames;
        levels.addresses()[usize::from(first)..usize::from(past)].to_vec()
    }

    #[test]
    fn where_a_task_was_created_is_not_where_it_enters_the_runtime() {
        let stack = [110, 120, 130, 210, 220, 140];
        assert_eq!(frames_of_task(&stack, 64, 0), [110, 120, 130]);
        for created_at in 16..64 {
            assert_eq!(frames_of_task(&stack, 64, created_at), [110, 120, 130], "{created_at}");
        }
        let entered = [110, 230, 120, 130, 210, 220, 140];
        assert_eq!(frames_of_task(&entered, 80, 40), [120, 130]);
    }

    /// The user's frames of a task that knows no end of its own, and whether the innermost frame is the runtime's.
    fn user_frames(stack: &[u64], in_callback: bool) -> (Vec<u64>, bool) {
        let mut levels = Levels::new();
        levels.set_outside();
        levels.assign(&StackFrames::of(stack, owner_of), Entry { in_callback, ..Entry::default() });
        let (first, past) = levels.list()[0].frames;
        (levels.addresses()[usize::from(first)..usize::from(past)].to_vec(), levels.in_runtime)
    }

    #[test]
    fn frames_called_by_the_runtime_are_not_the_programs() {
        assert_eq!(user_frames(&[110, 210, 120, 130], false), (vec![120, 130], true));
        assert_eq!(user_frames(&[110, 310, 210, 120, 130], true), (vec![120, 130], true));
    }

    #[test]
    fn frames_called_by_a_callback_are_not_the_programs_without_a_frame_of_the_runtime() {
        assert_eq!(
            user_frames(&[110, 310, 111, 311, 120, 130, 140, 150], true),
            (vec![120, 130, 140, 150], true)
        );
    }

    #[test]
    fn a_body_that_the_program_calls_itself_is_no_work_of_the_runtime() {
        let in_runtime = |stack: &[u64], exit: u64| {
            let mut levels = Levels::new();
            levels.push(Level { exit, ..Level::default() });
            levels.assign(&StackFrames::of(stack, owner_of), Entry::default());
            levels.in_runtime
        };
        assert!(!in_runtime(&[110, 120, 130], 8), "the frame that showed it is gone");
        assert!(in_runtime(&[210, 120, 130], 8) && in_runtime(&[110, 210, 220, 130], 24));
    }

    #[test]
    fn a_call_through_this_library_is_named_by_the_next_frame() {
        let mut levels = Levels::new();
        levels.set_outside();
        let entry = Entry { called: 199, ..Entry::default() };
        levels.assign(&StackFrames::of(&[110, 310, 320, 120, 130, 330, 140], owner_of), entry);
        assert_eq!((levels.addresses(), levels.list()[0].frames), (&[199, 120, 130, 140][..], (0, 4)));
    }

    #[test]
    fn frames_beyond_an_intercepted_call_stay_the_programs() {
        assert_eq!(user_frames(&[110, 310, 120, 130, 140, 150], false).0, [110, 120, 130, 140, 150]);
        // The function around a thread's, and the C library's two, in a callback too.
        assert_eq!(user_frames(&[110, 310, 120, 130, 320, 140, 150], true).0, [120, 130, 140, 150]);
    }
}
