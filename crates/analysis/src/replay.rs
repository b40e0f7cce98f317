//! What-if analysis: replays the run with other costs, under a stated scheduler.
//!
//! **The scheduler.** Tasks stay on their node. As soon as a worker of the node is free and a task is ready,
//! the ready task that started first in the recorded run starts, on its recorded worker if that is free. Code
//! outside of tasks stays on its worker. Each task keeps its recorded costs: its work, its waits for locks
//! and others, the runtime work before it on its worker, the unexplained delay; each copy its send delay and
//! its transfer time. The start and the end of a job's library (MPI) keep their duration. A change scales
//! some of these. Replaying the recorded run without a change gives the error of the replay itself, to be
//! read with every prediction.

use crate::slo::Deciding;
use crate::timeline::{
    Limits, Segment, Segments, activity_segments, away_segments, fixed_segments, runtime_segments,
    time_outside,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{Lists, NONE, Role, TaskGraph};

/// The recorded costs of each task and copy.
#[derive(Clone, Debug)]
pub struct Costs {
    /// By task: time in its body, without the activities below.
    pub work: Vec<u64>,
    /// By task: time in its body in which it waited for a lock, a device, another process or a CPU, or communicated.
    /// No change of costs affects it, and another run may have none.
    waits: Vec<u64>,
    /// By task: runtime work inside its body.
    inner: Vec<u64>,
    /// By task: runtime work on its worker since the worker's task before it.
    gap: Vec<u64>,
    /// By task: the part of `gap` after the task could start.
    late: Vec<u64>,
    /// By task: delay of its start beyond all that is known.
    delay: Vec<u64>,
    /// By task: the part of `delay` in which its worker had no CPU, or waited for something else than a task.
    away: Vec<u64>,
    /// By task: time since its worker's task before it in which the worker started or ended a library, or absorbed noise,
    /// also while the task could not start yet; nothing changes it.
    fixed: Vec<u64>,
    /// By copy, in the order of the graph: from production to sending.
    send: Vec<u64>,
    /// By worker: runtime work after its last task.
    tail: Vec<u64>,
    /// From the end of all this to the end of the last worker's life; nothing changes it.
    after: u64,
}

impl Costs {
    /// Runtime work and unexplained delay of a task. Time without a CPU does not count.
    pub fn burden(&self, task: usize) -> u64 {
        self.inner[task] + self.gap[task] + self.delay[task].saturating_sub(self.away[task])
    }

    /// The costs of the recorded run.
    pub fn of(graph: &TaskGraph, deciding: &[Deciding]) -> Costs {
        let segments = runtime_segments(graph);
        let (fixed, away) = (fixed_segments(graph), away_segments(graph));
        let count = graph.tasks.len();
        let mut work = time_outside(graph, &activity_segments(graph));
        let outside_runtime = time_outside(graph, &segments);
        let waits: Vec<u64> = outside_runtime.iter().zip(&work).map(|(all, work)| all - work).collect();
        let mut inner = vec![0; count];
        for pieces in graph.pieces.iter() {
            for piece in pieces {
                inner[piece.task as usize] += piece.end - piece.start;
            }
        }
        for task in 0..count {
            work[task] -= graph.tasks.uniform(task).min(work[task]);
            inner[task] -= work[task] + waits[task];
        }
        let mut costs = Costs {
            work,
            waits,
            inner,
            gap: vec![0; count],
            late: vec![0; count],
            delay: vec![0; count],
            away: vec![0; count],
            fixed: vec![0; count],
            send: Vec::with_capacity(graph.copies.items().len()),
            tail: vec![0; graph.workers.len()],
            after: 0,
        };
        for (worker, pieces) in graph.pieces.iter().enumerate() {
            let own = segments.get(worker);
            let row = &graph.workers[worker];
            let mut free = row.begin;
            for piece in pieces {
                let task = piece.task as usize;
                if graph.tasks.start[task] == piece.start && piece.start > free {
                    let limits = Limits::of(graph, piece.task, deciding[task], row.node);
                    let ready = limits.created.max(limits.arrived).max(limits.produced).min(piece.start);
                    let gap = inside(own, free, piece.start);
                    let late = inside(own, ready.max(free), piece.start);
                    costs.gap[task] = gap;
                    costs.late[task] = late;
                    let fixed = inside(fixed.get(worker), free, piece.start);
                    costs.fixed[task] = fixed;
                    costs.away[task] = inside(away.get(worker), ready.max(free), piece.start);
                    costs.delay[task] = piece.start - (free + gap + fixed).max(ready + late).min(piece.start);
                }
                free = piece.end;
            }
            costs.tail[worker] = inside(own, free, row.end);
        }
        let ends =
            graph.pieces.iter().zip(&costs.tail).filter_map(|(own, tail)| own.last().map(|p| p.end + tail));
        costs.after = ends.max().map_or(0, |last| graph.range().1.saturating_sub(last));
        for data in 0..graph.data.len() {
            let produced = graph.data.produced[data];
            for copy in graph.copies.get(data) {
                let sent = if copy.sent == NO_TIME {
                    post_end(graph, &segments, data).min(copy.arrived)
                } else {
                    copy.sent
                };
                costs.send.push(sent - produced);
            }
        }
        costs
    }
}

/// Nanoseconds of `segments` from `start` to `end`.
fn inside(segments: &[Segment], start: u64, end: u64) -> u64 {
    let first = segments.partition_point(|segment| segment.end <= start);
    (segments[first..].iter().take_while(|segment| segment.start < end))
        .map(|segment| segment.end.min(end).saturating_sub(segment.start.max(start)))
        .sum()
}

/// If sending is not recorded: the end of the runtime section that the producer's worker entered after
/// producing the data, which is assumed to be the send.
fn post_end(graph: &TaskGraph, segments: &Segments<'_>, data: usize) -> u64 {
    let (producer, produced) = (graph.data.producer[data], graph.data.produced[data]);
    if producer == NONE {
        return produced;
    }
    let own = segments.get(graph.tasks.worker[producer as usize] as usize);
    let row = own.partition_point(|segment| segment.start < produced);
    own.get(row).filter(|segment| segment.start == produced).map_or(produced, |segment| segment.end)
}

/// A change of costs. Factors of 1 change nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct CostChange {
    /// Factor of all runtime work and delays.
    pub runtime: f64,
    /// Factor of the time under way of copies.
    pub network: f64,
    /// Factors of the work of task types, by row.
    pub types: Vec<(u32, f64)>,
    /// Workers of each node, instead of as many as recorded.
    pub workers_per_node: Option<u32>,
}

