//! Programs that instrument themselves: their tasks and states become sections of threads.
//!
//! What a thread shows comes from [`taskscope_context`], with all states stacked: a task that moves takes
//! its states along, and so does its time.

use super::frames::Opener;
use super::payload::{text, u32_at, u64_at};
use super::{Interpreter, Short};
use rustc_hash::FxHashMap;
use taskscope_context::{Behaviour, Contexts, Item, Lane, Out, Problem, Raw, Shown};
use taskscope_event::Code;
use taskscope_event::models::instrument::{self as i, class};
use taskscope_execution::{
    Anomaly, Change, Definition, MessageChange, ObjectIndex, Observer, Place, ProcessIndex, Section, State,
    TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
};

/// The contexts of a run's instrumented tasks, and the numbers that the trace gives to what they name.
pub(super) struct Instrumented {
    pub contexts: Contexts,
    tasks: FxHashMap<(ProcessIndex, u64), (TaskIndex, TypeIndex)>,
    types: FxHashMap<(ProcessIndex, Named), TypeIndex>,
    classes: FxHashMap<(ProcessIndex, u32), u32>,
    /// Message domains of processes, and their numbers in the trace by name.
    domains: FxHashMap<(ProcessIndex, u32), u32>,
    domain_names: FxHashMap<String, u32>,
    /// What the event at hand makes threads and tasks show.
    steps: Vec<Step>,
}

impl Instrumented {
    fn domain_of_name(&mut self, name: &str) -> u32 {
        let built_in = i::DOMAINS.iter().position(|known| *known == name);
        let next = i::FIRST_OWN_DOMAIN + self.domain_names.len() as u32;
        match built_in {
            Some(number) => number as u32,
            None => *self.domain_names.entry(name.to_owned()).or_insert(next),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Named {
    State(u32),
    Kind(u32),
}

enum Step {
    Shown(Lane, Shown<'static>),
    Wrong,
}

impl Default for Instrumented {
    fn default() -> Self {
        Instrumented {
            contexts: Contexts::new(Behaviour::StackedStates),
            tasks: FxHashMap::default(),
            types: FxHashMap::default(),
            classes: FxHashMap::default(),
            domains: FxHashMap::default(),
            domain_names: FxHashMap::default(),
            steps: Vec::new(),
        }
    }
}

/// Keeps what sections are made of.
struct Steps<'a>(&'a mut Vec<Step>);

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
        self.0.push(Step::Shown(item.lane, shown));
    }

    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {
        self.0.push(Step::Wrong);
    }
}

/// What a thread does in a state of a class.
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

    /// The thread ends: what it has open ends too.
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

    fn take_steps<O: Observer>(&mut self, thread: ThreadIndex, at: u64, steps: &mut Vec<Step>, out: &mut O) {
        for step in steps.drain(..) {
            match step {
                Step::Wrong => out.anomaly(thread, at, Anomaly::Misuse),
                Step::Shown(Lane::Thread(_), Shown::StateStart(state)) => {
                    self.enter_named_state(thread, at, state, out);
                }
                Step::Shown(Lane::Thread(_), Shown::StateEnd(state)) => {
                    self.close(thread, at, Opener::Named(state), out);
                }
                Step::Shown(Lane::Thread(_), Shown::Send(message)) if message.domain != i::DOMAIN_TASK => {
                    let domain = self.domain(thread, message.domain);
                    let sends = MessageChange::TellsSend { domain, id: message.id, bytes: u64::MAX };
                    out.change(thread, at, Change::Message(sends));
                }
                Step::Shown(Lane::Thread(_), Shown::Receive(message)) if message.domain != i::DOMAIN_TASK => {
                    let domain = self.domain(thread, message.domain);
                    let receives = MessageChange::TellsReceipt { domain, id: message.id };
                    out.change(thread, at, Change::Message(receives));
                }
                Step::Shown(Lane::Task { .. }, shown) => self.task_step(thread, at, shown, out),
                Step::Shown(..) => {}
            }
        }
    }

