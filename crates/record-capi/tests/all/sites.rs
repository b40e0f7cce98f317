//! Call sites of `taskscope.h`: cost of a disabled one, and sites of a closed shared object.

use std::process::Command;

use crate::Programs;
use taskscope_prerequisite::has;

/// The directory with `program` and `plugin.so`; `None` without a compiler.
fn build() -> Option<Programs> {
    has("gcc").then(|| {
        let programs = Programs::new();
        programs.compile("gcc", &[], "tests/programs/sites.c", "program");
        programs.compile("gcc", &["-DPLUGIN", "-shared", "-fPIC"], "tests/programs/sites.c", "plugin.so");
        programs
    })
}

fn run(command: &mut Command, programs: &Programs) -> std::process::Output {
    let trace = programs.path("trace");
    let _ = std::fs::remove_dir_all(&trace);
    programs.output(command.env("TASKSCOPE_TRACE_DIR", trace))
}

/// Reads of memory from start to end, as cachegrind counts them; `None` without valgrind.
fn reads(programs: &Programs, passes: u64) -> Option<u64> {
    if !has("valgrind") {
        return None;
    }
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"])
        .arg(programs.path("program"))
        .arg(passes.to_string());
    let message = String::from_utf8_lossy(&run(&mut command, programs).stderr).into_owned();
    // "D refs:  78,432  (59,123 rd + 19,309 wr)"
    let line =
        message.lines().find(|line| line.contains("D") && line.contains("refs:") && line.contains("rd"))?;
    let number = line.split('(').nth(1)?.split("rd").next()?;
    number.replace(',', "").trim().parse().ok()
}

#[test]
fn a_site_that_is_off_costs_one_load() {
    let Some(programs) = build() else { return };
    let (few, many) = (10_000, 1_010_000);
    let (Some(less), Some(more)) = (reads(&programs, few), reads(&programs, many)) else { return };
    let each = (more - less) as f64 / (many - few) as f64;
    // The recorder has a thread of its own, which reads a little.
    assert!((0.9..1.3).contains(&each), "{each} loads");
}

#[test]
fn a_site_of_a_closed_shared_object_does_no_harm() {
    let Some(programs) = build() else { return };
    run(Command::new(programs.path("program")).arg("3").arg(programs.path("plugin.so")), &programs);
}
