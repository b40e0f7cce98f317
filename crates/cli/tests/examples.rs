//! The examples against facts known by construction (the head of each source file), built by clang (LLVM's
//! OpenMP) and by gcc (libgomp, replaced).

mod common;

use common::call_paths::{VIRTUAL_TIME, virtual_time_flags};
use common::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/openmp").join(format!("{name}.c"))
}

/// The 1-based line of an example that holds `text`.
fn line_of(name: &str, text: &str) -> u64 {
    let content = fs::read_to_string(source(name)).unwrap();
    content.lines().position(|line| line.contains(text)).expect(text) as u64 + 1
}

/// Builds, records on two threads, checks the invariants of complete traces, returns the report.
fn report_of(name: &str, compiler: Compiler, arguments: &[&str]) -> Value {
    let here = tempfile::tempdir().unwrap();
    let program = compiler.build_file(&source(name), &here.path().join(name), &[]);
    let run = output(record(here.path()).args(["-o", "trace", "--"]).arg(program).args(arguments));
    assert!(run.status.success(), "the example found its result wrong");
    let printed = output(taskscope().arg("report").arg("--json").arg(here.path().join("trace")));
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();

    let check = output(taskscope().arg("check").arg(here.path().join("trace")));
    assert!(check.status.success(), "the trace is not consistent");
    assert_eq!(report["complete"], true);
    assert_eq!(report["lost_events"], 0);
    assert_eq!(report["workers"], 2);
    let causes: u64 = rows(&report, "causes").iter().map(|cause| cause["ns"].as_u64().unwrap()).sum();
    assert_eq!(causes, report["capacity_ns"].as_u64().unwrap(), "causes do not sum to capacity");
    assert_eq!(report["capacity_ns"].as_u64().unwrap(), 2 * report["wall_ns"].as_u64().unwrap());
    let replaced = rows(&report, "notices").iter().any(|notice| notice["name"] == "runtime-replaced");
    assert_eq!(replaced, matches!(compiler, Compiler::Gcc));
    report
}

/// The report of a stored recording (traces/README.md): shares of time are checked there, as a new run may
/// have other shares on a busy machine.
fn report_of_kept(name: &str) -> Value {
    report(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name))
}

fn rows<'a>(report: &'a Value, table: &str) -> &'a [Value] {
    report[table].as_array().unwrap()
}

/// Tasks of the type that is named after this function.
fn tasks_of(report: &Value, function: &str) -> u64 {
    let type_rows = rows(report, "task_types").iter().filter(|row| row["function"] == function);
    type_rows.map(|row| row["began"].as_u64().unwrap()).sum()
}

#[test]
fn cholesky_has_its_tasks_of_each_type() {
    for compiler in Compiler::ALL {
        for n in [1, 2, 7] {
            let report = report_of("cholesky", compiler, &[&(n * 16).to_string(), "16"]);
            assert_eq!(report["tasks"], n * (n + 1) * (n + 2) / 6);
            assert_eq!(tasks_of(&report, "potrf"), n);
            assert_eq!(tasks_of(&report, "trsm"), n * (n - 1) / 2);
            assert_eq!(tasks_of(&report, "syrk"), n * (n - 1) / 2);
            assert_eq!(tasks_of(&report, "gemm"), n * (n - 1) * n.saturating_sub(2) / 6);
        }
    }
}

#[test]
fn fibonacci_has_a_task_for_every_call_but_the_first() {
    for compiler in Compiler::ALL {
        for (n, fibonacci_of_next) in [(1, 1), (2, 2), (16, 1597)] {
            let report = report_of("fib", compiler, &[&n.to_string()]);
            assert_eq!(report["tasks"], 2 * fibonacci_of_next - 2, "fib({n})");
        }
    }
}

