//! Numbers over time: how many tasks wait to run, how many exist.

use super::Page;
use serde_json::{Value, json};
use taskscope_execution::NO_TIME;
use taskscope_execution::lod::{Counter, Window};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterKind {
    /// Tasks that were created and have not begun.
    ReadyTasks,
    /// Tasks that were created and have not ended.
    LiveTasks,
}

impl CounterKind {
    /// All counters.
    pub const ALL: [CounterKind; 2] = [CounterKind::ReadyTasks, CounterKind::LiveTasks];

    /// The name in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::ReadyTasks => "ready_tasks",
            CounterKind::LiveTasks => "live_tasks",
        }
    }

    /// The words for a person.
    pub const fn label(self) -> &'static str {
        match self {
            CounterKind::ReadyTasks => "tasks created, not begun",
            CounterKind::LiveTasks => "tasks created, not ended",
        }
    }

    /// The counter of a name.
    pub fn named(name: &str) -> Option<CounterKind> {
        CounterKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Page {
    /// The counter, built when first asked for.
    pub fn counter(&self, kind: CounterKind) -> &Counter {
        let tasks = &self.execution.tasks;
        let (slot, ends) = match kind {
            CounterKind::ReadyTasks => (&self.ready_tasks, &tasks.began),
            CounterKind::LiveTasks => (&self.live_tasks, &tasks.ended),
        };
        slot.get_or_init(|| {
            let mut deltas = Vec::with_capacity(2 * tasks.len());
            for (created, end) in tasks.created.iter().zip(ends.iter()) {
                if *created != NO_TIME {
                    deltas.push((*created, 1));
                    if *end != NO_TIME {
                        deltas.push(((*end).max(*created), -1));
                    }
                }
            }
            Counter::from_deltas(deltas, self.execution.range().1)
        })
    }
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
