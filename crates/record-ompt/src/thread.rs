//! One thread's state in the tool, and the common entry of every callback.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use taskscope_event::models::omp;
use taskscope_record::cancellation::Deferred;
use taskscope_record::fork_gate::Allocating;
use taskscope_record::{ThreadRecorder, enter, process, thread as recorder};

use crate::frames::Frames;
use crate::ids::Ids;
use crate::pause;
use crate::profiling::{self, Follower};
use crate::sampler::blocking::{OpenCall, open_call};
use crate::sampler::{self, Bounds, OwnStack};
use crate::site_cache::SiteCache;
use crate::task_stacks::undeferred::Undeferred;
use crate::task_stacks::{levels, paths};
use crate::thread_sampler::ThreadSampler;
use crate::worker_count;

/// The tool's state of one thread. Aligned so that no two threads share a cache line; the fields that small
/// tasks need in each callback come first, in one line.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Thread {
    /// The open constructs.
    pub frames: Frames,
    /// In profile mode, in the place of events.
    pub profile: Option<Box<Follower>>,
    /// Return address of the call that waits for it.
    pub wait_return: u64,
    /// Creation sites of tasks that are not deferred, if samples are taken.
    pub undeferred: Undeferred,
    /// Whether its events are discarded: it has seen that recording is paused.
    pub is_paused: bool,
    /// Ids for tasks created here.
    pub tasks: Ids,
    /// Ids for regions forked here.
    pub regions: Ids,
    /// Sites and types that this thread has met.
    pub cache: SiteCache,
    /// Time of the latest event of any thread that defined a site or type, at this thread's last lookup.
    pub explained: u64,
    /// Site of the worksharing construct that ended last in the current implicit task: the place of
    /// an implicit barrier that has no code pointer.
    pub last_work_site: u32,
    /// The sticky site per kind of wait, as last written.
    pub wait_sites: [u32; WAIT_KINDS],
    /// The sticky wait for a critical, a lock or a turn, as last written: kind, object, site. One for
    /// all kinds, since they share one standard event.
    pub wait_object: (u32, u64, u32),
    /// Whether its stream has begun.
    pub has_begun: bool,
    /// Whether the trace marks the thread as not recorded: during a pause, and until constructs opened in it
    /// have closed.
    pub is_pause_recorded: bool,
    /// The thread's OpenMP kind.
    pub kind: Kind,
    /// Whether the trace contains that kind.
    pub is_announced: bool,
    /// Creation paths that this thread has met.
    pub paths: paths::PathCache,
    /// Bounds of the thread's stack, if samples or paths are taken.
    pub bounds: Bounds,
    /// For paths that have no room on it.
    pub walk_stack: Option<OwnStack>,
    /// The modules that this thread's trace is known to name, as `code_map` counts.
    pub modules_written: u64,
    /// Value of [`modules::unloads`](crate::sampler::modules::unloads) when this thread last dropped its
    /// cached addresses.
    pub unloads: u32,
    /// Samples it, if samples are taken.
    pub sampler: Option<Box<ThreadSampler>>,
    /// The open regions that this thread forked, innermost last, with the return address of each fork.
    pub forks: Vec<(u32, u64)>,
    /// The region that this thread has forked last, until it joins the team.
    pub fork: Option<Fork>,
    /// Team size requested by the region that it forked last.
    pub requested: u32,
    /// Memory for long payloads.
    pub scratch: Vec<u8>,
}

/// A region that this thread has forked, until it joins the team: only then the construct's body is known, and with it the
/// site. Nothing else happens on the thread in between.
#[derive(Clone, Copy, Debug)]
pub struct Fork {
    /// Id of the region.
    pub region: u32,
    /// Requested team size.
    pub requested: u32,
    /// Site of the return address, used if no body is known.
    pub site: u32,
    /// As OMPT reports them.
    pub flags: u32,
    /// When it was forked, nanoseconds.
    pub at: u64,
}

