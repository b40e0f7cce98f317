//! Collects a graph row by row, in any order, by the numbers of its source.

use super::rows_of_workers::RowsOfWorkers;
use super::{
    Activity, ActivityKind, Copy, Data, GraphError, Lists, NONE, Node, Operation, OperationWait, Piece,
    RecordedFacts, Role, Table, TaskGraph, TaskType, Tasks, Worker, check, device_work,
};
use crate::NO_TIME;
use rustc_hash::FxHashMap;

/// A task as its source reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Number, unique among tasks.
    pub id: u64,
    /// Row that [`GraphBuilder::add_type`] gave.
    pub ty: u32,
    /// Time of creation, or [`NO_TIME`].
    pub created: u64,
    /// Number of the task that created it, if known.
    pub creator: Option<u64>,
    /// Ready time, or [`NO_TIME`].
    pub ready: u64,
    /// Runtime work inside its execution, at unknown positions.
    pub uniform: u64,
}

impl NewTask {
    /// A task of which nothing more is known.
    pub fn new(id: u64, ty: u32) -> NewTask {
        NewTask { id, ty, created: NO_TIME, creator: None, ready: NO_TIME, uniform: 0 }
    }
}

/// Data as its source reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewData {
    /// Number, unique among data.
    pub id: u64,
    /// Number of the producing task; none for initial data.
    pub producer: Option<u64>,
    /// Production time.
    pub produced: u64,
    /// Number of the node of its computation or initial place.
    pub home: u64,
    /// Size.
    pub bytes: u64,
    /// The programmer's name: a row that [`GraphBuilder::add_name`] gave, or [`NONE`].
    pub name: u32,
    /// Whether it represents the end of a wait.
    pub synchronises: bool,
}

/// Collects a [`TaskGraph`].
///
/// Rows may come in any order and refer to numbers that come later. Errors of [`finish`](Self::finish)
/// count rows of each table in the order in which they were added.
#[derive(Default)]
pub struct GraphBuilder {
    workers: Vec<(u64, u64, u64, u64, Role)>,
    types: Vec<TaskType>,
    type_rows: FxHashMap<TaskType, u32>,
    names: Vec<String>,
    name_rows: FxHashMap<String, u32>,
    tasks: Vec<NewTask>,
    data: Vec<NewData>,
    /// Task, data.
    inputs: Vec<(u64, u64)>,
    /// Data, node, sent, arrived.
    copies: Vec<(u64, u64, u64, u64)>,
    /// Task, start, end.
    pieces: RowsOfWorkers<(u64, u64, u64)>,
    activities: RowsOfWorkers<Activity>,
    operations: Vec<Operation>,
    operation_waits: Vec<(u64, OperationWait)>,
}

impl GraphBuilder {
    /// A graph with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a worker that executes tasks, with its node and life.
    pub fn add_worker(&mut self, id: u64, node: u64, begin: u64, end: u64) {
        self.add_thread(id, node, begin, end, Role::Executes);
    }

    /// Adds a thread in this role, with its node and life.
    pub fn add_thread(&mut self, id: u64, node: u64, begin: u64, end: u64, role: Role) {
        self.workers.push((id, node, begin, end, role));
    }

    /// The row of a type, new or not.
    pub fn add_type(&mut self, ty: TaskType) -> u32 {
        let types = &mut self.types;
        *self.type_rows.entry(ty).or_insert_with_key(|ty| {
            types.push(ty.clone());
            (types.len() - 1) as u32
        })
    }

    /// The row of a name of an activity or of data, new or not.
    pub fn add_name(&mut self, name: &str) -> u32 {
        if let Some(row) = self.name_rows.get(name) {
            return *row;
        }
        self.names.push(name.to_owned());
        self.name_rows.insert(name.to_owned(), (self.names.len() - 1) as u32);
        (self.names.len() - 1) as u32
    }

    /// Adds a task.
    pub fn add_task(&mut self, task: NewTask) {
        self.tasks.push(task);
    }

    /// Adds data.
    pub fn add_data(&mut self, data: NewData) {
        self.data.push(data);
    }

    /// `task` reads `data`.
    pub fn add_input(&mut self, task: u64, data: u64) {
        self.inputs.push((task, data));
    }

    /// Adds a copy of `data` to `node`; `sent` is [`NO_TIME`] if not recorded.
    pub fn add_copy(&mut self, data: u64, node: u64, sent: u64, arrived: u64) {
        self.copies.push((data, node, sent, arrived));
    }

