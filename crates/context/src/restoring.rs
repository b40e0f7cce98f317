//! Events that bring fresh contexts into the state of others, for cutting a run in its middle, and those that
//! close all open state.
//!
//! ```text
//!  created      every existing task, on any thread of its process
//!  put_aside    open state of tasks on no thread, on a thread that has run tasks: taken up, opened, put down
//!  taken_up     open state of a thread and the tasks on it, on that thread
//!  … the cut …
//!  closing      puts down the tasks on a thread, and closes the thread's own open state
//! ```
//! Not restored: creators of tasks, and mistakes (a task on two threads at once).

use crate::context::{Burst, Context, Deferred};
use crate::contexts::{Contexts, Frame, Task};
use crate::raw::Raw;

impl Contexts {
    /// Creates the tasks of a process that live.
    pub fn created(&self, process: u32) -> Vec<Raw<'static>> {
        let mut events = Vec::new();
        for (number, task) in self.tasks_of(process) {
            events.push(Raw::TaskCreate { task: number, kind: task.kind });
            if task.on.is_none() && !task.must_be_taken_up() {
                leave_deferred(number, &task.context, &mut events);
            }
        }
        events
    }

    /// Takes up, opens and puts down the tasks of a process that are on no remaining thread.
    pub fn put_aside(&self, process: u32, stays: impl Fn(u32) -> bool) -> Vec<Raw<'static>> {
        let mut events = Vec::new();
        for (number, task) in self.tasks_of(process) {
            let elsewhere = task.on.is_some_and(|thread| !stays(thread));
            if elsewhere || (task.on.is_none() && task.must_be_taken_up()) {
                events.push(Raw::TaskEnter { task: number });
                open(&task.context, &mut events);
                events.push(if task.is_ready || elsewhere {
                    Raw::TaskYield { task: number }
                } else {
                    Raw::TaskLeave { task: number }
                });
                leave_deferred(number, &task.context, &mut events);
            }
        }
        events
    }

    /// Opens a thread's open state, and takes up the tasks on it.
    pub fn taken_up(&self, thread: u32) -> Vec<Raw<'static>> {
        let Some(on) = self.threads.get(thread as usize) else { return Vec::new() };
        let mut events = Vec::new();
        open(&on.own, &mut events);
        for frame in &on.frames {
            let Frame::Task(number) = *frame else { continue };
            events.push(Raw::TaskEnter { task: number });
            if let Some(task) = self.tasks.get(&(on.process, number)) {
                open(&task.context, &mut events);
                leave_deferred(number, &task.context, &mut events);
            }
        }
        events
    }

    /// Puts down the tasks on a thread, and closes its open state outside of them.
    pub fn closing(&self, thread: u32) -> Vec<Raw<'static>> {
        let Some(on) = self.threads.get(thread as usize) else { return Vec::new() };
        let mut events: Vec<Raw> =
            on.frames.iter().rev().map(|frame| Raw::TaskYield { task: frame.task() }).collect();
        let own = &on.own;
        events.extend((0..own.hidden_times()).map(|_| Raw::StatesShow));
        events.extend(own.bursts().iter().rev().map(|b| Raw::BurstClose { key: b.key, value: b.value }));
        events.extend(own.states().iter().rev().map(|state| Raw::StatePop { state: *state }));
        events
    }

    /// Whether the thread has ever taken up a task.
    pub fn runs_tasks(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|thread| thread.runs_tasks)
    }

    /// In the order of their numbers.
    fn tasks_of(&self, process: u32) -> Vec<(u64, &Task)> {
        let process_tasks = self.tasks.iter().filter(|((of, _), _)| *of == process);
        let mut tasks: Vec<(u64, &Task)> = process_tasks.map(|((_, number), task)| (*number, task)).collect();
        tasks.sort_unstable_by_key(|(number, _)| *number);
        tasks
    }
}

impl Task {
    /// A created task can run and has no open state.
    fn must_be_taken_up(&self) -> bool {
        let context = &self.context;
        !self.is_ready || context.open_states() + context.open_bursts() > 0 || context.hidden_times() > 0
    }
}

fn open(context: &Context, events: &mut Vec<Raw<'static>>) {
    let push = |state: &u32| Raw::StatePush { state: *state };
    let (before, left) = context.states_when_hidden();
    events.extend(before.iter().map(push));
    events.extend((0..context.hidden_times()).map(|_| Raw::StatesHide));
    events.extend(before[left..].iter().rev().map(|state| Raw::StatePop { state: *state }));
    events.extend(context.states()[left..].iter().map(push));
    events.extend(context.bursts().iter().map(|&Burst { key, value }| Raw::BurstOpen { key, value }));
}

fn leave_deferred(task: u64, context: &Context, events: &mut Vec<Raw<'static>>) {
    events.extend(context.deferred.iter().map(|deferred| match *deferred {
        Deferred::Point { key, value } => Raw::DeferredPoint { task, key, value },
        Deferred::Send(message) => Raw::DeferredSend { task, message },
        Deferred::Receive(message) => Raw::DeferredReceive { task, message },
    }));
}
