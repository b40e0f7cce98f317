//! Programs that instrument themselves in C and C++: the trace's content, and its view.

use std::path::Path;
use std::process::Command;

use taskscope_context::{Behaviour, Contexts, Item, Lane, Out, Problem, Raw, Shown};
use taskscope_event::models::instrument as i;
use taskscope_trace::{OpenOptions, Trace};

use crate::{CRATE, Programs};
use taskscope_prerequisite::has;

/// A compiled program; `None` without the compiler.
fn build(compiler: &str, flags: &[&str], source: &str) -> Option<Programs> {
    has(compiler).then(|| {
        let programs = Programs::new();
        programs.compile(compiler, flags, source, "program");
        programs
    })
}

/// Runs the program of [`build`]; returns its stdout.
fn run(programs: &Programs, environment: &[(&str, &Path)]) -> String {
    let mut command = Command::new(programs.path("program"));
    let output = programs.output(command.envs(environment.iter().copied()));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn record(compiler: &str, source: &str) -> Option<Programs> {
    let programs = build(compiler, &[], source)?;
    run(&programs, &[("TASKSCOPE_TRACE_DIR", &programs.path("trace"))]);
    Some(programs)
}

#[derive(Default)]
struct Heard {
    /// For each task: threads that resumed it, and its own time, which must not decrease.
    tasks: std::collections::BTreeMap<u64, (Vec<u32>, u64)>,
    shown: Vec<String>,
    problems: Vec<&'static str>,
}

impl Out for Heard {
    fn show(&mut self, item: Item<'_>) {
        let Lane::Task { task, .. } = item.lane else { return };
        let (threads, own_ns) = self.tasks.entry(task).or_default();
        assert!(item.own_ns >= *own_ns, "the time of task {task} goes back");
        *own_ns = item.own_ns;
        if let Shown::Resume { thread, .. } = item.shown {
            threads.push(thread);
        }
        self.shown.push(format!("{task} {:?}", item.shown));
    }

    fn problem(&mut self, _thread: u32, _at: u64, problem: Problem) {
        self.problems.push(problem.name());
    }
}

fn play(root: &Path) -> (Heard, Vec<String>) {
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let mut contexts = Contexts::new(Behaviour::Stacked);
    let mut heard = Heard::default();
    let mut sentences = Vec::new();
    trace.streams().iter().for_each(|_| drop(contexts.add_thread(0).to_string()));
    for merged in trace.merge().filter(|merged| merged.event.code.model() == i::LETTER) {
        let event = merged.event;
        let spec = taskscope_event::models::find(event.code).unwrap();
        assert_eq!(spec.check_payload(event.payload, event.is_jumbo), Ok(()), "{}", spec.name);
        sentences.push(spec.sentence(event.payload).to_string());
        if let Some(raw) = Raw::decode(event.code, event.payload).unwrap() {
            contexts.event(merged.stream as u32, event.clock_ns as u64, &raw, &mut heard);
        }
    }
    (heard, sentences)
}

#[test]
fn every_function_emits_its_event() {
    for compiler in ["g++", "clang++-19"] {
        let Some(programs) = record(compiler, "tests/programs/contexts.cpp") else { continue };
        let (heard, sentences) = play(&programs.path("trace"));
        let all = sentences.join("\n");
        assert_eq!(heard.problems, ["burst-close-without-open"], "{all}");
        let second_lines: Vec<&str> = heard.shown.iter().filter_map(|line| line.strip_prefix("2 ")).collect();
        assert_eq!(second_lines.len(), 1 + 1 + 3 + 1 + 1, "{second_lines:?}");
        assert!(second_lines[2].starts_with("Point { key: 1, value: 9 }"), "{second_lines:?}");
        let count = |of: &str| sentences.iter().filter(|sentence| sentence.contains(of)).count();
        assert_eq!(count("point of key 0"), 0, "the key is off");
        assert_eq!(count("enters state 32"), 3, "{all}");
        assert_eq!(count("and opens a burst of key 1, value 1"), 1);
        assert_eq!(count("marks a point of the pairs"), 2, "of one pair, too: {all}");
        assert_eq!(count("leaves state 32"), 3, "whichever way a scope is left");
        assert_eq!(count("names value 1 of key 1 \"large\""), 1);
        assert_eq!(count("(problem 1)") + count("(problem 2)"), 2, "{all}");
        assert_eq!(count("key \"nobody's\", used at "), 1);
        assert_eq!(count("contexts.cpp:52"), 1, "where the program asks: {all}");
        assert_eq!(heard.tasks[&1].0.len(), 3);
    }
}

/// A program may be compiled as strictly as its authors like.
#[test]
fn the_header_gives_no_warning_in_any_standard() {
    let languages = [("c", ["-std=c99", "-std=gnu11"]), ("c++", ["-std=c++11", "-std=c++20"])];
    for (compiler, (language, standards)) in
        ["gcc", "clang-19"].into_iter().flat_map(|compiler| languages.map(|language| (compiler, language)))
    {
        for standard in standards {
            let output = Command::new(compiler)
                .args(["-fsyntax-only", "-x", language, standard, "-Wall", "-Wextra", "-pedantic", "-Werror"])
                .arg(format!("{CRATE}/tests/programs/quiet.c"))
                .arg(format!("-I{CRATE}/include"))
                .output();
            let Ok(output) = output else {
                taskscope_prerequisite::missing(format_args!("{compiler} is not installed"));
                break;
            };
            let talk = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && talk.is_empty(), "{compiler} {standard}: {talk}");
        }
    }
}

