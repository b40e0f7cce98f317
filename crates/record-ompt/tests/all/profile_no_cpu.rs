//! Profiles of programs with threads that have no CPU for most of the time, on a machine of any load.

use crate::common::profiled::Profiled;
use std::process::{Child, Command, Stdio};
use taskscope_profile::{Marker, Metric, Process, Profile, conservation, key};

/// The CPUs of a test, by their numbers.
fn allowed_cpus() -> Vec<usize> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let range = |part: &str| -> std::ops::RangeInclusive<usize> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().unwrap()..=last.parse().unwrap()
    };
    list.split(',').flat_map(range).collect()
}

/// `command` on the first so many CPUs only. None without them, or without `taskset`.
fn on_cpus(cpus: usize, command: &Command) -> Option<Command> {
    let allowed = allowed_cpus();
    let list: Vec<String> = allowed.get(..cpus)?.iter().map(usize::to_string).collect();
    Command::new("taskset").arg("--version").stdout(Stdio::null()).status().ok()?;
    let mut limited = Command::new("taskset");
    limited.arg("-c").arg(list.join(",")).arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(limited)
}

/// Programs that take CPUs for as long as this lives.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn begin(count: usize, cpus: usize) -> Option<BusyLoops> {
        let mut looping = Command::new("sh");
        looping.args(["-c", "while :; do :; done"]);
        let children = (0..count).map(|_| Some(on_cpus(cpus, &looping)?.spawn().unwrap()));
        Some(BusyLoops(children.collect::<Option<_>>()?))
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A profile, and the kernel's figures for the run, nanoseconds.
struct Crowded {
    profile: Profile,
    live: Vec<serde_json::Value>,
    on_cpu: u64,
    delay: u64,
}

impl Crowded {
    /// None without a compiler, so many CPUs, or `schedstat`.
    fn run(threads: u32, cpus: usize, arguments: &[&str]) -> Option<Crowded> {
        if !std::path::Path::new("/proc/self/schedstat").exists() {
            return None;
        }
        let mut profiled = Profiled::new("crowded", threads, "500", arguments)?;
        profiled.command = on_cpus(cpus, &profiled.command)?;
        profiled.command.env_remove("TASKSCOPE_OS_TIME");
        let output = profiled.command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let sums: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [on_cpu, delay] = [sums[0], sums[1]].map(|ms| (ms * 1e6) as u64);
        let (profile, live) = (profiled.profile().expect("a profile").0, profiled.live());
        Some(Crowded { profile, live, on_cpu, delay })
    }

    fn state(&self, name: &str) -> u64 {
        self.profile.totals.get(&format!("state.{name}")).copied().unwrap_or(0)
    }

    fn capacity(&self) -> u64 {
        self.profile.totals["capacity_ns"]
    }

    fn no_cpu(&self) -> u64 {
        self.state("out_of_cpu") + self.state("oversubscribed")
    }

    fn useful(&self) -> u64 {
        ["task", "worksharing", "masked", "implicit_task", "serial"].map(|name| self.state(name)).iter().sum()
    }

    fn process(&self, key: &str) -> u64 {
        let process: &Process = &self.profile.processes[0];
        Profile::number(process, key).unwrap()
    }

    /// The states sum to the capacity, time moved from some is in two others, and all of each kind of wait is
    /// charged.
    fn assert_conserved(&self) {
        let sum = |family: &str| -> u64 {
            self.profile.totals.iter().filter(|(name, _)| name.starts_with(family)).map(|(_, ns)| ns).sum()
        };
        assert_eq!(sum("state."), self.capacity());
        assert_eq!(sum("no_cpu."), self.no_cpu());
        for balance in conservation(&self.profile.tree) {
            let charged = if balance.wait == Marker::Idle { balance.shared } else { balance.given };
            assert_eq!(charged, balance.taken, "{balance:?}");
        }
        let total = |metric| self.profile.tree.total(metric);
        let parts =
            [Metric::WORK, Metric::RUNTIME, Metric::WAITING, Metric::BLOCKED, Metric::OUT_OF_CPU].map(total);
        assert_eq!(parts.iter().sum::<u64>(), total(Metric::TIME));
    }

    /// The state, other than useful ones, in which most was spent.
    fn largest_loss(&self) -> &str {
        let useful = ["task", "worksharing", "masked", "implicit_task", "serial"];
        let states =
            self.profile.totals.iter().filter_map(|(name, ns)| Some((name.strip_prefix("state.")?, ns)));
        states.filter(|(name, _)| !useful.contains(name)).max_by_key(|(_, ns)| **ns).unwrap().0
    }
}

