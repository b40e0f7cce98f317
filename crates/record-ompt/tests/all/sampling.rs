//! Samples: their stacks, weights and levels; calls that a signal would interrupt; code loaded later.

use std::path::PathBuf;

use crate::common::trace::Event;
use crate::common::{Compiler, LIBOMP, Run, Trace, compile, tool, tool_under_old_kinds};
use taskscope_event::models::samples::{LEVEL_BYTES, flag, state};
use taskscope_event::models::{dictionary, omp, samples};
use taskscope_symbol::{LoadedModule, Symbolizer};

const OPTIMISED: [&str; 2] = ["-O2", "-fomit-frame-pointer"];
const WITH_FRAME_POINTERS: [&str; 2] = ["-O2", "-fno-omit-frame-pointer"];

fn sampled(flags: &[&str], arguments: &[&str]) -> Option<Run> {
    if !Compiler::Clang.is_installed() {
        return None;
    }
    let program = compile(Compiler::Clang, "sampled", &[flags, &["-lm", "-ldl", "-pthread"]].concat());
    let mut run = Run::program(Compiler::Clang, &program).env("TASKSCOPE_SAMPLE", "1000");
    run.command.args(arguments).env("LD_PRELOAD", tool());
    Some(run)
}

/// Directories of the runtimes to test with: the usual one, and those in `TASKSCOPE_OPENMP_RUNTIMES`.
fn runtimes() -> Vec<Option<PathBuf>> {
    let named = std::env::var_os("TASKSCOPE_OPENMP_RUNTIMES").unwrap_or_default();
    std::iter::once(None).chain(std::env::split_paths(&named).map(Some)).collect()
}

fn all(trace: &Trace) -> impl Iterator<Item = &Event> {
    trace.streams.iter().flat_map(|stream| &stream.samples)
}

/// First and end of a level's frames, its region, its task.
type Level = (usize, usize, u32, u32);

/// A sample's levels and addresses.
fn stack(sample: &Event) -> (Vec<Level>, Vec<u64>) {
    let (levels, addresses) = sample.bytes("stack").split_at(sample.number("levels") as usize * LEVEL_BYTES);
    let short = |bytes: &[u8]| usize::from(u16::from_le_bytes(bytes.try_into().unwrap()));
    let long = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    (
        levels
            .chunks(LEVEL_BYTES)
            .map(|level| (short(&level[..2]), short(&level[2..4]), long(&level[4..8]), long(&level[8..])))
            .collect(),
        addresses.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect(),
    )
}

fn symbols(trace: &Trace) -> Symbolizer {
    let modules = trace.of(dictionary::MODULE).map(|event| LoadedModule {
        since: 0,
        start: event.number("start") as u64,
        end: event.number("end") as u64,
        bias: event.number("bias") as u64,
        build_id: event.text("build_id"),
        path: event.text("path"),
    });
    Symbolizer::new(modules.collect())
}

/// The functions of the user's frames of the innermost level, innermost first.
fn user_functions(symbols: &mut Symbolizer, sample: &Event) -> Vec<String> {
    let (levels, addresses) = stack(sample);
    let Some((first, end, ..)) = levels.first() else { return Vec::new() };
    let at = |index: usize| addresses[index] + u64::from(index == 0);
    (*first..*end).filter_map(|index| symbols.call_place(at(index)).frame.function).collect()
}

/// The samples that fell into the program's work.
fn samples_in_spin<'a>(trace: &'a Trace, symbols: &mut Symbolizer) -> Vec<&'a Event> {
    let in_spin = |sample: &&Event| user_functions(symbols, sample).first().is_some_and(|f| f == "spin");
    let found: Vec<_> = all(trace).filter(in_spin).collect();
    assert!(found.len() > 10, "{} of {}", found.len(), all(trace).count());
    found
}

