//! Blame for waits on locks, exact to the nanosecond.
//!
//! ```text
//!   holder n      ├──────────────┤
//!   holder n + 1                 ├───────┤           a holder's time ends when the next one's begins
//!   waiter              ├────────┼───────┤ acquired  the wait, cut at the hand-overs: so much for n,
//!                          to n    to n+1            so much for n + 1
//! ```
//! A holder's place is the place of its acquisition, as in a trace, and known from then on; so a waiter
//! settles its whole wait when it acquires. LLVM's runtime reports releases late (after the next
//! acquisition), without effect here: a holder's time ends at the next acquisition. The handover time is
//! charged to the previous holder; if the wait began after that holder's release, to the next one. A wait
//! during which no other thread held the lock is unattributed: blame given always equals waiting taken.
//!
//! A lock stores its last holders individually. Before it drops the older ones, it charges them to the
//! current waiters, in sums by place; so its memory grows with the waiters and the places, not with the
//! acquisitions.

use std::collections::VecDeque;
use std::sync::Mutex;

use rustc_hash::FxHashMap;
use taskscope_profile::Marker;

use super::account::Account;
use super::contexts::ChargedPath;
use super::workers::{self, Workers};

/// Waits below this have no cause.
pub const MIN_WAIT_NS: u64 = 1_000;
/// Holders that a lock remembers, of which the older half is forgotten at a time.
const HOLDERS: usize = 32;
const SHARDS: usize = 64;
/// Locks that a shard remembers.
const LOCKS: usize = 4096;

#[derive(Default)]
struct Lock {
    acquisitions: u64,
    holders: VecDeque<Holder>,
    /// Blame already charged for current waiters, by their account.
    charged: FxHashMap<usize, Charged>,
}

/// Blame of dropped holders for one wait.
struct Charged {
    since: u64,
    /// For the wait until here.
    until: u64,
    by_place: FxHashMap<Option<ChargedPath>, u64>,
}

struct Holder {
    number: u64,
    from: u64,
    /// Time of the release, once reported.
    released: Option<u64>,
    place: ChargedPath,
}

static LOCKS_BY_OBJECT: [Mutex<Option<FxHashMap<u64, Lock>>>; SHARDS] = [const { Mutex::new(None) }; SHARDS];

/// A waiter's key, unique during the life of the process.
fn key(account: &Account) -> usize {
    core::ptr::from_ref(account).addr()
}

fn with_lock<R>(object: u64, use_lock: impl FnOnce(&mut Lock) -> R) -> Option<R> {
    let shard = LOCKS_BY_OBJECT.get((object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHARDS)?;
    // Held for some hundred instructions, while waiters spin for up to a millisecond; a forked child may find
    // it locked for ever.
    for _ in 0..10_000 {
        if let Ok(mut locks) = shard.try_lock() {
            let locks = locks.get_or_insert_default();
            if locks.len() >= LOCKS && !locks.contains_key(&object) {
                let accounts = workers::current().into_iter().flat_map(Workers::accounts);
                let wanted: Vec<u64> = accounts.filter_map(|account| Some(account.wanted()?.0)).collect();
                let is_held = |lock: &Lock| lock.holders.back().is_some_and(|last| last.released.is_none());
                locks.retain(|object, lock| is_held(lock) || wanted.contains(object));
            }
            return Some(use_lock(locks.entry(object).or_default()));
        }
        std::thread::yield_now();
    }
    None
}

/// Locks held by a thread: lock and number of its acquisition. The lock that it waits for is in its account,
/// for other threads.
#[derive(Default)]
pub struct Held {
    held: Vec<(u64, u64)>,
    /// For the wait that was the last.
    blame: Vec<Blame>,
}

/// A part of the blame for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The blamed place; `None` if unattributed.
    pub place: Option<ChargedPath>,
    /// Nanoseconds.
    pub ns: u64,
}

