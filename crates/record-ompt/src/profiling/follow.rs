//! Follows a thread from what it opens and closes: its account, its waits, the teams that it is in.

use std::sync::Arc;

use taskscope_event::models::samples::state;
use taskscope_profile::Marker;

use super::account::Cause;
use super::locks::{Held, marker};
use super::recent::Recent;
use super::run::{self, Counted};
use super::teams::{self, JOIN};
use super::waits::{InTeam, SHORTEST_NS, Settled, Wait};
use crate::abi::work;
use crate::frames::{Open, Phase};
use crate::mutexes::wait_state;
use crate::sampling::levels;
use crate::thread::{Kind, Moment, Thread};

/// What a profiled thread knows of itself.
pub struct Follower {
    /// What it counts.
    pub counted: Arc<Counted>,
    /// Locks that it holds or wants.
    held: Held,
    /// Waits that it is in, innermost last.
    waits: Vec<Wait>,
    /// Teams that it is a member of, innermost last.
    members: Vec<Membership>,
}

struct Membership {
    team: u32,
    index: u32,
    /// Barriers that it has come to.
    barriers: u32,
}

impl Follower {
    /// Of the calling thread, which begins.
    pub fn begin() -> Box<Follower> {
        Box::new(Follower {
            counted: run::begin_thread(),
            held: Held::default(),
            waits: Vec::new(),
            members: Vec::new(),
        })
    }

    /// The thread is at its end; it has closed everything.
    pub fn end(&mut self) {
        for member in self.members.drain(..) {
            teams::leave(member.team);
        }
        run::end_thread(&self.counted);
    }
}

impl Thread {
    /// What the thread spends its time in, as a trace's ledger would have it.
    fn cause(&self) -> Cause {
        for frame in self.frames.inwards_out() {
            return match frame.open {
                Open::Task { .. } => Cause::Task,
                Open::Work { kind: work::TASKLOOP, .. } => Cause::TaskCreation,
                Open::Work { .. } => Cause::Worksharing,
                Open::Masked => Cause::Masked,
                Open::Call { .. } => Cause::Communication,
                Open::Region { .. } => Cause::ForkJoin,
                Open::Member { phase: Phase::Running, .. } => Cause::ImplicitTask,
                Open::Member { phase: Phase::Joining { .. }, .. } => Cause::JoinBarrier,
                Open::Section { state: state::WORK_PARALLEL, .. }
                | Open::Member { phase: Phase::Joined, .. }
                | Open::Taskgroup
                | Open::Reduction
                | Open::Device(_) => continue,
                Open::Section { state, .. } => match marker(state) {
                    Marker::Barrier | Marker::JoinBarrier => Cause::Barrier,
                    Marker::Taskwait => Cause::Taskwait,
                    Marker::TaskwaitDepend => Cause::TaskwaitDepend,
                    Marker::Taskgroup => Cause::Taskgroup,
                    Marker::Critical => Cause::CriticalWait,
                    Marker::Lock | Marker::NestLock => Cause::LockWait,
                    Marker::Ordered => Cause::OrderedWait,
                    Marker::Atomic => Cause::AtomicWait,
                    _ => continue,
                },
            };
        }
        if matches!(self.kind, Kind::Worker | Kind::Helper) { Cause::Idle } else { Cause::Serial }
    }
}

