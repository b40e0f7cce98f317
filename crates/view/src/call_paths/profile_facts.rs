//! Facts of profiles: states, CPUs and completeness, from their metadata and sums.

use crate::format::{counted, percent};
use std::collections::BTreeMap;
use taskscope_execution::{Group, State};
use taskscope_profile::{Process, Profile, key};

/// Workers that share CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// Number of their processes.
    pub processes: u64,
    /// Workers of all.
    pub workers: u64,
    /// CPUs that they may use.
    pub cpus: u64,
}

/// The most crowded CPUs: those of one process, or of all processes of a host that have the same CPUs.
pub(crate) fn workers_on_cpus(processes: &[Process]) -> Option<Sharing> {
    let mut shared: BTreeMap<(Option<&String>, Option<&String>, usize), Sharing> = BTreeMap::new();
    for (number, process) in processes.iter().enumerate() {
        let number_of = |key: &str| Profile::number(process, key);
        let Some((workers, cpus)) =
            number_of(key::WORKERS).zip(number_of(key::CPUS).filter(|cpus| *cpus > 0))
        else {
            continue;
        };
        // Without its mask a process shares with none.
        let mask = process.get(key::CPU_MASK);
        let alone = if mask.is_some() { 0 } else { number + 1 };
        let row = shared.entry((process.get(key::HOST), mask, alone)).or_insert(Sharing {
            processes: 0,
            workers: 0,
            cpus,
        });
        row.processes += 1;
        row.workers = row.workers.saturating_add(workers);
        row.cpus = row.cpus.min(cpus);
    }
    let crowded = |a: &Sharing, b: &Sharing| {
        (a.workers as u128 * b.cpus as u128).cmp(&(b.workers as u128 * a.cpus as u128))
    };
    shared.into_values().max_by(crowded)
}

/// Number of times CPU limits were reached, and their cost; `None` if never.
pub(crate) fn throttling(processes: &[Process]) -> Option<String> {
    let of = |process: &Process| {
        let ns = Profile::number(process, key::THROTTLED_NS).filter(|ns| *ns > 0)?;
        let periods = Profile::number(process, key::THROTTLED_PERIODS)?;
        Some((ns, periods, Profile::number(process, key::CPU_QUOTA)?))
    };
    // Processes of one control group have the same counts.
    let (ns, periods, millicpus) = processes.iter().filter_map(of).max()?;
    Some(format!(
        "its control group was throttled {} for {} by the limit of {}",
        counted(periods, "time"),
        crate::format::time(ns),
        crate::format::cpu_limit(millicpus)
    ))
}

/// Number and time of the stops by signals of the longest stopped process; `None` without any.
pub(crate) fn stopped_text(processes: &[Process]) -> Option<String> {
    let number = |process: &Process, key: &str| Profile::number(process, key).filter(|number| *number > 0);
    let stops = processes
        .iter()
        .filter_map(|process| Some((number(process, key::STOPPED_NS)?, number(process, key::STOPS)?)));
    stops.max().map(|(ns, stops)| crate::format::stops(stops, ns))
}

/// The states that are estimated parts of others (`no_cpu.NAME` of the totals).
pub(super) fn is_estimated(state: &str) -> bool {
    matches!(state, "out_of_cpu" | "oversubscribed")
}

/// The least part of the workers' time without a CPU, in percent, that a report warns of.
const NO_CPU_PERCENT: u64 = 10;

