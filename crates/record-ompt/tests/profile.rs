//! Profile mode: what the file of a process says about programs whose truth is known.

mod common;

use common::{Compiler, Run, compile, fresh_directory, tool};
use std::path::Path;
use taskscope_profile::{FrameKind, Marker, Metric, NodeId, Profile, conservation, key};
use taskscope_symbol::{LoadedModule, Symbolizer};

/// Runs a mode of `sampled.c` under profiling; what it wrote, and its size.
fn profile(threads: u32, rate: &str, arguments: &[&str]) -> Option<(Profile, u64)> {
    if !Compiler::Clang.is_installed() {
        return None;
    }
    let program = compile(Compiler::Clang, "sampled", &["-O2", "-lm", "-ldl", "-pthread"]);
    let directory = fresh_directory();
    let output = Run::program(Compiler::Clang, &program)
        .env("TASKSCOPE_TRACE_DIR", &directory)
        .env("TASKSCOPE_MODE", "profile")
        .env("TASKSCOPE_SAMPLE", rate)
        .env("TASKSCOPE_LIVE", "0.05")
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("LD_PRELOAD", tool())
        .command
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_profile = |path: &Path| path.extension().is_some_and(|extension| extension == "tsprof");
    let path = files.iter().find(|path| is_profile(path)).expect("a profile");
    assert!(files.iter().all(|path| !path.is_dir()), "no trace beside it: {files:?}");
    let bytes = std::fs::read(path).unwrap();
    let read = Profile::read(&bytes).unwrap();
    check_live(&files, &read);
    let _ = std::fs::remove_dir_all(&directory);
    Some((read, bytes.len() as u64))
}

/// The last line that was written while the program ran says no more than the end, and is of its kind.
fn check_live(files: &[std::path::PathBuf], profile: &Profile) {
    let Some(path) = files.iter().find(|path| path.extension().is_some_and(|e| e == "jsonl")) else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let mut before = 0;
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let work = line["work_ns"].as_u64().unwrap();
        assert!(before <= work && work <= *profile.totals.get("sampled.work_ns").unwrap_or(&0));
        before = work;
    }
}

/// Names the user frames of nodes; each file is opened once.
struct Names<'a> {
    profile: &'a Profile,
    symbolizers: Vec<Symbolizer>,
}

impl<'a> Names<'a> {
    fn of(profile: &'a Profile) -> Names<'a> {
        let symbolizers = (profile.modules.iter())
            .map(|module| {
                let (path, build_id) = (module.path.clone(), module.build_id.clone());
                Symbolizer::new(vec![LoadedModule { start: 0, end: u64::MAX, bias: 0, build_id, path }])
            })
            .collect();
        Names { profile, symbolizers }
    }

    /// The functions of a node's user frames in the program itself, innermost first.
    fn functions(&mut self, node: NodeId) -> Vec<String> {
        let is_program = |module: u32| {
            self.profile.modules.get(module as usize).is_some_and(|module| module.path.contains("sampled"))
        };
        let user = self.profile.tree.path(node).filter(|frame| frame.kind == FrameKind::User);
        user.filter(|frame| is_program(frame.module))
            .filter_map(|frame| {
                self.symbolizers.get_mut(frame.module as usize)?.call_place(frame.offset + 1).frame.function
            })
            .collect()
    }
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
        // At least 95 % of it at the path that held the lock, which is the region's body.
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
    let parts = [Metric::WORK, Metric::OVERHEAD, Metric::WAITING].map(|part| profile.tree.total(part));
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
    let Some((profile, _)) = profile(4, "1000", &["serial_between", "100"]) else { return };
    let (taken, shared) =
        (profile.tree.total(Metric::taken(Marker::Idle)), profile.tree.total(Metric::shared(Marker::Idle)));
    assert!(taken > 100_000_000, "{taken}");
    assert_eq!(shared, taken);
    let mut names = Names::of(&profile);
    let in_serial: u64 = (profile.tree.ids())
        .filter(|node| names.functions(*node).iter().any(|name| name == "serial_part"))
        .map(|node| profile.tree.value(node, Metric::shared(Marker::Idle)))
        .sum();
    assert!(in_serial * 100 >= shared * 90, "{in_serial} of {shared}");
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
