//! Profile mode: blame for waiting, in programs with known blame; and that no time is lost.
//!
//! Programs with known times run in virtual time, so all waiting, blame and samples are known exactly.

use crate::common::profiled::{Names, Profiled};
use crate::common::{Compiler, try_compile};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};
use taskscope_profile::{Balance, FrameKind, Marker, Metric, Profile, ROOT, conservation, key};

const MS: u64 = 1_000_000;

fn profile(threads: u32, rate: &str, arguments: &[&str]) -> Option<Profile> {
    Some(Profiled::in_virtual_time("blamed", threads, rate, arguments)?.run().0)
}

/// Waiting threads look for tasks, and never sleep: a sleeping one may not be woken for a task.
fn profile_with_tasks(threads: u32, rate: &str, arguments: &[&str]) -> Option<Profile> {
    let mut profiled = Profiled::in_virtual_time("blamed", threads, rate, arguments)?;
    profiled.command.env("OMP_WAIT_POLICY", "active").env("KMP_BLOCKTIME", "infinite");
    Some(profiled.run().0)
}

/// Returns the profile and the durations of the program's parts by its own clock, nanoseconds.
fn profile_and_times(rate: &str, threads: u32, arguments: &[&str]) -> Option<(Profile, Vec<u64>)> {
    let mut profiled = Profiled::in_virtual_time("blamed", threads, rate, arguments)?;
    let output = profiled.command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let in_ns = |milliseconds: &str| (milliseconds.parse::<f64>().unwrap() * 1e6).round() as u64;
    Some((profiled.profile().unwrap().0, text.split_whitespace().map(in_ns).collect()))
}

fn balance(profile: &Profile, wait: Marker) -> Balance {
    let balances = conservation(&profile.tree);
    let of = |balance: &&Balance| balance.wait == wait;
    *balances.iter().find(of).unwrap_or_else(|| panic!("no waiting of kind {wait:?}"))
}

/// In the program's own code, and only in calls into the runtime, which no event reports.
const WORK: [&[&str]; 2] = [&[], &["asks"]];

/// Every kind of waiting is given to the nanosecond, idleness shared; and all time is in some state.
fn assert_balanced(profile: &Profile) {
    for balance in conservation(&profile.tree) {
        let charged = if balance.wait == Marker::Idle { balance.shared } else { balance.given };
        assert_eq!(charged, balance.taken, "{balance:?}");
    }
    let states: u64 =
        profile.totals.iter().filter(|(name, _)| name.starts_with("state.")).map(|(_, ns)| ns).sum();
    assert_eq!(states, profile.totals["capacity_ns"]);
}

/// And it equals the account, if no wait was open at the end. The account and the waits are kept separately.
/// In real time they differ slightly around the ends of regions, which two threads see.
fn assert_conserved(profile: &Profile) {
    assert_balanced(profile);
    for (marker, state) in [
        (Marker::Barrier, "barrier"),
        (Marker::JoinBarrier, "join_barrier"),
        (Marker::Taskwait, "taskwait"),
        (Marker::Taskgroup, "taskgroup"),
        (Marker::TaskwaitDepend, "taskwait_depend"),
        (Marker::Critical, "critical_wait"),
        (Marker::Target, "target_wait"),
    ] {
        let booked = profile.totals.get(&format!("state.{state}")).copied().unwrap_or(0);
        assert_eq!(profile.tree.total(Metric::taken(marker)), booked, "{state}");
    }
}

/// Unattributed value of a metric.
fn unattributed(profile: &Profile, metric: Metric) -> u64 {
    let nobody = profile.tree.find(ROOT, taskscope_profile::Frame::state(Marker::Nobody));
    nobody.map_or(0, |node| profile.tree.value(node, metric))
}

/// A metric at the paths with a function.
fn sum(profile: &Profile, metric: Metric, function: &str) -> u64 {
    Names::of(profile).sum_in(metric, function)
}

/// This much time was waited, and the slow part is to blame for all of it.
fn assert_blamed(profile: &Profile, wait: Marker, taken: u64) {
    assert_conserved(profile);
    assert_eq!(balance(profile, wait).taken, taken);
    let metric = Metric::given(wait);
    assert_eq!((sum(profile, metric, "slow_part"), sum(profile, metric, "quick_part")), (taken, 0));
}

/// Threads that wait for another one's start check every ten microseconds.
fn assert_near(found: u64, expected: u64) {
    assert!(found.abs_diff(expected) < MS, "{found} instead of {expected}");
}

