//! Task graphs of recorded OpenMP programs: by hand, and of any events.

use proptest::prelude::*;
use taskscope_analysis::causes::{Causes, book_causes};
use taskscope_analysis::critical_path::critical_path;
use taskscope_analysis::replay::{CostChange, Costs, replay};
use taskscope_analysis::slo::deciding_inputs;
use taskscope_analysis::span::span;
use taskscope_analysis::{Ledger, StateEntry, Whose, book};
use taskscope_event::models::omp;
use taskscope_execution::Change::{Becomes, TaskCreated, ThreadWorks};
use taskscope_execution::graph::{
    AwaitedOperation, DeviceWait, DeviceWork, RecordedFacts, SubmittedOperation, TaskGraph, from_execution,
};
use taskscope_execution::{
    Cause, Execution, ExecutionBuilder, Observer, OsSource, OsTimes, RegionIndex, Section, State, TaskIndex,
    ThreadIndex, TypeIndex,
};
use taskscope_testkit::graph_names::{Numbers, graph_of};
use taskscope_testkit::script::{Script, any_program};

fn check_sums(graph: &TaskGraph) -> Causes {
    let causes = book_causes(graph);
    assert_eq!(causes.by_cause.iter().sum::<u64>(), graph.capacity());
    for cause in Cause::ALL {
        let charged: u64 = causes.rows.iter().filter(|c| c.cause == cause).map(|c| c.ns).sum();
        assert_eq!(charged, causes.by_cause[cause as usize], "{cause:?}");
    }
    let (begin, end) = graph.range();
    let path: u64 = critical_path(graph).iter().map(|step| step.end - step.start).sum();
    assert_eq!(path, end - begin);
    // Work of tasks is the time not otherwise explained.
    let costs = Costs::of(graph, &deciding_inputs(graph));
    assert_eq!(span(graph, &costs).work_ns, causes.by_cause[Cause::Work as usize]);
    causes
}

fn dependence(task: u32, address: u64, kind: u8) -> Vec<u8> {
    [&task.to_le_bytes()[..], &address.to_le_bytes(), &[kind]].concat()
}

/// Thread 0 creates two tasks at 200 and 210; the second reads data that the first writes. Thread 1, in the
/// barrier, runs the first from 300 to 700; thread 0 the second from 750 to 900. So thread 0 waits from 400
/// to 700 for the task on thread 1 (starvation), and from 700 to 750 for its start.
#[test]
fn a_declared_dependence_is_waited_for() {
    let mut script = Script::new(2, 0, 1000);
    script.site(0, 0, 1, 0x100).task_type(0, 0, 7, 1, "a").task_type(0, 0, 8, 1, "b");
    script.fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2).arrive(1, 150);
    script.create(0, 200, 1, 7).emit(0, 200, omp::TASK_DEPENDENCES, &dependence(1, 0xaa, 2));
    script.create(0, 210, 2, 8).emit(0, 210, omp::TASK_DEPENDENCES, &dependence(2, 0xaa, 1));
    script.arrive(0, 400).run(1, 300, 700, 1).run(0, 750, 900, 2);
    script.join(0, 950, 1).depart(1, 1000, 1);
    let execution = script.play();
    let graph = graph_of(&execution);
    let causes = check_sums(&graph);
    assert_eq!(causes.by_cause[Cause::WaitDepend as usize], 300);
    let charge = causes.rows.iter().find(|c| c.cause == Cause::WaitDepend).unwrap();
    assert!(charge.who.label(&graph).starts_with("task type"), "{charge:?}");
    // Thread 1 waits for the creation of its task by thread 0 from 150 to 200, then to start it.
    assert_eq!(causes.by_cause[Cause::WaitCreate as usize], 50);
    let path = critical_path(&graph);
    let first_task = path.iter().find(|s| s.cause == Cause::Work && s.start == 300).unwrap();
    assert_eq!(first_task.end, 700);
}

/// A thread alone creates two tasks and runs both in the barrier at the end of its region; then it runs
/// serial code. Code after the region waits for both, on whichever thread a replay runs them.
#[test]
fn code_after_a_region_waits_for_all_of_its_tasks() {
    let mut script = Script::new(1, 0, 5000);
    script.site(0, 0, 1, 0x100).task_type(0, 0, 7, 1, "a");
    script.fork(0, 100, 1, 1, 1).create(0, 200, 1, 7).create(0, 210, 2, 7);
    script.arrive(0, 300).run(0, 300, 1300, 1).run(0, 1300, 2300, 2).join(0, 2400, 1);
    let graph = graph_of(&script.play());
    check_sums(&graph);
    let costs = Costs::of(&graph, &deciding_inputs(&graph));
    let wall = |workers| {
        let change = CostChange { workers_per_node: Some(workers), ..CostChange::default() };
        replay(&graph, &costs, &change).wall_ns
    };
    // Two workers run the tasks at once, and the rest of the run comes after them.
    assert_eq!((wall(1), wall(2)), (5000, 4000));
    let span = span(&graph, &costs);
    assert_eq!(span.span_ns, 210 + 1000 + 2600);
}

