//! Numbers over time: how many tasks wait to run, how many exist.

use super::Page;
use super::apart::apart;
use schemars::JsonSchema;
use serde::Serialize;
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
}

impl CounterKind {
    /// All counters of a page.
    pub fn all(page: &Page) -> Vec<CounterKind> {
        let tasks = [CounterKind::ReadyTasks, CounterKind::LiveTasks];
        let tasks = tasks.into_iter().filter(|_| !page.execution.tasks.is_empty());
        tasks.chain((0..page.queues.queues().len()).map(CounterKind::Queued)).collect()
    }

    /// The name in addresses.
    pub fn name(self) -> String {
        match self {
            CounterKind::ReadyTasks => "ready_tasks".to_string(),
            CounterKind::LiveTasks => "live_tasks".to_string(),
            CounterKind::Queued(queue) => format!("queued.{queue}"),
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
        let of_tasks = |ends: &[u64]| {
            let rows = tasks.created.iter().zip(ends).zip(&tasks.status);
            // The end of a wait is unknown if the task's execution is not recorded.
            let known =
                rows.filter(|((created, _), status)| **created != NO_TIME && **status != TaskStatus::Unseen);
            apart(|| count_lives(known.map(|((created, end), _)| (*created, *end)), end))
        };
        match kind {
            CounterKind::ReadyTasks => self.ready_tasks.get_or_init(|| of_tasks(&tasks.began)),
            CounterKind::LiveTasks => self.live_tasks.get_or_init(|| of_tasks(&tasks.ended)),
            CounterKind::Queued(queue) => self.queued[queue].get_or_init(|| {
                let operations = &self.queues.queues()[queue].operations;
                let known = operations.iter().filter(|operation| operation.append > 0);
                count_lives(known.map(|operation| (operation.append, operation.start)), end)
            }),
        }
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

/// A counter in the buckets of a window; null if unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterBuckets {
    /// The counter's name.
    pub name: String,
    /// Its largest value in the run.
    pub most: i64,
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
        min: buckets.iter().map(|b| (b.ns > 0).then_some(b.min)).collect(),
        mean: buckets.iter().map(|b| b.mean()).collect(),
        max: buckets.iter().map(|b| (b.ns > 0).then_some(b.max)).collect(),
        window: None,
    }
}
