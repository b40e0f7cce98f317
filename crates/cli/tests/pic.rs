//! `examples/pic`: the same result on 1 and 4 ranks, no latency on one node, exact sums, and the effect of a
//! slow link. A reduced form of `make pic-table`.

mod common;

use common::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use taskscope_analysis::Letter;
use taskscope_testkit::pic_table::{Row, row};

/// The example, built into `directory`; `None`, with a word, without Open MPI.
fn build(directory: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pic/pic.c");
    let clang = Compiler::Clang.command();
    let program = directory.join("pic");
    let mut command = Command::new("mpicc.openmpi");
    command.env("OMPI_CC", clang.get_program()).args(["-O2", "-g", "-fopenmp", "-o"]).arg(&program);
    if command.arg(source).args(["-lm", "-lpthread"]).status().is_err() {
        taskscope_prerequisite::missing("Open MPI is not installed");
        return None;
    }
    assert!(program.is_file(), "the compiler failed");
    Some(program)
}

/// Runs it recorded, with two workers per rank. Returns its output, and its trace.
fn run(directory: &Path, program: &Path, ranks: u32, arguments: &str) -> (String, PathBuf) {
    let name = format!("{ranks}-{}", names(directory).len());
    let mut command = record(directory);
    command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("OMP_WAIT_POLICY", "passive"),
        ("KMP_BLOCKTIME", "0"),
    ]);
    command.args(["-q", "-o", &name, "--", "mpirun.openmpi", "-n", &ranks.to_string()]).arg(program);
    let run = output(command.args(arguments.split(' ')));
    assert!(run.status.success());
    (text(&run.stdout), directory.join(name))
}

fn exact_row(trace: &Path) -> Row {
    let row = row(trace).unwrap();
    assert!(row.is_exact(), "{row:?}");
    assert!(row.times.execution_ns > 0 && row.times.capacity_ns > row.times.execution_ns);
    row
}

#[test]
fn ranks_change_the_causes_and_not_the_result() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build(here.path()) else { return };
    let (alone, one) = run(here.path(), &program, 1, "16 16 16 4000 2 2 2 2");
    let (together, four) = run(here.path(), &program, 4, "16 16 16 4000 2 2 2 2");
    assert_eq!(alone, together);
    assert!(alone.starts_with("4000 particles"));
    let (one, four) = (exact_row(&one), exact_row(&four));
    assert_eq!((one.shape, four.shape), ((1, 2), (4, 2)));
    for idle in [&one.direct, &one.root] {
        assert_eq!(one.lost(idle, Letter::Latency), 0, "nothing is under way on one node");
    }
    assert!(four.lost(&four.root, Letter::Latency) > 0);
}

#[test]
fn a_slow_link_is_latency_at_the_root_and_starvation_by_the_published_formula() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build(here.path()) else { return };
    // Every sweep needs faces of the other ranks: 2 steps of 5 exchanges, 20 ms each at least.
    let arguments = "16 16 16 4000 2 2 2 2 --sleep 100 100 --link-us 20000";
    let (_, slow) = run(here.path(), &program, 4, arguments);
    let slow = exact_row(&slow);
    let [direct, root] = [&slow.direct, &slow.root].map(|idle| slow.lost(idle, Letter::Latency));
    let wait_of_all = 8 * 2 * 5 * 20_000_000;
    assert!(root > wait_of_all / 2, "latency at the root: {root} of {wait_of_all}");
    assert!(root > direct);
    assert!(slow.lost(&slow.direct, Letter::Starvation) > slow.lost(&slow.root, Letter::Starvation));
}

