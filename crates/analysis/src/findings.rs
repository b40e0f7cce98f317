//! The largest losses, each with its cause.

use crate::blame::{Charge, Culprit};
use crate::by_state::ByState;
use crate::entries::Entries;
use crate::grain::{Grain, Grains};
use crate::hang::{Hang, Needed};
use crate::late_process::LateProcess;
use crate::no_tasks::NoTasks;
use crate::no_work::lacks_work;
use crate::serial_code::{ends_threads, is_serial};
use crate::short_regions::{RegionGrain, short_regions};
use crate::state_places::SumsByPlace;
use crate::states::StateLedger;
use crate::task_types::TaskType;
use crate::teams::{ParallelConstruct, Worksharing};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::sync::OnceLock;
use taskscope_execution::{
    Blamed, Cause, CpuShortage, Execution, Group, Pattern, Place, PlaceKind, Section, Starts, State,
    ThreadIndex,
};

/// Confidence in the cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// The culprit is one of several that ran at the time.
    Low,
    /// The culprit ran alone during a good part of the loss.
    Medium,
    /// The culprit ran alone, or held the awaited object, during most of the loss.
    High,
}

impl Confidence {
    /// All, the lowest first.
    pub const ALL: [Confidence; 3] = [Confidence::Low, Confidence::Medium, Confidence::High];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }

    /// Confidence in a culprit that is sure for a part of the loss.
    pub fn of_share(sure_ns: u64, ns: u64) -> Confidence {
        match sure_ns as f64 / ns.max(1) as f64 {
            share if share >= 0.7 => Confidence::High,
            share if share >= 0.3 => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// A loss and its cause.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The cause of the loss: for waiting, the culprits' state.
    pub cause: Cause,
    /// The blamed party.
    pub blamed: Blamed,
    /// The pattern, if it decides the remedy.
    pub pattern: Option<Pattern>,
    /// The state of the culprit.
    pub state: State,
    /// The place of the cause in the code.
    pub place: Place,
    /// Worker-nanoseconds lost.
    pub ns: u64,
    /// The loss by the state of those that lost it.
    pub victims: ByState,
    /// The part during which the culprit was the only one that ran, nanoseconds.
    pub sole_ns: u64,
    /// The part of waits for locks in which no thread held the lock.
    pub free_ns: u64,
    /// The part of a worker's own loss, such as time without a CPU, while its process started or ended MPI; in no efficiency.
    pub starting_ns: u64,
    /// Confidence in the cause.
    pub confidence: Confidence,
    /// Percent of its waits in which, at most, the waiting workers could run and had no CPU while it is not known whether a task was
    /// ready; 0 if that does not lower the confidence.
    pub no_cpu_percent: u64,
    /// Tasks created by code of the culprit's kind, if that is relevant.
    pub tasks_created: u64,
    /// The construct's load, for an imbalance.
    pub work: Option<Worksharing>,
    /// Size and cost of the tasks, if they are too small.
    pub grain: Option<Grain>,
    /// Number and times of the parallel regions, if they are too short.
    pub regions: Option<RegionGrain>,
    /// The late process, if a process was late.
    pub late: Option<LateProcess>,
    /// Row of [`Analysis::hangs`](crate::Analysis::hangs), if the run hung.
    pub hang: Option<usize>,
    /// Whether nearly all of it is the waits of a hang, which is a finding of its own.
    pub is_of_hang: bool,
}

impl Finding {
    /// Time that is the workers' own at a place, such as that in the runtime.
    fn own((cause, blamed): (Cause, Blamed), (state, place): (State, Place), ns: u64) -> Finding {
        let mut victims = ByState::default();
        victims.add(state, ns);
        Finding {
            cause,
            blamed,
            pattern: None,
            state,
            place,
            ns,
            victims,
            sole_ns: 0,
            free_ns: 0,
            starting_ns: 0,
            confidence: Confidence::High,
            no_cpu_percent: 0,
            tasks_created: 0,
            work: None,
            grain: None,
            regions: None,
            late: None,
            hang: None,
            is_of_hang: false,
        }
    }
}

/// Numbers of tasks by the code that created them.
pub(crate) type Creations = FxHashMap<(State, Place), u64>;

/// The facts that decide the blame for losses. They are taken from the whole run, so that all parts blame a
/// loss on the same party.
pub(crate) struct Facts<'e> {
    execution: &'e Execution,
    grains: Grains,
    /// Time of all workers by state and place.
    in_code: Entries<(State, Place)>,
    created: Creations,
    /// The charges of each culprit, and the part of waits for locks that were free.
    charged: FxHashMap<Culprit, (ByState, u64)>,
    /// Whether the runtime's sections were recorded.
    has_sections: bool,
    /// The time of all workers without a CPU.
    shortage: CpuShortage,
    /// Nanoseconds of waits for tasks that may have been waits for a CPU ([`Execution::unsure_waits_ns`]).
    unsure_ns: u64,
    /// Activities of workers in times without a task.
    no_tasks: NoTasks,
    /// Idle time during which no code ran.
    nobodys_idle_ns: u64,
    /// Whether most of the time in which all workers are idle is time without work for any of them, once asked for.
    lacks_work: OnceLock<bool>,
    /// Idle time during which no code ran, at all places.
    idle_ns: u64,
    capacity_ns: u64,
    /// The parallel constructs with too short regions, by the places of losses in them.
    short_regions: FxHashMap<Place, RegionGrain>,
    /// Places of serial code that is blocked mostly while the runtime ends its threads.
    ends_threads: FxHashSet<Place>,
}

