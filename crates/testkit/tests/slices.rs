//! A slice is a valid trace whose views within the range are those of the whole.

mod common;

use common::emulate;
use std::path::Path;
use taskscope_event::models::{nosv, ovni};
use taskscope_model::MachineOptions;
use taskscope_session::judgement::Judge;
use taskscope_testkit::generator::{Generator, Runtime};
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
fn a_slice_shows_what_the_whole_shows() {
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

#[test]
fn a_slice_of_several_hosts_says_that_its_clocks_are_right() {
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
