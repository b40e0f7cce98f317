//! Whether a thread has waited in a call.
//!
//! A call that took long has waited only if the thread gave up its CPU in it: more often than at the last look, which is at the end of
//! each recorded wait. Else it was preempted, or copied much.

use core::cell::Cell;
use core::mem::MaybeUninit;

std::thread_local! {
    /// Number of voluntary switches of the thread at the last look.
    static SWITCHES: Cell<i64> = const { Cell::new(0) };
}

/// The switches of the calling thread so far that were its own doing.
fn switches() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing, and all zeros is a valid value.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}

/// Counts from now on: a thread starts, begins a call that is likely to wait, or has waited for another thread.
pub fn begin() {
    SWITCHES.set(switches());
}

/// Whether the thread has waited in the call from which it has just returned.
pub fn has_waited() -> bool {
    let switches = switches();
    switches > SWITCHES.replace(switches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_whatever_the_number_of_waits_before() {
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(1));
        std::thread::spawn(move || {
            begin();
            assert!(!has_waited());
            for _ in 0..3 {
                // A wait for another thread has one switch.
                sleep();
                begin();
            }
            sleep();
            assert!(has_waited() && !has_waited());
        })
        .join()
        .unwrap();
    }
}
