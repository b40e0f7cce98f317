//! Slices of ranges: views, clocks and open states are those of the whole.

use crate::common::emulate;
use crate::{first_clock, judged, slice};
use serde_json::json;
use std::path::Path;
use taskscope_check::verdict::Judge;
use taskscope_event::models::{nosv, openmp, ovni, wait};
use taskscope_model::MachineOptions;
use taskscope_testkit::bytes;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};
use taskscope_trace::{OpenOptions, ProblemKind, Slice, Trace};

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
        let part_rows = records(output.path(), first_clock(part.path()), clocks);
        emulate(whole.path(), output.path(), MachineOptions::default());
        let whole_rows = records(output.path(), first_clock(whole.path()), clocks);
        assert!(whole_rows.len() > 100);
        assert_eq!(part_rows, whole_rows, "{runtime:?}");
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
    let whole_rows = shown(whole.path());
    let resting = whole_rows.iter().filter(|(place, value)| place.ends_with("type 16") && value == "101");
    assert_eq!(resting.count(), 3, "{whole_rows:?}");
    assert_eq!(shown(part.path()), whole_rows);
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
        let part_rows = values(part.path());
        assert!(part_rows.iter().any(|row| row.ends_with(":8")), "{threads:?}: {part_rows:?}");
        assert_eq!(part_rows.iter().any(|row| row.ends_with(":7")), threads.is_empty(), "{part_rows:?}");
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
