//! Entries of awaited objects, by address: holder and number of waiting threads.
//!
//! A table of buckets with four entries each. An entry belongs to an address until that object is destroyed;
//! if a bucket is full, further addresses have no entry. Marks are plain stores of the holder, read by others
//! only while they wait: a mark that is read too early or too late names no holder, but the event of the
//! release does.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use taskscope_record::thread;

const BUCKETS_LOG2: u32 = 14;
const WAYS: usize = 4;
/// Objects that can have an entry at a time.
pub const MAX_OBJECTS: usize = WAYS << BUCKETS_LOG2;

/// The known state of an object. All zeros is a free entry.
#[repr(C, align(64))]
pub struct Object {
    address: AtomicUsize,
    /// The holder's [`thread::token`]; 0 without one.
    holder: AtomicUsize,
    /// Return address of the call that took it; of a condition the address of its waiting threads' mutex.
    site: AtomicUsize,
    /// Number of acquisitions by the holder beyond the first; of a condition the number of woken threads that do not have its mutex yet.
    depth: AtomicU32,
    waiting: AtomicU32,
    /// Threads of a barrier, 0 if unknown; of a mutex those among the waiting threads that were woken from a condition.
    pub parties: AtomicU32,
    /// Arrivals at a barrier so far; of a mutex the last recorded release, of a condition the last wake, nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub arrivals: AtomicU64,
}

/// The holder of a lock, and the place of its acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// [`thread::token`].
    pub holder: usize,
    /// Return address.
    pub site: usize,
}

/// The result of an unlocking thread's look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// No thread waits, or the lock is not this thread's.
    Unseen,
    /// Others wait; it was taken at this return address.
    Contended(usize),
}

static TABLE: AtomicPtr<[Object; WAYS]> = AtomicPtr::new(core::ptr::null_mut());

/// Reserves the table. Without memory nothing has an entry.
pub fn prepare() {
    let bytes = MAX_OBJECTS * size_of::<Object>();
    // SAFETY: a new mapping; its pages are there when they are touched first. A forked child finds zeros.
    let table = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let table =
            libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if table == libc::MAP_FAILED {
            return;
        }
        libc::madvise(table, bytes, libc::MADV_WIPEONFORK);
        table
    };
    TABLE.store(table.cast(), Release);
}

/// The calling thread as stored in marks; `None` if it is not recorded.
#[inline(always)]
pub fn this_thread() -> Option<usize> {
    Some(thread::token()).filter(|token| *token != 0)
}

#[inline(always)]
fn bucket(address: usize) -> Option<&'static [Object; WAYS]> {
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - BUCKETS_LOG2);
    // SAFETY: null, or the table, which is never unmapped and has so many buckets.
    unsafe { TABLE.load(Relaxed).wrapping_add(hash).as_ref().filter(|_| !TABLE.load(Relaxed).is_null()) }
}

