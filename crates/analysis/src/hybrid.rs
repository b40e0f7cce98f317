//! Efficiencies of processes × threads, in the multiplicative form: parallel = MPI × OpenMP.
//!
//! With capacity C without the time in which processes start or end MPI, time in MPI M, time of workers that
//! are idle while their process's initial thread is in MPI (W), and the losses of OpenMP: serialization Is,
//! load imbalance Il, the runtime Ir (including system time and unknown time):
//!
//! ```text
//! O = C − M − W                        outside of MPI; O_p of process p, P processes, K_p its workers
//! MPI parallel       = O / C           = load balance × communication
//! MPI communication  = max_p(O_p / K_p) / T        T the longest that a process lives without that time
//! MPI load balance   = Σ (O_p / K_p) / P / max_p(O_p / K_p) = in × out, with the mean of the fullest node between
//! OpenMP parallel    = U / O           = serialization × load balance × scheduling, removed in this order
//! ```
//!
//! After POP's hybrid metrics and DLB's TALP. As there, MPI counts OpenMP's losses as useful. Of processes with different
//! numbers of workers, or which do not live equally long, the first law holds approximately. (T is not the wall time of the
//! job: that has the time in it by which a launcher starts one process later than another.)

use crate::efficiency::efficiency;
use crate::{Analysis, ByState};
use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, Group, ProcessIndex, State};

/// One process.
#[derive(Clone, Debug, PartialEq)]
pub struct OfProcess {
    /// The process.
    pub process: ProcessIndex,
    /// Its workers.
    pub workers: u64,
    /// Its share of the capacity, nanoseconds.
    pub capacity_ns: u64,
    /// That for each worker: from its first to its last event without starting and ending MPI.
    pub elapsed_ns: u64,
    /// Time of its workers in the program's own code.
    pub useful_ns: u64,
    /// Time of its workers in MPI.
    pub mpi_ns: u64,
    /// Time of its workers that are idle while its initial thread is in MPI.
    pub mpi_worker_idle_ns: u64,
}

/// Times of all workers, and the efficiencies, shares of 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hybrid {
    /// T: the longest of its processes' own times ([`OfProcess::elapsed_ns`]), nanoseconds.
    pub elapsed_ns: u64,
    /// Sum over workers of the lives of their processes, without the time in which these start or end MPI.
    pub capacity_ns: u64,
    /// Time in the program's own code.
    pub useful_ns: u64,
    /// Time in MPI.
    pub mpi_ns: u64,
    /// Idle while the process is in MPI.
    pub mpi_worker_idle_ns: u64,
    /// Lost to serial code and to waiting for one's turn.
    pub omp_serialization_ns: u64,
    /// Lost to waiting in teams while others work.
    pub omp_load_imbalance_ns: u64,
    /// Lost to the runtime, the system, and unknown states. All of these sum to the capacity.
    pub omp_scheduling_ns: u64,
    /// MPI × OpenMP.
    pub parallel: f64,
    /// Outside of MPI over capacity.
    pub mpi_parallel: f64,
    /// Its factors.
    pub mpi_communication: f64,
    /// Product of the inner and the outer one.
    pub mpi_load_balance: f64,
    /// Between the processes of a node.
    pub mpi_load_balance_in: f64,
    /// Between nodes.
    pub mpi_load_balance_out: f64,
    /// Useful over outside of MPI.
    pub omp_parallel: f64,
    /// Its factors.
    pub omp_serialization: f64,
    /// See `omp_serialization`.
    pub omp_load_balance: f64,
    /// See `omp_serialization`.
    pub omp_scheduling: f64,
    /// Each process.
    pub processes: Vec<OfProcess>,
    /// Nodes (hosts).
    pub nodes: u64,
}

