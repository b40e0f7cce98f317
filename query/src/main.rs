//! `taskscope-query`: one SQL query over a directory of tables. `taskscope query` runs it.
//!
//! It is an executable of its own, in a Cargo workspace of its own, because DataFusion needs more time to build, and more
//! space, than all of taskscope. It knows tables only; traces are exported by the command before.
//!
//! **Data flow.** [`data_set`] reads the manifest and makes tables and views known to a session of DataFusion ([`engine`]),
//! which runs the query here or, with `--cluster`, on a Ballista scheduler ([`cluster`]). The record batches of the result go
//! one by one to the format ([`output`]): memory is that of the engine and of one batch.
//!
//! **Invariants.**
//! - A query reads: statements that would change or write anything are refused, so that a recipe from elsewhere is safe.
//! - Names in the manifest are not trusted: a table is a directory directly below that of the data set.
//! - What is printed has no character that acts on a terminal.
//! - A file is written completely or not at all, never through a link. A closed pipe is success.

mod cluster;
mod data_set;
mod engine;
mod failure;
mod output;

use clap::Parser;
use cluster::Scheduler;
use failure::Failure;
use output::{Form, Target};
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs one SQL query over a directory of tables.
#[derive(Parser)]
#[command(name = "taskscope-query", version)]
struct Args {
    /// Directory of tables, written by `taskscope export --to parquet`
    directory: PathBuf,
    /// The query
    #[arg(long, required_unless_present = "file", conflicts_with = "file")]
    sql: Option<String>,
    /// File with the query; - for the standard input
    #[arg(long)]
    file: Option<PathBuf>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Form::Table)]
    format: Form,
    /// Write to this file instead of the standard output
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Maximum rows of the form `table`; 0 for all
    #[arg(long, default_value_t = 1000)]
    rows: usize,
    /// Print the plan of the query instead of its result
    #[arg(long)]
    explain: bool,
    /// Run the query on the Ballista scheduler at this address
    #[arg(long, value_name = "HOST:PORT")]
    cluster: Option<String>,
}

/// Largest file with a query, in bytes.
const MAX_QUERY: u64 = 1 << 20;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> Result<(), Failure> {
    let sql = query_text(&args)?;
    let target = Target { form: args.format, file: args.output, rows: args.rows };
    target.check()?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let threads = threads.map_err(|error| Failure::new("cannot start threads").why(error.to_string()))?;
    threads.block_on(async {
        let set = data_set::open(&args.directory)?;
        let cluster = match &args.cluster {
            Some(address) => Some(Scheduler::reach(address).await?),
            None => None,
        };
        let session = match &cluster {
            Some(scheduler) => scheduler.session().await?,
            None => engine::local(),
        };
        engine::register(&session, &set).await?;
        let frame = engine::plan(&session, &sql).await?;
        if args.explain {
            let plan = engine::explain(frame, &sql).await?;
            return target.write_text(&plan);
        }
        let stream = match &cluster {
            Some(scheduler) => scheduler.run(&frame, &sql).await?,
            None => frame.execute_stream().await.map_err(|error| engine::failure(&error, &sql))?,
        };
        target.write(stream, &sql).await
    })
}

/// The text of the query.
fn query_text(args: &Args) -> Result<String, Failure> {
    let text = match (&args.sql, &args.file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(file)) => {
            let failed = |error: std::io::Error| {
                Failure::new(format!("cannot read the query from {}", file.display()))
                    .why(failure::reason(&error))
            };
            let bytes = if file.as_os_str() == "-" {
                let mut bytes = Vec::new();
                std::io::stdin().lock().take(MAX_QUERY + 1).read_to_end(&mut bytes).map_err(failed)?;
                bytes
            } else {
                taskscope_files::read_regular(file, MAX_QUERY + 1).map_err(failed)?
            };
            if bytes.len() as u64 > MAX_QUERY {
                return Err(Failure::new("the query is longer than 1 MiB"));
            }
            String::from_utf8(bytes)
                .map_err(|_| Failure::new(format!("the query in {} is not UTF-8", file.display())))?
        }
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(
            Failure::new("the query is empty").remedy("taskscope query RUN.tables 'SELECT * FROM run'")
        );
    }
    Ok(text)
}
