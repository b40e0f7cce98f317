//! State of each operation between the first unresolved one and the highest known one: slots by sequence, in
//! pages that can be put on disk.
//!
//! ```text
//!  first                                         tail
//!   │ page Here │ page OnDisk │ page Over │ page Here │
//!     ▲ head, the first operation that is not over
//! ```
//! A page without outstanding operations is over; it then takes no room but its place in the list.

use crate::lost::LostSet;
use crate::record::{Completion, Detail, Notice};
use crate::spill::SpillFile;
use std::collections::VecDeque;

/// Slots of a page.
pub(crate) const PAGE: u64 = 128;
/// Bytes of a slot on disk.
pub(crate) const SLOT_BYTES: usize = 64;
const PAGE_BYTES: usize = PAGE as usize * SLOT_BYTES;

/// How far ahead of the first unresolved operation a sequence may be; few in tests, which get there.
pub(crate) const MAX_AHEAD: u64 = if cfg!(test) { 1 << 12 } else { 1 << 26 };

/// States of a slot, as bits.
pub(crate) mod state {
    /// Its notice has arrived.
    pub const NOTICED: u8 = 1;
    /// Its record has arrived.
    pub const ARRIVED: u8 = 2;
    /// Its submission failed.
    pub const CANCELLED: u8 = 4;
    /// It was declared lost.
    pub const LOST: u8 = 8;
    /// Its record was released, or waits in a run on disk.
    pub const PASSED_ON: u8 = 16;
    /// Its record started before its bound.
    pub const TOO_EARLY: u8 = 32;
    /// Its earliest start is kept in the queue's heap of bounds.
    pub const BOUND_IN_HEAP: u8 = 64;
}

/// State of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub append: u64,
    /// Until the record comes: the time before which it cannot start.
    pub start: u64,
    pub end: u64,
    pub submit: u64,
    pub late_by: u64,
    pub id: u64,
    pub amount: u64,
    pub what: u32,
    pub thread_and_state: u32,
}

impl Slot {
    pub fn state(&self) -> u8 {
        self.thread_and_state as u8
    }

    pub fn set(&mut self, bits: u8) {
        self.thread_and_state |= u32::from(bits);
    }

    pub fn is(&self, bits: u8) -> bool {
        self.state() & bits == bits
    }

    /// Number of the thread, below 2^24.
    pub fn thread(&self) -> u32 {
        self.thread_and_state >> 8
    }

    /// Whether it was announced, and its record is still to come.
    pub fn is_open(&self) -> bool {
        self.is(state::NOTICED) && !self.is_over()
    }

    /// Whether its record waits to be released.
    pub fn waits(&self) -> bool {
        self.is(state::ARRIVED) && !self.is(state::PASSED_ON)
    }

    /// Whether nothing is outstanding. An operation without a notice is not over.
    pub fn is_over(&self) -> bool {
        self.is(state::NOTICED) && self.state() & (state::ARRIVED | state::CANCELLED | state::LOST) != 0
    }

    pub fn notice(&mut self, notice: &Notice) {
        self.append = notice.append;
        if !self.is(state::ARRIVED) {
            self.start = notice.earliest_start;
        } else if self.start < notice.earliest_start && self.start != 0 {
            self.set(state::TOO_EARLY);
        }
        let Detail { id, amount, what } = notice.detail;
        self.id = id;
        // The record may have set more exact values before.
        self.amount = if self.amount == 0 { amount } else { self.amount };
        self.what = if self.what == 0 { what } else { self.what };
        self.thread_and_state = u32::from(self.state()) | notice.thread << 8;
        self.set(state::NOTICED);
    }

    pub fn arrive(&mut self, completion: &Completion) {
        if completion.start < self.start && completion.start != 0 {
            self.set(state::TOO_EARLY);
        }
        (self.submit, self.start, self.end) = (completion.submit, completion.start, completion.end);
        self.set(state::ARRIVED);
    }

    pub fn detail(&self) -> Detail {
        Detail { id: self.id, amount: self.amount, what: self.what }
    }

