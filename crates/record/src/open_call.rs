//! The call that may block and that a thread is in, for the thread that ends the recording of the process.
//!
//! A recorder of sleep, input and output knows only after a call whether it waited. Calls that are open at the end of the process (an
//! accept loop, an idle pool) would be missing, so each thread notes the outermost one, and the finisher finds it:
//!
//! ```text
//!   thread:    begin ──────── the call ──────── end
//!                │ time, stack pointer, words     │ none
//!                ▼                                ▼
//!   finisher:  blocked right below that stack pointer? ─▶ an open call
//! ```
//! For a process that is killed, the housekeeping thread stores the open calls now and then ([`crate::os_time`]).
//!
//! The thread writes without a lock and without its recorder's entry lock: the finisher holds that. A call that is left by `longjmp` stays
//! noted until one that begins above it on the stack. Therefore an open call counts only if the kernel agrees.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*, compiler_fence};

use crate::clock;
use crate::nap::nap_for;
use crate::os_thread::os_tid;

/// Numbers of a call that only the recorder understands.
pub const WORDS: usize = 5;

/// A thread's place for it.
#[derive(Default)]
pub struct OpenCall {
    /// Nanoseconds of `CLOCK_MONOTONIC`; 0 without a call.
    begun: AtomicU64,
    sp: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// In the place of a time: a handler of a signal that comes now notes no call.
const INCOMPLETE: u64 = u64::MAX;

/// A call that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its begin, nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// The stack pointer of the function that makes it.
    pub sp: u64,
    /// The recorder's numbers.
    pub words: [u64; WORDS],
}

impl OpenCall {
    /// The calling thread, whose place this is, begins a call. Returns whether it is noted: not within another one.
    /// Async-signal-safe.
    #[inline(always)]
    pub fn begin(&self, call: &Open) -> bool {
        let before = self.begun.load(Relaxed);
        if before == INCOMPLETE || before != 0 && self.sp.load(Relaxed) > call.sp {
            return false;
        }
        self.begun.store(INCOMPLETE, Relaxed);
        compiler_fence(SeqCst);
        self.sp.store(call.sp, Relaxed);
        self.words.iter().zip(call.words).for_each(|(place, word)| place.store(word, Relaxed));
        self.begun.store(call.begun, Release);
        true
    }

    /// The noted call is over. Async-signal-safe.
    #[inline(always)]
    pub fn end(&self) {
        self.begun.store(0, Release);
    }

    /// When the noted call began, nanoseconds; `None` without one.
    pub(crate) fn begun(&self) -> Option<u64> {
        Some(self.begun.load(Acquire)).filter(|begun| !matches!(*begun, 0 | INCOMPLETE))
    }

    /// The call that another thread, whose place this is, is blocked in, as [`find`](Self::find); in a thread of the recorder's own,
    /// which never blocks here. Looks and samples may have one rhythm: it gets some milliseconds.
    pub(crate) fn find_now(&self, of: i32) -> Option<Open> {
        let until = clock::kernel_ns() + PATIENCE_NOW_NS;
        self.find_with(of, || {
            std::thread::yield_now();
            clock::kernel_ns() < until
        })
    }

    /// The call that another thread, whose place this is, is blocked in. A thread that the kernel shows as running may have been woken by a
    /// signal alone: it gets a limited time to block again.
    pub fn find(&self, of: i32) -> Option<Open> {
        self.find_with(of, || {
            nap_for(NAP_NS);
            may_wait()
        })
    }

    /// `wait` waits a little, and returns whether it may do so again.
    fn find_with(&self, of: i32, wait: impl Fn() -> bool) -> Option<Open> {
        let begun = self.begun().filter(|_| of != os_tid())?;
        let words = core::array::from_fn(|index| self.words.get(index).map_or(0, |word| word.load(Relaxed)));
        let open = Open { begun, sp: self.sp.load(Relaxed), words };
        let is_below = |blocked: u64| open.sp.checked_sub(blocked).is_some_and(|below| below <= MAX_BELOW);
        let is_in = loop {
            match standing(of)? {
                Standing::Blocked(sp) => break is_below(sp),
                Standing::Runs if self.begun() != Some(begun) || !wait() => break false,
                Standing::Runs => {}
            }
        };
        (is_in && self.begun() == Some(begun)).then_some(open)
    }
}

/// The kind of wait and the object of a call, in `taskscope_event::models::wait`.
pub type Describe = fn(&Open) -> (u32, u64);

/// A [`Describe`], or 0.
static DESCRIBE: AtomicUsize = AtomicUsize::new(0);

