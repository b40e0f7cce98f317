//! The section `diagnosis`: what the lost time looks like, and what would help.

use super::path::Prediction;
use crate::format;
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::causes::Causes;
use taskscope_analysis::diagnosis::{Diagnosis, Loss, diagnose};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime, Text};
use taskscope_execution::graph::TaskGraph;

pub(super) fn json(
    graph: &TaskGraph,
    causes: &Causes,
    prediction: &Prediction,
    runtime: Option<Runtime>,
) -> Value {
    let found = diagnose(graph, causes, prediction.span());
    let rows = found.rows.iter().map(|loss| {
        json!({
            "letter": letter(loss),
            "cause": loss.cause.name(),
            "blamed": loss.blamed.name(),
            "pattern": loss.pattern.map(Pattern::name),
            "ns": loss.ns,
            "evidence": evidence(&found, loss),
            "remedy": remedy(loss, runtime),
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
    let _ = writeln!(out, "  What the lost time looks like");
    for loss in &found.rows {
        let (time, share) = (format::time(loss.ns), format::percent(loss.ns, causes.capacity_ns));
        let (letter, label) = (letter(loss), deciding(loss).label);
        let _ = writeln!(out, "   {letter:<12}{label:<24}{time:>12}{share:>9}");
        let _ = writeln!(out, "       {}", evidence(&found, loss));
    }
    if let Some(first) = found.rows.first() {
        let _ = writeln!(out, "   try: {}", remedy(first, runtime));
        let _ = writeln!(out, "   the others: taskscope explain NAME");
    }
}

fn letter(loss: &Loss) -> String {
    format!("{:?}", loss.letter).to_lowercase()
}

/// The texts of what decides what helps: the pattern, of waiting what is blamed, else the cause.
fn deciding(loss: &Loss) -> &'static Text {
    match loss.pattern {
        Some(pattern) => pattern.text(),
        None if loss.cause.is_in(Cause::Wait) || loss.cause == Cause::Runtime => loss.blamed.text(),
        None => loss.cause.text(),
    }
}

/// What helps, and that in the runtime's words.
fn remedy(loss: &Loss, runtime: Option<Runtime>) -> String {
    let text = deciding(loss);
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
