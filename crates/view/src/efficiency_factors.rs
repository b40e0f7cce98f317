//! The factors of the parallel efficiency, and the findings that explain the largest loss; for text, pages and JSON.
//!
//! A factor has the time that workers spent in states of its groups, a finding the time for which one cause is charged, in any
//! state: the waits for a device of one worker are *device offload*, and those of its team *load balance*. So the factor with
//! the largest loss names the findings that it consists of.

use crate::documents::Word;
use crate::named_finding::NamedFinding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use taskscope_analysis::Efficiency;
use taskscope_cause::{Blamed, Cause, Group};

/// Factors of the parallel efficiency, shares of 1:
/// `parallel` = `cpu_availability` · `serialization` · `load_balance` · `device_offload` · `blocked` ·
/// `runtime_overhead` · `known`. Losses are worker-nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EfficiencyFactors {
    /// Useful time over capacity, without start and end of MPI.
    #[schemars(range(min = 0, max = 1))]
    pub parallel: f64,
    /// Threads do useful work equally.
    #[schemars(range(min = 0, max = 1))]
    pub load_balance: f64,
    /// The operating system has CPUs for all.
    #[schemars(range(min = 0, max = 1))]
    pub cpu_availability: f64,
    /// Threads have work at the same time.
    #[schemars(range(min = 0, max = 1))]
    pub serialization: f64,
    /// Threads do not wait for devices.
    #[schemars(range(min = 0, max = 1))]
    pub device_offload: f64,
    /// Code of the program does not block in the kernel.
    #[schemars(range(min = 0, max = 1))]
    pub blocked: f64,
    /// Threads are not in the runtime.
    #[schemars(range(min = 0, max = 1))]
    pub runtime_overhead: f64,
    /// The fraction of the capacity with a known state.
    #[schemars(range(min = 0, max = 1))]
    pub known: f64,
    /// Time in the program's own code.
    pub useful_ns: u64,
    /// Lost by load balance.
    pub load_balance_loss_ns: u64,
    /// Lost without a CPU.
    pub cpu_availability_loss_ns: u64,
    /// Lost by serialization.
    pub serialization_loss_ns: u64,
    /// Lost in waiting for devices.
    pub device_offload_loss_ns: u64,
    /// Lost blocked in the kernel.
    pub blocked_loss_ns: u64,
    /// Lost in the runtime.
    pub runtime_overhead_loss_ns: u64,
    /// Time in an unknown state.
    pub unknown_ns: u64,
    /// Other than useful, while their process started or ended MPI; no factor contains it.
    pub mpi_start_ns: u64,
    /// The factor with the largest loss; null if none is a loss to look at.
    pub largest_loss: Option<LargestLoss>,
}

/// The factor with the largest loss, and the findings that make up most of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LargestLoss {
    /// The factor: its key in the efficiency.
    pub factor: Word,
    /// Findings in the order of their parts of it, each of which is at least a fifth. A finding may be larger than its part: its
    /// other victims count to other factors.
    pub findings: Vec<String>,
}

/// Factors of which less is missing are printed as 1.00, and are not a loss to look at.
const MIN_MISSING: f64 = 0.005;
/// The part of the largest loss from which on a finding is named with it: one in this many.
const NAMED_PARTS: u64 = 5;

impl EfficiencyFactors {
    /// The factors, with the largest of these findings.
    pub(crate) fn of(efficiency: &Efficiency, findings: &[NamedFinding]) -> EfficiencyFactors {
        let mut factors = EfficiencyFactors::from(efficiency);
        factors.largest_loss = factors.largest_loss(findings);
        factors
    }

    fn largest_loss(&self, findings: &[NamedFinding]) -> Option<LargestLoss> {
        let losses = [
            ("cpu_availability", self.cpu_availability, self.cpu_availability_loss_ns, &[Group::Off][..]),
            ("load_balance", self.load_balance, self.load_balance_loss_ns, &[Group::Sync]),
            ("serialization", self.serialization, self.serialization_loss_ns, &[Group::Idle, Group::Mutex]),
            ("device_offload", self.device_offload, self.device_offload_loss_ns, &[Group::Device]),
            ("blocked", self.blocked, self.blocked_loss_ns, &[Group::Blocked]),
            ("runtime_overhead", self.runtime_overhead, self.runtime_overhead_loss_ns, &[Group::Runtime]),
            ("known", self.known, self.unknown_ns, &[Group::Unknown]),
        ];
        // The first of the largest.
        let (name, factor, loss_ns, groups) = losses.into_iter().rev().max_by_key(|(_, _, ns, _)| *ns)?;
        if loss_ns == 0 || factor > 1.0 - MIN_MISSING {
            return None;
        }
        let part_of = |finding: &NamedFinding| -> u64 {
            let victims = |group| finding.victims.group_ns(group);
            // Waiting in teams for nobody counts as the runtime's.
            let is_in_vain = finding.blamed == Blamed::Nobody;
            let factor_groups = groups.iter().filter(|group| !(is_in_vain && **group == Group::Sync));
            let in_vain = if is_in_vain && name == "runtime_overhead" { victims(Group::Sync) } else { 0 };
            factor_groups.map(|group| victims(*group)).sum::<u64>() + in_vain
        };
        let mut parts: Vec<(u64, &str)> = (findings.iter())
            .filter(|finding| finding.cause != Cause::MpiStart)
            .map(|finding| (part_of(finding), finding.id.as_str()))
            .filter(|(ns, _)| *ns > 0 && ns.saturating_mul(NAMED_PARTS) >= loss_ns)
            .collect();
        parts.sort_by_key(|(ns, _)| Reverse(*ns));
        let findings = parts.into_iter().map(|(_, id)| id.to_owned()).collect();
        Some(LargestLoss { factor: Word::Borrowed(name), findings })
    }
}

