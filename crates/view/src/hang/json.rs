//! Hangs as documents.

use super::HangWords;
use crate::documents::{Named, Word, some_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taskscope_analysis::{Needed, OpenWait};
use taskscope_execution::messages::Owed;
use taskscope_execution::{Section, State, ThreadIndex};

/// The waits of a hang and their needs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hang")]
pub struct HangFacts {
    /// Whether the waits can never end; otherwise there was no progress for a long time.
    pub deadlock: bool,
    /// Number of leading waits that form a cycle, each one needing the thread of the next.
    pub circle: usize,
    /// Begin of the last wait of the cycle, or of the time without progress; nanoseconds.
    pub since_ns: u64,
    /// End of the recording, nanoseconds.
    pub end_ns: u64,
    /// The waits.
    pub waits: Vec<HungWait>,
    /// Last activities of needed threads that do not wait.
    pub needed: Vec<LastActivity>,
    /// Remedies for this hang; empty if only general advice is known.
    pub advice: Vec<String>,
}

/// The numbers and the name of a thread; null without one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadId {
    /// Process id.
    pub pid: Option<i64>,
    /// Thread id.
    pub tid: Option<i64>,
    /// The thread's name; empty for none.
    pub name: Option<String>,
    /// The thread in words, unique in the run.
    pub label: Option<String>,
}

/// A thread that waits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HungWait {
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadId,
    /// Its state.
    pub state: Named<State>,
    /// The place of the wait.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Begin of the wait, nanoseconds.
    pub start_ns: u64,
    /// The lock.
    pub object: Option<String>,
    /// The kind of object in a word.
    pub object_kind: Word,
    /// Function of MPI, without `MPI_`.
    pub call: Option<Word>,
    /// The place with the function, or the state, in words.
    pub at: String,
    /// Whether one of the needs is enough; else all are needed.
    pub any: bool,
    /// The conditions that would end the wait.
    pub needs: Vec<Need>,
    /// The need, by its number in `needs`, for the thread of the next wait of the cycle; null outside of a cycle.
    pub next: Option<usize>,
}

/// The last activity of a needed thread.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LastActivity {
    /// The thread.
    #[serde(flatten)]
    pub thread: ThreadId,
    /// Its state.
    pub state: Named<State>,
    /// Its place.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// State and place in words.
    pub section: String,
    /// Its begin, nanoseconds.
    pub start_ns: u64,
    /// Its end, nanoseconds; that of the recording if it lasts.
    pub end_ns: u64,
    /// Whether the thread has ended.
    pub ended: bool,
    /// Since when it used no CPU and waited in the kernel, nanoseconds.
    pub asleep_since_ns: Option<u64>,
}

/// Something that a wait needs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Need {
    /// The holder of a lock.
    Holder {
        /// The thread that holds it.
        #[serde(flatten)]
        thread: ThreadId,
        /// Time at which it got the lock, nanoseconds.
        since_ns: u64,
        /// The place of the lock request.
        #[serde(rename = "where")]
        place: Option<String>,
        /// Whether the waiting thread holds it itself.
        itself: bool,
        /// Its last activity, by the number in `needed`; null if it waits itself.
        last: Option<usize>,
    },
    /// A member of the team.
    Member {
        /// The thread.
        #[serde(flatten)]
        thread: ThreadId,
        /// Its last activity, by the number in `needed`; null if it waits itself.
        last: Option<usize>,
    },
    /// The end of a task.
    Task {
        /// The thread that runs it; null without one.
        #[serde(flatten)]
        thread: ThreadId,
        /// The type of the task.
        #[serde(rename = "where")]
        place: String,
        /// Its number in its process; null for a task without one.
        task: Option<u64>,
        /// Its state in words.
        status: String,
    },
    /// A rank of an MPI job.
    Rank {
        /// Process id.
        pid: Option<i64>,
        /// The rank.
        rank: Option<u32>,
        /// The rank in words.
        label: String,
        /// Its last activity, by the number in `needed`; null if it waits itself.
        last: Option<usize>,
        /// The pending operation of the rank.
        #[serde(flatten)]
        owes: Owes,
    },
}

