//! What a call site keeps of a name: its number, or that it is off.
//!
//! ```text
//!  0 ── first use: ask the dictionary ──▶ number + 1, or OFF
//!  ▲                                              │
//!  └── recording starts, settings change ◀────────┘
//! ```
//! A site that is off costs one relaxed load and a comparison.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

/// Nothing is to be recorded.
const OFF: u32 = u32::MAX;

/// One per `static`.
pub(super) struct Site {
    state: AtomicU32,
    /// The next in [`RESOLVED`].
    next: AtomicPtr<Site>,
    listed: AtomicU32,
}

/// All sites that have asked, so that they can be made to ask again.
static RESOLVED: AtomicPtr<Site> = AtomicPtr::new(ptr::null_mut());

impl Site {
    pub const fn new() -> Site {
        Site { state: AtomicU32::new(0), next: AtomicPtr::new(ptr::null_mut()), listed: AtomicU32::new(0) }
    }

    /// The number, or `None` where nothing is to be recorded. `resolve` says what it is and whether the
    /// answer holds.
    #[inline(always)]
    pub fn number(&'static self, resolve: impl FnOnce() -> Answer) -> Option<u32> {
        match self.state.load(Relaxed) {
            OFF => None,
            0 => self.ask(resolve),
            number => Some(number - 1),
        }
    }

    #[cold]
    #[inline(never)]
    fn ask(&'static self, resolve: impl FnOnce() -> Answer) -> Option<u32> {
        self.list();
        let answer = resolve();
        match answer {
            Answer::On(number) => self.state.store(number + 1, Relaxed),
            Answer::Off => self.state.store(OFF, Relaxed),
            Answer::Later => {}
        }
        match answer {
            Answer::On(number) => Some(number),
            Answer::Off | Answer::Later => None,
        }
    }

    fn list(&'static self) {
        if self.listed.swap(1, Relaxed) != 0 {
            return;
        }
        let this = ptr::from_ref(self).cast_mut();
        let mut first = RESOLVED.load(Acquire);
        loop {
            self.next.store(first, Relaxed);
            match RESOLVED.compare_exchange_weak(first, this, Release, Acquire) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }
}

/// What a site is told.
pub(super) enum Answer {
    /// The name's number, below `u32::MAX - 1`.
    On(u32),
    /// Nothing until further notice.
    Off,
    /// Nothing now; ask again.
    Later,
}

/// Every site asks anew at its next use.
pub(super) fn forget_all() {
    let mut site = RESOLVED.load(Acquire);
    // SAFETY: only sites with a static lifetime are listed.
    while let Some(known) = unsafe { site.as_ref() } {
        known.state.store(0, Relaxed);
        site = known.next.load(Relaxed);
    }
}
