//! Profiles of GPUs, which `import` reads through the Python module: databases by the schemas of rocprofv3 and Nsight Systems.

mod common;

use common::{output, taskscope};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Process 4242, thread 4243: a range with a launch and a copy, each with its operation.
const NSIGHT: &str = "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, globalTid INTEGER, text TEXT,
    textId INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, nameId INTEGER NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), (3, 'add(float*, float*)'),
    (4, 'main thread'), (5, 'step');
INSERT INTO PROCESSES VALUES (4242 << 24, 4242, 'train');
INSERT INTO ThreadNames VALUES (4, 0, 4242 << 24 | 4243);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'GPU of a test');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1100, 1200, 0, 4242 << 24 | 4243, 1, 1, 0),
    (1300, 1350, 0, 4242 << 24 | 4243, 2, 2, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 2500, 0, 1, 7, 1, 4242 << 24, 3, 3);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2600, 2700, 0, 1, 7, 2, 4242 << 24, 4096, 1),
    (2800, 0, 0, 1, 7, 3, 4242 << 24, 1, 1);
INSERT INTO NVTX_EVENTS VALUES (1000, 3000, 59, 4242 << 24 | 4243, NULL, 5), (1050, NULL, 34, 4242 << 24 | 4243, 'mark', NULL),
    (1, 2, 60, 4242 << 24 | 4243, 'x', NULL);
INSERT INTO OSRT_API VALUES (1, 2, 1);
";

/// The same run by rocprofv3: tables of a process have its id in their names, views join them.
const ROCPD: &str = "
CREATE TABLE rocpd_metadata_a (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
CREATE TABLE rocpd_string_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', string TEXT);
CREATE TABLE rocpd_info_process_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, command TEXT);
CREATE TABLE rocpd_info_thread_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, tid INTEGER, name TEXT);
CREATE TABLE rocpd_info_agent_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, type TEXT,
    type_index INTEGER, name TEXT, product_name TEXT);
CREATE TABLE rocpd_info_stream_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE rocpd_info_kernel_symbol_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', kernel_name TEXT, display_name TEXT);
CREATE TABLE rocpd_event_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', category_id INTEGER, stack_id INTEGER,
    parent_stack_id INTEGER, correlation_id INTEGER);
CREATE TABLE rocpd_region_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, tid INTEGER,
    start BIGINT, end BIGINT, name_id INTEGER, event_id INTEGER);
CREATE TABLE rocpd_kernel_dispatch_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, tid INTEGER,
    agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT,
    event_id INTEGER);
CREATE TABLE rocpd_memory_copy_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', nid INTEGER, pid INTEGER, tid INTEGER,
    start BIGINT, end BIGINT, name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER,
    stream_id INTEGER, event_id INTEGER);
CREATE TABLE rocpd_sample_a (id INTEGER PRIMARY KEY, guid TEXT DEFAULT 'a', timestamp BIGINT);
INSERT INTO rocpd_metadata_a (tag, value) VALUES ('schema_version', '3'), ('guid', 'a');
INSERT INTO rocpd_string_a (id, string) VALUES (1, 'HIP_RUNTIME_API'), (2, 'MARKER_CORE_RANGE_API'), (3, 'hipLaunchKernel'),
    (4, 'hipMemcpyAsync'), (5, 'step'), (6, 'MEMORY_COPY_HOST_TO_DEVICE'), (7, 'KERNEL_DISPATCH');
INSERT INTO rocpd_info_process_a (id, nid, pid, command) VALUES (1, 1, 4242, 'train');
INSERT INTO rocpd_info_thread_a (id, nid, pid, tid, name) VALUES (1, 1, 1, 4243, 'main thread');
INSERT INTO rocpd_info_agent_a (id, nid, pid, type, type_index, name, product_name) VALUES (1, 1, 1, 'CPU', 0, 'cpu', 'CPU'),
    (2, 1, 1, 'GPU', 0, 'gfx942', 'GPU of a test');
