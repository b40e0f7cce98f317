//! Tasks of runtimes with CPUs as workers.

use std::path::Path;
use taskscope_analysis::Confidence;
use taskscope_analysis::causes::book_causes;
use taskscope_event::models::{mpi, nanos6, nosv, openmp, ovni};
use taskscope_execution::{Blamed, Cause, Execution, OsSource, OsTimes, ThreadIndex, ThreadKind};
use taskscope_session::Session;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};

/// The thread and its CPU both show the task, which ran once.
#[test]
fn the_body_of_a_task_is_counted_once() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1001, nosv::TYPE_CREATE, &type_payload(1, "work"))
        .event(1010, nosv::TASK_CREATE, &pair(7, 1))
        .event(1100, nosv::TASK_EXECUTE, &pair(7, 0))
        .event(1400, nosv::TASK_END, &pair(7, 0))
        .end(1500)
        .write(root.path())
        .unwrap();
    let session = Session::open(root.path()).unwrap();
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let [row] = analysis.task_types[..] else { panic!("{:?}", analysis.task_types) };
    assert_eq!((row.began, row.body_ns, row.median_ns, row.max_ns), (1, 300, 300, 300));
    // The CPU's time has it too: it is the worker.
    assert_eq!(analysis.ledger.by_state.get(taskscope_execution::State::Task), 300);
}

/// ovni keeps a stack for each kind of section, and one for the state of the thread: sections of one stack may end in
/// any order relative to those of another.
#[test]
fn sections_of_different_kinds_need_not_nest() {
    use taskscope_execution::State::{Communication, Idle, NoSubsystem, Runtime, Task, TaskCreation};
    let nosv = || StreamBuilder::new(0, 1, 10).require(&["ovni", "nosv", "mpi"]).cpus(1).execute(1000, 0);
    let task = || {
        nosv()
            .jumbo(1000, nosv::TYPE_CREATE, &type_payload(1, "work"))
            .event(1000, nosv::TASK_CREATE, &pair(7, 1))
            .event(1000, nosv::TASK_EXECUTE, &pair(7, 0))
    };
    let cases = [
        // Begun while the thread warms, and ended while it warms.
        (
            nosv()
                .point(1100, ovni::THREAD_PAUSES)
                .point(1200, ovni::THREAD_WARMS)
                .point(1300, nosv::API_SUBMIT_BEGIN)
                .point(1400, ovni::THREAD_RESUMES)
                .point(1600, nosv::API_SUBMIT_END)
                .end(2000),
            vec![(NoSubsystem, 500), (Idle, 300), (TaskCreation, 200)],
        ),
        (
            nosv()
                .point(1100, nosv::API_SUBMIT_BEGIN)
                .point(1200, ovni::THREAD_PAUSES)
                .point(1300, ovni::THREAD_WARMS)
                .point(1400, nosv::API_SUBMIT_END)
                .point(1500, ovni::THREAD_RESUMES)
                .end(2000),
            vec![(NoSubsystem, 600), (Idle, 300), (TaskCreation, 100)],
        ),
        // Two models.
        (
            nosv()
                .point(1100, nosv::API_SUBMIT_BEGIN)
                .point(1200, mpi::SEND_BEGIN)
                .point(1300, nosv::API_SUBMIT_END)
                .point(1400, mpi::SEND_END)
                .end(2000),
            vec![(NoSubsystem, 700), (Communication, 200), (TaskCreation, 100)],
        ),
        // A task that pauses in a call.
        (
            task()
                .point(1100, nosv::API_SUBMIT_BEGIN)
                .event(1200, nosv::TASK_PAUSE, &pair(7, 0))
                .point(1300, nosv::API_SUBMIT_END)
                .event(1400, nosv::TASK_RESUME, &pair(7, 0))
                .event(1500, nosv::TASK_END, &pair(7, 0))
                .end(2000),
            vec![(Task, 200), (NoSubsystem, 500), (TaskCreation, 300)],
        ),
        // A section of OpenMP begun in a task and ended after it.
        (
            StreamBuilder::new(0, 1, 10)
                .require(&["ovni", "openmp"])
                .cpus(1)
                .execute(1000, 0)
                .jumbo(1000, openmp::TYPE_CREATE, &type_payload(1, "work"))
                .event(1000, openmp::TASK_CREATE, &pair(7, 1))
                .event(1100, openmp::TASK_EXECUTE, &7_u32.to_le_bytes())
                .point(1200, openmp::RUNTIME_INITIALIZATION_BEGIN)
                .event(1300, openmp::TASK_END, &7_u32.to_le_bytes())
                .point(1400, openmp::RUNTIME_INITIALIZATION_END)
                .end(2000),
            vec![(Task, 100), (Runtime, 200)],
        ),
    ];
    for (stream, expected) in cases {
        let root = tempfile::tempdir().unwrap();
        stream.write(root.path()).unwrap();
        let session = Session::open(root.path()).unwrap();
        assert!(session.execution.uncertain.is_empty(), "{:?}", session.execution.uncertain);
        let (analysis, _) = taskscope_analysis::analyse(&session.execution);
        let by_state = &analysis.ledger.by_state;
        for (state, ns) in &expected {
            assert_eq!(by_state.get(*state), *ns, "{state:?} of {expected:?}");
        }
    }
}

