//! Total time of a track in each activity, summed while its sections are stored, when they are in cache.

/// Limit of summed activities: with more, no sums are known, and readers use the sections.
const MAX_ACTIVITIES: usize = 256;

/// Nanoseconds by the number of an activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTimes {
    by_number: Vec<u64>,
    is_whole: bool,
}

impl Default for KeptTimes {
    fn default() -> Self {
        KeptTimes { by_number: Vec::new(), is_whole: true }
    }
}

impl KeptTimes {
    /// Adds time; subtraction adds the complement.
    #[inline(always)]
    pub(crate) fn add(&mut self, number: u16, ns: u64) {
        match self.by_number.get_mut(usize::from(number)) {
            Some(sum) => *sum = sum.wrapping_add(ns),
            None => self.add_first(number, ns),
        }
    }

    #[cold]
    fn add_first(&mut self, number: u16, ns: u64) {
        let number = usize::from(number);
        if number >= MAX_ACTIVITIES {
            self.is_whole = false;
            return;
        }
        self.by_number.resize(number + 1, 0);
        self.by_number[number] = ns;
    }

    /// The sums by number, if all are known.
    pub(crate) fn whole(&self) -> Option<&[u64]> {
        self.is_whole.then_some(&self.by_number)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::{Activities, ActivityTimes, Place, State, Track};
    use rustc_hash::FxHashMap;

    /// The times of a track are those of its sections.
    pub(crate) fn check(track: &Track, activities: &Activities) {
        let mut times = ActivityTimes::of(activities);
        track.add_times(&mut times);
        let mut found: FxHashMap<(State, Place), u64> = FxHashMap::default();
        times.take(activities).for_each(|(activity, ns)| *found.entry(activity).or_default() += ns);
        let mut expected: FxHashMap<(State, Place), u64> = FxHashMap::default();
        for span in track.spans().filter(|span| span.nanos() > 0) {
            *expected.entry((span.section.state, span.section.place)).or_default() += span.nanos();
        }
        assert_eq!(found, expected);
    }
}
