//! Small runs with a known partition.

use super::*;
use crate::messages::{MpiCall, PeerWait, PeerWaitKind};
use crate::{
    Change, CpuFacts, CpuSet, Definition, ExecutionBuilder, Hold, Loss, NO_TIME, ObjectIndex, Observer,
    OsSource, OsTimes, Place, RegionIndex, Section, SiteIndex, TaskIndex, TaskStatus, TypeIndex, TypeKind,
};
use State::{
    Barrier, Communication, Idle, JoinBarrier, LockWait, OutOfCpu, Oversubscribed, Runtime, Serial, Task,
    Taskwait,
};

/// A run from 0 to 100 of workers with these sections and their begins.
fn run(cpus: usize, workers: &[&[(u64, State)]]) -> Execution {
    let sections =
        workers.iter().map(|own| own.iter().map(|(at, state)| (*at, Section::of(*state))).collect());
    let sections: Vec<Vec<(u64, Section)>> = sections.collect();
    run_of(cpus, &sections.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A run with all attributes of each section.
fn run_of(cpus: usize, workers: &[&[(u64, Section)]]) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host.1", 1);
    for (tid, sections) in workers.iter().enumerate() {
        let thread = builder.add_thread(process, tid as i64);
        builder.change(thread, sections[0].0, Change::ThreadWorks);
        for (at, section) in *sections {
            builder.event(thread, *at);
            builder.change(thread, *at, Change::Becomes(*section));
        }
        builder.event(thread, 100);
        builder.change(thread, 100, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let allowed = CpuSet::of(0..cpus);
    execution.processes[0].cpus = Some(CpuFacts { allowed, ..CpuFacts::default() });
    execution
}

fn off(mut execution: Execution, times: &[(u32, u64, u64)]) -> Execution {
    for thread in 0..execution.threads.len() as u32 {
        let own: Vec<(u64, u64)> =
            times.iter().filter(|off| off.0 == thread).map(|off| (off.1, off.2)).collect();
        execution.add_off_cpu(ThreadIndex(thread), OsSource::Switches, &own, &[]);
    }
    execution.attribute_system_time();
    execution
}

/// A worker's states and their durations.
fn times(execution: &Execution, thread: u32) -> Vec<(State, u64)> {
    let mut times: Vec<(State, u64)> = Vec::new();
    for span in execution.spans_of_run(ThreadIndex(thread)) {
        match times.last_mut().filter(|last| last.0 == span.section.state) {
            Some(last) => last.1 += span.nanos(),
            None => times.push((span.section.state, span.nanos())),
        }
    }
    times
}

#[test]
fn a_wait_for_work_on_a_cpu_is_a_wait_and_for_preempted_work_the_systems() {
    let execution = off(
        run(2, &[&[(0, Task)], &[(0, Task), (40, Barrier)]]),
        // The second one is off the CPU, too: that makes no difference while the first one works.
        &[(0, 50, 80), (1, 45, 60)],
    );
    assert_eq!(times(&execution, 0), [(Task, 50), (OutOfCpu, 30), (Task, 20)]);
    assert_eq!(times(&execution, 1), [(Task, 40), (Barrier, 10), (OutOfCpu, 30), (Barrier, 20)]);
}

#[test]
fn while_no_thread_works_a_woken_thread_without_a_cpu_is_waited_for() {
    let execution = off(run(4, &[&[(0, Barrier)], &[(0, Barrier)], &[(0, Idle)]]), &[(1, 20, 50)]);
    for thread in 0..2 {
        assert_eq!(times(&execution, thread), [(Barrier, 20), (OutOfCpu, 30), (Barrier, 50)]);
    }
    assert_eq!(times(&execution, 2), [(Idle, 20), (OutOfCpu, 30), (Idle, 50)]);
}

#[test]
fn the_runtime_without_a_cpu_is_the_systems_too() {
    let execution = off(run(1, &[&[(0, Runtime), (60, Serial)]]), &[(0, 10, 30)]);
    assert_eq!(times(&execution, 0), [(Runtime, 10), (OutOfCpu, 20), (Runtime, 30), (Serial, 40)]);
}

/// Four workers on two CPUs: one works all the time, the second until 50; so one CPU is free from then on,
/// for one of the waiting workers, and none before.
#[test]
fn as_many_workers_lose_time_to_starvation_as_cpus_are_free() {
    let waits: &[(u64, State)] = &[(0, Barrier)];
    let execution = off(run(2, &[&[(0, Task)], &[(0, Task), (50, Barrier)], waits, waits]), &[]);
    assert_eq!(times(&execution, 1), [(Task, 50), (Barrier, 50)]);
    assert_eq!(times(&execution, 2), [(Oversubscribed, 100)]);
    assert_eq!(times(&execution, 3), [(Oversubscribed, 100)]);
    // As many CPUs as workers: all of them wait for the one that works.
    let execution = off(run(4, &[&[(0, Task)], &[(0, Task), (50, Barrier)], waits, waits]), &[]);
    assert_eq!(times(&execution, 3), [(Barrier, 100)]);
}

/// Three workers on two CPUs; the third one sleeps until 60 in code of the program, so a CPU is free for the one that waits.
#[test]
fn a_sleeping_worker_needs_no_cpu() {
    let mut execution = run(2, &[&[(0, Task)], &[(0, Barrier)], &[(0, Serial)]]);
    let asleep = OsTimes { blocked: vec![(0, 60)], ..OsTimes::default() };
    execution.add_os_times(ThreadIndex(2), OsSource::Switches, asleep);
    execution.attribute_system_time();
    assert_eq!(times(&execution, 1), [(Barrier, 60), (Oversubscribed, 40)]);
    assert_eq!(times(&execution, 2), [(State::Blocked, 60), (Serial, 40)]);
}

#[test]
fn a_worker_not_yet_started_needs_no_free_cpu() {
    let work: &[(u64, State)] = &[(0, Task)];
    let late: &[(u64, State)] = &[(60, Barrier)];
    let execution = off(run(2, &[work, &[(40, Task)], late]), &[(0, 20, 30)]);
    assert_eq!(times(&execution, 0), [(Task, 20), (OutOfCpu, 10), (Task, 70)]);
    // It waits for the first one, then for a CPU.
    let not_started = State::NotStarted;
    assert_eq!(
        times(&execution, 2),
        [(not_started, 20), (OutOfCpu, 10), (not_started, 10), (Oversubscribed, 60)]
    );
}

#[test]
fn a_worker_without_a_cpu_has_no_cpu_left_by_its_own_job_or_by_others() {
    let works: &[(u64, State)] = &[(0, Task)];
    // While all three have claims to two CPUs, the third one's is that of more workers; from 50 on others have them.
    let execution = off(run(2, &[works, works, works]), &[(0, 50, 100), (1, 50, 100), (2, 0, 100)]);
    assert_eq!(times(&execution, 2), [(Oversubscribed, 50), (OutOfCpu, 50)]);
    assert_eq!(times(&execution, 0), [(Task, 50), (OutOfCpu, 50)]);
}

#[test]
fn a_lock_held_without_a_cpu_is_waited_for_by_the_systems_doing() {
    let mut execution = run(2, &[&[(0, Serial)], &[(0, LockWait), (90, Serial)]]);
    let object = ObjectIndex::NONE;
    let (thread, site, task) = (ThreadIndex(0), SiteIndex(0), TaskIndex::NONE);
    execution.holds.to_mut().push(Hold { object, thread, site, task, start: 0, end: 70 });
    // The holder has none from 20 to 40; from 70 on the lock is free, and the waiter has none from 75 to 90.
    let execution = off(execution, &[(0, 20, 40), (1, 30, 60), (1, 75, 90)]);
    let expected = [(LockWait, 20), (OutOfCpu, 20), (LockWait, 35), (OutOfCpu, 15), (Serial, 10)];
    assert_eq!(times(&execution, 1), expected);
}

/// Thread 0 works and holds lock 0; thread 1 holds lock 1 and waits for lock 0; thread 2 waits for lock 1.
#[test]
fn a_holder_that_waits_for_a_lock_itself_needs_no_cpu_but_its_holder_does() {
    let waits = |object| Section { object: ObjectIndex(object), ..Section::of(LockWait) };
    let hold = |object, thread, end| Hold {
        object: ObjectIndex(object),
        thread: ThreadIndex(thread),
        site: SiteIndex(0),
        task: TaskIndex::NONE,
        start: 0,
        end,
    };
    let mut execution = run_of(4, &[&[(0, Section::of(Serial))], &[(0, waits(0))], &[(0, waits(1))]]);
    execution.holds.to_mut().extend([hold(0, 0, 100), hold(1, 1, 100)]);
    let execution = off(execution, &[(0, 20, 40), (1, 60, 80), (2, 50, 90)]);
    for thread in 1..3 {
        assert_eq!(times(&execution, thread), [(LockWait, 20), (OutOfCpu, 20), (LockWait, 60)]);
    }
    // In a cycle no thread could run, with a CPU or without.
    let mut execution = run_of(4, &[&[(0, waits(1))], &[(0, waits(0))]]);
    execution.holds.to_mut().extend([hold(0, 0, 100), hold(1, 1, 100)]);
    let execution = off(execution, &[(0, 20, 40), (1, 60, 80)]);
    for thread in 0..2 {
        assert_eq!(times(&execution, thread), [(LockWait, 100)]);
    }
}

/// A part of the run is cut out of the whole run's partition.
#[test]
fn time_without_a_cpu_is_split_by_its_thread() {
    let execution = off(
        run(2, &[&[(0, Task)], &[(0, Task), (40, Barrier)]]),
        // While the first one works, the second waits for it; while it has no CPU both lose time.
        &[(0, 50, 80), (1, 45, 60)],
    );
    let shortage = execution.cpu_shortage();
    assert_eq!(shortage, CpuShortage { own_ns: 30 + 10, others_ns: 20, waiting_ns: 5, stopped_ns: 0 });
    assert_eq!((shortage.lost_ns(), shortage.runnable_ns()), (60, 45));
}

#[test]
fn parts_of_a_run_add_up() {
    let waits: &[(u64, State)] = &[(0, Barrier), (70, Task)];
    let whole = || {
        let works: &[(u64, State)] = &[(0, Task), (30, Barrier), (60, Task)];
        off(run(2, &[works, waits, waits, works]), &[(0, 5, 20), (1, 40, 75), (3, 66, 90)])
    };
    let sums = |execution: &Execution| {
        let mut sums = std::collections::BTreeMap::<State, u64>::new();
        for thread in 0..4 {
            times(execution, thread)
                .into_iter()
                .for_each(|(state, ns)| *sums.entry(state).or_default() += ns);
        }
        sums
    };
    for at in 1..100 {
        let (mut before, mut after) = (whole(), whole());
        before.cut(0, at);
        after.cut(at, 100);
        let mut added = sums(&before);
        sums(&after).into_iter().for_each(|(state, ns)| *added.entry(state).or_default() += ns);
        assert_eq!(added, sums(&whole()), "cut at {at}");
    }
}

/// Tasks of a team: when each is created, begins and ends, on which thread, and the address that it writes, if any.
struct OfTeam<'a> {
    tasks: &'a [(u64, u64, u64, u32, Option<u64>)],
    /// OMPT's flags of their type.
    flags: u32,
}

const EXPLICIT: u32 = 4;

impl OfTeam<'_> {
    /// The workers of a team wait in this state at any time in which they run no task.
    fn run(&self, workers: u32, waits: State) -> Execution {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let region = RegionIndex(0);
        let in_region = |state| Section { region, ..Section::of(state) };
        let ty = TypeIndex(0);
        builder.define(Definition::Type { ty, process, label: "" });
        let kind = TypeKind::Task { flags: self.flags };
        builder.define(Definition::TypeSite { ty, site: SiteIndex(0), kind });
        let mut events: Vec<(u64, u32, Vec<Change>)> = Vec::new();
        for worker in 0..workers {
            builder.add_thread(process, i64::from(worker));
            events.push((0, worker, vec![Change::ThreadWorks, Change::Becomes(in_region(waits))]));
            events.push((100, worker, vec![Change::ThreadEnds]));
        }
        for (row, (created, began, ended, on, address)) in self.tasks.iter().enumerate() {
            let task = TaskIndex(row as u32);
            let parent = TaskIndex::NONE;
            let mut creation = vec![Change::TaskCreated { task, ty, parent, region }];
            creation.extend(address.map(|address| Change::TaskDepends { task, address, kind: 3 }));
            events.push((*created, 0, creation));
            let body = Section { task, ..in_region(Task) };
            events.push((*began, *on, vec![Change::TaskStarts { task }, Change::Becomes(body)]));
            events.push((*ended, *on, vec![Change::TaskEnds { task }, Change::Becomes(in_region(waits))]));
        }
        events.sort_by_key(|event| event.0);
        for (at, worker, changes) in events {
            builder.event(ThreadIndex(worker), at);
            changes.into_iter().for_each(|change| builder.change(ThreadIndex(worker), at, change));
        }
        let mut execution = builder.finish();
        let allowed = CpuSet::of(0..workers as usize);
        execution.processes[0].cpus = Some(CpuFacts { allowed, ..CpuFacts::default() });
        execution
    }
}

#[test]
fn a_waiting_worker_without_a_cpu_misses_a_ready_task_and_only_a_ready_one() {
    // The second task writes what the first one wrote, so it is ready from 40 on; it starts at 60. The third one is ready at 70.
    let tasks = &[(0, 0, 40, 0, Some(8)), (5, 60, 65, 0, Some(8)), (70, 80, 90, 0, None)];
    let run = OfTeam { tasks, flags: EXPLICIT }.run(2, Barrier);
    let execution = off(run, &[(1, 10, 50), (1, 75, 90)]);
    // From 65 to 80 no worker works.
    let expected = [(Barrier, 40), (OutOfCpu, 10), (Barrier, 25), (OutOfCpu, 5), (Barrier, 20)];
    assert_eq!(times(&execution, 1), expected);
    assert_eq!(execution.cpu_shortage().own_ns, 15);
    assert_eq!(execution.cpu_shortage().waiting_ns, 30 + 10);
}

/// The creator runs on meanwhile: no thread changes its activity before the worker has a CPU again.
#[test]
fn a_task_that_becomes_ready_while_no_thread_changes_is_missed() {
    let tasks = &[(0, 0, 100, 0, None), (20, 60, 100, 1, None)];
    let execution = off(OfTeam { tasks, flags: EXPLICIT }.run(2, Barrier), &[(1, 10, 50)]);
    assert_eq!(times(&execution, 1), [(Barrier, 20), (OutOfCpu, 30), (Barrier, 10), (Task, 40)]);
}

#[test]
fn as_many_workers_miss_tasks_as_are_ready_beyond_those_for_workers_on_cpus() {
    // One works; of three that wait two have no CPU until 60. Two tasks are ready from 20 on, one from 40 on.
    let tasks =
        &[(0, 0, 100, 0, None), (20, 40, 100, 1, None), (20, 90, 100, 2, None), (30, 95, 100, 3, None)];
    let run = || OfTeam { tasks, flags: EXPLICIT }.run(4, JoinBarrier);
    let lost = |execution: &Execution| {
        [1, 2, 3].map(|thread| {
            let of = times(execution, thread);
            of.iter().filter(|(state, _)| *state == OutOfCpu).map(|(_, ns)| ns).sum::<u64>()
        })
    };
    // From 20 to 30 the first waiting worker, which has a CPU, is about to take one of two tasks, so one is missed; from 30 on two.
    assert_eq!(lost(&off(run(), &[(2, 0, 60), (3, 0, 60)])), [0, 40, 30]);
    // All three lack a CPU.
    assert_eq!(lost(&off(run(), &[(1, 0, 40), (2, 0, 60), (3, 0, 60)])), [20, 40, 30]);
    // Asleep, it is not about to take one.
    let mut execution = run();
    let asleep = OsTimes { blocked: vec![(0, 40)], ..OsTimes::default() };
    execution.add_os_times(ThreadIndex(1), OsSource::Switches, asleep);
    for thread in [2, 3] {
        execution.add_off_cpu(ThreadIndex(thread), OsSource::Switches, &[(0, 60)], &[]);
    }
    execution.attribute_system_time();
    assert_eq!(lost(&execution), [0, 40, 40]);
}

#[test]
fn in_a_taskwait_only_descendants_are_missed() {
    // The second thread waits in its own part of the region, and the first one creates all tasks.
    let tasks = &[(0, 0, 100, 0, None), (0, 90, 100, 0, None)];
    let execution = off(OfTeam { tasks, flags: EXPLICIT }.run(2, Taskwait), &[(1, 10, 50)]);
    assert_eq!(times(&execution, 1), [(Taskwait, 100)]);
    let execution = off(OfTeam { tasks, flags: EXPLICIT }.run(2, Barrier), &[(1, 10, 50)]);
    assert_eq!(times(&execution, 1), [(Barrier, 10), (OutOfCpu, 40), (Barrier, 50)]);
    // The creator misses its own.
    let tasks = &[(0, 0, 100, 1, None), (0, 90, 100, 1, None)];
    let execution = off(OfTeam { tasks, flags: EXPLICIT }.run(2, Taskwait), &[(0, 10, 50)]);
    assert_eq!(times(&execution, 0), [(Taskwait, 10), (OutOfCpu, 40), (Taskwait, 50)]);
}

#[test]
fn tasks_that_are_not_known_to_be_ready_are_not_missed() {
    // The third task is ready from 0 to 40, the second one from 40 to 60.
    let tasks = &[(0, 0, 40, 0, Some(8)), (5, 60, 100, 0, Some(8)), (0, 40, 60, 0, None)];
    let run = |flags| OfTeam { tasks, flags }.run(2, Barrier);
    let lost = |mut execution: Execution, change: &dyn Fn(&mut Execution)| {
        change(&mut execution);
        let execution = off(execution, &[(1, 10, 60)]);
        let of = times(&execution, 1);
        of.iter().filter(|(state, _)| *state == OutOfCpu).map(|(_, ns)| ns).sum::<u64>()
    };
    assert_eq!(lost(run(EXPLICIT), &|_| ()), 30 + 20);
    assert_eq!(lost(run(EXPLICIT), &|run| run.detached.push(TaskIndex(0))), 30);
    assert_eq!(lost(run(EXPLICIT), &|run| run.dependences.to_mut()[1].kind = 4), 30);
    assert_eq!(lost(run(EXPLICIT), &|run| run.tasks.status[0] = TaskStatus::Suspended), 30);
    let loss = Loss { thread: ThreadIndex(0), start: 1, end: 2, events: 1 };
    assert_eq!(lost(run(EXPLICIT), &|run| run.losses.push(loss)), 0);
    // Undeferred and target tasks, and those of other runtimes.
    for flags in [EXPLICIT | 0x0800_0000, 8, 0] {
        assert_eq!(lost(run(flags), &|_| ()), 0, "{flags:#x}");
    }
}

/// The second worker has no CPU from 10 to 60; a task of the first one is created at 5 and begins at 40.
#[test]
fn waits_without_a_cpu_are_unsure_while_a_task_may_have_been_ready() {
    let tasks = &[(0, 0, 40, 0, Some(8)), (5, 40, 100, 0, Some(8))];
    let unsure_of = |flags, change: &dyn Fn(&mut Execution)| {
        let mut run = OfTeam { tasks, flags }.run(2, Barrier);
        change(&mut run);
        off(run, &[(1, 10, 60)]).unsure_waits_ns()
    };
    let unsure = |change: &dyn Fn(&mut Execution)| unsure_of(EXPLICIT, change);
    assert_eq!(unsure(&|_| ()), 0);
    assert_eq!(unsure(&|run| run.detached.push(TaskIndex(0))), 30);
    assert_eq!(unsure(&|run| run.dependences.to_mut()[1].kind = 4), 30);
    // The first one is killed, and the second one never begins.
    assert_eq!(unsure(&|run| run.tasks.status[0] = TaskStatus::Running), 30);
    assert_eq!(
        unsure(&|run| (run.tasks.began.to_mut()[1], run.tasks.ended.to_mut()[1]) = (NO_TIME, NO_TIME)),
        50
    );
    assert_eq!(
        unsure(&|run| run.losses.push(Loss { thread: ThreadIndex(0), start: 1, end: 2, events: 1 })),
        50
    );
    // Tasks of other runtimes are not known to be ready, undeferred ones never wait.
    assert_eq!(unsure(&|run| run.catalog.types[0].kind = None), 30);
    assert_eq!(unsure_of(EXPLICIT | 0x0800_0000, &|run| run.detached.push(TaskIndex(0))), 0);
    // That the second task begins after a part does not make it unsure.
    let mut part = off(OfTeam { tasks, flags: EXPLICIT }.run(2, Barrier), &[(1, 10, 60)]);
    part.cut(0, 30);
    assert_eq!((part.cpu_shortage().waiting_ns, part.unsure_waits_ns()), (20, 0));
}

/// Three workers on two CPUs. One that waits may have the CPU that the first one leaves free; the other could run nothing.
#[test]
fn ready_tasks_do_not_matter_to_workers_beyond_the_cpus() {
    for (created, before) in [(0, OutOfCpu), (50, Barrier)] {
        let tasks = &[(0, 0, 100, 0, None), (created, 50, 100, 1, None)];
        let mut execution = OfTeam { tasks, flags: EXPLICIT }.run(3, Barrier);
        execution.processes[0].cpus = Some(CpuFacts { allowed: CpuSet::of(0..2), ..CpuFacts::default() });
        let execution = off(execution, &[(1, 0, 50), (2, 0, 100)]);
        assert_eq!(times(&execution, 1), [(before, 50), (Task, 50)]);
        assert_eq!(times(&execution, 2), [(Oversubscribed, 100)]);
    }
}

/// Three workers: the first one works, the second one waits in task 0 for its children, the third one in task 1, a child of
/// task 0. More tasks: when each is created and begins, on the first worker, and its parent.
fn nested_waits(tasks: &[(u64, u64, TaskIndex)]) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("host.1", 1);
    let (region, ty) = (RegionIndex(0), TypeIndex(0));
    let in_region = |state, task| Section { region, task, ..Section::of(state) };
    builder.define(Definition::Type { ty, process, label: "" });
    let kind = TypeKind::Task { flags: EXPLICIT };
    builder.define(Definition::TypeSite { ty, site: SiteIndex(0), kind });
    let none = TaskIndex::NONE;
    let mut events: Vec<(u64, u32, Change)> = Vec::new();
    for (worker, task, state) in [(0, none, Task), (1, TaskIndex(0), Taskwait), (2, TaskIndex(1), Taskwait)] {
        builder.add_thread(process, i64::from(worker));
        events.push((0, worker, Change::ThreadWorks));
        if task.is_some() {
            let parent = if worker == 1 { none } else { TaskIndex(0) };
            events.push((0, worker, Change::TaskCreated { task, ty, parent, region }));
            events.push((0, worker, Change::TaskStarts { task }));
        }
        events.push((0, worker, Change::Becomes(in_region(state, task))));
        events.push((100, worker, Change::ThreadEnds));
    }
    for (row, (created, began, parent)) in (2..).zip(tasks) {
        let task = TaskIndex(row);
        events.push((*created, 2, Change::TaskCreated { task, ty, parent: *parent, region }));
        events.push((*began, 0, Change::TaskStarts { task }));
    }
    events.sort_by_key(|event| event.0);
    for (at, worker, change) in events {
        builder.event(ThreadIndex(worker), at);
        builder.change(ThreadIndex(worker), at, change);
    }
    let mut execution = builder.finish();
    let allowed = CpuSet::of(0..3);
    execution.processes[0].cpus = Some(CpuFacts { allowed, ..CpuFacts::default() });
    off(execution, &[(1, 10, 80), (2, 10, 80)])
}