impl From<&Efficiency> for EfficiencyFactors {
    fn from(efficiency: &Efficiency) -> EfficiencyFactors {
        EfficiencyFactors {
            parallel: efficiency.parallel,
            load_balance: efficiency.load_balance,
            cpu_availability: efficiency.cpu_availability,
            serialization: efficiency.serialization,
            device_offload: efficiency.device_offload,
            blocked: efficiency.blocked,
            runtime_overhead: efficiency.runtime_overhead,
            known: efficiency.known,
            useful_ns: efficiency.useful_ns,
            load_balance_loss_ns: efficiency.load_balance_ns,
            cpu_availability_loss_ns: efficiency.cpu_availability_ns,
            serialization_loss_ns: efficiency.serialization_ns,
            device_offload_loss_ns: efficiency.device_offload_ns,
            blocked_loss_ns: efficiency.blocked_ns,
            runtime_overhead_loss_ns: efficiency.runtime_overhead_ns,
            unknown_ns: efficiency.unknown_ns,
            mpi_start_ns: efficiency.start_ns,
            largest_loss: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::{ByState, Confidence};
    use taskscope_cause::State;

    fn finding(id: &str, what: (Cause, Blamed), victims: &[(State, u64)]) -> NamedFinding {
        let ns = victims.iter().map(|(_, ns)| ns).sum();
        let state = victims[0].0;
        let mut finding = NamedFinding::new(what, (state, String::new()), ns, Confidence::High);
        finding.id = id.to_owned();
        victims.iter().for_each(|(state, ns)| finding.victims.add(*state, *ns));
        finding
    }

    fn largest(states: &[(State, u64)], in_vain: u64, findings: &[NamedFinding]) -> Option<LargestLoss> {
        let mut by_state = ByState::default();
        states.iter().for_each(|(state, ns)| by_state.add(*state, *ns));
        EfficiencyFactors::of(&Efficiency::of(&by_state, 0, in_vain), findings).largest_loss
    }

    #[test]
    fn the_largest_loss_names_the_findings_that_it_consists_of() {
        let states = [(State::Task, 100), (State::Barrier, 360), (State::TargetWait, 350), (State::Idle, 30)];
        let findings = [
            finding(
                "F1",
                (Cause::Device, Blamed::Operation),
                &[(State::Barrier, 300), (State::TargetWait, 350)],
            ),
            finding("F2", (Cause::Wait, Blamed::Code), &[(State::Barrier, 60)]),
            finding("F3", (Cause::Wait, Blamed::Serial), &[(State::Idle, 30)]),
        ];
        let found = largest(&states, 0, &findings).unwrap();
        assert_eq!((&*found.factor, found.findings), ("load_balance", vec!["F1".to_owned()]));
        // Another order of findings than by their size: the part of this factor decides.
        let states = [(State::Task, 100), (State::Barrier, 200), (State::LockWait, 90)];
        let findings = [
            finding("F1", (Cause::Lock, Blamed::Holder), &[(State::LockWait, 90), (State::Barrier, 50)]),
            finding("F2", (Cause::Wait, Blamed::Code), &[(State::Barrier, 130)]),
            finding("F3", (Cause::Wait, Blamed::Code), &[(State::Barrier, 20)]),
        ];
        let found = largest(&states, 0, &findings).unwrap();
        assert_eq!(
            (&*found.factor, found.findings),
            ("load_balance", vec!["F2".to_owned(), "F1".to_owned()])
        );
    }

    #[test]
    fn waits_in_teams_without_a_culprit_count_as_runtime_overhead() {
        let states = [(State::Task, 100), (State::Barrier, 200), (State::ForkJoin, 10)];
        let findings = [finding("F1", (Cause::Wait, Blamed::Nobody), &[(State::Barrier, 200)])];
        let found = largest(&states, 200, &findings).unwrap();
        assert_eq!((&*found.factor, found.findings), ("runtime_overhead", vec!["F1".to_owned()]));
        assert!(largest(&[(State::Task, 1000), (State::Barrier, 1)], 0, &[]).is_none());
    }
}
