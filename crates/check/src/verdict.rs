//! Accept or reject: ovniemu's verdict and ours, from the same violations.

use std::collections::BTreeMap;
use taskscope_model::{Severity, Violation, ViolationCode};

/// The rules that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// ovniemu's, without or with the checks at the end (`-l`).
    Ovni {
        /// Whether stacks must be empty at the end.
        lint: bool,
    },
    /// taskscope's.
    Own,
}

impl Judge {
    /// Severity of a violation for this judge.
    pub fn severity(self, code: ViolationCode) -> Severity {
        let severity = match self {
            Judge::Ovni { .. } => code.ovni_severity(),
            Judge::Own => code.severity(),
        };
        match (self, severity) {
            (Judge::Ovni { lint: false }, Severity::LintError) => Severity::Silent,
            (_, Severity::LintError) => Severity::Error,
            (_, severity) => severity,
        }
    }
}

/// All violations that were seen, counted by code; each is kept only as long as the caller wants.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Number of violations of each rule.
    pub counts: BTreeMap<ViolationCode, u64>,
}

impl Verdict {
    /// Takes a violation into account.
    pub fn add(&mut self, violation: &Violation) {
        *self.counts.entry(violation.code).or_default() += violation.count;
    }

    /// Violations of this weight.
    pub fn count(&self, judge: Judge, severity: Severity) -> u64 {
        self.counts
            .iter()
            .filter(|(code, _)| judge.severity(**code) == severity)
            .map(|(_, count)| count)
            .sum()
    }

    /// Whether the judge accepts the trace.
    pub fn accepts(&self, judge: Judge) -> bool {
        self.count(judge, Severity::Error) == 0
    }
}
