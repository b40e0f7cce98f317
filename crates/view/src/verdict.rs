//! The verdict on a run, and each finding's advice and evidence.

use crate::findings::Whose;
use crate::format::{Unit, percent, time};
use crate::named_finding::NamedFinding;
use crate::names::rank_or_process;
use taskscope_cause::{Blamed, Cause, Pattern, Runtime, State};

/// Default share of capacity below which findings are summed in one line.
pub const FLOOR: f64 = 0.01;

/// Share of capacity below which a loss needs no mending.
pub(crate) const SMALL_LOSS: f64 = 0.05;

/// Victims that the evidence names, and the share of the finding from which on.
const MAX_VICTIMS: usize = 4;
const VICTIM_PERCENT: u64 = 5;

/// The advice: one sentence, in the runtime's terms if available.
pub(crate) fn remedy(finding: &NamedFinding, runtime: Option<Runtime>) -> &'static str {
    let text = finding.deciding();
    first_sentence(runtime.and_then(|runtime| text.advice_for(runtime)).unwrap_or(text.helps))
}

/// A text up to its first full stop that ends a sentence; settings have full stops in their names.
pub(crate) fn first_sentence(text: &str) -> &str {
    let ends = |at: &usize| {
        let rest = &text[at + 2..];
        rest.starts_with(|next: char| !next.is_lowercase())
    };
    text.match_indices(". ").map(|(at, _)| at).find(ends).map_or(text, |at| &text[..=at])
}

/// The states of the lost time, and the evidence for the cause; empty for a hang, as its waits are the
/// evidence, and for work, which is not lost.
pub(crate) fn evidence(finding: &NamedFinding) -> String {
    if finding.hang.is_some() || finding.cause == Cause::Work {
        return String::new();
    }
    let mut parts: Vec<String> = Vec::new();
    let mut victims: Vec<_> = finding.victims.iter().collect();
    victims.sort_by_key(|(state, ns)| (std::cmp::Reverse(*ns), *state));
    let is_large = |ns: u64| u128::from(ns) * 100 >= u128::from(finding.ns) * u128::from(VICTIM_PERCENT);
    // Time taken by the system is its own evidence.
    let is_other = |state: State| finding.blamed != Blamed::System || !state.cause().is_in(finding.cause);
    let named: Vec<String> = (victims.iter())
        .filter(|(state, ns)| is_large(*ns) && is_other(*state))
        .take(MAX_VICTIMS)
        .map(|(state, ns)| format!("{} {}", state.label(), time(*ns)))
        .collect();
    if !named.is_empty() {
        parts.push(format!("lost in {}", named.join(", ")));
    }
    if finding.starting_ns > 0 && finding.cause != Cause::MpiStart {
        parts.push(format!("{} of it while ranks start or end MPI", time(finding.starting_ns)));
    }
    if finding.pattern == Some(Pattern::FreeLock) && is_large(finding.free_ns) {
        parts.push(format!("the lock was free in {} of it", percent(finding.free_ns, finding.ns)));
    }
    // Who releases a lock does not run alone.
    if is_large(finding.sole_ns) && finding.pattern != Some(Pattern::FreeLock) {
        // The runtime's own time is a loss by itself: there may be another cause only for the waits.
        let own = finding.own_ns();
        let alone = percent(finding.sole_ns, finding.ns.saturating_sub(own));
        parts.push(format!("sole cause in {alone} of {}", if own > 0 { "the waits" } else { "it" }));
    }
    if finding.culprits.len() > 1 && !finding.place.is_empty() {
        parts.push(format!("{} places of this name", finding.culprits.len()));
    }
    parts.join("; ")
}

