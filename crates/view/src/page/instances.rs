//! The worst instance of each finding: the longest stretch that its culprit took without a break.

use crate::NamedFinding;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_cause::{Blamed, Cause};
use taskscope_execution::{Execution, LongestSections, Place, Span, State, Stretch, ThreadIndex};

/// The place and time of a finding's worst case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The finding's id: `F1`, …
    pub finding: String,
    /// The culprit's thread, or that of the longest wait if nothing is blamed.
    pub thread: ThreadIndex,
    /// First nanosecond on the trace's clock.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

/// Findings that get an instance: there are hardly ever more.
const FINDINGS: usize = u32::BITS as usize;

/// The worst instances of the largest findings: of all of them in one walk over the sections.
pub(super) fn of(execution: &Execution, findings: &[NamedFinding]) -> Vec<Instance> {
    let findings = &findings[..findings.len().min(FINDINGS)];
    let mut wanted = Wanted::default();
    for (number, finding) in findings.iter().enumerate() {
        match finding.blamed {
            Blamed::Holder => {}
            Blamed::Nobody if finding.cause == Cause::Wait => {
                finding.victims.iter().for_each(|(state, _)| wanted.states[state as usize] |= 1 << number);
            }
            _ => {
                for (state, place) in &finding.culprits {
                    *wanted.places.entry((*state, *place)).or_default() |= 1 << number;
                    wanted.asked[*state as usize] = true;
                }
            }
        }
    }
    let sections = longest_sections(execution, &wanted);
    let instance = |(number, finding): (usize, &NamedFinding)| {
        let lock = finding.blamed == Blamed::Holder;
        let (_, start, end, thread) = if lock { longest_hold(execution, finding) } else { sections[number] }?;
        Some(Instance { finding: finding.id.clone(), thread, start, end })
    };
    findings.iter().enumerate().filter_map(instance).collect()
}

/// Which sections each finding is about, one bit a finding.
struct Wanted {
    states: [u32; State::ALL.len()],
    places: FxHashMap<(State, Place), u32>,
    /// States that occur in `places`.
    asked: [bool; State::ALL.len()],
}

impl Default for Wanted {
    fn default() -> Self {
        Wanted { states: [0; State::ALL.len()], places: Default::default(), asked: [false; State::ALL.len()] }
    }
}

impl Wanted {
    fn of(&self, state: State, place: Place) -> u32 {
        let at = if self.asked[state as usize] { self.places.get(&(state, place)) } else { None };
        self.states[state as usize] | at.copied().unwrap_or(0)
    }
}

type Longest = Option<(u64, u64, u64, ThreadIndex)>;

fn longest_hold(execution: &Execution, finding: &NamedFinding) -> Longest {
    let sites: FxHashSet<Place> = finding.culprits.iter().map(|(_, place)| *place).collect();
    let holds = execution.holds.iter().filter(|hold| sites.contains(&Place::site(hold.site)));
    holds.map(|hold| (hold.end - hold.start, hold.start, hold.end, hold.thread)).max()
}

/// The longest section of each finding.
fn longest_sections(execution: &Execution, wanted: &Wanted) -> [Longest; FINDINGS] {
    let later = |mut left: [Longest; FINDINGS], right: [Longest; FINDINGS]| {
        left.iter_mut().zip(right).for_each(|(left, right)| *left = (*left).max(right));
        left
    };
    let of_thread = |index: usize| {
        let thread = ThreadIndex(index as u32);
        let mut longest: [Longest; FINDINGS] = [None; FINDINGS];
        // Sections of a state mostly are at the same place as the one before.
        let mut last = State::ALL.map(|state| (Place::UNKNOWN, wanted.of(state, Place::UNKNOWN)));
        let mut take = |(state, place): (State, Place), stretch: Stretch| {
            let last = &mut last[state as usize];
            if last.0 != place {
                *last = (place, wanted.of(state, place));
            }
            let mut findings = last.1;
            while findings != 0 {
                let slot = &mut longest[findings.trailing_zeros() as usize];
                *slot = (*slot).max(Some((stretch.ns, stretch.start, stretch.start + stretch.ns, thread)));
                findings &= findings - 1;
            }
        };
        let take_span = |span: Span| {
            let stretch = Stretch { ns: span.nanos(), start: span.start };
            take((span.section.state, span.section.place), stretch);
        };
        if execution.system_time_of(thread).is_empty() {
            // Sections without time are not shown.
            let edges = execution.edges_of_run(thread);
            edges.into_iter().filter(|edge| edge.end > edge.start).for_each(take_span);
            let mut of_activities = LongestSections::of(&execution.activities);
            execution.threads[index].track.find_longest(&mut of_activities);
            let found = of_activities.take(&execution.activities).filter(|(_, stretch)| stretch.ns > 0);
            found.for_each(|(activity, stretch)| take(activity, stretch));
        } else {
            execution.spans_of_run(thread).for_each(take_span);
        }
        longest
    };
    (0..execution.threads.len()).into_par_iter().map(of_thread).reduce(|| [None; FINDINGS], later)
}
