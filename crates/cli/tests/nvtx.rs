//! Programs that report ranges through NVTX.

mod common;

use common::annotations::*;
use common::*;

#[test]
fn ranges_and_marks_are_counted_by_domain_message_and_category() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "nvtx.c");
    assert_eq!(recorded(here.path(), &program, &[]), "recorded");
    let expected = [
        ("burst", "handed over", 1),
        ("burst", "overlapping", 2),
        ("point", "bytes [category 9] [mark]", 1),
        ("point", "done [mark]", 1),
        ("point", "solver: bytes [category 9] [mark]", 1),
        ("point", "without a message [mark]", 1),
        ("state", "kernel", 5),
        ("state", "solver: matrix [assembly]", 1),
        ("state", "step", 5),
        ("state", "Δt", 1),
    ];
    assert_eq!(begins(&report_of_annotations(here.path())), rows(expected));
    assert_is_free_of_mistakes(here.path());
    assert!(names_of_threads(here.path()).contains("steering of ranges"));
    // Payloads are the values of marks.
    let mut dump = taskscope();
    let dump = text(&output(dump.current_dir(here.path()).args(["dump", "trace"])).stdout);
    assert!(dump.lines().any(|line| line.contains("42")), "{dump}");
}

#[test]
fn a_profile_records_nothing_of_nvtx() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "nvtx.c");
    assert_eq!(recorded(here.path(), &program, &["--mode", "profile"]), "not recorded");
}

#[test]
fn a_tool_of_the_user_is_kept() {
    assert_tool_of_user_is_kept("NVTX_INJECTION64_PATH", "$NVTX_INJECTION64_PATH");
}