impl Default for CostChange {
    fn default() -> Self {
        CostChange { runtime: 1.0, network: 1.0, types: Vec::new(), workers_per_node: None }
    }
}

/// A replayed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// From the begin of the first worker to the end of the last one.
    pub wall_ns: u64,
    /// Replayed tasks; fewer than recorded only if the trace's times are inconsistent.
    pub tasks: u64,
}

/// Replays the run with a change.
pub fn replay(graph: &TaskGraph, costs: &Costs, change: &CostChange) -> Replayed {
    Replay::new(graph, costs, change).run()
}

fn scaled(ns: u64, factor: f64) -> u64 {
    if factor == 1.0 { ns } else { (ns as f64 * factor).round() as u64 }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(u32),
    Free(u32),
}

struct Replay<'a> {
    graph: &'a TaskGraph,
    costs: &'a Costs,
    change: &'a CostChange,
    factors: Vec<f64>,
    /// Tasks that read each data.
    readers: Lists<u32>,
    created_by: Lists<u32>,
    /// Data that each task produces.
    outputs: Lists<u32>,
    /// Number of missing predecessors of each task, and its ready time so far.
    missing: Vec<u32>,
    ready_at: Vec<u64>,
    /// Node of each worker.
    worker_nodes: Vec<u32>,
    /// The worker here of each recorded one, on the same node.
    homes: Vec<u32>,
    free_since: Vec<Option<u64>>,
    free_workers: Vec<Vec<u32>>,
    /// Ready tasks by recorded start: of each node, and of each worker those that stay on it.
    node_queues: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    worker_queues: Vec<BinaryHeap<Reverse<(u64, u32)>>>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    begin: u64,
    worker_ends: Vec<u64>,
    done: u64,
}

