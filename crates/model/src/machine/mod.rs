//! The machine: plays events in order, keeps the state of threads, CPUs and tasks, emits the values of views,
//! and reports broken rules.
//!
//! Rules are ovniemu's (the reference is its behaviour, not its design). At errors that stop ovniemu, the
//! machine reports a [`Violation`] and continues with the most plausible state.

mod action;
mod channel;
mod checker;
pub(crate) mod commit;
mod cpu;
mod current;
mod finish;
mod guard;
mod instrument;
mod rules_ovni;
mod rules_tasks;
pub(crate) mod slot;
mod task;
mod thread;
pub(crate) mod uncertain_rows;
mod uncertainty;

use crate::system::System;
use crate::views::Cells;
use crate::views::breakdown::{Breakdown, TouchedBreakdown};
use crate::violation::{Violation, ViolationCode};
use action::{Action, ActionTable, Entry};
use channel::{ChannelError, ChannelState};
use checker::Checker;
use cpu::CpuState;
use current::Current;
use guard::Guard;
use rustc_hash::FxHashMap;
use slot::{Slot, Slots};
use task::TaskTable;
use taskscope_event::Code;
use taskscope_event::decode::PayloadError;
use taskscope_event::models::{kernel, mpi, nanos6, nodes, nosv, openmp, ovni, tampi};
use taskscope_event::spec::EventSpec;
use taskscope_execution::view::{ViewFamily, ViewObserver};
use thread::ThreadMachine;
pub use thread::ThreadState;
pub use uncertain_rows::DOUBT_TYPE;
use uncertain_rows::Doubts;

/// Options of a replay.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineOptions {
    /// Enables all models, whatever the streams require.
    pub all_models: bool,
    /// Make the breakdown views.
    pub breakdown: bool,
}

/// An event as the machine takes it.
#[derive(Clone, Copy, Debug)]
pub struct InputEvent<'a> {
    /// Index of its stream.
    pub stream: usize,
    /// Nanoseconds since the first event of the trace; never lower than that of the event before.
    pub time_ns: i64,
    /// The event.
    pub code: Code,
    /// Its payload; for a jumbo event, the data without the size word.
    pub payload: &'a [u8],
    /// Whether it is jumbo.
    pub is_jumbo: bool,
    /// Byte offset in its stream.
    pub offset: u64,
}

/// Plays events; see the module.
pub struct Machine<'s, O: ViewObserver> {
    pub(crate) system: &'s System,
    /// Receiver of changes of views.
    pub observer: O,
    violations: Vec<Violation>,
    pub(crate) slots: Vec<Slot<'s>>,
    slot_of: Slots,
    actions: ActionTable,
    enabled: [bool; 256],
    threads: Vec<ThreadMachine>,
    cpus: Vec<CpuState>,
    pub(crate) nanos6_tasks: Vec<TaskTable>,
    pub(crate) nosv_tasks: Vec<TaskTable>,
    pub(crate) openmp_tasks: Vec<TaskTable>,
    threads_of_tid: FxHashMap<i64, Vec<u32>>,
    thread_cells: Cells,
    cpu_cells: Cells,
    pub(crate) breakdowns: Vec<Breakdown>,
    // Writes of the current event.
    written: Vec<(u32, u16)>,
    changed_threads: Vec<u32>,
    changed_cpus: Vec<u32>,
    touched_breakdowns: Vec<TouchedBreakdown>,
    /// Number of the current event, for stamps.
    event_number: u64,
    current: Current,
    /// CPUs with two running threads: it may be resolved within the nanosecond.
    contested: Vec<Contested>,
    notes: Vec<String>,
    instrumentation: Checker,
    pub(crate) doubts: Doubts,
}

/// A CPU with two running threads.
#[derive(Clone, Copy)]
struct Contested {
    cpu: u32,
    /// The thread that runs there second.
    thread: u32,
    since: Current,
}

/// Columns of a thread's row before those of channels.
pub(crate) const THREAD_COLUMNS: usize = 3;
/// Columns of a CPU's row before those of channels.
pub(crate) const CPU_COLUMNS: usize = 3;

