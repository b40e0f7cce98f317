//! Sums by state.

use taskscope_execution::{Group, State};

/// Nanoseconds by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByState([u64; State::ALL.len()]);

impl Default for ByState {
    fn default() -> Self {
        ByState([0; State::ALL.len()])
    }
}

impl ByState {
    /// Nanoseconds in `state`.
    pub fn get(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    /// Adds nanoseconds to `state`.
    pub fn add(&mut self, state: State, ns: u64) {
        self.0[state as usize] += ns;
    }

    /// Nanoseconds in all states.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Nanoseconds in the states of a group.
    pub fn group_ns(&self, group: Group) -> u64 {
        self.iter().filter(|(state, _)| state.group() == group).map(|(_, ns)| ns).sum()
    }

    /// The rest without `part`, which is contained in it.
    pub fn without(&self, part: &ByState) -> ByState {
        ByState(std::array::from_fn(|state| self.0[state] - part.0[state]))
    }

    /// Adds all of another's.
    pub fn add_all(&mut self, other: &ByState) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum += ns);
    }

    /// States with their nanoseconds, in the order of the states, zeros left out.
    pub fn iter(&self) -> impl Iterator<Item = (State, u64)> + '_ {
        State::ALL.iter().map(|state| (*state, self.get(*state))).filter(|(_, ns)| *ns > 0)
    }
}
