//! Programs with chosen times and so with known answers.

use taskscope_analysis::{Analysis, Confidence, Culprit, Finding, analyse};
use taskscope_event::models::{omp, openmp, recorder, wait};
use taskscope_execution::{
    Blamed, Cause, Change, Execution, ExecutionBuilder, Observer, OsSource, Pattern, Place, PlaceKind,
    RegionIndex, Section, SiteIndex, State, TaskIndex, ThreadIndex, TypeIndex,
};
use taskscope_testkit::script::Script;

fn analysed(script: &Script) -> (Execution, Analysis) {
    let execution = script.play();
    let (analysis, problems) = analyse(&execution);
    assert_eq!(problems, [], "the scripts are consistent");
    (execution, analysis)
}

fn at_site(execution: &Execution, place: Place, address: u64) {
    let site = match place.kind() {
        PlaceKind::Site(site) => site,
        PlaceKind::Type(ty) => execution.catalog.type_site(ty),
        _ => SiteIndex::NONE,
    };
    assert_eq!(execution.catalog.sites[site.index()].address, address, "{place:?}");
}

/// Thread 0 holds a lock from 1000 to 5000; thread 1 waits for it from 1500 on and gets it at 5000.
/// The report of the release comes late, after thread 1's.
#[test]
fn the_lock_holder_is_charged_even_if_its_release_is_reported_late() {
    let mut script = Script::new(2, 0, 6000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300);
    script.fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2);
    script.lock(0, 1000, 1000, 0xabc, 2).unlock(0, 5010, 0xabc);
    script.lock(1, 1500, 5000, 0xabc, 3).unlock(1, 5100, 0xabc);
    script.arrive(0, 5500).arrive(1, 5500).join(0, 5500, 1).depart(1, 6000, 1);
    let execution = script.play();
    let (analysis, problems) = analyse(&execution);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(
        (problems[0].name, problems[0].tally.count, problems[0].tally.max_ns),
        ("late-release", 1, 10)
    );
    let lock = &analysis.locks[0];
    assert_eq!((lock.acquisitions, lock.held_ns, lock.longest_hold_ns), (2, 4100, 4000));
    assert_eq!((lock.waited_ns, lock.unheld_ns), (3500, 0));
    assert_eq!(lock.holders.len(), 1);
    at_site(&execution, Place::site(lock.holders[0].site), 0x200);
    let first = &analysis.findings[0];
    assert_eq!((first.blamed, first.ns, first.confidence), (Blamed::Holder, 3500, Confidence::High));
    at_site(&execution, first.place, 0x200);
    assert_eq!(analysis.ledger.by_state.get(State::LockWait), 3500);
}

/// Thread 0 holds a lock until 3000; thread 1, which waits for it since 1000, is woken and has it from 3400 to
/// 4000; thread 2 asks at 3100, while it is handed over, and gets it at 4300.
#[test]
fn handing_a_lock_over_is_charged_to_a_holder_in_every_table() {
    let mut script = Script::new(3, 0, 6000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300).site(0, 0, 4, 0x400);
    script.fork(0, 100, 1, 1, 3).join_team(1, 100, 1, 1, 3).join_team(2, 100, 1, 2, 3);
    script.lock(0, 500, 500, 0xabc, 2).unlock(0, 3000, 0xabc);
    script.lock(1, 1000, 3400, 0xabc, 3).unlock(1, 4000, 0xabc);
    script.lock(2, 3100, 4300, 0xabc, 4).unlock(2, 4400, 0xabc);
    // The lock is free now: 30 ns are the cost of a free lock.
    script.lock(0, 5000, 5030, 0xabc, 2).unlock(0, 5100, 0xabc);
    for thread in 0..3 {
        script.arrive(thread, 5500);
    }
    script.join(0, 5500, 1).depart(1, 6000, 1).depart(2, 6000, 1);
    let (execution, analysis) = analysed(&script);
    let lock = &analysis.locks[0];
    assert_eq!((lock.acquisitions, lock.waited_ns, lock.unheld_ns), (4, 2400 + 1200 + 30, 30));
    // Thread 1's hand-over is thread 0's doing; for thread 2, which came later, it is thread 1's.
    let holders: Vec<u64> = lock.holders.iter().map(|holder| holder.ns).collect();
    assert_eq!(holders, [2400, 300 + 600 + 300]);
    at_site(&execution, Place::site(lock.holders[0].site), 0x200);
    at_site(&execution, Place::site(lock.holders[1].site), 0x300);
    let held: u64 = analysis.findings.iter().filter(|f| f.blamed == Blamed::Holder).map(|f| f.ns).sum();
    assert_eq!(held, 3600);
    let charged: u64 = (analysis.charges.iter())
        .filter(|charge| matches!(charge.culprit, Culprit::Holder(_)))
        .map(|charge| charge.by_state.get(State::LockWait))
        .sum();
    assert_eq!(charged, 3600);
}

