//! From the state of threads and CPUs to the values that views show.
//!
//! The machine notes the writes of an event; at the event's end every affected cell is computed once, from
//! the final state. So events are atomic: a thread that moves between CPUs never appears on both.

pub(crate) mod breakdown;
pub(crate) mod describe;
pub(crate) mod table;

use table::Repeat;
use taskscope_execution::view::{ViewChange, ViewFamily, ViewObserver};

/// Content of a family of cells: last written values, and the rule for repeated ones.
pub(crate) struct Cells {
    view: ViewFamily,
    types_per_row: usize,
    last: Vec<Shown>,
}

/// The last written value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Never,
    Nothing,
    Value(i64),
}

impl Cells {
    pub(crate) fn new(view: ViewFamily, rows: usize, types_per_row: usize) -> Self {
        Cells { view, types_per_row, last: vec![Shown::Never; rows * types_per_row] }
    }

    /// Writes a value into a cell, and passes it to the observer unless the rule drops it.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "a cell's place, value and rule; called in one file")]
    pub(crate) fn write<O: ViewObserver>(
        &mut self,
        observer: &mut O,
        time_ns: i64,
        row: u32,
        column: usize,
        view_type: u32,
        value: Option<i64>,
        repeat: Repeat,
    ) {
        let shown = value.map_or(Shown::Nothing, Shown::Value);
        let last = &mut self.last[row as usize * self.types_per_row + column];
        if *last == shown {
            match repeat {
                Repeat::Skip => return,
                Repeat::SkipNull if value.is_none() => return,
                Repeat::SkipNull | Repeat::Emit => {}
            }
        }
        *last = shown;
        let value = value.unwrap_or(0);
        observer.view_change(ViewChange { time_ns, view: self.view, row, view_type, value });
    }
}