INSERT INTO rocpd_info_stream_a (id, nid, pid, name) VALUES (7, 1, 1, 'stream 7');
INSERT INTO rocpd_info_kernel_symbol_a (id, kernel_name, display_name) VALUES (1, '_Z3addPfS_.kd', 'add(float*, float*)');
INSERT INTO rocpd_event_a (id, category_id, stack_id) VALUES (1, 1, 11), (2, 1, 12), (3, 2, 10), (4, 7, 11), (5, 7, 12), (6, 7, 0);
INSERT INTO rocpd_region_a (nid, pid, tid, start, end, name_id, event_id) VALUES (1, 1, 1, 1100, 1200, 3, 1),
    (1, 1, 1, 1300, 1350, 4, 2), (1, 1, 1, 1000, 3000, 5, 3);
INSERT INTO rocpd_kernel_dispatch_a (nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, end, event_id)
    VALUES (1, 1, 1, 2, 1, 1, 1, 7, 1500, 2500, 4);
INSERT INTO rocpd_memory_copy_a (nid, pid, tid, start, end, name_id, dst_agent_id, src_agent_id, size, queue_id, stream_id, event_id)
    VALUES (1, 1, 1, 2600, 2700, 6, 2, 1, 4096, 1, 7, 5), (1, 1, 1, 2800, 0, 6, 2, 1, 1, 1, 7, 6);
INSERT INTO rocpd_sample_a (timestamp) VALUES (1);
";

