//! Follows a thread by its opened and closed constructs: its account, its waits, its teams.

use taskscope_event::models::samples::state;
use taskscope_profile::{Marker, Metric};
use taskscope_record::clock;

use super::account::{Standing, Stretch};
use super::counts::Counts;
use super::follower::{Follower, Membership};
use super::idleness::Charge;
use super::locks::{self, Blame, MIN_WAIT_NS, marker};
use super::recent::Recent;
use super::states::State;
use super::teams::{self, JOIN};
use super::waits::{InTeam, NO_WAIT, Settled, Wait};
use super::workers::{self, Workers};
use super::write::write_unfinished;
use crate::abi::work;
use crate::frames::{Open, Phase};
use crate::mutex_kind::wait_state;
use crate::sampler::settings;
use crate::sections::starts_mpi;
use crate::task_stacks::regions;
use crate::thread::{Kind, Moment, Thread, record};
use crate::thread_sampler::ThreadSampler;

/// State of a thread's time after it has opened this; `None` if the state does not change.
#[inline(always)]
pub fn state_of(open: Open) -> Option<State> {
    Some(match open {
        Open::Task { .. } => State::Task,
        Open::Work { kind, .. } if u32::from(kind) == work::TASKLOOP => State::TaskCreation,
        Open::Work { .. } => State::Worksharing,
        Open::Masked => State::Masked,
        Open::Call { function } if starts_mpi(function) => State::MpiStart,
        Open::Call { .. } => State::Communication,
        Open::Region { .. } => State::ForkJoin,
        Open::Member { phase: Phase::Running, .. } => State::ImplicitTask,
        Open::Member { phase: Phase::Joining { .. }, .. } => State::JoinBarrier,
        Open::Member { phase: Phase::Joined, .. } | Open::Taskgroup | Open::Reduction => return None,
        Open::Device(_) => State::TargetWait,
        Open::Section { state, .. } => match marker(state) {
            Marker::Barrier | Marker::JoinBarrier => State::Barrier,
            Marker::Taskwait => State::Taskwait,
            Marker::TaskwaitDepend => State::TaskwaitDepend,
            Marker::Taskgroup => State::Taskgroup,
            Marker::Critical => State::CriticalWait,
            Marker::Lock | Marker::NestLock => State::LockWait,
            Marker::Ordered => State::OrderedWait,
            Marker::Atomic => State::AtomicWait,
            _ => return None,
        },
    })
}

impl Thread {
    /// State of the thread's time, as in a trace's ledger.
    #[inline(always)]
    fn booked_state(&self) -> State {
        self.frames.top().map_or_else(|| self.state_outside(), |frame| frame.state)
    }

    /// State of the thread's time outside of all constructs.
    pub fn state_outside(&self) -> State {
        if matches!(self.kind, Kind::Worker | Kind::Helper) { State::Idle } else { State::Serial }
    }

    /// Charges others' idleness since the thread's last sample or fork. `fork` is the path of the fork;
    /// `None` at the program's end or a snapshot.
    pub fn charge_idleness(&mut self, at: u64, fork: Option<u32>) {
        let context = self.context();
        let Thread { profile, sampler, .. } = self;
        let Some(Follower { role, account, counted, members, is_paused, .. }) = profile.as_deref_mut() else {
            return;
        };
        if members.is_empty() && !*is_paused {
            let recent = sampler.as_deref().map(ThreadSampler::recent);
            let period_ns = settings().map_or(0, |settings| settings.period_ns);
            let place = (context, fork.unwrap_or(0));
            let mut give = |charge: Charge<'_>| counted.counts.count(|counts| counts.idled(charge));
            role.leaves(account, false, at, (recent, place), period_ns, &mut give);
            // As long as the number of threads makes it.
            let period_ns = sampler.as_deref().map_or(period_ns, |sampler| sampler.period_ns());
            role.charge(account, at, fork.map(|_| place), recent, period_ns, &mut give);
        }
    }

