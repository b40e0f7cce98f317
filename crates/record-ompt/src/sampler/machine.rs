//! Registers of the calling thread and memory of the process.

/// The registers that a walk starts from.
pub type Registers = framehop::UnwindRegsNative;

/// Reads a word of the stack.
pub type Read<'a> = dyn FnMut(u64) -> Result<u64, ()> + 'a;

/// Reads a word of memory that may not be there, on a stack of the program's own making for instance.
#[cold]
pub fn read_anywhere(address: u64) -> Result<u64, ()> {
    let mut word = [0; 8];
    if copy_from_anywhere(address, &mut word) == word.len() { Ok(u64::from_ne_bytes(word)) } else { Err(()) }
}

/// The bytes of a piece of code, as far as they can be read.
#[cfg(target_arch = "x86_64")]
pub fn code(start: u64, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; end.saturating_sub(start) as usize];
    let count = copy_from_anywhere(start, &mut bytes);
    bytes.truncate(count);
    bytes
}

/// Whether a call instruction ends at `address`, as before every return address.
#[cold]
pub fn follows_call(address: u64) -> bool {
    /// The longest call in bytes, without its prefixes.
    const MAX_CALL_BYTES: usize = if cfg!(target_arch = "x86_64") { 7 } else { 4 };
    const MIN_CALL_BYTES: usize = if cfg!(target_arch = "x86_64") { 2 } else { 4 };
    let mut before = [0; MAX_CALL_BYTES];
    // Code may begin less than the longest call before `address`.
    (MIN_CALL_BYTES..=MAX_CALL_BYTES).rev().any(|length| {
        let (_, end) = before.split_at_mut(MAX_CALL_BYTES - length);
        copy_from_anywhere(address.wrapping_sub(length as u64), end) == length
    }) && ends_with_call(&before)
}

/// Whether the code ends with a call of the form `E8 rel32` or `FF /2`.
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: &[u8; 7]) -> bool {
    let is_indirect = |length: usize| {
        let at = code.len() - length;
        matches!(code.get(at..at + 2), Some([0xff, mode]) if mode >> 3 & 7 == 2)
    };
    code[2] == 0xe8 || [2, 3, 4, 6, 7].into_iter().any(is_indirect)
}

/// `BL`, `BLR` or one of the forms that authenticate a pointer.
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: &[u8; 4]) -> bool {
    let instruction = u32::from_le_bytes(*code);
    instruction & 0xfc00_0000 == 0x9400_0000
        || instruction & 0xffff_fc1f == 0xd63f_0000
        || instruction & 0xfeff_f800 == 0xd63f_0800
}

/// Whether an address may be one of the program's memory.
fn is_possible(address: u64) -> bool {
    address >= 64 << 10 && address >> 47 == 0
}

/// Copies memory that may not be there. Returns how many bytes could be copied.
pub fn copy_from_anywhere(address: u64, to: &mut [u8]) -> usize {
    if !is_possible(address) {
        return 0;
    }
    copy_pieces(&[libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() }], to)
}

/// Copies pieces of memory that may not be there, the same number of bytes from each address. Returns whether all were there.
pub fn copy_all_from_anywhere(addresses: &[u64], to: &mut [u8]) -> bool {
    /// Pieces of one call.
    const AT_ONCE: usize = 32;
    let Some(bytes) = to.len().checked_div(addresses.len()).filter(|bytes| *bytes > 0) else { return true };
    addresses.chunks(AT_ONCE).zip(to.chunks_mut(AT_ONCE * bytes)).all(|(addresses, to)| {
        let mut pieces = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: bytes }; AT_ONCE];
        for (piece, address) in pieces.iter_mut().zip(addresses) {
            piece.iov_base = *address as *mut libc::c_void;
        }
        let pieces = pieces.get(..addresses.len()).unwrap_or_default();
        addresses.iter().all(|address| is_possible(*address)) && copy_pieces(pieces, to) == to.len()
    })
}

/// Copies these pieces. Returns how many bytes could be copied.
fn copy_pieces(pieces: &[libc::iovec], to: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    // SAFETY: the kernel checks the addresses; the result is stored in `to`.
    let read = unsafe {
        let (to, from, count) = (&raw const local, pieces.as_ptr(), pieces.len());
        libc::syscall(libc::SYS_process_vm_readv, libc::getpid(), to, 1usize, from, count, 0usize)
    };
    usize::try_from(read).unwrap_or(0)
}

