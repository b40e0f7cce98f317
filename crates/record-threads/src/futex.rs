//! Futex calls of the program: those of Rust's `std::sync`, parking_lot, crossbeam, and of libstdc++'s atomic waits. The C
//! library's own do not come here.
//!
//! A futex has no holder. The waking thread is known from its call, and the number of woken threads from the result of the call.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, Ordering::*};

use taskscope_event::models::wait::{kind, outcome};
use taskscope_ompt::shared::Syscall;

use crate::events::{self, Woken};
use crate::objects::this_thread;

const COUNTERS_LOG2: u32 = 10;
/// Threads that wait for a futex, by the hash of its address. Several futexes may share a counter: it only says whether a call
/// may wake others.
static WAITING: [AtomicU32; 1 << COUNTERS_LOG2] = [const { AtomicU32::new(0) }; 1 << COUNTERS_LOG2];

fn waiting(address: usize) -> Option<&'static AtomicU32> {
    let hash = (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - COUNTERS_LOG2);
    WAITING.get(hash)
}

/// An operation on a futex, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Wait,
    /// Wakes so many threads at most.
    Wake(c_int),
    /// Wakes so many, and makes others wait for another futex.
    Requeue(c_int),
    Other,
}

/// The operation of a call's arguments.
fn operation(arguments: &[usize; 6]) -> Operation {
    let [_, operation, value, ..] = *arguments;
    match operation as c_int & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => Operation::Wait,
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => Operation::Wake(value as c_int),
        libc::FUTEX_UNLOCK_PI => Operation::Wake(1),
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP => {
            Operation::Requeue(value as c_int)
        }
        _ => Operation::Other,
    }
}

/// Newer than the constants of `libc`.
const FUTEX_LOCK_PI2: c_int = 13;

/// Makes a futex call of the program that returns to `caller`.
///
/// # Safety
///
/// `next` is the C library's `syscall`; the arguments are the program's.
pub unsafe fn call(caller: usize, arguments: [usize; 6], next: Syscall) -> c_long {
    let [address, b, c, d, e, f] = arguments;
    // SAFETY: the program's own call, passed on.
    let whole = || unsafe { next(libc::SYS_futex, address, b, c, d, e, f) };
    if this_thread().is_none() {
        return whole();
    }
    let Some(counter) = waiting(address) else { return whole() };
    match operation(&arguments) {
        Operation::Wait => {
            counter.fetch_add(1, SeqCst);
            events::begin(kind::FUTEX, address, caller, None);
            let result = whole();
            counter.fetch_sub(1, Relaxed);
            events::end(kind::FUTEX, outcome_of(result));
            result
        }
        Operation::Wake(most) | Operation::Requeue(most) if counter.load(Relaxed) > 0 => {
            let place = events::prepare_to_wake(caller);
            let result = whole();
            if result > 0 {
                let woken = match most {
                    c_int::MAX => Woken::All,
                    most => Woken::Some(result.min(c_long::from(most)).max(0) as u32),
                };
                events::has_woken(kind::FUTEX, address, place, woken);
            }
            result
        }
        _ => whole(),
    }
}

fn outcome_of(result: c_long) -> u32 {
    // SAFETY: `errno` is the thread's own.
    match (result, unsafe { *libc::__errno_location() }) {
        (0.., _) => outcome::DONE,
        (_, libc::ETIMEDOUT) => outcome::TIMED_OUT,
        _ => outcome::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_with_their_flags() {
        let of = |operation: c_int, value| self::operation(&[0x1000, operation as usize, value, 0, 0, 0]);
        assert_eq!(of(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 5), Operation::Wait);
        assert_eq!(of(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME, 0), Operation::Wait);
        assert_eq!(of(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 2), Operation::Wake(2));
        assert_eq!(of(libc::FUTEX_CMP_REQUEUE, 1), Operation::Requeue(1));
        assert_eq!(of(libc::FUTEX_TRYLOCK_PI, 1), Operation::Other);
    }
}
