//! `taskscope export`: a recording in the formats of other programs.

use crate::messages::Failure;
use crate::newest::{UNNAMED, choose};
use crate::opening::SelectionArgs;
use crate::verbs::choices::Choice;
use crate::verbs::export_graph::{OfGraph, task_graph};
use crate::verbs::export_over_time::{self, OverTime};
use crate::verbs::export_tables;
use anyhow::Context;
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::Column;
use taskscope_export::call_paths::{write_folded, write_pprof, write_speedscope};
use taskscope_export::task_graph::GraphForm;
use taskscope_export::timeline::{Step, Timeline};
use taskscope_files::write_named;
use taskscope_terminal::Shown;
use taskscope_view::Section;
use taskscope_view::format::shell_word;

/// Convert a trace or profiles to another program's format.
///
/// perfetto, otf2, chrome, paje, paraver, firefox and csv contain the run over time, as far as these formats can: a note lists what is lost.
/// flamegraph, speedscope and pprof contain call paths; talp-json contains efficiencies; sarif contains findings;
/// neutral, dot, graphml and graph-json contain the task graph, with the data of each edge;
/// parquet contains the run as tables.
#[derive(clap::Args)]
pub struct Args {
    /// Trace directory; or a profile, or a directory of profiles [default: the newest in the working directory].
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    trace: PathBuf,
    /// Further traces: runs side by side in the tables of parquet.
    #[arg(value_name = "MORE")]
    more: Vec<PathBuf>,
    /// Format.
    #[arg(long, value_name = "FORMAT", value_enum)]
    to: Format,
    /// Write to this file instead of the standard output; otf2, paraver and parquet write a directory.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Column of a flame graph: time, waiting, blame, idleness, … [default: time, or waiting without samples]
    #[arg(long, value_name = "COLUMN", value_enum)]
    column: Option<Choice<Column>>,
    /// Attribute a task's callers by its creation or, in traces, by its execution. Profiles have the creation only.
    #[arg(long, value_name = "CONTEXT", value_enum, default_value_t)]
    task_context: Choice<TaskContext>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Print size, content and losses of the export, and write nothing (perfetto, otf2, chrome, paje, paraver, firefox,
    /// csv, parquet)
    #[arg(long)]
    dry_run: bool,
}

/// A format of another program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Perfetto's protocol buffer
    Perfetto,
    /// OTF2, a directory for Vampir and Scalasca
    Otf2,
    /// Trace events of Chrome, JSON
    Chrome,
    /// Pajé's trace, for ViTE
    Paje,
    /// A Paraver trace with the numbers of Extrae and Nanos++, a directory
    Paraver,
    /// A profile for the Firefox Profiler, JSON
    Firefox,
    /// Sections, arrows and counters as one table
    Csv,
    /// Folded stacks, for flamegraph.pl and inferno
    Flamegraph,
    /// speedscope's JSON
    Speedscope,
    /// pprof's compressed protocol buffer
    Pprof,
    /// Efficiencies in the JSON form of DLB's TALP
    TalpJson,
    /// Findings at lines of the source, SARIF, for code hosts
    Sarif,
    /// Tables for SQL and data frames: a directory of Parquet files
    Parquet,
    /// The task graph in the neutral form, which `import` reads
    Neutral,
    /// The task graph in Graphviz's language
    Dot,
    /// The task graph as GraphML
    Graphml,
    /// The task graph as JSON with nodes and links
    GraphJson,
}

impl Format {
    /// The format over time that it is.
    fn over_time(self) -> Option<OverTime> {
        match self {
            Format::Perfetto => Some(OverTime::Perfetto),
            Format::Chrome => Some(OverTime::Chrome),
            Format::Paje => Some(OverTime::Paje),
            Format::Otf2 => Some(OverTime::Otf2),
            Format::Paraver => Some(OverTime::Paraver),
            Format::Firefox => Some(OverTime::Firefox),
            Format::Csv => Some(OverTime::Csv),
            _ => None,
        }
    }