/// Has `describe` called for calls that threads are in while the process lives, on a thread of the recorder's own.
pub fn describe_by(describe: Describe) {
    DESCRIBE.store(describe as usize, Release);
}

pub(crate) fn describe(open: &Open) -> Option<(u32, u64)> {
    let describe = DESCRIBE.load(Acquire);
    // SAFETY: `describe_by` stores functions of this type alone.
    (describe != 0).then(|| unsafe { core::mem::transmute::<usize, Describe>(describe) }(open))
}

/// Stack that the C library takes for a call, at most, bytes.
const MAX_BELOW: u64 = 16 << 10;
/// The threads of a process that run have this long to block again, all together, nanoseconds. They may have no CPU meanwhile.
const PATIENCE_NS: u64 = 500_000_000;
const NAP_NS: libc::c_long = 250_000;
/// A thread that runs has this long to block again while the process lives.
const PATIENCE_NOW_NS: u64 = 3_000_000;

fn may_wait() -> bool {
    /// 0 before the first wait.
    static UNTIL: AtomicU64 = AtomicU64::new(0);
    let now = clock::kernel_ns();
    let until = UNTIL.compare_exchange(0, now + PATIENCE_NS, Relaxed, Relaxed);
    now < until.err().unwrap_or(u64::MAX)
}

#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Runs,
    /// Its stack pointer.
    Blocked(u64),
}

/// Whether a thread of this process is blocked; `None` if the system does not say so.
fn standing(os_tid: i32) -> Option<Standing> {
    parse(&std::fs::read_to_string(format!("/proc/self/task/{os_tid}/syscall")).ok()?)
}

/// The kernel's text: `running`, or numbers of which the last two are the stack pointer and the instruction.
fn parse(text: &str) -> Option<Standing> {
    if text.starts_with("running") {
        return Some(Standing::Runs);
    }
    let sp = text.split_ascii_whitespace().nth_back(1)?;
    Some(Standing::Blocked(u64::from_str_radix(sp.strip_prefix("0x")?, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    fn call(begun: u64, sp: u64) -> Open {
        Open { begun, sp, words: [begun; WORDS] }
    }

    #[test]
    fn the_outermost_call_is_kept_until_it_ends_or_is_left() {
        let place = OpenCall::default();
        assert!(place.begin(&call(1, 5000)));
        // In a handler of a signal, on the same stack.
        assert!(!place.begin(&call(2, 4000)));
        // After a `longjmp` to a function above.
        assert!(place.begin(&call(3, 6000)));
        place.end();
        assert!(place.begin(&call(4, 4000)));
        place.begun.store(INCOMPLETE, Relaxed);
        assert!(!place.begin(&call(5, 9000)));
    }

    #[test]
    fn a_call_is_open_if_its_thread_is_blocked_below_its_stack_pointer() {
        if standing(os_tid()).is_none() {
            println!("skipped: this kernel does not show the calls of threads");
            return;
        }
        let place = Arc::new([OpenCall::default(), OpenCall::default()]);
        let (report, reported) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let own_place = place.clone();
        let blocked = std::thread::spawn(move || {
            let here = 0_u8;
            let sp = &raw const here as u64;
            own_place[0].begin(&call(7, sp));
            // Left by a jump: this thread is nowhere near.
            own_place[1].begin(&call(7, sp + (1 << 20)));
            report.send((os_tid(), sp)).unwrap();
            let _ = ends.recv();
            report.send((0, u64::from(here))).unwrap();
        });
        let (tid, sp) = reported.recv().unwrap();
        while standing(tid) == Some(Standing::Runs) {
            std::thread::yield_now();
        }
        assert_eq!(place[0].find(tid), Some(call(7, sp)));
        assert_eq!(place[1].find(tid), None);
        place[0].end();
        assert_eq!(place[0].find(tid), None);
        drop(end);
        blocked.join().unwrap();
    }

    #[test]
    fn texts_of_the_kernel_are_understood() {
        assert_eq!(parse("running\n"), Some(Standing::Runs));
        assert_eq!(
            parse("0 0x3 0x7f 0x20000 0x0 0x1 0x0 0x7fffebde2328 0x7f5681b622ad\n"),
            Some(Standing::Blocked(0x7fff_ebde_2328))
        );
        assert_eq!(parse("-1 0x7ffc 0x401000\n"), Some(Standing::Blocked(0x7ffc)));
        for wrong in ["", "\n", "-1", "-1 12 13", "1 0xg 0x1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
