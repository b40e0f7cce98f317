//! Any interleaving of pushes, pops and switches over any tasks and threads: the items agree with a model
//! that has no notion of showing.

use std::collections::BTreeMap;
use taskscope_context::{Behaviour, Contexts, Item, Lane, Out, Problem, Raw, Showing, Shown, ShownPart};
use taskscope_testkit::dice::Dice;

const TASKS: u64 = 5;
const THREADS: u32 = 3;

/// State of a receiver that gets only the items.
#[derive(Default, Clone, PartialEq, Debug)]
struct Heard {
    states: Vec<u32>,
    bursts: Vec<(u32, u64)>,
    running: bool,
}

struct Listener {
    behaviour: Behaviour,
    threads: BTreeMap<u32, Heard>,
    tasks: BTreeMap<u64, Heard>,
    /// The lanes' state according to the library.
    showing: BTreeMap<Lane, Showing>,
    problems: u32,
}

impl Listener {
    fn new(behaviour: Behaviour) -> Listener {
        let (threads, tasks, showing) = Default::default();
        Listener { behaviour, threads, tasks, showing, problems: 0 }
    }
}

impl Out for Listener {
    fn show(&mut self, item: Item<'_>) {
        let showing = self.showing.entry(item.lane).or_insert_with(|| Showing::new(self.behaviour));
        showing.take(&item.shown);
        let stacks_states = matches!(self.behaviour, Behaviour::StackedStates | Behaviour::Stacked);
        let stacks_bursts = matches!(self.behaviour, Behaviour::StackedBursts | Behaviour::Stacked);
        let heard = match item.lane {
            Lane::Thread(thread) => self.threads.entry(thread).or_default(),
            Lane::Task { task, .. } => self.tasks.entry(task).or_default(),
        };
        match item.shown {
            Shown::StateStart(state) => {
                if !stacks_states {
                    heard.states.clear();
                }
                heard.states.push(state);
            }
            // Last in, first out: the end is that of the innermost.
            Shown::StateEnd(state) => assert_eq!(heard.states.pop(), Some(state), "{item:?}"),
            Shown::BurstStart { key, value } => {
                if !stacks_bursts {
                    heard.bursts.retain(|(open, _)| *open != key);
                }
                heard.bursts.push((key, value));
            }
            Shown::BurstEnd { key, value } => {
                let row = heard.bursts.iter().rposition(|open| *open == (key, value));
                heard.bursts.remove(row.unwrap_or_else(|| panic!("never begun: {item:?}")));
            }
            Shown::Resume { .. } => {
                assert!(!std::mem::replace(&mut heard.running, true), "on two threads: {item:?}");
            }
            Shown::Suspend { last, .. } => assert!(std::mem::take(&mut heard.running) || last, "{item:?}"),
            _ => {}
        }
        let states: Vec<u64> = heard.states.iter().map(|state| u64::from(*state)).collect();
        assert_eq!(showing.of(ShownPart::States), states, "{item:?}");
        let is_burst = |(what, value): (ShownPart, u64)| match what {
            ShownPart::Bursts(key) => Some((key, value)),
            _ => None,
        };
        let bursts: Vec<_> = showing.all().filter_map(is_burst).collect();
        assert_eq!(sorted(bursts), sorted(heard.bursts.clone()), "{item:?}");
    }

    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {
        self.problems += 1;
    }
}

/// The naive model: stacks of tasks and of threads, nothing shown.
type Open = (Vec<u32>, Vec<(u32, u64)>);

#[derive(Default)]
struct Naive {
    /// By task, and by thread beyond [`TASKS`].
    stacks: BTreeMap<u64, Open>,
    frames: BTreeMap<u32, Vec<u64>>,
}

impl Naive {
    fn context(&self, thread: u32) -> u64 {
        let task = self.frames.get(&thread).and_then(|frames| frames.last());
        task.copied().unwrap_or(1000 + u64::from(thread))
    }

    fn is_on_a_thread(&self, task: u64) -> bool {
        self.frames.values().flatten().any(|on| *on == task)
    }
}

/// The expected items of a behaviour for these stacks.
fn visible(behaviour: Behaviour, states: &[u32], bursts: &[(u32, u64)]) -> Open {
    let (mut states, mut bursts) = (states.to_vec(), bursts.to_vec());
    if matches!(behaviour, Behaviour::Plain | Behaviour::StackedBursts) {
        states = states.last().copied().into_iter().collect();
    }
    if matches!(behaviour, Behaviour::Plain | Behaviour::StackedStates) {
        let newest: BTreeMap<u32, u64> = bursts.iter().copied().collect();
        bursts = newest.into_iter().collect();
    }
    bursts.sort();
    (states, bursts)
}

fn sorted(mut bursts: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    bursts.sort();
    bursts
}