/// A loop in which thread 1 has three times as much to do.
#[test]
fn an_uneven_loop_is_charged_with_the_waiting_at_its_end() {
    let mut script = Script::new(2, 0, 10_000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).work_type(0, 0, 7, 2, 10, "for");
    script.fork(0, 1000, 1, 1, 2).join_team(1, 1000, 1, 1, 2);
    script.work(0, 1000, 3000, 7).work(1, 1000, 7000, 7);
    script.arrive(0, 3000).arrive(1, 7000).join(0, 7000, 1);
    // The runtime reports the worker's end only at its thread's end: until then it is idle.
    script.depart(1, 10_000, 1);
    let (execution, analysis) = analysed(&script);
    let by = |state| analysis.ledger.by_state.get(state);
    assert_eq!((by(State::Worksharing), by(State::JoinBarrier)), (8000, 4000));
    // Before the fork and after the join, 1000 + 3000.
    assert_eq!((by(State::Idle), by(State::Serial)), (4000, 4000));
    assert_eq!(analysis.ledger.capacity_ns, 20_000);
    let work = &analysis.works[0];
    assert_eq!((work.load.executions, work.load.shares, work.load.busy_ns), (1, 2, 8000));
    assert_eq!((work.load.imbalance_ns(), work.load.balance()), (4000, 8.0 / 12.0));
    let loop_finding = analysis.findings.iter().find(|f| f.blamed == Blamed::Loop).unwrap();
    assert_eq!((loop_finding.ns, loop_finding.sole_ns), (4000, 4000));
    at_site(&execution, loop_finding.place, 0x200);
    let serial: u64 = analysis.findings.iter().filter(|f| f.blamed == Blamed::Serial).map(|f| f.ns).sum();
    assert_eq!(serial, 4000);
    let e = &analysis.efficiency;
    assert_eq!((e.useful_ns, e.serialization_ns, e.load_balance_ns), (12_000, 4000, 4000));
    assert_eq!((e.runtime_overhead_ns, e.unknown_ns), (0, 0));
    assert_eq!((e.parallel, e.serialization, e.load_balance), (0.6, 0.8, 0.75));
}

/// One thread creates three tasks and waits for them; the last one runs alone.
#[test]
fn tasks_are_counted_and_the_one_that_runs_alone_is_charged() {
    let mut script = Script::new(2, 0, 9000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300).task_type(0, 0, 5, 2, "task");
    script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2).arrive(1, 0);
    script.create(0, 100, 11, 5).create(0, 200, 12, 5).create(0, 300, 13, 5);
    // Inside the taskwait thread 0 runs the first task, thread 1 in the barrier the other two.
    script.taskwait(0, 1000, 8000, 3);
    script.run(0, 1000, 3000, 11).run(1, 1000, 2000, 12).run(1, 2000, 8000, 13);
    script.arrive(0, 8000).join(0, 9000, 1).depart(1, 9000, 1);
    let (execution, analysis) = analysed(&script);
    assert_eq!(analysis.tasks, 3);
    assert_eq!(execution.tasks.len(), 3);
    let ty = &analysis.task_types[0];
    assert_eq!((ty.created, ty.began, ty.body_ns, ty.max_ns, ty.median_ns), (3, 3, 9000, 6000, 2000));
    assert_eq!(ty.queued_ns, 900 + 800 + 1700);
    assert_eq!(analysis.ledger.by_state.get(State::Taskwait), 5000);
    let culprit = Culprit::Code(State::Task, Place::task_type(TypeIndex(0)));
    let charge = analysis.charges.iter().find(|c| c.culprit == culprit).unwrap();
    assert_eq!((charge.by_state.get(State::Taskwait), charge.sole_ns), (5000, 5000));
    let finding = analysis.findings.iter().find(|f| f.blamed == Blamed::Task).unwrap();
    assert_eq!((finding.ns, finding.confidence), (5000, Confidence::High));
    at_site(&execution, finding.place, 0x200);
    // While thread 0 created, thread 1 waited: 1000 ns, charged to the code that creates. Three tasks
    // are not so many that this code is there to create them.
    let creation = analysis.findings.iter().find(|f| f.blamed == Blamed::Code).unwrap();
    assert_eq!((creation.ns, creation.tasks_created), (1000, 3));
}

