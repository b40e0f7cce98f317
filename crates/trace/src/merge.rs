//! Many threads' events in one total order, ties included, exactly as ovni plays them.
//!
//! ovni keeps the waiting streams in a binary min-heap over their next clocks, as a plain array:
//! an entry rises only past strictly later parents; removal moves the last entry to the top and
//! lets it sink, the left child compared before the right, again strictly. The stream that gave the
//! last event is put back first, then the top is taken. So on equal clocks the order is that of the
//! heap's shape, which this file reproduces; nothing else would give `ovnidump`'s order.
//!
//! Who needs the order of few events only takes [`Turns`](crate::Turns).

use crate::decode::Event;
use crate::stream::{File, Stream, ThreadEvents};
use std::hint::select_unpredictable;

/// An event with its place in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedEvent<'a> {
    /// Index of the stream in [`Trace::streams`](crate::Trace::streams).
    pub stream: usize,
    /// Which of its files.
    pub file: File,
    /// The event.
    pub event: Event<'a>,
}

/// Iterator over the events of several streams in the total order.
pub struct Merged<'a> {
    sources: Vec<(usize, ThreadEvents<'a>)>,
    heap: Heap,
    /// The source that gave the last event and must be put back.
    last: Option<u32>,
}

impl<'a> Merged<'a> {
    /// Merges the streams with their indices, which must come in the order of the trace.
    pub(crate) fn new(streams: impl Iterator<Item = (usize, &'a Stream)>) -> Self {
        let sources: Vec<_> = streams.map(|(index, stream)| (index, stream.events())).collect();
        let mut heap = Heap::with_capacity(sources.len());
        for (source, (_, events)) in sources.iter().enumerate() {
            if let Some(clock_ns) = events.peek_clock_ns() {
                heap.insert(Entry { clock_ns, source: source as u32 });
            }
        }
        Merged { sources, heap, last: None }
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = MergedEvent<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<MergedEvent<'a>> {
        if let Some(source) = self.last.take()
            && let Some(clock_ns) = self.sources[source as usize].1.peek_clock_ns()
        {
            self.heap.insert(Entry { clock_ns, source });
        }
        let source = self.heap.pop()?.source;
        self.last = Some(source);
        let (stream, events) = &mut self.sources[source as usize];
        let (file, event) = events.next()?;
        Some(MergedEvent { stream: *stream, file, event })
    }
}

#[derive(Clone, Copy)]
struct Entry {
    clock_ns: i64,
    source: u32,
}

/// Behind the last entry: never strictly lower than another, so it changes no comparison.
const NOTHING: Entry = Entry { clock_ns: i64::MAX, source: u32::MAX };

/// The heap. Padded so that every entry has two children: sinking asks nothing about the end.
///
/// How far an entry rises or sinks cannot be foretold, and a wrong guess costs the processor more than
/// the whole walk. So both walk to the end and choose at every step, without a branch, what stays there:
/// along a way from the top clocks do not fall, hence an entry is put into a way as into a sorted list.
struct Heap {
    entries: Vec<Entry>,
    length: usize,
}

impl Heap {
    fn with_capacity(sources: usize) -> Heap {
        Heap { entries: vec![NOTHING; 2 * sources + 2], length: 0 }
    }

    /// Adds an entry; it rises past strictly later ones.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mut index = self.length;
        self.length += 1;
        let entries = &mut self.entries[..];
        // What lies here; at the end nothing does, and the entry may.
        let mut here = entry;
        while index > 0 {
            let above = entries[(index - 1) / 2];
            // What is later than the entry moves down by one place, and the entry takes the place that this frees.
            let stays = choose(here.clock_ns > entry.clock_ns, entry, here);
            entries[index] = choose(above.clock_ns > entry.clock_ns, above, stays);
            here = above;
            index = (index - 1) / 2;
        }
        entries[0] = choose(here.clock_ns > entry.clock_ns, entry, here);
    }

    /// Takes the top; the last entry sinks from there past strictly earlier ones.
    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        self.length = self.length.checked_sub(1)?;
        let length = self.length;
        let entries = &mut self.entries[..];
        let top = entries[0];
        let last = std::mem::replace(&mut entries[length], NOTHING);
        // What lies here; at the top nothing does any more, and the last entry may.
        let mut here = last;
        let mut index = 0;
        let mut left = 1;
        while left < length {
            // The way follows the lower children, the left one on ties.
            let child = left + usize::from(entries[left + 1].clock_ns < entries[left].clock_ns);
            let below = entries[child];
            let stays = choose(here.clock_ns < last.clock_ns, last, here);
            entries[index] = choose(below.clock_ns < last.clock_ns, below, stays);
            (here, index) = (below, child);
            left = 2 * index + 1;
        }
        let stays = choose(here.clock_ns < last.clock_ns, last, here);
        entries[index] = if length == 0 { NOTHING } else { stays };
        Some(top)
    }
}

/// One of two entries, without a branch.
#[inline(always)]
fn choose(first: bool, one: Entry, other: Entry) -> Entry {
    Entry {
        clock_ns: select_unpredictable(first, one.clock_ns, other.clock_ns),
        source: select_unpredictable(first, one.source, other.source),
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
    fn ties_come_in_the_order_of_the_plain_heap() {
        let mut random = 1u64;
        let mut dice = move |sides: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % sides
        };
        for sources in [1, 2, 3, 4, 5, 7, 8, 64, 100, 4096] {
            let (mut plain, mut heap) = (PlainHeap::default(), Heap::with_capacity(sources));
            let mut waiting: Vec<(i64, u32)> = (0..sources as u32).map(|source| (0, source)).collect();
            for step in 0..20_000 + 3 * sources as i64 {
                if let Some((clock, source)) = waiting.pop() {
                    // Few different clocks, so that most are ties; some at the very end of time.
                    let clock = if dice(500) == 0 { i64::MAX } else { (clock + dice(3) as i64).max(clock) };
                    plain.insert((clock, source));
                    heap.insert(Entry { clock_ns: clock, source });
                }
                if step >= sources as i64 {
                    let popped = heap.pop().map(|entry| (entry.clock_ns, entry.source));
                    assert_eq!(popped, plain.pop(), "{sources} sources, step {step}");
                    // Now and then a stream ends.
                    waiting.extend(popped.filter(|(clock, _)| *clock < i64::MAX - 3 && dice(5000) > 0));
                }
            }
        }
    }
}