#[test]
fn waiting_in_a_barrier_is_charged_to_the_last_threads_work() {
    for work in WORK {
        let Some(profile) = profile(3, "500", &[&["barrier", "60"], work].concat()) else { return };
        // Two threads wait in each of three rounds.
        assert_blamed(&profile, Marker::Barrier, 2 * 3 * 54 * MS);
    }
}

/// A member is delayed by what the last thread did while that member waited, and by the tasks for which the last
/// thread waited then; not by earlier work.
#[test]
fn waiting_in_a_barrier_is_charged_to_what_the_last_thread_did_meanwhile() {
    let Some(profile) = profile_with_tasks(3, "500", &["twice", "20"]) else { return };
    assert_conserved(&profile);
    let taken = balance(&profile, Marker::Barrier).taken;
    // In each of three rounds one thread waits for 24 ms, and the one that had the task for 4 ms.
    assert_near(taken, 3 * 28 * MS);
    let given = |function| sum(&profile, Metric::given(Marker::Barrier), function);
    assert_eq!(given("before_waiting"), 0);
    assert_near(given("slow_elsewhere"), 3 * 20 * MS);
    assert_near(given("after_waiting"), 3 * 8 * MS);
}

/// The same in a `single`, on whichever thread its task runs: two threads wait for the work before and after it.
#[test]
fn waiting_for_a_single_with_tasks_is_charged_to_its_work_and_its_tasks() {
    let Some(profile) = profile_with_tasks(3, "500", &["in-single", "20"]) else { return };
    assert_conserved(&profile);
    let taken = balance(&profile, Marker::Barrier).taken;
    let given = |function| sum(&profile, Metric::given(Marker::Barrier), function);
    assert_near(given("before_waiting"), 3 * 8 * MS);
    assert_near(given("after_waiting"), 3 * 8 * MS);
    assert_near(given("create_slow_part"), taken - 3 * 16 * MS);
}

#[test]
fn waiting_at_a_regions_end_is_charged_to_the_last_threads_work() {
    for work in WORK {
        let Some(profile) = profile(2, "500", &[&["join", "60"], work].concat()) else { return };
        assert_blamed(&profile, Marker::JoinBarrier, 3 * 54 * MS);
    }
}

/// Whether a wait is short is chance: its path does not depend on it.
#[test]
fn waits_at_a_regions_end_are_at_the_region_however_short() {
    for (milliseconds, each) in [("60", 54 * MS), ("0.001", 900)] {
        let Some(profile) = profile(2, "500", &["join", milliseconds]) else { return };
        assert_conserved(&profile);
        let (tree, taken) = (&profile.tree, Metric::taken(Marker::JoinBarrier));
        assert_eq!(tree.total(taken), 3 * each);
        for node in tree.ids().filter(|node| tree.value(*node, taken) > 0) {
            // The region is the innermost step, which no body follows.
            assert_eq!(tree.frame(tree.parent(node)).kind, FrameKind::User);
            assert_eq!(Names::of(&profile).functions(node).first().map(String::as_str), Some("joined"));
        }
    }
}

#[test]
fn idleness_is_charged_to_concurrent_work_also_before_workers_begin() {
    for (rate, work) in [("500", WORK[0]), ("100", WORK[0]), ("100", WORK[1])] {
        let Some(profile) = profile(6, rate, &[&["serial", "200"], work].concat()) else { return };
        assert_conserved(&profile);
        // Of six workers, those without work idle: beside serial parts, and beside two teams of two.
        let idle = |function| sum(&profile, Metric::shared(Marker::Idle), function) / MS;
        let found = ["set_up", "in_between", "tail", "in_small_team", "in_large_team"].map(idle);
        assert_eq!(found, [5 * 400, 5 * 200, 5 * 200, 4 * 2 * 200, 0], "at {rate} Hz {work:?}");
    }
}

/// It is sampled once, at its end, as if it were one period.
#[test]
fn code_that_sleeps_is_charged_with_the_time_of_it() {
    for (mode, rate, metric) in [
        ("sleeps", "200", Metric::given(Marker::Barrier)),
        ("sleeps-serially", "200", Metric::shared(Marker::Idle)),
        ("sleeps-serially", "200", Metric::TIME),
        // Two timers alternate if the kernel's ticks are 4 ms apart.
        ("sleeps-serially", "100", Metric::TIME),
    ] {
        // Not a multiple of a period, so samples hit all parts.
        let Some((profile, took)) = profile_and_times(rate, 3, &[mode, "23"]) else { return };
        assert_conserved(&profile);
        let [spins, sleeps] = ["spins", "sleeps"].map(|function| sum(&profile, metric, function) as f64);
        let (found, owed) = (spins / (spins + sleeps), took[0] as f64 / (took[0] + took[1]) as f64);
        assert!((found - owed).abs() < 0.05, "{mode}, {rate} Hz: {found} of it rather than {owed}");
    }
}