impl Object {
    /// The entry of an address, if it has one.
    #[inline(always)]
    pub fn find(address: usize) -> Option<&'static Object> {
        bucket(address)?.iter().find(|object| object.address.load(Relaxed) == address)
    }

    /// The entry of an address; a new one if it has none, and the bucket has room.
    #[inline(always)]
    pub fn of(address: usize) -> Option<&'static Object> {
        Object::find(address).or_else(|| Object::create(address))
    }

    #[cold]
    #[inline(never)]
    fn create(address: usize) -> Option<&'static Object> {
        bucket(address)?.iter().find(|object| {
            let taken = object.address.compare_exchange(0, address, AcqRel, Acquire);
            taken.is_ok() || taken == Err(address)
        })
    }

    /// Frees the entry of an object that is destroyed.
    pub fn destroy(address: usize) {
        let Some(object) = Object::find(address).filter(|object| object.waiting.load(Relaxed) == 0) else {
            return;
        };
        object.holder.store(0, Relaxed);
        object.site.store(0, Relaxed);
        object.depth.store(0, Relaxed);
        object.parties.store(0, Relaxed);
        object.arrivals.store(0, Relaxed);
        object.address.store(0, Release);
    }

    /// Marks the object as held by this thread, which has just taken it.
    #[inline(always)]
    pub fn take(&self, thread: usize, site: usize) {
        if self.holder.load(Relaxed) == thread {
            return self.depth.store(self.depth.load(Relaxed).wrapping_add(1), Relaxed);
        }
        self.depth.store(0, Relaxed);
        self.site.store(site, Relaxed);
        self.holder.store(thread, Release);
    }

    /// Takes the mark away, before this thread releases the object.
    #[inline(always)]
    pub fn release(&self, thread: usize) -> Released {
        if self.holder.load(Relaxed) != thread {
            return Released::Unseen;
        }
        let depth = self.depth.load(Relaxed);
        if depth > 0 {
            self.depth.store(depth - 1, Relaxed);
            return Released::Unseen;
        }
        let site = self.site.load(Relaxed);
        self.holder.store(0, Relaxed);
        if self.has_waiting() { Released::Contended(site) } else { Released::Unseen }
    }

    /// The holder at this moment, if it is certain.
    pub fn mark(&self) -> Option<Mark> {
        let holder = self.holder.load(Acquire);
        let site = self.site.load(Acquire);
        (holder != 0 && self.holder.load(Acquire) == holder).then_some(Mark { holder, site })
    }

    /// Whether threads wait for the object.
    #[inline(always)]
    pub fn has_waiting(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// Whether this thread has taken the lock.
    pub fn is_held_by(&self, thread: usize) -> bool {
        self.holder.load(Relaxed) == thread
    }

    /// A thread waits for this condition with this mutex.
    pub fn set_mutex(&self, mutex: usize) {
        if self.site.load(Relaxed) != mutex {
            self.site.store(mutex, Relaxed);
        }
    }

    /// The mutex of the threads that wait for this condition; 0 if unknown.
    pub fn mutex(&self) -> usize {
        self.site.load(Relaxed)
    }

    /// A thread wakes one thread that waits for this condition, or all of them, at a time. Returns how many more threads need its mutex.
    pub fn wake(&self, all: bool, now: u64) -> u32 {
        let waiting = self.waiting.load(Relaxed);
        let woken = |woken: u32| (woken < waiting).then(|| if all { waiting } else { woken + 1 });
        self.depth.fetch_update(Relaxed, Relaxed, woken).map_or(0, |before| {
            self.arrivals.store(now, Relaxed);
            if all { waiting - before } else { 1 }
        })
    }

    /// The calling thread waits no longer for this condition, as it was woken, or not as far as it knows. Returns whether it was counted
    /// as woken.
    pub fn end_condition_wait(&self, is_woken: bool) -> bool {
        let waiting = subtract(&self.waiting);
        let woken = |woken: u32| woken.checked_sub(1).filter(|_| is_woken || woken > waiting);
        self.depth.fetch_update(Relaxed, Relaxed, woken).is_ok()
    }

    /// So many threads that were woken from a condition wait for this mutex.
    pub fn add_woken(&self, threads: u32) {
        if threads > 0 {
            self.parties.fetch_add(threads, Relaxed);
            self.waiting.fetch_add(threads, SeqCst);
        }
    }

    /// A thread that was woken from a condition has this mutex.
    pub fn end_woken(&self) {
        subtract(&self.parties);
        subtract(&self.waiting);
    }

    /// Whether a release of this mutex, which others wait for, at a time is to be recorded: not each of many short holds in a row while only
    /// threads wait for it that were woken from a condition and may have no CPU.
    pub fn notes_release(&self, now: u64) -> bool {
        const MIN_BETWEEN_NS: u64 = 20_000;
        let are_all_woken = self.waiting.load(Relaxed) <= self.parties.load(Relaxed);
        if are_all_woken && now.saturating_sub(self.arrivals.load(Relaxed)) < MIN_BETWEEN_NS {
            return false;
        }
        self.arrivals.store(now, Relaxed);
        true
    }

    /// Counts the calling thread as waiting.
    pub fn begin_waiting(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    /// The calling thread waits no longer.
    pub fn end_waiting(&self) {
        subtract(&self.waiting);
    }
}

/// One less, but not below zero: a forked child begins anew. Returns the result.
pub fn subtract(count: &AtomicU32) -> u32 {
    let less = |count: u32| count.checked_sub(1);
    count.fetch_update(Relaxed, Relaxed, less).map_or(0, |before| before - 1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The process has one table: one test has it at a time, as one test fills it.
    pub(crate) fn prepared() -> MutexGuard<'static, ()> {
        static TABLE_USE: Mutex<()> = Mutex::new(());
        let only = TABLE_USE.lock().unwrap_or_else(PoisonError::into_inner);
        if TABLE.load(Relaxed).is_null() {
            prepare();
        }
        only
    }

    #[test]
    fn an_address_has_one_entry_until_it_is_destroyed() {
        let _table = prepared();
        assert!(Object::find(0x1000).is_none());
        let first = Object::of(0x1000).unwrap();
        assert!(core::ptr::eq(first, Object::of(0x1000).unwrap()));
        assert!(core::ptr::eq(first, Object::find(0x1000).unwrap()));
        Object::destroy(0x1000);
        assert!(Object::find(0x1000).is_none());
    }

    #[test]
    fn a_release_is_contended_only_at_the_outermost_level_and_with_waiting_threads() {
        let _table = prepared();
        let lock = Object::of(0x2000).unwrap();
        lock.take(7, 70);
        lock.take(7, 71);
        assert_eq!(lock.mark(), Some(Mark { holder: 7, site: 70 }));
        lock.begin_waiting();
        assert_eq!(lock.release(8), Released::Unseen);
        assert_eq!(lock.release(7), Released::Unseen);
        assert_eq!(lock.release(7), Released::Contended(70));
        assert_eq!(lock.mark(), None);
        lock.end_waiting();
        lock.take(8, 80);
        assert_eq!(lock.release(8), Released::Unseen);
    }

    #[test]
    fn woken_threads_of_a_condition_are_counted_until_they_have_its_mutex() {
        let _table = prepared();
        let condition = Object::of(0x3000).unwrap();
        (0..3).for_each(|_| condition.begin_waiting());
        assert_eq!([condition.wake(false, 5), condition.wake(true, 6), condition.wake(true, 7)], [1, 2, 0]);
        assert!(condition.end_condition_wait(true));
        // The time of the second one was over when it was woken.
        assert!(condition.end_condition_wait(false) && condition.end_condition_wait(true));
        condition.begin_waiting();
        assert!(!condition.end_condition_wait(false), "nobody has woken it");
        condition.begin_waiting();
        assert!(!condition.end_condition_wait(true), "nobody has been seen to wake it");
    }

    #[test]
    fn releases_for_woken_threads_alone_are_noted_now_and_then() {
        let _table = prepared();
        let mutex = Object::of(0x4000).unwrap();
        mutex.add_woken(2);
        let noted = |times: [u64; 4]| times.map(|now| mutex.notes_release(now));
        assert_eq!(noted([100_000, 101_000, 119_999, 120_000]), [true, false, false, true]);
        mutex.begin_waiting();
        assert_eq!(noted([120_001, 120_002, 120_003, 120_004]), [true; 4]);
        mutex.end_waiting();
        (0..2).for_each(|_| mutex.end_woken());
        assert!(!mutex.has_waiting());
    }

    #[test]
    fn a_full_bucket_leaves_addresses_without_entry() {
        let _table = prepared();
        let addresses = (1..=4 * MAX_OBJECTS).map(|number| (1 << 40) + number * 64);
        let found = addresses.clone().filter(|address| Object::of(*address).is_some()).count();
        assert!(found > 0 && found <= MAX_OBJECTS);
        addresses.for_each(Object::destroy);
    }
}
