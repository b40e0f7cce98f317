//! What helps in the words of one runtime: its own constructs, calls and settings.
//!
//! What holds for every runtime is in [`explain`](crate::explain). A setting is named only where the runtime has it.

use taskscope_session::Session;

/// A runtime, or what else a program has its parallelism from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// OpenMP with its own threads.
    OpenMp,
    /// OpenMP-V, which runs on nOS-V.
    OpenMpV,
    /// OmpSs-2 on Nanos6.
    Nanos6,
    /// OmpSs-2 on NODES, which runs on nOS-V.
    Nodes,
    /// nOS-V's own interface.
    Nosv,
    /// A program that instruments itself.
    Instrumented,
    /// MPI, and no runtime of tasks in its processes.
    Mpi,
    /// Threads that nothing but samples tells of.
    Threads,
}

impl Runtime {
    /// The runtime of a recorded run; none where nothing tells.
    pub fn of(session: &Session) -> Option<Runtime> {
        let models = session.events_by_model.iter().filter(|(_, events)| *events > 0);
        let models: Vec<&str> = models.map(|(model, _)| *model).collect();
        let sampled = !session.execution.samples.rows.is_empty();
        Runtime::of_models(&models).or_else(|| sampled.then_some(Runtime::Threads))
    }

    /// The one that gives out work, by the models that have events.
    fn of_models(models: &[&str]) -> Option<Runtime> {
        let has = |model: &str| models.contains(&model);
        Some(match () {
            () if has("nanos6") => Runtime::Nanos6,
            () if has("nodes") => Runtime::Nodes,
            () if has("nosv") && has("openmp") => Runtime::OpenMpV,
            () if has("nosv") => Runtime::Nosv,
            () if has("openmp") || has("taskscope-omp") => Runtime::OpenMp,
            () if has("taskscope-instrument") => Runtime::Instrumented,
            () if has("mpi") || has("taskscope-messages") => Runtime::Mpi,
            () => return None,
        })
    }

    /// The name for a person.
    pub const fn name(self) -> &'static str {
        match self {
            Runtime::OpenMp => "OpenMP",
            Runtime::OpenMpV => "OpenMP-V",
            Runtime::Nanos6 => "Nanos6",
            Runtime::Nodes => "NODES",
            Runtime::Nosv => "nOS-V",
            Runtime::Instrumented => "instrumented",
            Runtime::Mpi => "MPI",
            Runtime::Threads => "threads",
        }
    }
}

use Runtime::{Instrumented, Mpi, Nanos6, Nodes, Nosv, OpenMp, OpenMpV, Threads};

/// What helps, for these runtimes.
type Row = (&'static [Runtime], &'static str);

