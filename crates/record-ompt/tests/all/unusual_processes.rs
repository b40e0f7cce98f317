//! Samples in unusual processes: with forks, with hundreds of threads, with a late runtime or one that
//! refuses tools, paused from outside, with a second tool.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use crate::common::trace::Event;
use crate::common::{Compiler, LIBOMP, Run, Trace, compile, tool};
use taskscope_event::models::samples::{self, flag, state};
use taskscope_event::models::{omp, openmp as p};

/// `sampled.c` under samples at 1 kHz.
fn sampled(compiler: Compiler, arguments: &[&str]) -> Option<Run> {
    if !compiler.is_installed() {
        return None;
    }
    let program = compile(compiler, "sampled", &["-O2", "-Wl,--no-as-needed", "-lm", "-ldl", "-pthread"]);
    let mut run = Run::program(compiler, &program).env("TASKSCOPE_SAMPLE", "1000");
    let preloaded = match compiler {
        Compiler::Clang => tool().display().to_string(),
        Compiler::Gcc => format!("{}:{LIBOMP}", tool().display()),
    };
    run.command.args(arguments).env("LD_PRELOAD", preloaded);
    Some(run)
}

fn all(trace: &Trace) -> impl Iterator<Item = &Event> {
    trace.streams.iter().flat_map(|stream| &stream.samples)
}

fn states(trace: &Trace) -> BTreeSet<u32> {
    all(trace).map(|sample| sample.number("state") as u32).collect()
}

fn silent(output: &Output) -> String {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// At least 99 % of many samples reach the root; of few, all but three.
fn assert_rooted(trace: &Trace) {
    let taken = all(trace).count();
    let rooted = all(trace).filter(|s| s.number("flags") as u32 & flag::REACHED_ROOT != 0).count();
    assert!(taken > 20 && (rooted * 100 >= taken * 99 || taken - rooted <= 3), "{rooted} of {taken}");
}

#[test]
fn children_are_sampled_on_their_own() {
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        let Some(run) = sampled(compiler, &["forks", "60"]) else { continue };
        let (output, trace) = run.output();
        assert_eq!(silent(&output), "0 children failed\n");
        trace.assert_sound();
        assert_rooted(&trace);
        let processes = trace.processes();
        assert_eq!(processes.len(), 4, "the parent and three children");
        for process in processes {
            let part = trace.process_trace(process);
            assert!(all(&part).count() > 10, "{} samples", all(&part).count());
            assert!(states(&part).contains(&state::WORK_PARALLEL));
        }
    }
}

#[test]
fn hundreds_of_threads_are_sampled() {
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        let Some(run) = sampled(compiler, &["work", "8"]) else { continue };
        let (output, trace) = run.env("OMP_NUM_THREADS", "300").env("TASKSCOPE_SAMPLE", "150").output();
        silent(&output);
        trace.assert_sound();
        assert_eq!(trace.count(omp::IMPLICIT_BEGIN), 300);
        let with_samples = trace.streams.iter().filter(|stream| !stream.samples.is_empty()).count();
        assert!(with_samples >= 150, "{with_samples} of 300");
        assert_rooted(&trace);
    }
}

#[test]
fn regions_of_two_threads_eight_deep_are_followed() {
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        let Some(run) = sampled(compiler, &["nested", "4"]) else { continue };
        let (output, trace) = run.env("TASKSCOPE_SAMPLE", "100").output();
        silent(&output);
        trace.assert_sound();
        assert_eq!(trace.count(omp::REGION_BEGIN), 255);
        assert_rooted(&trace);
        // From every sample in user code the way outwards is known: seven more regions.
        let parents: std::collections::HashMap<i128, i128> = trace
            .of(samples::REGION_PATH)
            .map(|path| (path.number("region"), path.number("parent_region")))
            .collect();
        let mut deepest = 0;
        for sample in all(&trace).filter(|s| s.number("state") as u32 == state::WORK_PARALLEL) {
            let (mut region, mut depth) = (sample.number("region"), 0);
            while region != 0 {
                region = *parents.get(&region).unwrap_or_else(|| panic!("no path of region {region}"));
                depth += 1;
            }
            deepest = deepest.max(depth);
        }
        assert_eq!(deepest, 8);
    }
}

#[test]
fn with_tools_disabled_a_program_is_sampled_as_one_without_openmp() {
    let Some(run) = sampled(Compiler::Clang, &["work", "60"]) else { return };
    let (output, trace) = run.env("OMP_TOOL", "disabled").output();
    silent(&output);
    assert_rooted(&trace);
    assert_eq!(trace.count(omp::REGION_BEGIN), 0);
    assert!(states(&trace).is_subset(&BTreeSet::from([state::NO_OPENMP, state::OVERHEAD])));
    // Code that the runtime calls is the program's, too, as none of its calls is known.
    let in_user_code = all(&trace).filter(|s| s.number("flags") as u32 & flag::IN_RUNTIME == 0).count();
    assert!(in_user_code * 10 >= all(&trace).count() * 8, "{in_user_code} of {}", all(&trace).count());
    // Without samples nothing is left.
    let Some(mut run) = sampled(Compiler::Clang, &["work", "20"]) else { return };
    run.command.env_remove("TASKSCOPE_SAMPLE");
    let (output, trace) = run.env("OMP_TOOL", "disabled").output();
    silent(&output);
    assert!(trace.streams.is_empty());
}

