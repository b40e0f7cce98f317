//! Programs that report kernels through Kokkos Tools.

mod common;

use common::annotations::*;
use common::*;

#[test]
fn kernels_regions_copies_and_memory_are_counted_by_label() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "kokkos.c");
    assert_eq!(recorded(here.path(), &program, &[]), "recorded");
    let report = report_of_annotations(here.path());
    let full = "x".repeat(64);
    let long = format!("{} [parallel_for]", "l".repeat(1_000));
    let expected = [
        ("burst", "output [section]".to_owned(), 2),
        ("point", format!("Kokkos memory in {full}"), 1),
        ("point", "Kokkos memory in Host".to_owned(), 2),
        ("point", format!("{full} <- Host [deep_copy]"), 1),
        ("point", "done [event]".to_owned(), 1),
        ("state", "advect [parallel_for]".to_owned(), 10),
        ("state", "advect [parallel_scan]".to_owned(), 10),
        ("state", "end of step [fence]".to_owned(), 10),
        ("state", long, 1),
        ("state", "pressure <- velocity [deep_copy]".to_owned(), 1),
        ("state", "residual [parallel_reduce]".to_owned(), 10),
        ("state", "time step [region]".to_owned(), 10),
    ];
    assert_eq!(begins(&report), rows(expected));
    assert_is_free_of_mistakes(here.path());
}

#[test]
fn a_tool_of_the_user_is_kept_whichever_variable_names_it() {
    for variable in ["KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"] {
        assert_tool_of_user_is_kept(variable, "$KOKKOS_TOOLS_LIBS$KOKKOS_PROFILE_LIBRARY");
    }
}

/// Kokkos before 3.7 knows the old variable alone, of which newer ones warn.
#[test]
fn the_old_variable_is_set_for_programs_that_know_no_other() {
    let here = tempfile::tempdir().unwrap();
    let source = here.path().join("old.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\n#include <stdlib.h>\n\
         int main(void) { puts(getenv(NAME) ? \"set\" : \"unset\"); return getenv(\"KOKKOS_PROFILE_LIBRARY\") == 0; }\n",
    )
    .unwrap();
    for (name, status) in [("KOKKOS_PROFILE_LIBRARY", 0), ("KOKKOS_TOOLS_LIBS", 1)] {
        let program = here.path().join(name);
        Compiler::Gcc.build_file(&source, &program, &[&format!("-DNAME=\"{name}\"")]);
        let mut command = record(here.path());
        let run = output(command.args(["-q", "-o", &format!("trace.{name}"), "--"]).arg(&program));
        assert_eq!((run.status.code(), text(&run.stdout).trim()), (Some(status), "set"));
    }
}

#[test]
fn regions_and_loops_are_named_after_the_kernels_that_they_run() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("program");
    let source = program_source("kokkos_regions.c");
    Compiler::Clang.build_file(&source, &program, &["-O1", "-g", "-fopenmp", "-ldl"]);
    let mut command = record(here.path());
    command.env("OMP_NUM_THREADS", "2").args(["-q", "-o", "trace", "--"]);
    assert!(output(command.arg(&program)).status.success());
    let mut command = taskscope();
    command.current_dir(here.path()).args(["report", "trace", "--section", "constructs", "--top", "100"]);
    let report = text(&output(command.env("COLUMNS", "200")).stdout);
    for name in ["advect", "residual", "functor_of_two_labels", "functor_without_kernel"] {
        for construct in ["parallel", "loop"] {
            let is_named = |line: &&str| line.contains(&format!("{name} [{construct} at kokkos_regions.c:"));
            assert_eq!(report.lines().filter(is_named).count(), 1, "{name}, {construct}:\n{report}");
        }
    }
    assert!(!report.contains("first_functor") && !report.contains("left ["), "{report}");
}

#[test]
fn a_profile_records_nothing_of_kokkos() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "kokkos.c");
    assert_eq!(recorded(here.path(), &program, &["--mode", "profile"]), "recorded");
}