/// One step of a correct program.
fn correct_step(dice: &mut Dice, naive: &mut Naive, thread: u32) -> Option<Raw<'static>> {
    let current = naive.context(thread);
    let free: Vec<u64> = (1..=TASKS).filter(|task| !naive.is_on_a_thread(*task)).collect();
    let (states, bursts) = naive.stacks.entry(current).or_default();
    let state = dice.below(4) as u32;
    let (key, value) = (1 + dice.below(3) as u32, 1 + dice.below(3));
    match dice.below(9) {
        0 | 1 => {
            states.push(state);
            Some(Raw::StatePush { state })
        }
        2 => states.pop().map(|state| Raw::StatePop { state }),
        3 | 4 => {
            bursts.push((key, value));
            Some(Raw::BurstOpen { key, value })
        }
        5 => {
            let (key, value) = *bursts.get(dice.below(bursts.len() as u64) as usize)?;
            let row = bursts.iter().rposition(|open| *open == (key, value))?;
            bursts.remove(row);
            Some(Raw::BurstClose { key, value })
        }
        6 => {
            let new = *free.get(dice.below(free.len() as u64) as usize)?;
            naive.frames.entry(thread).or_default().push(new);
            Some(Raw::TaskEnter { task: new })
        }
        7 => naive.frames.entry(thread).or_default().pop().map(|task| Raw::TaskLeave { task }),
        _ => {
            let new = *free.get(dice.below(free.len() as u64) as usize)?;
            let old = naive.frames.entry(thread).or_default().pop()?;
            naive.frames.entry(thread).or_default().push(new);
            Some(Raw::TaskSwitch { old, new })
        }
    }
}

#[test]
fn shown_states_are_the_open_ones() {
    for seed in 0..300 {
        let behaviour = Behaviour::ALL[seed as usize % 4];
        let mut dice = Dice::new(seed);
        let mut contexts = Contexts::new(behaviour);
        (0..THREADS).for_each(|_| {
            contexts.add_thread(0);
        });
        let mut naive = Naive::default();
        let mut out = Listener::new(behaviour);
        let mut crossed = 0;
        for task in 1..=TASKS {
            contexts.event(0, 0, &Raw::TaskCreate { task, kind: 1 }, &mut out);
        }
        for at in 1..400 {
            let thread = dice.below(u64::from(THREADS)) as u32;
            let before = naive.stacks.get(&naive.context(thread)).cloned().unwrap_or_default().1;
            let Some(raw) = correct_step(&mut dice, &mut naive, thread) else { continue };
            if let Raw::BurstClose { key, value } = raw {
                crossed += u32::from(before.iter().rfind(|open| open.0 == key) != Some(&(key, value)));
            }
            contexts.event(thread, at, &raw, &mut out);
            for thread in 0..THREADS {
                let (states, bursts) = naive.stacks.get(&naive.context(thread)).cloned().unwrap_or_default();
                let heard = out.threads.entry(thread).or_default().clone();
                assert_eq!(
                    (heard.states, sorted(heard.bursts)),
                    visible(behaviour, &states, &bursts),
                    "seed {seed}, {behaviour:?}, thread {thread} at {at}, {raw:?}"
                );
            }
            for task in 1..=TASKS {
                let (states, bursts) = naive.stacks.get(&task).cloned().unwrap_or_default();
                let heard = out.tasks.entry(task).or_default().clone();
                let (shown, shown_bursts) = visible(behaviour, &states, &bursts);
                assert_eq!(
                    (heard.states, sorted(heard.bursts)),
                    (shown, shown_bursts),
                    "task {task} at {at}"
                );
                assert_eq!(heard.running, naive.frames.values().any(|on| on.last() == Some(&task)));
            }
        }
        // Closing an older burst of a key is the only problem of a correct program.
        assert_eq!(out.problems, crossed, "seed {seed}");
    }
}

/// Whatever comes, begins and ends pair up on every lane: the listener checks it.
#[test]
fn malformed_sequences_are_reported_and_stay_well_formed() {
    let mut problems = 0;
    for seed in 0..300 {
        let behaviour = Behaviour::ALL[seed as usize % 4];
        let mut dice = Dice::new(seed + 7000);
        let mut contexts = Contexts::new(behaviour);
        (0..THREADS).for_each(|thread| {
            contexts.add_thread(thread % 2);
        });
        let mut out = Listener::new(behaviour);
        for at in 0..300 {
            let thread = dice.below(u64::from(THREADS)) as u32 & 2;
            let (task, state) = (dice.below(4), dice.below(3) as u32);
            let (key, value) = (dice.below(3) as u32, dice.below(3));
            let raw = match dice.below(16) {
                0 => Raw::StatePush { state },
                1 => Raw::StatePop { state },
                2 => Raw::StatesHide,
                3 => Raw::StatesShow,
                4 => Raw::BurstOpen { key, value },
                5 => Raw::BurstClose { key, value },
                6 => Raw::StateAndBurstOpen { state, key, value },
                7 => Raw::StateAndBurstClose { state, key, value },
                8 => Raw::DeferredPoint { task, key, value },
                9 => Raw::TaskCreate { task, kind: 0 },
                10 | 11 => Raw::TaskEnter { task },
                12 => Raw::TaskLeave { task },
                13 => Raw::TaskYield { task },
                14 => Raw::TaskSwitch { old: task, new: dice.below(4) },
                _ => Raw::TaskEnd { task },
            };
            contexts.event(thread, at, &raw, &mut out);
        }
        for thread in 0..THREADS {
            contexts.thread_ends(thread, 300, &mut out);
            let heard = out.threads.entry(thread).or_default();
            assert_eq!((&heard.states, &heard.bursts), (&vec![], &vec![]), "seed {seed}, thread {thread}");
        }
        problems += out.problems;
    }
    assert!(problems > 10_000, "{problems}");
}
