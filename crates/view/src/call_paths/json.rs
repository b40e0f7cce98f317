//! Call paths as JSON.

use super::columns::{TimeKind, is_count, key_of};
use super::profile_facts::{cpu_note, incomplete_profiles, is_estimated, states_of, useful_and_largest_loss};
use super::{CallPaths, PathsView, flat_name};
use crate::documents::Word;
use crate::efficiency_factors::EfficiencyFactors;
use crate::findings::{FindingRow, Findings, Losses, Whose, finding_row};
use crate::thread_waits::ThreadWaitTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy, FlatRow};
use taskscope_analysis::{ByState, Efficiency};
use taskscope_cause::Blamed;
use taskscope_execution::{Group, State};
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, Metric, NodeId, ROOT, conservation};

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
    let in_vain = nobody.map(|finding| finding.victims.of_group(Group::Sync));
    let in_vain = in_vain.fold(0, u64::saturating_add);
    let efficiency = Efficiency::of(&by_state, start_ns, in_vain);
    (by_state.total() > 0).then(|| EfficiencyFactors::of(&efficiency, &findings.rows))
}

/// Columns and metrics of a path that are not zero: nanoseconds, unless they are counts.
///
/// `taken_*`: waiting at the path of those that waited (symptom); `given_*`: at the path of the one that was waited
/// for; `shared_*`: shared by those that worked meanwhile (causes).
pub type PathValues = BTreeMap<String, u64>;

/// Time, waiting and blame by the user's call paths (docs/call-paths.md).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallPathTables {
    /// The column by which rows are sorted.
    pub sorted_by: String,
    /// Whether times are those of the samples (profiles, clock cpu); else time is the capacity and `other_threads_ns`.
    pub is_time_sampled: bool,
    /// Nanoseconds of the time that are samples of threads that are not workers.
    pub other_threads_ns: u64,
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
    /// Number of rows of the last three without `--top`.
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

/// A path with values of its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Frames, outermost first.
    pub frames: Vec<String>,
    /// The column that rows are sorted by, if it is of nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// The column that rows are sorted by, if it is a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// All its values.
    pub values: PathValues,
}

/// A row of a tree in the order of reading, largest first. Its columns (time, waiting, blame, …; only those that are
/// not zero) are sums with all that is further in. Of more than 1000 rows (`--top`) the smallest are summed in a row
/// (`rest`) below the step that they are in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathRow {
    /// The step's name.
    pub name: String,
    /// Whether it is a frame of the runtime; absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub runtime: bool,
    /// State of the thread outside its own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Word>,
    /// The kind of step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["function", "parallel", "task", "loop", "line", "unknown", "no-path", "rest"]))]
    pub what: Option<Word>,
    /// Its function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line; of a function the line from which it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Steps around it.
    pub depth: usize,
    /// Whether it is on the hot path.
    pub hot: bool,
    /// The part of the column that rows are sorted by without a step further in.
    #[serde(flatten)]
    pub own: OwnPart,
    /// Columns.
    #[serde(flatten)]
    pub columns: PathValues,
}

/// The part of a row's value that has no step further in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnPart {
    /// Top-down: the part without a step further in.
    Own(u64),
    /// Bottom-up: the part without a further caller.
    Outermost(u64),
}

/// A function, loop or line, most of its own first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlaceRow {
    /// Its name.
    pub name: String,
    /// `rest` in the last row, if there are more than `--top`: the sum of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["rest"]))]
    pub what: Option<Word>,
    /// Its function.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Its line.
    pub line: Option<u32>,
    /// State of the threads outside their own code.
    pub state: Option<Word>,
    /// The column that rows are sorted by, of the place alone.
    pub own: u64,
    /// Value including callees; null for the rest.
    pub total: Option<u64>,
}

/// Number of functions, loops and lines.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RowCounts {
    /// Functions.
    pub functions: RowCount,
    /// Loops.
    pub loops: RowCount,
    /// Lines.
    pub lines: RowCount,
}

