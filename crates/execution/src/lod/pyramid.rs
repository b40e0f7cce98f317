//! The kept buckets of one track, and how they are built.

use super::steps::{CLASSES, Rows, Steps, rows_of};
use super::{Flags, edge};
use crate::{Column, SharedBytes, Starts};
use std::hint::select_unpredictable;

/// A bucket is kept when more sections than this start in it. With 16, the kept buckets of evenly
/// spread sections take about 3 bytes a section, and 64 × 1600 buckets that are not kept are
/// computed in 2 ms.
const FEW: usize = 16;

/// Levels: widths of 2^0 to 2^63 ns.
const LEVELS: usize = 64;
const TOP: u8 = 63;
/// Columns that are stored.
const STORED: usize = 9;

/// Rules for flags of a pyramid: sections of a class of at least this duration.
#[derive(Clone, Debug)]
pub struct FlagRules {
    /// Nanoseconds from which on a section of the class is flagged [`Flags::LONG_WAIT`].
    pub long_ns: [u64; CLASSES],
    /// Flags of the class, for any length.
    pub always: [Flags; CLASSES],
}

impl Default for FlagRules {
    fn default() -> Self {
        FlagRules { long_ns: [u64::MAX; CLASSES], always: [Flags::NONE; CLASSES] }
    }
}

impl FlagRules {
    /// Whether the time of a class is uncertain.
    #[inline]
    pub(super) fn is_uncertain(&self, class: u8) -> bool {
        self.always[class as usize % CLASSES].has(Flags::UNCERTAIN)
    }

    #[inline]
    pub(super) fn of(&self, class: u8, ns: u64) -> Flags {
        let class = class as usize % CLASSES;
        let long = if ns >= self.long_ns[class] { Flags::LONG_WAIT } else { Flags::NONE };
        self.always[class].with(long)
    }
}

/// The kept buckets of a track: columns, one row per bucket, levels one after the other from narrow
/// to wide, buckets of a level in time order.
#[derive(Clone, Debug, Default)]
pub struct Pyramid {
    /// Begin of each level in the columns; `LEVELS + 1` entries.
    pub(super) level_begin: Column<u32>,
    /// Number of the bucket in its level.
    pub(super) bucket: Column<u64>,
    /// First section that starts in it.
    pub(super) first_row: Column<u32>,
    /// Sections that start in it.
    pub(super) starts: Column<u32>,
    /// Section with the longest overlap.
    pub(super) longest: Column<u32>,
    /// Flags.
    pub(super) flags: Column<u8>,
    /// Begin of its shares in the two columns below; one entry more than buckets.
    pub(super) shares_begin: Column<u32>,
    /// Class of a share, rising within a bucket.
    pub(super) share_class: Column<u8>,
    /// Nanoseconds of it.
    pub(super) share_ns: Column<u64>,
    pub(super) rules: FlagRules,
}

impl Pyramid {
    /// Builds the pyramid of a track.
    pub fn build(track: &impl Steps, rules: &FlagRules) -> Pyramid {
        let rows = rows_of(track);
        let starts = rows.starts;
        let levels = (0..LEVELS).map(|_| Level::default()).collect();
        let mut builder = Builder { rows, rules, levels, sums: vec![Sum::new(); LEVELS + 1] };
        if let (Some(first), Some(last)) = (starts.get(0), track.end().checked_sub(1))
            && last >= first
        {
            // From the widest level down, so that any width can be requested.
            for bucket in (first >> TOP)..=(last >> TOP) {
                let low = starts.partition_point(|start| start < edge(bucket, TOP));
                let high = starts.partition_point(|start| start < edge(bucket + 1, TOP));
                builder.visit(bucket, TOP, low, high);
            }
        }
        builder.finish()
    }

    /// One that keeps no bucket: it answers the same by walking over the sections.
    pub fn without_buckets(rules: &FlagRules) -> Pyramid {
        Pyramid { rules: rules.clone(), ..Pyramid::default() }
    }

    /// Its columns as bytes, in a fixed order, for storage; [`from_stored`](Self::from_stored) reads them.
    pub fn stored(&self) -> [&[u8]; STORED] {
        [
            self.level_begin.as_bytes(),
            self.bucket.as_bytes(),
            self.first_row.as_bytes(),
            self.starts.as_bytes(),
            self.longest.as_bytes(),
            self.flags.as_bytes(),
            self.shares_begin.as_bytes(),
            self.share_class.as_bytes(),
            self.share_ns.as_bytes(),
        ]
    }