#[test]
fn a_runtime_that_is_loaded_later_is_known_to_samples() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let plugin = compile(Compiler::Clang, "plugin", &["-shared", "-fPIC"]);
    let host = compile(Compiler::Clang, "host", &["-fno-openmp", "-ldl"]);
    let mut run = Run::program(Compiler::Clang, &host)
        .env("TASKSCOPE_SAMPLE", "1000")
        .env("PLUGIN_MILLISECONDS", "2")
        .env("LD_PRELOAD", tool());
    run.command.arg(&plugin);
    let (output, trace) = run.output();
    assert_eq!(silent(&output), "20\n20\n");
    trace.assert_sound();
    assert!(trace.count(p::TASK_END) >= 20);
    assert_rooted(&trace);
    let in_tasks: Vec<_> = all(&trace).filter(|sample| sample.number("task") != 0).collect();
    assert!(in_tasks.len() > 10, "{} samples in tasks", in_tasks.len());
    assert!(trace.count(samples::TASK_PATH) > 0);
}

/// `sampled.c`, linked to a runtime that then is a part of the program, if there is one to link to.
fn with_static_runtime() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("TASKSCOPE_STATIC_LIBOMP").map(Into::into);
    let archive = named.unwrap_or_else(|| std::path::PathBuf::from("/usr/lib/llvm-19/lib/libomp.a"));
    if !Compiler::Clang.is_installed() || !archive.exists() {
        taskscope_prerequisite::skip(
            "no static OpenMP runtime is installed (Debian has none). TASKSCOPE_STATIC_LIBOMP=libiomp5.a \
             names one; the package intel-openmp of PyPI contains it",
        );
        return None;
    }
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (object, program) = (directory.join("sampled-static.o"), directory.join("sampled-static"));
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sampled.c");
    let run = |command: &mut std::process::Command| assert!(command.status().unwrap().success());
    run(std::process::Command::new("clang-19")
        .args(["-O2", "-g", "-fopenmp", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object));
    run(std::process::Command::new("clang-19")
        .arg(object)
        .arg(archive)
        .args(["-lm", "-ldl", "-lpthread", "-lstdc++", "-o"])
        .arg(&program));
    Some(program)
}

#[test]
fn a_runtime_inside_the_program_is_recognised_by_its_frames() {
    let Some(program) = with_static_runtime() else { return };
    for mode in ["work", "waits", "tasks"] {
        let mut run =
            Run::program(Compiler::Clang, &program).env("TASKSCOPE_SAMPLE", "1000").env("LD_PRELOAD", tool());
        run.command.args([mode, "60"]);
        let (output, trace) = run.output();
        silent(&output);
        trace.assert_sound();
        assert_rooted(&trace);
        assert!(trace.count(omp::REGION_BEGIN) > 0, "{mode}");
        assert!(states(&trace).contains(&state::WORK_PARALLEL), "{mode}");
        if mode == "waits" {
            // The runtime's frames cannot be recognised by module; the place of the call can.
            let waits: Vec<_> = all(&trace).filter(|s| s.number("state") as u32 == state::LOCK).collect();
            assert!(
                waits.len() > 5 && waits.iter().all(|s| s.number("flags") as u32 & flag::IN_RUNTIME != 0)
            );
        }
    }
}

#[test]
fn a_signal_from_outside_pauses_and_starts() {
    let Some(run) = sampled(Compiler::Clang, &["phases", "40"]) else { return };
    let signal = libc::SIGUSR2;
    let mut run = run.env("TASKSCOPE_CONTROL_SIGNAL", signal.to_string());
    let mut child = run.command.stdin(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut times = Vec::new();
    for phase in 0..4 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writing; the child has not been waited for.
        unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
            if phase > 0 {
                libc::kill(child.id() as i32, signal);
            }
        }
        times.push(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
        to.write_all(b"\n").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line, "over\n");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
    let trace = Trace::read(run.directory());
    std::fs::remove_dir_all(run.directory()).unwrap();
    trace.assert_sound();
    assert_eq!(trace.count(omp::REGION_BEGIN), 2, "the first and the third");
    let mut samples_per_phase = [0; 4];
    for sample in all(&trace).filter(|s| s.number("state") as u32 == state::WORK_PARALLEL) {
        samples_per_phase[times.iter().rposition(|time| *time <= sample.at).unwrap()] += 1;
    }
    assert!(
        samples_per_phase[0] > 5
            && samples_per_phase[2] > 5
            && samples_per_phase[1] + samples_per_phase[3] <= 2,
        "{samples_per_phase:?}"
    );
}

