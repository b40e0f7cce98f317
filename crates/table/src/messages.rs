//! Messages and collective operations.

use crate::by_process::by_process;
use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use taskscope_event::models::messages::FUNCTIONS;

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let size = |bytes: u64| if bytes == u64::MAX { Value::Null } else { bytes.into() };
    let communication = &run.execution.communication;
    let rows: Vec<_> = communication.messages.iter().collect();
    by_process(
        set,
        run,
        "message",
        rows,
        |row| row.receiver,
        |row| row.received,
        |file, row| {
            file.push([
                run.location(row.sender).into(),
                run.location(row.receiver).into(),
                run.at(row.sent),
                run.at(row.posted),
                run.at(row.received),
                size(row.bytes),
            ])
        },
    )?;
    let rows: Vec<_> = communication.participations.iter().collect();
    by_process(
        set,
        run,
        "collective",
        rows,
        |row| row.thread,
        |row| row.begun,
        |file, row| {
            file.push([
                run.location(row.thread).into(),
                Value::bits(row.comm),
                Value::bits(row.sequence),
                FUNCTIONS.get(row.function as usize).copied().unwrap_or("").into(),
                run.at(row.begun),
                run.at(row.completed),
                size(row.bytes),
                run.process(row.root).into(),
            ])
        },
    )
}
