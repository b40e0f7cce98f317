//! A slice is a valid trace. Its views within the range are those of the whole.

mod common;

use common::emulate;
use serde_json::json;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use taskscope_check::emulation;
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_context::{Behaviour, Lane, Shown};
use taskscope_event::Code;
use taskscope_event::models::{instrument as i, kernel, nanos6, nosv, openmp, ovni, wait};
use taskscope_execution::view::NoViews;
use taskscope_model::{Machine, MachineOptions, Violation, ViolationCode};
use taskscope_session::instrumentation::Names;
use taskscope_testkit::bytes;
use taskscope_testkit::corpus::{on_all_cpus, reference_traces};
use taskscope_testkit::dice::Dice;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::instrumented::InstrumentedThread;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};
use taskscope_trace::{OpenOptions, ProblemKind, Slice, Trace};

fn slice(trace: &Path, output: &Path, slice: &Slice) -> u64 {
    let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
    trace.write_slice(slice, output).unwrap().streams
}

/// Records of a `.prv` with corrected clocks instead of times since the first event.
fn records(directory: &Path, first_clock: i64, clocks: (i64, i64)) -> Vec<(i64, String)> {
    let text = std::fs::read_to_string(directory.join("thread.prv")).unwrap();
    let mut records: Vec<(i64, String)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields: Vec<&str> = line.split(':').collect();
            let clock = fields.remove(5).parse::<i64>().unwrap() + first_clock;
            (clock, fields.join(":"))
        })
        .filter(|(clock, _)| (clocks.0..clocks.1).contains(clock))
        .collect();
    records.sort();
    records
}

fn first_clock(trace: &Path) -> i64 {
    let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
    trace.merge().next().unwrap().event.clock_ns
}

#[test]
fn a_slice_equals_the_range_of_the_whole() {
    for runtime in [Runtime::Nosv, Runtime::Nanos6, Runtime::Openmp] {
        let (whole, part, output) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let generator = Generator { runtime, threads: 8, threads_per_loom: 4, events: 4000, seed: 3 };
        generator.write(whole.path()).unwrap();
        let begin = first_clock(whole.path()) + 200_000;
        let clocks = (begin, begin + 300_000);
        slice(whole.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });

        let emulated = emulate(part.path(), output.path(), MachineOptions::default());
        assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);
        let of_part = records(output.path(), first_clock(part.path()), clocks);
        emulate(whole.path(), output.path(), MachineOptions::default());
        let of_whole = records(output.path(), first_clock(whole.path()), clocks);
        assert!(of_whole.len() > 100);
        assert_eq!(of_part, of_whole, "{runtime:?}");
    }
}

/// CPUs rest after a thread has run on them and while none does, even if that thread is not in the slice, or elsewhere
/// in it.
#[test]
fn cpus_rest_in_a_slice_as_in_the_whole() {
    let (whole, part, output) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let thread = |tid| StreamBuilder::new(0, 1, tid).require(&["ovni", "nosv"]).cpus(5);
    let moves = thread(1).execute(1000, 0).event(2000, ovni::SET_AFFINITY, &1_i32.to_le_bytes());
    moves.point(5500, ovni::BURST).end(9000).write(whole.path()).unwrap();
    thread(2).execute(1000, 2).end(3000).write(whole.path()).unwrap();
    thread(3)
        .execute(1000, 3)
        .point(3500, ovni::THREAD_PAUSES)
        .point(8000, ovni::THREAD_RESUMES)
        .end(8500)
        .write(whole.path())
        .unwrap();
    let clocks = (5000, 7000);
    slice(whole.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
    // The CPUs' values at the range's begin: row, type, value.
    let shown = |trace: &Path| -> Vec<(String, String)> {
        let options = MachineOptions { breakdown: true, ..MachineOptions::default() };
        let emulated = emulate(trace, output.path(), options);
        assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);
        let first = first_clock(trace);
        let records = std::fs::read_to_string(output.path().join("cpu.prv")).unwrap();
        let mut values = std::collections::BTreeMap::new();
        for line in records.lines().skip(1) {
            let fields: Vec<&str> = line.split(':').collect();
            if fields[5].parse::<i64>().unwrap() + first < clocks.0 {
                values.insert(format!("row {} type {}", fields[4], fields[6]), fields[7].to_owned());
            }
        }
        values.into_iter().collect()
    };
    let of_whole = shown(whole.path());
    let resting = of_whole.iter().filter(|(place, value)| place.ends_with("type 16") && value == "101");
    assert_eq!(resting.count(), 3, "{of_whole:?}");
    assert_eq!(shown(part.path()), of_whole);
}

