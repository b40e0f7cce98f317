//! Undirected blame by path: what the working threads run while others wait.

use super::contexts::Contexts;
use super::waits::marker_of;
use crate::sweep::{COLUMNS, Given, Integrals, Sweep, VICTIMS, sweep};
use rustc_hash::FxHashMap;
use std::ops::Range;
use taskscope_execution::{ProcessIndex, Section, State, ThreadIndex};
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
            sections: FxHashMap::default(),
            working: FxHashMap::default(),
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
    /// The section that each thread has come to, and its number.
    sections: FxHashMap<ThreadIndex, Key>,
    /// What is to be charged in the section that each thread works in.
    working: FxHashMap<ThreadIndex, Working>,
    nobody: [u64; VICTIMS.len()],
    waited: [u64; VICTIMS.len()],
}

/// A section, and how manieth it is of its thread: its pieces on the CPU and off it are one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(Section, u32);

impl Default for Key {
    fn default() -> Self {
        Key(Section::of(State::Unknown), 0)
    }
}

/// The section that a thread works in. The system cuts it into pieces, of which some have no sample.
struct Working {
    key: Key,
    /// What its pieces without a sample since the last sample are charged with.
    owed: Integrals,
    /// Its samples so far that were charged last.
    samples: Range<usize>,
}

impl Sweep for PathSums<'_, '_, '_> {
    type Key = Key;
    const OF_SECTIONS: bool = true;

    fn key(&mut self, thread: ThreadIndex, section: &Section) -> Key {
        let now = self.sections.entry(thread).or_insert(Key(*section, 0));
        if section.state == State::OutOfCpu {
            return Key(*section, now.1);
        }
        if now.0 != *section {
            *now = Key(*section, now.1 + 1);
        }
        *now
    }

    fn worked(&mut self, thread: ThreadIndex, key: Key, start: u64, end: u64, given: &Given<'_>) {
        let new = || Working { key, owed: [0; COLUMNS], samples: 0..0 };
        let mut working = self.working.remove(&thread).unwrap_or_else(new);
        if working.key.1 != key.1 {
            self.charge(&working);
            working = new();
        }
        for (column, owed) in working.owed.iter_mut().enumerate().take(VICTIMS.len()) {
            *owed += given.part(column);
        }
        let samples = &self.contexts.execution.samples;
        let own = samples.of_thread(thread, start, end).len();
        if own > 0 {
            let first = samples.rows.partition_point(|row| (row.thread, row.at) <= (thread, start));
            working.samples = first..first + own;
            self.charge(&working);
            working.owed = [0; COLUMNS];
        }
        self.working.insert(thread, working);
    }

    fn nobody(&mut self, _key: Key, column: usize, ns: u64) {
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
    /// Charges what is owed to the samples of the section, by their weights, or, without any, to its own place.
    fn charge(&mut self, Working { key, owed, samples }: &Working) {
        if owed.iter().all(|owed| *owed == 0) {
            return;
        }
        if samples.is_empty() {
            let node = self.contexts.of_section(self.tree, &key.0).1;
            return self.add(node, |column| owed[column]);
        }
        let weight = |row: usize| self.contexts.execution.samples.rows[row].weight_ns.max(1) as u128;
        let weights: u128 = samples.clone().map(weight).sum();
        let (mut before, mut until) = (0_u128, 0_u128);
        for row in samples.clone() {
            until += weight(row);
            let part =
                |column: usize| scaled(owed[column], until, weights) - scaled(owed[column], before, weights);
            self.add(self.leaves[row], part);
            before = until;
        }
    }

    fn add(&mut self, node: NodeId, part: impl Fn(usize) -> u128) {
        let share = self.shares.entry(node).or_insert([0; COLUMNS]);
        for (column, sum) in share.iter_mut().enumerate().take(VICTIMS.len()) {
            *sum += part(column);
        }
    }

    /// Adds the shares in whole nanoseconds, so that each wait's sum is what was waited. Several states
    /// may be one wait.
    fn settle(mut self) {
        let working = std::mem::take(&mut self.working);
        working.values().for_each(|working| self.charge(working));
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
