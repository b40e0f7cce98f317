//! Findings of `taskscope doctor`.

use schemars::JsonSchema;
use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The expected state.
    Good,
    /// Recording works, with the limitation that the text names.
    Limited,
    /// Recording does not work.
    Problem,
}

/// One check and its result.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// Stable name of the check.
    pub name: &'static str,
    pub verdict: Verdict,
    /// Result of the check.
    pub text: String,
    /// A command to paste, or advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// Creates the finding of a check that passed.
    pub fn good(name: &'static str, text: impl Into<String>) -> Self {
        Finding { name, verdict: Verdict::Good, text: text.into(), remedy: None }
    }

    /// Creates the finding of a check that found a limitation.
    pub fn limited(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { name, verdict: Verdict::Limited, text: text.into(), remedy: Some(remedy.into()) }
    }

    /// Creates the finding of a check that failed.
    pub fn problem(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { name, verdict: Verdict::Problem, text: text.into(), remedy: Some(remedy.into()) }
    }
}
