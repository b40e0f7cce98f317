//! Programs that instrument themselves: their tasks and states become sections of threads.
//!
//! The visible state of a thread comes from [`taskscope_context`], with all states stacked: a task that moves
//! takes its states along, and so does its time.

mod names;
mod tasks;

use super::state::frames::Opener;
use super::state::instrumented::{ContextStep, Named};
use super::{Interpreter, Short};
use taskscope_context::{Item, Lane, Out, Problem, Raw, Shown};
use taskscope_event::Code;
use taskscope_event::models::instrument::{self as i, class};
use taskscope_execution::{
    Anomaly, Change, Definition, MessageChange, Observer, Place, Section, State, ThreadIndex,
};

/// Collects the steps that sections are made from.
struct Steps<'a>(&'a mut Vec<ContextStep>);

impl Out for Steps<'_> {
    fn show(&mut self, item: Item<'_>) {
        let shown = match item.shown {
            Shown::StateStart(state) => Shown::StateStart(state),
            Shown::StateEnd(state) => Shown::StateEnd(state),
            Shown::Send(message) => Shown::Send(message),
            Shown::Receive(message) => Shown::Receive(message),
            Shown::Created { task, kind, parent } => Shown::Created { task, kind, parent },
            Shown::Ready { task } => Shown::Ready { task },
            Shown::Resume { task, thread } => Shown::Resume { task, thread },
            Shown::Suspend { task, thread, last } => Shown::Suspend { task, thread, last },
            _ => return,
        };
        self.0.push(ContextStep::Shown(item.lane, shown));
    }

    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {
        self.0.push(ContextStep::Wrong);
    }
}

/// State of a thread in an instrumented state of this class.
fn state_of(class_number: u32, in_task: bool) -> State {
    match class_number {
        class::RUNTIME => State::Runtime,
        class::SCHEDULING => State::Scheduling,
        class::CREATION => State::TaskCreation,
        class::SYNCHRONISATION => State::Taskwait,
        class::LOCK => State::LockWait,
        class::COMMUNICATION => State::Communication,
        class::IDLE => State::Idle,
        class::STOPPED => State::Paused,
        class::YIELD => State::Taskyield,
        class::UNKNOWN => State::Unknown,
        _ if in_task => State::Task,
        _ => State::Serial,
    }
}

impl Interpreter {
    /// An event of a program that instruments itself.
    pub(super) fn instrument_event<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let raw = match Raw::decode(code, payload).map_err(|_| Short)? {
            Some(raw) => raw,
            None => return self.name_or_mistake(thread, at, code, payload, out),
        };
        let mut steps = std::mem::take(&mut self.instrumented.steps);
        self.instrumented.contexts.event(thread.0, at, &raw, &mut Steps(&mut steps));
        self.take_steps(thread, at, &mut steps, out);
        self.instrumented.steps = steps;
        Ok(())
    }

    /// Ends the thread and its open sections.
    pub(super) fn instrumented_thread_ends<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        out: &mut O,
    ) {
        let mut steps = std::mem::take(&mut self.instrumented.steps);
        self.instrumented.contexts.thread_ends(thread.0, at, &mut Steps(&mut steps));
        self.take_steps(thread, at, &mut steps, out);
        self.instrumented.steps = steps;
    }

    fn take_steps<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        steps: &mut Vec<ContextStep>,
        out: &mut O,
    ) {
        for step in steps.drain(..) {
            match step {
                ContextStep::Wrong => out.anomaly(thread, at, Anomaly::Misuse),
                ContextStep::Shown(Lane::Thread(_), Shown::StateStart(state)) => {
                    self.enter_named_state(thread, at, state, out);
                }
                ContextStep::Shown(Lane::Thread(_), Shown::StateEnd(state)) => {
                    self.close(thread, at, Opener::Named(state), out);
                }
                ContextStep::Shown(Lane::Thread(_), Shown::Send(message))
                    if message.domain != i::DOMAIN_TASK =>
                {
                    let domain = self.domain(thread, message.domain);
                    let sends = MessageChange::ProgramSends { domain, id: message.id, bytes: u64::MAX };
                    out.change(thread, at, Change::Message(sends));
                }
                ContextStep::Shown(Lane::Thread(_), Shown::Receive(message))
                    if message.domain != i::DOMAIN_TASK =>
                {
                    let domain = self.domain(thread, message.domain);
                    let receives = MessageChange::ProgramReceives { domain, id: message.id };
                    out.change(thread, at, Change::Message(receives));
                }
                ContextStep::Shown(Lane::Task { .. }, shown) => self.task_step(thread, at, shown, out),
                ContextStep::Shown(..) => {}
            }
        }
    }

    fn enter_named_state<O: Observer>(&mut self, thread: ThreadIndex, at: u64, number: u32, out: &mut O) {
        let process = self.threads[thread.index()].process;
        let built_in = i::STATES.get(number as usize);
        let class_number = match self.instrumented.classes.get(&(process, number)) {
            Some(class_number) => *class_number,
            None => built_in.map_or(class::USEFUL, |(_, class_number)| *class_number),
        };
        let task = self.threads[thread.index()].frames.task();
        let state = state_of(class_number, task.is_some());
        let ty = match self.running(process, thread) {
            // A task's own work is that of its kind, for any state name.
            Some((_, ty)) if state == State::Task => ty,
            _ => {
                let ty = self.named_type(process, Named::State(number), out);
                if let Some((name, _)) = built_in {
                    out.define(Definition::Type { ty, process, label: name });
                }
                ty
            }
        };
        let section = Section { place: Place::task_type(ty), task, ..Section::of(state) };
        self.open(thread, at, Opener::Named(number), section, out);
    }
}