#[test]
fn a_slice_of_several_hosts_declares_its_clocks_corrected() {
    let (root, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (loom, name) in ["east.0", "west.0"].into_iter().enumerate() {
        let stream = StreamBuilder::new(loom as u32, 1, 1).loom(name).cpus(1).execute(1000, 0);
        stream.point(1010, ovni::BURST).end(3000).write(root.path()).unwrap();
    }
    let kinds = |trace: &Path| -> Vec<ProblemKind> {
        let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
        trace.problems().iter().map(|problem| problem.kind).collect()
    };
    slice(root.path(), part.path(), &Slice::default());
    assert_eq!(kinds(part.path()), [ProblemKind::NoClockOffsets], "nobody knows them");

    let table = "rank host median mean std\n0 east 0 0 0\n1 west 500 500 1\n";
    std::fs::write(root.path().join("clock-offsets.txt"), table).unwrap();
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice::default());
    assert_eq!(kinds(part.path()), []);
    let clocks = |trace: &Path| -> Vec<i64> {
        Trace::open(trace, &OpenOptions::default())
            .unwrap()
            .merge()
            .map(|merged| merged.event.clock_ns)
            .collect()
    };
    assert_eq!(clocks(part.path()), clocks(root.path()));
}

#[test]
fn threads_that_are_cut_in_the_middle_of_everything() {
    let root = tempfile::tempdir().unwrap();
    // The second thread takes the CPU of the first, which is blocked in a task.
    StreamBuilder::new(0, 1, 1)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1010, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1020, nosv::TASK_CREATE, &pair(1, 7))
        .event(1021, nosv::TASK_CREATE, &pair(2, 7))
        .event(1030, nosv::TASK_EXECUTE, &pair(1, 0))
        .point(1040, nosv::API_PAUSE_BEGIN)
        .event(1050, nosv::TASK_PAUSE, &pair(1, 0))
        .point(1060, ovni::THREAD_PAUSES)
        .point(3000, ovni::THREAD_RESUMES)
        .event(3010, nosv::TASK_RESUME, &pair(1, 0))
        .point(3020, nosv::API_PAUSE_END)
        .event(3030, nosv::TASK_END, &pair(1, 0))
        .end(3040)
        .write(root.path())
        .unwrap();
    StreamBuilder::new(0, 1, 2)
        .execute(1100, 0)
        .point(1200, nosv::SCHEDULER_SERVING_BEGIN)
        .point(1300, nosv::SCHEDULER_SERVING_END)
        .event(2000, nosv::TASK_EXECUTE, &pair(2, 0))
        .event(2100, nosv::TASK_END, &pair(2, 0))
        .end(2900)
        .write(root.path())
        .unwrap();
    let cuts = [(1035, 1055), (1055, 1250), (1250, 2050), (2050, 3015), (1000, 3100), (2950, 2990)];
    for clocks in cuts {
        let (part, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        slice(root.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
        let emulated = emulate(part.path(), output.path(), MachineOptions::default());
        assert!(
            emulated.verdict.accepts(Judge::Ovni { lint: true }),
            "{clocks:?}: {:?}",
            emulated.violations
        );
    }
    // One thread alone runs a task that the other one created.
    let (part, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    slice(root.path(), part.path(), &Slice { threads: vec![2], ..Slice::default() });
    let emulated = emulate(part.path(), output.path(), MachineOptions::default());
    assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);
}

/// Counters have their last values until the next ones, also without the thread that declares them.
#[test]
fn a_slice_has_the_counters_from_before() {
    let (root, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (tid, value) in [(1, 7_i64), (2, 8)] {
        let mut stream = StreamBuilder::new(0, 1, tid).require(&["ovni", "nosv"]).cpus(2);
        if tid == 1 {
            stream = stream.attribute("nosv", json!({ "hwc": { "0": { "name": "INS" } } }));
        }
        let stream =
            stream.execute(1000, tid as i32 - 1).jumbo(1100, nosv::HARDWARE_COUNTERS, &bytes![value]);
        stream.jumbo(2500, nosv::HARDWARE_COUNTERS, &bytes![9_i64]).end(3000).write(root.path()).unwrap();
    }
    // Values of the first type of counters at the begin of the range.
    let values = |trace: &Path| -> Vec<String> {
        let emulated = emulate(trace, output.path(), MachineOptions::default());
        assert!(emulated.verdict.accepts(Judge::Ovni { lint: true }), "{:?}", emulated.violations);
        let before = records(output.path(), first_clock(trace), (0, 2400));
        before.into_iter().map(|(_, row)| row).filter(|row| row.contains(":200:")).collect()
    };
    let whole = values(root.path());
    assert_eq!(whole.iter().filter(|row| row.ends_with(":7") || row.ends_with(":8")).count(), 2, "{whole:?}");
    for threads in [vec![], vec![2]] {
        let part = tempfile::tempdir().unwrap();
        let clocks = Some((2000, 2400));
        slice(root.path(), part.path(), &Slice { clocks, threads: threads.clone(), ..Slice::default() });
        let of_part = values(part.path());
        assert!(of_part.iter().any(|row| row.ends_with(":8")), "{threads:?}: {of_part:?}");
        assert_eq!(of_part.iter().any(|row| row.ends_with(":7")), threads.is_empty(), "{of_part:?}");
    }
}

/// What docs/ovni-compatibility.md advises for ovniemu, which refuses unfinished streams.
#[test]
fn a_slice_of_all_of_a_killed_program_closes_its_streams() {
    let root = tempfile::tempdir().unwrap();
    let running = StreamBuilder::new(0, 1, 1)
        .cpus(2)
        .execute(1000, 0)
        .jumbo(1010, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1020, nosv::TASK_CREATE, &pair(1, 7))
        .event(1030, nosv::TASK_EXECUTE, &pair(1, 0))
        .point(1040, nosv::API_PAUSE_BEGIN);
    let paused = StreamBuilder::new(0, 1, 2)
        .execute(1100, 1)
        .point(1200, nosv::SCHEDULER_SERVING_BEGIN)
        .point(1300, ovni::THREAD_PAUSES);
    for stream in [running, paused] {
        let directory = stream.write(root.path()).unwrap();
        let file = directory.join("stream.json");
        let mut metadata: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        metadata["ovni"].as_object_mut().unwrap().remove("finished").unwrap();
        std::fs::write(file, metadata.to_string()).unwrap();
    }
    assert_eq!(judged(root.path()).0, [false, false]);
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { clocks: Some((1000, 1301)), ..Slice::default() });
    let (accepted, violations) = judged(part.path());
    assert_eq!(accepted, [true, true], "{violations:#?}");
}

#[test]
fn models_are_left_out_whole() {
    let root = tempfile::tempdir().unwrap();
    let mut stream = StreamBuilder::new(0, 1, 1).cpus(1).execute(10, 0);
    stream = stream.point(20, nosv::SCHEDULER_SERVING_BEGIN).point(30, nosv::SCHEDULER_SERVING_END).end(40);
    stream.write(root.path()).unwrap();
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { models: vec!["nanos6".to_owned()], ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let codes: Vec<_> = trace.merge().map(|merged| merged.event.code).collect();
    assert_eq!(codes, [ovni::THREAD_EXECUTES, ovni::THREAD_ENDS]);
    let require = trace.streams()[0].metadata.require.as_ref().unwrap();
    let names: Vec<&str> = require.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ovni", "nanos6"]);
}

/// A process of four threads with tasks that move between them, with states and bursts open everywhere; correct.
fn write_moving_tasks(root: &Path, seed: u64) -> u64 {
    const THREADS: usize = 4;
    let mut dice = Dice::new(seed);
    let mut threads: Vec<InstrumentedThread> =
        (0..THREADS).map(|thread| InstrumentedThread::new(100, 100 + thread as u32)).collect();
    let mut say = |thread: usize, at: u64, code: Code, payload: &[u8]| {
        let old = std::mem::replace(&mut threads[thread], InstrumentedThread::new(0, 0));
        threads[thread] = match code {
            i::TASK_KIND => old.name(at, code, payload, &[b"walker", b"src/walk.rs"]),
            i::KEY => old.name(at, code, payload, &[b"size", b"", b"bytes"]),
            i::STATE => old.name(at, code, payload, &[b"WALK", b""]),
            _ => old.event(at, code, payload),
        };
    };
    say(0, 0, i::TASK_KIND, &bytes![1_u32, 7_u32]);
    say(0, 0, i::KEY, &bytes![1_u32, 2_u32, 0_u32]);
    say(0, 0, i::STATE, &bytes![50_u32, 1_u32]);
    // The open states and bursts of tasks 1 to 5 and, above them, of the threads.
    let mut open: Vec<Vec<(bool, u64)>> = vec![Vec::new(); 6 + THREADS];
    let mut on: Vec<Vec<u64>> = vec![Vec::new(); THREADS];
    for task in 1..=5_u64 {
        say(0, 1, i::TASK_CREATE, &bytes![task, 1_u32]);
    }
    let mut at = 10;
    while at < 99_000 {
        at += 1 + dice.below(100);
        let thread = dice.below(THREADS as u64) as usize;
        let context = on[thread].last().map_or(6 + thread, |task| *task as usize);
        let task = 1 + dice.below(5);
        match dice.below(6) {
            0 if open[context].len() < 6 => {
                open[context].push((true, 50));
                say(thread, at, i::STATE_PUSH, &bytes![50_u32]);
            }
            1 if open[context].len() < 6 => {
                let value = dice.below(9);
                open[context].push((false, value));
                say(thread, at, i::BURST_OPEN, &bytes![1_u32, value]);
            }
            2 | 3 => match open[context].pop() {
                Some((true, _)) => say(thread, at, i::STATE_POP, &bytes![50_u32]),
                Some((false, value)) => say(thread, at, i::BURST_CLOSE, &bytes![1_u32, value]),
                None => {}
            },
            4 if !on.iter().flatten().any(|other| *other == task) => {
                on[thread].push(task);
                say(thread, at, i::TASK_ENTER, &bytes![task]);
            }
            5 => {
                if let Some(task) = on[thread].pop() {
                    let code = if dice.below(2) == 0 { i::TASK_LEAVE } else { i::TASK_YIELD };
                    say(thread, at, code, &bytes![task]);
                }
            }
            _ => {}
        }
    }
    for thread in 0..THREADS {
        while let Some(task) = on[thread].pop() {
            say(thread, 99_500, i::TASK_LEAVE, &bytes![task]);
        }
        while let Some((is_state, value)) = open[6 + thread].pop() {
            let (code, payload) = if is_state {
                (i::STATE_POP, bytes![50_u32])
            } else {
                (i::BURST_CLOSE, bytes![1_u32, value])
            };
            say(thread, 99_600, code, &payload);
        }
    }
    threads.into_iter().for_each(|thread| thread.write(root));
    first_clock(root) as u64
}

/// The sections of threads and tasks open during the range: changes, as they are shown.
fn shown(root: &Path, clocks: (i64, i64)) -> Vec<String> {
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let names = Names::of(&trace);
    let tids: Vec<_> = trace.streams().iter().map(|stream| stream.tid().unwrap()).collect();
    let mut lines = Vec::new();
    taskscope_session::instrumentation::play(
        &trace,
        &names,
        Behaviour::Stacked,
        |_| true,
        |item| {
            if (clocks.0 as u64..clocks.1 as u64).contains(&item.at) {
                let lane = match item.lane {
                    Lane::Thread(thread) => format!("thread {}", tids[thread as usize]),
                    Lane::Task { task, .. } => format!("task {task}"),
                };
                let words = match item.shown {
                    Shown::Resume { task, .. } => format!("resumes {task}"),
                    Shown::Suspend { task, .. } => format!("suspends {task}"),
                    shown => format!("{shown:?}"),
                };
                lines.push(format!("{} {lane} {words}", item.at));
            }
            ControlFlow::Continue(())
        },
    );
    lines.sort();
    lines
}

/// The violations that `check` would list.
fn violations(root: &Path) -> Vec<Violation> {
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let (system, mut violations) = emulation::system_of(&trace);
    let mut machine = Machine::new(&system, MachineOptions::default(), NoViews);
    emulation::play(&trace, &mut machine, |_, machine| {
        violations.extend(machine.take_violations());
        ControlFlow::Continue(())
    });
    violations
}

#[test]
fn slices_of_instrumented_programs_restore_the_open_states() {
    let mut dice = Dice::new(17);
    for seed in 0..6 {
        let root = tempfile::tempdir().unwrap();
        let start = write_moving_tasks(root.path(), seed);
        for _ in 0..12 {
            let begin = start + dice.below(95_000);
            let clocks = (begin as i64, (begin + 1 + dice.below(30_000)) as i64);
            let part = tempfile::tempdir().unwrap();
            slice(root.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
            assert_eq!(shown(part.path(), clocks), shown(root.path(), clocks), "seed {seed}, {clocks:?}");
            assert_eq!(violations(part.path()), [], "seed {seed}, {clocks:?}");
        }
    }
}

#[test]
fn a_slice_of_threads_has_the_names_and_objects_of_others() {
    let root = tempfile::tempdir().unwrap();
    InstrumentedThread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"walker", b"src/walk.rs"])
        .event(10, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .event(11, i::TASK_CREATE, &bytes![2_u64, 1_u32])
        .write(root.path());
    InstrumentedThread::new(100, 101)
        .event(500, i::TASK_ENTER, &bytes![2_u64])
        .event(600, i::TASK_END, &bytes![2_u64])
        .write(root.path());
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![101], ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let codes: Vec<Code> = trace.merge().map(|merged| merged.event.code).collect();
    let ends =
        [ovni::THREAD_EXECUTES, i::TASK_KIND, i::TASK_CREATE, i::TASK_ENTER, i::TASK_END, ovni::THREAD_ENDS];
    assert_eq!(codes, ends, "the task that is not taken up is not created");
}

/// The verdicts of both judges on a trace, `check` and `emulate -l`, with their violations.
fn judged(root: &Path) -> ([bool; 2], Vec<Violation>) {
    let violations = violations(root);
    let mut verdict = Verdict::default();
    violations.iter().for_each(|violation| verdict.add(violation));
    ([Judge::Own, Judge::Ovni { lint: true }].map(|judge| verdict.accepts(judge)), violations)
}

/// Slices a trace by each of its threads, and by every second one: a judge that accepts the trace accepts all
/// slices. Of very many threads, every fifth stands for all. How many slices there were.
fn slice_by_threads(root: &Path) -> usize {
    let (whole, _) = judged(root);
    if whole == [false, false] {
        return 0;
    }
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let mut tids: Vec<i64> = trace.streams().iter().filter_map(|stream| stream.tid()).collect();
    tids.sort_unstable();
    tids.dedup();
    let step = if tids.len() > 60 { 5 } else { 1 };
    let mut choices: Vec<Vec<i64>> = tids.iter().step_by(step).map(|tid| vec![*tid]).collect();
    choices.push(tids.iter().copied().step_by(2).collect());
    for threads in &choices {
        let part = tempfile::tempdir().unwrap();
        slice(root, part.path(), &Slice { threads: threads.clone(), ..Slice::default() });
        let (accepted, violations) = judged(part.path());
        for (whole, part) in whole.into_iter().zip(accepted) {
            assert!(part || !whole, "{} --threads {threads:?}: {violations:#?}", root.display());
        }
    }
    choices.len()
}

#[test]
fn slices_of_some_threads_of_reference_traces_are_valid() {
    let traces = reference_traces();
    let slices: usize = on_all_cpus(&traces, |_, trace| slice_by_threads(trace)).iter().sum();
    assert!(traces.is_empty() || slices > 400, "only {slices} slices");
}

/// A process of three threads that need each other: for moves, CPUs, marks, its rank, and tasks.
fn write_threads_that_need_each_other(root: &Path) {
    let mark = |value: i64| bytes![value, 5_u32];
    let mut last = StreamBuilder::new(0, 1, 3).rank(0, 1);
    last.metadata["ovni"]["loom_cpus"] = json!([{"index": 1, "phyid": 1}, {"index": 2, "phyid": 2}]);
    last.metadata["ovni"]["mark"] =
        json!({"5": {"title": "phase", "chan_type": "stack", "labels": {"1": "read", "2": "write"}}});
    last.execute(1000, 2)
        .jumbo(1001, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1002, nosv::TASK_CREATE, &pair(1, 7))
        .event(1300, ovni::REMOTE_AFFINITY, &pair(1, 1))
        .event(1400, ovni::REMOTE_AFFINITY, &pair(1, 2))
        .end(3000)
        .write(root)
        .unwrap();
    let mut first = StreamBuilder::new(0, 1, 1);
    first.metadata["ovni"]["loom_cpus"] = json!([{"index": 0, "phyid": 0}]);
    first
        .execute(1100, 0)
        .event(1110, ovni::MARK_PUSH, &mark(2))
        .event(1120, ovni::MARK_POP, &mark(2))
        .point(1130, ovni::THREAD_PAUSES)
        .point(1320, ovni::THREAD_RESUMES)
        .event(1330, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(1340, nosv::TASK_END, &pair(1, 0))
        .event(1350, ovni::REMOTE_AFFINITY, &pair(0, 3))
        .event(1360, ovni::REMOTE_AFFINITY, &pair(2, 3))
        .end(1370)
        .write(root)
        .unwrap();
    // The kernel has taken it off its CPU when it is moved.
    let mut second = StreamBuilder::new(0, 1, 2);
    second.metadata["ovni"]["mark"] = json!({"5": {"title": "phase", "chan_type": "stack"}});
    second
        .execute(1371, 0)
        .point(1380, kernel::OUT_OF_CPU)
        .point(1500, kernel::BACK_ON_CPU)
        .point(1510, ovni::BURST)
        .end(1600)
        .write(root)
        .unwrap();
}

#[test]
fn slices_of_threads_that_need_each_other_are_valid() {
    let root = tempfile::tempdir().unwrap();
    write_threads_that_need_each_other(root.path());
    assert_eq!(judged(root.path()), ([true, true], vec![]));
    slice_by_threads(root.path());
    // Events of the other threads about the first thread are all in its part.
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![1], ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let moves: Vec<_> = trace.merge().filter(|merged| merged.event.code == ovni::REMOTE_AFFINITY).collect();
    assert_eq!(moves.len(), 1);
    assert_eq!((moves[0].event.clock_ns, moves[0].event.payload), (1300, &pair(1, 1)[..]));
    let metadata = &trace.streams()[0].metadata;
    assert_eq!((metadata.rank, metadata.loom_cpus.as_ref().unwrap().len()), (Some(0), 3));
    assert_eq!(metadata.marks[0].labels.iter().count(), 2);
}

#[test]
fn objects_created_before_the_range_are_known_to_threads_that_start_in_it() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 1)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1010, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1020, nosv::TASK_CREATE, &pair(1, 7))
        .end(1100)
        .write(root.path())
        .unwrap();
    StreamBuilder::new(0, 1, 2)
        .execute(1300, 0)
        .event(1310, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(1320, nosv::TASK_END, &pair(1, 0))
        .end(1330)
        .write(root.path())
        .unwrap();
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { clocks: Some((1200, 1400)), ..Slice::default() });
    assert_eq!(judged(part.path()), ([true, true], vec![]));
}

