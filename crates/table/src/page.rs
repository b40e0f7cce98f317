//! The list of tables as a page of the book.

use crate::schema::{TABLES, VERSION};
use std::fmt::Write;

/// The reference part of `docs/tables.md`, in Markdown.
pub fn page() -> String {
    let mut page = format!("Version {VERSION} of the tables.\n");
    for table in TABLES {
        let files = if table.per_process { "one file per process" } else { "one file" };
        let _ = write!(page, "\n### {}\n\n{}; {files}.\n\n", table.name, table.meaning);
        page.push_str("| column | type | unit | meaning |\n| --- | --- | --- | --- |\n");
        for column in table.columns {
            let null = if column.nullable { ", or null" } else { "" };
            let _ = writeln!(
                page,
                "| `{}` | {}{null} | {} | {} |",
                column.name,
                column.ty.sql(),
                column.unit,
                column.meaning
            );
        }
    }
    page
}
