//! Samples of call stacks: the places of steps, and the tree of the paths that they make.
//!
//! A path is a node of a tree: its innermost step, and the path of that step's callers. Stacks are those that the threads
//! had, without the creation paths of tasks. Equal stacks of a process are looked up once, by the files that were loaded at
//! the first of them.

use super::lanes::Lanes;
use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, ProcessIndex};

/// The place of a step of a call path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Step {
    /// Function; without a name, file and address. Never empty.
    pub function: String,
    /// Source file; empty if not known.
    pub file: String,
    /// Line in it; 0 if not known.
    pub line: u32,
    /// Loaded file with the code; empty if not known.
    pub module: String,
}

/// A call path: its innermost step, and the path of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallPath {
    /// Row of [`Timeline::call_paths`](super::Timeline::call_paths), which is lower; none for the outermost step.
    pub caller: Option<u32>,
    /// Row of [`Timeline::steps`](super::Timeline::steps).
    pub step: u32,
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time, nanoseconds of the trace's clock.
    pub at: u64,
    /// Row of [`Timeline::lanes`](super::Timeline::lanes): the thread.
    pub lane: u32,
    /// Row of [`Timeline::call_paths`](super::Timeline::call_paths).
    pub path: u32,
    /// The time that it represents, nanoseconds.
    pub weight_ns: u64,
}

/// Finds the place of a step: by the process, the address, the time of the sample, and whether the address is that of a
/// return.
pub type FindStep<'f> = dyn FnMut(ProcessIndex, u64, u64, bool) -> Step + 'f;

/// All samples of shown threads, in the order of time, with their paths.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) rows: Vec<Sample>,
    pub(super) paths: Vec<CallPath>,
    pub(super) steps: Vec<Step>,
}

impl Samples {
    pub(super) fn of(execution: &Execution, lanes: &Lanes, find: &mut FindStep<'_>) -> Samples {
        let mut samples = Samples::default();
        let mut stacks: FxHashMap<(ProcessIndex, &[u64]), u32> = FxHashMap::default();
        let mut addresses: FxHashMap<(ProcessIndex, u64, bool), u32> = FxHashMap::default();
        let mut steps: FxHashMap<Step, u32> = FxHashMap::default();
        let mut paths: FxHashMap<CallPath, u32> = FxHashMap::default();
        for sample in &execution.samples.rows {
            let (lane, frames) = (lanes.thread_lane(sample.thread), execution.samples.frames(sample));
            let Some(row) = lanes.rows.get(lane as usize).filter(|_| !frames.is_empty()) else { continue };
            let Samples { paths: all_paths, steps: all_steps, .. } = &mut samples;
            let path = *stacks.entry((row.process, frames)).or_insert_with(|| {
                let mut caller = None;
                for (depth, address) in frames.iter().enumerate().rev() {
                    let step = *addresses.entry((row.process, *address, depth > 0)).or_insert_with(|| {
                        let place = find(row.process, *address, sample.at, depth > 0);
                        number(place, &mut steps, all_steps)
                    });
                    caller = Some(number(CallPath { caller, step }, &mut paths, all_paths));
                }
                caller.unwrap_or(0)
            });
            samples.rows.push(Sample { at: sample.at, lane, path, weight_ns: sample.weight_ns });
        }
        samples.rows.sort_by_key(|sample| sample.at);
        samples
    }
}

/// The row of a value, which is added if it is new.
fn number<T: Clone + Eq + std::hash::Hash>(
    value: T,
    known: &mut FxHashMap<T, u32>,
    rows: &mut Vec<T>,
) -> u32 {
    *known.entry(value).or_insert_with_key(|value| {
        rows.push(value.clone());
        rows.len() as u32 - 1
    })
}
