//! Call paths as JSON.

use super::columns::{TimeKind, key_of};
use super::profile_facts::{cpu_note, incomplete_profiles, is_estimated, states_of, useful_and_largest_loss};
use super::rows::{
    LineWork, OwnPart, Path, PathRow, PathValues, PlaceRow, RowCount, RowCounts, flat, line_works, paths,
    rows, values,
};
use super::{CallPaths, PathsView};
use crate::documents::Word;
use crate::efficiency_factors::EfficiencyFactors;
use crate::findings::{CpuTimes, FindingRow, Findings, Losses, Whose, finding_row};
use crate::thread_waits::ThreadWaitTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy};
use taskscope_analysis::{ByState, Efficiency};
use taskscope_cause::Blamed;
use taskscope_execution::{Group, State};
use taskscope_profile::named::CallTree;
use taskscope_profile::{Metric, ROOT, conservation};

/// The call paths of a profile.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-profile/1")]
pub struct ProfileReport {
    /// The file or directory, as it was given.
    pub trace: String,
    /// The verdict on the run in one sentence; null if workers have no time.
    pub verdict: Option<String>,
    /// The total that findings are shares of.
    pub findings_of: Whose,
    /// That time, nanoseconds.
    pub findings_base_ns: u64,
    /// All losses, largest first. They sum exactly to the capacity without useful time.
    pub findings: Vec<FindingRow>,
    /// The use of CPUs, if findings are shares of it; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTimes>,
    /// The efficiency and its factors, as of traces; null if workers have no time.
    pub efficiency: Option<EfficiencyFactors>,
    /// Waits between threads outside a runtime's constructs, sleep and I/O (`record --threads`), by the time charged to other
    /// threads, largest first; absent without any. They cover all threads and are not part of the capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_waits: Vec<ThreadWaitTimes>,
    /// Time, waiting and blame by call paths.
    pub call_paths: CallPathTables,
}

impl ProfileReport {
    /// The findings, and the time that they are a part of.
    pub fn losses(&self) -> Losses<'_> {
        Losses { rows: &self.findings, base_ns: self.findings_base_ns, whose: self.findings_of }
    }

    /// Creates the document of the profile at a path.
    pub fn of(
        trace: String,
        findings: Findings,
        thread_waits: Vec<ThreadWaitTimes>,
        call_paths: CallPathTables,
    ) -> ProfileReport {
        ProfileReport {
            trace,
            efficiency: efficiency_of(&call_paths.run_totals, &findings),
            verdict: findings.verdict,
            findings_of: findings.whose,
            findings_base_ns: findings.base_ns,
            cpu_time: findings.cpu_time,
            findings: findings.rows.into_iter().map(|finding| finding_row(finding, None)).collect(),
            thread_waits,
            call_paths,
        }
    }
}

/// The factors of a profile, from its sums by state. Waits of teams that are charged to nobody count as runtime, as in
/// traces.
fn efficiency_of(totals: &BTreeMap<String, u64>, findings: &Findings) -> Option<EfficiencyFactors> {
    // Damaged files have any numbers, whose sum must be one.
    const MAX_NS: u64 = 1 << 57;
    let (mut by_state, mut start_ns) = (ByState::default(), 0);
    for (name, ns) in states_of(totals) {
        match State::named(name) {
            Some(state) if state.group() == Group::Start => start_ns += ns.min(MAX_NS),
            Some(state) => by_state.add(state, ns.min(MAX_NS)),
            None => {}
        }
    }
    let nobody = findings.rows.iter().filter(|finding| finding.blamed == Blamed::Nobody);
    let in_vain = nobody.map(|finding| finding.victims.group_ns(Group::Sync));
    let in_vain = in_vain.fold(0, u64::saturating_add);
    let efficiency = Efficiency::of(&by_state, start_ns, in_vain);
    (by_state.total() > 0).then(|| EfficiencyFactors::of(&efficiency, &findings.rows))
}

