//! Many threads' events in one total order, ties included, exactly as ovni plays them.
//!
//! ovni keeps the waiting streams in a binary min-heap over their next clocks, as a plain array:
//! an entry rises only past strictly later parents; removal moves the last entry to the top and
//! lets it sink, the left child compared before the right, again strictly. The stream that gave the
//! last event is put back first, then the top is taken. So on equal clocks the order is that of the
//! heap's shape, which this file reproduces; nothing else would give `ovnidump`'s order.
//!
//! Readers that need the order of few events only use [`Turns`](crate::Turns).

use crate::decode::Event;
use crate::stream::{Stream, ThreadEvents};
use std::hint::select_unpredictable;
use std::ops::{BitAnd, BitOr, Not};
use taskscope_event::StreamFile;

/// An event with its place in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedEvent<'a> {
    /// Index of the stream in [`Trace::streams`](crate::Trace::streams).
    pub stream: usize,
    /// The stream's file.
    pub file: StreamFile,
    /// The event.
    pub event: Event<'a>,
}

/// Iterator over the events of several streams in the total order.
pub struct Merged<'a> {
    sources: Vec<(usize, ThreadEvents<'a>)>,
    waiting: Waiting,
    /// The source that gave the last event and must be put back.
    last: Option<u32>,
}

impl<'a> Merged<'a> {
    /// Merges the streams with their indices, which must come in the order of the trace.
    pub(crate) fn new(streams: impl Iterator<Item = (usize, &'a Stream)>) -> Self {
        let sources: Vec<_> = streams.map(|(index, stream)| (index, stream.events())).collect();
        let first = sources.iter().filter_map(|(_, events)| events.peek_clock_ns()).min();
        let mut waiting = Waiting::new(sources.len(), first.unwrap_or(0));
        for (source, (_, events)) in sources.iter().enumerate() {
            if let Some(clock_ns) = events.peek_clock_ns() {
                waiting.insert(clock_ns, source as u32);
            }
        }
        Merged { sources, waiting, last: None }
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = MergedEvent<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<MergedEvent<'a>> {
        if let Some(source) = self.last.take()
            && let Some(clock_ns) = self.sources[source as usize].1.peek_clock_ns()
        {
            self.waiting.insert(clock_ns, source);
        }
        let source = self.waiting.pop()?;
        self.last = Some(source);
        let (stream, events) = &mut self.sources[source as usize];
        let (file, event) = events.next()?;
        Some(MergedEvent { stream: *stream, file, event })
    }
}

/// Sources that wait with their next clock. A clock and its source are one number, the clock above: of 64 bits as long
/// as no clock is far from the first one (with 64 sources nine years), else of 128.
enum Waiting {
    Near { first: i64, source_bits: u32, heap: Heap<u64> },
    Far(Heap<u128>),
}

impl Waiting {
    fn new(sources: usize, first: i64) -> Waiting {
        let source_bits = usize::BITS - sources.leading_zeros();
        Waiting::Near { first, source_bits, heap: Heap::new(sources, (1 << source_bits) - 1) }
    }

    #[inline(always)]
    fn insert(&mut self, clock_ns: i64, source: u32) {
        if let Waiting::Near { first, source_bits, heap } = self {
            // A clock before the first one is as far as it gets.
            let since = clock_ns.wrapping_sub(*first) as u64;
            if since >> (u64::BITS - *source_bits) == 0 {
                return heap.insert(since << *source_bits | u64::from(source));
            }
        }
        self.insert_far(clock_ns, source);
    }