/// The blame for a loss.
#[derive(Clone, Copy)]
struct Verdict {
    cause: Cause,
    blamed: Blamed,
    pattern: Option<Pattern>,
    state: State,
    place: Place,
    grain: Option<Grain>,
    regions: Option<RegionGrain>,
}

impl<'e> Facts<'e> {
    /// The facts of a whole run; `charges` are those of its ledger.
    pub(crate) fn of(
        execution: &'e Execution,
        ledger: &StateLedger,
        charges: &[Charge],
        (types, regions): (&[TaskType], &[ParallelConstruct]),
        created: Creations,
        shortage: CpuShortage,
    ) -> Facts<'e> {
        let no_tasks = NoTasks::of(execution);
        let idle_ns = |counts: fn(&Culprit) -> bool| -> u64 {
            let counted = charges.iter().filter(|charge| counts(&charge.culprit));
            counted.map(|charge| charge.by_state.group_ns(Group::Idle)).sum()
        };
        Facts {
            execution,
            grains: Grains::of(execution, ledger, charges, types, &no_tasks),
            nobodys_idle_ns: idle_ns(|culprit| *culprit == Culprit::Nobody(Place::UNKNOWN)),
            no_tasks,
            in_code: ledger.in_code(),
            created,
            unsure_ns: unsure_waits_ns(execution, charges, &shortage),
            shortage,
            charged: charges
                .iter()
                .map(|charge| (charge.culprit, (charge.by_state, charge.free_ns)))
                .collect(),
            has_sections: ledger.causes.iter().any(|row| row.state.group() == Group::Runtime),
            lacks_work: OnceLock::new(),
            idle_ns: idle_ns(|culprit| matches!(culprit, Culprit::Nobody(_))),
            capacity_ns: ledger.capacity_ns,
            short_regions: short_regions(execution, regions),
            ends_threads: ends_threads(execution, ledger),
        }
    }

    /// The blame for the charges of a culprit of the run, or of a part of its time; `None` if findings at other
    /// places have these waits.
    fn verdict(&self, charge: &Charge, part: (u64, u64)) -> Option<Verdict> {
        let own = (charge.by_state, charge.free_ns);
        let (by_state, free_ns) = self.charged.get(&charge.culprit).unwrap_or(&own);
        let (state, place) = match charge.culprit {
            Culprit::Code(state, place) => (state, place),
            Culprit::Holder(place) => (State::LockWait, place),
            Culprit::Device(_) | Culprit::Rank(_) => return None,
            // The place is that of those that wait, and so is the state.
            Culprit::Nobody(place) => {
                let most = by_state.iter().max_by_key(|(_, ns)| *ns);
                (most.map_or(State::Unknown, |(state, _)| state), place)
            }
        };
        if let Some(grain) = self.grains.behind(self.execution, charge.culprit, by_state) {
            let (state, place) = (State::Task, Place::task_type(grain.ty));
            let (cause, blamed, pattern) = (Cause::Wait, Blamed::Task, Some(Pattern::TooFine));
            return Some(Verdict { cause, blamed, pattern, state, place, grain: Some(grain), regions: None });
        }
        let (cause, blamed) = match charge.culprit {
            Culprit::Holder(_) => (Cause::Lock, Blamed::Holder),
            Culprit::Code(state, place) => {
                let tasks_created = self.created.get(&(state, place)).copied().unwrap_or(0);
                let creates = is_creation(tasks_created, self.in_code.get(&(state, place)));
                blame_of(self.execution, state, place, creates)
            }
            _ if is_for_locks(by_state) => (Cause::Lock, Blamed::Nobody),
            _ => (Cause::Wait, Blamed::Nobody),
        };
        let waits_for_nobody = charge.culprit == Culprit::Nobody(Place::UNKNOWN);
        let lacks_tasks = || match state.group() {
            Group::Runtime => self.spends_without_tasks((state, place)),
            _ => waits_for_nobody && self.no_tasks.explain_idle(self.nobodys_idle_ns, part),
        };
        // Imported files do not have the holders.
        let knows_holders = !self.execution.whole().holds.is_empty();
        let is_free = cause == Cause::Lock
            && knows_holders
            && (blamed == Blamed::Runtime || u128::from(*free_ns) * 2 > u128::from(by_state.total()));
        let is_of_region = matches!(cause, Cause::Wait | Cause::RuntimeFork) && blamed != Blamed::Creation;
        let regions = self.short_regions.get(&place).copied().filter(|_| is_of_region);
        let is_idle = by_state.group_ns(Group::Idle) > by_state.total() / 2;
        let pattern = match () {
            () if regions.is_some() => Some(Pattern::ShortRegions),
            () if is_free => Some(Pattern::FreeLock),
            () if is_outside_team((cause, blamed), by_state) => Some(Pattern::OutsideTeam),
            () if lacks_tasks() => Some(Pattern::NoTasks),
            () if (cause, blamed) == (Cause::Wait, Blamed::Nobody) && is_idle && self.lacks_work() => {
                Some(Pattern::NoWork)
            }
            () => None,
        };
        Some(Verdict { cause, blamed, pattern, state, place, grain: None, regions })
    }

    fn lacks_work(&self) -> bool {
        *self.lacks_work.get_or_init(|| lacks_work(self.execution, self.idle_ns, self.capacity_ns))
    }

    /// Whether workers spend their time in a section of the runtime for lack of tasks.
    fn spends_without_tasks(&self, section: (State, Place)) -> bool {
        self.no_tasks.explain_runtime(section, self.in_code.get(&section))
    }
}