/// Three tasks run one after the other in a taskwait of thread 0, from 300 to 9000, while thread 1 waits in the barrier from 100
/// on. All access the same data, if a kind of access is given.
fn tasks_in_turn(kind: Option<u8>, off: &[(u64, u64)]) -> Analysis {
    let mut script = Script::new(2, 0, 9000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300).task_type(0, 0, 5, 2, "task");
    script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2).arrive(1, 100);
    for task in [11_u32, 12, 13] {
        script.create(0, 200, task, 5);
        if let Some(kind) = kind {
            let dependence = [&task.to_le_bytes()[..], &8_u64.to_le_bytes(), &[kind]].concat();
            script.emit(0, 200, omp::TASK_DEPENDENCES, &dependence);
        }
    }
    script.taskwait(0, 300, 9000, 3).run(0, 300, 3000, 11).run(0, 3000, 6000, 12).run(0, 6000, 9000, 13);
    script.arrive(0, 9000).join(0, 9000, 1).depart(1, 9000, 1);
    let mut execution = script.play();
    execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &[], &[]);
    execution.add_off_cpu(ThreadIndex(1), OsSource::Switches, off, &[]);
    execution.attribute_system_time();
    let (analysis, _) = analyse(&execution);
    let without_cpu = analysis.shortage.own_ns + analysis.shortage.waiting_ns;
    assert_eq!(without_cpu, off.iter().map(|(start, end)| end - start).sum::<u64>());
    analysis
}

/// Nanoseconds lost to a cause.
fn lost_to(analysis: &Analysis, cause: Cause) -> u64 {
    analysis.findings.iter().filter(|finding| finding.cause == cause).map(|finding| finding.ns).sum()
}

/// A worker that waits without a CPU would have run a ready task. While no task is ready it waits for the task that runs, with a CPU
/// or without.
#[test]
fn a_waiting_worker_without_a_cpu_loses_to_that_while_tasks_are_ready_and_else_to_the_tasks() {
    const WRITES: Option<u8> = Some(3);
    let answer = |kind, off| {
        let analysis = tasks_in_turn(kind, off);
        let first = &analysis.findings[0];
        assert_eq!((first.confidence, first.no_cpu_percent), (Confidence::High, 0));
        (first.cause, lost_to(&analysis, Cause::CpuNone), lost_to(&analysis, Cause::Wait))
    };
    // From 100 to 200 no task is created yet, and at 6000 the last one begins.
    let always = &[(100, 9000)];
    assert_eq!(answer(None, always), (Cause::CpuNone, 5800, 3100));
    // Only the first one is ready, from 200 to 300; each of the others when the one before ends.
    assert_eq!(answer(WRITES, always), (Cause::Wait, 100, 8800));
    // A part of the wait each.
    assert_eq!(answer(None, &[(1000, 2000), (5000, 8000)]), (Cause::Wait, 2000, 6900));
    assert_eq!(answer(None, &[]), (Cause::Wait, 0, 8900));
}

/// Which of several tasks that exclude each other may start is not known.
#[test]
fn tasks_that_run_alone_are_unsure_if_workers_lack_cpus_and_ready_tasks_are_not_known() {
    const EXCLUDES: Option<u8> = Some(4);
    type Times = &'static [(u64, u64)];
    // Of the 8700 in which a task runs; from 6000 on all have begun.
    let cases: [(Times, Confidence, u64); 4] = [
        (&[(1000, 2000)], Confidence::High, 0),
        (&[(1000, 2000), (6000, 9000)], Confidence::High, 0),
        (&[(1000, 2000), (4000, 8000)], Confidence::Medium, 34),
        (&[(100, 9000)], Confidence::Medium, 66),
    ];
    for (off, confidence, percent) in cases {
        let analysis = tasks_in_turn(EXCLUDES, off);
        let finding = analysis.findings.iter().find(|finding| finding.blamed == Blamed::Task).unwrap();
        assert_eq!((finding.ns, finding.confidence, finding.no_cpu_percent), (8700, confidence, percent));
        assert_eq!(lost_to(&analysis, Cause::CpuNone), 0);
    }
}

