//! Samples as time: each stands for the time of its thread since the one before.
//!
//! ```text
//!   samples of a thread          f     f     g           g     h
//!   their times, wall clock    ├──f──┼──f──┼──g──┤     ├──g──┼──h──┤      from `at` back by the weight
//!   off the CPU, by switches      ▒▒            ▒                        cut out
//!   pieces                     ├─┤  ├┼──f──┼──g──┤     ├──g──┼──h──┤
//! ```
//! Invariants: the samples of a thread are in order, and their times do not overlap; so pieces do not, either. The weight of a sample by CPU
//! time says nothing about the clock: with switches its time begins at the sample before, without them its weight before it.
//!
//! Paths and names are those of the report's call paths.

use crate::call_paths::SampleNodes;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_event::models::samples::flag;
use taskscope_execution::{Execution, OsSource, ThreadIndex};
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, NodeId, ROOT};

/// No step, no word.
pub(super) const NONE: u32 = u32::MAX;

/// The word for samples without a known path.
const NO_PATH: &str = "<path not known>";

/// The samples of a run, with their paths in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleTimes {
    /// Names of steps and files, those with most time in the function itself first.
    pub(super) words: Vec<String>,
    /// Steps of paths; each after the one further out.
    pub(super) steps: Vec<Step>,
    /// Innermost places.
    pub(super) spots: Vec<Spot>,
    /// The times of the samples of selected threads in the part of the run, by thread and time.
    pub(super) rows: Vec<SampleTime>,
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The step further out; [`NONE`] of the outermost.
    pub outer: u32,
    /// Its name.
    pub name: u32,
    /// File of its call, or of its construct; [`NONE`] if unknown.
    pub file: u32,
    /// Line there.
    pub line: u32,
}

/// A step, and a line in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub step: u32,
    /// [`NONE`] if unknown.
    pub file: u32,
    pub line: u32,
}

/// A sample with its time, on the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleTime {
    pub thread: ThreadIndex,
    pub spot: u32,
    pub start: u64,
    /// The time of the sample, or the end of the part if that is earlier.
    pub end: u64,
}

/// A part of a sample's time in which its thread was on a CPU, or has no recorded switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u64,
    pub end: u64,
    pub spot: u32,
}

/// Words, steps and spots while they are made.
struct Making<'a> {
    tree: &'a CallTree,
    made: SampleTimes,
    word_numbers: FxHashMap<String, u32>,
    step_numbers: FxHashMap<NodeId, u32>,
    spot_numbers: FxHashMap<Spot, u32>,
}

impl Making<'_> {
    fn word(&mut self, word: &str) -> u32 {
        if let Some(known) = self.word_numbers.get(word) {
            return *known;
        }
        let number = self.made.words.len() as u32;
        self.made.words.push(word.to_owned());
        self.word_numbers.insert(word.to_owned(), number);
        number
    }

    /// Whether a step of the named tree is one of the program's functions, or a state.
    fn is_shown(&self, node: NodeId) -> bool {
        let label = self.tree.label(node);
        self.tree.tree.frame(node).kind != FrameKind::Runtime
            && !label.is_some_and(|label| matches!(label.what, StepKind::Line | StepKind::Loop))
    }

    /// The innermost shown step of a node of the named tree.
    fn step(&mut self, node: NodeId) -> u32 {
        let mut inwards = Vec::new();
        let (mut at, mut step) = (node, NONE);
        while at != ROOT {
            if let Some(known) = self.step_numbers.get(&at) {
                step = *known;
                break;
            }
            inwards.push(at);
            at = self.tree.tree.parent(at);
        }
        let tree = self.tree;
        for node in inwards.into_iter().rev() {
            if self.is_shown(node) {
                let name = self.word(&tree.text_of(tree.tree.frame(node)));
                let place = tree.label(node).and_then(|label| label.file.as_deref().zip(label.line));
                let (file, line) = place.map_or((NONE, 0), |(file, line)| (self.word(file), line));
                self.made.steps.push(Step { outer: step, name, file, line });
                step = self.made.steps.len() as u32 - 1;
            }
            self.step_numbers.insert(node, step);
        }
        step
    }

    fn spot(&mut self, node: NodeId, line: Option<&(String, u32)>) -> u32 {
        let step = self.step(node);
        let (file, line) = line.map_or((NONE, 0), |(file, line)| (self.word(file), *line));
        let spot = Spot { step, file, line };
        *self.spot_numbers.entry(spot).or_insert_with(|| {
            self.made.spots.push(spot);
            self.made.spots.len() as u32 - 1
        })
    }
}