    /// A pyramid of stored columns in `bytes`; `None` if they are inconsistent.
    pub fn from_stored(
        bytes: &SharedBytes,
        at: &[std::ops::Range<usize>; STORED],
        rules: &FlagRules,
    ) -> Option<Pyramid> {
        let pyramid = Pyramid {
            level_begin: Column::shared(bytes, at[0].clone())?,
            bucket: Column::shared(bytes, at[1].clone())?,
            first_row: Column::shared(bytes, at[2].clone())?,
            starts: Column::shared(bytes, at[3].clone())?,
            longest: Column::shared(bytes, at[4].clone())?,
            flags: Column::shared(bytes, at[5].clone())?,
            shares_begin: Column::shared(bytes, at[6].clone())?,
            share_class: Column::shared(bytes, at[7].clone())?,
            share_ns: Column::shared(bytes, at[8].clone())?,
            rules: rules.clone(),
        };
        let rows = pyramid.bucket.len();
        let equal =
            [pyramid.first_row.len(), pyramid.starts.len(), pyramid.longest.len(), pyramid.flags.len()];
        let sound = equal.iter().all(|length| *length == rows)
            && pyramid.level_begin.len() == LEVELS + 1
            && pyramid.level_begin.is_sorted()
            && pyramid.level_begin.last() == Some(&(rows as u32))
            && pyramid.shares_begin.len() == rows + 1
            && pyramid.share_class.len() == pyramid.share_ns.len()
            && pyramid.shares_begin.last().is_some_and(|end| *end as usize == pyramid.share_ns.len());
        sound.then_some(pyramid)
    }

    /// Its rules for flags.
    pub fn rules(&self) -> &FlagRules {
        &self.rules
    }

    /// Number of kept buckets.
    pub fn len(&self) -> usize {
        self.bucket.len()
    }

    /// Whether no bucket is kept: the track has few sections.
    pub fn is_empty(&self) -> bool {
        self.bucket.is_empty()
    }

    /// Memory of its columns, in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * (8 + 4 + 4 + 4 + 1 + 4) + self.share_class.len() * (1 + 8)
    }

    /// The kept buckets of a level, as rows of the columns.
    pub(super) fn level(&self, width_log2: u8) -> std::ops::Range<usize> {
        match (self.level_begin.get(width_log2 as usize), self.level_begin.get(width_log2 as usize + 1)) {
            (Some(begin), Some(end)) => *begin as usize..*end as usize,
            _ => 0..0,
        }
    }

    /// Exact nanoseconds by class of all kept buckets.
    pub(super) fn shares(&self) -> Shares<'_> {
        Shares { begin: &self.shares_begin, class: &self.share_class, ns: &self.share_ns }
    }
}

/// The time by class of kept buckets, looked up once for many of them.
pub(super) struct Shares<'a> {
    begin: &'a [u32],
    class: &'a [u8],
    ns: &'a [u64],
}

impl Shares<'_> {
    /// Exact nanoseconds by class in a kept bucket.
    pub(super) fn of(&self, row: usize) -> impl Iterator<Item = (u8, u64)> + '_ {
        let range = self.begin[row] as usize..self.begin[row + 1] as usize;
        self.class[range.clone()].iter().copied().zip(self.ns[range].iter().copied())
    }
}

/// Sums of a bucket while it is built or computed.
#[derive(Clone)]
pub(super) struct Sum {
    ns: [u64; CLASSES],
    /// One bit for each class with time, so that few classes cost little.
    seen: u64,
    pub flags: Flags,
    pub starts: u32,
    /// Row and length of the longest overlap.
    pub longest: (u32, u64),
}

impl Sum {
    pub(super) fn new() -> Sum {
        Sum { ns: [0; CLASSES], seen: 0, flags: Flags::NONE, starts: 0, longest: (u32::MAX, 0) }
    }

    pub(super) fn clear(&mut self) {
        while self.seen != 0 {
            self.ns[self.seen.trailing_zeros() as usize] = 0;
            self.seen &= self.seen - 1;
        }
        (self.flags, self.starts, self.longest) = (Flags::NONE, 0, (u32::MAX, 0));
    }

    #[inline]
    pub(super) fn add(&mut self, class: u8, ns: u64) {
        let class = class as usize % CLASSES;
        self.ns[class] += ns;
        self.seen |= 1 << class;
    }

    /// Adds the sums of another bucket.
    fn join(&mut self, other: &Sum) {
        other.shares().for_each(|(class, ns)| self.add(class, ns));
        self.flags = self.flags.with(other.flags);
        self.starts += other.starts;
        self.see(other.longest.0, other.longest.1);
    }

    /// Classes with their nanoseconds, rising.
    pub(super) fn shares(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let mut left = self.seen;
        std::iter::from_fn(move || {
            let class = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some((class as u8, self.ns[class as usize]))
        })
    }

    /// Adds the overlap with `[from, to)` of the rows from `first` on, before which none starts in it, and of the one
    /// before them, which may reach into it. Gives the first row that starts later.
    #[inline]
    pub(super) fn walk(
        &mut self,
        track: &Rows<impl Starts, impl Fn(usize) -> u8>,
        rules: &FlagRules,
        first: usize,
        from: u64,
        to: u64,
    ) -> usize {
        let next = track.overlaps(first, from, to, |row, length, ns| {
            let class = (track.class)(row);
            self.add(class, ns);
            self.flags = self.flags.with(rules.of(class, length));
            self.see(row as u32, ns);
        });
        self.starts += (next - first) as u32;
        next
    }