#[test]
fn heat_has_loops_or_tasks() {
    for compiler in Compiler::ALL {
        let tasks = report_of("heat", compiler, &["taskloop", "64", "12"]);
        assert_eq!(tasks["tasks"], 8 * 12);
        assert_eq!(tasks_of(&tasks, "step_by_tasks"), 8 * 12);
        let loops = report_of("heat", compiler, &["for", "64", "12"]);
        assert_eq!(loops["tasks"], 0);
        // gcc computes a static schedule in the program itself: its runtime receives no event of the loop.
        if matches!(compiler, Compiler::Clang) {
            let row = &rows(&loops, "worksharing")[0];
            assert_eq!(
                (&row["function"], &row["executions"], &row["iterations"]),
                (&"step_by_loop".into(), &12.into(), &(12 * 64).into())
            );
            assert_eq!(row["line"], line_of("heat", "omp for"));
        }
    }
}

/// fwd, bdiv and bmod tasks, by following the filled blocks through the elimination.
fn sparselu_tasks(n: usize) -> [u64; 3] {
    let mut filled: Vec<Vec<bool>> =
        (0..n).map(|i| (0..n).map(|j| i.abs_diff(j) <= 1 || (i + 2 * j) % 7 == 0).collect()).collect();
    let mut tasks = [0; 3];
    for k in 0..n {
        let right: Vec<usize> = (k + 1..n).filter(|&j| filled[k][j]).collect();
        let below: Vec<usize> = (k + 1..n).filter(|&i| filled[i][k]).collect();
        tasks[0] += right.len() as u64;
        tasks[1] += below.len() as u64;
        tasks[2] += (right.len() * below.len()) as u64;
        for &i in &below {
            for &j in &right {
                filled[i][j] = true;
            }
        }
    }
    tasks
}

#[test]
fn sparse_lu_has_a_task_for_every_filled_block() {
    for compiler in Compiler::ALL {
        for n in [1, 5, 12] {
            let report = report_of("sparselu", compiler, &[&n.to_string(), "8"]);
            let [fwd, bdiv, bmod] = sparselu_tasks(n);
            assert_eq!(report["tasks"], fwd + bdiv + bmod);
            assert_eq!(tasks_of(&report, "fwd"), fwd);
            assert_eq!(tasks_of(&report, "bdiv"), bdiv);
            assert_eq!(tasks_of(&report, "bmod"), bmod);
        }
    }
}

/// The charges of a lock's holders, by function: the waiting time for it, except waits without a holder.
fn charged<'a>(lock: &'a Value, functions: &[&str]) -> Vec<(&'a str, u64)> {
    let of = |holder: &'a Value| (holder["function"].as_str().unwrap(), holder["ns"].as_u64().unwrap());
    let charged: Vec<(&str, u64)> = rows(lock, "holders").iter().map(of).collect();
    assert!(charged.iter().all(|(function, _)| functions.contains(function)), "{charged:?}");
    let given: u64 = charged.iter().map(|(_, ns)| ns).sum();
    let waited = lock["waited_ns"].as_u64().unwrap();
    assert_eq!(given + lock["unheld_ns"].as_u64().unwrap(), waited, "blame given is not wait taken");
    charged
}

#[test]
fn the_lock_is_held_by_the_thread_that_rebuilds_the_index() {
    for compiler in Compiler::ALL {
        let report = report_of("lock", compiler, &["10", "20"]);
        let lock = &rows(&report, "locks")[0];
        // Two threads take the lock ten times each.
        assert_eq!(lock["acquisitions"], 20);
        charged(lock, &["rebuild_index", "look_up"]);
        let holders = rows(lock, "holders").iter().filter(|holder| holder["function"] == "rebuild_index");
        for holder in holders {
            assert_eq!(holder["line"], line_of("lock", "/* who holds the lock */"));
        }
        for cause in rows(&report, "causes").iter().filter(|cause| cause["state"] == "lock_wait") {
            let at = cause["where"].as_str().unwrap();
            assert!(
                ["look_up [lock at lock.c:", "rebuild_index [lock at"].iter().any(|own| at.starts_with(own)),
                "{at}"
            );
        }
    }
    let report = report_of_kept("lock");
    let lock = &rows(&report, "locks")[0];
    assert_eq!(charged(lock, &["rebuild_index"]), [("rebuild_index", 230_621_019)]);
    assert_eq!(lock["waited_ns"], 230_673_648);
    let first = &rows(&report, "findings")[0];
    assert_eq!(
        (&first["blamed"], &first["function"]),
        (&"holder".into(), &"rebuild_index".into()),
        "{first}"
    );
    assert_eq!(first["ns"], 230_621_019);
}

