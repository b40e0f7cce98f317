//! Tasks that are not deferred, of whose bodies clang makes a part of the function that creates them.
//!
//! Where the runtime left to such a body it tells by what the register for the frame pointer held, which is anything in code
//! that keeps no frame pointers. What is certain is where the creator called the runtime, which lies beside it:
//!
//! ```text
//!   creator's frame        ← its stack pointer: what the body calls lies below
//!   return address           the code pointer of the creation
//!   frame pointer            as the runtime tells it
//!   runtime's frames …
//! ```

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::code_map::{self, Owner};
use super::walk::{Bounds, Cache, Frames, registers_here};

/// Tasks that are remembered. Of those further out the runtime's word is taken.
const KEPT: usize = 64;
/// Bytes in which the runtime's frames are looked for.
const FARTHEST: u64 = 4096;

/// Where the newest ones were created.
pub struct Undeferred {
    /// The task, and the stack pointer of its creator.
    tasks: [(u32, u64); KEPT],
    next: usize,
}

impl Default for Undeferred {
    fn default() -> Self {
        Undeferred::new()
    }
}

impl Undeferred {
    /// None.
    pub const fn new() -> Self {
        Undeferred { tasks: [(0, 0); KEPT], next: 0 }
    }

    /// A task is created by a call that returns to `codeptr`, while the register for the frame pointer holds
    /// `frame_pointer`; the callback is at `sp`, and has frames of its own.
    #[cold]
    pub fn note(&mut self, task: u32, call: (u64, u64, u64), own: &OwnFrames, bounds: Bounds) {
        let (codeptr, frame_pointer, sp) = call;
        let runtime = own.bytes(sp, bounds).map(|bytes| sp + bytes);
        let creator = runtime.and_then(|runtime| creator_of_call((codeptr, frame_pointer), runtime, bounds));
        if let Some(creator) = creator {
            self.remember(task, creator);
        }
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

/// How far up the stack a callback's own frames go from where it asks for its stack pointer, which is the same at each call.
/// They may hold copies of what the runtime has pushed, or anything that looks so.
pub struct OwnFrames(AtomicU64);

impl OwnFrames {
    /// Not known yet.
    pub const fn new() -> Self {
        OwnFrames(AtomicU64::new(0))
    }

    /// Bytes from `sp` to the runtime's frames, where they can be told.
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
        let mut frames = Box::new(Frames::new());
        frames.walk(map, &mut Cache::default(), registers_here(), bounds);
        let is_runtimes = |index: &usize| frames.owner(*index) == Some(Owner::Runtime);
        let first = (0..frames.addresses().len()).find(is_runtimes)?;
        let bytes = frames.stack_pointer(first).checked_sub(sp)?;
        self.0.store(bytes, Relaxed);
        Some(bytes)
    }
}

/// The stack pointer from which the runtime was called, whose frames begin at `runtime`.
fn creator_of_call((codeptr, frame_pointer): (u64, u64), runtime: u64, bounds: Bounds) -> Option<u64> {
    let slots = (runtime.next_multiple_of(8)..runtime + FARTHEST).step_by(8);
    let mut runtimes = slots.take_while(|slot| bounds.is_above(runtime, slot + 15));
    // SAFETY: on the thread's own stack, above its stack pointer.
    let read = |slot: u64| unsafe { (slot as *const u64).read_volatile() };
    let pushed = runtimes.find(|slot| read(*slot) == frame_pointer && read(slot + 8) == codeptr);
    pushed.map(|slot| slot + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_creators_stack_pointer_is_above_what_the_runtime_has_pushed() {
        let stack = [9_u64, 70, 500, 7, 70, 9, 70, 5, 8, 70, 4];
        let sp = stack.as_ptr() as u64;
        let found =
            |codeptr, frame_pointer| creator_of_call((codeptr, frame_pointer), sp + 24, Bounds::of(&stack));
        assert_eq!([found(70, 9), found(70, 8)], [Some(sp + 56), Some(sp + 80)], "beyond our own frames");
        assert_eq!([found(70, 6), found(71, 9)], [None; 2]);
    }

    #[test]
    fn the_newest_come_first() {
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
