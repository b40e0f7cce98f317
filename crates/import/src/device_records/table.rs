//! The rows of the files, unchanged: TSV or CSV, with or without a header line.

use crate::delimited::{Record, Records, Separator};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use taskscope_files::read_regular;

/// Longest dump.
const MAX_FILE_BYTES: u64 = 8 << 30;

/// The reason why a file cannot be read as a dump.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// No line names the columns `start` and `end`.
    #[error("{} names no columns `start` and `end`", path.display())]
    NoColumns {
        /// The file.
        path: PathBuf,
    },
}

/// A file's text, and the names of its columns.
pub struct File {
    pub path: PathBuf,
    pub columns: Vec<String>,
    /// Roles by column.
    roles: Vec<Option<Role>>,
    separator: Separator,
    text: String,
}

/// Meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Start,
    End,
    Append,
    Submit,
    Queue,
    Device,
    Id,
    /// The command list or graph that an id counts in.
    List,
    /// Which execution of that list.
    Execution,
    Thread,
    Kind,
    Name,
    Bytes,
    /// Whether the queue is in-order.
    Order,
}

/// The names that vendors and tools use, in lower case without leading underscores.
const NAMES: &[(&str, Role)] = &[
    ("start", Role::Start),
    ("start_ns", Role::Start),
    ("start_timestamp", Role::Start),
    ("begin", Role::Start),
    ("end", Role::End),
    ("end_ns", Role::End),
    ("end_timestamp", Role::End),
    ("stop", Role::End),
    ("append", Role::Append),
    ("append_ns", Role::Append),
    ("append_timestamp", Role::Append),
    ("queued", Role::Append),
    ("queued_ns", Role::Append),
    ("enqueue", Role::Append),
    ("submit", Role::Submit),
    ("submit_ns", Role::Submit),
    ("submit_timestamp", Role::Submit),
    ("submitted", Role::Submit),
    ("queue", Role::Queue),
    ("queue_handle", Role::Queue),
    ("queue_id", Role::Queue),
    ("stream", Role::Queue),
    ("stream_id", Role::Queue),
    ("streamid", Role::Queue),
    ("device", Role::Device),
    ("device_id", Role::Device),
    ("device_handle", Role::Device),
    ("deviceid", Role::Device),
    ("id", Role::Id),
    ("kernel_id", Role::Id),
    ("op_id", Role::Id),
    ("correlation", Role::Id),
    ("correlation_id", Role::Id),
    ("correlationid", Role::Id),
    ("list", Role::List),
    ("command_list", Role::List),
    ("graph", Role::List),
    ("graph_id", Role::List),
    ("execution", Role::Execution),
    ("exec", Role::Execution),
    ("thread", Role::Thread),
    ("thread_id", Role::Thread),
    ("threadid", Role::Thread),
    ("tid", Role::Thread),
    ("kind", Role::Kind),
    ("op", Role::Name),
    ("name", Role::Name),
    ("kernel", Role::Name),
    ("bytes", Role::Bytes),
    ("size", Role::Bytes),
    ("order", Role::Order),
    ("queue_order", Role::Order),
];

/// A record as it was delivered.
pub struct Row {
    pub file: u32,
    /// Bytes of the file's text.
    place: Range<usize>,
    /// Index into `Table::queue_names`; `None` for a record that names no queue.
    pub queue: Option<u32>,
    /// Index into [`Table::texts`]; `None` if it is empty or the column is missing.
    pub device: Option<u32>,
    pub list: Option<u32>,
    pub kind: Option<u32>,
    pub name: Option<u32>,
    pub order: Option<u32>,
    /// Index into [`Table::threads`].
    pub thread_index: u32,
    pub id: Option<u64>,
    pub execution: Option<u64>,
    pub append: Option<u64>,
    pub submit: Option<u64>,
    pub bytes: Option<u64>,
    /// 0 if it could not be read.
    pub start: u64,
    pub end: u64,
}

impl Row {
    /// The submission time: recorded work was appended long before each execution.
    pub fn submission(&self) -> Option<u64> {
        if self.list.is_some() { self.submit } else { self.append }
    }
}

/// All rows of all files, in the order of delivery.
pub struct Table {
    pub files: Vec<File>,
    pub rows: Vec<Row>,
    /// Every text that a role's column holds, once.
    pub texts: Vec<String>,
    /// Threads as they are written; the first is the empty one.
    pub threads: Vec<String>,
    /// Unreadable data, with file and line.
    pub problems: Vec<String>,
}

/// Texts, each once.
#[derive(Default)]
struct Interner {
    known: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Interner {
    fn index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.texts.len() as u32;
        self.known.insert(text.to_owned(), index);
        self.texts.push(text.to_owned());
        index
    }
}

