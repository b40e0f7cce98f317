//! A Ballista cluster: the session in front of its scheduler, and runs of a query whose result can be trusted.
//!
//! **Data flow.** [`Scheduler::reach`] asks the scheduler for its executors, by the REST interface at the port of its gRPC.
//! [`Scheduler::run`] submits a query as a job and waits for its first batch, which comes when all stages have ended. Then it
//! reads the tasks of the job ([`tasks`]), and only then hands the batch on. Until its end, the job is known to [`Scheduler::cancel`].
//!
//! [`Scheduler::check_tables`] compares the tables that the cluster sees with the manifest before.
//!
//! **Invariants.** A query that ends before its job cancels it: a scheduler does not watch its clients. And a batch is handed on only if no task of its job failed, and no two tasks read the same partition. After the loss
//! of an executor, Ballista 55 repeats stages whose other tasks had already delivered their rows to later stages, which then have
//! them twice. The list of executors does not show this: a repeated stage can precede the timeout of its executor.
//! A job with such a task is run again, at most [`RUNS`] times.

mod rest;
mod same_tables;
mod tasks;

use crate::data_set::DataSet;
use crate::engine;
use crate::failure::{Failure, reason};
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::execution_plans::DistributedQueryExec;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_proto::protobuf::LogicalPlanNode;
use futures::StreamExt;
use rest::{Rest, unreachable};
use same_tables::Count;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use taskscope_terminal::escaped;
use tonic::transport::Endpoint;

/// Longest wait for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for an answer of the REST interface.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest wait for the first executor.
const START: Duration = Duration::from_secs(30);
/// Longest wait for the number of a job that is cancelled.
const SUBMISSION: Duration = Duration::from_secs(10);
/// Longest wait for the answer to its cancellation.
const CANCELLATION: Duration = Duration::from_secs(5);
/// Longest time of [`Scheduler::cancel`].
pub const LONGEST_CANCELLATION: Duration = Duration::from_secs(16);
/// Runs of a query whose tasks fail.
const RUNS: u32 = 3;

/// A plan whose job has begun and has not ended.
type Unfinished = Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>;

/// A scheduler with at least one executor.
pub struct Scheduler {
    rest: Rest,
    /// Name of the jobs of this process.
    name: String,
    unfinished: Unfinished,
}