/// One thread creates many tasks in a single while the other waits for them.
#[test]
fn code_that_creates_many_tasks_is_charged_as_creation() {
    let mut script = Script::new(2, 0, 9000);
    script
        .site(0, 0, 1, 0x100)
        .site(0, 0, 2, 0x200)
        .task_type(0, 0, 5, 2, "task")
        .work_type(0, 0, 7, 1, 3, "single");
    script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2).arrive(1, 0).work(0, 0, 2000, 7);
    for task in 0..20_u32 {
        script.create(0, 50 + u64::from(task) * 100, task + 1, 5);
        script.run(1, 60 + u64::from(task) * 100, 80 + u64::from(task) * 100, task + 1);
    }
    script.arrive(0, 2000).join(0, 2000, 1).depart(1, 9000, 1);
    let (execution, analysis) = analysed(&script);
    let creation = analysis.findings.iter().find(|f| f.blamed == Blamed::Creation).unwrap();
    assert_eq!((creation.ns, creation.tasks_created), (2000 - 20 * 20, 20));
    at_site(&execution, creation.place, 0x100);
}

/// A single that creates few tasks is not a loop: one thread executes it.
#[test]
fn a_single_that_creates_no_tasks_is_charged_as_one() {
    for (kind, blamed) in [(3, Blamed::Single), (8, Blamed::Code), (1, Blamed::Loop), (2, Blamed::Loop)] {
        let mut script = Script::new(2, 0, 9000);
        script.site(0, 0, 1, 0x100).work_type(0, 0, 7, 1, kind, "construct");
        script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2).arrive(1, 0).work(0, 0, 2000, 7);
        script.arrive(0, 2000).join(0, 2000, 1).depart(1, 9000, 1);
        let (execution, analysis) = analysed(&script);
        let finding = analysis.findings.iter().find(|f| f.blamed == blamed).unwrap();
        assert_eq!((finding.ns, finding.work.is_some()), (2000, blamed == Blamed::Loop));
        at_site(&execution, finding.place, 0x100);
    }
}

/// With two of three threads working, a nanosecond of waiting is charged half to each.
#[test]
fn shared_blame_is_exact() {
    let mut script = Script::new(3, 0, 1001);
    script.site(0, 0, 1, 0x100).work_type(0, 0, 7, 1, 10, "a").work_type(0, 0, 8, 1, 10, "b");
    script.fork(0, 0, 1, 1, 3).join_team(1, 0, 1, 1, 3).join_team(2, 0, 1, 2, 3);
    script.work(0, 0, 1001, 7).work(1, 0, 1001, 8).arrive(2, 0);
    script.arrive(0, 1001).arrive(1, 1001).join(0, 1001, 1).depart(1, 1001, 1).depart(2, 1001, 1);
    let (_, analysis) = analysed(&script);
    let mut charged: Vec<u64> = analysis.charges.iter().map(|c| c.total()).collect();
    charged.sort();
    assert_eq!(charged, [500, 501]);
}

/// A program without parallel region has one worker.
#[test]
fn the_initial_thread_is_the_only_worker_of_a_serial_program() {
    let mut script = Script::new(1, 100, 600);
    script.begin_thread(0, 100);
    let (_, analysis) = analysed(&script);
    assert_eq!((analysis.ledger.workers, analysis.ledger.other_threads), (1, 0));
    assert_eq!((analysis.ledger.capacity_ns, analysis.ledger.wall_ns), (500, 500));
    assert_eq!(analysis.ledger.by_state.get(State::Serial), 500);
}

