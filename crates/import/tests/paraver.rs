//! Traces of Paraver: the content of Extrae's form, and errors with their lines.

use taskscope_event::models::instrument::class;
use taskscope_import::paraver::{ParaverFiles, is_paraver, read_paraver};
use taskscope_import::spans::{Activity, Run, write_run};

/// Two tasks of two threads on two nodes, times in microseconds: a task with MPI in it, states, a message.
const RECORDS: &str = "\
#Paraver (21/11/2026 at 03:20):1000_us:2(2,2):1:2(2:1,2:2),1
c:1:1:2:1:2
1:1:1:1:1:0:400:1
2:1:1:1:1:100:60000023:7:60000123:12
2:1:1:1:1:200:50000001:1
2:1:1:1:1:250:50000001:0:42000050:-5
2:1:1:1:1:300:60000023:0
1:1:1:1:1:400:600:7
1:2:1:1:2:0:-1:0
3:1:1:1:1:200:210:3:1:2:1:480:500:64:1
1:3:1:2:1:0:500:3
# a comment
1:4:1:2:2:0:1000:77
3:3:1:2:1:900:900:1:1:1:1:100:100:8:2
";
const LABELS: &str = "\
STATES
0    Idle
1    Running
7    Scheduling and Fork/Join
77   Own state

EVENT_TYPE
0    60000018   Parallel
0    60000023   Task function

VALUES
0      End
7      solve (solver.c)
EVENT_TYPE
9    50000001    MPI Point-to-point
VALUES
1   MPI_Send
";
const ROWS: &str = "LEVEL CPU SIZE 4\n1.1\n1.2\n2.1\n2.2\n\nLEVEL NODE SIZE 2\nalpha\nbeta\n\nLEVEL THREAD SIZE 4\na\nb\nc\nd\n";

fn read(records: &str) -> Result<Run, String> {
    read_paraver(ParaverFiles { records, labels: LABELS, rows: ROWS }).map_err(|errors| errors.to_string())
}

#[test]
fn states_code_and_messages_of_extrae_are_read() {
    assert!(is_paraver(RECORDS));
    let run = read(RECORDS).unwrap();
    let hosts: Vec<_> = run.processes.iter().map(|process| (process.host.as_str(), process.rank)).collect();
    assert_eq!(hosts, [("alpha", Some((0, 2))), ("beta", Some((1, 2)))]);
    let names: Vec<_> = run.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let spans = |thread: usize| {
        let mut spans: Vec<_> = (run.threads[thread].spans.iter())
            .map(|span| {
                let kind = &run.kinds[span.kind as usize];
                (span.start / 1000, span.end / 1000, kind.name.as_str(), kind.activity)
            })
            .collect();
        spans.sort_by_key(|span| (span.0, span.1));
        spans
    };
    let state = Activity::State;
    assert_eq!(
        spans(0),
        [
            (0, 100, "Running", state(class::USEFUL)),
            (100, 300, "solve (solver.c)", Activity::Task),
            (200, 250, "MPI_Send", state(class::COMMUNICATION)),
            (300, 400, "Running", state(class::USEFUL)),
            (400, 600, "Scheduling and Fork/Join", state(class::SCHEDULING)),
        ]
    );
    assert_eq!(spans(1), [(0, 1000, "Idle", state(class::IDLE))]);
    assert_eq!(spans(3), [(0, 1000, "Own state", state(class::UNKNOWN))]);
    let flows: Vec<_> = run.flows.iter().map(|flow| (flow.from, flow.from_at, flow.to, flow.to_at)).collect();
    assert_eq!(flows, [(0, 200_000, 2, 500_000)]);
    let counts = ["events of other types", "communications", "sizes of communications"];
    assert_eq!(counts.map(|content| run.losses.count(content)), [2, 1, 2]);
    let trace = tempfile::tempdir().unwrap();
    write_run(&run, &trace.path().join("trace")).unwrap();
}

