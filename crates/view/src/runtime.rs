//! The runtime of a recorded run, for advice in its terms.

use crate::call_paths::profile_facts::states_of;
use taskscope_cause::{Cause, Group, Runtime, State};
use taskscope_profile::Metric;
use taskscope_profile::named::CallTree;
use taskscope_session::Session;

/// The runtime of a recorded run; `None` if it cannot be derived.
pub fn of(session: &Session) -> Option<Runtime> {
    let whole = session.execution.whole();
    // The recorder's own events of threads are there in programs without OpenMP, too.
    let uses_openmp =
        !whole.regions.is_empty() || !whole.tasks.number.is_empty() || !whole.tasks.ty.is_empty();
    let models = session.events_by_model.iter().filter(|(_, events)| *events > 0).map(|(model, _)| *model);
    let models: Vec<&str> = models.filter(|model| uses_openmp || *model != "taskscope-omp").collect();
    let sampled = !whole.samples.rows.is_empty();
    let has_queues = !session.devices.queues.is_empty();
    let other_runtime = || sampled.then_some(Runtime::Threads).or(has_queues.then_some(Runtime::Devices));
    models_runtime(&models).or_else(other_runtime)
}

/// The runtime for the terms of advice on a cause: the deciding one, if it takes part in the run.
pub fn adviser(session: &Session, cause: Cause) -> Option<Runtime> {
    let models = session.events_by_model.iter().filter(|(_, events)| *events > 0);
    let has_calls = models.into_iter().any(|(model, _)| IS_OF_MPI.contains(model));
    let is_job = has_calls && session.execution.process_count() > 1;
    decider(cause, is_job).or_else(|| of(session))
}

/// The runtime of a profile. OpenMP is the one of tasks: recorders of others write traces.
pub fn profile_runtime(tree: &CallTree) -> Runtime {
    let states: Vec<State> =
        states_of(&tree.totals).iter().filter_map(|(name, _)| State::named(name)).collect();
    let has = |is: &dyn Fn(State) -> bool| states.iter().any(|state| is(*state));
    // Any process has time in the others.
    let is_of_openmp = |state: State| match state.group() {
        Group::Useful => state != State::Serial,
        Group::Runtime | Group::Mutex | Group::Device => true,
        Group::Sync => !is_call(state),
        Group::Start | Group::Idle | Group::Off | Group::Blocked | Group::Unknown => false,
    };
    let forks = [Metric::REGIONS, Metric::TASKS].iter().any(|metric| tree.tree.total(*metric) > 0);
    match () {
        () if forks || has(&is_of_openmp) => Runtime::OpenMp,
        () if has(&is_call) => Runtime::Mpi,
        () => Runtime::Threads,
    }
}

fn is_call(state: State) -> bool {
    matches!(state, State::Communication | State::MpiStart)
}

/// The runtime for the terms of advice on a cause in a profile.
pub fn adviser_of_profiles(tree: &CallTree, cause: Cause) -> Runtime {
    let states = states_of(&tree.totals);
    let has_calls = states.iter().any(|(name, _)| State::named(name).is_some_and(is_call));
    decider(cause, has_calls && tree.processes.len() > 1).unwrap_or_else(|| profile_runtime(tree))
}

/// The runtime that decides about a cause, if it takes part in the run; MPI does in a job of several processes.
fn decider(cause: Cause, is_mpi_job: bool) -> Option<Runtime> {
    cause.text().decided_by.filter(|runtime| *runtime != Runtime::Mpi || is_mpi_job)
}

/// Models with MPI events.
const IS_OF_MPI: [&str; 2] = ["mpi", "taskscope-messages"];

/// The one that gives out work, by the models that have events.
fn models_runtime(models: &[&str]) -> Option<Runtime> {
    let has = |model: &str| models.contains(&model);
    Some(match () {
        () if has("nanos6") => Runtime::Nanos6,
        () if has("nodes") => Runtime::Nodes,
        () if has("nosv") && has("openmp") => Runtime::OpenMpV,
        () if has("nosv") => Runtime::Nosv,
        () if has("openmp") || has("taskscope-omp") => Runtime::OpenMp,
        () if has("taskscope-instrument") => Runtime::Instrumented,
        () if IS_OF_MPI.iter().any(|model| has(model)) => Runtime::Mpi,
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Runtime::{Mpi, Nanos6, Nodes, Nosv, OpenMp, OpenMpV};

    #[test]
    fn the_runtime_that_gives_out_work_is_the_one_that_is_spoken_of() {
        let of = models_runtime;
        assert_eq!(of(&["ovni", "nanos6", "mpi", "tampi"]), Some(Nanos6));
        assert_eq!(of(&["ovni", "nosv", "nodes", "kernel"]), Some(Nodes));
        assert_eq!(of(&["ovni", "nosv", "openmp"]), Some(OpenMpV));
        assert_eq!(of(&["ovni", "nosv"]), Some(Nosv));
        assert_eq!(of(&["ovni", "openmp", "taskscope-messages"]), Some(OpenMp));
        assert_eq!(of(&["ovni", "mpi"]), Some(Mpi));
        assert_eq!(of(&["ovni"]), None);
    }

    #[test]
    fn the_runtime_of_a_profile_is_that_of_its_states() {
        let of = |states: &[State]| {
            let mut tree = CallTree::default();
            tree.totals = states.iter().map(|state| (format!("state.{}", state.name()), 1)).collect();
            profile_runtime(&tree)
        };
        assert_eq!(of(&[]), Runtime::Threads);
        assert_eq!(of(&[State::Serial, State::Blocked, State::OutOfCpu]), Runtime::Threads);
        assert_eq!(of(&[State::Serial, State::Communication]), Mpi);
        assert_eq!(of(&[State::Serial, State::Communication, State::JoinBarrier]), OpenMp);
        assert_eq!(of(&[State::Serial, State::TargetWait]), OpenMp);
    }
}
