//! The meaning of events: turns events of all runtimes, and taskscope's own, into changes of an execution.
//!
//! The caller adds processes and threads, then passes every event in the order of time over all threads of a
//! process; events that need no order ([`Kinds::own_kind`]) may come later, see [`Interpreter::event`]. All
//! changes go to an [`Observer`]. Traces of ovni's own OpenMP-V runtime, which have none of taskscope's
//! events, work too: the data of those events (regions, holders of locks, places) stays unknown.
//!
//! Never fails: an event that does not fit is reported as an [`Anomaly`], and the interpreter continues.

mod channel_steps;
mod channels;
mod cpus;
mod dictionary;
mod dispatch;
mod instrument;
mod kinds;
mod locks;
mod messages;
mod regions;
mod samples;
mod sections;
mod stack;
mod state;
mod subsystems;
mod tasks;
mod worksharing;

use kinds::Kind;
pub use kinds::{Kinds, OwnKind, state_of_event};
pub use state::loom_cpus::LoomNumber;
use state::{
    instrumented::Instrumented,
    loom_cpus::LoomCpus,
    message_names::MessageNames,
    names::Names,
    path_numbers::PathNumbers,
    regions::{RegionState, RegionsById},
    task_numbers::TaskNumbers,
    thread_state::ThreadState,
};
use taskscope_event::Code;
use taskscope_event::models::{omp, ovni};
use taskscope_execution::{Anomaly, Change, Observer, OpenTrack, ProcessIndex, ThreadIndex, ThreadKind};

/// Derives changes from events.
#[derive(Default)]
pub struct Interpreter {
    threads: Vec<ThreadState>,
    names: Names,
    tasks: TaskNumbers,
    regions: Vec<RegionState>,
    regions_by_id: RegionsById,
    kinds: Kinds,
    instrumented: Instrumented,
    message_names: MessageNames,
    /// By [`LoomNumber`].
    looms: Vec<LoomCpus>,
    paths: PathNumbers,
}

/// An event was too short for its fields.
struct Short;

/// Takes events of a thread that need no order, one after the other.
pub struct OwnEvents<'i> {
    state: &'i mut ThreadState,
    track: OpenTrack<'i>,
}

impl OwnEvents<'_> {
    /// Takes an event, of which the kind is known already.
    #[inline(always)]
    pub fn event(&mut self, at: u64, code: Code, kind: OwnKind) {
        if self.state.ended.is_some_and(|ended| ended != at) {
            // Runtimes write their events to disk after the last one of a thread.
            if kind.0 != Kind::Nothing {
                self.track.anomaly(at, Anomaly::AfterEnd);
            }
            return;
        }
        self.state.own_event(at, code, kind.0, &mut self.track);
    }
}

impl Interpreter {
    /// An interpreter that knows no thread yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves room for about this many tasks.
    pub fn expect_tasks(&mut self, tasks: u64) {
        self.tasks.expect(usize::try_from(tasks).unwrap_or(0));
    }

    /// Adds the thread that gets the next number; numbers must be those of the observer.
    pub fn add_thread(&mut self, process: ProcessIndex) -> ThreadIndex {
        self.add_thread_of(process, process)
    }

    /// Adds a thread with events of `recorder`, one of several in its process. A recorder's numbers of sites,
    /// types and tasks are its own: definitions name it instead of the process.
    pub fn add_thread_of(&mut self, recorder: ProcessIndex, process: ProcessIndex) -> ThreadIndex {
        self.instrumented.contexts.add_thread(process.0);
        self.threads.push(ThreadState::of(recorder));
        ThreadIndex::of(self.threads.len() - 1)
    }

    /// Registers, before a thread's first event, another recorder of the thread, and whether that one records
    /// its CPUs. Before each event of such a thread call [`Interpreter::speaks`].
    pub fn add_recorder(&mut self, thread: ThreadIndex, recorder: ProcessIndex, places: bool) {
        let state = &mut self.threads[thread.index()];
        state.recorders += 1;
        if places {
            state.placed_by = recorder;
        }
    }

    /// The thread's next events are this recorder's.
    #[inline]
    pub fn speaks(&mut self, thread: ThreadIndex, recorder: ProcessIndex) {
        self.threads[thread.index()].process = recorder;
    }

