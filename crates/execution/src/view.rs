//! Views: numbers over time for a thread, a CPU or a whole model, and their observers.
//!
//! A view has rows (threads, CPUs, or ranks of a histogram) and types (task id, subsystem, …). A cell, one row and one
//! type, holds one value at a time. An observer receives every written value, in time order.

/// A family of views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViewFamily {
    /// One row per thread.
    Thread,
    /// One row per CPU: the values of its running thread.
    Cpu,
    /// Nanos6: the activities of the CPUs, sorted by value, one row per CPU.
    Nanos6Breakdown,
    /// nOS-V: as [`ViewFamily::Nanos6Breakdown`].
    NosvBreakdown,
    /// OpenMP: as [`ViewFamily::Nanos6Breakdown`].
    OpenmpBreakdown,
}

impl ViewFamily {
    /// All families.
    pub const ALL: [ViewFamily; 5] = [
        ViewFamily::Thread,
        ViewFamily::Cpu,
        ViewFamily::Nanos6Breakdown,
        ViewFamily::NosvBreakdown,
        ViewFamily::OpenmpBreakdown,
    ];

    /// The base name of its files in a Paraver export.
    pub fn file_name(self) -> &'static str {
        match self {
            ViewFamily::Thread => "thread",
            ViewFamily::Cpu => "cpu",
            ViewFamily::Nanos6Breakdown => "nanos6-breakdown",
            ViewFamily::NosvBreakdown => "nosv-breakdown",
            ViewFamily::OpenmpBreakdown => "openmp-breakdown",
        }
    }
}

/// A value that a cell takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// Nanoseconds since the first event of the trace.
    pub time_ns: i64,
    /// Its family.
    pub view: ViewFamily,
    /// Row, from 0.
    pub row: u32,
    /// Number of the type, as in Paraver.
    pub view_type: u32,
    /// The value; 0 for "nothing".
    pub value: i64,
}

/// Receives every change of every view.
pub trait ViewObserver {
    /// Whether it wants changes at all. An observer that does not lets the machine leave out all
    /// work on views.
    const WANTS_VIEWS: bool = true;

    /// A cell takes a value. Times never decrease.
    fn view_change(&mut self, change: ViewChange);
}

/// Ignores views: for checks, and for analyses that observe something else.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoViews;

impl ViewObserver for NoViews {
    const WANTS_VIEWS: bool = false;
    fn view_change(&mut self, _change: ViewChange) {}
}

impl ViewObserver for Vec<ViewChange> {
    fn view_change(&mut self, change: ViewChange) {
        self.push(change);
    }
}

/// A type of a view, and the meanings of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewType {
    /// Its number.
    pub number: u32,
    /// Its title.
    pub title: String,
    /// Values and their labels.
    pub values: Vec<(i64, String)>,
}

/// Facts that an export needs about a family of views besides its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewDescription {
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// All types that may occur.
    pub types: Vec<ViewType>,
}
