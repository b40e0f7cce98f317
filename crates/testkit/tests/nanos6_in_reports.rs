//! Nanos6's sponge mode, task-fors and kinds of threads in reports.

use std::path::Path;
use taskscope_analysis::Analysis;
use taskscope_analysis::causes::book_causes;
use taskscope_analysis::diagnosis::diagnose;
use taskscope_analysis::replay::Costs;
use taskscope_analysis::slo::deciding_inputs;
use taskscope_analysis::span::span;
use taskscope_event::framing::file_header;
use taskscope_event::models::{kernel, nanos6, nosv, ovni, system};
use taskscope_execution::{
    Blamed, Cause, Execution, OsSource, OsTimes, Pattern, RuntimeRole, State, TaskStatus, ThreadIndex,
    ThreadKind,
};
use taskscope_session::Session;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};

fn id(task: u32) -> [u8; 4] {
    task.to_le_bytes()
}

fn opened(root: &Path) -> (Session, Analysis) {
    let session = Session::open(root).unwrap();
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    (session, analysis)
}

/// A process of two CPUs. On CPU 0 a task runs from 1100 to 1900; CPU 1 has the events that `worker` adds, until 2000.
fn with_worker(worker: impl FnOnce(StreamBuilder) -> StreamBuilder) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let main = StreamBuilder::new(0, 1, 10).require(&["ovni", "nanos6"]).cpus(2).execute(1000, 0);
    main.point(1000, nanos6::MAIN_BEGIN)
        .jumbo(1010, nanos6::TYPE_CREATE, &type_payload(1, "solve"))
        .event(1020, nanos6::TASK_CREATE, &pair(1, 1))
        .event(1100, nanos6::TASK_EXECUTE, &id(1))
        .event(1900, nanos6::TASK_END, &id(1))
        .point(2000, nanos6::MAIN_END)
        .end(2000)
        .write(root.path())
        .unwrap();
    let stream = StreamBuilder::new(0, 1, 11).require(&["ovni", "nanos6"]).execute(1000, 1);
    let stream = worker(stream.point(1000, nanos6::WORKER_BEGIN));
    stream.point(2000, nanos6::WORKER_END).end(2000).write(root.path()).unwrap();
    root
}

#[test]
fn a_cpu_in_sponge_mode_absorbs_noise_in_report_ledger_and_diagnosis() {
    let sponge = |stream: StreamBuilder| {
        stream.point(1200, nanos6::WORKER_SPONGE_MODE_BEGIN).point(1700, nanos6::WORKER_SPONGE_MODE_END)
    };
    // By its section alone; with the idle state around it; by the idle state alone; called resting by the runtime.
    let cases = [
        with_worker(sponge),
        with_worker(|stream| {
            sponge(stream.point(1200, nanos6::IDLE_ABSORBING_NOISE)).point(1700, nanos6::IDLE_PROGRESSING)
        }),
        with_worker(|stream| {
            stream.point(1200, nanos6::IDLE_ABSORBING_NOISE).point(1700, nanos6::IDLE_PROGRESSING)
        }),
        with_worker(|stream| {
            sponge(stream.point(1200, nanos6::IDLE_RESTING)).point(1700, nanos6::IDLE_PROGRESSING)
        }),
    ];
    for (case, root) in cases.iter().enumerate() {
        let (session, analysis) = opened(root.path());
        let ledger = &analysis.ledger;
        assert_eq!(ledger.by_state.get(State::AbsorbingNoise), 500, "case {case}");
        assert_eq!(ledger.by_state.total(), ledger.capacity_ns);
        let found = analysis.findings.iter().find(|finding| finding.cause == Cause::RuntimeNoise);
        assert_eq!(found.map(|finding| finding.ns), Some(500), "case {case}");
        let lost: u64 = analysis.findings.iter().map(|finding| finding.ns).sum();
        assert_eq!(lost, ledger.capacity_ns - analysis.efficiency.useful_ns, "case {case}");
        // No thread waits for a CPU that is given away, and it waits for none.
        let few = analysis.findings.iter().filter(|finding| finding.blamed == Blamed::Task);
        assert!(few.map(|finding| finding.ns).sum::<u64>() <= 400, "case {case}");

        let (graph, _) = session.task_graph().unwrap();
        let causes = book_causes(&graph);
        assert_eq!(causes.by_cause[Cause::RuntimeNoise as usize], 500, "case {case}");
        assert_eq!(causes.by_cause.iter().sum::<u64>(), graph.capacity());
        let costs = Costs::of(&graph, &deciding_inputs(&graph));
        let rows = diagnose(&graph, &causes, &span(&graph, &costs)).rows;
        assert!(rows.iter().any(|row| (row.cause, row.ns) == (Cause::RuntimeNoise, 500)), "{rows:?}");
    }
}

