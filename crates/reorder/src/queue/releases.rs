//! Releases of records, in the order of submission or of start.

use super::{Queue, UNANNOUNCED_WHAT};
use crate::pages::{PAGE, PageStore, Slot, state};
use crate::record::{Anomalies, Detail, Output, QueueOrder, Released};
use crate::sorter::Next;
use std::cmp::Reverse;

/// Records that wait for the starts of concurrent submissions, at most.
const MAX_READY: usize = 1 << 16;

impl Queue {
    /// Ends an operation: releases the records that waited for it. Its own record may wait, by its start.
    #[inline]
    pub(super) fn over(
        &mut self,
        seq: u64,
        waiting: Option<u64>,
        store: &mut PageStore,
        out: &mut impl FnMut(Output),
    ) {
        match self.order {
            QueueOrder::InOrder if seq == self.head || seq == self.over_until => {
                self.release_by_sequence(store, out);
            }
            QueueOrder::InOrder => {}
            QueueOrder::OutOfOrder => {
                if let Some(start) = waiting {
                    self.sorter.push(start, seq);
                }
                // Operations may still be announced that start before the floor: mostly nothing can be
                // released yet.
                if seq == self.head
                    || self.sorter.peek().is_some_and(|first| first < self.bounds.floor || first == 0)
                {
                    self.release_by_start(store, out);
                }
            }
        }
    }

    pub(super) fn release_by_sequence(&mut self, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        if !self.concurrent.is_empty() || !self.ready.is_empty() {
            return self.release_concurrent(store, out);
        }
        while self.head < self.tail {
            let Some(slot) = self.pages.here(self.head) else {
                if self.pages.is_over(self.head) {
                    self.head = (self.head / PAGE + 1) * PAGE;
                } else if self.pages.slot(self.head, store).is_err() {
                    return self.lose_page(self.head, store, out);
                }
                continue;
            };
            if !slot.is_over() {
                break;
            }
            let waits = slot.waits();
            slot.set(state::PASSED_ON);
            let slot = *slot;
            if waits {
                self.release(self.head, &slot, out);
            }
            self.head += 1;
            if self.head.is_multiple_of(PAGE) {
                self.pages.drop_before(self.head, store);
            }
        }
    }

    /// Releases by start up to the first operation that an open one may precede. An operation runs after all
    /// that had been submitted when its own submission began, and so does each one behind it.
    fn release_concurrent(&mut self, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        self.over_until = self.over_until.max(self.head);
        let mut limit = u64::MAX;
        while self.over_until < self.tail {
            let seq = self.over_until;
            if self.pages.is_over(seq) {
                self.over_until = (seq / PAGE + 1) * PAGE;
                continue;
            }
            let Ok(slot) = self.pages.slot(seq, store) else { return self.lose_page(seq, store, out) };
            if !slot.is_over() {
                // Before its notice arrives, its bound is unknown.
                let known = slot.is(state::NOTICED);
                limit = if known { self.concurrent.get(&seq).copied().unwrap_or(seq) } else { 0 };
                break;
            }
            if slot.waits() {
                self.latest_ready = self.latest_ready.max(slot.start);
                let place = if slot.start == 0 { self.latest_ready } else { slot.start };
                self.ready.push(Reverse((place, seq)));
            }
            self.concurrent.remove(&seq);
            self.over_until += 1;
        }
        while let Some(Reverse((_, seq))) = self.ready.peek().copied() {
            if seq >= limit && self.ready.len() <= MAX_READY {
                break;
            }
            self.ready.pop();
            let Ok(slot) = self.pages.slot(seq, store) else { return self.lose_page(seq, store, out) };
            slot.set(state::PASSED_ON);
            let slot = *slot;
            self.release(seq, &slot, out);
        }
        self.pass_over_head(store);
    }

    pub fn release_by_start(&mut self, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        let Some(first) = self.sorter.peek() else { return self.pass_over_head(store) };
        // Often the floor alone prevents any release. Without times a record has no place to wait for.
        let watermark = if first < self.bounds.floor { self.watermark(store).max(1) } else { 1 };
        while self.sorter.peek().is_some_and(|start| start < watermark) {
            self.release_next_by_start(store, out);
        }
        if self.pages.here(self.head).is_none_or(|slot| slot.is_over() && !slot.waits()) {
            self.pass_over_head(store);
        }
    }

    pub(super) fn release_next_by_start(&mut self, store: &mut PageStore, out: &mut impl FnMut(Output)) {
        match self.sorter.pop(&mut store.spill) {
            Some(Next::InSlot(seq)) => {
                let slot = match self.pages.here(seq) {
                    Some(slot) => Ok(slot),
                    None => self.pages.slot(seq, store),
                };
                if let Ok(slot) = slot {
                    slot.set(state::PASSED_ON);
                    let slot = *slot;
                    self.release(seq, &slot, out);
                }
            }
            Some(Next::FromDisk(seq, slot)) => self.release(seq, &slot, out),
            None => {}
        }
    }

