//! The time of CPUs, spliced from the threads that run on them.

use taskscope_event::Code;
use taskscope_event::models::{nanos6, ovni};
use taskscope_execution::{Doubt, Execution, ExecutionBuilder, State, ThreadIndex, ThreadKind};
use taskscope_model::semantic::{Interpreter, LoomNumber};

const LOOM: LoomNumber = LoomNumber(0);

struct Play {
    builder: ExecutionBuilder,
    interpreter: Interpreter,
}

impl Play {
    /// Two threads and one CPU with index 0.
    fn new() -> Play {
        let mut builder = ExecutionBuilder::new();
        let mut interpreter = Interpreter::new();
        let process = builder.add_process("node.1", 10);
        for tid in [10, 11] {
            let thread = builder.add_thread(process, i64::from(tid));
            interpreter.add_thread(process);
            interpreter.works_on_cpus_of(thread, LOOM, tid);
            interpreter.has_subsystems(thread);
        }
        let holder = builder.add_cpus_of("node.1");
        builder.add_thread(holder, 0);
        interpreter.add_cpu(holder, LOOM, 0);
        Play { builder, interpreter }
    }

    fn event(&mut self, thread: u32, at: u64, code: Code, payload: &[u8]) -> &mut Play {
        let thread = ThreadIndex(thread);
        self.builder.event(thread, at);
        self.interpreter.event(thread, at, code, payload, &mut self.builder);
        self
    }

    fn finish(mut self) -> Execution {
        self.interpreter.finish(&mut self.builder);
        self.builder.finish()
    }
}

fn on_cpu(cpu: i32) -> [u8; 16] {
    let mut payload = [0; 16];
    payload[..4].copy_from_slice(&cpu.to_le_bytes());
    payload
}

fn states_of_cpu(execution: &Execution) -> Vec<(u64, u64, State)> {
    let cpu = execution.threads.iter().position(|t| t.kind == ThreadKind::Cpu).unwrap();
    execution.spans_of_run(ThreadIndex(cpu as u32)).map(|s| (s.start, s.end, s.section.state)).collect()
}

#[test]
fn a_cpu_shows_its_running_thread_and_is_idle_without_one() {
    let mut play = Play::new();
    play.event(0, 100, ovni::THREAD_EXECUTES, &on_cpu(0))
        .event(0, 110, nanos6::DEPENDENCY_REGISTERING_BEGIN, &[])
        .event(0, 130, nanos6::DEPENDENCY_REGISTERING_END, &[])
        .event(0, 140, nanos6::BLOCKING_TASKWAIT_BEGIN, &[])
        .event(0, 150, ovni::THREAD_PAUSES, &[])
        // The hand-over leaves the CPU empty for ten nanoseconds.
        .event(1, 160, ovni::THREAD_EXECUTES, &on_cpu(0))
        .event(1, 160, nanos6::TASK_CREATING_BEGIN, &[])
        .event(1, 180, nanos6::TASK_CREATING_END, &[])
        .event(1, 180, nanos6::IDLE_RESTING, &[])
        .event(1, 190, nanos6::IDLE_PROGRESSING, &[])
        .event(1, 190, ovni::THREAD_ENDS, &[])
        // It resumes in the subsystem in which it was suspended.
        .event(0, 190, ovni::THREAD_RESUMES, &[])
        .event(0, 200, nanos6::BLOCKING_TASKWAIT_END, &[])
        .event(0, 210, ovni::THREAD_ENDS, &[]);
    let execution = play.finish();
    assert_eq!(
        states_of_cpu(&execution),
        [
            (100, 110, State::NoSubsystem),
            (110, 130, State::Dependences),
            (130, 140, State::NoSubsystem),
            (140, 150, State::Taskwait),
            (150, 160, State::Idle),
            (160, 180, State::TaskCreation),
            (180, 190, State::Idle),
            (190, 200, State::Taskwait),
            (200, 210, State::NoSubsystem),
        ]
    );
    let workers: Vec<_> = execution.workers().map(|(_, thread)| thread.kind).collect();
    assert_eq!(workers, [ThreadKind::Cpu], "no thread works where CPUs do");
    assert_eq!(execution.process_count(), 1);
}

#[test]
fn affinity_moves_a_thread_between_cpus_and_to_none() {
    let mut play = Play::new();
    let remote = |cpu: i32, tid: i32| [cpu.to_le_bytes(), tid.to_le_bytes()].concat();
    play.event(0, 0, ovni::THREAD_EXECUTES, &on_cpu(-1))
        .event(0, 10, ovni::SET_AFFINITY, &on_cpu(0)[..4])
        .event(0, 20, ovni::SET_AFFINITY, &on_cpu(-1)[..4])
        .event(1, 30, ovni::THREAD_EXECUTES, &on_cpu(-1))
        .event(0, 40, ovni::REMOTE_AFFINITY, &remote(0, 11))
        .event(1, 50, ovni::THREAD_ENDS, &[])
        .event(0, 60, ovni::THREAD_ENDS, &[]);
    let execution = play.finish();
    assert_eq!(
        states_of_cpu(&execution),
        [
            (0, 10, State::Idle),
            (10, 20, State::NoSubsystem),
            (20, 40, State::Idle),
            (40, 50, State::NoSubsystem),
            (50, 60, State::Idle),
        ]
    );
}

#[test]
fn a_cpu_that_one_of_two_threads_leaves_shows_the_other() {
    let mut play = Play::new();
    play.event(0, 0, ovni::THREAD_EXECUTES, &on_cpu(0))
        .event(0, 10, nanos6::DEPENDENCY_REGISTERING_BEGIN, &[])
        .event(1, 20, ovni::THREAD_EXECUTES, &on_cpu(0))
        .event(1, 40, ovni::THREAD_ENDS, &[])
        .event(0, 50, nanos6::DEPENDENCY_REGISTERING_END, &[])
        .event(0, 60, ovni::THREAD_ENDS, &[]);
    let execution = play.finish();
    let states: Vec<_> = states_of_cpu(&execution).into_iter().map(|(start, end, _)| (start, end)).collect();
    assert_eq!(states, [(0, 10), (10, 20), (20, 40), (40, 50), (50, 60)]);
    let state_at = |at| states_of_cpu(&execution).into_iter().find(|(start, ..)| *start == at).unwrap().2;
    assert_eq!(state_at(40), state_at(10), "the first goes on in what it was in");
    let shared: Vec<_> = execution.uncertain.iter().map(|part| (part.start, part.end, part.doubt)).collect();
    assert_eq!(shared, [(20, 40, Doubt::CpuShared)]);
}