/// Runs Python with the module of the repository. `input` goes to its standard input.
fn python(arguments: &[&str], input: &str) -> Output {
    let module = format!("{}/../../python", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", module).env("PYTHONDONTWRITEBYTECODE", "1").args(arguments);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // One that fails at once reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Writes a database.
fn write(schema: &str, file: &Path) {
    // rocprofv3 has a view for each table.
    const SCRIPT: &str = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.executescript(sys.stdin.read())
for (name,) in database.execute(\"SELECT name FROM sqlite_master WHERE name LIKE 'rocpd%_a' AND type = 'table'\").fetchall():
    database.execute(f'CREATE VIEW {name[:-2]} AS SELECT * FROM {name}')
database.commit()";
    let done = python(&["-c", SCRIPT, file.to_str().unwrap()], schema);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The exit status of a conversion, and what it prints.
fn convert(profile: &Path, events: &Path) -> (bool, String) {
    let done = python(&["-m", "taskscope.gpu", profile.to_str().unwrap(), events.to_str().unwrap()], "");
    (done.status.success(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn profiles_of_both_vendors_become_queues_with_their_calls() {
    if !taskscope_prerequisite::has("python3") {
        return;
    }
    for (schema, call, left_out, start) in [
        (NSIGHT, "cuda", "note: left out: 1 calls of the C library", 1_700_000_000_000_001_000_u64),
        (ROCPD, "hip", "note: left out: 1 samples", 0),
    ] {
        let here = tempfile::tempdir().unwrap();
        let [profile, events, trace] =
            ["p.db", "run.json.gz", "run.trace"].map(|name| here.path().join(name));
        write(schema, &profile);
        let (done, notes) = convert(&profile, &events);
        assert!(done && notes.contains(left_out), "{notes}");
        assert!(notes.contains("2 calls, 1 ranges") && notes.contains("2 operations"), "{notes}");
        assert!(notes.contains("note: left out: 1 operations without a begin and an end"), "{notes}");
        let imported = output(taskscope().arg("import").arg(&events).arg("-o").arg(&trace));
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
        // The command converts by itself, and the trace is the same.
        let direct = here.path().join("direct.trace");
        let imported = output(taskscope().arg("import").arg(&profile).arg("-o").arg(&direct));
        let shown = String::from_utf8(imported.stderr).unwrap();
        assert!(
            imported.status.success() && shown.contains(&left_out.replace("left out", "not imported")),
            "{shown}"
        );
        let events_of = |trace: &Path| output(taskscope().args(["export", "--to", "csv"]).arg(trace)).stdout;
        assert!(events_of(&direct) == events_of(&trace));
        let report = output(taskscope().args(["report", "--json"]).arg(&trace)).stdout;
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["workers"], 1);
        assert_eq!(report["start_unix_ns"].as_u64().unwrap_or(0), start);
        let rows = output(taskscope().args(["export", "--to", "csv"]).arg(&trace)).stdout;
        let rows = String::from_utf8(rows).unwrap();
        let times = |kind: &str| -> Vec<String> {
            let kind_rows = rows.lines().filter(|row| row.starts_with(&format!("{kind},")));
            // Names may have commas: the begin and the end are before them.
            kind_rows.map(|row| row.splitn(6, ',').skip(3).collect::<Vec<_>>().join(",")).collect()
        };
        let operations = times("device operation");
        assert_eq!(operations.len(), 2, "{rows}");
        assert!(operations[0].starts_with("500,1500,\"add(float*, float*)\",kernel"), "{operations:?}");
        assert!(operations[1].starts_with("1600,1700,Memcpy HtoD,copy-in"), "{operations:?}");
        assert!(operations[1].contains(",4096,"));
        let calls = times("device call");
        assert!(calls[0].starts_with(&format!("100,200,{call}LaunchKernel,")), "{calls:?}");
        assert_eq!(times("submission").len(), 2, "{rows}");
        assert!(rows.contains("stream 7 (GPU 0: GPU of a test)"), "{rows}");
    }
}

#[test]
fn damaged_and_other_databases_are_refused_and_write_nothing() {
    if !taskscope_prerequisite::has("python3") {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let [profile, events] = ["p.db", "run.json"].map(|name| here.path().join(name));
    write(&ROCPD.replace("'schema_version', '3'", "'schema_version', '4'"), &profile);
    let newer = convert(&profile, &events);
    std::fs::remove_file(&profile).unwrap();
    write("CREATE TABLE notes (text TEXT);", &profile);
    let other = convert(&profile, &events);
    std::fs::remove_file(&profile).unwrap();
    write(NSIGHT, &profile);
    let whole = std::fs::read(&profile).unwrap();
    std::fs::write(&profile, &whole[..whole.len() / 2]).unwrap();
    let cut = convert(&profile, &events);
    std::fs::write(&profile, "text").unwrap();
    let text = convert(&profile, &events);
    // SQLite keeps a text in a column of numbers.
    std::fs::remove_file(&profile).unwrap();
    write(&NSIGHT.replace("(1500, 2500,", "('x', 2500,"), &profile);
    let typed = convert(&profile, &events);
    for ((done, message), expected) in [
        (newer, "why:  its schema of rocpd is 4; 3 is read"),
        (other, "why:  it has neither the tables of rocpd nor those of Nsight Systems"),
        (cut, "malformed"),
        (text, "is neither an SQLite database nor a directory of Parquet files"),
        (typed, "a value has not the type of its column"),
    ] {
        assert!(!done && message.contains(expected) && message.contains("kept: nothing"), "{message}");
        assert!(!message.contains("Traceback"), "{message}");
    }
    let trace = here.path().join("run.trace");
    let refused =
        output(taskscope().arg("import").arg(&profile).arg("-o").arg(&trace).env("TMPDIR", here.path()));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(
        message.contains("a value has not the type of its column") && message.contains("kept: nothing"),
        "{message}"
    );
    assert_eq!(refused.status.code(), Some(2));
    let alone =
        output(taskscope().arg("import").arg(&profile).arg("-o").arg(&trace).env("PATH", here.path()));
    let message = String::from_utf8(alone.stderr).unwrap();
    assert!(
        message.contains("python3, which cannot run") && message.contains("try:  python3 -m"),
        "{message}"
    );
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
}
