//! The worst instance of each finding: the longest stretch that its culprit took without a break.
//!
//! ```text
//! lock of a runtime   ─▶ the longest time that a blamed place held it
//! late process        ─▶ the wait of another process that it prolonged most
//! recorded waits      ─▶ the wait with most time for the charged thread
//! no events           ─▶ samples and times off the CPU: `sample_instances`
//! nothing to blame    ─▶ the longest section of the wait
//! all others          ─▶ the longest section of the blamed code
//! ```

use super::sample_instances::of_finding;
use super::samples::SampleTimes;
use crate::NamedFinding;
use crate::named_finding::WaitsOf;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_analysis::{LateProcess, Tie};
use taskscope_cause::{Blamed, Cause};
use taskscope_execution::{
    Execution, KeptBy, LatePeers, LongestSections, ObjectIndex, Place, SiteIndex, Span, State, Stretch,
    ThreadIndex, ThreadWait, Waker,
};

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
pub(super) fn of(execution: &Execution, findings: &[NamedFinding], samples: &SampleTimes) -> Vec<Instance> {
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
        let longest = if finding.blamed == Blamed::Holder {
            longest_hold(execution, finding)
        } else {
            finding.late.and_then(|late| longest_for(execution, finding, late)).or(sections[number])
        };
        let longest = longest.or_else(|| longest_wait(execution, &finding.waits));
        let longest = longest.map(|(_, start, end, thread)| (start, end, thread));
        let (start, end, thread) = longest.or_else(|| of_finding(execution, samples, finding))?;
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

/// The wait for a late process that it prolonged most, in the calls of its finding.
fn longest_for(execution: &Execution, finding: &NamedFinding, late: LateProcess) -> Longest {
    let peers = LatePeers::of(execution);
    let places: FxHashSet<Place> = finding.culprits.iter().map(|(_, place)| *place).collect();
    let calls = execution.communication.calls.iter().filter(|call| places.contains(&call.place));
    let waits = calls.filter_map(|call| {
        let wait = call.wait.filter(|wait| wait.until > call.start)?;
        let parts = peers.parts(wait.culprit, call.start, wait.until).into_iter();
        let own = parts.filter(|part| part.kept_by == KeptBy::Process(late.process));
        let ns: u64 = own.map(|part| part.end - part.start).sum();
        (ns > 0).then_some((ns, call.start, wait.until, call.thread))
    });
    waits.max()
}

/// The recorded wait that a finding has most time of.
fn longest_wait(execution: &Execution, waits: &[WaitsOf]) -> Longest {
    let mut tied: FxHashMap<ObjectIndex, Vec<Tie>> = FxHashMap::default();
    let mut calls: FxHashSet<SiteIndex> = FxHashSet::default();
    for waits in waits {
        match *waits {
            WaitsOf::Tied(object, tie) => tied.entry(object).or_default().push(tie),
            WaitsOf::In(site) => {
                calls.insert(site);
            }
        }
    }
    let charged = |wait: &ThreadWait| {
        let tied_ns = tied.get(&wait.object).map_or(0, |ties| charged_ns(execution, wait, ties));
        tied_ns.max(if calls.contains(&wait.site) { wait.end - wait.start } else { 0 })
    };
    let waits = execution.thread_waits.waits.iter();
    let rows = waits.map(|wait| (charged(wait), wait.start, wait.end, wait.thread));
    rows.filter(|(ns, ..)| *ns > 0).max()
}

/// The part of a wait that is charged to one of these threads: all of it if it ended the wait, else the time that it held the object.
fn charged_ns(execution: &Execution, wait: &ThreadWait, ties: &[Tie]) -> u64 {
    let ends = |waker: Waker| {
        ties.iter().any(|tie| match *tie {
            Tie::Wakes(call) => call.site == waker.site,
            Tie::IsJoined(thread, _) => thread == waker.thread,
            Tie::Holds(_) => false,
        })
    };
    if wait.waker.is_some_and(ends) {
        return wait.end - wait.start;
    }
    let took = |site: SiteIndex| ties.iter().any(|tie| matches!(tie, Tie::Holds(call) if call.site == site));
    let holds = execution.thread_waits.holds_of(wait.object, wait.start, wait.end).iter();
    let holds = holds.filter(|hold| hold.thread != wait.thread && took(hold.site));
    holds.map(|hold| hold.end.min(wait.end).saturating_sub(hold.start.max(wait.start))).sum()
}

/// The longest section of each finding.
fn longest_sections(execution: &Execution, wanted: &Wanted) -> [Longest; FINDINGS] {
    let later = |mut left: [Longest; FINDINGS], right: [Longest; FINDINGS]| {
        left.iter_mut().zip(right).for_each(|(left, right)| *left = (*left).max(right));
        left
    };
    let longest_in_thread = |longest_stretches: &mut LongestSections, index: usize| {
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
            execution.threads[index].track.find_longest(longest_stretches);
            let found = longest_stretches.take(&execution.activities).filter(|(_, stretch)| stretch.ns > 0);
            found.for_each(|(activity, stretch)| take(activity, stretch));
        } else {
            execution.spans_of_run(thread).for_each(take_span);
        }
        longest
    };
    let empty = || LongestSections::of(&execution.activities);
    (0..execution.threads.len())
        .into_par_iter()
        .map_init(empty, longest_in_thread)
        .reduce(|| [None; FINDINGS], later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::Confidence;
    use taskscope_execution::messages::{MpiCall, PeerWait, PeerWaitKind};
    use taskscope_execution::{ExecutionBuilder, Hold, PathIndex, ProcessIndex, TaskIndex, WaitOutcome};

    const SITE: SiteIndex = SiteIndex(5);

    fn finding(what: (Cause, Blamed)) -> NamedFinding {
        let finding = NamedFinding::new(what, (State::Blocked, String::new()), 1, Confidence::High);
        NamedFinding { id: "F1".to_owned(), ..finding }
    }

    fn instance_of(execution: &Execution, finding: NamedFinding) -> Option<(u32, u64, u64)> {
        of(execution, &[finding], &SampleTimes::default())
            .first()
            .map(|row| (row.thread.0, row.start, row.end))
    }

    #[test]
    fn recorded_waits_have_the_one_with_most_time_for_the_charged_thread() {
        let mut execution = ExecutionBuilder::new().finish();
        let wait = |thread, object, (start, end), waker: Option<u32>| ThreadWait {
            thread: ThreadIndex(thread),
            object: ObjectIndex(object),
            site: SITE,
            start,
            end,
            outcome: WaitOutcome::Done,
            waker: waker.map(|site| Waker { thread: ThreadIndex(0), site: SiteIndex(site), at: end }),
            is_of_others: false,
        };
        let hold = |site, start, end| Hold {
            object: ObjectIndex(1),
            thread: ThreadIndex(0),
            site: SiteIndex(site),
            task: TaskIndex::NONE,
            start,
            end,
        };
        // The longest wait is for another holder.
        execution.thread_waits.holds = vec![hold(8, 0, 90), hold(7, 90, 100), hold(7, 190, 250)];
        execution.thread_waits.waits = vec![
            wait(1, 1, (0, 100), None),
            wait(1, 2, (300, 310), Some(9)),
            wait(2, 1, (200, 250), None),
            wait(2, 2, (300, 340), Some(10)),
        ];
        let call = |site| taskscope_analysis::ThreadCall { site: SiteIndex(site), path: PathIndex::NONE };
        let instance_in = |what, waits| instance_of(&execution, NamedFinding { waits, ..finding(what) });
        let lock = (Cause::Lock, Blamed::Holder);
        let tied = |object, tie| vec![WaitsOf::Tied(ObjectIndex(object), tie)];
        assert_eq!(instance_in(lock, tied(1, Tie::Holds(call(7)))), Some((2, 200, 250)));
        assert_eq!(instance_in(lock, tied(1, Tie::Holds(call(8)))), Some((1, 0, 100)));
        let signal = (Cause::WaitSignal, Blamed::Waker);
        assert_eq!(instance_in(signal, tied(2, Tie::Wakes(call(9)))), Some((1, 300, 310)));
        assert_eq!(instance_in(signal, tied(2, Tie::Wakes(call(11)))), None);
        let sleep = (Cause::BlockedSleep, Blamed::Code);
        assert_eq!(instance_in(sleep, vec![WaitsOf::In(SITE)]), Some((1, 0, 100)));
    }

    #[test]
    fn a_late_process_has_the_longest_wait_for_itself() {
        let mut execution = ExecutionBuilder::new().finish();
        let place = Place::site(SITE);
        for (thread, culprit, start, until) in [(0, 1, 0, 500), (2, 1, 10, 40), (0, 2, 600, 700)] {
            let wait = PeerWait { kind: PeerWaitKind::LateSender, culprit: ProcessIndex(culprit), until };
            execution.communication.calls.push(MpiCall {
                thread: ThreadIndex(thread),
                function: 0,
                place,
                start,
                end: until + 5,
                count: 1,
                bytes: 0,
                wait: Some(wait),
            });
        }
        let process_instance = |process, place| {
            let late = LateProcess { process: ProcessIndex(process), pid: 1, rank: None };
            let culprits = vec![(State::Communication, place)];
            instance_of(
                &execution,
                NamedFinding { culprits, late: Some(late), ..finding((Cause::Wait, Blamed::Rank)) },
            )
        };
        assert_eq!(process_instance(2, place), Some((0, 600, 700)));
        assert_eq!(process_instance(1, place), Some((0, 0, 500)));
        assert_eq!(process_instance(1, Place::site(SiteIndex(6))), None);
    }
}
