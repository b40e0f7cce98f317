//! Undeferred tasks, inlined by clang into the creating function.
//!
//! For such a body the runtime reports the frame-pointer register as the exit, which is arbitrary in code
//! without frame pointers. The creator's call of the runtime is certain, and is next to it:
//!
//! ```text
//!   creator's frame        ← its stack pointer: callees of the body are below
//!   return address           the code pointer of the creation
//!   frame pointer            as the runtime reports it
//!   runtime's frames …
//! ```

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sampler::bounds::Bounds;
use crate::sampler::code_map::{self, Owner};
use crate::sampler::machine::registers_here;
use crate::sampler::walk::{StackFrames, UnwindCache};

/// Tasks that are remembered. Of those further out the runtime's word is taken.
const KEPT: usize = 64;
/// Number of bytes searched for the runtime's frames.
const FARTHEST: u64 = 4096;

/// Creation sites of the newest ones.
pub struct Undeferred {
    /// The task, and the stack pointer of its creator.
    tasks: [(u32, u64); KEPT],
    next: usize,
    places: [FrameSize; PLACES],
}

/// Number of remembered calls.
const PLACES: usize = 16;

/// Search results for the calls that return to one address.
#[derive(Clone, Copy)]
struct FrameSize {
    codeptr: u64,
    /// Bytes from the runtime's frames to the pushed values. The same runtime function, called from the same
    /// place, pushes the same amount.
    bytes: Option<u32>,
    /// Number of failed searches: tasks in teams of one are not inlined into their creators.
    misses: u32,
}

impl Default for Undeferred {
    fn default() -> Self {
        Undeferred::new()
    }
}

impl Undeferred {
    /// Creates an empty list.
    pub const fn new() -> Self {
        let none = FrameSize { codeptr: 0, bytes: None, misses: 0 };
        Undeferred { tasks: [(0, 0); KEPT], next: 0, places: [none; PLACES] }
    }

    /// A task is created by a call that returns to `codeptr`, while the register for the frame pointer holds
    /// `frame_pointer`; the callback is at `sp`, and has frames of its own.
    pub fn note(&mut self, task: u32, call: (u64, u64, u64), own: &OwnFrames, bounds: Bounds) {
        let (codeptr, frame_pointer, sp) = call;
        let runtime = own.bytes(sp, bounds).map(|bytes| (sp + bytes).next_multiple_of(8));
        if let Some(creator) = runtime.and_then(|at| self.find((codeptr, frame_pointer), at, bounds)) {
            self.remember(task, creator);
        }
    }

