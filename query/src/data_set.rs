//! A directory of tables: its manifest, and the directories of its tables.
//!
//! The manifest lists the columns of each table, so a query of a million files opens none of them before it begins, and the
//! tables may be at a place that executors read and this machine does not. A manifest of an earlier version has no columns: then
//! the engine takes them from the files.

use crate::failure::{Failure, reason};
use crate::place;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use serde_json::Value;
use std::path::Path;

/// File name of the manifest, which is written last.
const MANIFEST: &str = "taskscope-tables.json";
/// Largest manifest, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;
/// Statements that create the tables and views.
const VIEWS: &str = include_str!("../../crates/table/views.sql");

/// A finished data set.
pub struct DataSet {
    /// The URL of its directory, with a slash at its end.
    pub url: String,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// A table of a data set.
pub struct Table {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Whether its files are in directories `node=NUMBER`.
    pub by_node: bool,
    /// Its rows, if the manifest has them.
    pub rows: Option<u64>,
    /// Columns of its files, if the manifest lists them.
    pub columns: Option<Schema>,
}

/// Opens a data set. With a `store`, the directory has the manifest, and executors read the tables at that URL.
///
/// # Errors
/// If the directory has no manifest, the manifest is not valid or of another major version, or a table is missing.
pub fn open(directory: &Path, store: Option<&str>) -> Result<DataSet, Failure> {
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
        let columns = columns_of(&manifest["tables"][name]["columns"]);
        let by_node = match store {
            None => is_by_node(&root.join(name))
                .map_err(|error| cannot(format!("table {name} is missing: {}", reason(&error))))?,
            Some(_) if columns.is_none() => {
                return Err(cannot(format!("{MANIFEST} does not list the columns of table {name}"))
                    .remedy("taskscope export --to parquet -o RUN.tables TRACE, and upload it"));
            }
            Some(_) => manifest["tables"][name]["by_node"] == true,
        };
        let rows = manifest["tables"][name]["rows"].as_u64();
        tables.push(Table { name: name.clone(), by_node, rows, columns });
    }
    let url = store.map_or_else(|| Ok(place::url_of(&root)), place::store)?;
    Ok(DataSet { url, tables })
}

fn is_by_node(table: &Path) -> std::io::Result<bool> {
    let mut entries = std::fs::read_dir(table)?.flatten();
    Ok(entries.any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"node=")))
}

/// Columns as the manifest lists them; none if it does not, or has a type of a later version.
fn columns_of(list: &Value) -> Option<Schema> {
    let field = |column: &Value| {
        let ty = match column["type"].as_str()? {
            "INTEGER" => DataType::Int32,
            "BIGINT" => DataType::Int64,
            "DOUBLE" => DataType::Float64,
            "BOOLEAN" => DataType::Boolean,
            // Text of Parquet has this type in the engine.
            "VARCHAR" => DataType::Utf8View,
            _ => return None,
        };
        Some(Field::new(column["name"].as_str()?, ty, column["nullable"].as_bool()?))
    };
    let fields: Option<Vec<Field>> = list.as_array()?.iter().map(field).collect();
    fields.filter(|fields| !fields.is_empty()).map(Schema::new)
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
        assert!(open(place.path(), None).is_err());
        let manifest = |text: &str| std::fs::write(place.path().join(MANIFEST), text).unwrap();
        for text in [
            "{",
            r#"{"schema":"taskscope-tables/1","version":"2.0","tables":{}}"#,
            r#"{"schema":"other","version":"1.0","tables":{}}"#,
            r#"{"schema":"taskscope-tables/1","version":"1.0","tables":{"../run":{}}}"#,
            r#"{"schema":"taskscope-tables/1","version":"1.0","tables":{"run":{}}}"#,
        ] {
            manifest(text);
            assert!(open(place.path(), None).is_err(), "{text}");
        }
        manifest(r#"{"schema":"taskscope-tables/1","version":"1.7","tables":{"state":{}}}"#);
        std::fs::create_dir_all(place.path().join("state/node=0000")).unwrap();
        let set = open(place.path(), None).unwrap();
        assert!(set.tables[0].by_node && set.tables[0].name == "state" && set.tables[0].columns.is_none());
        // Without columns, nothing is known of tables elsewhere.
        assert!(open(place.path(), Some("s3://bucket/RUN.tables")).is_err());
    }

    #[test]
    fn columns_of_the_manifest_make_files_unnecessary() {
        let place = tempfile::tempdir().unwrap();
        let manifest = |ty: &str| {
            let columns = format!(r#"[{{"name":"run","type":"{ty}","nullable":true,"unit":""}}]"#);
            let table = format!(r#"{{"state":{{"by_node":true,"columns":{columns}}}}}"#);
            let text = format!(r#"{{"schema":"taskscope-tables/1","version":"1.1","tables":{table}}}"#);
            std::fs::write(place.path().join(MANIFEST), text).unwrap();
        };
        manifest("INTEGER");
        let set = open(place.path(), Some("s3://bucket/RUN.tables")).unwrap();
        assert_eq!(set.url, "s3://bucket/RUN.tables/");
        let expected = Schema::new(vec![Field::new("run", DataType::Int32, true)]);
        assert!(set.tables[0].by_node && set.tables[0].columns == Some(expected));
        assert!(open(place.path(), Some("http://host/RUN.tables")).is_err());
        // Here, the files are needed.
        assert!(open(place.path(), None).is_err());
        manifest("DATE");
        assert!(open(place.path(), Some("s3://bucket/RUN.tables")).is_err());
    }
}
