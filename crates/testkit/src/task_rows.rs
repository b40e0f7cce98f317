//! Small task traces as rows that a test can change, and random ones.

use crate::dice::Dice;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{
    ActivityKind, GraphBuilder, GraphError, NONE, NewData, NewTask, TaskGraph, TaskType,
};

/// A worker: id, node, life.
#[derive(Clone, Debug)]
pub struct WorkerRow {
    /// Id.
    pub id: u64,
    /// Node.
    pub node: u64,
    /// Begin of its life.
    pub begin: u64,
    /// End of its life.
    pub end: u64,
}

/// A task with its only piece.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// Id.
    pub id: u64,
    /// Type.
    pub ty: u64,
    /// Worker.
    pub worker: u64,
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Data that it reads.
    pub inputs: Vec<u64>,
    /// Runtime work at unknown positions.
    pub uniform: u64,
}

/// Data with its copies.
#[derive(Clone, Debug)]
pub struct DataRow {
    /// Id.
    pub id: u64,
    /// Producer.
    pub producer: Option<u64>,
    /// Time of production.
    pub produced: u64,
    /// Home node.
    pub home: u64,
    /// Node, sent, arrived.
    pub copies: Vec<(u64, Option<u64>, u64)>,
}

/// Worker, start, end, kind.
pub type RuntimeRow = (u64, u64, u64, String);

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct TaskRows {
    /// Workers.
    pub workers: Vec<WorkerRow>,
    /// Tasks.
    pub tasks: Vec<TaskRow>,
    /// Data.
    pub data: Vec<DataRow>,
    /// Runtime intervals.
    pub runtime: Vec<RuntimeRow>,
}

impl TaskRows {
    /// The graph of these rows.
    ///
    /// # Errors
    /// As [`GraphBuilder::finish`].
    pub fn graph(&self) -> Result<TaskGraph, Vec<GraphError>> {
        let mut builder = GraphBuilder::new();
        for worker in &self.workers {
            builder.add_worker(worker.id, worker.node, worker.begin, worker.end);
        }
        for task in &self.tasks {
            let ty = builder.add_type(TaskType { name: format!("t{}", task.ty), ..TaskType::default() });
            builder.add_task(NewTask { uniform: task.uniform, ..NewTask::new(task.id, ty) });
            builder.add_piece(task.worker, task.id, task.start, task.end);
            for input in &task.inputs {
                builder.add_input(task.id, *input);
            }
        }
        for data in &self.data {
            builder.add_data(NewData {
                id: data.id,
                producer: data.producer,
                produced: data.produced,
                home: data.home,
                bytes: 8,
                name: NONE,
                synchronises: false,
            });
            for (node, sent, arrived) in &data.copies {
                builder.add_copy(data.id, *node, sent.unwrap_or(NO_TIME), *arrived);
            }
        }
        for (worker, start, end, kind) in &self.runtime {
            let name = builder.add_name(kind);
            builder.add_activity(
                *worker,
                ActivityKind::Runtime(taskscope_execution::Cause::Runtime),
                name,
                *start,
                *end,
            );
        }
        builder.finish()
    }

    /// Node of a worker.
    pub fn node_of(&self, worker: u64) -> u64 {
        self.workers.iter().find(|w| w.id == worker).map_or(0, |w| w.node)
    }

    /// The data called `id`.
    ///
    /// # Panics
    /// If there is none.
    pub fn data_of(&self, id: u64) -> &DataRow {
        self.data.iter().find(|d| d.id == id).expect("known data")
    }

    /// The time at which data can be read on a node.
    pub fn available(&self, id: u64, node: u64) -> u64 {
        let data = self.data_of(id);
        data.copies.iter().find(|copy| copy.0 == node).map_or(data.produced, |copy| copy.2)
    }

    /// The last end or time in it.
    pub fn end(&self) -> u64 {
        self.workers.iter().map(|w| w.end).max().unwrap_or(0)
    }
}

/// Limits of a random trace.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Most nodes.
    pub nodes: u64,
    /// Most workers of a node.
    pub workers: u64,
    /// Most tasks.
    pub tasks: u64,
    /// Longest task, gap or transfer.
    pub longest: u64,
    /// Percentage of tasks with runtime work at unknown positions.
    pub uniform: u64,
    /// Percentage of workers' gaps with runtime intervals.
    pub runtime: u64,
    /// Percentage of copies with a recorded sending.
    pub sent: u64,
}

