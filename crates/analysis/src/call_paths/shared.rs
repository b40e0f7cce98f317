//! Undirected blame by path: the code of working threads while others wait.
//!
//! The whole run is walked over, as samples after a part show the code in it. Of the charges those of the part count.

use super::contexts::Contexts;
use super::waits::marker_of;
use crate::sweep::{COLUMNS, Columns, Given, Sweep, VICTIMS, sweep};
use rustc_hash::FxHashMap;
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_execution::{Execution, Group, ProcessIndex, Section, Span, State, ThreadIndex, ThreadKind};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

/// Adds the charges of working threads; `leaves` are the nodes of the samples.
pub fn add_shared(contexts: &mut Contexts<'_>, tree: &mut Tree, leaves: &[NodeId]) {
    let execution = contexts.execution;
    let periods = sampling_periods(execution).into_iter();
    for (process, (period_ns, threads)) in periods.zip(execution.threads_by_process()).enumerate() {
        let process = ProcessIndex::of(process);
        let waited = waited_in(contexts, &threads);
        let mut sums = PathSums {
            period_ns,
            contexts,
            tree,
            leaves,
            given: FxHashMap::default(),
            parts: FxHashMap::default(),
            threads: FxHashMap::default(),
        };
        sweep(execution, [(process, threads.as_slice())], &mut sums);
        sums.settle(&waited);
    }
}

/// The part's nanoseconds of waits of the workers among these threads, by victim state.
fn waited_in(contexts: &Contexts<'_>, threads: &[ThreadIndex]) -> [u64; VICTIMS.len()] {
    let (execution, part) = (contexts.execution, contexts.part);
    let mut waited = [0; VICTIMS.len()];
    for thread in threads.iter().filter(|thread| part.is_worker(**thread)) {
        for Span { start, end, section } in execution.cut_spans_of_run(*thread).map(|cut| cut.span) {
            if let Some(column) = VICTIMS.iter().position(|victim| *victim == section.state) {
                waited[column] += part.ns_of(start, end);
            }
        }
    }
    waited
}

/// Sampling period per process: the usual distance between a thread's samples.
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
    given: FxHashMap<NodeId, Columns>,
    /// The current part of each thread.
    parts: FxHashMap<ThreadIndex, Parts>,
    /// Pending charges for the current part of each thread.
    threads: FxHashMap<ThreadIndex, OfThread>,
}

/// The unit that shares samples: a section of a team's work, or a *stretch*, the time of a thread outside of
/// any team between two regions. Locks and tasks cut stretches into sections that are too short for samples
/// of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Its index within its thread.
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
    /// Whether it can be in stretches, and has samples for them.
    has_stretches: bool,
    count: u32,
    now: Key,
    /// The open stretch, which may continue after a wait for a device.
    stretch: Option<Part>,
}

impl Parts {
    fn new(execution: &Execution, thread: ThreadIndex) -> Parts {
        let kind = execution.threads[thread.index()].kind;
        let has_samples = !execution.samples.thread_samples(thread, 0, u64::MAX).is_empty();
        // The runtime's helpers run one target task after the other, which have nothing in common.
        let has_stretches = kind != ThreadKind::Helper && has_samples;
        Parts { has_stretches, count: 0, now: Key::default(), stretch: None }
    }

