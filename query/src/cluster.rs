//! A Ballista cluster: the session in front of its scheduler, and runs of a query whose result can be trusted.
//!
//! **Data flow.** [`Scheduler::reach`] asks the scheduler for its executors, by the REST interface at the port of its gRPC.
//! [`Scheduler::run`] submits a query as a job and waits for its first batch, which comes when all stages have ended. Then it
//! reads the tasks of the job ([`tasks`]), and only then hands the batch on.
//!
//! **Invariant.** A batch is handed on only if no task of its job failed, and no two tasks read the same partition. After the loss
//! of an executor, Ballista 55 repeats stages whose other tasks had already delivered their rows to later stages, which then have
//! them twice. The list of executors does not show this: a repeated stage can precede the timeout of its executor.
//! A job with such a task is run again, at most [`RUNS`] times.

mod tasks;

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
use datafusion::physical_plan::{EmptyRecordBatchStream, execute_stream};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion_proto::protobuf::LogicalPlanNode;
use futures::StreamExt;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskscope_terminal::escaped;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::http::{Request, StatusCode};
use tonic::transport::{Channel, Endpoint};

/// Longest wait for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for an answer of the REST interface.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest wait for the first executor.
const START: Duration = Duration::from_secs(30);
/// Largest answer of the REST interface, in bytes.
const MAX_ANSWER: usize = 256 << 20;
/// Runs of a query whose tasks fail.
const RUNS: u32 = 3;

/// A scheduler with at least one executor.
pub struct Scheduler {
    address: String,
    channel: Channel,
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
        let scheduler = Scheduler { address: address.to_owned(), channel };
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
        let list = self.get("/api/executors").await?;
        let list = list.as_ref().and_then(Value::as_array);
        list.map(Vec::len).ok_or_else(|| self.not_checked("it has no list of executors"))
    }

    fn without_executors(&self) -> Failure {
        Failure::new(format!("the scheduler at {} has no executor", self.address))
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
            .with_ballista_job_name("taskscope query")
            // Ballista 55.0's adaptive planner never ends a job in which one side of a join turns out to be empty.
            .with_ballista_adaptive_query_planner(false);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        SessionContext::remote_with_state(&format!("df://{}", self.address), state).await.map_err(|error| {
            Failure::new(format!("cannot use the scheduler at {}", self.address)).why(error.strip_backtrace())
        })
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
            let Some(job) = plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>() else {
                return Ok(stream);
            };
            let first = tokio::select! {
                first = stream.next() => first,
                failure = self.all_executors_lost() => return Err(failure),
            };
            let fault = match job.job_id() {
                Some(id) => self.fault(id.as_str()).await,
                None => Err(self.not_checked("the query has no job")),
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

    /// The fault of a finished job.
    async fn fault(&self, job: &str) -> Result<Option<tasks::Fault>, Failure> {
        let path = format!("/api/job/{job}/stages");
        // The scheduler reports the end of a job a moment before it stores the job among the finished ones.
        for _ in 0..50 {
            if let Some(stages) = self.get(&path).await? {
                return tasks::fault(&stages).map_err(|why| self.not_checked(&why));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(self.not_checked("it does not know the finished job"))
    }

    /// A document of the REST interface; none if it is not found.
    async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        let silent = |error: &dyn Error| {
            let mut last = error;
            while let Some(source) = last.source() {
                last = source;
            }
            unreachable(&self.address, last.to_string())
        };
        let request = Request::get(path).body(Body::empty());
        let request = request.map_err(|error| self.not_checked(&error.to_string()))?;
        let mut channel = self.channel.clone();
        let ready = std::future::poll_fn(|context| GrpcService::<Body>::poll_ready(&mut channel, context));
        ready.await.map_err(|error| silent(&error))?;
        let response = GrpcService::call(&mut channel, request).await.map_err(|error| silent(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            other => return Err(self.not_checked(&format!("its answer has status {}", other.as_u16()))),
        }
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        let bytes = body.map_err(|error| silent(&*error))?.to_bytes();
        let document = serde_json::from_slice(&bytes);
        document.map(Some).map_err(|error| self.not_checked(&format!("its answer is not JSON: {error}")))
    }

    /// The error for results that cannot be checked.
    fn not_checked(&self, why: &str) -> Failure {
        Failure::new(format!("cannot check results of the scheduler at {}", self.address))
            .why(format!(
                "{why}\nBallista 55 counts rows twice after the loss of an executor, which its REST interface shows"
            ))
            .remedy("ballista-scheduler 55 without --disable-rest-api")
    }
}

fn unreachable(address: &str, why: String) -> Failure {
    Failure::new(format!("cannot reach a scheduler at {address}"))
        .why(why)
        .remedy("ballista-scheduler --bind-host HOST --bind-port PORT (docs/howto/sql-cluster.md)")
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
