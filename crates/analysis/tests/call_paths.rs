//! Idleness by path: all of a serial part goes to what was sampled in it.

use taskscope_analysis::call_paths::{CallPathOptions, profile_of};
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::{Level, NewSample};
use taskscope_execution::{
    Change, Definition, Execution, ExecutionBuilder, Observer, OsSource, PathIndex, Place, RegionIndex,
    Section, SiteIndex, State, TaskIndex, ThreadIndex,
};
use taskscope_profile::{Marker, Metric, NodeId};

/// One thread is in serial code from 1000 to 1 001 000, sampled in one function and then in another, and the system
/// takes it off its CPU again and again; two others idle.
fn serial_in_pieces() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8, 9].map(|tid| builder.add_thread(process, tid));
    for (thread, state) in threads.into_iter().zip([State::Serial, State::Idle, State::Idle]) {
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
    execution
}

#[test]
fn pieces_of_a_serial_part_without_samples_go_to_the_samples_of_the_others() {
    let execution = serial_in_pieces();
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
fn what_the_last_did_before_a_wait_for_tasks_keeps_nobody_at_the_barrier() {
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
fn what_is_in_a_region_that_is_no_construct_is_in_its_parent() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let thread = builder.add_thread(process, 7);
    let (path, league, body) = (PathIndex(0), RegionIndex(0), RegionIndex(1));
    builder.define(Definition::Path { path, process, addresses: &[0x1001, 0x2001] });
    let (outside, task) = (RegionIndex::NONE, TaskIndex::NONE);
    builder.define(Definition::Site { site: SiteIndex(2), process, address: 0x4001 });
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

/// Two threads take a lock through one function, in turns: each wait and each hold is at its own path, also where a wait is
/// interrupted by a task that waits there by another path.
#[test]
fn waits_through_one_function_are_at_their_own_paths() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8].map(|tid| builder.add_thread(process, tid));
    let (site, first, second) = (SiteIndex(1), PathIndex(0), PathIndex(1));
    builder.define(Definition::Site { site, process, address: 0x1001 });
    builder.define(Definition::Path { path: first, process, addresses: &[0x1001, 0x2001] });
    builder.define(Definition::Path { path: second, process, addresses: &[0x1001, 0x3001] });
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
        // By the path that was told last.
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