/// The warning for more workers than CPUs, or for much time without a CPU, with its remedy.
pub(super) fn cpu_note(processes: &[Process], states: &[(&str, u64)]) -> Option<String> {
    // Damaged files have any numbers.
    let sum_of = |sum: u64, (_, ns): &(&str, u64)| sum.saturating_add(*ns);
    let capacity = states.iter().fold(0, sum_of);
    let no_cpu = states.iter().filter(|(name, _)| is_estimated(name)).fold(0, sum_of);
    let is_much = no_cpu > 0 && u128::from(no_cpu) * 100 >= u128::from(capacity) * u128::from(NO_CPU_PERCENT);
    let mut without =
        format!("workers lost {} of their time without a CPU (estimated)", percent(no_cpu, capacity));
    let throttling = throttling(processes);
    if let Some(text) = &throttling {
        without.push_str(&format!("; {text}"));
    }
    let stopped = stopped_text(processes);
    if let Some(text) = &stopped {
        without.push_str(&format!("; the process was {text}"));
    }
    match workers_on_cpus(processes).filter(|sharing| sharing.workers > sharing.cpus) {
        Some(Sharing { processes, workers, cpus }) => {
            let (processes_text, remedy) = match processes {
                1 => (String::new(), format!("try OMP_NUM_THREADS={cpus}, or allow more CPUs")),
                many => (
                    format!(" of {many} processes"),
                    "try fewer processes or threads, or CPUs of its own for each (mpirun --map-by, srun -c)"
                        .to_owned(),
                ),
            };
            let (workers, cpus) = (counted(workers, "worker"), counted(cpus, "CPU"));
            let warning = format!("warning: {workers}{processes_text}, {cpus} allowed");
            Some(if is_much { format!("{warning}: {without}; {remedy}") } else { warning })
        }
        None => is_much.then(|| {
            let who = if throttling.is_some() || stopped.is_some() {
                ""
            } else {
                ": other programs or a CPU limit took it"
            };
            format!("warning: {without}{who}; try a machine with free CPUs, or fewer threads")
        }),
    }
}

/// The number of processes with an incomplete profile, in a sentence. The reason is not recorded.
pub fn incomplete_profiles(processes: &[Process]) -> Option<String> {
    let is_incomplete =
        |process: &&Process| process.get(key::FINISHED).is_some_and(|finished| finished == "no");
    let incomplete = processes.iter().filter(is_incomplete).count();
    let all = counted(processes.len() as u64, "process");
    (incomplete > 0).then(|| {
        format!(
            "incomplete: {incomplete} of {all} did not write a profile at the end, so it is of the last time before: still \
             running, killed, gone by `exec`, or without room (full disk, `ulimit -f`)"
        )
    })
}

/// The workers' time by state, most first.
pub(crate) fn states_of(totals: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut states: Vec<(&str, u64)> = (totals.iter())
        .filter_map(|(name, ns)| Some((name.strip_prefix("state.")?, *ns)))
        .filter(|(_, ns)| *ns > 0)
        .collect();
    states.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    states
}

pub(super) fn state_named(name: &str) -> Option<State> {
    State::ALL.iter().copied().find(|state| state.name() == name)
}

