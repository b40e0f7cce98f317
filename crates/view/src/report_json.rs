//! The report as JSON; its schema is `docs/report.schema.json`.

use crate::hang::HangWords;
use crate::words;
use serde_json::{Map, Value, json};
use taskscope_analysis::{Analysis, ByState, Efficiency, Load, Problem};
use taskscope_execution::{NO_TIME, ObjectIndex, OsSource, RuntimeRole, SiteIndex, State, TypeIndex};
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
        "efficiency": efficiency_row(&analysis.efficiency),
        "ranks": crate::ranks::ranks(session, analysis),
        "mpi_calls": crate::mpi_calls::rows(session),
        "causes": causes.into_iter()
            .map(|(state, place, ns)| json!({ "cause": state.name(), "ns": ns, "where": named(&place) }))
            .collect::<Vec<_>>(),
        "blame": blame.into_iter()
            .map(|(state, kind, place, ns)| {
                json!({ "cause": state.name(), "ns": ns, "blamed": kind, "where": named(&place) })
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

/// Null where the program does not tell when tasks are able to run.
fn starvation(session: &Session, analysis: &Analysis) -> Value {
    let found = &analysis.starvation;
    if found.waits == 0 {
        return Value::Null;
    }
    let by = found.by.iter().filter(|row| row.waited_ns > 0).map(|row| {
        let thread = &session.execution.threads[row.longest_on.index()];
        json!({
            "where": named(&session.places.type_name(row.ty)),
            "waited_ns": row.waited_ns,
            "pieces": row.pieces,
            "longest_ns": row.longest_ns,
            "longest_task": session.execution.tasks.number(row.longest_task),
            "longest_pid": session.execution.processes[thread.process.index()].pid,
            "longest_tid": thread.tid,
            "longest_thread_name": thread.name,
            "longest_at_ns": row.longest_at.saturating_sub(session.execution.range().0),
        })
    });
    json!({
        "waited_ns": found.waited_ns,
        "waits": found.waits,
        "longest_wait_ns": found.longest_ns,
        "by": by.collect::<Vec<_>>(),
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
        "kind": finding.kind.name(),
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

fn by_state(times: &ByState) -> Value {
    Value::Object(times.iter().map(|(state, ns)| (state.name().to_string(), ns.into())).collect())
}

/// Stretches that are listed; the longest ones.
const LISTED_UNCERTAIN: usize = 100;

/// Where what is shown need not be what was.
fn uncertain(session: &Session) -> Value {
    let execution = &session.execution;
    let start = execution.range().0;
    let mut longest: Vec<_> = execution.uncertain.iter().collect();
    longest.sort_by_key(|part| (std::cmp::Reverse(part.end - part.start), part.start));
    let listed = longest.iter().take(LISTED_UNCERTAIN).map(|part| {
        let thread = &execution.threads[part.thread.index()];
        json!({
            "process": execution.processes[thread.process.index()].pid,
            "thread": thread.tid,
            "thread_name": thread.name,
            "kind": thread.kind.name(),
            "start_ns": part.start.saturating_sub(start),
            "end_ns": part.end.saturating_sub(start),
            "why": part.doubt.name(),
        })
    });
    json!({
        "count": longest.len(),
        "ns": longest.iter().map(|part| part.end - part.start).sum::<u64>(),
        "longest": listed.collect::<Vec<_>>(),
    })
}

fn incomplete(session: &Session) -> Vec<Value> {
    let start = session.execution.range().0;
    let open = session.streams.iter().filter(|stream| !(stream.finished && stream.whole));
    open.map(|stream| {
        json!({
            "stream": stream.path,
            "finished": stream.finished,
            "whole": stream.whole,
            "events": stream.events,
            "kept_until_ns": stream.last.map(|last| last.saturating_sub(start)),
        })
    })
    .collect()
}

fn efficiency_row(efficiency: &Efficiency) -> Value {
    json!({
        "parallel": efficiency.parallel,
        "load_balance": efficiency.load_balance,
        "cpu_availability": efficiency.cpu_availability,
        "serialization": efficiency.serialization,
        "device_offload": efficiency.device_offload,
        "blocked": efficiency.blocked,
        "runtime_overhead": efficiency.runtime_overhead,
        "known": efficiency.known,
        "useful_ns": efficiency.useful_ns,
        "load_balance_loss_ns": efficiency.load_balance_ns,
        "cpu_availability_loss_ns": efficiency.cpu_availability_ns,
        "serialization_loss_ns": efficiency.serialization_ns,
        "device_offload_loss_ns": efficiency.device_offload_ns,
        "blocked_loss_ns": efficiency.blocked_ns,
        "runtime_overhead_loss_ns": efficiency.runtime_overhead_ns,
        "unknown_ns": efficiency.unknown_ns,
        "mpi_start_ns": efficiency.start_ns,
    })
}

fn threads(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let start = session.execution.range().0;
    let since = |at: u64| if at == NO_TIME { 0 } else { at.saturating_sub(start) };
    let execution = &session.execution;
    let total = |times: Vec<(u64, u64)>| times.iter().map(|(start, end)| end - start).sum::<u64>();
    let rows = analysis.ledger.threads.iter().map(|row| {
        let thread = &execution.threads[row.thread.index()];
        let process = &execution.processes[thread.process.index()];
        let known_off = thread.os_source != OsSource::Unknown;
        json!({
            "loom": process.loom,
            "pid": process.pid,
            "tid": thread.tid,
            "name": thread.name,
            "kind": thread.kind.name(),
            "role": thread.role.map(RuntimeRole::name),
            "worker": thread.worker,
            "ended": thread.ended,
            "first_ns": since(thread.first),
            "last_ns": since(thread.last),
            "events": thread.events,
            "lost_events": thread.lost_events,
            "cpus": crate::cpus::mask_of(execution, row.thread),
            "off_cpu": thread.os_source.name(),
            "on_cpu_ns": thread.os_totals.on_cpu_ns,
            "run_delay_ns": thread.os_totals.run_delay_ns,
            "runnable_ns": known_off.then(|| total(execution.runnable_times(row.thread))),
            "stopped_ns": known_off.then(|| execution.stopped_ns(row.thread)),
            "blocked_ns": known_off.then(|| total(execution.blocked_times(row.thread))),
            "states": by_state(&row.by_state),
        })
    });
    rows.collect()
}

fn task_types(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let places = &session.places;
    let rows = analysis.task_types.iter().map(|row| {
        let mut value = json!({
            "name": places.type_name(row.ty),
            "pid": pid_of_type(session, row.ty),
            "created": row.created,
            "began": row.began,
            "body_ns": row.body_ns,
            "blocked_ns": row.blocked_ns,
            "mean_ns": row.mean_ns(),
            "median_ns": row.median_ns,
            "p95_ns": row.p95_ns,
            "max_ns": row.max_ns,
            "queued_ns": row.queued_ns,
        });
        if let Some(value) = value.as_object_mut() {
            add_code(value, places, places.type_site(row.ty));
        }
        value
    });
    rows.collect()
}

/// Types and sites belong to a process, so the tables have a row for each process.
pub(crate) fn pid_of_type(session: &Session, ty: TypeIndex) -> Option<i64> {
    let execution = &session.execution;
    let process = execution.catalog.types.get(ty.index())?.process;
    execution.processes.get(process.index()).map(|process| process.pid)
}

fn address_of_object(session: &Session, object: ObjectIndex) -> Option<u64> {
    session.execution.catalog.objects.get(object.index()).map(|row| row.id)
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

fn add_load(value: &mut Value, load: &Load) {
    if let Some(value) = value.as_object_mut() {
        value.insert("executions".into(), load.executions.into());
        value.insert("shares".into(), load.shares.into());
        value.insert("busy_ns".into(), load.busy_ns.into());
        value.insert("imbalance_ns".into(), load.imbalance_ns().into());
        value.insert("load_balance".into(), load.balance().into());
    }
}

fn worksharing(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let places = &session.places;
    let rows = analysis.works.iter().map(|row| {
        let name = places.type_name(row.ty);
        let mut value = json!({ "name": name, "pid": pid_of_type(session, row.ty), "chunks": row.chunks, "iterations": row.iterations });
        add_load(&mut value, &row.load);
        if let Some(value) = value.as_object_mut() {
            add_code(value, places, places.type_site(row.ty));
        }
        value
    });
    rows.collect()
}

fn regions(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let places = &session.places;
    let rows = analysis.regions.iter().map(|row| {
        let name = places.construct("parallel", row.site);
        let mut value =
            json!({ "name": name, "pid": pid_of_site(session, row.site), "duration_ns": row.duration_ns });
        add_load(&mut value, &row.load);
        if let Some(value) = value.as_object_mut() {
            add_code(value, places, row.site);
        }
        value
    });
    rows.collect()
}

fn locks(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let places = &session.places;
    let rows = analysis.locks.iter().map(|row| {
        let state = match places.object_kind(row.object) {
            "critical" => State::CriticalWait,
            "ordered" => State::OrderedWait,
            _ => State::LockWait,
        };
        json!({
            "object": places.object_name(row.object),
            "pid": pid_of_object(session, row.object),
            "address": address_of_object(session, row.object),
            "acquisitions": row.acquisitions,
            "held_ns": row.held_ns,
            "longest_hold_ns": row.longest_hold_ns,
            "waits": row.waits,
            "waited_ns": row.waited_ns,
            "unheld_ns": row.unheld_ns,
            "holders": row.holders.iter().map(|holder| {
                let place = taskscope_execution::Place::site(holder.site);
                let mut value = json!({ "where": named(&places.name(state, place)), "ns": holder.ns });
                if let Some(value) = value.as_object_mut() {
                    add_code(value, places, holder.site);
                }
                value
            }).collect::<Vec<_>>(),
        })
    });
    rows.collect()
}