impl Table {
    /// Reads the files.
    pub fn read(paths: &[PathBuf]) -> Result<Table, ReadError> {
        let (mut files, mut rows, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        let (mut texts, mut threads) = (Interner::default(), Interner::default());
        threads.index("");
        for (number, path) in paths.iter().enumerate() {
            let bytes = read_regular(path, MAX_FILE_BYTES)
                .map_err(|source| ReadError::Unreadable { path: path.clone(), source })?;
            let text = match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => {
                    problems.push(format!("{}: invalid UTF-8 were replaced", path.display()));
                    String::from_utf8_lossy(error.as_bytes()).into_owned()
                }
            };
            if text.trim().is_empty() {
                problems.push(format!("{}: the file is empty", path.display()));
                continue;
            }
            let (file, first_row) = File::of(path, text)?;
            let mut reader = RowReader {
                file: &file,
                number: number as u32,
                texts: &mut texts,
                threads: &mut threads,
                no_numbers: BTreeMap::new(),
            };
            reader.read(first_row, &mut rows, &mut problems);
            files.push(file);
        }
        // Files without rows are left out, so that numbers must be made to fit.
        let place = |path: &PathBuf| files.iter().position(|file: &File| file.path == *path);
        let places: Vec<u32> = paths.iter().map(|path| place(path).unwrap_or(0) as u32).collect();
        for row in &mut rows {
            row.file = places[row.file as usize];
        }
        Ok(Table { files, rows, texts: texts.texts, threads: threads.texts, problems })
    }

    /// The values of a row by column, as they are written.
    pub fn values(&self, row: usize) -> Vec<String> {
        let row = &self.rows[row];
        let file = &self.files[row.file as usize];
        let mut records = Records::new(&file.text[row.place.clone()], file.separator, false);
        records.read().map_or_else(Vec::new, |record| record.fields().map(str::to_owned).collect())
    }

    /// A text by index.
    pub fn text(&self, index: Option<u32>) -> &str {
        index.map_or("", |index| &self.texts[index as usize])
    }
}

impl File {
    /// Finds the columns. Returns the begin of the rows.
    fn of(path: &Path, text: String) -> Result<(File, usize), ReadError> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let mut described: Vec<String> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
            let line = text[at..end].trim_end_matches(['\n', '\r']);
            if let Some(comment) = line.strip_prefix('#') {
                // A comment may name the columns, alone or after a colon.
                let names = comment.rsplit(": ").next().unwrap_or(comment);
                let names: Vec<String> = names
                    .split([' ', '\t', ','])
                    .map(str::trim)
                    .filter(|n| !n.is_empty())
                    .map(str::to_owned)
                    .collect();
                if has_times(&roles(&names)) {
                    described = names;
                }
            } else if !line.trim().is_empty() {
                let separator = separator_of(line);
                let mut records = Records::new(&text[at..], separator, true);
                let (fields, head_end) = records.read().map_or((Vec::new(), end), |head| {
                    let fields = head.fields().map(|field| field.trim().to_owned()).collect();
                    (fields, (at + head.bytes.end + 1).min(text.len()))
                });
                let (columns, first_row) =
                    if has_times(&roles(&fields)) { (fields, head_end) } else { (described, at) };
                let roles = roles(&columns);
                if !has_times(&roles) {
                    break;
                }
                return Ok((File { path: path.to_owned(), columns, roles, separator, text }, first_row));
            }
            at = end;
        }
        Err(ReadError::NoColumns { path: path.to_owned() })
    }
}

fn has_times(roles: &[Option<Role>]) -> bool {
    roles.contains(&Some(Role::Start)) && roles.contains(&Some(Role::End))
}

/// Each column's role; of several columns with one role, the first has it.
fn roles(columns: &[String]) -> Vec<Option<Role>> {
    let mut taken = Vec::new();
    let role = |name: &String| {
        let name = name.trim().trim_start_matches('_').to_ascii_lowercase().replace([' ', '-'], "_");
        let role = NAMES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)?;
        (!taken.contains(&role)).then(|| taken.push(role)).map(|()| role)
    };
    columns.iter().map(role).collect()
}

fn separator_of(line: &str) -> Separator {
    let character = b"\t,;".iter().find(|separator| line.as_bytes().contains(separator));
    character.map_or(Separator::Blanks, |character| Separator::Character(*character))
}

/// A whole number, in decimal, with a fraction that is cut, or in hexadecimal.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(hexadecimal) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return u64::from_str_radix(hexadecimal, 16).ok();
    }
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|b| b.is_ascii_digit()) => whole,
        Some(_) => return None,
        None => text,
    };
    whole.parse().ok()
}

