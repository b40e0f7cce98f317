//! Emulates a trace into a directory, as the command does.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ops::ControlFlow;
use std::path::Path;
use taskscope_check::emulation;
use taskscope_check::verdict::Verdict;
use taskscope_execution::view::{NoViews, ViewFamily};
use taskscope_export::paraver::{ParaverWriter, ViewFile};
use taskscope_model::{Machine, MachineOptions, Violation};
use taskscope_trace::{OpenOptions, Trace};

/// The output of an emulation.
pub struct Emulated {
    pub verdict: Verdict,
    pub violations: Vec<Violation>,
    pub notes: Vec<String>,
}

/// Emulates `trace` and writes its views into `output`.
pub fn emulate(trace: &Path, output: &Path, options: MachineOptions) -> Emulated {
    let open = OpenOptions { own_events: false, ..OpenOptions::default() };
    let trace = Trace::open(trace, &open).expect("the trace opens");
    let (system, mut violations) = emulation::system_of(&trace);
    let described = Machine::new(&system, options, NoViews);
    let files: Vec<ViewFile> = ViewFamily::ALL
        .into_iter()
        .filter_map(|view| Some(ViewFile { view, rows: described.describe(view)?.rows.len() }))
        .collect();
    let end_ns = trace.duration_ns();
    let writer = ParaverWriter::create(output, &files, end_ns, false, false).expect("files can be created");
    let mut machine = Machine::new(&system, options, writer);
    emulation::play(&trace, &mut machine, |_, machine| {
        violations.extend(machine.take_violations());
        ControlFlow::Continue(())
    });
    let notes = machine.take_notes();
    let descriptions: Vec<_> = ViewFamily::ALL.map(|view| machine.describe(view)).into();
    let describe =
        |view| descriptions[ViewFamily::ALL.iter().position(|other| *other == view).unwrap()].clone();
    machine.into_observer().finish(describe).expect("files can be written");
    let mut verdict = Verdict::default();
    violations.iter().for_each(|violation| verdict.add(violation));
    Emulated { verdict, violations, notes }
}