/// The stack pointer among [`Place::here`].
#[inline(always)]
pub fn stack_pointer_here() -> u64 {
    let sp: u64;
    // SAFETY: reads a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {0}, rsp", out(reg) sp, options(nostack, nomem, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("mov {0}, sp", out(reg) sp, options(nostack, nomem, preserves_flags));
    }
    sp
}

/// A place from which a stack can be walked: as long as the function has not returned, by any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The instruction.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer.
    pub fp: u64,
    /// The link register; 0 on machines without one.
    pub lr: u64,
}

impl Place {
    /// In the function that this is inlined into.
    #[inline(always)]
    pub fn here() -> Place {
        #[cfg(target_arch = "x86_64")]
        {
            let (pc, sp, fp): (u64, u64, u64);
            // SAFETY: reads registers.
            unsafe {
                core::arch::asm!(
                    "lea {0}, [rip]", "mov {1}, rsp", "mov {2}, rbp",
                    out(reg) pc, out(reg) sp, out(reg) fp, options(nostack, nomem, preserves_flags),
                );
            }
            Place { pc, sp, fp, lr: 0 }
        }
        #[cfg(target_arch = "aarch64")]
        {
            let (pc, sp, fp, lr): (u64, u64, u64, u64);
            // SAFETY: reads registers.
            unsafe {
                core::arch::asm!(
                    "adr {0}, .", "mov {1}, sp", "mov {2}, x29", "mov {3}, x30",
                    out(reg) pc, out(reg) sp, out(reg) fp, out(reg) lr, options(nostack, nomem),
                );
            }
            Place { pc, sp, fp, lr }
        }
    }

    /// The registers that a walk from there starts with.
    #[inline(always)]
    pub fn registers(self) -> (u64, Registers) {
        #[cfg(target_arch = "x86_64")]
        let registers = Registers::new(self.pc, self.sp, self.fp);
        #[cfg(target_arch = "aarch64")]
        let registers = Registers::new(self.lr, self.sp, self.fp);
        (self.pc, registers)
    }
}

/// The registers of the function that this is inlined into.
#[inline(always)]
pub fn registers_here() -> (u64, Registers) {
    Place::here().registers()
}

/// The registers that a signal interrupted.
///
/// # Safety
/// `context` is the kernel's argument to the handler.
pub unsafe fn interrupted_registers(context: *const libc::ucontext_t) -> (u64, Registers) {
    // SAFETY: by contract.
    let Ok(found) = registers_in(context as u64, |address| unsafe {
        Ok::<_, core::convert::Infallible>((address as *const u64).read())
    });
    found
}

/// Whether a signal has woken its thread in a system call, or interrupted it on the way to sleep there. The kernel has the call repeated, or
/// fail with `EINTR`. A call that is over by itself when the signal comes is not one of these.
///
/// # Safety
/// `context` is the kernel's argument to the handler.
pub unsafe fn interrupted_system_call(context: *const libc::ucontext_t) -> bool {
    // SAFETY: by contract.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let (pc, result, number) = {
        let of =
            |register: libc::c_int| machine.gregs.get(register as usize).map_or(0, |value| *value as u64);
        let result = of(libc::REG_RAX);
        (of(libc::REG_RIP), result, result)
    };
    #[cfg(target_arch = "aarch64")]
    let (pc, result, number) = {
        let of = |register: usize| machine.regs.get(register).copied().unwrap_or(0);
        (machine.pc, of(0), of(8))
    };
    is_in_system_call(pc, result, number)
}

/// The instruction of a system call.
#[cfg(target_arch = "x86_64")]
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
const SYSTEM_CALL: [u8; 4] = 0xd400_0001_u32.to_le_bytes();

/// Whether a thread is behind a system call that fails with `EINTR`, or before one that it repeats: the program counter, and the
/// registers of the result and of the call's number.
fn is_in_system_call(pc: u64, result: u64, number: u64) -> bool {
    const EINTR: u64 = (-libc::EINTR as i64).cast_unsigned();
    /// Greater than all numbers of calls.
    const MAX_NUMBER: u64 = 1024;
    let is_call = |at: u64| {
        let mut code = [0; SYSTEM_CALL.len()];
        copy_from_anywhere(at, &mut code) == code.len() && code == SYSTEM_CALL
    };
    let is_broken_off = result == EINTR && is_call(pc.wrapping_sub(SYSTEM_CALL.len() as u64));
    is_broken_off || (number < MAX_NUMBER && is_call(pc))
}

