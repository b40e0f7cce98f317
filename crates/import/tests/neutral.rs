//! Accepted traces, and error messages of rejected ones.

use taskscope_import::neutral::{CsvTables, read_csv, read_json, unread_columns, write_json};
use taskscope_import::write_graph;

const GOOD: &str = r#"{
 "schema": "slo-case/1",
 "name": "two tasks",
 "trace": {
  "time_unit": "ns",
  "workers": [{"id": 0, "node": 0, "begin": 0, "end": 400},
              {"id": 1, "node": 1, "begin": 0, "end": 400}],
  "tasks": [
   {"id": 1, "type": "a", "node": 0, "worker": 0, "start": 0, "end": 100, "inputs": [], "runtime_uniform": 0},
   {"id": 2, "type": "b", "node": 1, "worker": 1,
    "start": 150,
    "end": 300, "inputs": [7], "runtime_uniform": 0}
  ],
  "data": [
   {"id": 7, "producer": 1, "produced": 100, "home": 0, "bytes": 8,
    "copies": [{"node": 1, "sent": 105, "arrived": 140}]}
  ],
  "runtime": [{"worker": 1, "start": 140, "end": 150, "kind": "dispatch"}]
 },
 "windows": [[0, 200], [200, 400]]
}"#;

fn errors_with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    read_json(&GOOD.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn a_good_file_is_read() {
    let case = read_json(GOOD).unwrap();
    assert_eq!((case.graph.tasks.len(), case.graph.data.len(), case.graph.workers.len()), (2, 1, 2));
    assert_eq!(case.windows, [(0, 200), (200, 400)]);
    assert_eq!(case.graph.available(0, 1), 140);
}

#[test]
fn errors_name_line_and_field() {
    for (from, to, expected) in [
        (
            "\"start\": 150",
            "\"start\": -5",
            "line 11: tasks[1].start: -5 is negative; ids and times are integers from 0 on",
        ),
        (
            "\"start\": 150",
            "\"start\": 150.5",
            "line 11: tasks[1].start: 150.5 is no integer; ids and times are integers",
        ),
        ("\"start\": 150,", "", "line 10: tasks[1].start: the field `start` is missing"),
        (
            "\"inputs\": [7]",
            "\"inputs\": [8]",
            "line 12: tasks[1].inputs: task 2 reads data 8, which does not exist",
        ),
        (
            "\"producer\": 1",
            "\"producer\": 9",
            "line 15: data[0].producer: data 7 is produced by task 9, which does not exist",
        ),
        (
            "\"start\": 150",
            "\"start\": 139",
            "line 12: tasks[1].inputs: task 2 starts at 139, before its input, data 7, is available on its node at 140",
        ),
        (
            "\"produced\": 100",
            "\"produced\": 101",
            "line 15: data[0].produced: data 7 is produced at 101, but its producer, task 1, runs from 0 to 100",
        ),
        (
            "\"sent\": 105",
            "\"sent\": 99",
            "line 16: data[0].sent: data 7 is sent to node 1 at 99, but it is produced at 100 and arrives at 140",
        ),
        ("\"worker\": 1,\n", "\"worker\": 5,\n", "line 10: tasks[1].worker: there is no worker 5"),
        (
            "\"node\": 1, \"worker\": 1,\n",
            "\"node\": 0, \"worker\": 1,\n",
            "line 10: tasks[1].node: task 2 is on node 0, but its worker 1 is on node 1",
        ),
        ("\"id\": 2,", "\"id\": 1,", "line 10: tasks[1].id: id 1 is used twice"),
        (
            "slo-case/1",
            "slo-case/9",
            "line 2: schema: schema `slo-case/9` is not known; this reads `slo-case/1`",
        ),
        (
            "\"time_unit\": \"ns\"",
            "\"time_unit\": \"us\"",
            "line 5: trace.time_unit: times in `us` are not read; give integers in nanoseconds, `ns`",
        ),
        (
            "\"end\": 300",
            "\"end\": 401",
            "line 12: tasks[1].end: task 2 runs from 150 to 401, outside the life of worker 1 (0 to 400)",
        ),
        (
            "\"end\": 150, \"kind\"",
            "\"end\": 130, \"kind\"",
            "line 18: runtime[0].end: it ends at 130, before it starts at 140",
        ),
    ] {
        let message = errors_with(from, to);
        assert!(message.lines().any(|line| line == expected), "{to}:\n{message}\ninstead of\n{expected}");
    }
}

#[test]
fn times_beyond_the_clock_are_refused() {
    for (from, to) in [
        ("\"end\": 400}", "\"end\": 18446744073709551615}"),
        ("\"end\": 150, \"kind\"", "\"end\": 18446744073709551615, \"kind\""),
        ("\"arrived\": 140", "\"arrived\": 18446744073709551614"),
        ("\"runtime_uniform\": 0}", "\"runtime_uniform\": 18446744073709551615}"),
    ] {
        let message = errors_with(from, to);
        assert!(
            message.contains("beyond the clock's range") || message.contains("is available on its node"),
            "{message}"
        );
    }
}

#[test]
fn a_cycle_is_named() {
    let text = GOOD
        .replace("\"inputs\": [], ", "\"inputs\": [8], ")
        .replace("\"data\": [", "\"data\": [{\"id\": 8, \"producer\": 2, \"produced\": 300, \"home\": 1},");
    let message = read_json(&text).unwrap_err().to_string();
    assert!(
        message.contains("task 1 waits for itself: task 1 → data 7 → task 2 → data 8 → task 1"),
        "{message}"
    );
}

#[test]
fn no_text_makes_it_panic() {
    for end in 0..GOOD.len() {
        assert!(read_json(&GOOD[..end]).is_err());
    }
    for bad in ["", "[]", "null", "{\"trace\": 3}", "{\"trace\": {\"workers\": [3], \"tasks\": [{}]}}"] {
        assert!(read_json(bad).is_err(), "{bad}");
    }
}

#[test]
fn csv_equals_json() {
    let tables = CsvTables {
        workers: "id,node,begin,end\n0,0,0,400\n1,1,0,400\n",
        tasks: "id,type,node,worker,start,end,inputs,runtime_uniform\n1,a,0,0,0,100,,0\n2,\"b, c\",1,1,150,300,7,0\n",
        data: "id,producer,produced,home\n7,1,100,0\n",
        copies: "data,node,sent,arrived\n7,1,105,140\n",
        runtime: "worker,start,end,kind\n1,140,150,dispatch\n",
    };
    let graph = read_csv(tables).unwrap();
    let case = read_json(GOOD).unwrap();
    assert_eq!(graph.data.produced, case.graph.data.produced);
    assert_eq!(graph.tasks.start, case.graph.tasks.start);
    assert_eq!(graph.copies, case.graph.copies);
    assert_eq!(graph.types[1].name, "b, c");

    let late = CsvTables { copies: "data,node,sent,arrived\n7,1,,160\n", ..tables };
    let message = read_csv(late).unwrap_err().to_string();
    assert!(message.starts_with("tasks.csv: line 3: inputs: task 2 starts at 150"), "{message}");
    let negative = CsvTables { workers: "id,node,begin,end\n0,0,-1,400\n", ..tables };
    let message = read_csv(negative).unwrap_err().to_string();
    assert!(message.starts_with("workers.csv: line 2: begin: -1 is negative"), "{message}");
    let short = CsvTables { data: "id,produced,home\n7,100,0\n", ..tables };
    let message = read_csv(short).unwrap_err().to_string();
    assert!(message.starts_with("data.csv: line 1: producer: the head line has no such column"), "{message}");
}

#[test]
fn csv_lines_beyond_all_files_are_refused() {
    let tables = CsvTables {
        workers: "id,node,begin,end\n5,0,0,90\n",
        tasks: "id,type,node,worker,start,end,line\n1,a,0,5,20,80,4294967296\n",
        ..CsvTables::default()
    };
    let error = read_csv(tables).unwrap_err().to_string();
    assert!(error.contains("4294967296 is no line of a file"), "{error}");
}

#[test]
fn csv_fields_may_be_quoted_and_have_line_breaks() {
    fn tables(tasks: &str) -> CsvTables<'_> {
        CsvTables { workers: "id,node,begin,end\r\n0,0,0,400\r\n", tasks, ..CsvTables::default() }
    }
    let tasks = "\u{feff}id,\"type\",node,worker,start,end,function\r\n\
                 1,\"a \"\"b\"\",\r\nc\",0,0,0,100,\"日本\r\n\"\r\n\r\n2,d,0,0,150,300,\r\n";
    let graph = read_csv(tables(tasks)).unwrap();
    assert_eq!(graph.types.iter().map(|ty| ty.name.as_str()).collect::<Vec<_>>(), ["a \"b\",\r\nc", "d"]);
    assert!(unread_columns(&tables(tasks)).is_empty());

    // Errors name the line of the field.
    let message = |tasks: &str| read_csv(tables(tasks)).unwrap_err().to_string();
    let late = tasks.replace("100,", "x,");
    assert!(message(&late).starts_with("tasks.csv: line 3: end: `x` is no integer"), "{}", message(&late));
    let late = tasks.replace("300", "-3");
    assert!(message(&late).starts_with("tasks.csv: line 6: end: -3 is negative"), "{}", message(&late));
    let more = tasks.replace("300,", "300,,,");
    assert!(
        message(&more).starts_with("tasks.csv: line 6: 9 fields, but the head line names 7"),
        "{}",
        message(&more)
    );

    // A quote that is not closed costs its line, not the rest of the file.
    let open = tasks.replace("2,d,0,0,150", "2,\"d,0,0,150").replace("300,", "300,\n3,e,0,0,-1,9,");
    let errors = read_csv(tables(&open)).unwrap_err().0;
    let places: Vec<_> = errors.iter().map(|error| (error.line, error.field.as_str())).collect();
    assert_eq!(places, [(6, "type"), (7, "start")]);
    let huge = format!("{tasks}4,\"{}", "x\n".repeat(1 << 20));
    let errors = read_csv(tables(&huge)).unwrap_err();
    assert_eq!((errors.0[0].line, errors.0[0].field.as_str(), errors.0.len()), (7, "type", 100));
}