/// Payload sizes in bytes that runtimes write beyond ovni's declarations: Nanos6 adds the woken thread, nOS-V
/// a second count of CPUs.
const WRITTEN_LONGER: [(Code, usize); 2] = [(nanos6::POINT_WAKES_WORKER, 4), (ovni::CPU_COUNT, 8)];

impl<'s, O: ViewObserver> Machine<'s, O> {
    /// A machine at the start of a trace.
    pub fn new(system: &'s System, options: MachineOptions, observer: O) -> Self {
        let mut enabled = [false; 256];
        let standard = [
            ovni::LETTER,
            nanos6::LETTER,
            nosv::LETTER,
            nodes::LETTER,
            openmp::LETTER,
            mpi::LETTER,
            tampi::LETTER,
            kernel::LETTER,
        ];
        for letter in if options.all_models { &standard[..] } else { &system.models[..] } {
            enabled[*letter as usize] = true;
        }
        let (slots, slot_of) = slot::enabled_slots(system, &enabled);
        let channels: Vec<ChannelState> = slots.iter().map(|slot| ChannelState::new(slot.initial)).collect();
        let threads: Vec<ThreadMachine> =
            system.threads.iter().map(|_| ThreadMachine::new(channels.clone())).collect();
        let mut threads_of_tid: FxHashMap<i64, Vec<u32>> = FxHashMap::default();
        for (index, thread) in system.threads.iter().enumerate() {
            threads_of_tid.entry(thread.tid).or_default().push(index as u32);
        }
        let tables = |letter: u8| -> Vec<TaskTable> {
            let count = if enabled[letter as usize] { system.processes.len() } else { 0 };
            (0..count).map(|_| TaskTable::default()).collect()
        };
        let (thread_rows, cpu_rows) =
            if O::WANTS_VIEWS { (system.threads.len(), system.cpus.len()) } else { (0, 0) };
        let mut machine = Machine {
            system,
            observer,
            violations: Vec::new(),
            actions: ActionTable::new(&slot_of),
            enabled,
            threads,
            cpus: vec![CpuState::default(); system.cpus.len()],
            nanos6_tasks: tables(nanos6::LETTER),
            nosv_tasks: tables(nosv::LETTER),
            openmp_tasks: tables(openmp::LETTER),
            threads_of_tid,
            thread_cells: Cells::new(ViewFamily::Thread, thread_rows, THREAD_COLUMNS + slots.len()),
            cpu_cells: Cells::new(ViewFamily::Cpu, cpu_rows, CPU_COLUMNS + slots.len()),
            slots,
            slot_of,
            breakdowns: Vec::new(),
            written: Vec::new(),
            changed_threads: Vec::new(),
            changed_cpus: Vec::new(),
            touched_breakdowns: Vec::new(),
            event_number: 0,
            current: Current::default(),
            contested: Vec::new(),
            notes: Vec::new(),
            instrumentation: Checker::new(&system.threads),
            doubts: Doubts::default(),
        };
        if options.breakdown {
            machine.prepare_breakdowns();
        }
        machine
    }

    /// Plays one event.
    #[inline]
    pub fn play(&mut self, event: InputEvent<'_>) {
        self.event_number += 1;
        self.time_comes_to(event.time_ns);
        self.current = Current {
            stream: event.stream,
            code: Some(event.code),
            offset: event.offset,
            time_ns: event.time_ns,
        };
        let Some(thread) = self.system.thread_of_stream[event.stream] else { return };
        let violations = self.violations.len();
        self.apply(thread, event);
        if O::WANTS_VIEWS && (self.violations.len() > violations || self.doubts.any_broken()) {
            self.doubt_or_trust(thread, violations, event.time_ns);
        }
        self.commit(event.time_ns);
    }