impl<'a> Replay<'a> {
    fn new(graph: &'a TaskGraph, costs: &'a Costs, change: &'a CostChange) -> Self {
        let tasks = &graph.tasks;
        let mut factors = vec![1.0; graph.types.len()];
        for (ty, factor) in &change.types {
            factors[*ty as usize] = *factor;
        }
        let reads = (0..tasks.len())
            .flat_map(|task| graph.inputs.get(task).iter().map(move |d| (*d as usize, task as u32)));
        let creations = (0..tasks.len())
            .filter(|task| tasks.creator(*task) != NONE && tasks.created(*task) != NO_TIME)
            .map(|task| (tasks.creator(task) as usize, task as u32));
        let producers = graph.data.producer.iter().enumerate();
        let productions = producers.map(|(data, task)| (*task as usize, data as u32));
        let mut worker_nodes: Vec<u32> = graph.workers.iter().map(|worker| worker.node).collect();
        let mut homes: Vec<u32> = (0..graph.workers.len() as u32).collect();
        if let Some(workers) = change.workers_per_node.map(|workers| workers.max(1)) {
            worker_nodes =
                (0..graph.nodes.len() as u32).flat_map(|node| vec![node; workers as usize]).collect();
            let mut met = vec![0; graph.nodes.len()];
            for (home, worker) in homes.iter_mut().zip(&graph.workers) {
                let number = &mut met[worker.node as usize];
                *home = worker.node * workers + *number % workers;
                *number += u32::from(worker.role != Role::Runtime);
            }
        }
        let begin = graph.range().0;
        Replay {
            graph,
            costs,
            change,
            factors,
            readers: Lists::group(graph.data.len(), reads),
            created_by: Lists::group(tasks.len(), creations),
            outputs: Lists::group(tasks.len(), productions),
            missing: vec![0; tasks.len()],
            ready_at: vec![begin; tasks.len()],
            free_since: vec![None; worker_nodes.len()],
            free_workers: vec![Vec::new(); graph.nodes.len()],
            node_queues: vec![BinaryHeap::new(); graph.nodes.len()],
            worker_queues: vec![BinaryHeap::new(); worker_nodes.len()],
            events: BinaryHeap::new(),
            begin,
            worker_ends: vec![0; worker_nodes.len()],
            worker_nodes,
            homes,
            done: 0,
        }
    }