/// The efficiencies of a recorded run.
pub fn hybrid(execution: &Execution, analysis: &Analysis) -> Hybrid {
    let (ledger, charges) = (&analysis.ledger, &analysis.charges);
    let efficiency = efficiency(ledger, charges);
    let mut result = Hybrid {
        capacity_ns: ledger.started().total(),
        useful_ns: efficiency.useful_ns,
        mpi_ns: ledger.started().get(State::Communication),
        ..Hybrid::default()
    };
    let idle = ledger.idle_in_calls(execution);
    let mut nodes: Vec<Vec<f64>> = Vec::new();
    let mut node_rows: FxHashMap<&str, usize> = FxHashMap::default();
    let mut sums = vec![(0, ByState::default()); execution.processes.len()];
    for time in ledger.threads.iter().filter(|time| time.worker) {
        let (workers, sum) = &mut sums[execution.threads[time.thread.index()].process.index()];
        *workers += 1;
        sum.add_all(&time.started());
    }
    for ((index, row), (workers, sum)) in execution.processes.iter().enumerate().zip(sums) {
        if workers == 0 {
            continue;
        }
        let process = ProcessIndex::of(index);
        let of = OfProcess {
            process,
            workers,
            capacity_ns: sum.total(),
            elapsed_ns: sum.total() / workers,
            useful_ns: sum.group_ns(Group::Useful),
            mpi_ns: sum.get(State::Communication),
            mpi_worker_idle_ns: idle.get(&process),
        };
        let outside = (of.capacity_ns - of.mpi_ns - of.mpi_worker_idle_ns) as f64 / workers as f64;
        let node = *node_rows.entry(taskscope_execution::host(&row.loom)).or_insert(nodes.len());
        match nodes.get_mut(node) {
            Some(times) => times.push(outside),
            None => nodes.push(vec![outside]),
        }
        result.mpi_worker_idle_ns += of.mpi_worker_idle_ns;
        result.elapsed_ns = result.elapsed_ns.max(of.elapsed_ns);
        result.processes.push(of);
    }
    result.nodes = nodes.len() as u64;
    // Communication counts as load imbalance in the classic tree, idleness as serialization.
    let in_mpi = result.mpi_ns.min(efficiency.load_balance_ns);
    result.omp_load_imbalance_ns = efficiency.load_balance_ns - in_mpi;
    result.omp_serialization_ns = efficiency.serialization_ns.saturating_sub(result.mpi_worker_idle_ns);
    let reported = result.useful_ns
        + result.mpi_ns
        + result.mpi_worker_idle_ns
        + result.omp_load_imbalance_ns
        + result.omp_serialization_ns;
    result.omp_scheduling_ns = result.capacity_ns.saturating_sub(reported);
    result.factors(&nodes);
    result
}

