//! The ranks of an MPI job: the use of their workers' time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taskscope_analysis::{Analysis, ByState};
use taskscope_execution::{Group, Process, ProcessIndex, State};
use taskscope_session::Session;

/// One rank of an MPI job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// The rank, from 0.
    pub rank: u32,
    /// Its node.
    pub host: String,
    /// Its process id. If CPUs are the workers, the id of the process that owns them.
    pub pid: i64,
    /// Number of its workers.
    pub workers: u64,
    /// Nanoseconds of its workers' lives.
    pub capacity_ns: u64,
    /// Worker-nanoseconds, other than useful, while one of its threads started or ended MPI.
    pub mpi_start_ns: u64,
    /// Worker-nanoseconds in the program's own code.
    pub useful_ns: u64,
    /// Worker-nanoseconds in communication calls other than those that start and end MPI.
    pub communication_ns: u64,
    /// Nanoseconds that all its threads, workers or not, waited in calls, but those that start MPI, for a rank that had not come yet.
    pub peer_wait_ns: u64,
    /// `useful_ns` / (`capacity_ns` − `mpi_start_ns`).
    #[schemars(range(min = 0, max = 1))]
    pub parallel_efficiency: f64,
}

/// The process id. If CPUs are the workers, the id of the process that owns them.
fn pid_of(processes: &[Process], own: &Process) -> i64 {
    let owner = || processes.iter().find(|other| !other.has_cpus && other.loom == own.loom);
    if own.has_cpus { owner().map_or(0, |process| process.pid) } else { own.pid }
}

/// The ranks in order; empty if no process has one.
pub fn ranks(session: &Session, analysis: &Analysis) -> Vec<Rank> {
    let execution = &session.execution;
    let communication = &execution.communication;
    let processes = &execution.processes;
    let mut rows: Vec<(ProcessIndex, Rank)> = (communication.ranks.iter())
        .map(|(process, rank)| {
            let row = Rank {
                rank: rank.rank,
                host: processes[*process as usize].loom.split('.').next().unwrap_or("").to_owned(),
                pid: pid_of(processes, &processes[*process as usize]),
                workers: 0,
                capacity_ns: 0,
                mpi_start_ns: 0,
                useful_ns: 0,
                communication_ns: 0,
                peer_wait_ns: 0,
                parallel_efficiency: 0.0,
            };
            (ProcessIndex(*process), row)
        })
        .collect();
    rows.sort_by_key(|(process, row)| (row.rank, *process));
    let process_of = |thread: usize| execution.threads.get(thread).map(|thread| thread.process);
    let mut sums: Vec<(u64, ByState, u64)> = vec![Default::default(); processes.len()];
    for time in analysis.ledger.threads.iter().filter(|time| time.worker) {
        if let Some(process) = process_of(time.thread.index()) {
            let (workers, sum, starting_ns) = &mut sums[process.index()];
            *workers += 1;
            sum.add_all(&time.started());
            *starting_ns += time.starting.total();
        }
    }
    for (process, row) in &mut rows {
        let (workers, sum, starting_ns) = &sums[process.index()];
        (row.workers, row.mpi_start_ns) = (*workers, *starting_ns);
        row.capacity_ns = sum.total() + row.mpi_start_ns;
        row.useful_ns = sum.group_ns(Group::Useful);
        if sum.total() > 0 {
            row.parallel_efficiency = row.useful_ns as f64 / sum.total() as f64;
        }
        row.communication_ns = sum.get(State::Communication);
    }
    let mut waited = vec![0; execution.processes.len()];
    for call in &communication.calls {
        if matches!(call.function_name(), Some("Init" | "Init_thread")) {
            continue;
        }
        if let (Some(process), Some(wait)) = (process_of(call.thread.index()), call.wait) {
            waited[process.index()] += wait.until.saturating_sub(call.start);
        }
    }
    // If the CPUs of a loom are the workers, its processes have none.
    rows.retain(|(_, row)| row.workers > 0);
    for (process, row) in &mut rows {
        row.peer_wait_ns = waited.get(process.index()).copied().unwrap_or(0);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}
