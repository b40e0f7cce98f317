//! Which parallel regions are open, and whether somebody wants to know where they were created.
//!
//! One slot per open region, shared by all threads and by signal handlers:
//!
//! ```text
//!   master, at the fork    slot = id                 a worker's sample      slot |= ASKED
//!   master, at the end     slot = 0, and says whether somebody asked
//! ```
//! A worker needs no pointer into the runtime for it, so there is none that could dangle: a region
//! that has ended is in no slot.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

const SLOTS: usize = 4096;
/// Slots that may hold a region, from the one that its id names on.
const PROBES: usize = 8;
const ASKED: u64 = 1 << 32;

static OPEN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
/// The context of the region in the slot, in profile mode.
static CONTEXTS: [AtomicU32; SLOTS] = [const { AtomicU32::new(0) }; SLOTS];

fn slots(region: u32) -> impl Iterator<Item = (&'static AtomicU64, &'static AtomicU32)> {
    // Ids come in blocks per thread: a multiplication spreads them.
    let first = (region.wrapping_mul(0x9e37_79b1) >> 16) as usize;
    (0..PROBES).filter_map(move |probe| {
        let index = (first + probe) % SLOTS;
        Some((OPEN.get(index)?, CONTEXTS.get(index)?))
    })
}

fn slot_of(region: u32) -> Option<&'static AtomicU64> {
    slots(region).find(|(slot, _)| slot.load(Relaxed) as u32 == region).map(|(slot, _)| slot)
}

/// The context of an open region; 0 where it is not known. For handlers too.
#[inline(never)]
pub fn context(region: u32) -> u32 {
    if region == 0 {
        return 0;
    }
    let slot = slots(region).find(|(slot, _)| slot.load(Acquire) as u32 == region);
    slot.map_or(0, |(_, context)| context.load(Relaxed))
}

/// A region begins, in profile mode with a context. Without a free slot it is unknown to all that
/// follows.
pub fn begin(region: u32, context: u32) {
    for (slot, place) in slots(region) {
        // Taken first by a number that no region has, so that nobody sees another one's context.
        if slot.load(Relaxed) == 0 && slot.compare_exchange(0, ASKED, Relaxed, Relaxed).is_ok() {
            place.store(context, Relaxed);
            slot.store(u64::from(region), Release);
            return;
        }
    }
}

/// A region ends: whether somebody asked for its path. One without a slot may have been asked for.
pub fn end(region: u32) -> bool {
    slot_of(region).is_none_or(|slot| slot.swap(0, Relaxed) & ASKED != 0)
}

/// Whether a region is open. For handlers too.
pub fn is_open(region: u32) -> bool {
    slot_of(region).is_some()
}

/// Asks for a region's path. For handlers too. A region without a slot needs no asking.
pub fn ask(region: u32) {
    if region != 0
        && let Some(slot) = slot_of(region)
    {
        let before = slot.load(Relaxed);
        if before as u32 == region && before & ASKED == 0 {
            // If it ended meanwhile, the slot is another region's or free, and stays as it is.
            let _ = slot.compare_exchange(before, before | ASKED, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_asked_for_is_known_at_the_end() {
        for region in 900_000..900_100 {
            begin(region, 3);
        }
        assert_eq!(context(900_007), 3);
        assert!(is_open(900_050) && !is_open(900_100));
        ask(900_050);
        ask(900_050);
        ask(0);
        for region in 900_000..900_100 {
            assert_eq!(end(region), region == 900_050, "{region}");
        }
        assert!(!is_open(900_050));
        assert!(end(900_050), "a region without a slot may have been asked for");
    }
}
