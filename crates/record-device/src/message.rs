//! Messages from the sources to the collector.

use crate::clocks::DeviceClock;
use taskscope_reorder::{Completion, Notice, QueueIndex, QueueOrder};

/// A message from a source to the collector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    /// An operation, and the first one of its queue that another thread was submitting.
    Append(Notice, Option<u64>),
    Complete(Completion, u64),
    /// A further record of an operation that has ended.
    CompleteAgain(Completion, u64),
    Cancel(QueueIndex, u64),
    Call(Call),
    /// A device's ticks between two times of the host.
    Anchor(u32, u64, u64, u64),
    /// Operations of the queue below this sequence will have no record, except for records already sent.
    Lost(QueueIndex, u64),
    /// Unannounced operations of the queue start at this time or later.
    NoneBefore(QueueIndex, u64),
    /// Kind, name and bytes of an operation, if its record is more exact than its submission.
    Amend(QueueIndex, u64, KindAndName, u64),
    /// A number that the vendor's record has for an operation: its name, its value.
    Number(QueueIndex, u64, u32, u64),
    /// A record of the host that comes late: a call, or overhead.
    HostRecord(Call),
}

/// A call of the host.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// System thread id.
    pub tid: u32,
    /// When it began, `CLOCK_MONOTONIC`.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Kind and name.
    pub what: KindAndName,
    /// The operation that it submitted.
    pub operation: Option<(QueueIndex, u64)>,
}

/// A kind of `taskscope_event::models::device::kind`, and a name of [`crate::hub::Hub::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindAndName(pub(crate) u32);

impl KindAndName {
    /// Both in one number.
    pub fn new(kind: u32, name: u32) -> Self {
        KindAndName(kind << 24 | name & 0xff_ffff)
    }

    pub(crate) fn kind(self) -> u32 {
        self.0 >> 24
    }

    pub(crate) fn name(self) -> u32 {
        self.0 & 0xff_ffff
    }
}

/// A device, as a source knows it.
#[derive(Clone, Debug)]
pub struct Device {
    /// Displayed name.
    pub name: String,
    /// Clock of its stamps.
    pub clock: DeviceClock,
}

/// A queue, as a source knows it.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Displayed name.
    pub name: String,
    /// Number of its device.
    pub device: u32,
    /// Its guaranteed order.
    pub order: QueueOrder,
    /// Its interface.
    pub interface: &'static str,
    /// Lower bound for operations that are not announced yet.
    pub floor: Floor,
    /// Query for the driver, if it supports one.
    pub poll: Option<Poll>,
}

/// Queries of the collector to a queue's driver.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// Whether an operation cannot have started.
    pub not_started: fn(QueueIndex, u64) -> bool,
    /// Called at times by the querying thread.
    pub look: fn(),
}

/// Lower bound for a queue's operations that are not announced yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// Each is announced before it is submitted: unknown ones start later than now.
    Now,
    /// They become known with their records: no bound, until the end.
    Unknown,
}

/// An interface that holds back records: actions at the end of the program.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Hands over all complete records.
    pub flush: fn(),
    /// Passes on the others too; the last call.
    pub force: fn(),
}