    #[cold]
    fn insert_far(&mut self, clock_ns: i64, source: u32) {
        if let Waiting::Near { first, source_bits, heap } = self {
            let widen = |entry: u64| {
                let clock_ns = first.wrapping_add((entry >> *source_bits) as i64);
                far(clock_ns, entry as u32 & heap.sources as u32)
            };
            // Each stays at its place.
            let waiting = heap.entries[..heap.length].iter().copied().map(widen);
            let mut entries: Vec<u128> = waiting.collect();
            entries.resize(heap.entries.len(), u128::MAX);
            *self = Waiting::Far(Heap { entries, length: heap.length, sources: u128::from(u32::MAX) });
        }
        if let Waiting::Far(heap) = self {
            heap.insert(far(clock_ns, source));
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<u32> {
        match self {
            Waiting::Near { heap, .. } => heap.pop().map(|entry| (entry & heap.sources) as u32),
            Waiting::Far(heap) => heap.pop().map(|entry| entry as u32),
        }
    }
}

/// An entry of 128 bits. Clocks compare as they do with their signs.
fn far(clock_ns: i64, source: u32) -> u128 {
    u128::from(clock_ns as u64 ^ 1 << 63) << u32::BITS | u128::from(source)
}

/// The heap. Padded so that every entry has two children: sinking needs no check for the end.
///
/// The distance that an entry rises or sinks cannot be predicted, and a misprediction costs the processor more than the
/// whole walk. So both walk to the end and select the remaining entry at every step, without a branch. Along a path
/// from the top, clocks do not fall, hence an entry is inserted into a path as into a sorted list.
struct Heap<N> {
    /// Behind the last one all bits are set: that is never strictly lower than another, so it changes no comparison.
    entries: Vec<N>,
    length: usize,
    /// The bits of the sources. A clock is strictly lower than another if its entry is with these set in it, or cleared
    /// in the other.
    sources: N,
}

impl<N> Heap<N>
where
    N: Copy + Ord + From<u32> + BitOr<Output = N> + BitAnd<Output = N> + Not<Output = N>,
{
    fn new(most: usize, sources: N) -> Heap<N> {
        Heap { entries: vec![!N::from(0); 2 * most + 2], length: 0, sources }
    }

    /// Adds an entry; it rises past strictly later ones.
    #[inline(always)]
    fn insert(&mut self, entry: N) {
        let mut index = self.length;
        self.length += 1;
        let entries = &mut self.entries[..];
        let last_of_clock = entry | self.sources;
        // The current occupant; at the end there is none, and the entry may take the place.
        let mut here = entry;
        while index > 0 {
            let above = entries[(index - 1) / 2];
            // A later occupant moves down by one place, and the entry takes the freed place.
            let stays = select_unpredictable(here > last_of_clock, entry, here);
            entries[index] = select_unpredictable(above > last_of_clock, above, stays);
            here = above;
            index = (index - 1) / 2;
        }
        entries[0] = select_unpredictable(here > last_of_clock, entry, here);
    }

    /// Takes the top; the last entry sinks from there past strictly earlier ones.
    #[inline(always)]
    fn pop(&mut self) -> Option<N> {
        self.length = self.length.checked_sub(1)?;
        let length = self.length;
        let entries = &mut self.entries[..];
        let top = entries[0];
        let last = std::mem::replace(&mut entries[length], !N::from(0));
        let first_of_clock = last & !self.sources;
        // The current occupant; at the top there is none any more, and the last entry may take the place.
        let mut here = last;
        let mut index = 0;
        let mut left = 1;
        while left < length {
            // The way follows the lower children, the left one on ties.
            let child = left + usize::from(entries[left + 1] | self.sources < entries[left]);
            let below = entries[child];
            let stays = select_unpredictable(here < first_of_clock, last, here);
            entries[index] = select_unpredictable(below < first_of_clock, below, stays);
            (here, index) = (below, child);
            left = 2 * index + 1;
        }
        let stays = select_unpredictable(here < first_of_clock, last, here);
        entries[index] = if length == 0 { !N::from(0) } else { stays };
        Some(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The heap as the module's text describes it, with nothing done for speed.
    #[derive(Default)]
    struct PlainHeap(Vec<(i64, u32)>);

    impl PlainHeap {
        fn insert(&mut self, entry: (i64, u32)) {
            self.0.push(entry);
            let mut index = self.0.len() - 1;
            while index > 0 && self.0[index].0 < self.0[(index - 1) / 2].0 {
                self.0.swap(index, (index - 1) / 2);
                index = (index - 1) / 2;
            }
        }

        fn pop(&mut self) -> Option<(i64, u32)> {
            let last = self.0.len().checked_sub(1)?;
            self.0.swap(0, last);
            let top = self.0.pop();
            let mut index = 0;
            loop {
                let mut lowest = index;
                for child in [2 * index + 1, 2 * index + 2] {
                    if child < self.0.len() && self.0[child].0 < self.0[lowest].0 {
                        lowest = child;
                    }
                }
                if lowest == index {
                    return top;
                }
                self.0.swap(index, lowest);
                index = lowest;
            }
        }
    }

    #[test]
    fn ties_are_in_the_order_of_the_plain_heap() {
        let mut random = 1u64;
        let mut dice = move |sides: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % sides
        };
        let counts = [1, 2, 3, 4, 5, 7, 8, 64, 100, 4096];
        // Clocks may begin anywhere, and may be far apart from some step on, or never.
        let begins = [0, -5, i64::MIN, 1 << 62];
        for (sources, begin) in counts.into_iter().flat_map(|count| begins.map(|begin| (count, begin))) {
            for far_from in [0, 3 * sources as u64 / 2, 10_000, u64::MAX] {
                let (mut plain, mut waiting) = (PlainHeap::default(), Waiting::new(sources, begin));
                let mut coming: Vec<(i64, u32)> = (0..sources as u32).map(|source| (begin, source)).collect();
                for step in 0..12_000 + 3 * sources as u64 {
                    if let Some((clock, source)) = coming.pop() {
                        // Few different clocks, so that most are ties.
                        let clock = match dice(500) {
                            0 if step >= far_from => i64::MAX,
                            1 if step >= far_from => i64::MIN,
                            _ => clock.saturating_add(dice(3) as i64),
                        };
                        plain.insert((clock, source));
                        waiting.insert(clock, source);
                    }
                    if step >= sources as u64 {
                        let popped = plain.pop();
                        let source = popped.map(|(_, source)| source);
                        assert_eq!(waiting.pop(), source, "{sources} sources from {begin}, step {step}");
                        // Now and then a stream ends.
                        coming.extend(popped.filter(|(clock, _)| *clock < i64::MAX && dice(5000) > 0));
                    }
                }
                let is_far = matches!(waiting, Waiting::Far(_));
                assert!(!is_far || far_from < u64::MAX, "{sources} sources from {begin}");
                assert!(is_far || far_from > 0 || sources < 64, "{sources} sources from {begin}");
            }
        }
    }
}
