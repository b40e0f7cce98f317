//! While the program forks, threads of the recorder's own sleep, and no other thread is in code of the recorder that allocates.
//!
//! A forked child has the locks as they were, and only the thread that forked. Allocators that do not take their lock around a fork
//! (AddressSanitizer's of gcc 12, some replacements of `malloc`) leave it locked for ever in the child if another thread allocates
//! meanwhile. The program knows whether its own threads do; the recorder's must not be one more.
//!
//! An own thread counts as awake from before it is made until it is gone, but for its sleeps ([`asleep`], [`crate::wake::Wake`]):
//! sanitizers allocate before its first and after its last line. A fork closes the gate and waits until no own thread is awake.
//! An awake thread that could run, but has no CPU, may hold a lock for long on a busy machine: the fork waits for it, two seconds
//! at most. One that is blocked, such as in a call of a driver, may need what the forking thread holds: the fork waits some
//! milliseconds. Threads that wake at a closed gate wait in front of it.
//!
//! A thread of the program counts while the recorder begins or ends it ([`Allocating`]).
//!
//! A child has none of its parent's threads, however it was made: the state is in memory that it finds wiped.

use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::*};

use crate::clock;
use crate::fork_word::wiped_on_fork;
use crate::nap::nap_for;
use crate::os_thread::os_tid;
use crate::thread_sums::state_of;

/// Threads that are waited for; further ones are not.
const MAX_THREADS: usize = 64;

/// The gate of this process. All zeros: open, no threads.
struct Gate {
    /// Forks in progress.
    forks: AtomicU32,
    /// Own threads that are being made.
    starting: AtomicU32,
    /// Identifiers of threads that are awake, negative at their end; 0 in unused places.
    awake: [AtomicI32; MAX_THREADS],
}

/// Naps of a fork between looks at what awake threads do.
const NAPS_PER_LOOK: u32 = 20;
/// Looks in a row that find no awake thread able to run, until the fork goes on.
const MAX_BLOCKED_LOOKS: u32 = 5;
/// Longest wait of a fork.
const MAX_WAIT_NS: u64 = 2_000_000_000;
/// Longest wait of a thread at a closed gate.
const MAX_GATE_NS: u64 = 2 * MAX_WAIT_NS;
const NAP_NS: libc::c_long = 50_000;

/// `None` without memory: then no fork waits. Async-signal-safe.
fn gate() -> Option<&'static Gate> {
    static PLACE: AtomicPtr<Gate> = AtomicPtr::new(ptr::null_mut());
    let mut place = PLACE.load(Acquire);
    if place.is_null() {
        let new = wiped_on_fork(size_of::<Gate>())?.cast::<Gate>();
        // The second of two threads leaves a page unused.
        place = PLACE.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire).err().unwrap_or(new);
    }
    // SAFETY: zeroed memory of sufficient size, which is never unmapped.
    Some(unsafe { &*place })
}

