//! One queue: its ended operations, and the next record to release.

mod losses;
mod releases;

use crate::account::Account;
use crate::lanes::Lanes;
use crate::lost::LostSet;
use crate::pages::{MAX_AHEAD, PAGE, PageStore, Pages, Slot, Unreadable, state};
use crate::record::{Completion, Notice, Output, QueueIndex, QueueOrder};
use crate::sorter::Sorter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[derive(Debug)]
pub(crate) struct Queue {
    index: QueueIndex,
    order: QueueOrder,
    /// Nothing is outstanding below it.
    head: u64,
    /// One past the highest known sequence.
    tail: u64,
    pub pages: Pages,
    lanes: Lanes,
    lost: LostSet,
    /// Passed over without a notice.
    skipped: LostSet,
    pub account: Account,
    /// Records that wait, in memory or on disk.
    held: u64,
    arrived: Arrived,
    /// Concurrent submissions that are open: the first sequence that each may run before.
    concurrent: BTreeMap<u64, u64>,
    /// Records of concurrent submissions, and those behind them, by start: all operations below `over_until` are over.
    ready: BinaryHeap<Reverse<(u64, u64)>>,
    over_until: u64,
    /// Highest start in it: the place of records without times.
    latest_ready: u64,
    /// Highest start and end of released records.
    released: (u64, u64),
    pub bounds: Bounds,
    pub sorter: Sorter,
}

/// Kind in a slot without a notice.
const UNANNOUNCED_WHAT: u32 = u32::MAX;

/// Place of a sequence.
#[derive(Clone, Copy, PartialEq)]
enum SequencePosition {
    /// Nothing is outstanding there.
    Over,
    Within,
    /// Further ahead than there are pages for: operations announced there are lost.
    TooFar,
}

/// Highest arrivals so far, to detect late ones.
#[derive(Debug, Default)]
struct Arrived {
    highest_seq: u64,
    latest_end: u64,
    latest_start: u64,
    last_start: u64,
    any: bool,
}

/// Lower bounds of the starts of operations with outstanding records.
///
/// Announced operations usually have bounds that grow with their sequence; then the first open one has the
/// lowest. Others, and those with a raised bound, are kept in a heap.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    /// Operations below it are over, or in the heap.
    scanned: u64,
    highest: u64,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// Operations that were not announced yet start at this time or later.
    floor: u64,
}

impl Queue {
    pub fn new(index: QueueIndex, order: QueueOrder) -> Self {
        Queue {
            index,
            order,
            head: 0,
            tail: 0,
            pages: Pages::default(),
            lanes: Lanes::default(),
            lost: LostSet::default(),
            skipped: LostSet::default(),
            account: Account::default(),
            held: 0,
            arrived: Arrived::default(),
            concurrent: BTreeMap::new(),
            ready: BinaryHeap::new(),
            over_until: 0,
            latest_ready: 0,
            released: (0, 0),
            bounds: Bounds::default(),
            sorter: Sorter::default(),
        }
    }

    fn in_order(&self) -> bool {
        self.order == QueueOrder::InOrder
    }

    /// One past the highest known sequence.
    pub fn next_seq(&self) -> u64 {
        self.tail.max(self.pages.lost_ahead.end())
    }

    #[inline(always)]
    fn place(&mut self, seq: u64) -> SequencePosition {
        if seq < self.head {
            SequencePosition::Over
        } else if self.pages.here(seq).is_some() {
            SequencePosition::Within
        } else if seq / PAGE - self.head / PAGE >= MAX_AHEAD / PAGE {
            SequencePosition::TooFar
        } else if self.pages.is_over(seq) {
            SequencePosition::Over
        } else {
            SequencePosition::Within
        }
    }

    #[inline]
    pub fn append(
        &mut self,
        notice: &Notice,
        may_precede: Option<u64>,
        store: &mut PageStore,
        out: &mut impl FnMut(Output),
    ) {
        let seq = notice.seq;
        if seq < self.head {
            return self.append_after_skip(notice, out);
        }
        // Nearly always the page is in memory: one lookup is enough.
        let slot = match self.pages.here(seq) {
            Some(slot) => slot,
            None => {
                match self.place(seq) {
                    SequencePosition::Within => {}
                    SequencePosition::Over => return self.append_after_skip(notice, out),
                    SequencePosition::TooFar => return self.append_too_far(notice, out),
                }
                match self.pages.slot(seq, store) {
                    Ok(slot) => slot,
                    Err(Unreadable) => return self.lose_page(seq, store, out),
                }
            }
        };
        let newest = seq >= self.tail;
        self.tail = self.tail.max(seq + 1);
        if slot.is(state::NOTICED) {
            self.account.refused += 1;
            return;
        }
        slot.notice(notice);
        if let Some(first) = may_precede.filter(|first| *first < seq && self.order == QueueOrder::InOrder) {
            self.concurrent.insert(seq, first);
        }
        let over = slot.is_over();
        if !over && self.order == QueueOrder::OutOfOrder {
            let bound = notice.earliest_start;
            if newest && bound >= self.bounds.highest {
                self.bounds.highest = bound;
            } else {
                slot.set(state::BOUND_IN_HEAP);
                self.bounds.heap.push(Reverse((bound, seq)));
            }
        }
        self.account.appended += 1;
        if over {
            self.account.cancelled += u64::from(slot.is(state::CANCELLED));
            let waiting = slot.waits().then_some(slot.start);
            self.over(seq, waiting, store, out);
        }
    }

