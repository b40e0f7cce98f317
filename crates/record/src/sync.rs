//! The primitives of [`crate::entry_lock`], which a model checker can replace (`--cfg loom`).

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, Ordering};

/// The event path's half of an asymmetric fence: it only binds the compiler, since
/// [`heavy_fence`] makes every thread of the process execute a full fence.
#[inline(always)]
pub fn light_fence() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    // The model has no membarrier; a full fence on both sides is equivalent to the pair.
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// The finisher's half: membarrier. Returns whether it took place.
pub fn heavy_fence() -> bool {
    #[cfg(not(loom))]
    {
        const PRIVATE_EXPEDITED: i32 = 1 << 3;
        // SAFETY: plain system call.
        unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0 }
    }
    #[cfg(loom)]
    {
        loom::sync::atomic::fence(Ordering::SeqCst);
        true
    }
}

/// Asks for [`heavy_fence`]; once per process.
pub fn prepare_heavy_fence() {
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) };
}
