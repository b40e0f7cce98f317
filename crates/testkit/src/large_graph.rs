//! Large task graphs for benchmarks, made column by column without a builder.

use crate::dice::Dice;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{
    Activity, ActivityKind, Copy, Data, Lists, NONE, Node, Piece, Role, TaskGraph, TaskType, Tasks, Worker,
};

/// A list-scheduled run of `tasks` tasks on `workers` workers of `nodes` nodes. Each task reads up to three
/// results among the last few hundred, computes 10 to 40 µs, and costs the runtime 0.2 µs; a copy takes 5 to
/// 10 µs. Equal arguments give equal graphs.
pub fn large_graph(tasks: usize, workers: u32, nodes: u32) -> TaskGraph {
    let mut dice = Dice::new(7);
    let mut free: BinaryHeap<Reverse<(u64, u32)>> = (0..workers).map(|worker| Reverse((0, worker))).collect();
    let node_of = |worker: u32| worker * nodes / workers;
    let mut column = Tasks::default();
    let mut data = Data::default();
    let mut inputs = Lists::with_capacity(tasks, 3 * tasks);
    let mut copied = vec![0_u32; tasks];
    let mut copies: Vec<(u32, Copy)> = Vec::new();
    let mut pieces: Vec<(u32, Piece)> = Vec::with_capacity(tasks);
    let mut sections: Vec<(u32, Activity)> = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let Some(Reverse((since, worker))) = free.pop() else { break };
        let node = node_of(worker);
        let mut read = [NONE; 3];
        let mut available = since;
        for slot in 0..3_usize.min(task) {
            let back = 1 + dice.below(400.min(task as u64)) as usize;
            let from = (task - back) as u32;
            if read.contains(&from) {
                continue;
            }
            read[slot] = from;
            let produced = data.produced[from as usize];
            let mut at = produced;
            if data.home[from as usize] != node {
                at = produced + 5_000 + (u64::from(from) * 977 + u64::from(node) * 131) % 5_000;
                if copied[from as usize] & (1 << node) == 0 {
                    copied[from as usize] |= 1 << node;
                    let sent = if from.is_multiple_of(2) { produced + 100 } else { NO_TIME };
                    copies.push((from, Copy { node, sent, arrived: at }));
                }
            }
            available = available.max(at);
        }
        inputs.push(read.into_iter().filter(|from| *from != NONE));
        let start = available + 200;
        let end = start + dice.between(10_000, 40_000);
        free.push(Reverse((end, worker)));
        column.id.push(task as u64);
        column.ty.push(dice.below(8) as u32);
        column.worker.push(worker);
        column.start.push(start);
        column.end.push(end);
        data.id.push(task as u64);
        data.producer.push(task as u32);
        data.produced.push(end);
        data.home.push(node);
        data.bytes.push(8);
        pieces.push((worker, Piece { task: task as u32, start, end }));
        let kind = ActivityKind::Runtime(taskscope_execution::Cause::Runtime);
        sections.push((
            worker,
            Activity { start: start - 200, end: start, kind, name: 0, holder: NONE, waiter: NONE },
        ));
    }
    let last = column.end.iter().copied().max().unwrap_or(0);
    let named = |number: u32| TaskType { name: format!("t{number}"), ..TaskType::default() };
    let by_worker = |row: &(u32, Piece)| (row.0 as usize, row.1);
    TaskGraph {
        off_cpu: taskscope_execution::OsSource::Unknown,
        nodes: (0..nodes).map(|id| Node { id: id.into() }).collect(),
        workers: (0..workers)
            .map(|id| Worker {
                id: id.into(),
                node: node_of(id),
                begin: 0,
                end: last,
                role: Role::Executes,
                selected: true,
            })
            .collect(),
        types: (0..8).map(named).collect(),
        names: vec!["dispatch".to_owned()],
        copies: Lists::group(tasks, copies.iter().map(|(data, copy)| (*data as usize, *copy))),
        pieces: Lists::group(workers as usize, pieces.iter().map(by_worker)),
        activities: Lists::group(workers as usize, sections.iter().map(|(w, a)| (*w as usize, *a))),
        tasks: column,
        data,
        inputs,
        ..TaskGraph::default()
    }
}
