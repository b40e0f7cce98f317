//! Tables and findings of an execution: pure functions, no I/O, no names of functions.
//!
//! [`analyse`] does everything; each table has its own function beside it. Times are integers in
//! nanoseconds, and sums are exact: useful time plus every loss equals capacity, blame given equals
//! wait taken. Places are numbers of the execution's catalog; `view` turns them into words.
//!
//! Analyses of causes work on the task graph instead
//! ([`TaskGraph`](taskscope_execution::graph::TaskGraph)): [`causes`] books every nanosecond, [`slo`] is
//! the published attribution of idle time.
#![forbid(unsafe_code)]

mod blame;
mod by_state;
pub mod call_paths;
pub mod call_views;
pub mod causes;
pub mod change_points;
pub mod compare;
mod cpu_time;
pub mod critical_path;
pub mod devices;
pub mod diagnosis;
mod efficiency;
mod entries;
mod findings;
mod fine_nanos;
mod grain;
mod hang;
pub mod hybrid;
mod keys;
mod late_process;
mod ledger;
mod locks;
mod no_tasks;
mod no_work;
mod path_lines;
pub mod pop;
mod radix;
pub mod replay;
mod serial_code;
mod short_regions;
mod short_teams;
pub mod slo;
pub mod span;
mod starvation;
mod state_places;
mod states;
mod sweep;
mod task_types;
mod teams;
mod thread_waits;
mod timeline;
mod turns;
mod wait_chains;
mod wait_for_graph;
mod worker_waits;

pub use blame::{Charge, Culprit, LockWaitPart, StateCharge, split_lock_waits};
pub use by_state::ByState;
pub use cpu_time::{
    CpuLoss, CpuTime, LostTo, ThreadActivities, ThreadActivity, ThreadStates, cpu_time, lives_of_threads,
    thread_states,
};
pub use efficiency::{Efficiency, efficiency, share};
pub use entries::Entries;
pub use findings::{Confidence, Finding, is_creation, is_outside_team, pattern_of_shortage};
use findings::{Facts, creations, findings};
pub use fine_nanos::FineNanos;
pub use grain::Grain;
use hang::hangs;
pub use hang::{Hang, LastSeen, Needed, OpenWait};
pub use keys::Who;
pub use late_process::LateProcess;
pub use ledger::{ByCause, Entry, Ledger};
pub use locks::{HolderSite, Lock, locks};
pub use short_regions::RegionGrain;
pub use short_teams::{ShortReason, ShortTeam, short_teams};
pub use starvation::{Starvation, Starver, starvation};
use states::book_beside;
pub use states::{MpiPhase, StateEntry, StateLedger, StateRow, ThreadTime, Whose, book};
pub use task_types::{
    TaskType, blocked_times, body_times, explicit_tasks_begun, is_explicit, percentile, task_types,
};
pub use teams::{Load, ParallelConstruct, Worksharing, parallel_constructs, worksharing};
pub use thread_waits::{WaitPartOf, WaitsAt, thread_waits};
pub use wait_chains::{Root, ThreadCall, Tie};
pub use wait_for_graph::{Letter, Shares};
pub use worker_waits::worker_waits;

use taskscope_execution::{CpuShortage, Execution, Tally};

/// All tables of a run.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Capacity and its use.
    pub ledger: StateLedger,
    /// Waiting time by culprit, largest first.
    pub charges: Vec<Charge>,
    /// Efficiency and its factors.
    pub efficiency: Efficiency,
    /// Time of all workers without a CPU.
    pub shortage: CpuShortage,
    /// Explicit tasks that began.
    pub tasks: u64,
    /// Task types, most time first.
    pub task_types: Vec<TaskType>,
    /// Nanoseconds that each task spent in its own body, see [`body_times`].
    pub body_times: Vec<u64>,
    /// Worksharing constructs, most imbalance first.
    pub works: Vec<Worksharing>,
    /// Parallel constructs, most imbalance first.
    pub regions: Vec<ParallelConstruct>,
    /// Locks, most waiting first.
    pub locks: Vec<Lock>,
    /// Hangs, then losses with their causes, largest first.
    pub findings: Vec<Finding>,
    /// Waits at the end that could not be satisfied.
    pub hangs: Vec<Hang>,
    /// Tasks that kept others from running, if the program recorded readiness.
    pub starvation: Starvation,
    /// Waits of threads for each other outside of a runtime's constructs, longest first.
    pub thread_waits: Vec<WaitsAt>,
}

/// Something that makes numbers less sure, observed in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name, as in JSON and for `explain`.
    pub name: &'static str,
    /// Count, maximum, and place of the first.
    pub tally: Tally,
}

/// The facts that decide blame in the parts of a run.
fn facts_of(whole: &Execution) -> Facts<'_> {
    let tables = || {
        let types = task_types(whole, &body_times(whole), &blocked_times(whole));
        (types, parallel_constructs(whole), creations(whole))
    };
    let (ledger, (types, regions, created)) = book_beside(whole, tables);
    Facts::of(whole, &ledger, &ledger.charges(), (&types, &regions), created, whole.cpu_shortage())
}

/// Analyses an execution. A part of a run has the causes of the whole. Cannot fail; inconsistencies are in
/// the second part.
pub fn analyse(execution: &Execution) -> (Analysis, Vec<Problem>) {
    let tables = || {
        let bodies = body_times(execution);
        let types = task_types(execution, &bodies, &blocked_times(execution));
        let (works, regions) = (worksharing(execution), parallel_constructs(execution));
        ((bodies, types, creations(execution)), works, regions, starvation(execution))
    };
    let (ledger, (task_tables, works, regions, starvation)) = book_beside(execution, tables);
    let (body_times, task_types, created) = task_tables;
    let (charges, locks) = (ledger.charges(), locks(execution, &ledger));
    let shortage = execution.cpu_shortage();
    let facts = match &execution.part {
        None => Facts::of(execution, &ledger, &charges, (&task_types, &regions), created.clone(), shortage),
        Some(part) => facts_of(&part.whole),
    };
    let efficiency = efficiency(&ledger, &charges);
    let hangs = hangs(execution);
    let findings = findings(execution, &ledger, &charges, &works, &created, &facts, &hangs);
    let analysis = Analysis {
        efficiency,
        tasks: explicit_tasks_begun(execution),
        task_types,
        body_times,
        regions,
        locks,
        thread_waits: thread_waits(execution),
        starvation,
        shortage,
        ledger,
        charges,
        works,
        findings,
        hangs,
    };
    let mut problems: Vec<Problem> =
        execution.anomalies.by_name.iter().map(|(name, tally)| Problem { name, tally: *tally }).collect();
    if execution.anomalies.late_releases.count > 0 {
        problems.push(Problem { name: "late-release", tally: execution.anomalies.late_releases });
    }
    (analysis, problems)
}