/// A finding's cause as a noun, for the verdict.
fn subject(finding: &NamedFinding) -> String {
    let at = |words: &str| match finding.place.as_str() {
        "" => words.to_owned(),
        // Time outside of constructs is named by the one before it.
        place if place.starts_with("after ") => format!("{words} {place}"),
        place => format!("{words} in {place}"),
    };
    match (finding.pattern, finding.blamed) {
        (Some(Pattern::Stopped), _) => "signals that stopped the process".to_owned(),
        (Some(Pattern::Throttled), _) => "the CPU limit of the control group".to_owned(),
        (Some(Pattern::HostBound), _) => format!("a host that submits nothing to {}", finding.place),
        (Some(Pattern::TransferBound), _) => format!("copies, for which {} waits", finding.place),
        (Some(Pattern::DependencyBound), _) => {
            format!("events or the driver, for which {} waits", finding.place)
        }
        (Some(Pattern::TooFine), _) => format!("tasks that are too small: {}", finding.place),
        (Some(Pattern::NoTasks), _) => "time without a task to start".to_owned(),
        (Some(Pattern::ShortRegions), _) => at("parallel regions that are too short"),
        (Some(Pattern::NoWork), _) => "waits for requests, timers or input".to_owned(),
        (Some(Pattern::HandOver), _) => at("waking threads"),
        (Some(Pattern::ThreadsEnd), _) => "the end of the runtime's threads".to_owned(),
        (Some(Pattern::FreeLock), _) => at("a lock that is mostly free"),
        (Some(Pattern::OutsideTeam), _) => match finding.place.as_str() {
            "" => "workers outside of a team".to_owned(),
            place => format!("workers outside of the team that runs {place}"),
        },
        (_, Blamed::Serial) => match finding.place.as_str() {
            "" => "serial code".to_owned(),
            place => place.to_owned(),
        },
        (Some(Pattern::Ordered), _) => at("turns of an ordered construct"),
        (_, Blamed::Holder) => at("a lock that is held"),
        (_, Blamed::Waker) => at("waiting for a wake"),
        (_, Blamed::Task) => at("too few tasks at a time,"),
        (_, Blamed::Loop) => at("uneven work"),
        (_, Blamed::Single) => at("work of one thread"),
        (_, Blamed::Creation) => at("creation of tasks"),
        (_, Blamed::Code) if finding.cause == Cause::Blocked => at("blocking calls"),
        (_, Blamed::Code) if finding.cause.is_in(Cause::Blocked) => at(finding.cause.label()),
        (_, Blamed::Code) if finding.cause == Cause::Work => at("code of the program"),
        (_, Blamed::Code) => at("uneven work of region code"),
        (_, Blamed::Operation) => at("waiting for a device"),
        (_, Blamed::Rank) => match finding.late {
            Some(late) => format!("{}, which comes late", rank_or_process(late.rank, late.pid)),
            None => "a process that comes late".to_owned(),
        },
        (_, Blamed::Call | Blamed::Link) if finding.cause == Cause::MpiStart => {
            "starting and ending MPI".to_owned()
        }
        (_, Blamed::Call | Blamed::Link) => at("communication"),
        (_, Blamed::Runtime) => {
            let label = finding.culprits.first().map_or(finding.cause.label(), |(state, _)| state.label());
            match finding.has_waits() {
                true => at(&format!("{label} and waiting meanwhile")),
                false => at(label),
            }
        }
        (_, Blamed::System) if finding.cause == Cause::CpuOversubscribed => {
            "more workers than CPUs".to_owned()
        }
        (_, Blamed::System) if finding.cause == Cause::Cpu => "CPUs that processes share".to_owned(),
        (_, Blamed::System) => "other code on the CPUs".to_owned(),
        (_, Blamed::Nobody) if finding.cause == Cause::Unknown => {
            "activities that are not recorded".to_owned()
        }
        (_, Blamed::Nobody) if finding.cause == Cause::Lock => at("waiting for a lock"),
        (_, Blamed::Nobody) => match finding.absence() {
            Some(Cause::WaitStart) => at("workers that had not started"),
            Some(_) => at("workers that had ended"),
            None => at("waiting while no worker runs code"),
        },
    }
}

/// A finding as a noun with its place, unlike [`subject`] also where one cause is at several places.
pub(crate) fn label(finding: &NamedFinding) -> String {
    match (subject(finding), finding.place.as_str()) {
        (subject, "") => subject,
        (subject, place) if subject.contains(place) => subject,
        (subject, place) => format!("{subject}: {place}"),
    }
}

