//! The input of a pyramid: rows in time order, each with a class.

use crate::{Column, Starts, StartsInOrder, State, Track};

/// Number of classes that a pyramid distinguishes.
pub const CLASSES: usize = 64;

/// Means "nothing here".
pub const NO_CLASS: u8 = u8::MAX;

/// Rows that never overlap; each ends at the start of the next one.
pub trait Steps: Sync {
    /// Start times of the rows; strictly rising.
    fn starts(&self) -> impl Starts;

    /// End of the last row; not before its start.
    fn end(&self) -> u64;

    /// The class of each row, below [`CLASSES`].
    fn classes(&self) -> impl Fn(usize) -> u8;
}

/// Rows with columns that were looked up once: a column may be in a file, and the lookup costs more than reading a row.
pub(super) struct Rows<S, C> {
    pub starts: S,
    pub end: u64,
    pub class: C,
}

/// The rows of a track.
pub(super) fn rows_of(track: &impl Steps) -> Rows<impl Starts, impl Fn(usize) -> u8> {
    Rows { starts: track.starts(), end: track.end(), class: track.classes() }
}

impl<S: Starts, C> Rows<S, C> {
    /// End of a row.
    #[inline]
    pub fn end_of(&self, row: usize) -> u64 {
        self.starts.get(row + 1).unwrap_or(self.end)
    }

    /// The rows that overlap `[from, to)`, of those from `first` on, before which none starts in it, and the one before
    /// them: `each(row, length, length of the overlap)`. Gives the first row that starts later.
    #[inline]
    pub fn overlaps(&self, first: usize, from: u64, to: u64, mut each: impl FnMut(usize, u64, u64)) -> usize {
        let mut row = first.saturating_sub(1);
        let mut starts = self.starts.in_order();
        let mut next = starts.get(row);
        while let Some(start) = next.filter(|start| *start < to) {
            next = starts.get(row + 1);
            let end = next.unwrap_or(self.end);
            let (inner_start, inner_end) = (start.max(from), end.min(to));
            if inner_start < inner_end {
                each(row, end - start, inner_end - inner_start);
            }
            row += 1;
        }
        row.max(first)
    }
}

impl Steps for Track {
    fn starts(&self) -> impl Starts {
        Track::starts(self)
    }

    fn end(&self) -> u64 {
        Track::end(self)
    }

    fn classes(&self) -> impl Fn(usize) -> u8 {
        let states = self.states();
        move |row| states.at(row) as u8
    }
}

const _: () = assert!(State::ALL.len() <= CLASSES);

/// A row's value over time, as the views of a runtime's model give it.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Start times of the values; strictly rising.
    pub start: Column<u64>,
    /// The values; 0 is "nothing".
    pub value: Column<i64>,
    /// End of the last one.
    pub end: u64,
}

impl Values {
    /// Sets the value from `at` on. Times must not fall; the last of equal times counts.
    pub fn set(&mut self, at: u64, value: i64) {
        if self.value.last() == Some(&value) {
            self.end = self.end.max(at);
            return;
        }
        self.write(at, value);
    }

    /// As [`Values::set`], but writing the same value again begins a new row, as for two consecutive tasks of one
    /// type; "nothing" does not.
    pub fn write(&mut self, at: u64, value: i64) {
        let at = self.start.last().map_or(at, |last| at.max(*last));
        self.end = self.end.max(at);
        if value == 0 && self.value.last() == Some(&0) {
            return;
        }
        match self.start.last() {
            Some(last) if *last == at => {
                if let Some(slot) = self.value.to_mut().last_mut() {
                    *slot = value;
                }
            }
            _ => {
                self.start.to_mut().push(at);
                self.value.to_mut().push(value);
            }
        }
    }
}

impl Steps for Values {
    fn starts(&self) -> impl Starts {
        &*self.start
    }

    fn end(&self) -> u64 {
        self.end
    }

    /// Small values are classes of their own; larger ones share classes, which is right for shares of
    /// "nothing" against "something"; the value itself is that of the bucket's longest row.
    fn classes(&self) -> impl Fn(usize) -> u8 {
        let values: &[i64] = &self.value;
        move |row| {
            let value = values[row];
            if (0..CLASSES as i64 / 2).contains(&value) {
                value as u8
            } else {
                (CLASSES as u64 / 2 + value.unsigned_abs() % (CLASSES as u64 / 2)) as u8
            }
        }
    }
}
