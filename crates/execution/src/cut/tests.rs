//! Tests of parts of executions.

use crate::samples::{Level, NewSample};
use crate::{Change, Execution, ExecutionBuilder, Observer, Section, SiteIndex, State, TaskIndex, TypeIndex};
use crate::{NO_TIME, PathIndex, RegionIndex, TaskStatus, ThreadIndex};

/// A region from 10 to 90 with two tasks: one from 20 to 30, one from 40 to 70.
fn execution() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node.1", 5);
    let thread = builder.add_thread(process, 5);
    let mut change = |at: u64, change: Change| {
        builder.event(thread, at);
        builder.change(thread, at, change);
    };
    let region = RegionIndex(0);
    let in_task = |number| Section { task: TaskIndex(number), ..Section::of(State::Task) };
    change(0, Change::Becomes(Section::of(State::Serial)));
    let none = (RegionIndex::NONE, SiteIndex::NONE);
    change(10, Change::RegionBegins { region, parent: none.0, site: none.1, requested: 1 });
    change(10, Change::Becomes(Section { region, ..Section::of(State::ImplicitTask) }));
    for (number, from, to) in [(0, 20, 30), (1, 40, 70)] {
        let task = TaskIndex(number);
        let parent = TaskIndex::NONE;
        change(from - 5, Change::TaskCreated { task, ty: TypeIndex(0), parent, region });
        change(from, Change::TaskStarts { task });
        change(from, Change::Becomes(in_task(number)));
        change(to, Change::TaskEnds { task });
        change(to, Change::Becomes(Section { region, ..Section::of(State::ImplicitTask) }));
    }
    change(90, Change::RegionEnds { region });
    change(90, Change::Becomes(Section::of(State::Serial)));
    change(100, Change::ThreadEnds);
    builder.finish()
}

fn spans(execution: &Execution) -> Vec<(u64, u64, State, TaskIndex)> {
    let spans = execution.threads[0].track.spans();
    spans.map(|span| (span.start, span.end, span.section.state, span.section.task)).collect()
}

#[test]
fn intervals_beyond_the_range_are_cut_and_numbers_follow() {
    let mut execution = execution();
    execution.cut(35, 60);
    let expected = [(35, 40, State::ImplicitTask, TaskIndex::NONE), (40, 60, State::Task, TaskIndex(0))];
    assert_eq!(spans(&execution), expected);
    let tasks = &execution.tasks;
    assert_eq!((tasks.len(), tasks.created[0], tasks.began[0], tasks.ended[0]), (1, 35, 40, NO_TIME));
    assert_eq!(tasks.status[0], TaskStatus::Running);
    assert_eq!((execution.regions[0].begin, execution.regions[0].end), (35, NO_TIME));
    assert_eq!(execution.range(), (35, 60));
}

#[test]
fn a_part_of_a_cut_wait_has_the_holders_of_that() {
    use crate::{CutWait, Hold, Holders, ObjectIndex, Span};

    let thread = ThreadIndex(0);
    let (object, site, task) = (ObjectIndex(0), SiteIndex(3), TaskIndex::NONE);
    let hold = Hold { object, thread: ThreadIndex(1), site, task, start: 5, end: 90 };
    let cut = |thread, start, end, holder| CutWait { thread: ThreadIndex(thread), start, end, holder };
    let cut_waits =
        vec![cut(0, 10, 30, None), cut(0, 30, 50, Some(hold)), cut(0, 60, 70, None), cut(1, 10, 30, None)];
    let execution = Execution { cut_waits, ..Execution::default() };
    let parts = |start, end| {
        let section = Section { object, ..Section::of(State::LockWait) };
        let mut parts = Vec::new();
        let holders = Holders::of(&[]);
        execution.split_wait(&holders, thread, &Span { start, end, section }, |holder, start, end| {
            parts.push((holder.is_some(), start, end));
        });
        parts
    };
    assert_eq!(parts(10, 50), [(false, 10, 30), (true, 30, 50)]);
    assert_eq!(parts(20, 40), [(false, 20, 30), (true, 30, 40)]);
    assert_eq!(parts(50, 60), [(false, 50, 60)], "another wait");
}

