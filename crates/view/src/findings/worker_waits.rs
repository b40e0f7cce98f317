//! Blocked time of workers by the waits in it: a runtime's events know that a worker is blocked in its code, the recorder of
//! threads knows by whom.

use super::rows::Whose;
use super::wait_rows::WaitRows;
use crate::named_finding::NamedFinding;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_analysis::{Analysis, ByState, Confidence, worker_waits};
use taskscope_cause::{Blamed, Cause};
use taskscope_execution::{Place, State};
use taskscope_session::Session;

/// Takes the recorded waits out of the findings about blocked workers, and adds findings that name what they wait for. The sum of
/// all findings stays the same.
pub(crate) fn name_waits(session: &Session, analysis: &Analysis, findings: &mut Vec<NamedFinding>) {
    let execution = &session.execution;
    let is_blocked = |finding: &NamedFinding| {
        (finding.cause, finding.blamed, finding.hang) == (Cause::Blocked, Blamed::Code, None)
    };
    let places: FxHashSet<Place> = findings
        .iter()
        .filter(|finding| is_blocked(finding))
        .flat_map(|finding| finding.culprits.iter().map(|(_, place)| *place))
        .collect();
    let mut waits = worker_waits(execution);
    waits.retain(|(place, ..)| places.contains(place));
    if waits.is_empty() {
        return;
    }
    let mut left: FxHashMap<Place, u64> = FxHashMap::default();
    let sure = if execution.knows_switches() { Confidence::High } else { Confidence::Medium };
    let mut rows = WaitRows::of(session, sure);
    for (place, to, ns) in waits {
        *left.entry(place).or_default() += ns;
        rows.add(to, (ns, ns));
    }
    for finding in findings.iter_mut().filter(|finding| is_blocked(finding)) {
        let named = finding.culprits.iter().filter_map(|(_, place)| left.remove(place)).sum::<u64>();
        finding.ns = finding.ns.saturating_sub(named);
        finding.starting_ns = finding.starting_ns.min(finding.ns);
        finding.victims = victims_of(finding.ns);
    }
    findings.retain(|finding| finding.ns > 0 || finding.hang.is_some());
    for mut wait in rows.finish(analysis, (analysis.ledger.capacity_ns, Whose::Workers)) {
        wait.victims = victims_of(wait.ns);
        let is_of_system = |finding: &&mut NamedFinding| {
            (finding.cause, finding.blamed, finding.pattern) == (Cause::CpuNone, Blamed::System, None)
        };
        match findings.iter_mut().find(|finding| is_of_system(finding)) {
            // Waits for threads without a CPU.
            Some(known) if wait.cause == Cause::CpuNone => {
                known.ns += wait.ns;
                known.victims.add_all(&wait.victims);
            }
            _ => findings.push(wait),
        }
    }
}

fn victims_of(ns: u64) -> ByState {
    let mut victims = ByState::default();
    victims.add(State::Blocked, ns);
    victims
}