/// Time, waiting and blame by the user's call paths (docs/call-paths.md).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallPathTables {
    /// The column by which rows are sorted.
    pub sorted_by: String,
    /// Whether times are those of the samples (profiles, clock cpu); else time is the capacity and `other_threads_ns`.
    pub is_time_sampled: bool,
    /// Nanoseconds of the time that are of threads that are not workers.
    pub other_threads_ns: u64,
    /// Whether samples are the only source of activity: which threads are workers is not known.
    #[serde(skip)]
    pub samples_alone: bool,
    /// Sums over all paths.
    pub totals: PathValues,
    /// Every path with values of its own; they sum to `totals`.
    pub paths: Vec<Path>,
    /// Call paths from the program's start inwards.
    pub top_down: Vec<PathRow>,
    /// Call paths from the innermost frames to their callers.
    pub bottom_up: Vec<PathRow>,
    /// Rows by function.
    pub functions: Vec<PlaceRow>,
    /// Rows by loop.
    pub loops: Vec<PlaceRow>,
    /// Rows by line.
    pub lines: Vec<PlaceRow>,
    /// Work by source line, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_line: Vec<LineWork>,
    /// Number of rows of functions, loops and lines without `--top`.
    pub row_counts: RowCounts,
    /// Waiting that was taken and its charges, by wait.
    pub balances: Vec<WaitBalance>,
    /// Samples.
    pub samples: SampleCounts,
    /// Number of paths that found no room in the recorder, so that their values are further out.
    pub counted_further_out: u64,
    /// Exact sums over the run.
    pub run_totals: BTreeMap<String, u64>,
    /// Efficiency of a profile; null of a trace.
    pub efficiency: Option<ProfileEfficiency>,
    /// For a profile: processes with their recorded properties, texts by key.
    pub processes: Vec<BTreeMap<String, String>>,
    /// Notes on all values, in sentences.
    pub notes: Vec<String>,
}

/// Waiting of one kind and its charges.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitBalance {
    /// The state in which threads waited.
    pub wait: Word,
    /// Nanoseconds waited, at the paths of those that waited.
    pub taken_ns: u64,
    /// Nanoseconds charged to the one that was waited for.
    pub given_ns: u64,
    /// Nanoseconds shared by those that worked.
    pub shared_ns: u64,
}

/// Samples of call stacks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SampleCounts {
    /// Number of samples.
    pub count: u64,
    /// Samples unwound to the root of the stack; null for a profile.
    pub reached_root: Option<u64>,
    /// Samples taken inside the runtime; null for a profile.
    pub in_runtime: Option<u64>,
    /// Samples with unknown tasks on the stack; null for a profile.
    pub levels_unknown: Option<u64>,
}

/// The useful part of the workers' time in a profile.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProfileEfficiency {
    /// `useful_ns` / `capacity_ns`.
    #[schemars(range(min = 0, max = 1))]
    pub parallel: f64,
    /// Worker-nanoseconds in the program's own code.
    pub useful_ns: u64,
    /// Worker-nanoseconds in all.
    pub capacity_ns: u64,
    /// The state in which most other worker-time was spent.
    pub largest_loss: Option<String>,
    /// Worker-nanoseconds in it.
    pub largest_loss_ns: u64,
    /// States whose time is an estimated part of others.
    pub estimated: Vec<String>,
}

/// The selection of the rows of [`CallPathTables`].
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The tables; others are empty. `None` for all, and every path too.
    pub views: Option<Vec<PathsView>>,
    /// Whether the runtime's frames are steps.
    pub runtime: bool,
    /// The sort column; chosen by the available data if not given.
    pub sort: Option<Column>,
    /// The columns beside it that make a path a row.
    pub beside: Vec<Column>,
    /// Least share of a column that makes a path a row.
    pub floor: f64,
    /// Rows of each table.
    pub top: usize,
}

impl TableOptions {
    /// All tables with all columns.
    pub fn whole(runtime: bool, sort: Option<Column>, top: usize) -> TableOptions {
        TableOptions { views: None, runtime, sort, beside: Column::ALL.to_vec(), floor: 0.0, top }
    }

    fn has(&self, view: PathsView) -> bool {
        self.views.as_ref().is_none_or(|views| views.contains(&view))
    }

    /// The columns of rows of trees.
    fn columns(&self, sort: Column) -> Vec<Column> {
        let others = self.beside.iter().copied().filter(|column| *column != sort);
        [sort].into_iter().chain(others).collect()
    }
}