fn assert_rooted(trace: &Trace, what: &str) {
    let taken = all(trace).count();
    let rooted = all(trace).filter(|s| s.number("flags") as u32 & flag::REACHED_ROOT != 0).count();
    assert!(taken >= 20, "{what}: only {taken} samples");
    // Among few samples one may hit the first instructions of a thread.
    assert!(rooted * 100 >= taken * 99 || taken - rooted <= 1, "{what}: {rooted} of {taken}");
}

#[test]
fn stacks_are_followed_to_their_root() {
    for flags in [OPTIMISED, WITH_FRAME_POINTERS] {
        for mode in ["work", "waits", "tasks"] {
            let Some(run) = sampled(&flags, &[mode, "40"]) else { return };
            let (output, trace) = run.output();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            assert_rooted(&trace, &format!("{mode} {flags:?}"));
        }
    }
}

/// The functions of a sample's levels all together, innermost first.
fn all_functions(symbols: &mut Symbolizer, sample: &Event) -> Vec<String> {
    let (_, addresses) = stack(sample);
    let places = addresses.iter().enumerate().map(|(index, address)| address + u64::from(index == 0));
    let named = places.map(|place| symbols.call_place(place).frame.function);
    named.flatten().take_while(|function| !function.starts_with("__libc_start")).collect()
}

/// The samples of a program in this mode that were taken in or below `function`.
fn unusual_samples(mode: &str, function: &str) -> Option<Vec<Vec<String>>> {
    if !Compiler::Gcc.is_installed() {
        return None;
    }
    let program = compile(Compiler::Gcc, "unusual", &["-O2", "-Wl,--no-as-needed"]);
    let mut run = Run::program(Compiler::Gcc, &program).env("TASKSCOPE_SAMPLE", "1000");
    run.command.arg(mode).env("LD_PRELOAD", format!("{}:{LIBOMP}", tool().display()));
    let trace = run.trace();
    assert_rooted(&trace, mode);
    let mut symbols = symbols(&trace);
    let mut paths: Vec<_> = all(&trace).map(|sample| all_functions(&mut symbols, sample)).collect();
    // Whatever it calls has no calls of its own to follow here.
    for path in &mut paths {
        let at = path.iter().position(|step| step == function);
        path.drain(..at.unwrap_or(path.len()));
    }
    paths.retain(|path| !path.is_empty());
    assert!(paths.len() > 30, "{mode}: {} samples", paths.len());
    Some(paths)
}

/// In gcc's code such functions keep their caller's stack pointer in memory, and push their return address
/// again.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "other machines align their stack otherwise")]
fn functions_that_align_their_stack_are_followed() {
    let Some(paths) = unusual_samples("aligned", "spin") else { return };
    for path in paths {
        assert_eq!(path, ["spin", "aligned", "step", "outer", "main"]);
    }
}

/// The lazy-binding function keeps its stack pointer in a callee-saved register. Here every call is the
/// first.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "other machines find functions otherwise")]
fn code_that_finds_a_function_is_followed() {
    let Some(run) = sampled(&["-O2", "-Wl,-z,lazy"], &["calls", "200"]) else { return };
    let trace = run.env("LD_BIND_NOT", "1").trace();
    assert_rooted(&trace, "lazy");
    let mut linker = trace.of(dictionary::MODULE).filter(|event| event.text("path").contains("/ld-linux"));
    let linker = linker.next().map(|event| event.number("start")..event.number("end")).unwrap();
    let in_linker = all(&trace).filter(|sample| linker.contains(&stack(sample).1[0].into())).count();
    assert!(in_linker > 10, "{in_linker} of {}", all(&trace).count());
}

/// Nor do its threads that read all signals get ours.
#[test]
fn a_program_that_blocks_all_signals_is_sampled() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "masks", &["-O1", "-pthread"]);
    let sampled = || {
        let mut run = Run::program(Compiler::Clang, &program).env("TASKSCOPE_SAMPLE", "500");
        run.command.env("LD_PRELOAD", tool());
        run
    };
    let got = format!("{} 1\n", libc::SIGUSR1);
    let output = sampled().env("TASKSCOPE_MODE", "profile").command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), got);
    let (output, trace) = sampled().output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), got);
    let mut symbols = symbols(&trace);
    samples_in_spin(&trace, &mut symbols);
}