struct RowReader<'a> {
    file: &'a File,
    number: u32,
    texts: &'a mut Interner,
    threads: &'a mut Interner,
    /// By column: the first value that should be a number and is not, its line, and the count.
    no_numbers: BTreeMap<usize, (String, usize, u64)>,
}

impl RowReader<'_> {
    fn read(&mut self, first: usize, rows: &mut Vec<Row>, problems: &mut Vec<String>) {
        let file = self.file;
        let mut records = Records::new(&file.text, file.separator, true).starting_at(first);
        while let Some(record) = records.read() {
            match self.row(&record) {
                Ok((row, complaint)) => {
                    rows.push(row);
                    problems.extend(complaint.map(|text| self.problem(record.line, &text)));
                }
                Err(text) => problems.push(self.problem(record.line, &text)),
            }
        }
        for (column, (value, line, count)) in &self.no_numbers {
            let more =
                if *count > 1 { format!(", as {} more in its column", count - 1) } else { String::new() };
            let name = &self.file.columns[*column];
            let text = format!("`{value}` is no number for `{name}`{more}; taken as not known");
            problems.push(self.problem(*line, &text));
        }
    }

    /// A number, or that there should be one.
    fn number(&mut self, column: usize, value: &str, record: &Record<'_>) -> Option<u64> {
        let number = number(value);
        if number.is_none() {
            let first = || (value.to_owned(), record.line_of(column), 0);
            self.no_numbers.entry(column).or_insert_with(first).2 += 1;
        }
        number
    }

    fn problem(&self, line: usize, text: &str) -> String {
        format!("{}: line {line}: {text}", self.file.path.display())
    }

    /// A row, and its irregularity.
    fn row(&mut self, record: &Record<'_>) -> Result<(Row, Option<String>), String> {
        let mut row = Row {
            file: self.number,
            place: record.bytes.clone(),
            queue: None,
            device: None,
            list: None,
            kind: None,
            name: None,
            order: None,
            thread_index: 0,
            id: None,
            execution: None,
            append: None,
            submit: None,
            bytes: None,
            start: 0,
            end: 0,
        };
        let mut complaint = None;
        let mut known = 0;
        let file = self.file;
        for (column, role) in file.roles.iter().enumerate() {
            let value = record.field(column).trim();
            let Some(role) = role.filter(|_| !value.is_empty()) else { continue };
            known += 1;
            match role {
                Role::Queue => row.queue = Some(self.texts.index(value)),
                Role::Device => row.device = Some(self.texts.index(value)),
                Role::List => row.list = Some(self.texts.index(value)),
                Role::Kind => row.kind = Some(self.texts.index(value)),
                Role::Name => row.name = Some(self.texts.index(value)),
                Role::Order => row.order = Some(self.texts.index(value)),
                Role::Thread => row.thread_index = self.threads.index(value),
                Role::Id => row.id = self.number(column, value, record),
                Role::Execution => row.execution = self.number(column, value, record),
                Role::Append => {
                    row.append = self.number(column, value, record).filter(|time| *time != 0);
                }
                Role::Submit => {
                    row.submit = self.number(column, value, record).filter(|time| *time != 0);
                }
                Role::Bytes => row.bytes = self.number(column, value, record),
                Role::Start | Role::End => {
                    let place = if role == Role::Start { &mut row.start } else { &mut row.end };
                    match number(value) {
                        Some(time) => *place = time,
                        None => complaint = Some(format!("`{value}` is no time; taken as not known")),
                    }
                }
            }
        }
        let columns = file.columns.len();
        let unnamed: Vec<_> =
            record.fields().skip(columns).filter(|value| !value.trim().is_empty()).collect();
        if !unnamed.is_empty() {
            complaint = Some(format!("more than {columns} fields: left out `{}`", unnamed.join("`, `")));
        }
        if let Some(field) = record.unclosed {
            let name = file.columns.get(field).map_or("a further column", String::as_str);
            complaint = Some(format!("a quote of `{name}` is not closed; it ends with its line"));
        }
        let fields = record.len();
        if known == 0 || fields < columns && (row.start == 0 || row.end == 0) {
            return Err(format!("{fields} fields instead of {columns}: not imported"));
        }
        Ok((row, complaint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_whole() {
        assert_eq!(number("1704727757057692365"), Some(1_704_727_757_057_692_365));
        assert_eq!(
            (number("0x10"), number("12.75"), number("-1"), number("1e9")),
            (Some(16), Some(12), None, None)
        );
    }
}