/// With `--where` of one thread, the report has its time alone, and the charges of the other threads that
/// made it wait.
#[test]
fn a_report_of_one_thread_has_its_time_and_the_blamed_thread() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build_file(&source("lock"), &here.path().join("lock"), &[]);
    output(record(here.path()).args(["-o", "trace", "--"]).arg(program).args(["10", "10"]));
    let json = |options: &[&str]| -> Value {
        let printed =
            output(taskscope().args(["report", "--json"]).args(options).arg(here.path().join("trace")));
        serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{}", text(&printed.stderr)))
    };
    let ns = |value: &Value| value["ns"].as_u64().unwrap();
    let whole = json(&[]);
    // Waits of those threads for locks, and for any other charged party, by culprit.
    let lost = |reports: &[&Value], blamed: &str| {
        let mut lost: std::collections::BTreeMap<String, u64> = Default::default();
        for finding in reports.iter().flat_map(|report| rows(report, "findings")) {
            if finding["blamed"] == blamed {
                *lost.entry(finding["where"].to_string()).or_default() += ns(finding);
            }
        }
        lost
    };
    let causes_of = ["--section", "ledger,blame,idle,pop,path"];
    let by_cause = |reports: &[&Value]| {
        let mut sums: std::collections::BTreeMap<String, u64> = Default::default();
        for row in reports.iter().flat_map(|report| rows(report, "blame")) {
            *sums.entry(row["cause"].to_string()).or_default() += ns(row);
        }
        sums
    };
    let mut parts = Vec::new();
    for thread in rows(&whole, "thread_states") {
        let filter = format!("thread = {}", thread["tid"]);
        let part = json(&["--where", &filter]);
        let capacity = part["capacity_ns"].as_u64().unwrap();
        assert_eq!((&part["workers"], capacity), (&1.into(), whole["wall_ns"].as_u64().unwrap()));
        assert_eq!(rows(&part, "causes").iter().map(ns).sum::<u64>(), capacity);
        let notices = rows(&part, "notices").iter().map(|notice| notice["name"].as_str().unwrap());
        assert_eq!(
            notices.filter(|name| ["selected", "filtered"].contains(name)).collect::<Vec<_>>(),
            ["selected"]
        );
        let causes = json(&[&causes_of[..], &["--where", &filter]].concat());
        check_document(&causes);
        assert_eq!((&causes["workers"], causes["capacity_ns"].as_u64()), (&1.into(), Some(capacity)));
        assert_eq!(causes["wall_ns"], whole["wall_ns"]);
        parts.push((part, causes));
    }
    assert_eq!(parts.len(), 2);
    let (reports, causes): (Vec<&Value>, Vec<&Value>) =
        parts.iter().map(|(part, causes)| (part, causes)).unzip();
    assert_eq!(lost(&reports, "holder"), lost(&[&whole], "holder"));
    assert_eq!(by_cause(&causes), by_cause(&[&json(&causes_of)]));
    let held: u64 = lost(&reports, "holder").values().sum();
    assert!(held > 0);
}

/// Guards take locks for the code that uses them: holders and waiters are distinguished.
#[test]
fn a_lock_taken_by_a_guard_is_at_the_surrounding_code() {
    let here = tempfile::tempdir().unwrap();
    let flags = virtual_time_flags();
    let options = ["-fno-exceptions", &flags[0], &flags[1]];
    let program = Compiler::Clang.build(here.path(), "guard", "guard.cpp", &options);
    let run = output(
        record(here.path())
            .envs(VIRTUAL_TIME)
            .env("TASKSCOPE_OS_TIME", "off")
            .args(["-o", "trace", "--"])
            .arg(program),
    );
    assert!(run.status.success());
    let report = report(&here.path().join("trace"));
    let lock = &rows(&report, "locks")[0];
    assert_eq!(rows(lock, "holders")[0]["function"], "rebuild()");
    let waits = rows(&report, "causes").iter().filter(|cause| cause["state"] == "lock_wait");
    assert!(waits.clone().any(|cause| cause["where"].as_str().unwrap().starts_with("look_up [lock at")));
}