/// The total of a verdict, in nanoseconds of workers or device queues.
#[derive(Clone, Copy)]
pub(crate) struct Total {
    /// All.
    pub capacity_ns: u64,
    /// The part in which ranks start or end MPI; in no efficiency.
    pub starting_ns: u64,
    /// The part that is lost.
    pub lost_ns: u64,
    /// The part of which the reason is not known.
    pub unknown_ns: u64,
}

/// The verdict on workers in one sentence; `None` if they have no time.
pub(crate) fn verdict_on_workers(total: Total, findings: &[NamedFinding]) -> Option<String> {
    if findings.iter().any(|finding| finding.hang.is_some()) {
        return Some("The run hung: F1 names the waits that cannot end.".to_owned());
    }
    verdict(total, Whose::Workers, findings)
}

/// The verdict on device queues in one sentence; `None` if they have no time.
pub(crate) fn verdict_on_queues(total: Total, findings: &[NamedFinding]) -> Option<String> {
    verdict(total, Whose::Queues, findings)
}

fn verdict(total: Total, whose: Whose, findings: &[NamedFinding]) -> Option<String> {
    let Total { capacity_ns, starting_ns, lost_ns: lost, unknown_ns: unknown } = total;
    let base = capacity_ns.saturating_sub(starting_ns);
    if base == 0 {
        return None;
    }
    let unit = Unit::for_total(capacity_ns);
    let share_of_base = |ns: u64| format!("{} ({:.0} %)", unit.show(ns), ns as f64 / base as f64 * 100.0);
    let but_start = if starting_ns > 0 { " outside of the start and end of MPI" } else { "" };
    let all = format!("{} {}{but_start}", unit.show(base), whose.unit(unit));
    let (are_lost, not_known) = match whose {
        Whose::Queues => ("idle", "it is not known why queues were idle in"),
        _ => ("lost", "it is not known what ran in"),
    };
    if unknown > base / 2 {
        return Some(format!("Of {all}, {not_known} {}.", share_of_base(unknown)));
    }
    if (lost as f64) < base as f64 * SMALL_LOSS {
        let share = percent(base - lost, base);
        return Some(match whose {
            Whose::Queues => format!("Nothing to mend: a device works in {share} of {all}."),
            _ => format!("Nothing to mend: {share} of {all} are useful."),
        });
    }
    // As in the efficiencies, without the start of MPI: the first of the largest.
    let counted = |finding: &&NamedFinding| finding.ns - finding.starting_ns;
    let is_outside = |finding: &&NamedFinding| finding.pattern == Some(Pattern::NoWork);
    let outside: u64 = findings.iter().filter(is_outside).map(|finding| counted(&finding)).sum();
    if outside as f64 >= base as f64 * SMALL_LOSS {
        let (idle, lost) = (share_of_base(outside), share_of_base(lost.saturating_sub(outside)));
        let waits = "the program waits for requests, timers or input";
        return Some(format!(
            "There is nothing to do in {idle} of {all}: {waits}; {lost} are lost otherwise."
        ));
    }
    let most = findings.iter().rev().filter(|finding| finding.cause != Cause::MpiStart).max_by_key(counted);
    // Shares of findings are of the whole capacity.
    let amount = |ns: u64| if starting_ns > 0 { unit.show(ns) } else { share_of_base(ns) };
    let most = most.map(|finding| format!("; most to {}: {}", subject(finding), amount(counted(&finding))));
    Some(format!("Of {all}, {} are {are_lost}{}.", share_of_base(lost), most.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::{ByState, Confidence};

    #[test]
    fn the_sole_cause_of_a_finding_of_the_runtime_is_a_share_of_its_waits() {
        let loss = (Cause::RuntimeSchedule, Blamed::Runtime);
        let mut finding = NamedFinding::new(loss, (State::Scheduling, String::new()), 2000, Confidence::High);
        finding.victims.add(State::Scheduling, 1200);
        finding.victims.add(State::Idle, 800);
        finding.sole_ns = 600;
        let waits = evidence(&finding);
        assert_eq!(waits, "lost in scheduling 1.20 µs, idle 800 ns; sole cause in 75.0 % of the waits");
        finding.victims = ByState::default();
        finding.victims.add(State::Idle, 2000);
        assert_eq!(evidence(&finding), "lost in idle 2.00 µs; sole cause in 30.0 % of it");
    }

    #[test]
    fn waits_for_requests_are_not_called_lost() {
        let of = |pattern: Option<Pattern>| {
            let loss = (Cause::Wait, Blamed::Nobody);
            let finding = NamedFinding::new(loss, (State::Idle, String::new()), 900, Confidence::Medium);
            let total = Total { capacity_ns: 1000, starting_ns: 0, lost_ns: 950, unknown_ns: 0 };
            verdict_on_workers(total, &[NamedFinding { pattern, ..finding }]).unwrap()
        };
        let text = of(Some(Pattern::NoWork));
        assert!(text.contains("(90 %) of ") && text.contains("the program waits for requests"), "{text}");
        assert!(text.contains("(5 %) are lost otherwise."), "{text}");
        assert!(of(None).contains("(95 %) are lost; most to waiting"), "{}", of(None));
    }

    /// No task is too small for a worker that does not exist.
    #[test]
    fn absent_workers_need_no_larger_tasks() {
        let remedy_of = |state: State, absent: u64| {
            let (cause, blamed) = (Cause::Wait, Blamed::Nobody);
            let mut finding =
                NamedFinding::new((cause, blamed), (state, String::new()), 100, Confidence::High);
            finding.victims.add(state, absent);
            finding.victims.add(State::Barrier, 100 - absent);
            remedy(&finding, Some(Runtime::OpenMp))
        };
        let advice_on = |cause: Cause| first_sentence(cause.text().advice_for(Runtime::OpenMp).unwrap());
        assert_eq!(remedy_of(State::NotStarted, 60), advice_on(Cause::WaitStart));
        assert_eq!(remedy_of(State::Ended, 60), advice_on(Cause::WaitEnd));
        for (state, absent) in [(State::NotStarted, 40), (State::Idle, 60)] {
            assert!(remedy_of(state, absent).starts_with("Use larger tasks"));
        }
    }

    #[test]
    fn first_sentences_end_at_full_stops_between_sentences() {
        assert_eq!(first_sentence("Larger tasks. Fewer."), "Larger tasks.");
        assert_eq!(first_sentence("NANOS6=cpu.policy=busy keeps. Only"), "NANOS6=cpu.policy=busy keeps.");
        assert_eq!(first_sentence("A pool, e.g. of threads. More."), "A pool, e.g. of threads.");
        assert_eq!(first_sentence("No stop"), "No stop");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence("Ends. "), "Ends. ");
    }

    /// Printed advice is one sentence and does not begin with a lower-case setting.
    #[test]
    fn sentences_of_advice_begin_with_capitals() {
        let all = Cause::ALL.map(Cause::text).into_iter().chain(Pattern::ALL.map(Pattern::text));
        for text in all.chain(Blamed::ALL.map(Blamed::text)) {
            for advice in text.advice.iter().map(|(_, advice)| *advice).chain([text.helps]) {
                let plain = advice.replace("e.g. ", "").replace("i.e. ", "");
                let begins = plain.split(". ").skip(1);
                let lower = begins.filter(|sentence| sentence.starts_with(char::is_lowercase));
                assert_eq!(lower.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", text.name);
            }
        }
    }

    #[test]
    fn everything_that_decides_has_advice() {
        let all = Cause::ALL.map(Cause::text).into_iter().chain(Pattern::ALL.map(Pattern::text));
        for text in all.chain(Blamed::ALL.map(Blamed::text)) {
            assert!(first_sentence(text.helps).ends_with(['.', '?']), "{}", text.name);
            for (_, advice) in text.advice {
                assert!(first_sentence(advice).ends_with('.'), "{}: {advice}", text.name);
            }
        }
    }
}
