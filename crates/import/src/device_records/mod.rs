//! Dumps of device records, in the order in which a vendor delivered them, to device queues.
//!
//! ```text
//!  files ─▶ Table ─▶ Plan: which operations there are, ─▶ Reorder ─▶ one location per queue
//!           rows      operation of each row (notices)     (arrivals in the order of the files)
//! ```
//! Files are TSV or CSV. `start` and `end` are needed; `queue`, `id`, `thread`, `append`, `submit`,
//! `device`, `kind` and `op` are understood under the names that vendors use; every column is kept.
//! Times are nanoseconds of one clock.
//!
//! A first pass plays the part of the notices that a live tool gets: the sequence of a queue's
//! operations comes from `append` or `submit` if every row of the queue has one, else from the ids,
//! else from the starts. Recorded work (command lists, graphs) is appended once and executed often: the submissions of
//! its executions count, else their first starts. The second pass hands in the rows as they were delivered.

mod account;
mod error;
mod locations;
mod operation_kind;
mod options;
mod plan;
mod table;

pub use account::{Foreign, Imported, ImportedQueue};
pub use error::Error;
pub use options::Options;
pub use table::ReadError;

pub(crate) use account::clock_json;
use locations::Locations;
pub(crate) use operation_kind::kind_of;
use plan::Plan;
use std::path::{Path, PathBuf};
use table::Table;
use taskscope_files::NewDirectory;
use taskscope_reorder::{Completion, Detail, Notice, Output, QueueIndex, QueueOrder, Reorder};

/// Imports `files`, given in the order of delivery, into the trace directory `root`, which is new or empty. It appears when
/// it is complete.
///
/// # Errors
/// When a file cannot be read as a dump at all, or the trace cannot be written. Unreadable rows are listed in
/// the result, with their lines.
pub fn import(files: &[PathBuf], root: &Path, options: &Options) -> Result<Imported, Error> {
    let table = Table::read(files)?;
    if table.rows.is_empty() {
        return Err(Error::NoRecords { problems: table.problems });
    }
    let plan = Plan::of(&table, options);
    let unwritable = |source| Error::Write { path: root.to_owned(), source };
    let trace = NewDirectory::create(root).map_err(unwritable)?;
    let mut locations = Locations::create(trace.path(), &table, &plan)?;
    let mut reorder = Reorder::new(options.limits.clone());
    for queue in &plan.queues {
        reorder.add_queue(queue.order);
    }
    let mut failure = None;
    let mut out = |output: Output| {
        if let Err(error) = locations.take(&output) {
            failure.get_or_insert(error);
        }
    };
    for (q, queue) in plan.queues.iter().enumerate() {
        for (seq, row) in queue.operations.iter().enumerate() {
            let record = &table.rows[*row as usize];
            // Without that, an operation may have started at any time.
            let earliest_start = record.append.unwrap_or(0);
            let notice = Notice {
                queue: QueueIndex(q as u32),
                seq: seq as u64,
                thread: record.thread_index,
                append: earliest_start,
                earliest_start,
                detail: Detail { id: record.id.unwrap_or(0), amount: u64::from(*row), what: 0 },
            };
            reorder.append(&notice, &mut out);
        }
        if queue.order == QueueOrder::OutOfOrder {
            reorder.no_append_before(QueueIndex(q as u32), u64::MAX, &mut out);
        }
    }
    for (row, at) in table.rows.iter().zip(&plan.row_places) {
        let completion = Completion {
            queue: QueueIndex(at.queue),
            seq: at.seq,
            // A list's submission may have the tick in which its first operation starts.
            submit: row.submit.filter(|submit| row.list.is_none() || *submit != row.start).unwrap_or(0),
            start: row.start,
            end: row.end,
        };
        reorder.complete(&completion, &mut out);
    }
    reorder.finish(&mut out);
    if let Some(error) = failure {
        return Err(error);
    }
    let imported = locations.finish(&reorder)?;
    trace.commit().map_err(unwritable)?;
    Ok(imported)
}
