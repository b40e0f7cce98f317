//! The views promised by Nanos6's documentation, on a trace that visits every section.

mod common;

use common::emulate;
use std::collections::BTreeSet;
use std::path::Path;
use taskscope_check::verdict::Judge;
use taskscope_event::Code;
use taskscope_event::models::nanos6;
use taskscope_event::spec::{Channel, Effect};
use taskscope_model::MachineOptions;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};

/// Values of a type in a `.prv` with their times, in the order of the file.
fn values(directory: &Path, base: &str, row: u32, view_type: u32) -> Vec<(i64, i64)> {
    let text = std::fs::read_to_string(directory.join(format!("{base}.prv"))).unwrap();
    let prefix = format!("2:0:1:1:{row}:");
    text.lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .map(|rest| rest.split(':').map(|field| field.parse::<i64>().unwrap()).collect::<Vec<_>>())
        .filter(|fields| fields[1] == i64::from(view_type))
        .map(|fields| (fields[0], fields[2]))
        .collect()
}

fn labels(directory: &Path, base: &str) -> String {
    std::fs::read_to_string(directory.join(format!("{base}.pcf"))).unwrap()
}

/// Every section of the model, entered and left, each with the event that leaves it.
fn sections(channel: Channel) -> Vec<(Code, Code, i64, &'static str)> {
    let end_of = |value| {
        nanos6::EVENTS
            .iter()
            .find(|event| matches!(event.effect, Effect::Pop(c, v, _) if c == channel && v == value))
    };
    nanos6::EVENTS
        .iter()
        .filter_map(|event| match event.effect {
            Effect::Push(c, value, label) if c == channel => {
                Some((event.code, end_of(value)?.code, value, label))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn every_documented_section_is_shown_and_named() {
    let mut clock = 0;
    let mut stream = StreamBuilder::new(0, 1, 1).require(&["ovni", "nanos6"]).cpus(1).execute(clock, 0);
    let mut visited = Vec::new();
    for (begin, end, value, _) in sections(Channel::Subsystem) {
        stream = stream.point(clock + 10, begin).point(clock + 15, end);
        visited.extend([(clock as i64 + 10, value), (clock as i64 + 15, 0)]);
        clock += 10;
    }
    let stream = stream
        .jumbo(1000, nanos6::TYPE_CREATE, &type_payload(7, "main"))
        .event(1001, nanos6::TASK_CREATE, &pair(1, 7))
        .event(1002, nanos6::TASK_EXECUTE, &1u32.to_le_bytes())
        .event(1003, nanos6::TASK_END, &1u32.to_le_bytes())
        .end(1010);
    let root = tempfile::tempdir().unwrap();
    stream.write(root.path()).unwrap();
    let emulated = emulate(root.path(), root.path(), MachineOptions::default());
    assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);

    visited.extend([(1002, 1), (1003, 0)]);
    visited.insert(0, (0, 0));
    assert_eq!(values(root.path(), "thread", 1, 37), visited);
    assert_eq!(values(root.path(), "cpu", 1, 37), visited);
    let documented = [
        "Task: Running body",
        "Task: Running task for",
        "Task: Spawning function",
        "Task: Creating",
        "Task: Submitting",
        "Scheduler: Serving tasks",
        "Scheduler: Adding ready tasks",
        "Scheduler: Processing ready tasks",
        "Worker: Looking for work",
        "Worker: Handling task",
        "Worker: Switching to another thread",
        "Worker: Migrating CPU",
        "Worker: Suspending thread",
        "Worker: Resuming another thread",
        "Worker: Sponge mode",
        "Memory: Allocating",
        "Memory: Freeing",
        "Dependency: Registering",
        "Dependency: Unregistering",
        "Blocking: Taskwait",
        "Blocking: Blocking current task",
        "Blocking: Unblocking remote task",
        "Blocking: Wait for deadline",
    ];
    let labels = labels(root.path(), "thread");
    for label in documented {
        let line = labels.lines().find(|line| line.ends_with(&format!(" {label}")));
        let value: i64 = line.and_then(|line| line.split(' ').next()?.parse().ok()).expect(label);
        assert!(visited.iter().any(|(_, shown)| *shown == value), "{label} is never shown");
    }
}

#[test]
fn the_state_is_the_innermost_instrumented_section() {
    // The stack [S1, U, S2, S3, U], with uninstrumented code U, shows S3.
    let stream = StreamBuilder::new(0, 1, 1)
        .require(&["ovni", "nanos6"])
        .cpus(1)
        .execute(0, 0)
        .point(10, nanos6::WORKER_LOOKING_FOR_WORK_BEGIN)
        .point(20, nanos6::WORKER_HANDLING_TASK_BEGIN)
        .point(30, nanos6::MEMORY_ALLOCATING_BEGIN)
        .point(40, nanos6::MEMORY_ALLOCATING_END)
        .point(50, nanos6::WORKER_HANDLING_TASK_END)
        .point(60, nanos6::WORKER_LOOKING_FOR_WORK_END)
        .end(70);
    let root = tempfile::tempdir().unwrap();
    stream.write(root.path()).unwrap();
    emulate(root.path(), root.path(), MachineOptions::default());
    let expected = [(0, 0), (10, 19), (20, 18), (30, 16), (40, 18), (50, 19), (60, 0)];
    assert_eq!(values(root.path(), "thread", 1, 37), expected);
}

#[test]
fn thread_types_idle_states_nested_tasks_and_ranks() {
    let mut stream =
        StreamBuilder::new(0, 1, 1).require(&["ovni", "nanos6"]).cpus(1).rank(3, 8).execute(0, 0);
    let mut clock = 10;
    for (begin, end, _, _) in sections(Channel::ThreadType) {
        stream = stream.point(clock, begin).point(clock + 1, end);
        clock += 10;
    }
    let run = |task: u32| task.to_le_bytes();
    let stream = stream
        .point(100, nanos6::IDLE_RESTING)
        .point(110, nanos6::IDLE_ABSORBING_NOISE)
        .point(120, nanos6::IDLE_PROGRESSING)
        .jumbo(200, nanos6::TYPE_CREATE, &type_payload(7, "outer"))
        .jumbo(201, nanos6::TYPE_CREATE, &type_payload(8, "inner"))
        .event(202, nanos6::TASK_CREATE, &pair(1, 7))
        .event(203, nanos6::TASK_CREATE, &pair(2, 8))
        .event(210, nanos6::TASK_EXECUTE, &run(1))
        .point(215, nanos6::BLOCKING_TASKWAIT_BEGIN)
        .event(220, nanos6::TASK_EXECUTE, &run(2))
        .event(230, nanos6::TASK_END, &run(2))
        .point(235, nanos6::BLOCKING_TASKWAIT_END)
        .event(240, nanos6::TASK_END, &run(1))
        .end(300);
    let root = tempfile::tempdir().unwrap();
    stream.write(root.path()).unwrap();
    let emulated =
        emulate(root.path(), root.path(), MachineOptions { breakdown: true, ..Default::default() });
    assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);

    let types: BTreeSet<i64> =
        values(root.path(), "thread", 1, 39).into_iter().map(|(_, value)| value).collect();
    assert_eq!(types, BTreeSet::from([0, 1, 2, 3, 4]));
    assert_eq!(
        values(root.path(), "thread", 1, 40),
        [(0, 100), (100, 101), (110, 102), (120, 100), (300, 0)]
    );
    assert_eq!(values(root.path(), "cpu", 1, 40), [(0, 100), (100, 101), (110, 102), (120, 100), (300, 101)]);
    let ids = [(0, 0), (210, 1), (220, 2), (230, 1), (240, 0)];
    assert_eq!(values(root.path(), "thread", 1, 35), ids);
    // The rank is shown one higher, so that 0 can mean none; it stays while tasks nest.
    assert_eq!(values(root.path(), "thread", 1, 38), [(0, 0), (210, 4), (240, 0), (300, 0)]);
    // A CPU with a thread outside any section counts as one of an unknown subsystem (2); one without a thread
    // is idle (101).
    let breakdown = values(root.path(), "nanos6-breakdown", 1, 41);
    assert_eq!(breakdown[0], (0, 2));
    assert!(breakdown.contains(&(100, 101)) && breakdown.contains(&(110, 102)));
    assert_eq!(breakdown.last(), Some(&(300, 101)));
}
