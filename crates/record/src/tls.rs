//! One thread-local pointer, accessed without a call.
//!
//! Stable Rust compiles `thread_local!` in a shared library to a call of `__tls_get_addr`, which may allocate
//! at first touch. The recorder's pointer is 8 bytes in the initial-exec model: glibc reserves room for such
//! small blocks in libraries that are loaded late.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.taskscope_current_recorder,\"awT\",@nobits",
    ".hidden taskscope_current_recorder",
    ".globl taskscope_current_recorder",
    ".type taskscope_current_recorder,@object",
    ".size taskscope_current_recorder,8",
    ".balign 8",
    "taskscope_current_recorder:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's pointer; null until [`set`].
#[inline(always)]
pub fn get() -> *mut u8 {
    let value: *mut u8;
    // SAFETY: reads this thread's own 8-byte thread-local variable, declared above.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {0}, qword ptr [rip + taskscope_current_recorder@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) value,
            options(nostack, readonly, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {0}, :gottprel:taskscope_current_recorder",
            "ldr {0}, [{0}, #:gottprel_lo12:taskscope_current_recorder]",
            "mrs {1}, tpidr_el0",
            "ldr {0}, [{1}, {0}]",
            out(reg) value,
            out(reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    value
}

/// Sets the calling thread's pointer.
pub fn set(value: *mut u8) {
    // SAFETY: writes this thread's own 8-byte thread-local variable, declared above.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {0}, qword ptr [rip + taskscope_current_recorder@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) value,
            options(nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {0}, :gottprel:taskscope_current_recorder",
            "ldr {0}, [{0}, #:gottprel_lo12:taskscope_current_recorder]",
            "mrs {1}, tpidr_el0",
            "str {2}, [{1}, {0}]",
            out(reg) _,
            out(reg) _,
            in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}

/// The calling thread's thread pointer: different for any two threads that live at the same time.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let value: usize;
    // SAFETY: reads the register, or the word that holds its own address, of the thread's ABI.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {0}, qword ptr fs:[0]", out(reg) value, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {0}, tpidr_el0", out(reg) value, options(nostack, nomem, preserves_flags));
    }
    value
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_thread_has_its_own_pointer() {
        super::set(8 as *mut u8);
        std::thread::spawn(|| {
            assert!(super::get().is_null());
            super::set(16 as *mut u8);
            assert_eq!(super::get() as usize, 16);
        })
        .join()
        .unwrap();
        assert_eq!(super::get() as usize, 8);
        super::set(core::ptr::null_mut());
    }
}