/// Whether nearly all of the waits are for locks.
fn is_for_locks(by_state: &ByState) -> bool {
    let locks = u128::from(by_state.group_ns(Group::Mutex));
    locks > 0 && locks * 100 >= u128::from(by_state.total()) * MIN_LOCK_PERCENT
}

/// Percent of the waits of a finding that are waits for locks, if it is one of locks.
const MIN_LOCK_PERCENT: u128 = 90;

/// Nanoseconds of waits that may have been waits for a CPU; 0 if no waits are charged to tasks.
fn unsure_waits_ns(execution: &Execution, charges: &[Charge], shortage: &CpuShortage) -> u64 {
    let is_of_task = |charge: &Charge| matches!(charge.culprit, Culprit::Code(State::Task, _));
    match shortage.waiting_ns > 0 && charges.iter().any(is_of_task) {
        true => execution.unsure_waits_ns(),
        false => 0,
    }
}

/// Whether workers spent most of the lost time outside of all regions while code of a region is blamed: they were not in
/// its team, so its load balance does not matter to them.
pub fn is_outside_team((cause, blamed): (Cause, Blamed), victims: &ByState) -> bool {
    let is_of_region = cause == Cause::Wait && matches!(blamed, Blamed::Loop | Blamed::Single | Blamed::Code);
    let all = victims.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(ns));
    is_of_region && victims.group_ns(Group::Idle) > all / 2
}

