//! The primitives of [`crate::entry_lock`]; its model has others of the same names.

pub use core::sync::atomic::{AtomicU32, Ordering};

/// The event path's half of an asymmetric fence: it only binds the compiler, since
/// [`heavy_fence`] makes every thread of the process execute a full fence.
#[inline(always)]
pub fn light_fence() {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// The finisher's half: membarrier. Returns whether it took place.
pub fn heavy_fence() -> bool {
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_membarrier, PRIVATE_EXPEDITED, 0, 0) == 0 }
}

/// Asks for [`heavy_fence`]; once per process.
pub fn prepare_heavy_fence() {
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: plain system call.
    unsafe { libc::syscall(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0, 0) };
}
