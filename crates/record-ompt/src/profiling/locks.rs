//! Who kept others waiting for a lock: blame, exact to the nanosecond.
//!
//! ```text
//!   holder n      ├──────────────┤
//!   holder n + 1                 ├───────┤           a holder's time ends where the next one's begins
//!   waiter              ├────────┼───────┤ acquired  the wait, cut at the hand-overs: so much for n,
//!                          to n    to n+1            so much for n + 1
//! ```
//! A holder's place is where it took the lock, as in a trace, and known from then on; so the waiter settles
//! when it has acquired, all at once. LLVM's runtime reports releases late (after the next acquisition), which
//! changes nothing here: a holder's time ends at the next acquisition. What handing over takes is
//! the doing of the holder before; where the wait began after that one's release, of the holder after. A wait
//! in which nobody else held the lock is nobody's, as is what goes back beyond the short memory of a
//! lock: blame given always equals waiting taken.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use taskscope_profile::Marker;

use super::waits::SHORTEST_NS;

/// Holders that a lock remembers.
const HOLDERS: usize = 32;
const SHARDS: usize = 64;
/// Locks that a shard remembers.
const LOCKS: usize = 4096;

/// A place to charge: context, and path in it.
pub type Place = (u32, u32);

#[derive(Default)]
struct Lock {
    acquisitions: u64,
    holders: VecDeque<Holder>,
}

struct Holder {
    number: u64,
    from: u64,
    /// When it gave the lock back, once that is told.
    released: Option<u64>,
    place: Place,
}

static LOCKS_BY_OBJECT: [Mutex<Option<HashMap<u64, Lock>>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];

fn with_lock<R>(object: u64, use_lock: impl FnOnce(&mut Lock) -> R) -> Option<R> {
    let shard = LOCKS_BY_OBJECT.get((object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS)?;
    // Held for some hundred instructions; a forked child may find it locked for ever.
    for _ in 0..10_000 {
        if let Ok(mut locks) = shard.try_lock() {
            let locks = locks.get_or_insert_with(HashMap::new);
            if locks.len() >= LOCKS && !locks.contains_key(&object) {
                locks.retain(|_, lock| lock.holders.back().is_some_and(|holder| holder.released.is_none()));
            }
            return Some(use_lock(locks.entry(object).or_default()));
        }
        std::thread::yield_now();
    }
    None
}

/// What a thread holds: lock and number of its acquisition; and since when it waits for one.
#[derive(Default)]
pub struct Held {
    held: Vec<(u64, u64)>,
    waits_since: Option<u64>,
}

/// A part of the blame for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// Whose; `None` is nobody's.
    pub place: Option<Place>,
    /// How much, nanoseconds.
    pub ns: u64,
}

impl Held {
    /// The thread wants a lock.
    pub fn acquire(&mut self, at: u64) {
        self.waits_since = Some(at);
    }

    /// What it waits for, if it does, is not counted.
    pub fn forget_wait(&mut self) {
        self.waits_since = None;
    }

    /// It has it, taken at this place: how long it waited, and who is to blame. Of what is shorter than
    /// [`SHORTEST_NS`] nobody is: taking a free lock is no wait.
    pub fn acquired(&mut self, object: u64, place: Place, at: u64) -> (u64, Vec<Blame>) {
        let wait = self.waits_since.take().map_or(0, |since| at.saturating_sub(since));
        let counted = if wait >= SHORTEST_NS { wait } else { 0 };
        let mut blame = Vec::new();
        let number = with_lock(object, |lock| {
            if counted > 0 {
                lock.charge(at - counted, at, &mut blame);
            }
            lock.acquisitions += 1;
            if lock.holders.len() == HOLDERS {
                lock.holders.pop_front();
            }
            lock.holders.push_back(Holder { number: lock.acquisitions, from: at, released: None, place });
            lock.acquisitions
        });
        if let Some(number) = number {
            self.held.push((object, number));
        } else if counted > 0 {
            blame.push(Blame { place: None, ns: counted });
        }
        (wait, blame)
    }

