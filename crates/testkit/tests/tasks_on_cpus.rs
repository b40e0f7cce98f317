//! Tasks of runtimes whose workers are CPUs.

use taskscope_event::models::nosv;
use taskscope_session::Session;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};

/// The thread and its CPU both show the task, which ran once.
#[test]
fn the_body_of_a_task_is_counted_once() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 10)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1001, nosv::TYPE_CREATE, &type_payload(1, "work"))
        .event(1010, nosv::TASK_CREATE, &pair(7, 1))
        .event(1100, nosv::TASK_EXECUTE, &pair(7, 0))
        .event(1400, nosv::TASK_END, &pair(7, 0))
        .end(1500)
        .write(root.path())
        .unwrap();
    let session = Session::open(root.path()).unwrap();
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    let [row] = analysis.task_types[..] else { panic!("{:?}", analysis.task_types) };
    assert_eq!((row.began, row.body_ns, row.median_ns, row.max_ns), (1, 300, 300, 300));
    // The CPU's time has it too: it is the worker.
    assert_eq!(analysis.ledger.by_state.get(taskscope_execution::State::Task), 300);
}
