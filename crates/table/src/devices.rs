//! Operations of device queues.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use std::collections::BTreeMap;
use taskscope_execution::ProcessIndex;
use taskscope_execution::devices::Operation;

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let mut queues: BTreeMap<ProcessIndex, Vec<usize>> = BTreeMap::new();
    for (row, queue) in run.session.devices.queues.iter().enumerate() {
        queues.entry(run.process_of_queue(queue).unwrap_or(ProcessIndex::NONE)).or_default().push(row);
    }
    let (begin, end) = run.session.times;
    for (process, queues) in queues {
        let number = run.process_number(process);
        let mut file = set.begin("device_operation", run.node(process), number)?;
        for row in queues {
            let queue = &run.session.devices.queues[row];
            // Without times an operation is in every part.
            let is_in = |row: &&Operation| row.end == 0 || row.end > begin && row.start < end;
            let operations = queue.operations.iter().filter(is_in).map(|row| (row, false));
            for (operation, late) in operations.chain(queue.late.iter().filter(is_in).map(|row| (row, true)))
            {
                file.push([
                    run.queue(row).into(),
                    Value::bits(operation.seq),
                    at(run, operation.start),
                    at(run, operation.end),
                    at(run, operation.append),
                    queue.shown_name(operation).into(),
                    operation.kind_name().into(),
                    operation.bytes.into(),
                    operation.lane.into(),
                    tid(operation.thread),
                    false.into(),
                    late.into(),
                ])?;
            }
            for lost in &queue.lost {
                file.push([
                    run.queue(row).into(),
                    Value::bits(lost.seq),
                    Value::Null,
                    Value::Null,
                    at(run, lost.append),
                    queue.name_of(lost.name).into(),
                    "lost".into(),
                    Value::Null,
                    Value::Null,
                    tid(lost.thread),
                    true.into(),
                    false.into(),
                ])?;
            }
        }
        set.close("device_operation", file)?;
    }
    Ok(())
}

/// A time; 0 means that it is not known.
fn at(run: &Run<'_>, clock: u64) -> Value<'static> {
    if clock == 0 { Value::Null } else { run.at(clock) }
}

fn tid(thread: i64) -> Value<'static> {
    if thread == 0 { Value::Null } else { thread.into() }
}
