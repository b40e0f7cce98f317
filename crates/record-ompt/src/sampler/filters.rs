//! Programs that restrict their own system calls (seccomp(2)).
//!
//! A filter that ends a process for a call ends it for the recorder's calls too: timers, handlers' returns,
//! files. So a recording ends before the program installs such a filter: files and threads of the recorder
//! are closed, its signal is ignored, and from then on it makes no system call. A filter that only refuses
//! calls is tolerated, such as a container's.
//!
//! Filters survive `exec`, and a filter in force cannot be inspected. A program that begins with more filters
//! than `taskscope record` has is not recorded.

#![cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]

use core::ffi::c_int;

use taskscope_record::attached;
use taskscope_record::{own_threads, process};

use super::host::host;
use super::machine::read_anywhere;
use super::{excluded_programs, signal};

pub use super::excluded_programs::has_left;

/// Operations of `seccomp`, and modes of `prctl(PR_SET_SECCOMP)`.
const SET_STRICT: u32 = libc::SECCOMP_SET_MODE_STRICT;
const SET_FILTER: u32 = libc::SECCOMP_SET_MODE_FILTER;

/// Instructions of a filter, at most (`BPF_MAXINSNS`).
const MAX_INSTRUCTIONS: u64 = 4096;

/// The program is about to call `prctl` with these arguments.
pub fn before_prctl(option: c_int, mode: usize, program: usize) {
    if option == libc::PR_SET_SECCOMP {
        match mode as u32 {
            libc::SECCOMP_MODE_STRICT => before_installing(SET_STRICT, 0),
            libc::SECCOMP_MODE_FILTER => before_installing(SET_FILTER, program),
            _ => {}
        }
    }
}

/// Called before the program installs a filter by this operation of `seccomp`; other operations are ignored.
pub fn before_installing(operation: u32, program: usize) {
    if has_left() {
        return;
    }
    let ends = match operation {
        SET_STRICT => true,
        // Without instructions it only queries the flags that the kernel knows.
        SET_FILTER => instructions(program as u64).is_some_and(|all| may_end(&all)),
        _ => false,
    };
    if ends {
        leave();
    }
}

/// The instructions of a `sock_fprog`, if there is one: empty if they cannot be read.
fn instructions(program: u64) -> Option<Vec<u64>> {
    let count = read_anywhere(program).ok()? & 0xffff;
    let first = read_anywhere(program + 8).ok()?;
    let all: Result<Vec<u64>, ()> =
        (0..count.min(MAX_INSTRUCTIONS)).map(|index| read_anywhere(first + 8 * index)).collect();
    Some(all.unwrap_or_default())
}

/// Whether a filter may end the process or a thread, stop it, or send it a signal: unless all its results
/// allow a call or refuse it with an error, and a handler's return is allowed. Instructions are
/// `sock_filter`s.
fn may_end(instructions: &[u64]) -> bool {
    let is_return = |instruction: &&u64| **instruction & class::ALL == class::RETURN;
    let is_borne = |instruction: &u64| {
        let action = (instruction >> 32) as u32 & libc::SECCOMP_RET_ACTION_FULL;
        let refuses = action == libc::SECCOMP_RET_ERRNO;
        instruction & 0xffff == class::RETURN && (refuses || passes(action))
    };
    let returns_pass = || {
        answer(instructions, libc::SYS_rt_sigreturn as u32)
            .is_some_and(|found| passes(found & libc::SECCOMP_RET_ACTION_FULL))
    };
    !instructions.iter().filter(is_return).all(is_borne) || !returns_pass()
}

fn passes(action: u32) -> bool {
    matches!(action, libc::SECCOMP_RET_ALLOW | libc::SECCOMP_RET_LOG)
}

/// Parts of an instruction's code (linux/bpf_common.h).
mod class {
    pub const ALL: u64 = 0x07;
    pub const LOAD: u64 = 0x00;
    pub const LOAD_X: u64 = 0x01;
    pub const STORE: u64 = 0x02;
    pub const STORE_X: u64 = 0x03;
    pub const COMPUTE: u64 = 0x04;
    pub const JUMP: u64 = 0x05;
    pub const RETURN: u64 = 0x06;
}

/// Result of a filter for a call of this number, with arguments that are all 0. `None` for a filter that the
/// kernel rejects.
fn answer(instructions: &[u64], number: u32) -> Option<u32> {
    const ARCHITECTURE: u32 = if cfg!(target_arch = "aarch64") { 0xc000_00b7 } else { 0xc000_003e };
    /// Bytes of `seccomp_data`.
    const DATA: u32 = 64;
    let data = |offset: u32| match offset {
        0 => Some(number),
        4 => Some(ARCHITECTURE),
        _ => (offset < DATA && offset.is_multiple_of(4)).then_some(0),
    };
    let (mut a, mut x, mut memory, mut next) = (0u32, 0u32, [0u32; 16], 0usize);
    // Jumps lead forward only.
    loop {
        let instruction = *instructions.get(next)?;
        next += 1;
        let (code, k) = (instruction & 0xffff, (instruction >> 32) as u32);
        let cell = k as usize;
        // Modes: a constant, a place of the data, one of the memory, the length of the data.
        let loaded = |memory: &[u32; 16]| match code & 0xe0 {
            0x00 => Some(k),
            0x20 => data(k),
            0x60 => memory.get(cell).copied(),
            0x80 => Some(DATA),
            _ => None,
        };
        let operand = if code & 0x08 == 0 { k } else { x };
        match code & class::ALL {
            class::LOAD => a = loaded(&memory)?,
            class::LOAD_X => x = loaded(&memory)?,
            class::STORE => *memory.get_mut(cell)? = a,
            class::STORE_X => *memory.get_mut(cell)? = x,
            class::COMPUTE => {
                a = match code & 0xf0 {
                    0x00 => a.wrapping_add(operand),
                    0x10 => a.wrapping_sub(operand),
                    0x20 => a.wrapping_mul(operand),
                    0x30 => a.checked_div(operand)?,
                    0x40 => a | operand,
                    0x50 => a & operand,
                    0x60 => a.checked_shl(operand)?,
                    0x70 => a.checked_shr(operand)?,
                    0x80 => a.wrapping_neg(),
                    0xa0 => a ^ operand,
                    _ => return None,
                }
            }
            class::JUMP => {
                let holds = match code & 0xf0 {
                    0x00 => {
                        next = next.checked_add(cell)?;
                        continue;
                    }
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    0x40 => a & operand != 0,
                    _ => return None,
                };
                next += (instruction >> if holds { 16 } else { 24 } & 0xff) as usize;
            }
            class::RETURN => return Some(if code & 0x18 == 0x10 { a } else { k }),
            _ if code & 0xf8 == 0x80 => a = x,
            _ => x = a,
        }
    }
}

