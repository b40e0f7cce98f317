//! Marks of instrumented programs.

use crate::by_process::by_process;
use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use rustc_hash::FxHashMap;
use taskscope_event::models::{instrument, model_of};
use taskscope_execution::ThreadIndex;
use taskscope_session::instrumentation::{Mark, Marks};

/// Writes the marks of selected threads that overlap the exported part. Their times are whole.
pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    // Without such events the pass over the trace is saved.
    let name = model_of(instrument::LETTER).map(|model| model.name);
    if !run.session.events_by_model.iter().any(|(model, _)| Some(*model) == name) {
        return Ok(());
    }
    let all = Marks::read(&run.session.root)?;
    let threads = threads_of(run, &all);
    let (begin, end) = run.execution.part_of_time();
    let thread = |mark: &Mark| threads[mark.thread as usize];
    let is_in = |mark: &Mark| {
        let last = mark.end.unwrap_or(u64::MAX);
        // Marks without a length are in the part in which they begin.
        mark.start < end && (begin < last || begin <= mark.start)
    };
    let is_selected =
        |mark: &Mark| run.execution.threads.get(thread(mark).index()).is_some_and(|thread| thread.selected);
    let rows: Vec<Mark> = all.marks.iter().copied().filter(|mark| is_selected(mark) && is_in(mark)).collect();
    let word = |row: u32| all.words[row as usize].as_str();
    by_process(
        set,
        run,
        "mark",
        rows,
        thread,
        |mark| mark.start,
        |file, mark| {
            file.push([
                run.location(thread(&mark)).into(),
                run.at(mark.start),
                mark.end.map_or(Value::Null, |end| run.at(end)),
                mark.kind.name().into(),
                word(mark.name).into(),
                mark.value.map_or(Value::Null, Value::bits),
                mark.value_name.map(word).into(),
                mark.unit.map(word).into(),
            ])
        },
    )
}

/// The thread of each stream.
fn threads_of(run: &Run<'_>, marks: &Marks) -> Vec<ThreadIndex> {
    let execution = run.execution;
    let by_id: FxHashMap<(&str, i64, i64), ThreadIndex> = (execution.threads.iter().enumerate())
        .filter_map(|(row, thread)| {
            let process = execution.processes.get(thread.process.index())?;
            let id = (process.loom.as_str(), process.pid, thread.tid);
            Some((id, ThreadIndex::of(row)))
        })
        .collect();
    let id = |thread: &taskscope_session::instrumentation::MarkedThread| {
        by_id.get(&(thread.loom.as_str(), thread.pid, thread.tid)).copied().unwrap_or(ThreadIndex::NONE)
    };
    marks.threads.iter().map(id).collect()
}
