//! Why time was lost, from a task graph: text for a person and JSON (`docs/analysis.md`).
//!
//! Each section is computed when it is asked for.

mod data;
mod diagnosis;
mod idle;
mod ledger;
mod path;
mod what_if;

pub use what_if::WhatIf;

use path::Prediction;
use serde_json::{Map, Value, json};
use taskscope_analysis::FineNanos;
use taskscope_analysis::causes::{Causes, book_causes_in};
use taskscope_analysis::slo::{Mode, Options as SloOptions, Prepared};
use taskscope_cause::{Cause, Runtime};
use taskscope_execution::OsSource;
use taskscope_execution::graph::{Role, TaskGraph};

/// Name and version of the JSON form.
pub const SCHEMA: &str = "taskscope-causes/1";

/// A part of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CausesSection {
    /// What every worker-nanosecond went into.
    Ledger,
    /// Who is to blame for what was lost.
    Blame,
    /// Waiting for data, by the programmer's names for it.
    Data,
    /// Ready tasks that waited for a worker, and workers that did not take them.
    Queues,
    /// What the lost time means, and what would help.
    Diagnosis,
    /// Starvation, latency, overhead of idle workers.
    Idle,
    /// The critical path, and what bounds the run.
    Path,
    /// POP's efficiencies.
    Pop,
    /// The run with other costs.
    WhatIf,
}