impl Thread {
    /// Address at which the runtime entered the current task's user code; 0 for an initial task, and if it is
    /// unknown. For callbacks in that code. The runtime is queried once while a task is on top.
    pub fn exit_here(&self) -> u64 {
        self.frames.known_exit().unwrap_or_else(|| {
            let exit = levels::exit_of_current(self.frames.task_on_top(), &self.undeferred);
            self.frames.know_exit(exit);
            exit
        })
    }
}

/// OpenMP kind of a thread (`ompt_thread_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No runtime has reported its kind.
    #[default]
    Unknown,
    /// Created by the program, and runs parallel regions.
    Initial,
    /// In the runtime's pool.
    Worker,
    /// The runtime runs it for itself, and target tasks on it.
    Helper,
}

/// One more than the largest kind of wait.
pub const WAIT_KINDS: usize = taskscope_event::models::wait::kind::TARGET as usize + 1;

/// One callback on one thread: its recorder, its state, and the time, which is read once.
pub struct Moment<'a> {
    /// Destination of events.
    pub recorder: &'a mut ThreadRecorder,
    /// The tool's state.
    pub thread: &'a mut Thread,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
}

impl Moment<'_> {
    /// Reads the clock again, after the preceding accesses in program order: used after this thread has seen
    /// another thread's writes.
    pub fn read_clock_again(&mut self) {
        if profiling::is_on() {
            // A profile has no event order, and one time per callback keeps the sums exact.
            return;
        }
        taskscope_record::clock::finish_what_comes_before();
        self.at = self.recorder.now();
    }
}