    /// `worker` executed `task`.
    pub fn add_piece(&mut self, worker: u64, task: u64, start: u64, end: u64) {
        self.pieces.push(worker, (task, start, end));
    }

    /// `worker` did something else.
    pub fn add_activity(&mut self, worker: u64, kind: ActivityKind, name: u32, start: u64, end: u64) {
        self.activities.push(worker, Activity { start, end, kind, name, holder: NONE, waiter: NONE });
    }

    /// The same, but extends the activity that was added last if it is equal and ended at this one's start.
    pub(super) fn go_on_with_activity(
        &mut self,
        worker: u64,
        kind: ActivityKind,
        name: u32,
        (start, end): (u64, u64),
    ) {
        match self.activities.last_mut(worker) {
            Some(last) if (last.end, last.kind, last.name) == (start, kind, name) => last.end = end,
            _ => self.add_activity(worker, kind, name, start, end),
        }
    }

    /// Records that `worker` waited for the lock called `name`, with a holder that requested it at `holder`.
    pub fn add_lock_wait(
        &mut self,
        worker: u64,
        name: u32,
        (holder, waiter): (u32, u32),
        start: u64,
        end: u64,
    ) {
        let kind = ActivityKind::LockWait;
        self.activities.push(worker, Activity { start, end, kind, name, holder, waiter });
    }

