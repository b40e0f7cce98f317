//! The worst instance of each finding: the longest stretch that its culprit took without a break.

use crate::NamedFinding;
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use taskscope_analysis::FindingKind;
use taskscope_execution::{Execution, Place, State, ThreadIndex};

/// Where and when a finding was worst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The finding's id: `F1`, …
    pub finding: String,
    /// The culprit's thread, or, where nobody is to blame, that of the longest wait.
    pub thread: ThreadIndex,
    /// First nanosecond on the trace's clock.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

/// Findings that get an instance; the others are too small to look at.
const FINDINGS: usize = 8;

/// The worst instances of the largest findings.
pub(super) fn of(execution: &Execution, findings: &[NamedFinding]) -> Vec<Instance> {
    findings.iter().take(FINDINGS).filter_map(|finding| worst(execution, finding)).collect()
}

fn worst(execution: &Execution, finding: &NamedFinding) -> Option<Instance> {
    let found = match finding.kind {
        FindingKind::Lock => longest_hold(execution, finding),
        FindingKind::NobodyWorks => {
            let victims: FxHashSet<State> = finding.victims.iter().map(|(state, _)| state).collect();
            longest_section(execution, |state, _| victims.contains(&state))
        }
        _ => {
            let culprits: FxHashSet<(State, Place)> = finding.culprits.iter().copied().collect();
            longest_section(execution, |state, place| culprits.contains(&(state, place)))
        }
    };
    let (_, start, end, thread) = found?;
    Some(Instance { finding: finding.id.clone(), thread, start, end })
}

type Longest = Option<(u64, u64, u64, ThreadIndex)>;

fn longest_hold(execution: &Execution, finding: &NamedFinding) -> Longest {
    let sites: FxHashSet<Place> = finding.culprits.iter().map(|(_, place)| *place).collect();
    let holds = execution.holds.iter().filter(|hold| sites.contains(&Place::site(hold.site)));
    holds.map(|hold| (hold.end - hold.start, hold.start, hold.end, hold.thread)).max()
}

fn longest_section(execution: &Execution, counts: impl Fn(State, Place) -> bool + Sync) -> Longest {
    let threads = (0..execution.threads.len()).into_par_iter();
    threads
        .filter_map(|index| {
            let spans = execution
                .spans_of_run(ThreadIndex(index as u32))
                .filter(|s| counts(s.section.state, s.section.place));
            spans.map(|s| (s.nanos(), s.start, s.end, ThreadIndex(index as u32))).max()
        })
        .max()
}
