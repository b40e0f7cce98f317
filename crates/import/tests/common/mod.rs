//! Imported runs as traces.

use taskscope_import::spans::{Run, write_run};
use taskscope_session::Session;

/// The session of a run, written as a trace without a problem.
pub fn opened(run: &Run) -> Session {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("t");
    write_run(run, &target).unwrap();
    let session = Session::open(&target).unwrap();
    assert!(session.problems.is_empty() && session.is_complete(), "{:?}", session.problems);
    assert!(session.execution.anomalies.by_name.is_empty(), "{:?}", session.execution.anomalies);
    session
}
