//! Queues of devices and their operations; calls of the host that concern them.
//!
//! Times are nanoseconds of the host's clock unless stated otherwise; 0 means "unknown".

use std::collections::BTreeMap;
use taskscope_event::models::device::{anomaly, kind};

/// An operation of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOperation {
    /// Its number in the queue.
    pub seq: u64,
    /// Begin, on the host's clock.
    pub start: u64,
    /// End, on the host's clock.
    pub end: u64,
    /// Start and end as they came, in ticks of the device's clock.
    pub raw: (u64, u64),
    /// Begin of its submission.
    pub append: u64,
    /// Time at which the driver passed it on, in ticks of the device's clock.
    pub submit: u64,
    /// The vendor's id.
    pub id: u64,
    /// System thread id of the submitter.
    pub thread: i64,
    /// Bytes moved.
    pub bytes: u64,
    /// Delay of its record, for one that arrived out of place.
    pub late_by: u64,
    /// The lane of the queue in which it overlaps nothing; `None` without usable times.
    pub lane: Option<u32>,
    /// A number of `taskscope_event::models::device::kind`.
    pub kind: u32,
    /// Index into [`Queue::names`].
    pub name: u32,
    /// Bits of `taskscope_event::models::device::anomaly`.
    pub anomalies: u32,
    /// Imported columns as they were written, and the number of the file.
    pub columns: Option<(u32, String)>,
}

/// Effect of an operation on the device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Computes.
    Kernel,
    /// Copies or fills memory.
    Transfer,
    /// Waits, maps memory, or runs code of the host.
    Other,
}

impl DeviceOperation {
    /// Its effect on the device's time; an unknown operation counts as a kernel.
    pub fn class(&self) -> Class {
        match self.kind {
            kind::KERNEL | kind::GRAPH | kind::OTHER => Class::Kernel,
            kind::COPY | kind::COPY_IN | kind::COPY_OUT | kind::FILL => Class::Transfer,
            _ => Class::Other,
        }
    }

    /// Names of its anomalies.
    pub fn anomaly_names(&self) -> impl Iterator<Item = &'static str> {
        let bits = self.anomalies;
        anomaly::NAMES.iter().filter(move |(bit, _)| bits & bit != 0).map(|(_, name)| *name)
    }

    /// The name of its kind.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            kind::KERNEL => "kernel",
            kind::COPY_IN => "copy-in",
            kind::COPY_OUT => "copy-out",
            kind::COPY => "copy",
            kind::FILL => "fill",
            kind::SYNCHRONISATION => "synchronisation",
            kind::MAP => "map",
            kind::HOST_CODE => "host-code",
            kind::GRAPH => "graph",
            kind::SUBMITTING_CALL | kind::WAITING_CALL | kind::OTHER_CALL => "call",
            kind::OVERHEAD => "overhead",
            _ => "other",
        }
    }
}

/// An appended operation of which no record came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostOperation {
    /// Its number in the queue.
    pub seq: u64,
    /// Begin of its submission.
    pub append: u64,
    /// The vendor's id.
    pub id: u64,
    /// System thread id of the submitter.
    pub thread: i64,
    /// Index into [`Queue::names`].
    pub name: u32,
}

/// A queue, or a thread's place for records that name no queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The name for output and for selection.
    pub name: String,
    /// Path of its location below the trace's root.
    pub path: String,
    /// Its device; empty if not known.
    pub device: String,
    /// Process id of the program; `None` for imports.
    pub pid: Option<i64>,
    /// The queue's number in its process, which calls name.
    pub number: u64,
    /// Whether it promises to run its operations one after the other.
    pub in_order: bool,
    /// Source of this fact: `told`, `overlaps`, or `assumed`.
    pub order_from: String,
    /// Whether the stream ended properly.
    pub finished: bool,
    /// Operations in order of release.
    pub operations: Vec<DeviceOperation>,
    /// Lost operations.
    pub lost: Vec<LostOperation>,
    /// Records that came after their operation was declared lost.
    pub late: Vec<DeviceOperation>,
    /// Further records of operations that had ended already.
    pub duplicates: u64,
    /// Texts of names; the first is the empty one.
    pub names: Vec<String>,
    /// Functions of C++ or Rust among them, by index, without namespaces and arguments.
    pub short_names: BTreeMap<u32, String>,
    /// Names of the imported columns, by file.
    pub columns: Vec<Vec<String>>,
    /// Counts as the recorder or import wrote them at the end.
    pub account: Vec<(String, u64)>,
    /// Clock of its device.
    pub clock: Clock,
    /// Numbers that vendors' records have besides, by sequence: sequence, index into `names`, value.
    pub numbers: Vec<(u64, u32, u64)>,
    /// Records from the buffer of another thread, each as a sentence.
    pub foreign: Vec<String>,
}

/// Mapping of a device's clock to the host's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// Description of the clock, if known.
    pub source: String,
    /// Knots of the map, at which its rate changes: device ticks, host nanoseconds.
    pub knots: Vec<(u64, i64)>,
    /// Bounds that were collected: an operation starts after its submission, ends before its record comes.
    pub bounds: u64,
    /// Bounds that the map violates, of the tightest.
    pub violated: u64,
    /// The worst violation, nanoseconds.
    pub worst_violation_ns: u64,
    /// Room to the tightest bound below and above, nanoseconds.
    pub slack_ns: (Option<u64>, Option<u64>),
    /// Jumps: device ticks, nanoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Difference from the nominal rate, parts per million.
    pub drift_ppm: f64,
}

