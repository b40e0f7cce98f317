//! Findings, causes and notices in sentences.

use crate::format;
use crate::hang::HangWords;
use crate::named_finding::NamedFinding;
use crate::names::rank_or_process;
use crate::verdict;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_analysis::{Analysis, Culprit, Finding};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_execution::{CpuFacts, CpuShortage, SiteIndex, State};
use taskscope_session::{Places, Session};

/// All findings of threads with events, with names: hangs first, then the largest. `name_waits` replaces some by others before they
/// are put in order.
pub(crate) fn findings_of_events(
    session: &Session,
    analysis: &Analysis,
    name_waits: impl FnOnce(&mut Vec<NamedFinding>),
) -> Vec<NamedFinding> {
    let places = &session.places;
    let mut merged: Vec<NamedFinding> = Vec::new();
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    let workers = if analysis.ledger.workers_are_cpus() { "CPUs" } else { "workers" };
    // In a hang no thread works: its waits need no second cause.
    for finding in analysis.findings.iter().filter(|finding| !finding.is_of_hang) {
        let place = place_of(places, finding);
        // A late process is one finding, independent of the places of the waits.
        let key_place = if finding.late.is_some() { String::new() } else { place.clone() };
        let key = (
            finding.cause,
            finding.blamed,
            finding.pattern,
            finding.state,
            key_place,
            finding.late,
            finding.hang,
        );
        match known.get(&key) {
            Some(row) => {
                let row = &mut merged[*row];
                row.ns += finding.ns;
                row.culprits.push((finding.state, finding.place));
                row.sole_ns += finding.sole_ns;
                row.free_ns += finding.free_ns;
                row.starting_ns += finding.starting_ns;
                row.tasks_created += finding.tasks_created;
                row.confidence = row.confidence.min(finding.confidence);
                for (state, ns) in finding.victims.iter() {
                    row.victims.add(state, ns);
                }
            }
            None => {
                known.insert(key, merged.len());
                let is_of_no_place = is_of_no_place(finding.cause);
                let (losses, what) = ((finding.cause, finding.blamed), (finding.state, place));
                let evidence = match finding.no_cpu_percent {
                    0 => String::new(),
                    percent => format!(
                        "waiting workers had no CPU in up to {percent} % of it: whether tasks were ready is not known"
                    ),
                };
                merged.push(NamedFinding {
                    evidence,
                    pattern: finding.pattern,
                    culprits: vec![(finding.state, finding.place)],
                    site: if is_of_no_place { SiteIndex::NONE } else { places.site_of(finding.place) },
                    victims: finding.victims,
                    sole_ns: finding.sole_ns,
                    free_ns: finding.free_ns,
                    starting_ns: finding.starting_ns,
                    tasks_created: finding.tasks_created,
                    work: finding.work,
                    grain: finding.grain,
                    regions: finding.regions,
                    late: finding.late,
                    hang: finding.hang,
                    ..NamedFinding::new(losses, what, finding.ns, finding.confidence)
                });
            }
        }
    }
    let source = Source::of(session, analysis, workers, &merged);
    for finding in &mut merged {
        finding.text = match finding.hang.and_then(|row| analysis.hangs.get(row)) {
            Some(hang) => HangWords::of(session, hang).facts().sentence(),
            None => sentence(finding, &source),
        };
    }
    for finding in merged.iter_mut().filter(|finding| finding.late.is_some()) {
        finding.text = late_sentence(places, finding);
    }
    for finding in merged.iter_mut().filter(|finding| finding.cause == Cause::Device) {
        finding.text.push_str(&operations_sentence(session, analysis, finding));
    }
    name_waits(&mut merged);
    let mut merged = numbered(merged, |cause| crate::runtime::adviser(session, cause));
    advise_on_hangs(session, analysis, &mut merged);
    merged
}

/// Replaces the remedies of hangs by the first advice on each.
pub(crate) fn advise_on_hangs(session: &Session, analysis: &Analysis, findings: &mut [NamedFinding]) {
    for finding in findings.iter_mut().filter(|finding| finding.hang.is_some()) {
        let advice = hang_words(session, analysis, finding).and_then(|hang| hang.advice().into_iter().next());
        finding.remedy = advice.unwrap_or_else(|| std::mem::take(&mut finding.remedy));
    }
}

