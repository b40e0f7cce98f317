//! A thread's latest sections, on their way to the columns of its track.
//!
//! A merged trace changes the thread with each event. So the newest sections of a thread are adjacent, two per cache
//! line, and move to the columns by the dozen.

use crate::{Group, Section, State};

/// Number of waiting sections. Those of 64 threads fit into the L1 cache of a core.
pub(crate) const WAITING: usize = 16;
/// Number of sections that stay when the others move: those that may still change, and their successors.
const STAYING: usize = 2;

/// A section that lasts until the next one starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub start: u64,
    pub section: Section,
}

impl Default for Row {
    fn default() -> Self {
        Row { start: 0, section: Section::of(State::Unknown) }
    }
}

/// A section that ended at `at` was this one, if it was a wait for a lock too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amendment {
    pub at: u64,
    pub section: Section,
    /// Start of the first section that is not in the columns.
    pub next: Option<u64>,
}

/// Whether a section may be changed by a later event.
pub(crate) fn can_be_amended(state: State) -> bool {
    state.group() == Group::Mutex
}

/// The newest sections of one thread, in time order.
#[derive(Debug, Default)]
pub(crate) struct NewestSections {
    end: u64,
    /// Stored inline, as each change reads them; never empty after the first section.
    rows: [Row; WAITING],
    waiting: usize,
}

impl NewestSections {
    /// Whether nothing is known of the thread.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// End of the last section, as far as known.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Rows not yet moved to the columns.
    pub fn rows(&self) -> &[Row] {
        &self.rows[..self.waiting]
    }

    /// Sets the section of the thread from `at` on. A time before the last section's start is taken as that
    /// start; returns the difference. `store` takes the rows to be moved.
    #[inline(always)]
    pub fn set(&mut self, at: u64, section: Section, store: impl FnOnce(&[Row])) -> u64 {
        // Fully inlined into its callers, so that a section can stay in registers.
        let Some(last) = self.rows.get_mut(self.waiting.wrapping_sub(1)) else {
            self.end = self.end.max(at);
            self.rows[0] = Row { start: at, section };
            self.waiting = 1;
            return 0;
        };
        if at > last.start {
            self.end = self.end.max(at);
            if last.section != section {
                self.push(at, section, store);
            }
            return 0;
        }
        self.end = self.end.max(last.start);
        last.section = section;
        last.start - at
    }

    /// A section starts at `start`, later than those before.
    #[inline(always)]
    pub fn push(&mut self, start: u64, section: Section, store: impl FnOnce(&[Row])) {
        if self.waiting == WAITING {
            store(&self.rows[..WAITING - STAYING]);
            self.rows.copy_within(WAITING - STAYING.., 0);
            self.waiting = STAYING;
        }
        self.rows[self.waiting] = Row { start, section };
        self.waiting += 1;
    }

    /// Replaces the section that ended at `at`, also if it was a wait for a lock. Returns the change for the columns if
    /// it is there already: rare, as waits are reported when they end.
    pub fn amend(&mut self, at: u64, section: Section) -> Option<Amendment> {
        let rows = &mut self.rows[..self.waiting];
        let Some(row) = rows.iter().rposition(|row| row.start < at) else {
            return Some(Amendment { at, section, next: rows.first().map(|row| row.start) });
        };
        let end = rows.get(row + 1).map_or(self.end, |next| next.start);
        if end == at && can_be_amended(rows[row].section.state) {
            rows[row].section = section;
        }
        None
    }

    /// Ends the last section at `at`, or at its start, if that is later.
    pub fn close(&mut self, at: u64) {
        self.end = self.rows().last().map_or(at, |last| at.max(last.start));
    }
}
