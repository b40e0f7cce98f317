//! The rows of a neutral trace, and the graph that they make. JSON and CSV have this in common.

use crate::{ImportError, ImportErrors};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::graph::{
    ActivityKind, GraphBuilder, GraphError, NONE, NewData, NewTask, Role, Table, TaskGraph, TaskType,
};
use taskscope_execution::{Cause, NO_TIME};

/// A worker.
pub(super) struct WorkerRow {
    pub id: u64,
    pub node: u64,
    pub begin: u64,
    pub end: u64,
    /// Its role, if the source has one.
    pub role: Option<Role>,
}

/// Errors of a file that are listed: the line of each is counted from the begin of the file.
pub(super) const MAX_ERRORS: usize = 100;

/// Values of the field `kind` of a worker.
const ROLES: [(&str, Role); 2] = [("worker", Role::Executes), ("runtime", Role::Runtime)];

/// The role of this name.
///
/// # Errors
/// A sentence that lists the names.
pub(super) fn role(name: &str) -> Result<Role, String> {
    let found = ROLES.iter().find(|(known, _)| *known == name);
    let names = ROLES.map(|(known, _)| format!("`{known}`"));
    found
        .map(|(_, role)| *role)
        .ok_or_else(|| format!("`{name}` is not a kind of worker; use {}", names.join(" or ")))
}

/// A task.
#[derive(Default)]
pub(super) struct TaskRow {
    pub id: u64,
    pub ty: String,
    pub node: u64,
    pub worker: u64,
    pub start: u64,
    pub end: u64,
    pub inputs: Vec<u64>,
    pub uniform: u64,
    /// Optional fields, beyond those that starvation, latency and overhead need.
    pub created: Option<u64>,
    pub creator: Option<u64>,
    pub ready: Option<u64>,
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// Data without its copies.
pub(super) struct DataRow {
    pub id: u64,
    pub producer: Option<u64>,
    pub produced: u64,
    pub home: u64,
    pub bytes: u64,
    pub name: String,
}

/// A copy.
pub(super) struct CopyRow {
    pub data: u64,
    pub node: u64,
    pub sent: Option<u64>,
    pub arrived: u64,
}

/// Time in the runtime, or in another activity.
pub(super) struct RuntimeRow {
    pub worker: u64,
    pub start: u64,
    pub end: u64,
    pub kind: String,
}

/// The source of rows: turns an error of a row into one of the file.
pub(super) trait Source {
    /// The error at a field of row `row` of `table`.
    fn error(&self, table: Table, row: usize, field: &str, text: String) -> ImportError;
}

/// All rows.
#[derive(Default)]
pub(super) struct Rows {
    pub workers: Vec<WorkerRow>,
    pub tasks: Vec<TaskRow>,
    pub data: Vec<DataRow>,
    pub copies: Vec<CopyRow>,
    pub runtime: Vec<RuntimeRow>,
}

impl Rows {
    /// The role of each worker. Without a given one, a thread that executes no task of the whole run, but has time in the
    /// runtime or in communication, serves the runtime; one without any time is a worker that nothing was given to.
    fn roles(&self) -> Vec<Role> {
        let executing: FxHashSet<u64> = self.tasks.iter().map(|task| task.worker).collect();
        let serves = |kind: &str| {
            use ActivityKind::{Communication, PeerWait, Runtime};
            matches!(activity_kind(kind), Runtime(_) | Communication | PeerWait)
        };
        let serving: FxHashSet<u64> =
            self.runtime.iter().filter(|row| serves(&row.kind)).map(|row| row.worker).collect();
        let is_of_runtime = |id| serving.contains(&id) && !executing.contains(&id);
        let inferred = |id| if is_of_runtime(id) { Role::Runtime } else { Role::Executes };
        self.workers.iter().map(|worker| worker.role.unwrap_or_else(|| inferred(worker.id))).collect()
    }