    /// Marks a thread, before its first event, as the one that runs `main`.
    pub fn is_initial(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].kind = ThreadKind::Initial;
    }

    /// Registers, before a thread's first event, that the recording of its process ended before the thread.
    pub fn ends_with_process(&mut self, thread: ThreadIndex) {
        self.instrumented.contexts.ends_with_process(thread.0);
    }

    /// Registers, before a thread's first event, that its process's OpenMP runtime reports all its activity:
    /// before the runtime knows the thread, and if it never does, the thread runs the program's own code.
    pub fn is_of_openmp(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].is_of_openmp = true;
    }

    /// Registers, before a thread's first event, that its recorder provides times off the CPU, with runnable
    /// and blocked time: events of the kernel's model, which have switches only, then open no sections.
    pub fn has_os_times(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].has_os_times = true;
    }

    /// Registers, before a thread's first event, that its runtime records sections as a stack.
    pub fn has_subsystems(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].has_subsystems = true;
    }

    /// Takes one event of `thread` at `at` nanoseconds. `payload` is without the size field of jumbo
    /// events.
    ///
    /// Events must come in the order of time, but one that needs no order may come late: before the next event of its
    /// thread, and before an event of another thread that [reaches](Interpreter::reaches) it. The first
    /// event of a thread, and all events of one of which several recorders write, need the order.
    #[inline]
    pub fn event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        if !state.begun {
            state.begun = true;
            let (base, kind) = (state.base(), state.kind);
            out.change(thread, at, Change::ThreadBegins);
            if kind != ThreadKind::Unknown {
                out.change(thread, at, Change::ThreadIs(kind));
            }
            out.change(thread, at, Change::Becomes(base));
        }
        // Own events of the same clock come after the standard one that ends the thread.
        if state.ended.is_some_and(|ended| ended != at) {
            return self.after_end(thread, at, code, payload, out);
        }
        if self.threads[thread.index()].poll.is_some() && self.poll_continues(thread, at, code, payload, out)
        {
            return;
        }
        self.extend_loom(thread, at, out);
        match self.kinds.of(code) {
            Kind::Task(step) => self.task_event(thread, at, step, payload, out),
            Kind::Other => self.other_event(thread, at, code, payload, out),
            kind => self.event_of_kind(thread, at, code, kind, out),
        }
    }

    /// Sets the time of a thread's last event, after it.
    pub fn extend_to<O: Observer>(&mut self, thread: ThreadIndex, last: u64, out: &mut O) {
        self.end_poll(thread, out);
        if self.threads[thread.index()].ended.is_none_or(|ended| ended == last) {
            self.extend_loom(thread, last, out);
        }
    }

    /// Whether the last call of a thread polls for a request that is not complete: its next event decides the
    /// end of the call's section.
    #[inline(always)]
    pub fn is_polling(&self, thread: ThreadIndex) -> bool {
        self.threads[thread.index()].poll.is_some()
    }

    /// Returns the track for events of `thread` that need no order, after its first. After the last one set
    /// its time ([`Interpreter::extend_to`]).
    #[inline(always)]
    pub fn own_events<'i, O: Observer>(&'i mut self, thread: ThreadIndex, out: &'i mut O) -> OwnEvents<'i> {
        self.end_poll(thread, out);
        OwnEvents { state: &mut self.threads[thread.index()], track: out.open_track(thread) }
    }

    /// Takes an event that its kind does not describe completely.
    fn other_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) {
        let state = &self.threads[thread.index()];
        let elsewhere = state.process != state.placed_by;
        if elsewhere && code.model() == ovni::LETTER && code != ovni::THREAD_ENDS {
            return;
        }
        let placed = if code.model() == ovni::LETTER && !elsewhere {
            self.place_on_cpu(thread, at, code, payload, out)
        } else {
            Ok(())
        };
        if placed.and_then(|()| self.dispatch(thread, at, code, payload, out)).is_err() {
            out.anomaly(thread, at, Anomaly::ShortPayload);
        }
    }

    /// The other threads with state that an event of `thread` changes or reads: their earlier events must
    /// have been played.
    #[inline(always)]
    pub fn reaches(
        &self,
        thread: ThreadIndex,
        code: Code,
        payload: &[u8],
        mut reached: impl FnMut(ThreadIndex),
    ) {
        match code.model() {
            ovni::LETTER => {
                let on_cpus = self.reached_on_cpus(thread, code, payload);
                on_cpus.into_iter().filter(|other| other.is_some() && *other != thread).for_each(reached);
            }
            omp::LETTER => {
                for member in self.members_reached(thread, code, payload) {
                    if *member != thread {
                        reached(*member);
                    }
                }
            }
            _ => {}
        }
    }
}
