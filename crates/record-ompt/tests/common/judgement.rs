//! The emulator's judgement of a trace: strict mode (`taskscope emulate -l`) must find nothing.

use std::ops::ControlFlow;
use std::path::Path;

use taskscope_check::emulation;
use taskscope_check::verdict::{Judge, Verdict};
use taskscope_execution::view::NoViews;
use taskscope_model::{Machine, MachineOptions};
use taskscope_trace::{OpenOptions, ReadOrder, Trace};

/// Panics unless ovni's tools would accept the trace.
pub fn assert_accepted(directory: &Path) {
    // In stored order, and without events that ovni's tools do not see.
    let options = OpenOptions { own_events: false, order: ReadOrder::Stored, ..OpenOptions::default() };
    let trace = Trace::open(directory, &options).unwrap();
    let (system, mut violations) = emulation::system_of(&trace);
    let mut machine = Machine::new(&system, MachineOptions { all_models: false, breakdown: true }, NoViews);
    emulation::play(&trace, &mut machine, |_, _| ControlFlow::Continue(()));
    violations.extend(machine.take_violations());
    let mut verdict = Verdict::default();
    violations.iter().for_each(|violation| verdict.add(violation));
    assert!(verdict.accepts(Judge::Ovni { lint: true }), "{violations:#?}");
}
