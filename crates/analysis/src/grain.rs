//! Task types with too small tasks: their overhead exceeds their work.
//!
//! The cost of a task is the process's loss in the runtime, and in waits of teams without any working thread,
//! divided by the number of its tasks: the task size at which work and cost are equal (METG at 50 %,
//! Slaughter et al., SC 2020), as far as a timeline shows. Losses in times without a task
//! ([`crate::no_tasks`]) are not the cost of one.

use crate::blame::{Charge, Culprit};
use crate::by_state::ByState;
use crate::no_tasks::NoTasks;
use crate::state_places::process_of;
use crate::states::StateLedger;
use crate::task_types::{TaskType, is_explicit};
use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, Group, Place, PlaceKind, ProcessIndex, TypeIndex};

/// Granularity is not judged below this number of tasks.
const MIN_TASKS: u64 = 100;
/// Largest cost of a task in usual runtimes: waits for larger tasks have another cause.
const MAX_MEAN_NS: u64 = 10_000;

/// A task type with too small tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// The type.
    pub ty: TypeIndex,
    /// Tasks of it that ran.
    pub tasks: u64,
    /// Mean time in their bodies, nanoseconds.
    pub mean_ns: u64,
    /// Average cost of running a task of the process, nanoseconds.
    pub cost_ns: u64,
}

impl Grain {
    /// The grain of tasks with a number and a sum of times in their bodies; `None` if these are large enough,
    /// or few.
    pub fn from_tasks(ty: TypeIndex, (tasks, body_ns): (u64, u64), cost_ns: u64) -> Option<Grain> {
        let mean_ns = body_ns.checked_div(tasks)?;
        let is_small = tasks >= MIN_TASKS && mean_ns <= MAX_MEAN_NS && mean_ns < cost_ns;
        is_small.then_some(Grain { ty, tasks, mean_ns, cost_ns })
    }
}

/// The task types of each process that are too small, those with most tasks first.
pub(crate) struct Grains {
    by_process: FxHashMap<ProcessIndex, Vec<Grain>>,
}

impl Grains {
    pub fn of(
        execution: &Execution,
        ledger: &StateLedger,
        charges: &[Charge],
        types: &[TaskType],
        no_tasks: &NoTasks,
    ) -> Grains {
        let mut lost: FxHashMap<ProcessIndex, u64> = FxHashMap::default();
        for charge in charges {
            if let Culprit::Nobody(place) = charge.culprit {
                *lost.entry(process_of(execution, place)).or_default() +=
                    charge.by_state.group_ns(Group::Sync);
            }
        }
        for cause in ledger.causes.iter().filter(|cause| cause.state.group() == Group::Runtime) {
            *lost.entry(process_of(execution, cause.place)).or_default() += cause.ns;
        }
        let type_process = |row: &TaskType| process_of(execution, Place::task_type(row.ty));
        let explicit = || types.iter().filter(|row| is_explicit(execution, row.ty));
        let mut tasks: FxHashMap<ProcessIndex, u64> = FxHashMap::default();
        for row in explicit() {
            *tasks.entry(type_process(row)).or_default() += row.began;
        }
        let mut by_process: FxHashMap<ProcessIndex, Vec<Grain>> = FxHashMap::default();
        for row in explicit().filter(|row| row.began >= MIN_TASKS && row.mean_ns() <= MAX_MEAN_NS) {
            let process = type_process(row);
            let lost = lost.get(&process).copied().unwrap_or(0).saturating_sub(no_tasks.lost_of(process));
            let cost_ns = lost / tasks.get(&process).copied().unwrap_or(0).max(1);
            if row.mean_ns() < cost_ns {
                let grain = Grain { ty: row.ty, tasks: row.began, mean_ns: row.mean_ns(), cost_ns };
                by_process.entry(process).or_default().push(grain);
            }
        }
        for grains in by_process.values_mut() {
            grains.sort_by_key(|grain| (std::cmp::Reverse(grain.tasks), grain.ty));
        }
        Grains { by_process }
    }

    /// The too small type that causes a loss: the type with most tasks while no worker was busy; the running
    /// type while its tasks ran.
    pub fn behind(&self, execution: &Execution, culprit: Culprit, charged: &ByState) -> Option<Grain> {
        match culprit {
            Culprit::Nobody(place) if charged.group_ns(Group::Sync) > 0 => {
                self.by_process.get(&process_of(execution, place))?.first().copied()
            }
            Culprit::Code(_, place) => match place.kind() {
                PlaceKind::Type(ty) => {
                    let grains = self.by_process.get(&process_of(execution, place))?;
                    grains.iter().find(|grain| grain.ty == ty).copied()
                }
                _ => None,
            },
            _ => None,
        }
    }
}