/// A thread waits for the lock that it has. The wait is cut where it has no CPU.
#[test]
fn each_part_of_a_last_wait_has_the_thread_s_own_hold() {
    use crate::{Holders, ObjectIndex, Span};

    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node.1", 5);
    let thread = builder.add_thread(process, 5);
    let (object, site) = (ObjectIndex(0), SiteIndex(3));
    let section = Section { object, ..Section::of(State::LockWait) };
    for (at, change) in [
        (0, Change::Becomes(Section::of(State::Task))),
        (10, Change::Acquires { object, site }),
        (20, Change::Becomes(section)),
    ] {
        builder.event(thread, at);
        builder.change(thread, at, change);
    }
    builder.event(thread, 100);
    let execution = builder.finish();
    let holders = Holders::of(&execution.holds);
    for (start, end) in [(20, 100), (20, 50), (60, 100)] {
        let mut own = Vec::new();
        let wait = Span { start, end, section };
        execution.split_wait(&holders, thread, &wait, |hold, _, _| own.push(hold.map(|hold| hold.thread)));
        assert_eq!(own, [Some(thread)], "{start} to {end}");
    }
}

#[test]
fn a_part_without_anything_is_empty_and_the_whole_is_the_same() {
    let mut nothing = execution();
    nothing.cut(200, 300);
    assert!(nothing.tasks.is_empty() && nothing.regions.is_empty() && spans(&nothing).is_empty());
    let whole = execution();
    let mut same = execution();
    same.cut(0, u64::MAX);
    assert_eq!(spans(&same), spans(&whole));
    assert_eq!((same.tasks.len(), same.tasks.ended[1]), (2, 70));
}

#[test]
fn partners_of_open_calls_stay_theirs() {
    use crate::Place;
    use crate::messages::{Awaited, Communication, MpiCall};

    let call = |start: u64, end: u64| MpiCall {
        thread: ThreadIndex(0),
        function: 0,
        place: Place::UNKNOWN,
        start,
        end,
        count: 1,
        bytes: 0,
        wait: None,
    };
    let calls = vec![call(10, 20), call(30, 90), call(95, 99)];
    let [first, open, last] = [1, 2, 3].map(|sequence| Awaited::Operation { comm: 7, sequence });
    let awaited = vec![(0, first), (1, open), (2, last)];
    let communication = Communication { calls, awaited, ..Communication::default() };
    let mut execution = Execution { communication, ..Execution::default() };
    execution.cut(25, 95);
    assert_eq!(execution.communication.awaited, [(0, open)]);
}

/// Cutting at any place divides the time of every state exactly.
#[test]
fn two_parts_make_the_whole() {
    let useful = |execution: &Execution| -> u64 {
        let spans = execution.threads[0].track.spans();
        spans.filter(|span| span.section.state == State::Task).map(|span| span.nanos()).sum()
    };
    for at in 0..=100 {
        let (mut before, mut after) = (execution(), execution());
        before.cut(0, at);
        after.cut(at, 100);
        assert_eq!(useful(&before) + useful(&after), 40, "cut at {at}");
    }
}

/// Task 1 holds a lock, for which another thread waits longer than the part; task 0 is over before it.
#[test]
fn holders_in_cut_waits_are_tasks_of_the_part() {
    use crate::ObjectIndex;

    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node.1", 5);
    let [holder, waiter] = [5, 6].map(|tid| builder.add_thread(process, tid));
    let (object, site) = (ObjectIndex(0), SiteIndex(3));
    let [before, task] = [TaskIndex(0), TaskIndex(1)];
    let waits = Section { object, ..Section::of(State::LockWait) };
    for (thread, at, change) in [
        (holder, 0, Change::ThreadWorks),
        (waiter, 0, Change::ThreadWorks),
        (holder, 1, Change::TaskStarts { task: before }),
        (holder, 5, Change::TaskEnds { task: before }),
        (holder, 6, Change::TaskStarts { task }),
        (holder, 6, Change::Becomes(Section { task, ..Section::of(State::Task) })),
        (holder, 10, Change::Acquires { object, site }),
        (waiter, 20, Change::Becomes(waits)),
        (holder, 80, Change::Releases { object }),
        (waiter, 85, Change::Becomes(Section::of(State::Task))),
        (holder, 90, Change::TaskEnds { task }),
    ] {
        builder.event(thread, at);
        builder.change(thread, at, change);
    }
    let mut execution = builder.finish();
    execution.cut(30, 60);
    let holders: Vec<_> = execution.cut_waits.iter().map(|wait| wait.holder.unwrap().task).collect();
    assert_eq!((holders, execution.holds[0].task), (vec![TaskIndex(0)], TaskIndex(0)));
}

