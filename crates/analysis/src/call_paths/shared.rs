//! Undirected blame by path: what the working threads run while others wait.

use super::contexts::Contexts;
use super::waits::marker_of;
use crate::sweep::{COLUMNS, Given, Integrals, Sweep, VICTIMS, sweep};
use rustc_hash::FxHashMap;
use std::ops::Range;
use taskscope_execution::{Execution, Group, ProcessIndex, Section, State, ThreadIndex, ThreadKind};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree, settle};

/// Adds what those that work are charged with; `leaves` are the nodes of the samples.
pub fn add_shared(contexts: &mut Contexts<'_>, tree: &mut Tree, leaves: &[NodeId]) {
    let execution = contexts.execution;
    for (process, period_ns) in sampling_periods(execution).into_iter().enumerate() {
        let process = ProcessIndex(process as u32);
        let mut sums = PathSums {
            period_ns,
            contexts,
            tree,
            leaves,
            shares: FxHashMap::default(),
            parts: FxHashMap::default(),
            threads: FxHashMap::default(),
            nobody: [0; VICTIMS.len()],
            waited: [0; VICTIMS.len()],
        };
        sweep(execution, process, &mut sums);
        sums.settle();
    }
}

/// How far apart the samples of each process's threads are: what most of them stand for.
fn sampling_periods(execution: &Execution) -> Vec<u64> {
    let mut weights = vec![Vec::new(); execution.processes.len()];
    for row in &execution.samples.rows {
        weights[execution.threads[row.thread.index()].process.index()].push(row.weight_ns);
    }
    let median = |mut weights: Vec<u64>| {
        let middle = weights.len() / 2;
        if weights.is_empty() { 0 } else { *weights.select_nth_unstable(middle).1 }
    };
    weights.into_iter().map(median).collect()
}

struct PathSums<'c, 'e, 't> {
    contexts: &'c mut Contexts<'e>,
    tree: &'t mut Tree,
    leaves: &'t [NodeId],
    period_ns: u64,
    shares: FxHashMap<NodeId, Integrals>,
    /// What each thread has come to.
    parts: FxHashMap<ThreadIndex, Parts>,
    /// What is to be charged to what each thread works in.
    threads: FxHashMap<ThreadIndex, OfThread>,
    nobody: [u64; VICTIMS.len()],
    waited: [u64; VICTIMS.len()],
}

/// What shares its samples: a section of a team's work, or a stretch, which is all that a thread outside of any team does
/// between two regions. Locks and tasks cut it into sections that are too short for samples of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    /// How manieth it is of its thread.
    number: u32,
    is_stretch: bool,
}

/// A section, and the part that it is of: its pieces on the CPU and off it are one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(Section, Part);

impl Default for Key {
    fn default() -> Self {
        Key(Section::of(State::Unknown), Part { number: 0, is_stretch: false })
    }
}

/// The parts of a thread's time, as its sections come.
struct Parts {
    /// It can be in stretches, and has samples for them.
    has_stretches: bool,
    count: u32,
    now: Key,
    /// The stretch that goes on, maybe after a wait for a device.
    stretch: Option<Part>,
}

impl Parts {
    fn new(execution: &Execution, thread: ThreadIndex) -> Parts {
        let kind = execution.threads[thread.index()].kind;
        let has_samples = !execution.samples.of_thread(thread, 0, u64::MAX).is_empty();
        // The runtime's helpers run one target task after the other, which have nothing in common.
        let has_stretches = kind != ThreadKind::Helper && has_samples;
        Parts { has_stretches, count: 0, now: Key::default(), stretch: None }
    }

    fn take(&mut self, section: &Section) -> Key {
        if section.state == State::OutOfCpu {
            return Key(*section, self.now.1);
        }
        if self.count == 0 || self.now.0 != *section {
            self.now = Key(*section, self.part_of(section));
        }
        self.now
    }

    fn part_of(&mut self, section: &Section) -> Part {
        if section.region.is_some() || section.state == State::ForkJoin {
            self.stretch = None;
        } else if self.has_stretches && is_part_of_work(section.state) {
            let stretch = self.stretch.unwrap_or_else(|| self.next(true));
            self.stretch = Some(stretch);
            return stretch;
        }
        self.next(false)
    }

    fn next(&mut self, is_stretch: bool) -> Part {
        self.count += 1;
        Part { number: self.count, is_stretch }
    }
}

/// Whether serial code goes on in this state. (It may take locks.)
fn is_part_of_work(state: State) -> bool {
    matches!(state.group(), Group::Useful | Group::Runtime | Group::Mutex)
}

