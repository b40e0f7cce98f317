//! The collector of Kokkos Tools: kernels, regions, copies and memory of Kokkos, by label.
//!
//! Kokkos loads the library that `KOKKOS_TOOLS_LIBS` names, looks up functions with the prefix `kokkosp_`
//! (`functions`), and calls them on the thread that calls Kokkos.
//!
//! | Kokkos | recorded as ([`taskscope_record::instrument`]) |
//! | --- | --- |
//! | `parallel_for`, `parallel_reduce`, `parallel_scan` | a state `LABEL [parallel_for]` on the thread's stack of states; class useful |
//! | region | a state `LABEL [region]`; class useful |
//! | deep copy | a state `TO <- FROM [deep_copy]` of class communication; a point with its bytes on the key of the two spaces |
//! | fence | a state `LABEL [fence]` of class synchronisation |
//! | section | a burst on the key `LABEL [section]` |
//! | event | a point on the key `LABEL [event]` |
//! | allocation, deallocation | a point on the key `Kokkos memory in SPACE`, with the bytes allocated there from now on |
//!
//! **Labels.** A kernel without a label has the name of its functor's type, demangled. Labels are found by content
//! (`names`), as Kokkos passes them at temporary addresses. Readers name the parallel regions in a kernel after it.
//!
//! **Ends.** Kernels and fences end by their number, which is unique in the process; regions and copies end innermost
//! first.
//!
//! **The program's timing.** Tools may demand a fence around each kernel. This one declines, so the program runs as without
//! it; a kernel on an asynchronous device is then the time of its launch, and device records show its execution.
//!
//! **Not recorded.** Metadata, dual views, tuning.

mod functions;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

use taskscope_record::instrument::{Class, Level, named};

use crate::cached::Cached;
use crate::names::{Names, Numbered, Numbers, Scope};
use crate::overlapped;
use crate::stack::{self, Recorded, StateKind};
use crate::text::{Buffer, demangled_type};

/// Whether the process records.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Labels, spaces and pairs of them.
static LABELS: Names<16_384> = Names::new();

/// The use of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    For,
    Reduce,
    Scan,
    Region,
    Copy,
    Fence,
    Section,
    Event,
    Memory,
    CopiedBytes,
}

impl Use {
    const COUNT: usize = 10;

    fn word(self) -> &'static str {
        match self {
            Use::For => "parallel_for",
            Use::Reduce => "parallel_reduce",
            Use::Scan => "parallel_scan",
            Use::Region => "region",
            Use::Copy | Use::CopiedBytes => "deep_copy",
            Use::Fence => "fence",
            Use::Section => "section",
            Use::Event => "event",
            Use::Memory => "memory",
        }
    }

    fn class(self) -> Class {
        match self {
            Use::Copy => Class::Communication,
            Use::Fence => Class::Synchronisation,
            _ => Class::Useful,
        }
    }

    fn scope(self) -> Scope {
        [self as u64, 0]
    }

    /// The dictionary's number of a label in this use, asked for at its first event.
    fn ask(self, label: &[u8]) -> Option<u32> {
        let shown = match self {
            Use::For | Use::Reduce | Use::Scan => shown_kernel(label),
            _ => label.to_owned(),
        };
        let name = match self {
            Use::Memory => [b"Kokkos memory in ", &*shown].concat(),
            _ => [&*shown, b" [", self.word().as_bytes(), b"]"].concat(),
        };
        let level = Level::User as u32;
        match self {
            Use::Section => named::key_of(&name, b"section of Kokkos", level, b"", true),
            Use::Event => named::key(&name, b"event of Kokkos", level),
            Use::Memory => named::key_of(&name, b"bytes allocated by Kokkos", level, b"bytes", false),
            Use::CopiedBytes => named::key_of(&name, b"bytes copied by Kokkos", level, b"bytes", false),
            _ => named::state(&name, b"reported through Kokkos Tools", self.class() as u32),
        }
    }

    /// The number of a label; that of the name `other labels` if there are too many.
    fn number(self, label: &[u8]) -> Option<u32> {
        static OTHERS: [Cached; Use::COUNT] = [const { Cached::new() }; Use::COUNT];
        match LABELS.find(self.scope(), label) {
            Some((numbers, label)) => numbers.number.number(|| self.ask(label)),
            None => OTHERS.get(self as usize)?.number(|| self.ask(b"other labels")),
        }
    }
}