impl CausesSection {
    /// All sections in the order of the report.
    pub const ALL: [CausesSection; 9] = [
        CausesSection::Ledger,
        CausesSection::Blame,
        CausesSection::Data,
        CausesSection::Queues,
        CausesSection::Diagnosis,
        CausesSection::Idle,
        CausesSection::Path,
        CausesSection::Pop,
        CausesSection::WhatIf,
    ];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            CausesSection::Ledger => "ledger",
            CausesSection::Blame => "blame",
            CausesSection::Data => "data",
            CausesSection::Queues => "queues",
            CausesSection::Diagnosis => "diagnosis",
            CausesSection::Idle => "idle",
            CausesSection::Path => "path",
            CausesSection::Pop => "pop",
            CausesSection::WhatIf => "whatif",
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct CausesOptions {
    /// The sections.
    pub sections: Vec<CausesSection>,
    /// How idle producers count.
    pub mode: Mode,
    /// Whether the JSON lists every idle interval.
    pub intervals: bool,
    /// Windows of time for which partial sums are wanted.
    pub windows: Vec<(u64, u64)>,
    /// Questions for the replay; the usual ones where there is none.
    pub what_if: Vec<WhatIf>,
    /// Rows of each table of the text.
    pub top: usize,
    /// The part of the run that the numbers are of, nanoseconds of the trace's clock: the whole is analysed, then cut.
    pub range: (u64, u64),
    /// That part, and what is selected besides, in the words of the user; none of a whole run.
    pub part: Option<String>,
    /// What the reader of all sections must know, in sentences.
    pub notes: Vec<String>,
    /// The runtime of the run, in whose words advice is given; none where that is not known.
    pub runtime: Option<Runtime>,
}

/// What several sections need, computed once.
struct Computed {
    causes: Option<Causes>,
    prediction: Option<Prediction>,
}

impl Computed {
    fn for_sections(graph: &TaskGraph, sections: &[CausesSection], range: (u64, u64)) -> Computed {
        use CausesSection::{Blame, Data, Diagnosis, Ledger, Path, Pop, Queues, WhatIf};
        let any = |of: &[CausesSection]| sections.iter().any(|section| of.contains(section));
        // Two sweeps over the graph that do not need each other.
        let (causes, prediction) = rayon::join(
            || any(&[Ledger, Blame, Data, Queues, Diagnosis, Pop]).then(|| book_causes_in(graph, range)),
            || any(&[Diagnosis, Path, Pop, WhatIf]).then(|| Prediction::of(graph)),
        );
        Computed { causes, prediction }
    }
}

/// The sections as JSON, below a head that names the trace.
pub fn causes_json(trace: &str, graph: &TaskGraph, options: &CausesOptions) -> Value {
    let mut report = Map::new();
    report.insert("schema".into(), SCHEMA.into());
    report.insert("trace".into(), trace.into());
    report.insert("workers".into(), graph.selected_workers().count().into());
    let of_runtime = graph.workers.iter().filter(|worker| worker.role == Role::Runtime);
    report.insert("runtime_threads".into(), of_runtime.map(|worker| Value::from(worker.id)).collect());
    report.insert("nodes".into(), graph.nodes.len().into());
    report.insert("tasks".into(), graph.tasks.len().into());
    let inside = |from: u64, to: u64| nanos_within((from, to), options.range);
    let capacity: u64 = graph.selected_workers().map(|worker| inside(worker.begin, worker.end)).sum();
    report.insert("capacity_ns".into(), capacity.into());
    let (begin, end) = graph.range();
    report.insert("wall_ns".into(), inside(begin, end).into());
    report.insert("part".into(), json!(options.part));
    report.insert("unknown".into(), json!(unknown_columns(graph)));
    report.insert("estimated".into(), json!(estimated_columns(graph)));
    report.insert("notes".into(), json!(options.notes));
    let done = Computed::for_sections(graph, &options.sections, options.range);
    let wants = |section| options.sections.contains(&section);
    if let Some(causes) = &done.causes {
        if wants(CausesSection::Ledger) {
            report.insert("ledger".into(), ledger::json(graph, causes));
        }
        if wants(CausesSection::Blame) {
            report.insert("blame".into(), ledger::blame_json(graph, causes));
        }
        if wants(CausesSection::Data) {
            report.insert("data".into(), data::data_json(graph, causes));
        }
        if wants(CausesSection::Queues) {
            report.insert("queues".into(), data::queues_json(graph, causes));
        }
    }
    if wants(CausesSection::Idle) {
        let wanted = SloOptions {
            intervals: options.intervals,
            windows: options.windows.clone(),
            range: options.range,
        };
        let slo = Prepared::new(graph).attribute(options.mode, &wanted);
        report.insert("idle".into(), json!(idle::times(graph, &slo, options)));
    }
    if let Some(prediction) = &done.prediction {
        if let Some(causes) = &done.causes {
            if wants(CausesSection::Diagnosis) {
                report
                    .insert("diagnosis".into(), diagnosis::json(graph, causes, prediction, options.runtime));
            }
            if wants(CausesSection::Pop) {
                report.insert("pop".into(), path::pop_json(graph, causes, prediction, options.range));
            }
        }
        if wants(CausesSection::Path) {
            let most_steps = if options.intervals { usize::MAX } else { 0 };
            let path = path::path_and_slack(graph, options.range);
            let path = path::path_json(graph, prediction, path, most_steps, options.range);
            report.insert("path".into(), path);
        }
        if wants(CausesSection::WhatIf) {
            report.insert("whatif".into(), path::whatif_json(graph, prediction, options));
        }
    }
    Value::Object(report)
}

/// The section `path` alone, with no more than so many steps, the longest.
pub(crate) fn path_json(graph: &TaskGraph, most_steps: usize) -> Value {
    let whole = (0, u64::MAX);
    let (prediction, path) = rayon::join(|| Prediction::of(graph), || path::path_and_slack(graph, whole));
    path::path_json(graph, &prediction, path, most_steps, whole)
}

/// The sections as lines for a person.
pub fn causes_text(graph: &TaskGraph, options: &CausesOptions) -> String {
    // As of a program that uses devices and nothing else that is recorded.
    if graph.selected_workers().next().is_none() {
        return "  no worker is in this trace: nothing tells of threads that run tasks. Device queues: --section devices\n"
            .to_owned();
    }
    let mut text = String::new();
    if let Some(part) = &options.part {
        text += &format!("  part of the trace: {part}\n");
    }
    let done = Computed::for_sections(graph, &options.sections, options.range);
    let wants = |section| options.sections.contains(&section);
    if let Some(causes) = &done.causes {
        if wants(CausesSection::Ledger) {
            ledger::text(graph, causes, &mut text);
        }
        if wants(CausesSection::Blame) {
            ledger::blame_text(graph, causes, options, &mut text);
        }
        if wants(CausesSection::Data) {
            data::data_text(graph, causes, options, &mut text);
        }
        if wants(CausesSection::Queues) {
            data::queues_text(graph, causes, &mut text);
        }
        if let Some(prediction) = done.prediction.as_ref().filter(|_| wants(CausesSection::Diagnosis)) {
            diagnosis::text(graph, causes, prediction, options.runtime, &mut text);
        }
    }
    if wants(CausesSection::Idle) {
        let wanted = SloOptions { intervals: false, windows: options.windows.clone(), range: options.range };
        let slo = Prepared::new(graph).attribute(options.mode, &wanted);
        idle::text(graph, &slo, options, &mut text);
    }
    if let Some(prediction) = &done.prediction {
        if wants(CausesSection::Path) {
            path::path_text(graph, prediction, options, &mut text);
        }
        if let Some(causes) = done.causes.as_ref().filter(|_| wants(CausesSection::Pop)) {
            path::pop_text(graph, causes, prediction, options.range, &mut text);
        }
        if wants(CausesSection::WhatIf) {
            path::whatif_text(graph, prediction, options, &mut text);
        }
    }
    let unknown = unknown_columns(graph);
    if !unknown.is_empty() {
        text += &format!("  not known from this source: {}\n", unknown.join(", "));
        if unknown.contains(&DEPENDENCES) {
            text += "  so waiting for a dependence is told as dispatch, and the longest chain and slack as if there were none\n";
        }
    }
    let estimated = estimated_columns(graph);
    if !estimated.is_empty() {
        text += &format!("  estimated: {}\n", estimated.join(", "));
    }
    for note in &options.notes {
        text += &format!("  note: {note}\n");
    }
    text
}

/// What the source tells in sums only, which were spread.
fn estimated_columns(graph: &TaskGraph) -> Vec<&'static str> {
    let columns = [("time off the CPU", graph.off_cpu == OsSource::Estimated)];
    columns.iter().filter(|(_, estimated)| *estimated).map(|(name, _)| *name).collect()
}