impl Moment<'_> {
    /// Says what kind of thread it is.
    pub fn follow_kind(&mut self) {
        let is_worker = matches!(self.thread.kind, Kind::Initial | Kind::Worker);
        let cause = self.thread.cause();
        if let Some(follower) = &self.thread.profile {
            follower.counted.account.set_worker(is_worker);
            follower.counted.account.switch(cause, self.at);
        }
    }

    /// Something was opened; so much was open before.
    #[inline]
    pub fn follow_open(&mut self, open: Open, depth: usize) {
        let at = self.at;
        let context = if let Open::Task { id } = open { id } else { self.thread.context() };
        let cause = match open {
            Open::Task { .. } => Cause::Task,
            _ => self.thread.cause(),
        };
        let codeptr = self.thread.wait_return;
        let Some(follower) = &mut self.thread.profile else { return };
        follower.count_body(at);
        let account = follower.counted.account;
        account.switch(cause, at);
        if let Some(wait) = follower.waits.last_mut().filter(|wait| wait.depth == depth) {
            wait.pause(at, run::current(), account);
        }
        match open {
            Open::Task { .. } => {
                account.runs(context);
            }
            Open::Section { state, .. } if state != state::WORK_PARALLEL => {
                let kind = marker(state);
                if !is_lock(kind) {
                    self.begin_followed_wait(kind, depth + 1, (context, codeptr));
                }
            }
            _ => {}
        }
    }

    /// This was closed, and so much is open still.
    #[inline]
    pub fn follow_close(&mut self, closed: Open, depth: usize) {
        let at = self.at;
        let ended = match closed {
            Open::Member { .. } => self.member_ends(depth),
            _ => None,
        };
        let cause = self.thread.cause();
        let Some(follower) = &mut self.thread.profile else { return };
        follower.count_body(at);
        let account = follower.counted.account;
        match ended {
            Some(over) => account.switch_with_cut(over, Cause::Idle, cause, at),
            None => account.switch(cause, at),
        }
        if let Open::Task { id } = closed {
            account.ran(id, at);
            let outer = self.thread.context_of_task();
            if let Some(follower) = &self.thread.profile {
                follower.counted.account.runs(outer);
            }
        }
        let Some(follower) = &mut self.thread.profile else { return };
        match follower.waits.last_mut() {
            Some(wait) if wait.depth > depth => self.end_followed_wait(at),
            Some(wait) if wait.depth == depth && wait.since.is_none() => wait.since = Some(at),
            _ => {}
        }
    }

    /// The implicit task that is innermost has come to another phase.
    pub fn follow_phase(&mut self, phase: Phase, depth: usize) {
        let at = self.at;
        let over = self.over_since();
        let context = self.thread.context();
        let cause = self.thread.cause();
        let codeptr = self.thread.wait_return;
        let Some(follower) = &mut self.thread.profile else { return };
        let account = follower.counted.account;
        match over.filter(|_| phase == Phase::Joined) {
            Some(over) => account.switch_with_cut(over, Cause::Idle, cause, at),
            None => account.switch(cause, at),
        }
        match phase {
            Phase::Joining { .. } => {
                account.joins(follower.members.last().map_or(0, |member| member.team));
                self.begin_followed_wait(Marker::JoinBarrier, depth, (context, codeptr));
            }
            Phase::Joined => self.end_followed_wait(over.unwrap_or(at)),
            Phase::Running => {}
        }
    }

    /// The thread becomes a member of a team.
    pub fn follow_member(&mut self, team: u32, index: u32, size: u32) {
        self.clear_recent();
        if let Some(follower) = &mut self.thread.profile {
            if let Some(team) = teams::team(team) {
                team.set_size(size);
            }
            teams::hold(team);
            follower.members.push(Membership { team, index, barriers: 0 });
        }
    }

    /// Since when the region of the innermost team is over.
    fn over_since(&self) -> Option<u64> {
        teams::over_since(self.thread.profile.as_ref()?.members.last()?.team)
    }

    fn member_ends(&mut self, depth: usize) -> Option<u64> {
        let (over, at) = (self.over_since(), self.at);
        let follower = self.thread.profile.as_mut()?;
        let waits = follower.waits.last().is_some_and(|wait| wait.depth > depth);
        if waits {
            self.end_followed_wait(over.unwrap_or(at));
        }
        let follower = self.thread.profile.as_mut()?;
        follower.counted.account.joins(0);
        if let Some(member) = follower.members.pop() {
            teams::leave(member.team);
        }
        over.filter(|_| waits)
    }

    fn begin_followed_wait(&mut self, kind: Marker, depth: usize, place: (u32, u64)) {
        let at = self.at;
        if self.thread.is_paused {
            return;
        }
        let mut wait = Wait::new(kind, depth, at, place);
        if matches!(kind, Marker::Barrier | Marker::JoinBarrier) {
            wait.barrier = self.arrive(kind == Marker::JoinBarrier, place);
        }
        if let Some(follower) = &mut self.thread.profile {
            follower.waits.push(wait);
        }
    }

    /// Tells the team that this thread has come to a barrier.
    fn arrive(&mut self, joins: bool, (context, codeptr): (u32, u64)) -> Option<InTeam> {
        let (number, index, count) = {
            let member = self.thread.profile.as_mut()?.members.last_mut()?;
            let count = member.barriers;
            member.barriers += u32::from(!joins);
            (member.team, member.index, count)
        };
        let team = teams::team(number)?;
        let (record, round) = if joins { (JOIN, 0) } else { (count as usize % 2, count / 2) };
        let has_samples = self.recent().is_some_and(|recent| !recent.is_empty());
        // The path is needed only where there are no samples.
        let path = if has_samples || joins || codeptr == 0 {
            0
        } else {
            self.path_here(codeptr as *const core::ffi::c_void, levels::current_exit())
        };
        let recent = self.recent();
        team.arrive(record, index, self.at, |arrival| {
            (arrival.context, arrival.path) = (context, path);
            match recent {
                Some(recent) => arrival.work.copy(recent),
                None => arrival.work.clear(),
            }
        });
        Some(InTeam { team: number, record, round })
    }

    /// What the handler has met since the last synchronisation. The handler leaves it alone while a
    /// callback runs.
    fn recent(&self) -> Option<&Recent> {
        Some(self.thread.sampler.as_ref()?.recent())
    }

    fn clear_recent(&mut self) {
        if let Some(sampler) = &mut self.thread.sampler {
            sampler.recent_mut().clear();
        }
    }

    /// The innermost wait is over.
    fn end_followed_wait(&mut self, at: u64) {
        let Some(follower) = &mut self.thread.profile else { return };
        let account = follower.counted.account;
        let Some(mut wait) = follower.waits.pop() else { return };
        wait.pause(at, run::current(), account);
        let is_barrier = wait.barrier.is_some();
        let (kind, context, taken) = (wait.kind, wait.context, wait.taken);
        if taken < SHORTEST_NS && !wait.has_blame() {
            follower.counted.counts.count(|counts| counts.waited_shortly(kind, context, wait.codeptr, taken));
        } else {
            let path = if wait.codeptr == 0 || kind == Marker::JoinBarrier {
                0
            } else {
                self.path_here(wait.codeptr as *const core::ffi::c_void, levels::current_exit())
            };
            if let Some(follower) = &self.thread.profile {
                let settled = wait.settle();
                follower.counted.counts.count(|counts| counts.waited(kind, (context, path), taken, &settled));
            }
        }
        if is_barrier {
            self.clear_recent();
        }
    }

    /// Recording is paused, or goes on: nothing of what is open is charged beyond that.
    pub fn follow_pause(&mut self, paused: bool) {
        let cause = if paused { Cause::Unknown } else { self.thread.cause() };
        let at = self.at;
        if let Some(follower) = &mut self.thread.profile {
            follower.counted.account.switch(cause, at);
            follower.waits.clear();
        }
    }

    /// A task or region is created by `path` in the context `creator`.
    pub fn count_creation(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        let Some(follower) = &self.thread.profile else { return 0 };
        follower.counted.counts.count(|counts| counts.created(creator, path, is_task))
    }

    /// The thread wants a lock.
    pub fn follow_acquire(&mut self, object: u64) {
        let at = self.at;
        if let Some(follower) = &mut self.thread.profile {
            follower.held.acquire(object, at);
        }
    }

    /// It has it.
    pub fn follow_acquired(&mut self, mutex_kind: i32, object: u64, codeptr: *const core::ffi::c_void) {
        let (context, at) = (self.thread.context(), self.at);
        let kind = marker(wait_state(mutex_kind));
        let Some(follower) = &mut self.thread.profile else { return };
        let (waited, blame) = follower.held.acquired(object, kind, at);
        if waited < SHORTEST_NS {
            return follower.counted.counts.count(|counts| {
                counts.took(context);
                if waited > 0 {
                    counts.waited_shortly(kind, context, codeptr as u64, waited);
                }
                // What a holder that the lock remembers no more was charged with before.
                counts.blame(kind, &blame);
            });
        }
        let path = self.path_here(codeptr, levels::current_exit());
        if let Some(follower) = &self.thread.profile {
            let settled = Settled { nobody: 0, blame: &blame, for_work: None };
            follower.counted.counts.count(|counts| {
                counts.took(context);
                counts.waited(kind, (context, path), waited, &settled);
            });
        }
    }

    /// It has given it back.
    pub fn follow_released(&mut self, mutex_kind: i32, object: u64, codeptr: *const core::ffi::c_void) {
        let context = self.thread.context();
        let Some(mut follower) = self.thread.profile.take() else { return };
        let place = || (context, self.path_here(codeptr, levels::current_exit()));
        if let Some(blame) = follower.held.released(object, place) {
            let kind = marker(wait_state(mutex_kind));
            follower.counted.counts.count(|counts| counts.blame(kind, &[blame]));
        }
        self.thread.profile = Some(follower);
    }

    /// The region of the team that this thread has forked is over.
    pub fn follow_region_end(&mut self, team: u32) {
        if self.thread.profile.is_some()
            && let Some(team) = teams::team(team)
        {
            team.end(self.at);
        }
    }
}

impl Follower {
    /// What runs until now, if it is a task's body, is counted at the task.
    #[inline(always)]
    fn count_body(&mut self, at: u64) {
        let account = self.counted.account;
        if let Some(since) = account.in_task_since() {
            let context = account.tasks().0;
            self.counted.counts.count(|counts| counts.ran(context, at.saturating_sub(since)));
        }
    }
}

fn is_lock(kind: Marker) -> bool {
    use Marker::*;
    matches!(kind, Lock | NestLock | Critical | Ordered | Atomic)
}
