//! A directory of tables: its manifest, and the directories of its tables.

use crate::failure::{Failure, reason};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// File name of the manifest, which is written last.
const MANIFEST: &str = "taskscope-tables.json";
/// Largest manifest, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;
/// Statements that create the tables and views.
const VIEWS: &str = include_str!("../../crates/table/views.sql");

/// A finished data set.
pub struct DataSet {
    /// Its directory, absolute.
    pub root: PathBuf,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// A table of a data set.
pub struct Table {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Whether its files are in directories `node=NUMBER`.
    pub by_node: bool,
}

/// Opens a data set.
///
/// # Errors
/// If the directory has no manifest, the manifest is not valid or of another major version, or a table is missing.
pub fn open(directory: &Path) -> Result<DataSet, Failure> {
    let cannot =
        |why: String| Failure::new(format!("cannot open tables in {}", directory.display())).why(why);
    let root = directory.canonicalize().map_err(|error| cannot(reason(&error)))?;
    let text = taskscope_files::read_regular(&root.join(MANIFEST), MAX_MANIFEST).map_err(|error| {
        cannot(format!(
            "{MANIFEST}: {}; a directory without it is unfinished, or not of taskscope",
            reason(&error)
        ))
        .remedy("taskscope export --to parquet -o RUN.tables TRACE")
    })?;
    let manifest: Value =
        serde_json::from_slice(&text).map_err(|error| cannot(format!("{MANIFEST} is not valid: {error}")))?;
    let word = |key: &str| manifest[key].as_str().unwrap_or_default();
    let (schema, version) = (word("schema"), word("version"));
    if schema != "taskscope-tables/1" || version.split('.').next() != Some("1") {
        let version = format!("{schema} {version}");
        return Err(cannot(format!(
            "they are of version {version}, and only taskscope-tables/1 1.x is known"
        )));
    }
    let mut tables = Vec::new();
    for name in manifest["tables"].as_object().into_iter().flat_map(|tables| tables.keys()) {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(cannot(format!("{MANIFEST} names a table '{name}', which is not a name of a table")));
        }
        let entries = std::fs::read_dir(root.join(name))
            .map_err(|error| cannot(format!("table {name} is missing: {}", reason(&error))))?;
        let by_node =
            entries.flatten().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"node="));
        tables.push(Table { name: name.clone(), by_node });
    }
    Ok(DataSet { root, tables })
}

/// Statements that create the views over the tables, by name.
pub fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    const CREATE: &str = "CREATE OR REPLACE VIEW ";
    let statements = VIEWS.split(";\n").filter(|text| !text.contains("read_parquet("));
    statements.filter_map(|text| {
        let statement = &text[text.find(CREATE)?..];
        Some((statement[CREATE.len()..].split(' ').next()?, statement))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_found_without_tables() {
        let names: Vec<&str> = views().map(|(name, _)| name).collect();
        assert_eq!(
            names.len(),
            VIEWS.matches("CREATE OR REPLACE VIEW").count() - VIEWS.matches("read_parquet(").count()
        );
        assert!(names.contains(&"idle_by_cause") && names.contains(&"message_matrix"), "{names:?}");
    }

    #[test]
    fn unfinished_and_hostile_directories_are_refused() {
        let place = tempfile::tempdir().unwrap();
        assert!(open(place.path()).is_err());
        let manifest = |text: &str| std::fs::write(place.path().join(MANIFEST), text).unwrap();
        for text in [
            "{",
            r#"{"schema":"taskscope-tables/1","version":"2.0","tables":{}}"#,
            r#"{"schema":"other","version":"1.0","tables":{}}"#,
            r#"{"schema":"taskscope-tables/1","version":"1.0","tables":{"../run":{}}}"#,
            r#"{"schema":"taskscope-tables/1","version":"1.0","tables":{"run":{}}}"#,
        ] {
            manifest(text);
            assert!(open(place.path()).is_err(), "{text}");
        }
        manifest(r#"{"schema":"taskscope-tables/1","version":"1.7","tables":{"state":{}}}"#);
        std::fs::create_dir_all(place.path().join("state/node=0000")).unwrap();
        let set = open(place.path()).unwrap();
        assert!(set.tables[0].by_node && set.tables[0].name == "state");
    }
}
