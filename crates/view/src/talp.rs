//! The run in the JSON form of DLB's TALP (3.6), for `talp-pages` and other readers of it.
//!
//! What taskscope cannot tell is left out: hardware counters and devices are zero counts, as TALP writes them
//! where there are none. The whole run is one region, `Global`. Times are nanoseconds.

use serde_json::{Map, Value, json};
use taskscope_analysis::Analysis;
use taskscope_analysis::hybrid::hybrid;
use taskscope_execution::{ProcessIndex, ThreadIndex};
use taskscope_session::Session;

/// The name that TALP gives to the region of the whole run.
const REGION: &str = "Global";

/// The JSON.
pub fn talp_json(session: &Session, analysis: &Analysis) -> Value {
    let execution = &session.execution;
    let hybrid = hybrid(execution, analysis);
    let ranks = hybrid.processes.len() as u64;
    let with_mpi = hybrid.mpi_ns > 0 || ranks > 1;
    let parallels = execution.regions.len() as u64;
    let calls = execution.communication.calls.len() as u64;
    let region = |times: [u64; 6], cpus: u64, elapsed: u64| -> Map<String, Value> {
        let [useful, mpi, idle, imbalance, scheduling, serialization] = times;
        let mut map = Map::new();
        map.insert("numCpus".into(), cpus.into());
        map.insert("numOmpThreads".into(), cpus.into());
        map.insert("numMpiRanks".into(), u64::from(with_mpi).max(ranks * u64::from(with_mpi)).into());
        map.insert("numNodes".into(), hybrid.nodes.into());
        map.insert("avgCpus".into(), (cpus as f64).into());
        for name in ["numGpus", "cycles", "instructions"] {
            map.insert(name.into(), 0.into());
        }
        map.insert("numMeasurements".into(), 1.into());
        map.insert("numMpiCalls".into(), calls.into());
        map.insert("numOmpParallels".into(), parallels.into());
        map.insert("numOmpTasks".into(), analysis.tasks.into());
        map.insert("numGpuRuntimeCalls".into(), 0.into());
        map.insert("elapsedTime".into(), elapsed.into());
        map.insert("usefulTime".into(), useful.into());
        map.insert("mpiTime".into(), mpi.into());
        map.insert("mpiWorkerIdleTime".into(), idle.into());
        map.insert("ompLoadImbalanceTime".into(), imbalance.into());
        map.insert("ompSchedulingTime".into(), scheduling.into());
        map.insert("ompSerializationTime".into(), serialization.into());
        map
    };
    let times = [
        hybrid.useful_ns,
        hybrid.mpi_ns,
        hybrid.mpi_worker_idle_ns,
        hybrid.omp_load_imbalance_ns,
        hybrid.omp_scheduling_ns,
        hybrid.omp_serialization_ns,
    ];
    let cpus = analysis.ledger.workers as u64;
    let mut whole = region(times, cpus, hybrid.elapsed_ns);
    for (name, share) in [
        ("parallelEfficiency", hybrid.parallel),
        ("mpiParallelEfficiency", hybrid.mpi_parallel),
        ("mpiCommunicationEfficiency", hybrid.mpi_communication),
        ("mpiLoadBalance", hybrid.mpi_load_balance),
        ("mpiLoadBalanceIn", hybrid.mpi_load_balance_in),
        ("mpiLoadBalanceOut", hybrid.mpi_load_balance_out),
        ("ompParallelEfficiency", hybrid.omp_parallel),
        ("ompLoadBalance", hybrid.omp_load_balance),
        ("ompSchedulingEfficiency", hybrid.omp_scheduling),
        ("ompSerializationEfficiency", hybrid.omp_serialization),
    ] {
        whole.insert(name.into(), share.into());
    }
    let processes = hybrid.processes.iter().enumerate().map(|(number, of)| {
        let process = &execution.processes[of.process.index()];
        let rank =
            execution.communication.ranks.get(&of.process.0).map_or(number as u64, |of| of.rank.into());
        json!({
            "rank": rank,
            "pid": process.pid,
            "nodeId": node_of(session, of.process),
            "hostname": host(&process.loom),
            "numCpus": of.workers,
            "elapsedTime": of.elapsed_ns,
            "usefulTime": of.useful_ns,
            "mpiTime": of.mpi_ns,
            "mpiWorkerIdleTime": of.mpi_worker_idle_ns,
            "numOmpTasks": tasks_of(session, of.process),
        })
    });
    let mut processes: Vec<Value> = processes.collect();
    processes.sort_by_key(|process| process["rank"].as_u64());
    let mut application = Map::new();
    application.insert(REGION.into(), Value::Object(whole));
    let mut by_region = Map::new();
    by_region.insert(REGION.into(), processes.into());
    json!({
        "dlbVersion": format!("3.6 (form; written by taskscope {})", env!("CARGO_PKG_VERSION")),
        "timestamp": timestamp(session),
        "resources": {
            "numCpus": cpus,
            "numAvailableCpus": cpus,
            "numNodes": hybrid.nodes,
            "numMpiRanks": if with_mpi { ranks } else { 0 },
            "numGpus": 0,
        },
        "Application": application,
        "Process": by_region,
    })
}

fn host(loom: &str) -> &str {
    loom.split('.').next().unwrap_or("")
}

fn node_of(session: &Session, process: ProcessIndex) -> usize {
    let processes = &session.execution.processes;
    let mut hosts: Vec<&str> = processes.iter().map(|process| host(&process.loom)).collect();
    hosts.dedup();
    hosts.iter().position(|name| *name == host(&processes[process.index()].loom)).unwrap_or(0)
}

fn tasks_of(session: &Session, process: ProcessIndex) -> u64 {
    let execution = &session.execution;
    let of =
        |thread: &ThreadIndex| execution.threads.get(thread.index()).is_some_and(|t| t.process == process);
    execution.tasks.runner.iter().filter(|thread| of(thread)).count() as u64
}

/// When the run began, in the form of ISO 8601; empty where it is not known.
fn timestamp(session: &Session) -> String {
    let start = session.run.as_ref().and_then(|run| run.start_unix_ns);
    let told = start.map_or(String::new(), crate::info::date_and_time);
    told.replacen(' ', "T", 1).replace(" UTC", "+00:00")
}