/// The pending operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "owes", rename_all = "snake_case")]
pub enum Owes {
    /// Send.
    Message {
        /// Null for any.
        tag: Option<i32>,
        /// Whether another rank may send it, too.
        any_source: bool,
    },
    /// Receive.
    Receipt {
        /// Tag of the message.
        tag: i32,
        /// The message's size; 2^64-1 if unknown.
        bytes: u64,
    },
    /// Take part in an operation.
    Part {
        /// The function to call, without `MPI_`.
        call: Word,
    },
    /// Call the same function.
    SamePart {
        /// The function that was called instead, without `MPI_`.
        called: Word,
    },
    /// Call a function on the window.
    Call {
        /// The function, without `MPI_`.
        call: Word,
    },
}

impl HangWords<'_> {
    /// The value of a finding's key `hang`.
    pub fn facts(&self) -> HangFacts {
        let place = |section: &Section| some_text(self.place(section));
        let circle = self.hang.circle.min(self.hang.waits.len());
        let waits = self.hang.waits.iter().enumerate().map(|(number, wait)| {
            let section = &wait.span.section;
            // In a cycle each wait is for the thread of the next one.
            let next = (number < circle).then(|| self.hang.waits[(number + 1) % circle].thread);
            HungWait {
                thread: self.thread_id(wait.thread),
                state: Named(section.state),
                place: place(section),
                start_ns: self.since(wait.span.start),
                object: section.object.is_some().then(|| self.session.places.object_name(section.object)),
                object_kind: self.object_word(wait).into(),
                call: wait.function.map(Word::from),
                at: self.wait_place(wait),
                any: wait.any,
                needs: wait.needs.iter().map(|needed| self.need(wait, needed)).collect(),
                next: next.and_then(|next| wait.needs.iter().position(|needed| self.concerns(needed, next))),
            }
        });
        let needed = self.hang.needed.iter().map(|seen| LastActivity {
            thread: self.thread_id(seen.thread),
            state: Named(seen.span.section.state),
            place: place(&seen.span.section),
            section: self.seen_in(seen),
            start_ns: self.since(seen.span.start),
            end_ns: self.since(seen.span.end),
            ended: seen.gone,
            asleep_since_ns: seen.asleep_since.map(|since| self.since(since)),
        });
        HangFacts {
            deadlock: self.hang.is_deadlock,
            circle: self.hang.circle,
            since_ns: self.since(self.hang.since),
            end_ns: self.since(self.hang.end),
            waits: waits.collect(),
            needed: needed.collect(),
            advice: self.advice(),
        }
    }

    fn thread_id(&self, thread: ThreadIndex) -> ThreadId {
        let execution = &self.session.execution;
        let row = execution.threads.get(thread.index());
        let process = row.and_then(|row| execution.processes.get(row.process.index()));
        ThreadId {
            pid: process.map(|process| process.pid),
            tid: row.map(|row| row.tid),
            name: row.map(|row| row.name.to_string()),
            label: row.map(|_| self.thread(thread)),
        }
    }

    /// The number of a thread's last activity.
    fn last_of(&self, thread: ThreadIndex) -> Option<usize> {
        self.hang.needed.iter().position(|seen| seen.thread == thread)
    }

    fn need(&self, wait: &OpenWait, needed: &Needed) -> Need {
        match *needed {
            Needed::Holder { thread, since, site } => Need::Holder {
                thread: self.thread_id(thread),
                since_ns: self.since(since),
                place: some_text(self.taken_at(wait, site)),
                itself: thread == wait.thread,
                last: self.last_of(thread),
            },
            Needed::Member(thread) => {
                Need::Member { thread: self.thread_id(thread), last: self.last_of(thread) }
            }
            Needed::Task(task, thread) => Need::Task {
                thread: self.thread_id(thread),
                place: self.task_type(task),
                task: self.session.execution.tasks.number(task),
                status: self.task_status(task, thread),
            },
            Needed::Rank { process, rank, owes } => {
                let processes = &self.session.execution.processes;
                let row = process.and_then(|process| processes.get(process.index()));
                let owes = match owes {
                    Owed::Message { tag, accepts_any, .. } => Owes::Message { tag, any_source: accepts_any },
                    Owed::Receipt { tag, bytes } => Owes::Receipt { tag, bytes },
                    Owed::Part { function } => Owes::Part { call: function.into() },
                    Owed::SamePart { called } => Owes::SamePart { called: called.into() },
                    Owed::Access(function) => Owes::Call { call: function.into() },
                };
                Need::Rank {
                    pid: row.map(|process| process.pid),
                    rank,
                    label: self.rank(process, rank),
                    last: self.seen_of(process).and_then(|seen| self.last_of(seen.thread)),
                    owes,
                }
            }
        }
    }
}
