//! The neutral form as CSV: one table a file, a head line with the names of the columns.

use super::json::{TASK_MEMBERS, WORKER_MEMBERS};
use super::rows::{CopyRow, DataRow, Rows, RuntimeRow, Source, TaskRow, WorkerRow, role};
use crate::delimited::{Record, Records, Separator};
use crate::{ImportError, ImportErrors};
use taskscope_execution::graph::{Table, TaskGraph};

/// The texts of the tables; an empty text is a table without rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct CsvTables<'a> {
    /// id, node, begin, end, kind (may be missing or empty)
    pub workers: &'a str,
    /// id, type, node, worker, start, end, inputs (separated by spaces), runtime_uniform
    pub tasks: &'a str,
    /// id, producer (empty for initial data), produced, home
    pub data: &'a str,
    /// data, node, sent (may be empty), arrived
    pub copies: &'a str,
    /// worker, start, end, kind
    pub runtime: &'a str,
}

/// Reads a neutral trace.
///
/// # Errors
/// Every error that was found, each with file, line and column's name.
pub fn read_csv(tables: CsvTables<'_>) -> Result<TaskGraph, ImportErrors> {
    let mut errors = Vec::new();
    let mut rows = Rows::default();
    let workers = read(tables.workers, "workers.csv", &["id", "node", "begin", "end"], &mut errors, |row| {
        rows.workers.push(WorkerRow {
            id: row.number("id")?,
            node: row.number("node")?,
            begin: row.number("begin")?,
            end: row.number("end")?,
            role: match row.text("kind") {
                "" => None,
                name => Some(role(name).map_err(|text| ("kind", text))?),
            },
        });
        Ok(())
    });
    let columns = ["id", "type", "node", "worker", "start", "end"];
    let tasks = read(tables.tasks, "tasks.csv", &columns, &mut errors, |row| {
        let inputs = row.text("inputs").split_whitespace();
        let line = row.optional("line")?.unwrap_or(0);
        let task = TaskRow {
            id: row.number("id")?,
            ty: row.text("type").to_owned(),
            node: row.number("node")?,
            worker: row.number("worker")?,
            start: row.number("start")?,
            end: row.number("end")?,
            inputs: inputs.map(|id| number(id, "inputs")).collect::<Result<_, _>>()?,
            uniform: row.optional("runtime_uniform")?.unwrap_or(0),
            created: row.optional("created")?,
            creator: row.optional("creator")?,
            ready: row.optional("ready")?,
            function: row.text("function").to_owned(),
            file: row.text("file").to_owned(),
            line: u32::try_from(line).map_err(|_| ("line", format!("{line} is no line of a file")))?,
        };
        rows.tasks.push(task);
        Ok(())
    });
    let data = read(tables.data, "data.csv", &["id", "producer", "produced", "home"], &mut errors, |row| {
        let producer = row.optional("producer")?;
        let produced = row.optional("produced")?;
        if producer.is_some() && produced.is_none() {
            return Err(("produced", "a producer, but no time of production".to_owned()));
        }
        rows.data.push(DataRow {
            id: row.number("id")?,
            producer,
            produced: produced.unwrap_or(0),
            home: row.number("home")?,
            bytes: row.optional("bytes")?.unwrap_or(0),
            name: row.text("name").to_owned(),
        });
        Ok(())
    });
    let copies = read(tables.copies, "copies.csv", &["data", "node", "arrived"], &mut errors, |row| {
        rows.copies.push(CopyRow {
            data: row.number("data")?,
            node: row.number("node")?,
            sent: row.optional("sent")?,
            arrived: row.number("arrived")?,
        });
        Ok(())
    });
    let runtime =
        read(tables.runtime, "runtime.csv", &["worker", "start", "end", "kind"], &mut errors, |row| {
            rows.runtime.push(RuntimeRow {
                worker: row.number("worker")?,
                start: row.number("start")?,
                end: row.number("end")?,
                kind: row.text("kind").to_owned(),
            });
            Ok(())
        });
    let lines = Lines { workers, tasks, data, copies, runtime };
    if errors.is_empty() { rows.graph(&lines) } else { Err(ImportErrors(errors)) }
}

/// The line of each row of each table.
struct Lines {
    workers: Vec<usize>,
    tasks: Vec<usize>,
    data: Vec<usize>,
    copies: Vec<usize>,
    runtime: Vec<usize>,
}

