//! The tables of stored traces have the report's sums, and the form that the list of tables declares.

use parquet::basic::{Encoding, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use taskscope_analysis::{Analysis, Whose, analyse};
use taskscope_execution::Process;
use taskscope_execution::graph::{GraphBuilder, NONE, NewData, NewTask, TaskType};
use taskscope_filter::TimeRange;
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{FrameKind, Metric, Profile, ROOT, key};
use taskscope_session::selection::Selection;
use taskscope_session::{ReadProgress, Session};
use taskscope_table::rows::ROW_GROUP;
use taskscope_table::{
    DataSet, GraphRun, MANIFEST, ProfileRun, Summary, TABLES, TableError, Type, table, write_graph,
    write_profile, write_run,
};

type Row = BTreeMap<String, Field>;

fn traces() -> Vec<PathBuf> {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/traces");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(stored).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    assert!(found.len() >= 6, "{found:?}");
    found
}

fn files_of(root: &Path, name: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![root.join(name)];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn rows_of_file(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns());
    rows.map(|columns| columns.into_iter().collect()).collect()
}

fn rows(root: &Path, name: &str) -> Vec<Row> {
    files_of(root, name).iter().flat_map(|path| rows_of_file(path)).collect()
}

fn number(row: &Row, column: &str) -> i64 {
    match &row[column] {
        Field::Int(value) => (*value).into(),
        Field::Long(value) => *value,
        other => panic!("{column} is {other}"),
    }
}

fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    match &row[column] {
        Field::Str(value) => value,
        other => panic!("{column} is {other}"),
    }
}

fn is_null(row: &Row, column: &str) -> bool {
    row[column] == Field::Null
}

struct Written {
    root: tempfile::TempDir,
    summary: Summary,
    analyses: Vec<Analysis>,
}

impl Written {
    fn of(sessions: &[Session]) -> Written {
        let root = tempfile::tempdir().unwrap();
        let mut set = DataSet::create(root.path()).unwrap();
        let analyses: Vec<Analysis> = sessions.iter().map(|session| analyse(&session.execution).0).collect();
        for (session, analysis) in sessions.iter().zip(&analyses) {
            write_run(&mut set, session, analysis).unwrap();
        }
        assert!(!root.path().join(MANIFEST).exists(), "a data set is unfinished until its end");
        Written { summary: set.finish().unwrap(), root, analyses }
    }

    fn rows(&self, name: &str) -> Vec<Row> {
        rows(self.root.path(), name)
    }
}

/// Nanoseconds of each location and cause.
fn by_cause(rows: &[Row], ns: impl Fn(&Row) -> i64) -> BTreeMap<(i64, String), i64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry((number(row, "location"), text(row, "cause").to_owned())).or_default() += ns(row);
    }
    sums
}

fn assert_sums(written: &Written) {
    let states = written.rows("state");
    let in_states = by_cause(&states, |row| number(row, "end_ns") - number(row, "start_ns"));
    let in_ledger = by_cause(&written.rows("ledger"), |row| number(row, "ns"));
    assert_eq!(in_states, in_ledger);
    let capacity: u64 = written.analyses.iter().map(|analysis| analysis.ledger.capacity_ns).sum();
    assert_eq!(in_states.values().sum::<i64>() as u64, capacity);
    // The ledger of the files is the report's.
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for analysis in &written.analyses {
        let entries = analysis.ledger.entries.spent.iter();
        for (entry, ns) in entries.filter(|(entry, _)| entry.of.whose == Whose::Worker) {
            *causes.entry(entry.cause.name()).or_default() += ns;
        }
    }
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, cause), ns) in &in_states {
        *found.entry(cause).or_default() += *ns as u64;
    }
    assert_eq!(found, causes);
    let findings = written.rows("finding");
    let lost: u64 = written.analyses.iter().flat_map(|a| &a.findings).map(|finding| finding.ns).sum();
    assert_eq!(findings.iter().map(|row| number(row, "lost_ns") as u64).sum::<u64>(), lost);
    let charged: u64 = written.analyses.iter().map(|a| a.ledger.entries.charged.total(|_| true)).sum();
    assert_eq!(written.rows("blame").iter().map(|row| number(row, "ns") as u64).sum::<u64>(), charged);
}