/// Number of rows of a table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RowCount {
    /// All rows.
    pub all: usize,
    /// Those whose line is known.
    pub with_line: usize,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(flag: &bool) -> bool {
    !flag
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
                    let (rows, of_all) = flat(&self.shown_flat(by, runtime), by, sort, top);
                    *count(&mut row_counts) = of_all;
                    rows
                }
                false => Vec::new(),
            };
        let functions = flat_of(FlatBy::Function, |counts| &mut counts.functions);
        let loops = flat_of(FlatBy::Loop, |counts| &mut counts.loops);
        let lines = flat_of(FlatBy::Line, |counts| &mut counts.lines);
        let balances = conservation(&self.tree.tree);
        let mut tables = CallPathTables {
            sorted_by: key_of(sort),
            is_time_sampled: self.is_sampled(),
            other_threads_ns: self.quality.map_or(0, |quality| quality.other_threads_ns),
            totals: values(&tree, ROOT, true),
            paths: if options.views.is_none() { paths(&tree, sort) } else { Vec::new() },
            top_down: tree_of(PathsView::TopDown, &|| self.tree.functions_and_loops(runtime), OwnPart::Own),
            bottom_up: tree_of(PathsView::BottomUp, &|| views::bottom_up(&tree), OwnPart::Outermost),
            functions,
            loops,
            lines,
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
        let capacity: u64 = states.iter().map(|(_, ns)| ns).sum();
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
            false if self.other_threads_ns > 0 => TimeKind::Both,
            false => TimeKind::Workers,
        }
    }
}

impl PathRow {
    /// Whether it is the sum of rows that are left out.
    pub(super) fn is_rest(&self) -> bool {
        self.what.as_deref() == Some("rest")
    }

    /// A column of the row.
    pub(super) fn value(&self, column: Column) -> u64 {
        self.columns.get(&key_of(column)).copied().unwrap_or(0)
    }

    /// The step, with the line from which it was called, or which waits.
    pub(super) fn label(&self) -> String {
        let has_place = self.what.as_deref() == Some("function") || self.state.is_some();
        let file = self.file.as_deref().and_then(|file| file.rsplit('/').next());
        match file.zip(self.line).filter(|_| has_place) {
            Some((file, line)) => format!("{}  ({file}:{line})", self.name),
            None => self.name.clone(),
        }
    }
}

/// All columns and metrics of a node that are not zero.
fn values(tree: &CallTree, node: NodeId, whole: bool) -> PathValues {
    let columns = Column::ALL.into_iter().map(|column| {
        let value =
            if whole { views::total(&tree.tree, column) } else { views::own(&tree.tree, node, column) };
        (column.name().to_string(), value)
    });
    let metrics = Metric::all().filter(|metric| metric.wait().is_some() || *metric == Metric::REGIONS);
    let metrics = metrics.filter_map(|metric| {
        let value = if whole { tree.tree.total(metric) } else { tree.tree.value(node, metric) };
        Some((metric.name()?.to_string(), value))
    });
    columns.chain(metrics).filter(|(_, value)| *value > 0).collect()
}

/// The row of a step, without its values.
fn row_of(tree: &CallTree, node: NodeId, depth: usize, own: OwnPart) -> PathRow {
    let frame = tree.tree.frame(node);
    let mut row = PathRow {
        name: tree.text_of(frame),
        runtime: frame.kind == FrameKind::Runtime,
        state: None,
        what: None,
        function: None,
        file: None,
        line: None,
        module: None,
        depth,
        hot: false,
        own,
        columns: PathValues::new(),
    };
    if let Some(marker) = frame.marker() {
        row.state = Some(marker.name().into());
        if let Some(place) = tree.place_of(frame) {
            (row.file, row.line) = (place.file.clone(), place.line);
        }
    }
    if let Some(label) = tree.label(node) {
        let what = match label.what {
            StepKind::Function => "function",
            StepKind::Parallel => "parallel",
            StepKind::Task => "task",
            StepKind::Loop => "loop",
            StepKind::Line => "line",
            StepKind::Unknown => "unknown",
            StepKind::NoPath => "no-path",
        };
        row.what = Some(what.into());
        (row.function, row.module) = (Some(label.function.clone()), Some(label.module.clone()));
        (row.file, row.line) = (label.file.clone(), label.line);
    }
    row
}

