//! The call paths of two runs, joined for a differential flame graph.

use crate::call_paths::columns::key_of;
use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_analysis::call_views::{self as views, Column};
use taskscope_profile::named::CallTree;

/// Paths in the document: those with the largest own value on either side.
const MAX_PATHS: usize = 3000;

/// Call paths of two runs, joined by the names of their functions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JoinedPaths {
    /// The column: nanoseconds, or a count.
    pub column: String,
    /// Sum of the column: before, after.
    pub totals: [u64; 2],
    /// Own values of the paths that were left out: before, after.
    pub left_out: [u64; 2],
    /// Names of frames.
    pub names: Vec<String>,
    /// Paths with an own value, the largest first.
    pub rows: Vec<JoinedPath>,
}

/// A path of both runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JoinedPath {
    /// Its frames, outermost first: places in `names`.
    pub path: Vec<u32>,
    /// Own value: before, after.
    pub own: [u64; 2],
}

impl JoinedPaths {
    /// Joins two trees in a column.
    pub(super) fn of(before: &CallTree, after: &CallTree, column: Column) -> JoinedPaths {
        let (both, mut own) = views::joined(before, after, column);
        own.sort_by_key(|(node, values)| (std::cmp::Reverse(values[0].max(values[1])), *node));
        let kept = own.len().min(MAX_PATHS);
        let sum = |rows: &[(taskscope_profile::NodeId, [u64; 2])], side: usize| {
            rows.iter().map(|(_, values)| values[side]).sum::<u64>()
        };
        let mut names: IndexSet<String> = IndexSet::new();
        let rows = own[..kept].iter().map(|(node, values)| {
            let mut path: Vec<u32> =
                both.tree.path(*node).map(|frame| names.insert_full(both.text_of(frame)).0 as u32).collect();
            path.reverse();
            JoinedPath { path, own: *values }
        });
        let rows = rows.collect();
        JoinedPaths {
            column: key_of(column),
            totals: [0, 1].map(|side| sum(&own, side)),
            left_out: [0, 1].map(|side| sum(&own[kept..], side)),
            names: names.into_iter().collect(),
            rows,
        }
    }

    /// These paths without the last ones, of which no more than `most` are left.
    pub(crate) fn shortened(&self, most: usize) -> JoinedPaths {
        let mut short = self.clone();
        for row in short.rows.drain(most.min(self.rows.len())..) {
            [0, 1].iter().for_each(|side| short.left_out[*side] += row.own[*side]);
        }
        // Names are in the order of the paths.
        let last = short.rows.iter().flat_map(|row| &row.path).max();
        short.names.truncate(last.map_or(0, |last| *last as usize + 1));
        short
    }
}