/// In every part of a run its threads' times tile the process's, also of those that are not there in it.
#[test]
fn times_of_threads_tile_every_part() {
    let whole = || {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node.1", 5);
        for (tid, first, last) in [(0, 1000, 1100), (1, 1000, 1030), (2, 1060, 1100)] {
            let thread = builder.add_thread(process, tid);
            builder.event(thread, first);
            builder.change(thread, first, Change::Becomes(Section::of(State::Task)));
            builder.change(thread, first, Change::ThreadWorks);
            builder.event(thread, last);
            builder.change(thread, last, Change::ThreadEnds);
        }
        builder.finish()
    };
    for (begin, end) in (1000..1100).flat_map(|begin| (begin + 1..=1101).map(move |end| (begin, end))) {
        let mut part = whole();
        part.cut(begin, end);
        let (first, last) = (part.processes[0].first, part.processes[0].last);
        for thread in 0..3 {
            let spans: Vec<_> = part.spans_of_run(ThreadIndex(thread)).collect();
            let reported = format!("{thread} from {begin} to {end}: {spans:?}");
            assert!(spans.windows(2).all(|two| two[0].end == two[1].start), "{reported}");
            assert_eq!((spans[0].start, spans[spans.len() - 1].end), (first, last), "{reported}");
        }
        let of = |thread: u32| part.spans_of_run(ThreadIndex(thread)).next().unwrap().section.state;
        if begin >= 1030 {
            assert_eq!(of(1), State::Ended, "from {begin} to {end}");
        }
        if end <= 1060 {
            assert_eq!(of(2), State::NotStarted, "from {begin} to {end}");
        }
    }
}

/// Task 0 and region 0 are over before the part; region 2 begins in task 1, which is in region 1.
#[test]
fn samples_are_of_the_tasks_and_regions_of_the_part() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node.1", 5);
    let thread = builder.add_thread(process, 5);
    let [none, outer, inner] = [RegionIndex::NONE, RegionIndex(1), RegionIndex(2)];
    let begins = |region: RegionIndex, parent: RegionIndex| Change::RegionBegins {
        region,
        parent,
        site: SiteIndex::NONE,
        requested: 1,
    };
    let creates = |task: TaskIndex| Change::TaskCreated {
        task,
        ty: TypeIndex(0),
        parent: TaskIndex::NONE,
        region: RegionIndex(0),
    };
    let task = TaskIndex(1);
    let inner_path =
        Change::RegionPath { region: inner, path: PathIndex(0), parent_region: outer, parent_task: task };
    for (at, change) in [
        (0, begins(RegionIndex(0), none)),
        (5, creates(TaskIndex(0))),
        (6, Change::TaskStarts { task: TaskIndex(0) }),
        (8, Change::TaskEnds { task: TaskIndex(0) }),
        (10, Change::RegionEnds { region: RegionIndex(0) }),
        (20, begins(outer, none)),
        (25, creates(task)),
        (30, Change::TaskStarts { task }),
        (40, begins(inner, outer)),
        (40, inner_path),
        (90, Change::RegionEnds { region: inner }),
        (95, Change::TaskEnds { task }),
        (99, Change::RegionEnds { region: outer }),
    ] {
        builder.event(thread, at);
        builder.change(thread, at, change);
    }
    let levels = [
        Level { first: 0, end: 1, region: inner, task: TaskIndex::NONE },
        Level { first: 1, end: 2, region: outer, task },
    ];
    let (weight_ns, flags, state, addresses) = (1, 0, 0, &[7, 8]);
    builder.sample(&NewSample { thread, at: 50, weight_ns, flags, state, levels: &levels, addresses });
    let mut execution = builder.finish();
    execution.cut(15, 60);
    let samples = &execution.samples;
    let found: Vec<_> =
        samples.levels(&samples.rows[0]).iter().map(|level| (level.region, level.task)).collect();
    assert_eq!(found, [(RegionIndex(1), TaskIndex::NONE), (RegionIndex(0), TaskIndex(0))]);
    let path = samples.region_paths[&RegionIndex(1)];
    assert_eq!((path.parent_region, path.parent_task), (RegionIndex(0), TaskIndex(0)));
}