impl Source for Lines {
    fn error(&self, table: Table, row: usize, field: &str, text: String) -> ImportError {
        let (file, lines) = match table {
            Table::Workers => ("workers.csv", &self.workers),
            Table::Tasks | Table::Inputs | Table::Pieces => ("tasks.csv", &self.tasks),
            Table::Data => ("data.csv", &self.data),
            Table::Copies => ("copies.csv", &self.copies),
            Table::Activities => ("runtime.csv", &self.runtime),
        };
        let line = lines.get(row).copied().unwrap_or(0);
        ImportError { file: file.to_owned(), line, field: field.to_owned(), text }
    }
}

/// Field and sentence.
type Wrong = (&'static str, String);

struct Row<'a> {
    columns: &'a [String],
    record: Record<'a>,
}

impl Row<'_> {
    fn index(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    /// The field of a column; empty if the table has no such column.
    fn text(&self, column: &str) -> &str {
        self.index(column).map_or("", |index| self.record.field(index).trim())
    }

    /// The line of a column's field.
    fn line(&self, column: &str) -> usize {
        self.record.line_of(self.index(column).unwrap_or(0))
    }

    fn number(&self, column: &'static str) -> Result<u64, Wrong> {
        number(self.text(column), column)
    }

    fn optional(&self, column: &'static str) -> Result<Option<u64>, Wrong> {
        match self.text(column) {
            "" => Ok(None),
            text => number(text, column).map(Some),
        }
    }
}

fn number(text: &str, column: &'static str) -> Result<u64, Wrong> {
    text.parse().map_err(|_| {
        let wrong = match text.parse::<f64>() {
            _ if text.is_empty() => "the field is empty".to_owned(),
            Ok(number) if number < 0.0 => format!("{text} is negative; ids and times are integers from 0 on"),
            _ => format!("`{text}` is no integer; ids and times are integers"),
        };
        (column, wrong)
    })
}

/// Columns that are not of the form, as `tasks.csv: input`: they are not read. One that is mistyped would be taken as one that
/// was left out.
pub fn unread_columns(tables: &CsvTables<'_>) -> Vec<String> {
    let files: [(&str, &str, &[&str]); 5] = [
        ("workers.csv", tables.workers, &WORKER_MEMBERS),
        ("tasks.csv", tables.tasks, &TASK_MEMBERS),
        ("data.csv", tables.data, &["id", "producer", "produced", "home", "bytes", "name"]),
        ("copies.csv", tables.copies, &["data", "node", "sent", "arrived"]),
        ("runtime.csv", tables.runtime, &["worker", "start", "end", "kind"]),
    ];
    let unread = files.into_iter().flat_map(|(file, text, known)| {
        let mut records = records(text);
        let columns = records.read().map_or_else(Vec::new, |head| columns(&head));
        let further = columns.into_iter().filter(|name| !name.is_empty() && !known.contains(&name.as_str()));
        further.map(move |name| format!("{file}: {name}"))
    });
    unread.collect()
}

fn records(text: &str) -> Records<'_> {
    Records::new(text.trim_start_matches('\u{feff}'), Separator::Character(b','), false)
}

fn columns(head: &Record<'_>) -> Vec<String> {
    head.fields().map(|name| name.trim().to_owned()).collect()
}

/// Reads the rows of a table, and returns their lines.
fn read(
    text: &str,
    file: &str,
    needed: &[&str],
    errors: &mut Vec<ImportError>,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Wrong>,
) -> Vec<usize> {
    let mut records = records(text);
    let mut rows = Vec::new();
    let mut report = |line, field: &str, text| {
        if errors.len() < 100 {
            errors.push(ImportError { file: file.to_owned(), line, field: field.to_owned(), text });
        }
    };
    let Some(head) = records.read() else { return rows };
    let (head_line, columns) = (head.line, columns(&head));
    let mut is_complete = true;
    for column in needed.iter().filter(|column| !columns.iter().any(|name| name == *column)) {
        report(head_line, column, "the head line has no such column".to_owned());
        is_complete = false;
    }
    while let Some(record) = records.read().filter(|_| is_complete) {
        let row = Row { columns: &columns, record };
        let (line, fields) = (row.record.line, row.record.len());
        if let Some(field) = row.record.unclosed {
            let column = columns.get(field).map_or("", String::as_str);
            report(line, column, "a quote is opened here and not closed within 64 KiB".to_owned());
        } else if fields > columns.len() {
            report(line, "", format!("{fields} fields, but the head line names {}", columns.len()));
        } else if let Err((field, text)) = take(&row) {
            report(row.line(field), field, text);
        } else {
            rows.push(line);
        }
    }
    rows
}