/// On the thread's own stack and on others, in a region.
#[test]
fn the_programs_signal_handlers_are_below_the_interrupted_frames() {
    for mode in ["signals", "on_heap", "further_out"] {
        let Some(paths) = unusual_samples(mode, "on_alarm") else { return };
        for path in paths {
            // It comes at any instruction, including those of callees.
            let at = path.iter().position(|step| step == "interrupted").unwrap_or(0);
            let outwards = [&path[at], &path[at + 1], path.last().unwrap()];
            assert_eq!(outwards, ["interrupted", "in_region", "main"], "{mode}: {path:?}");
        }
    }
}

#[test]
fn a_thread_that_is_cancelled_as_it_is_sampled_unwinds() {
    if !Compiler::Gcc.is_installed() {
        return;
    }
    let program = compile(Compiler::Gcc, "cancelled", &["-O1", "-pthread", "-Wl,--no-as-needed"]);
    let mut run = Run::program(Compiler::Gcc, &program).env("TASKSCOPE_SAMPLE", "1000");
    run.command.env("LD_PRELOAD", format!("{}:{LIBOMP}", tool().display()));
    let (output, _) = run.output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cancelled\n", "{output:?}");
}

/// Without unwind tables a frame's caller is read at the frame pointer's place, which may hold any number.
#[test]
fn numbers_that_are_no_code_are_no_callers() {
    let flags = ["-O2", "-fno-asynchronous-unwind-tables", "-fomit-frame-pointer"];
    let Some(run) = sampled(&flags, &["work", "200"]) else { return };
    let trace = run.trace();
    let modules: Vec<_> =
        trace.of(dictionary::MODULE).map(|event| event.number("start")..event.number("end")).collect();
    let is_code = |address: &u64| modules.iter().any(|module| module.contains(&i128::from(*address)));
    for sample in all(&trace) {
        let (_, addresses) = stack(sample);
        assert!(addresses[1..].iter().all(is_code), "{addresses:x?}");
    }
    assert!(all(&trace).count() > 100);
}

#[test]
fn weights_are_the_time_that_passed() {
    let Some(run) = sampled(&OPTIMISED, &["work", "200"]) else { return };
    let trace = run.trace();
    for stream in trace.streams.iter().filter(|stream| stream.samples.len() > 5) {
        let weights: i128 = stream.samples.iter().map(|sample| sample.number("weight_ns")).sum();
        let (first, last) = (&stream.samples[0], stream.samples.last().unwrap());
        let passed = i128::from(last.at - first.at);
        assert_eq!(weights - first.number("weight_ns"), passed, "each weighs the time since the one before");
        assert_eq!(first.number("flags") as u32 & flag::FIRST, flag::FIRST);
    }
}

/// As those of LLVM up to 16 do.
#[test]
fn workers_idle_between_regions_also_with_one_kind_of_implicit_barrier() {
    let Some(run) = sampled(&OPTIMISED, &["serial_between", "100"]) else { return };
    let trace = run.env("LD_PRELOAD", tool_under_old_kinds()).trace();
    let in_state = |wanted| all(&trace).filter(|sample| sample.number("state") as u32 == wanted).count();
    let (idle, barrier) = (in_state(state::IDLE), in_state(state::BARRIER_WORKSHARE));
    assert!(idle > 20 && barrier == 0, "{idle} idle, {barrier} at barriers of loops");
}

