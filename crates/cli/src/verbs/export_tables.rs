//! `taskscope export --to parquet`: runs as tables.

use crate::messages::Failure;
use crate::opening::a_profile;
use crate::output;
use crate::verbs::profiles;
use crate::watch::Watch;
use std::io::Write;
use std::path::Path;
use taskscope_event::layout;
use taskscope_filter::TimeRange;
use taskscope_session::graph::{GraphTraceError, read_graph};
use taskscope_session::selection::Selection;
use taskscope_table::{
    DataSet, GraphRun, MANIFEST, ProfileRun, Summary, TableError, write_graph, write_profile, write_run,
};
use taskscope_view::format::{byte_count, counted, harmless};

/// Traces or profiles, and the part of each trace that is exported.
pub struct Request<'a> {
    /// The traces.
    pub traces: Vec<&'a Path>,
    /// The part.
    pub selection: Selection,
    /// The directory; none to count rows and bytes only.
    pub directory: Option<&'a Path>,
}

/// Writes the tables of traces into a directory, and prints their rows and bytes.
///
/// # Errors
/// If a trace cannot be read, or the directory cannot be written.
pub fn run(request: &Request<'_>) -> anyhow::Result<()> {
    print(&write(request, &Watch::start())?, request.directory)
}

/// Writes the tables of traces into a directory.
///
/// # Errors
/// If a trace cannot be read, or the directory cannot be written.
pub fn write(request: &Request<'_>, watch: &Watch) -> anyhow::Result<Summary> {
    let begun = match request.directory {
        Some(directory) => DataSet::create(directory),
        None => DataSet::counting(),
    };
    let mut set = begun.map_err(|error| cannot_write(request, error))?;
    for trace in &request.traces {
        add(&mut set, trace, request, watch)?;
    }
    set.finish().map_err(|error| cannot_write(request, error).into())
}

/// Adds a profile, or a trace: its task graph, if it was imported, else its execution.
fn add(set: &mut DataSet, trace: &Path, request: &Request<'_>, watch: &Watch) -> anyhow::Result<()> {
    let selection = &request.selection;
    if trace.join(layout::GRAPH_METADATA).exists() {
        match read_graph(trace) {
            Ok(Some(_)) if selection.filter.is_some() => {
                return Err(Failure::new("imported task graphs cannot be filtered")
                    .why("their tasks are not events of threads; a part of the time can be selected")
                    .into());
            }
            Ok(Some(found)) => {
                if found.misfits > 0 {
                    eprintln!("warning: left out {} that did not fit", counted(found.misfits, "event"));
                }
                let source = trace.display().to_string();
                let part = clocks_of(selection.range, found.graph.range());
                let words = selection.words.as_deref();
                let run = GraphRun { source: &source, graph: &found.graph, part, words };
                write_graph(set, &run).map_err(|error| cannot_write(request, error))?;
                return Ok(());
            }
            Ok(None) | Err(GraphTraceError::Open(_)) => {}
            Err(GraphTraceError::Broken(errors)) => {
                let why: Vec<&str> = errors.iter().take(10).map(|error| error.text.as_str()).collect();
                return Err(Failure::new(format!("cannot read the task graph of {}", trace.display()))
                    .why(why.join("\n"))
                    .into());
            }
        }
    }
    if let Some((profile, kept)) = profiles::open_profile(trace)? {
        if selection.filter.is_some() || selection.range != TimeRange::default() {
            return Err(a_profile(trace).into());
        }
        let source = trace.display().to_string();
        let tree = &profiles::named(&profile, kept);
        let run = ProfileRun { source: &source, tree, thread_waits: profile.thread_waits.len() };
        write_profile(set, &run).map_err(|error| cannot_write(request, error))?;
        return Ok(());
    }
    let session = super::open_part_watched(trace, selection, watch)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    write_run(set, &session, &analysis).map_err(|error| cannot_write(request, error))?;
    Ok(())
}

/// The selected range as clocks of the graph.
fn clocks_of(range: TimeRange, (first, last): (u64, u64)) -> (u64, u64) {
    if range == TimeRange::default() {
        return (0, u64::MAX);
    }
    let (begin, end) = range.resolve(last.saturating_sub(first) as i64);
    let clock = |time: i64| (first as i64).saturating_add(time).max(0) as u64;
    (clock(begin.max(0)), clock(end))
}

fn print(summary: &Summary, directory: Option<&Path>) -> anyhow::Result<()> {
    let mut out = output::results();
    for (name, table) in summary.tables.iter().filter(|(_, table)| table.rows > 0) {
        writeln!(out, "{:>14}  {:>10}  {name}", counted(table.rows, "row"), byte_count(table.bytes))?;
    }
    for loss in &summary.losses {
        writeln!(out, "not in the tables: {}", harmless(loss))?;
    }
    let place = match directory {
        Some(directory) => format!("in {}", directory.display()),
        None => "would be written".to_owned(),
    };
    writeln!(
        out,
        "{}, {} {}",
        counted(summary.rows(), "row"),
        byte_count(summary.bytes()),
        harmless(&place)
    )?;
    Ok(out.flush()?)
}

fn cannot_write(request: &Request<'_>, error: TableError) -> Failure {
    let place = request.directory.map_or_else(String::new, |place| format!(" to {}", place.display()));
    let failure = Failure::new(format!("cannot write tables{place}")).why(error.to_string());
    match error {
        TableError::Occupied(_) => failure.remedy("taskscope export --to parquet -o NEW_DIRECTORY TRACE"),
        _ => failure.kept(format!("files without {MANIFEST} are an unfinished data set")),
    }
}
