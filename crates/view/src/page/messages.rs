//! Messages between processes, and waits of threads for each other, by thread.

use super::Page;
use crate::awaited::call_at;
use crate::names::thread_or_id;
use crate::thread_waits::verb;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_event::models::wait::kind;
use taskscope_execution::messages::Message;
use taskscope_execution::{SiteIndex, Span, ThreadIndex, WaitOutcome};

/// Listed messages of a call.
const LISTED: usize = 16;

/// A message of a call. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MessageFacts {
    /// Whether the thread of the section sent it.
    pub is_sent: bool,
    /// The track of the other thread.
    pub other: u32,
    /// The rank of the other process; null if unknown.
    pub rank: Option<u32>,
    /// Size; null if unknown.
    pub bytes: Option<u64>,
    /// The tag; null without one.
    pub tag: Option<i32>,
    /// Send time.
    pub sent: u64,
    /// Time at which a receive was posted for it.
    pub posted: u64,
    /// Time at which its arrival was known.
    pub received: u64,
}

/// A wait of a thread for another one. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ThreadWaitFacts {
    /// The awaited object in words.
    pub object: String,
    /// The call, in words.
    pub call: String,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Its outcome.
    pub outcome: &'static str,
    /// The thread that ended it; null for locks, and if unknown.
    pub waker: Option<WakerFacts>,
    /// Holders of the lock during the wait, by begin; 8 at most.
    pub holders: Vec<HoldingThread>,
}

/// The thread that ended a wait.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakerFacts {
    /// Its track.
    pub track: u32,
    /// Time.
    pub at: u64,
    /// The call in which it did so, in words.
    pub call: String,
}

/// A thread that held a lock.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HoldingThread {
    /// Its track.
    pub track: u32,
    /// Nanoseconds of the wait.
    pub ns: u64,
    /// Release time.
    pub end: u64,
    /// The call that took the lock, in words.
    pub call: String,
}

impl Page {
    /// Messages that a thread sent or received in a section, in order of their sending.
    pub(super) fn messages_of(&self, track: ThreadIndex, span: &Span) -> Vec<MessageFacts> {
        let messages = &self.execution.communication.messages;
        let thread_messages = self.derived.messages.get_or_init(|| {
            let mut rows = vec![Vec::new(); self.execution.threads.len()];
            for (row, message) in (0..).zip(messages) {
                for (thread, at) in [(message.sender, message.sent), (message.receiver, message.received)] {
                    if let Some(rows) = rows.get_mut(thread.index()) {
                        rows.push((at, row));
                    }
                }
            }
            rows.iter_mut().for_each(|rows: &mut Vec<(u64, u32)>| rows.sort_unstable());
            rows
        });
        let Some(rows) = thread_messages.get(track.index()) else { return Vec::new() };
        let first = rows.partition_point(|(at, _)| *at < span.start);
        let within = rows[first..].iter().take_while(|(at, _)| *at <= span.end);
        let facts = within.take(LISTED).map(|(at, row)| {
            let message: &Message = &messages[*row as usize];
            let is_sent = message.sender == track && message.sent == *at;
            let other = if is_sent { message.receiver } else { message.sender };
            MessageFacts {
                is_sent,
                other: other.0,
                rank: self.rank_of(other),
                bytes: Some(message.bytes).filter(|bytes| *bytes != u64::MAX),
                tag: message.tag,
                sent: self.since_start(message.sent),
                posted: self.since_start(message.posted),
                received: self.since_start(message.received),
            }
        });
        facts.collect()
    }

    fn rank_of(&self, thread: ThreadIndex) -> Option<u32> {
        let process = self.execution.threads.get(thread.index())?.process;
        self.execution.communication.ranks.get(&process.0).map(|rank| rank.rank)
    }

    /// The longest wait for other threads in a part of a thread's time, clocks of the trace.
    pub(super) fn thread_wait_of(
        &self,
        track: ThreadIndex,
        (start, end): (u64, u64),
    ) -> Option<ThreadWaitFacts> {
        let waits = &self.execution.thread_waits;
        let thread_waits = waits.waits_of(track, start, end).iter();
        let wait =
            *thread_waits.max_by_key(|wait| wait.end.min(end).saturating_sub(wait.start.max(start)))?;
        let waker = wait.waker;
        let holds: Vec<_> =
            waits.holds_of(wait.object, wait.start, wait.end).iter().take(8).copied().collect();
        let kind = self.execution.catalog.objects.get(wait.object.index()).map_or(0, |row| row.kind);
        let joined = waker.filter(|_| kind == kind::JOIN).map(|waker| waker.thread);
        let (execution, awaited) = (self.execution.clone(), self.awaited());
        let mut calls = vec![(verb(kind), wait.thread, wait.site, wait.start)];
        calls.extend(holds.iter().map(|hold| ("lock", hold.thread, hold.site, hold.start)));
        calls.extend(
            waker.filter(|_| joined.is_none()).map(|waker| ("wake", waker.thread, waker.site, waker.at)),
        );
        let words = self.names.ask(move |places| {
            let words = |(what, thread, site, at): &(&str, ThreadIndex, SiteIndex, u64)| match site.is_some()
            {
                true => places.construct_of(what, &call_at(places, &execution, *thread, *site, *at)),
                false => String::new(),
            };
            let calls: Vec<String> = calls.iter().map(words).collect();
            let waiting = calls.first().filter(|words| !words.is_empty());
            let object = match joined {
                Some(thread) => format!("the end of {}", thread_or_id(&execution, thread)),
                None => awaited.words(places, &execution, wait.object, waiting.map(String::as_str)),
            };
            (object, calls)
        });
        let (object, calls) = words;
        let mut calls = calls.into_iter();
        let call = calls.next().unwrap_or_default();
        let held: Vec<String> = calls.by_ref().take(holds.len()).collect();
        let waker_call = calls.next().unwrap_or_default();
        Some(ThreadWaitFacts {
            object,
            call,
            start: self.since_start(wait.start),
            end: self.since_start(wait.end),
            outcome: match wait.outcome {
                WaitOutcome::Done => "done",
                WaitOutcome::TimedOut => "timed out",
                WaitOutcome::Failed => "failed or interrupted",
                WaitOutcome::Open => "not over at the end of the recording",
            },
            waker: waker.map(|waker| WakerFacts {
                track: waker.thread.0,
                at: self.since_start(waker.at),
                call: waker_call,
            }),
            holders: holds
                .iter()
                .zip(held)
                .map(|(hold, call)| HoldingThread {
                    track: hold.thread.0,
                    ns: hold.end.min(wait.end).saturating_sub(hold.start.max(wait.start)),
                    end: self.since_start(hold.end),
                    call,
                })
                .collect(),
        })
    }
}