    /// Checks an event of one of taskscope's own models against its declaration. Such events change no view;
    /// the semantic interpreter handles their meaning.
    pub fn play_own(&mut self, event: InputEvent<'_>) {
        self.time_comes_to(event.time_ns);
        self.current = Current {
            stream: event.stream,
            code: Some(event.code),
            offset: event.offset,
            time_ns: event.time_ns,
        };
        let Some(spec) = taskscope_event::models::find(event.code) else {
            let text = format!("no model of taskscope declares `{}`", event.code);
            return self.report(ViolationCode::UnknownOwnEvent, text);
        };
        match spec.check_payload(event.payload, event.is_jumbo) {
            Ok(()) => {}
            Err(PayloadError::NotTerminated) => {
                let text = format!("a text of `{}` has no end", event.code);
                self.report(ViolationCode::LabelNotTerminated, text);
            }
            Err(PayloadError::TooLong) => {
                let text = format!("`{}` has more payload than it declares", event.code);
                self.report(ViolationCode::PayloadExtra, text);
            }
            Err(PayloadError::WrongKind | PayloadError::TooShort) => {
                self.report_payload(event, "its declaration");
            }
        }
        if event.code.model() == taskscope_event::models::instrument::LETTER
            && let Some(thread) = self.system.thread_of_stream[event.stream]
        {
            self.check_instrumentation(thread, event.code, event.payload);
        }
        if event.code == taskscope_event::models::recorder::LOST {
            let text = format!("the recorder {}", spec.sentence(event.payload));
            self.report(ViolationCode::EventsLost, text);
            if let Some(thread) = self.system.thread_of_stream[event.stream] {
                self.note_loss(thread);
            }
        }
    }

    /// Broken rules since the last call. Call it now and then: they are kept until taken.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// Whether there are violations to take.
    pub fn has_violations(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Remarks that are not violations (burst statistics, long flushes), since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Ends the machine and gives the observer back.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Letters of the enabled models.
    pub fn enabled_models(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255u8).filter(|letter| self.enabled[*letter as usize])
    }

    pub(crate) fn is_mark_slot(&self, slot: usize) -> bool {
        self.slots[slot].is_mark
    }

    #[inline]
    fn apply(&mut self, thread: u32, event: InputEvent<'_>) {
        let Entry { action, payload_bytes, spec } = self.actions.find(event.code);
        let violations = self.violations.len();
        match action {
            Action::Push { slot, value, guard } => {
                self.check_guard(thread, guard);
                let may_repeat = self.slots[slot as usize].may_repeat;
                let result = self.threads[thread as usize].channels[slot as usize].push(value, may_repeat);
                self.wrote(thread, slot, value, result);
            }
            Action::Pop { slot, value, guard } => {
                self.check_guard(thread, guard);
                let result = self.threads[thread as usize].channels[slot as usize].pop(value);
                self.wrote(thread, slot, value, result);
            }
            Action::Set { slot, value, guard } => {
                self.check_guard(thread, guard);
                let may_repeat = self.slots[slot as usize].may_repeat;
                let channel = &mut self.threads[thread as usize].channels[slot as usize];
                let result = channel.set(Some(value), may_repeat);
                self.wrote(thread, slot, value, result);
            }
            Action::Nothing { guard } => self.check_guard(thread, guard),
            Action::Rule(rule) => self.apply_rule(thread, event, rule),
            Action::Unknown => self.unknown_event(event),
        }
        if let Some(spec) = spec
            && (event.is_jumbo || event.payload.len() != usize::from(payload_bytes))
        {
            self.check_payload(event, spec, violations);
        }
    }

    /// Reports an undeclared payload, if the event's rule has not (there were `violations` before it):
    /// ovniemu checks the payloads of few events.
    #[cold]
    fn check_payload(&mut self, event: InputEvent<'_>, spec: &'static EventSpec, violations: usize) {
        if event.is_jumbo && !spec.jumbo {
            let text = format!("`{}` has jumbo payload and is declared with a plain one", event.code);
            self.report(ViolationCode::JumboPayload, text);
        }
        if self.violations[violations..].iter().any(|reported| reported.code == ViolationCode::PayloadSize) {
            return;
        }
        let code = match spec.check_payload(event.payload, spec.jumbo) {
            Err(PayloadError::TooShort) => ViolationCode::PayloadShort,
            Err(PayloadError::TooLong) if WRITTEN_LONGER.contains(&(event.code, event.payload.len())) => {
                return;
            }
            Err(PayloadError::TooLong) => ViolationCode::PayloadExtra,
            // A label without an end is reported by the rule.
            _ => return,
        };
        let declared = match spec.jumbo {
            true => "its declaration".to_owned(),
            false => spec.fields.iter().filter_map(|field| field.ty.size()).sum::<usize>().to_string(),
        };
        let text = format!("`{}` has {} bytes of payload, not {declared}", event.code, event.payload.len());
        self.report(code, text);
    }