/// The causes of a worker's losses, if any; each is there once.
fn causes_of(root: &Path) -> Vec<(&'static str, u64)> {
    let session = Session::open(root).unwrap();
    let graph = session.task_graph().unwrap().0;
    let causes = book_causes(&graph);
    assert_eq!(causes.by_cause.iter().sum::<u64>(), graph.capacity());
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    assert_eq!(analysis.ledger.by_state.total(), graph.capacity());
    assert!(analysis.findings.iter().all(|finding| finding.cause != Cause::CpuNone));
    let lost = analysis.ledger.capacity_ns - analysis.efficiency.useful_ns;
    assert_eq!(analysis.findings.iter().map(|finding| finding.ns).sum::<u64>(), lost);
    let all = Cause::ALL.iter().map(|cause| (cause.name(), causes.by_cause[*cause as usize]));
    all.filter(|(_, ns)| *ns > 0).collect()
}

/// A task blocks, and its thread looks for another one until it leaves the CPU to a thread with a ready task. This is
/// not a preemption, and the other thread's activity on the CPU is not a loss.
#[test]
fn a_thread_that_pauses_is_not_kept_off_its_cpu() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1000, nosv::TYPE_CREATE, &type_payload(1, "work"))
        .event(1000, nosv::TASK_CREATE, &pair(7, 1))
        .event(1000, nosv::TASK_EXECUTE, &pair(7, 0))
        .event(1100, nosv::TASK_CREATE, &pair(8, 1))
        .event(1100, nosv::TASK_PAUSE, &pair(7, 0))
        .point(1150, ovni::THREAD_PAUSES)
        .point(1460, ovni::THREAD_RESUMES)
        .event(1460, nosv::TASK_RESUME, &pair(7, 0))
        .event(1500, nosv::TASK_END, &pair(7, 0))
        .end(1500)
        .write(root.path())
        .unwrap();
    StreamBuilder::new(0, 1, 11)
        .execute(1160, 0)
        .event(1160, nosv::TASK_EXECUTE, &pair(8, 0))
        .event(1460, nosv::TASK_END, &pair(8, 0))
        .end(1460)
        .write(root.path())
        .unwrap();
    assert_eq!(causes_of(root.path()), [("work", 440), ("wait.dispatch", 60)]);
}

/// Without known CPUs the thread is the worker, and it is idle while it has paused.
#[test]
fn a_thread_that_pauses_where_no_cpu_is_known_is_idle() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .execute(1000, -1)
        .jumbo(1000, openmp::TYPE_CREATE, &type_payload(1, "work"))
        .event(1000, openmp::TASK_CREATE, &pair(7, 1))
        .event(1000, openmp::TASK_EXECUTE, &7u32.to_le_bytes())
        .event(1100, openmp::TASK_END, &7u32.to_le_bytes())
        .point(1100, ovni::THREAD_PAUSES)
        .point(1400, ovni::THREAD_RESUMES)
        .event(1400, openmp::TASK_CREATE, &pair(8, 1))
        .event(1400, openmp::TASK_EXECUTE, &8u32.to_le_bytes())
        .event(1500, openmp::TASK_END, &8u32.to_le_bytes())
        .end(1500)
        .write(root.path())
        .unwrap();
    assert_eq!(causes_of(root.path()), [("work", 200), ("wait.create", 300)]);
}

