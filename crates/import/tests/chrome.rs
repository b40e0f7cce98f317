//! Chrome's trace events: accepted files, and error messages of rejected ones.

mod common;

use common::opened;
use std::collections::BTreeMap;
use taskscope_execution::{State, TaskIndex};
use taskscope_import::chrome::{is_chrome, read_chrome};
use taskscope_import::spans::{Flow, Run, write_run};

/// A document with these rows, each on a line of its own from line 2 on.
fn document(rows: &[&str]) -> String {
    format!("{{\"traceEvents\":[\n{}\n]}}", rows.join(",\n"))
}

fn read(rows: &[&str]) -> Run {
    read_chrome(&document(rows)).unwrap()
}

fn error(rows: &[&str]) -> String {
    read_chrome(&document(rows)).unwrap_err().to_string()
}

/// The losses as `count content`, with the place of the first.
fn losses(run: &Run) -> Vec<String> {
    run.losses.iter().map(|loss| format!("{} {} ({})", loss.count, loss.content, loss.first)).collect()
}

const OUTER: &str = r#"{"ph":"X","pid":7,"tid":8,"ts":10,"dur":20.5,"name":"outer"}"#;
const INNER: &str = r#"{"ph":"X","pid":7,"tid":8,"ts":12,"dur":3,"name":"inner"}"#;
const OTHER: &str = r#"{"ph":"X","pid":7,"tid":9,"ts":40,"dur":10,"name":"other"}"#;

#[test]
fn complete_events_become_tasks_with_their_own_time() {
    let run = read(&[INNER, OUTER, OTHER]);
    assert_eq!((run.span_count(), run.threads.len(), run.process_count()), (3, 2, 1));
    let execution = opened(&run).execution;
    assert_eq!(execution.tasks.len(), 3);
    let mut times: BTreeMap<(State, u32), u64> = BTreeMap::new();
    for span in execution.threads.iter().flat_map(|thread| thread.track.spans()) {
        *times.entry((span.section.state, span.section.task.0)).or_default() += span.end - span.start;
    }
    times.retain(|_, time| *time > 0);
    // Tasks by their begins; both threads live as long as the process, and a nanosecond.
    let none = TaskIndex::NONE.0;
    let expected = [
        ((State::Task, 0), 17_500),
        ((State::Task, 1), 3_000),
        ((State::Task, 2), 10_000),
        ((State::Unknown, none), 2 * 40_001 - 30_500),
    ];
    assert_eq!(times, BTreeMap::from(expected));
}