impl Scheduler {
    /// Connects to the scheduler at `HOST:PORT`.
    ///
    /// # Errors
    /// If the address is not valid, nothing answers there as a scheduler does, or no executor is registered.
    pub async fn reach(address: &str) -> Result<Scheduler, Failure> {
        let wrong = || {
            Failure::new(format!("'{address}' is not the address of a scheduler"))
                .remedy("--cluster HOST:50050")
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        if host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
            return Err(wrong());
        }
        let unreachable = |why: String| unreachable(address, why);
        // The errors of this connection are short.
        let probe = tokio::net::TcpStream::connect((host.trim_matches(['[', ']']), port));
        match tokio::time::timeout(PATIENCE, probe).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(unreachable(reason(&error))),
            Err(_) => return Err(unreachable(format!("no answer in {} s", PATIENCE.as_secs()))),
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| wrong())?;
        let channel = endpoint.connect_timeout(PATIENCE).timeout(ANSWER).connect().await;
        let channel = channel.map_err(|error| unreachable(error.to_string()))?;
        let rest = Rest { address: address.to_owned(), channel };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = format!("taskscope query, process {} of {}", std::process::id(), host.trim());
        let scheduler = Scheduler { rest, name, unfinished: Unfinished::default() };
        scheduler.wait_for_executors().await?;
        Ok(scheduler)
    }

    /// Waits until an executor is registered: those of a job may still start.
    async fn wait_for_executors(&self) -> Result<(), Failure> {
        let began = Instant::now();
        let mut noted = false;
        while self.executors().await? == 0 {
            if began.elapsed() > START {
                return Err(self.without_executors());
            }
            if !noted {
                eprintln!(
                    "note: the scheduler has no executor yet: waiting for {} s at most",
                    START.as_secs()
                );
                noted = true;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Returns when there has been no executor for some time: Ballista lets some jobs wait for ever then.
    async fn all_executors_lost(&self) -> Failure {
        let mut last_seen = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            // If the scheduler does not answer, the query has an error of its own.
            if self.executors().await.is_ok_and(|number| number == 0) {
                if last_seen.elapsed() > START {
                    return self.without_executors();
                }
            } else {
                last_seen = Instant::now();
            }
        }
    }

    /// The number of registered executors; one that died is among them until its timeout.
    async fn executors(&self) -> Result<usize, Failure> {
        let list = self.rest.get("/api/executors").await?;
        let list = list.as_ref().and_then(Value::as_array);
        list.map(Vec::len).ok_or_else(|| self.rest.not_checked("it has no list of executors"))
    }

    fn without_executors(&self) -> Failure {
        Failure::new(format!("the scheduler at {} has no executor", self.rest.address))
            .why(format!("none was registered for {} s", START.as_secs()))
            .remedy(
                "ballista-executor --scheduler-host HOST --scheduler-port PORT (docs/howto/sql-cluster.md)",
            )
    }

    /// A session whose queries run on this scheduler.
    ///
    /// # Errors
    /// If the address does not fit into a URL.
    pub async fn session(&self) -> Result<SessionContext, Failure> {
        let config = engine::configured(SessionConfig::new_with_ballista())
            .with_ballista_job_name(&self.name)
            // Ballista 55.0's adaptive planner never ends a job in which one side of a join turns out to be empty.
            .with_ballista_adaptive_query_planner(false);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        SessionContext::remote_with_state(&format!("df://{}", self.rest.address), state).await.map_err(
            |error| {
                Failure::new(format!("cannot use the scheduler at {}", self.rest.address))
                    .why(error.strip_backtrace())
            },
        )
    }

    /// Compares the tables that a query reads, as the cluster sees them, with the manifest.
    ///
    /// # Errors
    /// If a table has other rows there, or they cannot be counted.
    pub async fn check_tables(
        &self,
        session: &SessionContext,
        set: &DataSet,
        query: &DataFrame,
    ) -> Result<(), Failure> {
        // One by one: Ballista 55 never ends a job with several counts in a UNION ALL.
        for count in Count::all(set, query)? {
            let frame = engine::plan(session, &count.sql).await?;
            count.compare(self.run(&frame, &count.sql).await?).await?;
        }
        Ok(())
    }

    /// Runs a query, and again if executors were lost meanwhile. The stream begins when the job has ended.
    ///
    /// # Errors
    /// If the query fails, or tasks fail in each run, or the scheduler does not report the tasks.
    pub async fn run(&self, frame: &DataFrame, sql: &str) -> Result<SendableRecordBatchStream, Failure> {
        let failed = |error: DataFusionError| engine::failure(&error, sql);
        let mut last = String::new();
        for run in 1..=RUNS {
            self.wait_for_executors().await?;
            let plan = frame.create_physical_plan().await.map_err(failed)?;
            if plan.is::<EmptyExec>() {
                // No row can fulfil the query: Ballista's client makes a plan without columns of it.
                let schema = Arc::new(frame.schema().as_arrow().clone());
                return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
            }
            let mut stream = execute_stream(plan.clone(), Arc::new(frame.task_ctx())).map_err(failed)?;
            if !plan.is::<Job>() {
                return Ok(stream);
            }
            *self.unfinished() = Some(plan.clone());
            let first = tokio::select! {
                first = stream.next() => first,
                failure = self.all_executors_lost() => {
                    self.cancel().await;
                    return Err(failure);
                }
            };
            if self.unfinished().take().is_none() {
                return Err(Failure::new("the query was cancelled"));
            }
            let fault = match job_id(&plan) {
                Some(id) => self.fault(&id).await,
                None => Err(self.rest.not_checked("the query has no job")),
            };
            match (first, fault) {
                (first, Ok(None)) => return resumed(first, stream).map_err(failed),
                // The query itself is wrong, or its tasks cannot be read any more.
                (Some(Err(error)), Err(_)) => return Err(failed(error)),
                (Some(Err(error)), Ok(Some(fault))) if !fault.lost => return Err(failed(error)),
                (_, Err(failure)) => return Err(failure),
                (_, Ok(Some(fault))) => {
                    last = fault.words;
                    eprintln!("note: run {run} of {RUNS} is not trusted: {}", escaped(&last));
                }
            }
        }
        Err(Failure::new("the cluster has no result that can be trusted")
            .why(format!("in each of {RUNS} runs a task failed: {last}\nBallista 55 counts rows of repeated tasks twice"))
            .remedy("look into the logs of the executors, or run the query without --cluster"))
    }

    /// Whether a job has begun and has not ended.
    pub fn has_job(&self) -> impl Fn() -> bool + Send + use<> {
        let unfinished = self.unfinished.clone();
        move || locked(&unfinished).is_some()
    }

    fn unfinished(&self) -> MutexGuard<'_, Option<Arc<dyn ExecutionPlan>>> {
        locked(&self.unfinished)
    }

    /// Cancels the job that has not ended. Returns its end in words; none if there is no such job. Its submission has to go on
    /// meanwhile: the number of the job is known when the scheduler has answered.
    pub async fn cancel(&self) -> Option<String> {
        let plan = self.unfinished().take()?;
        let Ok(id) = tokio::time::timeout(SUBMISSION, self.number_of(&plan)).await else {
            return Some("the scheduler has not reported the number of its job, which may run on".to_owned());
        };
        let why = match tokio::time::timeout(CANCELLATION, self.rest.cancel(&id)).await {
            Ok(Ok(true)) => return Some(format!("its job {id} was cancelled")),
            Ok(Ok(false)) => return Some(format!("its job {id} had ended")),
            Ok(Err(failure)) => failure.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        Some(format!("its job {id} may run on, as it could not be cancelled: {why}"))
    }

    /// The number of a job. The client learns it with a change of the job's state; the list of jobs has it before.
    async fn number_of(&self, plan: &Arc<dyn ExecutionPlan>) -> String {
        loop {
            if let Some(id) = job_id(plan) {
                return id;
            }
            let jobs = self.rest.get("/api/jobs").await.ok().flatten();
            let is_own = |job: &&Value| {
                job["job_name"] == self.name.as_str()
                    && ["Queued", "Running"].iter().any(|state| job["status"] == *state)
            };
            let own = jobs.as_ref().and_then(Value::as_array).and_then(|jobs| jobs.iter().find(is_own));
            if let Some(id) = own.and_then(|job| job["job_id"].as_str()) {
                return id.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The fault of a finished job.
    async fn fault(&self, job: &str) -> Result<Option<tasks::Fault>, Failure> {
        let path = format!("/api/job/{job}/stages");
        // The scheduler reports the end of a job a moment before it stores the job among the finished ones.
        for _ in 0..50 {
            if let Some(stages) = self.rest.get(&path).await? {
                return tasks::fault(&stages).map_err(|why| self.rest.not_checked(&why));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(self.rest.not_checked("it does not know the finished job"))
    }
}

fn locked(unfinished: &Unfinished) -> MutexGuard<'_, Option<Arc<dyn ExecutionPlan>>> {
    unfinished.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The plan of a query that runs as a job.
type Job = DistributedQueryExec<LogicalPlanNode>;

/// The number of a job, once the scheduler has reported it.
fn job_id(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    plan.downcast_ref::<Job>()?.job_id().map(|id| id.as_str().to_owned())
}

/// A stream from its first batch on.
fn resumed(
    first: Option<Result<RecordBatch, DataFusionError>>,
    rest: SendableRecordBatchStream,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let first = first.transpose()?;
    let schema = rest.schema();
    let batches = futures::stream::iter(first.map(Ok)).chain(rest);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}