#[test]
fn user_frames_are_distinguished_from_the_runtimes() {
    let Some(run) = sampled(&OPTIMISED, &["work", "150"]) else { return };
    let trace = run.trace();
    let mut symbols = symbols(&trace);
    let mut paths = std::collections::BTreeSet::new();
    for sample in all(&trace).filter(|s| s.number("state") as u32 == state::WORK_PARALLEL) {
        let (levels, _) = stack(sample);
        assert!(levels[0].2 != 0 && levels[0].2 == sample.number("region") as u32, "{levels:?}");
        let functions = user_functions(&mut symbols, sample);
        assert_eq!(functions.last().map(String::as_str), Some("in_region"), "{functions:?}");
        paths.insert(
            functions.into_iter().filter(|f| f != "now" && !f.contains("gettime")).collect::<Vec<_>>(),
        );
    }
    assert!(!paths.is_empty());
    for path in &paths {
        assert!(path.iter().all(|f| ["spin", "with_array", "in_region"].contains(&f.as_str())), "{path:?}");
    }
    // The master's path is on its own stack, the worker's is recorded at the region's end.
    let paths: Vec<_> = trace.of(samples::REGION_PATH).collect();
    assert_eq!(paths.len(), trace.count(omp::REGION_BEGIN));
    let definition =
        trace.of(samples::PATH).find(|path| path.number("path") == paths[0].number("path")).unwrap();
    let names: Vec<_> = definition
        .bytes("addresses")
        .chunks(8)
        .filter_map(|bytes| symbols.call_place(u64::from_le_bytes(bytes.try_into().unwrap())).frame.function)
        .collect();
    assert!(names.starts_with(&["in_region".into(), "main".into()]), "{names:?}");
}

/// clang has the program itself call the body of a region of one thread.
#[test]
fn regions_of_one_thread_run_the_users_functions() {
    for runtime in runtimes() {
        let Some(run) = sampled(&OPTIMISED, &["serialized", "60"]) else { return };
        let trace = run.under(&runtime).trace();
        let mut symbols = symbols(&trace);
        for sample in samples_in_spin(&trace, &mut symbols) {
            let functions = user_functions(&mut symbols, sample);
            // The body, unless it is a part of the function around it.
            let called = functions.strip_suffix(&["serialized".to_string()]).unwrap_or(&functions);
            assert_eq!(called, ["spin", "spin", "spin", "spin", "in_serialized"]);
            assert_ne!(sample.number("region"), 0);
        }
    }
}

/// Without frame pointers the runtime cannot report the begin of bodies that the program itself calls: with
/// or without steps of their own, all functions are present.
#[test]
fn tasks_that_are_not_deferred_run_the_users_functions() {
    for (runtime, flags) in runtimes().iter().flat_map(|r| [(r, OPTIMISED), (r, WITH_FRAME_POINTERS)]) {
        let Some(run) = sampled(&flags, &["undeferred", "60"]) else { return };
        let trace = run.under(runtime).trace();
        let mut symbols = symbols(&trace);
        for sample in samples_in_spin(&trace, &mut symbols) {
            let (levels, addresses) = stack(sample);
            let users = levels.iter().flat_map(|level| level.0..level.1);
            let functions: Vec<_> = users
                .map(|index| symbols.call_place(addresses[index] + u64::from(index == 0)).frame.function)
                // The bodies, which have no name of the program's, are parts of the function that creates the tasks.
                .map(|function| function.unwrap_or_else(|| "undeferred".to_string()))
                .collect();
            let created = ["undeferred", "undeferred", "undeferred", "main"];
            let expected = [&["spin", "spin", "spin", "spin", "in_undeferred"][..], &created].concat();
            assert!(functions.iter().take(expected.len()).eq(&expected), "{functions:?}");
        }
    }
}

/// LLVM's runtime forks another region for the body of `teams`, and mixes up its frames with those of the
/// regions in it; Intel's does not report it.
#[test]
fn code_of_teams_is_the_users_and_in_the_league() {
    for runtime in runtimes() {
        for (mode, teams) in [("teams", 2), ("one_team", 1)] {
            let Some(run) = sampled(&OPTIMISED, &[mode, "100"]) else { return };
            what_teams_run_is_the_users(&run.under(&runtime).trace(), teams, runtime.is_some());
        }
    }
}

