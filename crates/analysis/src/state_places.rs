//! Numbers for states at places: walks over sections sum by them, and few of them follow each other again and again.

use rustc_hash::FxHashMap;
use taskscope_execution::{Place, State};

/// Keys that are found without the map; a power of two.
const RECENT: usize = 256;

/// Numbers of keys in the order in which they were first asked for.
pub(crate) struct StatePlaces {
    keys: Vec<(State, Place)>,
    numbers: FxHashMap<(State, Place), u32>,
    /// The key that was asked for last among those that share a place here, as one number, and its number.
    recent: Box<[(u64, u32); RECENT]>,
}

/// No number, as there are not so many keys.
const NOBODY: u32 = u32::MAX;

impl Default for StatePlaces {
    fn default() -> Self {
        let none = (u64::MAX, NOBODY);
        StatePlaces { keys: Vec::new(), numbers: FxHashMap::default(), recent: Box::new([none; RECENT]) }
    }
}

impl StatePlaces {
    /// The number of a key. New ones are 0, 1, 2, …
    #[inline]
    pub fn number(&mut self, state: State, place: Place) -> u32 {
        let key = u64::from(place.packed()) << 8 | state as u64;
        // Fibonacci hashing.
        let row = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT.ilog2())) as usize;
        let (known, number) = self.recent[row];
        if known == key {
            return number;
        }
        let number = self.look_up((state, place));
        self.recent[row] = (key, number);
        number
    }

    #[cold]
    fn look_up(&mut self, key: (State, Place)) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() as u32 - 1
        })
    }

    /// All keys, in the order of their numbers.
    pub fn keys(&self) -> &[(State, Place)] {
        &self.keys
    }
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
        assert!(map.len() > 2 * RECENT);
        assert_eq!(sums.iter().collect::<FxHashMap<_, _>>(), map);
        assert_eq!(sums.iter().count(), map.len());
    }
}
