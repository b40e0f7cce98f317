//! Threads, parallel regions, implicit tasks.

use core::ffi::{c_int, c_uint, c_void};

use taskscope_event::models::omp;
use taskscope_record::{enter, thread as recorder};

use crate::abi::{Data, OmptFrame, endpoint, parallel_flag, status, task_flag};
use crate::frames::{Open, Phase};
use crate::sampler::runtime_code;
use crate::sampler::{self, stack_pointer_here};
use crate::task_stacks::levels;
use crate::task_stacks::paths::Creating;
use crate::tasks;
use crate::thread::{Fork, Kind, Moment, OTHER_THREAD, Thread, attach, record, record_after};
use crate::tool_data::{HELPERS, LEAGUE, TEAMS_BODY, ToolData};
use crate::worker_count;

/// `ompt_callback_thread_begin`.
pub unsafe extern "C" fn thread_begin(thread_type: c_int, _thread: *mut Data) {
    attach(thread_type as u32);
}

/// `ompt_callback_thread_end`.
pub unsafe extern "C" fn thread_end(_thread: *mut Data) {
    // SAFETY: no preconditions.
    let is_main = enter().is_some_and(|recorder| recorder.os_tid() == unsafe { libc::getpid() });
    if is_main {
        // The runtime may come back on this thread, after a pause or when it is loaded again.
        record(|moment| moment.close_all());
    } else {
        recorder::detach();
    }
}

/// `ompt_callback_parallel_begin`.
pub unsafe extern "C" fn parallel_begin(
    task: *mut Data,
    frame: *const OmptFrame,
    parallel: *mut Data,
    requested: c_uint,
    flags: c_int,
    codeptr: *const c_void,
) {
    let sp = stack_pointer_here();
    record(|moment| {
        let is_outermost = moment.thread.frames.is_empty();
        moment.forget_unloaded(is_outermost);
        // A region that the runtime forks outside of all others: a team of its own, which LLVM creates for
        // `target nowait`. Its threads are not workers of the program.
        if moment.thread.frames.is_empty()
            && flags as u32 & parallel_flag::TEAM != 0
            && runtime_code::is_in_runtime(codeptr)
        {
            ToolData::new(0, 0, HELPERS).store(parallel);
            return;
        }
        // In a profile the place of the site holds the team.
        let site = match moment.thread.profile.as_deref_mut() {
            Some(follower) => follower.own_teams.begin(requested, moment.at),
            None => moment.site_of_region(codeptr),
        };
        let region = moment.thread.regions.take();
        let is_body = codeptr.is_null() && ToolData::load(task).has(LEAGUE);
        let teams_flags = match flags as u32 & parallel_flag::LEAGUE {
            0 if is_body => TEAMS_BODY,
            0 => 0,
            _ => LEAGUE,
        };
        ToolData::new(region, site, teams_flags).store(parallel);
        moment.thread.remember_fork(region, codeptr);
        moment.thread.requested = requested;
        let flags = flags as u32 | if is_body { omp::RUNTIMES_OWN } else { 0 };
        if sampler::is_active() {
            // SAFETY: the runtime passes the frame of the task that forks.
            let exit = unsafe { tasks::exit_of(frame, moment.thread) };
            let creating = Creating { codeptr: codeptr as u64, exit, sp, creator: moment.context() };
            let context = moment.begin_sampled_region(region, creating, is_body);
            moment.follow_region(site, context);
        }
        if moment.thread.profile.is_some() {
            return moment.open(Open::Region { region }, site);
        }
        moment.open_fork(None, 0);
        moment.thread.fork = Some(Fork { region, requested, site, flags, at: moment.at });
    });
}

