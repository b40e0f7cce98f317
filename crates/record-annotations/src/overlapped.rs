//! Overlapped tasks, regions, frames and sections that are open on a thread: intervals by id, which end in any order.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use taskscope_record::instrument::named;

/// Maximum number of open intervals of a thread; further ones are not recorded.
const MAX_OPEN: usize = 64;

/// The identity of an interval: its kind, and words that are unique in its kind.
pub type Subject = (IntervalKind, [u64; 3]);

/// The kind of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalKind {
    /// A task that may overlap others.
    Task,
    /// A region.
    Region,
    /// A frame.
    Frame,
    /// A section of Kokkos.
    Section,
    /// A range of NVTX.
    Range,
}

#[derive(Clone, Copy)]
struct Open {
    subject: Subject,
    key: u32,
    value: u64,
}

const NOTHING: Open = Open { subject: (IntervalKind::Task, [0; 3]), key: 0, value: 0 };

struct Intervals {
    count: usize,
    open: [Open; MAX_OPEN],
}

thread_local! {
    // On the heap, as the stack of states is.
    static INTERVALS: RefCell<Option<Box<Intervals>>> = const { RefCell::new(None) };
}

/// Begins an interval on a key. Returns whether it is recorded.
pub fn begin(subject: Subject, key: u32, value: u64) -> bool {
    if ENDED_COUNT.load(Relaxed) > 0 {
        close_ended();
    }
    let begin = |intervals: &RefCell<Option<Box<Intervals>>>| {
        let mut intervals = intervals.try_borrow_mut().ok()?;
        let nothing = || Box::new(Intervals { count: 0, open: [NOTHING; MAX_OPEN] });
        let intervals = intervals.get_or_insert_with(nothing);
        let count = intervals.count;
        let place = intervals.open.get_mut(count)?;
        if !named::open_burst(key, value) {
            return None;
        }
        *place = Open { subject, key, value };
        intervals.count += 1;
        Some(())
    };
    INTERVALS.try_with(begin).ok().flatten().is_some()
}

/// Ends the newest interval of this subject, if it began on this thread. Returns whether it did.
pub fn end(subject: Subject) -> bool {
    let end = |intervals: &RefCell<Option<Box<Intervals>>>| {
        let mut intervals = intervals.try_borrow_mut().ok()?;
        intervals.as_mut()?.end(|open| open.subject == subject)
    };
    INTERVALS.try_with(end).ok().flatten().is_some()
}

/// Numbers of intervals that ended on other threads, each until its own thread has closed it; 0 is none.
static ENDED: [AtomicU64; MAX_OPEN] = [const { AtomicU64::new(0) }; MAX_OPEN];
/// Number of them.
static ENDED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Ends an interval that may have begun on another thread, which then closes it at its next interval. Its first word is
/// unique in the process, and not 0.
pub fn end_anywhere(subject: Subject) {
    let (_, [number, ..]) = subject;
    if number == 0 || end(subject) {
        return;
    }
    if ENDED.iter().any(|place| place.compare_exchange(0, number, Release, Relaxed).is_ok()) {
        ENDED_COUNT.fetch_add(1, Release);
        return;
    }
    // Ranges of threads that have ended stay here: without room, one in turn gives way.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let place = ENDED.get(NEXT.fetch_add(1, Relaxed) % MAX_OPEN);
    if place.is_some_and(|place| place.swap(number, Release) == 0) {
        ENDED_COUNT.fetch_add(1, Release);
    }
}

/// Closes the calling thread's intervals that have ended on other threads.
#[cold]
fn close_ended() {
    for place in &ENDED {
        let number = place.load(Acquire);
        let end = |intervals: &RefCell<Option<Box<Intervals>>>| {
            let mut intervals = intervals.try_borrow_mut().ok()?;
            intervals
                .as_mut()?
                .end(|open| open.subject.0 == IntervalKind::Range && open.subject.1[0] == number)
        };
        if number != 0
            && INTERVALS.try_with(end).ok().flatten().is_some()
            // Else another number has taken the place.
            && place.compare_exchange(number, 0, Release, Relaxed).is_ok()
        {
            ENDED_COUNT.fetch_sub(1, Release);
        }
    }
}

impl Intervals {
    /// Ends the newest open interval that fits; `None` without one.
    fn end(&mut self, fits: impl Fn(&Open) -> bool) -> Option<()> {
        let open = self.open.get_mut(..self.count)?;
        let found = open.iter().rposition(fits)?;
        let rest = open.get_mut(found..)?;
        let ended = rest.first()?;
        named::close_burst(ended.key, ended.value);
        rest.rotate_left(1);
        self.count -= 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_receiver_nothing_is_open() {
        assert!(!begin((IntervalKind::Region, [1, 0, 0]), 1, 1));
        assert_eq!(
            INTERVALS.with_borrow(|intervals| intervals.as_ref().map_or(0, |intervals| intervals.count)),
            0
        );
        end((IntervalKind::Region, [1, 0, 0]));
    }

    #[test]
    fn ends_on_other_threads_find_room_after_those_of_ended_threads() {
        let last = 1_000 + 2 * MAX_OPEN as u64;
        (1_000..=last).for_each(|number| end_anywhere((IntervalKind::Range, [number, 0, 0])));
        assert!(ENDED.iter().any(|place| place.load(Relaxed) == last));
        assert_eq!(ENDED_COUNT.load(Relaxed), MAX_OPEN);
    }
}