    #[inline]
    pub fn complete(&mut self, completion: &Completion, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        let seq = completion.seq;
        if seq < self.head {
            return self.complete_again(completion, Slot::default(), out);
        }
        let slot = match self.pages.here(seq) {
            Some(slot) => slot,
            None => {
                match self.place(seq) {
                    SequencePosition::Within => {}
                    SequencePosition::Over => return self.complete_again(completion, Slot::default(), out),
                    SequencePosition::TooFar if self.pages.lost_ahead.contains(seq) => {
                        return self.complete_again(completion, Slot::default(), out);
                    }
                    SequencePosition::TooFar => return self.account.refused += 1,
                }
                match self.pages.slot(seq, store) {
                    Ok(slot) => slot,
                    Err(Unreadable) => {
                        self.tail = self.tail.max(seq + 1);
                        return self.lose_page(seq, store, out);
                    }
                }
            }
        };
        self.tail = self.tail.max(seq + 1);
        let late_by = self.arrived.take(completion, self.order, &mut self.account);
        if slot.state() & (state::ARRIVED | state::CANCELLED | state::LOST) != 0 {
            let known = *slot;
            self.complete_again(completion, known, out);
            return;
        }
        slot.arrive(completion);
        slot.late_by = late_by;
        let over = slot.is_over();
        self.held += 1;
        if over {
            self.over(seq, Some(completion.start), store, out);
        }
        self.account.held_peak = self.account.held_peak.max(self.held);
    }

    pub fn cancel(&mut self, seq: u64, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        if self.place(seq) != SequencePosition::Within {
            self.account.refused += 1;
            return;
        }
        self.tail = self.tail.max(seq + 1);
        let slot = match self.pages.slot(seq, store) {
            Ok(slot) => slot,
            Err(Unreadable) => return self.lose_page(seq, store, out),
        };
        if slot.state() & (state::ARRIVED | state::CANCELLED | state::LOST) != 0 {
            self.account.refused += 1;
            return;
        }
        slot.set(state::CANCELLED);
        if slot.is_over() {
            self.account.cancelled += 1;
            self.over(seq, None, store, out);
        }
    }

    pub fn append_time(&mut self, seq: u64) -> Option<u64> {
        if seq < self.head {
            return None;
        }
        self.pages.here(seq).filter(|slot| slot.is(state::NOTICED)).map(|slot| slot.append)
    }

    pub fn amend(&mut self, seq: u64, what: u32, amount: u64, store: &mut PageStore) {
        if self.place(seq) != SequencePosition::Within {
            return;
        }
        self.tail = self.tail.max(seq + 1);
        if let Ok(slot) = self.pages.slot(seq, store)
            && slot.state() & (state::ARRIVED | state::CANCELLED | state::LOST) == 0
        {
            slot.what = if what == 0 { slot.what } else { what };
            slot.amount = if amount == 0 { slot.amount } else { amount };
        }
    }

    /// An operation has not started at `time`.
    pub fn not_started_before(
        &mut self,
        seq: u64,
        time: u64,
        store: &mut PageStore,
        out: &mut impl FnMut(Output),
    ) {
        if self.in_order() || seq < self.head || seq >= self.tail || self.pages.is_over(seq) {
            return;
        }
        let Ok(slot) = self.pages.slot(seq, store) else { return };
        if slot.is_open() && slot.start < time {
            slot.start = time;
            slot.set(state::BOUND_IN_HEAP);
            self.bounds.heap.push(Reverse((time, seq)));
            self.release_by_start(store, out);
        }
    }

    /// Operations that were not announced yet start at `time` or later.
    pub fn no_append_before(&mut self, time: u64, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        if time > self.bounds.floor && !self.in_order() {
            self.bounds.floor = time;
            self.release_by_start(store, out);
        }
    }

