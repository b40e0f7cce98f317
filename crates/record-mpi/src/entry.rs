//! The symbols that programs call in place of those of their MPI library.
//!
//! Each is two instructions: its number, and a jump to the common part, which lays the arguments out
//! as words in memory and calls [`crate::call::handle`]. No argument is interpreted here, so that one entry fits
//! every MPI's types; return address and arguments are as the program left them.

use core::arch::naked_asm;

use crate::call::handle;
use crate::functions::{VARIANTS, with_functions};

#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn common() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov edi, eax",
        "mov rsi, rsp",
        "lea rdx, [rbp + 16]",
        "mov rcx, [rbp + 8]",
        "call {handle}",
        "leave",
        "ret",
        handle = sym handle,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn common() {
    naked_asm!(
        "stp x29, x30, [sp, #-80]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "stp x2, x3, [sp, #32]",
        "stp x4, x5, [sp, #48]",
        "stp x6, x7, [sp, #64]",
        "mov w0, w9",
        "add x1, sp, #16",
        "add x2, x29, #80",
        "mov x3, x30",
        "bl {handle}",
        "ldp x29, x30, [sp], #80",
        "ret",
        handle = sym handle,
    )
}

macro_rules! entry {
    ($symbol:literal, $index:expr) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            #[unsafe(naked)]
            unsafe extern "C" fn entry() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "mov eax, {index}",
                    "jmp {common}",
                    index = const $index,
                    common = sym common,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "mov w9, #{index}",
                    "b {common}",
                    index = const $index,
                    common = sym common,
                );
            }
        };
    };
}

macro_rules! entries {
    ($( $row:literal $number:literal $name:ident $arity:literal $strings:literal $large:literal
        [$( $variant:literal $symbol:literal )*] $does:expr; )*) => {
        $($( entry!($symbol, $row * VARIANTS as u32 + $variant); )*)*
    };
}
with_functions!(entries);
