//! Counts of events that do not fit what is known.

use crate::change::Anomaly;
use crate::ids::ThreadIndex;
use std::collections::BTreeMap;

/// Number of occurrences, largest value, and the first occurrence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of occurrences.
    pub count: u64,
    /// The largest, in nanoseconds.
    pub max_ns: u64,
    /// Thread and time of the first, if known.
    pub first: Option<(ThreadIndex, u64)>,
}

impl Tally {
    pub(crate) fn count(&mut self, ns: u64) {
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }
}

/// Numbers of anomalies.
#[derive(Clone, Debug, Default)]
pub struct Anomalies {
    /// Counts by [`Anomaly::name`].
    pub by_name: BTreeMap<&'static str, Tally>,
    /// Releases that were reported after the next holder's acquisition; expected with OMPT.
    pub late_releases: Tally,
}

impl Anomalies {
    pub(crate) fn count(&mut self, thread: ThreadIndex, at: u64, anomaly: Anomaly) {
        let tally = self.by_name.entry(anomaly.name()).or_default();
        tally.count(anomaly.nanos());
        // Threads' anomalies come in the order of time, those of several threads need not.
        if tally.first.is_none_or(|(_, first)| at < first) {
            tally.first = Some((thread, at));
        }
    }
}