/// A type that a thread which is left out creates in the range, while one that is kept does not run.
#[test]
fn borrowed_types_are_there_before_their_first_use() {
    let require = ["ovni", "nanos6", "kernel"];
    let borrows = |thread: &dyn Fn(StreamBuilder) -> StreamBuilder| {
        let (root, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        StreamBuilder::new(0, 1, 1)
            .require(&require)
            .cpus(2)
            .execute(1000, 0)
            .jumbo(1050, nanos6::TYPE_CREATE, &type_payload(7, "work"))
            .end(1100)
            .write(root.path())
            .unwrap();
        let kept = StreamBuilder::new(0, 1, 2).require(&require).execute(1001, 1);
        thread(kept).end(1090).write(root.path()).unwrap();
        assert_eq!(judged(root.path()), ([true, true], vec![]));
        slice(root.path(), part.path(), &Slice { threads: vec![2], ..Slice::default() });
        assert_eq!(judged(part.path()), ([true, true], vec![]));
    };
    let creates = |thread: StreamBuilder, at| thread.event(at, nanos6::TASK_CREATE, &pair(1, 7));
    borrows(&|thread| {
        let warming = thread.point(1010, ovni::THREAD_PAUSES).point(1060, ovni::THREAD_WARMS);
        creates(warming, 1070).point(1080, ovni::THREAD_RESUMES)
    });
    borrows(&|thread| creates(thread.point(1060, ovni::THREAD_COOLS), 1070));
    borrows(&|thread| creates(thread.point(1040, kernel::OUT_OF_CPU), 1070).point(1080, kernel::BACK_ON_CPU));
}

#[test]
fn streams_in_directories_of_invalid_utf8_stay_separate() {
    let root = tempfile::tempdir().unwrap();
    for (tid, name) in [b"a\xfe", b"a\xff"].into_iter().enumerate() {
        let stream = StreamBuilder::new(0, 1, 1 + tid as u32).cpus(2).execute(1000, tid as i32).end(2000);
        let written = stream.write(root.path()).unwrap();
        std::fs::rename(written, root.path().join(OsStr::from_bytes(name))).unwrap();
    }
    let part = tempfile::tempdir().unwrap();
    assert_eq!(slice(root.path(), part.path(), &Slice::default()), 2);
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    assert_eq!((trace.streams().len(), trace.event_count()), (2, 4));
}

#[test]
fn threads_that_are_moved_off_their_cpus_are_moved_in_time() {
    let no_cpu = -1;
    [0, no_cpu].into_iter().for_each(moved_in_time);
}

/// The first thread moves the second while the kernel keeps that from its CPU, on which the third starts, or on none.
fn moved_in_time(cpu_of_third: i32) {
    let root = tempfile::tempdir().unwrap();
    let write = |stream: StreamBuilder| stream.write(root.path()).unwrap();
    write(
        StreamBuilder::new(0, 1, 1)
            .cpus(3)
            .execute(1000, 2)
            .event(1020, ovni::REMOTE_AFFINITY, &pair(1, 2))
            .end(1400),
    );
    let second = StreamBuilder::new(0, 1, 2).execute(1005, 0).point(1010, kernel::OUT_OF_CPU);
    write(second.point(1200, kernel::BACK_ON_CPU).end(1300));
    write(StreamBuilder::new(0, 1, 3).execute(1030, cpu_of_third).end(1100));
    assert_eq!(judged(root.path()), ([true, true], vec![]));
    let moves = |threads: &[i64]| {
        let part = tempfile::tempdir().unwrap();
        slice(root.path(), part.path(), &Slice { threads: threads.to_vec(), ..Slice::default() });
        assert_eq!(judged(part.path()), ([true, true], vec![]), "{threads:?}");
        let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
        let moves = trace.merge().filter(|merged| merged.event.code == ovni::REMOTE_AFFINITY);
        moves.map(|merged| merged.event.clock_ns).collect::<Vec<_>>()
    };
    assert_eq!(moves(&[2, 3]), [1030], "as soon as another thread of the process can tell");
    assert_eq!(moves(&[2]), [1200], "when it is back");
}

#[test]
fn clocks_that_are_corrected_to_before_0_are_so_in_a_slice() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 1)
        .cpus(1)
        .execute(500, 0)
        .point(550, ovni::BURST)
        .end(700)
        .write(root.path())
        .unwrap();
    let host =
        Trace::open(root.path(), &OpenOptions::default()).unwrap().streams()[0].metadata.host().to_owned();
    std::fs::write(
        root.path().join("clock-offsets.txt"),
        format!("rank hostname offset_median offset_mean offset_std\n0 {host} -600 -600 0\n"),
    )
    .unwrap();
    let clocks = |root: &Path| {
        let trace = Trace::open(root, &OpenOptions::default()).unwrap();
        trace.merge().map(|merged| merged.event.clock_ns).collect::<Vec<_>>()
    };
    assert_eq!(clocks(root.path()), [-100, -50, 100]);
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice::default());
    assert_eq!(clocks(part.path()), [-100, -50, 100]);
}

