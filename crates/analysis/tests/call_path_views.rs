//! Idleness and waiting by path: charged to the samples of a serial part, to the last thread in a barrier,
//! and to a taskwait's children.

use taskscope_analysis::call_paths::{CallPathOptions, profile_of};
use taskscope_event::models::samples::flag;
use taskscope_event::models::{omp, openmp};
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{
    Change, Definition, Execution, ExecutionBuilder, Observer, OsSource, PathIndex, Place, RegionIndex,
    Section, SiteIndex, State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex, TypeKind,
};
use taskscope_profile::{Frame, Marker, Metric, NodeId};
use taskscope_testkit::script::Script;

/// One thread is in a state from 1000 to 1 001 000, sampled in one function and then in another, and the system
/// takes it off its CPU again and again; two others idle.
fn in_pieces(state: State) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8, 9].map(|tid| builder.add_thread(process, tid));
    for (thread, state) in threads.into_iter().zip([state, State::Idle, State::Idle]) {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::ThreadWorks);
        builder.change(thread, 1000, Change::Becomes(Section::of(state)));
    }
    for number in 0..10_u64 {
        let address = if number < 7 { 0x1000 } else { 0x2000 };
        builder.sample(&NewSample {
            thread: threads[0],
            at: 1000 + 100_000 * number + 95_000,
            weight_ns: 100_000,
            flags: 0,
            state: 0,
            levels: &[Level { first: 0, end: 1, region: RegionIndex::NONE, task: TaskIndex::NONE }],
            addresses: &[address],
        });
    }
    for thread in threads {
        builder.event(thread, 1_001_000);
        builder.change(thread, 1_001_000, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let off: Vec<(u64, u64)> =
        (0..25).map(|number| (1000 + 40_000 * number + 30_000, 1000 + 40_000 * (number + 1))).collect();
    execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &off, &[]);
    execution.attribute_system_time();
    execution
}

#[test]
fn pieces_of_a_serial_part_without_samples_go_to_the_samples_of_the_others() {
    let execution = in_pieces(State::Serial);
    let (profile, quality) = profile_of(&execution, CallPathOptions::default());
    assert_eq!(quality.samples, 10);
    let tree = &profile.tree;
    let idle = Metric::shared(Marker::Idle);
    let at = |address: u64| -> u64 {
        let nodes = tree.ids().filter(|node| tree.frame(*node).offset == address);
        nodes.map(|node| tree.value(node, idle)).sum()
    };
    assert_eq!(tree.total(idle), tree.total(Metric::taken(Marker::Idle)));
    assert_eq!(at(0x1000) + at(0x2000), tree.total(idle), "nothing is elsewhere");
    let share = at(0x1000) as f64 / tree.total(idle) as f64;
    assert!((share - 0.7).abs() < 0.05, "{share}");
}

#[test]
fn an_unknown_state_has_the_time_without_a_cpu_of_its_samples() {
    let (profile, _) = profile_of(&in_pieces(State::Unknown), CallPathOptions::default());
    let tree = &profile.tree;
    let at = |metric: Metric| -> u64 {
        let nodes = tree.ids().filter(|node| [0x1000, 0x2000].contains(&tree.frame(*node).offset));
        nodes.map(|node| tree.value(node, metric)).sum()
    };
    let (work, off) = (at(Metric::WORK), at(Metric::OUT_OF_CPU));
    assert_eq!((work + off, at(Metric::TIME)), (1_000_000, 1_000_000));
    // A quarter, but for the begin of the first sample and the end of the last.
    assert!((230_000..270_000).contains(&off), "{off}");
}

