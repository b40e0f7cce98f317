//! The open parallel regions, with requests for their creation paths.
//!
//! One slot per open region, shared by all threads and by signal handlers:
//!
//! ```text
//!   master, at the fork    slot = id                 a worker's sample      slot |= ASKED
//!   master, at the end     slot = 0; returns whether it was requested
//! ```
//! A worker needs no pointer into the runtime for it, so there is none that could dangle: a region
//! that has ended is in no slot.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use crate::ids::BLOCK;

const SLOTS: usize = 4096;
/// Slots that may hold a region, from the one that its id names on.
const PROBES: usize = 8;
const ASKED: u64 = 1 << 32;

struct Slot {
    /// The region, and whether its path was requested.
    open: AtomicU64,
    /// Its context, in profile mode.
    context: AtomicU32,
}

static ALL: [Slot; SLOTS] = [const { Slot { open: AtomicU64::new(0), context: AtomicU32::new(0) } }; SLOTS];

fn slots(region: u32) -> impl Iterator<Item = &'static Slot> {
    // Ids come in blocks per thread, which a multiplication spreads. Consecutive regions of a thread are
    // neighbours, so they share cache lines.
    let (block, within) = (region / BLOCK, region % BLOCK);
    let first = (block.wrapping_mul(0x9e37_79b1) >> 16) as usize + within as usize;
    (0..PROBES).filter_map(move |probe| ALL.get((first + probe) % SLOTS))
}

fn slot_of(region: u32) -> Option<&'static Slot> {
    slots(region).find(|slot| slot.open.load(Acquire) as u32 == region)
}

/// Context of an open region; 0 if unknown. Usable in handlers.
#[inline(never)]
pub fn context(region: u32) -> u32 {
    if region == 0 {
        return 0;
    }
    slot_of(region).map_or(0, |slot| slot.context.load(Relaxed))
}

/// A region begins, in profile mode with a context. Without a free slot it is unknown to all that
/// follows.
pub fn begin(region: u32, context: u32) {
    for Slot { open, context: place } in slots(region) {
        // Claimed first with a number that no region has, so that no reader sees another region's context.
        if open.load(Relaxed) == 0 && open.compare_exchange(0, ASKED, Relaxed, Relaxed).is_ok() {
            place.store(context, Relaxed);
            open.store(u64::from(region), Release);
            return;
        }
    }
}

/// Ends a region. Returns whether its path was requested, which may also be for one without a slot.
pub fn end(region: u32) -> bool {
    slot_of(region).is_none_or(|slot| slot.open.swap(0, Relaxed) & ASKED != 0)
}

/// Whether a region is open. For handlers too.
pub fn is_open(region: u32) -> bool {
    slot_of(region).is_some()
}

/// Requests a region's path. Usable in handlers. A region without a slot needs no request.
pub fn ask(region: u32) {
    if region != 0
        && let Some(Slot { open, .. }) = slot_of(region)
    {
        let before = open.load(Relaxed);
        if before as u32 == region && before & ASKED == 0 {
            // If it ended meanwhile, the slot is another region's or free, and stays as it is.
            let _ = open.compare_exchange(before, before | ASKED, Relaxed, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queried_regions_are_known_at_the_end() {
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