/// All hangs, then all losses, largest first. The sum of the losses is capacity minus useful time; the waits of a hang are
/// losses, too.
pub(crate) fn findings(
    execution: &Execution,
    ledger: &StateLedger,
    charges: &[Charge],
    works: &[Worksharing],
    created: &Creations,
    facts: &Facts<'_>,
    hangs: &[Hang],
) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for charge in charges {
        let Some(verdict) = facts.verdict(charge, execution.part_of_time()) else { continue };
        let Verdict { cause, blamed, pattern, state, place, grain, regions } = verdict;
        let tasks_created = created.get(&(state, place)).copied().unwrap_or(0);
        let work = match place.kind() {
            PlaceKind::Type(ty) if blamed == Blamed::Loop => works.iter().find(|w| w.ty == ty).copied(),
            _ => None,
        };
        let ns = charge.total();
        let sole_ns = charge.sole_ns.min(ns);
        // An unevenly loaded construct names its culprit even if two threads are late together.
        let even = work.is_none_or(|work| work.load.balance() > 0.9);
        let certain = matches!(charge.culprit, Culprit::Nobody(_) | Culprit::Holder(_));
        let alone_ns = if certain { ns } else { sole_ns };
        let confidence = match grain {
            Some(grain) if grain.cost_ns < 2 * grain.mean_ns => Confidence::Medium,
            Some(_) => Confidence::High,
            // The cost of the regions is measured.
            None if regions.is_some() => Confidence::High,
            None if pattern == Some(Pattern::NoWork) => Confidence::Medium,
            // Threads that could have worked may have had no CPU.
            None if blamed == Blamed::Nobody
                && (cause != Cause::Lock || pattern == Some(Pattern::FreeLock))
                && !execution.knows_off_cpu() =>
            {
                Confidence::Low
            }
            None => Confidence::of_share(alone_ns, ns).max(if even {
                Confidence::Low
            } else {
                Confidence::Medium
            }),
        };
        let is_of_tasks = (cause, blamed) == (Cause::Wait, Blamed::Task) && grain.is_none();
        let unsure_ns = if is_of_tasks { facts.unsure_ns.min(ns) } else { 0 };
        let limit = Confidence::of_share(ns - unsure_ns, ns);
        let no_cpu_percent = match limit < confidence {
            true => (u128::from(unsure_ns) * 100 / u128::from(ns.max(1))) as u64,
            false => 0,
        };
        let confidence = confidence.min(limit);
        let victims = charge.by_state;
        all.push(Finding {
            cause,
            blamed,
            pattern,
            state,
            place,
            ns,
            victims,
            sole_ns,
            free_ns: charge.free_ns,
            starting_ns: 0,
            confidence,
            no_cpu_percent,
            tasks_created,
            work,
            grain,
            regions,
            late: None,
            hang: None,
            is_of_hang: false,
        });
    }
    let late = ledger.late();
    let late_at = late.by(|(_, at)| Some(*at));
    for ((process, (state, place)), ns) in late.iter() {
        let (cause, starting_ns) = match state {
            State::MpiStart => (Cause::MpiStart, ns),
            _ => (Cause::MpiLate, 0),
        };
        let finding = Finding::own((cause, Blamed::Rank), (*state, *place), ns);
        all.push(Finding { late: Some(LateProcess::of(execution, *process)), starting_ns, ..finding });
    }
    let mut shortage_pattern: Option<Option<Pattern>> = None;
    let in_start = ledger.in_start();
    for row in &ledger.causes {
        let state = row.state;
        let loss = match state.group() {
            Group::Sync if state == State::Communication => (Cause::MpiTransfer, Blamed::Call),
            Group::Device => (Cause::Device, Blamed::Operation),
            Group::Runtime => (state.cause(), Blamed::Runtime),
            Group::Start => (Cause::MpiStart, Blamed::Call),
            Group::Off => (state.cause(), Blamed::System),
            Group::Blocked => (Cause::Blocked, Blamed::Code),
            Group::Unknown => (Cause::Unknown, Blamed::Nobody),
            _ => continue,
        };
        let ns = row.ns - late_at.get(&(state, row.place));
        if ns > 0 {
            let tasks_created = created.get(&(state, row.place)).copied().unwrap_or(0);
            let own = Finding::own(loss, (state, row.place), ns);
            let estimated = loss.0 == Cause::CpuNone && !execution.knows_switches();
            let confidence = if estimated { Confidence::Medium } else { own.confidence };
            let pattern = match loss.0 {
                Cause::CpuNone => *shortage_pattern
                    .get_or_insert_with(|| pattern_of_shortage(facts.execution, &facts.shortage)),
                Cause::RuntimeFork if facts.short_regions.contains_key(&row.place) => {
                    Some(Pattern::ShortRegions)
                }
                Cause::Unknown if state == State::NoSubsystem && !facts.has_sections => {
                    Some(Pattern::NoSections)
                }
                _ if facts.spends_without_tasks((state, row.place)) => Some(Pattern::NoTasks),
                Cause::Blocked if facts.ends_threads.contains(&row.place) => Some(Pattern::ThreadsEnd),
                Cause::Blocked if is_serial(row.place) => Some(Pattern::BlockedSerial),
                _ => None,
            };
            let starting_ns = in_start.get(&(state, row.place)).min(ns);
            let regions = facts.short_regions.get(&row.place).copied();
            let regions = regions.filter(|_| pattern == Some(Pattern::ShortRegions));
            all.push(Finding { tasks_created, starting_ns, confidence, pattern, regions, ..own });
        }
    }
    let in_hangs = in_hangs(hangs);
    for finding in &mut all {
        let ns = in_hangs.get(&(finding.cause, finding.blamed, finding.place)).copied().unwrap_or(0);
        finding.is_of_hang = ns >= finding.ns / 10 * 9 && ns > 0;
    }
    all.sort_by_key(|f| (Reverse(f.ns), f.cause, f.blamed, f.state, f.place, f.late));
    all.splice(0..0, hangs.iter().enumerate().filter_map(|(row, hang)| hang_finding(row, hang)));
    all
}

