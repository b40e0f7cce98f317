//! The largest losses, each with what causes it.

use crate::blame::{Charge, Culprit};
use crate::grain::{Grain, Grains};
use crate::hang::{Hang, Needed};
use crate::late::{LateProcess, waits_for_late};
use crate::ledger::{ByState, Ledger};
use crate::state_places::SumsByPlace;
use crate::task_types::TaskType;
use crate::teams::Worksharing;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{
    Execution, Group, Place, PlaceKind, Section, Starts, State, ThreadIndex, TypeIndex, TypeKind,
};

/// What kind of loss it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FindingKind {
    /// Threads wait for what cannot come.
    Hung,
    /// Others wait for a lock that is held.
    Lock,
    /// Others have nothing to do while code outside regions runs.
    Serial,
    /// Others wait while few tasks run.
    FewTasks,
    /// Tasks cost more to run than they do.
    SmallTasks,
    /// Others wait for a thread that has more of a worksharing construct.
    Imbalance,
    /// Others wait while one thread creates tasks.
    Creation,
    /// Others wait for code of a region that is in no construct.
    RegionCode,
    /// Threads wait for a device, or for one that does.
    Device,
    /// The runtime works, or locks are taken that are free.
    Runtime,
    /// Calls wait for a process that comes late to them.
    LateProcess,
    /// Calls of a communication library, and those who wait for one that is in such a call.
    Communication,
    /// A rank starts or ends MPI.
    MpiStart,
    /// A CPU is left free for the noise of the system, as the runtime was configured.
    AbsorbingNoise,
    /// The operating system kept threads off the CPU.
    System,
    /// There are more workers than CPUs.
    Oversubscribed,
    /// Threads were blocked in the kernel, in code of the program.
    Blocked,
    /// Threads wait although none works.
    NobodyWorks,
    /// The trace cannot tell what ran.
    Unknown,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [FindingKind; 19] = [
        FindingKind::Hung,
        FindingKind::Lock,
        FindingKind::Serial,
        FindingKind::FewTasks,
        FindingKind::SmallTasks,
        FindingKind::Imbalance,
        FindingKind::Creation,
        FindingKind::RegionCode,
        FindingKind::Device,
        FindingKind::Runtime,
        FindingKind::LateProcess,
        FindingKind::Communication,
        FindingKind::MpiStart,
        FindingKind::AbsorbingNoise,
        FindingKind::System,
        FindingKind::Oversubscribed,
        FindingKind::Blocked,
        FindingKind::NobodyWorks,
        FindingKind::Unknown,
    ];

    /// The name in JSON and for `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            FindingKind::Hung => "hung",
            FindingKind::Lock => "lock-held",
            FindingKind::Serial => "serial-code",
            FindingKind::FewTasks => "few-tasks",
            FindingKind::SmallTasks => "small-tasks",
            FindingKind::Imbalance => "imbalance",
            FindingKind::Creation => "task-creation",
            FindingKind::RegionCode => "region-code",
            FindingKind::Device => "device-wait",
            FindingKind::Runtime => "runtime-overhead",
            FindingKind::LateProcess => "late-process",
            FindingKind::Communication => "communication",
            FindingKind::MpiStart => "mpi-start",
            FindingKind::AbsorbingNoise => "absorbing-noise",
            FindingKind::System => "no-cpu",
            FindingKind::Oversubscribed => "oversubscribed",
            FindingKind::Blocked => "blocked",
            FindingKind::NobodyWorks => "nobody-works",
            FindingKind::Unknown => "unknown",
        }
    }
}

/// How sure the cause is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// The culprit is one of several that ran at the time.
    Low,
    /// The culprit ran alone during a good part of the loss.
    Medium,
    /// The culprit ran alone, or held what was waited for, during most of the loss.
    High,
}

impl Confidence {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// A loss and its cause.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind.
    pub kind: FindingKind,
    /// What the culprit did.
    pub state: State,
    /// Where in the code the cause lies.
    pub place: Place,
    /// Worker-nanoseconds lost.
    pub ns: u64,
    /// The loss by the state of those that lost it.
    pub victims: ByState,
    /// The part during which the culprit was the only one that ran, nanoseconds.
    pub sole_ns: u64,
    /// How sure the cause is.
    pub confidence: Confidence,
    /// Tasks created by code of the culprit's kind, where that is the point.
    pub tasks_created: u64,
    /// The construct's load, for an imbalance.
    pub work: Option<Worksharing>,
    /// Size and cost of the tasks, where they are too small.
    pub grain: Option<Grain>,
    /// Who was waited for, where a process came late.
    pub late: Option<LateProcess>,
    /// Row of [`Analysis::hangs`](crate::Analysis::hangs), where the run hung.
    pub hang: Option<usize>,
    /// Whether nearly all of it is the waits of a hang, which is a finding of its own.
    pub is_of_hang: bool,
}

impl Finding {
    /// Time that is the workers' own at a place, such as that in the runtime.
    fn own(kind: FindingKind, (state, place): (State, Place), ns: u64) -> Finding {
        let mut victims = ByState::default();
        victims.add(state, ns);
        Finding {
            kind,
            state,
            place,
            ns,
            victims,
            sole_ns: 0,
            confidence: Confidence::High,
            tasks_created: 0,
            work: None,
            grain: None,
            late: None,
            hang: None,
            is_of_hang: false,
        }
    }
}