/// Fails unless the sections of each location follow each other without gaps.
fn assert_tiles(written: &Written) {
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    let mut sorted: Vec<(i64, i64, i64)> = (written.rows("state").iter())
        .map(|row| (number(row, "location"), number(row, "start_ns"), number(row, "end_ns")))
        .collect();
    sorted.sort_unstable();
    for (location, start, end) in sorted {
        assert!(start < end);
        let before = last.insert(location, end);
        assert!(before.is_none_or(|before| before == start), "{location}: {before:?} {start}");
    }
}

/// Fails unless every number refers to a row.
fn assert_references(written: &Written) {
    let keys = |name: &str, column: &str| -> BTreeSet<i64> {
        let all: Vec<i64> = written.rows(name).iter().map(|row| number(row, column)).collect();
        let unique: BTreeSet<i64> = all.iter().copied().collect();
        assert_eq!(all.len(), unique.len(), "{name}.{column} is unique");
        unique
    };
    let known: BTreeMap<&str, BTreeSet<i64>> = [
        ("run", keys("run", "run")),
        ("process", keys("process", "process")),
        ("location", keys("location", "location")),
        ("task_type", keys("task_type", "task_type")),
        ("site", keys("site", "site")),
        ("object", keys("object", "object")),
        ("region", keys("region", "region")),
        ("task", keys("task", "task")),
        ("path", written.rows("path").iter().map(|row| number(row, "path")).collect()),
    ]
    .into();
    let further = [
        ("parent", "task"),
        ("pred", "task"),
        ("succ", "task"),
        ("holder_task", "task"),
        ("creator", "location"),
        ("runner", "location"),
        ("sender", "location"),
        ("receiver", "location"),
        ("holder_location", "location"),
        ("holder_site", "site"),
        ("root", "process"),
    ];
    for table in TABLES {
        for row in written.rows(table.name) {
            let own = known.keys().map(|name| (*name, *name));
            for (column, refers) in own.chain(further).filter(|(column, _)| row.contains_key(*column)) {
                let refers = if (table.name, column) == ("region", "parent") { "region" } else { refers };
                if !is_null(&row, column) {
                    assert!(
                        known[refers].contains(&number(&row, column)),
                        "{}.{column}: {row:?}",
                        table.name
                    );
                }
            }
        }
    }
}

/// Fails unless files have the declared columns, and the manifest has their rows.
fn assert_form(written: &Written) {
    for table in TABLES {
        let files = files_of(written.root.path(), table.name);
        let sums = &written.summary.tables[table.name];
        assert_eq!(sums.files, files.len() as u64, "{}", table.name);
        assert_eq!(sums.columns.len(), table.columns.len(), "{}", table.name);
        for (listed, declared) in sums.columns.iter().zip(table.columns) {
            let known = (listed.name.as_str(), listed.ty.as_str(), listed.nullable, listed.unit.as_str());
            assert_eq!(known, (declared.name, declared.ty.sql(), declared.nullable, declared.unit));
        }
        let (mut rows, mut bytes) = (0, 0);
        for path in &files {
            let directory = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
            assert_eq!(directory.starts_with("node="), sums.by_node, "{}", path.display());
            bytes += path.metadata().unwrap().len();
            let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
            let metadata = reader.metadata();
            let columns = metadata.file_metadata().schema_descr().columns();
            assert_eq!(columns.len(), table.columns.len());
            for (found, declared) in columns.iter().zip(table.columns) {
                let physical = match declared.ty {
                    Type::Int32 => Physical::INT32,
                    Type::Int64 => Physical::INT64,
                    Type::Double => Physical::DOUBLE,
                    Type::Boolean => Physical::BOOLEAN,
                    Type::Text => Physical::BYTE_ARRAY,
                };
                assert_eq!((found.name(), found.physical_type()), (declared.name, physical));
                assert_eq!(found.max_def_level(), i16::from(declared.nullable), "{}", declared.name);
            }
            let facts = metadata.file_metadata().key_value_metadata().unwrap();
            assert_eq!(facts.len(), 1, "no Arrow schema");
            assert_eq!(facts[0].key, "taskscope.tables");
            for group in metadata.row_groups() {
                rows += group.num_rows() as u64;
                assert!(group.num_rows() as usize <= ROW_GROUP);
                for (column, declared) in group.columns().iter().zip(table.columns) {
                    assert!(column.statistics().is_some() && column.column_index_offset().is_some());
                    let has_delta =
                        column.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED);
                    assert_eq!(has_delta, declared.ty == Type::Int64, "{}.{}", table.name, declared.name);
                }
            }
        }
        assert_eq!((sums.rows, sums.bytes), (rows, bytes), "{}", table.name);
    }
    let manifest = std::fs::read(written.root.path().join(MANIFEST)).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest, serde_json::to_value(&written.summary).unwrap());
}

