//! Time of a thread by state: exact sums, written by the thread, read by any other.
//!
//! The states are those of a trace's ledger, under the same names, as far as they are known without
//! looking ahead, so a profile and a trace of the same program are comparable.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, compiler_fence, fence};

use super::integrals::SharedTaken;
use super::no_cpu::Watch;
use super::states::{STATES, State, Sums, book};

/// Time that a thread has spent, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Useful work, calls of MPI, for which others wait as for work, and lock time: if no other worker works, a lock that
    /// this thread acquires is free.
    pub work: u64,
    /// Time in which neither it nor a device worked for the program, though it had work.
    pub waits: u64,
}

/// A thread's account. Aligned so that no two share a cache line.
#[repr(C, align(128))]
pub struct Account {
    /// Start of the current state, in nanoseconds of the recorder's clock; [`CHANGING`] while the thread
    /// updates it and the sums. A reader that gets the same value before and after has read a consistent
    /// state: several changes at one time leave the sums equal.
    since: AtomicU64,
    state: AtomicU32,
    /// The thread's role among the workers: a [`Standing`].
    standing: AtomicU32,
    sums: [AtomicU64; STATES],
    tasks: Tasks,
    began: AtomicU64,
    /// The team of the barrier at which it waits; 0 for none.
    joins: AtomicU32,
    /// The lock that it waits for, and since when; [`WANTS_NONE`] is not at all.
    wanted: AtomicU64,
    wanted_since: AtomicU64,
    /// Its share of sampled idleness so far.
    pub taken: SharedTaken,
    /// Its serial work, during which idleness is known.
    pub serial: SerialWork,
    /// Readings of its time without a CPU.
    pub watch: Watch,
}

/// Work of a thread that forks, outside of its regions, as far as its handler needs to know of it while a callback runs.
#[derive(Default)]
pub struct SerialWork {
    /// Time of the last look; 0 in regions.
    since: AtomicU64,
    /// Time that samples in callbacks have charged since, nanoseconds.
    charged: AtomicU64,
}

impl SerialWork {
    /// Counts the time until `at` as seen. Returns the part that samples in callbacks have charged.
    pub fn look(&self, at: u64) -> u64 {
        self.since.store(at, Relaxed);
        self.charged.swap(0, Relaxed)
    }

    /// The thread is in a region.
    pub fn pause(&self) {
        self.since.store(0, Relaxed);
    }

    /// Returns the serial part of a sample in a callback, which represents the `ns` before `at`; it is
    /// charged now. Async-signal-safe.
    pub fn sampled_in_callback(&self, at: u64, ns: u64) -> u64 {
        let since = self.since.load(Relaxed);
        if since == 0 {
            return 0;
        }
        let ns = ns.min(at.saturating_sub(since));
        self.since.store(at, Relaxed);
        self.charged.fetch_add(ns, Relaxed);
        ns
    }
}

/// Tasks of a thread. In a cache line of their own, since others read them for each wait that they charge;
/// the thread only writes them, without waiting for the line.
#[repr(C, align(64))]
struct Tasks {
    /// The context of the one that it runs; 0 is none.
    running: AtomicU32,
    /// The context of the one that it ended last, and when.
    ended: AtomicU32,
    ended_at: AtomicU64,
}

/// States of work for the program, of calls, and of locks.
const WORK: [State; 11] = {
    use State::*;
    [
        Task,
        Worksharing,
        Masked,
        ImplicitTask,
        Serial,
        Communication,
        MpiStart,
        CriticalWait,
        LockWait,
        OrderedWait,
        AtomicWait,
    ]
};

/// States of a thread that has not run out of work, and for which nothing works.
const WAITS: [State; 6] = {
    use State::*;
    [TaskCreation, Barrier, JoinBarrier, Taskwait, TaskwaitDepend, Taskgroup]
};

/// One bit for each state.
const fn bits(states: &[State]) -> u64 {
    const { assert!(STATES <= u64::BITS as usize) };
    match states.split_first() {
        Some((first, others)) => 1 << *first as u32 | bits(others),
        None => 0,
    }
}