/// Serial work between two samples is not charged to the next team.
#[test]
fn idleness_beside_small_teams_is_theirs() {
    let Some((profile, took)) = profile_and_times("50", 8, &["small-teams", "25"]) else { return };
    assert_conserved(&profile);
    let idle = |function| sum(&profile, Metric::shared(Marker::Idle), function);
    assert_eq!((idle("team_of_one"), idle("team_of_two")), (7 * took[0], 6 * took[1]));
}

/// The profile of a process that is killed after 200 ms, just after a round of the writer.
fn profile_of_killed(threads: u32, what: &str) -> Option<Profile> {
    let mut profiled = Profiled::in_virtual_time("blamed", threads, "100", &[what, "200"])?;
    assert!(!profiled.command.output().unwrap().status.success());
    let profile = profiled.profile().expect("the last round's").0;
    assert_balanced(&profile);
    Some(profile)
}

/// No thread forks any more.
#[test]
fn idleness_beside_the_last_serial_code_of_a_killed_process_is_there() {
    let Some(profile) = profile_of_killed(4, "killed") else { return };
    let of = |metric| sum(&profile, metric, "tail");
    assert_eq!((of(Metric::WORK), of(Metric::shared(Marker::Idle))), (200 * MS, 3 * 200 * MS));
}

/// Nor is it sampled any more: it sleeps to the end.
#[test]
fn idleness_beside_the_last_task_of_a_killed_process_is_there() {
    let Some(profile) = profile_of_killed(3, "killed-in-task") else { return };
    let tree = &profile.tree;
    let task = tree.ids().find(|node| tree.value(*node, Metric::TASKS) > 0).unwrap();
    let body = tree.find(task, taskscope_profile::Frame::body(FrameKind::Task));
    let found = body.map_or(0, |body| tree.value(body, Metric::shared(Marker::Idle)));
    // One idles; for the first 20 ms another one works, too.
    assert_eq!(profile.totals["state.task"], 200 * MS);
    assert_eq!(found, 190 * MS);
}

#[test]
fn serial_parts_without_samples_are_charged_with_those_that_have_some() {
    let Some((profile, serial)) = profile_and_times("50", 3, &["short", "200"]) else { return };
    assert_conserved(&profile);
    // Forty parts of 4 ms, beside which two idle; a sample every 20 ms.
    let tree = &profile.tree;
    let forks = tree.ids().filter(|node| tree.value(*node, Metric::REGIONS) > 0);
    let at_forks: u64 = forks.map(|node| tree.value(node, Metric::shared(Marker::Idle))).sum();
    let sampled = sum(&profile, Metric::shared(Marker::Idle), "short_part");
    assert_eq!(sampled + at_forks, 2 * serial[0]);
    assert!(sampled > at_forks, "{sampled} in the parts, {at_forks} at the forks after them");
}

/// Inner regions are work for the enclosing team, as far as it waits for them.
#[test]
fn waiting_beside_inner_regions_is_given_to_what_ran_meanwhile() {
    let Some(profile) = profile(4, "500", &["nested", "40"]) else { return };
    assert_conserved(&profile);
    let given = |function| sum(&profile, Metric::given(Marker::Barrier), function);
    // In each 80 ms, one thread waits for half of the time: three times for the slow part, twice for the region after it.
    assert_eq!((given("inner_part"), given("slow_part")), (80 * MS, 120 * MS));
    assert_eq!(balance(&profile, Marker::Barrier).taken, 200 * MS);
}

#[test]
fn idleness_beside_serial_code_that_takes_free_locks_is_that_codes() {
    let Some((profile, took)) = profile_and_times("100", 3, &["free-locks", "150"]) else { return };
    assert_conserved(&profile);
    let metric = Metric::shared(Marker::Idle);
    assert_eq!(sum(&profile, metric, "take_free_locks"), 2 * took[0]);
    assert_eq!(unattributed(&profile, metric), 0);
}

