//! Paraver's traces: `.prv` with `.pcf` and `.row`, as Extrae, Nanos++ and `export --to paraver` write them.
//!
//! | in the file | in the run |
//! | --- | --- |
//! | tasks, threads | processes, threads |
//! | events 9500001, 9500002 (of `export --to paraver`) | spans with their name and state; state records of such rows are their copies |
//! | events of functions of MPI (50000001 to 50000005) | spans of communication |
//! | events of code: 60000018, 60000019, 60000023, 9200011 | spans: tasks by name |
//! | state records | spans outside of those of MPI; *running* also outside of those of code |
//! | communications | flows |
//!
//! All others are counted as lost. Lines may be in any order. Grammar: the source of paraver-kernel reads these lines;
//! a specification does not exist.

mod fields;
mod header;
mod labels;
mod records;
mod spans;

use crate::spans::{Run, find_rows_beside};
use crate::{ImportError, ImportErrors};
use fields::Error;
use header::Header;
use labels::Labels;
use records::Records;

/// Errors that are listed before reading stops.
const MAX_ERRORS: usize = 100;

/// The texts of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParaverFiles<'a> {
    /// `.prv`.
    pub records: &'a str,
    /// `.pcf`; empty if it is missing.
    pub labels: &'a str,
    /// `.row`; empty if it is missing.
    pub rows: &'a str,
}

/// Whether the text looks like records of Paraver.
pub fn is_paraver(text: &str) -> bool {
    text.starts_with("#Paraver ")
}

/// Reads a trace.
///
/// # Errors
/// All errors, each with its line: numbers that are none, rows that the header does not have, times beyond the clock.
pub fn read_paraver(files: ParaverFiles<'_>) -> Result<Run, ImportErrors> {
    let at_line = |line: usize, (field, text): Error| ImportError { file: String::new(), line, field, text };
    let mut lines = files.records.lines().zip(1..);
    let first = lines.next().map_or("", |(line, _)| line);
    let header = Header::parse(first.trim_end()).map_err(|error| ImportErrors(vec![at_line(1, error)]))?;
    let labels = Labels::parse(files.labels, spans::is_read);
    let mut records = Records::new(&header);
    let mut errors = Vec::new();
    for (line, number) in lines {
        if let Err(error) = records.take(line.trim_end(), number) {
            errors.push(at_line(number, error));
            if errors.len() == MAX_ERRORS {
                break;
            }
        }
    }
    if !errors.is_empty() {
        return Err(ImportErrors(errors));
    }
    let mut run = records.finish(&labels, files.rows);
    find_rows_beside(&mut run);
    if run.threads.iter().all(|thread| thread.spans.is_empty()) {
        let error = ("records".to_owned(), "it has no state and no event of code or MPI".to_owned());
        return Err(ImportErrors(vec![at_line(1, error)]));
    }
    Ok(run)
}
