//! CPUs as workers, on a trace of a real runtime if available.

use std::path::Path;
use taskscope_execution::{State, ThreadKind};
use taskscope_session::Session;

/// Values of ovniemu's own views for the two CPUs of this trace, summed from its `cpu.prv` (types 36, 37 and 40), in
/// nanoseconds: idle or looking for work, in no part of the runtime, in bodies of the main task type.
const HEAT: [(State, &str, u64); 3] = [
    (State::Idle, "", 209_240_982),
    (State::NoSubsystem, "", 49_796_382),
    (State::Task, "gauss seidel block", 3_853_416),
];

#[test]
fn the_time_of_cpus_agrees_with_ovniemus_views() {
    let trace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/runtimes/nanos6-heat-l2/trace");
    if !trace.exists() {
        taskscope_prerequisite::skip("the corpus of recorded runtimes is not beside this clone");
        return;
    }
    let session = Session::open(&trace).unwrap();
    let execution = &session.execution;
    let cpus: Vec<_> = execution.workers().collect();
    assert_eq!(cpus.len(), 2);
    assert!(cpus.iter().all(|(_, cpu)| cpu.kind == ThreadKind::Cpu));
    for (state, label, expected) in HEAT {
        let spans = cpus.iter().flat_map(|(cpu, _)| execution.spans_of_run(*cpu));
        let found: u64 = spans
            .filter(|span| span.section.state == state)
            .filter(|span| session.places.name(state, span.section.place).contains(label))
            .map(|span| span.nanos())
            .sum();
        assert_eq!(found, expected, "{}", state.name());
    }
}
