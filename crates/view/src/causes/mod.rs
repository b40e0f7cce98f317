//! The causes of lost time, from a task graph: text for a terminal and JSON (`docs/analysis.md`).
//!
//! Each section is computed on demand.

mod data;
mod diagnosis;
mod idle;
mod ledger;
mod options;
mod path;
mod what_if;

pub use options::CausesOptions;
use options::nanos_within;
pub use what_if::WhatIf;

use crate::section::Section;
use data::{DataWait, ReadyQueue};
use diagnosis::LostTime;
use idle::IdleTimes;
use ledger::{ChargedLoss, LedgerTimes};
pub use path::CriticalPath;
use path::{PopEfficiencies, Prediction, WhatIfTimes};
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_analysis::causes::{Causes, book_causes_in};
use taskscope_analysis::slo::{Prepared, SloOptions};
use taskscope_cause::Cause;
use taskscope_execution::OsSource;
use taskscope_execution::graph::{Role, TaskGraph};

/// Values that several sections need, computed once.
struct Computed {
    causes: Option<Causes>,
    prediction: Option<Prediction>,
}

impl Computed {
    fn for_sections(graph: &TaskGraph, sections: &[Section], range: (u64, u64)) -> Computed {
        use Section::{Blame, Data, Diagnosis, Ledger, Path, Pop, Queues, WhatIf};
        let any = |of: &[Section]| sections.iter().any(|section| of.contains(section));
        // Two sweeps over the graph that do not need each other.
        let (causes, prediction) = rayon::join(
            || any(&[Ledger, Blame, Data, Queues, Diagnosis, Pop]).then(|| book_causes_in(graph, range)),
            || any(&[Diagnosis, Path, Pop, WhatIf]).then(|| Prediction::of(graph)),
        );
        Computed { causes, prediction }
    }
}

/// The causes of lost time (docs/analysis.md). Only the requested sections are present.
///
/// Times are integers in nanoseconds, but for those of section `idle`, which have fractions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-causes/1")]
pub struct CausesReport {
    /// The directory, as it was given.
    pub trace: String,
    /// Workers that execute tasks.
    pub workers: usize,
    /// Ids of threads that serve the runtime and execute no tasks; no part of `workers` and `capacity_ns`.
    pub runtime_threads: Vec<u64>,
    /// Number of nodes.
    pub nodes: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// Sum of the lives of all workers that execute tasks.
    pub capacity_ns: u64,
    /// Time from the first begin to the last end of a worker, in the range.
    pub wall_ns: u64,
    /// The selection (`--range`, `--where`); null for everything. All numbers cover that part, except bounds,
    /// slack, task costs and `whatif`, which cover the whole run.
    pub part: Option<String>,
    /// Facts that the source does not have; none of them is taken as zero.
    pub unknown: Vec<&'static str>,
    /// Facts that the source has in sums only, which were spread.
    pub estimated: Vec<&'static str>,
    /// Notes on all sections. With a filter: the selected threads, and whether events are omitted.
    pub notes: Vec<String>,
    /// The use of every worker-nanosecond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerTimes>,
    /// Charges, largest first; the rows of a cause sum to it. No row is about work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<Vec<ChargedLoss>>,
    /// Waiting by the data that decided, largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Vec<DataWait>>,
    /// Ready tasks of each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<ReadyQueue>>,
    /// Starvation, latency and overhead of idle workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleTimes>,
    /// Lost time by pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<LostTime>,
    /// POP's efficiencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pop: Option<PopEfficiencies>,
    /// The critical path, and the bounds of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<CriticalPath>,
    /// The run with other costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whatif: Option<WhatIfTimes>,
}

