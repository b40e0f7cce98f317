//! What events mean: the events of all runtimes, and taskscope's own, to changes of an execution.
//!
//! The caller adds processes and threads, then hands over every event in the order of time over all
//! threads of a process. Everything is pushed to an [`Observer`]. Traces of ovni's own OpenMP-V
//! runtime, which have none of taskscope's events, work too: what only those events tell (regions,
//! holders of locks, places) stays unknown.
//!
//! Never fails: an event that does not fit is reported as an [`Anomaly`], and the interpreter goes on.

mod channels;
mod cpus;
mod dictionary;
mod frames;
mod instrument;
mod locks;
mod messages;
pub(crate) mod payload;
mod regions;
mod samples;
mod sections;
mod tasks;

pub use cpus::LoomNumber;
use dictionary::Names;
use frames::{Closed, Frame, Frames, Opener, Sticky};
use regions::RegionState;
use rustc_hash::FxHashMap;
use sections::{Edge, Subsystem};
use taskscope_event::Code;
use taskscope_event::models::{
    self, kernel, mpi, nanos6, nodes, nosv, omp, openmp, ovni, recorder, tampi, wait,
};
use taskscope_execution::{
    Anomaly, Change, ObjectIndex, Observer, Place, ProcessIndex, RegionIndex, Section, SiteIndex, State,
    TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
};

/// The largest wait kind that is kept apart; see `taskscope_event::models::wait::kind`.
const WAIT_KINDS: usize = 16;

/// Derives changes from events.
#[derive(Default)]
pub struct Interpreter {
    threads: Vec<ThreadState>,
    names: Names,
    tasks: tasks::TaskNumbers,
    regions: Vec<RegionState>,
    region_numbers: regions::RegionNumbers,
    steps: channels::Steps,
    subsystems: sections::Subsystems,
    instrumented: instrument::Instrumented,
    message_names: messages::MessageNames,
    looms: FxHashMap<LoomNumber, cpus::LoomCpus>,
    paths: samples::PathNumbers,
}

struct ThreadState {
    /// Of the recorder whose event is at hand; its numbers are those of this process.
    process: ProcessIndex,
    /// The recorder that tells where the thread runs; others that write of it tell other things.
    placed_by: ProcessIndex,
    /// Recorders that have not told its end.
    recorders: u32,
    kind: ThreadKind,
    begun: bool,
    /// When the thread ended, if it has.
    ended: Option<u64>,
    works: bool,
    frames: Frames,
    sticky: [Option<Sticky>; WAIT_KINDS],
    last_lock_kind: u32,
    /// A region that has begun and whose fork section has not opened yet.
    forking: RegionIndex,
    /// Regions in whose teams the thread is, innermost last. The barrier at a region's end lies
    /// outside the section of its implicit task.
    member_of: Vec<RegionIndex>,
    /// The task that it created last.
    last_created: Option<(TaskIndex, TypeIndex)>,
    last_task: Option<tasks::LastTask>,
    /// The wait for a lock that ended last, and when.
    last_lock_wait: Option<(u64, Section)>,
    /// The runtime says that the worker has nothing to do, whatever part of it it is in.
    rests: bool,
    on_cpu: cpus::OnCpu,
    /// The worker that its last call of a communication library was told of.
    calls_as: Option<ThreadIndex>,
    /// Its runtime tells its sections: being in none means something.
    has_subsystems: bool,
    /// Of a CPU: the thread that runs on it, and what was last shown of whom.
    occupant: Option<ThreadIndex>,
    shown: Option<(ThreadIndex, Section)>,
}

impl ThreadState {
    /// What the thread does in no section.
    fn base(&self) -> Section {
        Section::of(match self.kind {
            ThreadKind::Initial => State::Serial,
            ThreadKind::Worker => State::Idle,
            ThreadKind::Cpu => State::Idle,
            ThreadKind::Helper | ThreadKind::Unknown if self.has_subsystems => State::NoSubsystem,
            ThreadKind::Helper | ThreadKind::Unknown => State::Unknown,
        })
    }