/// As in a trace (`the_talks_master_is_to_blame` of the command's tests), wherever the lock is released.
#[test]
fn waiting_for_a_lock_is_given_to_where_its_holder_took_it() {
    let Some(profile) = profile(3, "500", &["lock", "200"]) else { return };
    assert_conserved(&profile);
    let given = |function| sum(&profile, Metric::given(Marker::Lock), function);
    assert_eq!((given("take_it"), given("give_it_back")), (2 * 200 * MS, 0));
}

/// The hundredth waits over a hundred holders; the first had the lock nearly all the time.
#[test]
fn the_holder_is_to_blame_however_often_the_lock_is_taken_meanwhile() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 100, "10", &["crowd", "200"]) else {
        return;
    };
    // Waiting threads sleep.
    profiled.command.env("KMP_LOCK_KIND", "futex");
    let profile = profiled.run().0;
    assert_conserved(&profile);
    assert_eq!(balance(&profile, Marker::Lock).taken, 99 * 200 * MS);
    assert_eq!(sum(&profile, Metric::given(Marker::Lock), "take_it"), 99 * 200 * MS);
}

/// The place of a task's work is its creation: the functions in it are not distinguished.
#[test]
fn waiting_for_children_is_given_to_those_that_run() {
    for (mode, wait, creator) in [
        ("children", Marker::Taskwait, "slow_elsewhere"),
        ("group", Marker::Taskgroup, "slow_elsewhere"),
        ("depend", Marker::TaskwaitDepend, "wait_for_children"),
    ] {
        let Some(profile) = profile_with_tasks(2, "100", &[mode, "20"]) else { return };
        assert_conserved(&profile);
        let given = balance(&profile, wait).given;
        assert_near(given, 3 * 20 * MS);
        assert_eq!(sum(&profile, Metric::given(wait), creator), given, "{mode}");
    }
}

/// Not to those that run on when the awaited one is over.
#[test]
fn waiting_for_dependences_is_given_to_the_child_that_ended_last() {
    let Some(profile) = profile_with_tasks(3, "100", &["beside", "20"]) else { return };
    assert_conserved(&profile);
    let given = balance(&profile, Marker::TaskwaitDepend).given;
    assert_near(given, 3 * 20 * MS);
    let to = |creator| sum(&profile, Metric::given(Marker::TaskwaitDepend), creator);
    assert_eq!((to("create_awaited"), to("create_unrelated")), (given, 0));
}

/// Target constructs with kernels that run for so many milliseconds on the host, in a region and outside of
/// any.
fn offloaded(arguments: &[&str]) -> Option<Profile> {
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    if !Compiler::Clang.is_installed() {
        return None;
    }
    let program = try_compile(Compiler::Clang, "offloaded", &flags)?;
    let mut profiled = Profiled::of(&program, 2, "500", arguments).with_virtual_time();
    // The same number of threads on a machine with one CPU.
    profiled.command.env("LD_LIBRARY_PATH", "/usr/lib/llvm-19/lib").env("OMP_TEAMS_THREAD_LIMIT", "2");
    // If the recorder of devices is installed, its stream is beside the profile.
    assert!(profiled.command.output().unwrap().status.success());
    let profile = profiled.profile().unwrap().0;
    assert_conserved(&profile);
    Some(profile)
}

/// The regions of a kernel that runs on the host interrupt the construct's wait.
#[test]
fn waiting_for_a_device_ends_where_the_kernels_regions_begin() {
    let Some(profile) = offloaded(&["20"]) else { return };
    assert_eq!(balance(&profile, Marker::Target).taken, 3 * 20 * MS, "three kernels without a region");
}

/// The runtime's own threads, which run such constructs, wait without blame.
#[test]
fn a_nowait_target_construct_has_no_waiting() {
    let Some(profile) = offloaded(&["30", "nowait"]) else { return };
    assert_eq!(profile.tree.total(Metric::taken(Marker::Target)), 0);
    assert_eq!(balance(&profile, Marker::Taskwait).taken, 30 * MS, "the task waits");
}

/// While the only forking thread waits for a device, no other thread works, and no sample hits work.
#[test]
fn idleness_during_device_work_is_at_its_construct() {
    let Some(profile) = offloaded(&["60"]) else { return };
    let tree = &profile.tree;
    let of = |node, metric| tree.value(node, metric);
    let constructs = tree.ids().filter(|node| of(*node, Metric::given(Marker::Target)) > 0);
    let idle: u64 = constructs.map(|node| of(node, Metric::shared(Marker::Idle))).sum();
    assert_eq!(idle, balance(&profile, Marker::Target).taken, "one worker idles for all of it");
}