    /// Ends its work in the innermost team: charges others' idleness during it since the last sample.
    fn leave_work_of_team(&self, at: u64) {
        let Some(Follower { role, account, counted, members, is_paused: false, .. }) =
            self.profile.as_deref()
        else {
            return;
        };
        if let Some(member) = members.last() {
            let sampler = self.sampler.as_deref();
            let period_ns = sampler.map_or_else(
                || settings().map_or(0, |settings| settings.period_ns),
                |sampler| sampler.asked_ns(),
            );
            let recent = sampler.map(ThreadSampler::recent);
            role.leaves(account, true, at, (recent, (member.context, 0)), period_ns, |charge| {
                counted.counts.count(|counts| counts.idled(charge));
            });
        }
    }
}

impl Moment<'_> {
    /// Sets the kind of the thread.
    pub fn follow_kind(&mut self) {
        let (kind, state, at) = (self.thread.kind, self.thread.booked_state(), self.at);
        if let Some(follower) = &mut self.thread.profile {
            let standing = match kind {
                Kind::Initial | Kind::Worker if follower.has_worked => Standing::Worker,
                Kind::Initial if self.recorder.os_tid() == std::process::id() as i32 => Standing::Initial,
                _ => Standing::Other,
            };
            follower.account.set_standing(standing);
            // A thread may have run for long before it works.
            let is_worker = standing == Standing::Worker;
            let forks = follower.role.set(follower.account, is_worker, kind == Kind::Initial, at);
            follower.switch(state, at);
            if forks && self.recent().is_some_and(|recent| !recent.is_empty()) {
                // Its samples have not been charged until now.
                self.follow_fork(None);
            }
        }
    }

    /// The thread forks, is a member of a team, creates a task or has a device work: it is a worker, unless it is paused.
    #[inline(always)]
    pub fn follow_works(&mut self) {
        if let Some(follower) = self.thread.profile.as_deref_mut().filter(|follower| !follower.has_worked)
            && !follower.is_paused
        {
            follower.has_worked = true;
            self.follow_kind();
        }
    }

    /// Follows an opened section: its time is of `state`; `depth` sections were open before.
    #[inline(always)]
    pub fn follow_open(&mut self, open: Open, state: State, depth: usize) {
        let (thread, at) = (&mut *self.thread, self.at);
        let place = (thread.context(), thread.wait_return);
        let Some(follower) = thread.profile.as_deref_mut() else { return };
        follower.switch(state, at);
        let is_device = matches!(open, Open::Device(_));
        if follower.waits.depth() == depth {
            if is_device && follower.waits.innermost().is_some_and(|wait| wait.kind == Marker::Target) {
                // Copies and kernels are parts of their construct's wait, which continues in them.
                follower.waits.reach(depth + 1);
                return;
            }
            follower.waits.pause(at, follower.account);
        }
        match open {
            // The runtime's own threads do not wait for anyone's work.
            Open::Device(_) | Open::Section { .. } if thread.kind == Kind::Helper => {}
            Open::Device(_) if !thread.is_paused => {
                follower.waits.begin(Marker::Target, depth + 1, at, place);
            }
            Open::Task { id } => follower.account.runs(id),
            Open::Section { state, .. } if state != state::WORK_PARALLEL => {
                let kind = marker(state);
                if is_lock(kind) || thread.is_paused {
                    return;
                }
                follower.waits.begin(kind, depth + 1, at, place);
                if kind == Marker::Barrier {
                    self.begin_followed_barrier(place);
                }
            }
            _ => {}
        }
    }

    /// Follows a closed section; `depth` sections are still open.
    #[inline(always)]
    pub fn follow_close(&mut self, closed: Open, depth: usize) {
        let (thread, at) = (&mut *self.thread, self.at);
        if let Open::Member { phase, .. } = closed {
            if phase == Phase::Running {
                // No barrier ends it, as in a team of one.
                thread.leave_work_of_team(at);
            }
            return self.follow_member_end(depth);
        }
        let state = thread.booked_state();
        let Some(follower) = thread.profile.as_deref_mut() else { return };
        follower.switch(state, at);
        if let Open::Task { id } = closed {
            follower.account.ran(id, at);
            follower.account.runs(thread.frames.task_on_top());
        }
        let innermost = follower.waits.depth();
        if innermost >= depth {
            if innermost == depth {
                follower.waits.resume(at);
            } else if innermost != NO_WAIT {
                let is_device = |open| matches!(open, Open::Device(_));
                if is_device(closed) && thread.frames.top().is_some_and(|frame| is_device(frame.open)) {
                    follower.waits.reach(depth);
                } else {
                    self.end_followed_wait(at);
                }
            }
        }
    }

    #[inline(never)]
    fn follow_member_end(&mut self, depth: usize) {
        let at = self.at;
        let (over, state) = (self.over_since(), self.thread.booked_state());
        let Some(follower) = &mut self.thread.profile else { return };
        let waits = follower.waits.depth() != NO_WAIT && follower.waits.depth() > depth;
        // First: from now on no other thread may count its waiting time (`open_ends`).
        match over.filter(|_| waits) {
            Some(over) => follower.switch_with_cut(over, state, at),
            None => follower.switch(state, at),
        }
        if waits {
            self.end_followed_wait(over.unwrap_or(at));
        }
        self.leave_team();
        let Some(follower) = &mut self.thread.profile else { return };
        if follower.waits.depth() == depth {
            follower.waits.resume(at);
        }
    }

    /// Begins the wait of the innermost implicit task at the barrier at its region's end.
    pub fn follow_joining(&mut self, depth: usize) {
        let (at, state) = (self.at, self.thread.booked_state());
        self.thread.leave_work_of_team(at);
        let Thread { profile, sampler, is_paused, .. } = &mut *self.thread;
        let Some(follower) = profile.as_deref_mut() else { return };
        // An arriving thread does not read the other members' data.
        follower.switch(state, at);
        let Some(&Membership { team: number, context, index, .. }) = follower.members.last() else { return };
        follower.account.joins(number);
        if *is_paused {
            return;
        }
        // Its place is the region: the body is left, and no call waits.
        follower.waits.begin(Marker::JoinBarrier, depth, at, (context, 0));
        let team = teams::team(number);
        if let Some((team, wait)) = team.zip(follower.waits.innermost()) {
            // The blamed member was in the team's context, so no path is needed.
            team.arrive(JOIN, index, at, |arrival| {
                (arrival.context, arrival.path) = (context, 0);
                arrival.set_work(sampler.as_deref().map(ThreadSampler::recent));
            });
            wait.barrier = Some(InTeam { team: number, record: JOIN as u32, round: 0 });
        }
    }

    /// Ends that wait: the barrier was over when the region ended.
    pub fn follow_behind_join(&mut self) {
        let (at, state, over) = (self.at, self.thread.booked_state(), self.over_since());
        let Some(follower) = &mut self.thread.profile else { return };
        match over {
            Some(over) => follower.switch_with_cut(over, state, at),
            None => follower.switch(state, at),
        }
        self.end_followed_wait(over.unwrap_or(at));
    }

    /// The thread has forked a region of this context for a team.
    #[inline(always)]
    pub fn follow_region(&mut self, team: u32, context: u32) {
        if self.thread.profile.is_some()
            && let Some(team) = teams::team(team)
        {
            team.set_context(context);
        }
    }

    /// The thread becomes a member of a team.
    pub fn follow_member(&mut self, region: u32, team: u32, index: u32, size: u32) {
        self.begin_recent();
        let at = self.at;
        if let Some(follower) = &mut self.thread.profile {
            let context = match teams::team(team) {
                Some(team) => {
                    team.set_size(size);
                    team.hold();
                    team.context()
                }
                None => regions::context(region),
            };
            if follower.members.is_empty() {
                follower.role.enters(follower.account, at);
            }
            follower.members.push(Membership { region, team, context, index, barriers: 0 });
        }
    }

    /// Since when the region of the innermost team is over.
    fn over_since(&self) -> Option<u64> {
        teams::over_since(self.thread.profile.as_ref()?.members.last()?.team)
    }

    fn leave_team(&mut self) {
        let Some(follower) = &mut self.thread.profile else { return };
        follower.account.joins(0);
        if let Some(member) = follower.members.pop() {
            teams::leave(member.team);
        }
        self.end_recent();
    }

    /// Reports to the team that this thread has reached a barrier inside the region.
    #[inline(never)]
    fn begin_followed_barrier(&mut self, (context, codeptr): (u32, u64)) {
        let has_samples = self.recent().is_some_and(|recent| !recent.is_empty());
        // The path is needed only without samples.
        let path = if has_samples || codeptr == 0 {
            0
        } else {
            self.path_here(codeptr as *const core::ffi::c_void, self.thread.exit_here())
        };
        let Thread { profile, sampler, .. } = &mut *self.thread;
        let Some(Follower { members, waits, .. }) = profile.as_deref_mut() else { return };
        let Some(member) = members.last_mut() else { return };
        let (record, round) = (member.barriers as usize % 2, member.barriers / 2);
        member.barriers += 1;
        let team = teams::team(member.team);
        if let Some((team, wait)) = team.zip(waits.innermost()) {
            team.arrive(record, member.index, self.at, |arrival| {
                (arrival.context, arrival.path) = (context, path);
                arrival.set_work(sampler.as_deref().map(ThreadSampler::recent));
            });
            wait.barrier = Some(InTeam { team: member.team, record: record as u32, round });
        }
    }

    /// Use of the thread's time since its last barrier. The handler does not change them during a
    /// callback.
    fn recent(&self) -> Option<&Recent> {
        Some(self.thread.sampler.as_ref()?.recent())
    }

    fn followed_and_sampled(&mut self) -> Option<(&mut Follower, &mut ThreadSampler)> {
        let Thread { profile, sampler, .. } = &mut *self.thread;
        profile.as_deref_mut().zip(sampler.as_deref_mut())
    }

    /// Makes the thread a member of a team, without samples so far.
    fn begin_recent(&mut self) {
        let at = self.at;
        let Some((follower, sampler)) = self.followed_and_sampled() else { return };
        if let Some(depth) = follower.members.len().checked_sub(1) {
            if follower.outer.len() <= depth {
                follower.outer.push(Box::default());
            }
            follower.outer.get_mut(depth).into_iter().for_each(|outer| outer.copy(sampler.recent()));
        }
        sampler.recent_mut().clear(at);
    }

    /// Ends its membership: for the enclosing team, all its time in the team is work.
    fn end_recent(&mut self) {
        let Some((follower, sampler)) = self.followed_and_sampled() else { return };
        let depth = follower.members.len().checked_sub(1);
        if let Some(outer) = depth.and_then(|depth| follower.outer.get_mut(depth)) {
            outer.absorb(sampler.recent());
            sampler.recent_mut().copy(outer);
        }
    }

    /// The thread has been synchronised with its team, but not with those around that.
    fn clear_recent(&mut self) {
        let at = self.at;
        let Some((follower, sampler)) = self.followed_and_sampled() else { return };
        let depth = follower.members.len().checked_sub(2);
        if let Some(outer) = depth.and_then(|depth| follower.outer.get_mut(depth)) {
            outer.absorb(sampler.recent());
        }
        sampler.recent_mut().clear(at);
    }

    /// The innermost wait is over.
    #[inline(always)]
    fn end_followed_wait(&mut self, at: u64) {
        let Some(follower) = self.thread.profile.as_deref_mut() else { return };
        follower.waits.pause(at, follower.account);
        let Some((place, taken, is_barrier)) = follower.waits.end_short() else {
            return self.end_long_wait();
        };
        follower.counted.counts.counting().waited_shortly(place, taken);
        if is_barrier {
            self.clear_recent();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_long_wait(&mut self) {
        let innermost = self.thread.profile.as_mut().and_then(|follower| follower.waits.innermost());
        let Some(Wait { kind, codeptr, barrier, .. }) = innermost.copied() else { return };
        let path = match codeptr {
            0 => 0,
            _ => self.path_here(codeptr as *const core::ffi::c_void, self.thread.exit_here()),
        };
        let for_tasks = matches!(kind, Marker::Taskwait | Marker::Taskgroup | Marker::TaskwaitDepend);
        let at = self.at;
        let Thread { profile, sampler, .. } = &mut *self.thread;
        if let Some(Follower { waits, counted, role, members, .. }) = profile.as_deref_mut() {
            let recent = sampler.as_deref_mut().map(ThreadSampler::recent_mut);
            // Outside of teams, its samples belong to the threads that idle meanwhile.
            let recent = recent.filter(|_| for_tasks && !members.is_empty());
            waits.end(|wait, settled| {
                let place = (wait.context, path);
                // A device works for the construct that waits for it.
                let own = [Blame { place: Some(place), ns: wait.taken }];
                let by_device = Settled { unattributed: 0, blame: &own, for_last: None };
                let settled = if kind == Marker::Target { &by_device } else { settled };
                counted.counts.count(|counts| counts.waited(kind, place, wait.taken, settled));
                if let Some(recent) = recent {
                    // Who waits for this thread waited for these tasks.
                    let rest = Blame { place: None, ns: settled.unattributed };
                    for part in settled.blame.iter().chain([&rest]) {
                        recent.add_awaited(part.place, part.ns, wait.span(at));
                    }
                }
                if kind == Marker::Target
                    && members.is_empty()
                    && let Some(charge) = role.device_worked(wait.taken, at, place)
                {
                    counted.counts.count(|counts| counts.idled(charge));
                }
            });
        }
        if barrier.is_some() {
            self.clear_recent();
        }
    }

    /// Pauses or resumes recording. Waiting up to now counts; open waits are not charged further.
    pub fn follow_pause(&mut self, paused: bool) {
        if paused {
            self.follow_fork(None);
        }
        let (before, at) = (self.thread.booked_state(), self.at);
        let over = self.over_since().filter(|_| before == State::JoinBarrier);
        while self.thread.profile.as_ref().is_some_and(|follower| follower.waits.depth() != NO_WAIT) {
            self.end_followed_wait(over.unwrap_or(at));
        }
        self.end_followed_lock_wait();
        let Some(follower) = &mut self.thread.profile else { return };
        follower.role.pause(paused);
        follower.is_paused = false;
        match over.filter(|_| paused) {
            Some(over) => follower.switch_with_cut(over, State::Unknown, at),
            None => follower.switch(if paused { State::Unknown } else { before }, at),
        }
        follower.is_paused = paused;
        if !paused {
            follower.joined(at);
        }
    }

    /// A task or region is created by `path` in the context `creator`.
    pub fn count_creation(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        self.follow_works();
        let Some(Follower { counted, .. }) = self.thread.profile.as_deref() else { return 0 };
        let context = counted.counts.count(|counts| counts.context(creator, path, is_task));
        if self.thread.is_paused {
            // It has a context, in which it may continue after the pause.
        } else if is_task {
            counted.created(context);
        } else {
            counted.begun(context);
        }
        context
    }

    /// A region of this context begins.
    #[inline(always)]
    pub fn count_region(&mut self, context: u32) {
        if let Some(Follower { counted, .. }) =
            self.thread.profile.as_deref().filter(|_| !self.thread.is_paused)
        {
            counted.begun(context);
        }
    }

    /// A task is created that is like the running one. Returns their context.
    pub fn count_another(&mut self) -> u32 {
        self.follow_works();
        let context = self.context();
        if let Some(Follower { counted, .. }) =
            self.thread.profile.as_deref().filter(|_| !self.thread.is_paused)
        {
            counted.created(context);
        }
        context
    }

    /// The thread wants a lock.
    pub fn follow_acquire(&mut self, object: u64) {
        if let Some(follower) = self.thread.profile.as_ref().filter(|follower| !follower.is_paused) {
            follower.account.wants(object, self.at);
        }
    }

    /// Ends the wait with the acquisition.
    pub fn follow_acquired(&mut self, mutex_kind: i32, object: u64, codeptr: *const core::ffi::c_void) {
        let (context, at) = (self.thread.context(), self.at);
        let kind = marker(wait_state(mutex_kind));
        let path = self.path_here(codeptr, self.thread.exit_here());
        let is_counted = self.thread.kind != Kind::Helper;
        let Some(Follower { held, account, counted, is_paused, .. }) = self.thread.profile.as_deref_mut()
        else {
            return;
        };
        let all = workers::current().into_iter().flat_map(Workers::accounts);
        let (waited, blame) = held.acquired((account, all), object, (context, path), at);
        counted.counts.count(|counts| {
            counts.add(context, Metric::ACQUISITIONS, u64::from(!*is_paused));
            if is_counted {
                count_lock_wait(counts, kind, (context, path, codeptr as u64), waited, blame);
            }
        });
    }

    /// Counts its wait for a lock up to now, and ends it.
    fn end_followed_lock_wait(&mut self) {
        let Some(follower) = &self.thread.profile else { return };
        let (waited, blame) = locks::stops_waiting(follower.account, self.at);
        let Some(Open::Section { state, .. }) = self.thread.frames.top().map(|frame| frame.open) else {
            return;
        };
        let (context, codeptr) = (self.thread.context(), self.thread.wait_return);
        if waited > 0 {
            let path = self.path_here(codeptr as *const core::ffi::c_void, self.thread.exit_here());
            let Some(follower) = &self.thread.profile else { return };
            follower.counted.counts.count(|counts| {
                count_lock_wait(counts, marker(state), (context, path, codeptr), waited, &blame);
            });
        }
    }

    /// Counts a nested acquisition.
    pub fn follow_acquired_again(&mut self) {
        if let Some(follower) = &self.thread.profile {
            follower.account.wants_no_more();
        }
    }

    /// Records the release.
    pub fn follow_released(&mut self, object: u64) {
        let at = self.at;
        if let Some(follower) = &mut self.thread.profile {
            follower.held.released(object, at);
        }
    }

    /// The region of the team that this thread has forked is over.
    pub fn follow_region_end(&mut self, team: u32) {
        if self.thread.profile.is_some()
            && let Some(team) = teams::team(team)
        {
            team.end(self.at);
        }
    }

    /// Follows a fork with this path; `None` at the program's end or a snapshot.
    pub fn follow_fork(&mut self, fork: Option<u32>) {
        self.thread.charge_idleness(self.at, fork);
    }

    /// The region that was on top is closed.
    pub fn follow_joined(&mut self) {
        let at = self.at;
        if let Some(follower) =
            self.thread.profile.as_deref_mut().filter(|follower| follower.members.is_empty())
        {
            follower.joined(at);
        }
    }
}

impl Follower {
    fn joined(&mut self, at: u64) {
        let Follower { role, account, counted, .. } = self;
        role.joined(account, at, |charge| counted.counts.count(|counts| counts.idled(charge)));
    }

    /// From `at` on the thread is in `state`; if it was in a task's body, that is counted at the task.
    #[inline(always)]
    fn switch(&self, state: State, at: u64) {
        if self.is_paused {
            return;
        }
        let stretch = self.account.switch(state, at);
        self.count_body(&stretch);
    }

    /// Switches as `switch` does, with the time from `cut` on as idle.
    fn switch_with_cut(&self, cut: u64, state: State, at: u64) {
        if self.is_paused {
            return;
        }
        let stretch = self.account.switch_with_cut(cut, State::Idle, state, at);
        self.count_body(&stretch);
    }

    #[inline(always)]
    fn count_body(&self, stretch: &Stretch) {
        if stretch.is_in_task() {
            let context = self.account.runs_now();
            self.counted.ran(context, stretch.ns);
        }
    }
}

/// A wait for a lock, at a context, a path and a call.
fn count_lock_wait(
    counts: &mut Counts,
    kind: Marker,
    (context, path, codeptr): (u32, u32, u64),
    waited: u64,
    blame: &[Blame],
) {
    if waited >= MIN_WAIT_NS {
        let settled = Settled { unattributed: 0, blame, for_last: None };
        counts.waited(kind, (context, path), waited, &settled);
    } else if waited > 0 {
        counts.waited_shortly((kind, context, codeptr), waited);
    }
}

fn is_lock(kind: Marker) -> bool {
    use Marker::*;
    matches!(kind, Lock | NestLock | Critical | Ordered | Atomic)
}

/// Charges others' idleness since the calling thread's last fork. While it is still recorded.
pub fn charge_so_far() {
    record(|moment| moment.follow_fork(None));
}

/// Writes a snapshot, marked as unfinished.
pub fn write_so_far() {
    charge_so_far();
    write_unfinished();
}

/// Charges others' idleness beside a thread that ends the process.
///
/// # Safety
/// `thread` is null or a [`Thread`] with no other user.
pub unsafe fn charge_leaver(thread: *mut ()) {
    // SAFETY: by contract.
    if let Some(thread) = unsafe { thread.cast::<Thread>().as_mut() } {
        thread.charge_idleness(clock::now(), None);
    }
}