/// Ends the recording of this process for good.
#[cold]
fn leave() {
    if process::is_of_parent() {
        // The child of a `vfork` shares the memory of its running parent.
        if !process::was_forked() {
            return;
        }
        excluded_programs::report(attached::FILTERED);
        process::decline_in_child();
    } else {
        excluded_programs::report(attached::FILTERED);
        own_threads::give_way();
        if let Some(host) = host() {
            (host.finish)();
        }
        signal::give_back();
    }
    excluded_programs::decline();
    excluded_programs::leave();
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD_NUMBER: u64 = 0x20;

    fn action(action: u32) -> u64 {
        u64::from(action) << 32 | 0x06
    }

    /// Skips one instruction unless the number is this one.
    fn if_number(number: i64) -> u64 {
        (number as u64) << 32 | 1 << 24 | 0x15
    }

    #[test]
    fn filters_that_only_refuse_are_borne() {
        let [allow, refuse] =
            [libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32].map(action);
        // A list of refused calls, and one of allowed calls.
        assert!(!may_end(&[LOAD_NUMBER, if_number(libc::SYS_mount), refuse, allow]));
        assert!(!may_end(&[LOAD_NUMBER, if_number(libc::SYS_rt_sigreturn), allow, refuse]));
        // No handler could return.
        assert!(may_end(&[LOAD_NUMBER, if_number(libc::SYS_write), allow, refuse]));
        for other in [
            libc::SECCOMP_RET_KILL_PROCESS,
            libc::SECCOMP_RET_KILL_THREAD,
            libc::SECCOMP_RET_TRAP,
            libc::SECCOMP_RET_TRACE,
            libc::SECCOMP_RET_USER_NOTIF,
            0x1234_0000,
        ] {
            assert!(may_end(&[LOAD_NUMBER, if_number(libc::SYS_mount), action(other), allow]), "{other:x}");
        }
        // The accumulator is the result.
        assert!(may_end(&[LOAD_NUMBER, if_number(libc::SYS_mount), 0x16, allow]));
        assert!(may_end(&[LOAD_NUMBER]) && may_end(&[]));
    }

    #[test]
    fn filters_are_interpreted() {
        let of = |instructions: &[(u64, u32)]| {
            let all: Vec<u64> = instructions.iter().map(|(code, k)| u64::from(*k) << 32 | code).collect();
            answer(&all, 15)
        };
        const RETURN_A: (u64, u32) = (0x16, 0);
        assert_eq!(of(&[(0x20, 0), RETURN_A]), Some(15));
        assert_eq!(of(&[(0x20, 16), RETURN_A]), Some(0));
        assert_eq!(of(&[(0x80, 0), RETURN_A]), Some(64));
        assert_eq!(of(&[(0x20, 64), RETURN_A]), None);
        // a = 7; x = a; store; a = a * 3 + x; load and xor.
        assert_eq!(
            of(&[(0, 7), (0x07, 0), (0x02, 3), (0x24, 3), (0x0c, 0), (0x61, 3), (0xac, 0), RETURN_A]),
            Some(28 ^ 7)
        );
        // Jumps: over one, and by the comparison's two ways.
        assert_eq!(of(&[(0x05, 1), (0x06, 1), (0x06, 2)]), Some(2));
        let two_ways = |code: u64| of(&[(0x20, 0), (code | 1 << 16, 15), (0x06, 1), (0x06, 2)]);
        assert_eq!([0x15, 0x25, 0x35, 0x45].map(two_ways), [Some(2), Some(1), Some(2), Some(2)]);
        for broken in
            [&[][..], &[(0, 1)], &[(0x34, 0), RETURN_A], &[(0x02, 16), RETURN_A], &[(0x05, u32::MAX)]]
        {
            assert_eq!(of(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_program_is_read_from_memory() {
        let all = [LOAD_NUMBER, action(libc::SECCOMP_RET_ALLOW)];
        let program = [2u64 | 0xdead_0000, all.as_ptr() as u64];
        assert_eq!(instructions(program.as_ptr() as u64), Some(all.to_vec()));
        assert_eq!(instructions(0), None);
        let unreadable = [2u64, 64 << 10];
        assert_eq!(instructions(unreadable.as_ptr() as u64), Some(Vec::new()));
    }
}