#[test]
fn ranks_have_a_table_of_their_own_in_the_report_and_for_talp() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build(here.path()) else { return };
    let (_, trace) = run(here.path(), &program, 2, "16 16 16 4000 2 2 2 2 --link-us 5000");
    let whole = report(&trace);
    let ranks = whole["ranks"].as_array().unwrap();
    assert_eq!(ranks.iter().map(|row| row["rank"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
    let sum = |key: &str| ranks.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("capacity_ns"), whole["capacity_ns"].as_u64().unwrap());
    assert_eq!(sum("useful_ns"), whole["efficiency"]["useful_ns"].as_u64().unwrap());
    assert!(sum("communication_ns") > 0);
    start_and_end_are_no_communication(&trace, &whole);
    let shown = output(taskscope().arg("report").arg(&trace));
    assert!(text(&shown.stdout).contains("Ranks, least efficient first"));

    let talp = output(taskscope().args(["export", "--to", "talp-json"]).arg(&trace));
    let talp: serde_json::Value = serde_json::from_slice(&talp.stdout).unwrap();
    assert_eq!(talp["resources"]["numMpiRanks"], 2);
    assert_eq!(talp["Process"]["Global"].as_array().unwrap().len(), 2);
    assert!(talp["Application"]["Global"]["numMpiCalls"].as_u64().unwrap() > 0);
    // Readers take ISO 8601 with an offset.
    let timestamp = talp["timestamp"].as_str().unwrap();
    assert!(
        timestamp.len() == 25 && timestamp.as_bytes()[10] == b'T' && timestamp.ends_with("+00:00"),
        "{timestamp}"
    );
    let times = ["usefulTime", "mpiTime", "mpiWorkerIdleTime", "ompLoadImbalanceTime", "ompSchedulingTime"];
    let whole = &talp["Application"]["Global"];
    let sum: u64 =
        times.iter().chain(&["ompSerializationTime"]).map(|key| whole[*key].as_u64().unwrap()).sum();
    assert_eq!(sum, ranks_capacity(&talp));
}

/// Both ranks start and end MPI: that has a cause of its own, counts as no communication, and is in no efficiency.
fn start_and_end_are_no_communication(trace: &Path, whole: &serde_json::Value) {
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let causes = whole["causes"].as_array().unwrap().iter();
    let started: u64 = causes.filter(|row| row["state"] == "mpi_start").map(|row| number(&row["ns"])).sum();
    let apart = number(&whole["efficiency"]["mpi_start_ns"]);
    assert!(started > 0 && apart >= started, "{apart} with the workers that have nothing to do meanwhile");
    let (useful, capacity) = (number(&whole["efficiency"]["useful_ns"]), number(&whole["capacity_ns"]));
    let parallel = whole["efficiency"]["parallel"].as_f64().unwrap();
    assert!((parallel - useful as f64 / (capacity - apart) as f64).abs() < 1e-9);
    let printed = output(
        taskscope()
            .args([
                "report",
                "--section",
                "ledger,blame,data,queues,diagnosis,idle,path,pop,whatif",
                "--json",
            ])
            .arg(trace),
    );
    let causes: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    check_document(&causes);
    assert_eq!(number(&causes["ledger"]["causes"]["mpi.start"]), started);
    let leaves = causes["ledger"]["causes"].as_object().unwrap().values();
    assert_eq!(leaves.map(number).sum::<u64>(), number(&causes["capacity_ns"]));
    let blamed = |name: &str, cause: &str| {
        let rows = causes["blame"].as_array().unwrap().iter();
        rows.filter(|row| row["who"]["object"] == name && row["cause"] == cause)
            .map(|row| number(&row["ns"]))
            .sum::<u64>()
    };
    let calls = ["MPI_Init_thread", "MPI_Finalize"];
    assert_eq!(calls.iter().map(|call| blamed(call, "mpi.start")).sum::<u64>(), started);
    // The others wait for the last rank's call of MPI_Finalize.
    assert_eq!(blamed("MPI_Init_thread", "mpi.transfer") + blamed("MPI_Init_thread", "mpi.late"), 0);
    let kept = number(&causes["whatif"]["mpi_start_ns"]);
    for prediction in causes["whatif"]["predictions"].as_array().unwrap() {
        assert!(number(&prediction["wall_ns"]) >= kept, "nothing makes the start of MPI shorter");
    }
}

/// CPUs × elapsed time of all processes.
fn ranks_capacity(talp: &serde_json::Value) -> u64 {
    let processes = talp["Process"]["Global"].as_array().unwrap();
    processes.iter().map(|row| row["numCpus"].as_u64().unwrap() * row["elapsedTime"].as_u64().unwrap()).sum()
}