#[test]
fn another_tool_sees_its_own_words_and_samples_see_ours() {
    let Some(run) = sampled(Compiler::Clang, &["tasks", "15"]) else { return };
    let other = compile(Compiler::Clang, "other_tool", &["-shared", "-fPIC", "-fno-openmp"]);
    let (output, trace) = run.env("TASKSCOPE_NEXT_TOOL_LIBRARIES", other).output();
    let text = silent(&output);
    assert!(text.starts_with("tool: 8 tasks") && text.ends_with(" 0 faults\n"), "{text}");
    let tasks: BTreeSet<i128> = trace.of(p::TASK_CREATE).map(|event| event.number("taskid")).collect();
    assert_eq!(tasks.len(), 8);
    let sampled: BTreeSet<i128> = all(&trace).map(|s| s.number("task")).filter(|task| *task != 0).collect();
    assert!(!sampled.is_empty() && sampled.is_subset(&tasks), "{sampled:?} of {tasks:?}");
    let regions: BTreeSet<i128> = trace.of(omp::REGION_BEGIN).map(|event| event.number("region")).collect();
    assert!(all(&trace).map(|s| s.number("region")).all(|region| region == 0 || regions.contains(&region)));
}

/// Reports of LLVM's runtime that differ, per state of ours; nothing for equal ones.
#[test]
fn disagreements_with_the_runtime_are_reported() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "states", &["-pthread"]);
    let wrong = [
        ("taskwait", state::TASKWAIT, 0x001),
        ("taskgroup", state::TASKGROUP, 0x001),
        ("critical", state::CRITICAL, 0x041),
        ("regions", state::IDLE, 0x011),
    ];
    for (mode, ours, theirs) in wrong {
        // A worker that sleeps in a barrier would not look for tasks.
        let policy = if mode.starts_with("task") { "active" } else { "passive" };
        let mut run = Run::program(Compiler::Clang, &program)
            .env("OMP_WAIT_POLICY", policy)
            .env("TASKSCOPE_SAMPLE", "1000")
            .env("TASKSCOPE_CHECK_STATES", "1")
            .env("LD_PRELOAD", tool());
        run.command.args([mode, "30"]);
        let (output, trace) = run.output();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        // One is enough: a loaded machine takes few samples.
        let name = format!("{ours:#05x}/{theirs:#05x}");
        let metadata: Vec<_> = trace.streams.iter().map(|stream| &stream.metadata["taskscope"]).collect();
        let is_reported = metadata.iter().any(|of| of["state_disagreements"][&name].is_u64());
        assert!(is_reported, "{mode}: no {name} in {metadata:?}");
    }
    // If it is right, hardly a sample differs.
    for (mode, ours) in
        [("lock", state::LOCK), ("barrier", state::BARRIER_EXPLICIT), ("ordered", state::ORDERED)]
    {
        let mut run = Run::program(Compiler::Clang, &program)
            .env("TASKSCOPE_SAMPLE", "1000")
            .env("TASKSCOPE_CHECK_STATES", "1")
            .env("LD_PRELOAD", tool());
        run.command.args([mode, "30"]);
        let (_, trace) = run.output();
        let ours = format!("{ours:#05x}/");
        for stream in &trace.streams {
            let rows = stream.metadata["taskscope"]["state_disagreements"].as_object();
            for (name, times) in rows.into_iter().flatten() {
                assert!(!name.starts_with(&ours) || times.as_u64() < Some(10), "{mode}: {name} {times}");
            }
        }
    }
}

/// The kernel's frames for handlers, and the handlers' stack use.
#[test]
fn nothing_beneath_a_small_stack_changes() {
    if !Compiler::Gcc.is_installed() {
        return;
    }
    let flags = ["-fno-openmp", "-pthread", "-Wl,-z,now"];
    let program = compile(Compiler::Gcc, "small_stacks", &flags);
    // No alternate stack, a large one, and one that is too small for the kernel's frame on processors with
    // wide registers.
    for alternate in ["none", "given", "2048", "4096"] {
        for bytes in ["2048", "4096", "1536"] {
            let mut run = Run::program(Compiler::Clang, &program)
                .env("TASKSCOPE_SAMPLE", "1000")
                .env("LD_PRELOAD", tool());
            run.command.args([bytes, alternate, "threads"]);
            let (output, trace) = run.output();
            assert_eq!(silent(&output), "0 0 0\n", "{bytes} {alternate}");
            let with_samples = trace.streams.iter().filter(|stream| stream.samples.len() > 5).count();
            assert_eq!(with_samples, 3, "{bytes} {alternate}");
        }
    }
}
