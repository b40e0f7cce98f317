//! The section `diagnosis`: patterns of the lost time, and their remedies.

use super::path::Prediction;
use crate::documents::Named;
use crate::format;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use taskscope_analysis::Letter;
use taskscope_analysis::causes::Causes;
use taskscope_analysis::diagnosis::{Diagnosis, Loss, diagnose};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime, deciding};
use taskscope_execution::graph::TaskGraph;

/// Lost time by root cause, blame and pattern, with the numbers that decided.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LostTime {
    /// Largest first; they sum to the capacity minus work.
    pub rows: Vec<LostTimeRow>,
    /// Mean work of a task, nanoseconds.
    pub task_mean_ns: u64,
    /// Mean cost of running a task, nanoseconds.
    pub task_cost_ns: u64,
    /// Inputs of tasks that ran.
    pub inputs: u64,
    /// Inputs from another node.
    pub inputs_from_other_nodes: u64,
    /// Number of copies.
    pub copies: u64,
    /// Nanoseconds that copies were under way in all.
    pub under_way_ns: u64,
}

/// Time lost in one way.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LostTimeRow {
    /// The letter of SLOW.
    pub letter: Named<Letter>,
    /// The root cause.
    pub cause: Named<Cause>,
    /// The charged party.
    pub blamed: Named<Blamed>,
    /// The pattern, if one decides the remedy.
    pub pattern: Option<Named<Pattern>>,
    /// Worker-nanoseconds.
    pub ns: u64,
    /// The numbers that decided, in words.
    pub evidence: String,
    /// The remedy.
    pub remedy: String,
}

/// The rows of section `diagnosis`.
pub(super) fn lost_time(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    runtime: Option<Runtime>,
) -> LostTime {
    let found = diagnose(graph, causes, prediction.span());
    let rows = found.rows.iter().map(|loss| LostTimeRow {
        letter: Named(loss.letter),
        cause: Named(loss.cause),
        blamed: Named(loss.blamed),
        pattern: loss.pattern.map(Named),
        ns: loss.ns,
        evidence: evidence(&found, loss),
        remedy: remedy(loss, runtime),
    });
    let seen = found.evidence;
    LostTime {
        rows: rows.collect(),
        task_mean_ns: seen.task_ns,
        task_cost_ns: seen.cost_ns,
        inputs: seen.inputs,
        inputs_from_other_nodes: seen.far_inputs,
        copies: seen.copies,
        under_way_ns: seen.under_way_ns,
    }
}

/// The section as text; shares are of the capacity.
pub(super) fn text(lost: &LostTime, capacity: u64, out: &mut String) {
    let _ = writeln!(out, "  What the lost time looks like");
    for row in &lost.rows {
        let (time, share) = (format::time(row.ns), format::percent(row.ns, capacity));
        let label = deciding(row.pattern.map(|pattern| pattern.0), row.cause.0, row.blamed.0).label;
        let _ = writeln!(out, "   {:<12}{label:<24}{time:>12}{share:>9}", row.letter.0.name());
        let _ = writeln!(out, "       {}", row.evidence);
    }
    if let Some(first) = lost.rows.first() {
        let _ = writeln!(out, "   try: {}", first.remedy);
        let _ = writeln!(out, "   the others: taskscope explain NAME");
    }
}

/// The remedy, in the runtime's terms.
fn remedy(loss: &Loss, runtime: Option<Runtime>) -> String {
    let text = deciding(loss.pattern, loss.cause, loss.blamed);
    let own = runtime.and_then(|runtime| text.advice_for(runtime));
    own.map_or(text.helps.to_owned(), |own| format!("{} {own}", text.helps))
}

fn evidence(found: &Diagnosis, loss: &Loss) -> String {
    let seen = found.evidence;
    let size = || {
        format!(
            "a task works {}, running one costs {}",
            format::time(seen.task_ns),
            format::time(seen.cost_ns)
        )
    };
    match (loss.pattern, loss.cause, loss.blamed) {
        (Some(Pattern::TooCoarse), ..) => {
            format!("no task was ready, but those that ran could be split; {}", size())
        }
        (Some(Pattern::BadlyDistributed), Cause::MpiLate, _) => "a rank came late to a call".to_owned(),
        (Some(Pattern::BadlyDistributed), ..) => {
            "tasks were ready meanwhile, on this node or on others".to_owned()
        }
        (Some(Pattern::BadLocality), ..) | (_, _, Blamed::Link | Blamed::Call)
            if loss.cause != Cause::MpiStart =>
        {
            let mean = seen.under_way_ns / seen.copies.max(1);
            format!(
                "{} of {} inputs came from other nodes; a copy was under way for {}",
                format::count(seen.far_inputs),
                format::count(seen.inputs),
                format::time(mean)
            )
        }
        (_, Cause::MpiStart, _) => "once a job, whatever its length".to_owned(),
        (_, Cause::Device, _) => "what the device did meanwhile is in section blame".to_owned(),
        (_, Cause::Cpu, _) => "threads could run and had no CPU".to_owned(),
        (_, Cause::Blocked, _) => "the code is in section blame".to_owned(),
        (_, Cause::RuntimeNoise, _) => "as the runtime was configured".to_owned(),
        (_, Cause::Lock, _) => "the holder is in section blame".to_owned(),
        (_, Cause::Wait, _) => format!("no task was ready anywhere meanwhile; {}", size()),
        _ => size(),
    }
}