/// Threads that were never in a team are not workers and are outside capacity.
#[test]
fn threads_outside_teams_are_listed_apart() {
    let mut script = Script::new(3, 0, 1000);
    script.fork(0, 100, 1, 0, 2).join_team(1, 100, 1, 1, 2);
    script.arrive(0, 900).arrive(1, 900).join(0, 900, 1).depart(1, 1000, 1);
    let (_, analysis) = analysed(&script);
    assert_eq!((analysis.ledger.workers, analysis.ledger.other_threads), (2, 1));
    assert_eq!(analysis.ledger.capacity_ns, 2000);
}

/// A worker that starts late and ends early: the rest of its time has these causes.
#[test]
fn time_before_and_after_a_worker_is_not_started_and_ended() {
    let mut script = Script::empty(2);
    script.begin_thread(0, 0).emit(0, 1000, taskscope_event::models::ovni::THREAD_ENDS, &[]);
    script.begin_thread(1, 300).emit(1, 800, taskscope_event::models::ovni::THREAD_ENDS, &[]);
    script.fork(0, 200, 1, 0, 2).join_team(1, 300, 1, 1, 2);
    script.arrive(0, 600).arrive(1, 600).join(0, 600, 1).depart(1, 800, 1);
    let (_, analysis) = analysed(&script);
    let by = |state| analysis.ledger.by_state.get(state);
    assert_eq!((by(State::NotStarted), by(State::Ended), by(State::Idle)), (300, 200, 200));
}

/// A killed program: a thread's section at its last event lasts to the last event of the process.
#[test]
fn a_killed_program_stops_everywhere_at_once() {
    let mut script = Script::new(2, 0, 5000);
    script.fork(0, 100, 1, 0, 2).join_team(1, 100, 1, 1, 2);
    script.task_type(0, 100, 5, 0, "t").create(0, 200, 1, 5);
    script.emit(1, 1000, openmp::TASK_EXECUTE, &1_u32.to_le_bytes());
    script.create(0, 4000, 2, 5);
    let (_, analysis) = analysed(&script.killed());
    assert_eq!(analysis.ledger.capacity_ns, 8000);
    assert_eq!(analysis.ledger.by_state.get(State::Task), 3000);
    assert_eq!((analysis.tasks, analysis.ledger.by_state.get(State::Ended)), (1, 0));
}

/// Time around lost events is unknown, and the rest is not touched.
#[test]
fn lost_events_make_unknown_time() {
    let mut script = Script::new(1, 0, 1000);
    script.emit(0, 300, omp::MASKED_BEGIN, &0_u32.to_le_bytes());
    script.emit(0, 500, omp::MASKED_END, &[]);
    script.emit(
        0,
        700,
        recorder::LOST,
        &[&9_u64.to_le_bytes()[..], &recorder::loss::REENTERED.to_le_bytes()[..]].concat(),
    );
    let (execution, analysis) = analysed(&script);
    assert_eq!(analysis.ledger.by_state.get(State::Unknown), 200);
    assert_eq!(analysis.ledger.by_state.get(State::Masked), 200);
    assert_eq!(analysis.ledger.by_state.get(State::Serial), 600);
    assert_eq!(execution.threads[0].lost_events, 9);
    assert_eq!(analysis.efficiency.unknown_ns, 200);
}

/// Waits for a lock between two waits for one critical construct, with only the first entry written: the
/// acquisition shows the object of the second wait.
#[test]
fn the_acquired_lock_corrects_the_wait() {
    let mut script = Script::new(1, 0, 1000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200);
    let critical = |object: u64, kind: u32| [&object.to_le_bytes()[..], &kind.to_le_bytes()[..]].concat();
    script.emit(0, 100, openmp::CRITICAL_ACQUIRING_BEGIN, &[]);
    let payload =
        [&1_u64.to_le_bytes()[..], &1_u32.to_le_bytes()[..], &wait::kind::CRITICAL.to_le_bytes()[..]];
    script.emit(0, 100, wait::WAIT_OBJECT, &payload.concat());
    script.emit(0, 150, openmp::CRITICAL_ACQUIRING_END, &[]);
    script.emit(0, 150, wait::ACQUIRED, &critical(1, wait::kind::CRITICAL));
    script.emit(0, 160, wait::RELEASED, &critical(1, wait::kind::CRITICAL));
    script.lock(0, 200, 230, 2, 2).unlock(0, 240, 2);
    script.emit(0, 300, openmp::CRITICAL_ACQUIRING_BEGIN, &[]);
    script.emit(0, 370, openmp::CRITICAL_ACQUIRING_END, &[]);
    script.emit(0, 370, wait::ACQUIRED, &critical(1, wait::kind::CRITICAL));
    script.emit(0, 380, wait::RELEASED, &critical(1, wait::kind::CRITICAL));
    let (execution, analysis) = analysed(&script);
    let by = |state| analysis.ledger.by_state.get(state);
    assert_eq!((by(State::CriticalWait), by(State::LockWait)), (50 + 70, 30));
    let critical = analysis.ledger.causes.iter().find(|c| c.state == State::CriticalWait).unwrap();
    at_site(&execution, critical.place, 0x100);
    assert_eq!(critical.ns, 120);
}

