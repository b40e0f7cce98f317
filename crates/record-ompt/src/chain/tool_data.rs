//! The data of two tools behind each `ompt_data_t` of the runtime.

use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::abi::{self, Data, StartToolResult};

/// Both tools' data of one object.
#[repr(C)]
struct BothTools {
    ours: Data,
    theirs: Data,
}

impl BothTools {
    /// A new one; null without memory.
    fn make() -> *mut BothTools {
        // SAFETY: fresh memory, of which all bits zero is a value.
        unsafe { libc::calloc(1, size_of::<BothTools>()).cast() }
    }
}

/// The runtime's `ompt_data_t`, which threads may touch at the same time: LLVM's names a nested team to its
/// workers until they have left the last barrier, when its master may have forked anew with it.
fn atomic<'a>(data: *mut Data) -> Option<&'a AtomicPtr<BothTools>> {
    // SAFETY: the runtime's data are live while it names them, aligned, and ours to use.
    abi::is_object(data).then(|| unsafe { AtomicPtr::from_ptr(data.cast()) })
}

/// Both tools' data behind one of the runtime's; made at first sight. Null without data or memory.
fn both(data: *mut Data) -> *mut BothTools {
    let Some(data) = atomic(data) else { return null_mut() };
    let known = data.load(Acquire);
    if !known.is_null() {
        return known;
    }
    let made = BothTools::make();
    match data.compare_exchange(null_mut(), made, AcqRel, Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: made above, and not shared yet.
            unsafe { libc::free(made.cast()) };
            other
        }
    }
}

/// Our data behind the runtime's.
pub fn ours(data: *mut Data) -> *mut Data {
    ours_in(both(data))
}

fn ours_in(both: *mut BothTools) -> *mut Data {
    // SAFETY: made by `both`, or null.
    if both.is_null() { null_mut() } else { unsafe { &raw mut (*both).ours } }
}

fn theirs_in(both: *mut BothTools) -> *mut Data {
    // SAFETY: as above.
    if both.is_null() { null_mut() } else { unsafe { &raw mut (*both).theirs } }
}

/// Our data behind the runtime's if there is one; in a signal handler too.
pub fn known(data: *mut Data) -> *mut Data {
    let both = atomic(data).map_or(null_mut(), |data| data.load(Acquire));
    // SAFETY: made by `both`.
    if abi::is_object(both) { unsafe { &raw mut (*both).ours } } else { null_mut() }
}

/// The other tool's.
pub fn theirs(data: *mut Data) -> *mut Data {
    theirs_in(both(data))
}

/// Begins a new object in this data, and drops its previous content.
pub fn renew(data: *mut Data) {
    if let Some(data) = atomic(data) {
        data.store(BothTools::make(), Release);
    }
}

/// Recently ended objects' data, kept for a while: a late thread may still read it.
static ENDED: [AtomicPtr<BothTools>; 1024] = [const { AtomicPtr::new(null_mut()) }; 1024];
static NEXT_ENDED: AtomicUsize = AtomicUsize::new(0);

/// The object of this data has ended.
pub fn release(data: *mut Data) {
    let Some(data) = atomic(data) else { return };
    keep_a_while(data.swap(null_mut(), AcqRel));
}

/// Open constructs of a thread.
#[derive(Default)]
struct Open {
    /// Implicit tasks with their tool data, innermost last.
    members: Vec<(*mut Data, *mut BothTools)>,
    /// The regions that it has forked, innermost last.
    forks: Vec<*mut BothTools>,
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

/// The calling thread begins an implicit task with this data.
///
/// At its end the runtime names a copy of the data, and that late; the data itself may be another
/// thread's by then, and must be neither read nor written. So the thread keeps the both itself.
pub fn begin_member(data: *mut Data) {
    renew(data);
    let both = both(data);
    with_open(|open| open.members.push((data, both)));
}

/// The calling thread's implicit task that this data, or a copy of it, belongs to.
fn member(data: *mut Data) -> *mut BothTools {
    let value = atomic(data).map_or(null_mut(), |data| data.load(Acquire));
    with_open(|open| {
        let known = open.members.iter().rev().find(|known| known.0 == data || known.1 == value);
        known.or(open.members.last()).map_or(null_mut(), |known| known.1)
    })
}

/// Our data of this thread's implicit task.
pub fn ours_of_member(data: *mut Data) -> *mut Data {
    ours_in(member(data))
}

/// The other tool's data of this thread's implicit task.
pub fn theirs_of_member(data: *mut Data) -> *mut Data {
    theirs_in(member(data))
}

/// The calling thread's implicit task of this data has ended.
pub fn end_member(data: *mut Data) {
    let both = member(data);
    with_open(|open| open.members.retain(|known| known.1 != both));
    keep_a_while(both);
}

/// The calling thread forks a region with this data.
///
/// LLVM's runtime releases a nested team before it reports the region's end: by then the data may be that of
/// another thread's region.
pub fn begin_fork(data: *mut Data) {
    renew(data);
    let both = both(data);
    with_open(|open| open.forks.push(both));
}

/// Our data of the region that this thread forked last.
pub fn ours_of_fork(_word: *mut Data) -> *mut Data {
    ours_in(with_open(|open| open.forks.last().copied().unwrap_or(null_mut())))
}

/// The other tool's data of the region that this thread forked last.
pub fn theirs_of_fork(_word: *mut Data) -> *mut Data {
    theirs_in(with_open(|open| open.forks.last().copied().unwrap_or(null_mut())))
}

/// The region that this thread forked last has ended.
pub fn end_fork() {
    keep_a_while(with_open(|open| open.forks.pop().unwrap_or(null_mut())));
}

fn keep_a_while(ended: *mut BothTools) {
    let slot = NEXT_ENDED.fetch_add(1, Relaxed) % ENDED.len();
    if let Some(slot) = ENDED.get(slot) {
        let oldest = slot.swap(ended, AcqRel);
        // SAFETY: made by `calloc`; a thousand objects have ended since it was last reachable.
        unsafe { libc::free(oldest.cast()) };
    }
}

/// Result that the second tool returned to us in place of the runtime.
pub(super) static NEXT: AtomicPtr<StartToolResult> = AtomicPtr::new(null_mut());

/// Whether there is a tool behind this one.
pub fn has_next() -> bool {
    !NEXT.load(Acquire).is_null()
}

/// Our data behind the runtime's, without making them.
pub fn known_data(data: *mut Data) -> *mut Data {
    if has_next() { known(data) } else { data }
}