/// `ompt_callback_parallel_end`. Which region ends is known from the stack: preloaded under gcc's
/// `teams`, the runtime names another one.
pub unsafe extern "C" fn parallel_end(
    _parallel: *mut Data,
    task: *mut Data,
    _flags: c_int,
    codeptr: *const c_void,
) {
    record(|moment| {
        moment.open_fork(None, 0);
        if moment.uncover(status::SWITCH as u32, |open| matches!(open, Open::Region { .. })) {
            moment.thread.forget_fork();
            let team = moment.thread.frames.top().map_or(0, |frame| frame.site);
            moment.follow_region_end(team);
            if sampler::is_active() {
                let is_body = codeptr.is_null() && ToolData::load(task).has(LEAGUE);
                moment.end_sampled_region(task, codeptr, is_body);
            }
            moment.close_top(None);
            if ToolData::load(task).has(LEAGUE) {
                moment.restore_body_of_teams(ToolData::load(task).id());
            }
            moment.follow_joined();
            if let Some(follower) = moment.thread.profile.as_deref_mut() {
                follower.own_teams.keep(team);
            }
        }
    });
}

/// `ompt_callback_implicit_task`.
pub unsafe extern "C" fn implicit_task(
    scope: c_int,
    parallel: *mut Data,
    task: *mut Data,
    team: c_uint,
    index: c_uint,
    flags: c_int,
) {
    if scope != endpoint::BEGIN && enter().is_none() {
        // LLVM's runtime reports a thread's initial task after the thread's end. No other end lacks a begin.
        return;
    }
    record_after(|moment, before| {
        if scope == endpoint::BEGIN {
            moment.forget_unloaded(false);
            moment.open_fork(Some(parallel), before);
            let forked = match moment.thread.frames.top() {
                Some(frame) => match frame.open {
                    Open::Region { region } => Some(ToolData::new(region, frame.site, 0)),
                    _ => None,
                },
                None => None,
            };
            let data = forked.unwrap_or_else(|| {
                // A member that did not fork the team comes from its pool without open entries.
                moment.close_all();
                let data = ToolData::load(parallel);
                match moment.site_of_team(parallel, None) {
                    Some(site) => ToolData::new(data.id(), site, data.flags()),
                    None => data,
                }
            });
            if data.has(HELPERS) {
                moment.become_helper();
            }
            // LLVM's runtime names no region for the member of a league of one.
            let teams_flags = match flags as u32 & task_flag::INITIAL != 0 && data.id() != 0 {
                true => LEAGUE,
                false => ToolData::load(parallel).flags() & (LEAGUE | TEAMS_BODY),
            };
            ToolData::new(data.id(), data.site(), teams_flags).store(task);
            if data.id() != 0 {
                moment.begin_member(data, index, team);
                if forked.is_some() && team < moment.thread.requested && teams_flags == 0 {
                    moment.record_team_limits(data.id(), data.site());
                }
            }
        } else {
            // An initial task outside any league has the data 0, and no member has.
            let region = ToolData::load(task).id();
            forget_copy(task, index);
            let is_it = |open| matches!(open, Open::Member { region: known, .. } if known == region);
            if moment.uncover(status::SWITCH as u32, is_it) {
                moment.close_top(None);
            }
        }
    });
}

/// Clears the copied data of a worker's implicit task. At the end, LLVM's runtime passes a copy that is
/// stored in the thread and reused for the worker's next `taskwait depend`. If a tool has left a value in it,
/// the runtime aborts the program (`taskwait_task_data->ptr == NULL`). Data of primary threads (`index` 0) is
/// not a copy, and may belong to another team by now.
pub fn forget_copy(task: *mut Data, index: c_uint) {
    if index != 0 {
        ToolData(0).store(task);
    }
}

impl Thread {
    fn remember_fork(&mut self, region: u32, codeptr: *const c_void) {
        if self.frames.is_empty() {
            // Some may have ended without a report.
            self.forks.clear();
        }
        if self.forks.try_reserve(1).is_ok() {
            self.forks.push((region, codeptr as u64));
        }
    }