    /// The form of a task graph that it is.
    fn graph_format(self) -> Option<OfGraph> {
        match self {
            Format::Neutral => Some(OfGraph::Neutral),
            Format::Dot => Some(OfGraph::Graph(GraphForm::Dot)),
            Format::Graphml => Some(OfGraph::Graph(GraphForm::GraphMl)),
            Format::GraphJson => Some(OfGraph::Graph(GraphForm::Json)),
            _ => None,
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Writes the export.
///
/// # Errors
/// If there is nothing to read, or the file cannot be written.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    choose(&mut args.trace)?;
    if args.column.is_some() && args.to != Format::Flamegraph {
        return Err(Failure::new(format!(
            "--column is for flame graphs: {} has all columns",
            args.to.name()
        ))
        .into());
    }
    if args.to == Format::Parquet {
        return tables(&args);
    }
    if !args.more.is_empty() {
        return Err(Failure::new(format!("{} is made of one trace", args.to.name()))
            .why("several traces are for parquet")
            .into());
    }
    if let Some(format) = args.to.over_time() {
        return over_time(&args, format);
    }
    if !args.selection.is_empty() || args.dry_run {
        return Err(Failure::new(format!("{} contains one whole trace", args.to.name()))
            .why("--range, --where and --dry-run are for formats over time and parquet")
            .into());
    }
    if args.to == Format::TalpJson {
        return talp(&args);
    }
    if args.to == Format::Sarif {
        return sarif(&args);
    }
    if let Some(form) = args.to.graph_format() {
        let graph = task_graph(&args.trace)?;
        let name = args.trace.display().to_string();
        let notes = std::cell::RefCell::new(Vec::new());
        let code = put(&args, |out: &mut dyn Write| {
            notes.replace(form.write(&graph, &name, out)?);
            Ok(())
        })?;
        notes.take().iter().for_each(|note| eprintln!("note: {}: {note}", args.to.name()));
        return Ok(code);
    }
    let tree = super::profiles::open_tree(&args.trace, args.task_context.0)?;
    let has_paths = tree.nodes().any(|node| tree.tree.values(node).any(|(_, value)| value > 0));
    if !has_paths {
        eprintln!("note: the export is empty: no call path has time (taskscope record --sample 100)");
    }
    let write = |out: &mut dyn Write| -> std::io::Result<()> {
        match args.to {
            Format::Speedscope => write_speedscope(&tree, &args.trace.display().to_string(), out),
            Format::Pprof => write_pprof(&tree, out),
            _ => {
                let column = args.column.map_or_else(|| Column::main_of(&tree.tree), |choice| choice.0);
                write_folded(&tree, |metric| column.takes(metric), out).map(drop)
            }
        }
    };
    put(&args, write)
}

/// Writes tables.
fn tables(args: &Args) -> anyhow::Result<ExitCode> {
    let directory = args.output.as_deref().filter(|_| !args.dry_run);
    if directory.is_none() && !args.dry_run {
        let remedy = format!("taskscope export --to parquet -o RUN.tables {}", shell_word(&args.trace));
        return Err(Failure::new("parquet is a directory of files, and needs a name for it")
            .remedy(remedy)
            .into());
    }
    let selection = args.selection.parse()?;
    let traces = std::iter::once(&args.trace).chain(&args.more).map(PathBuf::as_path).collect();
    export_tables::run(&export_tables::Request { traces, selection, directory })?;
    Ok(ExitCode::SUCCESS)
}

/// The run over time.
fn over_time(args: &Args, format: OverTime) -> anyhow::Result<ExitCode> {
    let session = super::open_part(&args.trace, &args.selection.parse()?)?;
    if session.range.is_some() && session.execution.threads.is_empty() {
        return Err(Failure::new("--range is for traces with threads")
            .why("the trace has device queues alone")
            .into());
    }
    // The file has the start of the whole run. Where in it a slice begins is not known.
    let later = session.execution.range().0.saturating_sub(session.execution.whole().range().0);
    let whole = session.run.as_ref().filter(|run| run.part.is_none());
    let run = taskscope_export::timeline::Run {
        name: args.trace.display().to_string(),
        start_unix_ns: whole.and_then(|run| run.start_unix_ns?.checked_add(later)),
    };
    let mut names = session.names();
    let mut timeline = Timeline::of(&session.execution, &session.devices, &mut names, run);
    if format.holds_samples() {
        timeline.find_steps(&mut |process, address, at, is_return| {
            let place = session.places.step(process, address, at, is_return);
            let (module, offset) = place.module.unwrap_or_default();
            let unnamed = || match module.as_str() {
                "" => format!("{address:#x}"),
                module => format!("{module}+{offset:#x}"),
            };
            let function = place.frame.function.filter(|name| !name.is_empty()).unwrap_or_else(unnamed);
            let (file, line) = (place.frame.file.unwrap_or_default(), place.frame.line.unwrap_or(0));
            Step { function, file, line, module }
        });
    }
    if args.dry_run {
        return export_over_time::preview(format, &args.to.name(), &timeline);
    }
    let code = if format.is_directory() {
        put_directory(args, format, &timeline)?
    } else {
        put(args, |out: &mut dyn Write| format.write(&timeline, out, args.output.as_deref()))?
    };
    export_over_time::print_losses(format, &args.to.name(), &timeline);
    Ok(code)
}

/// A directory of files.
fn put_directory(args: &Args, format: OverTime, timeline: &Timeline<'_>) -> anyhow::Result<ExitCode> {
    let name = args.to.name();
    let Some(directory) = &args.output else {
        return Err(Failure::new(format!("{name} is a directory, not a stream"))
            .remedy(format!("taskscope export --to {name} -o DIRECTORY TRACE"))
            .into());
    };
    format.write_directory(timeline, directory).map_err(|error| {
        let failure = Failure::new(format!("cannot write {}", directory.display())).why(error.to_string());
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.remedy("name a directory that is new or empty"),
            _ => failure.kept("nothing: the directory would be incomplete"),
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The efficiencies as TALP writes them.
fn talp(args: &Args) -> anyhow::Result<ExitCode> {
    let session = super::open(&args.trace)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let report = taskscope_view::talp(&session, &analysis);
    put(args, |out: &mut dyn Write| crate::output::write_json(&mut &mut *out, &report))
}

/// The findings, at lines relative to the working directory.
fn sarif(args: &Args) -> anyhow::Result<ExitCode> {
    let session = super::open(&args.trace)?;
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    let report = taskscope_view::report_of(&session, &analysis, &problems, &[Section::Findings]);
    let root = std::env::current_dir().context("cannot find the working directory")?;
    let document = taskscope_view::sarif(&report, &root, taskscope_view::FLOOR);
    put(args, |out: &mut dyn Write| crate::output::write_json(&mut &mut *out, &document))
}

fn put(args: &Args, write: impl Fn(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<ExitCode> {
    match &args.output {
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            if std::io::stdout().is_terminal() {
                if matches!(args.to, Format::Pprof | Format::Perfetto) {
                    let name = args.to.name();
                    return Err(Failure::new(format!("the form of {name} is binary and not for a terminal"))
                        .remedy(format!("taskscope export --to {name} -o FILE TRACE"))
                        .into());
                }
                let mut out = Shown::on(out);
                write(&mut out)?;
                out.flush()?;
            } else {
                write(&mut out)?;
                out.flush()?;
            }
        }
        Some(file) => write_named(file, |_| {}, write).map_err(|error| {
            Failure::new(format!("cannot write {}", file.display())).why(error.to_string())
        })?,
    }
    Ok(ExitCode::SUCCESS)
}
