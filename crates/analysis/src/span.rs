//! Work, span and the bounds from them.
//!
//! T₁ is the sum of all work, without waits for locks or others, which another run need not have; T∞ the longest
//! chain of dependences and creations. A run on P workers takes at least max(T₁ / P, T∞) and, with a greedy scheduler
//! and nothing to wait for, at most T₁ / P + T∞ (Graham 1969). The *burdened* span charges each task with the runtime
//! work before it (He, Leiserson, Leiserson 2010).

use crate::replay::Costs;
use rayon::prelude::*;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{NONE, TaskGraph};

/// Work and span of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// T₁: time in task bodies, without runtime work, waits and communication inside them.
    pub work_ns: u64,
    /// T∞: the longest chain.
    pub span_ns: u64,
    /// The longest chain with the runtime work of each task on it.
    pub burdened_span_ns: u64,
    /// Runtime work and delays of all tasks.
    pub burden_ns: u64,
    /// Tasks that ran.
    pub tasks: u64,
}

impl Span {
    /// T₁ / T∞: with more workers than this, some must idle.
    pub fn parallelism(&self) -> f64 {
        self.work_ns as f64 / self.span_ns.max(1) as f64
    }

    /// The task size at which work is half of work and runtime work: the mean cost of running a task
    /// (METG at 50 %, Slaughter et al. 2020). Nanoseconds.
    pub fn metg_ns(&self) -> u64 {
        self.burden_ns / self.tasks.max(1)
    }

    /// All work spread evenly over `workers` workers (the area bound, for workers that are alike).
    pub fn area_bound_ns(&self, workers: u64) -> u64 {
        self.work_ns.div_ceil(workers.max(1))
    }

    /// No run on `workers` workers is shorter.
    pub fn lower_bound_ns(&self, workers: u64) -> u64 {
        self.area_bound_ns(workers).max(self.span_ns)
    }
}

/// All tasks that ran, by their starts. Starts are sorted along with the tasks: to look each up costs more.
pub(crate) fn tasks_by_start(graph: &TaskGraph) -> Vec<(u64, u32)> {
    let starts = graph.tasks.start.iter().copied().zip(0..);
    let mut order: Vec<(u64, u32)> = starts.filter(|(start, _)| *start != NO_TIME).collect();
    order.par_sort_unstable();
    order
}

/// Work and span of `graph`.
pub fn span(graph: &TaskGraph, costs: &Costs) -> Span {
    let tasks = &graph.tasks;
    let order = tasks_by_start(graph);
    let mut result = Span { tasks: order.len() as u64, ..Span::default() };
    // Earliest starts on endless workers, without and with burden.
    let mut starts = vec![(0_u64, 0_u64); tasks.len()];
    for (_, task) in order {
        let row = task as usize;
        let (mut plain, mut burdened) = (0, 0);
        let mut after = |other: u32, part: u64| {
            let (a, b) = starts[other as usize];
            let whole = (tasks.end[other as usize] - tasks.start[other as usize]).max(1);
            let share = (costs.work[other as usize] as u128 * part.min(whole) as u128 / whole as u128) as u64;
            plain = plain.max(a + share);
            burdened = burdened.max(b + share);
        };
        for data in graph.inputs.get(row) {
            let producer = graph.data.producer[*data as usize];
            if producer != NONE {
                let produced = graph.data.produced[*data as usize];
                after(producer, produced - tasks.start[producer as usize]);
            }
        }
        let (creator, created) = (tasks.creator(row), tasks.created(row));
        if creator != NONE && created != NO_TIME {
            after(creator, created.saturating_sub(tasks.start[creator as usize]));
        }
        let (work, burden) = (costs.work[row], costs.burden(row));
        starts[row] = (plain, burdened + burden);
        result.work_ns += work;
        result.burden_ns += burden;
        result.span_ns = result.span_ns.max(plain + work);
        result.burdened_span_ns = result.burdened_span_ns.max(burdened + burden + work);
    }
    result
}
