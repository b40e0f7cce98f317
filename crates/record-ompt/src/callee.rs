//! Resolves the target of the call before a return address, as far as the loader's pointers show it. x86-64
//! only.

use crate::sampler::modules;
use crate::sampler::read_anywhere;

/// Resolves the target of the call that returns to `return_address`, if it is a near call, or one through the
/// loader's pointer, to a function or to a stub that jumps through such a pointer.
#[cold]
pub fn before(return_address: u64) -> Option<u64> {
    if !cfg!(target_arch = "x86_64") || !modules::is_executable(return_address) {
        return None;
    }
    let call = bytes_at(return_address.checked_sub(6)?)?;
    match call {
        [0xff, 0x15, distance @ ..] => {
            read_anywhere(relative(return_address, [distance[0], distance[1], distance[2], distance[3]])).ok()
        }
        [_, 0xe8, a, b, c, d, ..] => {
            let called = relative(return_address, [a, b, c, d]);
            modules::is_executable(called).then(|| behind_stub(called).unwrap_or(called))
        }
        _ => None,
    }
}

/// Target of a PLT stub: `jmp *pointer(%rip)`, often after `endbr64` and with a `bnd` prefix.
fn behind_stub(address: u64) -> Option<u64> {
    const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let mut at = address;
    if bytes_at(at)?.starts_with(&ENDBR) {
        at = at.checked_add(4)?;
    }
    if bytes_at(at)?.starts_with(&[0xf2]) {
        at = at.checked_add(1)?;
    }
    match bytes_at(at)? {
        [0xff, 0x25, a, b, c, d, ..] => read_anywhere(relative(at.checked_add(6)?, [a, b, c, d])).ok(),
        _ => None,
    }
}

/// The eight bytes at an address.
fn bytes_at(address: u64) -> Option<[u8; 8]> {
    let misaligned = address % 8;
    let first = read_anywhere(address - misaligned).ok()?;
    if misaligned == 0 {
        return Some(first.to_le_bytes());
    }
    let second = read_anywhere((address - misaligned).checked_add(8)?).ok()?;
    let both = u128::from(second) << 64 | u128::from(first);
    ((both >> (8 * misaligned)) as u64).to_le_bytes().into()
}

/// The target of a near jump or call, given the address of the following instruction, `next`.
fn relative(next: u64, distance: [u8; 4]) -> u64 {
    next.wrapping_add_signed(i32::from_le_bytes(distance).into())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn calls_of_code_are_followed() {
        use core::arch::naked_asm;
        #[unsafe(naked)]
        unsafe extern "C" fn calls_directly() -> u64 {
            naked_asm!("call 2f", "ret", "2: mov rax, [rsp]", "ret")
        }
        // SAFETY: returns an address of its own.
        let returns_to = unsafe { calls_directly() };
        assert_eq!(before(returns_to), Some(returns_to + 1));
        assert_eq!(before(0), None);
        assert_eq!(before(1 << 46), None);
    }
}
