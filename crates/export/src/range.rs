//! A part of the time: the states at its begin, and the changes within it.

use std::collections::BTreeMap;
use taskscope_execution::view::{ViewChange, ViewFamily, ViewObserver};

/// Passes on the changes from `begin` (included) to `end` (not included), nanoseconds since the
/// trace's start. Every cell that has a value at `begin` takes it there.
pub struct RangeObserver<O> {
    inner: O,
    begin: i64,
    end: i64,
    /// Values before the range; none once it has begun.
    before: BTreeMap<(ViewFamily, u32, u32), i64>,
    begun: bool,
}

impl<O: ViewObserver> RangeObserver<O> {
    /// Wraps an observer.
    pub fn new(inner: O, (begin, end): (i64, i64)) -> Self {
        RangeObserver { inner, begin, end, before: BTreeMap::new(), begun: begin <= 0 }
    }

    /// The wrapped observer, after all changes.
    pub fn finish(mut self) -> O {
        self.start();
        self.inner
    }

    /// The wrapped observer.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for ((view, row, view_type), value) in std::mem::take(&mut self.before) {
            self.inner.view_change(ViewChange { time_ns: self.begin, view, row, view_type, value });
        }
    }
}

impl<O: ViewObserver> ViewObserver for RangeObserver<O> {
    const WANTS_VIEWS: bool = O::WANTS_VIEWS;

    #[inline]
    fn view_change(&mut self, change: ViewChange) {
        if change.time_ns >= self.end {
            return;
        }
        if !self.begun {
            if change.time_ns < self.begin {
                self.before.insert((change.view, change.row, change.view_type), change.value);
                return;
            }
            self.start();
        }
        self.inner.view_change(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_before_appear_at_the_begin() {
        let change =
            |time_ns, row, value| ViewChange { time_ns, view: ViewFamily::Thread, row, view_type: 4, value };
        let mut range = RangeObserver::new(Vec::new(), (10, 20));
        for event in [change(1, 0, 5), change(2, 1, 6), change(9, 0, 7), change(12, 1, 8), change(20, 1, 9)] {
            range.view_change(event);
        }
        assert_eq!(range.finish(), [change(10, 0, 7), change(10, 1, 6), change(12, 1, 8)]);
    }
}
