//! The comparison of two sides as one page, with the timelines of both.

use super::embed::{overview_of, shorten};
use super::{MAX_REPORT_BYTES, bundle, document, policy};
use crate::comparison::Comparison;
use crate::page::{Overview, Page};
use serde_json::json;

/// Maximum size of the rows of one timeline.
const MAX_ROWS_BYTES: usize = 800_000;
/// Maximum rows per table when tables are shortened: first attempt, last attempt.
const MAX_TABLE_ROWS: usize = 2000;
const MIN_TABLE_ROWS: usize = 30;

/// The comparison as one page of at most [`MAX_REPORT_BYTES`], with timelines if both sides have one. Fewer buckets, then shorter tables
/// keep it small.
pub fn comparison(comparison: &Comparison, pages: Option<[&Page; 2]>) -> String {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "");
    let text = |rows: usize, table_rows: usize| {
        let mut numbers = json!(comparison);
        shorten(&mut numbers, table_rows);
        if let Some(paths) = &comparison.paths {
            numbers["paths"] = json!(paths.shortened(table_rows));
        }
        let mut data = vec![("comparison", numbers.to_string())];
        for (id, page) in ["before", "after"].into_iter().zip(pages.into_iter().flatten()) {
            let overview = Overview { critical_path: None, ..overview_of(page, rows) };
            data.push((id, json!(overview).to_string()));
        }
        document(&title(comparison), &policy, &program, &data)
    };
    let (mut rows, mut table_rows) = (MAX_ROWS_BYTES, usize::MAX);
    loop {
        let text = text(rows, table_rows);
        if text.len() <= MAX_REPORT_BYTES || table_rows <= MIN_TABLE_ROWS {
            return text;
        }
        rows /= 2;
        table_rows = table_rows.min(2 * MAX_TABLE_ROWS) / 2;
    }
}

/// The page of a comparison whose timelines a server answers, and its content-security policy.
pub(crate) fn compared_viewer(comparison: &Comparison) -> (String, String) {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "connect-src 'self'; ");
    let data = [("comparison", json!(comparison).to_string())];
    (document(&title(comparison), &policy, &program, &data), policy)
}

fn title(comparison: &Comparison) -> String {
    let difference = &comparison.difference;
    let title = format!("taskscope: {} and {}", difference.before.name, difference.after.name);
    title.chars().take(200).collect()
}
