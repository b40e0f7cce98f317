//! What a profile keeps per thread.

use std::sync::Arc;

use super::account::Account;
use super::idleness::{Idled, Role, SampleOf};
use super::locks::Held;
use super::recent::Recent;
use super::run::Counted;
use super::waits::Waits;
use super::{teams, threads};

/// What a profiled thread knows of itself. What small tasks ask for in each callback comes first.
#[repr(C, align(64))]
pub struct Follower {
    /// What it counts.
    pub counted: Arc<Counted>,
    pub(super) account: &'static Account,
    /// Waits that it is in.
    pub(super) waits: Waits,
    /// Locks that it holds.
    pub(super) held: Held,
    /// Teams that it is a member of, innermost last.
    pub(super) members: Vec<Membership>,
    /// Of each of them but the innermost: what the thread was sampled in since it was synchronised with that team.
    pub(super) outer: Vec<Box<Recent>>,
    /// For regions that it forks.
    pub own_teams: teams::Own,
    /// What it is among the workers.
    pub(super) role: Role,
    /// It was a member of a team, or has created tasks outside of any.
    pub(super) has_worked: bool,
    /// Recording is paused: nothing is counted, and all time is of no known cause.
    pub(super) is_paused: bool,
}

pub(super) struct Membership {
    pub(super) region: u32,
    pub(super) team: u32,
    /// Context of its region.
    pub(super) context: u32,
    pub(super) index: u32,
    /// Barriers that it has come to.
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

    /// The context of a region that the thread is in, or waits at whose end; by then it may be over for the
    /// thread that forked it.
    pub fn context_of(&self, region: u32) -> Option<u32> {
        let member = self.members.iter().rev().find(|member| member.region == region)?;
        Some(member.context)
    }

    /// The thread is at its end; it has closed everything.
    pub fn end(&mut self) {
        for member in self.members.drain(..) {
            teams::leave(member.team);
        }
        self.role.end();
        threads::end(&self.counted);
    }

    /// The thread is sampled at `at`, and was in what is sampled for `longest` at most: its part in the idleness of others.
    /// Async-signal-safe, while nothing of the thread changes.
    pub fn share(&self, of: SampleOf, (at, longest): (u64, u64), period_ns: u64) -> Option<Idled> {
        let share = self.role.share(self.account, !self.members.is_empty(), of, (at, longest), period_ns);
        share.filter(|_| !self.is_paused)
    }
}
