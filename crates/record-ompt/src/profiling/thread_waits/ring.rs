//! Events of a thread's waits, on their way to the thread that sums them up: one writer, one reader, no lock.
//!
//! A ring has a fixed size. When it is full, a wait is not stored; its time is counted as lost, so that the sums stay exact.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::OnceLock;

use taskscope_event::models::wait::kind;
use taskscope_record::thread::os_tid;
use taskscope_record::thread_sums::ThreadSums;

/// Events that a ring holds.
pub const ROOM: usize = 1024;
/// Free places that the begin of a wait needs: its end, and the wakes until then, have room.
const RESERVE: usize = 16;

/// A call: the return address of its site, its path, and the context that the path is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct RecordedCall {
    /// The return address; 0 if unknown.
    pub site: u64,
    /// Number of the path; 0 if unknown.
    pub path: u32,
    /// Number of the context.
    pub context: u32,
}

/// An event, with the fields that it has in `taskscope_event::models::wait`. Times are nanoseconds.
#[allow(missing_docs, reason = "the fields are documented there")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEvent {
    /// Begins to wait. The holder that the thread found: its thread pointer, and the place where it took the lock.
    Begins { kind: u32, object: u64, call: RecordedCall, found: (u64, u64) },
    /// Ends its wait.
    Ends { outcome: u32 },
    /// Releases a lock that others wait for.
    HandsOver { kind: u32, object: u64, call: RecordedCall },
    /// Wakes so many threads that wait; `u32::MAX` are all.
    Wakes { kind: u32, object: u64, call: RecordedCall, threads: u32 },
    /// Has waited, from `begun` until `ended`.
    Waited { kind: u32, outcome: u32, is_of_others: bool, object: u64, call: RecordedCall, time: (u64, u64) },
    /// Has this handle and thread pointer, and runs the routine at a place.
    Starts { handle: u64, pointer: u64, routine: RecordedCall },
}

type Slot = UnsafeCell<(u64, WaitEvent)>;

/// The ring of one thread.
#[derive(Default)]
pub struct Ring {
    slots: OnceLock<Box<[Slot]>>,
    /// Events written and read so far.
    written: AtomicUsize,
    read: AtomicUsize,
    /// Begin of a wait that was not stored; 0 without one.
    skipped: AtomicU64,
    /// Whether the begin that was stored last has no end yet.
    is_open: AtomicBool,
    /// Whether its thread sleeps in that wait, unless a signal wakes it.
    is_asleep: AtomicBool,
    lost: AtomicU64,
    lost_ns: AtomicU64,
    /// Time of a wake that its thread stores after the call that wakes; 0 without one.
    announced: AtomicU64,
    /// When its thread ended; 0 before.
    ended: AtomicU64,
    /// Its thread in the system, and the kernel's sums at its begin and end: time on a CPU, and the delay.
    os_tid: AtomicI32,
    sums: [[AtomicU64; 2]; 2],
}

// SAFETY: a slot is written by the ring's thread before `written` grows over it, and read by the one reader before `read` does.
unsafe impl Sync for Ring {}

impl Ring {
    /// Provides the memory, on the ring's thread: until then, it records no waits.
    pub fn prepare(&self) {
        self.read(0);
        self.os_tid.store(os_tid(), Release);
        self.slots
            .get_or_init(|| (0..ROOM).map(|_| Slot::new((0, WaitEvent::Ends { outcome: 0 }))).collect());
    }

