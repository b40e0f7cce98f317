//! A call site's cached number of a name, or that it is off.
//!
//! ```text
//!  0 ── first use: ask the dictionary ──▶ number + 1, or OFF
//!  ▲                                              │
//!  └── recording starts, settings change ◀────────┘
//! ```
//! A site that is off costs one relaxed load and a comparison. Sites of C are the same (`taskscope.h`).

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*, fence};

use super::feature::IS_COMPILED_IN;

/// Recording is off for this name.
const OFF: u32 = u32::MAX;

/// One per `static`. All zeros is a site without a lookup; `taskscope.h` declares the same.
#[repr(C)]
pub struct Site {
    state: AtomicU32,
    listed: AtomicU32,
    /// The next in [`RESOLVED`].
    next: AtomicPtr<Site>,
}

/// All sites with a cached lookup, so that it can be invalidated.
static RESOLVED: AtomicPtr<Site> = AtomicPtr::new(ptr::null_mut());
/// Number of invalidations: an earlier result must not be cached.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

impl Site {
    pub(super) const fn new() -> Site {
        Site { state: AtomicU32::new(0), listed: AtomicU32::new(0), next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The number, or `None` if the name is off. `resolve` looks it up and decides whether the result is
    /// cached.
    #[inline(always)]
    pub(super) fn number(&'static self, resolve: impl FnOnce() -> Answer) -> Option<u32> {
        if !IS_COMPILED_IN {
            return None;
        }
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
        let asked = asked();
        match resolve() {
            Answer::On(number) => {
                self.keep(asked, Some(number));
                Some(number)
            }
            Answer::Off => {
                self.keep(asked, None);
                None
            }
            Answer::Later => None,
        }
    }

    /// Stores the dictionary's result of a lookup that began at [`asked`]. The site is listed.
    pub fn keep(&'static self, asked: u32, number: Option<u32>) {
        self.state.store(number.map_or(OFF, |number| number + 1), Relaxed);
        // Pairs with that of `forget_all`: either this sees that all were forgotten, or that one sees the
        // stored value.
        fence(SeqCst);
        if FORGOTTEN.load(Relaxed) != asked {
            self.state.store(0, Relaxed);
        }
    }

    /// Lists the site for invalidation when names change. Returns whether that is new.
    pub fn list(&'static self) -> bool {
        if self.listed.swap(1, Relaxed) != 0 {
            return false;
        }
        let this = ptr::from_ref(self).cast_mut();
        let mut first = RESOLVED.load(Acquire);
        loop {
            self.next.store(first, Relaxed);
            match RESOLVED.compare_exchange_weak(first, this, Release, Acquire) {
                Ok(_) => return true,
                Err(now) => first = now,
            }
        }
    }
}

/// Result of a site's lookup.
pub(super) enum Answer {
    /// The name's number, below `u32::MAX - 1`.
    On(u32),
    /// Off until further notice.
    Off,
    /// Off now; look up again.
    Later,
}

/// State of names, to be read before a lookup in the dictionary. The result is valid as long as this is
/// unchanged.
pub fn asked() -> u32 {
    FORGOTTEN.load(SeqCst)
}

/// The number in a result that is cached together with its [`asked`] value.
pub(super) fn number_if_on(answer: Answer) -> Option<u32> {
    match answer {
        Answer::On(number) => Some(number),
        Answer::Off => None,
        Answer::Later => {
            FORGOTTEN.fetch_add(1, SeqCst);
            None
        }
    }
}

/// Invalidates all sites: each repeats its lookup at its next use.
pub(super) fn forget_all() {
    FORGOTTEN.fetch_add(1, SeqCst);
    fence(SeqCst);
    let mut site = RESOLVED.load(Acquire);
    // SAFETY: only sites with a static lifetime are listed.
    while let Some(known) = unsafe { site.as_ref() } {
        known.state.store(0, Relaxed);
        site = known.next.load(Relaxed);
    }
}
