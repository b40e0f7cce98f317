//! The three classic situations (`examples/classic`): the report's findings match the head comments of the
//! programs.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use taskscope_analysis::Letter;
use taskscope_testkit::pic_table::{Row, row};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/classic").join(format!("{name}.c"))
}

fn lost(row: &Row, idle: &taskscope_analysis::Shares, letter: Letter) -> u64 {
    assert!(row.is_exact());
    row.lost(idle, letter)
}

#[test]
fn starvation_is_charged_to_the_task_that_everything_waits_for() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build_file(&source("starvation"), &here.path().join("starvation"), &[]);
    assert!(
        output(record(here.path()).args(["-o", "trace", "--"]).arg(program).args(["5", "40"]))
            .status
            .success()
    );
    let trace = here.path().join("trace");
    let row = row(&trace).unwrap();
    let starvation = lost(&row, &row.direct, Letter::Starvation);
    assert!(starvation > 0);
    assert_eq!(lost(&row, &row.direct, Letter::Latency), 0);
    let printed =
        output(taskscope().args(["report", "--section", "idle", "--mode", "direct", "--json"]).arg(&trace));
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let blame = report["idle"]["blame"]["starvation"].as_object().unwrap();
    let most =
        blame.iter().max_by(|(_, one), (_, other)| one.as_f64().unwrap().total_cmp(&other.as_f64().unwrap()));
    assert!(most.is_some_and(|(who, _)| who.contains("prepare")), "{blame:?}");
}

#[test]
fn tiny_tasks_lose_time_to_overhead() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build_file(&source("overhead"), &here.path().join("overhead"), &[]);
    assert!(
        output(record(here.path()).args(["-o", "trace", "--"]).arg(program).arg("20000")).status.success()
    );
    let row = row(&here.path().join("trace")).unwrap();
    let [starvation, latency, overhead] =
        [Letter::Starvation, Letter::Latency, Letter::Overhead].map(|letter| lost(&row, &row.root, letter));
    assert!(overhead > starvation && latency == 0, "S {starvation} L {latency} O {overhead}");
}

#[test]
fn latency_is_found_behind_the_published_formulas_starvation() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("latency");
    let mut command = Command::new("mpicc.openmpi");
    command.env("OMPI_CC", Compiler::Clang.command().get_program()).args(["-O2", "-g", "-fopenmp", "-o"]);
    if command.arg(&program).arg(source("latency")).arg("-lpthread").status().is_err() {
        taskscope_prerequisite::missing("Open MPI is not installed");
        return;
    }
    let mut command = record(here.path());
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMP_WAIT_POLICY", "passive"),
    ]);
    command.args(["-o", "trace", "--", "mpirun.openmpi", "-n", "2"]).arg(&program);
    assert!(output(command.args(["6", "5", "20"])).status.success());
    let row = row(&here.path().join("trace")).unwrap();
    let direct = lost(&row, &row.direct, Letter::Latency);
    let root = lost(&row, &row.root, Letter::Latency);
    // Workers of both ranks wait during flights; waits of others after their last task are tail.
    assert!(direct > 0 && root > direct, "{root}, {direct} direct");
    assert!(lost(&row, &row.direct, Letter::Starvation) > lost(&row, &row.root, Letter::Starvation));
}