fn what_teams_run_is_the_users(trace: &Trace, teams: usize, may_be_intels: bool) {
    let mut symbols = symbols(trace);
    let ends = |functions: &[String], names: &[&str]| {
        functions.len() >= names.len() && functions.iter().rev().zip(names).all(|(is, name)| is == name)
    };
    let (mut all_functions, mut in_team, mut after_team) = (Vec::new(), 0, 0);
    for sample in all(trace).filter(|s| s.number("state") as u32 == state::WORK_PARALLEL) {
        let functions = user_functions(&mut symbols, sample);
        in_team += u32::from(ends(&functions, &["in_team", "spin"]));
        after_team += u32::from(ends(&functions, &["league", "after_team", "spin"]));
        all_functions.push(functions);
    }
    assert!(in_team > 5 && after_team > 5, "{in_team} {after_team} {all_functions:?}");
    // The league is on the program's path, the regions of its teams on theirs; the runtime's own are
    // recognised.
    let mut paths: Vec<Vec<String>> = Vec::new();
    for region_path in trace.of(samples::REGION_PATH) {
        let path = trace.of(samples::PATH).find(|path| path.number("path") == region_path.number("path"));
        let addresses = path.map(|path| path.bytes("addresses")).unwrap_or_default();
        paths.push(
            (addresses.chunks(8))
                .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
                .filter_map(|address| symbols.call_place(address).frame.function)
                .collect(),
        );
    }
    let count = |names: &[&str]| {
        paths
            .iter()
            .filter(|path| path.len() >= names.len() && path.iter().zip(names).all(|(is, name)| is == name))
            .count()
    };
    assert_eq!((count(&["league", "main"]), count(&["in_team", "league"])), (1, teams), "{paths:?}");
    assert_eq!(paths.len(), 1 + teams, "{paths:?}");
    let is_own = |region: &&Event| region.number("flags") as u32 & omp::RUNTIMES_OWN != 0;
    let own = trace.of(omp::REGION_BEGIN).filter(is_own).count();
    assert!(own == teams || own == 0 && may_be_intels, "{own}");
}

/// LLVM's runtime has one task for the body of gcc's `teams` and for a region of one thread in it.
#[test]
fn code_of_teams_after_a_region_is_not_in_it() {
    if !Compiler::Gcc.is_installed() {
        return;
    }
    let program =
        compile(Compiler::Gcc, "sampled", &["-O2", "-Wl,--no-as-needed", "-lm", "-ldl", "-pthread"]);
    let mut run = Run::program(Compiler::Gcc, &program).env("TASKSCOPE_SAMPLE", "1000");
    run.command.args(["teams", "60"]).env("LD_PRELOAD", format!("{}:{LIBOMP}", tool().display()));
    let trace = run.trace();
    let mut symbols = symbols(&trace);
    let is_own = |region: &&Event| region.number("flags") as u32 & omp::RUNTIMES_OWN != 0;
    let own: Vec<i128> =
        trace.of(omp::REGION_BEGIN).filter(is_own).map(|region| region.number("region")).collect();
    let after: Vec<i128> = all(&trace)
        .filter(|sample| user_functions(&mut symbols, sample).contains(&"after_team".to_string()))
        .map(|sample| sample.number("region"))
        .collect();
    assert!(after.len() > 10 && after.iter().all(|region| own.contains(region)), "{after:?} {own:?}");
}

#[test]
fn regions_without_samples_cost_no_path() {
    let Some(mut run) = sampled(&OPTIMISED, &["work", "20"]) else { return };
    run.command.env("TASKSCOPE_SAMPLE", "0.01");
    let trace = run.trace();
    assert_eq!(trace.count(samples::REGION_PATH) + trace.count(samples::PATH), 0);
    assert!(trace.count(omp::REGION_BEGIN) > 0);
}