/// Two tasks on the only CPU, from `begin` and from `second` on for 100 ns each, in a run from 1000 to 9000.
fn waits_for_nobody(begin: u64, second: u64) -> Option<Pattern> {
    let root = tempfile::tempdir().unwrap();
    let main = StreamBuilder::new(0, 1, 10).require(&["ovni", "nanos6"]).cpus(1).execute(1000, -1);
    main.jumbo(1010, nanos6::TYPE_CREATE, &type_payload(1, "solve"))
        .event(1020, nanos6::TASK_CREATE, &pair(1, 1))
        .event(1020, nanos6::TASK_CREATE, &pair(2, 1))
        .end(9000)
        .write(root.path())
        .unwrap();
    for (thread, task, at) in [(11, 1, begin), (12, 2, second)] {
        StreamBuilder::new(0, 1, thread)
            .require(&["ovni", "nanos6"])
            .execute(at, 0)
            .event(at, nanos6::TASK_EXECUTE, &id(task))
            .event(at + 100, nanos6::TASK_END, &id(task))
            .end(at + 100)
            .write(root.path())
            .unwrap();
    }
    let (_, analysis) = opened(root.path());
    let mut nobody_findings = analysis.findings.iter().filter(|finding| finding.blamed == Blamed::Nobody);
    nobody_findings.find(|finding| finding.cause == Cause::Wait).expect("a finding").pattern
}

#[test]
fn a_cpu_waits_without_tasks_before_the_first_and_after_the_last_one() {
    assert_eq!(waits_for_nobody(4000, 5000), Some(Pattern::NoTasks));
    assert_eq!(waits_for_nobody(2000, 8000), None, "most of the time is between the tasks");
}

#[test]
fn nosv_absorbs_noise_too() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .cpus(1)
        .execute(1000, 0)
        .point(1100, nosv::IDLE_ABSORBING_NOISE)
        .point(1400, nosv::IDLE_PROGRESSING)
        .end(1500)
        .write(root.path())
        .unwrap();
    assert_eq!(opened(root.path()).1.ledger.by_state.get(State::AbsorbingNoise), 300);
}

#[test]
fn bodies_of_task_fors_are_executions_of_a_type_and_their_task_is_not_called_waiting() {
    let root = with_worker(|stream| {
        let stream = stream
            .event(1200, nanos6::TASK_CREATE, &pair(2, 1))
            .point(1300, nanos6::TASK_RUNNING_TASK_FOR_BEGIN)
            .point(1350, nanos6::MEMORY_ALLOCATING_BEGIN)
            .point(1380, nanos6::MEMORY_ALLOCATING_END)
            .point(1500, nanos6::TASK_RUNNING_TASK_FOR_END);
        stream.point(1600, nanos6::TASK_RUNNING_TASK_FOR_BEGIN).point(1640, nanos6::TASK_RUNNING_TASK_FOR_END)
    });
    let (session, analysis) = opened(root.path());
    let row = |name: &str| {
        let row = analysis.task_types.iter().find(|row| session.places.type_name(row.ty) == name);
        row.map(|row| (row.began, row.body_ns))
    };
    assert_eq!(row("task for"), Some((2, 170 + 40)));
    assert_eq!(row("solve"), Some((1, 800)));
    // Tasks 1, 2 and the two bodies.
    let status = &session.execution.tasks.status;
    assert_eq!(
        status[..],
        [TaskStatus::Ended, TaskStatus::Unseen, TaskStatus::Ended, TaskStatus::Ended],
        "whether task 2 was the task-for is not recorded"
    );
    let (graph, _) = session.task_graph().unwrap();
    assert_eq!(book_causes(&graph).queues.iter().map(|queue| queue.tasks).sum::<u64>(), 1, "only task 1");
    // Without task-fors a task that never starts is one that waits.
    let root = with_worker(|stream| stream.event(1200, nanos6::TASK_CREATE, &pair(2, 1)));
    assert_eq!(opened(root.path()).0.execution.tasks.status[1], TaskStatus::Created);
}

