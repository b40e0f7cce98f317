//! The activity of a thread over time, as far as CPUs are concerned.

use super::ready::{PoolNumber, ReadyTasks};
use crate::intervals::Times;
use crate::{Group, Span, State, ThreadIndex};

/// A worker's activity, as far as CPUs are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// Runs code of the program or of the runtime.
    Works,
    /// Waits for others, or has nothing to do.
    Waits,
    /// Waits for a lock; whether that is the system's doing.
    WaitsForLock { system: bool },
    /// Communicates: for others it works; whether its own wait is the system's doing.
    Call { system: bool },
    /// Has not started, or has ended.
    Absent,
    /// Waits for a device, or is not known: for others it works, and its own time is not decided here.
    Other,
    /// Outside of the run of its process.
    Elsewhere,
}

impl Doing {
    pub fn of(state: State) -> Doing {
        match state {
            State::NotStarted | State::Ended => Doing::Absent,
            State::Communication => Doing::Call { system: false },
            state => match state.group() {
                Group::Useful | Group::Runtime | Group::Off | Group::Blocked => Doing::Works,
                Group::Mutex => Doing::WaitsForLock { system: false },
                Group::Sync | Group::Idle => Doing::Waits,
                Group::Device | Group::Start | Group::Unknown => Doing::Other,
            },
        }
    }

    pub fn is_wait(self) -> bool {
        matches!(self, Doing::Waits | Doing::WaitsForLock { .. })
    }
}

/// A worker's activity from a time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Now {
    pub doing: Doing,
    /// Whether it could run and has no CPU.
    pub off: bool,
    /// Whether it sleeps.
    pub blocked: bool,
    /// The ready tasks that it may take in its wait, if these are known.
    pub pool: Option<PoolNumber>,
}

impl Now {
    pub const ELSEWHERE: Now = Now { doing: Doing::Elsewhere, off: false, blocked: false, pool: None };
}

/// The changes of one worker, in order.
pub(super) struct Changes<'a, I> {
    pub thread: ThreadIndex,
    pub spans: I,
    pub span: Option<Span>,
    pub ready: &'a ReadyTasks,
    pub at: u64,
    pub off: &'a Times,
    pub blocked: &'a Times,
    pub device: &'a Times,
    /// Waits for locks and in calls that are the system's doing.
    pub directed: &'a Times,
}

/// The times that are not over at `begin`.
pub(super) fn from(times: &Times, begin: u64) -> &Times {
    &times[times.partition_point(|(_, end)| *end <= begin)..]
}

/// Whether `at` is in one of `times`, of which those that are over are dropped, and when that changes.
fn inside(times: &mut &Times, at: u64) -> (bool, u64) {
    while let Some((_, later)) = times.split_first().filter(|(first, _)| first.1 <= at) {
        *times = later;
    }
    match times.first() {
        Some((start, end)) if *start <= at => (true, *end),
        Some((start, _)) => (false, *start),
        None => (false, u64::MAX),
    }
}

impl<I: Iterator<Item = Span>> Iterator for Changes<'_, I> {
    type Item = (u64, Now);

    fn next(&mut self) -> Option<(u64, Now)> {
        if self.span.is_none_or(|span| self.at >= span.end) {
            self.span = Some(self.spans.find(|span| span.end > self.at && span.end > span.start)?);
        }
        let span = self.span?;
        let at = self.at.max(span.start);
        let (off, off_until) = inside(&mut self.off, at);
        let (blocked, blocked_until) = inside(&mut self.blocked, at);
        let (waits_for_device, device_until) = inside(&mut self.device, at);
        let mut doing = Doing::of(span.section.state);
        if waits_for_device && span.section.state.is_useful() {
            doing = Doing::Other;
        }
        let mut until = span.end.min(off_until).min(blocked_until).min(device_until);
        if let Doing::WaitsForLock { system } | Doing::Call { system } = &mut doing {
            let directed_until;
            (*system, directed_until) = inside(&mut self.directed, at);
            until = until.min(directed_until);
        }
        self.at = until;
        let pool = match doing {
            Doing::Waits => self.ready.pool(self.thread, &span.section),
            _ => None,
        };
        Some((at, Now { doing, off: off && doing != Doing::Absent, blocked, pool }))
    }
}
