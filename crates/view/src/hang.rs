//! Hangs in sentences and in JSON.

use crate::format;
use serde_json::{Value, json};
use std::cell::RefCell;
use taskscope_analysis::{Hang, LastSeen, Needed, OpenWait};
use taskscope_execution::{NO_TIME, Place, Section, State, TaskIndex, TaskStatus, ThreadIndex, ThreadKind};
use taskscope_session::Session;

/// Waits that a sentence describes, beyond those of a circle, and needed ones of each.
const DESCRIBED: usize = 3;

/// Words and values of one session's hangs.
pub(crate) struct HangWords<'s> {
    session: &'s Session,
    hang: &'s Hang,
    /// Needed threads of which the sentence has said what they did.
    described: RefCell<Vec<ThreadIndex>>,
}

impl<'s> HangWords<'s> {
    /// Of a hang of this session.
    pub fn of(session: &'s Session, hang: &'s Hang) -> Self {
        HangWords { session, hang, described: RefCell::default() }
    }

    /// The whole hang as a sentence.
    pub fn sentence(&self) -> String {
        let waits = &self.hang.waits;
        let shown = self.hang.circle.max(DESCRIBED).min(waits.len());
        let mut parts: Vec<String> = Vec::new();
        for (number, wait) in waits[..shown].iter().enumerate() {
            // In a circle each wait is for the thread of the next one.
            let again = number > 0 && number < self.hang.circle;
            let who = if again { "which".to_string() } else { self.thread(wait.thread) };
            let text = format!("{who} {}", self.wait(wait));
            match parts.last_mut() {
                Some(last) if again => *last = format!("{last}, {text}"),
                _ => parts.push(text),
            }
        }
        match waits.len() - shown {
            0 => {}
            1 => parts.push("1 more thread waits".to_string()),
            more => parts.push(format!("{more} more threads wait")),
        }
        let parts = parts.join("; ");
        if self.hang.is_deadlock {
            return format!("hung: {parts}");
        }
        let silence = format::time(self.hang.end.saturating_sub(self.hang.since));
        format!("hung: nothing went on in the last {silence}: {parts}")
    }

    /// Each wait as a line.
    pub fn lines(&self) -> Vec<String> {
        let line = |wait: &OpenWait| {
            self.described.borrow_mut().clear();
            format!("{} {}", self.thread(wait.thread), self.wait(wait))
        };
        self.hang.waits.iter().map(line).collect()
    }

