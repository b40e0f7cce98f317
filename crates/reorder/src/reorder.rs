//! All queues, and the memory that they share.

use crate::account::{Account, Totals};
use crate::pages::{PAGE, PageStore};
use crate::queue::Queue;
use crate::record::{Completion, Detail, Notice, Output, QueueIndex, QueueOrder};
use crate::spill::SpillFile;
use std::path::PathBuf;

/// Action when more records wait than may be held in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Put them on disk; when that fails, as `DeclareLost`.
    #[default]
    Spill,
    /// Give up the operation that the most records wait for: it is lost, they are released. If records of an
    /// out-of-order queue wait for later announcements, the first of them are released without.
    DeclareLost,
    /// Signal it by [`Reorder::is_full`]; the caller holds back completions until it is false again. Programs
    /// whose progress depends on their own completions can dead-lock.
    Block,
}

/// Limits of held records.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Records held in memory at most, all queues together; at least 256. A record takes 64 bytes,
    /// on out-of-order queues 80.
    pub held_records: usize,
    /// Action beyond that.
    pub when_full: WhenFull,
    /// Directory of the file for more; by default that of temporary files.
    pub spill_directory: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { held_records: 1 << 20, when_full: WhenFull::Spill, spill_directory: None }
    }
}

/// A record that its vendor gives no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutId {
    /// The location it belongs to; for calls of the host one per thread.
    pub location: QueueIndex,
    /// The thread.
    pub thread: u32,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Given back at release.
    pub detail: Detail,
}

/// Accepts data on operations in any order, and releases each exactly once, in order.
///
/// Every method takes a function, which it calls with the available output, in order.
#[derive(Debug)]
pub struct Reorder {
    queues: Vec<Queue>,
    store: PageStore,
    max_pages: usize,
    when_full: WhenFull,
}

impl Reorder {
    /// Without queues.
    pub fn new(limits: Limits) -> Self {
        let max_pages = (limits.held_records / PAGE as usize).max(2);
        let mut store = PageStore::new(SpillFile::in_directory(limits.spill_directory));
        store.cap = (limits.when_full == WhenFull::Spill).then_some(max_pages);
        Reorder { queues: Vec::new(), store, max_pages, when_full: limits.when_full }
    }

    /// Adds a queue. Queues are never removed, since records may arrive to the very end.
    pub fn add_queue(&mut self, order: QueueOrder) -> QueueIndex {
        let index = QueueIndex(self.queues.len() as u32);
        self.queues.push(Queue::new(index, order));
        index
    }

    /// An operation is about to be submitted. Threads are numbered below 2²⁴.
    #[inline]
    pub fn append(&mut self, notice: &Notice, out: &mut impl FnMut(Output)) {
        let Some(queue) = self.queues.get_mut(notice.queue.0 as usize) else { return };
        queue.append(notice, None, &mut self.store, out);
        self.relieve_if_full(notice.queue, notice.seq, out);
    }

    /// As [`Reorder::append`], of an operation of an in-order queue that is submitted while other threads are submitting
    /// to it, of which `first` has the lowest sequence: which of them runs first is known by their starts only.
    pub fn append_concurrent(&mut self, notice: &Notice, first: u64, out: &mut impl FnMut(Output)) {
        let Some(queue) = self.queues.get_mut(notice.queue.0 as usize) else { return };
        queue.append(notice, Some(first), &mut self.store, out);
        self.relieve_if_full(notice.queue, notice.seq, out);
    }

    /// An operation has run. Its notice may still be on its way.
    #[inline]
    pub fn complete(&mut self, completion: &Completion, out: &mut impl FnMut(Output)) {
        let Some(queue) = self.queues.get_mut(completion.queue.0 as usize) else { return };
        queue.complete(completion, &mut self.store, out);
        self.relieve_if_full(completion.queue, completion.seq, out);
    }

    /// Takes a record without an id, such as a call of the host or the vendor's own overhead: it is ordered
    /// by start time among those of its location, an out-of-order queue of its own, once
    /// [`Reorder::no_append_before`] excludes earlier starts.
    pub fn put_without_id(&mut self, record: &WithoutId, out: &mut impl FnMut(Output)) {
        let WithoutId { location, thread, start, end, detail } = *record;
        let Some(queue) = self.queues.get(location.0 as usize) else { return };
        let seq = queue.next_seq();
        let notice = Notice { queue: location, seq, thread, append: start, earliest_start: start, detail };
        self.append(&notice, out);
        self.complete(&Completion { queue: location, seq, submit: 0, start, end }, out);
    }

    /// The submission of an operation has failed.
    pub fn cancel(&mut self, queue: QueueIndex, seq: u64, out: &mut impl FnMut(Output)) {
        let Some(found) = self.queues.get_mut(queue.0 as usize) else { return };
        found.cancel(seq, &mut self.store, out);
        self.relieve_if_full(queue, seq, out);
    }