impl Recipe {
    /// Small traces with some of everything.
    pub const SMALL: Recipe =
        Recipe { nodes: 3, workers: 3, tasks: 24, longest: 30, uniform: 30, runtime: 40, sent: 50 };
}

/// A random trace that meets every precondition.
pub fn random(seed: u64, recipe: Recipe) -> TaskRows {
    let mut dice = Dice::new(seed);
    let mut rows = TaskRows::default();
    let nodes = dice.between(1, recipe.nodes);
    for node in 0..nodes {
        for _ in 0..dice.between(1, recipe.workers) {
            let begin = if dice.chance(20) { dice.below(recipe.longest) } else { 0 };
            let id = 3 + 2 * rows.workers.len() as u64;
            rows.workers.push(WorkerRow { id, node, begin, end: begin });
        }
    }
    for number in 0..dice.below(4) {
        let home = dice.below(nodes);
        let produced = if dice.chance(20) { dice.below(recipe.longest) } else { 0 };
        rows.data.push(DataRow { id: 1000 + number, producer: None, produced, home, copies: Vec::new() });
    }
    for number in 0..dice.between(1, recipe.tasks) {
        add_task(&mut rows, &mut dice, &recipe, number);
    }
    for worker in 0..rows.workers.len() {
        if dice.chance(recipe.runtime) {
            for _ in 0..dice.between(1, 6) {
                let last = rows.workers[worker].end.max(10);
                let start = dice.below(last);
                let kind = ["post", "dispatch", "call"][dice.below(3) as usize].to_owned();
                let end = start + dice.between(1, recipe.longest / 2 + 1);
                rows.runtime.push((rows.workers[worker].id, start, end, kind));
            }
        }
        rows.workers[worker].end += dice.below(20);
    }
    rows
}

fn add_task(rows: &mut TaskRows, dice: &mut Dice, recipe: &Recipe, number: u64) {
    let worker = dice.below(rows.workers.len() as u64) as usize;
    let node = rows.workers[worker].node;
    let mut inputs: Vec<u64> = Vec::new();
    for _ in 0..dice.below(4) {
        if !rows.data.is_empty() {
            // Mostly recent data, so that tasks do wait.
            let back = if dice.chance(70) { dice.below(6) } else { dice.below(rows.data.len() as u64) };
            let row = rows.data.len() - 1 - (back as usize).min(rows.data.len() - 1);
            if !inputs.contains(&rows.data[row].id) {
                inputs.push(rows.data[row].id);
                send_to(rows, dice, recipe, row, node);
            }
        }
    }
    let arrived = inputs.iter().map(|id| rows.available(*id, node)).max().unwrap_or(0);
    let gap = if dice.chance(50) { 0 } else { dice.below(recipe.longest / 2 + 1) };
    let start = arrived.max(rows.workers[worker].end) + gap;
    let end = start + dice.between(1, recipe.longest);
    rows.workers[worker].end = end;
    // Ids fall as often as they rise, so that no order of rows is that of ids.
    let id = if number.is_multiple_of(2) { 500 + number } else { 500 - number };
    let uniform = if dice.chance(recipe.uniform) { dice.below(recipe.longest) } else { 0 };
    let (ty, worker) = (dice.below(3), rows.workers[worker].id);
    rows.tasks.push(TaskRow { id, ty, worker, start, end, inputs, uniform });
    for part in 0..dice.below(3) {
        let produced = if dice.chance(60) { end } else { dice.between(start + 1, end) };
        let id = if number.is_multiple_of(3) { 2000 + 3 * number + part } else { 1900 - 3 * number - part };
        let new = DataRow {
            id,
            producer: rows.tasks.last().map(|t| t.id),
            produced,
            home: node,
            copies: Vec::new(),
        };
        rows.data.push(new);
    }
}

/// Gives the node a copy of the data, unless it has one or computed it; sometimes even then.
fn send_to(rows: &mut TaskRows, dice: &mut Dice, recipe: &Recipe, row: usize, node: u64) {
    let id = rows.data[row].id;
    let read_here = rows.tasks.iter().any(|t| t.inputs.contains(&id) && rows.node_of(t.worker) == node);
    let data = &mut rows.data[row];
    let at_home = data.home == node;
    if data.copies.iter().any(|copy| copy.0 == node) || (at_home && (read_here || !dice.chance(5))) {
        return;
    }
    let left = data.produced + if dice.chance(50) { 0 } else { dice.below(recipe.longest) };
    let sent = dice.chance(recipe.sent).then_some(left);
    data.copies.push((node, sent, left + dice.below(recipe.longest)));
}