/// Fails unless a file of less than a row group is sorted by location and start.
fn assert_order(written: &Written) {
    for name in ["state", "wait", "off_cpu", "loss", "uncertain"] {
        for path in files_of(written.root.path(), name) {
            let rows = rows_of_file(&path);
            assert!(rows.len() < ROW_GROUP);
            let keys = rows.iter().map(|row| (number(row, "location"), number(row, "start_ns")));
            assert!(keys.is_sorted(), "{}", path.display());
        }
    }
}

#[test]
fn tables_of_stored_traces_have_the_sums_of_the_report() {
    for trace in traces() {
        println!("{}", trace.display());
        let written = Written::of(&[Session::open(&trace).unwrap()]);
        assert_sums(&written);
        assert_tiles(&written);
        assert_order(&written);
        assert_references(&written);
        assert_form(&written);
    }
}

#[test]
fn runs_side_by_side_keep_their_numbers_apart() {
    let sessions: Vec<Session> = traces().iter().map(|trace| Session::open(trace).unwrap()).collect();
    let written = Written::of(&sessions);
    assert_sums(&written);
    assert_references(&written);
    let runs = written.rows("run");
    assert_eq!(runs.len(), sessions.len());
    let locations = written.rows("location");
    for row in &runs {
        let run = number(row, "run");
        let own = locations.iter().filter(|location| number(location, "run") == run);
        let own: BTreeSet<i64> = own.map(|location| number(location, "location")).collect();
        let states = written.rows("state");
        let states = states.iter().filter(|state| own.contains(&number(state, "location")));
        let sum: i64 = states.map(|state| number(state, "end_ns") - number(state, "start_ns")).sum();
        assert_eq!(sum, number(row, "capacity_ns"), "run {run}");
    }
}

#[test]
fn parts_of_a_run_add_up_to_it() {
    let trace = traces().into_iter().find(|trace| trace.ends_with("imbalance")).unwrap();
    let sum = |range: &str| {
        let range = TimeRange::parse(range).unwrap();
        let selection = Selection { range, ..Selection::default() };
        let session = Session::open_part(&trace, &selection, &ReadProgress::default()).unwrap();
        let written = Written::of(&[session]);
        assert_sums(&written);
        let rows = written.rows("state");
        rows.iter().map(|row| number(row, "end_ns") - number(row, "start_ns")).sum::<i64>()
    };
    let parts: i64 = ["..30%", "30%..60%", "60%.."].map(sum).into_iter().sum();
    assert_eq!(parts, sum("0%.."));
}

#[test]
fn a_process_without_events_has_no_time() {
    let trace = traces().into_iter().find(|trace| trace.ends_with("talk")).unwrap();
    let mut session = Session::open(&trace).unwrap();
    let (loom, has_cpus) = ("other".to_owned(), false);
    session.execution.processes.push(Process { loom, pid: 9, has_cpus, first: 0, last: 0, cpus: None });
    let written = Written::of(&[session]);
    let rows = written.rows("process");
    let times: Vec<_> = rows.iter().map(|row| (number(row, "start_ns"), number(row, "end_ns"))).collect();
    assert_eq!(times.last(), Some(&(0, 0)));
    assert!(times.iter().all(|(start, end)| 0 <= *start && start <= end), "{times:?}");
}

#[test]
fn counting_has_the_rows_and_bytes_of_writing() {
    let session = Session::open(&traces()[0]).unwrap();
    let mut set = DataSet::counting().unwrap();
    write_run(&mut set, &session, &analyse(&session.execution).0).unwrap();
    assert_eq!(set.finish().unwrap(), Written::of(&[session]).summary);
}

#[test]
fn a_directory_with_content_is_not_touched() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("notes"), "mine").unwrap();
    let error = DataSet::create(root.path()).err().unwrap();
    assert!(matches!(error, TableError::Occupied(_)), "{error}");
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    assert!(table("state").is_some() && table("none").is_none());
}

