//! Data of a run for the HTML report and the viewer: rows of buckets, sections, tasks, tables of a range.
//! Both draw the same answers; tests compare the drawn pages with these functions.
//!
//! Times that leave this module are nanoseconds since the start of the trace, so that they fit into
//! the numbers of a browser (exact up to 104 days).

mod assembly;
mod background;
mod bars;
mod between_calls;
mod counters;
mod critical_path;
mod dependences;
mod derived;
mod flows;
mod histograms;
mod instances;
mod matches;
mod matrix;
mod messages;
mod names;
mod nested;
mod nested_of_page;
mod notes;
mod operations;
mod overview;
mod packing;
pub(crate) mod page_data;
mod part_report;
mod queues;
mod ranges;
mod rows;
mod run_files;
mod sample_facts;
mod sample_instances;
mod sample_rows;
mod sample_rows_of_page;
mod sample_search;
mod sampled_code;
mod samples;
mod search;
mod search_totals;
mod sections;
mod shown;
mod slices;
mod source;
mod stored;
mod task_start;
mod tasks;
mod type_facts;
mod type_rows_of_page;
mod types;
mod values;
mod wait_words;

pub use assembly::{AssemblyFacts, InstructionFacts};
pub use bars::Bars;
pub use counters::{BucketStart, CounterBuckets, CounterKind, counter_buckets};
pub use critical_path::PathOfPage;
pub use dependences::{Dependences, Predecessor};
pub use flows::{Flow, Flows};
pub use instances::Instance;
pub use matches::Matches;
pub use matrix::{CommunicationMatrix, MatrixCell, MatrixProcess};
pub use names::Names;
pub use nested::{NESTED, Nested};
pub use nested_of_page::NestedList;
pub use notes::{MAX_NOTES_BYTES, Note, NoteFile};
pub use operations::OperationFacts;
pub use overview::Overview;
pub use queues::{LaneList, Queue, QueueOperation, Queues};
pub use ranges::RangeTimes;
pub use rows::{View, packed_rows, packed_rows_with, stacked_rows};
pub use sample_facts::{AroundFacts, AwayFacts, CodeShare, FunctionTime, OneSample, PathStep, SampleFacts};
pub use sample_rows::SampleView;
pub use sample_rows_of_page::SampleRowList;
pub use sampled_code::SampledFunction;
pub use samples::SampleTimes;
pub use search::{Direction, Found, Position};
pub use search_totals::SearchTotals;
pub use sections::SectionFacts;
pub use shown::{ShownList, ShownView};
pub use slices::{MAX_SLICE_BYTES, SliceError};
pub use source::{FileTime, LineHeat, SourceFacts, SourceOf};
pub use tasks::{TaskFacts, TaskQuery};
pub use type_facts::{InstanceOf, TypeFacts, TypeInstance};
pub use types::TypeRows;
pub use values::{ModelFamilies, ValueFacts, packed_model_rows};

use derived::Derived;

use crate::call_paths::json::TableOptions;
use crate::call_paths::{CallPaths, TOP_PATHS};
use crate::findings::findings_of;
use crate::report_json::Report;
use crate::source_files::SourceRoots;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::Arc;
use taskscope_analysis::{Analysis, Problem};
use taskscope_execution::lod::{Flags, Timeline};
use taskscope_execution::{Execution, ThreadIndex, ThreadKind};
use taskscope_session::Session;
use taskscope_session::cache::Key;