/// All waiting for a lock is charged to the place of its holder's request, hand-over included.
#[test]
fn a_lock_is_its_holders_doing() {
    let mut script = Script::new(2, 0, 20_000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300);
    script.fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2);
    script.lock(0, 1000, 1000, 0xabc, 2).unlock(0, 4900, 0xabc);
    script.lock(1, 1500, 5000, 0xabc, 3).unlock(1, 9000, 0xabc);
    script.lock(0, 5100, 9050, 0xabc, 2).unlock(0, 9100, 0xabc);
    script.arrive(0, 10_000).arrive(1, 10_000).join(0, 10_100, 1).depart(1, 10_100, 1);
    let execution = script.play();
    let graph = graph_of(&execution);
    let causes = check_sums(&graph);
    let waits: Vec<(String, u64)> = (causes.rows.iter().filter(|c| c.cause == Cause::Lock))
        .map(|c| (c.who.label(&graph), c.ns))
        .collect();
    assert_eq!(waits.iter().map(|w| w.1).sum::<u64>(), 3500 + 3950);
    assert!(waits.iter().all(|(who, _)| who.contains("held from site")), "{waits:?}");
    assert!(causes.rows.iter().filter(|c| c.cause == Cause::Lock).all(|c| c.symptom.is_some()));
}

/// Facts that a source could record and did not are known to be absent: OpenMP without tasks, locks and
/// dependences. Tasks of a runtime that does not record dependences are not tasks without dependences.
#[test]
fn none_and_unknown_are_distinguished() {
    let mut script = Script::new(2, 0, 1000);
    script.site(0, 0, 1, 0x100).fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2);
    script.arrive(0, 400).arrive(1, 300).join(0, 500, 1).depart(1, 1000, 1);
    let recorded = graph_of(&script.play()).recorded;
    assert_eq!(recorded, RecordedFacts { creation: true, dependences: true, locks: true, off_cpu: false });

    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host", 1);
    let thread = builder.add_thread(process, 1);
    let task = TaskIndex(0);
    let mut section = Section::of(State::Task);
    section.task = task;
    builder.event(thread, 0);
    let created = TaskCreated { task, ty: TypeIndex(0), parent: TaskIndex::NONE, region: RegionIndex::NONE };
    builder.change(thread, 0, ThreadWorks);
    builder.change(thread, 10, created);
    builder.change(thread, 20, Becomes(section));
    builder.change(thread, 90, Becomes(Section::of(State::Paused)));
    builder.event(thread, 100);
    let recorded = graph_of(&builder.finish()).recorded;
    assert_eq!(recorded, RecordedFacts { creation: true, ..RecordedFacts::default() });
}

/// Thread 0 submits two operations to a device at 100 and 150, works, and waits for both from 400 to 900. The
/// first runs from 130 to 600, the second, which waits for it, from 610 to 880. So since 100 the end of the
/// run waited for the device, and not for thread 0's work meanwhile.
#[test]
fn the_critical_path_leads_through_a_device_to_the_submitting_thread() {
    let thread = ThreadIndex(0);
    let operation = |name: &str, submitter, (submitted, start, end), after| SubmittedOperation {
        name: name.into(),
        submitter,
        submitted,
        start,
        end,
        after,
    };
    let devices = |submitter| DeviceWork {
        waits: vec![DeviceWait { thread, start: 400, end: 900, name: "b on q".into() }],
        operations: vec![
            operation("a on q", submitter, (100, 130, 600), None),
            operation("b on q", submitter, (150, 610, 880), Some(0)),
        ],
        awaited: vec![AwaitedOperation { thread, start: 400, end: 900, operation: 1 }],
    };
    let execution = Script::new(1, 0, 1000).play();
    let path_of = |devices: &DeviceWork| {
        let graph = from_execution(&execution, devices, &mut Numbers).unwrap().0;
        assert_eq!(check_sums(&graph).by_cause[Cause::Device as usize], 500);
        let steps = critical_path(&graph);
        let name = |row: u32| graph.names.get(row as usize).map_or("", String::as_str).to_owned();
        steps.iter().map(|s| ((s.cause, s.is_operation), s.start, s.end, name(s.name))).collect::<Vec<_>>()
    };
    let expected = [
        ((Cause::Work, false), 0, 100, ""),
        ((Cause::Device, false), 100, 130, "a on q"),
        ((Cause::Device, true), 130, 600, "a on q"),
        ((Cause::Device, false), 600, 610, "b on q"),
        ((Cause::Device, true), 610, 880, "b on q"),
        ((Cause::Device, false), 880, 900, "b on q"),
        ((Cause::Work, false), 900, 1000, ""),
    ];
    assert_eq!(path_of(&devices(Some(thread))), expected.map(|(k, s, e, n)| (k, s, e, n.to_owned())));
    // With an unknown submitter, only the wait is known.
    let alone = path_of(&devices(None));
    let kinds: Vec<_> = alone.iter().map(|step| (step.0, step.1, step.2)).collect();
    assert_eq!(
        kinds,
        [
            ((Cause::Work, false), 0, 400),
            ((Cause::Device, false), 400, 900),
            ((Cause::Work, false), 900, 1000)
        ]
    );
    // Operations that wait for each other, or for missing ones, lead nowhere; the steps still tile the run.
    let mut absurd = devices(Some(thread));
    (absurd.operations[0].after, absurd.operations[1].after) = (Some(1), Some(7));
    absurd.operations[1].submitted = 5000;
    let steps = path_of(&absurd);
    assert!(steps.windows(2).all(|pair| pair[0].2 == pair[1].1), "{steps:?}");
}