    /// Offers a row as the longest; the earlier one of equals wins.
    fn see(&mut self, row: u32, ns: u64) {
        let longer = (ns > self.longest.1) | ((ns == self.longest.1) & (row < self.longest.0));
        self.longest = select_unpredictable(longer, (row, ns), self.longest);
    }
}

#[derive(Default)]
struct Level {
    bucket: Vec<u64>,
    first_row: Vec<u32>,
    starts: Vec<u32>,
    longest: Vec<u32>,
    flags: Vec<u8>,
    shares: Vec<u32>,
    share_class: Vec<u8>,
    share_ns: Vec<u64>,
}

struct Builder<'a, S, C> {
    rows: Rows<S, C>,
    rules: &'a FlagRules,
    levels: Vec<Level>,
    /// One for each level: a bucket is summed up before the next one of its level is begun.
    sums: Vec<Sum>,
}

impl<S: Starts, C: Fn(usize) -> u8> Builder<'_, S, C> {
    /// Adds a bucket with sections that start in rows `low..high` to the sum of the level above; keeps it if they are
    /// many.
    fn visit(&mut self, bucket: u64, level: u8, low: usize, high: usize) {
        let (from, to) = (edge(bucket, level), edge(bucket.saturating_add(1), level));
        let above = usize::from(level) + 1;
        if high - low <= FEW || level == 0 {
            self.sums[above].walk(&self.rows, self.rules, low, from, to);
            return;
        }
        let middle = edge(2 * bucket + 1, level - 1);
        let split = self.rows.starts.partition_point_in(low..high, |start| start < middle);
        self.sums[above - 1].clear();
        self.visit(2 * bucket, level - 1, low, split);
        self.visit(2 * bucket + 1, level - 1, split, high);
        let (sums, wider) = self.sums.split_at_mut(above);
        let (sum, wider) = (&mut sums[above - 1], &mut wider[0]);
        // Only the section over the middle is in both halves.
        if let Some(over) = split.checked_sub(1) {
            let (start, end) = (self.rows.starts.at(over).max(from), self.rows.end_of(over).min(to));
            if start < middle && end > middle {
                sum.see(over as u32, end - start);
            }
        }
        self.levels[usize::from(level)].push(bucket, low, sum);
        wider.join(sum);
    }

    fn finish(self) -> Pyramid {
        let (buckets, shares) = self.levels.iter().fold((0, 0), |(buckets, shares), level| {
            (buckets + level.bucket.len(), shares + level.share_ns.len())
        });
        let mut all = Level::with_capacity(buckets, shares);
        let mut level_begin = vec![0];
        let mut shares_begin = Vec::with_capacity(buckets + 1);
        shares_begin.push(0);
        for level in self.levels {
            let before = all.share_class.len() as u32;
            all.bucket.extend(level.bucket);
            all.first_row.extend(level.first_row);
            all.starts.extend(level.starts);
            all.longest.extend(level.longest);
            all.flags.extend(level.flags);
            shares_begin.extend(level.shares.into_iter().map(|end| before + end));
            all.share_class.extend(level.share_class);
            all.share_ns.extend(level.share_ns);
            level_begin.push(all.bucket.len() as u32);
        }
        Pyramid {
            level_begin: level_begin.into(),
            bucket: all.bucket.into(),
            first_row: all.first_row.into(),
            starts: all.starts.into(),
            longest: all.longest.into(),
            flags: all.flags.into(),
            shares_begin: shares_begin.into(),
            share_class: all.share_class.into(),
            share_ns: all.share_ns.into(),
            rules: self.rules.clone(),
        }
    }
}

impl Level {
    fn with_capacity(buckets: usize, shares: usize) -> Level {
        Level {
            bucket: Vec::with_capacity(buckets),
            first_row: Vec::with_capacity(buckets),
            starts: Vec::with_capacity(buckets),
            longest: Vec::with_capacity(buckets),
            flags: Vec::with_capacity(buckets),
            shares: Vec::new(),
            share_class: Vec::with_capacity(shares),
            share_ns: Vec::with_capacity(shares),
        }
    }

    fn push(&mut self, bucket: u64, first_row: usize, sum: &Sum) {
        self.bucket.push(bucket);
        self.first_row.push(first_row as u32);
        self.starts.push(sum.starts);
        self.longest.push(sum.longest.0);
        self.flags.push(sum.flags.0);
        for (class, ns) in sum.shares() {
            self.share_class.push(class);
            self.share_ns.push(ns);
        }
        self.shares.push(self.share_class.len() as u32);
    }
}
