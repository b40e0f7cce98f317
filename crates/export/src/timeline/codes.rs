//! The code of sections: names, places, states. Found in one pass over all sections.

use super::lanes::{LaneKind, Lanes};
use rustc_hash::FxHashMap;
use taskscope_event::models::messages::FUNCTIONS;
use taskscope_execution::devices::{CallThread, DeviceOperation, Devices, Queue};
use taskscope_execution::graph::Names;
use taskscope_execution::messages::Participation;
use taskscope_execution::{
    CutSpan, Doubt, Execution, NO_NUMBER, NO_TIME, ObjectIndex, Place, Section, SiteIndex, State,
    ThreadIndex, ThreadWait, WaitOutcome,
};

/// What a section runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Name; any text, never empty.
    pub name: String,
    /// Kind in words: the state's label, or the kind of an operation, a call, a doubt, a wait for a thread, a part in a
    /// collective operation.
    pub kind: String,
    /// The state; none for all others.
    pub state: Option<State>,
    /// Function; empty if not known.
    pub function: String,
    /// Source file; empty if not known.
    pub file: String,
    /// Line in it; 0 if not known.
    pub line: u32,
}

impl Code {
    /// The colour of its state on a light page, `#rrggbb`, if it has one.
    pub fn colour(&self) -> Option<&'static str> {
        self.state.and_then(State::colours).map(|[light, _]| light)
    }
}

/// All codes, and what else one pass over the sections finds.
#[derive(Default)]
pub(super) struct Codes {
    pub(super) rows: Vec<Code>,
    section_codes: FxHashMap<(State, Place), u32>,
    /// By queue or list of calls (with the upper bit), name and kind.
    device_codes: FxHashMap<(u32, u32, u32), u32>,
    doubts: [u32; Doubt::ALL.len() + 1],
    wait_codes: FxHashMap<(ObjectIndex, SiteIndex, WaitOutcome), u32>,
    /// By function, and whether the operation is complete.
    collective_codes: FxHashMap<(u32, bool), u32>,
    pub(super) objects: FxHashMap<ObjectIndex, String>,
    /// The thread of the last section of each task.
    pub(super) last_thread: Vec<ThreadIndex>,
    pub(super) sections: u64,
    pub(super) with_numbers: u64,
}

/// Whether a section is shown: absent threads have none.
pub(super) fn is_shown(state: State) -> bool {
    state.colours().is_some()
}

/// The sections of a thread with time, in order. Time in which it did not exist has none, even if that is a loss of
/// the system.
pub(super) fn sections_of(execution: &Execution, thread: ThreadIndex) -> impl Iterator<Item = CutSpan> + '_ {
    let spans = execution.shown_spans_of_run(thread);
    spans.filter(|cut| cut.span.end > cut.span.start && is_shown(cut.under))
}

const CALLS: u32 = 1 << 31;
const DOUBT_NAMES: [&str; Doubt::ALL.len() + 1] = [
    "uncertain: the stream ends here",
    "uncertain: an event is missing",
    "uncertain: the clock went back",
    "uncertain: several threads on this CPU",
    "events lost",
];

impl Codes {
    pub(super) fn of(execution: &Execution, devices: &Devices, names: &mut dyn Names) -> Codes {
        let mut codes =
            Codes { last_thread: vec![ThreadIndex::NONE; execution.tasks.len()], ..Codes::default() };
        for (number, row) in execution.threads.iter().enumerate() {
            let thread = ThreadIndex(number as u32);
            if !row.track.is_empty() && row.selected {
                codes.add_thread(execution, thread, names);
            }
        }
        for (number, queue) in devices.queues.iter().enumerate() {
            for operation in &queue.operations {
                codes.add_operation(number as u32, queue, operation);
            }
        }
        for (number, thread) in devices.calls.iter().enumerate() {
            codes.add_calls(number as u32, thread);
        }
        codes.add_waits(execution, names);
        codes.add_collectives(execution);
        for (row, name) in codes.doubts.iter_mut().zip(DOUBT_NAMES) {
            *row = codes.rows.len() as u32;
            let kind = "uncertain".to_owned();
            codes.rows.push(Code { name: name.to_owned(), kind, ..Code::default() });
        }
        codes
    }

    fn add_thread(&mut self, execution: &Execution, thread: ThreadIndex, names: &mut dyn Names) {
        let is_cpu = execution.threads[thread.index()].kind == taskscope_execution::ThreadKind::Cpu;
        for CutSpan { span, .. } in sections_of(execution, thread) {
            let Section { state, place, task, object, .. } = span.section;
            self.sections += 1;
            self.section_codes.entry((state, place)).or_insert_with(|| {
                let ty = names.code(state, place);
                let label = state.label().to_owned();
                let name = if ty.name.is_empty() { label.clone() } else { ty.name };
                self.rows.push(Code {
                    name,
                    kind: label,
                    state: Some(state),
                    function: ty.function,
                    file: ty.file,
                    line: ty.line,
                });
                self.rows.len() as u32 - 1
            });
            if object.is_some() {
                self.objects.entry(object).or_insert_with(|| names.object(object));
            }
            if execution.tasks.number(task).is_some_and(|number| number != NO_NUMBER) {
                self.with_numbers += 1;
            }
            if let Some(last) = self.last_thread.get_mut(task.index()).filter(|_| task.is_some() && !is_cpu)
                && execution.tasks.ended[task.index()] == span.end
            {
                *last = thread;
            }
        }
    }