/// Everything that pages show of one run.
pub struct Page {
    /// The execution.
    pub execution: Arc<Execution>,
    /// The timeline at any zoom, with the findings' worst instances flagged.
    pub timeline: Timeline,
    /// Words for places.
    pub names: Names,
    /// The report, as `report --json` prints it.
    pub report: Report,
    /// The worst instance of each finding that has one.
    pub instances: Vec<Instance>,
    /// Body times of each task type in the order of the report's task types: `(from ns, tasks)`.
    pub histograms: Vec<Vec<(u64, u64)>>,
    /// The critical path; `None` if the trace has no task graph.
    pub critical_path: Option<PathOfPage>,
    /// Clocks of the trace, in words.
    pub clocks: String,
    /// Device queues.
    pub queues: Queues,
    /// Samples as time.
    pub samples: SampleTimes,
    /// First and after the last nanosecond.
    time: (u64, u64),
    /// The trace's directory.
    root: PathBuf,
    /// Identity of the trace when it was opened, if views of its models may be cached in files.
    key: Option<Key>,
    /// The thread of each stream, by its directory below the root.
    tracks_by_stream: FxHashMap<String, usize>,
    derived: Derived,
    /// Directories of source files.
    sources: SourceRoots,
}

/// The report, with call paths if samples were taken, and these samples.
fn report_with_paths(session: &Session, analysis: &Analysis, problems: &[Problem]) -> (Report, SampleTimes) {
    let mut report = crate::report_json(session, analysis, problems);
    let mut samples = SampleTimes::default();
    if !session.execution.whole().samples.rows.is_empty() {
        let (paths, nodes) = CallPaths::with_samples(session);
        samples = SampleTimes::of(&session.execution, &paths.tree, &nodes);
        report.call_paths = Some(paths.tables(&TableOptions::whole(false, None, TOP_PATHS)));
    }
    (report, samples)
}

impl Page {
    /// Analyses an opened run and builds its level of detail, both at once; without the critical path,
    /// which the viewer does not show.
    pub fn analysed(session: Session) -> Page {
        Page::analysed_while(session, Timeline::build, |_| None)
    }

    /// A page with the critical path, for a report, which shows the run at one zoom.
    pub fn reported(session: Session) -> Page {
        let page = Page::analysed_while(session, Timeline::without_buckets, critical_path::critical_path);
        let type_rows = page.new_type_rows().without_buckets(&page.execution);
        // Its counters are on the page, too; those of a large trace would take a pass over it.
        if page.report.events <= nested::MAX_READ_EVENTS {
            page.nested();
        }
        Page { derived: Derived { type_rows: type_rows.into(), ..page.derived }, ..page }
    }

    fn analysed_while(
        session: Session,
        timeline_of: impl FnOnce(&Execution) -> Timeline + Send,
        path: impl FnOnce(&Session) -> Option<PathOfPage>,
    ) -> Page {
        let execution = &session.execution;
        let (mut analysed, mut timeline) = (None, None);
        // Names of places stay on this thread, and so does the critical path, which needs them.
        let critical_path = rayon::in_place_scope(|scope| {
            scope.spawn(|_| analysed = Some(taskscope_analysis::analyse(execution)));
            scope.spawn(|_| timeline = Some(timeline_of(execution)));
            path(&session)
        });
        let (analysis, problems) = analysed.unwrap_or_else(|| taskscope_analysis::analyse(execution));
        let timeline = timeline.unwrap_or_default();
        Page::of(session, &analysis, &problems, timeline, critical_path)
    }

    /// An opened and analysed run without its critical path, for a comparison.
    pub(crate) fn without_path(session: Session, analysis: &Analysis, problems: &[Problem]) -> Page {
        let timeline = Timeline::build(&session.execution);
        Page::of(session, analysis, problems, timeline, None)
    }

    /// Takes an opened and analysed run. Builds the level of detail, in parallel.
    pub fn new(session: Session, analysis: &Analysis, problems: &[Problem]) -> Page {
        let timeline = Timeline::build(&session.execution);
        let critical_path = critical_path::critical_path(&session);
        Page::of(session, analysis, problems, timeline, critical_path)
    }

