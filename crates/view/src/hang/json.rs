//! Hangs in JSON.

use super::HangWords;
use serde_json::{Value, json};
use taskscope_analysis::Needed;
use taskscope_execution::messages::Owed;
use taskscope_execution::{Place, Section, State, ThreadIndex};

impl HangWords<'_> {
    /// The value of a finding's key `hang`.
    pub fn json(&self) -> Value {
        let section = |section: &Section| {
            json!({
                "state": section.state.name(),
                "where": Some(self.place(section)).filter(|place| !place.is_empty()),
            })
        };
        let waits = self.hang.waits.iter().map(|wait| {
            let object = wait.span.section.object;
            let own = json!({
                "start_ns": self.since(wait.span.start),
                "object": object.is_some().then(|| self.session.places.object_name(object)),
                "call": wait.function,
                "any": wait.any,
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
            "advice": self.advice(),
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
            Needed::Rank { process, rank, owes } => {
                let processes = &self.session.execution.processes;
                let pid =
                    process.and_then(|process| processes.get(process.index())).map(|process| process.pid);
                let (owes, detail) = match owes {
                    Owed::Message { tag, of_any, .. } => {
                        ("message", json!({ "tag": tag, "any_source": of_any }))
                    }
                    Owed::Receipt { tag, bytes } => ("receipt", json!({ "tag": tag, "bytes": bytes })),
                    Owed::Part { function } => ("part", json!({ "call": function })),
                    Owed::SamePart { called } => ("same_part", json!({ "called": called })),
                    Owed::Access(function) => ("call", json!({ "call": function })),
                };
                with(json!({ "kind": "rank", "pid": pid, "rank": rank, "owes": owes }), detail)
            }
        }
    }
}

/// An object with the members of another one.
fn with(mut value: Value, more: Value) -> Value {
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}