const CHANGING: u64 = u64::MAX;
const WANTS_NONE: u64 = u64::MAX;

/// An interval in one state.
pub struct Stretch {
    state: u32,
    pub ns: u64,
}

impl Stretch {
    /// Whether it was in the body of a task.
    #[inline(always)]
    pub fn is_in_task(&self) -> bool {
        self.state == State::Task as u32
    }
}

/// Role of a thread among the workers of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not a worker.
    Other,
    /// The initial thread, which counts as long as no other does.
    Initial,
    /// A worker: it has been a member of a team, or has created tasks outside of any.
    Worker,
}

/// State of an account at one time.
pub struct Reading {
    /// Time by state since the thread began.
    pub sums: Sums,
    /// When it began.
    pub began: u64,
    /// The thread's role among the workers.
    pub standing: Standing,
}

impl Account {
    /// Creates the account of a thread that begins at `now`.
    pub fn new(now: u64) -> Account {
        Account {
            state: AtomicU32::new(State::Serial as u32),
            since: AtomicU64::new(now),
            began: AtomicU64::new(now),
            sums: [const { AtomicU64::new(0) }; STATES],
            standing: AtomicU32::new(Standing::Other as u32),
            tasks: Tasks {
                running: AtomicU32::new(0),
                ended: AtomicU32::new(0),
                ended_at: AtomicU64::new(0),
            },
            joins: AtomicU32::new(0),
            wanted: AtomicU64::new(0),
            wanted_since: AtomicU64::new(WANTS_NONE),
            taken: SharedTaken::default(),
            serial: SerialWork::default(),
            watch: Watch::default(),
        }
    }

    /// Whether the thread is in the body of a task; on its own thread.
    #[inline(always)]
    pub fn is_in_task(&self) -> bool {
        self.state.load(Relaxed) == State::Task as u32
    }

    /// Switches the thread to `state` at `at`. Returns the previous interval. On its own thread only.
    #[inline(always)]
    pub fn switch(&self, state: State, at: u64) -> Stretch {
        let before = self.state.load(Relaxed);
        let ns = at.saturating_sub(self.since.load(Relaxed));
        self.change(state, at, |account| account.charge(before, ns));
        Stretch { state: before, ns }
    }

    /// [`switch`](Self::switch) of a thread that [is in the body of a task](Self::is_in_task), for how long.
    #[inline(always)]
    pub fn switch_from_task(&self, state: State, at: u64) -> u64 {
        let ns = at.saturating_sub(self.since.load(Relaxed));
        self.change(state, at, |account| account.charge(State::Task as u32, ns));
        ns
    }

    /// Switches as [`switch`](Self::switch) does, but the time from `cut` on counts as `second`.
    pub fn switch_with_cut(&self, cut: u64, second: State, state: State, at: u64) -> Stretch {
        let (before, since) = (self.state.load(Relaxed), self.since.load(Relaxed));
        let cut = cut.clamp(since, at.max(since));
        self.change(state, at, |account| {
            account.charge(before, cut - since);
            account.charge(second as u32, at.saturating_sub(cut));
        });
        Stretch { state: before, ns: cut - since }
    }

    #[inline(always)]
    fn change(&self, state: State, at: u64, charge: impl FnOnce(&Account)) {
        self.since.store(CHANGING, Relaxed);
        fence_of_writer();
        charge(self);
        self.state.store(state as u32, Relaxed);
        self.since.store(at, Release);
    }

    #[inline(always)]
    fn charge(&self, state: u32, ns: u64) {
        if let Some(sum) = self.sums.get(state as usize) {
            sum.store(sum.load(Relaxed) + ns, Relaxed);
        }
    }