    /// Advances the head over released operations, and frees their pages.
    pub(super) fn pass_over_head(&mut self, store: &mut PageStore) {
        while self.head < self.tail {
            if let Some(slot) = self.pages.here(self.head) {
                if !slot.is_over() || slot.waits() {
                    break;
                }
                self.head += 1;
            } else if self.pages.is_over(self.head) {
                self.head = (self.head / PAGE + 1) * PAGE;
            } else if self.pages.slot(self.head, store).is_err() {
                break;
            }
        }
        self.head = self.head.min(self.tail);
        self.pages.drop_before(self.head, store);
    }

    /// Lower bound of the starts of all outstanding operations.
    #[inline]
    fn watermark(&mut self, store: &mut PageStore) -> u64 {
        self.first_to_start(store).map_or(self.bounds.floor, |(bound, _)| bound.min(self.bounds.floor))
    }

    /// The earliest start of an announced operation that is open, and its sequence.
    #[inline]
    pub(super) fn first_to_start(&mut self, store: &mut PageStore) -> Option<(u64, u64)> {
        let bounds = &mut self.bounds;
        bounds.scanned = bounds.scanned.max(self.head);
        let mut lowest = None;
        while bounds.scanned < self.tail {
            let Some(slot) = self.pages.here(bounds.scanned) else {
                if self.pages.is_over(bounds.scanned) {
                    bounds.scanned = (bounds.scanned / PAGE + 1) * PAGE;
                } else if self.pages.slot(bounds.scanned, store).is_err() {
                    break;
                }
                continue;
            };
            if slot.is_open() && !slot.is(state::BOUND_IN_HEAP) {
                lowest = Some((slot.start, bounds.scanned));
                break;
            }
            // A notice that is still to come here will be older than the newest: it goes to the heap.
            bounds.scanned += 1;
        }
        while let Some(Reverse((bound, seq))) = bounds.heap.peek().copied() {
            let holds = seq >= self.head
                && !self.pages.is_over(seq)
                && self.pages.slot(seq, store).is_ok_and(|slot| slot.is_open() && slot.start == bound);
            if holds {
                let heap_key = (bound, seq);
                lowest = Some(lowest.map_or(heap_key, |known: (u64, u64)| known.min(heap_key)));
                break;
            }
            bounds.heap.pop();
        }
        lowest
    }

    /// The operation to query the driver for.
    pub fn holding_back(&mut self, store: &mut PageStore) -> Option<u64> {
        let waiting = self.sorter.peek()?;
        if self.in_order() || waiting >= self.bounds.floor {
            return None;
        }
        self.first_to_start(store).filter(|(bound, _)| *bound <= waiting).map(|(_, seq)| seq)
    }

    #[inline]
    fn release(&mut self, seq: u64, slot: &Slot, out: &mut impl FnMut(Output)) {
        self.held = self.held.saturating_sub(1);
        self.account.delivered += 1;
        let mut record = self.describe(seq, slot);
        let unusable = record.anomalies.contains(Anomalies::UNTIMED)
            || record.anomalies.contains(Anomalies::END_BEFORE_START);
        if unusable {
            self.account.untimed += 1;
        } else {
            let (latest_start, latest_end) = self.released;
            if self.in_order() && slot.start < latest_end {
                record.anomalies.add(Anomalies::OVERLAP);
                self.account.overlaps += 1;
                self.account.worst_overlap = self.account.worst_overlap.max(latest_end - slot.start);
            }
            if slot.start < latest_start {
                record.anomalies.add(Anomalies::START_GOES_BACK);
            }
            self.released = (latest_start.max(slot.start), latest_end.max(slot.end));
            record.lane = Some(self.lanes.take(slot.start, slot.end));
            self.account.lanes = self.lanes.count();
        }
        self.account.anomalous += u64::from(!record.anomalies.is_empty());
        out(Output::Released(record));
    }

    /// The record, with the anomalies of its own values.
    pub(super) fn describe(&self, seq: u64, slot: &Slot) -> Released {
        let mut anomalies = Anomalies::NONE;
        if slot.start == 0 || slot.end == 0 {
            anomalies.add(Anomalies::UNTIMED);
        } else if slot.end < slot.start {
            anomalies.add(Anomalies::END_BEFORE_START);
        }
        if slot.submit != 0 && slot.start != 0 && slot.start <= slot.submit {
            anomalies.add(Anomalies::START_NOT_AFTER_SUBMIT);
        }
        if slot.is(state::TOO_EARLY) {
            anomalies.add(Anomalies::START_BEFORE_APPEND);
        }
        let mut detail = slot.detail();
        if detail.what == UNANNOUNCED_WHAT {
            anomalies.add(Anomalies::UNANNOUNCED);
            detail = Detail::default();
        }
        Released {
            queue: self.index,
            seq,
            thread: slot.thread(),
            lane: None,
            append: slot.append,
            submit: slot.submit,
            start: slot.start,
            end: slot.end,
            detail,
            anomalies,
            late_by: slot.late_by,
        }
    }
}