/// Orders findings, and gives them numbers, remedies in the words of a runtime, and the evidence that their numbers are.
pub(crate) fn numbered(
    mut findings: Vec<NamedFinding>,
    runtime: impl Fn(Cause) -> Option<Runtime>,
) -> Vec<NamedFinding> {
    // The start of MPI is paid once a job, and in no efficiency.
    findings.sort_by_key(|f| (f.hang.is_none(), f.cause == Cause::MpiStart, Reverse(f.ns)));
    for (number, finding) in findings.iter_mut().enumerate() {
        finding.id = format!("F{}", number + 1);
        if finding.pattern.is_none() && waits_for_turn(finding) {
            finding.pattern = Some(Pattern::Ordered);
        }
        finding.remedy = verdict::remedy(finding, runtime(finding.cause)).to_owned();
        let evidence = [verdict::evidence(finding), std::mem::take(&mut finding.evidence)];
        finding.evidence =
            evidence.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    }
    findings
}

/// Whether most of a finding was lost in waiting for the turn of an ordered construct.
fn waits_for_turn(finding: &NamedFinding) -> bool {
    finding.blamed == Blamed::Holder && finding.victims.get(State::OrderedWait) > finding.ns / 2
}

fn place_of(places: &Places, finding: &Finding) -> String {
    if is_of_no_place(finding.cause) {
        return String::new();
    }
    let state = match finding.victims.iter().max_by_key(|(_, ns)| *ns) {
        Some((state, _)) if finding.blamed == Blamed::Holder => state,
        _ => finding.state,
    };
    places.name(state, finding.place)
}

/// Whether the cause is independent of code: the system takes CPUs at any place of the program.
fn is_of_no_place(cause: Cause) -> bool {
    cause.is_in(Cause::Cpu)
}

/// The reason why threads had no CPU, as far as recorded.
fn no_cpu(session: &Session, shortage: &CpuShortage) -> String {
    let all = shortage.own_ns + shortage.waiting_ns;
    match crate::cpus::stopped_text(&crate::cpus::process_cpus(&session.execution)) {
        Some(text) if shortage.stopped_ns * 2 > all => {
            format!("threads had no CPU: the process was {text}")
        }
        Some(text) if shortage.stopped_ns * 20 > all => {
            format!("{}; the process was {text}", used_by_others(session))
        }
        _ => used_by_others(session),
    }
}

/// The users of the CPUs while threads had none.
fn used_by_others(session: &Session) -> String {
    let facts: Vec<_> =
        session.execution.processes.iter().filter_map(|process| process.cpus.as_ref()).collect();
    let limits = facts.iter().filter(|facts| facts.throttled_ns() > 0);
    let limits = limits.filter_map(|facts| Some((*facts, facts.quota.as_ref()?)));
    if let Some((facts, quota)) = limits.min_by_key(|(_, quota)| quota.millicpus) {
        return format!(
            "threads had no CPU: their control group {} {} by its limit of {}",
            format::harmless(&quota.cgroup),
            throttled(facts),
            format::cpu_limit(quota.millicpus)
        );
    }
    let loads = facts.iter().filter_map(|facts| Some((facts.load()?, facts.allowed.len())));
    let others = loads.filter(|(load, _)| load.end > load.start).max_by_key(|(load, _)| load.others_ns());
    match others {
        Some((load, cpus)) if load.others_ns() * 50 >= load.end - load.start => {
            let used = load.others_ns() as f64 / (load.end - load.start) as f64;
            let digits = if used < 0.1 { 2 } else { 1 };
            let cpus = format::counted(cpus as u64, "CPU");
            format!("threads had no CPU: other programs used {used:.digits$} of {cpus}")
        }
        _ => "threads had no CPU: other code ran on their CPUs".to_string(),
    }
}

/// Number of times a CPU limit was reached, and its cost over all CPUs.
fn throttled(facts: &CpuFacts) -> String {
    let periods = facts.throttled.iter().fold(0, |sum: u64, part| sum.saturating_add(part.periods));
    format!("was throttled {} for {}", format::counted(periods, "time"), format::time(facts.throttled_ns()))
}

/// The number of workers and of CPUs.
fn more_workers(session: &Session) -> String {
    let groups = session.execution.cpu_groups().into_iter().filter(|group| group.is_oversubscribed());
    match groups.max_by_key(|group| group.workers_at_once) {
        Some(group) => {
            let workers = format::counted(group.workers_at_once as u64, "worker");
            let Some(quota) = &group.quota else {
                let cpus = format::counted(group.cpus.len() as u64, "CPU");
                return format!("more workers than CPUs: {workers} share {cpus}");
            };
            let all = session.execution.processes.iter().filter_map(|process| process.cpus.as_ref());
            let is_same_cgroup =
                |facts: &&CpuFacts| facts.quota.as_ref().is_some_and(|own| own.cgroup == quota.cgroup);
            let most = all.filter(is_same_cgroup).max_by_key(|facts| facts.throttled_ns());
            let reached = most.filter(|facts| facts.throttled_ns() > 0).map(throttled);
            let reached = reached.map(|text| format!(", which {text}")).unwrap_or_default();
            format!(
                "more workers than CPUs: {workers} share {} (limit of their control group{reached})",
                format::cpu_limit(group.millicpus)
            )
        }
        None => "more workers than CPUs".to_string(),
    }
}

