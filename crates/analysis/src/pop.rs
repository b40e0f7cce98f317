//! POP's efficiencies of a task graph.
//!
//! PE = LB × SerE × TrfE with U_i the useful time of worker i and T the wall time without the start and the
//! end of MPI (of the rank with the shortest; POP measures a run between them), (POP, "Standard metrics";
//! T_ideal from a replay with an ideal network, in the place of Dimemas): LB = avg(U) / max(U), SerE = max(U)
//! / T_ideal, TrfE = T_ideal / T, CommE = SerE × TrfE.

use crate::causes::Causes;
use crate::timeline::start_segments;
use taskscope_execution::Cause;
use taskscope_execution::graph::TaskGraph;

/// Efficiencies, each a share of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pop {
    /// avg(U) / T.
    pub parallel: f64,
    /// avg(U) / max(U).
    pub load_balance: f64,
    /// max(U) / T.
    pub communication: f64,
    /// max(U) / T_ideal; `None` if T_ideal is unknown.
    pub serialization: Option<f64>,
    /// T_ideal / T; `None` if T_ideal is unknown.
    pub transfer: Option<f64>,
}

/// Efficiencies of a range from its ledger and from the wall time of the run on an ideal network, which no replay has of a part.
pub fn pop(graph: &TaskGraph, causes: &Causes, ideal_network_wall_ns: Option<u64>, range: (u64, u64)) -> Pop {
    let (begin, end) = graph.range();
    let (begin, end) = (begin.max(range.0), end.min(range.1));
    let start = least_start(graph, range);
    let workers = graph.workers.iter().zip(&causes.by_worker).filter(|(worker, _)| worker.selected);
    let useful: Vec<u64> = workers.map(|(_, leaves)| leaves[Cause::Work as usize]).collect();
    let most = useful.iter().copied().max().unwrap_or(0).max(1) as f64;
    let average = useful.iter().sum::<u64>() as f64 / useful.len().max(1) as f64;
    // Workers of a rank may work while it starts MPI.
    let wall = (end.saturating_sub(begin).saturating_sub(start) as f64).max(most);
    // An ideal run is no longer than the real one, nor shorter than the busiest worker's work.
    let ideal =
        ideal_network_wall_ns.map(|ideal| (ideal.saturating_sub(start) as f64).clamp(most.min(wall), wall));
    Pop {
        parallel: average / wall,
        load_balance: average / most,
        communication: most / wall,
        serialization: ideal.map(|ideal| most / ideal),
        transfer: ideal.map(|ideal| ideal / wall),
    }
}

