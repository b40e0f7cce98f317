//! `examples/pic`: the same result on 1 and 4 ranks, no latency on one node, exact sums, and what a slow link does.
//! A reduced form of `make pic-table`.

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
        println!("skipped: no Open MPI (apt-get install openmpi-bin libopenmpi-dev)");
        return None;
    }
    assert!(program.is_file(), "the compiler failed");
    Some(program)
}

/// Runs it recorded, with two workers a rank; what it printed, and its trace.
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