/// Numbers of tasks by the code that created them.
pub(crate) type Creations = FxHashMap<(State, Place), u64>;

/// All hangs, then all losses, largest first. The sum of the losses is capacity minus useful time; the waits of a hang are
/// losses, too.
pub(crate) fn findings(
    execution: &Execution,
    ledger: &Ledger,
    charges: &[Charge],
    works: &[Worksharing],
    types: &[TaskType],
    created: &Creations,
    hangs: &[Hang],
) -> Vec<Finding> {
    let grains = Grains::of(execution, ledger, charges, types);
    let mut in_code: FxHashMap<(State, Place), u64> = FxHashMap::default();
    for cause in ledger.causes.iter().chain(&ledger.of_others) {
        *in_code.entry((cause.state, cause.place)).or_default() += cause.ns;
    }
    let mut all: Vec<Finding> = Vec::new();
    for charge in charges {
        let (state, place) = match charge.culprit {
            Culprit::Code(state, place) => (state, place),
            Culprit::Holder(place) => (State::LockWait, place),
            // These waits are findings at their own places.
            Culprit::Device(_) => continue,
            // The place is that of those that wait, and so is the state.
            Culprit::Nobody(place) => {
                let most = charge.by_state.iter().max_by_key(|(_, ns)| *ns);
                (most.map_or(State::Unknown, |(state, _)| state), place)
            }
        };
        let grain = grains.behind(execution, charge);
        let (state, place) = grain.map_or((state, place), |grain| (State::Task, Place::of_type(grain.ty)));
        let tasks_created = created.get(&(state, place)).copied().unwrap_or(0);
        let kind = match charge.culprit {
            _ if grain.is_some() => FindingKind::SmallTasks,
            Culprit::Holder(_) => FindingKind::Lock,
            Culprit::Device(_) => FindingKind::Device,
            Culprit::Nobody(_) => FindingKind::NobodyWorks,
            Culprit::Code(state, place) => {
                let ns = in_code.get(&(state, place)).copied().unwrap_or(0);
                kind_of(execution, state, place, is_creation(tasks_created, ns))
            }
        };
        let work = match place.kind() {
            PlaceKind::Type(ty) if kind == FindingKind::Imbalance => {
                works.iter().find(|w| w.ty == ty).copied()
            }
            _ => None,
        };
        let ns = charge.total();
        let sole_ns = charge.sole_ns.min(ns);
        // An unevenly loaded construct names its culprit even where two threads are late together.
        let even = work.is_none_or(|work| work.load.balance() > 0.9);
        let certain = matches!(charge.culprit, Culprit::Nobody(_) | Culprit::Holder(_));
        let alone_ns = if certain { ns } else { sole_ns };
        let confidence = match alone_ns as f64 / ns.max(1) as f64 {
            _ if grain.is_some_and(|grain| grain.cost_ns < 2 * grain.mean_ns) => Confidence::Medium,
            _ if grain.is_some() => Confidence::High,
            // Threads that could have worked may have had no CPU.
            _ if kind == FindingKind::NobodyWorks && !execution.knows_off_cpu() => Confidence::Low,
            share if share >= 0.7 => Confidence::High,
            share if share >= 0.3 || !even => Confidence::Medium,
            _ => Confidence::Low,
        };
        let victims = charge.by_state;
        all.push(Finding {
            kind,
            state,
            place,
            ns,
            victims,
            sole_ns,
            confidence,
            tasks_created,
            work,
            grain,
            late: None,
            hang: None,
            is_of_hang: false,
        });
    }
    let mut late_at: FxHashMap<Place, u64> = FxHashMap::default();
    for ((late, place), ns) in waits_for_late(execution) {
        *late_at.entry(place).or_default() += ns;
        let finding = Finding::own(FindingKind::LateProcess, (State::Communication, place), ns);
        all.push(Finding { late: Some(late), ..finding });
    }
    for cause in &ledger.causes {
        let kind = match cause.state.group() {
            _ if cause.state == State::Communication => FindingKind::Communication,
            _ if cause.state == State::AbsorbingNoise => FindingKind::AbsorbingNoise,
            Group::Device => FindingKind::Device,
            Group::Runtime => FindingKind::Runtime,
            Group::Start => FindingKind::MpiStart,
            Group::Off if cause.state == State::Oversubscribed => FindingKind::Oversubscribed,
            Group::Off => FindingKind::System,
            Group::Blocked => FindingKind::Blocked,
            Group::Unknown => FindingKind::Unknown,
            _ => continue,
        };
        let in_late = late_at.get(&cause.place).copied().filter(|_| kind == FindingKind::Communication);
        let ns = cause.ns - in_late.unwrap_or(0);
        if ns > 0 {
            let tasks_created = created.get(&(cause.state, cause.place)).copied().unwrap_or(0);
            let own = Finding::own(kind, (cause.state, cause.place), ns);
            let estimated = kind == FindingKind::System && !execution.knows_switches();
            let confidence = if estimated { Confidence::Medium } else { own.confidence };
            all.push(Finding { tasks_created, confidence, ..own });
        }
    }
    let in_hangs = in_hangs(hangs);
    for finding in &mut all {
        let ns = in_hangs.get(&(finding.kind, finding.place)).copied().unwrap_or(0);
        finding.is_of_hang = ns >= finding.ns / 10 * 9 && ns > 0;
    }
    all.sort_by_key(|f| (Reverse(f.ns), f.kind, f.state, f.place, f.late));
    all.splice(0..0, hangs.iter().enumerate().filter_map(|(row, hang)| of_hang(row, hang)));
    all
}