#[test]
fn fibers_keep_their_open_states() {
    let Some(programs) = record("gcc", "../../examples/instrument/fibers.c") else { return };
    let (heard, _) = play(&programs.path("trace"));
    assert_eq!(heard.problems, [""; 0]);
    assert_eq!(heard.tasks.len(), 12);
    for (task, (threads, own_ns)) in &heard.tasks {
        assert_eq!(threads.len(), 7, "task {task}: six turns, and the end");
        assert!(*own_ns > 0);
    }
    let starts = heard.shown.iter().filter(|line| line.contains("BurstStart")).count();
    assert_eq!(starts, 12 * 6 * 2, "a task's own sequence begins nothing again");
}

/// Output of the example's sink for one round: all bursts of the task begin again with it.
const ROUND: &str = "\
message 1 of WD_DOMAIN comes
burst block-size = 1 begins
state CACHE begins
burst block-size = 2 begins
message 1 of WD_DOMAIN goes
state CACHE ends
burst block-size = 2 ends
burst block-size = 1 ends
message 2 of WD_DOMAIN comes
2 pairs, the last 8
message 2 of WD_DOMAIN goes
message 1 of WD_DOMAIN comes
state CACHE begins
burst block-size = 1 begins
burst block-size = 2 begins
burst block-size = 2 ends
state CACHE ends
burst block-size = 1 ends
message 1 of WD_DOMAIN goes
";

#[test]
fn a_sink_in_c_receives_enabled_events_with_and_without_a_trace() {
    // An executable at a fixed place takes the library's data over, as older linkers' defaults do.
    for flags in [&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"]] {
        let Some(programs) = build("gcc", flags, "../../examples/instrument/own_sink.c") else {
            return;
        };
        let heard = run(&programs, &[]);
        let ways = "message 1 of WD_DOMAIN goes\nmessage 2 of WD_DOMAIN goes\n";
        let without = |words: [&str; 2]| -> String {
            let lines = ROUND.lines().filter(|line| !words.iter().any(|word| line.contains(word)));
            lines.map(|line| format!("{line}\n")).collect()
        };
        let (no_bursts, no_states) = (without(["block-size", "pairs"]), without(["state ", "state "]));
        let all = format!("{ways}{ROUND}{no_bursts}{no_states}");
        assert_eq!(heard, format!("{all}{} in all\n", all.lines().count()));
        assert_eq!(run(&programs, &[("TASKSCOPE_TRACE_DIR", &programs.path("trace"))]), heard);
        assert_eq!(play(&programs.path("trace")).0.problems, [""; 0]);
        let live = run(&programs, &[("TASKSCOPE_SINKS", "text=/dev/stdout".as_ref())]);
        assert!(live.contains("resumes task") || live.contains("burst block-size=1 {"), "{live}");
    }
}
