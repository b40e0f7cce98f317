//! The numbers of many runs as one page.

use super::embed::shorten;
use super::{MAX_REPORT_BYTES, bundle, document, policy};
use crate::history::History;
use serde_json::json;

/// The runs of a page of which nothing is left out.
const MAX_RUNS: usize = 100_000;
/// Runs of a page at least.
const MIN_RUNS: usize = 100;

/// The history as one page of at most [`MAX_REPORT_BYTES`]; with very many runs without the last ones.
pub fn history(history: &History) -> String {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "");
    let mut runs = MAX_RUNS;
    loop {
        let mut data = json!(history);
        let left_out = history.runs.len().saturating_sub(runs);
        shorten(&mut data, runs);
        for series in data["series"].as_array_mut().into_iter().flatten() {
            shorten(series, runs);
            // Changes at runs that are left out have no name.
            if let Some(changes) = series["changes"].as_array_mut() {
                changes.retain(|change| change["run"].as_u64().is_some_and(|run| run < runs as u64));
            }
        }
        data["left_out"] = left_out.into();
        let text = document("taskscope history", &policy, &program, &[("history", data.to_string())]);
        if text.len() <= MAX_REPORT_BYTES || runs <= MIN_RUNS {
            return text;
        }
        runs /= 2;
    }
}