#[test]
fn tasks_carry_the_path_of_their_creation() {
    let Some(run) = sampled(&OPTIMISED, &["tasks", "30"]) else { return };
    let trace = run.trace();
    let mut symbols = symbols(&trace);
    let task_paths: Vec<_> = trace.of(samples::TASK_PATH).collect();
    assert_eq!(task_paths.len(), 1, "eight tasks at one place: one path");
    let path = trace.of(samples::PATH).find(|p| p.number("path") == task_paths[0].number("path")).unwrap();
    let names: Vec<_> = path
        .bytes("addresses")
        .chunks(8)
        .filter_map(|bytes| symbols.call_place(u64::from_le_bytes(bytes.try_into().unwrap())).frame.function)
        .collect();
    assert_eq!(names.first().map(String::as_str), Some("create_tasks"), "{names:?}");
    assert_eq!(names.last().map(String::as_str), Some("main"), "{names:?}");
    let in_tasks = all(&trace).filter(|sample| sample.number("task") != 0).count();
    assert!(in_tasks > 5, "{in_tasks}");
}

#[test]
fn waits_for_a_lock_belong_to_the_runtime_and_name_it() {
    let Some(run) = sampled(&OPTIMISED, &["waits", "200"]) else { return };
    let trace = run.trace();
    let mut symbols = symbols(&trace);
    let waits: Vec<_> = all(&trace).filter(|s| s.number("state") as u32 == state::LOCK).collect();
    assert!(waits.len() > 5, "{}", waits.len());
    for wait in waits {
        assert_ne!(wait.number("object"), 0);
        assert_ne!(wait.number("flags") as u32 & flag::IN_RUNTIME, 0);
        assert_eq!(user_functions(&mut symbols, wait), ["main"], "the region's body");
    }
}

#[test]
fn programs_without_openmp_are_sampled_and_their_calls_stay_whole() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let library =
        compile(Compiler::Clang, "loaded_later", &["-O2", "-shared", "-fPIC", "-fno-openmp", "-lm"]);
    let Some(run) = sampled(&OPTIMISED, &["foreign", "300", library.to_str().unwrap()]) else { return };
    let (output, trace) = run.output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 calls broken off\n");
    assert_rooted(&trace, "foreign");
    let mut symbols = symbols(&trace);
    let inside = all(&trace).filter(|s| user_functions(&mut symbols, s)[0] == "loaded_later").count();
    assert!(inside > 10, "{inside} samples in code that was loaded later");
    let whole_calls = all(&trace).filter(|s| s.number("flags") as u32 & flag::AFTER_BLOCKING != 0);
    let (mut slept, mut called) = (0, std::collections::BTreeSet::new());
    for sample in whole_calls {
        slept += sample.number("weight_ns");
        called.extend(user_functions(&mut symbols, sample).first().cloned());
    }
    assert!(slept >= 2_000_000_000, "{slept} ns of 2.4 s");
    // Functions that the program calls, not this library's calls around them.
    assert!(called.iter().any(|function| function.contains("poll")), "{called:?}");
    assert!(!called.iter().any(|function| function.contains("sigmask")), "{called:?}");
}

/// Every kilohertz sample comes while a call waits, or on a stack that is not made for it.
#[test]
fn calls_are_neither_broken_off_nor_cut_short_and_small_stacks_suffice() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "calls", &["-O2", "-D_FORTIFY_SOURCE=2", "-pthread"]);
    for mode in ["trace", "profile"] {
        let mut command = Run::program(Compiler::Clang, &program)
            .env("LD_PRELOAD", crate::common::tool())
            .env("TASKSCOPE_MODE", mode)
            .env("TASKSCOPE_SAMPLE", "1000")
            .env("OMP_STACKSIZE", "32k")
            .command;
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && message == "as without samples\n", "{mode}: {output:?}");
    }
}

