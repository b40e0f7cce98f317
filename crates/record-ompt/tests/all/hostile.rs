//! A runtime that breaks every rule of the interface: the tool neither crashes nor writes a trace
//! that breaks a rule of the format.

use crate::common::{Compiler, Run, compile, tool};
use taskscope_event::models::{dictionary, openmp as p};

/// Runs the mock runtime.
fn run(seed: u32, calls: u32) -> crate::common::Trace {
    let mock = compile(Compiler::Clang, "mock", &["-fno-openmp"]);
    let mut run = Run::program(Compiler::Clang, &mock);
    run.command.arg(tool()).args([seed.to_string(), calls.to_string()]);
    run.trace()
}

#[test]
fn a_runtime_inside_the_program_leaves_the_programs_places_known() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let trace = run(1, 500);
    let program = trace.of(dictionary::MODULE).find(|module| module.text("path").contains("/mock.")).unwrap();
    let code = program.number("start")..program.number("end");
    assert!(trace.of(dictionary::SITE).any(|site| code.contains(&site.number("address"))));
}

#[test]
fn callbacks_in_any_order_give_a_sound_trace() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let mut tasks = 0;
    for seed in 0..60 {
        eprintln!("seed {seed}");
        tasks += run(seed, 3000).count(p::TASK_EXECUTE);
    }
    assert!(tasks > 500, "{tasks} tasks ran");
}
