//! The interface of exports: records, and their receiver.

use super::arrows::Arrow;
use super::content::{Content, Held, Kept, Loss};
use super::samples::Sample;
use super::tables::Timeline;
use std::io;
use taskscope_execution::{ObjectIndex, RegionIndex, TaskIndex};

/// A section of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Row of [`Timeline::lanes`].
    pub lane: u32,
    /// Row of [`Timeline::codes`].
    pub code: u32,
    /// Begin, nanoseconds of the trace's clock.
    pub start: u64,
    /// End; not before the begin.
    pub end: u64,
    /// The innermost explicit task, if any.
    pub task: TaskIndex,
    /// The innermost region, if any.
    pub region: RegionIndex,
    /// The awaited object, if known.
    pub object: ObjectIndex,
    /// Bytes that an operation moves or a process gives, or events that were lost; 0 for others.
    pub amount: u64,
    /// Row of a part in a collective operation, for [`Timeline::collective`]; none for others.
    pub part: Option<u32>,
}

/// A fact at a time.
#[derive(Clone, Copy, Debug)]
pub enum Record<'t> {
    /// A section begins.
    Enter {
        /// The section.
        section: Section,
        /// The arrows with ends in it: twice the row of [`Timeline::arrows`], and one more for the arrow's end.
        arrows: &'t [u32],
    },
    /// A section ends.
    Leave {
        /// The section, as it began.
        section: Section,
        /// As at its begin.
        arrows: &'t [u32],
    },
    /// An arrow begins.
    ArrowStart {
        /// Row of [`Timeline::arrows`].
        number: u32,
        /// The arrow.
        arrow: Arrow,
    },
    /// An arrow ends.
    ArrowEnd {
        /// Row of [`Timeline::arrows`].
        number: u32,
        /// The arrow.
        arrow: Arrow,
    },
    /// A thread was sampled.
    Sample(Sample),
    /// A counter has another value.
    Counter {
        /// Row of [`Timeline::counters`].
        counter: u32,
        /// Time, nanoseconds of the trace's clock.
        at: u64,
        /// The value from then on.
        value: i64,
    },
}

/// A writer of a format.
pub trait Export {
    /// The form of a content in the format, or the reason why it has none.
    fn holds(&self, content: Content) -> Held;

    /// Writes the begin: definitions of lanes, codes, counters.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()>;

    /// Writes a record. Their times never decrease.
    ///
    /// # Errors
    /// If it cannot be written.
    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()>;

    /// Writes the end.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end(&mut self, timeline: &Timeline<'_>) -> io::Result<()>;
}

/// All contents that the run has, with their forms in the format.
pub fn holdings(timeline: &Timeline<'_>, export: &dyn Export) -> Vec<Kept> {
    let rows = Content::ALL.into_iter().map(|content| Kept {
        content: content.name(),
        count: timeline.count(content),
        held: export.holds(content),
    });
    rows.filter(|row| row.count > 0).collect()
}

/// The contents that the run has and the export loses: those without a form in the format, and those that
/// [`Timeline::dropped`] has.
pub fn losses(timeline: &Timeline<'_>, export: &dyn Export) -> Vec<Loss> {
    let contents = holdings(timeline, export).into_iter().filter_map(|row| match row.held {
        Held::As(_) => None,
        Held::Not(why) => Some(Loss { content: row.content, count: row.count, why }),
    });
    contents.chain(timeline.dropped()).collect()
}