    /// The region that is the innermost entry ends.
    fn forget_fork(&mut self) {
        let region = self.frames.top_region();
        if let Some(index) = self.forks.iter().rposition(|fork| Some(fork.0) == region) {
            self.forks.truncate(index);
        }
    }
}

impl Moment<'_> {
    /// A kernel that ends with its region, run by the host, returns to the library that started it: the region is at its
    /// target construct.
    fn site_of_region(&mut self, codeptr: *const c_void) -> u32 {
        match self.thread.frames.top().map(|frame| frame.open) {
            Some(Open::Device(_)) if runtime_code::is_of_kernels(codeptr) => {
                self.thread.frames.nearest_site()
            }
            _ => self.site(codeptr),
        }
    }

    /// Opens the region that this thread has forked, if it is not open yet: as it joins `team`, or later. It began in the
    /// callback `before`, unless that was another one.
    fn open_fork(&mut self, team: Option<*mut Data>, before: u64) {
        let Some(Fork { region, requested, site, flags, at }) = self.thread.fork.take() else { return };
        let codeptr = self.thread.forks.last().map_or(0, |fork| fork.1);
        let site = match team.and_then(|team| self.site_of_team(team, Some(codeptr))) {
            Some(site) => site,
            None if team.is_some() && flags & (parallel_flag::LEAGUE | omp::RUNTIMES_OWN) == 0 => {
                self.site_of_unknown_body(codeptr as *const c_void, site)
            }
            None => site,
        };
        let mut payload = [0; 16];
        for (part, value) in payload.chunks_exact_mut(4).zip([region, requested, site, flags]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        // The site's dictionary event comes first, whichever thread has written it. Otherwise the region
        // begins at the fork: members that join it before this thread returns from there would precede it.
        let begun = if before == at && self.thread.explained <= at { at } else { self.at };
        let after = core::mem::replace(&mut self.at, begun);
        self.open_with(Open::Region { region }, site, |moment| {
            moment.recorder.own_begin(moment.at, omp::REGION_BEGIN, payload, 4);
        });
        self.at = after;
    }

    /// Returns the site of a region with an unknown body; `site` is the site of the return address or of the
    /// enclosing construct.
    fn site_of_unknown_body(&mut self, codeptr: *const c_void, site: u32) -> u32 {
        let is_in_device = matches!(self.thread.frames.top().map(|frame| frame.open), Some(Open::Device(_)));
        if is_in_device || !runtime_code::is_in_runtime(codeptr) {
            return site;
        }
        match self.site_of_last_call() {
            0 => site,
            own => own,
        }
    }

    /// Restores the task data of a `teams` body. In gcc's programs under LLVM's runtime, a region of one
    /// thread in `teams` has the task of that body.
    fn restore_body_of_teams(&mut self, league: u32) {
        let Some(body) = self.thread.frames.innermost_context() else { return };
        if let Open::Member { region, .. } = body.open
            && region != league
        {
            ToolData::new(region, body.site, TEAMS_BODY).store(levels::current_task());
        }
    }

    fn become_helper(&mut self) {
        if self.thread.kind != Kind::Helper {
            if matches!(self.thread.kind, Kind::Initial | Kind::Worker) {
                worker_count::count(false);
            }
            self.thread.kind = Kind::Helper;
            self.follow_kind();
            self.recorder.own_point(self.at, omp::THREAD_TYPE, OTHER_THREAD.to_le_bytes());
        }
    }

    fn begin_member(&mut self, data: ToolData, index: u32, team: u32) {
        let region = data.id();
        self.thread.last_work_site = 0;
        self.follow_works();
        self.follow_member(region, data.site(), index, team);
        let mut payload = [0; 12];
        for (part, value) in payload.chunks_exact_mut(4).zip([region, index, team]) {
            part.copy_from_slice(&value.to_le_bytes());
        }
        self.open_with(Open::Member { region, phase: Phase::Running }, data.site(), |moment| {
            moment.recorder.own_begin(moment.at, omp::IMPLICIT_BEGIN, payload, 4);
        });
    }
}