/// Words common to all sentences on a recording.
pub(crate) struct Source {
    /// The kind of recording: `trace`, `profile`.
    pub what: &'static str,
    /// The name of the workers.
    pub workers: &'static str,
    /// Whether it is known when threads had no CPU.
    pub knows_off_cpu: bool,
    /// Whether workers may be idle because a thread is in an MPI call, which is not distinguished.
    pub waits_in_calls: bool,
    /// The reason why threads had no CPU.
    pub no_cpu: String,
    /// The number of workers and of CPUs.
    pub more_workers: String,
}

impl Source {
    /// Creates the words for a trace. Texts that only some findings need are computed only for those.
    pub fn of(
        session: &Session,
        analysis: &Analysis,
        workers: &'static str,
        findings: &[NamedFinding],
    ) -> Source {
        let has = |cause| findings.iter().any(|finding| finding.cause == cause);
        Source {
            what: "trace",
            workers,
            knows_off_cpu: session.execution.knows_off_cpu(),
            waits_in_calls: false,
            no_cpu: if has(Cause::CpuNone) { no_cpu(session, &analysis.shortage) } else { String::new() },
            more_workers: if has(Cause::CpuOversubscribed) { more_workers(session) } else { String::new() },
        }
    }
}

/// The sentence of a finding.
pub(crate) fn sentence(finding: &NamedFinding, source: &Source) -> String {
    // Sums over thousands of workers of a damaged trace come close to the range of 64 bits.
    let alone = u128::from(finding.sole_ns) * 10 >= u128::from(finding.ns) * 7;
    let (workers, has_place) = (source.workers, !finding.place.is_empty());
    let place = match finding.place.as_str() {
        "" => &format!("code that the {} does not name", source.what),
        place => place,
    };
    match (finding.pattern, finding.blamed) {
        (Some(Pattern::Hung), _) => format!("hung: threads wait for an event that cannot come, in {place}"),
        (Some(Pattern::TooFine), _) => match finding.grain {
            Some(grain) => format!(
                "tasks are too small: {place} takes {}, running one costs {}",
                format::time(grain.mean_ns),
                format::time(grain.cost_ns)
            ),
            None => format!("tasks are too small: {place}"),
        },
        (Some(Pattern::ShortRegions), _) => match finding.regions {
            Some(grain) => format!(
                "parallel regions are too short: {} of {} each in {place}, of which the team works for {}",
                format::counted(grain.regions, "region"),
                format::time(grain.mean_ns),
                format::time(grain.work_ns)
            ),
            None => format!("parallel regions are too short: {place}"),
        },
        (Some(Pattern::NoWork), _) => {
            format!(
                "no task for any of the {workers}: the program waits for requests, timers or input from outside"
            )
        }
        (Some(Pattern::NoTasks), _) => {
            format!("{workers} have no task: the program has none to start")
        }
        (Some(Pattern::ThreadsEnd), _) => {
            let place = if has_place { format!(": {place}") } else { String::new() };
            format!("threads are blocked while the runtime ends its threads{place}")
        }
        (Some(Pattern::OutsideTeam), _) => {
            format!("{workers} are not, or not yet, in the team that runs {place}")
        }
        (Some(Pattern::FreeLock), Blamed::Holder) => {
            format!("threads wait for a lock that {place} has released: it is mostly free meanwhile")
        }
        (Some(Pattern::FreeLock), Blamed::Nobody) => {
            format!("{workers} take a lock that no other thread holds: {place}")
        }
        (_, Blamed::Holder) if waits_for_turn(finding) => {
            format!("threads wait for their turn while another is in {place}")
        }
        (_, Blamed::Holder) => format!("lock held by {place} makes threads wait"),
        (_, Blamed::Waker) => format!("threads wait until {place}"),
        (_, Blamed::Serial) => format!("{workers} have nothing to do during {place}"),
        (_, Blamed::Task) if alone => format!("{workers} wait while {place} runs alone"),
        (_, Blamed::Task) => format!("{workers} wait while too few tasks run: {place}"),
        (_, Blamed::Loop) => waits_for_loop(place, finding.work.map(|work| work.load.balance())),
        (_, Blamed::Single) => format!("the team waits while one thread executes {place}"),
        (_, Blamed::Creation) => {
            format!("{workers} wait while {place} creates {}", format::counted(finding.tasks_created, "task"))
        }
        (_, Blamed::Code) if finding.cause == Cause::Blocked => match has_place {
            false => "threads are blocked in the kernel (sleep, I/O, a wait of a library)".to_string(),
            true => format!("threads are blocked in the kernel (sleep, I/O, a wait of a library) in {place}"),
        },
        (_, Blamed::Code) => format!("load imbalance in region code: {place}"),
        (_, Blamed::Operation) if finding.victims.get(State::TargetWait) == finding.ns => {
            format!("threads wait for a device in {place}")
        }
        (_, Blamed::Operation) => format!("others wait while a thread waits for a device in {place}"),
        (_, Blamed::Rank) => format!("another process comes late: others wait for it in {place}"),
        (_, Blamed::Call | Blamed::Link) if finding.cause == Cause::MpiStart => {
            let waits =
                if finding.has_waits() { format!(", and {workers} wait meanwhile") } else { String::new() };
            let place = if has_place { format!(": {place}") } else { String::new() };
            format!("MPI is started or ended{waits}{place}")
        }
        // A source without message events does not know the awaited process.
        (_, Blamed::Call | Blamed::Link) if finding.cause == Cause::Mpi && !has_place => {
            "calls of MPI or TAMPI take the time, waiting for late ranks included".to_string()
        }
        (_, Blamed::Call | Blamed::Link) if !has_place => "calls of MPI or TAMPI take the time".to_string(),
        (_, Blamed::Call | Blamed::Link) => format!("calls of MPI or TAMPI take the time: {place}"),
        (_, Blamed::Runtime) if finding.cause == Cause::RuntimeNoise => {
            "CPUs are left free for the noise of the system (sponge mode), as the runtime was configured"
                .to_string()
        }
        (_, Blamed::Runtime) if finding.cause == Cause::Lock => {
            format!("uncontended lock overhead delays others: {place}")
        }
        (_, Blamed::Runtime) => {
            let waits =
                if finding.has_waits() { format!(", and {workers} wait meanwhile") } else { String::new() };
            let place = if has_place { format!(": {place}") } else { String::new() };
            let work = match finding.state {
                State::TaskCreation => "creates tasks",
                State::Dependences => "registers and releases dependences of tasks",
                State::ForkJoin => "begins and ends parallel regions",
                State::Scheduling => "schedules tasks",
                _ => "takes the time",
            };
            format!("the runtime {work}{waits}{place}")
        }
        (_, Blamed::System) if finding.cause == Cause::CpuOversubscribed => source.more_workers.clone(),
        (_, Blamed::System) => source.no_cpu.clone(),
        (_, Blamed::Nobody) if finding.cause == Cause::Unknown => match finding.state {
            State::NoSubsystem => {
                format!(
                    "the {} does not record what ran: threads run outside of all parts of their runtime",
                    source.what
                )
            }
            _ => format!("the {} does not record what ran", source.what),
        },
        (_, Blamed::Nobody) if finding.cause == Cause::Lock => {
            let place = if has_place { format!(" in {place}") } else { String::new() };
            format!("{workers} wait for a lock{place}; the {} does not have its holders", source.what)
        }
        (_, Blamed::Nobody) => {
            let reason = match source.knows_off_cpu {
                _ if source.waits_in_calls => "scheduling, wake-up, or a thread in a call of MPI",
                true => "scheduling, wake-up",
                false => "whether they had CPUs is not known",
            };
            let place = if has_place { format!(": {place}") } else { String::new() };
            match finding.absence() {
                Some(Cause::WaitStart) => {
                    format!("{workers} had not started, and none of them ran code{place}")
                }
                Some(_) => format!("{workers} had ended, and none of them ran code{place}"),
                None => format!("{workers} wait while none of them runs code ({reason}){place}"),
            }
        }
    }
}