#[test]
fn an_imported_graph_has_the_time_of_its_workers() {
    let mut builder = GraphBuilder::new();
    builder.add_worker(0, 0, 100, 1_000);
    builder.add_worker(1, 0, 100, 900);
    let (name, function, file) = ("cell".to_owned(), "step".to_owned(), "heat.c".to_owned());
    let ty = builder.add_type(TaskType { name, function, file, line: 7, implicit: false });
    for task in [3, 4] {
        builder.add_task(NewTask::new(task, ty));
    }
    let producer = Some(3);
    builder.add_data(NewData {
        id: 9,
        producer,
        produced: 500,
        home: 0,
        bytes: 8,
        name: NONE,
        synchronises: false,
    });
    builder.add_input(4, 9);
    builder.add_piece(0, 3, 300, 500);
    builder.add_piece(1, 4, 550, 900);
    let graph = builder.finish().unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut set = DataSet::create(root.path()).unwrap();
    write_graph(&mut set, &GraphRun { source: "g", graph: &graph, part: (200, 800), words: None }).unwrap();
    set.finish().unwrap();
    let length = |row: &Row| number(row, "end_ns") - number(row, "start_ns");
    assert_eq!(rows(root.path(), "state").iter().map(length).sum::<i64>(), 1_200);
    assert_eq!(rows(root.path(), "ledger").iter().map(|row| number(row, "ns")).sum::<i64>(), 1_200);
    let in_states = by_cause(&rows(root.path(), "state"), length);
    assert_eq!(in_states, by_cause(&rows(root.path(), "ledger"), |row| number(row, "ns")));
    assert!(in_states.len() > 2, "{in_states:?}");
    assert_eq!(number(&rows(root.path(), "run")[0], "capacity_ns"), 1_200);
    let dependences = rows(root.path(), "dependence");
    assert_eq!(dependences.len(), 1);
    let times = [number(&dependences[0], "pred_ended_ns"), number(&dependences[0], "succ_began_ns")];
    assert_eq!(times, [400, 450], "since the first worker's begin");
    let running: Vec<i64> = rows(root.path(), "task").iter().map(|row| number(row, "running_ns")).collect();
    assert_eq!(running, [200, 250], "in the part");
    let in_tasks = rows(root.path(), "state").into_iter().filter(|row| text(row, "state") == "task");
    assert_eq!(in_tasks.map(|row| length(&row)).sum::<i64>(), 450);
}

/// `main` calls `work`; work takes 30 of 40 ns in four samples, a barrier the others.
fn call_tree() -> CallTree {
    let mut profile = Profile::default();
    let facts = [
        (key::HOST, "node1"),
        (key::PID, "7"),
        (key::COMMAND, "./a.out"),
        (key::WALL_NS, "20"),
        (key::WORKERS, "2"),
    ];
    profile
        .processes
        .push(facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    let totals = [("wall_ns", 20), ("capacity_ns", 40), ("state.task", 30), ("state.barrier", 10)];
    profile.totals = totals.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect();
    let mut tree = CallTree::without_paths(&profile);
    let label = |function: &str| Label {
        what: StepKind::Function,
        function: function.to_owned(),
        file: Some("a.c".to_owned()),
        line: Some(3),
        module: "a.out".to_owned(),
    };
    let main = tree.child(ROOT, FrameKind::User, label("main"));
    let work = tree.child(main, FrameKind::User, label("work"));
    tree.tree.add(main, Metric::TIME, 10);
    tree.tree.add(work, Metric::TIME, 30);
    tree.tree.add(work, Metric::SAMPLES, 4);
    tree
}

#[test]
fn profiles_have_their_paths_and_sums() {
    let tree = call_tree();
    let root = tempfile::tempdir().unwrap();
    let mut set = DataSet::create(root.path()).unwrap();
    for _ in 0..2 {
        write_profile(&mut set, &ProfileRun { source: "p", tree: &tree, thread_waits: 3 }).unwrap();
    }
    let summary = set.finish().unwrap();
    assert_eq!(summary.losses.len(), 2);
    let written = Written { root, summary, analyses: Vec::new() };
    assert_form(&written);
    let paths = written.rows("call_path");
    let steps: Vec<_> =
        paths.iter().map(|row| (number(row, "path"), number(row, "run"), number(row, "depth"))).collect();
    assert_eq!(steps, [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 1, 0), (4, 1, 1), (5, 1, 2)]);
    assert!(is_null(&paths[0], "parent") && number(&paths[5], "parent") == 4);
    let named = |row: &Row| (text(row, "kind").to_owned(), text(row, "name").to_owned(), number(row, "line"));
    assert_eq!(named(&paths[2]), ("function".to_owned(), "work".to_owned(), 3));
    assert_eq!(text(&paths[0], "kind"), "run");
    let values = written.rows("call_path_value");
    let sum = |metric: &str| -> i64 {
        values.iter().filter(|row| text(row, "metric") == metric).map(|row| number(row, "value")).sum()
    };
    assert_eq!((sum("time_ns"), sum("samples")), (2 * tree.tree.total(Metric::TIME) as i64, 8));
    let runs = written.rows("run");
    let capacity: i64 = runs.iter().map(|row| number(row, "capacity_ns")).sum();
    assert_eq!(written.rows("ledger").iter().map(|row| number(row, "ns")).sum::<i64>(), capacity);
    assert_eq!(
        (text(&runs[1], "command"), number(&runs[1], "workers"), number(&runs[1], "end_ns")),
        ("./a.out", 2, 20)
    );
    let processes = written.rows("process");
    let places: Vec<_> = processes
        .iter()
        .map(|row| (number(row, "process"), number(row, "node"), number(row, "pid")))
        .collect();
    assert_eq!(places, [(0, 0, 7), (1, 1, 7)]);
}