/// Minimum duration of starting and ending MPI in a range, of all nodes; nanoseconds.
pub fn least_start(graph: &TaskGraph, (begin, end): (u64, u64)) -> u64 {
    let mut nodes = vec![0; graph.nodes.len()];
    for (worker, segments) in graph.workers.iter().zip(start_segments(graph).iter()) {
        let node = &mut nodes[worker.node as usize];
        let inside = segments.iter().map(|s| s.end.min(end).saturating_sub(s.start.max(begin)));
        *node = inside.sum::<u64>().max(*node);
    }
    nodes.into_iter().min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::book_causes;
    use crate::keys::Who;
    use crate::replay::{CostChange, Costs, replay};
    use crate::slo::{Mode, Prepared, SloOptions, deciding_inputs};
    use crate::wait_for_graph::Letter;
    use taskscope_execution::graph::{ActivityKind, GraphBuilder, NewData, NewTask, TaskType};

    /// Serial code, 600 ns in MPI_Init, a task of 300 ns, 100 ns in MPI_Finalize; another worker has nothing to do.
    fn job() -> TaskGraph {
        let mut builder = GraphBuilder::new();
        for worker in 0..2 {
            builder.add_worker(worker, 0, 0, 1100);
        }
        let ty = builder.add_type(TaskType { name: "code".into(), implicit: true, ..TaskType::default() });
        for (task, start, end) in [(0, 0, 100), (1, 700, 1000)] {
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(0, task, start, end);
        }
        let (init, finalize) = (builder.add_name("MPI_Init"), builder.add_name("MPI_Finalize"));
        builder.add_activity(0, ActivityKind::Start, init, 100, 700);
        builder.add_activity(0, ActivityKind::Start, finalize, 1000, 1100);
        builder.finish().unwrap()
    }

    #[test]
    fn the_start_of_mpi_is_in_the_ledger_and_in_no_efficiency() {
        let graph = job();
        let causes = book_causes(&graph);
        assert_eq!(causes.by_cause.iter().sum::<u64>(), graph.capacity());
        assert_eq!(causes.by_cause[Cause::MpiStart as usize], 700);
        assert_eq!(causes.by_cause[Cause::MpiTransfer as usize], 0);
        assert_eq!(causes.slow.latency_ns, 0);
        let efficiencies = pop(&graph, &causes, Some(1100), (0, u64::MAX));
        assert_eq!((efficiencies.communication, efficiencies.transfer), (1.0, Some(1.0)));
        assert_eq!((efficiencies.load_balance, efficiencies.parallel), (0.5, 0.5));
    }

    #[test]
    fn no_what_if_changes_the_start_of_mpi() {
        let graph = job();
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let wall = |change: CostChange| replay(&graph, &costs, &change).wall_ns;
        assert_eq!(wall(CostChange::default()), 1100);
        assert_eq!(wall(CostChange { runtime: 0.0, network: 0.0, ..CostChange::default() }), 1100);
        assert_eq!(wall(CostChange { types: vec![(0, 0.5)], ..CostChange::default() }), 900);
    }

    /// A rank starts MPI until 990 ns and waits for a message until 1000 ns, which could have come by 800 ns.
    #[test]
    fn a_rank_that_waits_after_the_start_of_mpi_has_started_it() {
        let mut builder = GraphBuilder::new();
        let ty = builder.add_type(TaskType { name: "code".into(), implicit: true, ..TaskType::default() });
        let init = builder.add_name("MPI_Init");
        for (worker, started) in [(0, 700), (1, 990)] {
            builder.add_worker(worker, worker, 0, 1100);
            builder.add_activity(worker, ActivityKind::Start, init, 100, started);
        }
        for (task, worker, start, end) in
            [(0, 0, 0, 100), (1, 1, 0, 100), (2, 0, 700, 800), (3, 1, 1000, 1100)]
        {
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(worker, task, start, end);
        }
        let (producer, name) = (Some(2), u32::MAX);
        builder.add_data(NewData {
            id: 0,
            producer,
            produced: 800,
            home: 0,
            bytes: 8,
            name,
            synchronises: false,
        });
        builder.add_copy(0, 1, 800, 1000);
        builder.add_input(3, 0);
        let graph = builder.finish().unwrap();
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let wall = |change: CostChange| replay(&graph, &costs, &change).wall_ns;
        assert_eq!(wall(CostChange::default()), 1100);
        assert_eq!(wall(CostChange { network: 0.0, ..CostChange::default() }), 1090);
        assert!(
            wall(CostChange { runtime: 0.0, network: 0.0, types: vec![(0, 0.0)], ..CostChange::default() })
                >= 890
        );
    }

    /// In every mode, waiting for code after MPI_Init counts as overhead of starting MPI, not as too little
    /// parallelism.
    #[test]
    fn waiting_for_the_start_of_mpi_is_no_starvation() {
        let mut builder = GraphBuilder::new();
        for worker in 0..2 {
            builder.add_worker(worker, 0, 0, 1100);
        }
        let ty = builder.add_type(TaskType { name: "code".into(), ..TaskType::default() });
        for (worker, task, start, end) in [(0, 0, 0, 100), (0, 1, 700, 1000), (1, 2, 1000, 1100)] {
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(worker, task, start, end);
        }
        let init = builder.add_name("MPI_Init");
        builder.add_activity(0, ActivityKind::Start, init, 100, 700);
        let (name, home, bytes) = (u32::MAX, 0, 0);
        let data =
            NewData { id: 0, producer: Some(1), produced: 1000, home, bytes, name, synchronises: false };
        builder.add_data(data);
        builder.add_input(2, 0);
        let graph = builder.finish().unwrap();
        for mode in Mode::ALL {
            let slo = Prepared::new(&graph).attribute(mode, &SloOptions::default());
            let of = |letter| slo.by_worker[1].get(letter).rounded();
            assert_eq!((of(Letter::Starvation), of(Letter::Overhead)), (400, 600), "{mode:?}");
            let blamed = slo.blame.iter().find(|row| row.who == Who::Start(init)).unwrap();
            assert_eq!(blamed.time.rounded(), 600);
        }
    }
}
