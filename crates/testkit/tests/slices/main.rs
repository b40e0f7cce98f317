//! A slice is a valid trace. Its views within the range are those of the whole.

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod instrumented;
mod ranges;
mod threads;

use std::ops::ControlFlow;
use std::path::Path;
use taskscope_check::emulation;
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_execution::view::NoViews;
use taskscope_model::{Machine, MachineOptions, Violation};
use taskscope_trace::{OpenOptions, Slice, Trace};

fn slice(trace: &Path, output: &Path, slice: &Slice) -> u64 {
    let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
    trace.write_slice(slice, output).unwrap().streams
}

fn first_clock(trace: &Path) -> i64 {
    let trace = Trace::open(trace, &OpenOptions::default()).unwrap();
    trace.merge().next().unwrap().event.clock_ns
}

/// The violations that `check` would list.
fn violations(root: &Path) -> Vec<Violation> {
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let (system, mut violations) = emulation::system_of(&trace);
    let mut machine = Machine::new(&system, MachineOptions::default(), NoViews);
    emulation::play(&trace, &mut machine, |_, machine| {
        violations.extend(machine.take_violations());
        ControlFlow::Continue(())
    });
    violations
}

/// The verdicts of both judges on a trace, `check` and `emulate -l`, with their violations.
fn judged(root: &Path) -> ([bool; 2], Vec<Violation>) {
    let violations = violations(root);
    let mut verdict = Verdict::default();
    violations.iter().for_each(|violation| verdict.add(violation));
    ([Judge::Own, Judge::Ovni { lint: true }].map(|judge| verdict.accepts(judge)), violations)
}
