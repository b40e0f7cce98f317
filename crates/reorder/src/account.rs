//! Counts that must add up.

/// Counts of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Operations that were announced, and those that came unannounced.
    pub appended: u64,
    /// Records released, with usable times or without.
    pub delivered: u64,
    /// Operations with a failed submission.
    pub cancelled: u64,
    /// Operations that were declared lost.
    pub lost: u64,
    /// Delivered records without usable times.
    pub untimed: u64,
    /// Further records of operations that had ended already; not delivered.
    pub duplicates: u64,
    /// Records that came after their operation was declared lost.
    pub late: u64,
    /// Records of operations that were never announced; delivered.
    pub unannounced: u64,
    /// Duplicate notices, cancellations of ended operations, and records with implausible sequences.
    pub refused: u64,
    /// Records that arrived after a record that comes after them.
    pub out_of_place: u64,
    /// Maximum lateness of such a record: from its start to the latest end that arrived before.
    pub worst_late: u64,
    /// Arrivals that start before the arrival just before them.
    pub inversions: u64,
    /// Released records that start before an earlier operation of an in-order queue ends.
    pub overlaps: u64,
    /// The longest such overlap.
    pub worst_overlap: u64,
    /// Released records with any anomaly.
    pub anomalous: u64,
    /// The most records that waited for another one at one time, in memory or on disk.
    pub held_peak: u64,
    /// Records that waited on disk.
    pub spilled: u64,
    /// Lanes used.
    pub lanes: u32,
}

impl Account {
    /// Whether every appended operation has ended exactly once.
    pub fn adds_up(&self) -> bool {
        self.appended == self.delivered + self.cancelled + self.lost
    }
}

/// Counts of all queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sum of [`Account::appended`].
    pub appended: u64,
    /// Sum of [`Account::delivered`].
    pub delivered: u64,
    /// Sum of [`Account::cancelled`].
    pub cancelled: u64,
    /// Sum of [`Account::lost`].
    pub lost: u64,
    /// The most records that waited in memory at one time.
    pub held_in_memory_peak: u64,
    /// Times that the disk refused a page.
    pub spill_failures: u64,
}