    /// Adds an operation of a device; its number is how many there were before it. Rows of workers are those in which
    /// they were added, which must be the order of their ids.
    pub fn add_operation(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// `worker` waited for an operation.
    pub fn add_operation_wait(&mut self, worker: u64, wait: OperationWait) {
        self.operation_waits.push((worker, wait));
    }

    /// The graph, with every precondition checked.
    ///
    /// # Errors
    /// All that is wrong, up to a hundred, in the order of the tables.
    pub fn finish(mut self) -> Result<TaskGraph, Vec<GraphError>> {
        let mut errors = Errors::default();
        let mut graph = TaskGraph {
            types: std::mem::take(&mut self.types),
            names: std::mem::take(&mut self.names),
            ..TaskGraph::default()
        };

        let mut node_ids: Vec<u64> = self.workers.iter().map(|w| w.1).collect();
        node_ids.extend(self.data.iter().map(|d| d.home));
        node_ids.extend(self.copies.iter().map(|c| c.1));
        node_ids.sort_unstable();
        node_ids.dedup();
        graph.nodes = node_ids.iter().map(|id| Node { id: *id }).collect();
        let node_row = |id: u64| row_of(&node_ids, id);

        let worker_order = order_by_id(&self.workers, |w| w.0, Table::Workers, &mut errors);
        for row in &worker_order {
            let (id, node, begin, end, role) = self.workers[*row as usize];
            if end < begin {
                let text = format!("worker {id} ends at {end}, before it begins at {begin}");
                errors.add(Table::Workers, *row as usize, "end", text);
            }
            let selected = role == Role::Executes;
            graph.workers.push(Worker { id, node: node_row(node), begin, end, role, selected });
        }
        let worker_ids: Vec<u64> = graph.workers.iter().map(|w| w.id).collect();
        let worker_ids = Index::new(&worker_ids);

        let task_order = order_by_id(&self.tasks, |t| t.id, Table::Tasks, &mut errors);
        graph.tasks.id = task_order.iter().map(|row| self.tasks[*row as usize].id).collect();
        self.fill_tasks(&mut graph, &task_order, &mut errors);
        self.tasks = Vec::new();
        let task_ids = Index::new(&graph.tasks.id);

        let data_order = order_by_id(&self.data, |d| d.id, Table::Data, &mut errors);
        graph.data = ordered_data(&self.data, &data_order, &task_ids, node_row, &mut errors);
        self.data = Vec::new();
        let data_ids = Index::new(&graph.data.id);

        for (row, (task, data)) in self.inputs.iter().enumerate() {
            if task_ids.row(*task) == NONE {
                errors.add(Table::Inputs, row, "task", format!("there is no task {task}"));
            }
            if data_ids.row(*data) == NONE {
                errors.add(
                    Table::Inputs,
                    row,
                    "data",
                    format!("task {task} reads data {data}, which does not exist"),
                );
            }
        }
        let inputs =
            self.inputs.iter().map(|(task, data)| (task_ids.row(*task) as usize, data_ids.row(*data)));
        graph.inputs = Lists::group(graph.tasks.len(), inputs.filter(|(_, data)| *data != NONE));
        self.inputs = Vec::new();

        for (row, (data, ..)) in self.copies.iter().enumerate() {
            if data_ids.row(*data) == NONE {
                errors.add(Table::Copies, row, "data", format!("there is no data {data}"));
            }
        }
        let copies = self.copies.iter().map(|(data, node, sent, arrived)| {
            (data_ids.row(*data) as usize, Copy { node: node_row(*node), sent: *sent, arrived: *arrived })
        });
        graph.copies = Lists::group(graph.data.len(), copies);

        for (row, (worker, (task, ..))) in self.pieces.iter().enumerate() {
            if worker_ids.row(worker) == NONE {
                errors.add(Table::Pieces, row, "worker", format!("there is no worker {worker}"));
            }
            if task_ids.row(*task) == NONE {
                errors.add(Table::Pieces, row, "task", format!("there is no task {task}"));
            }
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        if pieces.iter().any(|(_, (task, ..))| task_ids.row(*task) == NONE) {
            // An error by now.
            pieces = RowsOfWorkers::default();
        }
        let piece = |(task, start, end): (u64, u64, u64)| Piece { task: task_ids.row(task), start, end };
        graph.pieces = pieces.map(piece).into_lists(graph.workers.len(), |worker| worker_ids.row(worker));
        graph.pieces.sort_each(|a, b| (a.start, a.end).cmp(&(b.start, b.end)));

        for (row, (worker, activity)) in self.activities.iter().enumerate() {
            if worker_ids.row(worker) == NONE {
                errors.add(Table::Activities, row, "worker", format!("there is no worker {worker}"));
            }
            if activity.end < activity.start {
                let text = format!("it ends at {}, before it starts at {}", activity.end, activity.start);
                errors.add(Table::Activities, row, "end", text);
            }
        }
        let activities = std::mem::take(&mut self.activities);
        graph.activities = activities.into_lists(graph.workers.len(), |worker| worker_ids.row(worker));
        let names = &graph.names;
        graph.activities.sort_each(|a, b| {
            let named = |activity: &Activity| &names[activity.name as usize];
            (a.start, a.end).cmp(&(b.start, b.end)).then_with(|| named(a).cmp(named(b)))
        });

        graph.operations = device_work::in_order(std::mem::take(&mut self.operations));
        self.operation_waits.sort_by_key(|(_, wait)| (wait.end, wait.start));
        // A wait that was over before the operation was is none for it.
        let ends_it = |wait: &OperationWait| {
            graph
                .operations
                .get(wait.operation as usize)
                .is_some_and(|of| of.end <= wait.end && of.end > wait.start)
        };
        let waits = self.operation_waits.iter().filter(|(_, wait)| ends_it(wait));
        let waits = waits.map(|(worker, wait)| (worker_ids.row(*worker) as usize, *wait));
        graph.operation_waits = Lists::group(graph.workers.len(), waits.clone());

        // An optional table counts as recorded if it has a row; inputs always do.
        let has = |is: fn(ActivityKind) -> bool| graph.activities.items().iter().any(|one| is(one.kind));
        graph.recorded = RecordedFacts {
            creation: !graph.tasks.created.is_empty(),
            dependences: true,
            locks: has(|kind| kind == ActivityKind::LockWait),
            off_cpu: has(|kind| matches!(kind, ActivityKind::OffCpu(_))),
        };

        graph.place_tasks();
        if errors.list.is_empty() {
            check::check(&graph, &check::Rows { tasks: &task_order, data: &data_order }, &mut errors.list);
        }
        if errors.list.is_empty() { Ok(graph) } else { Err(errors.list) }
    }

    fn fill_tasks(&self, graph: &mut TaskGraph, order: &[u32], errors: &mut Errors) {
        let rows = || order.iter().map(|row| &self.tasks[*row as usize]);
        let known = |any: bool, column: Vec<u64>| if any { column } else { Vec::new() };
        graph.tasks.ty = rows().map(|t| t.ty).collect();
        graph.tasks.created =
            known(self.tasks.iter().any(|t| t.created != NO_TIME), rows().map(|t| t.created).collect());
        graph.tasks.ready =
            known(self.tasks.iter().any(|t| t.ready != NO_TIME), rows().map(|t| t.ready).collect());
        graph.tasks.uniform =
            known(self.tasks.iter().any(|t| t.uniform != 0), rows().map(|t| t.uniform).collect());
        if self.tasks.iter().any(|t| t.creator.is_some()) {
            let ids = Index::new(&graph.tasks.id);
            for row in order {
                let task = &self.tasks[*row as usize];
                let creator = task.creator.map_or(NONE, |id| ids.row(id));
                if let (Some(id), NONE) = (task.creator, creator) {
                    let text = format!("task {} was created by task {id}, which does not exist", task.id);
                    errors.add(Table::Tasks, *row as usize, "creator", text);
                }
                graph.tasks.creator.push(creator);
            }
        }
    }
}

fn ordered_data(
    given: &[NewData],
    order: &[u32],
    task_ids: &Index<'_>,
    node_row: impl Fn(u64) -> u32,
    errors: &mut Errors,
) -> Data {
    let mut data = Data::default();
    let named = given.iter().any(|d| d.name != NONE);
    let synchronises = given.iter().any(|d| d.synchronises);
    for row in order {
        let new = &given[*row as usize];
        data.id.push(new.id);
        let producer = new.producer.map_or(NONE, |id| task_ids.row(id));
        if let (Some(id), NONE) = (new.producer, producer) {
            let text = format!("data {} is produced by task {id}, which does not exist", new.id);
            errors.add(Table::Data, *row as usize, "producer", text);
        }
        data.producer.push(producer);
        data.produced.push(new.produced);
        data.home.push(node_row(new.home));
        data.bytes.push(new.bytes);
        if named {
            data.name.push(new.name);
        }
        if synchronises {
            data.synchronises.push(new.synchronises);
        }
    }
    data
}

impl TaskGraph {
    /// Fills a task's worker, first start and last end from the pieces.
    pub(crate) fn place_tasks(&mut self) {
        let count = self.tasks.id.len();
        let Tasks { worker, start, end, .. } = &mut self.tasks;
        *worker = vec![NONE; count];
        *start = vec![NO_TIME; count];
        *end = vec![NO_TIME; count];
        for (row, pieces) in self.pieces.iter().enumerate() {
            for piece in pieces {
                let task = piece.task as usize;
                if start[task] == NO_TIME || piece.start < start[task] {
                    start[task] = piece.start;
                    worker[task] = row as u32;
                }
                if end[task] == NO_TIME || piece.end > end[task] {
                    end[task] = piece.end;
                }
            }
        }
    }
}

/// Errors found so far; at most a hundred.
#[derive(Default)]
pub(crate) struct Errors {
    list: Vec<GraphError>,
}

impl Errors {
    fn add(&mut self, table: Table, row: usize, field: &'static str, text: String) {
        if self.list.len() < check::MAX_ERRORS {
            self.list.push(GraphError { table, row, field, text });
        }
    }
}

/// Rows of `table` by ascending id; a number that occurs twice is an error.
fn order_by_id<T>(table: &[T], id: impl Fn(&T) -> u64, name: Table, errors: &mut Errors) -> Vec<u32> {
    let mut order: Vec<u32> = (0..table.len() as u32).collect();
    if !table.is_sorted_by_key(&id) {
        order.sort_by_key(|row| id(&table[*row as usize]));
    }
    for pair in order.windows(2) {
        let (first, second) = (id(&table[pair[0] as usize]), id(&table[pair[1] as usize]));
        if first == second {
            errors.add(name, pair[1] as usize, "id", format!("id {first} is used twice"));
        }
    }
    order
}

fn row_of(sorted: &[u64], id: u64) -> u32 {
    sorted.binary_search(&id).map_or(NONE, |row| row as u32)
}

/// Map from ids to rows: by subtraction for dense ids, by search otherwise.
struct Index<'a> {
    sorted: &'a [u64],
    first: u64,
    dense: bool,
}

impl<'a> Index<'a> {
    fn new(sorted: &'a [u64]) -> Self {
        let first = sorted.first().copied().unwrap_or(0);
        let dense = sorted.iter().enumerate().all(|(row, id)| *id == first + row as u64);
        Index { sorted, first, dense }
    }

    fn row(&self, id: u64) -> u32 {
        if self.dense {
            let row = id.wrapping_sub(self.first);
            if row < self.sorted.len() as u64 { row as u32 } else { NONE }
        } else {
            row_of(self.sorted, id)
        }
    }
}
