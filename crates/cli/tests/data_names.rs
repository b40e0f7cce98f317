//! Waiting for data is reported under the programmer's names: set by a call, of static variables, else by
//! first use.

mod common;

use common::*;
use serde_json::Value;
use std::path::Path;

#[test]
fn data_has_the_names_of_the_program() {
    if !has_two_cpus() {
        return;
    }
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record-capi/include");
    let include = format!("-I{}", include.display());
    for (options, static_names) in
        [(["-g", &include], ["A[1][2]", "A[0][1]"]), (["-g0", &include], ["A+640", "A+128"])]
    {
        let here = tempfile::tempdir().unwrap();
        let program = Compiler::Clang.build(here.path(), "program", "named_data.c", &options);
        assert!(output(record(here.path()).args(["-o", "trace", "--"]).arg(program)).status.success());
        let trace = here.path().join("trace");
        let printed = output(
            taskscope().args(["report", "--section", "ledger,data,queues,blame", "--json"]).arg(&trace),
        );
        let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
        let rows = report["data"].as_array().unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row["data"].as_str().unwrap()).collect();
        // Data awaited by two tasks counts as awaited; its name is known for all.
        assert!(static_names.iter().any(|name| names.contains(name)), "{names:?}");
        let known = |name: &&str| {
            static_names.contains(name)
                || ["halo[0]", "halo[1]", "total"].contains(name)
                || name.starts_with("A")
                || name.starts_with("data of main")
        };
        assert!(names.iter().all(|name| known(name) && !name.starts_with("0x")), "{names:?}");
        for cause in ["wait.depend", "wait.send", "wait.transfer", "wait.deliver"] {
            let cause_rows = rows.iter().filter(|row| row["cause"] == cause);
            let sum: u64 = cause_rows.map(|row| row["ns"].as_u64().unwrap()).sum();
            assert_eq!(sum, report["ledger"]["causes"][cause].as_u64().unwrap(), "{cause}");
        }
        let idle: u64 =
            report["queues"].as_array().unwrap().iter().map(|row| row["idle_ns"].as_u64().unwrap()).sum();
        assert_eq!(idle, report["ledger"]["causes"]["wait.dispatch"].as_u64().unwrap());
        // The party that lost the time is known, too.
        let blame = report["blame"].as_array().unwrap().iter();
        let waits = blame.filter(|row| {
            ["wait.depend", "wait.create", "wait.sync"].map(Value::from).contains(&row["cause"])
        });
        for row in waits {
            assert!(!row["symptom"]["function"].is_null(), "{row}");
        }
    }
}
