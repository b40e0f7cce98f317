//! Operations of device queues.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use std::collections::BTreeMap;
use taskscope_execution::ProcessIndex;
use taskscope_execution::devices::{DeviceOperation, LostOperation};

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
            let is_in = |row: &&DeviceOperation| is_in_part((row.start, row.end), (begin, end));
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
            let is_lost_in = |lost: &&LostOperation| is_in_part((lost.append, lost.append), (begin, end));
            for lost in queue.lost.iter().filter(is_lost_in) {
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

/// Whether an operation is in a part of the time: in every one without times, and in that of its begin without a length.
fn is_in_part((start, stop): (u64, u64), (begin, end): (u64, u64)) -> bool {
    stop == 0 || start < end && (stop > begin || start == stop && start >= begin)
}

/// A time; 0 means that it is not known.
fn at(run: &Run<'_>, clock: u64) -> Value<'static> {
    if clock == 0 { Value::Null } else { run.at(clock) }
}

fn tid(thread: i64) -> Value<'static> {
    if thread == 0 { Value::Null } else { thread.into() }
}

#[cfg(test)]
mod tests {
    use super::is_in_part;

    #[test]
    fn an_operation_without_a_length_is_in_one_of_two_parts() {
        for at in [5, 10, 15] {
            let parts = [(0, 10), (10, u64::MAX)].map(|part| is_in_part((at, at), part));
            assert_eq!(parts, [at < 10, at >= 10], "at {at}");
        }
        assert!(is_in_part((0, 0), (0, 10)) && is_in_part((0, 0), (10, 20)), "its time is not known");
        assert!(is_in_part((5, 15), (0, 10)) && is_in_part((5, 15), (10, 20)), "it is in both");
    }
}
