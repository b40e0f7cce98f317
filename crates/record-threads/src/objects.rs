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
    /// Thread pointer of the holder; 0 without one.
    holder: AtomicUsize,
    /// Return address of the call that took it.
    site: AtomicUsize,
    /// Number of acquisitions by the holder beyond the first.
    depth: AtomicU32,
    waiting: AtomicU32,
    /// Threads of a barrier; 0 if unknown.
    pub parties: AtomicU32,
    /// Arrivals at a barrier so far.
    pub arrivals: AtomicU64,
}

/// The holder of a lock, and the place of its acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Thread pointer.
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
    (thread::address() != 0).then(thread::pointer)
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
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The process has one table: one test has it at a time, as one test fills it.
    fn prepared() -> MutexGuard<'static, ()> {
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
    fn a_full_bucket_leaves_addresses_without_entry() {
        let _table = prepared();
        let addresses = (1..=4 * MAX_OBJECTS).map(|number| (1 << 40) + number * 64);
        let found = addresses.clone().filter(|address| Object::of(*address).is_some()).count();
        assert!(found > 0 && found <= MAX_OBJECTS);
        addresses.for_each(Object::destroy);
    }
}