    /// Ends the queue: nothing more will arrive.
    pub fn finish(&mut self, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        self.declare_lost(self.tail, store, out);
        // A page that cannot be read back ends that early: go on behind it.
        while store.spill.failures > 0 && self.oldest_open(store).is_some() {
            self.declare_lost(self.tail, store, out);
        }
        while self.sorter.peek().is_some() {
            self.release_next_by_start(store, out);
        }
        self.pass_over_head(store);
        if store.spill.failures > 0 {
            // Operations on unreadable pages or runs are lost.
            let Account { appended, delivered, cancelled, .. } = self.account;
            self.account.lost = appended.saturating_sub(delivered + cancelled);
        }
        self.held = 0;
    }

    /// Moves waiting records of an out-of-order queue from memory to a sorted run. Returns whether
    /// the disk took them.
    pub fn write_run(&mut self, store: &mut PageStore) -> bool {
        let mut keys = self.sorter.take_keys();
        if keys.is_empty() {
            return true;
        }
        let mut slots = Vec::with_capacity(keys.len().min(1 << 16));
        let pages = &mut self.pages;
        let mut written = 0;
        for part in keys.chunks(1 << 16) {
            slots.clear();
            for seq in part {
                if let Ok(slot) = pages.slot(*seq, store) {
                    slots.push((*seq, *slot));
                }
            }
            let mut next = slots.iter().copied();
            if self.sorter.add_run(0, slots.len() as u64, |_| next.next(), &mut store.spill).is_none() {
                break;
            }
            for seq in part {
                if let Ok(slot) = pages.slot(*seq, store) {
                    slot.set(state::PASSED_ON);
                }
            }
            written += part.len();
        }
        self.account.spilled += written as u64;
        let failed = written < keys.len();
        for seq in keys.drain(written..) {
            if let Ok(slot) = pages.slot(seq, store) {
                self.sorter.push(slot.start, seq);
            }
        }
        self.sorter.join_runs(&mut store.spill);
        self.pass_over_head(store);
        !failed
    }

    /// Writes waiting records to disk until at most `keep` pages are in memory. Returns whether the disk took
    /// them.
    pub fn spill(&mut self, keep: usize, current: u64, store: &mut PageStore) -> bool {
        if self.order == QueueOrder::OutOfOrder && !self.write_run(store) {
            return false;
        }
        match self.pages.put_on_disk(keep, current, store) {
            Some(records) => {
                self.account.spilled += records;
                true
            }
            None => false,
        }
    }
}

