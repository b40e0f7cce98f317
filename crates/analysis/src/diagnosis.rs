//! What lost time means, and so what would help: the letters of SLOW split into situations with a remedy each.
//!
//! Every row of blame goes to one situation, or is shared between two where the second axis of the ledger says
//! so; what is given sums to what was lost. The rules look only at what the run shows:
//!
//! | letter | situation | rule |
//! | --- | --- | --- |
//! | starvation | badly distributed | the share of such waiting during which a ready task lay somewhere |
//! | | too coarse | the rest, where tasks of the type charged take over [`SPLITTABLE`] × the cost of a task |
//! | | low parallelism | the rest |
//! | latency | bad locality | over one in [`FAR_INPUTS`] inputs came from another node |
//! | | slow link | else |
//! | overhead | the system | leaf `os`, and waiting for whom the system kept |
//! | | absorbing noise | leaf `absorbing` |
//! | | MPI start | leaf `runtime.start`, and waiting for whom it kept |
//! | | too fine | tasks are shorter than [`EFFICIENT`] × their cost, and that is no more than [`USUAL_COST_NS`] |
//! | | slow runtime | else |
//! | contention | contended lock | |

use crate::blame::apportion;
use crate::causes::{Causes, Leaf, ReadyWork, letter_of};
use crate::forest::Letter;
use crate::keys::Who;
use crate::span::Span;
use taskscope_execution::graph::{NONE, TaskGraph};

/// Tasks longer than so many times their cost can be split in eight and still be mostly work.
pub const SPLITTABLE: u64 = 16;
/// Of every so many inputs one from another node is many.
pub const FAR_INPUTS: u64 = 4;
/// Tasks of so many times their cost leave the runtime less than a tenth.
pub const EFFICIENT: u64 = 10;
/// What running a task costs in usual runtimes, at most.
pub const USUAL_COST_NS: u64 = 10_000;

/// What time was lost to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Situation {
    /// The program has too little to do at once.
    LowParallelism,
    /// It has, but in too large pieces.
    TooCoarse,
    /// There was ready work, not where workers were idle.
    BadlyDistributed,
    /// Transfers take long.
    SlowLink,
    /// Workers wait for operations of a device.
    SlowDevice,
    /// Too much is transferred.
    BadLocality,
    /// Tasks are too small for what one costs.
    TooFine,
    /// The runtime needs long.
    SlowRuntime,
    /// Ranks start or end MPI.
    MpiStart,
    /// CPUs are left free for the noise of the system.
    AbsorbingNoise,
    /// The operating system kept threads off the CPU.
    System,
    /// Threads were blocked in the kernel, in code of the program.
    Blocked,
    /// A lock is held.
    ContendedLock,
}

impl Situation {
    /// All situations.
    pub const ALL: [Situation; 13] = [
        Situation::LowParallelism,
        Situation::TooCoarse,
        Situation::BadlyDistributed,
        Situation::SlowLink,
        Situation::SlowDevice,
        Situation::BadLocality,
        Situation::TooFine,
        Situation::SlowRuntime,
        Situation::MpiStart,
        Situation::AbsorbingNoise,
        Situation::System,
        Situation::Blocked,
        Situation::ContendedLock,
    ];

    /// Its name in JSON and for `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Situation::LowParallelism => "low-parallelism",
            Situation::TooCoarse => "too-coarse",
            Situation::BadlyDistributed => "badly-distributed",
            Situation::SlowLink => "slow-link",
            Situation::SlowDevice => "slow-device",
            Situation::BadLocality => "bad-locality",
            Situation::TooFine => "too-fine",
            Situation::SlowRuntime => "slow-runtime",
            Situation::MpiStart => "mpi-start",
            Situation::AbsorbingNoise => "absorbing-noise",
            Situation::System => "no-cpu",
            Situation::Blocked => "blocked",
            Situation::ContendedLock => "contended-lock",
        }
    }

    /// The letter that it is a part of.
    pub const fn letter(self) -> Letter {
        match self {
            Situation::LowParallelism | Situation::TooCoarse | Situation::BadlyDistributed => {
                Letter::Starvation
            }
            Situation::SlowLink | Situation::SlowDevice | Situation::BadLocality | Situation::Blocked => {
                Letter::Latency
            }
            Situation::TooFine
            | Situation::SlowRuntime
            | Situation::MpiStart
            | Situation::AbsorbingNoise
            | Situation::System => Letter::Overhead,
            Situation::ContendedLock => Letter::Contention,
        }
    }
}

/// What the rules looked at.
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
    /// Situations, most time first; they sum to capacity minus work.
    pub rows: Vec<(Situation, u64)>,
    /// What the rules looked at.
    pub evidence: Evidence,
}

/// Splits what was lost.
pub fn diagnose(graph: &TaskGraph, causes: &Causes, span: &Span) -> Diagnosis {
    let evidence = evidence(graph, span);
    let lengths = mean_lengths(graph);
    let mut sums = [0_u64; Situation::ALL.len()];
    for charge in causes.charges.iter().filter(|charge| charge.leaf != Leaf::Work) {
        let mut add = |situation: Situation, ns: u64| sums[situation as usize] += ns;
        match letter_of(charge.who) {
            Letter::Starvation if matches!(charge.who, Who::Peer(_)) => {
                add(Situation::BadlyDistributed, charge.ns);
            }
            Letter::Starvation => {
                let apart = causes.ready[charge.leaf as usize];
                let ready = apart[ReadyWork::Here as usize] + apart[ReadyWork::Elsewhere as usize];
                let shares = [u128::from(ready), u128::from(apart[ReadyWork::Nowhere as usize])];
                let split = apportion(&shares, charge.ns);
                add(Situation::BadlyDistributed, split[0]);
                let coarse = match charge.who {
                    Who::Task(ty) => lengths[ty as usize] > SPLITTABLE * evidence.cost_ns.max(1),
                    _ => false,
                };
                let rest = if coarse { Situation::TooCoarse } else { Situation::LowParallelism };
                // Without idle time in the table (drain of a single worker) all is the rest.
                add(rest, charge.ns - split[0]);
            }
            Letter::Latency if matches!(charge.who, Who::Device(_)) => add(Situation::SlowDevice, charge.ns),
            Letter::Latency if matches!(charge.who, Who::Blocked(_)) => add(Situation::Blocked, charge.ns),
            Letter::Latency => {
                let far = evidence.far_inputs * FAR_INPUTS > evidence.inputs;
                add(if far { Situation::BadLocality } else { Situation::SlowLink }, charge.ns);
            }
            Letter::Overhead => add(overhead(charge.who, &evidence), charge.ns),
            Letter::Contention => add(Situation::ContendedLock, charge.ns),
        }
    }
    let mut rows: Vec<(Situation, u64)> =
        Situation::ALL.into_iter().zip(sums).filter(|(_, ns)| *ns > 0).collect();
    rows.sort_by_key(|(situation, ns)| (std::cmp::Reverse(*ns), *situation));
    Diagnosis { rows, evidence }
}

fn overhead(who: Who, evidence: &Evidence) -> Situation {
    let small = evidence.task_ns < EFFICIENT * evidence.cost_ns;
    match who {
        Who::System(_) => Situation::System,
        Who::Start(_) => Situation::MpiStart,
        Who::AbsorbingNoise(_) => Situation::AbsorbingNoise,
        _ if small && evidence.cost_ns <= USUAL_COST_NS => Situation::TooFine,
        _ => Situation::SlowRuntime,
    }
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