    /// The graph, or all errors.
    pub fn graph(self, source: &impl Source) -> Result<TaskGraph, ImportErrors> {
        let mut errors = Vec::new();
        let node_of: FxHashMap<u64, u64> = self.workers.iter().map(|w| (w.id, w.node)).collect();
        let mut builder = GraphBuilder::new();
        let roles = self.roles();
        for (worker, role) in self.workers.iter().zip(&roles) {
            builder.add_thread(worker.id, worker.node, worker.begin, worker.end, *role);
        }
        let runtime_workers: FxHashSet<u64> = (self.workers.iter().zip(&roles))
            .filter_map(|(worker, role)| (*role == Role::Runtime).then_some(worker.id))
            .collect();
        let mut input_rows = Vec::new();
        for (row, task) in self.tasks.into_iter().enumerate() {
            match node_of.get(&task.worker) {
                Some(node) if *node != task.node && errors.len() < MAX_ERRORS => {
                    let (id, on, worker) = (task.id, task.node, task.worker);
                    let text =
                        format!("task {id} is on node {on}, but its worker {worker} is on node {node}");
                    errors.push(source.error(Table::Tasks, row, "node", text));
                }
                _ => {}
            }
            if runtime_workers.contains(&task.worker) && errors.len() < MAX_ERRORS {
                let text =
                    format!("worker {} has the kind `runtime`, so it cannot execute tasks", task.worker);
                errors.push(source.error(Table::Tasks, row, "worker", text));
            }
            let TaskRow { id, ty: name, function, file, line, .. } = task;
            let ty = builder.add_type(TaskType { name, function, file, line, implicit: false });
            builder.add_task(NewTask {
                id,
                ty,
                created: task.created.unwrap_or(NO_TIME),
                creator: task.creator,
                ready: task.ready.unwrap_or(NO_TIME),
                uniform: task.uniform,
            });
            builder.add_piece(task.worker, task.id, task.start, task.end);
            for input in &task.inputs {
                builder.add_input(task.id, *input);
                input_rows.push(row as u32);
            }
        }
        for data in self.data {
            let DataRow { id, producer, produced, home, bytes, name } = data;
            let name = if name.is_empty() { NONE } else { builder.add_name(&name) };
            builder.add_data(NewData { id, producer, produced, home, bytes, name, synchronises: false });
        }
        for copy in &self.copies {
            builder.add_copy(copy.data, copy.node, copy.sent.unwrap_or(NO_TIME), copy.arrived);
        }
        for interval in &self.runtime {
            let name = builder.add_name(&interval.kind);
            builder.add_activity(
                interval.worker,
                activity_kind(&interval.kind),
                name,
                interval.start,
                interval.end,
            );
        }
        let built = builder.finish();
        let found = built.as_ref().err().map(Vec::as_slice).unwrap_or(&[]);
        errors.extend(found.iter().map(|GraphError { table, row, field, text }| match table {
            Table::Inputs => source.error(Table::Tasks, input_rows[*row] as usize, "inputs", text.clone()),
            // A piece is the execution of the task in the same row.
            Table::Pieces => source.error(Table::Tasks, *row, field, text.clone()),
            _ => source.error(*table, *row, field, text.clone()),
        }));
        match built {
            Ok(graph) if errors.is_empty() => Ok(graph),
            _ => Err(ImportErrors(errors)),
        }
    }
}

/// The activity of a `kind`: causes by their names and older names; all others are sections of the runtime.
pub(super) fn activity_kind(kind: &str) -> ActivityKind {
    let cause_kind = match Cause::named(kind) {
        Some(Cause::Lock) => Some(ActivityKind::LockWait),
        Some(Cause::Device) => Some(ActivityKind::Device),
        Some(Cause::Mpi | Cause::MpiTransfer) => Some(ActivityKind::Communication),
        Some(Cause::MpiLate) => Some(ActivityKind::PeerWait),
        Some(Cause::MpiStart) => Some(ActivityKind::Start),
        Some(Cause::RuntimeNoise) => Some(ActivityKind::AbsorbingNoise),
        Some(Cause::Blocked) => Some(ActivityKind::Blocked),
        Some(cause) if cause.is_in(Cause::Cpu) => Some(ActivityKind::OffCpu(cause)),
        Some(cause) if cause.is_in(Cause::Runtime) => Some(ActivityKind::Runtime(cause)),
        // Work belongs to a task, and waiting follows from a worker's dependences.
        _ => None,
    };
    cause_kind.unwrap_or_else(|| kind_of_older_name(kind))
}

fn kind_of_older_name(kind: &str) -> ActivityKind {
    match kind {
        "lock.wait" => ActivityKind::LockWait,
        "comm" => ActivityKind::Communication,
        "peer.wait" => ActivityKind::PeerWait,
        "device.wait" => ActivityKind::Device,
        "runtime.start" => ActivityKind::Start,
        "absorbing" => ActivityKind::AbsorbingNoise,
        "os" => ActivityKind::OffCpu(Cause::Cpu),
        _ => ActivityKind::Runtime(Cause::Runtime),
    }
}