impl CallPaths {
    /// The paths as a document. Sorted by the requested column, else by an available one.
    pub fn tables(&self, options: &TableOptions) -> CallPathTables {
        let TableOptions { runtime, top, .. } = *options;
        let tree = self.shown(runtime);
        let sort = options.sort.unwrap_or_else(|| Column::main_of(&tree.tree));
        let is_asked = options.sort.is_some();
        let choice = Choice { sort, beside: &options.beside, is_asked, floor: options.floor, most: top };
        let columns = options.columns(sort);
        let tree_of = |view, tree: &dyn Fn() -> CallTree, own| match options.has(view) {
            true => rows(&tree(), &choice, &columns, own),
            false => Vec::new(),
        };
        let mut row_counts = RowCounts::default();
        let mut flat_of =
            |by, count: fn(&mut RowCounts) -> &mut RowCount| match options.has(PathsView::Flat(by)) {
                true => {
                    let (rows, row_total) = flat(&self.shown_flat(by, runtime), by, sort, top);
                    *count(&mut row_counts) = row_total;
                    rows
                }
                false => Vec::new(),
            };
        let functions = flat_of(FlatBy::Function, |counts| &mut counts.functions);
        let loops = flat_of(FlatBy::Loop, |counts| &mut counts.loops);
        let lines = flat_of(FlatBy::Line, |counts| &mut counts.lines);
        let work_by_line = match options.has(PathsView::Flat(FlatBy::Line)) {
            true => line_works(&self.shown_flat(FlatBy::Line, runtime), top),
            false => Vec::new(),
        };
        let balances = conservation(&self.tree.tree);
        let mut tables = CallPathTables {
            sorted_by: key_of(sort),
            is_time_sampled: self.is_sampled(),
            other_threads_ns: self.quality.map_or(0, |quality| quality.other_threads_ns),
            samples_alone: self.quality.is_some_and(|quality| quality.knows_samples_alone),
            totals: values(&tree, ROOT, true),
            paths: if options.views.is_none() { paths(&tree, sort) } else { Vec::new() },
            top_down: tree_of(PathsView::TopDown, &|| self.tree.functions_and_loops(runtime), OwnPart::Own),
            bottom_up: tree_of(PathsView::BottomUp, &|| views::bottom_up(&tree), OwnPart::Outermost),
            functions,
            loops,
            lines,
            work_by_line,
            row_counts,
            balances: balances
                .iter()
                .map(|balance| WaitBalance {
                    wait: balance.wait.name().into(),
                    taken_ns: balance.taken,
                    given_ns: balance.given,
                    shared_ns: balance.shared,
                })
                .collect(),
            samples: SampleCounts {
                count: self.tree.tree.total(Metric::SAMPLES),
                reached_root: self.quality.map(|quality| quality.reached_root),
                in_runtime: self.quality.map(|quality| quality.in_runtime),
                levels_unknown: self.quality.map(|quality| quality.levels_unknown),
            },
            counted_further_out: self.unfit,
            run_totals: self.tree.totals.clone(),
            efficiency: self.efficiency(),
            processes: self.tree.processes.clone(),
            notes: Vec::new(),
        };
        tables.notes = tables.run_notes().into_iter().chain(self.note_lines()).collect();
        tables
    }

    /// For a profile: the useful fraction of the workers' time, and the state with most of the rest.
    fn efficiency(&self) -> Option<ProfileEfficiency> {
        let states = states_of(&self.tree.totals);
        let capacity = states.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
        let (useful, largest) = useful_and_largest_loss(&states);
        let estimated = states.iter().map(|(name, _)| *name).filter(|name| is_estimated(name));
        (capacity > 0).then(|| ProfileEfficiency {
            parallel: useful as f64 / capacity as f64,
            useful_ns: useful,
            capacity_ns: capacity,
            largest_loss: largest.map(|(name, _)| name.to_owned()),
            largest_loss_ns: largest.map_or(0, |(_, ns)| ns),
            estimated: estimated.map(str::to_owned).collect(),
        })
    }
}

impl CallPathTables {
    /// Notes on the run, which the summary of a profile has too: its processes and their CPUs.
    fn run_notes(&self) -> Vec<String> {
        let cpus = cpu_note(&self.processes, &states_of(&self.run_totals));
        incomplete_profiles(&self.processes).into_iter().chain(cpus).collect()
    }

    /// Notes on the values of paths.
    pub(super) fn path_notes(&self) -> &[String] {
        self.notes.get(self.run_notes().len()..).unwrap_or_default()
    }

    /// The column by which rows are sorted.
    pub(super) fn sort(&self) -> Column {
        Column::named(&self.sorted_by).unwrap_or(Column::Time)
    }

    /// A column over all paths.
    pub(super) fn total(&self, column: Column) -> u64 {
        self.totals.get(&key_of(column)).copied().unwrap_or(0)
    }

    /// The owner of the times by path.
    pub(super) fn time_kind(&self) -> TimeKind {
        match self.is_time_sampled {
            true => TimeKind::Samples,
            false if self.other_threads_ns > 0 && !self.samples_alone => TimeKind::Both,
            false => TimeKind::Workers,
        }
    }
}
