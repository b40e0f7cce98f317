//! A stack of the recorder's own, used for walks if the program's is too small, or of unknown size: a stack
//! of a few kilobytes that the program has made itself (fibers, user-level threads), an alternate one for
//! signals. The kernel's frame of a handler is on the program's stack nevertheless.

use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::ManuallyDrop;

use super::bounds::ROOM;

/// Bytes, of which a walk takes [`ROOM`] at most.
const BYTES: usize = 2 * ROOM as usize;
/// Bytes of a stack on which handlers of the program's may run. Only touched pages take memory.
const BYTES_FOR_HANDLERS: usize = BYTES + (1 << 20);
/// Unmapped bytes beneath the stack.
const GUARD: usize = 64 << 10;

/// A piece of memory to run on. Only one call at a time.
pub struct OwnStack {
    low: *mut c_void,
    /// Without the guard.
    bytes: usize,
}

// SAFETY: memory is accessible from every thread.
unsafe impl Send for OwnStack {}

// fn(argument, function, end of the stack). Unwinding through it reaches the calling stack.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.taskscope_call_on_stack,\"ax\",@progbits",
    ".p2align 4",
    ".hidden taskscope_call_on_stack",
    ".globl taskscope_call_on_stack",
    ".type taskscope_call_on_stack,@function",
    "taskscope_call_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdx",
    "call rsi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size taskscope_call_on_stack, .-taskscope_call_on_stack",
    ".popsection",
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.taskscope_call_on_stack,\"ax\",@progbits",
    ".p2align 4",
    ".hidden taskscope_call_on_stack",
    ".globl taskscope_call_on_stack",
    ".type taskscope_call_on_stack,@function",
    "taskscope_call_on_stack:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset x29, -16",
    ".cfi_offset x30, -8",
    "mov x29, sp",
    ".cfi_def_cfa_register x29",
    "mov sp, x2",
    "blr x1",
    "mov sp, x29",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa sp, 0",
    ".cfi_restore x30",
    ".cfi_restore x29",
    "ret",
    ".cfi_endproc",
    ".size taskscope_call_on_stack, .-taskscope_call_on_stack",
    ".popsection",
);

unsafe extern "C" {
    fn taskscope_call_on_stack(
        argument: *mut c_void,
        function: unsafe extern "C" fn(*mut c_void),
        end: *mut c_void,
    );
}

impl OwnStack {
    /// Reserves the address space; `None` on failure. Memory is allocated on use.
    pub fn new() -> Option<OwnStack> {
        OwnStack::with(BYTES)
    }

    /// The same with room for handlers of the program's.
    pub fn for_handlers() -> Option<OwnStack> {
        OwnStack::with(BYTES_FOR_HANDLERS)
    }

    fn with(bytes: usize) -> Option<OwnStack> {
        let (flags, access) = (
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            libc::PROT_READ | libc::PROT_WRITE,
        );
        // SAFETY: a new piece of memory; then only that is changed.
        unsafe {
            let low = libc::mmap(core::ptr::null_mut(), GUARD + bytes, libc::PROT_NONE, flags, -1, 0);
            if low == libc::MAP_FAILED {
                return None;
            }
            let own = OwnStack { low, bytes };
            (libc::mprotect(low.byte_add(GUARD), bytes, access) == 0).then_some(own)
        }
    }

    /// Bytes of it below an address in it.
    pub fn room_below(&self, address: u64) -> Option<u64> {
        let low = self.low as u64 + GUARD as u64;
        (low..=low + self.bytes as u64).contains(&address).then(|| address - low)
    }

    /// The stack in the form of `sigaltstack`.
    pub fn as_alternate(&self) -> libc::stack_t {
        libc::stack_t { ss_sp: self.low.wrapping_byte_add(GUARD), ss_flags: 0, ss_size: self.bytes }
    }

    /// Calls a function on it. Async-signal-safe, if the function is.
    pub fn call<F: FnOnce()>(&self, function: F) {
        unsafe extern "C" fn enter<F: FnOnce()>(function: *mut c_void) {
            // SAFETY: `call` passes its own, once.
            unsafe { ManuallyDrop::take(&mut *function.cast::<ManuallyDrop<F>>())() }
        }
        let mut function = ManuallyDrop::new(function);
        // SAFETY: both belong together; the memory lives as long as `self`, and has no other user.
        unsafe {
            let end = self.low.byte_add(GUARD + self.bytes);
            taskscope_call_on_stack((&raw mut function).cast(), enter::<F>, end);
        }
    }
}

impl Drop for OwnStack {
    fn drop(&mut self) {
        // SAFETY: from `new`.
        unsafe { libc::munmap(self.low, GUARD + self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::bounds::Bounds;
    use super::super::code_map::CodeMap;
    use super::super::machine::{registers_here, stack_pointer_here};
    use super::super::walk::{StackFrames, UnwindCache};
    use super::*;

    #[test]
    fn a_call_runs_on_the_own_stack_and_a_walk_leads_back() {
        // framehop rejects a caller whose stack is lower: this test needs one that is lower than the
        // thread's.
        let here = stack_pointer_here();
        let mut higher = Vec::new();
        let own = loop {
            let own = OwnStack::new().unwrap();
            if (own.low as u64) < here {
                break own;
            }
            higher.push(own);
        };
        let (mut sp, mut frames) = (0, Box::new(StackFrames::new()));
        let map = CodeMap::up_to_date();
        own.call(|| {
            sp = stack_pointer_here();
            frames.walk(map, &mut UnwindCache::default(), registers_here(), Bounds::current_thread());
        });
        let low = own.low as u64 + GUARD as u64;
        assert!((low..low + BYTES as u64).contains(&sp));
        assert!(frames.reached_root, "{} frames", frames.addresses().len());
    }
}
