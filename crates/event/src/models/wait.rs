//! Waits with their object and place, and holders of objects.
//!
//! `WAIT_OBJECT` and `WAIT_SITE` describe the wait that the same thread enters with the standard event of the
//! same clock. They are *sticky*: an entry applies to every later wait of that kind on that thread until the
//! next one, so a loop that waits at one place costs one entry in all. The kinds `CRITICAL` to `ATOMIC` are
//! entered by one and the same standard event and therefore share one entry: a lock between two waits for one
//! critical construct needs the critical's entry again.
//!
//! # Waits of threads for each other
//!
//! `WAIT_BEGIN` to `THREAD_STARTS` are recorded of programs whose threads wait in the C library (`record --threads`). They are
//! complete in themselves: a wait is from its `WAIT_BEGIN` to the `WAIT_END` of the same thread, or to its next `WAIT_BEGIN` where a
//! thread was cancelled in it.
//!
//! - A lock that is free is taken and released without an event. `FOUND_HELD` comes after the `WAIT_BEGIN` of a lock,
//!   with the holder's mark. A thread that releases a lock while others wait records `HANDED_OVER` before it does so.
//! - `WAKES_ONE` and `WAKES_ALL` come before the call that wakes, and only while threads wait. The last thread that comes to a
//!   barrier wakes all.
//! - `WAITED` is a whole wait, recorded at its end or at that of the recording: it is not known beforehand whether sleep and I/O wait. It has the thread pointer
//!   of the thread that ended it, the site of that call and its time; 0 if unknown; [`OTHER_PROCESS`] if none of this process can
//!   have done so. Times are before that of the event. `WAKES_ONE` and `WAKES_ALL` come before the calls that end waits for data or
//!   room of pipes, eventfds and socket pairs of the process, for semaphores, messages and signals: data by the first call since the wait began that
//!   ended no other, room by the last one.
//! - A `WAITED` for a mutex within a wait for a condition is the end of that: the thread had been woken, and others held its mutex.
//! - `THREAD_STARTS` comes first on a thread. Its `pointer` is the thread pointer with a count in the upper 16 bits, so that the holder of a
//!   lock that has ended is not taken for a later thread at its address. A join waits for the object that is the joined thread's `handle`.
//!
//! Which event ended a wait depends on all events before it, so a part of a trace has the results of the whole in place of these
//! events: `KNOWN_WAIT` on the waiting thread, for each wait that reaches into the part, before it the `KNOWN_HOLD`s of its lock.
//! Their times are relative to the event, and may be outside of the part; `woken` and the waker's fields are 0 without a waker.
//! `KNOWN_THREAD` has the end of a thread in the whole, and whether it had work there besides sleep.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'W';
/// The model version that these events belong to.
pub const VERSION: &str = "1.4.0";