#[test]
fn lines_may_be_in_any_order() {
    let mut lines: Vec<&str> = RECORDS.lines().collect();
    lines[2..].reverse();
    let (run, expected) = (read(&lines.join("\n")).unwrap(), read(RECORDS).unwrap());
    let spans = |run: &Run| -> Vec<Vec<(u64, u64, String)>> {
        let sorted_spans = |thread: &taskscope_import::spans::Thread| {
            let name = |kind: u32| run.kinds[kind as usize].name.clone();
            let mut spans: Vec<_> =
                thread.spans.iter().map(|span| (span.start, span.end, name(span.kind))).collect();
            spans.sort();
            spans
        };
        run.threads.iter().map(sorted_spans).collect()
    };
    assert_eq!(spans(&run), spans(&expected));
}

/// Threads that the header alone has cost nothing: a file of a few lines may announce a million of them.
#[test]
fn threads_without_records_are_counted() {
    let records = RECORDS
        .replacen("2(2:1,2:2)", "2(2:1,1000000:2)", 1)
        .replace(":1:2:2:0:1000:", ":1:2:900000:0:1000:");
    let run = read(&records).unwrap();
    assert_eq!((run.threads.len(), run.losses.count("threads without records")), (4, 999_998));
    assert!(run.losses.iter().any(|loss| loss.first == "thread 1.2.2"));
    let flows: Vec<_> = run.flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(flows, [(0, 2)]);
    let processes: Vec<_> = run.threads.iter().map(|thread| thread.process).collect();
    assert_eq!(processes, [0, 0, 1, 1]);
    // A flow between threads behind the gap.
    let records = records + "3:3:1:2:1:10:10:4:1:2:900000:100:100:8:2\n";
    let flows: Vec<_> = read(&records).unwrap().flows.iter().map(|flow| (flow.from, flow.to)).collect();
    assert_eq!(flows, [(0, 2), (2, 3)]);
}

#[test]
fn malformed_traces_are_refused_with_their_line() {
    for (from, to, expected) in [
        ("1000_us", "1000_ps", "line 1: header: the unit is none of _ns, _us, _ms: _ps"),
        (":1:2(2:1,2:2),1", "", "line 1: header: it has no applications"),
        ("1:2(2:1,2:2)", "1:3(2:1,2:2)", "an application has another number of tasks than it announces"),
        ("2(2:1,2:2)", "2(2:1,9999999999:2)", "it has more than a million threads or tasks"),
        ("2(2:1,2:2)", "2(0:1,0:2)", "it has no thread"),
        ("1000_us", "99999999999999999_us", "the end time is beyond the clock of 2^63 ns"),
        ("1:1:1:1:1:0:400:1", "1:1:1:1:1:0:4x0:1", "line 3: end: \"4x0\" is not a whole number from 0 on"),
        ("1:1:1:1:1:0:400:1", "1:1:1:1:9:0:400:1", "line 3: thread: the header has no thread 1.1.9"),
        ("1:1:1:1:1:0:400:1", "1:1:1:1:1:500:400:1", "line 3: end: it is before the begin 500000"),
        ("1:1:1:1:1:0:400:1", "1:1:1:1:1:0:18446744073709551615:1", "beyond the clock of 2^63 ns"),
        ("1:1:1:1:1:0:400:1", "1:1:1:1:1:0:18446744073709551616:1", "is not a whole number from 0 on"),
        ("60000123:12", "60000123", "line 4: value: the line ends before it"),
        (":64:1\n", ":64\n", "line 10: tag: the line ends before it"),
        ("1:4:1:2:2", "9:4:1:2:2", "line 13: record: \"9\" is not a kind of record"),
    ] {
        let broken = RECORDS.replacen(from, to, 1);
        assert_ne!(broken, RECORDS, "{from}");
        let message = read(&broken).err().unwrap_or_else(|| panic!("{from} → {to} was read"));
        assert!(message.contains(expected), "{from} → {to}: {message}");
    }
    let first = RECORDS.lines().next().unwrap();
    assert!(read(first).unwrap_err().contains("it has no state"));
}

#[test]
fn cut_traces_never_panic() {
    for end in 0..RECORDS.len() {
        let _ = read(&RECORDS[..end]);
    }
}
