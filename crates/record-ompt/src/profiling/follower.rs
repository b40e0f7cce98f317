//! Per-thread state of a profile.

use std::sync::Arc;

use super::account::Account;
use super::idleness::{Idled, Role, SampleOf};
use super::locks::Held;
use super::recent::Recent;
use super::run::{Counted, current};
use super::thread_waits::WaitEvent;
use super::waits::Waits;
use super::{teams, threads};

/// State of a profiled thread. The fields that small tasks need in each callback come first.
#[repr(C, align(64))]
pub struct Follower {
    /// Its counts.
    pub counted: Arc<Counted>,
    pub(super) account: &'static Account,
    /// Waits that it is in.
    pub(super) waits: Waits,
    /// Locks that it holds.
    pub(super) held: Held,
    /// Teams that it is a member of, innermost last.
    pub(super) members: Vec<Membership>,
    /// For each membership but the innermost: the use of the thread's time since its last barrier in that
    /// team.
    pub(super) outer: Vec<Box<Recent>>,
    /// For regions that it forks.
    pub own_teams: teams::Own,
    /// Its role among the workers.
    pub(super) role: Role,
    /// Whether it was a member of a team, or has created tasks outside of any.
    pub(super) has_worked: bool,
    /// Whether recording is paused: nothing is counted, and all time has an unknown cause.
    pub(super) is_paused: bool,
}

pub(super) struct Membership {
    pub(super) region: u32,
    pub(super) team: u32,
    /// Context of its region.
    pub(super) context: u32,
    pub(super) index: u32,
    /// Number of barriers that it has reached.
    pub(super) barriers: u32,
}

impl Follower {
    /// Creates the follower of the calling thread.
    pub fn begin() -> Box<Follower> {
        let counted = threads::begin();
        let account = counted.account;
        Box::new(Follower {
            counted,
            account,
            waits: Waits::default(),
            held: Held::default(),
            members: Vec::new(),
            outer: Vec::new(),
            own_teams: teams::Own::default(),
            role: Role::default(),
            has_worked: false,
            is_paused: false,
        })
    }

    /// The context of the innermost team's region; 0 outside of any.
    #[inline(always)]
    pub fn context_of_team(&self) -> u32 {
        self.members.last().map_or(0, |member| member.context)
    }

    /// The context of a region that the thread is in, or waits at the end of; by then it may have ended for
    /// the forking thread.
    pub fn context_of(&self, region: u32) -> Option<u32> {
        let member = self.members.iter().rev().find(|member| member.region == region)?;
        Some(member.context)
    }

    /// Counts an event of a wait for another thread.
    pub fn count_wait(&self, at: u64, event: WaitEvent) {
        if self.counted.waits.push(at, event)
            && let Some(run) = current()
        {
            run.housekeeping.wake();
        }
    }

    /// The thread is about to wake others, and counts that at time `at` afterwards.
    pub fn announce_wake(&self, at: u64) {
        self.counted.waits.announce_wake(at);
    }

    /// The announced wake is counted, or no thread was woken.
    pub fn wake_is_over(&self) {
        self.counted.waits.wake_is_over();
    }

    /// Provides the memory for waits for other threads.
    pub fn begin_to_count_waits(&self) {
        self.counted.waits.prepare();
        if let Some(run) = current() {
            run.thread_waits.use_rings();
        }
    }

    /// The thread is at its end; it has closed everything.
    pub fn end(&mut self) {
        for member in self.members.drain(..) {
            teams::leave(member.team);
        }
        self.role.end();
        threads::end(&self.counted);
    }

    /// Returns a sample's share of others' idleness. The thread is sampled at `at`, and was in the sampled
    /// code for `longest` at most. Async-signal-safe, while no state of the thread changes.
    pub fn share(&self, of: SampleOf, (at, longest): (u64, u64), period_ns: u64) -> Option<Idled> {
        let share = self.role.share(self.account, !self.members.is_empty(), of, (at, longest), period_ns);
        share.filter(|_| !self.is_paused)
    }
}
