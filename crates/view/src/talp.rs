//! The run in the JSON form of DLB's TALP (3.6), for `talp-pages` and other readers of it.
//!
//! Unavailable data is omitted. Hardware counters and devices are zero counts, as TALP writes without a
//! source. The whole run is one region, `Global`. Times are nanoseconds.

use serde::Serialize;
use std::collections::BTreeMap;
use taskscope_analysis::Analysis;
use taskscope_analysis::hybrid::hybrid;
use taskscope_execution::Execution;
use taskscope_session::Session;

/// The name that TALP gives to the region of the whole run.
const REGION: &str = "Global";

/// The run as TALP describes it.
#[derive(Clone, Debug, Serialize)]
pub struct Talp {
    #[serde(rename = "dlbVersion")]
    dlb_version: String,
    /// Start of the run as in ISO 8601.
    timestamp: String,
    resources: Resources,
    #[serde(rename = "Application")]
    application: BTreeMap<&'static str, Region>,
    #[serde(rename = "Process")]
    process: BTreeMap<&'static str, Vec<ProcessTimes>>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    num_cpus: u64,
    num_available_cpus: u64,
    num_nodes: u64,
    num_mpi_ranks: u64,
    num_gpus: u64,
}

/// Sums over all processes; shares are of 1.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    num_cpus: u64,
    num_omp_threads: u64,
    num_mpi_ranks: u64,
    num_nodes: u64,
    avg_cpus: f64,
    num_gpus: u64,
    cycles: u64,
    instructions: u64,
    num_measurements: u64,
    num_mpi_calls: u64,
    num_omp_parallels: u64,
    num_omp_tasks: u64,
    num_gpu_runtime_calls: u64,
    elapsed_time: u64,
    useful_time: u64,
    mpi_time: u64,
    mpi_worker_idle_time: u64,
    omp_load_imbalance_time: u64,
    omp_scheduling_time: u64,
    omp_serialization_time: u64,
    parallel_efficiency: f64,
    mpi_parallel_efficiency: f64,
    mpi_communication_efficiency: f64,
    mpi_load_balance: f64,
    mpi_load_balance_in: f64,
    mpi_load_balance_out: f64,
    omp_parallel_efficiency: f64,
    omp_load_balance: f64,
    omp_scheduling_efficiency: f64,
    omp_serialization_efficiency: f64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessTimes {
    rank: u64,
    pid: i64,
    node_id: usize,
    hostname: String,
    num_cpus: u64,
    elapsed_time: u64,
    useful_time: u64,
    mpi_time: u64,
    mpi_worker_idle_time: u64,
    num_omp_tasks: u64,
}

/// Describes a run as TALP does.
pub fn talp(session: &Session, analysis: &Analysis) -> Talp {
    let execution = &session.execution;
    let hybrid = hybrid(execution, analysis);
    let ranks = hybrid.processes.len() as u64;
    let with_mpi = hybrid.mpi_ns > 0 || ranks > 1;
    let cpus = analysis.ledger.workers as u64;
    let num_mpi_ranks = if with_mpi { ranks.max(1) } else { 0 };
    let whole = Region {
        num_cpus: cpus,
        num_omp_threads: cpus,
        num_mpi_ranks,
        num_nodes: hybrid.nodes as u64,
        avg_cpus: cpus as f64,
        num_measurements: 1,
        num_mpi_calls: execution.communication.calls.len() as u64,
        num_omp_parallels: execution.regions.len() as u64,
        num_omp_tasks: analysis.tasks,
        elapsed_time: hybrid.elapsed_ns,
        useful_time: hybrid.useful_ns,
        mpi_time: hybrid.mpi_ns,
        mpi_worker_idle_time: hybrid.mpi_worker_idle_ns,
        omp_load_imbalance_time: hybrid.omp_load_imbalance_ns,
        omp_scheduling_time: hybrid.omp_scheduling_ns,
        omp_serialization_time: hybrid.omp_serialization_ns,
        parallel_efficiency: hybrid.parallel,
        mpi_parallel_efficiency: hybrid.mpi_parallel,
        mpi_communication_efficiency: hybrid.mpi_communication,
        mpi_load_balance: hybrid.mpi_load_balance,
        mpi_load_balance_in: hybrid.mpi_load_balance_in,
        mpi_load_balance_out: hybrid.mpi_load_balance_out,
        omp_parallel_efficiency: hybrid.omp_parallel,
        omp_load_balance: hybrid.omp_load_balance,
        omp_scheduling_efficiency: hybrid.omp_scheduling,
        omp_serialization_efficiency: hybrid.omp_serialization,
        ..Region::default()
    };
    let (tasks, nodes) = (tasks_of_processes(execution), nodes_of_processes(execution));
    let processes = hybrid.processes.iter().enumerate().map(|(number, of)| {
        let process = &execution.processes[of.process.index()];
        let rank = execution.communication.ranks.get(&of.process.0);
        ProcessTimes {
            rank: rank.map_or(number as u64, |of| of.rank.into()),
            pid: process.pid,
            node_id: nodes[of.process.index()],
            hostname: host(&process.loom).to_owned(),
            num_cpus: of.workers,
            elapsed_time: of.elapsed_ns,
            useful_time: of.useful_ns,
            mpi_time: of.mpi_ns,
            mpi_worker_idle_time: of.mpi_worker_idle_ns,
            num_omp_tasks: tasks[of.process.index()],
        }
    });
    let mut processes: Vec<ProcessTimes> = processes.collect();
    processes.sort_by_key(|process| process.rank);
    Talp {
        dlb_version: format!("3.6 (form; written by taskscope {})", env!("CARGO_PKG_VERSION")),
        timestamp: timestamp(session),
        resources: Resources {
            num_cpus: cpus,
            num_available_cpus: cpus,
            num_nodes: hybrid.nodes as u64,
            num_mpi_ranks,
            num_gpus: 0,
        },
        application: BTreeMap::from([(REGION, whole)]),
        process: BTreeMap::from([(REGION, processes)]),
    }
}

fn host(loom: &str) -> &str {
    loom.split('.').next().unwrap_or("")
}

/// The number of each process's host.
fn nodes_of_processes(execution: &Execution) -> Vec<usize> {
    let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
    let node = |loom| {
        let next = hosts.len();
        *hosts.entry(host(loom)).or_insert(next)
    };
    execution.processes.iter().map(|process| &*process.loom).map(node).collect()
}

/// The number of tasks that threads of each process ran.
fn tasks_of_processes(execution: &Execution) -> Vec<u64> {
    let mut tasks = vec![0; execution.processes.len()];
    for runner in &execution.tasks.runner {
        if let Some(thread) = execution.threads.get(runner.index()) {
            tasks[thread.process.index()] += 1;
        }
    }
    tasks
}

/// The start of the run in ISO 8601; empty if unknown.
fn timestamp(session: &Session) -> String {
    let start = session.run.as_ref().and_then(|run| run.start_unix_ns);
    let reported = start.map_or(String::new(), crate::info::date_and_time);
    reported.replacen(' ', "T", 1).replace(" UTC", "+00:00")
}
