//! `taskscope query`: SQL over traces and directories of tables.
//!
//! The engine is another executable, `taskscope-query` ([`engine`]). A trace is exported to tables in a temporary directory
//! before, which is removed after the query.

mod engine;
mod listing;

use crate::messages::Failure;
use crate::newest;
use crate::opening::SelectionArgs;
use crate::verbs::export_tables;
use crate::watch::Watch;
use clap::ValueEnum;
use engine::{Engine, Query, Text};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_files::open_regular;
use taskscope_table::{MANIFEST, recipe};
use taskscope_view::format::shell_word;
use tempfile::TempDir;

/// Run SQL over a trace, or over tables of one or several runs.
///
/// `export --to parquet` writes tables, which answer later queries without reading the trace again. Without them a trace
/// is exported to a temporary directory first. Tables and columns are in docs/tables.md and in the list of --tables; times
/// are in nanoseconds. Needs taskscope-query, which `make query` builds.
#[derive(clap::Args)]
pub struct Args {
    /// Trace, or directory of tables [default: the newest trace in the working directory].
    #[arg(value_name = "TRACE|TABLES")]
    source: Option<PathBuf>,
    /// Query, such as "SELECT cause, ns FROM idle_by_cause ORDER BY ns DESC"
    #[arg(value_name = "SQL", conflicts_with_all = ["file", "recipe"])]
    sql: Option<String>,
    /// Read the query from this file; - for the standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "recipe")]
    file: Option<PathBuf>,
    /// Run a stored query; without NAME, list them with their questions
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    recipe: Option<String>,
    /// List tables and views; with NAME, the columns of this table with unit and meaning
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    tables: Option<String>,
    /// Format of the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Form::Table)]
    format: Form,
    /// Write to this file instead of the standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Maximum rows of the format table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// Print the plan of the query instead of its result
    #[arg(long)]
    explain: bool,
    /// Run the query on the Ballista scheduler at this address, over tables in a shared directory
    #[arg(long, value_name = "HOST:PORT")]
    cluster: Option<String>,
    /// Place at which the cluster reads the tables, such as s3://BUCKET/RUN.tables; TABLES then needs the manifest alone
    #[arg(long, value_name = "URL", requires = "cluster")]
    store: Option<String>,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Format of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects, one a row
    Json,
    /// A Parquet file
    Parquet,
}

/// Runs a query, or prints a list.
///
/// # Errors
/// If the engine is missing, the source cannot be read, or the query fails.
pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.tables {
        return listing::tables(name);
    }
    if args.recipe.as_deref() == Some("") {
        return listing::recipes();
    }
    let text = text_of(&mut args)?;
    let engine = Engine::find()?;
    let source = match args.source.take() {
        Some(source) => source,
        None => newest::newest()?,
    };
    let (tables, temporary) = tables_of(&source, &args)?;
    let query = Query {
        tables: &tables,
        text,
        format: args.format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default(),
        output: args.output.as_deref(),
        rows: args.rows,
        explain: args.explain,
        cluster: args.cluster.as_deref(),
        store: args.store.as_deref(),
    };
    let code = engine.run(&query);
    drop(temporary);
    code
}

/// The query: an argument, a file or a recipe. The only argument is the query unless it is a path.
fn text_of(args: &mut Args) -> anyhow::Result<Text> {
    if let Some(name) = &args.recipe {
        let Some(known) = recipe(name) else {
            return Err(Failure::new(format!("no stored query is named {name}"))
                .remedy("taskscope query --recipe")
                .into());
        };
        return Ok(Text::Sql(known.sql.to_owned()));
    }
    if let Some(file) = args.file.take() {
        return Ok(Text::File(file));
    }
    if let Some(sql) = args.sql.take() {
        return Ok(Text::Sql(sql));
    }
    match args.source.take() {
        Some(only) if !only.exists() => match only.into_os_string().into_string() {
            Ok(sql) if sql.contains(char::is_whitespace) => Ok(Text::Sql(sql)),
            Ok(path) => Err(Failure::new(format!("cannot open {path}: no such file or directory")).into()),
            Err(_) => Err(Failure::new("the query is not UTF-8").into()),
        },
        Some(only) => Err(no_query(&only)),
        None => Err(no_query(Path::new("TRACE"))),
    }
}

fn no_query(source: &Path) -> anyhow::Error {
    let source = shell_word(source);
    Failure::new("no query is given")
        .remedy(format!(
            "taskscope query {source} \"SELECT * FROM idle_by_cause\"\ntaskscope query --recipe        (lists stored queries)"
        ))
        .into()
}

/// The directory of tables: the source itself, or a temporary one with the tables of a trace.
fn tables_of(source: &Path, args: &Args) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    if open_regular(&source.join(MANIFEST)).is_ok() {
        if !args.selection.is_empty() {
            return Err(Failure::new("--range and --where are for traces")
                .why(format!("{} is a directory of tables", source.display()))
                .remedy("WHERE in the query, or export --to parquet --range")
                .into());
        }
        return Ok((source.to_owned(), None));
    }
    if args.cluster.is_some() {
        return Err(Failure::new("--cluster needs a directory of tables that all executors see")
            .why(format!("{} has no {MANIFEST}", source.display()))
            .remedy(format!("taskscope export --to parquet -o /SHARED/RUN.tables {}", shell_word(source)))
            .into());
    }
    let temporary = tempfile::Builder::new().prefix("taskscope-query-").tempdir().map_err(|error| {
        Failure::new("cannot create a temporary directory for tables")
            .why(error.to_string())
            .remedy(format!("taskscope export --to parquet -o RUN.tables {}", shell_word(source)))
    })?;
    let directory = temporary.path().join("tables");
    let selection = args.selection.parse()?;
    let request = export_tables::Request { traces: vec![source], selection, directory: Some(&directory) };
    let watch = Watch::start();
    watch.unfinished(Some(temporary.path()));
    let summary = export_tables::write(&request, &watch)?;
    // From here on, the engine gets the signals.
    watch.hand_over();
    for loss in summary.losses {
        eprintln!("note: not in the tables: {loss}");
    }
    Ok((directory, Some(temporary)))
}
