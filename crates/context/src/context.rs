//! One context: the states, bursts and deferred events of a task, or of a thread outside of tasks.

use crate::problem::Problem;
use crate::raw::Message;
use crate::shown::{Behaviour, Shown};
use std::collections::HashSet;

/// Maximum open sections of one context: more come from a repeated mistake.
pub(crate) const DEEPEST: usize = 1 << 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burst {
    pub key: u32,
    pub value: u64,
}

/// Events that other threads left for a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deferred {
    Point { key: u32, value: u64 },
    Send(Message),
    Receive(Message),
}

/// Hidden states: the ones shown meanwhile, and the changes.
#[derive(Clone, Debug, Default)]
struct Mask {
    /// Nesting depth of hide requests.
    depth: u32,
    /// The states that were open when it began; they stay shown.
    shown: Vec<u32>,
    /// States below this have been open ever since.
    untouched: usize,
    /// A state of before that was reached by leaving those above it: it is a sub-state too.
    base: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    states: Vec<u32>,
    bursts: Vec<Burst>,
    pub deferred: Vec<Deferred>,
    mask: Option<Box<Mask>>,
}

type Show<'a> = &'a mut dyn FnMut(Shown<'static>);

impl Context {
    pub fn open_states(&self) -> usize {
        self.states.len()
    }

    pub fn open_bursts(&self) -> usize {
        self.bursts.len()
    }

    /// Innermost last.
    pub fn states(&self) -> &[u32] {
        &self.states
    }

    /// In the order in which they were opened.
    pub fn bursts(&self) -> &[Burst] {
        &self.bursts
    }

    /// Nesting depth of hide requests.
    pub fn hidden_times(&self) -> u32 {
        self.mask.as_deref().map_or(0, |mask| mask.depth)
    }

    /// The states that were open when they were hidden, or the open ones if they are not, and the number of
    /// those that have been open ever since.
    pub fn states_when_hidden(&self) -> (&[u32], usize) {
        self.mask.as_deref().map_or((&self.states, self.states.len()), |mask| (&mask.shown, mask.untouched))
    }

    pub fn has_state(&self, state: u32) -> bool {
        self.states.contains(&state)
    }

    pub fn has_burst(&self, burst: Burst) -> bool {
        self.bursts.contains(&burst)
    }

    pub fn push(&mut self, state: u32, show: Show) -> Option<Problem> {
        if self.states.len() >= DEEPEST {
            return Some(Problem::TooDeep { limit: DEEPEST as u32 });
        }
        self.states.push(state);
        show(if self.mask.is_some() { Shown::SubstateStart(state) } else { Shown::StateStart(state) });
        None
    }

    /// Closes a state; `None` if it is not open here, else the problem, if any.
    pub fn pop(&mut self, state: u32, behaviour: Behaviour, show: Show) -> Option<Option<Problem>> {
        let row = self.states.iter().rposition(|open| *open == state)?;
        let inner = (self.states.len() - 1 - row) as u32;
        while self.states.len() > row {
            self.pop_top(behaviour, show);
        }
        Some((inner > 0).then_some(Problem::PopNotInnermost { state, inner }))
    }

    fn pop_top(&mut self, behaviour: Behaviour, show: Show) {
        let Some(state) = self.states.pop() else { return };
        let below = self.states.last().copied();
        let stacked = behaviour.stacks_states();
        let Some(mask) = &mut self.mask else {
            return show(match below {
                Some(below) if !stacked => Shown::StateStart(below),
                _ => Shown::StateEnd(state),
            });
        };
        if self.states.len() >= mask.untouched {
            let around = if self.states.len() > mask.untouched { below } else { mask.base };
            return show(match around {
                Some(around) if !stacked => Shown::SubstateStart(around),
                _ => Shown::SubstateEnd(state),
            });
        }
        // A state of before the mask was left: the one below it is in force, as a sub-state.
        mask.untouched = self.states.len();
        let before = std::mem::replace(&mut mask.base, below);
        if let Some(before) = before
            && (stacked || below.is_none())
        {
            show(Shown::SubstateEnd(before));
        }
        if let Some(below) = below {
            show(Shown::SubstateStart(below));
        }
    }

    pub fn hide(&mut self) {
        let untouched = self.states.len();
        let shown = &self.states;
        let mask = self
            .mask
            .get_or_insert_with(|| Box::new(Mask { depth: 0, shown: shown.clone(), untouched, base: None }));
        mask.depth = mask.depth.saturating_add(1);
    }

    pub fn unhide(&mut self, behaviour: Behaviour, show: Show) -> Option<Problem> {
        let Some(mask) = &mut self.mask else { return Some(Problem::ShowWithoutHide) };
        mask.depth -= 1;
        if mask.depth > 0 {
            return None;
        }
        self.end_substates(behaviour, show);
        let mask = self.mask.take()?;
        let (gone, new) = (&mask.shown[mask.untouched..], &self.states[mask.untouched..]);
        if behaviour.stacks_states() {
            gone.iter().rev().for_each(|state| show(Shown::StateEnd(*state)));
            new.iter().for_each(|state| show(Shown::StateStart(*state)));
        } else if !gone.is_empty() || !new.is_empty() {
            match (self.states.last(), mask.shown.last()) {
                (Some(top), _) => show(Shown::StateStart(*top)),
                (None, Some(before)) => show(Shown::StateEnd(*before)),
                (None, None) => {}
            }
        }
        None
    }

    /// The sub-states in force, innermost last.
    fn substates(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let mask = self.mask.as_deref();
        let pushed = mask.map_or(&[][..], |mask| &self.states[mask.untouched..]);
        mask.and_then(|mask| mask.base).into_iter().chain(pushed.iter().copied())
    }

    /// The states that are shown, innermost last.
    fn shown_states(&self) -> &[u32] {
        self.mask.as_deref().map_or(&self.states, |mask| &mask.shown)
    }

    fn end_substates(&self, behaviour: Behaviour, show: Show) {
        let all = if behaviour.stacks_states() { usize::MAX } else { 1 };
        self.substates().rev().take(all).for_each(|state| show(Shown::SubstateEnd(state)));
    }

    pub fn open(&mut self, burst: Burst, show: Show) -> Option<Problem> {
        if self.bursts.len() >= DEEPEST {
            return Some(Problem::TooDeep { limit: DEEPEST as u32 });
        }
        self.bursts.push(burst);
        show(Shown::BurstStart { key: burst.key, value: burst.value });
        None
    }

    /// As [`Context::pop`]. A value of 0 stands for the newest burst of the key.
    pub fn close(&mut self, burst: Burst, behaviour: Behaviour, show: Show) -> Option<Option<Problem>> {
        let Burst { key, value } = burst;
        let newest = self.bursts.iter().rposition(|open| open.key == key)?;
        let row = self.bursts.iter().rposition(|open| *open == burst).unwrap_or(newest);
        let closed = self.bursts.remove(row);
        if behaviour.stacks_bursts() {
            show(Shown::BurstEnd { key, value: closed.value });
        } else if row == newest {
            let below = self.bursts[..row].iter().rfind(|open| open.key == key);
            show(match below {
                Some(below) => Shown::BurstStart { key, value: below.value },
                None => Shown::BurstEnd { key, value: closed.value },
            });
        }
        Some(if row != newest {
            Some(Problem::CloseNotNewest { key, value })
        } else if closed.value != value && value != 0 {
            Some(Problem::CloseOtherValue { key, open: closed.value, closed: value })
        } else {
            None
        })
    }

    /// The bursts that are shown, oldest first.
    fn shown_bursts(&self, behaviour: Behaviour) -> Vec<Burst> {
        if behaviour.stacks_bursts() {
            return self.bursts.clone();
        }
        let mut seen = HashSet::new();
        let mut newest: Vec<Burst> =
            self.bursts.iter().rev().filter(|burst| seen.insert(burst.key)).copied().collect();
        newest.reverse();
        newest
    }

    /// Ends all shown items, as when a thread puts the task down.
    pub fn end_shown(&self, behaviour: Behaviour, show: Show) {
        self.end_substates(behaviour, show);
        let all = if behaviour.stacks_states() { usize::MAX } else { 1 };
        self.shown_states().iter().rev().take(all).for_each(|state| show(Shown::StateEnd(*state)));
        for Burst { key, value } in self.shown_bursts(behaviour).into_iter().rev() {
            show(Shown::BurstEnd { key, value });
        }
    }

    /// Begins everything again, as when a thread takes the task up.
    pub fn begin_shown(&self, behaviour: Behaviour, show: Show) {
        let skip = |count: usize| if behaviour.stacks_states() { 0 } else { count.saturating_sub(1) };
        let states = self.shown_states();
        states[skip(states.len())..].iter().for_each(|state| show(Shown::StateStart(*state)));
        let hidden = self.substates().count();
        self.substates().skip(skip(hidden)).for_each(|state| show(Shown::SubstateStart(state)));
        for Burst { key, value } in self.shown_bursts(behaviour) {
            show(Shown::BurstStart { key, value });
        }
    }
}
