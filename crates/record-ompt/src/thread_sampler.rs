//! A thread's sampler, with the data that samples of OpenMP programs need.

use core::cell::UnsafeCell;
use core::ops::Deref;
use std::sync::Arc;

use taskscope_event::models::samples::LEVEL_BYTES;

use crate::profiling::{Counted, Recent};
use crate::sampler::{Bounds, Sampler};
use crate::task_stacks::levels::Levels;

/// A thread's sampler and the handler's memory. All of it is allocated and touched before the timer is armed.
pub struct ThreadSampler {
    /// Timer and stack walks.
    pub core: Sampler,
    /// Only the handler touches it.
    pub memory: Box<UnsafeCell<Memory>>,
    /// Counts of the samples, in profile mode.
    pub counted: Option<Arc<Counted>>,
    /// Recent samples of the thread's work. The handler adds to them, but not during a callback.
    recent: UnsafeCell<Recent>,
}

/// The handler's memory.
pub struct Memory {
    /// The tasks on the stack.
    pub levels: Levels,
    /// These, as a sample stores them.
    pub level_bytes: [u8; 24 * LEVEL_BYTES],
}

impl Memory {
    /// Takes much of the stack, while it is made.
    #[inline(never)]
    fn new() -> Box<UnsafeCell<Memory>> {
        Box::new(UnsafeCell::new(Memory { levels: Levels::new(), level_bytes: [0; 24 * LEVEL_BYTES] }))
    }
}

impl ThreadSampler {
    /// Starts sampling the calling thread, with its stack bounds and system thread id. `None` if sampling is
    /// off, or the system has no timer left.
    pub fn start(bounds: Bounds, os_tid: i32, counted: Option<Arc<Counted>>) -> Option<Box<ThreadSampler>> {
        if bounds.is_small() { None } else { ThreadSampler::start_on(bounds, os_tid, counted) }
    }

    /// Takes much of the stack, while its memory is made.
    #[inline(never)]
    fn start_on(bounds: Bounds, os_tid: i32, counted: Option<Arc<Counted>>) -> Option<Box<ThreadSampler>> {
        let core = Sampler::new(bounds, os_tid)?;
        let mut sampler =
            Box::new(ThreadSampler { core, memory: Memory::new(), counted, recent: UnsafeCell::default() });
        sampler.core.arm().then_some(sampler)
    }

    /// Recent samples of the thread's work, for a callback on the sampler's thread.
    pub fn recent(&self) -> &Recent {
        // SAFETY: the handler leaves it alone while a callback runs.
        unsafe { &*self.recent.get() }
    }

    /// Recent samples, mutable.
    pub fn recent_mut(&mut self) -> &mut Recent {
        self.recent.get_mut()
    }

    /// Recent samples, for the handler.
    ///
    /// # Safety
    /// No callback runs, and this is the only handler on the thread.
    #[allow(clippy::mut_from_ref, reason = "the handler is alone with it, by contract")]
    pub unsafe fn recent_in_handler(&self) -> &mut Recent {
        // SAFETY: by contract.
        unsafe { &mut *self.recent.get() }
    }
}

impl Deref for ThreadSampler {
    type Target = Sampler;

    #[inline(always)]
    fn deref(&self) -> &Sampler {
        &self.core
    }
}
