//! Falls of clocks. An event with a lower clock than an earlier one is read at the earlier one's clock. Its real time
//! is between the two, so the activity of its thread between them is uncertain.
//!
//! ```text
//! stored   10  20  50  30  40  60
//! read     10  20  50  50  50  60
//! fall             30 ────── 50
//! ```

/// Above this number, intervals between two falls are merged with them.
const MAX_FALLS: usize = 1 << 16;

/// Stretches of clocks: ascending, without a common clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Falls(Vec<(i64, i64)>);

impl Falls {
    /// A clock falls from `highest` to `clock`. `highest` is never lower than before.
    pub(crate) fn add(&mut self, clock: i64, highest: i64) {
        let mut from = clock;
        while let Some((start, end)) = self.0.last().copied()
            && (end >= from || self.0.len() == MAX_FALLS)
        {
            from = from.min(start);
            self.0.pop();
        }
        self.0.push((from, highest));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().copied()
    }

    /// The intervals of several files of one thread, joined.
    pub(crate) fn joined(files: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
        let mut all: Vec<(i64, i64)> = files.collect();
        all.sort_unstable_by_key(|(_, end)| *end);
        let mut joined = Falls::default();
        all.into_iter().for_each(|(start, end)| joined.add(start, end));
        joined.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Falls, MAX_FALLS};

    #[test]
    fn falls_that_have_a_clock_in_common_are_one() {
        let mut falls = Falls::default();
        for (clock, highest) in [(30, 50), (40, 50), (70, 80), (95, 99), (75, 99)] {
            falls.add(clock, highest);
        }
        assert_eq!(falls.iter().collect::<Vec<_>>(), [(30, 50), (70, 99)]);
        assert_eq!(
            Falls::joined([(30, 50), (90, 99), (10, 20), (45, 60)].into_iter()),
            [(10, 20), (30, 60), (90, 99)]
        );
    }

    #[test]
    fn many_falls_take_little_memory_and_all_are_covered() {
        let mut falls = Falls::default();
        for number in 0..3 * MAX_FALLS as i64 {
            falls.add(10 * number, 10 * number + 5);
        }
        let kept: Vec<_> = falls.iter().collect();
        assert!(kept.len() <= MAX_FALLS);
        assert_eq!((kept[0], kept.last().unwrap().1), ((0, 5), 30 * MAX_FALLS as i64 - 5));
    }
}