impl Arrived {
    /// Takes note of an arrival; returns by how much it is late.
    #[inline]
    fn take(&mut self, completion: &Completion, order: QueueOrder, account: &mut Account) -> u64 {
        let Completion { seq, start, end, .. } = *completion;
        if start == 0 {
            self.highest_seq = self.highest_seq.max(seq);
            return 0;
        }
        let mut late_by = 0;
        if self.any {
            account.inversions += u64::from(start < self.last_start);
            let out_of_place = match order {
                QueueOrder::InOrder => seq < self.highest_seq,
                QueueOrder::OutOfOrder => start < self.latest_start,
            };
            if out_of_place {
                late_by = self.latest_end.saturating_sub(start).max(1);
                account.out_of_place += 1;
                account.worst_late = account.worst_late.max(late_by);
            }
        }
        self.any = true;
        self.last_start = start;
        self.highest_seq = self.highest_seq.max(seq);
        self.latest_start = self.latest_start.max(start);
        self.latest_end = self.latest_end.max(end);
        late_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Detail;
    use crate::reorder::{Limits, Reorder, WhenFull};

    fn notice(queue: QueueIndex, seq: u64) -> Notice {
        let detail = Detail { id: !seq, amount: 0, what: 0 };
        Notice { queue, seq, thread: 7, append: 2, earliest_start: 1, detail }
    }

    /// For concurrent submissions, the starts determine the order; others keep their sequence.
    #[test]
    fn concurrent_submissions_are_released_by_start() {
        let mut reorder = Reorder::new(Limits::default());
        let queue = reorder.add_queue(QueueOrder::InOrder);
        let record = |seq, start| Completion { queue, seq, submit: 0, start, end: start + 10 };
        let (mut seqs, mut released) = (Vec::new(), Vec::new());
        let mut out = |output| {
            if let Output::Released(record) = output {
                assert!(record.anomalies.is_empty(), "{record:?}");
                seqs.push(record.seq);
            }
        };
        for (seq, may_precede) in [(0, None), (1, Some(0)), (2, Some(0)), (3, None), (4, Some(3)), (5, None)]
        {
            match may_precede {
                Some(first) => reorder.append_concurrent(&notice(queue, seq), first, &mut out),
                None => reorder.append(&notice(queue, seq), &mut out),
            }
        }
        for (seq, start) in [(0, 300), (5, 900), (2, 100), (3, 400), (1, 200)] {
            reorder.complete(&record(seq, start), &mut out);
            released.push(reorder.account(queue).delivered);
        }
        // Nothing is released before the second operation has arrived; then all but the one that the fifth
        // may precede.
        assert_eq!(released, [0, 0, 0, 0, 3]);
        reorder.cancel(queue, 4, &mut out);
        reorder.finish(&mut out);
        assert_eq!(seqs, [2, 1, 0, 3, 5]);
        let account = *reorder.account(queue);
        assert!(account.adds_up() && account.cancelled == 1 && account.overlaps == 0, "{account:?}");
    }

    /// Threads that submit concurrently all the time: each operation may run before the three submitted
    /// before it. Few records wait, and none is reported twice; some have no times, some no records.
    #[test]
    fn endless_concurrent_submissions_wait_for_few() {
        let small = Limits { held_records: 256, ..Limits::default() };
        let forgetful = Limits { when_full: WhenFull::DeclareLost, ..small.clone() };
        for limit in [Limits::default(), small, forgetful] {
            let mut reorder = Reorder::new(limit.clone());
            let queue = reorder.add_queue(QueueOrder::InOrder);
            let (mut released, mut lost, mut last) = (Vec::new(), 0, 0);
            let mut out = |output| match output {
                Output::Released(record) => {
                    assert!(record.start == 0 || last <= record.start, "{record:?}");
                    last = last.max(record.start);
                    released.push(record.seq);
                }
                Output::Lost { .. } => lost += 1,
                _ => {}
            };
            let all = 20 * PAGE + 5;
            // In fours, the last one runs first.
            let start = |seq: u64| if seq % 50 == 9 { 0 } else { 100 + (seq / 4) * 100 + (3 - seq % 4) * 20 };
            let has_record = |seq: &u64| seq % 500 != 7;
            for seq in 0..all {
                reorder.append_concurrent(&notice(queue, seq), (seq / 4) * 4, &mut out);
            }
            for seq in (0..all).filter(has_record) {
                let start = start(seq);
                reorder.complete(&Completion { queue, seq, submit: 0, start, end: start + 10 }, &mut out);
                if seq % 500 == 8 {
                    reorder.declare_lost(queue, seq, &mut out);
                }
                assert!(reorder.account(queue).held_peak <= 8);
            }
            reorder.finish(&mut out);
            let account = *reorder.account(queue);
            assert!(account.adds_up() && account.overlaps == 0, "{account:?}");
            if limit.when_full == WhenFull::DeclareLost {
                assert!(lost > 0);
                continue;
            }
            released.sort_unstable();
            assert!(released.iter().copied().eq((0..all).filter(has_record)), "{limit:?}");
            assert_eq!(lost, (0..all).filter(|seq| !has_record(seq)).count());
        }
    }

    /// The first operation has no record for long; operations announced too far behind it are reported as
    /// lost, once, and continue as any lost operation when the first one has come.
    #[test]
    fn records_too_far_ahead_are_dropped_and_reported() {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let mut reorder = Reorder::new(Limits::default());
            let queue = reorder.add_queue(order);
            let record = |seq| Completion { queue, seq, submit: 0, start: 10 + seq * 2, end: 11 + seq * 2 };
            let mut reported = Vec::new();
            let mut out = |output| reported.push(output);
            let all = 3 * MAX_AHEAD / 2;
            (0..all).for_each(|seq| reorder.append(&notice(queue, seq), &mut out));
            // A second announcement is refused, ahead or not; counts never reach the maximum.
            for seq in [5, all - 1, u64::MAX] {
                reorder.append(&Notice { detail: Detail::default(), ..notice(queue, seq) }, &mut out);
            }
            // One such record comes before, the others after the first one's.
            reorder.complete(&record(all - 1), &mut out);
            (0..all - 1).for_each(|seq| reorder.complete(&record(seq), &mut out));
            // A second record is a duplicate, and the following ones are unaffected.
            reorder.complete(&record(all - 2), &mut out);
            reorder.no_append_before(queue, 10 + all * 2, &mut out);
            reorder.append(&notice(queue, all), &mut out);
            reorder.complete(&record(all), &mut out);
            reorder.finish(&mut out);
            let lost: Vec<u64> = reported
                .iter()
                .filter_map(|output| match output {
                    Output::Lost { seq, thread: 7, detail, .. } if detail.id == !seq => Some(*seq),
                    _ => None,
                })
                .collect();
            assert!(lost.iter().copied().eq(MAX_AHEAD..all), "{order:?}: {} lost", lost.len());
            let account = *reorder.account(queue);
            assert!(account.adds_up(), "{account:?}");
            assert_eq!((account.appended, account.lost), (all + 1, all - MAX_AHEAD));
            assert_eq!((account.late, account.duplicates, account.refused), (all - MAX_AHEAD, 1, 3));
            assert_eq!(account.unannounced, 0);
        }
    }
}