    /// Time that the thread has spent until `at`, on its own thread.
    #[inline(always)]
    pub fn spent(&self, at: u64) -> Spent {
        const OF_WORK: u64 = bits(&WORK);
        const OF_WAITS: u64 = bits(&WAITS);
        let sum = |states: &[State]| {
            states
                .iter()
                .filter_map(|state| self.sums.get(*state as usize))
                .map(|sum| sum.load(Relaxed))
                .sum()
        };
        let mut spent = Spent { work: sum(&WORK), waits: sum(&WAITS) };
        let now = at.saturating_sub(self.since.load(Relaxed));
        let state = 1_u64 << (self.state.load(Relaxed) % u64::BITS);
        if state & OF_WORK != 0 {
            spent.work += now;
        } else if state & OF_WAITS != 0 {
            spent.waits += now;
        }
        spent
    }

    /// Current state of a worker, from any thread; `None` for other threads. `idle_since` as in
    /// [`read`](Self::read).
    pub fn activity(&self, idle_since: impl Fn(u32) -> Option<u64>) -> Option<State> {
        let state = self.state().filter(|_| self.standing() == Standing::Worker)?;
        let is_over = state == State::JoinBarrier && idle_since(self.joins.load(Relaxed)).is_some();
        Some(if is_over { State::Idle } else { state })
    }

    /// Current state of the thread, by its own account; from any thread.
    pub fn state(&self) -> Option<State> {
        State::ALL.get(self.state.load(Relaxed) as usize).copied()
    }

    /// Start of the current state, as far as any thread can know it.
    pub fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// When the thread began.
    pub fn began(&self) -> u64 {
        self.began.load(Relaxed)
    }

    /// Sets its role among the workers.
    pub fn set_standing(&self, standing: Standing) {
        self.standing.store(standing as u32, Relaxed);
    }

    fn standing(&self) -> Standing {
        match self.standing.load(Relaxed) {
            number if number == Standing::Worker as u32 => Standing::Worker,
            number if number == Standing::Initial as u32 => Standing::Initial,
            _ => Standing::Other,
        }
    }

    /// Sets the context of the running task; 0 is none.
    #[inline(always)]
    pub fn runs(&self, context: u32) {
        self.tasks.running.store(context, Relaxed);
    }

    /// The context of the task that it runs.
    #[inline(always)]
    pub fn runs_now(&self) -> u32 {
        self.tasks.running.load(Relaxed)
    }

    /// A task of this context has ended on it.
    #[inline(always)]
    pub fn ran(&self, context: u32, at: u64) {
        self.tasks.ended.store(context, Relaxed);
        self.tasks.ended_at.store(at, Relaxed);
    }

    /// Begins a wait at the end of this team's region; 0 is none.
    pub fn joins(&self, team: u32) {
        self.joins.store(team, Relaxed);
    }

    /// The team of the region's end at which it waits, and the start of the wait, from any thread.
    pub fn waits_at_end(&self) -> Option<(u32, u64)> {
        let since = self.since.load(Acquire);
        let (state, team) = (self.state.load(Relaxed), self.joins.load(Relaxed));
        fence(Acquire);
        let is_so = state == State::JoinBarrier as u32 && team != 0 && since != CHANGING;
        (is_so && since == self.since.load(Relaxed)).then_some((team, since))
    }

    /// Begins a wait for this lock at `at`. On its own thread only.
    pub fn wants(&self, lock: u64, at: u64) {
        self.wanted.store(lock, Relaxed);
        self.wanted_since.store(at, Release);
    }

    /// Ends the wait for a lock; returns its start. On its own thread only.
    pub fn wants_no_more(&self) -> Option<u64> {
        let since = self.wanted_since.load(Relaxed);
        self.wanted_since.store(WANTS_NONE, Release);
        (since != WANTS_NONE).then_some(since)
    }

    /// The lock that it waits for, and since when, from any thread.
    pub fn wanted(&self) -> Option<(u64, u64)> {
        let since = self.wanted_since.load(Acquire);
        (since != WANTS_NONE).then(|| (self.wanted.load(Relaxed), since))
    }

    /// The context of the task that it runs, and of the one that it ended last, and when.
    pub fn tasks(&self) -> (u32, u32, u64) {
        (self.tasks.running.load(Relaxed), self.tasks.ended.load(Relaxed), self.tasks.ended_at.load(Relaxed))
    }