/// What is owed, by the place that it falls to where no sample tells.
#[derive(Default)]
struct Owed(Vec<(NodeId, Integrals)>);

impl Owed {
    fn add(&mut self, place: NodeId, part: impl Fn(usize) -> u128) {
        let known = self.0.iter().rposition(|(node, _)| *node == place);
        let row = known.unwrap_or_else(|| {
            self.0.push((place, [0; COLUMNS]));
            self.0.len() - 1
        });
        for (column, owed) in self.0[row].1.iter_mut().enumerate().take(VICTIMS.len()) {
            *owed += part(column);
        }
    }

    fn move_to(&mut self, other: &mut Owed) {
        for (place, owed) in self.0.drain(..) {
            other.add(place, |column| owed[column]);
        }
    }
}

/// What a thread works in: sections of a team's work, and between regions a stretch, which may go on after them.
#[derive(Default)]
struct OfThread {
    section: Working,
    stretch: Working,
    /// It has left its first stretch.
    has_begun: bool,
    /// What stretches that were too short for a sample wait with for the samples of the next.
    short: Owed,
    /// The last samples of a stretch.
    last: Range<usize>,
}

/// The part that a thread works in. It has pieces, of which some have no sample.
#[derive(Default)]
struct Working {
    number: u32,
    worked_ns: u64,
    /// What its pieces without a sample since the last sample are charged with.
    owed: Owed,
    /// Its samples so far that were charged last.
    samples: Range<usize>,
}

impl Sweep for PathSums<'_, '_, '_> {
    type Key = Key;
    const OF_SECTIONS: bool = true;

    fn key(&mut self, thread: ThreadIndex, section: &Section) -> Key {
        let new = || Parts::new(self.contexts.execution, thread);
        self.parts.entry(thread).or_insert_with(new).take(section)
    }

    fn worked(&mut self, thread: ThreadIndex, key: Key, start: u64, end: u64, given: &Given<'_>) {
        let Key(section, part) = key;
        let mut own = self.threads.remove(&thread).unwrap_or_default();
        let working = if part.is_stretch { &mut own.stretch } else { &mut own.section };
        if working.number != part.number {
            self.finish(&mut own, part.is_stretch);
        }
        let working = if part.is_stretch { &mut own.stretch } else { &mut own.section };
        working.number = part.number;
        working.worked_ns += end - start;
        let place = self.contexts.of_section(self.tree, &section).1;
        working.owed.add(place, |column| given.part(column));
        let samples = &self.contexts.execution.samples;
        let count = samples.of_thread(thread, start, end).len();
        if count > 0 {
            let first = samples.rows.partition_point(|row| (row.thread, row.at) <= (thread, start));
            working.samples = first..first + count;
            if part.is_stretch {
                own.short.move_to(&mut working.owed);
                own.last = working.samples.clone();
            }
            self.charge(&mut working.owed, &working.samples);
        }
        self.threads.insert(thread, own);
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
    /// Charges what is left of the section, or of the stretch, that a thread has left.
    fn finish(&mut self, own: &mut OfThread, is_stretch: bool) {
        let left = if is_stretch { &mut own.stretch } else { &mut own.section };
        // One that was too short for a sample is sampled another time if it comes often. The program's start does not.
        let is_short = is_stretch && left.samples.is_empty() && left.worked_ns < self.period_ns;
        if is_short && own.has_begun {
            left.owed.move_to(&mut own.short);
        } else {
            self.charge(&mut left.owed, &left.samples);
        }
        own.has_begun |= is_stretch && left.number > 0;
        (left.worked_ns, left.samples) = (0, 0..0);
    }

    /// Charges what is owed to samples, by their weights, or, without any, to its own places.
    fn charge(&mut self, owed: &mut Owed, samples: &Range<usize>) {
        if samples.is_empty() {
            return owed.0.drain(..).for_each(|(place, owed)| self.add(place, |column| owed[column]));
        }
        let mut sums = [0; COLUMNS];
        for (_, owed) in owed.0.drain(..) {
            sums.iter_mut().zip(owed).for_each(|(sum, owed)| *sum += owed);
        }
        let weight = |row: usize| self.contexts.execution.samples.rows[row].weight_ns.max(1) as u128;
        let weights: u128 = samples.clone().map(weight).sum();
        let (mut before, mut until) = (0_u128, 0_u128);
        for row in samples.clone() {
            until += weight(row);
            let part =
                |column: usize| scaled(sums[column], until, weights) - scaled(sums[column], before, weights);
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
        for mut own in std::mem::take(&mut self.threads).into_values() {
            self.finish(&mut own, false);
            self.finish(&mut own, true);
            self.charge(&mut own.short, &own.last);
        }
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