/// The ledgers of states and of the task graph have the same entries, as deep as states know causes: `wait`
/// is one sum, as an idle state may be a wait for a ready task, and the states know no late ranks.
fn check_states(execution: &Execution, causes: &Causes) {
    let known = |cause: Cause| match cause.category() {
        Cause::Mpi if cause == Cause::MpiStart => cause,
        category @ (Cause::Wait | Cause::Mpi) => category,
        _ => cause,
    };
    let is_counted = |of: &StateEntry| of.whose == Whose::Worker;
    let states = book(execution).entries.spent.by(|entry| is_counted(&entry.of).then(|| known(entry.cause)));
    assert_eq!(causes.entries.spent.by(|entry| Some(known(entry.cause))), states);
    let Ledger { spent, charged } = &causes.entries;
    assert_eq!(spent.by(|entry| Some(entry.cause)), charged.by(|entry| Some(entry.cause)));
}

/// Thread 0 creates a task and waits for it; thread 1 runs it from 300 to 900 and sleeps in it from 400 to 800.
#[test]
fn a_body_that_sleeps_is_blocked_and_still_waited_for() {
    let mut script = Script::new(2, 0, 1000);
    script.site(0, 0, 1, 0x100).task_type(0, 0, 7, 1, "a");
    script.fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2).arrive(1, 150);
    script.create(0, 200, 1, 7).arrive(0, 250).run(1, 300, 900, 1);
    script.join(0, 950, 1).depart(1, 1000, 1);
    let mut execution = script.play();
    let times = OsTimes { blocked: vec![(400, 800)], ..OsTimes::default() };
    execution.add_os_times(ThreadIndex(1), OsSource::Switches, times);
    execution.attribute_system_time();
    let graph = graph_of(&execution);
    let causes = check_sums(&graph);
    check_states(&execution, &causes);
    assert_eq!(causes.by_cause[Cause::Blocked as usize], 400);
    let blocked = causes.rows.iter().find(|charge| charge.cause == Cause::Blocked).unwrap();
    assert_eq!((blocked.who.label(&graph).as_str(), blocked.ns), ("blocked in type 0", 400));
    // Thread 0 waits for the task, also while that sleeps.
    let waits = causes.rows.iter().find(|charge| charge.cause == Cause::WaitSync).unwrap();
    assert_eq!((waits.who.label(&graph).as_str(), waits.ns), ("task type 0", 600));
    let steps: u64 = (critical_path(&graph).iter())
        .filter(|step| step.cause == Cause::Blocked)
        .map(|step| step.end - step.start)
        .sum();
    assert_eq!(steps, 400);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_events_make_a_graph_whose_sums_are_exact(
        threads in 1_usize..5,
        choices in prop::collection::vec((0_usize..5, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
    ) {
        check_sums(&graph_of(&any_program(threads, &choices).play()));
    }

    #[test]
    fn states_and_leaves_agree_with_any_times_off_the_cpu(
        threads in 1_usize..5,
        choices in prop::collection::vec((0_usize..5, 0_u16..50, 0_usize..200, any::<[u8; 16]>()), 1..300),
        off in prop::collection::vec((0_u32..5, 0_u64..8000, 1_u64..500, any::<bool>()), 0..40),
    ) {
        let mut execution = any_program(threads, &choices).play();
        for thread in 0..threads as u32 {
            let mut times = OsTimes::default();
            for (_, start, ns, blocked) in off.iter().filter(|(of, ..)| *of == thread) {
                let list = if *blocked { &mut times.blocked } else { &mut times.runnable };
                list.push((*start, start + ns));
            }
            times.blocked.sort_unstable();
            times.runnable.sort_unstable();
            execution.add_os_times(ThreadIndex(thread), OsSource::Switches, times);
        }
        execution.attribute_system_time();
        let causes = check_sums(&graph_of(&execution));
        check_states(&execution, &causes);
    }
}
