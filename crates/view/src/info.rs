//! Content of a trace per thread: completeness, clocks, losses.

use crate::cpus::ProcessCpus;
use crate::devices::Devices;
use crate::documents::Notice;
use crate::format::{Cell, columns, count, counted, fit, harmless, short_count, thread_words, time};
use anstyle::Style;
use indexmap::IndexMap;
use jiff::Timestamp;
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use taskscope_analysis::Problem;
use taskscope_execution::{Execution, NO_TIME, RuntimeRole, TaskIndex};
use taskscope_profile::Profile;
use taskscope_session::Session;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Widest column of names.
const MAX_NAME: usize = 60;

fn notices(session: &Session) -> Vec<Notice> {
    let anomalies = session.execution.anomalies.by_name.iter();
    let mut problems: Vec<Problem> = anomalies.map(|(name, tally)| Problem { name, tally: *tally }).collect();
    let late = session.execution.anomalies.late_releases;
    if late.count > 0 {
        problems.push(Problem { name: "late-release", tally: late });
    }
    crate::notices::notices(session, &problems)
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

/// Counts of entries from the selected threads.
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

/// Time range of the recorded data. A trace with only devices covers their operations.
fn covered(session: &Session) -> (u64, u64) {
    let (first, last) = session.execution.range();
    if last > first { (first, last) } else { session.devices.range() }
}

/// Content of a trace: completeness, clocks and losses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-info/1")]
pub struct Info {
    /// The trace directory.
    pub trace: String,
    /// The command that was recorded; null if unknown.
    pub command: Option<Vec<String>>,
    /// The host that recorded it.
    pub host: Option<String>,
    /// The launcher of the job, and its number of processes, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<String>,
    /// Variables of the environment that set up runtimes and libraries; missing if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<BTreeMap<String, String>>,
    /// Start of the program, nanoseconds since 1970 (UTC).
    pub start_unix_ns: Option<u64>,
    /// Nanoseconds from the start to the end of the program.
    pub run_wall_ns: Option<u64>,
    /// The program's exit code.
    pub exit_code: Option<i32>,
    /// The signal that killed the program.
    pub signal: Option<i32>,
    /// Whether every stream ended properly and could be read to its end.
    pub complete: bool,
    /// Nanoseconds from the first to the last event; of a trace of devices alone, of their operations.
    pub wall_ns: u64,
    /// The time of the first event on the trace's clock, nanoseconds.
    pub first_clock_ns: u64,
    /// Nodes.
    pub hosts: Vec<String>,
    /// The clocks in words.
    pub clocks: String,
    /// CPUs that the processes may use, such as `1 of 2 CPUs (0)`; null if unknown.
    pub cpus_text: Option<String>,
    /// The CPUs of each process of which they are known.
    pub process_cpus: Vec<ProcessCpus>,
    /// Number of events.
    pub events: u64,
    /// Number of events that were lost.
    pub lost_events: u64,
    /// Number of events by model.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub events_by_model: IndexMap<String, u64>,
    /// Number of explicit tasks.
    pub tasks: usize,
    /// Number of parallel regions.
    pub regions: usize,
    /// Number of shares of worksharing constructs.
    pub worksharing_shares: u64,
    /// Number of times that a lock was held.
    pub holds: u64,
    /// Number of locks.
    pub objects: usize,
    /// Number of dependences.
    pub dependences: u64,
    /// The program's modules.
    pub modules: Vec<ModuleFile>,
    /// The threads.
    pub threads: Vec<StreamInfo>,
    /// Facts that change how numbers are to be read.
    pub notices: Vec<Notice>,
    /// Device queues; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<Devices>,
}

/// A module of the recorded program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ModuleFile {
    /// Its file.
    pub path: String,
    /// Its build id, hexadecimal.
    pub build_id: String,
}

/// A thread and its stream.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StreamInfo {
    /// Its directory below the trace's root.
    pub stream: String,
    /// Its loom.
    pub loom: String,
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// The name that the program gave it; empty without one.
    pub name: String,
    /// Its words in text: `12/34 solver`.
    pub label: String,
    /// Its kind.
    pub kind: &'static str,
    /// The Nanos6 or nOS-V name of its role; null if not recorded.
    pub role: Option<&'static str>,
    /// Whether it is a worker.
    pub worker: bool,
    /// Whether its stream ended properly.
    pub finished: bool,
    /// Whether its stream could be read to its end.
    pub whole: bool,
    /// Whether the stream ended properly without the end of its thread.
    pub endless: bool,
    /// Its first event, nanoseconds since the start of the trace; null without one.
    pub first_ns: Option<u64>,
    /// Its last event, nanoseconds since the start of the trace; null without one.
    pub last_ns: Option<u64>,
    /// CPUs that it may use, such as `0-3,8`; null if not recorded per thread.
    pub cpus: Option<String>,
    /// Number of its events.
    pub events: u64,
    /// Number of its events that were lost.
    pub lost_events: u64,
    /// Nanoseconds that were added to its clock.
    pub clock_offset_ns: i64,
}