const MODES: [&[&str]; 4] =
    [&["short-regions", "1000"], &["one-works", "8"], &["with-lock", "60"], &["many-tasks", "600"]];

#[test]
fn more_workers_than_cpus_is_the_largest_loss() {
    for mode in MODES {
        let Some(run) = Crowded::run(4, 1, mode) else { return };
        run.assert_conserved();
        assert_eq!((run.process(key::CPUS), run.process(key::WORKERS)), (1, 4));
        assert!(
            matches!(run.largest_loss(), "out_of_cpu" | "oversubscribed"),
            "{mode:?}: {}",
            run.largest_loss()
        );
        // Three of four have none at each moment, and by the kernel's figures, if they do not sleep.
        let (no_cpu, capacity) = (run.no_cpu(), run.capacity());
        assert!(no_cpu * 100 >= capacity * 70, "{mode:?}: {no_cpu} of {capacity}");
        assert!(no_cpu + capacity / 20 >= run.delay, "{mode:?}: {no_cpu}, run delay {}", run.delay);
        assert!(run.useful() * 100 <= capacity * 27, "{mode:?}: {} of {capacity}", run.useful());
    }
}

#[test]
fn beside_other_programs_work_takes_no_longer_than_it_has_cpus() {
    let Some(_others) = BusyLoops::begin(8, 2) else { return };
    // Each run is short compared with the windows of the estimate, if other programs run too.
    let (mut useful, mut on_cpu) = (0, 0);
    for mode in MODES {
        let Some(run) = Crowded::run(2, 2, mode) else { return };
        run.assert_conserved();
        assert_eq!(run.process(key::CPUS), 2);
        assert_eq!(run.state("oversubscribed"), 0, "{mode:?}: a CPU for each worker");
        (useful, on_cpu) = (useful + run.useful(), on_cpu + run.on_cpu);
        // A thread that waits beside one working on a CPU waits for that one, whether it has a CPU itself or
        // not.
        let no_cpu = run.no_cpu();
        assert!(no_cpu * 2 >= run.delay, "{mode:?}: {no_cpu}, run delay {}", run.delay);
        assert_eq!(run.largest_loss(), "out_of_cpu", "{mode:?}");
    }
    assert!(useful * 4 <= on_cpu * 5, "{useful} useful, {on_cpu} on CPUs");
}

#[test]
fn work_without_a_cpu_is_at_its_path() {
    let Some(run) = Crowded::run(3, 1, &["many-tasks", "1000"]) else { return };
    let tree = &run.profile.tree;
    let both = |metric| tree.ids().filter(|node| tree.value(*node, metric) > 0).count();
    assert!(both(Metric::WORK) > 0);
    // Samples without a CPU are at work, and at no other node.
    for node in tree.ids().filter(|node| tree.value(*node, Metric::OUT_OF_CPU) > 0) {
        let (off, time) = (tree.value(node, Metric::OUT_OF_CPU), tree.value(node, Metric::TIME));
        assert!(off <= time && tree.frame(node).kind.is_user(), "{off} of {time}");
    }
}

#[test]
fn totals_so_far_have_time_without_a_cpu() {
    let Some(run) = Crowded::run(4, 1, &["many-tasks", "2000"]) else { return };
    let last = run.live.last().expect("it runs for longer than 50 ms");
    assert_eq!(
        last["states"].as_object().unwrap().values().filter_map(|ns| ns.as_u64()).sum::<u64>(),
        last["capacity_ns"]
    );
    let of = |name: &str| last["states"][name].as_u64().unwrap_or(0);
    assert!(of("out_of_cpu") + of("oversubscribed") > 0, "{last}");
}

#[test]
fn without_readings_states_are_as_threads_know_them() {
    let Some(profiled) = Profiled::new("crowded", 4, "500", &["short-regions", "200"]) else { return };
    let mut profiled = profiled;
    profiled.command.env("TASKSCOPE_OS_TIME", "off");
    assert!(profiled.command.output().unwrap().status.success());
    let profile = profiled.profile().unwrap().0;
    assert!(!profile.totals.keys().any(|name| name.contains("no_cpu") || name.contains("out_of_cpu")));
    assert_eq!(profile.processes[0][key::NO_CPU], "none");
}
