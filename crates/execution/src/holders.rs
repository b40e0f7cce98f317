//! The holder of an object at each instant of a wait for it.
//!
//! ```text
//!   holder A   ────────┤ released
//!   holder B                ├──────┤ released
//!   waiter        ├────┬────┬──────┬────┤ acquired
//!                   A    A     B     B
//! ```
//! Between two holders the object is handed over: threads are woken, and the next holder arrives. This follows from
//! the release, so it is charged to the previous holder; if the wait began after that release, to the next holder. An
//! ordered turn is not handed over but awaited: the time before it is charged to the thread with the turn. A wait in
//! which no other thread held the object is the cost of acquiring a free one, and charged to no thread.

use crate::{Hold, ObjectIndex, Span, State, ThreadIndex};
use rustc_hash::FxHashMap;

/// All holds, by object.
pub struct Holders {
    by_object: FxHashMap<ObjectIndex, Vec<Hold>>,
}

impl Holders {
    /// The holders by these holds, which do not overlap for one object.
    pub fn of<'a>(holds: impl IntoIterator<Item = &'a Hold>) -> Holders {
        let mut by_object: FxHashMap<ObjectIndex, Vec<Hold>> = FxHashMap::default();
        for hold in holds {
            by_object.entry(hold.object).or_default().push(*hold);
        }
        for list in by_object.values_mut() {
            list.sort_by_key(|hold| (hold.start, hold.end));
        }
        Holders { by_object }
    }

    /// The hold of a thread that waits for its own object, to its end: a wait that never ends.
    pub fn own_of(&self, waiter: ThreadIndex, wait: &Span) -> Option<Hold> {
        let list = self.by_object.get(&wait.section.object)?;
        let is_own = |hold: &&Hold| hold.thread == waiter && hold.start <= wait.start && hold.end >= wait.end;
        list.iter().rev().find(is_own).copied()
    }

    /// Splits a wait of `waiter` over the holders in sequence: passes each part to `take` with its holder, if
    /// any; the parts tile the wait.
    pub fn split(&self, waiter: ThreadIndex, wait: &Span, mut take: impl FnMut(Option<Hold>, u64, u64)) {
        let list = self.by_object.get(&wait.section.object).map_or(&[][..], Vec::as_slice);
        // Holds of one object do not overlap, so ends are sorted as starts are.
        let overlapping = list[list.partition_point(|hold| hold.end <= wait.start)..]
            .iter()
            .take_while(|hold| hold.start < wait.end)
            .filter(|hold| hold.thread != waiter);
        let (mut at, mut holder) = (wait.start, None);
        for hold in overlapping {
            let from = hold.start.max(at);
            if from > at {
                let giver = holder.filter(|_| wait.section.state != State::OrderedWait);
                take(Some(giver.unwrap_or(*hold)), at, from);
            }
            let until = hold.end.min(wait.end);
            if until > from {
                take(Some(*hold), from, until);
            }
            (at, holder) = (until, Some(*hold));
        }
        if wait.end > at {
            take(holder, at, wait.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Section, SiteIndex, TaskIndex};

    fn hold(thread: u32, start: u64, end: u64) -> Hold {
        let object = ObjectIndex(0);
        Hold {
            object,
            thread: ThreadIndex(thread),
            site: SiteIndex(thread),
            task: TaskIndex::NONE,
            start,
            end,
        }
    }

    type Part = (Option<u32>, u64, u64);

    /// Parts of a wait of thread 9, with the thread that held the object.
    fn parts(holds: &[Hold], start: u64, end: u64) -> Vec<Part> {
        parts_of(State::LockWait, holds, start, end)
    }

    fn parts_of(state: State, holds: &[Hold], start: u64, end: u64) -> Vec<Part> {
        let section = Section { object: ObjectIndex(0), ..Section::of(state) };
        let mut parts = Vec::new();
        Holders::of(holds.iter().rev()).split(
            ThreadIndex(9),
            &Span { start, end, section },
            |holder, start, end| {
                parts.push((holder.map(|hold| hold.thread.0), start, end));
            },
        );
        parts
    }

    #[test]
    fn handing_over_is_charged_to_the_holder_before() {
        let holds = [hold(1, 0, 100), hold(2, 130, 200)];
        let expected = [(Some(1), 50, 100), (Some(1), 100, 130), (Some(2), 130, 200), (Some(2), 200, 220)];
        assert_eq!(parts(&holds, 50, 220), expected);
    }

    #[test]
    fn before_the_first_holder_of_the_wait_it_is_that_one() {
        assert_eq!(
            parts(&[hold(1, 0, 40), hold(2, 130, 200)], 50, 150),
            [(Some(2), 50, 130), (Some(2), 130, 150)]
        );
    }

    #[test]
    fn before_an_ordered_turn_the_holder_is_the_thread_in_turn() {
        let holds = [hold(1, 0, 100), hold(2, 130, 200)];
        let expected = [(Some(1), 50, 100), (Some(2), 100, 130), (Some(2), 130, 200), (Some(2), 200, 220)];
        assert_eq!(parts_of(State::OrderedWait, &holds, 50, 220), expected);
    }

    #[test]
    fn a_free_object_has_no_holder() {
        assert_eq!(parts(&[hold(1, 0, 40), hold(9, 60, 90)], 50, 60), [(None, 50, 60)]);
        assert_eq!(parts(&[], 50, 60), [(None, 50, 60)]);
    }

    #[test]
    fn the_waiter_itself_is_never_the_holder() {
        assert_eq!(
            parts(&[hold(9, 55, 58), hold(1, 58, 90)], 50, 60),
            [(Some(1), 50, 58), (Some(1), 58, 60)]
        );
    }
}