/// By name; several names may share their rows.
const ADVICE: &[(&[&str], &[Row])] = &[
    (
        &["lock-held", "contended-lock", "lock.wait", "lock_wait", "critical_wait"],
        &[
            (&[OpenMp, OpenMpV], "Replace a critical construct by atomic or by a reduction."),
            (
                &[Nanos6, Nodes],
                "Let dependences do it: tasks with a `commutative` access to the same data exclude each other without a lock \
                 and leave their CPUs to others; `concurrent` or `reduction` where the order does not matter.",
            ),
            (
                &[Nosv],
                "nosv_mutex_lock lets the task leave its CPU while it waits; a pthread mutex keeps the CPU.",
            ),
            (
                &[Threads],
                "Atomic operations, a lock per part of the data, or sums per thread that are joined at the end.",
            ),
        ],
    ),
    (
        &["serial-code"],
        &[
            (
                &[OpenMp, OpenMpV],
                "A task or a parallel region for it; `nowait` to overlap it with what follows.",
            ),
            (
                &[Nanos6, Nodes],
                "A task for it, with its dependences, so that it overlaps others; initialise data in tasks too.",
            ),
            (&[Nosv], "Submit it as a task, or submit other tasks before it."),
        ],
    ),
    (
        &["few-tasks", "low-parallelism", "too-coarse", "drain"],
        &[
            (
                &[OpenMp, OpenMpV],
                "`depend` in place of taskwait and barriers; `priority` for the tasks of the long chain.",
            ),
            (
                &[Nanos6],
                "`priority` for the tasks of the long chain (scheduler.priority, on by default); dependences in place of \
                 taskwait; weak accesses (`weakin`, `weakout`), so that nested tasks start before their parents' inputs are \
                 all there. Try NANOS6_CONFIG_OVERRIDE=scheduler.policy=lifo, and scheduler.immediate_successor between 0 and 1.",
            ),
            (
                &[Nodes],
                "`priority` for the tasks of the long chain; dependences in place of taskwait; weak accesses (`weakin`, \
                 `weakout`), so that nested tasks start before their parents' inputs are all there.",
            ),
            (
                &[Nosv],
                "nosv_set_task_priority for the tasks of the long chain; nosv_flush_submit_window where tasks wait in a window.",
            ),
        ],
    ),
    (
        &["small-tasks", "too-fine"],
        &[
            (&[OpenMp, OpenMpV], "`final` with `mergeable`, `if`; taskloop with a grainsize."),
            (&[Nanos6, Nodes], "`final`, `if(0)` below a size; taskloop with a grainsize."),
            (
                &[Nosv],
                "Several elements a task; nosv_set_submit_window_size, so that several tasks are submitted at once.",
            ),
        ],
    ),
    (
        &["imbalance"],
        &[(
            &[OpenMp, OpenMpV],
            "schedule(dynamic) or (guided) with a chunk that costs some tens of microseconds; collapse(2) on nested loops, so \
             that there are more iterations to share.",
        )],
    ),
    (
        &["task-creation", "create.wait", "task_creation"],
        &[
            (&[OpenMp, OpenMpV], "taskloop, or nested tasks."),
            (
                &[Nanos6, Nodes],
                "taskloop, or nested tasks with weak accesses (`weakin`, `weakout`), whose children are created side by side.",
            ),
            (&[Nosv], "nosv_set_submit_window_size for the creating task."),
        ],
    ),
    (
        &["device-wait"],
        &[(
            &[OpenMp, OpenMpV],
            "`nowait` and `depend` on the target construct, with tasks for the host meanwhile; `target data` around several, so \
             that data stays on the device.",
        )],
    ),
    (
        &["runtime-overhead", "slow-runtime", "scheduling"],
        &[
            (
                &[OpenMp],
                "Fewer and longer regions; larger chunks. With a CPU for each thread: OMP_WAIT_POLICY=active.",
            ),
            (&[OpenMpV], "Fewer and longer regions; larger chunks."),
            (
                &[Nanos6],
                "version.dependencies=discrete (the default) costs less than regions. Much time in Looking for work is idle CPUs, \
                 not cost. Levels of instrument.ovni.level above 2 cost themselves.",
            ),
            (
                &[Nodes, Nosv],
                "scheduler.cpus_per_queue: lower with several creators of tasks, higher with few; scheduler.in_queue_size a \
                 multiple of scheduler.queue_batch. Recorded with ovni.level=2, long scheduling on one CPU is mostly a worker that \
                 serves and has no task: level 3 tells that apart.",
            ),
        ],
    ),
    (
        &["no-cpu", "oversubscribed", "os", "out_of_cpu"],
        &[
            (
                &[OpenMp],
                "OMP_NUM_THREADS no larger than the CPUs that are free; OMP_PROC_BIND=true on a machine of one's own.",
            ),
            (
                &[Nanos6],
                "Nanos6 has a worker on each CPU of the process's mask: give each process CPUs of its own (taskset, the job \
                 launcher), or, with DLB (dlb.enabled=true), let processes lend them: cpumanager.policy=lewi. \
                 cpumanager.policy=idle leaves idle CPUs to others at once.",
            ),
            (
                &[Nodes, Nosv, OpenMpV],
                "topology.binding names the CPUs; processes that share CPUs belong in one instance (the same \
                 shared_memory.name and isolation_level=user), which runs one thread on each. governor.policy=idle leaves idle \
                 CPUs to others at once.",
            ),
            (&[Mpi], "One CPU for each rank, bound by the launcher, and none for two."),
            (&[Threads, Instrumented], "As many threads as CPUs that are free."),
        ],
    ),
    (
        &["nobody-works", "dispatch"],
        &[
            (
                &[OpenMp],
                "`if`, `final`, a cut-off by hand. Only where each thread has a CPU of its own: OMP_WAIT_POLICY=active, where \
                 regions follow one another closely.",
            ),
            (
                &[Nanos6],
                "NANOS6_CONFIG_OVERRIDE=cpumanager.policy=busy keeps idle workers asking instead of sleeping; hybrid does so for \
                 cpumanager.busy_iters rounds. Only where each worker has a CPU of its own.",
            ),
            (
                &[Nodes, Nosv, OpenMpV],
                "NOSV_CONFIG_OVERRIDE=governor.policy=busy keeps idle CPUs asking instead of sleeping; hybrid does so for \
                 governor.spins rounds. Only where each worker has a CPU of its own.",
            ),
            (
                &[Threads],
                "Larger pieces of work between two waits; spin shortly before blocking where each thread has a CPU.",
            ),
        ],
    ),
    (
        &["unknown", "no_subsystem"],
        &[
            (
                &[Nanos6],
                "NANOS6_CONFIG_OVERRIDE=version.instrument=ovni,instrument.ovni.level=2 (3 adds memory); code of the program \
                 outside of tasks has no section: make it a task, or mark it (docs/instrumenting.md).",
            ),
            (
                &[Nosv],
                "NOSV_CONFIG_OVERRIDE=instrumentation.version=ovni,ovni.level=2 or higher; code outside of tasks has no \
                 section: attach its thread, or mark it (docs/instrumenting.md).",
            ),
            (
                &[Nodes],
                "NODES_OVNI=1 (ovni.enabled=true in nodes.toml from 1.4 on), and \
                 NOSV_CONFIG_OVERRIDE=instrumentation.version=ovni,ovni.level=2 or higher.",
            ),
            (&[Mpi, Threads], "record --sample 100 shows what the code between the calls does."),
        ],
    ),
    (
        &["resting-not-recorded"],
        &[(&[Nodes, Nosv, OpenMpV], "NOSV_CONFIG_OVERRIDE=instrumentation.version=ovni,ovni.level=3.")],
    ),
    (
        &["absorbing-noise", "absorbing", "absorbing_noise"],
        &[(&[Nanos6], "NANOS6_CONFIG_OVERRIDE=cpumanager.sponge_cpus=[] gives these CPUs tasks again.")],
    ),
];

