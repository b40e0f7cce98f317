//! Arrows of a part of the time: creation, dependences, messages, wakes, submissions to devices.

use super::Page;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::{NO_TIME, TaskIndex, ThreadIndex};

/// Arrows that one answer has.
const MAX_FLOWS: usize = 1500;

/// Arrows that begin or end in a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Flows {
    /// The flows, sorted by their end.
    pub flows: Vec<Flow>,
    /// Further ones that the answer leaves out.
    pub left_out: usize,
}

/// An arrow. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Flow {
    /// `creator`, `dependence` (of a task on the predecessor that ended last), `message`, `wake`, `submission`.
    pub kind: &'static str,
    /// The track where it begins.
    pub from_track: u32,
    /// Time there.
    pub from: u64,
    /// The track, or the row of device queues, where it ends.
    pub to_track: u32,
    /// Time there.
    pub to: u64,
}

impl Page {
    /// The arrows that end between two times since the start of the trace; messages that begin there too.
    pub fn flows(&self, from: u64, to: u64) -> Flows {
        let (low, high) = (self.start().saturating_add(from), self.start().saturating_add(to));
        let within = |at: u64| at != NO_TIME && at >= low && at < high;
        let flow = |kind, from_track: ThreadIndex, from: u64, to_track: ThreadIndex, to: u64| {
            let is_known =
                from_track.is_some() && to_track.is_some() && from != NO_TIME && to != NO_TIME && from <= to;
            let (from, to) = (self.since_start(from), self.since_start(to));
            is_known.then_some(Flow { kind, from_track: from_track.0, from, to_track: to_track.0, to })
        };
        let tasks = &self.execution.tasks;
        let begun: Vec<u32> = (0..tasks.len() as u32)
            .into_par_iter()
            .filter(|row| within(tasks.began[*row as usize]))
            .collect();
        let (mut flows, mut left_out) = (Vec::new(), 0);
        for row in begun {
            if flows.len() >= MAX_FLOWS {
                left_out += 1;
                continue;
            }
            let (task, at) = (TaskIndex(row), row as usize);
            let (runner, began) = (tasks.runner[at], tasks.began[at]);
            let before =
                self.dependences().critical_predecessor(&self.execution, task).map(|edge| edge.task.index());
            flows.extend(before.and_then(|other| {
                flow("dependence", tasks.runner[other], tasks.ended[other], runner, began)
            }));
            flows.extend(flow("creator", tasks.creator[at], tasks.created[at], runner, began));
        }
        let messages = self.execution.communication.messages.iter();
        let messages = messages.filter(|message| within(message.received) || within(message.sent));
        let messages = messages.filter_map(|message| {
            flow("message", message.sender, message.sent, message.receiver, message.received)
        });
        let wakes = self.execution.thread_waits.waits.iter().filter(|wait| within(wait.end));
        let wakes = wakes.filter_map(|wait| {
            wait.waker.and_then(|waker| flow("wake", waker.thread, waker.at, wait.thread, wait.end))
        });
        for other in messages.chain(wakes).chain(self.submissions(low, high)) {
            if flows.len() < MAX_FLOWS {
                flows.push(other);
            } else {
                left_out += 1;
            }
        }
        flows.sort_by_key(|flow| (flow.to, flow.from, flow.to_track));
        Flows { flows, left_out }
    }

    /// From submissions to operations of device queues that begin in a part of the time of the trace's clock.
    fn submissions(&self, low: u64, high: u64) -> impl Iterator<Item = Flow> {
        let begun = self.queues.begun(low, high);
        // Many operations have few submitters.
        let mut tracks: FxHashMap<(Option<i64>, i64), Option<usize>> = FxHashMap::default();
        begun.filter_map(move |(row, queue, operation)| {
            let of = (queue.pid, operation.thread);
            let submitter = (*tracks.entry(of).or_insert_with(|| self.thread_of(of.0, of.1)))?;
            (operation.append > 0 && operation.append <= operation.start).then(|| Flow {
                kind: "submission",
                from_track: submitter as u32,
                from: self.since_start(operation.append),
                to_track: row,
                to: self.since_start(operation.start),
            })
        })
    }
}