/// A nested region: the inner team's members are in the inner region, and the outer one continues.
#[test]
fn nested_regions_keep_their_own_time() {
    let mut script = Script::new(2, 0, 1000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200);
    script.fork(0, 100, 1, 1, 1).fork(0, 200, 2, 2, 2).join_team(1, 200, 2, 1, 2);
    script.arrive(0, 600).arrive(1, 400).join(0, 600, 2).arrive(0, 800).join(0, 800, 1).depart(1, 1000, 2);
    let (execution, analysis) = analysed(&script);
    let in_body = |address| -> u64 {
        let causes = analysis.ledger.causes.iter().filter(|c| c.state == State::ImplicitTask);
        let of = causes.filter(|c| match c.place.kind() {
            PlaceKind::Site(site) => execution.catalog.sites[site.index()].address == address,
            _ => false,
        });
        of.map(|c| c.ns).sum()
    };
    assert_eq!((in_body(0x100), in_body(0x200)), (100 + 200, 400 + 200));
    // Thread 1 waits for the inner region's end, and has nothing to do before and after.
    let by = |state| analysis.ledger.by_state.get(state);
    assert_eq!((by(State::JoinBarrier), by(State::Idle), by(State::Serial)), (200, 600, 300));
    assert_eq!(execution.regions[1].parent.index(), 0);
}

/// Two threads share a loop evenly, but one is kept off the CPU for 4000 ns of it, and the other waits for 3500 ns of these: that
/// is the system's doing, too. When the other has no CPU while it waits does not matter.
#[test]
fn a_thread_that_is_kept_off_the_cpu_is_the_systems_doing() {
    let mut script = Script::new(2, 0, 10_000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).work_type(0, 0, 7, 2, 10, "for");
    script.fork(0, 1000, 1, 1, 2).join_team(1, 1000, 1, 1, 2);
    script.work(0, 1000, 3000, 7).work(1, 1000, 7000, 7);
    script.arrive(0, 3000).arrive(1, 7000).join(0, 7000, 1).depart(1, 10_000, 1);
    let mut execution = script.play();
    let thread = ThreadIndex(1);
    execution.add_off_cpu(thread, OsSource::Switches, &[(2500, 6500), (7500, 7600)], &[]);
    execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &[(3500, 6000)], &[]);
    execution.attribute_system_time();
    let (analysis, _) = analyse(&execution);
    assert_eq!(analysis.ledger.by_state.get(State::OutOfCpu), 4000 + 3500);
    assert_eq!(
        analysis.ledger.by_state.get(State::Barrier) + analysis.ledger.by_state.get(State::JoinBarrier),
        500
    );
    assert_eq!(analysis.ledger.by_state.get(State::Worksharing), 4000);
    let finding = &analysis.findings[0];
    let system: u64 = analysis.findings.iter().filter(|f| f.cause == Cause::CpuNone).map(|f| f.ns).sum();
    assert_eq!((finding.cause, system), (Cause::CpuNone, 4000 + 3500));
    assert_eq!(analysis.works[0].load.balance(), 1.0, "the loop itself is even");
    let losses: u64 = analysis.findings.iter().map(|f| f.ns).sum();
    assert_eq!(losses, analysis.ledger.capacity_ns - analysis.efficiency.useful_ns);
}