/// What helps against what has this name, in the words of a runtime.
pub fn advice(name: &str, runtime: Runtime) -> Option<&'static str> {
    rows(name).find(|(runtimes, _)| runtimes.contains(&runtime)).map(|(_, text)| text)
}

/// The same for every runtime that has words for it.
pub fn rows(name: &str) -> impl Iterator<Item = (&'static [Runtime], &'static str)> {
    let found = ADVICE.iter().find(|(names, _)| names.contains(&name));
    found.map_or(&[][..], |(_, rows)| rows).iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_that_gives_out_work_is_the_one_that_is_spoken_of() {
        let of = Runtime::of_models;
        assert_eq!(of(&["ovni", "nanos6", "mpi", "tampi"]), Some(Nanos6));
        assert_eq!(of(&["ovni", "nosv", "nodes", "kernel"]), Some(Nodes));
        assert_eq!(of(&["ovni", "nosv", "openmp"]), Some(OpenMpV));
        assert_eq!(of(&["ovni", "nosv"]), Some(Nosv));
        assert_eq!(of(&["ovni", "openmp", "taskscope-messages"]), Some(OpenMp));
        assert_eq!(of(&["ovni", "mpi"]), Some(Mpi));
        assert_eq!(of(&["ovni"]), None);
    }

    #[test]
    fn every_name_with_advice_is_explained() {
        for name in ADVICE.iter().flat_map(|(names, _)| *names) {
            assert_eq!(crate::explain::find(name).map(|found| found.name), Some(*name));
        }
    }

    #[test]
    fn no_runtime_hears_of_the_settings_of_another() {
        for (names, rows) in ADVICE {
            for (runtimes, text) in *rows {
                let speaks = |words: &[&str]| words.iter().any(|word| text.contains(word));
                let only = |of: &[Runtime]| runtimes.iter().all(|runtime| of.contains(runtime));
                assert!(!speaks(&["OMP_", "KMP_"]) || only(&[OpenMp]), "{names:?}");
                assert!(!speaks(&["NANOS6_", "cpumanager"]) || only(&[Nanos6]), "{names:?}");
                assert!(
                    !speaks(&["NOSV_", "governor", "topology."]) || only(&[Nodes, Nosv, OpenMpV]),
                    "{names:?}"
                );
            }
        }
        // What holds for all names no runtime's settings.
        for explanation in crate::explain::EXPLANATIONS {
            let own = ["OMP_WAIT", "OMP_PROC", "OMP_NUM", "KMP_", "NANOS6_", "NOSV_", "schedule("];
            assert!(!own.iter().any(|word| explanation.helps.contains(word)), "{}", explanation.name);
        }
    }
}
