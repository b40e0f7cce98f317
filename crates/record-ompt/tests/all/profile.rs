//! Profile mode: content of a process's file for programs with known truth.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::profiled::{Names, Profiled};
use crate::common::tool_under_old_kinds;
use taskscope_profile::{Marker, Metric, Profile, conservation, key};

const MS: u64 = 1_000_000;

/// Runs a mode of `sampled.c` under profiling, in virtual time; returns its profile, and the file's size.
fn profile(threads: u32, rate: &str, arguments: &[&str]) -> Option<(Profile, u64)> {
    Some(Profiled::in_virtual_time("sampled", threads, rate, arguments)?.run())
}

#[test]
fn waited_time_equals_blamed_time() {
    for threads in [2, 4] {
        let Some((profile, _)) = profile(threads, "1000", &["waits", "40"]) else { return };
        let balances = conservation(&profile.tree);
        let lock = balances.iter().find(|balance| balance.wait == Marker::Lock).expect("waits for the lock");
        // In each round each waits for all before it; at the barrier those that are done wait for the rest.
        let threads = u64::from(threads);
        assert!(lock.taken >= threads * (threads - 1) / 2 * 40 * MS, "{}", lock.taken);
        assert_eq!(lock.given, lock.taken, "to the nanosecond");
        for balance in &balances {
            assert!(balance.holds(), "{balance:?}");
        }
        // All of it at the lock's acquisition, which is in the region's body.
        let given = Metric::given(Marker::Lock);
        let mut names = Names::of(&profile);
        let blamed: u64 = (profile.tree.ids())
            .filter(|node| names.functions(*node).first().is_some_and(|name| name == "main"))
            .map(|node| profile.tree.value(node, given))
            .sum();
        assert_eq!(blamed, lock.given);
    }
}

#[test]
fn paths_of_workers_continue_at_the_fork_of_their_region() {
    let Some((profile, _)) = profile(2, "1000", &["work", "200"]) else { return };
    let (mut in_workers, mut names) = (0, Names::of(&profile));
    for node in profile.tree.ids().filter(|node| profile.tree.value(*node, Metric::WORK) > 0) {
        let path = names.functions(node);
        if path.iter().any(|name| name == "in_region") && path.iter().any(|name| name == "with_array") {
            in_workers += profile.tree.value(node, Metric::WORK);
            let depth = |wanted: &str| path.iter().filter(|name| *name == wanted).count();
            assert_eq!((depth("with_array"), depth("main")), (1, 1), "{path:?}");
        }
    }
    // Two threads work for 200 ms each.
    assert_eq!(in_workers, 2 * 200 * MS);
    assert_eq!(profile.tree.total(Metric::REGIONS), 1);
    let taken = profile.tree.total(Metric::TIME);
    let parts = [Metric::WORK, Metric::RUNTIME, Metric::WAITING, Metric::BLOCKED, Metric::OUT_OF_CPU]
        .map(|part| profile.tree.total(part));
    assert_eq!(parts.iter().sum::<u64>(), taken, "every nanosecond is in one part");
}

#[test]
fn tasks_count_at_the_path_of_their_creation() {
    let Some((profile, _)) = profile(2, "200", &["tasks", "5"]) else { return };
    let created: Vec<_> =
        profile.tree.ids().filter(|node| profile.tree.value(*node, Metric::TASKS) > 0).collect();
    assert_eq!(profile.tree.total(Metric::TASKS), 8);
    let mut names = Names::of(&profile);
    for node in created {
        let path = names.functions(node);
        assert_eq!(path.first().map(String::as_str), Some("create_tasks"), "{path:?}");
        assert_eq!(profile.tree.value(node, Metric::TASK_TIME), 8 * 5 * MS);
    }
}

#[test]
fn idleness_is_shared_by_those_that_work() {
    let Some((profile, _)) = profile(4, "1000", &["serial_between", "100"]) else { return };
    assert_idleness_in_serial_part(&profile);
}

/// LLVM's runtimes up to 16 do not distinguish the barriers at the ends of regions, in which workers idle,
/// from others.
#[test]
fn workers_idle_between_regions_in_both_barrier_kinds() {
    let Some(mut profiled) = Profiled::new("sampled", 4, "1000", &["serial_between", "100"]) else { return };
    profiled.command.env("LD_PRELOAD", tool_under_old_kinds());
    let profile = profiled.with_virtual_time().run().0;
    assert_idleness_in_serial_part(&profile);
    assert_eq!(profile.tree.total(Metric::taken(Marker::Barrier)), 0, "at barriers of loops");
}

/// Three workers idle beside four serial parts of 100 ms.
fn assert_idleness_in_serial_part(profile: &Profile) {
    const IN_SERIAL_PARTS_NS: u64 = 3 * 4 * 100 * MS;
    assert_eq!(profile.tree.total(Metric::taken(Marker::Idle)), IN_SERIAL_PARTS_NS);
    let in_serial = Names::of(profile).sum_in(Metric::shared(Marker::Idle), "serial_part");
    assert_eq!(in_serial, IN_SERIAL_PARTS_NS);
}

/// The program is rebuilt while it runs: the system then reports its file as deleted.
#[test]
fn names_are_found_in_a_program_that_was_replaced_by_the_same_build() {
    let Some(mut profiled) = Profiled::in_virtual_time("sampled", 2, "500", &["phases", "60"]) else {
        return;
    };
    let program = profiled.directory.with_extension("sampled");
    std::fs::copy(profiled.command.get_program(), &program).unwrap();
    let mut command = Command::new(&program);
    let variables = profiled.command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.envs(variables).args(profiled.command.get_args());
    profiled.command = command;
    let mut child = profiled.command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // It has been started, and waits for a line before it calls the runtime.
    let copy = program.with_extension("copy");
    std::fs::copy(&program, &copy).unwrap();
    std::fs::rename(&copy, &program).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    let (profile, _) = profiled.profile().unwrap();
    let named = Names::of(&profile).sum_in(Metric::WORK, "with_array");
    let work = profile.tree.total(Metric::WORK);
    let _ = std::fs::remove_file(&program);
    assert_eq!((named, work), (2 * 60 * MS, 2 * 60 * MS), "{:?}", profile.modules);
}

/// Threads that wait for work are woken by every signal: with many per CPU they are sampled more rarely, and
/// each sample represents the elapsed time.
#[test]
fn many_threads_on_a_cpu_are_sampled_more_rarely() {
    // Virtual time has two CPUs.
    let threads = 32 * 2;
    let Some((profile, _)) = profile(threads, "1000", &["serial_between", "10"]) else { return };
    let (samples, time) = (profile.tree.total(Metric::SAMPLES), profile.tree.total(Metric::TIME));
    assert!(samples > u64::from(threads), "{samples}");
    // Half as often, but for the first ones, when there were few threads.
    assert!(time / samples >= 1_500_000, "a sample stands for {} ns", time / samples);
}

#[test]
fn a_longer_run_makes_no_larger_file() {
    let Some((short, bytes)) = profile(2, "500", &["waits", "10"]) else { return };
    let (long, more) = profile(2, "500", &["waits", "150"]).unwrap();
    assert!(more < bytes * 3 + 4096, "{bytes} and {more} bytes");
    assert!(more < 100_000);
    for profile in [short, long] {
        let process = &profile.processes[0];
        assert_eq!(process.get(key::FINISHED).map(String::as_str), Some("yes"));
        assert_eq!(Profile::number(process, key::WORKERS), Some(2));
    }
}