    fn of(
        session: Session,
        analysis: &Analysis,
        problems: &[Problem],
        mut timeline: Timeline,
        critical_path: Option<PathOfPage>,
    ) -> Page {
        let (report, samples) = report_with_paths(&session, analysis, problems);
        let clocks = crate::info::clocks(&session);
        let findings = findings_of(&session, analysis);
        let queues = Queues::of(&session.devices, session.times);
        let streams = session.streams.iter().map(|stream| (stream.path.clone(), stream.thread.index()));
        let tracks_by_stream = streams.collect();
        let execution = Arc::new(session.execution);
        let (instances, histograms) = rayon::join(
            || instances::of(&execution, &findings, &samples),
            || histograms::histograms(&execution, analysis),
        );
        for instance in &instances {
            timeline.mark(instance.thread, Flags::FINDING, vec![(instance.start, instance.end)]);
        }
        Page {
            names: Names::of(execution.clone(), taskscope_session::KeptModules::in_trace(&session.root)),
            timeline,
            report,
            instances,
            histograms,
            critical_path,
            clocks,
            time: time_of(&execution, &queues),
            queues,
            samples,
            root: session.root,
            key: None,
            tracks_by_stream,
            derived: Derived::default(),
            execution,
            sources: SourceRoots::default(),
        }
    }

    /// Keeps views of models that are costly to play in files beside the trace's cache, which had this key when
    /// it was opened.
    pub fn keep_views(&mut self, key: Key) {
        self.key = Some(key);
    }

    /// Cancels replays of the trace for views.
    pub fn stop(&self) {
        if let Some(models) = self.derived.models.get().and_then(|models| models.as_ref()) {
            models.stop();
        }
        if let Some(shown) = self.derived.shown.get().and_then(|shown| shown.as_ref()) {
            shown.stop();
        }
    }

    /// First and after the last nanosecond on the trace's own clock, device queues included.
    pub fn time(&self) -> (u64, u64) {
        self.time
    }

    /// Start of the trace on its own clock, nanoseconds.
    pub fn start(&self) -> u64 {
        self.time().0
    }

    /// Time from the first to the last event, nanoseconds; at least 1.
    pub fn length(&self) -> u64 {
        let (start, end) = self.time();
        (end - start).max(1)
    }

    /// Nanoseconds since the start of the trace.
    pub(crate) fn since_start(&self, at: u64) -> u64 {
        at.saturating_sub(self.start())
    }

    /// Number of tracks; a track is a thread.
    pub fn tracks(&self) -> usize {
        self.execution.threads.len()
    }

    /// All listed threads.
    pub fn all_tracks(&self) -> Vec<ThreadIndex> {
        let threads = self.execution.threads.iter().enumerate();
        let threads = threads.filter(|(_, t)| t.has_row() && t.kind != ThreadKind::Cpu);
        threads.map(|(index, _)| ThreadIndex(index as u32)).collect()
    }

    /// All tracks that are listed, threads and CPUs, in the order of ranks.
    pub fn listed_tracks(&self) -> Vec<ThreadIndex> {
        let threads = self.execution.threads.iter().enumerate();
        let listed = threads.filter(|(_, t)| t.has_row());
        let mut listed: Vec<ThreadIndex> = listed.map(|(index, _)| ThreadIndex(index as u32)).collect();
        self.execution.sort_by_rank(&mut listed);
        listed
    }

    /// Dependences between tasks, computed on first use.
    pub fn dependences(&self) -> &Dependences {
        self.derived.dependences.get_or_init(|| Dependences::of(&self.execution))
    }
}

/// Begin and end of a run, on its own clock.
fn time_of(execution: &Execution, queues: &Queues) -> (u64, u64) {
    // Operations may reach out of a part of a run.
    let (low, high) = execution.part_of_time();
    let queue_range = queues.range().map(|(first, last)| (first.clamp(low, high), last.clamp(low, high)));
    match (execution.range(), queue_range) {
        (range, None) => range,
        ((0, 0), Some(range)) => range,
        ((start, end), Some((first, last))) => (start.min(first), end.max(last)),
    }
}
