//! The timeline in the terminal.

use taskscope_execution::lod::Timeline;
use taskscope_execution::{Change, Execution, ExecutionBuilder, Observer, Section, State};
use taskscope_view::timeline_text;

/// Two threads: one works for the first half and waits for the second, the other the other way round.
fn halves() -> Execution {
    let mut builder = ExecutionBuilder::new();
    let process = builder.add_process("node1.7", 7);
    let (one, two) = (builder.add_thread(process, 7), builder.add_thread(process, 8));
    for (at, first, second) in [(1000, State::Task, State::Barrier), (2000, State::Barrier, State::Task)] {
        for (thread, state) in [(one, first), (two, second)] {
            builder.event(thread, at);
            builder.change(thread, at, Change::ThreadWorks);
            builder.change(thread, at, Change::Enter(Section::of(state)));
        }
    }
    for thread in [one, two] {
        builder.event(thread, 3000);
        builder.change(thread, 3000, Change::ThreadEnds);
    }
    builder.finish()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn each_character_is_what_its_piece_of_time_was_mostly() {
    let execution = halves();
    let text = plain(&timeline_text(&execution, &Timeline::build(&execution), 48));
    let (full, light) = ("█".repeat(20), "░".repeat(20));
    let expected = format!(
        "     7  {full}{light}\n     8  {light}{full}\n        0{}2.00 µs\n        █ useful  ░ waits for others\n",
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
        let text = plain(&timeline_text(&execution, &timeline, width));
        let longest =
            text.lines().filter(|l| !l.contains("evenly chosen")).map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} > {width}\n{text}");
        assert!(text.contains("50 of 200 threads") || text.contains(" of 200 threads"), "{text}");
    }
    let nothing = Execution::default();
    assert!(timeline_text(&nothing, &Timeline::build(&nothing), 80).contains("nothing happened"));
}
