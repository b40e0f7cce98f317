//! Barriers, taskwaits, taskgroups.

use core::ffi::{c_int, c_void};

use taskscope_event::models::omp;
use taskscope_event::models::samples::state;
use taskscope_event::models::wait::{self, kind};

use crate::abi::{Data, endpoint, sync};
use crate::fast_path::fast_callbacks;
use crate::frames::{Open, Phase};
use crate::payload::two;
use crate::sections::{self, SectionCodes};
use crate::sink::Sink;
use crate::thread::{Kind, Moment, record};

/// `ompt_callback_sync_region`: only for the scope of a taskgroup, which includes user code. All
/// other kinds come at the same instant as their wait.
pub unsafe extern "C" fn sync_region(
    kind: c_int,
    scope: c_int,
    _parallel: *mut Data,
    _task: *mut Data,
    codeptr: *const c_void,
) {
    if kind != sync::TASKGROUP {
        return;
    }
    record(|moment| {
        if scope == endpoint::BEGIN {
            let site = moment.site(codeptr);
            moment.open_with(Open::Taskgroup, site, |moment| {
                moment.recorder.own_begin(moment.at, omp::TASKGROUP_BEGIN, site.to_le_bytes(), 0);
            });
        } else {
            moment.close_in_context(|open| open == Open::Taskgroup);
        }
    });
}

/// `ompt_callback_sync_region_wait`.
pub unsafe extern "C" fn sync_region_wait<S: Sink>(
    kind: c_int,
    scope: c_int,
    parallel: *mut Data,
    task: *mut Data,
    codeptr: *const c_void,
) {
    // SAFETY: the runtime's own arguments.
    unsafe {
        match (kind, scope) {
            (sync::TASKWAIT, endpoint::BEGIN) if S::COUNTS => {
                taskwait_begins::<S>(kind, scope, parallel, task, codeptr);
            }
            (sync::TASKWAIT, endpoint::END) if S::COUNTS => {
                taskwait_ends::<S>(kind, scope, parallel, task, codeptr);
            }
            (sync::BARRIER_IMPLICIT_PARALLEL, _) if S::COUNTS => join(scope, codeptr),
            _ => wait_slowly(kind, scope, parallel, task, codeptr),
        }
    }
}

fast_callbacks! {
    fn taskwait_begins<S>(kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, codeptr: *const c_void)
        = |recorder, thread| S::begin_taskwait(recorder, thread, codeptr as u64), wait_slowly;
    fn taskwait_ends<S>(kind: c_int, scope: c_int, parallel: *mut Data, task: *mut Data, codeptr: *const c_void)
        = |recorder, thread| S::end_taskwait(recorder, thread), wait_slowly;
}

/// The slow path of [`sync_region_wait`].
#[inline(never)]
unsafe extern "C" fn wait_slowly(
    kind: c_int,
    scope: c_int,
    _parallel: *mut Data,
    _task: *mut Data,
    codeptr: *const c_void,
) {
    record(move |moment| {
        let begins = scope == endpoint::BEGIN;
        if moment.thread.kind == Kind::Helper && moment.thread.frames.is_empty() {
            // The runtime's own threads wait here for target tasks (LLVM 16).
            return;
        }
        match kind {
            sync::REDUCTION => {}
            sync::BARRIER_IMPLICIT_PARALLEL | sync::BARRIER_TEAMS if begins => {
                moment.begin_join(kind == sync::BARRIER_TEAMS, codeptr);
            }
            sync::BARRIER_IMPLICIT_PARALLEL | sync::BARRIER_TEAMS => moment.end_join(),
            sync::BARRIER_IMPLICIT if begins && moment.is_at_regions_end(codeptr) => {
                moment.begin_join(false, codeptr);
            }
            sync::BARRIER_IMPLICIT if !begins && moment.is_joining() => moment.end_join(),
            sync::TASKWAIT if begins => {
                let site = moment.wait_site(codeptr);
                moment.record_call_path(site, codeptr);
                moment.begin_wait(kind::TASKWAIT, sections::TASKWAIT, state::TASKWAIT, site);
            }
            sync::TASKWAIT => moment.close_section(sections::TASKWAIT),
            sync::TASKGROUP if begins => {
                let site = moment.wait_site(codeptr);
                moment.record_call_path(site, codeptr);
                moment.begin_wait(kind::TASKGROUP, sections::TASKGROUP, state::TASKGROUP, site);
            }
            sync::TASKGROUP => moment.close_section(sections::TASKGROUP),
            _ if begins => moment.begin_barrier(kind, codeptr),
            _ => moment.close_section(sections::BARRIER),
        }
    });
}

