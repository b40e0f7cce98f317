//! Operations without a record, and records that come too late.

use super::{Queue, UNANNOUNCED_WHAT};
use crate::pages::{PAGE, PageStore, Slot, Unreadable, state};
use crate::record::{Anomalies, Completion, Notice, Output, QueueOrder};

impl Queue {
    /// A notice of an operation that is not waited for any more.
    #[cold]
    pub(super) fn append_after_skip(&mut self, notice: &Notice, out: &mut impl FnMut(Output)) {
        if !self.skipped.remove(notice.seq) {
            self.account.refused += 1;
            return;
        }
        self.append_lost(notice, out);
    }

    /// Takes a notice so far ahead of the outstanding ones that its record has no room.
    #[cold]
    pub(super) fn append_too_far(&mut self, notice: &Notice, out: &mut impl FnMut(Output)) {
        if notice.seq == u64::MAX || self.pages.lost_ahead.contains(notice.seq) {
            self.account.refused += 1;
            return;
        }
        self.pages.lost_ahead.insert(notice.seq);
        self.append_lost(notice, out);
    }

    fn append_lost(&mut self, notice: &Notice, out: &mut impl FnMut(Output)) {
        self.account.appended += 1;
        self.account.lost += 1;
        self.lost.insert(notice.seq);
        let Notice { queue, seq, thread, append, detail, .. } = *notice;
        out(Output::Lost { queue, seq, thread, append, detail });
    }

    /// A record of an operation that has ended already.
    #[cold]
    pub(super) fn complete_again(
        &mut self,
        completion: &Completion,
        known: Slot,
        out: &mut impl FnMut(Output),
    ) {
        if !self.lost.remove(completion.seq) {
            self.account.duplicates += 1;
            out(Output::Duplicate(*completion));
            return;
        }
        self.account.late += 1;
        let mut slot = known;
        slot.arrive(completion);
        let mut record = self.describe(completion.seq, &slot);
        record.anomalies.add(Anomalies::AFTER_LOST);
        out(Output::Late(record));
    }

    /// Reduces the pages in memory to `target`: gives up the operation that the first waiting record waits for. That is an
    /// operation, which is lost; on an out-of-order queue also later announcements, and then the record is
    /// released without them. Returns whether that made room.
    pub fn stop_waiting(
        &mut self,
        target: usize,
        current: u64,
        store: &mut PageStore,
        out: &mut impl FnMut(Output),
    ) -> bool {
        let before = self.pages.resident;
        self.pages.forget_over(store);
        // The last page holds the newest operations.
        while store.resident > target && self.pages.resident > 1 && self.head < self.tail {
            let waiting = if self.in_order() { None } else { self.sorter.peek() };
            let Some(waiting) = waiting else {
                // Operations released meanwhile may be between ones that still run.
                if self.in_order() || !self.pages.forget_over(store) {
                    self.declare_lost(self.head.max(self.over_until) + 1, store, out);
                }
                continue;
            };
            let holder = self
                .first_to_start(store)
                .filter(|(bound, seq)| *bound <= waiting && *bound < self.bounds.floor && *seq != current);
            match holder {
                Some((_, seq)) => self.lose(seq, store, out),
                None => self.release_next_by_start(store, out),
            }
            if self.pages.here(self.head).is_none_or(|slot| slot.is_over() && !slot.waits()) {
                self.pass_over_head(store);
            }
        }
        self.pages.resident < before
    }

    /// Declares that this operation will have no record.
    fn lose(&mut self, seq: u64, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        if let Ok(slot) = self.pages.slot(seq, store)
            && slot.is_open()
        {
            slot.set(state::LOST);
            let slot = *slot;
            self.report_lost(seq, &slot, out);
        }
        self.release_by_start(store, out);
    }

    /// The first announced operation with an outstanding record.
    pub fn oldest_open(&mut self, store: &mut PageStore) -> Option<u64> {
        let mut seq = self.head;
        while seq < self.tail {
            if self.pages.is_over(seq) {
                seq = (seq / PAGE + 1) * PAGE;
                continue;
            }
            if self.pages.slot(seq, store).is_ok_and(|slot| slot.is_open()) {
                return Some(seq);
            }
            seq += 1;
        }
        None
    }

    /// Declares that operations below `before` will have no record; unannounced ones are skipped.
    pub fn declare_lost(&mut self, before: u64, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        let before = before.min(self.tail);
        let mut seq = self.head;
        while seq < before {
            if self.pages.is_over(seq) {
                seq = (seq / PAGE + 1) * PAGE;
                continue;
            }
            let slot = match self.pages.slot(seq, store) {
                Ok(slot) => slot,
                Err(Unreadable) => return self.lose_page(seq, store, out),
            };
            if slot.is_open() {
                slot.set(state::LOST);
                let slot = *slot;
                self.report_lost(seq, &slot, out);
            } else if !slot.is(state::NOTICED) {
                slot.set(state::NOTICED);
                if slot.is(state::ARRIVED) {
                    self.account.appended += 1;
                    self.account.unannounced += 1;
                    slot.what = UNANNOUNCED_WHAT;
                    if self.order == QueueOrder::OutOfOrder {
                        self.sorter.push(slot.start, seq);
                    }
                } else {
                    slot.set(state::CANCELLED);
                    self.skipped.insert(seq);
                }
            }
            seq += 1;
            // Releasable records free their page before the next one is loaded.
            if seq.is_multiple_of(PAGE) && self.in_order() {
                self.release_by_sequence(store, out);
                seq = seq.max(self.head);
            }
        }
        match self.order {
            QueueOrder::InOrder => self.release_by_sequence(store, out),
            QueueOrder::OutOfOrder => self.release_by_start(store, out),
        }
    }

    fn report_lost(&mut self, seq: u64, slot: &Slot, out: &mut impl FnMut(Output)) {
        self.account.lost += 1;
        self.lost.insert(seq);
        let (queue, thread, append, detail) = (self.index, slot.thread(), slot.append, slot.detail());
        out(Output::Lost { queue, seq, thread, append, detail });
    }

    /// Reports the operations of a page as lost, after it could not be read back.
    #[cold]
    pub(super) fn lose_page(&mut self, seq: u64, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        let first = seq - seq % PAGE;
        for seq in first.max(self.head)..(first + PAGE).min(self.tail) {
            if let Ok(slot) = self.pages.slot(seq, store) {
                let slot = *slot;
                self.report_lost(seq, &slot, out);
            }
        }
        match self.order {
            QueueOrder::InOrder => self.release_by_sequence(store, out),
            QueueOrder::OutOfOrder => self.release_by_start(store, out),
        }
    }
}
