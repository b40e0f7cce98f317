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
//! - A signal that ends a query ends its job on a cluster, too ([`interruption`]).

mod cluster;
mod data_set;
mod engine;
mod failure;
mod interruption;
mod output;
mod place;

use clap::Parser;
use cluster::{LONGEST_CANCELLATION, Scheduler};
use data_set::DataSet;
use datafusion::prelude::{DataFrame, SessionContext};
use failure::Failure;
use interruption::Interruption;
use output::{Form, Target};
use std::io::Read;
use std::path::PathBuf;
use std::pin::pin;
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
    /// Place at which the executors read the tables; the directory needs the manifest alone
    #[arg(long, value_name = "URL", requires = "cluster")]
    store: Option<String>,
}

/// Largest file with a query, in bytes.
const MAX_QUERY: u64 = 1 << 20;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status())
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
        let set = data_set::open(&args.directory, args.store.as_deref())?;
        let query = Query { set: &set, sql: &sql, target: &target, explain: args.explain };
        match &args.cluster {
            Some(address) => query.run_on(&Scheduler::reach(address).await?).await,
            None => query.run().await,
        }
    })
}

/// A query with its tables and the target of its result.
struct Query<'a> {
    set: &'a DataSet,
    sql: &'a str,
    target: &'a Target,
    explain: bool,
}

impl Query<'_> {
    /// Runs the query on this machine.
    async fn run(&self) -> Result<(), Failure> {
        let Some(frame) = self.plan(&engine::local()).await? else { return Ok(()) };
        let stream = frame.execute_stream().await.map_err(|error| engine::failure(&error, self.sql))?;
        self.target.write(stream, self.sql).await
    }

    /// Runs the query on a cluster. A signal ends its job.
    async fn run_on(&self, scheduler: &Scheduler) -> Result<(), Failure> {
        let interruption = Interruption::watch(scheduler.has_job(), LONGEST_CANCELLATION)?;
        let mut answer = pin!(async {
            let session = scheduler.session().await?;
            let Some(frame) = self.plan(&session).await? else { return Ok(()) };
            scheduler.check_tables(&session, self.set, &frame).await?;
            self.target.write(scheduler.run(&frame, self.sql).await?, self.sql).await
        });
        let signal = tokio::select! {
            done = &mut answer => return done,
            signal = interruption.signal() => signal,
        };
        // A job has a number only if its submission goes on.
        let submission = async {
            let _ = answer.await;
            std::future::pending::<()>().await;
        };
        let job = tokio::select! {
            job = scheduler.cancel() => job,
            () = submission => None,
        };
        Err(Failure::interrupted(signal, job))
    }

    /// The plan of the query; none if it was to be printed, and is.
    async fn plan(&self, session: &SessionContext) -> Result<Option<DataFrame>, Failure> {
        engine::register(session, self.set).await?;
        let frame = engine::plan(session, self.sql).await?;
        if self.explain {
            let plan = engine::explain(frame, self.sql).await?;
            self.target.write_text(&plan)?;
            return Ok(None);
        }
        Ok(Some(frame))
    }
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