/// The schema and the reader agree on examples: the page's own, those of this file, and ones with missing fields.
#[test]
fn the_schema_accepts_readable_documents() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&text("neutral-trace.schema.json")).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("neutral.json", schema).unwrap();
    let index = compiler.compile("neutral.json", &mut schemas).unwrap();
    let fits = |text: &str| schemas.validate(&serde_json::from_str(text).unwrap(), index).is_ok();
    let page = text("neutral-trace.md");
    let example = page.split("```json").nth(1).unwrap().split("```").next().unwrap();
    for good in [GOOD, example] {
        assert!(read_json(good).is_ok() && fits(good));
    }
    for (from, to) in [
        ("\"start\": 150", "\"start\": -5"),
        ("\"start\": 150,", ""),
        ("\"start\": 150", "\"start\": 150.5"),
        ("slo-case/1", "slo-case/9"),
        ("\"inputs\": [7]", "\"inputs\": [\"7\"]"),
    ] {
        let bad = GOOD.replacen(from, to, 1);
        assert!(read_json(&bad).is_err() && !fits(&bad), "{to}");
    }
}

#[test]
fn unknown_names_are_reported() {
    assert_eq!(read_json(GOOD).unwrap().unread, Vec::<String>::new());
    let mistyped = GOOD.replacen("\"inputs\"", "\"input\"", 1).replacen("\"runtime\"", "\"runtimes\"", 1);
    assert_eq!(read_json(&mistyped).unwrap().unread, ["trace.runtimes", "tasks[0].input"]);
    let tables = CsvTables {
        workers: "id,node,begin,end\n0,0,0,400\n",
        tasks: "id,type,node,worker,start,end,input\n1,a,0,0,0,100,\n",
        data: "",
        copies: "",
        runtime: "",
    };
    assert_eq!(unread_columns(&tables), ["tasks.csv: input"]);
    let message =
        read_json(&GOOD.replacen("\"start\": 150", "\"start\": \"late\"", 1)).unwrap_err().to_string();
    let nested = read_json(&GOOD.replacen("\"arrived\": 140", "\"arrived\": -2", 1)).unwrap_err().to_string();
    assert!(nested.contains("data[0].copies: [0].arrived: -2 is negative"), "{nested}");
    let listed =
        read_json(&GOOD.replacen("\"inputs\": [7]", "\"inputs\": [7.5]", 1)).unwrap_err().to_string();
    assert!(listed.contains("tasks[1].inputs: [0]: 7.5 is no integer"), "{listed}");
    assert!(message.contains("\"late\" is no integer; ids and times are integers"), "{message}");
}

