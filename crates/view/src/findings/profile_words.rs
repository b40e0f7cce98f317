//! Words for the findings of a profile: why threads had no CPU.

use crate::call_paths::profile_facts::{Sharing, states_of, stopped_text, throttling, workers_on_cpus};
use crate::format::counted;
use crate::words::Source;
use taskscope_execution::State;
use taskscope_profile::named::CallTree;
use taskscope_profile::{Metric, key};

/// Whether it is known when threads had no CPU.
pub(super) fn knows_off_cpu(tree: &CallTree) -> bool {
    tree.processes.iter().any(|process| process.get(key::NO_CPU).is_some_and(|how| how != "none"))
}

/// More workers than CPUs, in words.
fn sharing_words(sharing: Sharing) -> String {
    let (workers, cpus) = (counted(sharing.workers, "worker"), counted(sharing.cpus, "CPU"));
    match sharing.processes {
        1 => format!("{workers} share {cpus}"),
        many => format!("{workers} of {many} processes share {cpus}"),
    }
}

fn crowded(tree: &CallTree) -> Option<Sharing> {
    workers_on_cpus(&tree.processes).filter(|sharing| sharing.workers > sharing.cpus)
}

/// Several processes that share fewer CPUs than they have workers, in words.
pub(super) fn sharing_processes(tree: &CallTree) -> Option<String> {
    crowded(tree).filter(|sharing| sharing.processes > 1).map(sharing_words)
}

/// Whether signals had stopped the processes for more than one part in `parts` of the time without a CPU.
pub(super) fn is_stopped(tree: &CallTree, parts: u64) -> bool {
    let total = |name: &str| tree.totals.get(name).copied().unwrap_or(0);
    let no_cpu = match states_of(&tree.totals).is_empty() {
        // Without workers the samples alone have it.
        true => tree.tree.total(Metric::OUT_OF_CPU),
        false => total(&format!("state.{}", State::OutOfCpu.name())),
    };
    total(key::STOPPED_NS) > no_cpu / parts
}

/// The words for a profile.
pub(super) fn source_of_profile(tree: &CallTree, workers: &'static str) -> Source {
    let stopped = stopped_text(&tree.processes).map(|text| format!("the process was {text}"));
    let no_cpu = match (throttling(&tree.processes), sharing_processes(tree)) {
        (Some(text), _) => format!("threads had no CPU: {text}"),
        (None, Some(text)) => format!("threads had no CPU: {text}, with whatever else runs there"),
        (None, None) => "threads had no CPU: other code ran on their CPUs".to_owned(),
    };
    Source {
        what: "profile",
        workers,
        knows_off_cpu: knows_off_cpu(tree),
        waits_in_calls: false,
        no_cpu: match stopped {
            Some(text) if is_stopped(tree, 2) => format!("threads had no CPU: {text}"),
            Some(text) if is_stopped(tree, 20) => format!("{no_cpu}; {text}"),
            _ => no_cpu,
        },
        more_workers: match crowded(tree) {
            Some(sharing) => format!("more workers than CPUs: {}", sharing_words(sharing)),
            None => "more workers than CPUs".to_owned(),
        },
    }
}
