//! All contexts of a run, and their threads.

use crate::context::{Burst, Context, DEEPEST, Deferred};
use crate::ended_tasks::Ended;
use crate::problem::Problem;
use crate::raw::{Message, Raw};
use crate::shown::{Behaviour, Item, Lane, Shown};
use std::collections::HashMap;
use taskscope_event::models::instrument::{DOMAIN_TASK, NO_PARTNER};

/// Receives shown items, and problems.
pub trait Out {
    /// Items of one lane come in the order of their events.
    fn show(&mut self, item: Item<'_>);
    /// An event of `thread` at `at` was wrong.
    fn problem(&mut self, _thread: u32, _at: u64, _problem: Problem) {}
}

/// Maximum contexts searched for the owner of a wrong event's name, and maximum searches: they serve a
/// message, and must not make a damaged trace slow.
const LOOKED_THROUGH: usize = 4096;
const LOOKS: u32 = 1000;

/// The contexts of all tasks and threads, played through one [`Behaviour`].
pub struct Contexts {
    behaviour: Behaviour,
    pub(crate) threads: Vec<Thread>,
    /// The existing tasks.
    pub(crate) tasks: HashMap<(u32, u64), Task>,
    ended: Ended,
    looks: u32,
}

pub(crate) struct Thread {
    pub process: u32,
    pub own: Context,
    /// Tasks on the thread, innermost last.
    pub frames: Vec<Frame>,
    /// A task taken up by the thread.
    pub runs_tasks: bool,
    /// Whether the recording of its process ended before it.
    pub ends_with_process: bool,
}

pub(crate) enum Frame {
    Task(u64),
    /// A task that is also elsewhere, by mistake: its changes here stay here.
    Apart(u64, Box<Context>),
}

impl Frame {
    pub fn task(&self) -> u64 {
        match self {
            Frame::Task(task) | Frame::Apart(task, _) => *task,
        }
    }
}

#[derive(Default)]
pub(crate) struct Task {
    /// 0 without a creation event.
    pub kind: u32,
    pub context: Context,
    /// The thread that it is on, innermost or not.
    pub on: Option<u32>,
    /// Whether it is on no thread and can run.
    pub is_ready: bool,
    /// Start of its time as the innermost, if it is.
    since: Option<u64>,
    /// Its running time before.
    ran_ns: u64,
    /// Whether it ends when its thread puts it down.
    ending: bool,
}

impl Task {
    fn own_ns(&self, at: u64) -> u64 {
        self.ran_ns + self.since.map_or(0, |since| at.saturating_sub(since))
    }
}

impl Contexts {
    /// Creates the contexts, without any thread or task.
    pub fn new(behaviour: Behaviour) -> Contexts {
        Contexts { behaviour, threads: Vec::new(), tasks: HashMap::new(), ended: Ended::default(), looks: 0 }
    }

    /// Adds a thread of a process; its number is the next one, from 0.
    pub fn add_thread(&mut self, process: u32) -> u32 {
        self.threads.push(Thread {
            process,
            own: Context::default(),
            frames: Vec::new(),
            runs_tasks: false,
            ends_with_process: false,
        });
        self.threads.len() as u32 - 1
    }

    /// Registers that the recording of a thread's process ended before the thread, so that its open sections count as no
    /// mistakes.
    pub fn ends_with_process(&mut self, thread: u32) {
        if let Some(thread) = self.threads.get_mut(thread as usize) {
            thread.ends_with_process = true;
        }
    }

    /// The task that is innermost on a thread; 0 for none.
    pub fn task_on(&self, thread: u32) -> u64 {
        self.threads.get(thread as usize).and_then(|t| t.frames.last()).map_or(0, Frame::task)
    }

    /// The tasks on a thread, innermost last.
    pub fn tasks_on(&self, thread: u32) -> impl Iterator<Item = u64> + '_ {
        self.threads.get(thread as usize).into_iter().flat_map(|t| t.frames.iter().map(Frame::task))
    }