    fn run(mut self) -> Replayed {
        let tasks = &self.graph.tasks;
        // Other numbers of workers have rows of their own, which have no roles; they begin as the first of their node.
        let recorded = self.change.workers_per_node.is_none();
        let mut begins: Vec<Option<u64>> = vec![None; self.graph.nodes.len()];
        for worker in &self.graph.workers {
            let begin = &mut begins[worker.node as usize];
            *begin = Some(begin.map_or(worker.begin, |begin| begin.min(worker.begin)));
        }
        for (worker, node) in (0..).zip(&self.worker_nodes) {
            let row = self.graph.workers.get(worker as usize).filter(|_| recorded);
            if row.is_some_and(|row| row.role == Role::Runtime) {
                continue;
            }
            let begin = row.map(|row| row.begin).or(begins[*node as usize]).unwrap_or(self.begin);
            self.events.push(Reverse((begin, Event::Free(worker))));
        }
        for task in 0..tasks.len() {
            if tasks.start[task] == NO_TIME {
                continue;
            }
            let inputs = self.graph.inputs.get(task);
            let with_producer =
                inputs.iter().filter(|d| self.graph.data.producer[**d as usize] != NONE).count();
            let created = tasks.creator(task) != NONE && tasks.created(task) != NO_TIME;
            self.missing[task] = with_producer as u32 + u32::from(created);
            let node = self.graph.node_of_task(task as u32);
            for data in inputs.iter().filter(|d| self.graph.data.producer[**d as usize] == NONE) {
                let produced = self.graph.data.produced[*data as usize];
                let at = self.arrival(*data, node, produced.max(self.begin));
                self.ready_at[task] = self.ready_at[task].max(at);
            }
            if self.missing[task] == 0 {
                self.events.push(Reverse((self.ready_at[task], Event::Ready(task as u32))));
            }
        }
        let mut touched = Vec::new();
        while let Some(Reverse((now, _))) = self.events.peek().copied() {
            // Everything of one instant is known before anything starts.
            touched.clear();
            while self.events.peek().is_some_and(|next| next.0.0 == now) {
                let Some(Reverse((_, event))) = self.events.pop() else { break };
                touched.push(match event {
                    Event::Ready(task) => self.take_ready(task),
                    Event::Free(worker) => {
                        let node = self.worker_nodes[worker as usize];
                        self.free_since[worker as usize] = Some(now);
                        self.free_workers[node as usize].push(worker);
                        node
                    }
                });
            }
            touched.sort_unstable();
            touched.dedup();
            for node in &touched {
                self.start_what_can(*node, now);
            }
        }
        let mut tails = vec![0; self.worker_ends.len()];
        for (home, tail) in self.homes.iter().zip(&self.costs.tail) {
            tails[*home as usize] = tails[*home as usize].max(*tail);
        }
        let ends = self.worker_ends.iter().zip(tails).filter(|(end, _)| **end > 0);
        let wall_end =
            ends.map(|(end, tail)| end + scaled(tail, self.change.runtime)).max().unwrap_or(self.begin);
        Replayed { wall_ns: wall_end - self.begin + self.costs.after, tasks: self.done }
    }

    /// The time at which `data`, produced at `produced`, can be read on `node`.
    fn arrival(&self, data: u32, node: u32, produced: u64) -> u64 {
        let first = self.graph.copies.start(data as usize);
        let copies = self.graph.copies.get(data as usize);
        let Some(row) = copies.iter().position(|copy| copy.node == node) else { return produced };
        let send = self.costs.send[first + row];
        let under_way = copies[row].arrived - self.graph.data.produced[data as usize] - send;
        produced + scaled(send, self.change.runtime) + scaled(under_way, self.change.network)
    }

    fn take_ready(&mut self, task: u32) -> u32 {
        let tasks = &self.graph.tasks;
        let entry = Reverse((tasks.start[task as usize], task));
        let node = self.graph.node_of_task(task);
        let stays = self.graph.types.get(tasks.ty[task as usize] as usize).is_some_and(|ty| ty.implicit);
        if stays {
            let worker = self.homes[tasks.worker[task as usize] as usize] as usize;
            self.worker_queues[worker].push(entry);
            return self.worker_nodes[worker];
        }
        self.node_queues[node as usize].push(entry);
        node
    }

    fn start_what_can(&mut self, node: u32, now: u64) {
        let n = node as usize;
        let mut row = 0;
        while row < self.free_workers[n].len() {
            let worker = self.free_workers[n][row] as usize;
            match self.worker_queues[worker].pop() {
                Some(Reverse((_, task))) => {
                    self.free_workers[n].swap_remove(row);
                    self.start(task, worker, now);
                }
                None => row += 1,
            }
        }
        while !self.free_workers[n].is_empty() {
            let Some(Reverse((_, task))) = self.node_queues[n].pop() else { return };
            let recorded = self.homes[self.graph.tasks.worker[task as usize] as usize];
            let free = &mut self.free_workers[n];
            let row = free.iter().position(|worker| *worker == recorded).unwrap_or(0);
            let worker = free.swap_remove(row) as usize;
            self.start(task, worker, now);
        }
    }

