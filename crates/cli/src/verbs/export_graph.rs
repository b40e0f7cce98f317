//! `taskscope export` of the task graph: the neutral form, and graphs of other programs.

use crate::messages::Failure;
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::layout;
use taskscope_execution::graph::{GraphError, TaskGraph};
use taskscope_export::task_graph::{GraphForm, write_task_graph};
use taskscope_import::neutral::write_json;
use taskscope_session::graph::{GraphTraceError, read_graph};
use taskscope_view::format::counted;

/// A form of a task graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfGraph {
    /// The neutral form, which `import` reads.
    Neutral,
    /// A graph of nodes and edges.
    Graph(GraphForm),
}

impl OfGraph {
    /// Writes a graph, and returns notes about it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(self, graph: &TaskGraph, name: &str, out: &mut dyn Write) -> io::Result<Vec<String>> {
        match self {
            OfGraph::Neutral => {
                let losses = write_json(graph, name, out)?;
                let note = losses
                    .iter()
                    .map(|loss| format!("{} {} are lost: {}", loss.count, loss.content, loss.why));
                Ok(note.collect())
            }
            OfGraph::Graph(form) => {
                let counts = write_task_graph(graph, form, out)?;
                Ok(vec![format!("{}, {}", counted(counts.nodes, "task"), counted(counts.edges, "edge"))])
            }
        }
    }
}

/// The task graph of a trace: the stored one of an import, else that of the execution.
///
/// # Errors
/// If there is none to read.
pub fn task_graph(trace: &Path) -> anyhow::Result<TaskGraph> {
    let broken = |errors: Vec<GraphError>| {
        let why: Vec<&str> = errors.iter().take(10).map(|error| error.text.as_str()).collect();
        Failure::new(format!("cannot read the task graph of {}", trace.display())).why(why.join("\n"))
    };
    if trace.join(layout::GRAPH_METADATA).exists() {
        match read_graph(trace) {
            Ok(Some(found)) => {
                if found.misfits > 0 {
                    eprintln!("warning: left out {} that did not fit", counted(found.misfits, "event"));
                }
                return Ok(found.graph);
            }
            Ok(None) | Err(GraphTraceError::Open(_)) => {}
            Err(GraphTraceError::Broken(errors)) => return Err(broken(errors).into()),
        }
    }
    let session = super::open(trace)?;
    let (graph, dropped) = session.task_graph().map_err(broken)?;
    if dropped > 0 {
        eprintln!(
            "note: {} that the clocks of threads contradict are lost",
            counted(dropped, "order relation")
        );
    }
    Ok(graph)
}
