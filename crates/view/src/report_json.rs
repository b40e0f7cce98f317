//! The report as JSON; its schema is `docs/report.schema.json`.

use crate::hang::HangWords;
use crate::report_rows::{
    EfficiencyFactors, by_state, incomplete, locks, regions, starvation, task_types, threads, uncertain,
    worksharing,
};
use crate::words;
use serde_json::{Map, Value, json};
use taskscope_analysis::{Analysis, Problem};
use taskscope_cause::{Pattern, State};
use taskscope_execution::{ObjectIndex, SiteIndex, TypeIndex};
use taskscope_session::{Places, Session};

/// Name and version of the form.
pub const SCHEMA: &str = "taskscope-report/1";

/// The whole report. Times are integers in nanoseconds since the start of the trace, or lengths.
pub fn report(session: &Session, analysis: &Analysis, problems: &[Problem]) -> Value {
    let ledger = &analysis.ledger;
    let places = &session.places;
    // Names are resolved first, so that notices can say which were missing.
    let causes = words::causes(places, analysis);
    let blame = words::blame(session, analysis);
    let findings = words::findings(session, analysis);
    let task_types = task_types(session, analysis);
    let worksharing = worksharing(session, analysis);
    let regions = regions(session, analysis);
    let locks = locks(session, analysis);
    json!({
        "schema": SCHEMA,
        "trace": session.root.display().to_string(),
        "command": session.run.as_ref().map(|run| &run.command),
        "host": session.run.as_ref().map(|run| &run.host),
        "exit_code": session.run.as_ref().and_then(|run| run.exit_code),
        "signal": session.run.as_ref().and_then(|run| run.signal),
        "complete": session.is_complete(),
        "incomplete_streams": incomplete(session),
        "part": session.part,
        "uncertain": uncertain(session),
        "wall_ns": ledger.wall_ns,
        "run_wall_ns": session.run.as_ref().and_then(|run| run.wall_ns),
        "capacity_ns": ledger.capacity_ns,
        "samples_alone": words::knows_samples_alone(session, analysis),
        "workers": ledger.workers,
        "threads": ledger.os_threads(),
        "cpus": if ledger.cpus > 0 { ledger.cpus } else { crate::cpus::allowed(&session.execution) },
        "cpus_are_workers": ledger.cpus > 0,
        "cpus_text": match ledger.cpus {
            0 => crate::cpus::header(&session.execution),
            cpus => Some(crate::format::counted(cpus as u64, "CPU")),
        },
        "process_cpus": crate::cpus::of_processes(&session.execution),
        "no_cpu": crate::cpus::shortage(&session.execution),
        "other_threads": ledger.other_threads,
        "processes": session.execution.process_count(),
        "tasks": analysis.tasks,
        "events": session.events,
        "lost_events": session.lost_events(),
        "recording_cost_ns_per_event": session.run.as_ref().and_then(|run| run.recording_cost_ns_per_event),
        "notices": words::notices(session, problems).into_iter()
            .map(|notice| json!({ "name": notice.name, "text": notice.text })).collect::<Vec<_>>(),
        "efficiency": EfficiencyFactors::from(&analysis.efficiency),
        "ranks": crate::ranks::ranks(session, analysis),
        "mpi_calls": crate::mpi_calls::rows(session),
        "causes": causes.into_iter()
            .map(|(state, place, ns)| {
                json!({ "cause": state.cause().name(), "state": state.name(), "ns": ns, "where": named(&place) })
            })
            .collect::<Vec<_>>(),
        "blame": blame.into_iter()
            .map(|row| {
                json!({
                    "cause": row.state.cause().name(),
                    "state": row.state.name(),
                    "ns": row.ns,
                    "blamed": row.blamed.name(),
                    "blamed_state": row.in_state.map(State::name),
                    "where": named(&row.place),
                })
            })
            .collect::<Vec<_>>(),
        "findings": findings.iter().map(|finding| finding_row(session, analysis, finding)).collect::<Vec<_>>(),
        "thread_states": threads(session, analysis),
        "task_types": task_types,
        "worksharing": worksharing,
        "regions": regions,
        "locks": locks,
        "starvation": starvation(session, analysis),
    })
}

/// A name, or null for none.
fn named(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn finding_row(session: &Session, analysis: &Analysis, finding: &words::NamedFinding) -> Value {
    let places = &session.places;
    let mut row = json!({
        "id": finding.id,
        "cause": finding.cause.name(),
        "blamed": finding.blamed.name(),
        "pattern": finding.pattern.map(Pattern::name),
        "ns": finding.ns,
        "confidence": finding.confidence.name(),
        "text": finding.text,
        "where": named(&finding.place),
        "victims": by_state(&finding.victims),
        "sole_ns": finding.sole_ns,
    });
    if let Some(row) = row.as_object_mut() {
        add_code(row, places, finding.site);
        if finding.tasks_created > 0 {
            row.insert("tasks_created".into(), finding.tasks_created.into());
        }
        if let Some(work) = finding.work {
            row.insert("load_balance".into(), work.load.balance().into());
        }
        if let Some(grain) = finding.grain {
            row.insert("tasks".into(), grain.tasks.into());
            row.insert("task_mean_ns".into(), grain.mean_ns.into());
            row.insert("task_cost_ns".into(), grain.cost_ns.into());
        }
        if let Some(hang) = finding.hang.and_then(|row| analysis.hangs.get(row)) {
            row.insert("hang".into(), json!(HangWords::of(session, hang).facts()));
        }
        if let Some(late) = finding.late {
            row.insert("late_pid".into(), late.pid.into());
            row.insert("late_rank".into(), late.rank.into());
        }
    }
    row
}

/// Function, file and line of a code site, as far as they are known.
fn add_code(row: &mut Map<String, Value>, places: &Places, site: SiteIndex) {
    if !site.is_some() {
        return;
    }
    let code = places.code(site);
    row.insert("function".into(), json!(code.frame.function));
    row.insert("file".into(), json!(code.frame.file));
    row.insert("line".into(), json!(code.frame.line));
}

/// Types and sites belong to a process, so the tables have a row for each process.
pub(crate) fn pid_of_type(session: &Session, ty: TypeIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.types.get(ty.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

pub(crate) fn pid_of_object(session: &Session, object: ObjectIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.objects.get(object.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

pub(crate) fn pid_of_site(session: &Session, site: SiteIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.sites.get(site.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}
