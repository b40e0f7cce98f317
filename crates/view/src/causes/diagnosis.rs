//! The section `diagnosis`: what the lost time means, and what would help.

use super::path::Prediction;
use crate::advice::{Runtime, advice};
use crate::{explain, format};
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::causes::Causes;
use taskscope_analysis::diagnosis::{Diagnosis, Situation, diagnose};
use taskscope_execution::graph::TaskGraph;

pub(super) fn json(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    runtime: Option<Runtime>,
) -> Value {
    let found = diagnose(graph, causes, prediction.span());
    let rows = found.rows.iter().map(|(situation, ns)| {
        json!({
            "letter": format!("{:?}", situation.letter()).to_lowercase(),
            "situation": situation.name(),
            "ns": ns,
            "evidence": evidence(&found, *situation),
            "remedy": remedy(*situation, runtime),
        })
    });
    let seen = found.evidence;
    json!({
        "rows": rows.collect::<Vec<_>>(),
        "task_mean_ns": seen.task_ns,
        "task_cost_ns": seen.cost_ns,
        "inputs": seen.inputs,
        "inputs_from_other_nodes": seen.far_inputs,
        "copies": seen.copies,
        "under_way_ns": seen.under_way_ns,
    })
}

pub(super) fn text(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    runtime: Option<Runtime>,
    out: &mut String,
) {
    let found = diagnose(graph, causes, prediction.span());
    let _ = writeln!(out, "  What the lost time means");
    for (situation, ns) in &found.rows {
        let (time, share) = (format::time(*ns), format::percent(*ns, causes.capacity_ns));
        let letter = format!("{:?}", situation.letter()).to_lowercase();
        let _ = writeln!(out, "   {letter:<12}{:<20}{time:>12}{share:>9}", situation.name());
        let _ = writeln!(out, "       {}", evidence(&found, *situation));
    }
    if let Some((first, _)) = found.rows.first() {
        let _ = writeln!(out, "   try: {}", remedy(*first, runtime));
        let _ = writeln!(out, "   the others: taskscope explain NAME");
    }
}

/// What helps, and that in the runtime's words.
fn remedy(situation: Situation, runtime: Option<Runtime>) -> String {
    let helps = explain::find(situation.name()).map_or("", |explanation| explanation.helps);
    let own = runtime.and_then(|runtime| advice(situation.name(), runtime));
    own.map_or(helps.to_owned(), |own| format!("{helps} {own}"))
}

fn evidence(found: &Diagnosis, situation: Situation) -> String {
    let seen = found.evidence;
    let size = || {
        format!(
            "a task works {}, running one costs {}",
            format::time(seen.task_ns),
            format::time(seen.cost_ns)
        )
    };
    match situation {
        Situation::LowParallelism => format!("no task was ready anywhere meanwhile; {}", size()),
        Situation::TooCoarse => format!("no task was ready, but those that ran could be split; {}", size()),
        Situation::BadlyDistributed => {
            "tasks were ready meanwhile, on this node or on others, or a process came late to a call"
                .to_owned()
        }
        Situation::SlowLink | Situation::BadLocality => {
            let mean = seen.under_way_ns / seen.copies.max(1);
            format!(
                "{} of {} inputs came from other nodes; a copy was under way for {}",
                format::count(seen.far_inputs),
                format::count(seen.inputs),
                format::time(mean)
            )
        }
        Situation::SlowDevice => "what the device did meanwhile is in section blame".to_owned(),
        Situation::TooFine | Situation::SlowRuntime => size(),
        Situation::System => "threads could run and had no CPU".to_owned(),
        Situation::Blocked => "the code is in section blame".to_owned(),
        Situation::AbsorbingNoise => "as the runtime was configured".to_owned(),
        Situation::MpiStart => "once a job, whatever its length".to_owned(),
        Situation::ContendedLock => "the holder is in section blame".to_owned(),
    }
}