/// Computes the sections; the document names the trace.
pub fn causes_report(trace: &str, graph: &TaskGraph, options: &CausesOptions) -> CausesReport {
    let inside = |from: u64, to: u64| nanos_within((from, to), options.range);
    let runtime_workers = graph.workers.iter().filter(|worker| worker.role == Role::Runtime);
    let (begin, end) = graph.range();
    let done = Computed::for_sections(graph, &options.sections, options.range);
    let wants = |section| options.sections.contains(&section);
    let causes = |section| done.causes.as_ref().filter(|_| wants(section));
    let prediction = |section| done.prediction.as_ref().filter(|_| wants(section));
    let both = |section| causes(section).zip(prediction(section));
    let slo = || {
        let (intervals, windows) = (options.intervals, options.windows.clone());
        Prepared::new(graph).attribute(options.mode, &SloOptions { intervals, windows, range: options.range })
    };
    CausesReport {
        trace: trace.to_owned(),
        workers: graph.selected_workers().count(),
        runtime_threads: runtime_workers.map(|worker| worker.id).collect(),
        nodes: graph.nodes.len(),
        tasks: graph.tasks.len(),
        capacity_ns: graph.selected_workers().map(|worker| inside(worker.begin, worker.end)).sum(),
        wall_ns: inside(begin, end),
        part: options.part.clone(),
        unknown: unknown_columns(graph),
        estimated: estimated_columns(graph),
        notes: options.notes.clone(),
        ledger: causes(Section::Ledger).map(|causes| ledger::times(graph, causes)),
        blame: causes(Section::Blame).map(|causes| ledger::charges(graph, causes)),
        data: causes(Section::Data).map(|causes| data::data(graph, causes)),
        queues: causes(Section::Queues).map(|causes| data::queues(graph, causes)),
        idle: wants(Section::Idle).then(|| idle::times(graph, &slo(), options)),
        diagnosis: both(Section::Diagnosis)
            .map(|(causes, prediction)| diagnosis::lost_time(graph, causes, prediction, options.runtime)),
        pop: both(Section::Pop)
            .map(|(causes, prediction)| path::pop_efficiencies(graph, causes, prediction, options.range)),
        path: prediction(Section::Path).map(|prediction| {
            let most_steps = if options.intervals { usize::MAX } else { 0 };
            let found = path::path_and_slack(graph, options.range);
            path::path(graph, prediction, found, most_steps, options.range)
        }),
        whatif: prediction(Section::WhatIf).map(|prediction| path::what_if(graph, prediction, options)),
    }
}

/// The section `path` alone, with no more than so many steps, the longest.
pub(crate) fn critical_path(graph: &TaskGraph, most_steps: usize) -> CriticalPath {
    let whole = (0, u64::MAX);
    let (prediction, path) = rayon::join(|| Prediction::of(graph), || path::path_and_slack(graph, whole));
    path::path(graph, &prediction, path, most_steps, whole)
}

/// The sections as lines of at most `width` columns, with so many rows of each table.
pub fn causes_text(report: &CausesReport, top: usize, width: usize) -> String {
    crate::format::narrowed(&sections_text(report, top), width)
}

fn sections_text(report: &CausesReport, top: usize) -> String {
    // As of a program that uses devices and nothing else that is recorded.
    if report.workers == 0 {
        return "  the trace has no workers: no thread is known to run tasks. Device queues: --section devices\n"
            .to_owned();
    }
    let mut text = String::new();
    if let Some(part) = &report.part {
        text += &format!("  part of the trace: {part}\n");
    }
    let capacity = report.capacity_ns;
    if let Some(ledger) = &report.ledger {
        ledger::text(ledger, report.runtime_threads.len(), &mut text);
    }
    if let Some(charges) = &report.blame {
        ledger::blame_text(charges, capacity, top, &mut text);
    }
    if let Some(rows) = &report.data {
        data::data_text(rows, capacity, top, &mut text);
    }
    if let Some(queues) = &report.queues {
        data::queues_text(queues, &mut text);
    }
    if let Some(lost) = &report.diagnosis {
        diagnosis::text(lost, capacity, &mut text);
    }
    if let Some(idle) = &report.idle {
        idle::text(idle, top, &mut text);
    }
    if let Some(path) = &report.path {
        path::path_text(path, top, &mut text);
    }
    if let Some(pop) = &report.pop {
        path::pop_text(pop, &mut text);
    }
    if let Some(times) = &report.whatif {
        path::whatif_text(times, &mut text);
    }
    if !report.unknown.is_empty() {
        text += &format!("  not known from this source: {}\n", report.unknown.join(", "));
        if report.unknown.contains(&DEPENDENCES) {
            text += "  so waiting for a dependence is reported as dispatch, and the longest chain and slack as if there were none\n";
        }
    }
    if !report.estimated.is_empty() {
        text += &format!("  estimated: {}\n", report.estimated.join(", "));
    }
    for note in &report.notes {
        text += &format!("  note: {note}\n");
    }
    text
}