    /// Stores an event of time `at`, on the ring's thread. Returns whether the ring should be read soon.
    pub fn push(&self, at: u64, event: WaitEvent) -> bool {
        let Some(slots) = self.slots.get() else { return false };
        let written = self.written.load(Relaxed);
        let used = written - self.read.load(Acquire);
        let skipped = self.skipped.load(Relaxed);
        // The end of a wait that began in a pause, or around another one.
        if matches!(event, WaitEvent::Ends { .. }) && skipped == 0 && !self.is_open.load(Relaxed) {
            return false;
        }
        let fits = match event {
            WaitEvent::Begins { .. } => used + RESERVE <= ROOM,
            WaitEvent::Ends { .. } => skipped == 0 && used < ROOM,
            _ => used + 1 < ROOM,
        };
        if !fits {
            let lost_ns = match event {
                WaitEvent::Begins { .. } => {
                    self.skipped.store(at, Relaxed);
                    0
                }
                WaitEvent::Ends { .. } => {
                    self.skipped.store(0, Relaxed);
                    self.lost.fetch_add(1, Relaxed);
                    at.saturating_sub(skipped)
                }
                WaitEvent::Waited { time, .. } => {
                    self.lost.fetch_add(1, Relaxed);
                    time.1.saturating_sub(time.0)
                }
                _ => 0,
            };
            self.lost_ns.fetch_add(lost_ns, Relaxed);
            return true;
        }
        if let Some(slot) = slots.get(written % ROOM) {
            // SAFETY: free, and only this thread writes.
            unsafe { *slot.get() = (at, event) };
            self.written.store(written + 1, Release);
        }
        match event {
            WaitEvent::Begins { kind, .. } => {
                self.is_open.store(true, Relaxed);
                self.is_asleep.store(kind != kind::SPIN_LOCK, Relaxed);
            }
            WaitEvent::Ends { .. } => {
                self.is_open.store(false, Relaxed);
                self.is_asleep.store(false, Relaxed);
            }
            _ => {}
        }
        used + 1 == ROOM / 2
    }