#[test]
fn a_task_is_missed_once_also_if_waits_in_nested_tasks_may_take_it() {
    let (none, outer, inner) = (TaskIndex::NONE, TaskIndex(0), TaskIndex(1));
    let lost = |tasks: &[(u64, u64, TaskIndex)]| {
        let execution = nested_waits(tasks);
        [1, 2].map(|thread| {
            let of = times(&execution, thread);
            of.iter().filter(|(state, _)| *state == OutOfCpu).map(|(_, ns)| ns).sum::<u64>()
        })
    };
    // Both waits may take the child of the inner task. The other task of the team is for neither.
    assert_eq!(lost(&[(20, 50, inner), (20, 60, none)]), [30, 0]);
    // The second task is for the outer wait alone, whichever of the two it takes.
    assert_eq!(lost(&[(20, 50, inner), (30, 60, outer)]), [40, 20]);
    assert_eq!(lost(&[(20, 50, outer), (20, 60, outer)]), [40, 0]);
    assert_eq!(lost(&[(20, 50, inner), (20, 50, inner)]), [30, 30]);
    // Of a child that is its own ancestor, as in a damaged trace, nothing is known.
    assert_eq!(lost(&[(20, 50, TaskIndex(2))]), [0, 0]);
}

/// Ranks with a thread each, from 0 to 100, with these sections; calls that wait: rank, begin, end, late rank, its arrival.
fn ranks(workers: &[&[(u64, State)]], waits: &[(u32, u64, u64, u32, u64)]) -> Execution {
    let mut builder = ExecutionBuilder::new();
    for (rank, sections) in workers.iter().enumerate() {
        let process = builder.add_process("host.1", rank as i64);
        let thread = builder.add_thread(process, rank as i64);
        builder.change(thread, sections[0].0, Change::ThreadWorks);
        for (at, state) in *sections {
            builder.event(thread, *at);
            builder.change(thread, *at, Change::Becomes(Section::of(*state)));
        }
        builder.event(thread, 100);
        builder.change(thread, 100, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let call = |(rank, start, end, late, until): &(u32, u64, u64, u32, u64)| MpiCall {
        thread: ThreadIndex(*rank),
        function: 0,
        place: Place::UNKNOWN,
        start: *start,
        end: *end,
        count: 1,
        bytes: 0,
        wait: Some(PeerWait { kind: PeerWaitKind::LateMember, culprit: ProcessIndex(*late), until: *until }),
    };
    execution.communication.calls = waits.iter().map(call).collect();
    execution
}

/// A rank without a CPU is not late by its own doing.
#[test]
fn a_call_that_waits_for_a_rank_without_a_cpu_waits_for_the_system() {
    let late: &[(u64, State)] = &[(0, Serial)];
    let execution = ranks(&[&[(0, Serial), (10, Communication), (90, Serial)], late], &[(0, 10, 90, 1, 80)]);
    // It has no CPU after its arrival, too.
    let execution = off(execution, &[(0, 12, 15), (1, 5, 40), (1, 60, 65), (1, 78, 85)]);
    let expected = [
        (Serial, 10),
        (OutOfCpu, 30),
        (Communication, 20),
        (OutOfCpu, 5),
        (Communication, 13),
        (OutOfCpu, 2),
        (Communication, 10),
        (Serial, 10),
    ];
    assert_eq!(times(&execution, 0), expected);
    // With a CPU it is late.
    let execution = ranks(&[&[(0, Communication)], late], &[(0, 0, 100, 1, 100)]);
    assert_eq!(times(&off(execution, &[(0, 20, 50)]), 0), [(Communication, 100)]);
}

#[test]
fn a_late_rank_that_waits_itself_is_followed() {
    let calls: &[(u64, State)] = &[(0, Communication)];
    let waits = [(0, 0, 100, 1, 100), (1, 0, 60, 2, 60)];
    let execution = ranks(&[calls, &[(0, Communication), (60, Serial)], &[(0, Serial)]], &waits);
    let execution = off(execution, &[(2, 10, 30), (2, 50, 80)]);
    for rank in 0..2 {
        let expected = [(Communication, 10), (OutOfCpu, 20), (Communication, 20), (OutOfCpu, 10)];
        assert_eq!(times(&execution, rank)[..4], expected);
    }
    // Ranks that wait for each other need no CPU.
    let circle = [(0, 0, 100, 1, 100), (1, 0, 100, 0, 100)];
    let execution = off(ranks(&[calls, calls], &circle), &[(0, 10, 30), (1, 20, 50)]);
    assert_eq!(times(&execution, 0), [(Communication, 100)]);
}

#[test]
fn a_late_rank_with_a_working_thread_proceeds() {
    let mut execution = ranks(&[&[(0, Communication)], &[(0, Serial)], &[(0, Task)]], &[(0, 0, 100, 1, 100)]);
    execution.threads[2].process = ProcessIndex(1);
    let execution = off(execution, &[(1, 10, 50), (2, 40, 70)]);
    assert_eq!(times(&execution, 0), [(Communication, 40), (OutOfCpu, 10), (Communication, 50)]);
}

#[test]
fn processes_with_a_common_crowd_are_related() {
    let mut builder = ExecutionBuilder::new();
    for pid in 0..6 {
        let process = builder.add_process(&format!("host.{pid}"), pid);
        let thread = builder.add_thread(process, pid);
        if pid != 4 {
            builder.event(thread, 0);
            builder.change(thread, 0, Change::ThreadWorks);
        }
    }
    let execution = builder.finish();
    let crowd =
        |workers: &[u32]| Crowd { cpus: 1, workers: workers.iter().copied().map(ThreadIndex).collect() };
    let related = |crowds: &[Crowd]| -> Vec<Vec<u32>> {
        let groups = execution.related_processes(crowds).into_iter();
        groups.map(|group| group.into_iter().map(|process| process.0).collect()).collect()
    };
    assert_eq!(related(&[]), [vec![0], vec![1], vec![2], vec![3], vec![5]]);
    // The last one joins two others.
    let crowds = [crowd(&[3, 1]), crowd(&[0, 5]), crowd(&[2]), crowd(&[5, 3])];
    assert_eq!(related(&crowds), [vec![0, 1, 3, 5], vec![2]]);
}
