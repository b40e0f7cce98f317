//! Futex calls of the program: those of Rust's `std::sync`, parking_lot, crossbeam, and of libstdc++'s atomic waits. The C
//! library's own do not come here.
//!
//! A futex has no holder. The waking thread is known from its call, and the number of woken threads from the result of the call.
//!
//! **Requeued threads** wait for another futex from then on, and the event of their begin names the first one:
//!
//! ```text
//!   wait A ──▶ requeue 1 from A to B ──▶ wake B: recorded as a wake of A, until so many were woken
//! ```
//! The kernel wakes the threads of a futex in their order, so those that wait for B itself since before come first.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use taskscope_event::models::wait::{kind, outcome};
use taskscope_ompt::shared::Syscall;

use crate::events::{self, WakePlace, Woken};
use crate::objects::this_thread;

const COUNTERS_LOG2: u32 = 10;
/// Threads that wait for a futex, by the hash of its address. Several futexes may share a counter: it only says whether a call
/// may wake others.
static WAITING: [AtomicU32; 1 << COUNTERS_LOG2] = [const { AtomicU32::new(0) }; 1 << COUNTERS_LOG2];

fn hash(address: usize) -> usize {
    (address >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - COUNTERS_LOG2)
}

fn waiting(address: usize) -> Option<&'static AtomicU32> {
    WAITING.get(hash(address))
}

/// The threads that were requeued to a futex, by the hash of its address. All zeros is none.
struct Requeued {
    /// The futex that they wait for now, and the one that their waits began with: those of the last call.
    to: AtomicUsize,
    from: AtomicUsize,
    /// Not woken yet.
    threads: AtomicU32,
}

static REQUEUED: [Requeued; 1 << COUNTERS_LOG2] =
    [const { Requeued { to: AtomicUsize::new(0), from: AtomicUsize::new(0), threads: AtomicU32::new(0) } };
        1 << COUNTERS_LOG2];

/// So many threads of `from` wait for `to` from now on.
fn requeue(from: usize, to: usize, threads: u32) {
    let Some(entry) = REQUEUED.get(hash(to)).filter(|_| threads > 0) else { return };
    let before = (entry.to.swap(to, Relaxed), entry.from.swap(from, Relaxed));
    match before == (to, from) {
        true => _ = entry.threads.fetch_add(threads, Release),
        false => entry.threads.store(threads, Release),
    }
}

/// The entry of a futex that threads were requeued to.
fn requeued(to: usize) -> Option<&'static Requeued> {
    let entry = REQUEUED.get(hash(to))?;
    (entry.threads.load(Acquire) > 0 && entry.to.load(Relaxed) == to).then_some(entry)
}

impl Requeued {
    /// Takes so many threads at most out. Returns the futex that their waits began with, and their number.
    fn take(&self, most: u32) -> (usize, u32) {
        let from = self.from.load(Relaxed);
        let less = |threads: u32| Some(threads.saturating_sub(most));
        let before = self.threads.fetch_update(Relaxed, Relaxed, less).unwrap_or(0);
        (from, before.min(most))
    }
}

/// An operation on a futex, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Wait,
    /// Wakes so many threads at most.
    Wake(c_int),
    /// Wakes the thread that has the lock next. The call's result does not count it.
    Unlock,
    /// Wakes so many, and makes others wait for the futex at this address.
    Requeue(c_int, usize),
    /// Wakes so many, and, by the value, so many of the futex at this address.
    WakeTwo(c_int, usize),
    Other,
}

