//! Data of a page that are computed on first use, and the last answers that it keeps.

use super::dependences::Dependences;
use super::matches::Matches;
use super::nested::Nested;
use super::run_files::RunFiles;
use super::sample_rows::SampleRows;
use super::sampled_code::SampledCode;
use super::types::TypeRows;
use crate::awaited::AwaitedObjects;
use crate::report_json::Report;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, OnceLock};
use taskscope_execution::lod::Counter;
use taskscope_session::instrumentation::Views;
use taskscope_session::model_views::ModelViews;

/// Derived data, empty in a new page. [`Page`](super::Page) has a function for each.
#[derive(Default)]
pub(super) struct Derived {
    /// Views of the trace's models; `None` without a trace to replay.
    pub models: OnceLock<Option<Arc<ModelViews>>>,
    /// Views of the trace's instrumentation; `None` without a trace to replay.
    pub shown: OnceLock<Option<Arc<Views>>>,
    pub nested: OnceLock<Arc<Nested>>,
    pub ready_tasks: OnceLock<Counter>,
    pub live_tasks: OnceLock<Counter>,
    pub bytes_in_flight: OnceLock<Counter>,
    /// Operations that are submitted and have not begun, by device queue.
    pub queued: OnceLock<Vec<OnceLock<Counter>>>,
    pub awaited: OnceLock<Arc<AwaitedObjects>>,
    /// Short names that several task types have.
    pub shared_names: OnceLock<Arc<FxHashSet<String>>>,
    pub dependences: OnceLock<Dependences>,
    /// Rows of the calls of a communication library by thread, by begin.
    pub calls: OnceLock<Vec<Vec<u32>>>,
    /// Times and rows of messages by thread, in order.
    pub messages: OnceLock<Vec<Vec<(u64, u32)>>>,
    pub type_rows: OnceLock<TypeRows>,
    /// Nanoseconds of each task's body.
    pub body_times: OnceLock<Vec<u64>>,
    /// Rows of both views of samples.
    pub sample_rows: [OnceLock<SampleRows>; 2],
    /// Samples of functions.
    pub sampled_code: OnceLock<Arc<SampledCode>>,
    /// Files of the sites of the run, and those of its samples.
    pub source_files: OnceLock<RunFiles>,
    /// The last highlighted matches.
    pub highlighted: Mutex<Option<Arc<Matches>>>,
    /// The last range that was reported, nanoseconds since the start of the trace, and its report.
    pub last_part: Mutex<LastPart>,
}

type LastPart = Option<((u64, u64), Arc<Report>)>;