impl Gate {
    fn exchange(&self, from: i32, to: i32) {
        for place in &self.awake {
            if place.compare_exchange(from, to, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    fn has(&self, thread: i32) -> bool {
        self.awake.iter().any(|place| place.load(SeqCst) == thread)
    }

    /// Puts a thread on the list, unless forks are in progress: then it calls `wait` first.
    fn enter(&self, thread: i32, wait: impl Fn()) {
        self.exchange(0, thread);
        let began = clock::kernel_ns();
        while self.forks.load(SeqCst) > 0 && clock::kernel_ns() - began < MAX_GATE_NS {
            self.exchange(thread, 0);
            wait();
            self.exchange(0, thread);
        }
    }

    /// Whether all threads but this one are asleep or gone.
    fn is_quiet(&self, own: i32) -> bool {
        let sleeps = |place: &AtomicI32| [0, own].contains(&place.load(SeqCst));
        self.starting.load(SeqCst) == 0 && self.awake.iter().all(sleeps)
    }

    /// Whether an awake thread but this one could run. Those that are gone are taken off the list.
    fn can_run(&self, own: i32) -> bool {
        let mut can = self.starting.load(SeqCst) > 0;
        for place in &self.awake {
            let thread = place.load(SeqCst);
            if thread == 0 || thread == own {
                continue;
            }
            match state_of(thread.abs()) {
                Some(b'R' | b'D') => can = true,
                Some(b'Z' | b'X') => _ = place.compare_exchange(thread, 0, SeqCst, SeqCst),
                None if is_gone(thread.abs()) => _ = place.compare_exchange(thread, 0, SeqCst, SeqCst),
                _ => {}
            }
        }
        can
    }

    /// Waits until own threads sleep, or may not soon. The calling thread may be on the list: a handler of its signals forks.
    fn wait_for_quiet(&self) {
        let own = os_tid();
        let began = clock::kernel_ns();
        let (mut naps, mut blocked) = (0, 0);
        while !self.is_quiet(own) {
            if naps % NAPS_PER_LOOK == 0 {
                blocked = if self.can_run(own) { 0 } else { blocked + 1 };
                if blocked == MAX_BLOCKED_LOOKS || clock::kernel_ns() - began > MAX_WAIT_NS {
                    break;
                }
            }
            naps += 1;
            nap_for(NAP_NS);
        }
        // Identifiers are used again: a thread that has ended is waited for once.
        for place in &self.awake {
            let thread = place.load(SeqCst);
            if thread < 0 {
                let _ = place.compare_exchange(thread, 0, SeqCst, SeqCst);
            }
        }
    }
}

fn is_gone(thread: i32) -> bool {
    // SAFETY: no signal is sent.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id().cast_signed(), thread, 0) != 0 }
}

/// An own thread is about to be made; followed by [`began`] in it, or by [`failed`].
pub(crate) fn starts() {
    if let Some(gate) = gate() {
        gate.starting.fetch_add(1, SeqCst);
    }
}

/// The thread of [`starts`] was not made.
pub(crate) fn failed() {
    if let Some(gate) = gate() {
        gate.starting.fetch_sub(1, SeqCst);
    }
}

/// First call in an own thread. A fork that began before waits for it.
pub(crate) fn began() {
    if let Some(gate) = gate() {
        gate.exchange(0, os_tid());
        gate.starting.fetch_sub(1, SeqCst);
    }
}

/// Last call in an own thread. It counts as awake until it is gone, as the C library frees its memory.
pub(crate) fn ends() {
    if let Some(gate) = gate() {
        let own = os_tid();
        gate.exchange(own, -own);
    }
}

/// Sleeps, by `sleep`, in a thread of the recorder's own; it may return after a fork has ended. A thread that waits for the end of a
/// fork never blocks: what blocks it beside its sleep would look like a stop of the process (`os_time::stops`).
pub fn asleep(sleep: impl FnOnce()) {
    let Some(gate) = gate() else { return sleep() };
    let own = os_tid();
    gate.exchange(own, 0);
    sleep();
    gate.enter(own, std::thread::yield_now);
}

/// While it lives, the calling thread of the program is in code of the recorder that allocates.
pub struct Allocating(Option<(&'static Gate, i32)>);

impl Allocating {
    /// Waits for a fork in progress. Not for signal handlers.
    pub fn begin() -> Allocating {
        let own = os_tid();
        // Not within another one, nor in a thread of the recorder's own.
        let gate = gate().filter(|gate| !gate.has(own));
        if let Some(gate) = gate {
            gate.enter(own, || nap_for(NAP_NS));
        }
        Allocating(gate.map(|gate| (gate, own)))
    }
}

impl Drop for Allocating {
    fn drop(&mut self) {
        if let Some((gate, own)) = self.0 {
            gate.exchange(own, 0);
        }
    }
}

/// Calls `fork`, which returns 0 in the child, while own threads sleep. Async-signal-safe, but for what `fork` does.
pub fn closed(fork: impl FnOnce() -> libc::pid_t) -> libc::pid_t {
    let Some(gate) = gate() else { return fork() };
    gate.forks.fetch_add(1, SeqCst);
    gate.wait_for_quiet();
    let made = fork();
    if made != 0 {
        gate.forks.fetch_sub(1, SeqCst);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Wake;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;

    /// Tests that fork or end threads would wait for each other's.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn an_own_thread_that_wakes_during_a_fork_resumes_after_it() {
        let _alone = ALONE.lock().unwrap();
        let (wake, (report, reported)) = (Arc::new(Wake::default()), mpsc::channel());
        let own = Arc::clone(&wake);
        let started = crate::own_threads::start(c"taskscope-test", 0, move || {
            report.send(()).unwrap();
            own.sleep(Duration::from_secs(600));
            report.send(()).unwrap();
        });
        reported.recv().unwrap();
        // No process is made: the parent's side of a fork.
        let made = closed(|| {
            wake.wake();
            assert!(reported.recv_timeout(Duration::from_millis(20)).is_err(), "it went on during the fork");
            1
        });
        assert_eq!(made, 1);
        reported.recv().unwrap();
        started.unwrap().join();
    }

    #[test]
    fn a_fork_waits_for_a_thread_that_could_run_and_not_for_a_blocked_one() {
        let _alone = ALONE.lock().unwrap();
        let (report, reported) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        static HAS_RUN: AtomicBool = AtomicBool::new(false);
        let started = crate::own_threads::start(c"taskscope-test", 0, move || {
            report.send(()).unwrap();
            // Far longer than a blocked thread is waited for, on a CPU.
            let began = clock::kernel_ns();
            while clock::kernel_ns() - began < 100_000_000 {
                std::hint::spin_loop();
            }
            HAS_RUN.store(true, SeqCst);
            let _ = ends.recv();
        });
        reported.recv().unwrap();
        // The channel blocks the thread and is none of its sleeps: both calls return.
        assert_eq!(
            closed(|| 1 + libc::pid_t::from(HAS_RUN.load(SeqCst))),
            2,
            "it went on while the thread ran"
        );
        assert_eq!(closed(|| 1), 1);
        drop(end);
        started.unwrap().join();
    }

    #[test]
    fn a_fork_and_a_thread_of_the_program_in_the_recorder_wait_for_each_other() {
        let _alone = ALONE.lock().unwrap();
        let (report, reported) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = Allocating::begin();
            // In a handler of a signal on this thread.
            assert_eq!(closed(|| 1), 1);
            scope.spawn(|| {
                let began = clock::kernel_ns();
                closed(|| {
                    report.send(clock::kernel_ns() - began).unwrap();
                    1
                })
            });
            // This thread could run all the time.
            let began = clock::kernel_ns();
            while clock::kernel_ns() - began < 100_000_000 {
                assert!(reported.try_recv().is_err(), "it forked meanwhile");
            }
            drop(first);
            reported.recv().unwrap();
        });
        // Within a fork, it waits.
        let (report, reported) = mpsc::channel();
        std::thread::scope(|scope| {
            closed(|| {
                scope.spawn(|| {
                    let _allocating = Allocating::begin();
                    report.send(()).unwrap();
                });
                assert!(
                    reported.recv_timeout(Duration::from_millis(20)).is_err(),
                    "it went on during the fork"
                );
                1
            });
            reported.recv().unwrap();
        });
    }

    #[test]
    fn a_thread_counts_until_it_is_gone() {
        let _alone = ALONE.lock().unwrap();
        let own = AtomicI32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                starts();
                began();
                own.store(os_tid(), SeqCst);
                ends();
            });
        });
        let own = own.load(SeqCst);
        let is_listed = || gate().unwrap().awake.iter().any(|place| place.load(SeqCst) == -own);
        assert!(is_listed());
        assert_eq!(closed(|| 1), 1);
        assert!(!is_listed());
    }

    #[test]
    fn the_state_of_a_thread_is_read() {
        assert_eq!(state_of(os_tid()), Some(b'R'));
        assert_eq!(state_of(i32::MAX), None);
        assert!(is_gone(i32::MAX) && !is_gone(os_tid()));
    }

    /// As by `_Fork` and `clone`, which are not intercepted.
    #[test]
    fn a_child_that_was_made_past_the_gate_has_no_own_threads_awake() {
        let _alone = ALONE.lock().unwrap();
        let (end, ends) = mpsc::channel::<()>();
        let (report, reported) = mpsc::channel();
        let started = crate::own_threads::start(c"taskscope-test", 0, move || {
            report.send(()).unwrap();
            let _ = ends.recv();
        });
        reported.recv().unwrap();
        assert!(!gate().unwrap().is_quiet(0));
        // SAFETY: the child reads numbers and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_quiet = gate().is_some_and(|gate| gate.is_quiet(0));
            // SAFETY: as above.
            unsafe { libc::_exit(libc::c_int::from(!is_quiet)) };
        }
        let mut status = 0;
        // SAFETY: `status` is valid for writing.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0));
        drop(end);
        started.unwrap().join();
    }
}