/// Runs `record` as one callback on this thread. A thread that the runtime never announced is attached first;
/// if that is impossible, `record` does not run.
#[inline(always)]
pub fn record(record: impl FnOnce(&mut Moment<'_>)) {
    record_at(|recorder| recorder.now(), attach_and_enter, record);
}

/// [`record`] for a thread that OpenMP need not know.
#[inline]
pub fn record_outside_openmp(record: impl FnOnce(&mut Moment<'_>)) {
    record_at(|recorder| recorder.now(), attach_outside_openmp_and_enter, record);
}

/// [`record_outside_openmp`] with the time of the event before.
#[inline]
pub fn record_outside_openmp_untimed(record: impl FnOnce(&mut Moment<'_>)) {
    record_at(|recorder| recorder.last_time(), attach_outside_openmp_and_enter, record);
}

fn attach_outside_openmp_and_enter() -> Option<taskscope_record::Recording> {
    attach_outside_openmp();
    enter()
}

/// [`record`] for events without a time of their own: uses the time of the previous callback.
#[inline(always)]
pub fn record_untimed(record: impl FnOnce(&mut Moment<'_>)) {
    record_at(|recorder| recorder.last_time(), attach_and_enter, record);
}

/// [`record`] with the time of the callback before.
#[inline(always)]
pub fn record_after(record: impl FnOnce(&mut Moment<'_>, u64)) {
    let before = Cell::new(0);
    let time = |recorder: &mut ThreadRecorder| {
        before.set(recorder.last_time());
        recorder.now()
    };
    record_at(time, attach_and_enter, |moment| record(moment, before.get()));
}

#[inline(always)]
fn record_at(
    time: impl FnOnce(&mut ThreadRecorder) -> u64,
    attach: impl FnOnce() -> Option<taskscope_record::Recording>,
    record: impl FnOnce(&mut Moment<'_>),
) {
    let Some(mut recording) = enter().or_else(attach) else { return };
    let thread = recording.user().cast::<Thread>();
    if thread.is_null() {
        // This thread is already inside the recorder, and calls an intercepted function.
        return;
    }
    let at = time(&mut recording);
    // SAFETY: `attach` gave the recorder a `Thread` of its own, which lives as long as it; the open
    // recorder keeps this thread the only one in here.
    let moment = &mut Moment { recorder: &mut recording, thread: unsafe { &mut *thread }, at };
    if pause::is_paused() || moment.thread.is_paused {
        return record_beside_switch(moment, record);
    }
    record(moment);
}

/// Runs one callback while recording is paused, or the first one after that.
#[cold]
fn record_beside_switch(moment: &mut Moment<'_>, record: impl FnOnce(&mut Moment<'_>)) {
    moment.follow_switch(pause::is_paused());
    if !moment.thread.is_paused {
        return record(moment);
    }
    moment.recorder.divert();
    record(moment);
    moment.recorder.undivert();
}

impl Moment<'_> {
    /// Writes events that must be in the trace even if recording is paused.
    pub fn write_anyway<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        if !self.thread.is_paused {
            return write(self);
        }
        self.recorder.undivert();
        let result = write(self);
        self.recorder.divert();
        result
    }
}

/// Number of threads that could not be attached; after some failures, attaching is not tried again.
static FAILED: AtomicU32 = AtomicU32::new(0);
const MAX_FAILED: u32 = 256;
/// `ompt_thread_initial`.
const INITIAL_THREAD: u32 = 1;
/// `ompt_thread_worker`.
const WORKER_THREAD: u32 = 2;
/// `ompt_thread_other`: a thread that executes no code of the program.
pub const OTHER_THREAD: u32 = 3;
/// `ompt_thread_unknown`.
const UNKNOWN_THREAD: u32 = 4;

#[cold]
#[inline(never)]
fn attach_and_enter() -> Option<taskscope_record::Recording> {
    attach(own_type());
    enter()
}

/// The type of a thread that the OpenMP runtime has not announced.
fn own_type() -> u32 {
    // SAFETY: no preconditions.
    let is_main = unsafe { libc::gettid() == libc::getpid() };
    if is_main { INITIAL_THREAD } else { UNKNOWN_THREAD }
}

/// Starts recording on this thread, an OpenMP thread of this type (`ompt_thread_t`).
#[cold]
#[inline(never)]
pub fn attach(thread_type: u32) {
    attach_outside_openmp();
    if enter().is_none() {
        return;
    }
    record(|moment| moment.announce(thread_type));
}

impl Moment<'_> {
    /// Announces a thread that may have been attached for its samples alone: from now on it makes recorded calls.
    pub fn take_part(&mut self) {
        if !self.thread.is_announced {
            self.announce(own_type());
        }
    }

    #[cold]
    fn announce(&mut self, thread_type: u32) {
        if self.thread.is_announced {
            return;
        }
        self.thread.is_announced = true;
        self.thread.kind = match thread_type {
            INITIAL_THREAD => Kind::Initial,
            WORKER_THREAD => Kind::Worker,
            OTHER_THREAD => Kind::Helper,
            _ => Kind::Unknown,
        };
        self.write_anyway(|moment| {
            moment.recorder.own_point(moment.at, omp::THREAD_TYPE, thread_type.to_le_bytes());
        });
        if matches!(self.thread.kind, Kind::Initial | Kind::Worker) {
            worker_count::count(true);
        }
        self.follow_kind();
    }
}

/// Starts recording on this thread, which the OpenMP runtime need not know. Has no effect if it already
/// records.
#[cold]
#[inline(never)]
pub fn attach_outside_openmp() {
    recorder::forget_parent();
    // Not only whether it can be entered: a handler that interrupted a handler in an event cannot, and must not attach again.
    if FAILED.load(Relaxed) >= MAX_FAILED || recorder::is_attached() || !process::is_recording() {
        return;
    }
    let _deferred = Deferred::begin();
    let _allocating = Allocating::begin();
    // Asked once: the C library reads a file for those of the first thread.
    let is_asked = profiling::is_on() || sampler::is_active();
    let bounds = if is_asked { Bounds::current_thread() } else { Bounds::default() };
    // The beginning of a profile's thread takes more of the stack than that of a trace's.
    if profiling::is_on() && bounds.is_small() {
        return;
    }
    let thread = Box::into_raw(Box::new(Thread { bounds, ..Thread::default() }));
    let shared = SharedThread(thread);
    let closer = Box::new(move |recorder: &mut ThreadRecorder, at: u64| {
        let shared = shared;
        // SAFETY: the recorder calls this once, when no callback of the thread is running or will.
        let thread = unsafe { &mut *shared.0 };
        let mut moment = Moment { recorder, thread: &mut *thread, at };
        moment.record_open_call();
        moment.end_thread();
        if matches!(thread.kind, Kind::Initial | Kind::Worker) {
            worker_count::count(false);
        }
        // Stops the timer first: the handler counts into structures that end here.
        drop(thread.sampler.take());
        if let Some(mut follower) = thread.profile.take() {
            follower.end();
        }
        // SAFETY: made by `Box::into_raw` above, and not used after this.
        drop(unsafe { Box::from_raw(shared.0) });
    });
    let options = recorder::Options { samples: sampler::is_active(), ..Default::default() };
    if !recorder::attach_with(thread.cast(), closer, options) {
        FAILED.fetch_add(1, Relaxed);
        // SAFETY: made above; the recorder has not kept it.
        drop(unsafe { Box::from_raw(thread) });
        return;
    }
    // Outside of the recorder: it may start a thread.
    let follower = profiling::is_on().then(Follower::begin);
    record(|moment| {
        moment.write_anyway(|moment| moment.begin_thread());
        moment.thread.profile = follower;
        moment.thread.has_begun = true;
        if moment.thread.is_paused && moment.thread.profile.is_some() {
            moment.follow_pause(true);
        } else if moment.thread.is_paused {
            moment.write_anyway(|moment| moment.record_pause());
        }
        if sampler::is_active() {
            moment.catch_up();
            let counted = moment.thread.profile.as_ref().map(|follower| follower.counted.clone());
            moment.thread.sampler =
                ThreadSampler::start(moment.thread.bounds, moment.recorder.os_tid(), counted);
        }
    });
}

/// A child that has used less CPU time makes no process of a trace: most often it was to run another program, nanoseconds.
const MIN_SILENT_NS: u64 = 5_000_000;

/// Records a forked child that ends without any event: its time, without samples. Returns whether it does so. Not in a handler of
/// a signal, as memory is allocated.
pub fn record_silent_child() -> bool {
    if taskscope_record::forked::unrecorded_ns().is_none_or(|ns| ns < MIN_SILENT_NS) {
        return false;
    }
    attach_outside_openmp();
    recorder::is_attached()
}

/// Records the call that a thread is in when another one closes its stream, before that is closed.
pub type AtOpenCall = fn(&mut Moment<'_>, &OpenCall);

/// An [`AtOpenCall`], or 0.
static AT_OPEN_CALL: AtomicUsize = AtomicUsize::new(0);

/// Has `record` called from now on.
pub fn at_open_call(record: AtOpenCall) {
    AT_OPEN_CALL.store(record as usize, Release);
}

impl Moment<'_> {
    fn record_open_call(&mut self) {
        let record = AT_OPEN_CALL.load(Acquire);
        if record == 0 || self.thread.is_paused {
            return;
        }
        // Intercepted calls of this function are no waits of the calling thread: the table of sites is in use meanwhile.
        let _own = enter();
        // A signal of the timer's would wake the thread.
        if let Some(sampler) = &mut self.thread.sampler {
            sampler.core.disarm();
        }
        if let Some(open) = open_call(self.recorder) {
            // SAFETY: `at_open_call` stores functions of this type alone.
            let record = unsafe { core::mem::transmute::<usize, AtOpenCall>(record) };
            record(self, &open);
        }
    }
}

struct SharedThread(*mut Thread);
// SAFETY: the recorder's protocol lets only one thread at a time use it.
unsafe impl Send for SharedThread {}