/// `kind` of a wait: the numbers of the events below, which recorders for any runtime share.
pub mod kind {
    /// Explicit or implicit barrier inside a region.
    pub const BARRIER: u32 = 1;
    /// Barrier at the end of a parallel region.
    pub const JOIN_BARRIER: u32 = 2;
    /// For the children of the current task.
    pub const TASKWAIT: u32 = 3;
    /// For the dependences of a `taskwait depend`.
    pub const TASKWAIT_DEPEND: u32 = 4;
    /// For all descendants created in a taskgroup.
    pub const TASKGROUP: u32 = 5;
    /// For a critical construct.
    pub const CRITICAL: u32 = 6;
    /// For a simple lock.
    pub const LOCK: u32 = 7;
    /// For a nestable lock.
    pub const NEST_LOCK: u32 = 8;
    /// For the turn in an ordered construct.
    pub const ORDERED: u32 = 9;
    /// For an atomic construct, if the runtime reports it.
    pub const ATOMIC: u32 = 10;
    /// For a device operation.
    pub const TARGET: u32 = 11;
    /// For a mutex of the C library.
    pub const MUTEX: u32 = 12;
    /// For a read-write lock of the C library, to read or to write.
    pub const RW_LOCK: u32 = 13;
    /// For a spin lock of the C library.
    pub const SPIN_LOCK: u32 = 14;
    /// For a condition.
    pub const CONDITION: u32 = 15;
    /// In a barrier of the C library.
    pub const THREAD_BARRIER: u32 = 16;
    /// For a semaphore.
    pub const SEMAPHORE: u32 = 17;
    /// For the end of a thread.
    pub const JOIN: u32 = 18;
    /// For a word of memory, in a futex call of the program.
    pub const FUTEX: u32 = 19;
    /// For a time to pass. The following kinds are recorded only if the thread gave up its CPU.
    pub const SLEEP: u32 = 20;
    /// For data or room in a pipe; the object is its inode.
    pub const PIPE: u32 = 21;
    /// For a peer, or for data or room of a socket; the object is its inode.
    pub const SOCKET: u32 = 22;
    /// For a counter of an `eventfd`; the object of this and the following kinds of descriptors is the descriptor.
    pub const EVENT: u32 = 23;
    /// For a timer's descriptor.
    pub const TIMER: u32 = 24;
    /// For a file or a block device.
    pub const FILE: u32 = 25;
    /// For a terminal.
    pub const TERMINAL: u32 = 26;
    /// For one of several descriptors (`poll`, `select`, `epoll_wait`).
    pub const SEVERAL: u32 = 27;
    /// For another process: a child, a command.
    pub const PROCESS: u32 = 28;
    /// For a descriptor of another kind.
    pub const DESCRIPTOR: u32 = 29;
    /// For room in a pipe that the process has made; the object is its inode.
    pub const PIPE_ROOM: u32 = 30;
    /// For data of a socket pair that the process has made; the object is the inode of the socket that reads.
    pub const SOCKET_PAIR: u32 = 31;
    /// For room in a socket pair that the process has made; the object is that of its data.
    pub const SOCKET_PAIR_ROOM: u32 = 32;
    /// For a lock of a file; the object is the descriptor.
    pub const FILE_LOCK: u32 = 33;
    /// For the routine of `pthread_once`, which another thread runs.
    pub const ONCE: u32 = 34;

    /// For the global interpreter lock of CPython; the object is its condition.
    pub const GIL: u32 = 35;
    /// For a signal; the object is the sum of the waiting thread's handle and the signal's number, which is 0 if a handler runs. This and
    /// the following kinds are recorded as those from `SLEEP` on.
    pub const SIGNAL: u32 = 36;
    /// For a message of a queue; the object is the inode of a POSIX queue. Of a System V queue it is the identifier, 32 bits for the wanted
    /// type of message, and the highest bit.
    pub const MESSAGE: u32 = 37;
    /// For room in a queue of messages; the object is that of its messages of any type.
    pub const MESSAGE_ROOM: u32 = 38;
    /// For a semaphore of a System V set; the object is the set's identifier, and above that the number of the semaphore.
    pub const SEMAPHORE_SET: u32 = 39;
    /// For asynchronous input and output (`io_uring`, libaio, `aio_suspend`).
    pub const OPERATIONS: u32 = 40;

    /// Whether waits of this kind are for sleep, a descriptor, a signal, a queue or another process: they are recorded when they are over.
    pub const fn is_blocking(kind: u32) -> bool {
        matches!(kind, SLEEP..=FILE_LOCK | SIGNAL..=OPERATIONS)
    }

    /// Whether threads may wait on a CPU, as they try again for a time. In waits of other kinds, the kernel works for a thread that is on
    /// a CPU.
    pub const fn may_spin(kind: u32) -> bool {
        has_holder(kind)
    }

    /// Whether waits of this kind are for an object that has a holder.
    pub const fn has_holder(kind: u32) -> bool {
        matches!(kind, MUTEX | RW_LOCK | SPIN_LOCK | ONCE | GIL)
    }
}

