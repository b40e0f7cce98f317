//! A thread that the housekeeping thread watches.

use super::off_cpu::OffCpu;
use super::schedstat::{Periods, Schedstat, Sums};
use super::switches::Switches;

/// Source of a thread's times off the CPU.
pub(super) enum Source {
    Switches(Switches),
    Periods(Periods),
    /// The thread has detached; whether sums over periods were read. Intervals that are not written yet follow in order.
    Left {
        summed: bool,
    },
}

/// A recorded thread, and its times off the CPU that are not written yet.
pub(super) struct Watched {
    pub os_tid: i32,
    /// Id in the trace.
    pub tid: i64,
    /// Number in the side stream; `None` until it is written there.
    pub number: Option<u32>,
    /// Sums as it began: at the fork, or as it attached.
    pub began: Option<Sums>,
    /// Sums as it attached.
    pub attached: Option<Sums>,
    /// None until the housekeeping thread has opened it.
    pub source: Option<Source>,
    /// Intervals that ended after the round's begin, to be written next.
    pub coming: Vec<OffCpu>,
    /// Missing records, not written yet.
    pub missing: u64,
    /// Sums at the begin and the end.
    pub totals: [Option<Sums>; 2],
    /// Blocked intervals that are in sums only.
    pub coalesced: u64,
}

impl Watched {
    /// A thread that is attached now. The kernel's sums of a forked child's first thread begin at the fork.
    pub fn new(os_tid: i32, tid: i64, forked_at: Option<u64>) -> Watched {
        let mut coming = Vec::new();
        let now = Schedstat::of(os_tid).read();
        let at_fork = forked_at.filter(|_| now.is_some()).map(|at| Sums { at, on_cpu: 0, run_delay: 0 });
        let since_fork = at_fork.and_then(|at_fork| Periods::of(os_tid, Some(at_fork)));
        let attached = match since_fork {
            // The time before the thread was attached is a period of its own.
            Some(mut periods) => {
                periods.read(&mut coming);
                Some(periods.sums())
            }
            None => now,
        };
        Watched {
            os_tid,
            tid,
            number: None,
            began: at_fork.or(attached),
            attached,
            source: None,
            coming,
            missing: 0,
            totals: [None; 2],
            coalesced: 0,
        }
    }

    /// Reads the intervals that have ended since the last reading, and those open at `now`. Returns the
    /// number of missing records.
    pub fn read(&mut self, now: u64) -> u64 {
        match &mut self.source {
            Some(Source::Switches(switches)) => switches.read(now, &mut self.coming),
            Some(Source::Periods(periods)) => {
                periods.read(&mut self.coming);
                0
            }
            Some(Source::Left { .. }) | None => 0,
        }
    }

    /// Sets the source, and reads the time before it.
    pub fn begin(&mut self, source: Source) {
        self.totals[0] = self.began;
        self.source = Some(source);
        self.missing += self.read(0);
    }

    /// Reads for the last time, and closes the source.
    pub fn leave(&mut self) {
        let summed = self.has_sums();
        match &mut self.source {
            Some(Source::Switches(switches)) => {
                self.missing += switches.read_last(&mut self.coming);
                (self.totals[1], self.coalesced) = (switches.sums(), switches.coalesced);
            }
            Some(Source::Periods(periods)) => {
                periods.read_last(&mut self.coming);
                self.totals[1] = Some(periods.sums());
            }
            // It ends before the housekeeping thread has reached it.
            None => {
                let Some(mut periods) = Periods::of(self.os_tid, self.attached) else { return };
                periods.read_last(&mut self.coming);
                self.totals = [self.began, Some(periods.sums())];
            }
            Some(Source::Left { .. }) => return,
        }
        self.source = Some(Source::Left { summed });
    }

    /// Whether all of it has been written.
    pub fn is_done(&self) -> bool {
        self.has_left() && self.coming.is_empty()
    }

    /// Ids in the system and in the trace.
    pub fn ids(&self) -> (i32, i64) {
        (self.os_tid, self.tid)
    }

    pub fn has_left(&self) -> bool {
        matches!(self.source, Some(Source::Left { .. }))
    }

    pub fn has_sums(&self) -> bool {
        matches!(self.source, Some(Source::Periods(_) | Source::Left { summed: true }))
    }

    /// Thousandths of its ring in use at the last reading.
    pub fn filled(&self) -> u32 {
        match &self.source {
            Some(Source::Switches(switches)) => switches.filled,
            _ => 0,
        }
    }
}
