//! Numbers over time: tasks that wait to run or exist, queues of devices, bytes on their way, what the program recorded.

use super::Page;
use super::background::apart;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::OnceLock;
use taskscope_execution::lod::{Counter, Window};
use taskscope_execution::{NO_TIME, TaskStatus};

/// The counted quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterKind {
    /// Tasks that were created and have not begun.
    ReadyTasks,
    /// Tasks that were created and have not ended.
    LiveTasks,
    /// Operations of a device queue that were submitted and have not begun.
    Queued(usize),
    /// Bytes of messages that were sent and not received.
    BytesInFlight,
    /// A counter that the program or a library recorded.
    Recorded(usize),
}

impl CounterKind {
    /// All counters of a page; recorded ones once the nested sections are known.
    pub fn all(page: &Page) -> Vec<CounterKind> {
        let tasks = [CounterKind::ReadyTasks, CounterKind::LiveTasks];
        let tasks = tasks.into_iter().filter(|_| !page.execution.tasks.is_empty());
        let (start, end) = page.time();
        let bytes = page.execution.whole().communication.messages.iter().any(|message| {
            let is_there = message.sent < end && message.received > start;
            is_there && message.bytes != u64::MAX && message.bytes > 0
        });
        let recorded = page.known_nested().map_or(0, |nested| nested.counters.len());
        tasks
            .chain(bytes.then_some(CounterKind::BytesInFlight))
            .chain((0..page.queues.queues().len()).map(CounterKind::Queued))
            .chain((0..recorded).map(CounterKind::Recorded))
            .collect()
    }

    /// The name in addresses.
    pub fn name(self) -> String {
        match self {
            CounterKind::ReadyTasks => "ready_tasks".to_string(),
            CounterKind::LiveTasks => "live_tasks".to_string(),
            CounterKind::Queued(queue) => format!("queued.{queue}"),
            CounterKind::BytesInFlight => "bytes_in_flight".to_string(),
            CounterKind::Recorded(number) => format!("recorded.{number}"),
        }
    }

    /// The words for a person.
    pub fn label(self, page: &Page) -> String {
        match self {
            CounterKind::ReadyTasks => "tasks created, not begun".to_string(),
            CounterKind::LiveTasks => "tasks created, not ended".to_string(),
            CounterKind::Queued(queue) => {
                let name = page.queues.queues().get(queue).map_or("", |queue| queue.name.as_str());
                format!("{name}: submitted, not begun")
            }
            CounterKind::BytesInFlight => "bytes sent, not received".to_string(),
            CounterKind::Recorded(number) => page.nested().counters[number].label.clone(),
        }
    }

    /// The counter of a name.
    pub fn named(page: &Page, name: &str) -> Option<CounterKind> {
        CounterKind::all(page).into_iter().find(|kind| kind.name() == name)
    }
}

impl Page {
    /// The counter, built on first use.
    pub fn counter(&self, kind: CounterKind) -> &Counter {
        let tasks = &self.execution.tasks;
        let end = self.time().1;
        let count_tasks = |ends: &[u64]| {
            let rows = tasks.created.iter().zip(ends).zip(&tasks.status);
            // The end of a wait is unknown if the task's execution is not recorded.
            let known =
                rows.filter(|((created, _), status)| **created != NO_TIME && **status != TaskStatus::Unseen);
            apart(|| count_lives(known.map(|((created, end), _)| (*created, *end)), end))
        };
        match kind {
            CounterKind::ReadyTasks => self.derived.ready_tasks.get_or_init(|| count_tasks(&tasks.began)),
            CounterKind::LiveTasks => self.derived.live_tasks.get_or_init(|| count_tasks(&tasks.ended)),
            CounterKind::Queued(queue) => self.queued()[queue].get_or_init(|| {
                let operations = &self.queues.queues()[queue].operations;
                let known = operations.iter().filter(|operation| operation.append > 0);
                count_lives(known.map(|operation| (operation.append, operation.start)), end)
            }),
            CounterKind::BytesInFlight => self.derived.bytes_in_flight.get_or_init(|| {
                // A part of a run lacks the messages that are received after it.
                let messages = self.execution.whole().communication.messages.iter();
                let known = messages.filter(|message| message.bytes != u64::MAX);
                sum_of(known.map(|message| (message.sent, message.received, message.bytes)), self.time())
            }),
            CounterKind::Recorded(number) => &self.nested().counters[number].counter,
        }
    }

