//! Two words behind each word of the runtime.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::abi::{self, Data};

/// Both tools' words.
#[repr(C)]
struct Pair {
    ours: Data,
    theirs: Data,
}

impl Pair {
    /// A new one; null without memory.
    fn make() -> *mut Pair {
        // SAFETY: fresh memory, of which all bits zero is a pair.
        unsafe { libc::calloc(1, size_of::<Pair>()).cast() }
    }
}

/// A word of the runtime, which threads may touch at the same time: LLVM's names a nested team to its
/// workers until they have left the last barrier, when its master may have forked anew with it.
fn atomic<'a>(word: *mut Data) -> Option<&'a AtomicPtr<Pair>> {
    // SAFETY: the runtime's words are live while it names them, aligned, and ours to use.
    abi::is_object(word).then(|| unsafe { AtomicPtr::from_ptr(word.cast()) })
}

/// The pair behind a word of the runtime; made at first sight. Null without a word or memory.
fn pair(word: *mut Data) -> *mut Pair {
    let Some(word) = atomic(word) else { return null_mut() };
    let known = word.load(Acquire);
    if !known.is_null() {
        return known;
    }
    let made = Pair::make();
    match word.compare_exchange(null_mut(), made, AcqRel, Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: made above, and seen by nobody.
            unsafe { libc::free(made.cast()) };
            other
        }
    }
}

/// Our word behind a word of the runtime.
pub fn ours(word: *mut Data) -> *mut Data {
    ours_in(pair(word))
}

fn ours_in(pair: *mut Pair) -> *mut Data {
    // SAFETY: made by `pair`, or null.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).ours } }
}

fn theirs_in(pair: *mut Pair) -> *mut Data {
    // SAFETY: as above.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).theirs } }
}

/// Our word behind a word of the runtime if there is one; in a signal handler too.
pub fn known(word: *mut Data) -> *mut Data {
    let pair = atomic(word).map_or(null_mut(), |word| word.load(Acquire));
    // SAFETY: made by `pair`.
    if abi::is_object(pair) { unsafe { &raw mut (*pair).ours } } else { null_mut() }
}

/// The other tool's.
pub fn theirs(word: *mut Data) -> *mut Data {
    theirs_in(pair(word))
}

/// A new object begins in this word, whatever was there.
pub fn renew(word: *mut Data) {
    if let Some(word) = atomic(word) {
        word.store(Pair::make(), Release);
    }
}

/// Pairs whose objects have ended, for a while: a thread that comes late may still look at one.
static ENDED: [AtomicPtr<Pair>; 1024] = [const { AtomicPtr::new(null_mut()) }; 1024];
static NEXT_ENDED: AtomicUsize = AtomicUsize::new(0);

/// The object of this word has ended.
pub fn release(word: *mut Data) {
    let Some(word) = atomic(word) else { return };
    keep_a_while(word.swap(null_mut(), AcqRel));
}

/// What a thread has open.
#[derive(Default)]
struct Open {
    /// Its implicit tasks with their words, innermost last.
    members: Vec<(*mut Data, *mut Pair)>,
    /// The regions that it has forked, innermost last.
    forks: Vec<*mut Pair>,
}

thread_local! {
    /// Never freed: the runtime ends the initial task when thread-local data is gone.
    static OPEN: Cell<*mut Open> = const { Cell::new(null_mut()) };
}

fn with_open<R>(use_open: impl FnOnce(&mut Open) -> R) -> R {
    let mut open = OPEN.with(Cell::get);
    if open.is_null() {
        open = Box::into_raw(Box::default());
        OPEN.with(|place| place.set(open));
    }
    // SAFETY: made above by this thread, which is in here once.
    use_open(unsafe { &mut *open })
}

/// The calling thread begins an implicit task with this word.
///
/// At its end the runtime names a copy of the word, and that late; the word itself may be another
/// thread's by then, and must be neither read nor written. So the thread keeps the pair itself.
pub fn begin_member(word: *mut Data) {
    renew(word);
    let pair = pair(word);
    with_open(|open| open.members.push((word, pair)));
}

/// The calling thread's implicit task that this word, or a copy of it, belongs to.
fn member(word: *mut Data) -> *mut Pair {
    let value = atomic(word).map_or(null_mut(), |word| word.load(Acquire));
    with_open(|open| {
        let known = open.members.iter().rev().find(|known| known.0 == word || known.1 == value);
        known.or(open.members.last()).map_or(null_mut(), |known| known.1)
    })
}

/// Our word of this thread's implicit task.
pub fn ours_of_member(word: *mut Data) -> *mut Data {
    ours_in(member(word))
}

/// The other tool's word of this thread's implicit task.
pub fn theirs_of_member(word: *mut Data) -> *mut Data {
    theirs_in(member(word))
}

/// The calling thread's implicit task of this word has ended.
pub fn end_member(word: *mut Data) {
    let pair = member(word);
    with_open(|open| open.members.retain(|known| known.1 != pair));
    keep_a_while(pair);
}

/// The calling thread forks a region with this word.
///
/// LLVM's runtime gives a nested team back before it tells the region's end: then the word may be
/// that of another thread's region.
pub fn begin_fork(word: *mut Data) {
    renew(word);
    let pair = pair(word);
    with_open(|open| open.forks.push(pair));
}

/// Our word of the region that this thread forked last.
pub fn ours_of_fork(_word: *mut Data) -> *mut Data {
    ours_in(with_open(|open| open.forks.last().copied().unwrap_or(null_mut())))
}

/// The other tool's word of the region that this thread forked last.
pub fn theirs_of_fork(_word: *mut Data) -> *mut Data {
    theirs_in(with_open(|open| open.forks.last().copied().unwrap_or(null_mut())))
}

/// The region that this thread forked last has ended.
pub fn end_fork() {
    keep_a_while(with_open(|open| open.forks.pop().unwrap_or(null_mut())));
}

fn keep_a_while(ended: *mut Pair) {
    let slot = NEXT_ENDED.fetch_add(1, Relaxed) % ENDED.len();
    if let Some(slot) = ENDED.get(slot) {
        let oldest = slot.swap(ended, AcqRel);
        // SAFETY: made by `calloc`; a thousand objects have ended since anybody could name it.
        unsafe { libc::free(oldest.cast()) };
    }
}