    /// Whether its thread is in a wait that is not over, and sleeps in it. On the ring's thread, in handlers too.
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(Relaxed)
    }

    /// Its thread is about to wake others, and stores an event of time `at` when it has. On the ring's thread.
    pub fn announce_wake(&self, at: u64) {
        self.announced.store(at, Release);
    }

    /// The event of the wake is stored, or no thread was woken. On the ring's thread.
    pub fn wake_is_over(&self) {
        self.announced.store(0, Release);
    }

    /// Time of the event that its thread is about to store after a wake, if any.
    pub fn announced(&self) -> Option<u64> {
        Some(self.announced.load(Acquire)).filter(|at| *at != 0)
    }

    /// Takes the events until a time, in their order. For one reader at a time.
    pub fn take(&self, until: u64, mut take: impl FnMut(u64, WaitEvent)) {
        let Some(slots) = self.slots.get() else { return };
        let (written, mut read) = (self.written.load(Acquire), self.read.load(Relaxed));
        while read != written {
            let Some(slot) = slots.get(read % ROOM) else { return };
            // SAFETY: written before `written` grew, and not overwritten before `read` grows.
            let (at, event) = unsafe { *slot.get() };
            if at > until {
                break;
            }
            take(at, event);
            read += 1;
        }
        self.read.store(read, Release);
    }

    /// Whether all events are taken.
    fn is_empty(&self) -> bool {
        self.written.load(Acquire) == self.read.load(Relaxed)
    }

    /// Number and nanoseconds of waits that were not stored since the last call.
    pub fn take_lost(&self) -> (u64, u64) {
        (self.lost.swap(0, Relaxed), self.lost_ns.swap(0, Relaxed))
    }

    fn read(&self, at: usize) {
        if let Some(([on_cpu, delay], now)) = self.sums.get(at).zip(ThreadSums::read(os_tid())) {
            on_cpu.store(now.on_cpu, Relaxed);
            delay.store(now.delay, Relaxed);
        }
    }

    /// The kernel's sums of its thread at its begin, or at its end; `None` if they are not known.
    pub fn sums(&self, is_end: bool) -> Option<ThreadSums> {
        let [on_cpu, delay] = self.sums.get(usize::from(is_end))?;
        let (on_cpu, delay) = (on_cpu.load(Relaxed), delay.load(Relaxed));
        (on_cpu > 0).then_some(ThreadSums { on_cpu, delay })
    }

    /// The kernel's sums of its thread now; `None` if they are not known.
    pub fn sums_now(&self) -> Option<ThreadSums> {
        let os_tid = self.os_tid.load(Acquire);
        ThreadSums::read(os_tid).filter(|_| os_tid != 0)
    }

    /// The thread writes no more from this time on. On the ring's thread.
    pub fn end(&self, at: u64) {
        if self.os_tid.load(Relaxed) != 0 {
            self.read(1);
        }
        self.wake_is_over();
        self.ended.store(at, Release);
    }

    /// When its thread ended, if all its events are taken.
    pub fn ended(&self) -> Option<u64> {
        let at = self.ended.load(Acquire);
        (at != 0 && self.is_empty()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINS: WaitEvent = WaitEvent::Begins {
        kind: 12,
        object: 1,
        call: RecordedCall { site: 1, path: 1, context: 0 },
        found: (0, 0),
    };
    const ENDS: WaitEvent = WaitEvent::Ends { outcome: 0 };

    #[test]
    fn events_are_taken_once_and_in_order() {
        let ring = Ring::default();
        ring.push(1, BEGINS);
        assert!(ring.is_empty(), "no memory yet");
        ring.prepare();
        let mut times = Vec::new();
        for at in 1..3000 {
            ring.push(2 * at, BEGINS);
            ring.push(2 * at + 1, ENDS);
            if at % 400 == 0 {
                ring.take(u64::MAX, |at, _| times.push(at));
            }
        }
        ring.take(5998, |at, _| times.push(at));
        assert!(!ring.is_empty());
        ring.take(u64::MAX, |at, _| times.push(at));
        assert_eq!(times, (2..6000).collect::<Vec<u64>>());
        assert_eq!(ring.take_lost(), (0, 0));
    }

    #[test]
    fn ends_without_a_begin_are_not_stored() {
        let ring = Ring::default();
        ring.prepare();
        (1..3000).for_each(|at| _ = ring.push(at, ENDS));
        assert!(ring.is_empty());
        assert_eq!(ring.take_lost(), (0, 0));
        ring.push(3000, BEGINS);
        ring.push(3001, ENDS);
        ring.push(3002, ENDS);
        let mut times = Vec::new();
        ring.take(u64::MAX, |at, _| times.push(at));
        assert_eq!(times, [3000, 3001]);
    }

    #[test]
    fn a_thread_is_asleep_in_its_waits_but_in_those_for_spin_locks() {
        let ring = Ring::default();
        ring.prepare();
        let (call, found) = (RecordedCall::default(), (0, 0));
        for (kind, is_asleep) in [(kind::MUTEX, true), (kind::SPIN_LOCK, false), (kind::JOIN, true)] {
            ring.push(1, WaitEvent::Begins { kind, object: 7, call, found });
            assert_eq!(ring.is_asleep(), is_asleep);
            ring.push(2, ENDS);
            assert!(!ring.is_asleep());
        }
    }

    #[test]
    fn waits_without_room_are_lost_whole_and_counted() {
        let ring = Ring::default();
        ring.prepare();
        for at in 0..1000 {
            ring.push(10 * at, BEGINS);
            ring.push(10 * at + 3, ENDS);
        }
        let mut open = 0_i64;
        let (mut begins, mut wakes) = (0, 0);
        ring.take(u64::MAX, |_, event| match event {
            WaitEvent::Begins { .. } => (open, begins) = (open + 1, begins + 1),
            WaitEvent::Ends { .. } => open -= 1,
            _ => wakes += 1,
        });
        assert_eq!((open, wakes), (0, 0));
        assert_eq!(ring.take_lost(), (1000 - begins, 3 * (1000 - begins)));
        assert!(begins > 500);
        assert_eq!(ring.take_lost(), (0, 0));
    }
}