/// Inside a taskwait two hundred tasks of 100 ns run on thread 0, 300 ns after one another, with no thread
/// working in between.
#[test]
fn tasks_that_cost_more_than_they_do_are_too_small() {
    let end = 200 * 400;
    let mut script = Script::new(2, 0, end);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300).task_type(0, 0, 5, 2, "task");
    script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2).arrive(1, 0);
    (1..=200).for_each(|task| {
        script.create(0, 0, task, 5);
    });
    script.taskwait(0, 0, end, 3);
    for task in 0..200 {
        script.run(0, u64::from(task) * 400, u64::from(task) * 400 + 100, task + 1);
    }
    script.arrive(0, end).join(0, end, 1).depart(1, end, 1);
    let (execution, analysis) = analysed(&script);
    let small: Vec<_> = analysis.findings.iter().filter(|f| f.pattern == Some(Pattern::TooFine)).collect();
    // Thread 1 waits all the time, thread 0 between the tasks.
    assert_eq!(small.iter().map(|f| f.ns).sum::<u64>(), end + 200 * 300);
    let grain = small[0].grain.unwrap();
    assert_eq!((grain.tasks, grain.mean_ns, grain.cost_ns), (200, 100, 600));
    assert!(small.iter().all(|f| f.confidence == Confidence::High));
    at_site(&execution, small[0].place, 0x200);
}

/// Thread 0 holds a lock for 100 ns each time; thread 1 waits, and is woken 900 ns after each release.
#[test]
fn a_lock_that_is_free_in_most_of_the_waits_has_a_remedy_of_its_own() {
    let of = |held: u64| {
        let end = 50 * 1000;
        let mut script = Script::new(2, 0, end);
        script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200).site(0, 0, 3, 0x300);
        script.fork(0, 0, 1, 1, 2).join_team(1, 0, 1, 1, 2);
        for start in (0..end).step_by(1000) {
            script.lock(0, start, start, 7, 2).unlock(0, start + held, 7);
            script.lock(1, start, start + 990, 7, 3).unlock(1, start + 999, 7);
        }
        script.arrive(0, end).arrive(1, end).join(0, end, 1).depart(1, end, 1);
        let (execution, analysis) = analysed(&script);
        let found = analysis.findings.iter().find(|f| (f.cause, f.blamed) == (Cause::Lock, Blamed::Holder));
        let found = found.unwrap().clone();
        at_site(&execution, found.place, 0x200);
        (found.pattern, found.ns, found.free_ns)
    };
    assert_eq!(of(100), (Some(Pattern::FreeLock), 50 * 990, 50 * 890));
    assert_eq!(of(900), (None, 50 * 990, 50 * 90));
}

/// A thread takes a free lock again and again: there is nothing to shorten.
#[test]
fn the_cost_of_free_locks_is_not_a_matter_of_tasks() {
    let mut script = Script::new(1, 0, 1000);
    script.site(0, 0, 1, 0x100).site(0, 0, 2, 0x200);
    script.fork(0, 0, 1, 1, 1);
    for start in (0..1000).step_by(100) {
        script.lock(0, start, start + 80, 7, 2).unlock(0, start + 90, 7);
    }
    script.arrive(0, 1000).join(0, 1000, 1);
    let (_, analysis) = analysed(&script);
    let found = &analysis.findings[0];
    let what = (found.cause, found.blamed, found.pattern, found.ns, found.free_ns);
    assert_eq!(what, (Cause::Lock, Blamed::Nobody, Some(Pattern::FreeLock), 800, 800));
}

/// Two hundred regions of 10 µs, in which both threads work for 2 µs; or one of them for 9 µs, which is an imbalance.
#[test]
fn regions_that_cost_more_than_they_do_are_too_short() {
    let of = |work: [u64; 2], regions: u64| {
        let end = regions * 11_000;
        let mut script = Script::new(2, 0, end);
        script.site(0, 0, 1, 0x100);
        for number in 1..=regions {
            let (region, start) = (number as u32, (number - 1) * 11_000);
            script.fork(0, start, region, 1, 2).join_team(1, start + 500, region, 1, 2);
            script.arrive(0, start + work[0]).arrive(1, start + 500 + work[1]);
            script.join(0, start + 10_000, region).depart(1, start + 10_000, region);
        }
        let (execution, analysis) = analysed(&script);
        let short: Vec<_> =
            analysis.findings.iter().filter(|f| f.pattern == Some(Pattern::ShortRegions)).collect();
        if let Some(found) = short.first() {
            at_site(&execution, found.place, 0x100);
        }
        let lost: u64 = analysis.findings.iter().map(|f| f.ns).sum();
        assert_eq!(lost, analysis.ledger.capacity_ns - analysis.efficiency.useful_ns);
        short
            .first()
            .and_then(|found| found.regions)
            .map(|grain| (grain.regions, grain.mean_ns, grain.work_ns))
    };
    assert_eq!(of([2000, 2000], 200), Some((200, 10_000, 2000)));
    assert_eq!(of([9000, 1000], 200), None);
    // Few regions are no pattern.
    assert_eq!(of([2000, 2000], 50), None);
}