/// The pattern of the lack of CPUs, if recorded and not due to other programs.
pub fn pattern_of_shortage(execution: &Execution, shortage: &CpuShortage) -> Option<Pattern> {
    if shortage.stopped_ns > (shortage.own_ns + shortage.waiting_ns) / 2 {
        return Some(Pattern::Stopped);
    }
    let mut facts = execution.processes.iter().filter_map(|process| process.cpus.as_ref());
    let is_throttled = facts.any(|facts| facts.quota.is_some() && facts.throttled_ns() > 0);
    is_throttled.then_some(Pattern::Throttled)
}

/// Nanoseconds of the waits of hangs, by the findings in which they are, too.
fn in_hangs(hangs: &[Hang]) -> FxHashMap<(Cause, Blamed, Place), u64> {
    let mut all: FxHashMap<(Cause, Blamed, Place), u64> = FxHashMap::default();
    let mut add = |(cause, blamed), place, ns: u64| *all.entry((cause, blamed, place)).or_default() += ns;
    let waits = |hang: &Hang| hang.waits.iter().map(|wait| wait.span.nanos()).sum::<u64>();
    for (wait, waits) in hangs.iter().flat_map(|hang| hang.waits.iter().map(move |wait| (wait, waits(hang))))
    {
        let (Section { state, place, .. }, ns) = (wait.span.section, wait.span.nanos());
        match state {
            State::Communication => {
                add((Cause::MpiTransfer, Blamed::Call), place, ns);
                add((Cause::MpiLate, Blamed::Rank), place, ns);
            }
            State::MpiStart => {
                add((Cause::MpiStart, Blamed::Call), place, ns);
                add((Cause::MpiStart, Blamed::Rank), place, ns);
            }
            _ if state.group() == Group::Device => add((Cause::Device, Blamed::Operation), place, ns),
            _ => add((Cause::Wait, Blamed::Nobody), place, ns),
        }
        if state.group() == Group::Mutex {
            add((Cause::Lock, Blamed::Nobody), place, ns);
            // Others that wait for this thread are charged to its request for the lock.
            add((Cause::Lock, Blamed::Runtime), place, waits);
        }
        for needed in &wait.needs {
            if let Needed::Holder { site, .. } = needed {
                add((Cause::Lock, Blamed::Holder), Place::site(*site), ns);
            }
        }
    }
    all
}

fn hang_finding(row: usize, hang: &Hang) -> Option<Finding> {
    let Section { state, place, .. } = hang.waits.first()?.span.section;
    let confidence = if hang.is_deadlock { Confidence::High } else { Confidence::Medium };
    let own = Finding::own((state.cause(), Blamed::Nobody), (state, place), hang.victims.total());
    Some(Finding { pattern: Some(Pattern::Hung), victims: hang.victims, confidence, hang: Some(row), ..own })
}