    pub fn to_bytes(self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        let words = [self.append, self.start, self.end, self.submit, self.late_by, self.id, self.amount];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[56..60].copy_from_slice(&self.what.to_le_bytes());
        bytes[60..].copy_from_slice(&self.thread_and_state.to_le_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; SLOT_BYTES]) -> Slot {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(words[index]);
        Slot {
            append: word(0),
            start: word(1),
            end: word(2),
            submit: word(3),
            late_by: word(4),
            id: word(5),
            amount: word(6),
            what: word(7) as u32,
            thread_and_state: (word(7) >> 32) as u32,
        }
    }
}

type Slots = Box<[Slot; PAGE as usize]>;

#[derive(Debug)]
enum Page {
    /// No notice or record so far.
    Empty,
    Here(Slots),
    /// At this place in the file.
    OnDisk(u64),
    /// Nothing is outstanding in it.
    Over,
}

/// Memory and disk that all queues share.
#[derive(Debug)]
pub(crate) struct PageStore {
    pub spill: SpillFile,
    pub resident: usize,
    pub max_resident: usize,
    /// Maximum pages in memory, if the disk takes the rest.
    pub cap: Option<usize>,
    spare: Vec<Slots>,
}

impl PageStore {
    pub fn new(spill: SpillFile) -> Self {
        PageStore { spill, resident: 0, max_resident: 0, cap: None, spare: Vec::new() }
    }

    fn fresh(&mut self) -> Slots {
        self.resident += 1;
        self.max_resident = self.max_resident.max(self.resident);
        match self.spare.pop() {
            Some(mut slots) => {
                slots.fill(Slot::default());
                slots
            }
            None => Box::new([Slot::default(); PAGE as usize]),
        }
    }

    fn give_back(&mut self, slots: Slots) {
        self.resident -= 1;
        if self.spare.len() < 64 {
            self.spare.push(slots);
        }
    }
}

/// Error of a page that cannot be read back.
pub(crate) struct Unreadable;

/// The slots of one queue.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Sequence of the first slot of the first page.
    first: u64,
    pages: VecDeque<Page>,
    /// Pages in memory.
    pub resident: usize,
    /// Announced when they were too far ahead for a page, and lost.
    pub lost_ahead: LostSet,
}

impl Pages {
    /// The slot of `seq`, which is not below the first page, if its page is in memory.
    #[inline(always)]
    pub fn here(&mut self, seq: u64) -> Option<&mut Slot> {
        match self.pages.get_mut(((seq - self.first) / PAGE) as usize) {
            Some(Page::Here(slots)) => Some(&mut slots[(seq % PAGE) as usize]),
            _ => None,
        }
    }

    /// The slot of `seq`, which is not below the first page. An unreadable page is returned as if all of its
    /// operations had been announced and lost.
    #[inline]
    pub fn slot(&mut self, seq: u64, store: &mut PageStore) -> Result<&mut Slot, Unreadable> {
        if self.here(seq).is_none() {
            self.bring(((seq - self.first) / PAGE) as usize, store)?;
        }
        self.here(seq).ok_or(Unreadable)
    }

    /// Whether the page of `seq` is known to be over.
    pub fn is_over(&self, seq: u64) -> bool {
        matches!(self.pages.get(((seq - self.first) / PAGE) as usize), Some(Page::Over))
    }

    #[cold]
    #[inline(never)]
    fn bring(&mut self, page: usize, store: &mut PageStore) -> Result<(), Unreadable> {
        while self.pages.len() <= page {
            self.pages.push_back(Page::Empty);
        }
        let place = match self.pages[page] {
            Page::OnDisk(place) => Some(place),
            Page::Empty => None,
            Page::Here(_) | Page::Over => return Ok(()),
        };
        if store.cap.is_some_and(|cap| store.resident >= cap) && self.resident > 0 {
            // Within one step a second page is needed: another one of this queue makes room.
            let keep = self.resident - 1;
            let current = self.first + page as u64 * PAGE;
            let _ = self.put_on_disk(keep, current, store);
        }
        let mut slots = store.fresh();
        self.resident += 1;
        let mut read = Ok(());
        if let Some(place) = place {
            let mut bytes = [0; PAGE_BYTES];
            match store.spill.take_block(place, &mut bytes) {
                Ok(()) => {
                    let (records, _) = bytes.as_chunks::<SLOT_BYTES>();
                    for (slot, record) in slots.iter_mut().zip(records) {
                        *slot = Slot::from_bytes(record);
                    }
                }
                Err(_) => {
                    store.spill.failures += 1;
                    slots.iter_mut().for_each(|slot| slot.set(state::NOTICED | state::LOST));
                    read = Err(Unreadable);
                }
            }
        } else if !self.lost_ahead.is_empty() {
            for (slot, seq) in slots.iter_mut().zip(self.first + page as u64 * PAGE..) {
                if self.lost_ahead.remove(seq) {
                    slot.set(state::NOTICED | state::LOST);
                }
            }
        }
        self.pages[page] = Page::Here(slots);
        read
    }