/// Worker 5 executes, 6 serves the runtime, 7 was given nothing to do.
const WITH_SERVICE: &str = r#"{"trace": {
 "workers": [{"id": 5, "node": 0, "begin": 0, "end": 90}, {"id": 6, "node": 0, "begin": 10, "end": 200},
             {"id": 7, "node": 0, "begin": 0, "end": 90}],
 "tasks": [{"id": 1, "type": "a", "node": 0, "worker": 5, "start": 20, "end": 80}],
 "runtime": [{"worker": 6, "start": 10, "end": 150, "kind": "progress"}]}}"#;

fn capacity_of(from: &str, to: &str) -> (u64, usize) {
    let graph = read_json(&WITH_SERVICE.replacen(from, to, 1)).unwrap().graph;
    (graph.capacity(), graph.executing_workers().count())
}

#[test]
fn a_thread_of_the_runtime_is_no_capacity() {
    assert_eq!(capacity_of("", ""), (180, 2));
    // Communication serves as well; waiting for a lock, or for a CPU, does not.
    assert_eq!(capacity_of("progress", "comm"), (180, 2));
    assert_eq!(capacity_of("progress", "os"), (370, 3));
    // The names of causes mean the same.
    assert_eq!(capacity_of("progress", "mpi.late"), (180, 2));
    assert_eq!(capacity_of("progress", "runtime.schedule"), (180, 2));
    assert_eq!(capacity_of("progress", "cpu.none"), (370, 3));
    assert_eq!(capacity_of("progress", "lock"), (370, 3));
    // The given kind wins.
    let six = r#""id": 6,"#;
    assert_eq!(capacity_of(six, r#""id": 6, "kind": "worker","#), (370, 3));
    assert_eq!(capacity_of(six, r#""id": 6, "kind": "runtime","#), (180, 2));
    let seven = r#""id": 7,"#;
    assert_eq!(capacity_of(seven, r#""id": 7, "kind": "runtime","#), (90, 1));
    assert_eq!(capacity_of(seven, r#""id": 7, "kind": null,"#), (180, 2));
}

#[test]
fn the_kind_of_a_worker_is_checked() {
    let error = |to: &str| {
        let text = WITH_SERVICE.replacen(r#""id": 5,"#, &format!(r#""id": 5, "kind": {to},"#), 1);
        read_json(&text).unwrap_err().to_string()
    };
    assert!(error("\"helper\"").contains("workers[0].kind: `helper` is not a kind of worker"));
    assert!(error("1").contains("workers[0].kind"));
    let busy = error("\"runtime\"");
    assert!(busy.contains("tasks[0].worker: worker 5 has the kind `runtime`"), "{busy}");

    let csv = |kind: &str| {
        let workers = format!("id,node,begin,end,kind\n5,0,0,90,\n6,0,10,200,{kind}\n");
        let tables = CsvTables {
            workers: &workers,
            tasks: "id,type,node,worker,start,end\n1,a,0,5,20,80\n",
            ..CsvTables::default()
        };
        assert_eq!(unread_columns(&tables), [""; 0]);
        read_csv(tables).map(|graph| graph.capacity()).map_err(|error| error.to_string())
    };
    assert_eq!((csv("runtime"), csv("worker"), csv("")), (Ok(90), Ok(280), Ok(280)));
    assert!(csv("x").unwrap_err().contains("workers.csv"));
}

#[test]
fn written_graphs_are_read_back_equal() {
    let more = [
        // Facts that are optional.
        (
            "\"start\": 0, \"end\": 100, \"inputs\": [], \"runtime_uniform\": 0}",
            "\"start\": 10, \"end\": 100, \"created\": 3, \"ready\": 5, \"runtime_uniform\": 7, \"function\": \"f\", \
             \"file\": \"a \\\"b\\\".c\", \"line\": 12}",
        ),
        ("\"bytes\": 8,", "\"bytes\": 8, \"name\": \"A[1]\\u0001é\","),
        ("\"runtime\": [", "\"runtime\": [{\"worker\": 0, \"start\": 5, \"end\": 9, \"kind\": \"lock\"}, "),
        // Causes within a category.
        (
            "\"runtime\": [",
            "\"runtime\": [{\"worker\": 0, \"start\": 1, \"end\": 2, \"kind\": \"cpu.none\"},
              {\"worker\": 0, \"start\": 3, \"end\": 4, \"kind\": \"runtime.create\"}, ",
        ),
        (
            "{\"id\": 1, \"node\": 1, \"begin\": 0, \"end\": 400}]",
            "{\"id\": 1, \"node\": 1, \"begin\": 0, \"end\": 400},
              {\"id\": 9, \"node\": 1, \"begin\": 0, \"end\": 400, \"kind\": \"runtime\"}]",
        ),
        ("\"sent\": 105, ", ""),
    ];
    let mut text = GOOD.to_owned();
    for (from, to) in [("", "")].into_iter().chain(more) {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
        let graph = read_json(&text).unwrap().graph;
        let mut written = Vec::new();
        let losses = write_json(&graph, "two tasks", &mut written).unwrap();
        assert_eq!(losses.iter().count(), 0, "{losses:?}");
        let case = read_json(std::str::from_utf8(&written).unwrap()).unwrap();
        assert_eq!((case.name.as_str(), case.unread.len()), ("two tasks", 0));
        assert_eq!(format!("{:?}", case.graph), format!("{graph:?}"));
        // The same through a trace.
        let root = tempfile::tempdir().unwrap();
        write_graph(&graph, &root.path().join("t")).unwrap();
        let stored = taskscope_session::graph::read_graph(&root.path().join("t")).unwrap().unwrap().graph;
        let mut again = Vec::new();
        write_json(&stored, "two tasks", &mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(written).unwrap());
    }
}