/// `check` refuses such clocks; a slice loses none of their events.
#[test]
fn events_at_the_latest_clock_stay() {
    let root = tempfile::tempdir().unwrap();
    let last = i64::MAX as u64;
    StreamBuilder::new(0, 1, 1)
        .cpus(1)
        .execute(500, 0)
        .point(last, ovni::BURST)
        .end(last)
        .write(root.path())
        .unwrap();
    for clocks in [None, Some((0, i64::MAX))] {
        let part = tempfile::tempdir().unwrap();
        slice(root.path(), part.path(), &Slice { clocks, ..Slice::default() });
        let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
        assert_eq!(trace.merge().filter(|merged| merged.event.clock_ns == i64::MAX).count(), 2, "{clocks:?}");
    }
}

/// Damaged events that open a section, with jumbo data of every length: sections open at the borders are written again,
/// and closed by plain events.
#[test]
fn slices_of_openings_that_are_jumbo_by_damage_are_traces() {
    let openings = [
        nosv::TASK_EXECUTE,
        nosv::TASK_PAUSE,
        nanos6::TASK_EXECUTE,
        nanos6::TASK_PAUSE,
        openmp::TASK_EXECUTE,
        openmp::WORKSHARE_EXECUTE,
        ovni::MARK_PUSH,
        ovni::MARK_SET,
        ovni::SET_AFFINITY,
        nosv::SCHEDULER_SERVING_BEGIN,
    ];
    for code in openings {
        for length in 0..=40 {
            let root = tempfile::tempdir().unwrap();
            let stream = StreamBuilder::new(0, 1, 1).cpus(1).execute(1000, 0);
            stream.jumbo(1100, code, &vec![1; length]).end(2000).write(root.path()).unwrap();
            for clocks in [(1000, 1500), (1200, 1500), (1200, 3000)] {
                let part = tempfile::tempdir().unwrap();
                slice(root.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
                let whole = judged(part.path()).1;
                let is_cut = |violation: &Violation| violation.code == ViolationCode::TruncatedEvent;
                assert!(!whole.iter().any(is_cut), "{code} {length}: {whole:?}");
            }
        }
    }
}

/// The start of a thread says its CPU in jumbo data, while a move of another thread is kept back.
#[test]
fn a_start_that_is_jumbo_by_damage_is_put_after_moves() {
    let root = tempfile::tempdir().unwrap();
    let write = |stream: StreamBuilder| stream.write(root.path()).unwrap();
    let first = StreamBuilder::new(0, 1, 1).cpus(3).execute(1000, 2);
    write(first.event(1020, ovni::REMOTE_AFFINITY, &pair(1, 2)).end(1400));
    let second = StreamBuilder::new(0, 1, 2).execute(1005, 0).point(1010, kernel::OUT_OF_CPU);
    write(second.point(1200, kernel::BACK_ON_CPU).end(1300));
    write(StreamBuilder::new(0, 1, 3).jumbo(1030, ovni::THREAD_EXECUTES, &[1]).end(1100));
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![2, 3], ..Slice::default() });
    Trace::open(part.path(), &OpenOptions::default()).unwrap();
}