    /// Reports a state of the thread that forbids the event. The event takes effect nevertheless.
    #[inline]
    fn check_guard(&mut self, thread: u32, guard: Guard) {
        let state = &self.threads[thread as usize];
        let allowed = match guard {
            Guard::None => true,
            Guard::Active => state.state.is_active(),
            Guard::ActiveOnCpu => state.state.is_active() && !state.out_of_cpu,
            Guard::Running => state.state == ThreadState::Running,
        };
        if !allowed {
            self.report_guard(thread, guard);
        }
    }

    #[cold]
    fn report_guard(&mut self, thread: u32, guard: Guard) {
        let tid = self.system.threads[thread as usize].tid;
        let state = &self.threads[thread as usize];
        match guard {
            Guard::ActiveOnCpu if state.state.is_active() => {
                self.report(ViolationCode::ThreadOutOfCpu, format!("current thread {tid} out of CPU"));
            }
            Guard::Running => {
                self.report(ViolationCode::ThreadNotRunning, format!("current thread {tid} not running"));
            }
            _ => self.report(ViolationCode::ThreadNotActive, format!("current thread {tid} not active")),
        }
    }

    /// Records the write to a channel, and reports its error.
    #[inline]
    fn wrote(&mut self, thread: u32, slot: u16, value: i64, result: Result<(), ChannelError>) {
        if O::WANTS_VIEWS {
            self.written.push((thread, slot));
        }
        if let Err(error) = result {
            self.report_channel(thread, slot, value, error);
        }
    }

    #[cold]
    fn report_channel(&mut self, thread: u32, slot: u16, value: i64, error: ChannelError) {
        let tid = self.system.threads[thread as usize].tid;
        let slot = &self.slots[slot as usize];
        let (name, label) = (slot.title.clone(), slot.label_of(value));
        let (code, text) = match error {
            ChannelError::Empty => (
                ViolationCode::PopEmpty,
                format!("thread {tid} leaves {label}, but its stack of {name} is empty"),
            ),
            ChannelError::Mismatch(top) => (
                ViolationCode::PopMismatch,
                format!("thread {tid} leaves {label}, but is in {} ({name})", slot.label_of(top)),
            ),
            ChannelError::Same => (
                ViolationCode::SameValue,
                format!("thread {tid} enters {label} ({name}) again: same value as last_value"),
            ),
            ChannelError::Full => {
                (ViolationCode::StackFull, format!("thread {tid} has more than 512 values stacked of {name}"))
            }
        };
        self.report(code, text);
    }

    #[cold]
    fn unknown_event(&mut self, event: InputEvent<'_>) {
        let letter = event.code.model();
        let Some(model) = taskscope_event::models::model_of(letter) else {
            let text = format!("unknown model of event `{}`", event.code);
            return self.report(ViolationCode::UnknownEvent, text);
        };
        let text = if letter == ovni::LETTER {
            format!("unknown ovni event category {}", event.code.0[1] as char)
        } else {
            format!("unknown {} event `{}`", model.name, event.code)
        };
        self.report(ViolationCode::UnknownEvent, text);
    }

    #[cold]
    fn report(&mut self, code: ViolationCode, text: String) {
        let current = self.current;
        self.report_at(code, text, current);
    }

    #[cold]
    fn report_at(&mut self, code: ViolationCode, text: String, place: Current) {
        self.violations.push(Violation {
            count: 1,
            code,
            stream: self.system.paths.get(place.stream).cloned().unwrap_or_default(),
            event: place.code,
            offset: place.code.map(|_| place.offset),
            time_ns: place.code.map(|_| place.time_ns),
            text,
        });
    }
}
