//! Entry points for a recorder of another interface (MPI, threads) that is linked into one library with this one: one
//! process, one stream per thread, one stack of open constructs.
//!
//! **The caller** calls [`start_recording`] before anything else, and [`record`] for each of its events,
//! on any thread; a thread that the OpenMP runtime has not announced is attached there.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use crate::frames::Open;
pub use crate::profiling::{RecordedCall, WaitEvent};
pub use crate::recording::start_recording;
pub use crate::sampler::blocking::{
    Blocking, BlockingRecorder, MIN_BLOCKED_NS, OpenCall, Queue, Returned, Syscall, begin as begin_blocking,
    end as end_blocking, set_recorder as record_blocking,
};
use crate::sampler::is_active;
pub use crate::sampler::machine::copy_from_anywhere;
use crate::sections::END_OF_MPI;
pub use crate::sections::SectionCodes;
pub use crate::thread::{Moment, at_open_call, record, record_outside_openmp, record_outside_openmp_untimed};

/// The data of CPython's runtime (`_PyRuntime`) in this process: first address and the first one after it. `None` if there is no
/// interpreter of a known version, or one without a global lock.
pub fn python_runtime() -> Option<core::ops::Range<u64>> {
    let interpreter = crate::sampler::python_interpreter()?;
    Some(interpreter.runtime..interpreter.runtime.saturating_add(interpreter.runtime_bytes))
}

/// Is called on each thread that starts to record: `routine` is the address of the thread's routine, 0 where not known.
pub type ThreadStart = fn(routine: usize);

/// A [`ThreadStart`], or 0.
static AT_THREAD_START: AtomicUsize = AtomicUsize::new(0);

/// Has `hook` called on each thread that starts to record from now on, and on the calling one if it records.
pub fn at_thread_start(hook: ThreadStart) {
    AT_THREAD_START.store(hook as usize, Release);
    if taskscope_record::thread::is_attached() {
        hook(0);
    }
}

/// The calling thread has started to record.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub(crate) fn thread_starts(routine: usize) {
    let hook = AT_THREAD_START.load(Acquire);
    if hook != 0 && taskscope_record::thread::is_attached() {
        // SAFETY: `at_thread_start` stores functions of this type alone.
        let hook = unsafe { core::mem::transmute::<usize, ThreadStart>(hook) };
        hook(routine);
    }
}

/// A call into a library that is not the OpenMP runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A call with events in ovni's models.
    Standard(SectionCodes),
    /// An MPI function by its number in `taskscope_event::models::messages`.
    Numbered(u32),
}

impl Moment<'_> {
    /// Begins a call that comes from code site `site`.
    pub fn begin_call(&mut self, call: Call, site: u32) {
        self.take_part();
        // In a sample, a call is work of its caller.
        let open = match call {
            // A profile writes no events, and has its time apart.
            Call::Standard(codes) if self.thread.profile.is_some() => {
                Open::Call { function: codes.call_number() }
            }
            Call::Standard(codes) => Open::Section { codes, state: self.thread.state() },
            Call::Numbered(function) => Open::Call { function },
        };
        self.open(open, site);
    }

    /// Ends the innermost call of this kind.
    pub fn end_call(&mut self, call: Call) {
        match call {
            Call::Standard(codes) => {
                let profile_call = Open::Call { function: codes.call_number() };
                match self.thread.frames.top().is_some_and(|top| top.open == profile_call) {
                    true => self.close_in_context(|open| open == profile_call),
                    false => self.close_section(codes),
                }
            }
            Call::Numbered(function) => self.close_in_context(|open| open == Open::Call { function }),
        }
    }

    /// All ranks have reached this call, which ends MPI and continues. A trace has its own event for that, a profile the state
    /// of the start of MPI from now on.
    pub fn all_ranks_have_come(&mut self, call: Call, site: u32) {
        if self.thread.profile.is_some() {
            self.end_call(call);
            self.open(Open::Call { function: END_OF_MPI }, site);
        }
    }

    /// Ends the call that ends MPI.
    pub fn end_last_call(&mut self, call: Call) {
        let rest = Open::Call { function: END_OF_MPI };
        match self.thread.frames.top().is_some_and(|top| top.open == rest) {
            true => self.close_in_context(|open| open == rest),
            false => self.end_call(call),
        }
    }

    /// Returns the code site of a return address; 0 if the address identifies none.
    pub fn code_site(&mut self, return_address: *const c_void) -> u32 {
        self.known_site(return_address)
    }

    /// Whether waits of threads are events of a profile ([`count_wait`](Self::count_wait)), not of a trace.
    pub fn counts_waits(&self) -> bool {
        self.thread.profile.is_some()
    }

    /// Counts an event of a wait in a profile; in a pause the ends of waits, which would last until the next one, and starts.
    pub fn count_wait(&mut self, event: WaitEvent) {
        let is_for_pauses = matches!(event, WaitEvent::Ends { .. } | WaitEvent::Starts { .. });
        if (is_for_pauses || !self.thread.is_paused)
            && let Some(follower) = &self.thread.profile
        {
            follower.count_wait(self.at, event);
        }
    }

    /// The thread is about to wake others: a profile waits for the event, which it counts afterwards with this moment's time.
    pub fn announce_wake(&mut self) {
        if let Some(follower) = &self.thread.profile {
            follower.announce_wake(self.at);
        }
    }

    /// The announced wake is counted, or no thread was woken.
    pub fn wake_is_over(&mut self) {
        if let Some(follower) = &self.thread.profile {
            follower.wake_is_over();
        }
    }

    /// The calling thread's waits are counted in a profile from now on, as soon as it has one.
    pub fn begin_to_count_waits(&mut self) {
        if let Some(follower) = &self.thread.profile {
            follower.begin_to_count_waits();
        }
    }

    /// A call in a profile: it returns to `return_address`.
    pub fn wait_call(&mut self, return_address: *const c_void) -> RecordedCall {
        if !is_active() || return_address.is_null() {
            return RecordedCall { site: return_address as u64, ..RecordedCall::default() };
        }
        let path = self.path_here(return_address, self.thread.exit_here());
        RecordedCall { site: return_address as u64, path, context: self.context() }
    }

    /// The program's call into this library in a profile; of another thread, the open one.
    pub fn wait_call_from_program(&mut self, open: Option<&OpenCall>) -> RecordedCall {
        if !is_active() {
            return RecordedCall::default();
        }
        let (site, path) = self.call_from_program(open);
        RecordedCall { site, path, context: self.context() }
    }
}
