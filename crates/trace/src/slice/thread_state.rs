//! A thread's state at a time: running or not, its CPU, and its open sections.

use super::bytes::first_u32;
use crate::Event;
use taskscope_event::models::{self, kernel, messages, model_of, nanos6, nosv, omp, openmp, ovni};
use taskscope_event::spec::{Channel, Effect};
use taskscope_event::{Code, StreamFile};

/// Something that is open on a thread, with the event that opens it and the one that closes it.
#[derive(Clone)]
pub(super) struct OpenPair {
    pub key: Key,
    pub file: StreamFile,
    /// When it was opened: events of one clock belong together.
    pub clock_ns: i64,
    pub begin: (Code, bool, Vec<u8>),
    pub close: Option<(Code, Vec<u8>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Section(u8, Channel, i64),
    State(u8, Channel),
    Task(u8, [u8; 8]),
    TaskPaused(u8, [u8; 8]),
    Workshare([u8; 4]),
    Mark([u8; 12]),
    MarkState([u8; 4]),
    /// The values of the hardware counters, which last until the next ones.
    Counters,
    Flush,
    OutOfCpu,
    /// The thread is the master of a parallel region.
    Region([u8; 4]),
    /// The thread is a member of a region's team.
    Member([u8; 4]),
    Masked,
    /// A device construct, by the event that begins it.
    Device(Code),
    /// A call of a function of MPI without an event in ovni's model.
    Call([u8; 4]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    #[default]
    NotStarted,
    Running,
    Paused,
    Cooling,
    Warming,
    Ended,
}

#[derive(Clone, Default)]
pub(super) struct ThreadState {
    pub running: Life,
    pub cpu: i32,
    pub open: Vec<OpenPair>,
    /// Recording is paused.
    pub is_paused: bool,
    /// Its type in OpenMP, if recorded.
    pub openmp_type: Option<u32>,
    /// Whether it has taken part in a team or run a task of OpenMP: it is a worker, with or without events in the slice.
    pub is_worker: bool,
}

/// Whether an event makes its thread a worker of OpenMP.
pub(super) fn makes_worker(code: Code) -> bool {
    matches!(code, openmp::RUNTIME_USER_MICROTASK_BEGIN | openmp::TASK_EXECUTE)
}

/// Effect of an event on the task that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskStep {
    Execute,
    End,
    Pause,
    Resume,
}

/// Whether an event is about a task that it names, and does not create it.
pub(super) fn is_task_step(code: Code) -> bool {
    task_step(code).is_some()
}

fn task_step(code: Code) -> Option<TaskStep> {
    Some(match code {
        nanos6::TASK_EXECUTE | nosv::TASK_EXECUTE | openmp::TASK_EXECUTE => TaskStep::Execute,
        nanos6::TASK_END | nosv::TASK_END | openmp::TASK_END => TaskStep::End,
        nanos6::TASK_PAUSE | nosv::TASK_PAUSE => TaskStep::Pause,
        nanos6::TASK_RESUME | nosv::TASK_RESUME => TaskStep::Resume,
        _ => return None,
    })
}

impl ThreadState {
    /// A thread that has not started, on no CPU.
    pub fn new() -> ThreadState {
        ThreadState { cpu: -1, ..ThreadState::default() }
    }

    /// Whether the kernel has taken it off its CPU.
    pub fn is_off_cpu(&self) -> bool {
        self.open.iter().any(|open| open.key == Key::OutOfCpu)
    }

    /// Applies an event to its own thread.
    pub fn follow(&mut self, event: &Event<'_>) {
        let payload = event.payload;
        let model = event.code.model();
        self.is_worker |= makes_worker(event.code);
        match event.code {
            ovni::THREAD_EXECUTES => {
                self.running = Life::Running;
                self.cpu = first_u32(payload) as i32;
            }
            ovni::THREAD_ENDS => self.running = Life::Ended,
            ovni::THREAD_PAUSES => self.running = Life::Paused,
            ovni::THREAD_RESUMES => self.running = Life::Running,
            ovni::THREAD_COOLS => self.running = Life::Cooling,
            ovni::THREAD_WARMS => self.running = Life::Warming,
            ovni::SET_AFFINITY => self.cpu = first_u32(payload) as i32,
            ovni::FLUSH_BEGIN => self.open(Key::Flush, event, Some((ovni::FLUSH_END, Vec::new()))),
            ovni::FLUSH_END => self.close(Key::Flush),
            kernel::OUT_OF_CPU => self.open(Key::OutOfCpu, event, Some((kernel::BACK_ON_CPU, Vec::new()))),
            kernel::BACK_ON_CPU => self.close(Key::OutOfCpu),
            ovni::MARK_PUSH => {
                let Some(mark) = payload.first_chunk() else { return };
                self.open(Key::Mark(*mark), event, Some((ovni::MARK_POP, payload.to_vec())));
            }
            ovni::MARK_POP => {
                let Some(mark) = payload.first_chunk() else { return };
                self.close(Key::Mark(*mark));
            }
            ovni::MARK_SET => {
                let Some(mark) = payload.get(8..).and_then(|rest| rest.first_chunk()) else { return };
                self.close(Key::MarkState(*mark));
                self.open(Key::MarkState(*mark), event, None);
            }
            nosv::HARDWARE_COUNTERS => {
                self.close(Key::Counters);
                self.open(Key::Counters, event, None);
            }
            openmp::WORKSHARE_EXECUTE => {
                let Some(id) = payload.first_chunk() else { return };
                self.open(Key::Workshare(*id), event, Some((openmp::WORKSHARE_END, payload.to_vec())));
            }
            openmp::WORKSHARE_END => {
                let Some(id) = payload.first_chunk() else { return };
                self.close(Key::Workshare(*id));
            }
            code => match (task_step(code), models::find(code).map(|spec| spec.effect)) {
                (Some(step), _) => self.follow_task(step, event),
                (None, Some(Effect::Push(channel, value, _))) => {
                    let end = end_of(code, channel, value);
                    self.open(Key::Section(model, channel, value), event, end.map(|end| (end, Vec::new())));
                }
                (None, Some(Effect::Pop(channel, value, _))) => {
                    self.close(Key::Section(model, channel, value))
                }
                (None, Some(Effect::Set(channel, ..))) => {
                    self.close(Key::State(model, channel));
                    // The initial value of both idle channels need not be set again.
                    if !matches!(code, nanos6::IDLE_PROGRESSING | nosv::IDLE_PROGRESSING) {
                        self.open(Key::State(model, channel), event, None);
                    }
                }
                _ => {}
            },
        }
    }

