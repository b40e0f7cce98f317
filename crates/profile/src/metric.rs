//! Metrics of the tree's nodes.

use crate::Marker;
use taskscope_cause::{Cause, Group, State};

/// A number that every node can have. All are `u64`, and add up over merges.
///
/// Waiting has three families, with one metric per waiting [`Marker`]: *taken* is the symptom, at the path of
/// the waiting threads; *given* is the cause, at the path of the awaited one (the holder of a lock, the last
/// to arrive at a barrier, a child still running); *shared* is the cause without a single culprit: each of
/// the W threads that worked while I waited has I/W of it. For each wait, given and shared each sum to taken,
/// or to zero if that kind of blame was not computed; see [`conservation`](crate::conservation).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Metric(pub u16);

const TAKEN: u16 = 0x100;
const GIVEN: u16 = 0x200;
const SHARED: u16 = 0x300;

/// Unit of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// A count.
    Count,
}

impl Metric {
    /// Samples taken.
    pub const SAMPLES: Metric = Metric(1);
    /// Time of the samples, in any state: each represents the time since the previous one.
    pub const TIME: Metric = Metric(2);
    /// The part of it in user code, without [`BLOCKED`](Metric::BLOCKED) and
    /// [`OUT_OF_CPU`](Metric::OUT_OF_CPU) time if that is known.
    pub const WORK: Metric = Metric(3);
    /// The part of it in which the runtime worked (not: waited).
    pub const RUNTIME: Metric = Metric(4);
    /// The part of it in which the thread waited or idled.
    pub const WAITING: Metric = Metric(5);
    /// The part of it in which user code was runnable without a CPU; an estimate.
    pub const OUT_OF_CPU: Metric = Metric(6);
    /// Parallel regions begun at this path.
    pub const REGIONS: Metric = Metric(8);
    /// Explicit tasks created at this path.
    pub const TASKS: Metric = Metric(9);
    /// Time in the bodies of those tasks, on any thread; nested tasks not included.
    pub const TASK_TIME: Metric = Metric(10);
    /// Times that a lock, critical or ordered construct was entered at this path.
    pub const ACQUISITIONS: Metric = Metric(11);

    /// The part of the time, in the program's own code, in which the thread was blocked in the kernel.
    pub const BLOCKED: Metric = Metric(13);

