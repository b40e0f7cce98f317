//! Profile mode: what the file of a process says about programs whose truth is known.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::profiled::{Names, Profiled};
use common::tool_under_old_kinds;
use taskscope_profile::{Marker, Metric, Profile, conservation, key};

/// Runs a mode of `sampled.c` under profiling; what it wrote, and its size.
fn profile(threads: u32, rate: &str, arguments: &[&str]) -> Option<(Profile, u64)> {
    Some(Profiled::new("sampled", threads, rate, arguments)?.run())
}

#[test]
fn what_is_waited_is_what_is_blamed() {
    for threads in [2, 4] {
        let Some((profile, _)) = profile(threads, "1000", &["waits", "40"]) else { return };
        let balances = conservation(&profile.tree);
        let lock = balances.iter().find(|balance| balance.wait == Marker::Lock).expect("waits for the lock");
        assert!(lock.taken > 0);
        assert_eq!(lock.given, lock.taken, "to the nanosecond");
        for balance in &balances {
            assert!(balance.holds(), "{balance:?}");
        }
        // At least 95 % of it where the lock was taken, which is in the region's body.
        let given = Metric::given(Marker::Lock);
        let mut names = Names::of(&profile);
        let blamed: u64 = (profile.tree.ids())
            .filter(|node| names.functions(*node).first().is_some_and(|name| name == "main"))
            .map(|node| profile.tree.value(node, given))
            .sum();
        assert!(blamed * 100 >= lock.given * 95, "{blamed} of {}", lock.given);
    }
}

#[test]
fn paths_of_workers_go_on_where_their_region_was_forked() {
    let Some((profile, _)) = profile(2, "1000", &["work", "200"]) else { return };
    let (mut in_workers, mut names) = (0, Names::of(&profile));
    for node in profile.tree.ids().filter(|node| profile.tree.value(*node, Metric::WORK) > 0) {
        let path = names.functions(node);
        // A sample may fall into the runtime's start, before it has made itself known.
        if path.iter().any(|name| name == "in_region") && path.iter().any(|name| name == "with_array") {
            in_workers += profile.tree.value(node, Metric::WORK);
            let depth = |wanted: &str| path.iter().filter(|name| *name == wanted).count();
            assert_eq!((depth("with_array"), depth("main")), (1, 1), "{path:?}");
        }
    }
    // Two threads work for 200 ms each, if the machine lets them.
    assert!(in_workers > 100_000_000, "{in_workers}");
    assert_eq!(profile.tree.total(Metric::REGIONS), 1);
    let taken = profile.tree.total(Metric::TIME);
    let parts = [Metric::WORK, Metric::RUNTIME, Metric::WAITING, Metric::OUT_OF_CPU]
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
        assert!(profile.tree.value(node, Metric::TASK_TIME) >= 8 * 5_000_000, "eight times 5 ms");
    }
}

#[test]
fn idleness_is_shared_by_those_that_work() {
    let Some(profiled) = Profiled::new("sampled", 4, "1000", &["serial_between", "100"]) else { return };
    assert_idleness_in_serial_part(&profiled.run().0);
}

/// LLVM's runtimes up to 16 do not tell the barriers at the ends of regions, in which workers idle, from others.
#[test]
fn workers_idle_between_regions_whatever_the_runtime_calls_it() {
    let Some(mut profiled) = Profiled::new("sampled", 4, "1000", &["serial_between", "100"]) else { return };
    profiled.command.env("LD_PRELOAD", tool_under_old_kinds());
    let profile = profiled.run().0;
    assert_idleness_in_serial_part(&profile);
    let (idle, barrier) =
        (profile.tree.total(Metric::taken(Marker::Idle)), profile.tree.total(Metric::taken(Marker::Barrier)));
    assert!(idle > 100_000_000 && barrier == 0, "{idle} idle, {barrier} at barriers of loops");
}

/// Three workers idle beside four serial parts of 100 ms. How long they take to begin and to end is the machine's affair.
fn assert_idleness_in_serial_part(profile: &Profile) {
    const IN_SERIAL_PARTS_NS: u64 = 3 * 4 * 100_000_000;
    let (taken, shared) =
        (profile.tree.total(Metric::taken(Marker::Idle)), profile.tree.total(Metric::shared(Marker::Idle)));
    assert!(taken > 100_000_000, "{taken}");
    assert_eq!(shared, taken);
    let mut names = Names::of(profile);
    let in_serial: u64 = (profile.tree.ids())
        .filter(|node| names.functions(*node).iter().any(|name| name == "serial_part"))
        .map(|node| profile.tree.value(node, Metric::shared(Marker::Idle)))
        .sum();
    assert!(in_serial * 100 >= IN_SERIAL_PARTS_NS * 95, "{in_serial} of {shared}");
}

/// Somebody builds it anew while it runs: the system says then that its file is deleted.
#[test]
fn names_are_found_in_a_program_that_was_replaced_by_the_same_build() {
    let Some(mut profiled) = Profiled::new("sampled", 2, "500", &["phases", "60"]) else { return };
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
    assert!(named > 0 && named * 10 >= work * 9, "{named} of {work}: {:?}", profile.modules);
}

/// Threads that wait for work are woken by every signal: many of them to a CPU are sampled more rarely, and
/// each sample stands for the time that has passed.
#[test]
fn many_threads_on_a_cpu_are_sampled_more_rarely() {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let threads = (32 * cpus).min(256);
    let Some(mut profiled) = Profiled::new("sampled", threads, "1000", &["serial_between", "300"]) else {
        return;
    };
    profiled.command.env("KMP_BLOCKTIME", "0");
    let (profile, _) = profiled.run();
    let (samples, time) = (profile.tree.total(Metric::SAMPLES), profile.tree.total(Metric::TIME));
    assert!(samples > u64::from(threads), "{samples}");
    let least = if threads == 32 * cpus { 2_000_000 } else { 1_000_000 };
    assert!(time / samples >= least, "a sample stands for {} ns", time / samples);
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
