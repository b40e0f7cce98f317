//! The longest section of each activity.

use crate::{Activities, Place, State};
use rustc_hash::FxHashMap;

/// When the longest section of each activity was. Of equally long ones it is the last.
#[derive(Clone, Debug)]
pub struct LongestSections {
    of_numbers: Vec<Stretch>,
    rare: FxHashMap<(State, Place), Stretch>,
}

/// A time. In the order of lengths, then of starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// Nanoseconds.
    pub ns: u64,
    /// First nanosecond.
    pub start: u64,
}

impl LongestSections {
    /// Nothing yet.
    pub fn of(activities: &Activities) -> LongestSections {
        LongestSections {
            of_numbers: vec![Stretch::default(); activities.count()],
            rare: FxHashMap::default(),
        }
    }

    /// The longest so far of what has this number.
    #[inline(always)]
    pub(crate) fn of_number(&mut self, number: u16) -> Option<&mut Stretch> {
        self.of_numbers.get_mut(usize::from(number))
    }

    /// Takes a section of what may have no number.
    #[cold]
    pub(crate) fn take(&mut self, activity: (State, Place), stretch: Stretch) {
        let longest = self.rare.entry(activity).or_default();
        *longest = (*longest).max(stretch);
    }

    /// All activities with the longest section of each, but those that took no time. An activity may come twice.
    pub fn all<'a>(
        &'a self,
        activities: &'a Activities,
    ) -> impl Iterator<Item = ((State, Place), Stretch)> + 'a {
        let numbered = activities.all().iter().zip(&self.of_numbers);
        numbered
            .chain(&self.rare)
            .map(|(activity, stretch)| (*activity, *stretch))
            .filter(|(_, stretch)| stretch.ns > 0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Track;

    /// What a track finds is what its sections tell.
    pub(crate) fn check(track: &Track, activities: &Activities) {
        let mut longest = LongestSections::of(activities);
        track.find_longest(&mut longest);
        let mut found: FxHashMap<(State, Place), Stretch> = FxHashMap::default();
        for (activity, stretch) in longest.all(activities) {
            let known = found.entry(activity).or_default();
            *known = (*known).max(stretch);
        }
        let mut expected: FxHashMap<(State, Place), Stretch> = FxHashMap::default();
        for span in track.spans().filter(|span| span.nanos() > 0) {
            let known = expected.entry((span.section.state, span.section.place)).or_default();
            *known = (*known).max(Stretch { ns: span.nanos(), start: span.start });
        }
        assert_eq!(found, expected);
    }
}