    fn queued(&self) -> &[OnceLock<Counter>] {
        let none = || self.queues.queues().iter().map(|_| OnceLock::new()).collect();
        self.derived.queued.get_or_init(none)
    }
}

/// Counts one up at each begin and one down at each known end.
fn count_lives(lives: impl Iterator<Item = (u64, u64)>, until: u64) -> Counter {
    let (mut begins, mut ends) = (Vec::with_capacity(lives.size_hint().0), Vec::new());
    for (begin, end) in lives {
        begins.push(begin);
        if end != NO_TIME {
            ends.push(end.max(begin));
        }
    }
    Counter::from_lives(begins, ends, until)
}

/// Adds an amount at each begin and takes it away at its end; the sum in a part of the time.
fn sum_of(amounts: impl Iterator<Item = (u64, u64, u64)>, part: (u64, u64)) -> Counter {
    let mut steps: Vec<(u64, i128)> = Vec::with_capacity(2 * amounts.size_hint().0);
    for (begin, end, amount) in amounts {
        let amount = i128::from(amount);
        steps.extend([(begin, amount), (end.max(begin), -amount)]);
    }
    steps.sort_unstable_by_key(|(at, _)| *at);
    let mut sum = 0_i128;
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for (at, step) in steps {
        sum += step;
        let shown = i64::try_from(sum).unwrap_or(i64::MAX);
        match changes.last_mut().filter(|(last, _)| *last == at) {
            Some((_, value)) => *value = shown,
            None => changes.push((at, shown)),
        }
    }
    counter_of_part(changes, part)
}

/// A counter in a part of the time, from its values over a longer one.
pub(super) fn counter_of_part(mut changes: Vec<(u64, i64)>, (start, end): (u64, u64)) -> Counter {
    let before_end = changes.partition_point(|(at, _)| *at < end);
    changes.truncate(before_end);
    let begun = changes.partition_point(|(at, _)| *at <= start);
    changes.drain(..begun.saturating_sub(1));
    if let Some((at, _)) = changes.first_mut() {
        *at = start.max(*at);
    }
    Counter::from_changes(changes, end)
}

/// A counter in the buckets of a window; null if unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterBuckets {
    /// The counter's name.
    pub name: String,
    /// Its largest value in the run.
    pub most: i64,
    /// Its smallest value in the run.
    pub least: i64,
    /// Smallest value of each bucket.
    pub min: Vec<Option<i64>>,
    /// Mean of each bucket.
    pub mean: Vec<Option<f64>>,
    /// Largest value of each bucket.
    pub max: Vec<Option<i64>>,
    /// The window, if not the requested one.
    #[serde(flatten)]
    pub window: Option<BucketStart>,
}

/// Length and begin of the buckets of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BucketStart {
    /// Length of a bucket: a power of two of nanoseconds.
    pub level: u8,
    /// Begin of the first bucket, nanoseconds since the start of the trace.
    pub first_bucket_ns: i64,
}

impl BucketStart {
    /// Describes a window of a page.
    pub(crate) fn of(page: &Page, window: Window) -> BucketStart {
        let first_bucket_ns = window.start() as i64 - page.start() as i64;
        BucketStart { level: window.width_log2, first_bucket_ns }
    }
}

/// A counter in a window.
pub fn counter_buckets(page: &Page, kind: CounterKind, window: Window) -> CounterBuckets {
    let counter = page.counter(kind);
    let buckets = counter.buckets(window);
    CounterBuckets {
        name: kind.name(),
        most: counter.max(),
        least: counter.min(),
        min: buckets.iter().map(|b| (b.ns > 0).then_some(b.min)).collect(),
        mean: buckets.iter().map(|b| b.mean()).collect(),
        max: buckets.iter().map(|b| (b.ns > 0).then_some(b.max)).collect(),
        window: None,
    }
}
