//! Events of our own, from pools with timestamps: one for each operation without an event of the program's.

use super::library::{
    EVENT_DESCRIPTION, EventDescription, LevelZero, POOL_DESCRIPTION, POOL_FOR_HOST, POOL_WITH_TIMES,
    PoolDescription, SCOPE_HOST, SUCCESS,
};
use rustc_hash::FxHashMap;

const POOL: u32 = 256;

/// Free events by context.
#[derive(Default)]
pub(super) struct Events {
    free: FxHashMap<usize, Vec<usize>>,
}

impl Events {
    /// An unsignalled event; 0 if the driver has none.
    pub fn take(&mut self, ze: &LevelZero, context: usize) -> usize {
        let free = self.free.entry(context).or_default();
        if let Some(event) = free.pop() {
            return event;
        }
        let description = PoolDescription {
            form: POOL_DESCRIPTION,
            next: std::ptr::null(),
            flags: POOL_FOR_HOST | POOL_WITH_TIMES,
            count: POOL,
        };
        let mut pool = 0;
        // SAFETY: the context is the program's list's; no devices means all of the context's.
        unsafe {
            if (ze.pool_create)(context, &raw const description, 0, std::ptr::null(), &raw mut pool)
                != SUCCESS
            {
                return 0;
            }
            for index in 0..POOL {
                let description = EventDescription {
                    form: EVENT_DESCRIPTION,
                    next: std::ptr::null(),
                    index,
                    signal: SCOPE_HOST,
                    wait: SCOPE_HOST,
                };
                let mut event = 0;
                if (ze.event_create)(pool, &raw const description, &raw mut event) == SUCCESS {
                    free.push(event);
                }
            }
        }
        free.pop().unwrap_or(0)
    }

    /// Returns a read event for reuse.
    pub fn give_back(&mut self, ze: &LevelZero, context: usize, event: usize) {
        // SAFETY: the event is ours.
        if unsafe { (ze.event_reset)(event) } == SUCCESS {
            self.free.entry(context).or_default().push(event);
        }
    }
}