/// Whether creating tasks is the purpose of code, by its number of tasks and its time: many tasks, and little time
/// for each.
pub fn is_creation(tasks_created: u64, ns: u64) -> bool {
    const MANY: u64 = 16;
    const MAX_NS_PER_TASK: u64 = 1_000_000;
    tasks_created >= MANY && ns / tasks_created <= MAX_NS_PER_TASK
}

/// The cause and blame of waiting for code in this state.
fn blame_of(execution: &Execution, state: State, place: Place, creates: bool) -> (Cause, Blamed) {
    let blamed = Culprit::Code(state, place).blamed(execution);
    match blamed {
        // A single or masked construct that creates tasks is there to create them.
        Blamed::Single | Blamed::Code if creates => (Cause::Wait, Blamed::Creation),
        Blamed::Call if state == State::Communication => (Cause::MpiTransfer, blamed),
        Blamed::Nobody => (Cause::Unknown, blamed),
        _ if state.is_useful() || blamed == Blamed::Creation => (Cause::Wait, blamed),
        // Taking locks that are free is the runtime's.
        _ => (state.cause(), blamed),
    }
}

/// Tasks created by the code at each state and place: the creator's section at the time. Of a part of a run those created
/// in it; its own tables have earlier ones, too, as created at its begin.
pub(crate) fn creations(execution: &Execution) -> Creations {
    let ((begin, end), whole) = (execution.part_of_time(), execution.whole());
    let tasks = &whole.tasks;
    let (creators, created_at): (&[ThreadIndex], &[u64]) = (&tasks.creator, &tasks.created);
    // Creator by creator, so that each one's sections are read once, from the first to the last.
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); whole.threads.len()];
    for (creator, at) in creators.iter().zip(created_at).filter(|(_, at)| (begin..end).contains(*at)) {
        if let Some(times) = times.get_mut(creator.index()) {
            times.push(*at);
        }
    }
    let mut created = SumsByPlace::default();
    for (thread, times) in whole.threads.iter().zip(&times) {
        if times.is_empty() || thread.track.is_empty() {
            continue;
        }
        let (mut starts, mut spans) = (thread.track.starts().in_order(), thread.track.rows());
        let mut row = 0;
        // Tasks are numbered by creation, so each thread's times only rise; a clamped one is just late.
        for at in times {
            row = starts.last_until(row, *at);
            let section = spans.read(row).section;
            created.add(section.state, section.place, 1);
        }
    }
    created.iter().collect()
}

#[cfg(test)]
mod creation_tests {
    use super::*;
    use taskscope_execution::{Change, ExecutionBuilder, Observer, RegionIndex, TaskIndex, TypeIndex};

    #[test]
    fn a_part_has_the_tasks_that_are_created_in_it() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let thread = builder.add_thread(process, 1);
        builder.event(thread, 0);
        builder.change(thread, 0, Change::Becomes(Section::of(State::Serial)));
        let (ty, parent, region) = (TypeIndex(0), TaskIndex::NONE, RegionIndex::NONE);
        for (number, at) in [(0, 10), (1, 20), (2, 50), (3, 60)] {
            builder.event(thread, at);
            builder.change(thread, at, Change::TaskCreated { task: TaskIndex(number), ty, parent, region });
        }
        builder.event(thread, 100);
        let mut execution = builder.finish();
        let count = |execution: &Execution| creations(execution).values().sum::<u64>();
        assert_eq!(count(&execution), 4);
        // Two wait to run when it begins.
        execution.cut(30, 60);
        assert_eq!(count(&execution), 1);
    }
}

#[cfg(test)]
mod outside_team_tests {
    use super::*;

    #[test]
    fn waits_outside_of_regions_are_not_an_imbalance_of_a_team() {
        let mut victims = ByState::default();
        victims.add(State::Idle, 60);
        victims.add(State::JoinBarrier, 40);
        assert!(is_outside_team((Cause::Wait, Blamed::Loop), &victims));
        assert!(is_outside_team((Cause::Wait, Blamed::Code), &victims));
        assert!(!is_outside_team((Cause::Wait, Blamed::Serial), &victims));
        assert!(!is_outside_team((Cause::Blocked, Blamed::Code), &victims));
        victims.add(State::Barrier, 30);
        assert!(!is_outside_team((Cause::Wait, Blamed::Loop), &victims));
    }
}
