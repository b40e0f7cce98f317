//! Input and output of the core.

use std::fmt;

/// A queue of a device; numbered by [`Reorder::add_queue`](crate::Reorder::add_queue).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueIndex(pub u32);

/// Guaranteed order of a queue's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// Operations run one after the other, by sequence.
    InOrder,
    /// Operations run in any order, and at the same time.
    OutOfOrder,
}

/// The caller's data, returned with the record; the core does not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The vendor's id.
    pub id: u64,
    /// Bytes moved, or any other number.
    pub amount: u64,
    /// Kind, name, or any other small number.
    pub what: u32,
}

/// An operation is about to be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its queue.
    pub queue: QueueIndex,
    /// Its number in the queue, from 0.
    pub seq: u64,
    /// The submitting thread.
    pub thread: u32,
    /// Time of its submission, in the host's clock; returned unchanged.
    pub append: u64,
    /// Lower bound of its start, in the clock of the stamps; 0 if unknown.
    pub earliest_start: u64,
    /// Given back at release.
    pub detail: Detail,
}

/// An operation has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its queue.
    pub queue: QueueIndex,
    /// Its number in the queue.
    pub seq: u64,
    /// When the driver passed it to the device; 0 if not known.
    pub submit: u64,
    /// When it began; 0 if not known.
    pub start: u64,
    /// When it ended; 0 if not known.
    pub end: u64,
}

/// A set of things that are wrong with a record. Values are kept as they came.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Anomalies(pub u32);

impl Anomalies {
    /// No anomaly.
    pub const NONE: Anomalies = Anomalies(0);
    /// A start or end of zero: unknown to the vendor.
    pub const UNTIMED: Anomalies = Anomalies(1);
    /// The end is before the start.
    pub const END_BEFORE_START: Anomalies = Anomalies(2);
    /// On an in-order queue: it starts before an earlier operation ends. Sorting cannot repair this;
    /// it is an error of the clock or its mapping.
    pub const OVERLAP: Anomalies = Anomalies(4);
    /// It starts at or before its submission.
    pub const START_NOT_AFTER_SUBMIT: Anomalies = Anomalies(8);
    /// It starts before its lower bound.
    pub const START_BEFORE_APPEND: Anomalies = Anomalies(16);
    /// It starts before a record that was released earlier.
    pub const START_GOES_BACK: Anomalies = Anomalies(32);
    /// It was never appended.
    pub const UNANNOUNCED: Anomalies = Anomalies(64);
    /// It arrived after it had been declared lost.
    pub const AFTER_LOST: Anomalies = Anomalies(128);

    const NAMES: [(Anomalies, &'static str); 8] = [
        (Anomalies::UNTIMED, "untimed"),
        (Anomalies::END_BEFORE_START, "end-before-start"),
        (Anomalies::OVERLAP, "overlap"),
        (Anomalies::START_NOT_AFTER_SUBMIT, "start-not-after-submit"),
        (Anomalies::START_BEFORE_APPEND, "start-before-append"),
        (Anomalies::START_GOES_BACK, "start-goes-back"),
        (Anomalies::UNANNOUNCED, "unannounced"),
        (Anomalies::AFTER_LOST, "after-lost"),
    ];

    /// Whether all of `other` is in it.
    pub const fn contains(self, other: Anomalies) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the anomalies of `other`.
    pub fn add(&mut self, other: Anomalies) {
        self.0 |= other.0;
    }

    /// Stable names of its anomalies, as in `--json`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| name)
    }
}

impl fmt::Debug for Anomalies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A record in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Its queue.
    pub queue: QueueIndex,
    /// Its number in the queue.
    pub seq: u64,
    /// The submitting thread.
    pub thread: u32,
    /// The lane of the queue in which it overlaps nothing; `None` without usable times.
    pub lane: Option<u32>,
    /// From the notice.
    pub append: u64,
    /// From the completion.
    pub submit: u64,
    /// From the completion.
    pub start: u64,
    /// From the completion.
    pub end: u64,
    /// From the notice.
    pub detail: Detail,
    /// Its anomalies.
    pub anomalies: Anomalies,
    /// Its start's distance before the end of an earlier arrival that comes after it; 0 for a record in its
    /// place.
    pub late_by: u64,
}

/// Output of the core, in writing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A record in its place.
    Released(Released),
    /// An appended operation of which no record will be waited for any more.
    Lost {
        /// Its queue.
        queue: QueueIndex,
        /// Its number in the queue.
        seq: u64,
        /// The submitting thread.
        thread: u32,
        /// When it was submitted.
        append: u64,
        /// From the notice.
        detail: Detail,
    },
    /// A record of an operation that had been declared lost. Not in place; not counted as delivered.
    Late(Released),
    /// A further record of an operation that has ended already.
    Duplicate(Completion),
}
