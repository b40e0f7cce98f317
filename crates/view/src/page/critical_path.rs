//! The critical path of a page.

use crate::causes::CriticalPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taskscope_session::Session;

/// The critical path of a page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PathOfPage {
    /// The path with its longest steps in order of time. All steps tile its time; if only the longest are
    /// listed, `steps_in_all` is their number.
    Known {
        /// The path, as section `path` has it.
        #[serde(flatten)]
        path: Box<CriticalPath>,
        /// Its begin, nanoseconds of the trace's clock.
        begin_ns: u64,
    },
    /// A path that was not computed.
    Unknown {
        /// The reason.
        not_computed: String,
    },
}

/// Tasks beyond which the critical path is only computed when `report --section path` asks for it.
const TASKS_OF_A_PATH: usize = 1_000_000;
/// Steps of it that are drawn.
const STEPS: usize = 2000;

/// The critical path; `None` if the trace has no task graph.
pub(super) fn critical_path(session: &Session) -> Option<PathOfPage> {
    let tasks = session.execution.tasks.len();
    if tasks > TASKS_OF_A_PATH {
        let why = format!("the run has more than {} tasks", crate::format::count(TASKS_OF_A_PATH as u64));
        return Some(PathOfPage::Unknown { not_computed: why });
    }
    let graph = if tasks > 0 { session.task_graph().ok() } else { None };
    let (graph, _) = graph?;
    let path = Box::new(crate::causes::critical_path(&graph, STEPS));
    Some(PathOfPage::Known { path, begin_ns: graph.range().0 })
}