/// Nanoseconds of the waits of hangs, by the findings in which they are, too.
fn in_hangs(hangs: &[Hang]) -> FxHashMap<(FindingKind, Place), u64> {
    let mut all: FxHashMap<(FindingKind, Place), u64> = FxHashMap::default();
    let mut add = |kind, place, ns: u64| *all.entry((kind, place)).or_default() += ns;
    let waits = |hang: &Hang| hang.waits.iter().map(|wait| wait.span.nanos()).sum::<u64>();
    for (wait, waits) in hangs.iter().flat_map(|hang| hang.waits.iter().map(move |wait| (wait, waits(hang))))
    {
        let (Section { state, place, .. }, ns) = (wait.span.section, wait.span.nanos());
        match state {
            State::Communication => {
                add(FindingKind::Communication, place, ns);
                add(FindingKind::LateProcess, place, ns);
            }
            _ if state.group() == Group::Device => add(FindingKind::Device, place, ns),
            _ => add(FindingKind::NobodyWorks, place, ns),
        }
        if state.group() == Group::Mutex {
            // Others that wait for this thread are charged to its request for the lock.
            add(FindingKind::Runtime, place, waits);
        }
        for needed in &wait.needs {
            if let Needed::Holder { site, .. } = needed {
                add(FindingKind::Lock, Place::site(*site), ns);
            }
        }
    }
    all
}

fn of_hang(row: usize, hang: &Hang) -> Option<Finding> {
    let Section { state, place, .. } = hang.waits.first()?.span.section;
    let confidence = if hang.is_deadlock { Confidence::High } else { Confidence::Medium };
    let own = Finding::own(FindingKind::Hung, (state, place), hang.victims.total());
    Some(Finding { victims: hang.victims, confidence, hang: Some(row), ..own })
}

/// Whether code that creates so many tasks in so much time is there to create them: many, and not
/// much else between two of them.
fn is_creation(tasks_created: u64, ns: u64) -> bool {
    const MANY: u64 = 16;
    const MOST_NS_A_TASK: u64 = 1_000_000;
    tasks_created >= MANY && ns / tasks_created <= MOST_NS_A_TASK
}

fn kind_of(execution: &Execution, state: State, place: Place, creates: bool) -> FindingKind {
    match state {
        State::Serial => FindingKind::Serial,
        State::Task => FindingKind::FewTasks,
        State::TaskCreation => FindingKind::Creation,
        // A single or masked construct that creates tasks is there to create them.
        State::Worksharing | State::Masked if creates && !is_loop(execution, place) => FindingKind::Creation,
        State::Worksharing | State::Masked => FindingKind::Imbalance,
        State::ImplicitTask if creates => FindingKind::Creation,
        State::ImplicitTask => FindingKind::RegionCode,
        // Taking locks that are free.
        state if matches!(state.group(), Group::Runtime | Group::Mutex) => FindingKind::Runtime,
        State::TargetWait => FindingKind::Device,
        State::Communication => FindingKind::Communication,
        State::MpiStart => FindingKind::MpiStart,
        _ => FindingKind::Unknown,
    }
}

/// OMPT's `ompt_work_t` of constructs that only one thread of a team executes.
const WORK_SINGLES: [u32; 2] = [3, 4];

fn is_loop(execution: &Execution, place: Place) -> bool {
    match place.kind() {
        PlaceKind::Type(ty) => match type_kind(execution, ty) {
            Some(TypeKind::Work { kind }) => !WORK_SINGLES.contains(&kind),
            _ => true,
        },
        _ => false,
    }
}

fn type_kind(execution: &Execution, ty: TypeIndex) -> Option<TypeKind> {
    execution.catalog.types.get(ty.index()).and_then(|t| t.kind)
}

/// Tasks created by the code at each state and place: what the creator was in at the time.
pub(crate) fn creations(execution: &Execution) -> Creations {
    let tasks = &execution.tasks;
    let (creators, created_at): (&[ThreadIndex], &[u64]) = (&tasks.creator, &tasks.created);
    // Creator by creator, so that each one's sections are read once, from the first to the last.
    let mut times: Vec<Vec<u64>> = vec![Vec::new(); execution.threads.len()];
    for (creator, at) in creators.iter().zip(created_at) {
        if let Some(times) = times.get_mut(creator.index()) {
            times.push(*at);
        }
    }
    let mut created = SumsByPlace::default();
    for (thread, times) in execution.threads.iter().zip(&times) {
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