/// Runtimes with CPUs as workers.
#[derive(Clone, Copy, Debug)]
enum Runtime {
    Nanos6,
    NosV,
}

/// Two CPUs. CPU 0 runs these tasks: times of creation, begin and end. CPU 1 rests, and its thread has no CPU from 1200 to 1800.
fn resting_without_a_cpu(runtime: Runtime, tasks: &[(u64, u64, u64)]) -> Execution {
    let root = tempfile::tempdir().unwrap();
    let (model, define, create, execute, end, rest) = match runtime {
        Runtime::Nanos6 => (
            "nanos6",
            nanos6::TYPE_CREATE,
            nanos6::TASK_CREATE,
            nanos6::TASK_EXECUTE,
            nanos6::TASK_END,
            nanos6::IDLE_RESTING,
        ),
        Runtime::NosV => (
            "nosv",
            nosv::TYPE_CREATE,
            nosv::TASK_CREATE,
            nosv::TASK_EXECUTE,
            nosv::TASK_END,
            nosv::IDLE_RESTING,
        ),
    };
    let body = |task: u32| match runtime {
        Runtime::Nanos6 => task.to_le_bytes().to_vec(),
        Runtime::NosV => pair(task, 0).to_vec(),
    };
    let mut events = Vec::new();
    for (task, (created, begun, ended)) in (1..).zip(tasks) {
        events.push((*created, create, pair(task, 1).to_vec()));
        events.extend([(*begun, execute, body(task)), (*ended, end, body(task))]);
    }
    events.sort_by_key(|event| event.0);
    let main = StreamBuilder::new(0, 1, 10).require(&["ovni", model]).cpus(2).execute(1000, 0);
    let main = main.jumbo(1010, define, &type_payload(1, "solve"));
    let main = events.iter().fold(main, |main, (at, code, payload)| main.event(*at, *code, payload));
    main.end(2000).write(root.path()).unwrap();
    let worker = StreamBuilder::new(0, 1, 11).require(&["ovni", model]).execute(1000, 1).point(1010, rest);
    worker.end(2000).write(root.path()).unwrap();
    let mut execution = Session::open(root.path()).unwrap().execution;
    for row in (0..execution.threads.len()).map(ThreadIndex::of) {
        let thread = &execution.threads[row.index()];
        if thread.kind != ThreadKind::Cpu {
            let runnable = if thread.tid == 11 { vec![(1200, 1800)] } else { Vec::new() };
            execution.add_os_times(row, OsSource::Switches, OsTimes { runnable, ..OsTimes::default() });
        }
    }
    execution.attribute_system_time();
    execution
}

/// Their events do not name the inputs of tasks: a task that is created and does not run may be ready, or not.
#[test]
fn rests_without_a_cpu_are_waits_for_the_task_and_unsure_while_others_are_created() {
    for runtime in [Runtime::Nanos6, Runtime::NosV] {
        let answer = |tasks: &[(u64, u64, u64)]| {
            let execution = resting_without_a_cpu(runtime, tasks);
            let analysis = taskscope_analysis::analyse(&execution).0;
            assert_eq!(execution.cpu_shortage().waiting_ns, 600, "{runtime:?}");
            let lost: u64 = analysis.findings.iter().map(|finding| finding.ns).sum();
            assert_eq!(lost, analysis.ledger.capacity_ns - analysis.efficiency.useful_ns, "{runtime:?}");
            let no_cpu = analysis.findings.iter().filter(|finding| finding.cause == Cause::CpuNone);
            assert_eq!(no_cpu.count(), 0, "{runtime:?}");
            let task_finding =
                analysis.findings.iter().find(|finding| finding.blamed == Blamed::Task).unwrap();
            (
                task_finding.ns,
                execution.unsure_waits_ns(),
                task_finding.confidence,
                task_finding.no_cpu_percent,
            )
        };
        assert_eq!(answer(&[(1020, 1100, 1900)]), (800, 0, Confidence::High, 0), "{runtime:?}");
        let second = answer(&[(1020, 1100, 1900), (1030, 1900, 1950)]);
        assert_eq!(second, (850, 600, Confidence::Low, 70), "{runtime:?}");
        // Created in the middle of it.
        let late = answer(&[(1020, 1100, 1900), (1400, 1900, 1950)]);
        assert_eq!(late, (850, 400, Confidence::Medium, 47), "{runtime:?}");
    }
}