    fn start(&mut self, task: u32, worker: usize, now: u64) {
        let row = task as usize;
        let (tasks, costs, runtime) = (&self.graph.tasks, self.costs, self.change.runtime);
        let free = self.free_since[worker].take().unwrap_or(now);
        let ready = self.ready_at[row];
        let by_worker = free + scaled(costs.gap[row], runtime) + costs.fixed[row];
        let by_inputs = ready + scaled(costs.late[row], runtime);
        let start = by_worker.max(by_inputs).max(now) + scaled(costs.delay[row], runtime);
        let work = scaled(costs.work[row], self.factors[tasks.ty[row] as usize]);
        let length = work + costs.waits[row] + scaled(costs.inner[row], runtime);
        let end = start + length;
        self.done += 1;
        self.worker_ends[worker] = end;
        self.events.push(Reverse((end, Event::Free(worker as u32))));
        let recorded = (tasks.end[row] - tasks.start[row]).max(1);
        let at_part = |time: u64| {
            let part = time.clamp(tasks.start[row], tasks.end[row]) - tasks.start[row];
            start + (length as u128 * part as u128 / recorded as u128) as u64
        };
        for output in 0..self.outputs.get(row).len() {
            let data = self.outputs.get(row)[output];
            let produced = at_part(self.graph.data.produced[data as usize]);
            for reader in 0..self.readers.get(data as usize).len() {
                let reader = self.readers.get(data as usize)[reader];
                let at = self.arrival(data, self.graph.node_of_task(reader), produced);
                self.satisfy(reader, at);
            }
        }
        for child in 0..self.created_by.get(row).len() {
            let child = self.created_by.get(row)[child];
            self.satisfy(child, at_part(tasks.created(child as usize)));
        }
    }

    fn satisfy(&mut self, task: u32, at: u64) {
        let row = task as usize;
        self.ready_at[row] = self.ready_at[row].max(at);
        if self.missing[row] > 0 {
            self.missing[row] -= 1;
            if self.missing[row] == 0 {
                self.events.push(Reverse((self.ready_at[row], Event::Ready(task))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::deciding_inputs;
    use taskscope_execution::graph::{GraphBuilder, NewTask, TaskType};

    /// The second node begins at 1000.
    #[test]
    fn other_numbers_of_workers_begin_with_their_node() {
        let mut builder = GraphBuilder::new();
        let ty = builder.add_type(TaskType { name: "code".into(), ..TaskType::default() });
        for (worker, begin) in [(0, 0), (1, 1000)] {
            builder.add_worker(worker, worker, begin, 1100);
        }
        for (task, worker, start, end) in [(0, 0, 0, 100), (1, 0, 100, 200), (2, 1, 1000, 1100)] {
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(worker, task, start, end);
        }
        let graph = builder.finish().unwrap();
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let change = CostChange { workers_per_node: Some(2), ..CostChange::default() };
        assert_eq!(replay(&graph, &costs, &change).wall_ns, 1100);
    }

    /// Two nodes with two workers each, of which the first runs code outside of tasks.
    #[test]
    fn code_outside_of_tasks_stays_on_its_node() {
        let mut builder = GraphBuilder::new();
        let ty = builder.add_type(TaskType { name: "code".into(), implicit: true, ..TaskType::default() });
        for (worker, node) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            builder.add_worker(worker, node, 0, 100);
        }
        for (task, worker) in [(0, 0), (1, 2)] {
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(worker, task, 0, 100);
        }
        let graph = builder.finish().unwrap();
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let change = CostChange { workers_per_node: Some(1), ..CostChange::default() };
        assert_eq!(replay(&graph, &costs, &change).wall_ns, 100);
    }
}