/// The figures of `--live`: useful nanoseconds, and the state with most of the others.
pub(super) fn useful_and_largest_loss<'a>(states: &[(&'a str, u64)]) -> (u64, Option<(&'a str, u64)>) {
    let is_useful = |name: &str| state_named(name).is_some_and(|state| state.group() == Group::Useful);
    let (useful, lost): (Vec<_>, Vec<_>) = states.iter().copied().partition(|(name, _)| is_useful(name));
    let useful = useful.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    (useful, lost.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_paths::json::{ProfileReport, TableOptions};
    use crate::{CallPaths, Findings};
    use crate::{profile_efficiency, profile_summary, profile_times};
    use taskscope_profile::named::CallTree;

    fn tree(workers: u64, cpus: u64, states: &[(&str, u64)]) -> CallTree {
        let mut tree = CallTree::default();
        let says = [(key::WORKERS, workers), (key::CPUS, cpus)];
        let process = says.map(|(key, number)| (key.to_string(), number.to_string()));
        tree.processes = vec![process.into_iter().collect()];
        tree.totals = states.iter().map(|(name, ns)| (format!("state.{name}"), *ns)).collect();
        tree
    }

    fn note(workers: u64, cpus: u64, states: &[(&str, u64)]) -> Option<String> {
        let tree = tree(workers, cpus, states);
        cpu_note(&tree.processes, &states_of(&tree.totals))
    }

    #[test]
    fn time_without_a_cpu_has_its_reason_and_remedy() {
        let much = [("task", 40), ("out_of_cpu", 25), ("oversubscribed", 35)];
        assert_eq!(
            note(8, 2, &much).unwrap(),
            "warning: 8 workers, 2 CPUs allowed: workers lost 60.0 % of their time without a CPU (estimated); \
             try OMP_NUM_THREADS=2, or allow more CPUs"
        );
        let mut limited = tree(2, 2, &much);
        for (key, number) in
            [(key::CPU_QUOTA, "800"), (key::THROTTLED_PERIODS, "5"), (key::THROTTLED_NS, "474000000")]
        {
            limited.processes[0].insert(key.to_string(), number.to_string());
        }
        assert_eq!(
            cpu_note(&limited.processes, &states_of(&limited.totals)).unwrap(),
            "warning: workers lost 60.0 % of their time without a CPU (estimated); its control group was throttled 5 times \
             for 474 ms by the limit of 0.8 CPUs; try a machine with free CPUs, or fewer threads"
        );
        let others = note(2, 2, &much).unwrap();
        assert!(others.contains("other programs or a CPU limit"), "{others}");
        assert_eq!(
            note(8, 2, &[("task", 95), ("out_of_cpu", 5)]).unwrap(),
            "warning: 8 workers, 2 CPUs allowed"
        );
        assert_eq!(note(2, 2, &[("task", 95), ("out_of_cpu", 5)]), None);
        // As of a profile of before, which does not have the number of CPUs.
        let mut before = tree(8, 2, &[("task", 60), ("idle", 40)]);
        before.processes[0].remove(key::CPUS);
        assert_eq!(cpu_note(&before.processes, &states_of(&before.totals)), None);
    }

    #[test]
    fn the_start_of_mpi_is_in_no_efficiency() {
        let tree = tree(4, 4, &[("task", 60), ("idle", 20), ("mpi_start", 20)]);
        let (missing, waits, filtered) = (Vec::new(), Default::default(), Vec::new());
        let paths =
            CallPaths { tree, missing, quality: None, unfit: 0, waits, filtered, unknown_python: None };
        let parallel = (crate::run_numbers::NumberGroup::Efficiency, "parallel".to_owned());
        assert_eq!(crate::RunNumbers::from_profile(&paths).numbers[&parallel], 0.75);
    }

    #[test]
    fn estimated_states_are_marked() {
        let text = |tree: &CallTree| {
            let (tree, missing, filtered) = (tree.clone(), Vec::new(), Vec::new());
            let waits = Default::default();
            let paths =
                CallPaths { tree, missing, quality: None, unfit: 0, waits, filtered, unknown_python: None };
            let tables = paths.tables(&TableOptions::whole(false, None, 10));
            let report = ProfileReport::of(String::new(), Findings::from_profile(&paths), Vec::new(), tables);
            let run = &report.call_paths;
            profile_summary(run, "", 100, None) + &profile_efficiency(&report, 100) + &profile_times(run, 100)
        };
        let mut known = tree(4, 1, &[("task", 20), ("out_of_cpu", 80)]);
        let all = text(&known);
        let marked: Vec<&str> = all.lines().filter(|line| line.ends_with(" (estimated)")).collect();
        assert!(!all.contains("run_delay"), "{all}");
        known.totals.insert("runnable_ns".to_string(), 85);
        assert!(text(&known).contains("had no CPU for 85.0 % of their time (run_delay)"));
        assert_eq!(marked.len(), 1, "{all}");
        assert!(marked[0].contains("80.0 %") && all.contains("Parallel efficiency"), "{all}");
    }
}
