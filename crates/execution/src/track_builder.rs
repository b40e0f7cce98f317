//! A track by itself while it grows.

use crate::activities::{Activities, ActivityNumbers};
use crate::columns_builder::ColumnsBuilder;
use crate::newest::NewestSections;
use crate::{Section, TrackColumns};
use std::sync::Arc;

/// Takes the sections of one track, in time order.
#[derive(Debug)]
pub(crate) struct TrackBuilder<'n> {
    newest: NewestSections,
    columns: ColumnsBuilder,
    numbers: &'n mut ActivityNumbers,
}

impl<'n> TrackBuilder<'n> {
    /// Creates a track with these activity numbers, for about so many sections.
    pub(crate) fn of(numbers: &'n mut ActivityNumbers, sections: usize) -> TrackBuilder<'n> {
        let mut columns = ColumnsBuilder::default();
        columns.expect(sections, None);
        TrackBuilder { newest: NewestSections::default(), columns, numbers }
    }

    /// Sets the thread's section from `at` on.
    pub(crate) fn set(&mut self, at: u64, section: Section) {
        self.newest.set(at, section, |rows| self.columns.store(rows, self.numbers));
    }

    /// A section starts at `start`, later than those before.
    pub(crate) fn push(&mut self, start: u64, section: Section) {
        self.newest.push(start, section, |rows| self.columns.store(rows, self.numbers));
    }

    /// The columns of the track, which ends at `end`, or at the start of its last section.
    pub(crate) fn finish(mut self, end: u64, activities: &Arc<Activities>) -> TrackColumns {
        self.newest.close(end);
        self.columns.store(self.newest.rows(), self.numbers);
        self.columns.finish(self.newest.end(), activities, None)
    }
}
