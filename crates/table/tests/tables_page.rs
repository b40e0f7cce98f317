//! `docs/tables.md` has the list of tables. `UPDATE_DOCS=1 cargo test -p taskscope-table` writes it anew.

use std::collections::BTreeSet;
use std::path::Path;
use taskscope_table::{RECIPES, TABLES, VIEWS, page};

const MARK: &str = "cargo test -p taskscope-table -->\n";

#[test]
fn the_page_has_the_list_of_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let stored = std::fs::read_to_string(&path).unwrap();
    let written = &stored[..stored.find(MARK).unwrap() + MARK.len()];
    let whole = format!("{written}\n{}", page());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &whole).unwrap();
    }
    let is_new = stored == whole || std::env::var_os("UPDATE_DOCS").is_some();
    assert!(is_new, "docs/tables.md is stale; run: UPDATE_DOCS=1 cargo test -p taskscope-table");
}

#[test]
fn names_are_unique_and_need_no_quotes() {
    let mut tables = BTreeSet::new();
    for table in TABLES {
        let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(is_plain(table.name) && tables.insert(table.name), "{}", table.name);
        let columns: BTreeSet<&str> = table.columns.iter().map(|column| column.name).collect();
        assert_eq!(columns.len(), table.columns.len(), "{}", table.name);
        for column in table.columns {
            assert!(is_plain(column.name), "{}.{}", table.name, column.name);
            let is_time = column.name == "ns" || column.name.ends_with("_ns");
            assert_eq!(is_time, column.unit == "ns", "{}.{}", table.name, column.name);
        }
    }
}

#[test]
fn views_have_every_table() {
    for table in TABLES {
        let files = if table.per_process { "*/*" } else { "*" };
        let view =
            format!("VIEW {} AS SELECT * FROM read_parquet('{}/{files}.parquet'", table.name, table.name);
        assert!(VIEWS.contains(&view), "{view}");
    }
}

#[test]
fn stored_queries_are_those_of_the_directory() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let names: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let known: BTreeSet<String> = RECIPES.iter().map(|recipe| recipe.name.to_owned()).collect();
    assert_eq!(names, known);
    for recipe in RECIPES {
        assert!(recipe.question().ends_with('?'), "{}", recipe.name);
    }
}