/// The imbalance of a loop by its function, with the line.
fn imbalance_of(report: &Value, table: &str, function: &str) -> (u64, u64) {
    let row = rows(report, table).iter().find(|row| row["function"] == function).expect(function);
    (row["imbalance_ns"].as_u64().unwrap(), row["line"].as_u64().unwrap())
}

/// gcc computes a static schedule in the program itself: its runtime receives no events of such loops, only
/// of their regions.
fn table_of_loops(compiler: Compiler) -> &'static str {
    match compiler {
        Compiler::Clang => "worksharing",
        Compiler::Gcc => "regions",
    }
}

#[test]
fn the_triangular_loop_is_imbalanced() {
    for compiler in Compiler::ALL {
        let report = report_of("imbalance", compiler, &["3000", "5"]);
        let of = |function: &str| imbalance_of(&report, table_of_loops(compiler), function);
        let ((_, line), _) = (of("triangular"), of("square"));
        assert_eq!(line, line_of("imbalance", "/* the imbalanced loop */"));
    }
    let report = report_of_kept("imbalance");
    let of = |function: &str| imbalance_of(&report, "worksharing", function).0;
    assert_eq!((of("triangular"), of("square")), (122_263_460, 58_596_478));
}

/// The symptom is in `add_up`, the cause at the line of `main` that takes the lock: at least 99.9 % of the
/// waiting, if nothing else delays the two threads. Waiting between the release and the waiter's next turn on
/// a CPU is not charged.
#[test]
fn the_talks_master_is_to_blame() {
    for compiler in Compiler::ALL {
        let report = report_of("talk", compiler, &["600"]);
        let lock = &rows(&report, "locks")[0];
        // The master takes it once, the other thread four times.
        assert_eq!(lock["acquisitions"], 5);
        charged(lock, &["main", "add_up"]);
        for holder in rows(lock, "holders").iter().filter(|holder| holder["function"] == "main") {
            assert_eq!(holder["line"], line_of("talk", "/* who makes them wait */"));
        }
        let symptom =
            format!("add_up [lock at talk.c:{}]", line_of("talk", "/* where the waiting is felt */"));
        let waits = rows(&report, "causes").iter().filter(|cause| cause["state"] == "lock_wait");
        assert!(
            waits
                .map(|waits| waits["where"].as_str().unwrap())
                .all(|at| at == symptom || at.starts_with("main "))
        );
    }
    let report = report_of_kept("talk");
    let lock = &rows(&report, "locks")[0];
    assert_eq!(charged(lock, &["main"]), [("main", 587_923_455)]);
    assert_eq!(lock["waited_ns"], 587_935_713);
    let first = &rows(&report, "findings")[0];
    assert_eq!((&first["blamed"], &first["function"]), (&"holder".into(), &"main".into()), "{first}");
}

/// The five loops, each with its count, and the imbalance at the costly gas.
#[test]
fn the_radiating_gas_imbalances_its_loop() {
    let loops = ["equation_of_state", "corner_forces", "move_nodes", "do_work", "time_step"];
    for compiler in Compiler::ALL {
        let report = report_of("hydro", compiler, &["60", "20", "0.5"]);
        let row = |function: &str| {
            let table = rows(&report, table_of_loops(compiler));
            table.iter().find(|row| row["function"] == function).expect(function)
        };
        for function in loops {
            assert_eq!(row(function)["executions"], 20, "{function}");
        }
        // gcc gives the call into the runtime the line of the function's brace.
        if matches!(compiler, Compiler::Clang) {
            let line = line_of("hydro", "/* the imbalanced loop */");
            assert!([line, line + 1].map(Value::from).contains(&row("equation_of_state")["line"]));
        }
    }
    let report = report_of_kept("hydro");
    let lost = loops.map(|function| imbalance_of(&report, "worksharing", function).0);
    assert_eq!(lost, [12_905_347, 33_350, 59_937, 30_108, 45_158]);
}
