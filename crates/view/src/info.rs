//! What is inside a trace, how complete, which clocks, what was lost: for every thread.

use crate::format::{count, counted, harmless, short_count, thread_words, time};
use crate::words::{self, NoticeText};
use anstyle::Style;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::Problem;
use taskscope_execution::{Execution, NO_TIME, RuntimeRole, TaskIndex};
use taskscope_session::Session;

/// Name and version of the JSON form.
pub const SCHEMA: &str = "taskscope-info/1";

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

fn notices(session: &Session) -> Vec<NoticeText> {
    let anomalies = session.execution.anomalies.by_name.iter();
    let mut problems: Vec<Problem> = anomalies.map(|(name, tally)| Problem { name, tally: *tally }).collect();
    let late = session.execution.anomalies.late_releases;
    if late.count > 0 {
        problems.push(Problem { name: "late-release", tally: late });
    }
    words::notices(session, &problems)
}

fn hosts(session: &Session) -> Vec<String> {
    let mut hosts: Vec<String> = (session.execution.processes.iter())
        .map(|process| process.loom.split('.').next().unwrap_or_default().to_string())
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

pub(crate) fn clocks(session: &Session) -> String {
    let hosts = hosts(session);
    let offsets = session.clock_offsets.as_ref();
    let known =
        hosts.iter().filter(|host| offsets.is_some_and(|offsets| offsets.offset_ns(host).is_some())).count();
    match (hosts.len(), known) {
        (0 | 1, _) => "one host, CLOCK_MONOTONIC".to_string(),
        (hosts, 0) => format!("{hosts} hosts, not corrected"),
        (hosts, known) if known < hosts => format!("{hosts} hosts, not all corrected by clock-offsets.txt"),
        (hosts, _) => format!("{hosts} hosts, corrected by clock-offsets.txt"),
    }
}

/// As text with ANSI styles.
pub fn text(session: &Session) -> String {
    let mut page = String::new();
    let execution = &session.execution;
    let (first, _) = execution.range();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(page, "  {DIM}{name:<10}{DIM:#} {}", harmless(value));
    };
    line("trace", &session.root.display().to_string());
    if let Some(run) = &session.run {
        let end = match (run.exit_code, run.signal) {
            (_, Some(signal)) => format!("   (killed by signal {signal})"),
            (Some(code), None) => format!("   (exit code {code})"),
            (None, None) => "   (its end is not known)".to_string(),
        };
        line("command", &format!("{}{end}", run.command.join(" ")));
        let when = run.start_unix_ns.map(|ns| format!("{} on ", date_and_time(ns)));
        let wall = run.wall_ns.map(|ns| format!(", {}", time(ns))).unwrap_or_default();
        line("recorded", &format!("{}{}{wall}", when.unwrap_or_default(), run.host));
    }
    let (begin, end) = covered(session);
    line("covers", &time(end.saturating_sub(begin)));
    let open = session.streams.iter().filter(|s| !(s.finished && s.whole)).count();
    let complete = match open {
        0 if session.is_complete() => "yes: every stream ended properly".to_string(),
        0 => "no: see the notes".to_string(),
        open => {
            format!("no: {open} of {} did not end properly", counted(session.streams.len() as u64, "stream"))
        }
    };
    line("complete", &complete);
    if let Some(cpus) = crate::cpus::header(execution) {
        line("CPUs", &cpus);
    }
    line("clocks", &clocks(session));
    line("lost", &counted(session.lost_events(), "event"));
    let models: Vec<String> =
        session.events_by_model.iter().map(|(name, events)| format!("{name} {}", count(*events))).collect();
    let models = if models.is_empty() { String::new() } else { format!("   ({})", models.join(", ")) };
    line("events", &format!("{}{models}", count(session.events)));
    let contents = Contents::of(execution);
    line(
        "contents",
        &format!(
            "{}, {}, {}, {} of {}, {}{}",
            counted(execution.tasks.len() as u64, "task"),
            counted(execution.regions.len() as u64, "parallel region"),
            counted(contents.works, "worksharing share"),
            counted(contents.holds, "hold"),
            counted(execution.catalog.objects.len() as u64, "lock"),
            counted(contents.dependences, "dependence"),
            match session.devices.operations() {
                0 => String::new(),
                operations => format!(", {}", counted(operations, "device operation")),
            },
        ),
    );
    if !session.streams.is_empty() {
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<24}{:<10}{:>12}{:>12}{:>12}{:>10}  {BOLD:#}",
            "process/thread", "kind", "from", "to", "events", "lost"
        );
    }
    let endless: FxHashSet<_> = session.endless_threads().collect();
    for stream in &session.streams {
        let thread = &execution.threads[stream.thread.index()];
        let process = &execution.processes[thread.process.index()];
        let since = |at: u64| if at == NO_TIME { "–".to_string() } else { time(at.saturating_sub(first)) };
        let end = match (stream.finished, stream.whole) {
            (true, true) if endless.contains(&stream.thread) => "has no end",
            (true, true) => "",
            (false, _) => "did not end",
            (true, false) => "damaged",
        };
        let row = format!(
            "  {:<24}{:<10}{:>12}{:>12}{:>12}{:>10}  {end}",
            // Negative where the metadata is damaged.
            thread_words(process, thread),
            thread.role_name(),
            since(thread.first),
            stream.last.map_or("–".to_string(), since),
            short_count(stream.events),
            count(thread.lost_events),
        );
        let _ = writeln!(page, "{}", row.trim_end());
    }
    let notices = notices(session);
    if !notices.is_empty() {
        page.push('\n');
    }
    for notice in notices {
        let _ = writeln!(page, "  note {}: {}", harmless(&notice.name), harmless(&notice.text));
    }
    page
}