/// Two threads of a region: one works at 0x1000, waits for tasks for so many nanoseconds, works at 0x2000 and comes last to a
/// barrier; the other is there long before.
fn barrier_after_a_wait_for_tasks(wait: u64) -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8].map(|tid| builder.add_thread(process, tid));
    let region = RegionIndex(0);
    let begins =
        Change::RegionBegins { region, parent: RegionIndex::NONE, requested: 2, site: SiteIndex::NONE };
    builder.change(threads[0], 1000, begins);
    let (first, second) = (1000 + 100_000, 1000 + 100_000 + wait);
    let end = second + 50_000;
    let last = [
        (1000, State::ImplicitTask),
        (first, State::Taskwait),
        (second, State::ImplicitTask),
        (end, State::Barrier),
    ];
    let early = [(1000, State::ImplicitTask), (20_000, State::Barrier)];
    for (thread, parts) in threads.into_iter().zip([&last[..], &early]) {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::ThreadWorks);
        for (at, state) in parts {
            builder.change(thread, *at, Change::Becomes(Section { region, ..Section::of(*state) }));
        }
        builder.event(thread, end + 1000);
        builder.change(thread, end + 1000, Change::ThreadEnds);
    }
    for (at, address) in [(50_000, 0x1000), (first - 1, 0x1000), (second + 10_000, 0x2000)] {
        builder.sample(&NewSample {
            thread: threads[0],
            at,
            weight_ns: 50_000,
            flags: 0,
            state: 0,
            levels: &[Level { first: 0, end: 1, region, task: TaskIndex::NONE }],
            addresses: &[address],
        });
    }
    builder.finish()
}

#[test]
fn work_before_a_taskwait_delays_no_thread_at_the_barrier() {
    for (wait, before) in [(1_999, 2), (2_000, 0), (40_000, 0)] {
        let execution = barrier_after_a_wait_for_tasks(wait);
        let (profile, _) = profile_of(&execution, CallPathOptions::default());
        let tree = &profile.tree;
        let given = Metric::given(Marker::Barrier);
        assert_eq!(tree.total(given), tree.total(Metric::taken(Marker::Barrier)));
        let at = |address: u64| -> u64 {
            let nodes = tree.ids().filter(|node| tree.frame(*node).offset == address);
            nodes.map(|node| tree.value(node, given)).sum()
        };
        assert!(at(0x2000) > 0);
        assert!(at(0x1000).abs_diff(before * at(0x2000)) <= 2, "{wait}: {} and {}", at(0x1000), at(0x2000));
    }
}

/// LLVM's runtime forks a region by itself for the body of `teams`.
#[test]
fn frames_in_a_region_without_a_construct_belong_to_its_parent() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let thread = builder.add_thread(process, 7);
    let (path, league, body) = (PathIndex(0), RegionIndex(0), RegionIndex(1));
    builder.define(Definition::Path { path, number: 1, process, addresses: &[0x1001, 0x2001], at: 0 });
    let (outside, task) = (RegionIndex::NONE, TaskIndex::NONE);
    builder.define(Definition::Site { site: SiteIndex(2), number: 1, process, address: 0x4001, at: 0 });
    for (region, path, parent, site) in [(league, path, outside, 1), (body, PathIndex::NONE, league, 2)] {
        let begins = Change::RegionBegins { region, parent, site: SiteIndex(site), requested: 1 };
        let created = Change::RegionPath { region, path, parent_region: parent, parent_task: task };
        builder.event(thread, 1000);
        builder.change(thread, 1000, begins);
        builder.change(thread, 1000, created);
    }
    let level = Level { first: 0, end: 1, region: body, task };
    let (levels, addresses) = (&[level][..], &[0x3000][..]);
    let flags = flag::REACHED_ROOT;
    builder.sample(&NewSample { thread, at: 2000, weight_ns: 100, flags, state: 1, levels, addresses });
    let (profile, _) = profile_of(&builder.finish(), CallPathOptions::default());
    let tree = &profile.tree;
    let sampled = tree.ids().find(|node| tree.frame(*node).offset == 0x3000).unwrap();
    let path: Vec<u64> = tree.path(sampled).map(|frame| frame.offset).collect();
    assert_eq!(path, [0x3000, 0x1000, 0x2000], "innermost first");
}

/// Threads of a process from 1000 on, with the initial one first, and their recorded events.
struct Team {
    builder: ExecutionBuilder,
    threads: Vec<ThreadIndex>,
}