#[test]
fn small_tasks_are_counted_exactly() {
    for threads in [1, 2, 3] {
        let Some(profiled) = Profiled::new("small", threads, "100", &[]) else { return };
        let (profile, _) = profiled.run();
        assert_balanced(&profile);
        assert_eq!(profile.tree.total(Metric::TASKS), 8360 + 512);
        let contexts = profile.tree.ids().filter(|id| profile.tree.value(*id, Metric::TASKS) > 0).count();
        // The compiler may have copied fib into itself.
        assert!(contexts >= 512 + 2, "{contexts}");
        // Every moment in a task is one of a task of some path.
        assert_eq!(profile.tree.total(Metric::TASK_TIME), profile.totals["state.task"]);
        assert_eq!(profile.tree.unfit(), 0);
    }
}

#[test]
fn many_short_waits_are_all_charged() {
    // Regions with a loop and tasks that wait: tens of thousands of waits, most of them short.
    let Some(profiled) = Profiled::new("storm", 4, "1000", &[]) else { return };
    let (profile, bytes) = profiled.run();
    assert_balanced(&profile);
    assert_eq!(profile.tree.total(Metric::TASKS), 2 * 1000 * 3);
    assert!(balance(&profile, Marker::Critical).taken > 0 && bytes < 100_000);
    assert_eq!(profile.tree.unfit(), 0);
    assert!(!profile.tree.ids().any(|node| profile.tree.frame(node).kind == FrameKind::Pending));
}

#[test]
fn a_killed_process_leaves_the_profile_of_the_last_round() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "200", &["forever", "5"]) else { return };
    let mut child = profiled.command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let since = Instant::now();
    while profiled.live().len() < 5 && since.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (profile, _) = profiled.profile().expect("the last round's");
    assert_eq!(profile.processes[0].get(key::FINISHED).map(String::as_str), Some("no"));
    let mut names = Names::of(&profile);
    assert!(names.sum_in(Metric::WORK, "slow_part") > 0);
    assert!(names.sum_in(Metric::REGIONS, "joined") > 0);
    assert!(balance(&profile, Marker::JoinBarrier).taken > 0);
    for balance in conservation(&profile.tree) {
        assert!(balance.holds(), "{balance:?}");
    }
    // Lines printed while it ran are partial sums.
    let lines = profiled.live();
    let of = |line: &serde_json::Value, key: &str| line[key].as_u64().unwrap();
    assert!(lines.windows(2).all(|two| of(&two[0], "useful_ns") <= of(&two[1], "useful_ns")));
    for line in &lines {
        let states: u64 = line["states"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(states, of(line, "capacity_ns"));
        assert_eq!(of(line, "capacity_ns"), of(line, "wall_ns") * of(line, "workers"));
    }
}

/// Nor, as in the ledger, is waiting until the pause lost.
#[test]
fn waiting_for_a_lock_counts_until_the_pause() {
    let Some(profile) = profile(2, "500", &["paused", "60"]) else { return };
    assert_conserved(&profile);
    let holder = sum(&profile, Metric::given(Marker::Critical), "pause_in_wait");
    assert_eq!((balance(&profile, Marker::Critical).taken, holder), (60 * MS, 60 * MS));
}

#[test]
fn time_in_a_pause_does_not_count() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "200", &["pause", "20"]) else { return };
    let output = profiled.command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let paused: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    let (profile, _) = profiled.profile().unwrap();
    assert_conserved(&profile);
    assert_eq!(profile.tree.total(Metric::REGIONS), 2, "one before and one after it");
    assert_eq!(profile.tree.total(Metric::TASKS) + profile.tree.total(Metric::TASK_TIME), 0);
    for wait in [Marker::Taskwait, Marker::Barrier] {
        assert_eq!(profile.tree.total(Metric::taken(wait)), 0, "{wait:?}");
    }
    // The initial thread is paused immediately, the worker at its next event, which comes with the first
    // region.
    let unknown = profile.totals["state.unknown"];
    assert!(unknown >= paused, "{unknown} of {paused}");
}

