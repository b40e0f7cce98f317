//! Large traces for benchmarks: every thread runs the life of tasks of one runtime over and over,
//! on a CPU of its own, with the sections that a real trace of that runtime shows between them.
//!
//! A cycle creates, submits, schedules, runs and ends one task: 17 events for nOS-V (13.4 bytes an
//! event; recorded traces have 13.1), 19 for Nanos6, 13 for OpenMP. Times between events are drawn
//! from a seeded generator, so equal settings give equal traces.

use crate::dice::Dice;
use crate::trace_builder::{StreamBuilder, pair, push_event, type_payload};
use std::io;
use std::path::Path;
use taskscope_event::Code;
use taskscope_event::models::{nanos6, nosv, openmp};

/// The runtime of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// nOS-V.
    Nosv,
    /// Nanos6.
    Nanos6,
    /// OpenMP.
    Openmp,
}

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// The runtime.
    pub runtime: Runtime,
    /// Threads in all; each has a CPU of its own.
    pub threads: u32,
    /// Threads of a loom, which is one process.
    pub threads_per_loom: u32,
    /// Events in all, roughly.
    pub events: u64,
    /// Seed of the times.
    pub seed: u64,
}

/// Task types of a process.
const TYPES: u32 = 12;
/// Ids of a thread's tasks are adjacent.
const TASKS_PER_THREAD: u32 = 1 << 20;

/// A step of a task's life.
#[derive(Clone, Copy)]
enum Step {
    Section(Code),
    CreateTask(Code),
    Task(Code),
}
use Step::{CreateTask, Section, Task};

const NOSV: &[Step] = &[
    Section(nosv::SCHEDULER_HUNGRY_BEGIN),
    Section(nosv::SCHEDULER_HUNGRY_END),
    Section(nosv::SCHEDULER_SERVING_BEGIN),
    Section(nosv::SCHEDULER_SERVING_END),
    Section(nosv::API_CREATE_BEGIN),
    CreateTask(nosv::TASK_CREATE),
    Section(nosv::API_CREATE_END),
    Section(nosv::API_SUBMIT_BEGIN),
    Section(nosv::SCHEDULER_SUBMITTING_BEGIN),
    Section(nosv::SCHEDULER_SUBMITTING_END),
    Section(nosv::API_SUBMIT_END),
    Task(nosv::TASK_EXECUTE),
    Section(nosv::MEMORY_ALLOCATING_BEGIN),
    Section(nosv::MEMORY_ALLOCATING_END),
    Section(nosv::MEMORY_FREEING_BEGIN),
    Section(nosv::MEMORY_FREEING_END),
    Task(nosv::TASK_END),
];

const NANOS6: &[Step] = &[
    Section(nanos6::TASK_CREATING_BEGIN),
    CreateTask(nanos6::TASK_CREATE),
    Section(nanos6::TASK_CREATING_END),
    Section(nanos6::TASK_SUBMITTING_BEGIN),
    Section(nanos6::SCHEDULER_ADDING_READY_TASKS_BEGIN),
    Section(nanos6::SCHEDULER_ADDING_READY_TASKS_END),
    Section(nanos6::TASK_SUBMITTING_END),
    Section(nanos6::SCHEDULER_SERVING_TASKS_BEGIN),
    Section(nanos6::SCHEDULER_SERVING_TASKS_END),
    Section(nanos6::WORKER_HANDLING_TASK_BEGIN),
    Section(nanos6::DEPENDENCY_REGISTERING_BEGIN),
    Section(nanos6::DEPENDENCY_REGISTERING_END),
    Task(nanos6::TASK_EXECUTE),
    Section(nanos6::MEMORY_ALLOCATING_BEGIN),
    Section(nanos6::MEMORY_ALLOCATING_END),
    Task(nanos6::TASK_END),
    Section(nanos6::DEPENDENCY_UNREGISTERING_BEGIN),
    Section(nanos6::DEPENDENCY_UNREGISTERING_END),
    Section(nanos6::WORKER_HANDLING_TASK_END),
];

const OPENMP: &[Step] = &[
    Section(openmp::TASK_ALLOCATION_BEGIN),
    CreateTask(openmp::TASK_CREATE),
    Section(openmp::TASK_ALLOCATION_END),
    Section(openmp::TASK_SCHEDULING_BEGIN),
    Section(openmp::TASK_SCHEDULING_END),
    Section(openmp::TASK_RUNNING_TASK_BEGIN),
    Task(openmp::TASK_EXECUTE),
    Section(openmp::CRITICAL_SECTION_BEGIN),
    Section(openmp::CRITICAL_SECTION_END),
    Task(openmp::TASK_END),
    Section(openmp::TASK_RUNNING_TASK_END),
    Section(openmp::BARRIER_TASK_BEGIN),
    Section(openmp::BARRIER_TASK_END),
];

impl Generator {
    /// Writes the trace into `root`, and returns the number of events.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, root: &Path) -> io::Result<u64> {
        let mut events = 0;
        for thread in 0..self.threads {
            events += self.write_thread(root, thread)?;
        }
        Ok(events)
    }

    fn write_thread(&self, root: &Path, thread: u32) -> io::Result<u64> {
        let (model, steps, type_create) = match self.runtime {
            Runtime::Nosv => ("nosv", NOSV, nosv::TYPE_CREATE),
            Runtime::Nanos6 => ("nanos6", NANOS6, nanos6::TYPE_CREATE),
            Runtime::Openmp => ("openmp", OPENMP, openmp::TYPE_CREATE),
        };
        let (loom, loom_thread) = (thread / self.threads_per_loom, thread % self.threads_per_loom);
        let mut random = Dice::new(self.seed ^ u64::from(thread).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut clock = 1_000_000_000 + random.below(10_000);
        let mut stream = StreamBuilder::new(loom, 1000 + loom, 10_000 + thread).require(&["ovni", model]);
        if loom_thread == 0 {
            stream = stream.cpus(self.threads_per_loom);
        }
        stream = stream.execute(clock, loom_thread as i32);
        let mut count = 2;
        for id in 1..=TYPES {
            // Types belong to the process; its threads share the work of making them.
            if id % self.threads_per_loom.min(TYPES) == loom_thread {
                stream = stream.jumbo(clock, type_create, &type_payload(id, &format!("task type {id}")));
                count += 1;
            }
        }
        // All types exist before the first task.
        clock += 20_000;
        let cycles = self.events / u64::from(self.threads) / steps.len() as u64;
        for cycle in 0..cycles.max(1) as u32 {
            let task = loom_thread * TASKS_PER_THREAD + cycle + 1;
            for step in steps {
                clock += 50 + random.below(300);
                match step {
                    Section(code) => push_event(&mut stream.standard, *code, clock, &[]),
                    CreateTask(code) => {
                        let task_type = 1 + random.below(u64::from(TYPES)) as u32;
                        push_event(&mut stream.standard, *code, clock, &pair(task, task_type));
                    }
                    Task(code) if self.runtime == Runtime::Nosv => {
                        push_event(&mut stream.standard, *code, clock, &pair(task, 0));
                    }
                    Task(code) => push_event(&mut stream.standard, *code, clock, &task.to_le_bytes()),
                }
                // Tasks are long and the runtime's work between them is short.
                if matches!(step, Task(code) if starts_task(*code)) {
                    clock += 5_000 + random.below(50_000);
                }
                count += 1;
            }
        }
        stream.end(clock + 100).write(root)?;
        Ok(count)
    }
}

fn starts_task(code: Code) -> bool {
    [nosv::TASK_EXECUTE, nanos6::TASK_EXECUTE, openmp::TASK_EXECUTE].contains(&code)
}
