//! The visible state of a lane, updated item by item.

use crate::shown::{Behaviour, Shown};

/// A part of a lane that is shown separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ShownPart {
    /// Its states.
    States,
    /// Changes while states were hidden.
    Substates,
    /// The bursts of a key.
    Bursts(u32),
}

/// A number that a lane stops or starts showing, or both: states, or values of bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The changed part.
    pub what: ShownPart,
    /// Shown until now.
    pub ended: Option<u64>,
    /// The number shown from now on.
    pub began: Option<u64>,
}

/// The visible state of a lane: a stack per part, at most one deep if its [`Behaviour`] does not stack.
#[derive(Clone, Debug)]
pub struct Showing {
    behaviour: Behaviour,
    stacks: Vec<(ShownPart, Vec<u64>)>,
}

impl Showing {
    /// An empty lane, for contexts that are played with this behaviour.
    pub const fn new(behaviour: Behaviour) -> Showing {
        Showing { behaviour, stacks: Vec::new() }
    }

    /// The stack of this part, the outermost first.
    pub fn of(&self, what: ShownPart) -> &[u64] {
        self.stacks.iter().find(|(of, _)| *of == what).map_or(&[], |(_, stack)| stack)
    }

    /// Everything that is shown.
    pub fn all(&self) -> impl Iterator<Item = (ShownPart, u64)> + '_ {
        self.stacks.iter().flat_map(|(what, stack)| stack.iter().map(|number| (*what, *number)))
    }

    /// Takes the lane's next step; `None` for a point in time.
    pub fn take(&mut self, shown: &Shown<'_>) -> Option<Turn> {
        match *shown {
            Shown::StateStart(state) => Some(self.begin(ShownPart::States, u64::from(state))),
            Shown::SubstateStart(state) => Some(self.begin(ShownPart::Substates, u64::from(state))),
            Shown::BurstStart { key, value } => Some(self.begin(ShownPart::Bursts(key), value)),
            Shown::StateEnd(state) => self.end(ShownPart::States, u64::from(state)),
            Shown::SubstateEnd(state) => self.end(ShownPart::Substates, u64::from(state)),
            Shown::BurstEnd { key, value } => self.end(ShownPart::Bursts(key), value),
            _ => None,
        }
    }

    fn begin(&mut self, what: ShownPart, number: u64) -> Turn {
        let stacked = match what {
            ShownPart::States | ShownPart::Substates => self.behaviour.stacks_states(),
            ShownPart::Bursts(_) => self.behaviour.stacks_bursts(),
        };
        let row = self.stacks.iter().position(|(of, _)| *of == what).unwrap_or_else(|| {
            self.stacks.push((what, Vec::new()));
            self.stacks.len() - 1
        });
        let stack = &mut self.stacks[row].1;
        // Without a stack, a begin also ends the previous value.
        let ended = if stacked { None } else { stack.pop() };
        stack.push(number);
        Turn { what, ended, began: Some(number) }
    }

    fn end(&mut self, what: ShownPart, number: u64) -> Option<Turn> {
        let row = self.stacks.iter().position(|(of, _)| *of == what)?;
        let stack = &mut self.stacks[row].1;
        let ended = stack.remove(stack.iter().rposition(|open| *open == number)?);
        if stack.is_empty() {
            self.stacks.swap_remove(row);
        }
        Some(Turn { what, ended: Some(ended), began: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pop_resumes_in_a_stack_and_restarts_without_one() {
        let pushed = [Shown::StateStart(7), Shown::StateStart(12)];
        let mut stacked = Showing::new(Behaviour::StackedStates);
        for step in &pushed {
            stacked.take(step);
        }
        assert_eq!(stacked.of(ShownPart::States), [7, 12]);
        let turn = stacked.take(&Shown::StateEnd(12));
        assert_eq!(turn, Some(Turn { what: ShownPart::States, ended: Some(12), began: None }));
        assert_eq!(stacked.of(ShownPart::States), [7]);
        let mut plain = Showing::new(Behaviour::StackedBursts);
        for step in &pushed {
            plain.take(step);
        }
        assert_eq!(plain.of(ShownPart::States), [12]);
        let turn = plain.take(&Shown::StateStart(7));
        assert_eq!(turn, Some(Turn { what: ShownPart::States, ended: Some(12), began: Some(7) }));
        assert_eq!(plain.take(&Shown::StateEnd(12)), None, "it is not shown");
        plain.take(&Shown::StateEnd(7));
        assert_eq!(plain.all().count(), 0);
    }

    #[test]
    fn bursts_of_different_keys_have_nothing_to_do_with_each_other() {
        let mut plain = Showing::new(Behaviour::Plain);
        for (key, value) in [(1, 10), (2, 20), (1, 11)] {
            plain.take(&Shown::BurstStart { key, value });
        }
        assert_eq!((plain.of(ShownPart::Bursts(1)), plain.of(ShownPart::Bursts(2))), (&[11][..], &[20][..]));
        assert_eq!(plain.take(&Shown::Point { key: 1, value: 3 }), None);
        assert_eq!(plain.take(&Shown::BurstEnd { key: 3, value: 1 }), None);
        let mut stacked = Showing::new(Behaviour::StackedBursts);
        for value in [10, 11, 10] {
            stacked.take(&Shown::BurstStart { key: 1, value });
        }
        stacked.take(&Shown::BurstEnd { key: 1, value: 10 });
        assert_eq!(stacked.of(ShownPart::Bursts(1)), [10, 11], "the newest of the value");
    }
}