    /// It has given it back.
    pub fn released(&mut self, object: u64, at: u64) {
        let Some(index) = self.held.iter().rposition(|held| held.0 == object) else { return };
        let (_, number) = self.held.remove(index);
        with_lock(object, |lock| {
            if let Some(holder) = lock.holders.iter_mut().rev().find(|holder| holder.number == number) {
                holder.released = Some(at);
            }
        });
    }
}

impl Lock {
    /// Charges the wait from `since` to `until` to the holders of that time.
    fn charge(&self, since: u64, until: u64, blame: &mut Vec<Blame>) {
        let (mut end, mut after) = (until, None);
        for holder in self.holders.iter().rev() {
            let begin = holder.from.max(since);
            let is_over = holder.released.is_some_and(|released| released <= since);
            let place = if is_over { after } else { Some(holder.place) };
            if end > begin {
                blame.push(Blame { place, ns: end - begin });
                end = begin;
            }
            if holder.from <= since {
                break;
            }
            after = place;
        }
        if end > since {
            blame.push(Blame { place: None, ns: end - since });
        }
    }
}

/// The lock is destroyed.
pub fn destroyed(object: u64) {
    if let Some(shard) =
        LOCKS_BY_OBJECT.get((object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS)
        && let Ok(mut locks) = shard.try_lock()
        && let Some(locks) = locks.as_mut()
    {
        locks.remove(&object);
    }
}

/// The profile's marker for a wait in this state.
pub fn marker(state: u32) -> Marker {
    use taskscope_event::models::samples::state::*;
    match state {
        BARRIER_PARALLEL | BARRIER_TEAMS => Marker::JoinBarrier,
        BARRIER_WORKSHARE | BARRIER_EXPLICIT | BARRIER_IMPLEMENTATION => Marker::Barrier,
        TASKWAIT => Marker::Taskwait,
        TASKGROUP => Marker::Taskgroup,
        TASKWAIT_DEPEND => Marker::TaskwaitDepend,
        LOCK => Marker::Lock,
        NEST_LOCK => Marker::NestLock,
        CRITICAL => Marker::Critical,
        ATOMIC => Marker::Atomic,
        ORDERED => Marker::Ordered,
        TARGET => Marker::Target,
        IDLE => Marker::Idle,
        _ => Marker::Overhead,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(blame: Vec<Blame>) -> Vec<(Option<Place>, u64)> {
        let mut blame: Vec<_> = blame.into_iter().map(|part| (part.place, part.ns)).collect();
        blame.sort();
        blame
    }

    /// Two holders one after the other, a waiter over both, late releases: all is charged, where they took it.
    #[test]
    fn blame_given_is_waiting_taken() {
        const LOCK: u64 = 0xdead_0001;
        let (mut first, mut second, mut third) = (Held::default(), Held::default(), Held::default());
        first.acquire(0);
        assert_eq!(first.acquired(LOCK, (1, 11), 10), (10, vec![]), "a free lock");
        second.acquire(2_000);
        third.acquire(4_000);
        let (waited, blame) = second.acquired(LOCK, (2, 22), 10_000);
        assert_eq!((waited, sorted(blame)), (8_000, vec![(Some((1, 11)), 8_000)]), "released, or not yet");
        // The release comes late.
        first.released(LOCK, 10_500);
        second.released(LOCK, 14_000);
        let (waited, blame) = third.acquired(LOCK, (3, 33), 15_000);
        assert_eq!(waited, 11_000);
        assert_eq!(sorted(blame), [(Some((1, 11)), 6_000), (Some((2, 22)), 5_000)]);
    }

    #[test]
    fn what_was_free_when_the_wait_began_is_not_the_holders_before() {
        const LOCK: u64 = 0xdead_0002;
        let (mut first, mut second, mut third) = (Held::default(), Held::default(), Held::default());
        first.acquired(LOCK, (1, 11), 0);
        first.released(LOCK, 1_000);
        second.acquire(2_000);
        third.acquire(2_000);
        let (_, blame) = second.acquired(LOCK, (2, 22), 5_000);
        assert_eq!(sorted(blame), [(None, 3_000)], "nobody held it");
        let (_, blame) = third.acquired(LOCK, (3, 33), 9_000);
        assert_eq!(
            sorted(blame),
            [(Some((2, 22)), 3_000), (Some((2, 22)), 4_000)],
            "until it was taken, and while it was held"
        );
    }
}