#[test]
fn a_task_for_directly_in_a_body_is_that_body() {
    let root = with_worker(|stream| {
        stream
            .event(1200, nanos6::TASK_CREATE, &pair(2, 1))
            .event(1300, nanos6::TASK_EXECUTE, &id(2))
            .point(1310, nanos6::TASK_RUNNING_TASK_FOR_BEGIN)
            .point(1490, nanos6::TASK_RUNNING_TASK_FOR_END)
            .event(1500, nanos6::TASK_END, &id(2))
    });
    let (session, analysis) = opened(root.path());
    assert_eq!(analysis.task_types.len(), 1);
    assert_eq!(analysis.task_types[0].body_ns, 800 + 200);
    assert_eq!(session.execution.tasks.len(), 2);
}

#[test]
fn threads_have_the_runtime_s_word_and_workers_are_cpus() {
    let root = with_worker(|stream| stream);
    let nosv = StreamBuilder::new(1, 2, 20).cpus(1).execute(1000, 0).point(1000, nosv::THREAD_DELEGATE_BEGIN);
    nosv.point(1900, nosv::THREAD_DELEGATE_END).end(1900).write(root.path()).unwrap();
    let attached = StreamBuilder::new(1, 2, 21).execute(1950, 0).point(1950, nosv::API_ATTACH_BEGIN);
    attached.point(1960, nosv::API_ATTACH_END).end(2000).write(root.path()).unwrap();
    let (session, analysis) = opened(root.path());
    let role = |tid: i64| session.execution.threads.iter().find(|thread| thread.tid == tid).unwrap().role;
    assert_eq!((role(10), role(11)), (Some(RuntimeRole::Main), Some(RuntimeRole::Worker)));
    assert_eq!((role(20), role(21)), (Some(RuntimeRole::Delegate), Some(RuntimeRole::Attached)));
    assert!(analysis.ledger.workers_are_cpus());
    let options = taskscope_view::ReportOptions {
        sections: taskscope_view::Section::ALL.to_vec(),
        ..Default::default()
    };
    let report =
        taskscope_view::report_text(&taskscope_view::report_json(&session, &analysis, &[]), &options);
    for words in ["(3 CPUs × ", "CPU 1 of ", "1/11  worker", "1/10  main", "2/20  delegate", "2/21  attached"]
    {
        assert!(report.contains(words), "{words}:\n{report}");
    }
    for words in ["no worker", "OpenMP", "workers wait", "OMP_"] {
        assert!(!report.contains(words), "{words}:\n{report}");
    }
}

/// Runtimes write the rest of a thread's events after its last one.
#[test]
fn writing_events_after_the_end_of_a_thread_is_no_problem() {
    let root = with_worker(|stream| stream);
    let late = StreamBuilder::new(0, 1, 12).require(&["ovni", "nanos6"]).execute(2010, 1).end(2020);
    late.point(2030, ovni::FLUSH_BEGIN).point(2040, ovni::FLUSH_END).write(root.path()).unwrap();
    let session = Session::open(root.path()).unwrap();
    let (_, problems) = taskscope_analysis::analyse(&session.execution);
    assert!(problems.is_empty(), "{problems:?}");
}

/// Below level 3 nOS-V emits no idle states.
#[test]
fn lacking_idle_states_of_nosv_are_a_notice() {
    let notice = |can_breakdown: Option<bool>| {
        let root = tempfile::tempdir().unwrap();
        let stream = StreamBuilder::new(0, 1, 10).cpus(1).execute(1000, 0).end(1500);
        let directory = stream.write(root.path()).unwrap();
        if let Some(can) = can_breakdown {
            let path = directory.join("stream.json");
            let mut metadata: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            metadata["nosv"] = serde_json::json!({ "can_breakdown": can });
            std::fs::write(&path, metadata.to_string()).unwrap();
        }
        let session = Session::open(root.path()).unwrap();
        let notices = taskscope_view::notices(&session, &[]);
        notices.iter().any(|notice| notice.name == "resting-not-recorded")
    };
    assert_eq!((notice(Some(false)), notice(Some(true)), notice(None)), (true, false, false));
}

/// Adds the side stream of the process of `root`, in which thread 10 was blocked from 1300 to 1500, and runnable until 1520.
fn add_os_time(root: &Path) {
    let session = Session::open(root).unwrap();
    let process = session.execution.processes.iter().find(|process| !process.has_cpus).unwrap();
    let directory = root.join(format!("loom.{}/proc.{}/os-time", process.loom, process.pid));
    std::fs::create_dir_all(&directory).unwrap();
    let about = serde_json::json!({
        "version": 1, "require": { "taskscope-system": system::VERSION }, "kind": "os-time",
        "source": "context-switches", "loom": process.loom, "pid": process.pid, "finished": 1,
    });
    std::fs::write(directory.join("taskscope.json"), about.to_string()).unwrap();
    let mut bytes = file_header().to_vec();
    let mut event = |clock: u64, code: taskscope_event::Code, payload: &[u8]| {
        bytes.push(payload.len() as u8 - 1);
        bytes.extend(code.0);
        bytes.extend(clock.to_le_bytes());
        bytes.extend(payload);
    };
    let number = 0_u32.to_le_bytes();
    event(1000, system::THREAD, &[&10_u64.to_le_bytes()[..], &number].concat());
    event(1520, system::BLOCKED, &[&220_u64.to_le_bytes()[..], &20_u32.to_le_bytes(), &number].concat());
    std::fs::write(directory.join("taskscope.obs"), bytes).unwrap();
}