/// libaio's and liburing's waits, and system calls by number: also if the calling library is visible to no
/// other code.
#[test]
fn waits_for_the_kernels_queues_are_not_broken_off() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let headers = ["/usr/include/liburing.h", "/usr/include/libaio.h"];
    if !headers.iter().all(|header| std::path::Path::new(header).exists()) {
        taskscope_prerequisite::missing("liburing-dev or libaio-dev is not installed");
        return;
    }
    let libraries = ["-luring", "-laio"];
    let with =
        |flags: &[&'static str]| compile(Compiler::Clang, "kernel_queues", &[flags, &libraries].concat());
    let with_libraries = with(&["-DWITHIN", "-Wl,--no-as-needed"]);
    let library = with(&["-DWAITS", "-shared", "-fPIC", "-fno-openmp", "-Wl,--no-as-needed"]);
    let opens = compile(Compiler::Clang, "kernel_queues", &[]);
    let library = library.display().to_string();
    for (program, arguments) in [(&with_libraries, &[][..]), (&opens, &[library.as_str()])] {
        for mode in ["trace", "profile"] {
            let mut command = Run::program(Compiler::Clang, program)
                .env("LD_PRELOAD", tool())
                .env("TASKSCOPE_MODE", mode)
                .env("TASKSCOPE_SAMPLE", "1000")
                .command;
            let output = command.args(arguments).output().unwrap();
            let message = String::from_utf8_lossy(&output.stdout);
            if message.starts_with("no io_uring") {
                eprintln!(
                    "{} here: of liburing nothing is tested",
                    message.lines().next().unwrap_or_default()
                );
            }
            assert!(message.ends_with("as without samples\n"), "{mode} {arguments:?}: {output:?}");
        }
    }
}

/// A sample takes next to nothing of a stack that the program has made itself, and its root is the stack's
/// first function.
#[test]
fn stacks_of_the_programs_making_have_room_and_a_root() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "fibers", &["-O1"]);
    let sampled = || {
        let mut run = Run::program(Compiler::Clang, &program).env("TASKSCOPE_SAMPLE", "1000");
        run.command.env("LD_PRELOAD", tool());
        run
    };
    let output = sampled().env("TASKSCOPE_MODE", "profile").command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fits\n");
    let (output, trace) = sampled().output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "fits\n");
    assert_rooted(&trace, "fibers");
    let mut symbols = symbols(&trace);
    let (mut outside, mut in_task) = (0, 0);
    for sample in samples_in_spin(&trace, &mut symbols) {
        let functions = all_functions(&mut symbols, sample);
        assert_eq!(functions[..2], ["spin", "on_fiber"]);
        let is_in_task = stack(sample).0.iter().any(|(.., task)| *task != 0);
        *(if is_in_task { &mut in_task } else { &mut outside }) += 1;
    }
    // A thread without a CPU has one sample when it gets one.
    assert!(outside > 0 && in_task > 0, "{outside} {in_task}");
}

/// Creation paths are found from a stack without room for a walk, too.
#[test]
fn tasks_are_created_on_small_stacks() {
    if !Compiler::Clang.is_installed() {
        return;
    }
    let program = compile(Compiler::Clang, "creator", &["-O2"]);
    let run = Run::program(Compiler::Clang, &program).env("OMP_STACKSIZE", "24k");
    let trace = run.env("TASKSCOPE_SAMPLE", "100").trace();
    assert_eq!(trace.of(samples::TASK_PATH).count(), 1, "a hundred tasks at one place: one path");
}

#[test]
fn threads_of_the_recorder_are_none_of_the_programs() {
    let Some(mut run) = sampled(&OPTIMISED, &["work", "60"]) else { return };
    run.command.env("OMP_NUM_THREADS", "2");
    assert_eq!(run.trace().streams.len(), 2);
}

#[test]
fn without_a_rate_nothing_is_sampled() {
    let Some(mut run) = sampled(&OPTIMISED, &["work", "20"]) else { return };
    run.command.env_remove("TASKSCOPE_SAMPLE");
    let trace = run.trace();
    assert_eq!(all(&trace).count(), 0);
}