/// [`sync_region_wait`] of the barrier at a region's end.
fn join(scope: c_int, codeptr: *const c_void) {
    record(|moment| match scope {
        endpoint::BEGIN => moment.begin_join(false, codeptr),
        _ => moment.end_join(),
    });
}

impl Moment<'_> {
    /// Records the site of this thread's wait of this kind, unless it is recorded already.
    #[inline(always)]
    pub fn record_wait_site(&mut self, kind: u32, site: u32) {
        let Some(last) = self.thread.wait_sites.get_mut(kind as usize) else { return };
        if *last != site {
            *last = site;
            self.recorder.own_point(self.at, wait::WAIT_SITE, two(kind, site));
        }
    }

    /// The site of a call that waits, which is remembered.
    #[inline(always)]
    fn wait_site(&mut self, codeptr: *const c_void) -> u32 {
        self.thread.wait_return = codeptr as u64;
        self.site(codeptr)
    }

    #[inline(always)]
    fn begin_wait(&mut self, kind: u32, codes: SectionCodes, state: u32, site: u32) {
        self.record_wait_site(kind, site);
        self.open(Open::Section { codes, state }, site);
    }

    fn begin_barrier(&mut self, sync_kind: c_int, codeptr: *const c_void) {
        if !self.thread.frames.in_task() {
            // No construct inside an implicit task can enclose a barrier: open entries lack their end events.
            self.close_to_context();
        }
        self.thread.wait_return = codeptr as u64;
        let mut site = self.known_site(codeptr);
        self.record_call_path(site, codeptr);
        if site == 0 && sync_kind != sync::BARRIER_EXPLICIT {
            site = self.thread.last_work_site;
        }
        if site == 0 {
            site = self.thread.frames.nearest_site();
        }
        let state = match sync_kind {
            sync::BARRIER_EXPLICIT => state::BARRIER_EXPLICIT,
            sync::BARRIER_IMPLICIT | sync::BARRIER_IMPLICIT_WORKSHARE => state::BARRIER_WORKSHARE,
            _ => state::BARRIER_IMPLEMENTATION,
        };
        self.begin_wait(kind::BARRIER, sections::BARRIER, state, site);
    }

    /// The barrier at a region's end: the implicit task's user code is over.
    fn begin_join(&mut self, league: bool, codeptr: *const c_void) {
        if !self
            .thread
            .frames
            .innermost_context()
            .is_some_and(|frame| matches!(frame.open, Open::Member { .. }))
        {
            return;
        }
        self.close_to_context();
        // The return address need not be the region's site, and a worker has none.
        self.thread.wait_return = codeptr as u64;
        let site = self.site(core::ptr::null());
        self.record_wait_site(kind::JOIN_BARRIER, site);
        self.set_phase(Phase::Joining { league });
    }

    /// Whether an implicit barrier of unspecified kind is the one at the region's end. Barriers inside a
    /// region return to the region's code. The one at the end returns to the fork's return address on the
    /// forking thread, and has no return address on workers.
    fn is_at_regions_end(&self, codeptr: *const c_void) -> bool {
        let Some(&Open::Member { region, .. }) =
            self.thread.frames.innermost_context().map(|frame| &frame.open)
        else {
            return false;
        };
        let fork = self.thread.forks.iter().rev().find(|fork| fork.0 == region);
        codeptr as u64 == fork.map_or(0, |fork| fork.1)
    }

    fn is_joining(&self) -> bool {
        let joining = |open| matches!(open, Open::Member { phase: Phase::Joining { .. }, .. });
        self.thread.frames.innermost_context().is_some_and(|frame| joining(frame.open))
    }

    fn end_join(&mut self) {
        if self.is_joining() {
            self.close_to_context();
            self.set_phase(Phase::Joined);
        }
    }
}
