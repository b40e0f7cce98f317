//! The sections of workers, merged in time.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::file::TableFile;
use crate::numbers::Run;
use crate::rows::ROW_GROUP;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use taskscope_execution::{ProcessIndex, Span, ThreadIndex};

/// Writes the sections of all selected workers. Those of a process are merged by their starts; each row group is a time
/// bucket, sorted by location and start.
pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let mut workers: BTreeMap<ProcessIndex, Vec<ThreadIndex>> = BTreeMap::new();
    for (index, thread) in run.execution.selected_workers() {
        workers.entry(thread.process).or_default().push(index);
    }
    for (process, workers) in workers {
        let mut file = set.begin("state", run.node(process), run.process(process).unwrap_or_default())?;
        let mut bucket: Vec<(ThreadIndex, Span)> = Vec::with_capacity(ROW_GROUP);
        let mut spans: Vec<_> = workers.iter().map(|worker| run.execution.spans_of_run(*worker)).collect();
        let mut heads: Vec<Option<Span>> = spans.iter_mut().map(next_span).collect();
        let starts = heads.iter().enumerate();
        let mut order: BinaryHeap<Reverse<(u64, usize)>> =
            starts.filter_map(|(row, head)| Some(Reverse((head.as_ref()?.start, row)))).collect();
        while let Some(Reverse((_, row))) = order.pop() {
            let Some(span) = heads[row].take() else { continue };
            bucket.push((workers[row], span));
            heads[row] = next_span(&mut spans[row]);
            if let Some(head) = &heads[row] {
                order.push(Reverse((head.start, row)));
            }
            if bucket.len() == ROW_GROUP {
                write_bucket(&mut file, run, &mut bucket)?;
            }
        }
        write_bucket(&mut file, run, &mut bucket)?;
        set.close("state", file)?;
    }
    Ok(())
}

/// The next section with time.
fn next_span(spans: &mut impl Iterator<Item = Span>) -> Option<Span> {
    spans.find(|span| span.end > span.start)
}

fn write_bucket(
    file: &mut TableFile,
    run: &Run<'_>,
    bucket: &mut Vec<(ThreadIndex, Span)>,
) -> Result<(), TableError> {
    bucket.sort_unstable_by_key(|(worker, span)| (*worker, span.start));
    for (worker, Span { start, end, section }) in bucket.drain(..) {
        file.push([
            run.location(worker).into(),
            run.at(start),
            run.at(end),
            section.state.name().into(),
            section.state.cause().name().into(),
            run.site_of(section.place).into(),
            run.type_of(section.place).into(),
            run.task(section.task).into(),
            run.region(section.region).into(),
            run.object(section.object).into(),
        ])?;
    }
    file.end_group()
}
