//! A finding with a named place.

use taskscope_analysis::{ByState, Confidence, Grain, LateProcess, RegionGrain, Tie, Worksharing};
use taskscope_cause::{Blamed, Cause, Pattern, Text, deciding};
use taskscope_execution::{Group, ObjectIndex, Place, SiteIndex, State, ThreadIndex};

/// A finding with a named place; findings of one name are merged.
#[derive(Clone, Debug)]
pub struct NamedFinding {
    /// `F1`, `F2`, …
    pub id: String,
    /// The cause of the loss.
    pub cause: Cause,
    /// The blamed party.
    pub blamed: Blamed,
    /// The pattern, if one decides the remedy.
    pub pattern: Option<Pattern>,
    /// Worker-nanoseconds.
    pub ns: u64,
    /// Confidence in the cause.
    pub confidence: Confidence,
    /// The state of the culprits.
    pub state: State,
    /// State and place of all culprits with this name. Empty if a recording has no events.
    pub culprits: Vec<(State, Place)>,
    /// The place of the cause in words; may be empty.
    pub place: String,
    /// The call path of the cause, outermost first, as far as most of it has one; of recordings without events.
    pub path: Vec<String>,
    /// The code site of the cause.
    pub site: SiteIndex,
    /// The whole finding as a sentence.
    pub text: String,
    /// The remedy, in the terms of the recorded runtime.
    pub remedy: String,
    /// The states of the lost time, and the evidence for the cause; empty for a hang.
    pub evidence: String,
    /// The lost time by the victims' state.
    pub victims: ByState,
    /// The part in which the culprit ran alone.
    pub sole_ns: u64,
    /// The part of waits for locks in which no thread held the lock.
    pub free_ns: u64,
    /// The part while ranks started or ended MPI; in no efficiency.
    pub starting_ns: u64,
    /// Tasks created there, if that is relevant.
    pub tasks_created: u64,
    /// The construct's load, for an imbalance.
    pub work: Option<Worksharing>,
    /// Size and cost of the tasks, if they are too small.
    pub grain: Option<Grain>,
    /// Number and times of the parallel regions, if they are too short.
    pub regions: Option<RegionGrain>,
    /// The late process, if a process was late.
    pub late: Option<LateProcess>,
    /// Row of [`Analysis::hangs`](taskscope_analysis::Analysis::hangs), if the run hung.
    pub hang: Option<usize>,
    /// The recorded waits that it consists of; empty for findings from states of workers.
    pub waits: Vec<WaitsOf>,
    /// The longest time in which a thread ran while CPUs were unused, as too few others had work: thread, begin, end on the trace's
    /// clock; only of that finding.
    pub alone: Option<(ThreadIndex, u64, u64)>,
}

/// Recorded waits of threads that a finding consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsOf {
    /// Waits for an object, ended by a thread or for its holder.
    Tied(ObjectIndex, Tie),
    /// Waits in a call that no other thread ends, or for which that is not known.
    In(SiteIndex),
}

/// The share of a finding of the runtime from which on waiting is named, in percent.
const WAITS_PERCENT: u64 = 5;

impl NamedFinding {
    /// Whether a noticeable part of a finding of the runtime, or of the start of MPI, is not its own time, but that of those that
    /// wait for it.
    pub(crate) fn has_waits(&self) -> bool {
        let waits = self.ns.saturating_sub(self.own_ns());
        u128::from(waits) * 100 >= u128::from(self.ns) * u128::from(WAITS_PERCENT) && waits > 0
    }

    /// The time of the runtime itself, or of the start of MPI, in a finding of it; waits are the rest.
    pub(crate) fn own_ns(&self) -> u64 {
        self.victims.group_ns(Group::Runtime) + self.victims.group_ns(Group::Start)
    }

    /// The cause `wait.start` or `wait.end` if workers were absent in most of the lost time, and no code is blamed.
    pub(crate) fn absence(&self) -> Option<Cause> {
        let is_mostly = |state| self.victims.get(state) > self.ns / 2;
        match (self.pattern, self.cause, self.blamed) {
            (None, Cause::Wait, Blamed::Nobody) if is_mostly(State::NotStarted) => Some(Cause::WaitStart),
            (None, Cause::Wait, Blamed::Nobody) if is_mostly(State::Ended) => Some(Cause::WaitEnd),
            _ => None,
        }
    }

    /// Sets the pattern of a lock that was free in most of the waits for it; the lock of an interpreter has one of its own.
    pub(crate) fn judge_lock(&mut self) {
        let is_free = self.cause == Cause::Lock && u128::from(self.free_ns) * 2 > u128::from(self.ns);
        if is_free && self.pattern.is_none() {
            self.pattern = Some(Pattern::FreeLock);
        }
    }

    /// The texts that determine the remedy.
    pub(crate) fn deciding(&self) -> &'static Text {
        self.absence().map_or_else(|| deciding(self.pattern, self.cause, self.blamed), Cause::text)
    }

    /// A finding without evidence, sentence and remedy.
    pub(crate) fn new(
        (cause, blamed): (Cause, Blamed),
        (state, place): (State, String),
        ns: u64,
        confidence: Confidence,
    ) -> NamedFinding {
        NamedFinding {
            id: String::new(),
            cause,
            blamed,
            pattern: None,
            ns,
            confidence,
            state,
            culprits: Vec::new(),
            place,
            path: Vec::new(),
            site: SiteIndex::NONE,
            text: String::new(),
            remedy: String::new(),
            evidence: String::new(),
            victims: ByState::default(),
            sole_ns: 0,
            free_ns: 0,
            starting_ns: 0,
            tasks_created: 0,
            work: None,
            grain: None,
            regions: None,
            late: None,
            hang: None,
            waits: Vec::new(),
            alone: None,
        }
    }
}
