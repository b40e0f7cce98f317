//! `taskscope export`: a recording in the formats of other programs.

use crate::messages::Failure;
use crate::newest::{UNNAMED, choose};
use crate::opening::SelectionArgs;
use crate::output::Shown;
use crate::verbs::choices::Choice;
use crate::verbs::export_tables;
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::Column;
use taskscope_export::call_paths::{write_folded, write_pprof, write_speedscope};
use taskscope_files::write_named;
use taskscope_view::format::shell_word;

/// Convert a trace or profiles to another program's format.
///
/// flamegraph, speedscope and pprof contain call paths; talp-json contains efficiencies; parquet contains everything, as
/// tables.
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
    /// Write to this file instead of the standard output; parquet writes a directory.
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
    /// Print the rows and bytes, and write nothing (parquet).
    #[arg(long)]
    dry_run: bool,
}

/// A format of another program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Folded stacks, for flamegraph.pl and inferno
    Flamegraph,
    /// speedscope's JSON
    Speedscope,
    /// pprof's compressed protocol buffer
    Pprof,
    /// Efficiencies in the JSON form of DLB's TALP
    TalpJson,
    /// Tables for SQL and data frames: a directory of Parquet files
    Parquet,
}

impl Format {
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
    if !args.more.is_empty() || !args.selection.is_empty() || args.dry_run {
        let name = args.to.name();
        return Err(Failure::new(format!("{name} is made of all of one trace"))
            .why("several traces, --range, --where and --dry-run are for parquet")
            .into());
    }
    if args.to == Format::TalpJson {
        return talp(&args);
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
            Format::Flamegraph | Format::TalpJson | Format::Parquet => {
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

/// The efficiencies as TALP writes them.
fn talp(args: &Args) -> anyhow::Result<ExitCode> {
    let session = super::open(&args.trace)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let report = taskscope_view::talp(&session, &analysis);
    put(args, |out: &mut dyn Write| crate::output::write_json(&mut &mut *out, &report))
}

fn put(args: &Args, write: impl Fn(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<ExitCode> {
    match &args.output {
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            if std::io::stdout().is_terminal() {
                if args.to == Format::Pprof {
                    return Err(Failure::new("pprof's form is binary and not for a terminal")
                        .remedy("taskscope export --to pprof -o FILE TRACE")
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