/// Processes of a profile with all that they recorded of themselves, and the sizes of its tree.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-profile-info/1")]
pub struct ProfileInfo {
    /// The file or directory.
    pub profile: String,
    /// The processes: texts by key.
    pub processes: Vec<BTreeMap<String, String>>,
    /// Number of modules.
    pub modules: usize,
    /// Number of call paths.
    pub paths: usize,
}

impl ProfileInfo {
    /// Describes a profile that was read from `path`.
    pub fn of(path: &Path, profile: &Profile) -> ProfileInfo {
        ProfileInfo {
            profile: path.display().to_string(),
            processes: profile.processes.clone(),
            modules: profile.modules.len(),
            paths: profile.tree.len(),
        }
    }

    /// The lines for a terminal.
    pub fn text(&self) -> String {
        let mut page = format!(
            "{}: profile of {}, {}, {}\n",
            harmless(&self.profile),
            counted(self.processes.len() as u64, "process"),
            counted(self.paths as u64, "call path"),
            counted(self.modules as u64, "module"),
        );
        for process in &self.processes {
            page.push('\n');
            for (key, value) in process {
                let _ = writeln!(page, "  {:<20} {}", Cell(harmless(key)), harmless(value));
            }
        }
        if let Some(note) = crate::call_paths::incomplete_profiles(&self.processes) {
            let _ = writeln!(page, "\n  {note}");
        }
        page
    }
}