/// How a wait of a thread ended.
pub mod outcome {
    /// The thread has what it waited for.
    pub const DONE: u32 = 0;
    /// The time that the caller allowed was over.
    pub const TIMED_OUT: u32 = 1;
    /// The call failed or was interrupted.
    pub const FAILED: u32 = 2;
    /// The wait was not over at the end of the recording; of `WAITED` and known waits.
    pub const OPEN: u32 = 3;
}

/// As `waker` of `WAITED` and `KNOWN_WAIT`: no thread of the process can have ended the wait.
pub const OTHER_PROCESS: u64 = u64::MAX;

events! {
    WAIT_SITE = b"WWs" plain (kind: u32, site: u32) Rule, "sets the wait site to {site} for waits of kind {kind}";
    WAIT_OBJECT = b"WWo" plain (object: u64, site: u32, kind: u32) Rule, "sets object {object} and site {site} for waits of kind {kind}";
    ACQUIRED = b"WHa" plain (object: u64, kind: u32) Rule, "holds object {object} (kind {kind})";
    RELEASED = b"WHr" plain (object: u64, kind: u32) Rule, "has released object {object} (kind {kind})";
    WAIT_BEGIN = b"WTb" plain (object: u64, site: u32, kind: u32) Rule, "begins to wait (kind {kind}) for object {object} in the call at site {site}";
    FOUND_HELD = b"WTf" jumbo (holder: u64, site: u32) Rule, "has found the lock held by the thread with pointer {holder}, taken at site {site}";
    WAIT_END = b"WTe" plain (kind: u32, outcome: u32) Rule, "ends its wait (kind {kind}) with outcome {outcome}";
    HANDED_OVER = b"WTh" plain (object: u64, site: u32, kind: u32) Rule, "is about to release object {object} (kind {kind}), taken at site {site}, for which others wait";
    WAKES_ONE = b"WTo" plain (object: u64, site: u32, kind: u32) Rule, "wakes one thread that waits (kind {kind}) for object {object}, in the call at site {site}";
    WAKES_ALL = b"WTa" plain (object: u64, site: u32, kind: u32) Rule, "wakes all threads that wait (kind {kind}) for object {object}, in the call at site {site}";
    WAITED = b"WTw" jumbo (object: u64, begun: u64, ended: u64, site: u32, kind: u32, outcome: u32, waker_site: u32, waker: u64, woken: u64) Rule, "has waited (kind {kind}) for object {object}, in the call at site {site}, from {begun} ns to {ended} ns ago, with outcome {outcome}; the thread with pointer {waker} ended that {woken} ns ago, in the call at site {waker_site}";
    KNOWN_WAIT = b"WTk" jumbo (object: u64, begun: i64, ended: i64, woken: i64, waker: u64, site: u32, path: u32, kind: u32, outcome: u32, waker_site: u32, waker_path: u32) Rule, "waits (kind {kind}) for object {object}, in the call at site {site} by path {path}, from {begun} ns to {ended} ns ago, with outcome {outcome}; thread {waker} ended that {woken} ns ago, in the call at site {waker_site} by path {waker_path}";
    KNOWN_HOLD = b"WTl" jumbo (object: u64, begun: i64, ended: i64, holder: u64, site: u32, path: u32, kind: u32) Rule, "waits while thread {holder} holds object {object} (kind {kind}), taken in the call at site {site}, released by path {path}, from {begun} ns to {ended} ns ago";
    KNOWN_THREAD = b"WTn" jumbo (ended: i64, works: u32) Rule, "has its last event in the run that this slice is of {ended} ns ago, and works: {works} (0: it only sleeps)";
    THREAD_STARTS = b"WTs" jumbo (handle: u64, pointer: u64, site: u32) Rule, "has the handle {handle} and the thread pointer {pointer}, and runs the routine at site {site}";
}
