//! Level of detail: many sections in one pixel, without losing rare ones.
//!
//! A [`Pyramid`] cuts a track's time into buckets with widths of powers of two nanoseconds. For every bucket with
//! many sections it keeps the exact time in each class, the number of sections, the longest of them, and [`Flags`]
//! for sections that must stay visible when zoomed out. Buckets with few sections are computed from the sections on
//! request. So a query of any zoom level takes time proportional to the number of requested buckets, however uneven
//! the sections, and every answer equals that of a walk over all sections.
//!
//! ```text
//! level   bucket width                 kept: ■   computed on request: ·
//!  k+2    4·2^k ns    ■───────────────────────────────────────────■
//!  k+1    2·2^k ns    ■─────────────────────·                      ■ (burst of sections)
//!  k        2^k ns    ■─────────·           ·                      ■────■
//! ```
//!
//! [`Timeline`] holds the pyramids of all threads of an execution and answers viewports.
//! [`Counter`] does the same for numbers: minimum, mean and maximum of every bucket.
//!
//! Measured with `cargo bench -p taskscope-testkit --bench viewport` (`docs/performance.md`).

mod counter;
mod long_waits;
mod marks;
mod off_times;
mod pyramid;
mod query;
mod steps;
mod timeline;

pub use counter::{Counter, CounterBucket};
pub use marks::Marks;
pub use off_times::OffTimes;
pub use pyramid::{FlagRules, Pyramid};
pub use steps::{CLASSES, NO_CLASS, Steps, Values};
pub use timeline::Timeline;

/// Facts that must stay visible in a bucket, however short.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// Holds a wait that is one of the longest of its kind, and exceptional.
    pub const LONG_WAIT: Flags = Flags(1);
    /// Events were lost here.
    pub const LOST: Flags = Flags(2);
    /// The trace does not determine the state here.
    pub const UNCERTAIN: Flags = Flags(4);
    /// Part of a finding's instance.
    pub const FINDING: Flags = Flags(8);
    /// Matches the search or filter.
    pub const MATCH: Flags = Flags(16);
    /// The operating system kept the thread off its CPU for a good part of it.
    pub const OFF_CPU: Flags = Flags(32);

    /// The union of both.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether it has all of `other`.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A row of buckets of one width, aligned to it: bucket `i` holds the nanoseconds from
/// `(first + i) << width_log2` to before `(first + i + 1) << width_log2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Number of the first bucket.
    pub first: u64,
    /// Number of buckets.
    pub count: u32,
    /// Logarithm to base two of the width in nanoseconds; at most 63.
    pub width_log2: u8,
}

impl Window {
    /// The widest buckets with at least `least` of them in `[start, end)`, and the fewest of them that cover
    /// it: at most `2 × least + 2`, unless the range has fewer nanoseconds.
    pub fn covering(start: u64, end: u64, least: u32) -> Window {
        let span = end.saturating_sub(start).max(1);
        let width = (span / u64::from(least.max(1))).max(1);
        let width_log2 = width.ilog2() as u8;
        let first = start >> width_log2;
        let last = end.max(start + 1).saturating_sub(1) >> width_log2;
        let count = u32::try_from(last - first + 1).unwrap_or(u32::MAX);
        Window { first, count, width_log2 }
    }

    /// First nanosecond.
    pub fn start(&self) -> u64 {
        edge(self.first, self.width_log2)
    }

    /// First nanosecond after it.
    pub fn end(&self) -> u64 {
        edge(self.first.saturating_add(u64::from(self.count)), self.width_log2)
    }
}

/// First nanosecond of a bucket; the end of time if there is none.
pub(crate) fn edge(bucket: u64, width_log2: u8) -> u64 {
    if bucket.leading_zeros() < u32::from(width_log2) { u64::MAX } else { bucket << width_log2 }
}

/// One bucket of a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The class with most time in the bucket, the lower one of equals; [`NO_CLASS`] if the track is empty here.
    pub class: u8,
    /// That class's share of the bucket's width, of 255.
    pub share_of_255: u8,
    /// Facts that must stay visible.
    pub flags: Flags,
    /// Sections that start in the bucket.
    pub starts: u32,
    /// Share of the bucket's width in which the state is uncertain, of 255; at least 1 if any is.
    pub uncertain_of_255: u8,
    /// Row of the section with the longest overlap, the earlier one of equals; `u32::MAX` of none.
    pub longest: u32,
}

impl Bucket {
    /// A bucket that a track does not reach.
    pub const EMPTY: Bucket = Bucket {
        class: NO_CLASS,
        share_of_255: 0,
        flags: Flags::NONE,
        starts: 0,
        uncertain_of_255: 0,
        longest: u32::MAX,
    };
}