/// Columns that the source has only as sums, which were spread.
fn estimated_columns(graph: &TaskGraph) -> Vec<&'static str> {
    let columns = [("time off the CPU", graph.off_cpu == OsSource::Estimated)];
    columns.iter().filter(|(_, estimated)| *estimated).map(|(name, _)| *name).collect()
}

/// Name of this column in the list of unknown ones.
const DEPENDENCES: &str = "dependences of tasks";

/// Columns missing in the source; none of them is taken as zero.
fn unknown_columns(graph: &TaskGraph) -> Vec<&'static str> {
    let has =
        |cause: Cause| graph.activities.items().iter().any(|activity| activity.kind.cause().is_in(cause));
    let sent = graph.copies.items().iter().any(|copy| copy.sent != taskscope_execution::NO_TIME);
    let columns = [
        ("creation of tasks", graph.recorded.creation),
        ("readiness of tasks", !graph.tasks.ready.is_empty()),
        (DEPENDENCES, graph.recorded.dependences),
        ("times of sending", sent || graph.copies.items().is_empty()),
        ("runtime sections", has(Cause::Runtime) || !graph.tasks.uniform.is_empty()),
        ("lock waits", graph.recorded.locks),
        ("communication calls", has(Cause::Mpi)),
        ("time off the CPU", graph.recorded.off_cpu),
    ];
    columns.iter().filter(|(_, known)| !known).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_analysis::slo::Mode;
    use taskscope_execution::graph::{GraphBuilder, NewTask, RecordedFacts, TaskType};

    fn ledger_of(graph: &TaskGraph) -> String {
        text_of(graph, vec![Section::Ledger])
    }

    fn text_of(graph: &TaskGraph, sections: Vec<Section>) -> String {
        let options = CausesOptions {
            sections,
            mode: Mode::Root,
            intervals: false,
            windows: Vec::new(),
            what_if: Vec::new(),
            top: 20,
            range: (0, u64::MAX),
            part: None,
            notes: Vec::new(),
            runtime: None,
        };
        causes_text(&causes_report("graph", graph, &options), options.top, 300)
    }

    #[test]
    fn names_of_a_source_cannot_act_on_a_terminal_nor_fill_it() {
        let mut builder = GraphBuilder::new();
        builder.add_worker(0, 0, 0, 200);
        for (id, name) in [(1, "line\nbreak\u{1b}[31m".to_owned()), (2, "long".repeat(25_000))] {
            let ty = builder.add_type(TaskType { name, ..TaskType::default() });
            builder.add_task(NewTask::new(id, ty));
            builder.add_piece(0, id, 60 * id, 60 * id + 50);
        }
        let graph = builder.finish().unwrap();
        let text = text_of(&graph, Section::ALL.to_vec());
        assert!(text.contains("seen before or in line") && !text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() < 300 && !line.starts_with("break")));
    }

    #[test]
    fn a_trace_without_workers_prints_a_note_instead_of_zeros() {
        let text = ledger_of(&TaskGraph::default());
        assert!(text.starts_with("  the trace has no workers") && !text.contains("capacity"), "{text}");
    }

    #[test]
    fn consequences_of_unknown_dependences_are_printed() {
        let mut builder = GraphBuilder::new();
        builder.add_worker(0, 0, 0, 100);
        let graph = builder.finish().unwrap();
        let consequence = "waiting for a dependence is reported as dispatch";
        assert!(!ledger_of(&graph).contains(consequence));
        let text = ledger_of(&TaskGraph {
            recorded: RecordedFacts { dependences: false, ..graph.recorded },
            ..graph
        });
        assert!(text.contains("dependences of tasks") && text.contains(consequence), "{text}");
    }
}