impl Held {
    /// Records that the thread of account `own` has acquired the lock at this place. Returns the waiting time
    /// and its blame. A wait shorter than [`MIN_WAIT_NS`] has no blame: taking a free lock is not a wait.
    /// `all` are the accounts of possible waiters.
    pub fn acquired<'a>(
        &mut self,
        (own, all): (&Account, impl Iterator<Item = &'a Account>),
        object: u64,
        place: ChargedPath,
        at: u64,
    ) -> (u64, &[Blame]) {
        let wait = own.wants_no_more().map_or(0, |since| at.saturating_sub(since));
        let counted = if wait >= MIN_WAIT_NS { wait } else { 0 };
        let blame = &mut self.blame;
        blame.clear();
        let number = with_lock(object, |lock| {
            let charged = if lock.charged.is_empty() { None } else { lock.charged.remove(&key(own)) };
            if counted > 0 {
                lock.settle((at - counted, at), charged, blame);
            }
            if lock.holders.len() == HOLDERS {
                lock.forget(all.filter_map(|account| match account.wanted()? {
                    (wanted, since) if wanted == object => Some((key(account), since)),
                    _ => None,
                }));
            }
            lock.acquisitions += 1;
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

    /// Records the release.
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
    /// Charges a finished wait; a part of it is charged already.
    fn settle(&self, (since, until): (u64, u64), charged: Option<Charged>, blame: &mut Vec<Blame>) {
        let charged = charged.filter(|charged| charged.since == since && charged.until <= until);
        let mut from = since;
        if let Some(charged) = charged {
            from = charged.until;
            blame.extend(charged.by_place.into_iter().map(|(place, ns)| Blame { place, ns }));
        }
        self.charge((from, until), self.holders.len(), |place, ns| blame.push(Blame { place, ns }));
    }

    /// Forgets the older half of the holders, which those that wait (key, and since when) are charged with before.
    fn forget(&mut self, waiting: impl Iterator<Item = (usize, u64)>) {
        let count = HOLDERS / 2;
        let (Some(first), Some(next)) = (self.holders.front(), self.holders.get(count)) else { return };
        let (begin, end) = (first.from, next.from);
        // Most wait since before all of them: for those they are added up once.
        let mut whole: FxHashMap<Option<ChargedPath>, u64> = FxHashMap::default();
        self.charge((begin, end), count, |place, ns| *whole.entry(place).or_default() += ns);
        let mut before = core::mem::take(&mut self.charged);
        for (key, since) in waiting.filter(|(_, since)| *since < end) {
            let known = before.remove(&key).filter(|charged| charged.since == since);
            let mut charged =
                known.unwrap_or_else(|| Charged { since, until: since, by_place: FxHashMap::default() });
            let by_place = &mut charged.by_place;
            if charged.until == begin {
                whole.iter().for_each(|(place, ns)| *by_place.entry(*place).or_default() += ns);
            } else {
                self.charge((charged.until, end), count, |place, ns| {
                    *by_place.entry(place).or_default() += ns
                });
            }
            charged.until = end;
            self.charged.insert(key, charged);
        }
        self.holders.drain(..count);
    }

    /// Charges the time from `since` to `until` to the holders of that time among the first `count`.
    fn charge(
        &self,
        (since, until): (u64, u64),
        count: usize,
        mut give: impl FnMut(Option<ChargedPath>, u64),
    ) {
        let (mut end, mut after) = (until, self.holders.get(count).map(|holder| holder.place));
        for holder in self.holders.iter().take(count).rev() {
            let begin = holder.from.max(since);
            let is_over = holder.released.is_some_and(|released| released <= since);
            let place = if is_over { after } else { Some(holder.place) };
            if end > begin {
                give(place, end - begin);
                end = begin;
            }
            if holder.from <= since {
                break;
            }
            after = place;
        }
        if end > since {
            give(None, end - since);
        }
    }
}

/// Ends the wait of the thread of account `own`, if any, without an acquisition. Returns the waiting time and
/// its blame, as [`Held::acquired`] does.
pub fn stops_waiting(own: &Account, at: u64) -> (u64, Vec<Blame>) {
    let Some((object, since)) = own.wanted() else { return (0, Vec::new()) };
    own.wants_no_more();
    let (wait, mut blame) = (at.saturating_sub(since), Vec::new());
    if wait >= MIN_WAIT_NS {
        let settled = with_lock(object, |lock| {
            let charged = lock.charged.remove(&key(own));
            lock.settle((since, at), charged, &mut blame);
        });
        if settled.is_none() {
            blame.push(Blame { place: None, ns: wait });
        }
    }
    (wait, blame)
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
        _ => Marker::Runtime,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that takes one lock.
    struct Taker {
        account: Account,
        held: Held,
    }

    impl Taker {
        fn new() -> Taker {
            Taker { account: Account::new(0), held: Held::default() }
        }

        /// With `others`, which may wait.
        fn acquired_beside(
            &mut self,
            others: &[&Taker],
            lock: u64,
            place: ChargedPath,
            at: u64,
        ) -> (u64, Vec<(Option<ChargedPath>, u64)>) {
            let all = others.iter().map(|other| &other.account);
            let (waited, blame) = self.held.acquired((&self.account, all), lock, place, at);
            let mut blame: Vec<_> = blame.iter().map(|part| (part.place, part.ns)).collect();
            blame.sort();
            (waited, blame)
        }

        fn acquired(
            &mut self,
            lock: u64,
            place: ChargedPath,
            at: u64,
        ) -> (u64, Vec<(Option<ChargedPath>, u64)>) {
            self.acquired_beside(&[], lock, place, at)
        }
    }

    /// Two consecutive holders, one waiter over both, late releases: all is charged at their acquisitions.
    #[test]
    fn blame_given_is_waiting_taken() {
        const LOCK: u64 = 0xdead_0001;
        let (mut first, mut second, mut third) = (Taker::new(), Taker::new(), Taker::new());
        first.account.wants(LOCK, 0);
        assert_eq!(first.acquired(LOCK, (1, 11), 10), (10, vec![]), "a free lock");
        second.account.wants(LOCK, 2_000);
        third.account.wants(LOCK, 4_000);
        let (waited, blame) = second.acquired(LOCK, (2, 22), 10_000);
        assert_eq!((waited, blame), (8_000, vec![(Some((1, 11)), 8_000)]), "released, or not yet");
        // The release comes late.
        first.held.released(LOCK, 10_500);
        second.held.released(LOCK, 14_000);
        let (waited, blame) = third.acquired(LOCK, (3, 33), 15_000);
        assert_eq!(waited, 11_000);
        assert_eq!(blame, [(Some((1, 11)), 6_000), (Some((2, 22)), 5_000)]);
    }

    #[test]
    fn a_lock_free_at_the_begin_of_the_wait_has_no_earlier_holder() {
        const LOCK: u64 = 0xdead_0002;
        let (mut first, mut second, mut third) = (Taker::new(), Taker::new(), Taker::new());
        first.acquired(LOCK, (1, 11), 0);
        first.held.released(LOCK, 1_000);
        second.account.wants(LOCK, 2_000);
        third.account.wants(LOCK, 2_000);
        let (_, blame) = second.acquired(LOCK, (2, 22), 5_000);
        assert_eq!(blame, [(None, 3_000)], "nobody held it");
        let (_, blame) = third.acquired(LOCK, (3, 33), 9_000);
        assert_eq!(
            blame,
            [(Some((2, 22)), 3_000), (Some((2, 22)), 4_000)],
            "until it was taken, and while it was held"
        );
    }

    /// Two wait while others take the lock for ever, from each moment of the first hundred acquisitions on.
    #[test]
    fn holders_are_kept_while_an_earlier_wait_lasts() {
        const LOCK: u64 = 0xdead_0003;
        for begin in (0..100_000).step_by(250) {
            let lock = LOCK + begin;
            let (mut greedy, mut meek, mut late) = (Taker::new(), Taker::new(), Taker::new());
            let (mut at, mut owed) = (0, [0; 2]);
            for turn in 0..300 {
                let place = (1, 1 + turn % 2);
                greedy.acquired_beside(&[&meek, &late], lock, place, at);
                let next = at + 700 + 10 * u64::from(turn % 7);
                if (at..next).contains(&begin) {
                    meek.account.wants(lock, begin);
                }
                if turn == 200 {
                    late.account.wants(lock, at);
                }
                owed[turn as usize % 2] += next - at.max(begin).min(next);
                // The release comes late in every other turn.
                greedy.held.released(lock, next + 5 * u64::from(turn % 2));
                at = next;
            }
            let (waited, blame) = meek.acquired_beside(&[&late], lock, (2, 22), at);
            let given = |place| blame.iter().filter(|part| part.0 == Some(place)).map(|part| part.1).sum();
            let given: [u64; 2] = [given((1, 1)), given((1, 2))];
            assert_eq!((waited, given), (at - begin, owed), "{blame:?}");
            let (waited, blame) = late.acquired(lock, (3, 33), at + 2_000);
            assert_eq!(waited, blame.iter().map(|part| part.1).sum::<u64>());
            assert!(blame.iter().all(|part| part.0.is_some()), "{blame:?}");
            destroyed(lock);
        }
    }
}