impl Hybrid {
    /// `nodes` are the times outside of MPI of the processes of each node.
    fn factors(&mut self, nodes: &[Vec<f64>]) {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
        let all: Vec<f64> = nodes.iter().flatten().copied().collect();
        let most = all.iter().copied().fold(0.0, f64::max);
        let fullest = nodes.iter().map(|times| mean(times)).fold(0.0, f64::max);
        let outside = (self.capacity_ns - self.mpi_ns - self.mpi_worker_idle_ns) as f64;
        self.mpi_parallel = share(outside, self.capacity_ns as f64);
        self.mpi_communication = share(most, self.elapsed_ns as f64);
        self.mpi_load_balance_in = share(fullest, most);
        self.mpi_load_balance_out = share(mean(&all), fullest);
        self.mpi_load_balance = self.mpi_load_balance_in * self.mpi_load_balance_out;
        let mut left = outside;
        let mut factor = |loss: u64| {
            let before = left;
            left -= loss as f64;
            share(left, before)
        };
        self.omp_serialization = factor(self.omp_serialization_ns);
        self.omp_load_balance = factor(self.omp_load_imbalance_ns);
        self.omp_scheduling = factor(self.omp_scheduling_ns);
        self.omp_parallel = share(self.useful_ns as f64, outside);
        self.parallel = share(self.useful_ns as f64, self.capacity_ns as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use taskscope_execution::messages::MpiCall;
    use taskscope_execution::{Change, ExecutionBuilder, Observer, Section, ThreadIndex, ThreadKind};

    /// Two initial threads, which a damaged trace or a filter may show, are in calls from 20 to 60 and 10 to 50.
    #[test]
    fn idleness_during_calls_of_several_initial_threads_counts_once() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host", 1);
        let threads: [&[(u64, State)]; 3] = [
            &[(0, State::Serial), (20, State::Communication), (60, State::Serial)],
            &[(0, State::Serial), (10, State::Communication), (50, State::Serial)],
            &[(0, State::Serial), (30, State::Idle), (90, State::Serial)],
        ];
        for (tid, sections) in (1..).zip(threads) {
            let thread = builder.add_thread(process, tid);
            let kind = if tid < 3 { ThreadKind::Initial } else { ThreadKind::Worker };
            builder.change(thread, 0, Change::ThreadIs(kind));
            builder.change(thread, 0, Change::ThreadWorks);
            for (at, state) in sections {
                builder.event(thread, *at);
                builder.change(thread, *at, Change::Becomes(Section::of(*state)));
            }
            builder.event(thread, 100);
        }
        let execution = builder.finish();
        assert_eq!(crate::book(&execution).idle_in_calls(&execution).get(&ProcessIndex(0)), 30);
    }

    /// One initial thread starts MPI from 0 to 40, another one is in a call from 20 to 60; the third thread is idle.
    #[test]
    fn idleness_while_mpi_starts_is_not_that_of_a_call() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host", 1);
        let threads: [&[(u64, State)]; 3] = [
            &[(0, State::MpiStart), (40, State::Serial)],
            &[(0, State::Serial), (20, State::Communication), (60, State::Serial)],
            &[(0, State::Idle)],
        ];
        for (tid, sections) in (1..).zip(threads) {
            let thread = builder.add_thread(process, tid);
            let kind = if tid < 3 { ThreadKind::Initial } else { ThreadKind::Worker };
            builder.change(thread, 0, Change::ThreadIs(kind));
            builder.change(thread, 0, Change::ThreadWorks);
            for (at, state) in sections {
                builder.event(thread, *at);
                builder.change(thread, *at, Change::Becomes(Section::of(*state)));
            }
            builder.event(thread, 100);
        }
        let execution = builder.finish();
        let ledger = crate::book(&execution);
        assert_eq!(ledger.idle_in_calls(&execution).get(&ProcessIndex(0)), 20);
        assert_eq!((ledger.starting.get(State::Idle), ledger.starting.total()), (40, 40 + 20 + 40));
    }

    /// Rank 1 is started 40 ns after rank 0, which waits for it in `MPI_Init` until 60.
    #[test]
    fn ranks_that_a_launcher_starts_late_lose_nothing_by_it() {
        let mut builder = ExecutionBuilder::new();
        let ranks: [&[(u64, State)]; 2] = [
            &[(0, State::MpiStart), (60, State::Serial)],
            &[(40, State::MpiStart), (60, State::Serial), (90, State::Communication)],
        ];
        for (pid, sections) in (1..).zip(ranks) {
            let process = builder.add_process("host", pid);
            let thread = builder.add_thread(process, pid);
            builder.change(thread, sections[0].0, Change::ThreadIs(ThreadKind::Initial));
            for (at, state) in sections {
                builder.event(thread, *at);
                builder.change(thread, *at, Change::Becomes(Section::of(*state)));
            }
            builder.event(thread, 100);
        }
        let mut execution = builder.finish();
        execution.communication.calls = (0..2)
            .map(|thread| MpiCall {
                thread: ThreadIndex(thread),
                function: 0,
                place: taskscope_execution::Place::UNKNOWN,
                start: 0,
                end: 60,
                count: 1,
                bytes: 0,
                wait: None,
            })
            .collect();
        let (analysis, _) = analyse(&execution);
        let hybrid = hybrid(&execution, &analysis);
        assert_eq!((analysis.ledger.wall_ns, hybrid.elapsed_ns, hybrid.capacity_ns), (100, 40, 80));
        assert_eq!((hybrid.mpi_communication, hybrid.mpi_load_balance), (1.0, 35.0 / 40.0));
        assert_eq!(hybrid.mpi_parallel, hybrid.mpi_communication * hybrid.mpi_load_balance);
    }
}