impl SampleTimes {
    /// The samples of a run or of a part of it, with the paths of its call tree.
    pub(crate) fn of(execution: &Execution, tree: &CallTree, nodes: &SampleNodes) -> SampleTimes {
        let whole = execution.whole();
        let mut making = Making {
            tree,
            made: SampleTimes::default(),
            word_numbers: FxHashMap::default(),
            step_numbers: FxHashMap::default(),
            spot_numbers: FxHashMap::default(),
        };
        let (low, high) = execution.part_of_time();
        let mut spots = vec![NONE; nodes.nodes.len()];
        let mut before: Option<(ThreadIndex, u64)> = None;
        for (sample, node) in whole.samples.rows.iter().zip(&nodes.sample_nodes) {
            let Some(thread) = whole.threads.get(sample.thread.index()) else { continue };
            let last = before.filter(|(of, _)| *of == sample.thread).map(|(_, at)| at);
            let (from, to) = (last.unwrap_or(0).max(thread.track.start()), sample.at.min(thread.track.end()));
            before = Some((sample.thread, to.max(from)));
            let by_weight = sample.at.saturating_sub(sample.weight_ns);
            let has_switches = thread.os_source == OsSource::Switches;
            let start = match last {
                Some(last) if sample.flags & flag::CPU_TIME != 0 && has_switches => last,
                _ => by_weight,
            };
            // The first sample after the part represents time in it, but may have a path that the part does not.
            let (start, end) = (start.max(from).max(low), to.min(high));
            let has_path = sample.at < high || *node != ROOT;
            if start >= end || !execution.is_selected(sample.thread) || !has_path {
                continue;
            }
            let Some(spot) = spots.get_mut(node.0 as usize) else { continue };
            if *spot == NONE {
                let named = &nodes.nodes[node.0 as usize];
                *spot = making.spot(named.node, named.line.as_ref());
            }
            let spot = *spot;
            making.made.rows.push(SampleTime { thread: sample.thread, spot, start, end });
        }
        making.made.with_words_by_time()
    }

    /// The same with the words in their order.
    fn with_words_by_time(mut self) -> SampleTimes {
        let mut own_ns = vec![0_u64; self.words.len()];
        for row in &self.rows {
            if let Some(name) = self.name_number(row.spot) {
                own_ns[name as usize] += row.end - row.start;
            }
        }
        let mut order: Vec<u32> = (0..self.words.len() as u32).collect();
        order.sort_by_key(|word| Reverse(own_ns[*word as usize]));
        let mut numbers = vec![NONE; order.len()];
        (0..).zip(&order).for_each(|(number, word)| numbers[*word as usize] = number);
        let number = |word: u32| numbers.get(word as usize).copied().unwrap_or(NONE);
        for step in &mut self.steps {
            (step.name, step.file) = (number(step.name), number(step.file));
        }
        self.spots.iter_mut().for_each(|spot| spot.file = number(spot.file));
        self.words = order.into_iter().map(|word| std::mem::take(&mut self.words[word as usize])).collect();
        self
    }