    /// Metrics other than waiting, with their names; those of causes, states and groups without their unit.
    const PLAIN: [(Metric, &'static str, MetricUnit); 11] = [
        (Metric::SAMPLES, "samples", MetricUnit::Count),
        (Metric::TIME, "time", MetricUnit::Nanoseconds),
        (Metric::WORK, Cause::Work.name(), MetricUnit::Nanoseconds),
        (Metric::RUNTIME, Group::Runtime.name(), MetricUnit::Nanoseconds),
        (Metric::WAITING, "waiting", MetricUnit::Nanoseconds),
        (Metric::OUT_OF_CPU, State::OutOfCpu.name(), MetricUnit::Nanoseconds),
        (Metric::REGIONS, "regions", MetricUnit::Count),
        (Metric::TASKS, "tasks", MetricUnit::Count),
        (Metric::TASK_TIME, "task_time", MetricUnit::Nanoseconds),
        (Metric::ACQUISITIONS, "acquisitions", MetricUnit::Count),
        (Metric::BLOCKED, Cause::Blocked.name(), MetricUnit::Nanoseconds),
    ];

    /// Waiting of this kind, at the path of the waiting threads: the symptom.
    pub const fn taken(wait: Marker) -> Metric {
        Metric(TAKEN | wait.metric() as u16)
    }

    /// Waiting of this kind, at the path of the one that was waited for: the cause.
    pub const fn given(wait: Marker) -> Metric {
        Metric(GIVEN | wait.metric() as u16)
    }

    /// Waiting of this kind, shared by the paths of the threads that worked meanwhile.
    pub const fn shared(wait: Marker) -> Metric {
        Metric(SHARED | wait.metric() as u16)
    }

    /// The metric with this number in a file; older ones count waits for nestable locks apart.
    pub fn from_file_number(number: u16) -> Metric {
        let wait = Marker::of((number & 0xff) as u64).filter(|marker| marker.is_wait());
        match (number & 0xff00, wait) {
            (family @ (TAKEN | GIVEN | SHARED), Some(wait)) => Metric(family | wait.metric() as u16),
            _ => Metric(number),
        }
    }

    /// The wait of a metric of the waiting families.
    pub fn wait(self) -> Option<Marker> {
        match self.0 & 0xff00 {
            TAKEN | GIVEN | SHARED => {
                Marker::of((self.0 & 0xff) as u64).filter(|marker| marker.has_metrics())
            }
            _ => None,
        }
    }

    /// Whether it is waiting at the path of the waiting threads.
    pub fn is_taken(self) -> bool {
        self.0 & 0xff00 == TAKEN && self.wait().is_some()
    }

    /// Whether it is waiting at the path of the one that was waited for.
    pub fn is_given(self) -> bool {
        self.0 & 0xff00 == GIVEN && self.wait().is_some()
    }

    /// Whether it is idling, shared by the threads that worked. All other waits have a blamed thread, and are
    /// given to it.
    pub fn is_idleness(self) -> bool {
        self == Metric::shared(Marker::Idle)
    }

    /// Every metric that this version knows.
    pub fn all() -> impl Iterator<Item = Metric> {
        let waits = || Marker::ALL.into_iter().filter(|marker| marker.has_metrics());
        (Metric::PLAIN.into_iter().map(|(metric, ..)| metric))
            .chain(waits().map(Metric::taken))
            .chain(waits().map(Metric::given))
            .chain(waits().map(Metric::shared))
    }

    /// The name in JSON and on the command line; `None` for metrics unknown to this version.
    pub fn name(self) -> Option<Name> {
        if let Some((_, base, unit)) = Metric::PLAIN.into_iter().find(|(metric, ..)| *metric == self) {
            return Some(Name { family: "", base, unit });
        }
        let family = match self.0 & 0xff00 {
            TAKEN => "taken_",
            GIVEN => "given_",
            _ => "shared_",
        };
        self.wait().map(|wait| Name { family, base: wait.name(), unit: MetricUnit::Nanoseconds })
    }

    /// Unit of its numbers.
    pub fn unit(self) -> MetricUnit {
        let plain = Metric::PLAIN.into_iter().find(|(metric, ..)| *metric == self);
        plain.map_or(MetricUnit::Nanoseconds, |(.., unit)| unit)
    }

    /// The metric of a name.
    pub fn named(name: &str) -> Option<Metric> {
        Metric::all().find(|metric| metric.name().is_some_and(|known| known == *name))
    }
}

impl MetricUnit {
    /// Suffix of names with this unit.
    const fn suffix(self) -> &'static str {
        match self {
            MetricUnit::Nanoseconds => "_ns",
            MetricUnit::Count => "",
        }
    }
}

/// A metric's name: `time_ns`, `given_lock_wait_ns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    family: &'static str,
    base: &'static str,
    unit: MetricUnit,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.family, self.base, self.unit.suffix())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        let rest = other.strip_prefix(self.family).and_then(|rest| rest.strip_suffix(self.unit.suffix()));
        rest == Some(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for metric in Metric::all() {
            let name = metric.name().unwrap().to_string();
            assert_eq!(Metric::named(&name), Some(metric), "{name}");
            assert_eq!(Metric::all().filter(|m| m.name() == metric.name()).count(), 1, "{name}");
        }
        assert_eq!(Metric::given(Marker::Lock).name().unwrap().to_string(), "given_lock_wait_ns");
        assert_eq!(Metric::from_file_number(0x208), Metric::given(Marker::Lock), "nestable locks");
        assert!(Metric::all().all(|metric| Metric::from_file_number(metric.0) == metric));
        assert_eq!(Metric::from_file_number(0xfff), Metric(0xfff));
        assert_eq!((Metric(0x10e).name(), Metric(0x20f).name(), Metric(0x100).wait()), (None, None, None));
    }
}
