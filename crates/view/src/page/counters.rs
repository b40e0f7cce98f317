//! Numbers over time: how many tasks wait to run, how many exist.

use super::Page;
use super::apart::apart;
use serde_json::{Value, json};
use taskscope_execution::lod::{Counter, Window};
use taskscope_execution::{NO_TIME, TaskStatus};

/// What is counted.
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
    /// The counter, built when first asked for.
    pub fn counter(&self, kind: CounterKind) -> &Counter {
        let tasks = &self.execution.tasks;
        let end = self.time().1;
        let of_tasks = |ends: &[u64]| {
            let rows = tasks.created.iter().zip(ends).zip(&tasks.status);
            // Until when a task waited whose execution is not recorded, nobody knows.
            let known =
                rows.filter(|((created, _), status)| **created != NO_TIME && **status != TaskStatus::Unseen);
            apart(|| of_lives(known.map(|((created, end), _)| (*created, *end)), end))
        };
        match kind {
            CounterKind::ReadyTasks => self.ready_tasks.get_or_init(|| of_tasks(&tasks.began)),
            CounterKind::LiveTasks => self.live_tasks.get_or_init(|| of_tasks(&tasks.ended)),
            CounterKind::Queued(queue) => self.queued[queue].get_or_init(|| {
                let operations = &self.queues.queues()[queue].operations;
                let known = operations.iter().filter(|operation| operation.append > 0);
                of_lives(known.map(|operation| (operation.append, operation.start)), end)
            }),
        }
    }
}

/// One more from a begin on, one less from an end on, where there is one.
fn of_lives(lives: impl Iterator<Item = (u64, u64)>, until: u64) -> Counter {
    let (mut begins, mut ends) = (Vec::with_capacity(lives.size_hint().0), Vec::new());
    for (begin, end) in lives {
        begins.push(begin);
        if end != NO_TIME {
            ends.push(end.max(begin));
        }
    }
    Counter::from_lives(begins, ends, until)
}

/// A counter in a window: minimum, mean and maximum of each bucket, null where it is not known.
pub fn counter_json(page: &Page, kind: CounterKind, window: Window) -> Value {
    let counter = page.counter(kind);
    let buckets = counter.buckets(window);
    json!({
        "name": kind.name(),
        "most": counter.max(),
        "min": buckets.iter().map(|b| (b.ns > 0).then_some(b.min)).collect::<Vec<_>>(),
        "mean": buckets.iter().map(|b| b.mean()).collect::<Vec<_>>(),
        "max": buckets.iter().map(|b| (b.ns > 0).then_some(b.max)).collect::<Vec<_>>(),
    })
}
