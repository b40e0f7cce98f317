//! Teams and their barriers: the last member to arrive, and its activity before.
//!
//! ```text
//!   member 0   ──────┤ waits          │             each member stores its arrival time, and the use of
//!   member 1   ──────────────┤ waits  │             its time since its last barrier
//!   member 2   ────────────────────┤  │             the latest arrival is the last: the cause of all
//!                            last ─┘  └ released    waiting until then
//! ```
//! Members charge their own waiting when it is over, so each gives as much as it takes. Two records alternate
//! for the barriers inside a region: no member reaches the next but one before all have left this one. The
//! barrier at the region's end has a record of its own, as workers learn late that it is over: a team is kept
//! until its last member has left. Then the same thread reuses it for another region ([`Own`]).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use std::sync::Mutex;

use super::recent::Recent;

/// Maximum number of teams at a time; waits in further ones have no blame.
const TEAMS: usize = 1 << 14;
/// Record of the barrier at the region's end.
pub const JOIN: usize = 2;
const MEMBER_BITS: u32 = 16;

/// Use of a member's time before it arrived.
#[derive(Default)]
pub struct Arrival {
    /// Its context, and the path to the barrier in it.
    pub context: u32,
    pub path: u32,
    /// Its use of time since its last barrier, in memory that most members never need.
    work: Option<Box<Recent>>,
}

impl Arrival {
    /// Takes the use of its time over.
    pub fn set_work(&mut self, recent: Option<&Recent>) {
        match recent.filter(|recent| !recent.is_empty()) {
            Some(recent) => self.work.get_or_insert_default().copy(recent),
            None => self.work.iter_mut().for_each(|work| work.clear(0)),
        }
    }

    /// The use of its time, if it is known.
    pub fn work(&self) -> Option<&Recent> {
        self.work.as_deref().filter(|work| !work.is_empty())
    }
}

#[derive(Default)]
struct Barrier {
    /// Nanoseconds since the region's begin, and the member; the largest is the last.
    last: AtomicU64,
    arrived: AtomicU32,
}

impl Barrier {
    fn begin(&self) {
        self.last.store(0, Relaxed);
        self.arrived.store(0, Relaxed);
    }
}

/// In a cache line of its own, as only that thread writes it.
#[derive(Default)]
#[repr(align(64))]
struct Member {
    arrivals: [UnsafeCell<Arrival>; 3],
}

/// A team of threads. A region without barriers inside uses one cache line of it.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Team {
    began: AtomicU64,
    /// When its region was over; 0 while it is not.
    ended: AtomicU64,
    /// Threads that still need it, and [`OWNED`].
    holders: AtomicU32,
    size: AtomicU32,
    members: UnsafeCell<Box<[Member]>>,
    join: Barrier,
    /// The context of its region.
    context: AtomicU32,
    /// Whether a member has reached a barrier inside.
    has_inner: AtomicBool,
    inner: [Barrier; 2],
}

/// Flag of a team that a thread keeps for its next regions.
const OWNED: u32 = 1 << 31;

// SAFETY: `members` changes only while the team has no holder; an arrival is written by its member before it
// arrives, and read by others after that barrier.
unsafe impl Sync for Team {}

static ALL: [AtomicPtr<Team>; TEAMS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; TEAMS];

struct Free {
    numbers: Vec<u32>,
    made: u32,
}

static FREE: Mutex<Free> = Mutex::new(Free { numbers: Vec::new(), made: 0 });

fn with_free<R>(use_free: impl FnOnce(&mut Free) -> R) -> Option<R> {
    // A forked child may find it locked for ever.
    for _ in 0..1000 {
        if let Ok(mut free) = FREE.try_lock() {
            return Some(use_free(&mut free));
        }
        std::thread::yield_now();
    }
    None
}

/// The team of a number.
pub fn team(number: u32) -> Option<&'static Team> {
    if number == 0 {
        return None;
    }
    // SAFETY: null, or a leaked box.
    unsafe { ALL.get(number as usize)?.load(Acquire).as_ref() }
}

/// Takes a team for a new region of at most this many threads; returns its number, 0 if there is none.
pub fn begin(requested: u32, at: u64) -> u32 {
    let taken = with_free(|free| {
        free.numbers.pop().or_else(|| {
            let number = (free.made + 1 < TEAMS as u32).then(|| free.made + 1)?;
            free.made = number;
            ALL.get(number as usize)?.store(Box::into_raw(Box::default()), Release);
            Some(number)
        })
    });
    let Some(number) = taken.flatten() else { return 0 };
    let Some(team) = team(number) else { return 0 };
    // SAFETY: it has no holder: it comes from the free ones.
    unsafe { team.begin(requested, at) };
    team.holders.store(1, Release);
    number
}

