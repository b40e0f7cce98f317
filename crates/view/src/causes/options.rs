//! Options of the causes report, and numbers of its sections.

use super::what_if::WhatIf;
use crate::section::Section;
use serde_json::Value;
use taskscope_analysis::FineNanos;
use taskscope_analysis::slo::Mode;
use taskscope_cause::Runtime;

/// Options of the causes report.
#[derive(Clone, Debug)]
pub struct CausesOptions {
    /// The sections, of [`Section::OF_GRAPH`].
    pub sections: Vec<Section>,
    /// The accounting of idle producers.
    pub mode: Mode,
    /// Whether the JSON lists every idle interval.
    pub intervals: bool,
    /// Windows of time for which partial sums are wanted.
    pub windows: Vec<(u64, u64)>,
    /// Questions for the replay; the default ones if empty.
    pub what_if: Vec<WhatIf>,
    /// Rows of each table of the text, and types of tasks in the questions for the replay.
    pub top: usize,
    /// The part of the run that the numbers are of, nanoseconds of the trace's clock: the whole is analysed, then cut.
    pub range: (u64, u64),
    /// That part, and other selections, in the user's words; `None` for a whole run.
    pub part: Option<String>,
    /// Notes on all sections, in sentences.
    pub notes: Vec<String>,
    /// The runtime of the run, for advice in its terms; `None` if unknown.
    pub runtime: Option<Runtime>,
}

/// Nanoseconds of a stretch of time that are in a range.
pub(super) fn nanos_within((from, to): (u64, u64), (begin, end): (u64, u64)) -> u64 {
    to.min(end).saturating_sub(from.max(begin))
}

/// Nanoseconds to six decimals; without a point if these are zeros.
pub(super) fn number(time: FineNanos) -> Value {
    let ns = time.to_six_decimals();
    if ns == ns.trunc() { time.rounded().into() } else { ns.into() }
}