    fn add_operation(&mut self, queue_number: u32, queue: &Queue, operation: &DeviceOperation) {
        let rows = &mut self.rows;
        self.device_codes.entry((queue_number, operation.name, operation.kind)).or_insert_with(|| {
            let function = queue.name_of(operation.name).to_owned();
            let (name, kind) = (queue.shown_name(operation).to_owned(), operation.kind_name().to_owned());
            rows.push(Code { name, kind, function, ..Code::default() });
            rows.len() as u32 - 1
        });
    }

    fn add_calls(&mut self, number: u32, thread: &CallThread) {
        for call in &thread.calls {
            let rows = &mut self.rows;
            self.device_codes.entry((number | CALLS, call.name, call.kind)).or_insert_with(|| {
                let name = thread.names.get(call.name as usize).filter(|name| !name.is_empty());
                let name = name.cloned().unwrap_or_else(|| "call".to_owned());
                rows.push(Code { name, kind: "device call".to_owned(), ..Code::default() });
                rows.len() as u32 - 1
            });
        }
    }

    fn add_waits(&mut self, execution: &Execution, names: &mut dyn Names) {
        for wait in &execution.thread_waits.waits {
            let objects = &mut self.objects;
            let name = objects.entry(wait.object).or_insert_with(|| names.object(wait.object)).clone();
            self.wait_codes.entry((wait.object, wait.site, wait.outcome)).or_insert_with(|| {
                let place = names.site(wait.site);
                let kind = match wait.outcome {
                    WaitOutcome::Done => "wait for a thread",
                    WaitOutcome::TimedOut => "wait for a thread: timed out",
                    WaitOutcome::Failed => "wait for a thread: failed",
                    WaitOutcome::Open => "wait for a thread: open",
                };
                self.rows.push(Code {
                    name: if name.is_empty() { "wait".to_owned() } else { name },
                    kind: kind.to_owned(),
                    state: None,
                    function: place.function,
                    file: place.file,
                    line: place.line,
                });
                self.rows.len() as u32 - 1
            });
        }
    }

    fn add_collectives(&mut self, execution: &Execution) {
        for part in &execution.communication.participations {
            let is_complete = part.completed != NO_TIME;
            self.collective_codes.entry((part.function, is_complete)).or_insert_with(|| {
                let function = FUNCTIONS.get(part.function as usize).copied().unwrap_or("operation");
                let kind = if is_complete { "collective operation" } else { "collective operation: open" };
                let (name, kind) = (format!("MPI_{function}"), kind.to_owned());
                self.rows.push(Code { name, kind, ..Code::default() });
                self.rows.len() as u32 - 1
            });
        }
    }

    pub(super) fn wait_code(&self, wait: &ThreadWait) -> u32 {
        let key = (wait.object, wait.site, wait.outcome);
        self.wait_codes.get(&key).copied().unwrap_or(self.doubts[0])
    }

    pub(super) fn collective_code(&self, part: &Participation) -> u32 {
        let key = (part.function, part.completed != NO_TIME);
        self.collective_codes.get(&key).copied().unwrap_or(self.doubts[0])
    }

    pub(super) fn section_code(&self, state: State, place: Place) -> u32 {
        self.section_codes.get(&(state, place)).copied().unwrap_or(self.doubts[0])
    }

    pub(super) fn operation_code(&self, queue: u32, operation: &DeviceOperation) -> u32 {
        self.device_codes.get(&(queue, operation.name, operation.kind)).copied().unwrap_or(self.doubts[0])
    }

    pub(super) fn call_code(&self, list: u32, name: u32, kind: u32) -> u32 {
        self.device_codes.get(&(list | CALLS, name, kind)).copied().unwrap_or(self.doubts[0])
    }

    /// The code of a doubt; of lost events without one.
    pub(super) fn doubt_code(&self, doubt: Option<usize>) -> u32 {
        self.doubts[doubt.unwrap_or(Doubt::ALL.len())]
    }
}

/// Whether a lane has sections of the execution.
pub(super) fn thread_of(lanes: &Lanes, lane: usize) -> Option<ThreadIndex> {
    match lanes.rows[lane].kind {
        LaneKind::Thread(thread) | LaneKind::Cpu(thread) => Some(thread),
        _ => None,
    }
}