/// A call of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCall {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Index into [`CallThread::names`].
    pub name: u32,
    /// A number of `taskscope_event::models::device::kind`.
    pub kind: u32,
    /// The operation that it submitted: queue number in the process, sequence.
    pub operation: Option<(u64, u64)>,
}

/// Purpose of a call of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Submits an operation.
    Submits,
    /// Waits for operations.
    Waits,
    /// Time of the vendor's collection, not a call of the program.
    Overhead,
    /// Anything else.
    Other,
}

impl DeviceCall {
    /// Its purpose.
    pub fn purpose(&self) -> Purpose {
        match self.kind {
            kind::SUBMITTING_CALL => Purpose::Submits,
            kind::WAITING_CALL => Purpose::Waits,
            kind::OVERHEAD => Purpose::Overhead,
            _ => Purpose::Other,
        }
    }
}

/// A thread's calls, by start.
#[derive(Clone, Debug, Default)]
pub struct CallThread {
    /// Path of its location below the trace's root.
    pub path: String,
    /// Process id.
    pub pid: i64,
    /// System thread id.
    pub tid: i64,
    /// The calls.
    pub calls: Vec<DeviceCall>,
    /// Texts of names; the first is the empty one.
    pub names: Vec<String>,
}

/// The devices of a trace.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    /// Queues, ordered by their locations' paths.
    pub queues: Vec<Queue>,
    /// Calls of the host, by thread.
    pub calls: Vec<CallThread>,
    /// Records that vendors' interfaces dropped, by the directory of the process's queues.
    pub dropped: BTreeMap<String, u64>,
}

impl Queue {
    /// A count of the account by name; 0 if absent.
    pub fn count(&self, name: &str) -> u64 {
        self.account.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count)
    }

    /// Further values of the vendor's record of an operation: names and values.
    pub fn numbers_of(&self, seq: u64) -> impl Iterator<Item = (&str, u64)> {
        let first = self.numbers.partition_point(|(of, _, _)| *of < seq);
        let own = self.numbers[first..].iter().take_while(move |(of, _, _)| *of == seq);
        own.map(|(_, name, value)| (self.name_of(*name), *value))
    }

    /// Name of an operation in tables: functions without namespaces and arguments, the kind if it has no name.
    pub fn shown_name<'a>(&'a self, operation: &DeviceOperation) -> &'a str {
        match self.short_names.get(&operation.name).map_or(self.name_of(operation.name), String::as_str) {
            "" => operation.kind_name(),
            name => name,
        }
    }

    /// Name of an operation.
    pub fn name_of(&self, name: u32) -> &str {
        self.names.get(name as usize).map_or("", String::as_str)
    }
}

impl Devices {
    /// Whether the trace has no devices.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.calls.is_empty()
    }

    /// Number of operations of all queues.
    pub fn operations(&self) -> u64 {
        self.queues.iter().map(|queue| queue.operations.len() as u64).sum()
    }

    /// Time of the first submission or start, and of the last end; zero if there is none.
    pub fn range(&self) -> (u64, u64) {
        let operations = || self.queues.iter().flat_map(|queue| &queue.operations);
        let calls = || self.calls.iter().flat_map(|thread| &thread.calls);
        let first = operations()
            .flat_map(|operation| [operation.append, operation.start])
            .chain(calls().map(|call| call.start))
            .filter(|time| *time != 0)
            .min();
        let last = operations().map(|operation| operation.end).chain(calls().map(|call| call.end)).max();
        (first.unwrap_or(0), last.unwrap_or(0))
    }
}

/// `reduce<…>` of `at::native::reduce<512, 1, float>(float*, int)`: a demangled function's own name.
pub fn short_name(function: &str) -> String {
    let mut short = String::new();
    let mut depth = 0u32;
    for (at, character) in function.char_indices() {
        match character {
            '(' if depth == 0 && !function[at..].starts_with("(anonymous") && short != "operator" => break,
            '<' if depth == 0 && !short.is_empty() => {
                short.push_str("<…>");
                depth += 1;
            }
            '(' | '<' | '{' | '[' => {
                if depth == 0 && character == '(' && short == "operator" {
                    short.push_str("()");
                }
                depth += 1;
            }
            ')' | '>' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => short.clear(),
            _ if depth == 0 => short.push(character),
            _ => {}
        }
    }
    if short.is_empty() { function.to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn functions_are_called_by_their_own_names() {
        for (function, expected) in [
            ("scale(float*, int)", "scale"),
            ("sum<float>(float const*, float*, int)", "sum<…>"),
            ("at::native::(anonymous namespace)::threshold<4, std::array<char*, 1ul> >(int)", "threshold<…>"),
            ("void cub::kernel<void (*)(int)>(int)", "kernel<…>"),
            ("Solver::operator()(int) const", "operator()"),
            ("main::{lambda(int)#1}::operator()(int) const", "operator()"),
            ("sm80_xmma_gemm", "sm80_xmma_gemm"),
            ("<impl core::fmt::Display>::fmt", "fmt"),
            ("((", "(("),
        ] {
            assert_eq!(short_name(function), expected, "{function}");
        }
    }
}