impl Team {
    fn of(count: i64) -> Team {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("node1.7", 7);
        let threads: Vec<ThreadIndex> = (7..7 + count).map(|tid| builder.add_thread(process, tid)).collect();
        for thread in &threads {
            builder.event(*thread, 1000);
            builder.change(*thread, 1000, Change::ThreadWorks);
        }
        builder.change(threads[0], 1000, Change::ThreadIs(ThreadKind::Initial));
        for site in 1..4 {
            let address = 0x100 * u64::from(site) + 1;
            builder.define(Definition::Site { site: SiteIndex(site), number: 1, process, address, at: 0 });
        }
        Team { builder, threads }
    }

    fn change(&mut self, thread: usize, at: u64, change: Change) {
        self.builder.event(self.threads[thread], at);
        self.builder.change(self.threads[thread], at, change);
    }

    fn becomes(&mut self, thread: usize, at: u64, section: Section) {
        self.change(thread, at, Change::Becomes(section));
    }

    fn forks(&mut self, at: u64, region: RegionIndex, parent: RegionIndex) {
        self.change(0, at, Change::RegionBegins { region, parent, requested: 0, site: SiteIndex::NONE });
    }

    fn sample(&mut self, thread: usize, at: u64, weight_ns: u64, (region, address): (RegionIndex, u64)) {
        self.builder.sample(&NewSample {
            thread: self.threads[thread],
            at,
            weight_ns,
            flags: flag::REACHED_ROOT,
            state: 0,
            levels: &[Level { first: 0, end: 1, region, task: TaskIndex::NONE }],
            addresses: &[address],
        });
    }

    fn ends(mut self, at: u64) -> Execution {
        (0..self.threads.len()).for_each(|thread| self.change(thread, at, Change::ThreadEnds));
        self.builder.finish()
    }

    fn killed_at(mut self, at: u64) -> Execution {
        self.threads.iter().for_each(|thread| self.builder.event(*thread, at));
        self.builder.finish()
    }
}

/// The values of a metric, by the offset of the innermost code frame; together they are the time taken.
fn by_address(execution: &Execution, metric: Metric, marker: Marker) -> Vec<(u64, u64)> {
    let (profile, _) = profile_of(execution, CallPathOptions::default());
    let tree = &profile.tree;
    assert_eq!(tree.total(metric), tree.total(Metric::taken(marker)), "nothing is lost");
    let mut found: Vec<(u64, u64)> =
        tree.ids().map(|node| (tree.frame(node).offset, tree.value(node, metric))).collect();
    found.retain(|(_, value)| *value > 0);
    found.sort_unstable();
    found
}

fn idleness_by_address(execution: &Execution) -> Vec<(u64, u64)> {
    by_address(execution, Metric::shared(Marker::Idle), Marker::Idle)
}

const OUTSIDE: RegionIndex = RegionIndex::NONE;

#[test]
fn serial_code_that_takes_locks_is_charged_to_its_samples_as_one() {
    let mut team = Team::of(2);
    team.becomes(1, 1000, Section::of(State::Idle));
    let at_site = |state, site| Section { place: Place::site(SiteIndex(site)), ..Section::of(state) };
    for number in 0..100 {
        let begin = 1000 + 100 * number;
        team.becomes(0, begin, at_site(State::Serial, 1));
        team.becomes(0, begin + 40, at_site(State::LockWait, 2));
        team.becomes(0, begin + 50, at_site(State::Serial, 2));
        if number % 10 == 5 {
            let address = if number < 40 { 0x1000 } else { 0x2000 };
            team.sample(0, begin + 90, 1000, (OUTSIDE, address));
        }
    }
    let idle = idleness_by_address(&team.ends(11_000));
    let [first, second] = [0x1000, 0x2000].map(|address| idle.iter().find(|row| row.0 == address).unwrap().1);
    assert_eq!(
        first + second,
        100 * 100,
        "nothing is at the calls, nor nobody's: the locks are free: {idle:?}"
    );
    assert!(first.abs_diff(4000) <= 600, "{idle:?}");
}

