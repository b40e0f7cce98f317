//! No input makes reading, playing or writing panic, hang, or take memory beyond a small multiple.
//!
//! `cargo test` runs a short while on random changes of valid traces; `make soak-input` runs for longer and prints the
//! number of inputs. Files without events: `hostile_files.rs`.

mod common;

use std::path::Path;
use taskscope_event::framing::file_header;
use taskscope_event::models::{self, MODELS, nanos6, nosv, openmp, ovni, recorder};
use taskscope_filter::{Filter, TimeRange};
use taskscope_model::MachineOptions;
use taskscope_session::selection::{FIELDS_OF_EVENTS, Selection};
use taskscope_session::{ReadProgress, Session};
use taskscope_testkit::trace_builder::{StreamBuilder, pair, push_event, type_payload};
use taskscope_trace::{OpenOptions, Slice, Trace};

fn iterations() -> usize {
    std::env::var("BOLERO_RANDOM_ITERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Prints the counts for `make soak-input`, which sums them.
fn print_inputs() {
    println!("\ninputs: {}", iterations());
}

/// Reads, replays with breakdowns, and writes the contents of `root`.
fn swallow(root: &Path) {
    let output = root.join("out");
    // Configurations are the same for every trace; existing ones are not rewritten.
    std::fs::create_dir_all(output.join("cfg")).unwrap();
    common::emulate(root, &output, MachineOptions { all_models: true, breakdown: true });
    // Reports, of the whole and of a part.
    let filter = Filter::parse("thread = 1 or taskid < 3", &FIELDS_OF_EVENTS).ok();
    let part = Selection { filter, range: TimeRange::parse("10%..70%").unwrap(), words: None, whole: false };
    for selection in [Selection::default(), part] {
        if let Ok(session) = Session::open_part(root, &selection, &ReadProgress::default()) {
            let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
            let report = taskscope_view::report_json(&session, &analysis, &problems);
            let total: u64 = report.causes.iter().map(|cause| cause.ns).sum();
            assert_eq!(report.capacity_ns, total, "every nanosecond has one cause");
        }
    }
    // Slices write the events that they read.
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    for (clocks, threads) in [(None, vec![1]), (Some((12, 20)), vec![]), (Some((25, 200)), vec![])] {
        let part = tempfile::tempdir().unwrap();
        let written = trace.write_slice(&Slice { clocks, threads, ..Slice::default() }, part.path());
        if written.unwrap().streams > 0 {
            assert!(Trace::open(part.path(), &OpenOptions::default()).is_ok());
        }
    }
}

fn valid_stream(tid: u32) -> StreamBuilder {
    living_stream(tid).end(30)
}

/// One that does not end yet.
fn living_stream(tid: u32) -> StreamBuilder {
    StreamBuilder::new(0, 1, tid)
        .cpus(2)
        .rank(0, 1)
        .execute(10, tid as i32 % 2)
        .jumbo(11, nosv::TYPE_CREATE, &type_payload(tid, "one"))
        .event(12, nosv::TASK_CREATE, &pair(tid, tid))
        .event(13, nosv::TASK_EXECUTE, &pair(tid, 0))
        .point(14, nosv::SCHEDULER_SERVING_BEGIN)
        .point(15, nosv::SCHEDULER_SERVING_END)
        .event(16, nosv::TASK_PAUSE, &pair(tid, 0))
        .point(17, ovni::THREAD_PAUSES)
        .point(18, ovni::THREAD_RESUMES)
        .event(19, nosv::TASK_RESUME, &pair(tid, 0))
        .event(20, nosv::TASK_END, &pair(tid, 0))
        .jumbo(21, nanos6::TYPE_CREATE, &type_payload(tid, "two"))
        .event(22, nanos6::TASK_CREATE, &pair(tid, tid))
        .event(23, nanos6::TASK_EXECUTE, &tid.to_le_bytes())
        .event(24, nanos6::TASK_END, &tid.to_le_bytes())
        .jumbo(25, openmp::TYPE_CREATE, &type_payload(tid, "three"))
        .event(26, openmp::WORKSHARE_EXECUTE, &tid.to_le_bytes())
        .event(27, openmp::WORKSHARE_END, &tid.to_le_bytes())
        .point(28, ovni::UNSORTED_BEGIN)
        .point(24, ovni::BURST)
        .point(29, ovni::UNSORTED_END)
}

#[test]
fn random_bytes_as_events() {
    bolero::check!().with_iterations(iterations()).with_max_len(600).for_each(|bytes: &[u8]| {
        let root = tempfile::tempdir().unwrap();
        let mut stream = StreamBuilder::new(0, 1, 1).cpus(2);
        stream.standard = file_header().to_vec();
        stream.standard.extend(bytes);
        stream.own = Some([&file_header()[..], bytes].concat());
        stream.write(root.path()).unwrap();
        swallow(root.path());
    });
    print_inputs();
}

/// Events with declared codes and random payloads reach deeper than random bytes.
#[test]
fn random_sequences_of_declared_events() {
    bolero::check!().with_iterations(iterations()).with_max_len(900).for_each(|bytes: &[u8]| {
        let mut events: Vec<_> = MODELS.iter().flat_map(|model| model.events).collect();
        // Openings identified by their payload are generated often: slices close them.
        let openings = [nosv::TASK_EXECUTE, nanos6::TASK_EXECUTE, openmp::WORKSHARE_EXECUTE, ovni::MARK_PUSH];
        let openings = openings.iter().filter_map(|code| models::find(*code));
        events.extend(openings.cycle().take(events.len() / 4));
        let root = tempfile::tempdir().unwrap();
        let mut streams = [valid_stream(1), living_stream(2)];
        for (index, chunk) in bytes.chunks_exact(9).enumerate() {
            let spec = events[usize::from(u16::from_le_bytes([chunk[0], chunk[1]])) % events.len()];
            let mut payload: Vec<u8> = chunk[3..].iter().map(|byte| byte % 4).collect();
            payload.resize(usize::from(chunk[2] % 17) + if chunk[3] > 230 { 8 } else { 0 }, 0);
            // Some are jumbo that should not be, or the other way round.
            let is_jumbo = spec.jumbo != (chunk[3] > 200);
            let fits = is_jumbo || !matches!(payload.len(), 1 | 17..);
            let payload = if fits { &payload[..] } else { &payload[..0] };
            let clock = 30 + index as u64 * u64::from(chunk[2] % 3);
            let stream = &mut streams[usize::from(chunk[2] >> 7)];
            *stream = if is_jumbo {
                stream.clone().jumbo(clock, spec.code, payload)
            } else {
                stream.clone().event(clock, spec.code, payload)
            };
        }
        streams.iter().for_each(|stream| drop(stream.write(root.path()).unwrap()));
        swallow(root.path());
    });
    print_inputs();
}

/// Bits flipped, bytes replaced, files cut, jumbo sizes near 2^32, clocks near 2^64.
#[test]
fn damaged_streams() {
    bolero::check!().with_iterations(iterations()).with_type::<Vec<(u16, u8, u8)>>().for_each(|changes| {
        let root = tempfile::tempdir().unwrap();
        let mut stream = valid_stream(1);
        for (place, value, kind) in changes {
            let length = stream.standard.len();
            if length == 0 {
                break;
            }
            let place = usize::from(*place) % length;
            match kind % 5 {
                0 => stream.standard[place] ^= 1 << (value % 8),
                1 => stream.standard[place] = *value,
                2 => stream.standard.truncate(place),
                3 => stream.standard[place..].iter_mut().take(4).for_each(|byte| *byte = 255 - value % 3),
                _ => stream.standard[place..].iter_mut().take(8).for_each(|byte| *byte = 255),
            }
        }
        stream.write(root.path()).unwrap();
        valid_stream(2).write(root.path()).unwrap();
        swallow(root.path());
    });
    print_inputs();
}

#[test]
fn damaged_metadata() {
    bolero::check!().with_iterations(iterations()).with_type::<Vec<(u16, u8, u8)>>().for_each(|changes| {
        let root = tempfile::tempdir().unwrap();
        let stream = valid_stream(1);
        let directory = stream.write(root.path()).unwrap();
        let mut text = stream.metadata.to_string().into_bytes();
        for (place, value, kind) in changes {
            let place = usize::from(*place) % text.len().max(1);
            match kind % 4 {
                _ if text.is_empty() => {}
                0 => text[place] = *value,
                1 => text[place] = b"0123456789-{}[]\",:/*"[usize::from(*value) % 20],
                2 => text.truncate(place),
                _ => text.insert(place, b"0123456789-{}[]\",:/*"[usize::from(*value) % 20]),
            }
        }
        std::fs::write(directory.join("stream.json"), text).unwrap();
        swallow(root.path());
    });
    print_inputs();
}

#[test]
fn extremes() {
    let root = tempfile::tempdir().unwrap();
    let mut stream = valid_stream(1).point(u64::MAX, ovni::BURST).point(u64::MAX - 1, ovni::BURST);
    stream.metadata["ovni"]["loom_cpus"] = serde_json::json!([
        {"index": i64::MAX, "phyid": i64::MAX}, {"index": -5, "phyid": 3}, {"index": "x"}, 7
    ]);
    stream.metadata["ovni"]["mark"] =
        serde_json::json!({"99999999999": {}, "5": {"title": "\n", "chan_type": "stack"}});
    stream.metadata["nosv"]["hwc"] = serde_json::json!({"0": {"name": "a"}, "7": {}});
    stream.metadata["ovni"]["rank"] = serde_json::json!(1e300);
    stream.metadata["ovni"]["nranks"] = serde_json::json!(-1);
    stream.write(root.path()).unwrap();
    std::fs::write(root.path().join("clock-offsets.txt"), "h\n0 node 1e18 0 0\n").unwrap();
    swallow(root.path());
}

/// Found by random damage (seed 196501727425491925433443558090078335654): recorders that say that they lost more events
/// than 64 bits count, on one thread and over threads.
#[test]
fn counts_of_lost_events_beyond_64_bits() {
    // Without a reason, and with one that lasts.
    for reason in [&[][..], &recorder::loss::NO_SPACE.to_le_bytes()] {
        let root = tempfile::tempdir().unwrap();
        for tid in [1, 2] {
            let mut stream = valid_stream(tid);
            let mut lost = file_header().to_vec();
            for clock in [13, 14, 22] {
                let payload = [&(u64::MAX - 1).to_le_bytes()[..], reason].concat();
                push_event(&mut lost, recorder::LOST, clock, &payload);
            }
            stream.own = Some(lost);
            stream.write(root.path()).unwrap();
        }
        swallow(root.path());
        let session = Session::open(root.path()).unwrap();
        assert_eq!(session.lost_events(), u64::MAX);
        let mut threads = session.execution.threads.iter().filter(|thread| thread.events > 0);
        assert!(threads.all(|thread| thread.lost_events == u64::MAX));
    }
}