    /// The domain's number in the trace: those of one name are one. A process names its own before it uses them.
    fn domain(&mut self, thread: ThreadIndex, number: u32) -> u32 {
        let process = self.threads[thread.index()].process;
        if number < i::FIRST_OWN_DOMAIN {
            return number;
        }
        self.instrumented.domains.get(&(process, number)).copied().unwrap_or_else(|| {
            // Without a name it can be nobody else's.
            let unnamed = format!("\0{} {number}", process.0);
            self.instrumented.domain_of_name(&unnamed)
        })
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
            // A task's own work is that of its kind, whatever it calls it.
            Some((_, ty)) if state == State::Task => ty,
            _ => {
                let ty = self.named_type(process, Named::State(number), out);
                if let Some((name, _)) = built_in {
                    out.define(Definition::Type { ty, process, label: name });
                }
                ty
            }
        };
        let section = Section { place: Place::of_type(ty), task, ..Section::of(state) };
        self.open(thread, at, Opener::Named(number), section, out);
    }

    /// The task that is on the thread.
    fn running(&self, process: ProcessIndex, thread: ThreadIndex) -> Option<(TaskIndex, TypeIndex)> {
        let task = self.instrumented.contexts.task_on(thread.0);
        self.instrumented.tasks.get(&(process, task)).copied()
    }

    fn task_step<O: Observer>(&mut self, thread: ThreadIndex, at: u64, shown: Shown<'_>, out: &mut O) {
        let process = self.threads[thread.index()].process;
        match shown {
            Shown::Created { task, kind, parent } => {
                let ty = self.named_type(process, Named::Kind(kind), out);
                let parent = self.instrumented.tasks.get(&(process, parent));
                let parent = parent.map_or(TaskIndex::NONE, |(parent, _)| *parent);
                let region = self.threads[thread.index()].frames.region();
                let index = self.tasks.fresh(ty);
                self.instrumented.tasks.insert((process, task), (index, ty));
                out.change(thread, at, Change::TaskCreated { task: index, ty, parent, region });
                out.change(thread, at, Change::TaskReady { task: index });
            }
            Shown::Ready { task } => {
                let (index, _) = self.instrumented_task(process, task);
                out.change(thread, at, Change::TaskReady { task: index });
            }
            Shown::Resume { task, .. } => {
                let (index, ty) = self.instrumented_task(process, task);
                let place = if ty.is_some() { Place::of_type(ty) } else { Place::UNKNOWN };
                let section =
                    Section { place, task: index, object: ObjectIndex::NONE, ..Section::of(State::Task) };
                self.takes_up_tasks(thread, at, out);
                out.change(thread, at, Change::TaskStarts { task: index });
                self.open(thread, at, Opener::Task(index), section, out);
            }
            Shown::Suspend { task, last, .. } => {
                let (index, _) = self.instrumented_task(process, task);
                let here = self.threads[thread.index()].frames.find_mut(Opener::Task(index)).is_some();
                if here {
                    self.close(thread, at, Opener::Task(index), out);
                }
                // Who ends a task that is on no thread only says so.
                if here {
                    out.change(thread, at, Change::TaskEnds { task: index });
                }
                if last {
                    out.change(thread, at, Change::TaskIsOver { task: index });
                    self.instrumented.tasks.remove(&(process, task));
                } else {
                    out.change(thread, at, Change::TaskSuspends { task: index });
                }
            }
            _ => {}
        }
    }

    /// A thread that runs tasks is a worker, and has nothing to do between them.
    fn takes_up_tasks<O: Observer>(&mut self, thread: ThreadIndex, at: u64, out: &mut O) {
        self.works(thread, at, out);
        let state = &mut self.threads[thread.index()];
        if state.kind == ThreadKind::Unknown {
            state.kind = ThreadKind::Worker;
            out.change(thread, at, Change::ThreadIs(ThreadKind::Worker));
        }
    }

    /// The task with this number; one that nobody created exists from here.
    fn instrumented_task(&mut self, process: ProcessIndex, task: u64) -> (TaskIndex, TypeIndex) {
        let tasks = &mut self.tasks;
        *self
            .instrumented
            .tasks
            .entry((process, task))
            .or_insert_with(|| (tasks.fresh(TypeIndex::NONE), TypeIndex::NONE))
    }

    fn named_type<O: Observer>(&mut self, process: ProcessIndex, named: Named, out: &mut O) -> TypeIndex {
        if let Some(ty) = self.instrumented.types.get(&(process, named)) {
            return *ty;
        }
        let ty = self.names.new_type();
        self.instrumented.types.insert((process, named), ty);
        out.define(Definition::Type { ty, process, label: "" });
        ty
    }

    fn name_or_mistake<O: Observer>(
        &mut self,
        thread: ThreadIndex,
        at: u64,
        code: Code,
        payload: &[u8],
        out: &mut O,
    ) -> Result<(), Short> {
        let process = self.threads[thread.index()].process;
        match code {
            i::STATE => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let class_number = u32_at(payload, 4).ok_or(Short)?;
                self.instrumented.classes.insert((process, number), class_number);
                let ty = self.named_type(process, Named::State(number), out);
                out.define(Definition::Type { ty, process, label: &text(&payload[8..]).0 });
            }
            i::DOMAIN => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let name = text(payload.get(4..).ok_or(Short)?).0.into_owned();
                let domain = self.instrumented.domain_of_name(&name);
                self.instrumented.domains.insert((process, number), domain);
            }
            i::TASK_KIND => {
                let number = u32_at(payload, 0).ok_or(Short)?;
                let line = u32_at(payload, 4).ok_or(Short)?;
                let (name, rest) = text(&payload[8..]);
                let (file, _) = text(rest);
                let ty = self.named_type(process, Named::Kind(number), out);
                let short = file.rsplit('/').next().unwrap_or_default();
                let label = if short.is_empty() {
                    name.into_owned()
                } else {
                    format!("{name} [task at {short}:{line}]")
                };
                out.define(Definition::Type { ty, process, label: &label });
            }
            i::PROBLEM => {
                u64_at(payload, 4).ok_or(Short)?;
                out.anomaly(thread, at, Anomaly::Misuse);
            }
            _ => {}
        }
        Ok(())
    }
}