/// One thread works all the time, another idles, and a third idles until 6000 and works then. A call that was sampled has the time of
/// the call.
#[test]
fn a_sample_is_charged_with_the_waiting_during_its_time() {
    let mut team = Team::of(3);
    team.becomes(1, 1000, Section::of(State::Idle));
    team.becomes(2, 1000, Section::of(State::Idle));
    team.becomes(0, 1000, Section::of(State::Serial));
    for number in 1..=10 {
        let (address, weight) = match number {
            ..=5 => (0x1000, 1000),
            8 => (0x3000, 300),
            9 => (0x2000, 1700),
            _ => (0x2000, 1000),
        };
        team.sample(0, 1_000_000 + 1_000_000 * number, weight * 1000, (OUTSIDE, address));
    }
    team.becomes(0, 6_000_000, Section { place: Place::site(SiteIndex(1)), ..Section::of(State::Serial) });
    team.becomes(2, 6_000_000, Section { place: Place::site(SiteIndex(2)), ..Section::of(State::Serial) });
    let idle = idleness_by_address(&team.ends(11_000_000));
    let at = |address| idle.iter().find(|row| row.0 == address).unwrap().1;
    // Idle threads by working ones: two by one until 6000, one by two since.
    let expected = [(0x1000, 2 * 5999), (0x2000, 2350), (0x3000, 150)];
    for (address, us) in expected {
        assert!(at(address).abs_diff(us * 1000) <= 2000, "{address:x}: {idle:?}");
    }
}

/// Serial code from 1000 on of these lengths, sampled at these addresses or not, each before a region of both threads,
/// of 5000.
fn stretches(parts: &[(u64, Option<u64>)]) -> Execution {
    let mut team = Team::of(2);
    team.becomes(1, 1000, Section::of(State::Idle));
    let mut at = 1000;
    for (number, (length, sampled)) in parts.iter().enumerate() {
        team.becomes(0, at, Section { place: Place::site(SiteIndex(1)), ..Section::of(State::Serial) });
        if let Some(address) = sampled {
            team.sample(0, at + length / 2, 1000, (OUTSIDE, *address));
        }
        at += length;
        let region = RegionIndex(number as u32);
        team.forks(at, region, OUTSIDE);
        for thread in 0..2 {
            team.becomes(thread, at, Section { region, ..Section::of(State::ImplicitTask) });
        }
        for period in 0..5 {
            team.sample(0, at + 1000 * period + 500, 1000, (region, 0x3000));
        }
        at += 5000;
        team.becomes(1, at, Section::of(State::Idle));
    }
    team.ends(at)
}

#[test]
fn serial_parts_too_short_for_a_sample_wait_for_that_of_the_next() {
    let parts =
        [(300, None), (300, None), (400, Some(0x1000)), (300, None), (200, Some(0x2000)), (250, None)];
    // The first is the program's start, which does not come again.
    let expected = [(0x100, 300), (0x1000, 700), (0x2000, 750)];
    assert_eq!(idleness_by_address(&stretches(&parts)), expected);
    let [short, long, sampled] = [(300, None), (4000, None), (400, Some(0x1000))];
    let expected = [(0x100, 4300), (0x1000, 700)];
    assert_eq!(
        idleness_by_address(&stretches(&[short, short, long, sampled])),
        expected,
        "a long one is where it is"
    );
    assert_eq!(idleness_by_address(&stretches(&[short, short])), [(0x100, 600)], "none had a sample");
}

/// A team of three in a region, itself in one of the first thread alone; the second comes to a barrier and waits. The first
/// works at 0x1000, and in a region of its own at 0x2000; the third works at 0x3000, or waits, too.
fn killed_before_a_barrier(state: State, third_waits: bool) -> Execution {
    let mut team = Team::of(3);
    let [around, region, own] = [0, 1, 2].map(RegionIndex);
    team.forks(1000, around, OUTSIDE);
    team.forks(1000, region, around);
    for thread in 0..3 {
        team.becomes(thread, 1000, Section { region, ..Section::of(State::ImplicitTask) });
        team.becomes(thread, 2000, Section { region, ..Section::of(State::Barrier) });
        team.becomes(thread, 3000, Section { region, ..Section::of(State::ImplicitTask) });
    }
    team.sample(0, 1500, 1000, (region, 0x4000));
    let waits = Section { region, ..Section::of(state) };
    team.becomes(1, 4000, waits);
    if third_waits {
        team.becomes(2, 4000, waits);
    } else {
        team.sample(2, 7000, 1000, (region, 0x3000));
    }
    team.forks(5000, own, region);
    team.becomes(0, 5000, Section { region: own, ..Section::of(State::ImplicitTask) });
    team.sample(0, 4500, 1000, (region, 0x1000));
    team.sample(0, 7500, 3000, (own, 0x2000));
    team.killed_at(8000)
}

