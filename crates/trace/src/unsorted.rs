//! Regions of events that were recorded unsorted.
//!
//! Regions of unsorted events (between ovni's `UNSORTED_BEGIN` and `UNSORTED_END`) hold events that
//! belong into the past. Sorting rewrites an index, never the file:
//!
//! ```text
//! stored   1  5  9 [ 3  4 ] 12         [ and ] are the region's border events
//! window      └──────────┘             from the first event later than the region's earliest
//! read     1  3  4  5  9 [ ] 12        stable, so equal clocks keep their stored order
//! ```

use crate::event_head::{EventHead, clock_of};

/// A part of the file with events that are read in the order of `order`.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    /// Byte offsets of all its events, by clock.
    pub(crate) order: Vec<usize>,
}

/// A region with events that are earlier than the region.
pub(crate) struct Disorder {
    /// Clock of the earliest of them.
    pub(crate) earliest_clock: i64,
    /// Byte after the region's last event.
    pub(crate) end: usize,
}

/// The parts to reorder. Intervals are joined before anything is sorted, so that the cost stays
/// n log n even when every region reaches back to the start.
pub(crate) fn windows(bytes: &[u8], disorders: &[Disorder], checkpoints: &[(usize, i64)]) -> Vec<Window> {
    let mut intervals: Vec<(usize, usize)> = Vec::new();
    for disorder in disorders {
        let begin = first_event_later_than(disorder.earliest_clock, bytes, checkpoints).min(disorder.end);
        let mut interval = (begin, disorder.end);
        while let Some(previous) = intervals.last()
            && previous.1 > interval.0
        {
            interval.0 = interval.0.min(previous.0);
            intervals.pop();
        }
        intervals.push(interval);
    }
    intervals.into_iter().map(|(begin, end)| window(bytes, begin, end)).collect()
}

fn first_event_later_than(clock: i64, bytes: &[u8], checkpoints: &[(usize, i64)]) -> usize {
    // A checkpoint has the highest clock before it, so the last one that is not above `clock` is at or before
    // the wanted event.
    let after = checkpoints.partition_point(|(_, highest_before)| *highest_before <= clock);
    let mut position = checkpoints[after.saturating_sub(1)].0;
    while let Some(head) = EventHead::read(bytes, position) {
        if clock_of(head.raw_clock) > clock {
            break;
        }
        position = head.end;
    }
    position
}

fn window(bytes: &[u8], begin: usize, end: usize) -> Window {
    let mut order = Vec::new();
    let mut position = begin;
    while position < end {
        let Some(head) = EventHead::read(bytes, position) else { break };
        order.push((clock_of(head.raw_clock), position));
        position = head.end;
    }
    order.sort_by_key(|(clock, _)| *clock);
    Window { begin, end, order: order.into_iter().map(|(_, offset)| offset).collect() }
}