    /// Takes an event of a thread. Events of a thread that was not added are passed over.
    pub fn event(&mut self, thread: u32, at: u64, raw: &Raw<'_>, out: &mut impl Out) {
        if thread as usize >= self.threads.len() {
            return;
        }
        match *raw {
            Raw::StatePush { state } => self.push(thread, at, state, out),
            Raw::StatePop { state } => self.pop(thread, at, state, out),
            Raw::StatesHide => self.current(thread).hide(),
            Raw::StatesShow => {
                let behaviour = self.behaviour;
                self.change(thread, at, out, |context, show| context.unhide(behaviour, show));
            }
            Raw::BurstOpen { key, value } => self.open(thread, at, Burst { key, value }, out),
            Raw::BurstClose { key, value } => self.close(thread, at, Burst { key, value }, out),
            Raw::StateAndBurstOpen { state, key, value } => {
                self.push(thread, at, state, out);
                self.open(thread, at, Burst { key, value }, out);
            }
            Raw::StateAndBurstClose { state, key, value } => {
                self.close(thread, at, Burst { key, value }, out);
                self.pop(thread, at, state, out);
            }
            Raw::Point { key, value } => self.show(thread, at, Shown::Point { key, value }, out),
            Raw::Composite(pairs) => self.show(thread, at, Shown::Composite(pairs), out),
            Raw::Send(message) => self.show(thread, at, Shown::Send(message), out),
            Raw::Receive(message) => self.show(thread, at, Shown::Receive(message), out),
            Raw::DeferredPoint { task, key, value } => {
                self.defer(thread, at, task, Deferred::Point { key, value }, out)
            }
            Raw::DeferredSend { task, message } => self.defer(thread, at, task, Deferred::Send(message), out),
            Raw::DeferredReceive { task, message } => {
                self.defer(thread, at, task, Deferred::Receive(message), out)
            }
            Raw::TaskCreate { task, kind } => self.create(thread, at, task, kind, out),
            Raw::TaskReady { task } => {
                self.known(thread, at, task, out).is_ready = true;
                self.mark(thread, at, task, Shown::Ready { task }, out);
            }
            Raw::TaskEnter { task } => self.turn(thread, at, None, Some(task), false, out),
            Raw::TaskLeave { task } => self.turn(thread, at, Some(task), None, false, out),
            Raw::TaskYield { task } => {
                let is_here = self.is_on(thread, task);
                self.turn(thread, at, Some(task), None, false, out);
                let process = self.threads[thread as usize].process;
                if is_here && let Some(known) = self.tasks.get_mut(&(process, task)) {
                    known.is_ready = known.on.is_none();
                    self.mark(thread, at, task, Shown::Ready { task }, out);
                }
            }
            Raw::TaskSwitch { old, new } => {
                let [old, new] = [old, new].map(|task| (task != 0).then_some(task));
                self.turn(thread, at, old, new, false, out);
            }
            Raw::TaskEnd { task } => self.end(thread, at, task, out),
        }
    }

    /// Ends a thread: nothing may be open on it, unless the recording of its process ended before it.
    pub fn thread_ends(&mut self, thread: u32, at: u64, out: &mut impl Out) {
        if thread as usize >= self.threads.len() {
            return;
        }
        let is_mistake = !self.threads[thread as usize].ends_with_process;
        while let Some(task) = self.threads[thread as usize].frames.last().map(Frame::task) {
            if is_mistake {
                out.problem(thread, at, Problem::TaskAtThreadEnd { task });
            }
            self.turn(thread, at, Some(task), None, false, out);
        }
        let own = std::mem::take(&mut self.threads[thread as usize].own);
        let (states, bursts) = (own.open_states() as u32, own.open_bursts() as u32);
        if states + bursts > 0 && is_mistake {
            out.problem(thread, at, Problem::OpenAtThreadEnd { states, bursts });
        }
        // States that were hidden when they were left are still shown.
        let lane = Lane::Thread(thread);
        own.end_shown(self.behaviour, &mut |shown| out.show(Item { lane, thread, at, own_ns: 0, shown }));
    }

