//! Overlapped tasks, regions and frames that are open on a thread: intervals by id, which end in any order.

use core::cell::RefCell;

use taskscope_record::instrument::named;

/// Maximum number of open intervals of a thread; further ones are not recorded.
const MAX_OPEN: usize = 64;

/// The identity of an interval: its kind, and words that are unique in its kind.
pub type Subject = (Kind, [u64; 3]);

/// The kind of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A task that may overlap others.
    Task,
    /// A region.
    Region,
    /// A frame.
    Frame,
}

#[derive(Clone, Copy)]
struct Open {
    subject: Subject,
    key: u32,
    value: u64,
}

const NOTHING: Open = Open { subject: (Kind::Task, [0; 3]), key: 0, value: 0 };

struct Intervals {
    count: usize,
    open: [Open; MAX_OPEN],
}

thread_local! {
    // On the heap, as the stack of states is.
    static INTERVALS: RefCell<Option<Box<Intervals>>> = const { RefCell::new(None) };
}

/// Begins an interval on a key.
pub fn begin(subject: Subject, key: u32, value: u64) {
    let _ = INTERVALS.try_with(|intervals| {
        let Ok(mut intervals) = intervals.try_borrow_mut() else { return };
        let nothing = || Box::new(Intervals { count: 0, open: [NOTHING; MAX_OPEN] });
        let intervals = intervals.get_or_insert_with(nothing);
        let count = intervals.count;
        if let Some(place) = intervals.open.get_mut(count)
            && named::open_burst(key, value)
        {
            *place = Open { subject, key, value };
            intervals.count += 1;
        }
    });
}

/// Ends the newest interval of this subject, if it began on this thread.
pub fn end(subject: Subject) {
    let _ = INTERVALS.try_with(|intervals| {
        let Ok(mut intervals) = intervals.try_borrow_mut() else { return };
        let Some(intervals) = intervals.as_mut() else { return };
        let count = intervals.count;
        let Some(open) = intervals.open.get_mut(..count) else { return };
        let Some(found) = open.iter().rposition(|open| open.subject == subject) else { return };
        let Some(rest) = open.get_mut(found..) else { return };
        if let Some(ended) = rest.first() {
            named::close_burst(ended.key, ended.value);
        }
        rest.rotate_left(1);
        intervals.count -= 1;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_receiver_nothing_is_open() {
        begin((Kind::Region, [1, 0, 0]), 1, 1);
        assert_eq!(
            INTERVALS.with_borrow(|intervals| intervals.as_ref().map_or(0, |intervals| intervals.count)),
            0
        );
        end((Kind::Region, [1, 0, 0]));
    }
}
