//! The two inputs that decide when a task could start.

use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{NONE, TaskGraph};

/// The deciding inputs of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The last produced input that has a producer; [`NONE`] where there is no such input.
    pub last_produced: u32,
    /// The last arrived input, initial ones included; [`NONE`] where there is no input.
    pub last_arrived: u32,
}

impl Deciding {
    /// No input at all.
    pub const NONE: Deciding = Deciding { last_produced: NONE, last_arrived: NONE };

    /// The inputs of `task` that decide. Ties of "last produced" go to the later arrival, then to the
    /// smaller id; ties of "last arrived" to the smaller id.
    pub fn of(graph: &TaskGraph, task: u32) -> Deciding {
        let node = graph.node_of_task(task);
        let mut found = Deciding::NONE;
        let mut produced = (0, 0);
        let mut arrived = 0;
        for &data in graph.inputs.get(task as usize) {
            let available = graph.available(data, node);
            if graph.data.producer[data as usize] != NONE {
                let key = (graph.data.produced[data as usize], available);
                let earlier_id = key == produced && data < found.last_produced;
                if found.last_produced == NONE || key > produced || earlier_id {
                    (found.last_produced, produced) = (data, key);
                }
            }
            let earlier_id = available == arrived && data < found.last_arrived;
            if found.last_arrived == NONE || available > arrived || earlier_id {
                (found.last_arrived, arrived) = (data, available);
            }
        }
        found
    }
}

/// The deciding inputs as times: what makes an instant before the start of a task what it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// When the last input was produced; 0 where none has a producer.
    pub produced: u64,
    /// Row of the worker that produced it, or [`NONE`].
    pub producer_worker: u32,
    /// When the last input had arrived; 0 without inputs.
    pub arrived: u64,
    /// When its copy was sent; 0 where that is not recorded.
    pub sent: u64,
    /// Row of the node from which it came.
    pub from: u32,
}

impl Limits {
    pub fn of(graph: &TaskGraph, deciding: Deciding, node: u32) -> Limits {
        let mut limits = Limits { produced: 0, producer_worker: NONE, arrived: 0, sent: 0, from: NONE };
        if deciding.last_produced != NONE {
            let data = deciding.last_produced as usize;
            limits.produced = graph.data.produced[data];
            limits.producer_worker = graph.tasks.worker[graph.data.producer[data] as usize];
        }
        if deciding.last_arrived != NONE {
            limits.arrived = graph.available(deciding.last_arrived, node);
            limits.from = graph.origin(deciding.last_arrived);
            let copy = graph.copy(deciding.last_arrived, node);
            limits.sent = copy.map(|copy| copy.sent).filter(|sent| *sent != NO_TIME).unwrap_or(0);
        }
        limits
    }
}

/// The deciding inputs of every task before which its worker was idle.
pub fn deciding_inputs(graph: &TaskGraph) -> Vec<Deciding> {
    let mut all = vec![Deciding::NONE; graph.tasks.len()];
    for (worker, pieces) in graph.workers.iter().zip(graph.pieces.iter()) {
        let mut free = worker.begin;
        for piece in pieces {
            if piece.start > free {
                all[piece.task as usize] = Deciding::of(graph, piece.task);
            }
            free = piece.end;
        }
    }
    all
}