/// Teams that a thread keeps, to avoid an allocation at each region.
#[derive(Default)]
pub struct Own {
    /// Their numbers, that of the one longest without a region first. Some members may not have left them yet.
    numbers: Vec<u32>,
}

/// Teams that a thread keeps, at most: members leave one when they have work in the next.
const KEPT: usize = 4;

impl Own {
    /// [`begin`].
    #[inline(always)]
    pub fn begin(&mut self, requested: u32, at: u64) -> u32 {
        for index in 0..self.numbers.len() {
            let number = self.numbers.get(index).copied().unwrap_or(0);
            if let Some(team) = team(number)
                && team.holders.load(Acquire) == OWNED
            {
                self.numbers.remove(index);
                // SAFETY: it has no holder, and only its owner can hold it.
                unsafe { team.begin(requested, at) };
                team.holders.store(OWNED + 1, Release);
                return number;
            }
        }
        begin(requested, at)
    }

    /// Keeps a team that the thread has begun, until its next region.
    #[inline(always)]
    pub fn keep(&mut self, number: u32) {
        let Some(team) = team(number) else { return };
        // It may be this thread's already: nested regions use more than are kept.
        if self.numbers.len() < KEPT && self.numbers.try_reserve(1).is_ok() {
            self.numbers.push(number);
            team.holders.fetch_or(OWNED, Relaxed);
        } else {
            team.holders.fetch_and(!OWNED, Relaxed);
        }
        leave(number);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for number in self.numbers.drain(..) {
            if let Some(team) = team(number)
                && team.holders.fetch_and(!OWNED, AcqRel) == OWNED
            {
                with_free(|free| free.numbers.push(number));
            }
        }
    }
}