    /// Finds the stack pointer at the call of the runtime; the runtime's frames begin at `runtime`.
    fn find(&mut self, call: (u64, u64), runtime: u64, bounds: Bounds) -> Option<u64> {
        let codeptr = call.0;
        let index = (codeptr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % PLACES;
        let place = self.places.get_mut(index)?;
        if place.codeptr != codeptr {
            *place = FrameSize { codeptr, bytes: None, misses: 0 };
        }
        // SAFETY: within the thread's own stack, above its stack pointer.
        let is_at = |slot: u64| bounds.is_above(runtime, slot + 15) && unsafe { is_call(call, slot) };
        let mut found = place.bytes.map(|bytes| runtime + u64::from(bytes)).filter(|slot| is_at(*slot));
        // The search takes microseconds.
        if found.is_none() && (place.misses == 0 || place.misses.is_power_of_two()) {
            found = (runtime..runtime + FARTHEST).step_by(8).find(|slot| is_at(*slot));
            place.bytes = found.map(|slot| (slot - runtime) as u32);
        }
        place.misses = if found.is_some() { 0 } else { place.misses.saturating_add(1) };
        found.map(|slot| slot + 16)
    }

    fn remember(&mut self, task: u32, creator: u64) {
        if let Some(place) = self.tasks.get_mut(self.next) {
            *place = (task, creator);
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// Stack pointers of the creators of tasks with this number, the newest first.
    pub fn creators_of(&self, task: u32) -> impl Iterator<Item = u64> {
        let (older, newer) = self.tasks.split_at(self.next.min(KEPT));
        let newest_first = older.iter().rev().chain(newer.iter().rev());
        newest_first.filter(move |known| known.0 == task && task != 0).map(|known| known.1)
    }
}

/// Size of a callback's own frames, from the point at which it reads its stack pointer, which is the same at
/// each call. They may hold copies of values that the runtime has pushed, or similar values.
pub struct OwnFrames(AtomicU64);

impl OwnFrames {
    /// Creates an unknown size.
    pub const fn new() -> Self {
        OwnFrames(AtomicU64::new(0))
    }

    /// Bytes from `sp` to the runtime's frames, if they can be determined.
    fn bytes(&self, sp: u64, bounds: Bounds) -> Option<u64> {
        match self.0.load(Relaxed) {
            0 => self.measure(sp, bounds),
            known => Some(known),
        }
    }

    #[cold]
    #[inline(never)]
    fn measure(&self, sp: u64, bounds: Bounds) -> Option<u64> {
        let map = code_map::current().filter(|_| bounds.have_room_below(sp))?;
        let mut frames = Box::new(StackFrames::new());
        frames.walk(map, &mut UnwindCache::default(), registers_here(), bounds);
        let is_runtimes = |index: &usize| frames.owner(*index) == Some(Owner::Runtime);
        let first = (0..frames.addresses().len()).find(is_runtimes)?;
        let bytes = frames.stack_pointer(first).checked_sub(sp)?;
        self.0.store(bytes, Relaxed);
        Some(bytes)
    }
}

/// Whether the runtime has pushed the frame pointer there, beneath the place that the call returns to.
///
/// # Safety
/// Both words can be read.
unsafe fn is_call((codeptr, frame_pointer): (u64, u64), slot: u64) -> bool {
    // SAFETY: by contract.
    let read = |slot: u64| unsafe { (slot as *const u64).read_volatile() };
    read(slot) == frame_pointer && read(slot + 8) == codeptr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creators_stack_pointer_is_above_the_runtimes_frames() {
        let stack = [9_u64, 70, 500, 7, 70, 9, 70, 5, 8, 70, 4];
        let sp = stack.as_ptr() as u64;
        let found = |codeptr, frame_pointer| {
            Undeferred::new().find((codeptr, frame_pointer), sp + 24, Bounds::of(&stack))
        };
        assert_eq!([found(70, 9), found(70, 8)], [Some(sp + 56), Some(sp + 80)], "beyond our own frames");
        assert_eq!([found(70, 6), found(71, 9)], [None; 2]);
    }

    #[test]
    fn a_call_is_found_again_where_it_was_and_seldom_looked_for_in_vain() {
        let mut stack = [0_u64; 40];
        let sp = stack.as_ptr() as u64;
        let mut undeferred = Undeferred::new();
        let mut found = |stack: &[u64; 40]| undeferred.find((70, 9), sp, Bounds::of(stack));
        stack[20..22].copy_from_slice(&[9, 70]);
        assert_eq!(found(&stack), Some(sp + 22 * 8));
        // Values further in are left from another call.
        stack[10..12].copy_from_slice(&[9, 70]);
        assert_eq!(found(&stack), Some(sp + 22 * 8));
        stack[20] = 0;
        assert_eq!(found(&stack), Some(sp + 12 * 8), "by another function of the runtime");
        stack[10] = 0;
        assert_eq!([found(&stack), found(&stack), found(&stack), found(&stack)], [None; 4]);
        stack[10] = 9;
        let again = (0..8).map(|_| found(&stack)).position(|found| found.is_some());
        assert_eq!(again, Some(0), "at the fourth");
        stack[10] = 0;
        (0..5).for_each(|_| assert_eq!(found(&stack), None));
        stack[10] = 9;
        let again = (0..8).map(|_| found(&stack)).position(|found| found.is_some());
        assert_eq!(again, Some(3), "at the eighth");
    }

    #[test]
    fn the_newest_are_first() {
        let mut undeferred = Undeferred::default();
        for (task, creator) in [(1, 10), (2, 20), (1, 30)] {
            undeferred.remember(task, creator);
        }
        let of = |undeferred: &Undeferred, task| undeferred.creators_of(task).collect::<Vec<_>>();
        assert_eq!(
            [of(&undeferred, 1), of(&undeferred, 2), of(&undeferred, 0)],
            [vec![30, 10], vec![20], vec![]]
        );
        (0..KEPT as u64 - 1).for_each(|creator| undeferred.remember(3, creator));
        assert_eq!((of(&undeferred, 1), of(&undeferred, 3).len()), (vec![30], KEPT - 1));
    }
}