/// Every path with values of its own, most first.
fn paths(tree: &CallTree, sort: Column) -> Vec<Path> {
    let mut rows: Vec<(u64, NodeId)> = (tree.nodes())
        .filter(|node| tree.tree.values(*node).any(|(_, value)| value > 0))
        .map(|node| (views::own(&tree.tree, node, sort), node))
        .collect();
    rows.sort_by_key(|(value, node)| (std::cmp::Reverse(*value), *node));
    rows.iter()
        .map(|(value, node)| {
            let mut frames: Vec<String> = tree.tree.path(*node).map(|frame| tree.text_of(frame)).collect();
            frames.reverse();
            let (ns, count) = if is_count(sort) { (None, Some(*value)) } else { (Some(*value), None) };
            Path { frames, ns, count, values: values(tree, *node, false) }
        })
        .collect()
}

/// Rows in depth-first order. A row for the omitted rest follows below a step, so that rows sum to their
/// parent. `own` names the part of a row's value outside its inner steps.
fn rows(tree: &CallTree, choice: &Choice<'_>, columns: &[Column], own: fn(u64) -> OwnPart) -> Vec<PathRow> {
    let rows = views::rows(&tree.tree, choice);
    let sums = columns.iter().map(|column| (*column, views::inclusive(&tree.tree, *column)));
    let sums: Vec<(Column, Vec<u64>)> = sums.collect();
    let mut rest = sums.clone();
    for (column, rest) in &mut rest {
        for node in tree.tree.ids() {
            let own = views::own(&tree.tree, node, *column);
            rest[node.0 as usize] = rest[node.0 as usize].saturating_sub(own);
        }
    }
    for row in &rows {
        let outer = tree.tree.parent(row.node).0 as usize;
        for ((_, sums), (_, rest)) in sums.iter().zip(&mut rest) {
            rest[outer] = rest[outer].saturating_sub(sums[row.node.0 as usize]);
        }
    }
    let mut made = Vec::new();
    let mut around = vec![ROOT];
    for row in &rows {
        close(&mut around, row.depth + 1, &rest, &mut made, own);
        around.push(row.node);
        let columns = columns_of(row.node, &sums);
        let step = row_of(tree, row.node, row.depth, own(row.own));
        made.push(PathRow { hot: row.hot, columns, ..step });
    }
    close(&mut around, 0, &rest, &mut made, own);
    made
}

/// Closes steps until at most `open` remain; adds a row for the omitted rest of each.
fn close(
    around: &mut Vec<NodeId>,
    open: usize,
    rest: &[(Column, Vec<u64>)],
    made: &mut Vec<PathRow>,
    own: fn(u64) -> OwnPart,
) {
    while around.len() > open {
        let columns = around.pop().map(|node| columns_of(node, rest)).unwrap_or_default();
        if !columns.is_empty() {
            made.push(PathRow {
                name: "the rest".into(),
                runtime: false,
                state: None,
                what: Some("rest".into()),
                function: None,
                file: None,
                line: None,
                module: None,
                depth: around.len(),
                hot: false,
                own: own(0),
                columns,
            });
        }
    }
}

/// The columns of a node that are not zero.
fn columns_of(node: NodeId, sums: &[(Column, Vec<u64>)]) -> PathValues {
    let values = sums.iter().map(|(column, sums)| (key_of(*column), sums[node.0 as usize]));
    values.filter(|(_, value)| *value > 0).collect()
}

/// Rows sorted by their own value. The omitted rest, or time outside loops, is the last row, without callees.
fn flat(tree: &CallTree, by: FlatBy, sort: Column, top: usize) -> (Vec<PlaceRow>, RowCount) {
    let rows = views::flat(tree, by, sort);
    let line_of = |row: &FlatRow| row.label.as_ref().and_then(|label| label.line);
    let count = RowCount { all: rows.len(), with_line: rows.iter().filter_map(line_of).count() };
    let mut made: Vec<PlaceRow> = (rows.iter().take(top))
        .map(|row| PlaceRow {
            name: flat_name(row),
            what: None,
            function: row.label.as_ref().map(|label| label.function.clone()),
            file: row.label.as_ref().and_then(|label| label.file.clone()),
            line: line_of(row),
            state: row.marker.map(|marker| marker.name().into()),
            own: row.own,
            total: Some(row.total),
        })
        .collect();
    let rest = views::rest_of(tree, rows.iter().take(top), sort);
    if rest > 0 {
        made.push(PlaceRow {
            name: "the rest".into(),
            what: Some("rest".into()),
            function: None,
            file: None,
            line: None,
            state: None,
            own: rest,
            total: None,
        });
    }
    (made, count)
}
