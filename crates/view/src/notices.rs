//! Notices: facts that the reader of numbers must know first.

use crate::documents::Notice;
use crate::filter_notes::{filtered, selected};
use crate::format;
use crate::names::missing_names;
use taskscope_analysis::{ShortReason, ShortTeam};
use taskscope_execution::{Doubt, ThreadKind, Uncertain};
use taskscope_session::{ProblemKind, Session};

/// The end of a program that failed: `exit code 2`, `signal 11`; `None` if it did not, or if that is not known.
pub(crate) fn failure(session: &Session) -> Option<String> {
    let run = session.run.as_ref()?;
    let exit_text = run.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}"));
    run.signal.map(|signal| format!("signal {signal}")).or(exit_text)
}

/// Everything that the reader of numbers must know first, in the order of weight.
pub fn notices(session: &Session, problems: &[taskscope_analysis::Problem]) -> Vec<Notice> {
    let mut all = Vec::new();
    let mut say = |name: &str, text: String| all.push(Notice::new(name, text));
    let (start, end) = session.execution.range();
    if let Some(how) = failure(session) {
        say("failed", format!("the program ended with {how}; the report is on the run until then"));
    }
    let unfinished: Vec<_> = session.streams.iter().filter(|s| !s.finished).collect();
    if !unfinished.is_empty() {
        let last = unfinished.iter().filter_map(|s| s.last).max();
        let kept = match last {
            Some(last) => {
                format!("everything up to {} is in the report", format::time(last.saturating_sub(start)))
            }
            None => "none of their events is in the report".to_string(),
        };
        let how = match session.run.as_ref().and_then(|run| run.signal) {
            Some(signal) => format!("the program was killed by signal {signal}"),
            None if session.run.as_ref().is_some_and(|run| run.exit_code.is_some()) => {
                "a process left without ending its streams (_exit), became another program (exec), or was killed"
                    .to_string()
            }
            None => "the program was killed, became another one (exec), or still runs".to_string(),
        };
        say(
            "unfinished-stream",
            format!(
                "{} of {} did not end: {how}; {kept}",
                unfinished.len(),
                format::counted(session.streams.len() as u64, "stream")
            ),
        );
    }
    if let Some(notice) = crate::cpus::more_workers(session) {
        say(&notice.name, notice.text);
    }
    for text in short_teams(session) {
        say("smaller-team", text);
    }
    if let Some(text) = selected(session) {
        say("selected", text);
    }
    if let Some(text) = filtered(session) {
        say("filtered", text.to_string());
    }
    if session.lacks_resting {
        say(
            "resting-not-recorded",
            "nOS-V was recorded without its idle states: a CPU that serves tasks and has none counts as scheduling; \
             ovni.level=3 separates such time"
                .to_string(),
        );
    }
    let lost = session.lost_events();
    if lost > 0 {
        say(
            "lost-events",
            format!("lost {}; the time around them counts as unknown", format::counted(lost, "event")),
        );
    }
    if session.clocks_too_far > 0 {
        let events = format::counted(session.clocks_too_far, "event");
        let longest = format::time(taskscope_session::MAX_RUN_NS);
        say(
            "clock-too-far",
            format!("the clocks of {events} are more than {longest} after the first; the stream is damaged"),
        );
    }
    let uncertain = &session.execution.uncertain;
    if !uncertain.is_empty() {
        let is_cpu =
            |part: &Uncertain| session.execution.threads[part.thread.index()].kind == ThreadKind::Cpu;
        let ns_of = |cpus: bool| -> u64 {
            uncertain.iter().filter(|part| is_cpu(part) == cpus).map(|part| part.end - part.start).sum()
        };
        // A CPU's uncertainty that stems from its thread is not counted again.
        let is_own = |part: &Uncertain| (part.doubt == Doubt::CpuShared) == is_cpu(part);
        let places = Doubt::ALL.map(|doubt| {
            let own = uncertain.iter().filter(|part| part.doubt == doubt && is_own(part));
            let text = match doubt {
                Doubt::StreamEnds => "where a stream ends before its thread",
                Doubt::DoesNotFit => "before an event that does not fit",
                Doubt::ClockGoesBack => "where a clock goes back",
                Doubt::CpuShared => "where several threads run on one CPU",
            };
            (own.count(), text)
        });
        let places: Vec<String> = (places.into_iter().filter(|(count, _)| *count > 0))
            .map(|(count, text)| format!("{} {text}", format::count(count as u64)))
            .collect();
        let times = [(ns_of(false), "threads"), (ns_of(true), "CPUs")].into_iter().filter(|(ns, _)| *ns > 0);
        let times: Vec<String> =
            times.map(|(ns, whose)| format!("{} of {whose}' time", format::time(ns))).collect();
        let text = match times.is_empty() {
            true => format!("times without length are uncertain: {}", places.join(", ")),
            false => format!("{} are marked as uncertain: {}", times.join(" and "), places.join(", ")),
        };
        say("uncertain", text);
    }
    for notice in session.run.iter().flat_map(|run| &run.notices) {
        say(&notice.name, notice.text.clone());
    }
    if let Some(problem) = &session.run_file_problem {
        say("run-file", problem.clone());
    }
    // The first of each kind, and the number of others.
    let mut by_kind: Vec<(&'static str, &taskscope_session::Problem, u64)> = Vec::new();
    for problem in session.problems.iter().filter(|p| p.kind != ProblemKind::UnfinishedStream) {
        match by_kind.iter_mut().find(|(name, _, _)| *name == problem.kind.name()) {
            Some((_, _, others)) => *others += problem.count.max(1),
            None => by_kind.push((problem.kind.name(), problem, 0)),
        }
    }
    for (name, first, others) in by_kind {
        let text = first.to_string();
        let text = text.strip_prefix(name).map_or(text.as_str(), |rest| rest.trim_start_matches(": "));
        let more = match others {
            0 => String::new(),
            others => format!(" (and {} more of this kind)", format::count(others)),
        };
        say(name, format!("{text}{more}"));
    }
    all.extend(problems.iter().map(|problem| Notice {
        // Late reports of releases are the rule with OMPT.
        minor: problem.name == "late-release" && problem.tally.max_ns.saturating_mul(100) < end - start,
        ..Notice::new(problem.name, problem_text(problem))
    }));
    let missing = missing_names(&session.places.missing()).into_iter();
    all.extend(missing.map(|text| Notice::new("missing-names", text)));
    all
}

/// Places of notices about teams at most.
const SHORT_TEAMS: usize = 3;

/// Regions with fewer threads than requested: by place, the largest shortage first.
fn short_teams(session: &Session) -> Vec<String> {
    let rows = taskscope_analysis::short_teams(&session.execution);
    let mut texts: Vec<String> = rows.iter().take(SHORT_TEAMS).map(|row| short_team(session, row)).collect();
    if let Some(last) = texts.last_mut().filter(|_| rows.len() > SHORT_TEAMS) {
        let others = (rows.len() - SHORT_TEAMS) as u64;
        last.push_str(&format!(" (and {} more of this kind)", format::count(others)));
    }
    texts
}

fn short_team(session: &Session, row: &ShortTeam) -> String {
    let why = match row.reason {
        ShortReason::ActiveLevels(1) => "nested parallelism is off (OMP_MAX_ACTIVE_LEVELS is 1)".to_owned(),
        ShortReason::ActiveLevels(levels) => format!(
            "no more than {levels} nested regions are active (OMP_MAX_ACTIVE_LEVELS); the region is nested deeper"
        ),
        ShortReason::ThreadLimit(limit) => {
            format!("the program may have {} (OMP_THREAD_LIMIT)", format::counted(limit.into(), "thread"))
        }
        ShortReason::Dynamic => "the runtime adjusts the sizes of teams (OMP_DYNAMIC is true)".to_owned(),
        ShortReason::Unknown => "the reason is not known".to_owned(),
    };
    let place = session.places.construct("parallel", row.site);
    let times = match row.count {
        1 => "once".to_owned(),
        count => format!("{} times", format::count(count)),
    };
    format!(
        "{place} asked for {} and had {}, {times}: {why}",
        format::counted(row.requested.into(), "thread"),
        row.team
    )
}

fn problem_text(problem: &taskscope_analysis::Problem) -> String {
    let times = |what: &str| match problem.tally.count {
        1 => format!("1 {what}"),
        count => format!("{} {what}s", format::count(count)),
    };
    let at_most = format::time(problem.tally.max_ns);
    match problem.name {
        "inverted-edge" => {
            format!(
                "{} of a region or task before its recorded creation, by {at_most} at most; taken as \
                 simultaneous",
                times("use")
            )
        }
        "time-runs-back" => {
            format!(
                "{} before the previous one of the thread, by {at_most} at most; moved to it",
                times("event")
            )
        }
        "late-release" => format!(
            "{} of locks reported after the next holder's start, by {at_most} at most; the next holder counts \
             from its start",
            times("release")
        ),
        "end-without-begin" => format!("{} without begin; ignored", times("end")),
        "ends-not-innermost" => {
            format!("{} not of the innermost section; what lay inside was ended too", times("end"))
        }
        "not-created" => format!("{} whose creation is not in the trace", times("task")),
        "short-payload" => format!("{} shorter than the fields; ignored", times("event")),
        "after-end" => format!("{} after the end of the thread; ignored", times("event")),
        "unknown-event" => format!("{} of no known model; ignored", times("event")),
        "instrumentation-misuse" => {
            format!("{} of the program's own instrumentation; `taskscope check` lists them", times("mistake"))
        }
        name => format!("{name}: {}", times("case")),
    }
}
