//! The findings of a recording from any source: events of threads, samples alone, device queues alone, or a
//! profile.
//!
//! All are [`NamedFinding`]s with the same sentences, so that text, JSON and `explain` show them alike. They
//! differ in the total that they are shares of ([`Whose`]).

#[cfg(test)]
mod advice_list;
mod cpus;
mod paths;
mod profile;
mod profile_words;
mod queues;
mod rows;
mod samples;
mod text;
mod threads;
mod wait_rows;
mod worker_waits;

pub(crate) use rows::finding_row;
pub use rows::{CpuTimes, FindingRow, Findings, Losses, Whose};
pub use text::{findings_text, next_text, verdict_text};

use crate::CallPaths;
use crate::named_finding::NamedFinding;
use crate::outcome;
use crate::verdict::{Total, verdict_on_workers};
use crate::words;
use taskscope_analysis::Analysis;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_session::Session;
use worker_waits::name_waits;

impl Whose {
    /// The owners of the time of a trace.
    fn of(session: &Session) -> Whose {
        match session.execution.range() {
            (0, 0) if !session.devices.queues.is_empty() => Whose::Queues,
            _ if session.execution.knows_samples_alone() => Whose::Threads,
            _ => Whose::Workers,
        }
    }
}

impl Findings {
    /// No findings of a trace.
    pub(crate) fn none(session: &Session) -> Findings {
        let whose = Whose::of(session);
        Findings { rows: Vec::new(), base_ns: 0, whose, verdict: None, cpu_time: None }
    }

    /// Collects the findings of a trace.
    pub fn of(session: &Session, analysis: &Analysis) -> Findings {
        let found = Findings::from_times(session, analysis);
        let verdict = found.verdict.map(|verdict| outcome::verdict(session, verdict));
        Findings { verdict, ..found }
    }

    fn from_times(session: &Session, analysis: &Analysis) -> Findings {
        match Whose::of(session) {
            Whose::Queues => return queues::findings(session),
            Whose::Threads => {
                let thread_findings = || {
                    samples::findings(
                        session,
                        analysis,
                        &CallPaths::from_session(session, TaskContext::Creation),
                    )
                };
                return cpus::findings(session, analysis).unwrap_or_else(thread_findings);
            }
            Whose::Workers | Whose::Cpus => {}
        }
        let rows = words::findings_of_events(session, analysis, |found| name_waits(session, analysis, found));
        let (ledger, efficiency) = (&analysis.ledger, &analysis.efficiency);
        let base_ns = ledger.capacity_ns;
        let counted_ns = base_ns.saturating_sub(efficiency.start_ns);
        let total = Total {
            capacity_ns: base_ns,
            starting_ns: efficiency.start_ns,
            lost_ns: counted_ns.saturating_sub(efficiency.useful_ns),
            unknown_ns: efficiency.unknown_ns,
        };
        let verdict = verdict_on_workers(total, &rows);
        Findings { rows, base_ns, whose: Whose::Workers, verdict, cpu_time: None }
    }

    /// Collects the findings of a profile.
    pub fn from_profile(paths: &CallPaths) -> Findings {
        let sample_findings = || samples::findings_of_profile(&paths.tree);
        threads::findings(paths).or_else(sample_findings).unwrap_or_else(|| profile::findings(&paths.tree))
    }
}

/// All findings with names: hangs first, then the largest.
pub fn findings_of(session: &Session, analysis: &Analysis) -> Vec<NamedFinding> {
    Findings::of(session, analysis).rows
}
