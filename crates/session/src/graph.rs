//! The task graph of a trace with locations that store one.

use std::path::Path;
use taskscope_event::models::graph as codes;
use taskscope_execution::graph::{GraphError, TaskGraph};
use taskscope_model::graph::GraphReader;
use taskscope_trace::{OpenError, OpenOptions, Problem, Trace};

/// A task graph as stored in a trace.
pub struct GraphTrace {
    /// The graph.
    pub graph: TaskGraph,
    /// Problems of the streams.
    pub problems: Vec<Problem>,
    /// Events that did not fit, and were left out.
    pub misfits: u64,
}

/// Reason of a missing graph.
#[derive(Debug)]
pub enum GraphTraceError {
    /// The trace cannot be read.
    Open(OpenError),
    /// The read data breaks preconditions of a graph.
    Broken(Vec<GraphError>),
}

/// The graph that is stored in the trace in `root`; `None` if its locations have none.
///
/// # Errors
/// If the trace cannot be read, or its graph is inconsistent.
pub fn read_graph(root: &Path) -> Result<Option<GraphTrace>, GraphTraceError> {
    let trace = Trace::open(root, &OpenOptions::default()).map_err(GraphTraceError::Open)?;
    let mut reader = GraphReader::new();
    let mut found = false;
    for location in trace.locations() {
        reader.next_location();
        for event in location.events().filter(|event| event.code.model() == codes::LETTER) {
            found = true;
            reader.event(event.clock_ns.max(0) as u64, event.code, event.payload);
        }
    }
    if !found {
        return Ok(None);
    }
    let (graph, misfits) = reader.finish().map_err(GraphTraceError::Broken)?;
    Ok(Some(GraphTrace { graph, problems: trace.problems().to_vec(), misfits }))
}