/// A worker that comes late, and one that goes early, are workers of every part of the run.
#[test]
fn parts_of_a_run_have_its_capacity_and_causes() {
    let mut script = Script::new(3, 0, 10_000);
    script.site(0, 0, 1, 0x100);
    script.fork(0, 2000, 1, 1, 2).join_team(1, 2000, 1, 1, 2);
    script.arrive(0, 4000).arrive(1, 5000).join(0, 5000, 1).depart(1, 6000, 1);
    script.fork(0, 7000, 2, 1, 2).join_team(2, 7000, 2, 1, 2);
    script.arrive(0, 8000).arrive(2, 7500).join(0, 8000, 2).depart(2, 9000, 2);
    let sums = |execution: &Execution| {
        let ledger = analyse(execution).0.ledger;
        (ledger.capacity_ns, ledger.by_state.iter().collect::<std::collections::BTreeMap<_, _>>())
    };
    let (capacity, by_state) = sums(&script.play());
    for at in (100..10_000).step_by(300) {
        let (mut before, mut after) = (script.play(), script.play());
        before.cut(0, at);
        after.cut(at, u64::MAX);
        let ((first, mut added), (second, more)) = (sums(&before), sums(&after));
        more.into_iter().for_each(|(state, ns)| *added.entry(state).or_default() += ns);
        assert_eq!((first + second, &added), (capacity, &by_state), "cut at {at}");
    }
}

/// Two workers run a task of 1 ms every 20 ms; the second task is ready for so long before it starts.
fn server(ready_ms: u64) -> Analysis {
    const MS: u64 = 1_000_000;
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host.1", 1);
    let threads = [1, 2].map(|tid| builder.add_thread(process, tid));
    let mut change = |thread: ThreadIndex, at: u64, change: Change| {
        builder.event(thread, at);
        builder.change(thread, at, change);
    };
    for thread in threads {
        change(thread, 0, Change::ThreadWorks);
        change(thread, 0, Change::Becomes(Section::of(State::Idle)));
    }
    let (ty, parent, region) = (TypeIndex(0), TaskIndex::NONE, RegionIndex::NONE);
    for number in 0..3 {
        let (task, at) = (TaskIndex(number), u64::from(number) * 20 * MS + 20 * MS);
        let created = at - if number == 1 { ready_ms * MS } else { 0 };
        change(threads[0], created, Change::TaskCreated { task, ty, parent, region });
        change(threads[0], at, Change::TaskStarts { task });
        change(threads[0], at, Change::Becomes(Section { task, ..Section::of(State::Task) }));
        change(threads[0], at + MS, Change::TaskEnds { task });
        change(threads[0], at + MS, Change::Becomes(Section::of(State::Idle)));
    }
    for thread in threads {
        builder.event(thread, 62 * MS);
    }
    analyse(&builder.finish()).0
}

/// Workers of a server are idle since nothing arrives: that is not a matter of tasks. Where a task is ready, it is.
#[test]
fn idle_workers_without_any_ready_task_have_no_work() {
    let of_nobody = |analysis: &Analysis| {
        let nobodys = |f: &&Finding| (f.cause, f.blamed) == (Cause::Wait, Blamed::Nobody);
        let found = analysis.findings.iter().find(nobodys).unwrap();
        (found.pattern, found.confidence)
    };
    assert_eq!(of_nobody(&server(0)), (Some(Pattern::NoWork), Confidence::Medium));
    assert_eq!(of_nobody(&server(18)).0, None);
}