/// The label of a kernel as shown. Without one Kokkos passes the functor's type, and after a slash that of the tag, both
/// mangled in its older versions.
fn shown_kernel(label: &[u8]) -> Vec<u8> {
    let parts = label.split(|byte| *byte == b'/');
    let shown: Vec<Vec<u8>> =
        parts.map(|part| demangled_type(part).unwrap_or_else(|| part.to_owned())).collect();
    shown.join(&b'/')
}

/// Starts recording what Kokkos reports.
pub fn start() {
    IS_ON.store(true, Release);
}

fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// A number that no other kernel or fence has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Begins a kernel or fence; returns its number.
fn begin(kind: StateKind, used: Use, label: &[u8]) -> u64 {
    let number = next_number();
    if is_on() {
        stack::begin(kind, number as usize, || Recorded::state(used.number(label)));
    }
    number
}

fn end(kind: StateKind, number: u64) {
    stack::end(kind, number as usize);
}

fn push_region(label: &[u8]) {
    if is_on() {
        stack::begin(StateKind::Region, 0, || Recorded::state(Use::Region.number(label)));
    }
}

fn pop_region() {
    stack::end(StateKind::Region, 0);
}

/// One end of a copy.
struct Side<'a> {
    space: &'a [u8],
    label: &'a [u8],
}

fn begin_copy(to: &Side, from: &Side, bytes: u64) {
    if !is_on() {
        return;
    }
    let spaces = Buffer::of(&[to.space, b" <- ", from.space]);
    if let Some(key) = Use::CopiedBytes.number(spaces.bytes()) {
        named::point(key, bytes);
    }
    let labels = Buffer::of(&[to.label, b" <- ", from.label]);
    stack::begin(StateKind::Copy, 0, || Recorded::state(Use::Copy.number(labels.bytes())));
}

fn end_copy() {
    stack::end(StateKind::Copy, 0);
}

/// Counts bytes that a space has more, or less, as a number in two's complement.
fn change_memory(space: &[u8], difference: u64) {
    if !is_on() {
        return;
    }
    let Some((numbers, space)) = LABELS.find(Use::Memory.scope(), space) else { return };
    let total = numbers.total.fetch_add(difference, Relaxed).wrapping_add(difference);
    if let Some(key) = numbers.number.number(|| Use::Memory.ask(space)) {
        named::point(key, total);
    }
}

fn event(label: &[u8]) {
    if is_on()
        && let Some(key) = Use::Event.number(label)
    {
        named::point(key, 1);
    }
}

/// Maximum number of sections with different labels.
const MAX_SECTIONS: usize = 4_096;

/// A section's label.
struct Section {
    label: &'static [u8],
    numbers: &'static Numbers,
}

static SECTIONS: Numbered<Section, MAX_SECTIONS> = Numbered::new();

/// The number of the section with this label; 0 without room.
fn section(label: &[u8]) -> u32 {
    let Some((numbers, label)) = LABELS.find(Use::Section.scope(), label) else { return 0 };
    match numbers.total.load(Relaxed) {
        0 => {
            let number = SECTIONS.add(Section { label, numbers });
            numbers.total.store(u64::from(number), Relaxed);
            number
        }
        known => known as u32,
    }
}

fn start_section(number: u32) {
    let Some(section) = SECTIONS.get(number).filter(|_| is_on()) else { return };
    if let Some(key) = section.numbers.number.number(|| Use::Section.ask(section.label)) {
        overlapped::begin((overlapped::IntervalKind::Section, [u64::from(number), 0, 0]), key, 1);
    }
}

fn stop_section(number: u32) {
    overlapped::end((overlapped::IntervalKind::Section, [u64::from(number), 0, 0]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_one_label_are_one() {
        let first = section(b"output");
        assert_eq!(section(b"output"), first);
        assert_ne!(section(b"input"), first);
        assert_eq!(SECTIONS.get(first).map(|section| section.label), Some(&b"output"[..]));
        assert!(SECTIONS.get(0).is_none() && SECTIONS.get(u32::MAX).is_none());
    }

    #[test]
    fn numbers_of_kernels_are_unique_before_recording_starts() {
        let numbers = [1, 2, 3].map(|_| begin(StateKind::Kernel, Use::For, b"advect"));
        assert!(numbers.is_sorted_by(|a, b| a < b));
        numbers.into_iter().for_each(|number| end(StateKind::Kernel, number));
    }
}