/// The operation of a call's arguments.
fn operation(arguments: &[usize; 6]) -> Operation {
    let [_, operation, value, _, second, _] = *arguments;
    match operation as c_int & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI | FUTEX_LOCK_PI2 => Operation::Wait,
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => Operation::Wake(value as c_int),
        libc::FUTEX_UNLOCK_PI => Operation::Unlock,
        libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE => Operation::Requeue(value as c_int, second),
        libc::FUTEX_WAKE_OP => Operation::WakeTwo(value as c_int, second),
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
        Operation::Wake(_) | Operation::Unlock | Operation::Requeue(..) | Operation::WakeTwo(..)
            if counter.load(Relaxed) == 0 && requeued(address).is_none() && !wakes_second(&arguments) =>
        {
            whole()
        }
        Operation::Wake(most) => {
            let (place, waiters) = (events::prepare_to_wake(caller), counter.load(Relaxed));
            let result = whole();
            wakes(address, waiters, place, (most, result));
            events::wake_is_over(place);
            result
        }
        Operation::Unlock => {
            let (place, waiters) = (events::prepare_to_wake(caller), counter.load(Relaxed));
            let result = whole();
            wakes(address, waiters, place, (1, c_long::from(result == 0).min(c_long::from(waiters))));
            events::wake_is_over(place);
            result
        }
        Operation::Requeue(most, to) => {
            let (place, waiters) = (events::prepare_to_wake(caller), counter.load(Relaxed));
            let result = whole();
            wakes(address, waiters, place, (most, result.min(c_long::from(most))));
            events::wake_is_over(place);
            // The result counts the woken and the requeued threads.
            let moved = result.saturating_sub(c_long::from(most)).clamp(0, c_long::from(u32::MAX)) as u32;
            requeue(requeued(address).map_or(address, |entry| entry.take(moved).0), to, moved);
            result
        }
        Operation::WakeTwo(most, second) => {
            let place = events::prepare_to_wake(caller);
            let count = |counter: &AtomicU32| counter.load(Relaxed);
            let (waiters, second_waiters) = (count(counter), waiting(second).map_or(0, count));
            let others = requeued(address).map_or(0, |entry| entry.threads.load(Relaxed));
            let result = whole();
            // Whether the second was woken is not told apart from the first.
            let first_woken =
                result.min(c_long::from(most)).min(c_long::from(waiters) + c_long::from(others));
            wakes(address, waiters, place, (most, first_woken));
            wakes(second, second_waiters, place, (c_int::MAX - 1, result - first_woken.max(0)));
            events::wake_is_over(place);
            result
        }
        Operation::Other => whole(),
    }
}

/// Whether a call may wake threads of its second futex.
fn wakes_second(arguments: &[usize; 6]) -> bool {
    match operation(arguments) {
        Operation::WakeTwo(_, second) => {
            waiting(second).is_some_and(|counter| counter.load(Relaxed) > 0) || requeued(second).is_some()
        }
        _ => false,
    }
}

/// Records that so many threads of a futex were woken, of so many at most. `waiters` waited for it before the call: a woken thread
/// may have left by now.
fn wakes(address: usize, waiters: u32, place: WakePlace, (most, woken): (c_int, c_long)) {
    let woken = woken.clamp(0, c_long::from(u32::MAX)) as u32;
    if woken == 0 {
        return;
    }
    let Some(entry) = requeued(address) else {
        let woken = if most == c_int::MAX { Woken::All } else { Woken::Some(woken) };
        return events::has_woken(kind::FUTEX, address, place, woken);
    };
    let own = woken.min(waiters);
    let (from, others) = entry.take(woken - own);
    for (address, threads) in [(address, own), (from, others)] {
        if threads > 0 {
            events::has_woken(kind::FUTEX, address, place, Woken::Some(threads));
        }
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
        let of =
            |operation: c_int, value| self::operation(&[0x1000, operation as usize, value, 0, 0x2000, 0]);
        assert_eq!(of(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 5), Operation::Wait);
        assert_eq!(of(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME, 0), Operation::Wait);
        assert_eq!(of(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 2), Operation::Wake(2));
        assert_eq!(of(libc::FUTEX_CMP_REQUEUE, 1), Operation::Requeue(1, 0x2000));
        assert_eq!(of(libc::FUTEX_WAKE_OP, 1), Operation::WakeTwo(1, 0x2000));
        assert_eq!(of(libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG, 0), Operation::Unlock);
        assert_eq!(of(libc::FUTEX_TRYLOCK_PI, 1), Operation::Other);
    }

    #[test]
    fn requeued_threads_are_woken_once_each() {
        assert!(requeued(0x3000).is_none());
        requeue(0x1000, 0x3000, 0);
        assert!(requeued(0x3000).is_none());
        requeue(0x1000, 0x3000, 2);
        requeue(0x1000, 0x3000, 1);
        assert_eq!(requeued(0x3000).map(|entry| entry.take(2)), Some((0x1000, 2)));
        assert_eq!(requeued(0x3000).map(|entry| entry.take(2)), Some((0x1000, 1)));
        assert!(requeued(0x3000).is_none());
    }
}
