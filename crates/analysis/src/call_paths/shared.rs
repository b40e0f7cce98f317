//! Undirected blame by path: what the working threads run while others wait.

use super::contexts::Contexts;
use super::waits::marker_of;
use crate::sweep::{COLUMNS, Given, Integrals, Sweep, VICTIMS, sweep};
use rustc_hash::FxHashMap;
use taskscope_execution::{ProcessIndex, Section, Span, ThreadIndex};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree, settle};

/// Adds what those that work are charged with; `leaves` are the nodes of the samples.
pub fn add_shared(contexts: &mut Contexts<'_>, tree: &mut Tree, leaves: &[NodeId]) {
    let execution = contexts.execution;
    for process in 0..execution.processes.len() {
        let mut sums = PathSums {
            contexts,
            tree,
            leaves,
            shares: FxHashMap::default(),
            nobody: [0; VICTIMS.len()],
            waited: [0; VICTIMS.len()],
        };
        sweep(execution, ProcessIndex(process as u32), &mut sums);
        sums.settle();
    }
}

struct PathSums<'c, 'e, 't> {
    contexts: &'c mut Contexts<'e>,
    tree: &'t mut Tree,
    leaves: &'t [NodeId],
    shares: FxHashMap<NodeId, Integrals>,
    nobody: [u64; VICTIMS.len()],
    waited: [u64; VICTIMS.len()],
}

impl Sweep for PathSums<'_, '_, '_> {
    type Key = Section;
    const OF_SECTIONS: bool = true;

    fn key(&mut self, _thread: ThreadIndex, span: &Span) -> Section {
        span.section
    }

    fn worked(&mut self, thread: ThreadIndex, key: Section, start: u64, end: u64, given: &Given<'_>) {
        let samples = &self.contexts.execution.samples;
        let own = samples.of_thread(thread, start, end);
        let weights: u128 = own.iter().map(|sample| sample.weight_ns.max(1) as u128).sum();
        if own.is_empty() {
            let node = self.contexts.of_section(self.tree, &key).1;
            self.add(node, |column| given.part(column));
            return;
        }
        let first = samples.rows.partition_point(|row| (row.thread, row.at) <= (thread, start));
        let leaves = &self.leaves[first..first + own.len()];
        let (mut before, mut until) = (0_u128, 0_u128);
        for (sample, node) in own.iter().zip(leaves) {
            until += sample.weight_ns.max(1) as u128;
            let part = |column: usize| {
                scaled(given.part(column), until, weights) - scaled(given.part(column), before, weights)
            };
            self.add(*node, part);
            before = until;
        }
    }

    fn nobody(&mut self, _key: Section, column: usize, ns: u64) {
        self.nobody[column] += ns;
    }

    fn waited(&mut self, column: usize, ns: u64) {
        self.waited[column] += ns;
    }
}

/// `value` × `part` / `whole`, for values of up to 2^90 or so.
fn scaled(value: u128, part: u128, whole: u128) -> u128 {
    value / whole * part + value % whole * part / whole
}

impl PathSums<'_, '_, '_> {
    fn add(&mut self, node: NodeId, part: impl Fn(usize) -> u128) {
        let share = self.shares.entry(node).or_insert([0; COLUMNS]);
        for (column, sum) in share.iter_mut().enumerate().take(VICTIMS.len()) {
            *sum += part(column);
        }
    }

    /// Adds the shares in whole nanoseconds, so that each wait's sum is what was waited. Several states
    /// may be one wait.
    fn settle(self) {
        let mut nodes: Vec<NodeId> = self.shares.keys().copied().collect();
        nodes.sort_unstable();
        let nobody = self.tree.child(ROOT, Frame::state(Marker::Nobody));
        for (column, state) in VICTIMS.iter().enumerate() {
            let section = Section::of(*state);
            let Some(marker) = marker_of(self.contexts.execution, &section) else { continue };
            let metric = Metric::shared(marker);
            self.tree.add(nobody, metric, self.nobody[column]);
            let shares: Vec<(NodeId, u128)> = nodes
                .iter()
                .map(|node| (*node, self.shares[node][column]))
                .filter(|(_, share)| *share > 0)
                .collect();
            settle(self.tree, metric, self.waited[column] - self.nobody[column], &shares);
        }
    }
}
