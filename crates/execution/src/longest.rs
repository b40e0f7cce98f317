//! The longest section of each activity.

use crate::activities::ByActivity;

/// The longest section of each activity. Ties go to the last.
pub type LongestSections = ByActivity<Stretch>;

/// A time. In the order of lengths, then of starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// Nanoseconds.
    pub ns: u64,
    /// First nanosecond.
    pub start: u64,
}

impl Stretch {
    /// Takes another one, if it is longer.
    pub(crate) fn take(&mut self, other: Stretch) {
        *self = (*self).max(other);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Activities, Place, State, Track};
    use rustc_hash::FxHashMap;

    /// A track's result equals that of its sections.
    pub(crate) fn check(track: &Track, activities: &Activities) {
        let mut longest = LongestSections::of(activities);
        track.find_longest(&mut longest);
        let mut found: FxHashMap<(State, Place), Stretch> = FxHashMap::default();
        for (activity, stretch) in longest.take(activities).filter(|(_, stretch)| stretch.ns > 0) {
            found.entry(activity).or_default().take(stretch);
        }
        let mut expected: FxHashMap<(State, Place), Stretch> = FxHashMap::default();
        for span in track.spans().filter(|span| span.nanos() > 0) {
            let activity = (span.section.state, span.section.place);
            expected.entry(activity).or_default().take(Stretch { ns: span.nanos(), start: span.start });
        }
        assert_eq!(found, expected);
    }
}
