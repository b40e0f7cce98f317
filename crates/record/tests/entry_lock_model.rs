//! The entry lock of a recorder in a model checker: every order of its memory accesses is tried.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use entry_lock::{Entry, EntryLock};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

#[path = "../src/entry_lock.rs"]
#[allow(dead_code, reason = "the model uses a part")]
mod entry_lock;

/// The primitives of the entry lock.
mod sync {
    pub use loom::sync::atomic::{AtomicU32, Ordering};

    /// The model has no membarrier; a full fence on both sides is equivalent to the pair of fences.
    pub fn light_fence() {
        if super::HAS_FENCE.load(super::Relaxed) {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    pub fn heavy_fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Whether the thread's half of the fence is there.
static HAS_FENCE: AtomicBool = AtomicBool::new(true);

/// A thread enters twice, and a finisher closes the lock and writes if it is free.
fn check() {
    loom::model(|| {
        let shared = Arc::new((EntryLock::open(), UnsafeCell::new(0)));
        let thread = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    if shared.0.enter() == Entry::Open {
                        // SAFETY: the property that the model checks.
                        shared.1.with_mut(|events| unsafe { *events += 1 });
                        shared.0.leave();
                    }
                }
            })
        };
        shared.0.close();
        sync::heavy_fence();
        if shared.0.is_free() {
            // SAFETY: the property that the model checks.
            shared.1.with_mut(|events| unsafe { *events += 10 });
        }
        thread.join().unwrap();
    });
}

/// The thread's events and the finisher's closing never happen at the same time: loom reports two accesses to the
/// cell that are not ordered. Without the fence they do.
#[test]
fn the_finisher_and_the_thread_never_write_together() {
    check();
    HAS_FENCE.store(false, Relaxed);
    assert!(std::panic::catch_unwind(check).is_err(), "the model finds the missing fence");
}
