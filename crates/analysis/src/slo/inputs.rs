//! The two inputs that decide when a task could start.

use taskscope_execution::graph::{NONE, TaskGraph};

/// The deciding inputs of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deciding {
    /// The last produced input that has a producer; [`NONE`] without one.
    pub last_produced: u32,
    /// The last arrived input, initial ones included; [`NONE`] without any.
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

/// The deciding inputs of every task.
pub fn deciding_inputs(graph: &TaskGraph) -> Vec<Deciding> {
    (0..graph.tasks.len() as u32).map(|task| Deciding::of(graph, task)).collect()
}