    /// What is known of waits of this kind; all kinds of locks share one section, so there it is
    /// what was told last.
    fn sticky(&self, kind: u32) -> Option<Sticky> {
        let kind = if sections::mutex_state(kind).is_some() { self.last_lock_kind } else { kind };
        *self.sticky.get(kind as usize)?
    }

    fn now(&self) -> Section {
        if self.rests {
            return Section::of(State::Idle);
        }
        self.frames.top().map_or_else(|| self.base(), |frame| frame.section)
    }
}

/// An event was too short for its fields.
struct Short;

impl Interpreter {
    /// An interpreter that knows no thread yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the thread that gets the next number; numbers must be those of the observer.
    pub fn add_thread(&mut self, process: ProcessIndex) -> ThreadIndex {
        self.add_thread_of(process, process)
    }

    /// The same, of which `recorder` writes, one of several in its process. A recorder's numbers of sites, types and
    /// tasks are its own: definitions name it in the place of the process.
    pub fn add_thread_of(&mut self, recorder: ProcessIndex, process: ProcessIndex) -> ThreadIndex {
        self.instrumented.contexts.add_thread(process.0);
        self.threads.push(ThreadState {
            process: recorder,
            placed_by: recorder,
            recorders: 1,
            kind: ThreadKind::Unknown,
            begun: false,
            ended: None,
            works: false,
            frames: Frames::default(),
            sticky: [None; WAIT_KINDS],
            last_lock_kind: wait::kind::CRITICAL,
            forking: RegionIndex::NONE,
            member_of: Vec::new(),
            last_created: None,
            last_task: None,
            last_lock_wait: None,
            rests: false,
            on_cpu: cpus::OnCpu::default(),
            calls_as: None,
            has_subsystems: false,
            occupant: None,
            shown: None,
        });
        ThreadIndex::of(self.threads.len() - 1)
    }

    /// Says, before its first event, that another recorder writes of a thread too, and whether that one
    /// tells where it runs. Before each event of such a thread call [`Interpreter::speaks`].
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