/// Looks at the team, if a thread needs it, which it keeps meanwhile.
pub fn while_held(number: u32, look: impl FnOnce(&'static Team)) {
    let Some(team) = team(number) else { return };
    let one_more = |holders: u32| (holders & !OWNED > 0).then_some(holders + 1);
    if team.holders.fetch_update(Acquire, Relaxed, one_more).is_ok() {
        look(team);
        leave(number);
    }
}

/// Releases a thread's hold of the team.
pub fn leave(number: u32) {
    if let Some(team) = team(number)
        && team.holders.fetch_sub(1, AcqRel) == 1
    {
        with_free(|free| free.numbers.push(number));
    }
}

/// The region of a team is over since then.
pub fn over_since(number: u32) -> Option<u64> {
    team(number)?.over_since()
}

impl Team {
    /// Begins a region of at most this many threads.
    ///
    /// # Safety
    /// The team has no holder.
    #[inline(always)]
    unsafe fn begin(&self, requested: u32, at: u64) {
        let wanted = (requested as usize).min(1 << MEMBER_BITS);
        // SAFETY: by contract.
        let members = unsafe { &mut *self.members.get() };
        if members.len() < wanted {
            *members = (0..wanted).map(|_| Member::default()).collect();
        }
        self.began.store(at, Relaxed);
        self.ended.store(0, Relaxed);
        self.size.store(requested, Relaxed);
        self.context.store(0, Relaxed);
        self.join.begin();
        if self.has_inner.load(Relaxed) {
            self.has_inner.store(false, Relaxed);
            self.inner.iter().for_each(Barrier::begin);
        }
    }

    /// Adds a hold; another thread must hold the team meanwhile.
    pub fn hold(&self) {
        self.holders.fetch_add(1, Relaxed);
    }

    /// The context of its region is known, before members come.
    pub fn set_context(&self, context: u32) {
        self.context.store(context, Relaxed);
    }

    /// The context of its region.
    pub fn context(&self) -> u32 {
        self.context.load(Relaxed)
    }

    fn record(&self, barrier: usize) -> Option<&Barrier> {
        if barrier == JOIN { Some(&self.join) } else { self.inner.get(barrier) }
    }

    /// Time at which its region ended, if it has.
    pub fn over_since(&self) -> Option<u64> {
        let ended = self.ended.load(Acquire);
        (ended > 0).then_some(ended)
    }

    /// Ends its region.
    pub fn end(&self, at: u64) {
        self.ended.store(at, Release);
    }

    /// Sets the number of members, which each of them knows.
    pub fn set_size(&self, size: u32) {
        if self.size.load(Relaxed) != size {
            self.size.store(size, Relaxed);
        }
    }

    /// A member arrives at a barrier.
    pub fn arrive(&self, barrier: usize, member: u32, at: u64, arrival: impl FnOnce(&mut Arrival)) {
        let Some(record) = self.record(barrier) else { return };
        if barrier != JOIN && !self.has_inner.load(Relaxed) {
            self.has_inner.store(true, Relaxed);
        }
        // SAFETY: held, so that the list does not change.
        let members = unsafe { &*self.members.get() };
        if let Some(place) = members.get(member as usize).and_then(|member| member.arrivals.get(barrier)) {
            // SAFETY: no other thread reads it before this member has arrived.
            arrival(unsafe { &mut *place.get() });
            let since = at.saturating_sub(self.began.load(Relaxed));
            record.last.fetch_max(since << MEMBER_BITS | u64::from(member), AcqRel);
        }
        record.arrived.fetch_add(1, Release);
    }

    /// When the last member came to the `round`-th barrier of this record, if all have.
    pub fn all_here(&self, barrier: usize, round: u32) -> Option<u64> {
        let record = self.record(barrier)?;
        let size = u64::from(self.size.load(Relaxed));
        let all = u64::from(record.arrived.load(Acquire)) >= size * (u64::from(round) + 1);
        all.then(|| self.last_at(barrier)).flatten()
    }

    /// When the last to arrive did, as far as is known.
    pub fn last_at(&self, barrier: usize) -> Option<u64> {
        let last = self.record(barrier)?.last.load(Acquire);
        Some((last >> MEMBER_BITS) + self.began.load(Relaxed))
    }

    /// Data of the last member to arrive. Only after the barrier, by a member that has been in it.
    pub fn last_arrival(&self, barrier: usize) -> Option<&Arrival> {
        let last = self.record(barrier)?.last.load(Acquire);
        let member = (last & ((1 << MEMBER_BITS) - 1)) as usize;
        // SAFETY: held, so that the list does not change.
        let members = unsafe { &*self.members.get() };
        let place = members.get(member)?.arrivals.get(barrier)?;
        // SAFETY: that member does not write here before all have left the barrier.
        Some(unsafe { &*place.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{MutexGuard, PoisonError};

    /// The process has one list of free teams: one test takes from it at a time.
    fn free_teams() -> MutexGuard<'static, ()> {
        static USE: Mutex<()> = Mutex::new(());
        USE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn the_last_to_arrive_is_known_when_all_are_here() {
        let _only = free_teams();
        let number = begin(3, 1000);
        let three = team(number).unwrap();
        for (member, at) in [(1, 1500), (0, 1700)] {
            three.arrive(JOIN, member, at, |arrival| arrival.context = 10 + member);
        }
        assert_eq!(three.all_here(JOIN, 0), None);
        three.arrive(JOIN, 2, 1600, |arrival| arrival.context = 12);
        assert_eq!(three.all_here(JOIN, 0), Some(1700));
        assert_eq!(three.last_arrival(JOIN).unwrap().context, 10);
        // The next but one barrier has the same record.
        for round in 0..2 {
            assert_eq!(three.all_here(0, round), None);
            for member in 0..3 {
                let at = 2000 + u64::from(round * 100 + (member + round) % 3);
                three.arrive(0, member, at, |arrival| arrival.context = member);
            }
            assert_eq!(three.last_arrival(0).unwrap().context, 2 - round);
        }
        three.end(2500);
        assert_eq!(over_since(number), Some(2500));
        three.hold();
        leave(number);
        assert_ne!(begin(1, 0), number, "somebody still holds it");
        leave(number);
    }

    #[test]
    fn regions_in_each_other_use_the_same_teams_again() {
        let _only = free_teams();
        let mut own = Own::default();
        let mut used = std::collections::HashSet::<u32>::new();
        for _ in 0..100 {
            let open: Vec<u32> = (0..3 * KEPT).map(|_| own.begin(2, 10)).collect();
            used.extend(&open);
            open.iter().rev().for_each(|number| own.keep(*number));
        }
        assert_eq!(used.len(), 3 * KEPT);
    }

    #[test]
    fn a_thread_has_its_teams_again_when_all_have_left_them() {
        let _only = free_teams();
        let mut own = Own::default();
        let first = own.begin(2, 10);
        team(first).unwrap().hold();
        team(first).unwrap().arrive(JOIN, 1, 20, |_| {});
        own.keep(first);
        let second = own.begin(2, 30);
        assert_ne!(second, first, "somebody still holds it");
        let mut held = 0;
        while_held(first, |_| held += 1);
        leave(first);
        while_held(first, |_| held += 1);
        assert_eq!(held, 1, "while somebody holds it");
        own.keep(second);
        assert_eq!(own.begin(3, 50), first);
        let again = team(first).unwrap();
        assert_eq!(again.all_here(JOIN, 0), None, "what arrived in the region before is forgotten");
        again.hold();
        own.keep(first);
        drop(own);
        assert_eq!(
            again.holders.load(Relaxed),
            1,
            "of those that are held, the last to leave lets others have it"
        );
        leave(first);
        assert_eq!(again.holders.load(Relaxed), 0);
    }
}
