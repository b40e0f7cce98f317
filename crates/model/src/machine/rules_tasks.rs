//! Rules of tasks: types, creation, and actions of bodies on a thread's stack.

use super::action::Rule;
use super::guard::guard_of;
use super::task::{Body, BodyState, TaskRules, TaskTable};
use super::{InputEvent, Machine};
use crate::payload::{i64_at, u32_at};
use crate::views::table::{NANOS6_IN_BODY, NOSV_IN_BODY, channel};
use crate::violation::ViolationCode;
use taskscope_event::models::{nanos6, nosv, openmp};
use taskscope_execution::view::ViewObserver;

/// A longer label is refused by ovniemu.
const MAX_LABEL_BYTES: usize = 511;

const NOSV_PLAIN: TaskRules = TaskRules { may_pause: true, may_run_again: true, relaxed_nesting: false };
const NOSV_PARALLEL: TaskRules = TaskRules { may_pause: false, may_run_again: false, relaxed_nesting: false };
const NANOS6: TaskRules = TaskRules { may_pause: true, may_run_again: false, relaxed_nesting: true };
const OPENMP: TaskRules = TaskRules { may_pause: false, may_run_again: true, relaxed_nesting: true };

impl<O: ViewObserver> Machine<'_, O> {
    pub(super) fn apply_task_rule(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        let model = event.code.model();
        self.check_guard(thread, guard_of(model));
        match rule {
            Rule::TypeCreate => self.create_type(thread, event),
            Rule::TaskCreate | Rule::ParallelTaskCreate => self.create_task(thread, event, rule),
            Rule::TaskExecute | Rule::TaskEnd | Rule::TaskPause | Rule::TaskResume => {
                self.move_task(thread, event, rule);
            }
            Rule::WorkshareExecute | Rule::WorkshareEnd => self.workshare(thread, event, rule),
            Rule::Counters => self.counters(thread, event),
            _ => debug_assert!(false, "{rule:?} is not a rule of tasks"),
        }
    }

    fn tasks(&mut self, thread: u32, model: u8) -> &mut TaskTable {
        let process = self.system.threads[thread as usize].process as usize;
        match model {
            nanos6::LETTER => &mut self.nanos6_tasks[process],
            nosv::LETTER => &mut self.nosv_tasks[process],
            _ => &mut self.openmp_tasks[process],
        }
    }

    fn bodies(&mut self, thread: u32, model: u8) -> &mut Vec<Body> {
        let thread = &mut self.threads[thread as usize];
        match model {
            nanos6::LETTER => &mut thread.nanos6_bodies,
            nosv::LETTER => &mut thread.nosv_bodies,
            _ => &mut thread.openmp_bodies,
        }
    }

    fn create_type(&mut self, thread: u32, event: InputEvent<'_>) {
        let Some(id) = u32_at(event.payload, 0).filter(|_| event.is_jumbo && event.payload.len() > 4) else {
            return self.report_payload(event, "a jumbo payload of a type id and a label");
        };
        let text = &event.payload[4..];
        let end = text.iter().position(|byte| *byte == 0);
        if end.is_none() {
            self.report(ViolationCode::LabelNotTerminated, format!("the label of task type {id} has no end"));
        }
        let label = &text[..end.unwrap_or(text.len())];
        if label.len() > MAX_LABEL_BYTES {
            let text = format!("task type {id} label too long: {} bytes", label.len());
            self.report(ViolationCode::BadLabel, text);
        }
        if id == 0 {
            self.report(ViolationCode::UnknownType, "task type 0 cannot be created".to_owned());
        }
        if !self.tasks(thread, event.code.model()).create_type(id, label) {
            self.report(ViolationCode::RepeatedType, format!("task type {id} exists already"));
        }
    }

    fn create_task(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        let (Some(id), Some(task_type)) = (u32_at(event.payload, 0), u32_at(event.payload, 4)) else {
            return self.report_payload(event, "8 bytes");
        };
        let tasks = self.tasks(thread, event.code.model());
        let knows_type = tasks.task_type(task_type).is_some();
        let created = tasks.create_task(id, task_type, rule == Rule::ParallelTaskCreate);
        if !knows_type {
            let text = format!("cannot find task type {task_type} of task {id}");
            self.report(ViolationCode::UnknownType, text);
        }
        if !created {
            self.report(ViolationCode::RepeatedTask, format!("task {id} exists already"));
        }
    }

    fn move_task(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        let model = event.code.model();
        let Some(task) = u32_at(event.payload, 0) else {
            return self.report_payload(event, "4 bytes or more");
        };
        let Some(body) = self.body_of(thread, event, task) else { return };
        if task == 0 {
            self.report(ViolationCode::TaskZero, "a task with id 0 changes its state".to_owned());
        }
        let before = self.running_body(thread, model);
        let rules = match model {
            nanos6::LETTER => NANOS6,
            nosv::LETTER if self.tasks(thread, model).is_parallel(task) => NOSV_PARALLEL,
            nosv::LETTER => NOSV_PLAIN,
            _ => OPENMP,
        };
        let moved = match rule {
            Rule::TaskExecute => self.execute_body(thread, model, body, rules),
            Rule::TaskPause => self.pause_body(thread, model, body, rules),
            Rule::TaskResume => self.resume_body(thread, model, body),
            _ => self.end_body(thread, model, body),
        };
        let after = self.running_body(thread, model);
        if moved {
            self.show_task(thread, model, rule, body, before, after);
        }
    }

    /// Returns the body named by an event; reports and repairs errors.
    fn body_of(&mut self, thread: u32, event: InputEvent<'_>, task: u32) -> Option<Body> {
        let model = event.code.model();
        if !self.tasks(thread, model).has_task(task) {
            let text = format!("cannot find task with id {task}");
            self.report(ViolationCode::UnknownTask, text);
            // It exists without a creation event; its type stays unknown. Only parallel tasks have bodies
            // with numbers.
            let is_parallel = model == nosv::LETTER && u32_at(event.payload, 4).is_some_and(|body| body > 0);
            self.tasks(thread, model).create_task(task, 0, is_parallel);
        }
        if model != nosv::LETTER {
            return Some(Body { task, body: 1 });
        }
        let Some(body) = u32_at(event.payload, 4) else {
            self.report(ViolationCode::PayloadSize, "missing body id in payload".to_owned());
            return None;
        };
        if self.tasks(thread, model).is_parallel(task) {
            if body == 0 {
                let text = format!("the body_id must be > 0 for parallel task {task}");
                self.report(ViolationCode::BadBodyId, text);
            }
            return Some(Body { task, body });
        }
        if body != 0 {
            let text = format!("the body_id must be 0 for non-parallel task {task}, but is {body}");
            self.report(ViolationCode::BadBodyId, text);
        }
        Some(Body { task, body: 1 })
    }

    /// The body on top of a thread's stack, if it is running.
    fn running_body(&mut self, thread: u32, model: u8) -> Option<Body> {
        let top = *self.bodies(thread, model).last()?;
        (self.tasks(thread, model).state(top) == Some(BodyState::Running)).then_some(top)
    }

    fn execute_body(&mut self, thread: u32, model: u8, body: Body, rules: TaskRules) -> bool {
        let (id, task) = (body.body, body.task);
        if !rules.relaxed_nesting
            && let Some(top) = self.running_body(thread, model)
        {
            let text = format!(
                "body_execute: cannot nest body(id={id},taskid={task}) over body(id={},taskid={}) \
                 which is already running",
                top.body, top.task
            );
            self.report(ViolationCode::TaskNesting, text);
        }
        match self.tasks(thread, model).state(body) {
            None | Some(BodyState::Created) => {}
            Some(BodyState::Dead) if rules.may_run_again => {}
            Some(BodyState::Dead) => {
                let text = format!("body_execute: body(id={id},taskid={task}) is not allowed to run again");
                self.report(ViolationCode::TaskState, text);
            }
            Some(state) => {
                // The sentences are ovni's, to the letter: its users search for them.
                let name = format!("body(id={id},taskid={task})");
                let text = if state == BodyState::Running {
                    format!("body_execute: {name} state must be Created but is Running")
                } else {
                    format!("body_execute: refusing to run {name} in Paused state, needs to resume intead")
                };
                self.report(ViolationCode::TaskState, text);
                if self.bodies(thread, model).contains(&body) {
                    return false;
                }
            }
        }
        self.tasks(thread, model).set_state(body, BodyState::Running);
        self.bodies(thread, model).push(body);
        true
    }

    /// Whether `body` is on top of the thread's stack in this state; reports if not.
    fn is_on_top(&mut self, thread: u32, model: u8, body: Body, state: BodyState, verb: &str) -> bool {
        let (id, task) = (body.body, body.task);
        let found = self.tasks(thread, model).state(body);
        let text = if found.is_none() {
            format!("task_{verb}: cannot find body with id {id} in task {task}")
        } else if found != Some(state) {
            let found = match found {
                Some(BodyState::Running) => "running",
                Some(BodyState::Paused) => "paused",
                Some(BodyState::Dead) => "dead",
                _ => "created",
            };
            format!("cannot {verb} body(id={id},taskid={task}): it is {found}")
        } else if self.bodies(thread, model).last() != Some(&body) {
            format!("cannot {verb} body(id={id},taskid={task}): it is not the innermost one of this thread")
        } else {
            return true;
        };
        self.report(ViolationCode::TaskState, text);
        false
    }

    fn pause_body(&mut self, thread: u32, model: u8, body: Body, rules: TaskRules) -> bool {
        if !rules.may_pause {
            let text =
                format!("body_pause: body(id={},taskid={}) is not allowed to pause", body.body, body.task);
            self.report(ViolationCode::TaskState, text);
        }
        if !self.is_on_top(thread, model, body, BodyState::Running, "pause") {
            return false;
        }
        self.tasks(thread, model).set_state(body, BodyState::Paused);
        true
    }

    fn resume_body(&mut self, thread: u32, model: u8, body: Body) -> bool {
        if !self.is_on_top(thread, model, body, BodyState::Paused, "resume") {
            return false;
        }
        self.tasks(thread, model).set_state(body, BodyState::Running);
        true
    }

    fn end_body(&mut self, thread: u32, model: u8, body: Body) -> bool {
        let regular = self.is_on_top(thread, model, body, BodyState::Running, "end");
        let bodies = self.bodies(thread, model);
        // Bodies above one that ends have ended too, without events.
        let Some(position) = bodies.iter().rposition(|other| *other == body) else { return regular };
        let above = bodies.split_off(position);
        for body in above {
            self.tasks(thread, model).set_state(body, BodyState::Dead);
        }
        true
    }

    /// Writes the channels that show the running task.
    fn show_task(
        &mut self,
        thread: u32,
        model: u8,
        rule: Rule,
        body: Body,
        before: Option<Body>,
        after: Option<Body>,
    ) {
        if model == openmp::LETTER {
            return self.show_openmp_task(thread, rule, body);
        }
        let (subsystem, in_body) = match model {
            nosv::LETTER => (channel::NOSV_SUBSYSTEM, NOSV_IN_BODY),
            _ => (channel::NANOS6_SUBSYSTEM, NANOS6_IN_BODY),
        };
        match rule {
            Rule::TaskExecute => self.push_channel(thread, subsystem, in_body),
            Rule::TaskEnd => self.pop_channel(thread, subsystem, in_body),
            _ => {}
        }
        // A switch between nested bodies leaves the process's state unchanged.
        let switch = match rule {
            Rule::TaskExecute => before.is_some(),
            Rule::TaskEnd => after.is_some(),
            _ => false,
        };
        let process = &self.system.processes[self.system.threads[thread as usize].process as usize];
        let (app_id, rank) = (process.app_id, process.rank);
        let task_type = after.and_then(|body| self.tasks(thread, model).type_value(body.task));
        let task = after.map(|body| i64::from(body.task));
        let is_nosv = model == nosv::LETTER;
        if is_nosv {
            self.set_channel(thread, channel::NOSV_BODY, after.map(|body| i64::from(body.body)));
        }
        self.set_channel(thread, if is_nosv { channel::NOSV_TASK } else { channel::NANOS6_TASK }, task);
        self.set_channel(thread, if is_nosv { channel::NOSV_TYPE } else { channel::NANOS6_TYPE }, task_type);
        if switch {
            return;
        }
        if is_nosv {
            self.set_channel(thread, channel::NOSV_APP, after.map(|_| app_id));
        }
        if let Some(rank) = rank {
            let shown = after.map(|_| rank + 1);
            self.set_channel(thread, if is_nosv { channel::NOSV_RANK } else { channel::NANOS6_RANK }, shown);
        }
    }

    fn show_openmp_task(&mut self, thread: u32, rule: Rule, body: Body) {
        let label = self.tasks(thread, openmp::LETTER).type_value(body.task);
        let task = i64::from(body.task);
        if rule == Rule::TaskExecute {
            if let Some(label) = label {
                self.push_channel(thread, channel::OPENMP_LABEL, label);
            }
            self.push_channel(thread, channel::OPENMP_TASK, task);
        } else {
            if let Some(label) = label {
                self.pop_channel(thread, channel::OPENMP_LABEL, label);
            }
            self.pop_channel(thread, channel::OPENMP_TASK, task);
        }
    }

    fn workshare(&mut self, thread: u32, event: InputEvent<'_>, rule: Rule) {
        let Some(id) = u32_at(event.payload, 0) else {
            return self.report_payload(event, "4 bytes");
        };
        let value = self.tasks(thread, openmp::LETTER).task_type(id).map(|known| i64::from(known.value));
        let Some(value) = value else {
            let text = format!("cannot find type {id} of a worksharing construct");
            return self.report(ViolationCode::UnknownType, text);
        };
        if rule == Rule::WorkshareExecute {
            self.push_channel(thread, channel::OPENMP_LABEL, value);
        } else {
            self.pop_channel(thread, channel::OPENMP_LABEL, value);
        }
    }

    fn counters(&mut self, thread: u32, event: InputEvent<'_>) {
        let slots = self.slot_of.counters();
        if slots.is_empty() {
            let text = format!("got hwc event {} but no counters enabled", event.code);
            return self.report(ViolationCode::NoCounters, text);
        }
        if !event.is_jumbo || event.payload.len() != 8 * slots.len() {
            return self.report_payload(event, &format!("a jumbo payload of {} counters", slots.len()));
        }
        for (slot, bytes) in slots.zip(event.payload.chunks_exact(8)) {
            let value = i64_at(bytes, 0).unwrap_or(0);
            let result = self.threads[thread as usize].channels[slot as usize].set(Some(value), true);
            self.wrote(thread, slot, value, result);
        }
    }

    fn push_channel(&mut self, thread: u32, index: usize, value: i64) {
        let Some(slot) = self.slot_of.channel(index) else { return };
        let may_repeat = self.slots[slot as usize].may_repeat;
        let result = self.threads[thread as usize].channels[slot as usize].push(value, may_repeat);
        self.wrote(thread, slot, value, result);
    }

    fn pop_channel(&mut self, thread: u32, index: usize, value: i64) {
        let Some(slot) = self.slot_of.channel(index) else { return };
        let result = self.threads[thread as usize].channels[slot as usize].pop(value);
        self.wrote(thread, slot, value, result);
    }

    fn set_channel(&mut self, thread: u32, index: usize, value: Option<i64>) {
        let Some(slot) = self.slot_of.channel(index) else { return };
        // Repeated values of tasks are errors of the task's state, which is reported instead.
        let result = self.threads[thread as usize].channels[slot as usize].set(value, true);
        self.wrote(thread, slot, 0, result);
    }
}
