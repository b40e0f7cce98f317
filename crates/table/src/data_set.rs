//! The directory of a data set.
//!
//! ```text
//! RUN.tables/
//!   run/run.parquet …                        tables of names and sums: one file over all runs
//!   state/node=0000/process=0000.parquet …   the others: one file per process
//!   views.sql                                views for DuckDB
//!   taskscope-tables.json                    the manifest, written last
//! ```

use crate::error::TableError;
use crate::file::TableFile;
use crate::rows::Value;
use crate::schema::{TABLES, Table, VERSION, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use taskscope_files::{create_directory_below, write_file};

/// File name of the manifest; it is written last.
pub const MANIFEST: &str = "taskscope-tables.json";

/// The views over the tables, in the SQL of DuckDB.
pub const VIEWS: &str = include_str!("../views.sql");

/// A column of a table.
#[derive(Clone, Debug, Serialize, JsonSchema, PartialEq, Eq)]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// Its type in SQL.
    #[serde(rename = "type")]
    pub ty: String,
    /// Whether values may be absent.
    pub nullable: bool,
    /// Unit; empty for numbers of things and for text.
    pub unit: String,
}

/// One table of a data set.
#[derive(Clone, Debug, Default, Serialize, JsonSchema, PartialEq, Eq)]
pub struct TableSummary {
    /// Its rows.
    pub rows: u64,
    /// Its files.
    pub files: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether its files are in directories `node=NUMBER`; the number is one more column.
    pub by_node: bool,
    /// Columns of its files: with them, an engine need not open files before a query.
    pub columns: Vec<ColumnSummary>,
}

impl TableSummary {
    /// The summary of a table without files.
    fn of(table: &Table) -> TableSummary {
        let columns = table.columns.iter().map(|column| ColumnSummary {
            name: column.name.to_owned(),
            ty: column.ty.sql().to_owned(),
            nullable: column.nullable,
            unit: column.unit.to_owned(),
        });
        TableSummary { by_node: table.per_process, columns: columns.collect(), ..TableSummary::default() }
    }
}

/// The manifest of a data set.
#[derive(Clone, Debug, Default, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(tag = "schema", rename = "taskscope-tables/1")]
pub struct Summary {
    /// Version of the tables: major and minor.
    pub version: String,
    /// Version of taskscope.
    pub taskscope: String,
    /// Sources of the runs, by their numbers.
    pub runs: Vec<String>,
    /// Tables with rows, by name.
    pub tables: BTreeMap<String, TableSummary>,
    /// Facts of the runs that the tables do not hold.
    pub losses: Vec<String>,
}

impl Summary {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.values().map(|table| table.rows).sum()
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.tables.values().map(|table| table.bytes).sum()
    }
}

/// First free numbers of things in a data set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub run: u32,
    pub process: u32,
    pub node: u32,
    pub location: u32,
    pub task_type: u32,
    pub site: u32,
    pub object: u32,
    pub region: u64,
    pub task: u64,
    pub path: u64,
}

/// A data set while it is written.
pub struct DataSet {
    /// Its directory; `None` if rows and bytes are only counted.
    root: Option<PathBuf>,
    singles: BTreeMap<&'static str, TableFile>,
    pub(crate) summary: Summary,
    pub(crate) next: Next,
}

impl DataSet {
    /// Begins a data set in a new or empty directory.
    ///
    /// # Errors
    /// If the directory has content, or the system refuses.
    pub fn create(root: &Path) -> Result<DataSet, TableError> {
        let io = |error| TableError::Write(root.to_owned(), error);
        std::fs::create_dir_all(root).map_err(io)?;
        if std::fs::read_dir(root).map_err(io)?.next().is_some() {
            return Err(TableError::Occupied(root.to_owned()));
        }
        DataSet::new(Some(root.to_owned()))
    }

    /// Begins a data set that is not written: rows and bytes are counted.
    ///
    /// # Errors
    /// None is known.
    pub fn counting() -> Result<DataSet, TableError> {
        DataSet::new(None)
    }

    fn new(root: Option<PathBuf>) -> Result<DataSet, TableError> {
        let summary = Summary {
            version: VERSION.to_owned(),
            taskscope: env!("CARGO_PKG_VERSION").to_owned(),
            ..Summary::default()
        };
        let mut set = DataSet { root, singles: BTreeMap::new(), summary, next: Next::default() };
        // Every table has a file, so that views and queries find it, with or without rows.
        for table in TABLES.iter().filter(|table| !table.per_process) {
            let file = set.open(table, "", table.name)?;
            set.singles.insert(table.name, file);
        }
        Ok(set)
    }

    /// Adds a row to a table with one file.
    ///
    /// # Errors
    /// If the row does not fit, or the file cannot be written.
    pub(crate) fn push<const N: usize>(
        &mut self,
        table: &'static str,
        row: [Value<'_>; N],
    ) -> Result<(), TableError> {
        match self.singles.get_mut(table) {
            Some(file) => file.push(row),
            None => Ok(()),
        }
    }

    /// Begins the file of a process in a table; it ends with [`DataSet::close`].
    pub(crate) fn begin(&self, name: &'static str, node: u32, process: u32) -> Result<TableFile, TableError> {
        let known = table(name).unwrap_or(&TABLES[0]);
        self.open(known, &format!("node={node:04}"), &format!("process={process:04}"))
    }

    fn open(&self, table: &'static Table, below: &str, name: &str) -> Result<TableFile, TableError> {
        let Some(root) = &self.root else { return TableFile::create(table, None) };
        let directory = create_directory_below(root, Path::new(table.name).join(below))
            .map_err(|error| TableError::Write(root.join(table.name), error))?;
        TableFile::create(table, Some(&directory.join(format!("{name}.parquet"))))
    }

    /// Ends a file.
    pub(crate) fn close(&mut self, name: &'static str, file: TableFile) -> Result<(), TableError> {
        let (rows, bytes) = file.finish()?;
        let begun = || table(name).map(TableSummary::of).unwrap_or_default();
        let sums = self.summary.tables.entry(name.to_owned()).or_insert_with(begun);
        sums.rows += rows;
        sums.files += 1;
        sums.bytes += bytes;
        Ok(())
    }

    /// Writes the views and the manifest.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn finish(mut self) -> Result<Summary, TableError> {
        for (name, file) in std::mem::take(&mut self.singles) {
            self.close(name, file)?;
        }
        for table in TABLES.iter().filter(|table| table.per_process) {
            if !self.summary.tables.contains_key(table.name) {
                let file = self.begin(table.name, 0, 0)?;
                self.close(table.name, file)?;
            }
        }
        let Some(root) = &self.root else { return Ok(self.summary) };
        let text = serde_json::to_vec_pretty(&self.summary).unwrap_or_default();
        for (name, content) in [("views.sql", VIEWS.as_bytes()), (MANIFEST, &text)] {
            let path = root.join(name);
            write_file(&path, |out| std::io::Write::write_all(out, content))
                .map_err(|error| TableError::Write(path.clone(), error))?;
        }
        Ok(self.summary)
    }
}
