//! Messages between processes, and waits of threads for each other, by thread.

use super::Page;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::messages::Message;
use taskscope_execution::{Span, ThreadIndex, WaitOutcome};

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
        let of_threads = self.messages.get_or_init(|| {
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
        let Some(rows) = of_threads.get(track.index()) else { return Vec::new() };
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

    /// The longest wait for other threads in a section.
    pub(super) fn thread_wait_of(&self, track: ThreadIndex, span: &Span) -> Option<ThreadWaitFacts> {
        let waits = &self.execution.thread_waits;
        let of_thread = waits.of_thread(track, span.start, span.end).iter();
        let wait = *of_thread
            .max_by_key(|wait| wait.end.min(span.end).saturating_sub(wait.start.max(span.start)))?;
        let waker = wait.waker;
        let holds: Vec<_> =
            waits.holds_of(wait.object, wait.start, wait.end).iter().take(8).copied().collect();
        let sites: Vec<_> = holds.iter().map(|hold| hold.site).collect();
        let words = self.names.ask(move |places| {
            let call = |site| places.construct("call", site);
            let calls = sites.into_iter().map(call).collect::<Vec<_>>();
            (
                places.object_name(wait.object),
                call(wait.site),
                waker.map(|waker| call(waker.site)).unwrap_or_default(),
                calls,
            )
        });
        let (object, call, waker_call, calls) = words;
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
                .zip(calls)
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