/// Settings in a line, as a shell takes them.
pub(crate) fn settings_text(settings: &BTreeMap<String, String>) -> String {
    let shown = settings.iter().map(|(name, value)| match value.contains(char::is_whitespace) {
        true => format!("{name}='{value}'"),
        false => format!("{name}={value}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

impl Info {
    /// Describes an opened trace.
    pub fn of(session: &Session) -> Info {
        let execution = &session.execution;
        let (first, _) = execution.range();
        let (begin, end) = covered(session);
        let contents = Contents::of(execution);
        let since = |at: u64| (at != NO_TIME).then(|| at.saturating_sub(first));
        let run = session.run.as_ref();
        let endless: FxHashSet<_> = session.endless_threads().collect();
        let threads = session.streams.iter().map(|stream| {
            let thread = &execution.threads[stream.thread.index()];
            let process = &execution.processes[thread.process.index()];
            StreamInfo {
                stream: stream.path.clone(),
                loom: process.loom.to_string(),
                pid: process.pid,
                tid: thread.tid,
                name: thread.name.to_string(),
                label: thread_words(process, thread),
                kind: thread.kind.name(),
                role: thread.role.map(RuntimeRole::name),
                worker: thread.worker,
                finished: stream.finished,
                whole: stream.whole,
                endless: endless.contains(&stream.thread),
                first_ns: since(thread.first),
                last_ns: stream.last.and_then(since),
                cpus: crate::cpus::mask_of(execution, stream.thread),
                events: stream.events,
                lost_events: thread.lost_events,
                clock_offset_ns: stream.clock_offset_ns,
            }
        });
        let modules = execution.catalog.modules.iter();
        Info {
            trace: session.root.display().to_string(),
            command: run.map(|run| run.command.clone()),
            host: run.map(|run| run.host.clone()),
            launcher: run.and_then(|run| run.launcher.clone()),
            settings: run.and_then(|run| run.settings.clone()),
            start_unix_ns: run.and_then(|run| run.start_unix_ns),
            run_wall_ns: run.and_then(|run| run.wall_ns),
            exit_code: run.and_then(|run| run.exit_code),
            signal: run.and_then(|run| run.signal),
            complete: session.is_complete(),
            wall_ns: end.saturating_sub(begin),
            first_clock_ns: begin,
            hosts: hosts(session),
            clocks: clocks(session),
            cpus_text: crate::cpus::header(execution),
            process_cpus: crate::cpus::process_cpus(execution),
            events: session.events,
            lost_events: session.lost_events(),
            events_by_model: session
                .events_by_model
                .iter()
                .map(|(name, events)| (name.to_string(), *events))
                .collect(),
            tasks: execution.tasks.len(),
            regions: execution.regions.len(),
            worksharing_shares: contents.works,
            holds: contents.holds,
            objects: execution.catalog.objects.len(),
            dependences: contents.dependences,
            modules: modules
                .map(|module| ModuleFile { path: module.path.clone(), build_id: module.build_id.clone() })
                .collect(),
            threads: threads.collect(),
            notices: notices(session),
            devices: crate::devices::facts(session),
        }
    }

    /// The lines for a terminal, with ANSI styles.
    pub fn text(&self) -> String {
        let mut page = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(page, "  {DIM}{name:<10}{DIM:#} {}", harmless(value));
        };
        line("trace", &self.trace);
        // An imported file has no command.
        if let Some(command) = self.command.as_ref().filter(|command| !command.is_empty()) {
            let end = match (self.exit_code, self.signal) {
                (_, Some(signal)) => format!("   (killed by signal {signal})"),
                (Some(code), None) => format!("   (exit code {code})"),
                (None, None) => "   (its end is not known)".to_string(),
            };
            line("command", &format!("{}{end}", command.join(" ")));
            let when = self.start_unix_ns.map(|ns| format!("{} on ", date_and_time(ns)));
            let wall = self.run_wall_ns.map(|ns| format!(", {}", time(ns))).unwrap_or_default();
            let host = self.host.as_deref().unwrap_or_default();
            line("recorded", &format!("{}{host}{wall}", when.unwrap_or_default()));
            if let Some(launcher) = &self.launcher {
                line("launcher", launcher);
            }
            if let Some(settings) = self.settings.as_ref().filter(|settings| !settings.is_empty()) {
                line("settings", &settings_text(settings));
            }
        }
        line("covers", &time(self.wall_ns));
        let open = self.threads.iter().filter(|thread| !(thread.finished && thread.whole)).count();
        let complete = match open {
            0 if self.complete => "yes: every stream ended properly".to_string(),
            0 => "no: see the notes".to_string(),
            open => {
                format!("no: {open} of {} did not end properly", counted(self.threads.len() as u64, "stream"))
            }
        };
        line("complete", &complete);
        if let Some(cpus) = &self.cpus_text {
            line("CPUs", cpus);
        }
        line("clocks", &self.clocks);
        line("lost", &counted(self.lost_events, "event"));
        let models = self.events_by_model.iter().map(|(name, events)| format!("{name} {}", count(*events)));
        let models = models.collect::<Vec<_>>().join(", ");
        let models = if models.is_empty() { models } else { format!("   ({models})") };
        line("events", &format!("{}{models}", count(self.events)));
        line(
            "contents",
            &format!(
                "{}, {}, {}, {} of {}, {}{}",
                counted(self.tasks as u64, "task"),
                counted(self.regions as u64, "parallel region"),
                counted(self.worksharing_shares, "worksharing share"),
                counted(self.holds, "hold"),
                counted(self.objects as u64, "lock"),
                counted(self.dependences, "dependence"),
                match self.devices.as_ref().map_or(0, Devices::recorded) {
                    0 => String::new(),
                    operations => format!(", {}", counted(operations, "device operation")),
                },
            ),
        );
        self.write_threads(&mut page);
        if !self.notices.is_empty() {
            page.push('\n');
        }
        for notice in &self.notices {
            let _ = writeln!(page, "  note {}: {}", harmless(&notice.name), harmless(&notice.text));
        }
        page + &self.devices.as_ref().map(Devices::text).unwrap_or_default()
    }

    /// A row for each stream.
    fn write_threads(&self, page: &mut String) {
        if self.threads.is_empty() {
            return;
        }
        let longest = self.threads.iter().map(|thread| columns(&thread.label)).max().unwrap_or(0);
        let wide = (longest + 1).clamp(24, MAX_NAME);
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<wide$}{:<10}{:>12}{:>12}{:>12}{:>10}  {BOLD:#}",
            "process/thread", "kind", "from", "to", "events", "lost"
        );
        for thread in &self.threads {
            let at = |at: Option<u64>| at.map_or("–".to_string(), time);
            let end = match (thread.finished, thread.whole) {
                (true, true) if thread.endless => "has no end",
                (true, true) => "",
                (false, _) => "did not end",
                (true, false) => "damaged",
            };
            let row = format!(
                "  {:<wide$}{:<10}{:>12}{:>12}{:>12}{:>10}  {end}",
                Cell(fit(&thread.label, wide - 1)),
                thread.role.unwrap_or(thread.kind),
                at(thread.first_ns),
                at(thread.last_ns),
                short_count(thread.events),
                count(thread.lost_events),
            );
            let _ = writeln!(page, "{}", row.trim_end());
        }
    }
}

/// `2026-11-21 12:34:56 UTC` of nanoseconds since 1970.
pub(crate) fn date_and_time(unix_ns: u64) -> String {
    // Within the range of dates, which ends in the year 9999.
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::date_and_time;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_and_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date_and_time(951_782_400_000_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date_and_time(u64::MAX), "2554-07-21 23:34:33 UTC");
        assert_eq!(date_and_time(1_795_263_507_792_795_348), "2026-11-21 12:18:27 UTC");
    }
}