/// Entries of waits stand until the next one: a slice after the last has them, as it has held locks.
#[test]
fn a_slice_has_the_locks_and_places_of_waits_from_before() {
    let (root, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = StreamBuilder::new(0, 1, 1)
        .require(&["ovni", "openmp"])
        .cpus(1)
        .execute(500, 0)
        .point(1000, openmp::CRITICAL_ACQUIRING_BEGIN)
        .point(3000, openmp::CRITICAL_ACQUIRING_END)
        .end(4000)
        .write(root.path())
        .unwrap();
    let lock = |object: u64, kind: u32| [&object.to_le_bytes()[..], &kind.to_le_bytes()].concat();
    let waits = |object: u64, kind: u32| {
        [&object.to_le_bytes()[..], &0_u32.to_le_bytes(), &kind.to_le_bytes()].concat()
    };
    let mut own = taskscope_event::framing::file_header().to_vec();
    let events = [
        (600, wait::ACQUIRED, lock(5, wait::kind::LOCK)),
        (700, wait::ACQUIRED, lock(6, wait::kind::LOCK)),
        (800, wait::RELEASED, lock(5, wait::kind::LOCK)),
        (900, wait::WAIT_OBJECT, waits(7, wait::kind::CRITICAL)),
        (950, wait::WAIT_OBJECT, waits(8, wait::kind::CRITICAL)),
        (1000, wait::WAIT_OBJECT, waits(9, wait::kind::LOCK)),
    ];
    events.iter().for_each(|(clock, code, payload)| {
        taskscope_testkit::trace_builder::push_event(&mut own, *code, *clock, payload)
    });
    std::fs::write(directory.join("taskscope.obs"), own).unwrap();

    slice(root.path(), part.path(), &Slice { clocks: Some((2000, 2500)), ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let written: Vec<_> = (trace.merge())
        .filter(|merged| merged.event.code.model() == wait::LETTER)
        .map(|merged| (merged.event.clock_ns, merged.event.code, merged.event.payload.to_vec()))
        .collect();
    let expected = [1, 4, 5].map(|event| (1998, events[event].1, events[event].2.clone()));
    assert_eq!(written, expected);
    let run = taskscope_session::RunFile::load(part.path()).unwrap().unwrap();
    assert_eq!(run.notices.iter().map(|notice| &notice.name).collect::<Vec<_>>(), ["slice"]);
}
