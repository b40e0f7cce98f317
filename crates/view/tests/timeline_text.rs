//! The timeline in the terminal.

use taskscope_event::models::device::kind;
use taskscope_execution::devices::{DeviceOperation, Devices, Queue};
use taskscope_execution::lod::Timeline;
use taskscope_execution::{Change, Execution, ExecutionBuilder, Observer, OsSource, OsTimes, Section, State};
use taskscope_view::timeline_report;

/// Two threads: one works for the first half and waits for the second, the other the other way round.
fn halves() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let (one, two) = (builder.add_thread(process, 7), builder.add_thread(process, 8));
    for (at, first, second) in [(1000, State::Task, State::Barrier), (2000, State::Barrier, State::Task)] {
        for (thread, state) in [(one, first), (two, second)] {
            builder.event(thread, at);
            builder.change(thread, at, Change::ThreadWorks);
            builder.change(thread, at, Change::Becomes(Section::of(state)));
        }
    }
    for thread in [one, two] {
        builder.event(thread, 3000);
        builder.change(thread, 3000, Change::ThreadEnds);
    }
    builder.finish()
}

fn timeline_text(execution: &Execution, devices: &Devices, timeline: &Timeline, width: usize) -> String {
    timeline_report(String::new(), execution, devices, timeline, width).text(width)
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn each_character_is_the_main_state_of_its_interval() {
    let execution = halves();
    let text = plain(&timeline_text(&execution, &Devices::default(), &Timeline::build(&execution), 48));
    let (full, light) = ("█".repeat(20), "░".repeat(20));
    let expected = format!(
        "     7  {full}{light}\n     8  {light}{full}\n        0{}2.00 µs\n        █ useful  ░ waits for others\n",
        " ".repeat(32)
    );
    assert_eq!(text, expected);
}

/// A thread runs until 2000, has no CPU until 3000 and is blocked until 5000; of another one the kernel has nothing.
#[test]
fn samples_alone_show_what_the_kernel_did() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let threads = [7, 8].map(|tid| builder.add_thread(process, tid));
    for thread in threads {
        builder.event(thread, 1000);
        builder.change(thread, 1000, Change::Becomes(Section::of(State::Unknown)));
        builder.event(thread, 5000);
        builder.change(thread, 5000, Change::ThreadEnds);
    }
    let mut execution = builder.finish();
    let times = OsTimes { runnable: vec![(2000, 3000)], blocked: vec![(3000, 5000)], ..OsTimes::default() };
    execution.add_os_times(threads[0], OsSource::Switches, times);
    let text = plain(&timeline_text(&execution, &Devices::default(), &Timeline::build(&execution), 48));
    let (ran, lacked, slept) = ("█".repeat(10), "×".repeat(10), "○".repeat(20));
    let unknown = "?".repeat(40);
    let expected = format!(
        "     7  {ran}{lacked}{slept}\n     8  {unknown}\n        0{}4.00 µs\n        █ running  × no CPU  ○ blocked\n        ? not known\n",
        " ".repeat(32)
    );
    assert_eq!(text, expected);
}

#[test]
fn no_line_is_longer_than_the_terminal_and_none_has_no_thread() {
    let shape = taskscope_testkit::synthetic::Shape {
        threads: 200,
        team: 50,
        processes_of_node: 2,
        events: 40_000,
        seed: 2,
    };
    let execution = taskscope_testkit::synthetic::execution(shape);
    let timeline = Timeline::build(&execution);
    for width in [40, 80, 200] {
        let text = plain(&timeline_text(&execution, &Devices::default(), &timeline, width));
        let longest =
            text.lines().filter(|l| !l.contains("evenly chosen")).map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} > {width}\n{text}");
        assert!(text.contains("50 of 200 threads") || text.contains(" of 200 threads"), "{text}");
    }
    let nothing = Execution::default();
    assert!(
        timeline_text(&nothing, &Devices::default(), &Timeline::build(&nothing), 80)
            .contains("nothing happened")
    );
}

#[test]
fn colours_end_before_characters_that_have_none() {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let thread = builder.add_thread(process, 7);
    builder.event(thread, 1000);
    builder.change(thread, 1000, Change::ThreadWorks);
    builder.change(thread, 1000, Change::Becomes(Section::of(State::Task)));
    builder.change(thread, 2000, Change::Becomes(Section::of(State::OutOfCpu)));
    builder.event(thread, 3000);
    builder.change(thread, 3000, Change::ThreadEnds);
    let execution = builder.finish();
    let text = timeline_text(&execution, &Devices::default(), &Timeline::build(&execution), 48);
    assert!(text.contains("█\u{1b}[0m×"), "{text:?}");
}

#[test]
fn device_queues_have_lines_of_their_own_with_and_without_threads() {
    let operation = |start, end, kind| DeviceOperation { start, end, kind, ..DeviceOperation::default() };
    let queue = |operations| Queue { name: "q0".into(), operations, ..Queue::default() };
    let (kernel, copy) = (kind::KERNEL, kind::COPY);
    let half =
        vec![operation(1000, 2000, kernel), operation(2000, 2500, copy), operation(2999, 3000, kernel)];
    let devices = Devices { queues: vec![queue(half)], ..Devices::default() };
    let nothing = Execution::default();
    let text = plain(&timeline_text(&nothing, &devices, &Timeline::build(&nothing), 48));
    let line = format!("    q0  {}{}{}▪\n", "■".repeat(20), "□".repeat(10), "·".repeat(9));
    assert!(text.starts_with(&line), "{text}");
    assert!(text.contains("■ queue computes") && text.contains("□ queue copies"), "{text}");
    let text = plain(&timeline_text(&halves(), &devices, &Timeline::build(&halves()), 48));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].contains('█') && lines[1].contains('░') && lines[2] == line.trim_end_matches('\n'),
        "{text}"
    );
}
