//! Threads' time in pieces of one activity each.

use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, ThreadIndex, ThreadWait};

use super::activity::{Doing, MAX_PIECES, Piece};
use super::bound::BoundThreads;
use super::charges::Charges;
use super::losses::LostTo;
use super::scheduling::Scheduling;
use crate::wait_chains::{ChainPart, Root, ThreadCall, Tie, follow, object};

/// Divides the time of threads into pieces.
pub(super) struct Pieces<'a> {
    pub(super) execution: &'a Execution,
    pub(super) ends: &'a [u64],
    pub(super) bound: &'a BoundThreads,
    pub(super) charges: &'a mut Charges,
    pub(super) to: &'a mut Vec<Piece>,
}

impl Pieces<'_> {
    pub(super) fn add(&mut self, thread: ThreadIndex) {
        let execution = self.execution;
        let row = &execution.threads[thread.index()];
        let (start, end) = (row.track.start(), row.track.end());
        if start >= end {
            return;
        }
        let own = Scheduling::of(execution, thread, self.ends);
        let mut at = start;
        for wait in execution.thread_waits.waits_of(thread, start, end) {
            let (from, until) = (wait.start.max(at), wait.end.min(end));
            self.outside_of_waits(&own, at, from.min(end));
            if until > from {
                self.in_wait(&own, wait, from, until);
            }
            at = at.max(until);
        }
        self.outside_of_waits(&own, at, end);
    }

    pub(super) fn push(&mut self, thread: ThreadIndex, from: u64, until: u64, doing: Doing) {
        if until <= from {
            return;
        }
        match self.to.last_mut() {
            Some(last) if last.thread == thread && last.until == from && last.doing == doing => {
                last.until = until;
            }
            _ => self.to.push(Piece { thread, from, until, doing }),
        }
    }

    /// Time in which a thread runs, has no CPU, or is blocked in calls that are not recorded.
    pub(super) fn outside_of_waits(&mut self, own: &Scheduling<'_>, from: u64, until: u64) {
        own.each(from, until, &mut |at, end, doing| match doing {
            Doing::HasNoCpu => self.without_cpu(own.thread, own.thread, (at, end), doing),
            _ => self.push(own.thread, at, end, doing),
        });
    }

    pub(super) fn in_wait(&mut self, own: &Scheduling<'_>, wait: &ThreadWait, from: u64, until: u64) {
        let execution = self.execution;
        let kind = object(execution, wait.object).map_or(0, |row| row.kind);
        let ends = own.ends_after(wait, kind);
        if self.to.len() >= MAX_PIECES {
            let number = self.charges.number(LostTo::Unknown);
            return self.push(own.thread, from, until, Doing::Waits(number));
        }
        let runs = own.runs_in(kind, wait);
        let mut parts = Vec::new();
        follow(execution, wait, from, until, &mut |part| parts.push(part));
        for part in parts {
            let doing = self.doing(own, wait, (kind, ends), &part);
            let is_counted = matches!(doing, Doing::HasNoCpu | Doing::Waits(_));
            if part.root == Root::NoCpu && is_counted {
                let without = if part.length == 0 { own.thread } else { part.thread };
                self.without_cpu(own.thread, without, (part.from, part.until), doing);
            } else if runs {
                own.each(part.from, part.until, &mut |at, next, now| {
                    self.push(own.thread, at, next, if now == Doing::Runs { now } else { doing });
                });
            } else {
                self.push(own.thread, part.from, part.until, doing);
            }
        }
    }

    /// Time of a thread in which this or an awaited thread has no CPU.
    fn without_cpu(
        &mut self,
        thread: ThreadIndex,
        without: ThreadIndex,
        (from, until): (u64, u64),
        doing: Doing,
    ) {
        if self.to.len() >= MAX_PIECES {
            return self.push(thread, from, until, doing);
        }
        let mut at = from;
        for (mask, start, end) in self.bound.times_of(without, from, until) {
            let number = self.charges.number(LostTo::Bound(mask));
            self.push(thread, at, start, doing);
            self.push(thread, start, end, Doing::Waits(number));
            at = end;
        }
        self.push(thread, at, until, doing);
    }

    /// The activity in a part of a wait.
    pub(super) fn doing(
        &mut self,
        own: &Scheduling<'_>,
        wait: &ThreadWait,
        (kind, ends): (u32, bool),
        part: &ChainPart,
    ) -> Doing {
        match (part.root, part.first.zip(part.last)) {
            (Root::NoCpu, None) => Doing::HasNoCpu,
            (Root::Handover, None) => Doing::Waits(self.charges.number(LostTo::Handover)),
            _ if kind == kind::JOIN => Doing::Rests,
            (Root::Open, _) => Doing::Rests,
            (Root::NotKnown, _) | (Root::Ran, None) => {
                let call = ThreadCall::of(self.execution, wait.thread, wait.site, wait.start);
                Doing::WaitsUnknown(self.charges.number(LostTo::WaitUnknown(kind, call)))
            }
            (Root::TimedOut, _) => Doing::Listens,
            (Root::Slept, None) => {
                let call = part.blocked.map_or(ThreadCall::NONE, |(_, call)| call);
                let number = self.charges.number(LostTo::Blocked(kind, call));
                if own.works { Doing::Waits(number) } else { Doing::Sleeps(number) }
            }
            (Root::Outside, None) => match part.blocked {
                Some((kind::FILE, call)) => {
                    Doing::Waits(self.charges.number(LostTo::Blocked(kind::FILE, call)))
                }
                _ => Doing::Listens,
            },
            (Root::Outside, Some(_)) if part.blocked.is_none_or(|(kind, _)| kind != kind::FILE) => {
                // A lock is held by a thread that waits for the outside.
                match part.first {
                    Some(first @ Tie::Holds(_)) => Doing::Waits(self.wait((kind, wait), first, part)),
                    // It may be a device, or a peer with requests.
                    Some(first) if part.blocked.is_some_and(|(kind, _)| kind == kind::OPERATIONS) => {
                        Doing::WaitsUnknown(self.wait((kind, wait), first, part))
                    }
                    _ => Doing::Listens,
                }
            }
            _ if ends => Doing::Rests,
            // The holder of a lock is known, whatever it does meanwhile.
            (Root::Unrecorded, Some((Tie::Wakes(_) | Tie::IsJoined(..), _))) | (Root::Unrecorded, None) => {
                let at = ThreadCall::of(self.execution, wait.thread, wait.site, wait.start);
                let (object, thread) = (wait.object, part.thread);
                let to = LostTo::WaitUnrecorded { kind, object, at, thread };
                Doing::WaitsUnknown(self.charges.number(to))
            }
            (Root::NoCpu, Some(_)) => Doing::Waits(self.charges.number(LostTo::NoCpu)),
            (
                Root::Ran | Root::Slept | Root::Outside | Root::Handover | Root::Unrecorded,
                Some((first, _)),
            ) => Doing::Waits(self.wait((kind, wait), first, part)),
        }
    }

    pub(super) fn wait(&mut self, (kind, wait): (u32, &ThreadWait), first: Tie, part: &ChainPart) -> u32 {
        let at = ThreadCall::of(self.execution, wait.thread, wait.site, wait.start);
        let last = part.last.unwrap_or(first);
        let (object, length, blocked) = (wait.object, part.length, part.blocked);
        let is_free = part.is_of_free_lock();
        self.charges.number(LostTo::Wait { kind, object, at, first, last, length, blocked, is_free })
    }
}