    /// Frees all pages before the one of `seq`.
    pub fn drop_before(&mut self, seq: u64, store: &mut PageStore) {
        while seq - self.first >= PAGE {
            match self.pages.pop_front() {
                Some(Page::Here(slots)) => {
                    store.give_back(slots);
                    self.resident -= 1;
                }
                Some(_) => {}
                None => {
                    self.first = seq - seq % PAGE;
                    return;
                }
            }
            self.first += PAGE;
        }
    }

    /// Frees the pages without outstanding operations. Returns whether there were any.
    pub fn forget_over(&mut self, store: &mut PageStore) -> bool {
        let before = self.resident;
        for page in &mut self.pages {
            if let Page::Here(slots) = page
                && slots.iter().all(|slot| slot.is_over() && !slot.waits())
                && let Page::Here(slots) = std::mem::replace(page, Page::Over)
            {
                store.give_back(slots);
                self.resident -= 1;
            }
        }
        self.resident < before
    }

    /// Writes pages to disk until at most `keep` are in memory, those with the highest sequences first, but
    /// never the one of `current`. Pages without outstanding operations are dropped. Returns the number of
    /// records written; `None` if the disk refuses.
    pub fn put_on_disk(&mut self, keep: usize, current: u64, store: &mut PageStore) -> Option<u64> {
        let current = (current.saturating_sub(self.first) / PAGE) as usize;
        let mut records = 0;
        for index in (0..self.pages.len()).rev() {
            if self.resident <= keep {
                break;
            }
            let Page::Here(slots) = &mut self.pages[index] else { continue };
            if index == current {
                continue;
            }
            let over = slots.iter().all(|slot| slot.is_over() && !slot.waits());
            let replacement = if over {
                Page::Over
            } else {
                let mut bytes = [0; PAGE_BYTES];
                for (place, slot) in bytes.chunks_exact_mut(SLOT_BYTES).zip(slots.iter()) {
                    place.copy_from_slice(&slot.to_bytes());
                }
                records += slots.iter().filter(|slot| slot.waits()).count() as u64;
                Page::OnDisk(store.spill.write_block(&bytes)?)
            };
            if let Page::Here(slots) = std::mem::replace(&mut self.pages[index], replacement) {
                store.give_back(slots);
                self.resident -= 1;
            }
        }
        Some(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_survives_the_disk() {
        let slot = Slot {
            append: 1,
            start: 2,
            end: 3,
            submit: 4,
            late_by: 5,
            id: 6,
            amount: 7,
            what: 8,
            thread_and_state: 0x123456ff,
        };
        assert_eq!(Slot::from_bytes(&slot.to_bytes()), slot);
        assert_eq!(slot.thread(), 0x123456);
    }

    #[test]
    fn pages_are_spilled_and_read_back() {
        let mut store = PageStore::new(SpillFile::default());
        let mut pages = Pages::default();
        for seq in 0..1000 {
            let Ok(slot) = pages.slot(seq, &mut store) else { panic!("unreadable") };
            slot.append = seq;
            slot.set(state::ARRIVED);
        }
        assert_eq!(pages.put_on_disk(1, 5, &mut store), Some(1000 - PAGE));
        assert_eq!((pages.resident, store.resident), (1, 1));
        for seq in (0..1000).rev() {
            assert_eq!(pages.slot(seq, &mut store).map(|slot| slot.append).ok(), Some(seq));
        }
        pages.drop_before(999, &mut store);
        assert_eq!((pages.resident, store.resident), (1, 1));
    }
}
