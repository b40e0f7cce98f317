//! The number of a name, kept beside its uses.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use taskscope_record::instrument::named;

use crate::attach;

/// The dictionary's result for a name. Zero is one without a lookup.
///
/// High half: [`named::asked`] plus one, at the lookup; low half: the number plus one, 0 for a name that is off.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Cached(AtomicU64);

impl Cached {
    /// Without a lookup.
    pub const fn new() -> Cached {
        Cached(AtomicU64::new(0))
    }

    /// The number, for an event of the calling thread; `None` while the name is off. `ask` asks the dictionary, if it has to be asked.
    #[inline]
    pub fn number(&self, ask: impl FnOnce() -> Option<u32>) -> Option<u32> {
        let now = u64::from(named::asked()) + 1;
        let cached = self.0.load(Relaxed);
        if cached >> 32 == now & 0xffff_ffff && cached != 0 {
            let number = (cached as u32).checked_sub(1);
            if number.is_some() {
                attach::thread();
            }
            return number;
        }
        // A new name is recorded by the thread that asks for it.
        attach::thread();
        let number = ask();
        self.0.store(now << 32 | u64::from(number.map_or(0, |number| number + 1)), Relaxed);
        number
    }
}