#[test]
fn a_program_that_starts_paused_counts_nothing() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "200", &["join", "20"]) else { return };
    profiled.command.env("TASKSCOPE_SWITCH", "off");
    let (profile, _) = profiled.run();
    assert_eq!(profile.tree.total(Metric::REGIONS) + profile.tree.total(Metric::SAMPLES), 0);
    let known = ["state.unknown", "state.not_started", "state.ended", "state.serial"];
    let mut states = profile.totals.keys().filter(|name| name.starts_with("state."));
    assert!(states.all(|name| known.contains(&name.as_str())), "{:?}", profile.totals);
    // The initial thread is paused before time passes.
    assert_eq!(profile.totals.get("state.serial").copied().unwrap_or(0), 0);
}

#[test]
fn the_program_can_have_it_written() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "200", &["flush", "20"]) else { return };
    profiled.command.env_remove("TASKSCOPE_LIVE");
    let output = profiled.command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    assert!(!output.status.success(), "it aborts");
    let (profile, _) = profiled.profile().expect("what was flushed");
    assert_eq!(profile.processes[0].get(key::FINISHED).map(String::as_str), Some("no"));
    assert_eq!(profile.tree.total(Metric::REGIONS), 1);
    assert_blamed(&profile, Marker::JoinBarrier, 18 * MS);
}

#[test]
fn a_process_that_exits_quickly_leaves_its_profile() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "500", &["quick", "20"]) else { return };
    assert_eq!(profiled.command.output().unwrap().status.code(), Some(3));
    let (profile, _) = profiled.profile().expect("a profile");
    assert_eq!(profile.processes[0][key::FINISHED], "yes");
    assert_conserved(&profile);
}

/// A process that ends without passing an intercepted function leaves the state of the last round; `_exit` is
/// intercepted.
#[test]
fn a_process_that_leaves_or_becomes_another_one_leaves_its_profile() {
    for (mode, milliseconds, finished) in
        [("leaves", 60, &["yes"][..]), ("leaves", 800, &["yes"]), ("becomes", 800, &["no", "yes"])]
    {
        let arguments = [mode, &milliseconds.to_string()];
        let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "200", &arguments) else { return };
        profiled.command.env_remove("TASKSCOPE_LIVE");
        assert_eq!(profiled.command.output().unwrap().status.code(), Some(3));
        let profiles = profiled.profiles();
        let mut are_finished: Vec<&str> =
            profiles.iter().map(|(profile, _)| profile.processes[0][key::FINISHED].as_str()).collect();
        are_finished.sort_unstable();
        assert_eq!(are_finished, finished, "{mode}: {:?}", profiled.files());
        for (profile, _) in &profiles {
            let worked = sum(profile, Metric::WORK, "slow_part");
            // Rounds of the writer come at about 200, 400 and 800 ms.
            let is_finished = profile.processes[0][key::FINISHED] == "yes";
            let least = if is_finished { milliseconds } else { milliseconds / 4 };
            assert!(
                (least * MS..=milliseconds * MS).contains(&worked),
                "{mode}: {worked} of {milliseconds} ms"
            );
        }
    }
}

/// A forked child that works, and exits by `_exit`.
#[test]
fn forked_children_leave_their_profiles() {
    let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "500", &["forked", "60"]) else { return };
    assert_eq!(profiled.command.output().unwrap().status.code(), Some(0));
    let profiles = profiled.profiles();
    assert_eq!(profiles.len(), 2, "{:?}", profiled.files());
    let mut regions = Vec::new();
    for (profile, _) in &profiles {
        assert_eq!(profile.processes[0][key::FINISHED], "yes");
        assert_eq!(profile.processes[0][key::WORKERS], "2", "its own ones");
        let process_regions = profile.tree.total(Metric::REGIONS);
        regions.push(process_regions);
        // The parent has had a region before the fork.
        assert_blamed(profile, Marker::JoinBarrier, process_regions * 54 * MS);
        assert_eq!(sum(profile, Metric::shared(Marker::Idle), "tail"), 60 * MS, "beside the last work");
    }
    regions.sort_unstable();
    assert_eq!(regions, [1, 2]);
}

/// Nor is it harmed if it exits in a signal handler that interrupted `malloc`: a lock that the writer waits
/// for may then never be released.
#[test]
fn a_process_may_leave_in_a_signal_handler() {
    for _ in 0..3 {
        let Some(mut profiled) = Profiled::in_virtual_time("blamed", 2, "500", &["forked-in-handler", "20"])
        else {
            return;
        };
        assert_eq!(profiled.command.output().unwrap().status.code(), Some(0));
        profiled.profiles().iter().for_each(|(profile, _)| assert_balanced(profile));
    }
}