    /// Says, before its first event, that a thread runs `main`.
    pub fn is_initial(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].kind = ThreadKind::Initial;
    }

    /// Says, before its first event, that a thread's runtime tells its sections as a stack.
    pub fn has_subsystems(&mut self, thread: ThreadIndex) {
        self.threads[thread.index()].has_subsystems = true;
    }

    /// Takes one event of `thread` at `at` nanoseconds. `payload` is without the size field of jumbo
    /// events.
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
            out.change(thread, at, Change::Become(base));
        }
        // Own events of the same clock come after the standard one that ends the thread.
        if state.ended.is_some_and(|ended| ended != at) {
            return self.after_end(thread, at, code, payload, out);
        }
        self.extend_loom(thread, at, out);
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
        self.show_on_cpu(thread, at, out);
    }

    fn dispatch<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        if let Some((subsystem, edge)) = self.subsystems.of(code) {
            match edge {
                Edge::Begin => self.open_subsystem(thread, at, subsystem, out),
                Edge::End => {
                    let state = &mut self.threads[thread.index()];
                    if subsystem == Subsystem::Acquiring {
                        state.last_lock_wait = state.frames.top().map(|top| (at, top.section));
                    }
                    self.close(thread, at, Opener::Subsystem(subsystem), out);
                }
            }
            return Ok(());
        }
        match code {
            openmp::TASK_CREATE => self.task_created(thread, at, payload, out),
            openmp::TASK_EXECUTE => self.task_starts(thread, at, payload, out),
            openmp::TASK_END => self.task_ends(thread, at, payload, out),
            openmp::WORKSHARE_EXECUTE => self.work_begins(thread, at, payload, out),
            openmp::WORKSHARE_END => self.work_ends(thread, at, payload, out),
            ovni::THREAD_ENDS if self.threads[thread.index()].recorders > 1 => {
                self.threads[thread.index()].recorders -= 1;
                Ok(())
            }
            ovni::THREAD_ENDS => {
                self.instrumented_thread_ends(thread, at, out);
                self.threads[thread.index()].ended = Some(at);
                out.change(thread, at, Change::ThreadEnds);
                Ok(())
            }
            ovni::THREAD_PAUSES => {
                self.open(thread, at, Opener::Paused, Section::of(State::Paused), out);
                Ok(())
            }
            ovni::THREAD_RESUMES => {
                self.close(thread, at, Opener::Paused, out);
                Ok(())
            }
            kernel::OUT_OF_CPU => {
                self.open(thread, at, Opener::OutOfCpu, Section::of(State::OutOfCpu), out);
                Ok(())
            }
            kernel::BACK_ON_CPU => {
                self.close(thread, at, Opener::OutOfCpu, out);
                Ok(())
            }
            _ => match code.model() {
                nanos6::LETTER | nosv::LETTER | nodes::LETTER | mpi::LETTER | tampi::LETTER => {
                    self.runtime_event(thread, at, code, payload, out)
                }
                openmp::LETTER if code == openmp::TYPE_CREATE => self.define_type(thread, payload, out),
                omp::LETTER => self.omp_event(thread, at, code, payload, out),
                wait::LETTER => self.wait_event(thread, at, code, payload, out),
                models::instrument::LETTER => self.instrument_event(thread, at, code, payload, out),
                models::messages::LETTER => self.message_event(thread, at, code, payload, out),
                models::dictionary::LETTER => self.dictionary_event(thread, at, code, payload, out),
                models::samples::LETTER => self.path_event(thread, at, code, payload, out),
                recorder::LETTER => {
                    let events = payload::u64_at(payload, 0).ok_or(Short)?;
                    let reason = payload::u32_at(payload, 8).ok_or(Short)?;
                    let lasts = matches!(reason, recorder::loss::NO_SPACE | recorder::loss::SIZE_CAP);
                    out.change(thread, at, Change::Lost { events, lasts });
                    Ok(())
                }
                _ => {
                    if models::model_of(code.model()).is_none() {
                        out.anomaly(thread, at, Anomaly::UnknownEvent);
                    }
                    Ok(())
                }
            },
        }
    }

    /// After a thread's end only names and releases still tell something.
    fn after_end<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) {
        let named = match code.model() {
            models::dictionary::LETTER => Some(self.dictionary_event(thread, at, code, payload, out)),
            models::samples::LETTER => Some(self.path_event(thread, at, code, payload, out)),
            _ => None,
        };
        if let Some(named) = named {
            if named.is_err() {
                out.anomaly(thread, at, Anomaly::ShortPayload);
            }
        } else if code == recorder::LOST {
            if let Some(events) = payload::u64_at(payload, 0) {
                out.change(thread, at, Change::Lost { events, lasts: false });
            }
        } else {
            out.anomaly(thread, at, Anomaly::AfterEnd);
        }
    }

    /// Opens a section; what it does not say itself (task, region) it has from the one around it.
    fn open<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        opener: Opener,
        section: Section,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        state.frames.push(Frame { opener, since: at, section });
        let now = state.now();
        out.change(thread, at, Change::Enter(now));
    }

    fn close<O: Observer>(&mut self, thread: ThreadIndex, at: u64, opener: Opener, out: &mut O) -> bool {
        let state = &mut self.threads[thread.index()];
        let closed = state.frames.pop(opener);
        match closed {
            Closed::Nothing => {
                out.anomaly(thread, at, Anomaly::EndWithoutBegin);
                return false;
            }
            Closed::WithInner => out.anomaly(thread, at, Anomaly::EndsNotInnermost),
            Closed::Innermost => {}
        }
        out.change(thread, at, Change::Leave(state.now()));
        true
    }

    /// Changes the innermost section, which must have been opened by `opener`.
    fn change_top<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        out: &mut O,
        change: impl FnOnce(&mut Section),
    ) {
        if let Some(top) = self.threads[thread.index()].frames.top_mut() {
            let before = top.section;
            change(&mut top.section);
            if top.section != before {
                out.change(thread, at, Change::Become(top.section));
            }
        }
    }

    fn open_subsystem<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        subsystem: Subsystem,
        out: &mut O,
    ) {
        let state = &mut self.threads[thread.index()];
        let around = state.now();
        let Some(inner) = subsystem.state() else {
            return self.open(thread, at, Opener::Subsystem(subsystem), around, out);
        };
        let mut section =
            Section { state: inner, place: Place::UNKNOWN, object: ObjectIndex::NONE, ..around };
        if subsystem == Subsystem::BarrierJoin
            && let Some(region) = state.member_of.last()
        {
            section.region = *region;
        }
        if let Some(kind) = subsystem.wait_kind() {
            if let Some(sticky) = state.sticky(kind) {
                section.place = sticky.place;
                section.object = sticky.object;
                section.state = sections::mutex_state(sticky.kind).unwrap_or(inner);
            } else if subsystem == Subsystem::BarrierJoin {
                section.place = self.region_place(section.region);
            }
        }
        match subsystem {
            Subsystem::UserMicrotask => return self.enter_implicit_task(thread, at, section, out),
            Subsystem::ForkCall => {
                let state = &mut self.threads[thread.index()];
                let region = std::mem::replace(&mut state.forking, RegionIndex::NONE);
                section.place = self.region_place(region);
            }
            Subsystem::BarrierJoin | Subsystem::BarrierPlain if self.region_is_over(section.region) => {
                let place = self.region_place(section.region);
                section = Section { place, ..Section::of(State::Idle) };
            }
            // The chunk of a construct whose type is already known.
            _ if inner == State::Worksharing && around.state == State::Worksharing => {
                section.place = around.place;
            }
            _ => {}
        }
        self.open(thread, at, Opener::Subsystem(subsystem), section, out);
    }

    /// The thread takes part in a team or runs a task: it is a worker.
    fn works<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        let state = &mut self.threads[thread.index()];
        if !state.works && state.on_cpu.loom.is_none() {
            state.works = true;
            out.change(thread, at, Change::ThreadWorks);
        }
    }

    fn work_begins<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let ty = self.type_at(thread, payload, 0, out)?;
        let around = self.threads[thread.index()].now();
        let state = self.names.work_state(ty);
        let section = Section { state, place: Place::of_type(ty), object: ObjectIndex::NONE, ..around };
        out.change(thread, at, Change::WorkBegins { ty, region: around.region });
        self.open(thread, at, Opener::Work(ty), section, out);
        Ok(())
    }

    fn work_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let ty = self.type_at(thread, payload, 0, out)?;
        if self.close(thread, at, Opener::Work(ty), out) {
            out.change(thread, at, Change::WorkEnds);
        }
        Ok(())
    }

    /// The type with the number at byte `offset` of the payload.
    fn type_at<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        payload: &[u8],
        offset: usize,
        out: &mut O,
    ) -> Result<TypeIndex, Short> {
        let id = payload::u32_at(payload, offset).ok_or(Short)?;
        Ok(self.names.ty(self.threads[thread.index()].process, id, out))
    }

    /// The site with the number at byte `offset` of the payload; 0 is no site.
    fn site_at(&mut self, thread: ThreadIndex, payload: &[u8], offset: usize) -> Result<SiteIndex, Short> {
        let id = payload::u32_at(payload, offset).ok_or(Short)?;
        Ok(self.names.site(self.threads[thread.index()].process, id))
    }
}
