//! Tasks and their dependences.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use taskscope_execution::graph::{Access, DeclaredGraph};
use taskscope_execution::{NO_TIME, ProcessIndex, TaskIndex, TaskStatus, ThreadIndex};

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>, body_times: &[u64]) -> Result<(), TableError> {
    let tasks = &run.execution.tasks;
    if tasks.is_empty() {
        return Ok(());
    }
    let mut ready: Vec<u64> = Vec::new();
    if !run.execution.queued.is_empty() {
        ready.resize(tasks.len(), NO_TIME);
        for queued in &run.execution.queued {
            if let Some(first) = ready.get_mut(queued.task.index()) {
                *first = (*first).min(queued.ready);
            }
        }
    }
    let rows: Vec<u32> = (0..tasks.len() as u32).collect();
    let created = |row: &u32| {
        let row = *row as usize;
        if tasks.created[row] == NO_TIME { tasks.began[row] } else { tasks.created[row] }
    };
    crate::by_process::by_process(
        set,
        run,
        "task",
        rows,
        |row| home(run, *row),
        created,
        |file, row| {
            let (task, row) = (TaskIndex(row), row as usize);
            file.push([
                run.task(task).into(),
                tasks.number(task).map_or(Value::Null, Value::bits),
                run.task_type(tasks.ty[row]).into(),
                run.task(tasks.parent[row]).into(),
                run.region(tasks.region[row]).into(),
                run.location(tasks.creator[row]).into(),
                run.location(tasks.runner[row]).into(),
                run.at(tasks.created[row]),
                run.at(ready.get(row).copied().unwrap_or(NO_TIME)),
                run.at(tasks.began[row]),
                run.at(tasks.ended[row]),
                body_times.get(row).copied().into(),
                status(tasks.status[row]).into(),
            ])
        },
    )?;
    dependences(set, run)
}

/// A thread of the task's process.
fn home(run: &Run<'_>, row: u32) -> ThreadIndex {
    let tasks = &run.execution.tasks;
    let creator = tasks.creator[row as usize];
    if creator.is_some() { creator } else { tasks.runner[row as usize] }
}

const fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Created => "created",
        TaskStatus::Running => "running",
        TaskStatus::Suspended => "suspended",
        TaskStatus::Ended => "ended",
        TaskStatus::Cancelled => "cancelled",
        TaskStatus::Unseen => "unseen",
    }
}

/// The order of tasks from their declared accesses: of one parent, or of one thread in one region.
fn dependences(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let tasks = &run.execution.tasks;
    let mut graph = DeclaredGraph::default();
    let mut found: Vec<(ProcessIndex, TaskIndex, TaskIndex, u64)> = Vec::new();
    for dependence in &run.execution.dependences {
        let row = dependence.task.index();
        let Some(access) = Access::from_ompt(dependence.kind).filter(|_| row < tasks.len()) else { continue };
        let process = run.process_of(home(run, dependence.task.0));
        let scope = match tasks.parent[row] {
            TaskIndex::NONE => (1 << 32 | u64::from(tasks.creator[row].0), u64::from(tasks.region[row].0)),
            parent => (u64::from(parent.0), 0),
        };
        graph.access(scope, dependence.task.0, dependence.address, access, |before| {
            found.push((process, dependence.task, TaskIndex(before), dependence.address));
        });
    }
    found.sort_unstable();
    found.dedup();
    for rows in found.chunk_by(|one, other| one.0 == other.0) {
        let process = rows[0].0;
        let mut file = set.begin("dependence", run.node(process), run.process_number(process))?;
        for (_, task, before, address) in rows {
            file.push([
                run.task(*before).into(),
                run.task(*task).into(),
                "declared".into(),
                Value::bits(*address),
                run.at(tasks.ended[before.index()]),
                run.at(tasks.began[task.index()]),
            ])?;
        }
        set.close("dependence", file)?;
    }
    Ok(())
}