#[test]
fn threads_not_arrived_when_the_program_is_killed_are_waited_for() {
    for (state, marker) in [(State::Barrier, Marker::Barrier), (State::JoinBarrier, Marker::JoinBarrier)] {
        let given = |third_waits| {
            let mut found =
                by_address(&killed_before_a_barrier(state, third_waits), Metric::given(marker), marker);
            found.retain(|(offset, _)| *offset >= 0x1000);
            found
        };
        assert_eq!(given(true), [(0x1000, 2000), (0x2000, 6000)]);
        assert_eq!(given(false), [(0x1000, 500), (0x2000, 1500), (0x3000, 2000)], "both were waited for");
    }
}

/// Four tasks of a thread, which then waits for `depend(in: x)` from 2000 to 9000: one that writes x, one that the first
/// waits for, one that has nothing to do with it, and one that reads x. They run on threads of their own, type by type.
fn wait_for_dependences(is_recorded: bool) -> Execution {
    let mut team = Team::of(5);
    let region = RegionIndex(0);
    let (x, y, z) = (0x8000, 0x9000, 0xa000);
    let (read, write) = (1, 3);
    team.forks(1000, region, OUTSIDE);
    team.becomes(0, 1000, Section { region, ..Section::of(State::ImplicitTask) });
    let tasks: [(&[_], u64, u64); 4] = [
        (&[(y, write)], 1500, 4000),
        (&[(y, read), (x, write)], 4000, 7000),
        (&[(z, write)], 1500, 9000),
        (&[(x, read)], 7000, 9000),
    ];
    for (number, (dependences, began, ended)) in tasks.into_iter().enumerate() {
        let (task, ty) = (TaskIndex(number as u32), TypeIndex(number as u32));
        team.builder.define(Definition::TypeSite {
            ty,
            site: SiteIndex(number as u32 % 3 + 1),
            kind: TypeKind::Task { flags: 0 },
        });
        team.change(0, 1100, Change::TaskCreated { task, ty, parent: TaskIndex::NONE, region });
        for (address, kind) in dependences {
            team.change(0, 1100, Change::TaskDepends { task, address: *address, kind: *kind });
        }
        team.change(number + 1, began, Change::TaskStarts { task });
        team.becomes(number + 1, began, Section { region, task, ..Section::of(State::Task) });
        team.change(number + 1, ended, Change::TaskEnds { task });
        team.becomes(number + 1, ended, Section { region, ..Section::of(State::ImplicitTask) });
    }
    team.becomes(0, 2000, Section { region, ..Section::of(State::TaskwaitDepend) });
    if is_recorded {
        team.change(0, 2010, Change::WaitDepends { address: x, kind: read });
    }
    team.becomes(0, 9000, Section { region, ..Section::of(State::ImplicitTask) });
    team.ends(10_000)
}

#[test]
fn a_taskwait_is_for_the_tasks_that_its_dependences_name() {
    let given = |is_recorded| {
        let (profile, _) = profile_of(&wait_for_dependences(is_recorded), CallPathOptions::default());
        let tree = &profile.tree;
        let given = Metric::given(Marker::TaskwaitDepend);
        assert_eq!(tree.total(given), tree.total(Metric::taken(Marker::TaskwaitDepend)));
        let is_nobody = |node: &NodeId| tree.frame(*node) == Frame::state(Marker::Nobody);
        let nobody: u64 = tree.ids().filter(is_nobody).map(|node| tree.value(node, given)).sum();
        // The creation of a task is the place of its body.
        let at = |site: u64| -> u64 {
            let bodies = tree.ids().filter(|node| tree.path(*node).any(|frame| frame.offset == 0x100 * site));
            bodies.map(|node| tree.value(node, given)).sum()
        };
        (at(1), at(2), at(3), nobody)
    };
    // The fourth has the place of the first.
    assert_eq!(given(true), (2000, 3000, 0, 2000));
    assert_eq!(given(false), (1000 + 1000, 1500, 2500 + 1000, 0));
}

