//! One written scenario in every behaviour: the items of each thread and each task, word for word.
//!
//! Task 1 nests states, opens two bursts of one key, and hides its states; task 2 takes its place; task 1
//! resumes on the other thread, undoes its changes there, and returns.

use taskscope_context::{Behaviour, Contexts, Item, Lane, Message, Out, Problem, Raw, Shown};

const RUNNING: u32 = 7;
const CACHE: u32 = 12;
const SCHEDULING: u32 = 9;
const SIZE: u32 = 5;
const OTHER: u32 = 6;

#[derive(Default)]
struct Text {
    lines: Vec<(Lane, String)>,
    problems: Vec<Problem>,
}

impl Out for Text {
    fn show(&mut self, item: Item<'_>) {
        let message = |m: Message| format!("{}:{}", m.domain, m.id);
        let words = match item.shown {
            Shown::StateStart(state) => format!("state {state} starts"),
            Shown::StateEnd(state) => format!("state {state} ends"),
            Shown::SubstateStart(state) => format!("sub-state {state} starts"),
            Shown::SubstateEnd(state) => format!("sub-state {state} ends"),
            Shown::BurstStart { key, value } => format!("burst {key}={value} starts"),
            Shown::BurstEnd { key, value } => format!("burst {key}={value} ends"),
            Shown::Point { key, value } => format!("point {key}={value}"),
            Shown::Composite(pairs) => format!("points {:?}", pairs.iter().collect::<Vec<_>>()),
            Shown::Send(m) => format!("sends {}", message(m)),
            Shown::Receive(m) => format!("receives {}", message(m)),
            Shown::Created { .. } => "created".to_owned(),
            Shown::Ready { .. } => "ready".to_owned(),
            Shown::Resume { thread, .. } => format!("on thread {thread}"),
            Shown::Suspend { last: false, .. } => "off".to_owned(),
            Shown::Suspend { last: true, .. } => "over".to_owned(),
        };
        let time = match item.lane {
            Lane::Thread(_) => item.at.to_string(),
            Lane::Task { .. } => format!("{}/{}", item.at, item.own_ns),
        };
        self.lines.push((item.lane, format!("{time} {words}")));
    }

    fn problem(&mut self, _thread: u32, _at: u64, problem: Problem) {
        self.problems.push(problem);
    }
}

fn scenario() -> Vec<(u32, u64, Raw<'static>)> {
    vec![
        (0, 1, Raw::TaskCreate { task: 1, kind: 1 }),
        (0, 2, Raw::TaskCreate { task: 2, kind: 1 }),
        (0, 3, Raw::StatePush { state: SCHEDULING }),
        (0, 10, Raw::TaskEnter { task: 1 }),
        (0, 11, Raw::StatePush { state: RUNNING }),
        (0, 12, Raw::StateAndBurstOpen { state: CACHE, key: SIZE, value: 100 }),
        (0, 13, Raw::BurstOpen { key: SIZE, value: 200 }),
        (0, 14, Raw::StatesHide),
        (0, 15, Raw::StatePush { state: SCHEDULING }),
        (0, 20, Raw::TaskSwitch { old: 1, new: 2 }),
        (0, 21, Raw::StatePush { state: RUNNING }),
        (0, 22, Raw::BurstOpen { key: OTHER, value: 1 }),
        (1, 30, Raw::TaskEnter { task: 1 }),
        (1, 31, Raw::StatePop { state: SCHEDULING }),
        (1, 32, Raw::BurstClose { key: SIZE, value: 200 }),
        (1, 33, Raw::StatePop { state: CACHE }),
        (1, 34, Raw::StatesShow),
        (1, 40, Raw::TaskLeave { task: 1 }),
        (0, 41, Raw::DeferredPoint { task: 1, key: OTHER, value: 8 }),
        (0, 42, Raw::DeferredPoint { task: 1, key: OTHER, value: 9 }),
        (0, 50, Raw::TaskSwitch { old: 2, new: 1 }),
        (0, 51, Raw::BurstClose { key: SIZE, value: 100 }),
        (0, 52, Raw::StatePop { state: RUNNING }),
        (0, 60, Raw::TaskEnd { task: 1 }),
    ]
}

fn shown(behaviour: Behaviour, lane: Lane) -> Vec<String> {
    let mut contexts = Contexts::new(behaviour);
    contexts.add_thread(0);
    contexts.add_thread(0);
    let mut text = Text::default();
    for (thread, at, raw) in scenario() {
        contexts.event(thread, at, &raw, &mut text);
    }
    assert_eq!(text.problems, []);
    text.lines.into_iter().filter(|(of, _)| *of == lane).map(|(_, line)| line).collect()
}

/// `UPDATE_GOLDEN=1 cargo test -p taskscope-context` rewrites the files; then review the difference.
#[test]
fn every_behaviour_matches_its_golden_file() {
    let lanes = [
        ("thread 0", Lane::Thread(0)),
        ("thread 1", Lane::Thread(1)),
        ("task 1", Lane::Task { process: 0, task: 1 }),
        ("task 2", Lane::Task { process: 0, task: 2 }),
    ];
    for behaviour in Behaviour::ALL {
        let mut text = format!("# {}: time (on tasks: time/own time) and step\n", behaviour.name());
        for (name, lane) in lanes {
            text += &format!("\n{name}\n{}\n", shown(behaviour, lane).join("\n"));
        }
        let path = format!("{}/tests/golden/{}.txt", env!("CARGO_MANIFEST_DIR"), behaviour.name());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{path}");
    }
}