/// Registers interrupted by a signal that is about to return from its handler: the kernel has saved them at
/// the stack pointer.
pub fn kept_registers(sp: u64, read: &mut Read) -> Result<(u64, Registers), ()> {
    let before = if cfg!(target_arch = "aarch64") { size_of::<libc::siginfo_t>() } else { 0 };
    registers_in(sp.checked_add(before as u64).filter(|at| *at < 1 << 56).ok_or(())?, read)
}

/// The registers in a `ucontext_t`, with the interrupted address.
fn registers_in<E>(context: u64, mut read: impl FnMut(u64) -> Result<u64, E>) -> Result<(u64, Registers), E> {
    use core::mem::offset_of;
    let machine = context + offset_of!(libc::ucontext_t, uc_mcontext) as u64;
    #[cfg(target_arch = "x86_64")]
    {
        use framehop::x86_64::Reg;
        let all = machine + offset_of!(libc::mcontext_t, gregs) as u64;
        let mut of = |register: libc::c_int| read(all + register as u64 * 8);
        let pc = of(libc::REG_RIP)?;
        let mut registers = Registers::new(pc, of(libc::REG_RSP)?, of(libc::REG_RBP)?);
        // Functions keep their caller's stack pointer here while they align their own.
        registers.set(Reg::R10, of(libc::REG_R10)?);
        registers.set(Reg::RBX, of(libc::REG_RBX)?);
        Ok((pc, registers))
    }
    #[cfg(target_arch = "aarch64")]
    {
        let mut at = |offset: usize| read(machine + offset as u64);
        let regs = offset_of!(libc::mcontext_t, regs);
        let [fp, lr] = [at(regs + 29 * 8)?, at(regs + 30 * 8)?];
        let pc = at(offset_of!(libc::mcontext_t, pc))?;
        Ok((pc, Registers::new(lr, at(offset_of!(libc::mcontext_t, sp))?, fp)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_copied_in_their_order() {
        let from: Vec<u64> = (0..100).collect();
        let address = |index: usize| &raw const from[index] as u64;
        let addresses: Vec<u64> = (0..50).rev().map(|index| address(2 * index)).collect();
        let mut to = [0; 50 * 8];
        assert!(copy_all_from_anywhere(&addresses, &mut to));
        let found: Vec<u64> =
            to.chunks(8).map(|piece| u64::from_ne_bytes(piece.try_into().unwrap())).collect();
        assert_eq!(found, (0..50).rev().map(|index| 2 * index).collect::<Vec<u64>>());
        assert!(copy_all_from_anywhere(&[], &mut []));
        for bad in [0, 8, 0x10_0000_0000, u64::MAX - 3] {
            assert!(!copy_all_from_anywhere(&[address(0), bad, address(1)], &mut to[..24]), "{bad:x}");
        }
    }

    #[test]
    fn interrupted_system_calls_are_repeated_or_fail() {
        let code: Vec<u8> = [&[0x90; 8][..], &SYSTEM_CALL, &[0x90; 8]].concat();
        let call = code.as_ptr() as u64 + 8;
        let behind = call + SYSTEM_CALL.len() as u64;
        let failed = -i64::from(libc::EINTR);
        let is_in =
            |pc: u64, result: i64| is_in_system_call(pc, result.cast_unsigned(), result.cast_unsigned());
        assert!(is_in(behind, failed) && is_in(call, libc::SYS_futex));
        // Over by itself, elsewhere, without the number of a call.
        assert!(!is_in(behind, 0) && !is_in(behind, libc::SYS_futex) && !is_in(call - 2, failed));
        assert!(!is_in(call - 4, libc::SYS_futex) && !is_in(call, 0x7f12_3456_7890) && !is_in(8, failed));
    }

    #[test]
    fn return_addresses_follow_a_call() {
        #[cfg(target_arch = "x86_64")]
        let calls: [&[u8]; 4] = [
            &[0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4],
            &[0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd0],
            &[0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4],
            &[0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x10],
        ];
        #[cfg(target_arch = "aarch64")]
        let calls: [&[u8]; 2] =
            [&[0x1f, 0x20, 0x03, 0xd5, 1, 0, 0, 0x94], &[0x1f, 0x20, 0x03, 0xd5, 0, 1, 0x3f, 0xd6]];
        for code in calls {
            assert!(follows_call(code.as_ptr_range().end as u64), "{code:x?}");
        }
        for data in [[0_u64; 2], [0x7f12_3456_7890, 0x7f12_3456_7898]] {
            assert!(!follows_call(data.as_ptr_range().end as u64), "{data:x?}");
        }
        assert!(!follows_call(0x7fff_0000_0000_0000));
    }
}
