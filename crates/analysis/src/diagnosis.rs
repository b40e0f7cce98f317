//! Classes of lost time by remedy: the letters of SLOW split by root cause, by blame, and by [`Pattern`].
//!
//! Every row of blame goes to one row, or is shared between two if the second axis of the ledger requires it;
//! the rows sum to the loss. The rules use only recorded facts:
//!
//! | letter | pattern | rule |
//! | --- | --- | --- |
//! | starvation | badly distributed | the share of such waiting during which a ready task was queued elsewhere; waiting for late ranks |
//! | | too coarse | the rest, if tasks of the charged type take over [`SPLITTABLE`] × the cost of a task |
//! | latency | bad locality | for links and calls: over one in [`FAR_INPUTS`] inputs came from another node |
//! | overhead | too fine | for the runtime: tasks are shorter than [`EFFICIENT`] × their cost, and that is at most [`USUAL_COST_NS`] |
//!
//! All other rows have no pattern: cause and blame decide the remedy.

use crate::causes::{Causes, ReadyWork};
use crate::keys::Who;
use crate::span::Span;
use crate::wait_for_graph::Letter;
use std::collections::BTreeMap;
use taskscope_execution::graph::{NONE, TaskGraph};
use taskscope_execution::{Blamed, Cause, Pattern};

/// Tasks longer than so many times their cost can be split in eight and still be mostly work.
pub const SPLITTABLE: u64 = 16;
/// One input from another node in this many is a high share.
pub const FAR_INPUTS: u64 = 4;
/// Tasks of so many times their cost leave the runtime less than a tenth.
pub const EFFICIENT: u64 = 10;
/// Largest cost of running a task in usual runtimes, nanoseconds.
pub const USUAL_COST_NS: u64 = 10_000;

/// Time lost in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The letter that it is a part of.
    pub letter: Letter,
    /// The root cause: the state or activity of the charged party.
    pub cause: Cause,
    /// The charged party.
    pub blamed: Blamed,
    /// The pattern, if it decides the remedy.
    pub pattern: Option<Pattern>,
    /// Worker-nanoseconds.
    pub ns: u64,
}

/// The inputs of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Mean work of a task, nanoseconds.
    pub task_ns: u64,
    /// Mean cost of running one, nanoseconds.
    pub cost_ns: u64,
    /// Inputs of tasks that ran, and those of them that came from another node.
    pub inputs: u64,
    /// See `inputs`.
    pub far_inputs: u64,
    /// Copies, and how long they were under way in all, nanoseconds.
    pub copies: u64,
    /// See `copies`.
    pub under_way_ns: u64,
}

/// Lost time by situation.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// Most time first; they sum to capacity minus work.
    pub rows: Vec<Loss>,
    /// The inputs of the rules.
    pub evidence: Evidence,
}

/// Classifies the lost time.
pub fn diagnose(graph: &TaskGraph, causes: &Causes, span: &Span) -> Diagnosis {
    let evidence = evidence(graph, span);
    let lengths = mean_lengths(graph);
    let mut sums: BTreeMap<(Letter, Cause, Blamed, Option<Pattern>), u64> = BTreeMap::new();
    for row in causes.rows.iter().filter(|row| row.cause != Cause::Work) {
        let letter = row.who.letter();
        let mut add = |pattern, ns| {
            *sums.entry((letter, row.who.cause(), row.who.blamed(), pattern)).or_default() += ns;
        };
        match letter {
            Letter::Starvation if matches!(row.who, Who::Peer(_)) => {
                add(Some(Pattern::BadlyDistributed), row.ns)
            }
            Letter::Starvation => {
                let apart = causes.ready[row.cause as usize];
                let ready = apart[ReadyWork::Here as usize] + apart[ReadyWork::Elsewhere as usize];
                let all = u128::from(ready) + u128::from(apart[ReadyWork::Nowhere as usize]);
                let distributed = (u128::from(row.ns) * u128::from(ready) + all / 2) / all.max(1);
                add(Some(Pattern::BadlyDistributed), distributed as u64);
                let coarse = match row.who {
                    Who::Task(ty) => lengths[ty as usize] > SPLITTABLE * evidence.cost_ns.max(1),
                    _ => false,
                };
                // Without idle time in the table (drain of a single worker) all is the rest.
                add(coarse.then_some(Pattern::TooCoarse), row.ns - distributed as u64);
            }
            Letter::Latency => {
                let far = evidence.far_inputs * FAR_INPUTS > evidence.inputs;
                let is_transfer = matches!(row.who, Who::Link(..) | Who::Call(_));
                add((far && is_transfer).then_some(Pattern::BadLocality), row.ns);
            }
            Letter::Overhead => {
                let small = evidence.task_ns < EFFICIENT * evidence.cost_ns;
                let fine = small && evidence.cost_ns <= USUAL_COST_NS && row.who.cause() == Cause::Runtime;
                add(fine.then_some(Pattern::TooFine), row.ns);
            }
            Letter::Contention => add(None, row.ns),
        }
    }
    let mut rows: Vec<Loss> = (sums.into_iter().filter(|(_, ns)| *ns > 0))
        .map(|((letter, cause, blamed, pattern), ns)| Loss { letter, cause, blamed, pattern, ns })
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.ns), *row));
    Diagnosis { rows, evidence }
}

fn evidence(graph: &TaskGraph, span: &Span) -> Evidence {
    let mut evidence = Evidence {
        task_ns: span.work_ns / span.tasks.max(1),
        cost_ns: span.metg_ns(),
        ..Evidence::default()
    };
    if graph.copies.items().is_empty() {
        return evidence;
    }
    for task in (0..graph.tasks.len()).filter(|task| graph.tasks.worker[*task] != NONE) {
        let node = graph.node_of_task(task as u32);
        let inputs = graph.inputs.get(task);
        evidence.inputs += inputs.len() as u64;
        evidence.far_inputs += inputs.iter().filter(|data| graph.copy(**data, node).is_some()).count() as u64;
    }
    for data in 0..graph.data.len() {
        let produced = graph.data.produced[data];
        for copy in graph.copies.get(data) {
            let sent = if copy.sent == taskscope_execution::NO_TIME { produced } else { copy.sent };
            evidence.copies += 1;
            evidence.under_way_ns += copy.arrived - sent;
        }
    }
    evidence
}

/// Mean length of the tasks of each type, nanoseconds.
fn mean_lengths(graph: &TaskGraph) -> Vec<u64> {
    let mut sums = vec![(0_u64, 0_u64); graph.types.len()];
    for piece in graph.pieces.items() {
        sums[graph.tasks.ty[piece.task as usize] as usize].0 += piece.end - piece.start;
    }
    for (task, ty) in graph.tasks.ty.iter().enumerate() {
        sums[*ty as usize].1 += u64::from(graph.tasks.worker[task] != NONE);
    }
    let mean = |(ns, tasks): (u64, u64)| ns / tasks.max(1);
    // Code outside of tasks has to become tasks first.
    graph.types.iter().zip(sums).map(|(ty, sum)| if ty.implicit { 0 } else { mean(sum) }).collect()
}