    /// The context that the thread's events belong to.
    fn current(&mut self, thread: u32) -> &mut Context {
        let Thread { process, own, frames, .. } = &mut self.threads[thread as usize];
        match frames.last_mut() {
            Some(Frame::Task(task)) => &mut self.tasks.entry((*process, *task)).or_default().context,
            Some(Frame::Apart(_, context)) => context,
            None => own,
        }
    }

    /// The lane of the task that is innermost on the thread, and the task's own time.
    fn task_lane(&self, thread: u32, at: u64) -> Option<(Lane, u64)> {
        let Thread { process, frames, .. } = &self.threads[thread as usize];
        let Some(Frame::Task(task)) = frames.last() else { return None };
        let own_ns = self.tasks.get(&(*process, *task)).map_or(0, |task| task.own_ns(at));
        Some((Lane::Task { process: *process, task: *task }, own_ns))
    }

    /// Changes the current context; emits the resulting items of its thread and its task.
    fn change<R: Into<Option<Problem>>>(
        &mut self,
        thread: u32,
        at: u64,
        out: &mut impl Out,
        change: impl FnOnce(&mut Context, &mut dyn FnMut(Shown<'static>)) -> R,
    ) {
        let task_lane = self.task_lane(thread, at);
        let problem = change(self.current(thread), &mut |shown| {
            out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown });
            if let Some((lane, own_ns)) = task_lane {
                out.show(Item { lane, thread, at, own_ns, shown });
            }
        });
        if let Some(problem) = problem.into() {
            out.problem(thread, at, problem);
        }
    }