    /// Applies an event of taskscope's own models to its own thread: what it opens gives standard sections their
    /// region and place.
    pub fn follow_own(&mut self, event: &Event<'_>) {
        let number = || event.payload.first_chunk().copied();
        let key = match event.code {
            omp::REGION_BEGIN | omp::REGION_END => number().map(Key::Region),
            omp::IMPLICIT_BEGIN | omp::IMPLICIT_END => number().map(Key::Member),
            messages::CALL_BEGIN | messages::CALL_END => number().map(Key::Call),
            omp::MASKED_BEGIN | omp::MASKED_END => Some(Key::Masked),
            omp::TARGET_BEGIN | omp::TARGET_END => Some(Key::Device(omp::TARGET_BEGIN)),
            omp::TARGET_DATA_BEGIN | omp::TARGET_DATA_END => Some(Key::Device(omp::TARGET_DATA_BEGIN)),
            omp::TARGET_SUBMIT_BEGIN | omp::TARGET_SUBMIT_END => Some(Key::Device(omp::TARGET_SUBMIT_BEGIN)),
            _ => None,
        };
        let Some(key) = key else { return };
        let opens = matches!(
            event.code,
            messages::CALL_BEGIN
                | omp::REGION_BEGIN
                | omp::IMPLICIT_BEGIN
                | omp::MASKED_BEGIN
                | omp::TARGET_BEGIN
                | omp::TARGET_DATA_BEGIN
                | omp::TARGET_SUBMIT_BEGIN
        );
        // Regions and their members are no sections; ends of threads end them.
        let end = match key {
            Key::Call(function) => Some((messages::CALL_END, function.to_vec())),
            Key::Masked => Some((omp::MASKED_END, Vec::new())),
            Key::Device(omp::TARGET_BEGIN) => Some((omp::TARGET_END, Vec::new())),
            Key::Device(omp::TARGET_DATA_BEGIN) => Some((omp::TARGET_DATA_END, Vec::new())),
            Key::Device(_) => Some((omp::TARGET_SUBMIT_END, Vec::new())),
            _ => None,
        };
        if opens { self.open_in(StreamFile::Own, key, event, end) } else { self.close(key) }
    }

    /// The number of clocks at which its open sections are opened again.
    pub fn opening_clocks(&self) -> i64 {
        let clocks = self.open.iter().filter(|open| open.key != Key::OutOfCpu).map(|open| open.clock_ns);
        let mut before = None;
        let further = clocks.filter(|clock| before.replace(*clock).is_some_and(|before| before != *clock));
        1 + further.count() as i64
    }

    /// Whether it is the master of a region.
    pub fn is_master(&self) -> bool {
        self.open.iter().any(|open| matches!(open.key, Key::Region(_)))
    }

    /// The regions of which it is a member, outermost first.
    pub fn member_of(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        self.open.iter().filter_map(|open| match open.key {
            Key::Member(region) => Some(region),
            _ => None,
        })
    }

    fn open(&mut self, key: Key, event: &Event<'_>, close: Option<(Code, Vec<u8>)>) {
        self.open_in(StreamFile::Standard, key, event, close);
    }

    fn open_in(&mut self, file: StreamFile, key: Key, event: &Event<'_>, close: Option<(Code, Vec<u8>)>) {
        let begin = (event.code, event.is_jumbo, event.payload.to_vec());
        self.open.push(OpenPair { key, file, clock_ns: event.clock_ns, begin, close });
    }

    fn close(&mut self, key: Key) {
        if let Some(position) = self.open.iter().rposition(|open| open.key == key) {
            self.open.remove(position);
        }
    }

    fn follow_task(&mut self, step: TaskStep, event: &Event<'_>) {
        let model = event.code.model();
        let mut id = [0; 8];
        let length = event.payload.len().min(8);
        id[..length].copy_from_slice(&event.payload[..length]);
        let payload = event.payload.to_vec();
        let (end, resume) = match model {
            nanos6::LETTER => (nanos6::TASK_END, nanos6::TASK_RESUME),
            nosv::LETTER => (nosv::TASK_END, nosv::TASK_RESUME),
            _ => (openmp::TASK_END, openmp::TASK_END),
        };
        match step {
            TaskStep::Execute => self.open(Key::Task(model, id), event, Some((end, payload))),
            TaskStep::End => self.close(Key::Task(model, id)),
            TaskStep::Pause => self.open(Key::TaskPaused(model, id), event, Some((resume, payload))),
            TaskStep::Resume => self.close(Key::TaskPaused(model, id)),
        }
    }
}

/// The event that leaves the section that `begin` enters.
fn end_of(begin: Code, channel: Channel, value: i64) -> Option<Code> {
    let events = model_of(begin.model())?.events;
    let end = events
        .iter()
        .find(|event| matches!(event.effect, Effect::Pop(c, v, _) if c == channel && v == value));
    end.map(|event| event.code)
}