/// The event of a wait's dependences names a task that there is not.
#[test]
fn the_dependences_of_a_taskwait_are_those_of_no_task() {
    let dependence =
        |task: u32, kind: u8| [&task.to_le_bytes()[..], &0xaa_u64.to_le_bytes(), &[kind]].concat();
    let mut script = Script::new(2, 0, 1000);
    script.site(0, 0, 1, 0x100).task_type(0, 0, 7, 1, "a");
    script.fork(0, 100, 1, 1, 2).join_team(1, 100, 1, 1, 2).arrive(1, 150);
    script.create(0, 200, 1, 7).emit(0, 200, omp::TASK_DEPENDENCES, &dependence(1, 3));
    script.emit(0, 400, openmp::TASK_TASKWAIT_DEPS_BEGIN, &[]);
    script.emit(0, 410, omp::TASK_DEPENDENCES, &dependence(2, 1));
    script.emit(0, 700, openmp::TASK_TASKWAIT_DEPS_END, &[]).run(1, 300, 690, 1);
    script.arrive(0, 800).join(0, 950, 1).depart(1, 1000, 1);
    let mut execution = script.play();
    let dependences: Vec<_> =
        execution.wait_dependences.iter().map(|row| (row.at, row.address, row.kind)).collect();
    assert_eq!(dependences, [(410, 0xaa, 1)]);
    assert_eq!(execution.dependences.iter().map(|row| row.kind).collect::<Vec<_>>(), [3]);
    execution.cut(500, 900);
    assert_eq!(execution.wait_dependences, []);
}

/// Two threads take a lock through one function, in turns: each wait and each hold is at its own path, even
/// if a wait is interrupted by a task that waits there by another path.
#[test]
fn waits_through_one_function_are_at_their_own_paths() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8].map(|tid| builder.add_thread(process, tid));
    let (site, first, second) = (SiteIndex(1), PathIndex(0), PathIndex(1));
    builder.define(Definition::Site { site, number: 1, process, address: 0x1001, at: 0 });
    builder.define(Definition::Path { path: first, number: 1, process, addresses: &[0x1001, 0x2001], at: 0 });
    builder.define(Definition::Path {
        path: second,
        number: 1,
        process,
        addresses: &[0x1001, 0x3001],
        at: 0,
    });
    let waits = |task: u32| Section {
        place: Place::site(site),
        task: TaskIndex(task),
        ..Section::of(State::Taskwait)
    };
    let works = |task: u32| Section { task: TaskIndex(task), ..Section::of(State::Task) };
    for thread in threads {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::ThreadWorks);
        builder.change(thread, 1000, Change::Becomes(works(u32::MAX)));
    }
    // Task 0 waits by the first path; task 1, which runs in that wait, by the second; then task 0 waits on.
    for (at, section, path) in [
        (2000, waits(0), Some(first)),
        (2100, works(1), None),
        (2200, waits(1), Some(second)),
        (2500, works(1), None),
        (2600, waits(0), None),
        (3000, works(0), None),
        // By the last recorded path.
        (4000, waits(0), None),
        (4010, works(0), None),
    ] {
        if let Some(path) = path {
            builder.change(threads[0], at, Change::CallPath { site, path });
        }
        builder.change(threads[0], at, Change::Becomes(section));
    }
    for thread in threads {
        builder.event(thread, 5000);
        builder.change(thread, 5000, Change::ThreadEnds);
    }
    let (profile, _) = profile_of(&builder.finish(), CallPathOptions::default());
    let tree = &profile.tree;
    let taken = |outermost: u64| -> u64 {
        let is_below = |node: &NodeId| tree.path(*node).any(|frame| frame.offset == outermost);
        tree.ids().filter(is_below).map(|node| tree.value(node, Metric::taken(Marker::Taskwait))).sum()
    };
    assert_eq!([taken(0x2000), taken(0x3000)], [100 + 400, 300 + 10]);
}