    fn show(&self, thread: u32, at: u64, shown: Shown<'_>, out: &mut impl Out) {
        out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown });
        if let Some((lane, own_ns)) = self.task_lane(thread, at) {
            out.show(Item { lane, thread, at, own_ns, shown });
        }
    }

    fn push(&mut self, thread: u32, at: u64, state: u32, out: &mut impl Out) {
        self.change(thread, at, out, |context, show| context.push(state, show));
    }

    fn open(&mut self, thread: u32, at: u64, burst: Burst, out: &mut impl Out) {
        self.change(thread, at, out, |context, show| context.open(burst, show));
    }

    fn pop(&mut self, thread: u32, at: u64, state: u32, out: &mut impl Out) {
        let behaviour = self.behaviour;
        let mut found = true;
        self.change(thread, at, out, |context, show| {
            let popped = context.pop(state, behaviour, show);
            found = popped.is_some();
            popped.flatten()
        });
        if !found {
            let problem = match self.owner(thread, |context| context.has_state(state)) {
                Some(task) => Problem::OtherTasksState { state, task },
                None => Problem::PopWithoutPush { state },
            };
            out.problem(thread, at, problem);
        }
    }

    fn close(&mut self, thread: u32, at: u64, burst: Burst, out: &mut impl Out) {
        let behaviour = self.behaviour;
        let mut found = true;
        self.change(thread, at, out, |context, show| {
            let closed = context.close(burst, behaviour, show);
            found = closed.is_some();
            closed.flatten()
        });
        if !found {
            let Burst { key, value } = burst;
            let problem = match self.owner(thread, |context| context.has_burst(burst)) {
                Some(task) => Problem::OtherTasksBurst { key, value, task },
                None => Problem::CloseWithoutOpen { key, value },
            };
            out.problem(thread, at, problem);
        }
    }

    /// A task of the thread's process with a context that satisfies this, the lowest of those searched.
    fn owner(&mut self, thread: u32, holds: impl Fn(&Context) -> bool) -> Option<u64> {
        if self.looks >= LOOKS {
            return None;
        }
        self.looks += 1;
        let process = self.threads[thread as usize].process;
        let looked = self.tasks.iter().take(LOOKED_THROUGH);
        looked
            .filter(|((of, _), task)| *of == process && holds(&task.context))
            .map(|((_, task), _)| *task)
            .min()
    }

    fn create(&mut self, thread: u32, at: u64, task: u64, kind: u32, out: &mut impl Out) {
        let process = self.threads[thread as usize].process;
        let parent = self.task_on(thread);
        if self.tasks.contains_key(&(process, task)) {
            return out.problem(thread, at, Problem::CreatedTwice { task });
        }
        // A number that is used again is another task.
        self.ended.remove(process, task);
        self.tasks.insert((process, task), Task { kind, is_ready: true, ..Task::default() });
        self.mark(thread, at, task, Shown::Created { task, kind, parent }, out);
        if self.behaviour != Behaviour::Raw {
            self.show(thread, at, Shown::Send(way_of(task)), out);
        }
    }

    /// A task that should have been created, and not have ended.
    fn known(&mut self, thread: u32, at: u64, task: u64, out: &mut impl Out) -> &mut Task {
        let process = self.threads[thread as usize].process;
        self.tasks.entry((process, task)).or_insert_with(|| {
            let ended = self.ended.remove(process, task);
            let problem = if ended { Problem::UsedAfterEnd { task } } else { Problem::NotCreated { task } };
            out.problem(thread, at, problem);
            Task::default()
        })
    }

    /// Something about a task itself: its lane shows it, and with [`Behaviour::Raw`] its thread.
    fn mark(&self, thread: u32, at: u64, task: u64, shown: Shown<'_>, out: &mut impl Out) {
        let process = self.threads[thread as usize].process;
        if self.behaviour == Behaviour::Raw {
            out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown });
        }
        let own_ns = self.tasks.get(&(process, task)).map_or(0, |task| task.own_ns(at));
        out.show(Item { lane: Lane::Task { process, task }, thread, at, own_ns, shown });
    }

    fn defer(&mut self, thread: u32, at: u64, task: u64, deferred: Deferred, out: &mut impl Out) {
        let known = self.known(thread, at, task, out);
        if known.context.deferred.len() < DEEPEST {
            known.context.deferred.push(deferred);
        } else {
            out.problem(thread, at, Problem::TooDeep { limit: DEEPEST as u32 });
        }
    }

    fn is_on(&self, thread: u32, task: u64) -> bool {
        self.threads[thread as usize].frames.iter().any(|frame| frame.task() == task)
    }

    /// Whether the innermost task on the thread has been ended by another thread.
    fn is_ending(&self, thread: u32) -> bool {
        let Thread { process, frames, .. } = &self.threads[thread as usize];
        let Some(Frame::Task(task)) = frames.last() else { return false };
        self.tasks.get(&(*process, *task)).is_some_and(|task| task.ending)
    }

    /// Switches tasks: one leaves the thread, another comes, or both.
    fn turn(
        &mut self,
        thread: u32,
        at: u64,
        old: Option<u64>,
        new: Option<u64>,
        last: bool,
        out: &mut impl Out,
    ) {
        if let Some(task) = old {
            if !self.is_on(thread, task) {
                out.problem(thread, at, Problem::NotOnThread { task });
                return if new.is_some() {
                    self.turn(thread, at, None, new, false, out)
                };
            }
            // Tasks taken up on top of it and not put down are put down with it.
            while self.task_on(thread) != task {
                let inner = self.task_on(thread);
                out.problem(thread, at, Problem::NotInnermostTask { task, inner });
                self.turn(thread, at, Some(inner), None, false, out);
            }
        }
        if old.is_none() && new.is_some() && self.threads[thread as usize].frames.len() >= DEEPEST {
            return out.problem(thread, at, Problem::TooDeep { limit: DEEPEST as u32 });
        }
        let last = old.is_some() && (last || self.is_ending(thread));
        self.suspend(thread, at, last, out);
        if old.is_some()
            && let Some(Frame::Task(task)) = self.threads[thread as usize].frames.pop()
        {
            self.put_down(thread, at, task, last, out);
        }
        if let Some(task) = new {
            let frame = self.take_up(thread, at, task, out);
            let on = &mut self.threads[thread as usize];
            on.frames.push(frame);
            on.runs_tasks = true;
        }
        self.resume(thread, at, out);
    }

    /// Suspends the innermost context of the thread.
    fn suspend(&mut self, thread: u32, at: u64, last: bool, out: &mut impl Out) {
        let Contexts { behaviour, threads, tasks, .. } = self;
        let Thread { process, own, frames, .. } = &mut threads[thread as usize];
        let mut show = |shown: Shown<'static>| {
            out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown })
        };
        let (context, task) = match frames.last() {
            Some(Frame::Task(task)) => {
                let known = tasks.entry((*process, *task)).or_default();
                known.ran_ns = known.own_ns(at);
                known.since = None;
                (&known.context, Some(*task))
            }
            Some(Frame::Apart(_, context)) => (&**context, None),
            None => (&*own, None),
        };
        if *behaviour == Behaviour::Raw {
            if let Some(task) = task {
                show(Shown::Suspend { task, thread, last });
            }
        } else {
            if let Some(task) = task.filter(|_| !last) {
                show(Shown::Send(way_of(task)));
            }
            context.end_shown(*behaviour, &mut show);
        }
        if let Some(task) = task {
            let lane = Lane::Task { process: *process, task };
            let known = &tasks[&(*process, task)];
            if last {
                let behaviour = *behaviour;
                known.context.end_shown(behaviour, &mut |shown| {
                    out.show(Item { lane, thread, at, own_ns: known.ran_ns, shown })
                });
            }
            out.show(Item {
                lane,
                thread,
                at,
                own_ns: known.ran_ns,
                shown: Shown::Suspend { task, thread, last },
            });
        }
    }

    /// Resumes the innermost context of the thread.
    fn resume(&mut self, thread: u32, at: u64, out: &mut impl Out) {
        let Contexts { behaviour, threads, tasks, .. } = self;
        let Thread { process, own, frames, .. } = &mut threads[thread as usize];
        let raw = *behaviour == Behaviour::Raw;
        let task = match frames.last() {
            Some(Frame::Task(task)) => *task,
            Some(Frame::Apart(_, context)) => {
                if !raw {
                    context.begin_shown(*behaviour, &mut |shown| {
                        out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown })
                    });
                }
                return;
            }
            None => {
                if !raw {
                    own.begin_shown(*behaviour, &mut |shown| {
                        out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown })
                    });
                }
                return;
            }
        };
        let known = tasks.entry((*process, task)).or_default();
        known.since = Some(at);
        let (lane, own_ns) = (Lane::Task { process: *process, task }, known.ran_ns);
        out.show(Item { lane, thread, at, own_ns, shown: Shown::Resume { task, thread } });
        let mut show = |shown: Shown<'static>| {
            out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown })
        };
        if raw {
            show(Shown::Resume { task, thread });
        } else {
            show(Shown::Receive(way_of(task)));
            known.context.begin_shown(*behaviour, &mut show);
        }
        for deferred in std::mem::take(&mut known.context.deferred) {
            let shown = match deferred {
                Deferred::Point { key, value } => Shown::Point { key, value },
                Deferred::Send(message) => Shown::Send(message),
                Deferred::Receive(message) => Shown::Receive(message),
            };
            out.show(Item { lane: Lane::Thread(thread), thread, at, own_ns: 0, shown });
            out.show(Item { lane, thread, at, own_ns, shown });
        }
    }

    fn put_down(&mut self, thread: u32, at: u64, task: u64, last: bool, out: &mut impl Out) {
        let process = self.threads[thread as usize].process;
        let known = self.tasks.entry((process, task)).or_default();
        known.on = None;
        if last {
            self.retire(thread, at, task, out);
        }
    }

    fn take_up(&mut self, thread: u32, at: u64, task: u64, out: &mut impl Out) -> Frame {
        let known = self.known(thread, at, task, out);
        match known.on {
            Some(other) => {
                out.problem(
                    thread,
                    at,
                    if other == thread {
                        Problem::RunsHere { task }
                    } else {
                        Problem::RunsElsewhere { task, thread: other }
                    },
                );
                Frame::Apart(task, Box::default())
            }
            None => {
                known.on = Some(thread);
                known.is_ready = false;
                Frame::Task(task)
            }
        }
    }

    fn end(&mut self, thread: u32, at: u64, task: u64, out: &mut impl Out) {
        let here = self.threads[thread as usize].frames.iter().rfind(|frame| frame.task() == task);
        match here {
            // The end of the wrong task does not affect the task itself.
            Some(Frame::Apart(..)) => self.turn(thread, at, Some(task), None, false, out),
            Some(Frame::Task(_)) => self.turn(thread, at, Some(task), None, true, out),
            None => {
                let known = self.known(thread, at, task, out);
                match known.on {
                    Some(other) => {
                        known.ending = true;
                        out.problem(thread, at, Problem::EndsElsewhere { task, thread: other });
                    }
                    None => {
                        let own_ns = known.ran_ns;
                        let process = self.threads[thread as usize].process;
                        let lane = Lane::Task { process, task };
                        let context = &self.tasks[&(process, task)].context;
                        context.end_shown(self.behaviour, &mut |shown| {
                            out.show(Item { lane, thread, at, own_ns, shown });
                        });
                        self.mark(thread, at, task, Shown::Suspend { task, thread, last: true }, out);
                        self.retire(thread, at, task, out);
                    }
                }
            }
        }
    }

    /// Keeps of an ended task that it was.
    fn retire(&mut self, thread: u32, at: u64, task: u64, out: &mut impl Out) {
        let process = self.threads[thread as usize].process;
        let context = self.tasks.remove(&(process, task)).unwrap_or_default().context;
        self.ended.insert(process, task);
        let (states, bursts) = (context.open_states() as u32, context.open_bursts() as u32);
        if states + bursts > 0 {
            out.problem(thread, at, Problem::OpenAtEnd { task, states, bursts });
        }
        if !context.deferred.is_empty() {
            let events = context.deferred.len() as u32;
            out.problem(thread, at, Problem::DeferredUnseen { task, events });
        }
    }
}