    /// Declares that the operation had not started at `time`, by the clock of the stamps.
    pub fn not_started_before(
        &mut self,
        queue: QueueIndex,
        seq: u64,
        time: u64,
        out: &mut impl FnMut(Output),
    ) {
        if let Some(found) = self.queues.get_mut(queue.0 as usize) {
            found.not_started_before(seq, time, &mut self.store, out);
        }
    }

    /// Declares that every operation of the queue without a notice starts at `time` or later, by the clock of
    /// its stamps.
    pub fn no_append_before(&mut self, queue: QueueIndex, time: u64, out: &mut impl FnMut(Output)) {
        if let Some(found) = self.queues.get_mut(queue.0 as usize) {
            found.no_append_before(time, &mut self.store, out);
        }
    }

    /// The announced operation of an out-of-order queue without a record that may start first, if it alone
    /// holds back a waiting record: the one to query the driver for.
    pub fn holding_back(&mut self, queue: QueueIndex) -> Option<u64> {
        self.queues.get_mut(queue.0 as usize)?.holding_back(&mut self.store)
    }

    /// Time at which an open operation was appended; `None` before its notice.
    pub fn append_time(&mut self, queue: QueueIndex, seq: u64) -> Option<u64> {
        self.queues.get_mut(queue.0 as usize)?.append_time(seq)
    }

    /// Replaces the kind of an open operation, if its record is more exact than its notice, before or after
    /// the notice. A number of 0 changes nothing.
    pub fn amend(&mut self, queue: QueueIndex, seq: u64, what: u32, amount: u64) {
        if let Some(found) = self.queues.get_mut(queue.0 as usize) {
            found.amend(seq, what, amount, &mut self.store);
        }
    }

    /// The first announced operation of the queue without a record: the one to query the driver for.
    pub fn oldest_open(&mut self, queue: QueueIndex) -> Option<u64> {
        self.queues.get_mut(queue.0 as usize)?.oldest_open(&mut self.store)
    }

    /// Declares operations of the queue below `before` as lost if they have no record: after a barrier and a
    /// flush, or when the program gives up. A later record is reported as late.
    pub fn declare_lost(&mut self, queue: QueueIndex, before: u64, out: &mut impl FnMut(Output)) {
        if let Some(found) = self.queues.get_mut(queue.0 as usize) {
            found.declare_lost(before, &mut self.store, out);
        }
    }

    /// Ends all queues: open operations are lost, everything else is released.
    pub fn finish(&mut self, out: &mut impl FnMut(Output)) {
        for queue in &mut self.queues {
            queue.finish(&mut self.store, out);
        }
        self.store.spill.clear();
    }

    /// Counts of a queue.
    ///
    /// # Panics
    /// If the queue does not exist.
    pub fn account(&self, queue: QueueIndex) -> &Account {
        &self.queues[queue.0 as usize].account
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Counts of all queues together.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            held_in_memory_peak: (self.store.max_resident as u64) * PAGE,
            spill_failures: self.store.spill.failures,
            ..Totals::default()
        };
        for account in self.queues.iter().map(|queue| &queue.account) {
            totals.appended += account.appended;
            totals.delivered += account.delivered;
            totals.cancelled += account.cancelled;
            totals.lost += account.lost;
        }
        totals
    }

    /// Whether as much is held as may be.
    pub fn is_full(&self) -> bool {
        self.store.resident >= self.max_pages
    }

    #[inline]
    fn relieve_if_full(&mut self, queue: QueueIndex, seq: u64, out: &mut impl FnMut(Output)) {
        // There is room for the page that the next step may need.
        if self.store.resident >= self.max_pages && self.when_full != WhenFull::Block {
            self.relieve(queue, seq, out);
        }
    }

    /// Makes room, half of the limit, so that it is seldom needed.
    #[cold]
    #[inline(never)]
    fn relieve(&mut self, current: QueueIndex, seq: u64, out: &mut impl FnMut(Output)) {
        let target = (self.max_pages / 2).max(1);
        while self.store.resident > target {
            let before = self.store.resident;
            let Some(fattest) = (0..self.queues.len()).max_by_key(|index| self.queues[*index].pages.resident)
            else {
                return;
            };
            let queue = &mut self.queues[fattest];
            let current = if fattest == current.0 as usize { seq } else { u64::MAX };
            if self.when_full == WhenFull::Spill && queue.spill(target / 2, current, &mut self.store) {
                if self.store.resident == before {
                    return;
                }
                continue;
            }
            if !queue.stop_waiting(target, current, &mut self.store, out) {
                return;
            }
        }
    }
}
