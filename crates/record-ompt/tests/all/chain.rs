//! A tool of the user's own behind this one: both see everything, and neither sees the other.

use crate::common::{Compiler, Run, Trace, compile, tool, try_compile};
use taskscope_event::models::openmp as p;

/// Runs a construct with the second tool named in these ways; returns its output, and the trace.
fn with_other_tool(construct: &str, size: u32, record: bool) -> Option<(String, Trace)> {
    if !Compiler::Clang.is_installed() {
        return None;
    }
    let other = compile(Compiler::Clang, "other_tool", &["-shared", "-fPIC", "-fno-openmp"]);
    let mut run = Run::construct(Compiler::Clang, construct, size)
        .env("TASKSCOPE_NEXT_TOOL_LIBRARIES", format!("/no/such/library.so:{}", other.display()));
    if !record {
        run.command.env_remove("TASKSCOPE_TRACE_DIR");
    }
    let (output, trace) = run.output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{} {text}", output.status);
    let line = text.lines().find(|line| line.starts_with("tool: ")).expect("the other tool speaks");
    Some((line.to_owned(), trace))
}

/// Output of the second tool alone.
fn alone(construct: &str, size: u32) -> String {
    let other = compile(Compiler::Clang, "other_tool", &["-shared", "-fPIC", "-fno-openmp"]);
    let mut run = Run::construct(Compiler::Clang, construct, size).env("OMP_TOOL_LIBRARIES", other);
    run.command.env_remove("TASKSCOPE_TRACE_DIR");
    let text = String::from_utf8(run.output().0.stdout).unwrap();
    text.lines().find(|line| line.starts_with("tool: ")).unwrap().to_owned()
}

#[test]
fn both_tools_see_everything() {
    for (construct, size) in [
        ("fibonacci", 12),
        ("depend", 0),
        ("nested", 0),
        ("regions", 50),
        ("locks", 0),
        ("wait_depend", 0),
        ("undeferred", 0),
    ] {
        let Some((line, trace)) = with_other_tool(construct, size, true) else { return };
        assert_eq!(line, alone(construct, size), "{construct}");
        assert!(line.ends_with(" 0 faults"), "{construct}: {line}");
        trace.assert_sound();
        let streams = &trace.streams;
        assert!(streams.iter().all(|s| s.metadata["taskscope"]["openmp"]["next_tool"].is_string()));
        if construct == "fibonacci" {
            assert!(line.starts_with(&format!("tool: {} tasks", trace.count(p::TASK_CREATE))), "{line}");
        }
    }
}

/// Beside another tool all events go the slow path; alone, those of usual tasks go a short one.
#[test]
fn the_short_way_and_the_long_one_write_the_same() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let other = compile(Compiler::Clang, "other_tool", &["-shared", "-fPIC", "-fno-openmp"]);
    // More than a region of the buffer, and deeper than is shown.
    for (construct, size) in [("fibonacci", 16), ("depend", 0), ("undeferred", 0), ("deep", 600)] {
        let run = |short: bool| {
            let run = Run::construct(Compiler::Clang, construct, size).env("OMP_NUM_THREADS", "1");
            if short { run } else { run.env("TASKSCOPE_NEXT_TOOL_LIBRARIES", &other) }.trace()
        };
        let payloads = |trace: &Trace| -> Vec<Vec<(String, Vec<u8>)>> {
            let standard = trace.streams.iter().map(|stream| stream.events.iter().filter(|event| !event.own));
            standard
                .map(|events| events.map(|event| (event.code.to_string(), event.payload.clone())).collect())
                .collect()
        };
        let (short, long) = (run(true), run(false));
        assert!(short.count(p::TASK_END) > 0, "{construct}");
        assert_eq!(payloads(&short), payloads(&long), "{construct}");
    }
}

#[test]
fn a_disabled_tool_leaves_its_place_to_the_users() {
    if let Some((line, trace)) = with_other_tool("fibonacci", 12, false) {
        assert_eq!(line, alone("fibonacci", 12));
        assert!(trace.streams.is_empty());
    }
}

#[test]
fn a_chain_to_itself_is_no_chain() {
    if Compiler::Clang.is_installed() {
        let trace =
            Run::construct(Compiler::Clang, "tasks", 10).env("TASKSCOPE_NEXT_TOOL_LIBRARIES", tool()).trace();
        assert_eq!(trace.count(p::TASK_END), 10);
    }
}

#[test]
fn programs_with_thread_sanitizer_keep_its_tool_and_are_not_recorded() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    const LIBARCHER: &str = "/usr/lib/llvm-19/lib";
    let Some(program) = try_compile(Compiler::Clang, "constructs", &["-pthread", "-fsanitize=thread"]) else {
        taskscope_prerequisite::skip("clang-19 has no ThreadSanitizer (libclang-rt-19-dev)");
        return;
    };
    let races = |record: bool| {
        let mut run = Run::program(Compiler::Clang, &program)
            .env("LD_LIBRARY_PATH", LIBARCHER)
            .env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
        run.command.args(["depend", "0"]);
        if !record {
            run.command.env_remove("TASKSCOPE_TRACE_DIR").env_remove("OMP_TOOL_LIBRARIES");
        }
        let (output, trace) = run.output();
        (String::from_utf8_lossy(&output.stderr).into_owned(), trace)
    };
    let (without, _) = races(false);
    if !without.is_empty() {
        taskscope_prerequisite::skip(format_args!("ThreadSanitizer does not work here: {without}"));
        return;
    }
    let (with, trace) = races(true);
    assert_eq!(with, "", "without libarcher, tasks ordered by dependences would be reported as races");
    assert_eq!(trace.count(p::TASK_END), 0, "such programs run as alone");
}
