//! Many threads' events in one total order, ties included, exactly as ovni plays them.
//!
//! ovni keeps the waiting streams in a binary min-heap over their next clocks, as a plain array:
//! an entry rises only past strictly later parents; removal moves the last entry to the top and
//! lets it sink, the left child compared before the right, again strictly. The stream that gave the
//! last event is put back first, then the top is taken. So on equal clocks the order is that of the
//! heap's shape, which this file reproduces; nothing else would give `ovnidump`'s order.

use crate::decode::Event;
use crate::stream::{File, Stream, ThreadEvents};

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
        let mut heap = Heap::default();
        let sources: Vec<_> = streams.map(|(index, stream)| (index, stream.events())).collect();
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

    #[inline]
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

#[derive(Default)]
struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mut index = self.entries.len();
        self.entries.push(entry);
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.entries[parent].clock_ns <= entry.clock_ns {
                break;
            }
            self.entries[index] = self.entries[parent];
            index = parent;
        }
        self.entries[index] = entry;
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        let last = self.entries.pop()?;
        let Some(&top) = self.entries.first() else { return Some(last) };
        let entries = &mut self.entries[..];
        let mut index = 0;
        loop {
            let left = 2 * index + 1;
            if left >= entries.len() {
                break;
            }
            // The lower child; the left one on ties, and only if it is strictly below `last`.
            let right = left + 1;
            let child = if right < entries.len() && entries[right].clock_ns < entries[left].clock_ns {
                right
            } else {
                left
            };
            if entries[child].clock_ns >= last.clock_ns {
                break;
            }
            entries[index] = entries[child];
            index = child;
        }
        entries[index] = last;
        Some(top)
    }
}