/// How much there is of the threads that are asked about.
struct Contents {
    works: u64,
    holds: u64,
    dependences: u64,
}

impl Contents {
    fn of(execution: &Execution) -> Contents {
        let creator = |task: TaskIndex| execution.tasks.creator.get(task.index()).copied();
        let is_asked = |task| creator(task).is_none_or(|creator| execution.is_selected(creator));
        Contents {
            works: execution.works.iter().filter(|work| execution.is_selected(work.thread)).count() as u64,
            holds: execution.holds.iter().filter(|hold| execution.is_selected(hold.thread)).count() as u64,
            dependences: execution.dependences.iter().filter(|row| is_asked(row.task)).count() as u64,
        }
    }
}

/// From when to when there is something: a trace of devices alone covers what those did.
fn covered(session: &Session) -> (u64, u64) {
    let (first, last) = session.execution.range();
    if last > first { (first, last) } else { session.devices.range() }
}

/// As JSON.
pub fn json(session: &Session) -> Value {
    let execution = &session.execution;
    let (first, _) = execution.range();
    let (begin, end) = covered(session);
    let contents = Contents::of(execution);
    let since = |at: u64| if at == NO_TIME { Value::Null } else { at.saturating_sub(first).into() };
    json!({
        "schema": SCHEMA,
        "trace": session.root.display().to_string(),
        "command": session.run.as_ref().map(|run| &run.command),
        "host": session.run.as_ref().map(|run| &run.host),
        "start_unix_ns": session.run.as_ref().and_then(|run| run.start_unix_ns),
        "run_wall_ns": session.run.as_ref().and_then(|run| run.wall_ns),
        "exit_code": session.run.as_ref().and_then(|run| run.exit_code),
        "signal": session.run.as_ref().and_then(|run| run.signal),
        "complete": session.is_complete(),
        "wall_ns": end.saturating_sub(begin),
        "first_clock_ns": begin,
        "hosts": hosts(session),
        "clocks": clocks(session),
        "process_cpus": crate::cpus::json(execution),
        "events": session.events,
        "lost_events": session.lost_events(),
        "events_by_model": session.events_by_model.iter()
            .map(|(name, events)| (name.to_string(), Value::from(*events)))
            .collect::<serde_json::Map<_, _>>(),
        "tasks": execution.tasks.len(),
        "regions": execution.regions.len(),
        "worksharing_shares": contents.works,
        "holds": contents.holds,
        "objects": execution.catalog.objects.len(),
        "dependences": contents.dependences,
        "modules": execution.catalog.modules.iter()
            .map(|module| json!({ "path": module.path, "build_id": module.build_id })).collect::<Vec<_>>(),
        "threads": session.streams.iter().map(|stream| {
            let thread = &execution.threads[stream.thread.index()];
            let process = &execution.processes[thread.process.index()];
            json!({
                "stream": stream.path,
                "loom": process.loom,
                "pid": process.pid,
                "tid": thread.tid,
                "name": thread.name,
                "kind": thread.kind.name(),
                "role": thread.role.map(RuntimeRole::name),
                "worker": thread.worker,
                "finished": stream.finished,
                "whole": stream.whole,
                "first_ns": since(thread.first),
                "last_ns": stream.last.map(since),
                "cpus": crate::cpus::mask_of(execution, stream.thread),
                "events": stream.events,
                "lost_events": thread.lost_events,
                "clock_offset_ns": stream.clock_offset_ns,
            })
        }).collect::<Vec<_>>(),
        "notices": notices(session).into_iter()
            .map(|notice| json!({ "name": notice.name, "text": notice.text })).collect::<Vec<_>>(),
    })
}

/// `2026-11-21 12:34:56 UTC` of nanoseconds since 1970.
pub(crate) fn date_and_time(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01 in years that begin in March, so that the leap day comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::date_and_time;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_and_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date_and_time(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date_and_time(1_795_263_507_792_795_348), "2026-11-21 12:18:27 UTC");
    }
}
