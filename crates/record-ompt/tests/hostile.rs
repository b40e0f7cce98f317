//! A runtime that breaks every rule of the interface: the tool neither crashes nor writes a trace
//! that breaks a rule of the format.

mod common;

use common::{Compiler, Run, compile, tool};
use taskscope_event::models::openmp as p;

/// Runs the mock runtime.
fn run(seed: u32, calls: u32) -> common::Trace {
    let mock = compile(Compiler::Clang, "mock", &["-fno-openmp"]);
    let mut run = Run::program(Compiler::Clang, &mock);
    run.command.arg(tool()).args([seed.to_string(), calls.to_string()]);
    run.trace()
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