    /// Reads the account at `now`, from any thread. For a thread that waits at the end of a team's region,
    /// `idle_since` returns the time at which that region ended, if it has: the thread itself learns of it
    /// late.
    pub fn read(&self, now: u64, idle_since: impl Fn(u32) -> Option<u64>) -> Reading {
        loop {
            if let Some(reading) = self.read_once(now, &idle_since) {
                return reading;
            }
            core::hint::spin_loop();
        }
    }

    /// [`read`](Self::read), unless the thread is preempted while it changes the account. Async-signal-safe.
    pub fn try_read(&self, now: u64, idle_since: impl Fn(u32) -> Option<u64>) -> Option<Reading> {
        (0..64).find_map(|_| self.read_once(now, &idle_since))
    }

    fn read_once(&self, now: u64, idle_since: &impl Fn(u32) -> Option<u64>) -> Option<Reading> {
        let mut sums: Sums = [0; STATES];
        let since = self.since.load(Acquire);
        for (sum, own) in sums.iter_mut().zip(&self.sums) {
            *sum = own.load(Relaxed);
        }
        let state = self.state.load(Relaxed);
        let over =
            if state == State::JoinBarrier as u32 { idle_since(self.joins.load(Relaxed)) } else { None };
        fence(Acquire);
        if since == CHANGING || since != self.since.load(Relaxed) {
            return None;
        }
        let now = now.max(since);
        let cut = over.map_or(now, |over| over.clamp(since, now));
        if let Some(sum) = sums.get_mut(state as usize) {
            *sum += cut - since;
        }
        book(&mut sums, State::Idle, now - cut);
        Some(Reading { sums, began: self.began.load(Relaxed), standing: self.standing() })
    }
}

/// Orders the following stores after the previous one: free on x86-64, which keeps the order of stores.
#[inline(always)]
fn fence_of_writer() {
    if cfg!(target_arch = "x86_64") { compiler_fence(SeqCst) } else { fence(SeqCst) }
}

#[cfg(test)]
mod tests {
    use super::super::states::is_mutex;
    use super::*;
    use taskscope_cause::Group;

    #[test]
    fn every_nanosecond_has_one_state() {
        let account = Account::new(100);
        account.switch(State::ImplicitTask, 150);
        account.switch(State::JoinBarrier, 170);
        let reading = account.read(200, |_| None);
        assert_eq!(reading.sums.iter().sum::<u64>(), 100);
        assert_eq!(reading.sums[State::JoinBarrier as usize], 30);
        // The region was over at 180, as others know.
        let reading = account.read(200, |_| Some(180));
        assert_eq!(reading.sums[State::Idle as usize], 20);
        account.switch_with_cut(180, State::Idle, State::ImplicitTask, 210);
        let sums = account.read(220, |_| None).sums;
        let of = |state: State| sums[state as usize];
        assert_eq!(
            (of(State::Serial), of(State::ImplicitTask), of(State::JoinBarrier), of(State::Idle)),
            (50, 30, 10, 30)
        );
    }

    #[test]
    fn spent_time_is_work_or_waits_or_neither() {
        use State::*;
        for state in State::ALL {
            let account = Account::new(100);
            account.switch(state, 100);
            account.switch(Unknown, 107);
            let spent = account.spent(110);
            let is_call = matches!(state, Communication | MpiStart);
            let is_work = state.is_useful() || is_call || is_mutex(state);
            let is_sync = state.group() == Group::Sync && state != Taskyield && !is_call;
            let is_wait = state == TaskCreation || is_sync;
            let waits = if is_wait { 7 } else { 0 };
            assert_eq!(spent, Spent { work: if is_work { 7 } else { 0 }, waits }, "{state:?}");
            account.switch(state, 120);
            let more = account.spent(125);
            assert_eq!(
                (more.work - spent.work, more.waits - spent.waits),
                (spent.work / 7 * 5, waits / 7 * 5)
            );
        }
    }
}