/// As it stands among what is not known.
const DEPENDENCES: &str = "dependences of tasks";

/// What the source does not tell; nothing of it is taken as zero.
fn unknown_columns(graph: &TaskGraph) -> Vec<&'static str> {
    let has =
        |cause: Cause| graph.activities.items().iter().any(|activity| activity.kind.cause().is_in(cause));
    let sent = graph.copies.items().iter().any(|copy| copy.sent != taskscope_execution::NO_TIME);
    let columns = [
        ("creation of tasks", graph.told.creation),
        ("readiness of tasks", !graph.tasks.ready.is_empty()),
        (DEPENDENCES, graph.told.dependences),
        ("times of sending", sent || graph.copies.items().is_empty()),
        ("runtime sections", has(Cause::Runtime) || !graph.tasks.uniform.is_empty()),
        ("lock waits", graph.told.locks),
        ("communication calls", has(Cause::Mpi)),
        ("time off the CPU", graph.told.off_cpu),
    ];
    columns.iter().filter(|(_, known)| !known).map(|(name, _)| *name).collect()
}

/// Nanoseconds of a stretch of time that are in a range.
fn nanos_within((from, to): (u64, u64), (begin, end): (u64, u64)) -> u64 {
    to.min(end).saturating_sub(from.max(begin))
}

/// Nanoseconds to six decimals; without a point where these are zeros.
fn number(time: FineNanos) -> Value {
    let ns = time.to_six_decimals();
    if ns == ns.trunc() { time.rounded().into() } else { ns.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::graph::{GraphBuilder, NewTask, TaskType, Told};

    fn ledger_of(graph: &TaskGraph) -> String {
        text_of(graph, vec![CausesSection::Ledger])
    }

    fn text_of(graph: &TaskGraph, sections: Vec<CausesSection>) -> String {
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
        causes_text(graph, &options)
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
        let text = text_of(&graph, CausesSection::ALL.to_vec());
        assert!(text.contains("seen before or in line") && !text.contains('\u{1b}'), "{text:?}");
        assert!(text.lines().all(|line| line.chars().count() < 300 && !line.starts_with("break")));
    }

    #[test]
    fn a_trace_without_workers_says_so_instead_of_zeros() {
        let text = ledger_of(&TaskGraph::default());
        assert!(text.starts_with("  no worker is in this trace") && !text.contains("capacity"), "{text}");
    }

    #[test]
    fn what_follows_from_dependences_that_are_not_told_is_said() {
        let mut builder = GraphBuilder::new();
        builder.add_worker(0, 0, 0, 100);
        let graph = builder.finish().unwrap();
        let consequence = "waiting for a dependence is told as dispatch";
        assert!(!ledger_of(&graph).contains(consequence));
        let text = ledger_of(&TaskGraph { told: Told { dependences: false, ..graph.told }, ..graph });
        assert!(text.contains("dependences of tasks") && text.contains(consequence), "{text}");
    }
}