#[test]
fn row_groups_of_a_long_run_are_buckets_of_time() {
    const TASKS: u64 = 40_000;
    let mut builder = GraphBuilder::new();
    let ty = builder.add_type(TaskType { name: "t".to_owned(), ..TaskType::default() });
    for worker in 0..2 {
        builder.add_worker(worker, 0, 0, TASKS * 20);
        for number in 0..TASKS {
            let task = number * 2 + worker;
            builder.add_task(NewTask::new(task, ty));
            builder.add_piece(worker, task, number * 20 + 3, number * 20 + 13);
        }
    }
    let graph = builder.finish().unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut set = DataSet::create(root.path()).unwrap();
    write_graph(&mut set, &GraphRun { source: "g", graph: &graph, part: (0, u64::MAX), words: None })
        .unwrap();
    let rows = set.finish().unwrap().tables["state"].rows as usize;
    assert!(rows > ROW_GROUP, "{rows}");
    let file = &files_of(root.path(), "state")[0];
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    assert_eq!(reader.num_row_groups(), rows.div_ceil(ROW_GROUP));
    let mut last = i64::MIN;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        assert!(group.metadata().num_rows() as usize <= ROW_GROUP);
        let rows = group.get_row_iter(None).unwrap();
        let keys: Vec<(i64, i64)> = rows
            .map(|row| row.unwrap().into_columns().into_iter().collect::<Row>())
            .map(|row| (number(&row, "location"), number(&row, "start_ns")))
            .collect();
        assert!(keys.is_sorted());
        let starts = keys.iter().map(|(_, start)| *start);
        assert!(last <= starts.clone().min().unwrap(), "buckets follow each other in time");
        last = starts.max().unwrap();
    }
}

#[test]
fn waits_for_locks_of_threads_have_their_holders() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/shown/howto/threads/orders.trace");
    let written = Written::of(&[Session::open(&trace).unwrap()]);
    let waits = written.rows("wait");
    let done = waits.iter().filter(|row| text(row, "kind") == "thread" && text(row, "outcome") == "done");
    let holders: Vec<bool> = done.map(|row| is_null(row, "holder_location")).collect();
    // Those that sleep have none.
    assert_eq!((holders.len(), holders.iter().filter(|is_null| **is_null).count()), (109, 11));
}

#[test]
fn steps_of_sampled_paths_have_functions_and_lines() {
    let trace = traces().into_iter().find(|trace| trace.ends_with("pic")).unwrap();
    let written = Written::of(&[Session::open(&trace).unwrap()]);
    let paths = written.rows("path");
    let named: Vec<&Row> = paths.iter().filter(|row| !is_null(row, "function")).collect();
    assert!(!named.is_empty());
    let in_source = |row: &&&Row| {
        !is_null(row, "file") && text(row, "file").ends_with("pic.c") && number(row, "line") > 0
    };
    let functions: BTreeSet<&str> = named.iter().filter(in_source).map(|row| text(row, "function")).collect();
    assert!(functions.contains("main"), "{functions:?}");
    // The outermost known step of the first thread is `main`, called from code without a line.
    let outermost = named.iter().filter(in_source).filter(|row| text(row, "function") == "main");
    assert!(outermost.into_iter().all(|row| number(row, "depth") > 0), "main calls others");
}
