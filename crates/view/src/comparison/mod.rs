//! Two runs, or two sets of runs, on one page.
//!
//! Data flow: each side is opened and analysed once and becomes a [`Side`]. [`compare_runs`] compares the numbers, as `diff`
//! prints them; [`alignment`] pairs the parts of both runs; [`call_trees`] joins their call paths. The result is the document
//! [`Comparison`], which [`crate::html::comparison`] puts into one file, beside the timelines of both sides, and
//! [`crate::server`] serves.
//!
//! Invariants:
//! - the numbers are those of `diff --json` for the same paths;
//! - aligned parts are in the order of time and do not overlap, in both runs;
//! - own values of the joined call paths and those of `left_out` sum to the totals of each side.

mod alignment;
mod call_trees;

pub use alignment::{AlignedPart, Alignment};
pub use call_trees::{JoinedPath, JoinedPaths};

use crate::page::Page;
use crate::run_difference::{RunDifferenceReport, compare_runs};
use crate::run_numbers::RunNumbers;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, total};
use taskscope_profile::named::CallTree;
use taskscope_session::Session;

/// One side of a comparison.
pub struct Side {
    /// The name as given.
    pub name: String,
    /// The numbers of each run of the side.
    pub numbers: Vec<RunNumbers>,
    /// The run that is shown; `None` if it has no timeline, as a profile or an imported task graph.
    pub shown: Option<ShownRun>,
    /// Its call paths; `None` without samples.
    pub tree: Option<CallTree>,
}

/// The run of a side that has a timeline.
pub struct ShownRun {
    /// Its page.
    pub page: Page,
    /// Its numbers.
    pub numbers: RunNumbers,
}

impl ShownRun {
    /// Analyses an opened run: the run, and its call paths if samples were taken.
    pub fn of(session: Session) -> (ShownRun, Option<CallTree>) {
        let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
        let numbers = RunNumbers::from_session(&session, &analysis);
        let has_samples = !session.execution.whole().samples.rows.is_empty();
        let tree = has_samples.then(|| crate::CallPaths::from_session(&session, TaskContext::Creation).tree);
        (ShownRun { page: Page::without_path(session, &analysis, &problems), numbers }, tree)
    }
}

/// Two runs or two sets of runs, side by side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-compare/1")]
pub struct Comparison {
    /// The numbers of both sides, as `diff --json` has them.
    pub difference: RunDifferenceReport,
    /// The shown run of each side: before, after.
    pub shown: [ShownFacts; 2],
    /// Parts of both runs that belong together.
    pub alignment: Alignment,
    /// Call paths of both runs; null if one of them has no samples.
    pub paths: Option<JoinedPaths>,
}

/// The run of a side that is shown.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ShownFacts {
    /// Its trace; null if the side has no timeline.
    pub trace: Option<String>,
    /// Start of the run, nanoseconds since 1970 (UTC); null if unknown.
    pub start_unix_ns: Option<u64>,
}

impl Comparison {
    /// Compares two sides.
    pub fn of(before: &Side, after: &Side) -> Comparison {
        let difference = compare_runs(&before.numbers, &after.numbers).report([&before.name, &after.name]);
        let shown = [before, after].map(|side| match &side.shown {
            Some(run) => ShownFacts {
                trace: Some(run.page.report.trace.clone()),
                start_unix_ns: run.page.report.start_unix_ns,
            },
            None => ShownFacts::default(),
        });
        let alignment = match (&before.shown, &after.shown) {
            (Some(before), Some(after)) => Alignment::of(&before.page, &after.page),
            _ => Alignment::default(),
        };
        let paths = before.tree.as_ref().zip(after.tree.as_ref()).map(|(before, after)| {
            let (first, second) = (Column::main_of(&before.tree), Column::main_of(&after.tree));
            let have = |column: &Column| [before, after].iter().all(|side| total(&side.tree, *column) > 0);
            let column = match first == second {
                true => first,
                // A run with samples against one without: a column of both.
                false => [Column::Time, Column::Waiting].into_iter().find(have).unwrap_or(Column::Waiting),
            };
            JoinedPaths::of(before, after, column)
        });
        Comparison { difference, shown, alignment, paths }
    }
}