/// The message half of a task's way from one thread to the next.
fn way_of(task: u64) -> Message {
    Message { domain: DOMAIN_TASK, partner: NO_PARTNER, id: task, key: 0, value: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Steps(Vec<(Lane, String)>);

    impl Out for Steps {
        fn show(&mut self, item: Item<'_>) {
            self.0.push((item.lane, format!("{:?}", item.shown)));
        }
    }

    #[test]
    fn a_task_ended_on_another_thread_ends_with_its_states() {
        let mut contexts = Contexts::new(Behaviour::Stacked);
        (0..2).for_each(|_| _ = contexts.add_thread(0));
        let mut out = Steps::default();
        let events = [
            (0, Raw::TaskCreate { task: 1, kind: 1 }),
            (0, Raw::TaskEnter { task: 1 }),
            (0, Raw::StatePush { state: 7 }),
            (1, Raw::TaskEnd { task: 1 }),
            (0, Raw::TaskYield { task: 1 }),
        ];
        for (at, (thread, raw)) in (1..).zip(events) {
            contexts.event(thread, at, &raw, &mut out);
        }
        let lane = Lane::Task { process: 0, task: 1 };
        let steps: Vec<String> =
            out.0.into_iter().filter(|(of, _)| *of == lane).map(|(_, step)| step).collect();
        let last = ["StateStart(7)", "StateEnd(7)", "Suspend { task: 1, thread: 0, last: true }"];
        assert_eq!(steps.last_chunk(), Some(&last.map(str::to_owned)));
    }
}