    /// Whether the numbers in it are those of rows, as a stored one may be damaged: steps come after the ones further out, so paths end.
    pub(super) fn is_sound(&self) -> bool {
        let is_step = |(at, step): (usize, &Step)| {
            (step.name as usize) < self.words.len() && (step.outer == NONE || (step.outer as usize) < at)
        };
        let are_ordered = |pair: &[SampleTime]| {
            pair[0].thread < pair[1].thread
                || (pair[0].thread == pair[1].thread && pair[0].end <= pair[1].start)
        };
        self.steps.iter().enumerate().all(is_step)
            && self.rows.iter().all(|row| row.start < row.end)
            && self.rows.windows(2).all(are_ordered)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The samples of each thread that has any.
    pub(super) fn by_thread(&self) -> impl Iterator<Item = (ThreadIndex, &[SampleTime])> {
        self.rows.chunk_by(|a, b| a.thread == b.thread).map(|rows| (rows[0].thread, rows))
    }

    /// The samples of a thread that overlap `[low, high)`, clocks of the trace.
    pub(super) fn during(&self, thread: ThreadIndex, low: u64, high: u64) -> &[SampleTime] {
        let first = self.rows.partition_point(|row| (row.thread, row.end) <= (thread, low));
        let count = self.rows[first..].partition_point(|row| (row.thread, row.start) < (thread, high));
        &self.rows[first..first + count]
    }

    /// The name of a spot's innermost function.
    pub(super) fn name_of(&self, spot: u32) -> &str {
        self.name_number(spot).map_or(NO_PATH, |name| self.words[name as usize].as_str())
    }

    /// The number of this name among the words; `None` without a path.
    pub(super) fn name_number(&self, spot: u32) -> Option<u32> {
        let spot = self.spots.get(spot as usize)?;
        self.steps.get(spot.step as usize).map(|step| step.name)
    }

    /// The number of steps of each spot's path.
    pub(super) fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            depths.push(depths.get(step.outer as usize).copied().unwrap_or(0) + 1);
        }
        self.spots.iter().map(|spot| depths.get(spot.step as usize).copied().unwrap_or(0)).collect()
    }

    /// The steps of a spot's path, outermost first.
    pub(super) fn path(&self, spot: u32) -> Vec<Step> {
        let mut path = Vec::new();
        let mut at = self.spots.get(spot as usize).map_or(NONE, |spot| spot.step);
        while let Some(step) = self.steps.get(at as usize) {
            path.push(*step);
            at = step.outer;
        }
        path.reverse();
        path
    }

    /// A word; empty for none.
    pub(super) fn word(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", String::as_str)
    }

    /// The pieces of some samples of one thread, without its times off the CPU if its switches are recorded.
    pub(super) fn pieces(execution: &Execution, rows: &[SampleTime]) -> Vec<Piece> {
        let Some(first) = rows.first() else { return Vec::new() };
        let mut away = times_away(execution, first.thread);
        away.retain(|(_, end, _)| *end > first.start);
        let mut pieces = Vec::with_capacity(rows.len());
        let mut next = 0;
        for row in rows {
            let mut at = row.start;
            next += away[next..].partition_point(|(_, end, _)| *end <= at);
            let inside = away[next..].iter().take_while(|(start, ..)| *start < row.end);
            for (start, end, _) in inside {
                if *start > at {
                    pieces.push(Piece { start: at, end: *start, spot: row.spot });
                }
                at = at.max(*end);
            }
            if at < row.end {
                pieces.push(Piece { start: at, end: row.end, spot: row.spot });
            }
        }
        pieces
    }
}