#[test]
fn switches_of_the_runtime_yield_to_those_with_blocked_and_runnable() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .require(&["ovni", "nosv", "kernel"])
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1010, nosv::TYPE_CREATE, &type_payload(1, "solve"))
        .event(1020, nosv::TASK_CREATE, &pair(1, 1))
        .event(1100, nosv::TASK_EXECUTE, &pair(1, 0))
        .point(1300, kernel::OUT_OF_CPU)
        .point(1520, kernel::BACK_ON_CPU)
        .event(1900, nosv::TASK_END, &pair(1, 0))
        .end(2000)
        .write(root.path())
        .unwrap();
    let states = |root: &Path| {
        let by_state = opened(root).1.ledger.by_state;
        [State::Task, State::OutOfCpu, State::Blocked].map(|state| by_state.get(state))
    };
    assert_eq!(states(root.path()), [580, 220, 0]);
    add_os_time(root.path());
    assert_eq!(states(root.path()), [580, 20, 200]);
    let session = Session::open(root.path()).unwrap();
    assert_eq!(session.execution.cpu_shortage().runnable_ns(), 20);
}

#[test]
fn a_cpu_has_the_times_of_its_threads_once_all_are_known() {
    let root = with_worker(|stream| stream);
    let (mut session, _) = opened(root.path());
    let execution = &mut session.execution;
    let rows = (0..execution.threads.len()).map(ThreadIndex::of);
    let threads: Vec<ThreadIndex> =
        rows.filter(|row| execution.threads[row.index()].kind != ThreadKind::Cpu).collect();
    for thread in threads {
        assert!(!execution.knows_off_cpu());
        let times = OsTimes { runnable: vec![(1300, 1350)], ..OsTimes::default() };
        let is_worker = execution.threads[thread.index()].tid == 10;
        let times = if is_worker { times } else { OsTimes::default() };
        execution.add_os_times(thread, OsSource::Switches, times);
        execution.attribute_system_time();
    }
    assert!(execution.knows_switches());
    assert_eq!(execution.cpu_shortage().runnable_ns(), 50);
}

#[test]
fn a_body_that_is_blocked_is_blocked_on_its_thread_its_cpu_and_in_its_type() {
    let root = with_worker(|stream| stream);
    let (mut session, _) = opened(root.path());
    let execution = &mut session.execution;
    let thread_with_tid = |execution: &Execution, tid: i64, kind: fn(ThreadKind) -> bool| {
        let all = &execution.threads;
        ThreadIndex::of(all.iter().position(|thread| thread.tid == tid && kind(thread.kind)).unwrap())
    };
    let thread = thread_with_tid(execution, 10, |kind| kind != ThreadKind::Cpu);
    // Before its body, in it, and at its end.
    let blocked = vec![(1050, 1080), (1300, 1500), (1890, 1950)];
    execution.add_os_times(thread, OsSource::Switches, OsTimes { blocked, ..OsTimes::default() });
    execution.attribute_system_time();
    let analysis = taskscope_analysis::analyse(execution).0;
    let row = analysis.task_types.iter().find(|row| session.places.type_name(row.ty) == "solve").unwrap();
    assert_eq!((row.body_ns, row.blocked_ns, row.max_ns), (800 - 210, 210, 590));
    let cpu = thread_with_tid(&session.execution, 0, |kind| kind == ThreadKind::Cpu);
    for index in [thread, cpu] {
        let body_spans =
            session.execution.spans_of_run(index).filter(|span| span.section.state == State::Task);
        assert_eq!(body_spans.map(|span| span.nanos()).sum::<u64>(), 590, "{index:?}");
    }
    let ledger = &analysis.ledger;
    assert!(ledger.by_state.get(State::Blocked) >= 210);
    assert_eq!(ledger.by_state.get(State::Task), 590);
    assert_eq!(ledger.by_state.total(), ledger.capacity_ns);
}
