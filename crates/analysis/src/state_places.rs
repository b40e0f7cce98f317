//! Numbers for states at places: walks over sections sum by them, and few of them follow each other again and again.

use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, Place, PlaceKind, ProcessIndex, RecentNumbers, State};

/// The process of a place.
pub(crate) fn process_of(execution: &Execution, place: Place) -> ProcessIndex {
    let catalog = &execution.catalog;
    let process = match place.kind() {
        PlaceKind::Site(site) => catalog.sites.get(site.index()).map(|site| site.process),
        PlaceKind::Type(ty) => catalog.types.get(ty.index()).map(|ty| ty.process),
        PlaceKind::Gap(gap) => catalog.gaps.get(gap.index()).map(|gap| gap.process),
        // With one process, everything belongs to it.
        PlaceKind::Unknown => (execution.process_count() == 1).then_some(ProcessIndex(0)),
    };
    process.unwrap_or(ProcessIndex::NONE)
}

/// Numbers of keys in the order of first use.
pub(crate) struct StatePlaces {
    keys: Vec<(State, Place)>,
    numbers: FxHashMap<(State, Place), u32>,
    recent: RecentNumbers<u32>,
}

/// No number, as there are not so many keys.
const NOBODY: u32 = u32::MAX;

impl Default for StatePlaces {
    fn default() -> Self {
        StatePlaces { keys: Vec::new(), numbers: FxHashMap::default(), recent: RecentNumbers::new(NOBODY) }
    }
}

impl StatePlaces {
    /// The number of a key. New ones are 0, 1, 2, …
    #[inline]
    pub fn number(&mut self, state: State, place: Place) -> u32 {
        let (keys, numbers) = (&mut self.keys, &mut self.numbers);
        self.recent.number(state, place, || look_up(keys, numbers, (state, place)))
    }

    /// All keys, in the order of their numbers.
    pub fn keys(&self) -> &[(State, Place)] {
        &self.keys
    }
}

#[cold]
fn look_up(
    keys: &mut Vec<(State, Place)>,
    numbers: &mut FxHashMap<(State, Place), u32>,
    key: (State, Place),
) -> u32 {
    *numbers.entry(key).or_insert_with(|| {
        keys.push(key);
        keys.len() as u32 - 1
    })
}

/// Sums by state and place.
#[derive(Default)]
pub(crate) struct SumsByPlace {
    keys: StatePlaces,
    sums: Vec<u64>,
}

impl SumsByPlace {
    /// Adds to the sum of a state at a place.
    #[inline]
    pub fn add(&mut self, state: State, place: Place, value: u64) {
        let number = self.keys.number(state, place) as usize;
        match self.sums.get_mut(number) {
            Some(sum) => *sum += value,
            None => self.sums.push(value),
        }
    }

    /// All sums, in the order of their first value.
    pub fn iter(&self) -> impl Iterator<Item = ((State, Place), u64)> + '_ {
        self.keys.keys().iter().copied().zip(self.sums.iter().copied())
    }

    /// Takes out all sums.
    pub fn take(&mut self) -> impl Iterator<Item = ((State, Place), u64)> + '_ {
        let sums = self.sums.iter_mut().map(std::mem::take);
        self.keys.keys().iter().copied().zip(sums).filter(|(_, sum)| *sum > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::SiteIndex;

    #[test]
    fn sums_are_those_of_a_map() {
        let mut sums = SumsByPlace::default();
        let mut map: FxHashMap<(State, Place), u64> = FxHashMap::default();
        // More keys than are remembered, in bursts and scattered.
        for step in 0..100_000_u64 {
            let mixed = (step / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let state = State::ALL[(mixed % 29) as usize];
            let place =
                if mixed % 5 == 0 { Place::UNKNOWN } else { Place::site(SiteIndex((mixed % 97) as u32)) };
            sums.add(state, place, step);
            *map.entry((state, place)).or_default() += step;
        }
        assert!(map.len() > 500);
        assert_eq!(sums.iter().collect::<FxHashMap<_, _>>(), map);
        assert_eq!(sums.iter().count(), map.len());
    }
}
