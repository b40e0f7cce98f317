//! Who kept others waiting for a lock: blame, exact to the nanosecond.
//!
//! ```text
//!   holder n      ├──────────────┤
//!   holder n + 1                 ├───────┤           a holder's time ends where the next one's begins
//!   waiter              ├────────┼───────┤ acquired  the wait, cut at the hand-overs: so much for n,
//!                          to n    to n+1            so much for n + 1
//! ```
//! The waiter settles when it has acquired, by numbers of acquisitions. A holder's path is known when it
//! releases; what is charged before that waits in its entry. LLVM's runtime reports releases late
//! (after the next acquisition), which changes nothing here: a holder's time ends at the next acquisition.
//! What cannot be charged to anybody (a holder that has left the short memory of its lock) is
//! nobody's, so that blame given always equals waiting taken.

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
    kind: Option<Marker>,
    waiters: u32,
    acquisitions: u64,
    holders: VecDeque<Holder>,
}

struct Holder {
    number: u64,
    from: u64,
    place: Option<Place>,
    /// Charged before the place was known.
    pending: u64,
}

static LOCKS_BY_OBJECT: [Mutex<Option<HashMap<u64, Lock>>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];

fn with_lock<R>(object: u64, use_lock: impl FnOnce(&mut Lock) -> R) -> Option<R> {
    let shard = LOCKS_BY_OBJECT.get((object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS)?;
    // Held for some hundred instructions; a forked child may find it locked for ever.
    for _ in 0..10_000 {
        if let Ok(mut locks) = shard.try_lock() {
            let locks = locks.get_or_insert_with(HashMap::new);
            if locks.len() >= LOCKS && !locks.contains_key(&object) {
                locks.retain(|_, lock| lock.waiters > 0 || lock.holders.iter().any(|h| h.pending > 0));
            }
            return Some(use_lock(locks.entry(object).or_default()));
        }
        std::thread::yield_now();
    }
    None
}

/// What a thread holds: lock and number of its acquisition; and what it waits for since when.
#[derive(Default)]
pub struct Held {
    held: Vec<(u64, u64)>,
    waits_since: Option<(u64, u64)>,
    /// Whether the lock knows of that wait.
    is_counted: bool,
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
    pub fn acquire(&mut self, object: u64, at: u64) {
        self.waits_since = Some((object, at));
        self.is_counted = with_lock(object, |lock| lock.waiters += 1).is_some();
    }

    /// What it waits for, if it does, is not counted.
    pub fn forget_wait(&mut self) {
        if let Some((object, _)) = self.waits_since.take().filter(|_| core::mem::take(&mut self.is_counted)) {
            with_lock(object, |lock| lock.waiters = lock.waiters.saturating_sub(1));
        }
    }

    /// It has it, a lock of this kind: how long it waited, and who is to blame. Of what is shorter than
    /// [`SHORTEST_NS`] nobody is: taking a free lock is no wait. Of the rest, what is not in the list is
    /// in the lock's memory, until its holder's place is known.
    pub fn acquired(&mut self, object: u64, kind: Marker, at: u64) -> (u64, Vec<Blame>) {
        let wanted = self.waits_since.take();
        let wait = wanted.map_or(0, |(_, since)| at.saturating_sub(since));
        let counted = if wait >= SHORTEST_NS { wait } else { 0 };
        let mut blame = Vec::new();
        let mut is_counted = core::mem::take(&mut self.is_counted);
        if let Some((other, _)) = wanted.filter(|(wanted, _)| is_counted && *wanted != object) {
            // A critical construct's lock gets its number when it is first taken.
            with_lock(other, |lock| lock.waiters = lock.waiters.saturating_sub(1));
            is_counted = false;
        }
        let number = with_lock(object, |lock| {
            if is_counted {
                lock.waiters = lock.waiters.saturating_sub(1);
            }
            if counted > 0 {
                lock.charge(at - counted, at, &mut blame);
            }
            lock.kind = Some(kind);
            lock.acquisitions += 1;
            if lock.holders.len() == HOLDERS
                && let Some(oldest) = lock.holders.pop_front()
                && oldest.pending > 0
            {
                blame.push(Blame { place: None, ns: oldest.pending });
            }
            lock.holders.push_back(Holder { number: lock.acquisitions, from: at, place: None, pending: 0 });
            lock.acquisitions
        });
        if let Some(number) = number {
            self.held.push((object, number));
        } else if counted > 0 {
            blame.push(Blame { place: None, ns: counted });
        }
        (wait, blame)
    }

    /// It has given it back, where the path is `place()`. What is charged to it now is returned.
    pub fn released(&mut self, object: u64, place: impl FnOnce() -> Place) -> Option<Blame> {
        let index = self.held.iter().rposition(|held| held.0 == object)?;
        let (_, number) = self.held.remove(index);
        with_lock(object, |lock| {
            let needed = lock.waiters > 0;
            let holder = lock.holders.iter_mut().find(|holder| holder.number == number)?;
            if !needed && holder.pending == 0 {
                return None;
            }
            let place = place();
            holder.place = Some(place);
            let pending = core::mem::take(&mut holder.pending);
            (pending > 0).then_some(Blame { place: Some(place), ns: pending })
        })
        .flatten()
    }
}

impl Lock {
    /// Charges the wait from `since` to `until` to the holders of that time.
    fn charge(&mut self, since: u64, until: u64, blame: &mut Vec<Blame>) {
        let mut end = until;
        for holder in self.holders.iter_mut().rev() {
            let begin = holder.from.max(since);
            let part = end.saturating_sub(begin);
            if part > 0 {
                match holder.place {
                    Some(place) => blame.push(Blame { place: Some(place), ns: part }),
                    None => holder.pending += part,
                }
                end = begin;
            }
            if holder.from <= since {
                break;
            }
        }
        if end > since {
            blame.push(Blame { place: None, ns: end - since });
        }
    }
}

/// What is charged to holders whose place is not known yet: they have not released.
pub fn unsettled() -> Vec<(Marker, u64)> {
    let mut sums = Vec::new();
    for shard in &LOCKS_BY_OBJECT {
        if let Ok(locks) = shard.try_lock() {
            for lock in locks.iter().flat_map(HashMap::values) {
                let pending: u64 = lock.holders.iter().map(|holder| holder.pending).sum();
                sums.extend(lock.kind.filter(|_| pending > 0).map(|kind| (kind, pending)));
            }
        }
    }
    sums
}

/// The lock is destroyed.
pub fn destroyed(object: u64) {
    if let Some(shard) =
        LOCKS_BY_OBJECT.get((object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS)
        && let Ok(mut locks) = shard.try_lock()
        && let Some(locks) = locks.as_mut()
        && locks.get(&object).is_some_and(|lock| lock.holders.iter().all(|holder| holder.pending == 0))
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

    /// Two holders one after the other, a waiter over both, late releases: all is charged.
    #[test]
    fn blame_given_is_waiting_taken() {
        const LOCK: u64 = 0xdead_0001;
        let (mut first, mut second, mut third) = (Held::default(), Held::default(), Held::default());
        first.acquire(LOCK, 0);
        assert_eq!(first.acquired(LOCK, Marker::Lock, 10), (10, vec![]), "a free lock");
        second.acquire(LOCK, 2_000);
        third.acquire(LOCK, 4_000);
        let (waited, blame) = second.acquired(LOCK, Marker::Lock, 10_000);
        assert_eq!((waited, blame), (8_000, vec![]), "who holds it has not released, as the runtime says");
        assert_eq!(unsettled(), [(Marker::Lock, 8_000)]);
        // The release comes late: the eight thousand that waited for it are charged now.
        assert_eq!(first.released(LOCK, || (1, 11)), Some(Blame { place: Some((1, 11)), ns: 8_000 }));
        assert_eq!(second.released(LOCK, || (2, 22)), None);
        let (waited, blame) = third.acquired(LOCK, Marker::Lock, 15_000);
        assert_eq!(waited, 11_000);
        let mut blame: Vec<_> = blame.into_iter().map(|part| (part.place, part.ns)).collect();
        blame.sort();
        assert_eq!(blame, [(Some((1, 11)), 6_000), (Some((2, 22)), 5_000)]);
        assert_eq!(unsettled(), []);
    }
}
