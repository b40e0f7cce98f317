//! Two words behind each word of the runtime.

use core::cell::RefCell;
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
    let pair = pair(word);
    // SAFETY: made by `pair`.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).ours } }
}

/// Our word behind a word of the runtime if there is one; in a signal handler too.
pub fn known(word: *mut Data) -> *mut Data {
    let pair = atomic(word).map_or(null_mut(), |word| word.load(Acquire));
    // SAFETY: made by `pair`.
    if abi::is_object(pair) { unsafe { &raw mut (*pair).ours } } else { null_mut() }
}

/// The other tool's.
pub fn theirs(word: *mut Data) -> *mut Data {
    let pair = pair(word);
    // SAFETY: made by `pair`.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).theirs } }
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

thread_local! {
    /// The implicit tasks of this thread, by their words, innermost last.
    static MEMBERS: RefCell<Vec<(*mut Data, *mut Pair)>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread begins an implicit task with this word.
///
/// LLVM's runtime tells the end of a worker's implicit task late: then the word may be another thread's,
/// or no word any more, and what lies there must be neither read as a pair nor written. So the thread
/// keeps the pair itself.
pub fn begin_member(word: *mut Data) {
    renew(word);
    let pair = pair(word);
    let _ = MEMBERS.try_with(|members| members.borrow_mut().push((word, pair)));
}

fn member(word: *mut Data) -> Option<*mut Pair> {
    MEMBERS
        .try_with(|members| members.borrow().iter().rev().find(|known| known.0 == word).map(|known| known.1))
        .ok()
        .flatten()
        .filter(|pair| !pair.is_null())
}

/// Our word of this thread's implicit task.
pub fn ours_of_member(word: *mut Data) -> *mut Data {
    // SAFETY: made by `pair`, and kept until the task ends.
    member(word).map_or(null_mut(), |pair| unsafe { &raw mut (*pair).ours })
}

/// The other tool's word of this thread's implicit task.
pub fn theirs_of_member(word: *mut Data) -> *mut Data {
    // SAFETY: as above.
    member(word).map_or(null_mut(), |pair| unsafe { &raw mut (*pair).theirs })
}

/// The calling thread's implicit task of this word has ended.
pub fn end_member(word: *mut Data) {
    let Some(pair) = member(word) else { return };
    let _ = MEMBERS.try_with(|members| {
        let mut members = members.borrow_mut();
        if let Some(at) = members.iter().rposition(|known| known.0 == word) {
            members.remove(at);
        }
    });
    if let Some(word) = atomic(word) {
        let _ = word.compare_exchange(pair, null_mut(), AcqRel, Relaxed);
    }
    keep_a_while(pair);
}

fn keep_a_while(ended: *mut Pair) {
    let slot = NEXT_ENDED.fetch_add(1, Relaxed) % ENDED.len();
    if let Some(slot) = ENDED.get(slot) {
        let oldest = slot.swap(ended, AcqRel);
        // SAFETY: made by `calloc`; a thousand objects have ended since anybody could name it.
        unsafe { libc::free(oldest.cast()) };
    }
}
