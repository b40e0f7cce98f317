//! Rows of threads into the files of their processes.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::file::TableFile;
use crate::numbers::Run;
use crate::rows::ROW_GROUP;
use taskscope_execution::ThreadIndex;

/// Writes rows of a table into the files of the processes of their threads. Each row group is a time bucket, sorted by
/// thread and start.
pub(crate) fn by_process<R>(
    set: &mut DataSet,
    run: &Run<'_>,
    table: &'static str,
    mut rows: Vec<R>,
    thread: impl Fn(&R) -> ThreadIndex,
    start: impl Fn(&R) -> u64,
    mut push: impl FnMut(&mut TableFile, R) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let process = |row: &R| run.process_of(thread(row));
    rows.sort_by_key(|row| (process(row), start(row)));
    let mut rows = rows.into_iter().peekable();
    while let Some(own) = rows.peek().map(process) {
        let mut file = set.begin(table, run.node(own), run.process_number(own))?;
        loop {
            let process_rows = std::iter::from_fn(|| rows.next_if(|row| process(row) == own));
            let mut bucket: Vec<R> = process_rows.take(ROW_GROUP).collect();
            if bucket.is_empty() {
                break;
            }
            bucket.sort_by_key(|row| (thread(row), start(row)));
            bucket.into_iter().try_for_each(|row| push(&mut file, row))?;
            file.end_group()?;
        }
        set.close(table, file)?;
    }
    Ok(())
}
