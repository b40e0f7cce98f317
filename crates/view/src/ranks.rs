//! The ranks of an MPI job: what each one's workers did with their time.

use serde_json::{Value, json};
use taskscope_analysis::{Analysis, ByState};
use taskscope_execution::{Group, ProcessIndex, State};
use taskscope_session::Session;

/// One rank. Times are nanoseconds.
pub struct RankRow {
    /// From 0.
    pub rank: u32,
    /// Its process.
    pub process: ProcessIndex,
    /// Its workers.
    pub workers: u64,
    /// The lives of its workers, without `start_ns`.
    pub capacity_ns: u64,
    /// Of its workers, while one of them started or ended MPI.
    pub start_ns: u64,
    /// Of the capacity, in the program's own code.
    pub useful_ns: u64,
    /// Of that, in communication calls.
    pub communication_ns: u64,
    /// Of its threads' time in calls, workers or not: waiting for another rank that had not come.
    pub peer_wait_ns: u64,
}

impl RankRow {
    /// Useful time over capacity.
    pub fn efficiency(&self) -> f64 {
        if self.capacity_ns == 0 { 0.0 } else { self.useful_ns as f64 / self.capacity_ns as f64 }
    }

    /// The name of its host.
    pub fn host<'a>(&self, session: &'a Session) -> &'a str {
        session.execution.processes[self.process.index()].loom.split('.').next().unwrap_or("")
    }

    /// The process id; where CPUs are the workers, that of the process whose they are.
    pub fn pid(&self, session: &Session) -> i64 {
        let processes = &session.execution.processes;
        let own = &processes[self.process.index()];
        let whose = processes.iter().find(|other| !other.has_cpus && other.loom == own.loom);
        if own.has_cpus { whose.map_or(0, |process| process.pid) } else { own.pid }
    }
}

/// The ranks in their order; empty where no process has one.
pub fn ranks(session: &Session, analysis: &Analysis) -> Vec<RankRow> {
    let execution = &session.execution;
    let communication = &execution.communication;
    let mut rows: Vec<RankRow> = (communication.ranks.iter())
        .map(|(process, rank)| RankRow {
            rank: rank.rank,
            process: ProcessIndex(*process),
            workers: 0,
            capacity_ns: 0,
            start_ns: 0,
            useful_ns: 0,
            communication_ns: 0,
            peer_wait_ns: 0,
        })
        .collect();
    rows.sort_by_key(|row| (row.rank, row.process));
    let process_of = |thread: usize| execution.threads.get(thread).map(|thread| thread.process);
    for row in &mut rows {
        let own = |thread| process_of(thread) == Some(row.process);
        let mut sum = ByState::default();
        for time in analysis.ledger.threads.iter().filter(|time| time.worker && own(time.thread.index())) {
            row.workers += 1;
            sum.add_all(&time.started());
            row.start_ns += time.starting.total();
        }
        row.capacity_ns = sum.total();
        row.useful_ns = sum.of_group(Group::Useful);
        row.communication_ns = sum.get(State::Communication);
    }
    let mut waited = vec![0; execution.processes.len()];
    for call in &communication.calls {
        if let (Some(process), Some(wait)) = (process_of(call.thread.index()), call.wait) {
            waited[process.index()] += wait.until.saturating_sub(call.start);
        }
    }
    // Where the CPUs of a loom are the workers, its processes have none.
    rows.retain(|row| row.workers > 0);
    for row in &mut rows {
        row.peer_wait_ns = waited.get(row.process.index()).copied().unwrap_or(0);
    }
    rows
}

/// The same as JSON.
pub fn json(session: &Session, analysis: &Analysis) -> Vec<Value> {
    let rows = ranks(session, analysis).into_iter().map(|row| {
        json!({
            "rank": row.rank,
            "host": row.host(session),
            "pid": row.pid(session),
            "workers": row.workers,
            "capacity_ns": row.capacity_ns + row.start_ns,
            "mpi_start_ns": row.start_ns,
            "useful_ns": row.useful_ns,
            "communication_ns": row.communication_ns,
            "peer_wait_ns": row.peer_wait_ns,
            "parallel_efficiency": row.efficiency(),
        })
    });
    rows.collect()
}