/// The times of a thread off its CPU, in order, and whether it was blocked then; none if its switches are not recorded, as shares of sums
/// are not at their times.
pub(super) fn times_away(execution: &Execution, thread: ThreadIndex) -> Vec<(u64, u64, bool)> {
    let is_known =
        execution.threads.get(thread.index()).is_some_and(|row| row.os_source == OsSource::Switches);
    if !is_known {
        return Vec::new();
    }
    let off = execution.off_cpu_of(thread).iter().map(|off| (off.start, off.end, false));
    let mut away: Vec<(u64, u64, bool)> =
        off.chain(execution.blocked_of(thread).iter().map(|off| (off.start, off.end, true))).collect();
    away.sort_unstable();
    away
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::samples::NewSample;
    use taskscope_execution::{Change, ExecutionBuilder, Observer, OsTimes, Section, State};
    use taskscope_profile::named::Label;
    use taskscope_session::NamedNode;

    /// A thread from 0 to 10 000 with samples: time, weight, flags, number of the function.
    fn run(samples: &[(u64, u64, u32, u32)], switches: Option<OsTimes>) -> (Execution, SampleTimes) {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node1", 1);
        let thread = builder.add_thread(process, 1);
        builder.event(thread, 0);
        builder.change(thread, 0, Change::Becomes(Section::of(State::Unknown)));
        for (at, weight_ns, flags, function) in samples {
            builder.sample(&NewSample {
                thread,
                at: *at,
                weight_ns: *weight_ns,
                flags: *flags,
                state: 0x102,
                levels: &[],
                addresses: &[u64::from(*function)],
            });
        }
        builder.event(thread, 10_000);
        builder.change(thread, 10_000, Change::ThreadEnds);
        let mut execution = builder.finish();
        if let Some(times) = switches {
            execution.add_os_times(thread, OsSource::Switches, times);
        }
        // main ▸ f at a.c:7, main ▸ g; a loop and a line are no steps.
        let mut tree = CallTree::default();
        let label = |what, function: &str, line: Option<u32>| Label {
            what,
            function: function.to_owned(),
            file: line.map(|_| "a.c".to_owned()),
            line,
            module: String::new(),
        };
        let main = tree.child(ROOT, FrameKind::User, label(StepKind::Function, "main", None));
        let around = tree.child(main, FrameKind::User, label(StepKind::Loop, "main", Some(6)));
        let f = tree.child(around, FrameKind::User, label(StepKind::Function, "f", Some(7)));
        let g = tree.child(main, FrameKind::User, label(StepKind::Function, "g", Some(9)));
        let named = |node, line: u32| NamedNode { node, line: Some(("a.c".to_owned(), line)) };
        let nodes = vec![NamedNode { node: ROOT, line: None }, named(f, 20), named(g, 30), named(f, 21)];
        let sample_nodes = samples.iter().map(|(.., function)| NodeId(*function)).collect();
        let times = SampleTimes::of(&execution, &tree, &SampleNodes { nodes, sample_nodes });
        (execution, times)
    }

    fn times_of(times: &SampleTimes) -> Vec<(u64, u64, &str)> {
        times.rows.iter().map(|row| (row.start, row.end, times.name_of(row.spot))).collect()
    }

    #[test]
    fn a_sample_stands_for_the_time_before_it_and_for_no_other_sample_s() {
        // The second one overlaps the first, the third leaves a gap, the last one is after the end of its thread.
        let samples = [(1000, 1000, 0, 1), (2000, 1500, 0, 2), (5000, 1000, 0, 3), (11_000, 2000, 0, 0)];
        let (_, times) = run(&samples, None);
        let rows = times_of(&times);
        assert_eq!(
            rows,
            [(0, 1000, "f"), (1000, 2000, "g"), (4000, 5000, "f"), (9000, 10_000, "<path not known>")]
        );
        let path = times.path(times.rows[0].spot);
        let words: Vec<(&str, &str, u32)> =
            path.iter().map(|step| (times.word(step.name), times.word(step.file), step.line)).collect();
        assert_eq!(words, [("main", "", 0), ("f", "a.c", 7)]);
        // One function at two lines.
        let spots = [0, 2].map(|row| times.spots[times.rows[row].spot as usize]);
        assert_eq!((spots[0].step, spots[0].line, spots[1].line), (spots[1].step, 20, 21));
        assert_eq!(times.during(ThreadIndex(0), 1000, 4001).len(), 2);
        assert_eq!(times.during(ThreadIndex(0), 2000, 4000).len(), 0);
        assert_eq!(times.during(ThreadIndex(1), 0, u64::MAX).len(), 0);
    }

    #[test]
    fn samples_by_cpu_time_reach_back_to_the_one_before_if_switches_are_known() {
        let samples = [(1000, 500, flag::CPU_TIME, 1), (5000, 500, flag::CPU_TIME, 2)];
        let (_, without) = run(&samples, None);
        assert_eq!(times_of(&without), [(500, 1000, "f"), (4500, 5000, "g")]);
        let switches = || OsTimes {
            runnable: vec![(1200, 1300)],
            blocked: vec![(1300, 4000), (4990, 6000)],
            ..OsTimes::default()
        };
        let (execution, with) = run(&samples, Some(switches()));
        assert_eq!(times_of(&with), [(500, 1000, "f"), (1000, 5000, "g")]);
        let pieces: Vec<(u64, u64)> = SampleTimes::pieces(&execution, &with.rows)
            .iter()
            .map(|piece| (piece.start, piece.end))
            .collect();
        assert_eq!(pieces, [(500, 1000), (1000, 1200), (4000, 4990)]);
        let away = times_away(&execution, ThreadIndex(0));
        assert_eq!(away, [(1200, 1300, false), (1300, 4000, true), (4990, 6000, true)]);
    }
}
