//! A run that is cut in its middle continues as the whole does: contexts that received only the restoring
//! events show the same afterwards as those that received all.

use taskscope_context::{Behaviour, Contexts, Item, Out, Problem, Raw};
use taskscope_testkit::dice::Dice;

const THREADS: u32 = 4;
const TASKS: u64 = 6;

#[derive(Default)]
struct Log(Vec<String>);

impl Out for Log {
    fn show(&mut self, item: Item<'_>) {
        // A task's own time begins with the cut.
        self.0.push(format!("{:?} {} {:?}", item.lane, item.at, item.shown));
    }

    fn problem(&mut self, thread: u32, at: u64, problem: Problem) {
        self.0.push(format!("thread {thread} at {at}: {problem:?}"));
    }
}

struct Nothing;

impl Out for Nothing {
    fn show(&mut self, _item: Item<'_>) {}
}

fn any_step(dice: &mut Dice) -> Raw<'static> {
    let (task, state) = (1 + dice.below(TASKS), dice.below(3) as u32);
    let (key, value) = (1 + dice.below(2) as u32, dice.below(2));
    match dice.below(16) {
        0..=2 => Raw::StatePush { state },
        3 | 4 => Raw::StatePop { state },
        5 => Raw::StatesHide,
        6 => Raw::StatesShow,
        7 | 8 => Raw::BurstOpen { key, value },
        9 => Raw::BurstClose { key, value },
        10 | 11 => Raw::TaskEnter { task },
        12 => Raw::TaskLeave { task },
        13 => Raw::TaskYield { task },
        14 => Raw::DeferredPoint { task, key, value },
        _ => Raw::TaskReady { task },
    }
}

fn fresh(behaviour: Behaviour) -> Contexts {
    let mut contexts = Contexts::new(behaviour);
    (0..THREADS).for_each(|_| {
        contexts.add_thread(7);
    });
    contexts
}

/// Steps that mean the same to both: a task that runs is not taken up once more, which would be a mistake.
fn is_correct(contexts: &Contexts, thread: u32, raw: &Raw<'_>) -> bool {
    match raw {
        Raw::TaskEnter { task } => (0..THREADS).all(|other| !contexts.tasks_on(other).any(|on| on == *task)),
        Raw::TaskLeave { task } | Raw::TaskYield { task } => contexts.task_on(thread) == *task,
        Raw::TaskReady { task } => (0..THREADS).all(|other| !contexts.tasks_on(other).any(|on| on == *task)),
        _ => true,
    }
}

#[test]
fn a_restored_context_continues_as_the_whole() {
    let mut shown = 0;
    for seed in 0..400 {
        let behaviour = Behaviour::ALL[seed as usize % Behaviour::ALL.len()];
        let mut dice = Dice::new(seed);
        let mut whole = fresh(behaviour);
        for task in 1..=TASKS {
            whole.event(0, 0, &Raw::TaskCreate { task, kind: task as u32 }, &mut Nothing);
        }
        let mut steps =
            |contexts: &mut Contexts, count: u64, from: u64, log: &mut dyn FnMut(u32, u64, Raw<'static>)| {
                for at in from..from + count {
                    let thread = dice.below(u64::from(THREADS)) as u32;
                    let raw = any_step(&mut dice);
                    if is_correct(contexts, thread, &raw) {
                        contexts.event(thread, at, &raw, &mut Nothing);
                        log(thread, at, raw);
                    }
                }
            };
        steps(&mut whole, 150, 1, &mut |_, _, _| {});

        let mut part = fresh(behaviour);
        let mut wrong = Log::default();
        let mut change = |thread: u32, events: Vec<Raw<'static>>| {
            for raw in events {
                let (code, _, payload) = raw.encode();
                let raw = Raw::decode(code, &payload).unwrap().unwrap();
                part.event(thread, 1000, &raw, &mut wrong);
            }
        };
        change(0, whole.created(7));
        let worker = (0..THREADS).find(|thread| whole.runs_tasks(*thread));
        if let Some(worker) = worker {
            change(worker, whole.put_aside(7, |_| true));
        }
        (0..THREADS).for_each(|thread| change(thread, whole.taken_up(thread)));
        assert!(!wrong.0.iter().any(|line| line.contains(" at ")), "seed {seed}: {:?}", wrong.0);

        // The same steps for both, as far as they are valid; the whole one decides.
        let mut later = Vec::new();
        let mut copy = fresh(behaviour);
        copy_into(&whole, &mut copy);
        steps(&mut copy, 150, 2000, &mut |thread, at, raw| later.push((thread, at, raw)));
        let (mut whole_log, mut part_log) = (Log::default(), Log::default());
        for (thread, at, raw) in &later {
            whole.event(*thread, *at, raw, &mut whole_log);
            part.event(*thread, *at, raw, &mut part_log);
        }
        for thread in 0..THREADS {
            whole.thread_ends(thread, 9000, &mut whole_log);
            part.thread_ends(thread, 9000, &mut part_log);
        }
        assert_eq!(part_log.0, whole_log.0, "seed {seed}, {behaviour:?}");
        shown += whole_log.0.len();
    }
    assert!(shown > 10_000);
}

/// The contexts of [`a_restored_context_continues_as_the_whole`], only to choose steps by.
fn copy_into(whole: &Contexts, copy: &mut Contexts) {
    for raw in whole.created(7).into_iter().chain(whole.put_aside(7, |_| true)) {
        copy.event(0, 1000, &raw, &mut Nothing);
    }
    for thread in 0..THREADS {
        for raw in whole.taken_up(thread) {
            copy.event(thread, 1000, &raw, &mut Nothing);
        }
    }
}

#[test]
fn closing_leaves_nothing_open() {
    for seed in 0..200 {
        let mut dice = Dice::new(1000 + seed);
        let mut contexts = fresh(Behaviour::Stacked);
        for task in 1..=TASKS {
            contexts.event(0, 0, &Raw::TaskCreate { task, kind: 1 }, &mut Nothing);
        }
        for at in 1..200 {
            let thread = dice.below(u64::from(THREADS)) as u32;
            let raw = any_step(&mut dice);
            if is_correct(&contexts, thread, &raw) {
                contexts.event(thread, at, &raw, &mut Nothing);
            }
        }
        let mut log = Log::default();
        for thread in 0..THREADS {
            for raw in contexts.closing(thread) {
                contexts.event(thread, 300, &raw, &mut log);
            }
            contexts.thread_ends(thread, 300, &mut log);
        }
        let wrong: Vec<&String> = log.0.iter().filter(|line| line.starts_with("thread ")).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
    }
}