/// Load balance of a construct from which on its team loses nothing by it: others wait for the whole team, as in a league.
const EVEN: f64 = 0.995;

fn waits_for_loop(place: &str, balance: Option<f64>) -> String {
    match balance.filter(|balance| *balance < EVEN) {
        Some(balance) => format!("the team waits for the slowest in {place} (load balance {balance:.2})"),
        None => format!("the team waits for {place}"),
    }
}

/// The late process, and the calls in which others wait for it, the longest first.
fn late_sentence(places: &Places, finding: &NamedFinding) -> String {
    const MAX_CALLS: usize = 4;
    let who = match finding.late {
        Some(late) => rank_or_process(late.rank, late.pid),
        None => "another process".to_string(),
    };
    let mut calls: Vec<String> = Vec::new();
    for (state, place) in &finding.culprits {
        let name = places.name(*state, *place);
        if !name.is_empty() && !calls.contains(&name) {
            calls.push(name);
        }
    }
    let rest = calls.len().saturating_sub(MAX_CALLS);
    calls.truncate(MAX_CALLS);
    let mut text = format!("{who} comes late: others wait for it in ");
    match &calls[..] {
        [] => text.push_str("calls that the trace does not name"),
        calls => text.push_str(&calls.join(", ")),
    }
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

/// Device operations that ran meanwhile, the longest first; empty if its queues are not recorded.
fn operations_sentence(session: &Session, analysis: &Analysis, finding: &NamedFinding) -> String {
    const MAX_OPERATIONS: usize = 2;
    let execution = &session.execution;
    if execution.target_waits.is_empty() {
        return String::new();
    }
    let is_meant = |place| finding.culprits.iter().any(|(_, culprit)| *culprit == place);
    let sums = analysis.ledger.operations_waited_for(is_meant);
    let all: u64 = sums.iter().map(|(_, ns)| ns).sum();
    let shown = sums.iter().take(MAX_OPERATIONS).filter(|(_, ns)| ns * 20 >= all).map(|(operation, ns)| {
        let name = operation.and_then(|row| execution.catalog.operations.get(row as usize));
        let name = name.map_or("nothing runs there", String::as_str);
        format!("{name} {}", format::percent(*ns, all))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

/// The words of a hang; none of another finding.
fn hang_words<'s>(
    session: &'s Session,
    analysis: &'s Analysis,
    finding: &NamedFinding,
) -> Option<HangWords<'s>> {
    let hang = finding.hang.and_then(|row| analysis.hangs.get(row))?;
    Some(HangWords::of(session, hang))
}

/// Causes with names: state, place in words, nanoseconds; largest first, one row a name, sum exact.
pub fn causes(places: &Places, analysis: &Analysis) -> Vec<(State, String, u64)> {
    let named = analysis.ledger.causes.iter().map(|c| ((c.state, places.name(c.state, c.place)), c.ns));
    summed(named).into_iter().map(|((state, place), ns)| (state, place, ns)).collect()
}

/// Waiting of one state that is charged to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameRow {
    /// The state of those that waited.
    pub state: State,
    /// The charged party.
    pub blamed: Blamed,
    /// The state of the charged thread; `None` if a device or nothing is charged.
    pub in_state: Option<State>,
    /// Its place in words; may be empty.
    pub place: String,
    /// Worker-nanoseconds.
    pub ns: u64,
}

/// Waiting time by charged party and waiting state, largest first.
pub fn blame(session: &Session, analysis: &Analysis) -> Vec<BlameRow> {
    let (places, operations) = (&session.places, &session.execution.catalog.operations);
    let rows = analysis.charges.iter().flat_map(|charge| {
        charge.by_state.iter().map(move |(state, ns)| {
            let (in_state, place) = match charge.culprit {
                Culprit::Code(code, place) => (Some(code), places.name(code, place)),
                Culprit::Holder(place) => (None, places.name(state, place)),
                Culprit::Device(Some(row)) => {
                    (None, operations.get(row as usize).cloned().unwrap_or_default())
                }
                Culprit::Device(None) | Culprit::Rank(_) | Culprit::Nobody(_) => (None, String::new()),
            };
            ((state, charge.culprit.blamed(&session.execution), in_state, place), ns)
        })
    });
    let rows: Vec<_> = rows.collect();
    let summed = summed(rows.into_iter()).into_iter();
    summed
        .map(|((state, blamed, in_state, place), ns)| BlameRow { state, blamed, in_state, place, ns })
        .collect()
}

/// Sums by key, largest first; equal ones by key.
fn summed<K: Eq + std::hash::Hash + Ord>(rows: impl Iterator<Item = (K, u64)>) -> Vec<(K, u64)> {
    let mut sums: FxHashMap<K, u64> = FxHashMap::default();
    for (key, ns) in rows {
        *sums.entry(key).or_default() += ns;
    }
    let mut sums: Vec<(K, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_loop_is_not_called_uneven() {
        assert_eq!(waits_for_loop("f", Some(0.6)), "the team waits for the slowest in f (load balance 0.60)");
        assert_eq!(
            [Some(1.0), None].map(|balance| waits_for_loop("f", balance)),
            ["the team waits for f"; 2]
        );
    }
}