    /// The value of a finding's key `hang`.
    pub fn json(&self) -> Value {
        let section = |section: &Section| {
            json!({
                "state": section.state.name(),
                "where": Some(self.place(section)).filter(|place| !place.is_empty()),
            })
        };
        let with = |mut value: Value, more: Value| {
            if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
                value.extend(more);
            }
            value
        };
        let waits = self.hang.waits.iter().map(|wait| {
            let object = wait.span.section.object;
            let own = json!({
                "start_ns": self.since(wait.span.start),
                "object": object.is_some().then(|| self.session.places.object_name(object)),
                "call": wait.function,
                "needs": wait.needs.iter().map(|needed| self.needed_json(needed)).collect::<Vec<_>>(),
            });
            with(with(self.thread_json(wait.thread), section(&wait.span.section)), own)
        });
        let needed = self.hang.needed.iter().map(|seen| {
            let own = json!({
                "start_ns": self.since(seen.span.start),
                "ended": seen.gone,
                "asleep_since_ns": seen.asleep_since.map(|since| self.since(since)),
            });
            with(with(self.thread_json(seen.thread), section(&seen.span.section)), own)
        });
        json!({
            "deadlock": self.hang.is_deadlock,
            "circle": self.hang.circle,
            "since_ns": self.since(self.hang.since),
            "end_ns": self.since(self.hang.end),
            "waits": waits.collect::<Vec<_>>(),
            "needed": needed.collect::<Vec<_>>(),
        })
    }

    fn thread_json(&self, thread: ThreadIndex) -> Value {
        let execution = &self.session.execution;
        let row = execution.threads.get(thread.index());
        let process = row.and_then(|row| execution.processes.get(row.process.index()));
        json!({
            "pid": process.map(|process| process.pid),
            "tid": row.map(|row| row.tid),
            "name": row.map(|row| &row.name),
        })
    }

    fn needed_json(&self, needed: &Needed) -> Value {
        let of_thread = |kind: &str, thread: ThreadIndex| {
            let mut value = self.thread_json(thread);
            value["kind"] = kind.into();
            value
        };
        match *needed {
            Needed::Holder { thread, since, site } => {
                let mut value = of_thread("holder", thread);
                value["since_ns"] = self.since(since).into();
                value["where"] = Some(self.session.places.name(State::LockWait, Place::site(site))).into();
                value
            }
            Needed::Member(thread) => of_thread("member", thread),
            Needed::Task(task, thread) => {
                let mut value = of_thread("task", thread);
                value["where"] = self.task_type(task).into();
                value["task"] = self.session.execution.tasks.number(task).into();
                value["status"] = self.task_status(task, thread).into();
                value
            }
            Needed::Rank(process) => {
                let rank = self.session.execution.communication.ranks.get(&process.0).map(|rank| rank.rank);
                let pid = self.session.execution.processes.get(process.index()).map(|process| process.pid);
                json!({ "kind": "rank", "pid": pid, "rank": rank })
            }
        }
    }

    /// Nanoseconds since the start of the trace.
    fn since(&self, at: u64) -> u64 {
        at.saturating_sub(self.session.execution.range().0)
    }

    /// From then to the end.
    fn lasted(&self, start: u64) -> String {
        format::time(self.hang.end.saturating_sub(start))
    }

    /// A thread, as the numbers of processes and threads tell it apart.
    fn thread(&self, thread: ThreadIndex) -> String {
        let execution = &self.session.execution;
        let Some(row) = execution.threads.get(thread.index()) else { return "another thread".to_string() };
        let siblings = execution
            .threads
            .iter()
            .filter(|other| other.process == row.process && other.kind != ThreadKind::Cpu);
        let name = match (row.name.as_str(), row.kind) {
            ("", ThreadKind::Initial) => " (initial)".to_string(),
            ("", _) => String::new(),
            (name, _) => format!(" ({})", format::harmless(name)),
        };
        match (execution.process_name(row.process), siblings.count()) {
            (Some(process), 1) => process,
            (Some(process), _) => format!("thread {}{name} of {process}", row.tid),
            (None, _) => format!("thread {}{name}", row.tid),
        }
    }

    fn place(&self, section: &Section) -> String {
        self.session.places.name(section.state, section.place)
    }

    /// What a thread is in: the state, and where.
    fn section(&self, section: &Section) -> String {
        match self.place(section) {
            place if place.is_empty() => section.state.label().to_string(),
            place if section.state == State::Serial => place,
            place => format!("{}: {place}", section.state.label()),
        }
    }

    /// What a thread waits for, from the verb on.
    fn wait(&self, wait: &OpenWait) -> String {
        let section = &wait.span.section;
        let place = match (self.place(section), wait.function) {
            (place, Some(call)) if place.is_empty() => format!("MPI_{call}"),
            // Places of calls have the function in their names.
            (place, Some(call)) if place.contains(&format!("MPI_{call}")) => place,
            (place, Some(call)) => format!("MPI_{call} at {place}"),
            (place, None) if place.is_empty() => section.state.label().to_string(),
            (place, None) => place,
        };
        let time = self.lasted(wait.span.start);
        let needs: Vec<String> =
            wait.needs.iter().take(DESCRIBED).map(|needed| self.needed(wait, needed)).collect();
        let more = match wait.needs.len().saturating_sub(DESCRIBED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match needs.is_empty() {
            true => format!("has waited {time} in {place}"),
            false => format!("has waited {time} in {place} for {}{more}", needs.join(" and for ")),
        }
    }

    fn needed(&self, wait: &OpenWait, needed: &Needed) -> String {
        let execution = &self.session.execution;
        match *needed {
            Needed::Holder { thread, since, site } => {
                let word = match self.session.places.object_kind(wait.span.section.object) {
                    "critical" => "critical construct",
                    "ordered" => "ordered turn",
                    "unknown" | "object" => "lock",
                    word => word,
                };
                let place = self.session.places.name(wait.span.section.state, Place::site(site));
                let place = if place.is_empty() { place } else { format!(" (taken in {place})") };
                let time = self.lasted(since);
                if thread == wait.thread {
                    return format!("the {word} that it has held itself for {time}{place}");
                }
                let who = self.thread(thread);
                format!("the {word} that {who} has held for {time}{place}{}", self.last_seen(thread))
            }
            Needed::Member(thread) => format!("{}{}", self.thread(thread), self.last_seen(thread)),
            Needed::Task(task, thread) => format!("{} ({})", self.task(task), self.task_status(task, thread)),
            Needed::Rank(process) => {
                let is_own = |seen: &&LastSeen| {
                    execution.threads.get(seen.thread.index()).is_some_and(|row| row.process == process)
                };
                let seen = self.hang.needed.iter().find(is_own).map(|seen| self.last_seen(seen.thread));
                let name = self
                    .session
                    .execution
                    .process_name(process)
                    .unwrap_or_else(|| "another process".to_string());
                format!("{name}{}", seen.unwrap_or_default())
            }
        }
    }

    /// What a needed thread did last, if it does not wait itself, and has not been described before.
    fn last_seen(&self, thread: ThreadIndex) -> String {
        let mut described = self.described.borrow_mut();
        let seen = self.hang.needed.iter().find(|seen| seen.thread == thread);
        let Some(seen) = seen.filter(|_| !described.contains(&thread)) else { return String::new() };
        described.push(thread);
        if seen.gone {
            return format!(", which ended {} ago", self.lasted(seen.span.end));
        }
        let asleep = if seen.asleep_since.is_some() { ", asleep in the kernel" } else { "" };
        let (section, time) = (self.section(&seen.span.section), self.lasted(seen.span.start));
        format!(", which has been in {section} for {time}{asleep}")
    }

    fn task(&self, task: TaskIndex) -> String {
        let number = self.session.execution.tasks.number(task);
        let number = number.map_or("a task".to_string(), |number| format!("task {number}"));
        format!("{number} of {}", self.task_type(task))
    }

    fn task_type(&self, task: TaskIndex) -> String {
        let ty = self.session.execution.tasks.ty.get(task.index()).copied();
        ty.map_or_else(|| "an unknown type".to_string(), |ty| self.session.places.type_name(ty))
    }

    fn task_status(&self, task: TaskIndex, thread: ThreadIndex) -> String {
        let tasks = &self.session.execution.tasks;
        match tasks.status.get(task.index()) {
            _ if thread.is_some() => format!("{} runs it", self.thread(thread)),
            Some(TaskStatus::Created) => "never started".to_string(),
            Some(TaskStatus::Suspended) if tasks.began.get(task.index()) != Some(&NO_TIME) => {
                "suspended, or waits for its event".to_string()
            }
            _ => "not ended".to_string(),
        }
    }
}