#[test]
fn categories_of_own_exports_are_states() {
    let row = |category: &str, at: u32| {
        format!(r#"{{"ph":"X","pid":7,"tid":8,"ts":{at},"dur":10,"name":"n","cat":"{category}"}}"#)
    };
    let categories = ["task bodies", "idle", "unknown", "waiting for a lock", "communication", "cpu_op"];
    let rows: Vec<String> =
        categories.iter().zip((0..).step_by(10)).map(|(name, at)| row(name, at)).collect();
    let execution = opened(&read(&rows.iter().map(String::as_str).collect::<Vec<_>>())).execution;
    let spans = execution.threads.iter().flat_map(|thread| thread.track.spans());
    let found: Vec<State> =
        spans.filter(|span| span.end > span.start + 1).map(|span| span.section.state).collect();
    let expected =
        [State::Task, State::Idle, State::Unknown, State::LockWait, State::Communication, State::Task];
    assert_eq!(found, expected, "of one name");
}

#[test]
fn begins_and_ends_are_joined_in_the_order_of_time() {
    let run = read(&[
        r#"{"ph":"E","pid":1,"tid":1,"ts":9}"#,
        r#"{"ph":"B","pid":1,"tid":1,"ts":2,"name":"a"}"#,
        r#"{"ph":"B","pid":1,"tid":1,"ts":3,"name":"b"}"#,
        r#"{"ph":"E","pid":1,"tid":1,"ts":4}"#,
        r#"{"ph":"E","pid":1,"tid":1,"ts":1}"#,
        r#"{"ph":"B","pid":1,"tid":2,"ts":5,"name":"c"}"#,
    ]);
    let mut spans: Vec<_> = run.threads[0].spans.iter().map(|span| (span.start, span.end)).collect();
    spans.sort_unstable();
    assert_eq!(spans, [(2000, 9000), (3000, 4000)]);
    assert_eq!(run.threads[1].spans[0].end, 9000, "open until the last time of the file");
    let expected =
        ["1 ends of sections (line 6, traceEvents[4])", "1 ends of open sections (line 7, traceEvents[5])"];
    assert_eq!(losses(&run), expected);
    opened(&run);
}

#[test]
fn flows_order_the_sections_that_they_connect() {
    let run = read(&[
        OUTER,
        OTHER,
        r#"{"ph":"s","pid":7,"tid":8,"ts":30,"id":1,"cat":"dep","name":"d"}"#,
        r#"{"ph":"f","pid":7,"tid":9,"ts":31,"id":1,"cat":"dep","name":"d"}"#,
    ]);
    // Without `bp`, the end belongs to the next section.
    assert_eq!(run.flows, [Flow { from: 0, from_at: 30_000, to: 1, to_at: 40_000, domain: 0 }]);
    let session = opened(&run);
    let found = &session.execution.communication;
    let [message] = &found.messages[..] else { panic!("{found:?}") };
    assert_eq!((message.sent, message.received), (30_000, 40_000));
    assert_eq!((found.unmatched_sends, found.unmatched_receives), (0, 0));
}

#[test]
fn flows_against_the_clock_are_counted_with_their_places() {
    let flow = |phase: &str, id: u32, thread: u32, at: u32| {
        format!(r#"{{"ph":"{phase}","bp":"e","pid":7,"tid":{thread},"ts":{at},"id":{id},"name":"d"}}"#)
    };
    // Each thread waits for the other's later end.
    let rows = [flow("s", 1, 8, 30), flow("f", 1, 9, 12), flow("s", 2, 9, 31), flow("f", 2, 8, 11)];
    let rows: Vec<&str> = [OUTER, OTHER].into_iter().chain(rows.iter().map(String::as_str)).collect();
    let run = read(&rows);
    assert!(run.flows.is_empty());
    assert_eq!(
        losses(&run),
        ["2 ends of flows (line 5, traceEvents[3])", "2 begins of flows (line 4, traceEvents[2])"]
    );
    opened(&run);
}

#[test]
fn streams_become_queues_and_correlations_submissions() {
    let run = read(&[
        r#"{"ph":"M","pid":0,"name":"process_labels","args":{"labels":"GPU 0"}}"#,
        r#"{"ph":"M","pid":0,"tid":7,"name":"thread_name","args":{"name":"stream 7 "}}"#,
        r#"{"ph":"X","cat":"cpu_op","pid":7,"tid":8,"ts":1,"dur":9,"name":"aten::add"}"#,
        r#"{"ph":"X","cat":"cuda_runtime","pid":7,"tid":8,"ts":2,"dur":3,"name":"cudaLaunchKernel","args":{"correlation":5}}"#,
        r#"{"ph":"X","cat":"cuda_runtime","pid":7,"tid":8,"ts":6,"dur":3,"name":"cudaStreamSynchronize","args":{"correlation":6}}"#,
        r#"{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":4,"dur":4,"name":"k","args":{"stream":7,"correlation":5}}"#,
        r#"{"ph":"X","cat":"gpu_memcpy","pid":0,"tid":7,"ts":8,"dur":1,"name":"Memcpy DtoH","args":{"stream":7,"correlation":9,"bytes":64}}"#,
        r#"{"ph":"s","cat":"ac2g","pid":7,"tid":8,"ts":2,"id":5,"name":"ac2g"}"#,
        r#"{"ph":"f","cat":"ac2g","pid":0,"tid":7,"ts":4,"id":5,"name":"ac2g","bp":"e"}"#,
    ]);
    assert_eq!(losses(&run), ["1 flows of device operations (line 9, traceEvents[7])"]);
    let session = opened(&run);
    let [queue] = &session.devices.queues[..] else { panic!("{:?}", session.devices) };
    assert_eq!((queue.name.as_str(), queue.device.as_str(), queue.pid), ("stream 7", "GPU 0", Some(7)));
    assert_eq!(
        queue.operations.iter().map(|o| (o.start, o.end, o.bytes)).collect::<Vec<_>>(),
        [(4000, 8000, 0), (8000, 9000, 64)]
    );
    let [calls] = &session.devices.calls[..] else { panic!("{:?}", session.devices) };
    assert_eq!((calls.pid, calls.tid), (7, 8));
    assert_eq!(calls.calls.iter().map(|call| call.operation).collect::<Vec<_>>(), [Some((0, 0)), None]);
}

#[test]
fn errors_name_line_and_event() {
    for (row, expected) in [
        (r#"{"ph":"X","pid":1,"tid":1,"dur":1,"name":"a"}"#, "ts: the field `ts` is missing"),
        (r#"{"ph":"X","pid":1,"tid":1,"ts":1,"name":"a"}"#, "dur: the field `dur` is missing"),
        (
            r#"{"ph":"X","pid":1,"tid":1,"ts":-1,"dur":1}"#,
            "ts: -1 is negative; times are microseconds from 0 on",
        ),
        (r#"{"ph":"X","pid":1,"tid":1,"ts":1,"dur":-2}"#, "dur: -2 is negative"),
        (
            r#"{"ph":"X","pid":1,"tid":1,"ts":18446744073709551615,"dur":1}"#,
            "ts: 18446744073709551615 µs are beyond the clock of 2^63 ns",
        ),
        (
            r#"{"ph":"X","pid":1,"tid":1,"ts":1,"dur":18446744073709551615}"#,
            "dur: an end after 18446744073709551615 µs are beyond the clock of 2^63 ns",
        ),
        (r#"{"ph":"B","pid":1,"tid":1,"ts":"soon"}"#, "ts: \"soon\" is not a number of microseconds"),
        (r#"{"ph":"s","pid":1,"tid":1,"ts":1}"#, "id: a flow without an id"),
        (r#"{"ph":"X","name":7,"ts":1,"dur":1}"#, "invalid type: integer `7`, expected a string"),
        (r#"{"ph":"X","name":"\ud800","ts":1,"dur":1}"#, "unexpected end of hex escape"),
        ("7", "invalid type: integer `7`, expected an event"),
    ] {
        let message = error(&[OUTER, row]);
        let dot = if expected.split(' ').next().unwrap().ends_with(':') { "." } else { ": " };
        let expected = format!("line 3: traceEvents[1]{dot}{expected}");
        assert_eq!(message, expected);
    }
}

#[test]
fn cut_files_are_refused_but_for_open_arrays() {
    let whole = document(&[OUTER, INNER]);
    let cut = &whole[..whole.len() - 4];
    let message = read_chrome(cut).unwrap_err().to_string();
    assert_eq!(message, "line 3: EOF while parsing an object, after a whole event");
    let array = format!("[\n{OUTER},\n{INNER},\n");
    let run = read_chrome(&array).unwrap();
    assert_eq!((run.span_count(), losses(&run)), (2, vec!["1 ends of the file ()".to_owned()]));
    assert_eq!(read_chrome(&format!("[{OUTER}]")).unwrap().losses.iter().count(), 0);
    assert!(
        read_chrome("[").is_err()
            && read_chrome("{}").is_err()
            && read_chrome(&format!("[{OUTER}] x")).is_err()
    );
}

#[test]
fn files_without_sections_are_refused() {
    let name = r#"{"ph":"M","pid":1,"name":"process_name","args":{"name":"p"}}"#;
    assert_eq!(error(&[name]), "traceEvents: it has no event of a thread or a device");
}

#[test]
fn deep_json_is_read_without_a_stack() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let row =
        format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"a","args":{{"x":{deep}}},"y":{deep}}}"#);
    assert_eq!(read(&[&row]).span_count(), 1);
    let open = "[".repeat(200_000);
    assert!(read_chrome(&format!("{{\"traceEvents\":{open}")).is_err());
}

#[test]
fn names_of_any_characters_are_kept() {
    let row =
        r#"{"ph":"X","pid":"p\u0000/../x","tid":"\u001b[31m","ts":1,"dur":1,"name":"a\u0000b\n\u001b[2J/é"}"#;
    let metadata = r#"{"ph":"M","pid":"p\u0000/../x","name":"process_name","args":{"name":"\u0000"}}"#;
    let session = opened(&read(&[row, metadata]));
    assert_eq!(session.execution.tasks.len(), 1);
    let long = format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"{}"}}"#, "é".repeat(100_000));
    opened(&read(&[&long]));
}

#[test]
fn forms_are_recognised_by_their_content() {
    for text in [
        &document(&[OUTER])[..],
        "{\"a\":[1],\"traceEvents\":[",
        "[{\"ph\":\"M\"}",
        " [ {\"name\":1,\"ph\":\"X\"}]",
    ] {
        assert!(is_chrome(text), "{text}");
    }
    for text in [
        "",
        "{",
        "[",
        "[1]",
        "[[]]",
        "{\"trace\":{},\"traceEvents\":[]}",
        "Name: x",
        "[{\"executor\":\"0\"}]",
    ] {
        assert!(!is_chrome(text), "{text}");
    }
}

#[test]
fn nothing_is_left_of_an_import_that_fails() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("t");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine"), "").unwrap();
    assert!(write_run(&read(&[OUTER]), &target).is_err());
    let names = |path: &std::path::Path| std::fs::read_dir(path).unwrap().count();
    assert_eq!((names(root.path()), names(&target)), (1, 1));
    std::os::unix::fs::symlink(&target, root.path().join("link")).unwrap();
    assert!(write_run(&read(&[OUTER]), &root.path().join("link")).is_err());
    // An empty directory is replaced.
    std::fs::remove_file(target.join("mine")).unwrap();
    write_run(&read(&[OUTER]), &target).unwrap();
    assert_eq!(names(root.path()), 2);
}