    fn take(&mut self, section: &Section) -> Key {
        if section.state.group() == Group::Off {
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

/// Whether serial code continues in this state. (It may take locks.)
fn is_part_of_work(state: State) -> bool {
    matches!(state.group(), Group::Useful | Group::Runtime | Group::Mutex)
}

/// Pending charges, by the place used without a sample.
#[derive(Default)]
struct Owed(Vec<(NodeId, Columns)>);

impl Owed {
    fn add(&mut self, place: NodeId, part: impl Fn(usize) -> u64) {
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

/// The current unit of a thread: sections of a team's work, and between regions a stretch, which may
/// continue after them.
#[derive(Default)]
struct OfThread {
    section: Working,
    stretch: Working,
    /// Whether it has left its first stretch.
    has_begun: bool,
    /// Charges of stretches that were too short for a sample, kept for the samples of the next one.
    short: Owed,
    /// The last sample of a stretch.
    last: Option<usize>,
}

/// The part that a thread works in. It has pieces, of which some have no sample.
#[derive(Default)]
struct Working {
    number: u32,
    worked_ns: u64,
    /// The charges of its pieces since the last sample: for the next sample, and for the one after it.
    owed: Owed,
    later: Owed,
    /// Its last sample so far.
    sample: Option<usize>,
}

impl Sweep for PathSums<'_, '_, '_> {
    type Key = Key;
    const OF_SECTIONS: bool = true;

    fn key(&mut self, thread: ThreadIndex, section: &Section) -> Key {
        let new = || Parts::new(self.contexts.execution, thread);
        self.parts.entry(thread).or_insert_with(new).take(section)
    }

    fn cuts(&self, thread: ThreadIndex) -> Vec<u64> {
        let samples = self.contexts.execution.samples.thread_samples(thread, 0, u64::MAX);
        let mut cuts = Vec::with_capacity(samples.len());
        for sample in samples {
            cuts.extend(begin_of(sample).filter(|begin| cuts.last().is_none_or(|before| before < begin)));
            cuts.push(sample.at);
        }
        cuts.extend(self.contexts.part.borders());
        cuts.sort_unstable();
        cuts
    }

    fn counts(&self, _execution: &Execution, thread: ThreadIndex) -> bool {
        self.contexts.part.has_thread(thread)
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
        let place = self.contexts.section_node(self.tree, &section).1;
        let samples = &self.contexts.execution.samples.rows;
        let next = samples.partition_point(|row| (row.thread, row.at) <= (thread, start));
        let sample = samples.get(next).filter(|sample| sample.thread == thread);
        let is_before = sample.and_then(begin_of).is_some_and(|begin| end <= begin);
        let owed = if is_before { &mut working.later } else { &mut working.owed };
        // No piece reaches across a border of the part.
        if self.contexts.part.has(start) {
            owed.add(place, |column| given.part(column));
        }
        if sample.is_some_and(|sample| sample.at <= end) {
            working.sample = Some(next);
            if part.is_stretch {
                own.short.move_to(&mut working.owed);
                own.last = working.sample;
            }
            self.charge(&mut working.owed, working.sample);
            std::mem::swap(&mut working.owed, &mut working.later);
        }
        self.threads.insert(thread, own);
    }

    /// The rest of the waits, without the charges of threads, is nobody's.
    fn nobody(&mut self, _key: Key, _column: usize, _ns: u64) {}
}

/// The shortest time, nanoseconds, by which a sample's time may begin later than the sample before it was: clocks differ by less.
const MIN_BEFORE_NS: u64 = 1000;

/// Begin of the time that a sample represents. A sample of a call has the time of the call; time before it
/// belongs to the next sample.
fn begin_of(sample: &Sample) -> Option<u64> {
    let begin = sample.at.saturating_sub(sample.weight_ns.saturating_add(MIN_BEFORE_NS));
    (sample.flags & flag::CPU_TIME == 0).then_some(begin)
}

impl PathSums<'_, '_, '_> {
    /// Charges the rest of the section, or of the stretch, that a thread has left.
    fn finish(&mut self, own: &mut OfThread, is_stretch: bool) {
        let left = if is_stretch { &mut own.stretch } else { &mut own.section };
        left.later.move_to(&mut left.owed);
        // One that was too short for a sample is sampled another time if it comes often. The program's start does not.
        let is_short = is_stretch && left.sample.is_none() && left.worked_ns < self.period_ns;
        if is_short && own.has_begun {
            left.owed.move_to(&mut own.short);
        } else {
            self.charge(&mut left.owed, left.sample);
        }
        own.has_begun |= is_stretch && left.number > 0;
        (left.worked_ns, left.sample) = (0, None);
    }

    /// Charges the pending sums to a sample, or, without one, to its own places.
    fn charge(&mut self, owed: &mut Owed, sample: Option<usize>) {
        for (place, owed) in owed.0.drain(..) {
            self.add(sample.map_or(place, |row| self.leaves[row]), |column| owed[column]);
        }
    }

    fn add(&mut self, node: NodeId, part: impl Fn(usize) -> u64) {
        let given = self.given.entry(node).or_insert([0; COLUMNS]);
        for (column, sum) in given.iter_mut().enumerate().take(VICTIMS.len()) {
            *sum += part(column);
        }
    }

    /// Adds the charges, and as nobody's the rest of the waiting time. Several states may be one wait.
    fn settle(mut self, waited: &[u64; VICTIMS.len()]) {
        for mut own in std::mem::take(&mut self.threads).into_values() {
            self.finish(&mut own, false);
            self.finish(&mut own, true);
            self.charge(&mut own.short, own.last);
        }
        let mut nodes: Vec<NodeId> = self.given.keys().copied().collect();
        nodes.sort_unstable();
        let nobody = self.tree.child(ROOT, Frame::state(Marker::Nobody));
        for (column, state) in VICTIMS.iter().enumerate() {
            let section = Section::of(*state);
            let Some(marker) = marker_of(self.contexts.execution, &section) else { continue };
            let metric = Metric::shared(marker);
            let mut rest = waited[column];
            for node in &nodes {
                let given = self.given[node][column];
                self.tree.add(*node, metric, given);
                rest = rest.saturating_sub(given);
            }
            self.tree.add(nobody, metric, rest);
        }
    }
}
