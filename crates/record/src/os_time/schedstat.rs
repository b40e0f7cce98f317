//! How long a thread ran and waited for a CPU, as the kernel sums it up.

use super::off_cpu::{Kind, OffCpu};
use crate::clock;
use crate::thread_sums::{self, ThreadSums};
use crate::watched_process;
use std::io::Read;

/// A thread's sums since its start, nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    /// The clock before they were read.
    pub at: u64,
    /// On a CPU.
    pub on_cpu: u64,
    /// Time runnable without a CPU, up to the last time that the thread was put on one.
    pub run_delay: u64,
}

/// A thread with readable sums. Files are opened at each reading: a descriptor that is held could be closed
/// by the program.
pub(super) struct Schedstat {
    os_tid: i32,
    state: String,
}

impl Schedstat {
    pub fn of(os_tid: i32) -> Schedstat {
        Schedstat { os_tid, state: format!("{}/task/{os_tid}/stat", watched_process::directory()) }
    }

    /// `None` if the kernel keeps no such sums, or the thread has ended.
    pub fn read(&self) -> Option<Sums> {
        let at = clock::kernel_ns();
        let ThreadSums { on_cpu, delay } = ThreadSums::read(self.os_tid)?;
        Some(Sums { at, on_cpu, run_delay: delay })
    }

    /// Current state of the thread; its CPU time was `on_cpu` before. `None` if it has ended.
    pub fn standing(&self, on_cpu: u64) -> Option<Standing> {
        let is_blocked = self.is_blocked()?;
        // A thread that is about to block, or to be woken, is shown as blocked and on a CPU.
        let own = || thread_sums::cpu_time(self.os_tid);
        // The kernel shows the clocks of threads to their own process only.
        let on_cpu_now = own().or_else(|| Some(ThreadSums::read(self.os_tid)?.on_cpu))?;
        Some(match on_cpu_now {
            now if now != on_cpu => Standing::Running,
            _ if is_blocked => Standing::Blocked,
            _ => Standing::Waits,
        })
    }

    /// Whether the kernel reports the thread as blocked; `None` if unknown.
    pub fn is_blocked(&self) -> Option<bool> {
        let mut text = [0; 64];
        let length = std::fs::File::open(&self.state).ok()?.read(&mut text).ok()?;
        // "tid (name) S": the name may have any bytes.
        let text = &text[..length];
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        Some(*text.get(name_end + 2)? != b'R')
    }
}

/// Current state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It is on a CPU.
    Running,
    /// Runnable without a CPU.
    Waits,
    /// It sleeps, waits in the kernel, or is stopped.
    Blocked,
}

/// Sums of a thread over periods, used if its context switches are not visible.
pub(super) struct Periods {
    schedstat: Schedstat,
    last: Sums,
}

/// Less blocked time than this in a period is not stored: readings of the three clocks are apart.
pub(super) const MIN_BLOCKED_NS: u64 = 20_000;

impl Periods {
    /// Creates the periods of a thread with these sums at its attach (`attached`); `None` if the kernel keeps
    /// no sums.
    pub fn of(os_tid: i32, attached: Option<Sums>) -> Option<Self> {
        let schedstat = Schedstat::of(os_tid);
        let last = attached.or_else(|| schedstat.read())?;
        Some(Periods { schedstat, last })
    }

    /// The sums of the last reading.
    pub fn sums(&self) -> Sums {
        self.last
    }

    /// Appends the sums of the time since the last reading. A period does not end while the thread waits for a CPU: the
    /// wait is in the sums only when it is over, and would count as blocked until then.
    pub fn read(&mut self, off: &mut Vec<OffCpu>) {
        if let Some(sums) = self.schedstat.read()
            && self.schedstat.standing(sums.on_cpu) != Some(Standing::Waits)
        {
            self.end_period(sums, off);
        }
    }

    /// [`read`](Self::read) at the end of the recording, even if the thread waits for a CPU.
    pub fn read_last(&mut self, off: &mut Vec<OffCpu>) {
        let Some(mut sums) = self.schedstat.read() else { return };
        if self.schedstat.standing(sums.on_cpu) == Some(Standing::Waits) {
            // Time in neither sum is that wait, not blocked time.
            let used = sums.on_cpu.saturating_sub(self.last.on_cpu);
            let waited = sums.at.saturating_sub(self.last.at).saturating_sub(used);
            sums.run_delay = sums.run_delay.max(self.last.run_delay + waited);
        }
        self.end_period(sums, off);
    }

    fn end_period(&mut self, sums: Sums, off: &mut Vec<OffCpu>) {
        let (before, end) = (std::mem::replace(&mut self.last, sums), sums.at);
        let delay = sums.run_delay.saturating_sub(before.run_delay);
        let used = sums.on_cpu.saturating_sub(before.on_cpu).saturating_add(delay);
        let blocked = end.saturating_sub(before.at).saturating_sub(used);
        if delay > 0 {
            // A wait of the thread's first period can have begun before it.
            let start = before.at.min(end.saturating_sub(delay));
            off.push(OffCpu { start, end, kind: Kind::RunDelay { ns: delay } });
        }
        if blocked >= MIN_BLOCKED_NS {
            off.push(OffCpu { start: before.at, end, kind: Kind::BlockedSum { ns: blocked } });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_period_become_run_delay_and_blocked_time() {
        let Some(mut periods) = Periods::of(crate::os_thread::os_tid(), None) else {
            println!("skipped: this kernel has no schedstat (CONFIG_SCHED_INFO)");
            return;
        };
        let (end, before) = (periods.last.at, periods.last.run_delay);
        // As if the thread had waited for a CPU for longer than the period.
        periods.last.run_delay = before.saturating_sub(1_000_000_000);
        let mut off = Vec::new();
        periods.read(&mut off);
        for off in &off {
            let Kind::RunDelay { ns } = off.kind else { panic!("blocked time beside a long wait for a CPU") };
            assert!(off.start <= end.max(off.end - ns) && ns > 0);
        }
        std::thread::sleep(std::time::Duration::from_millis(3));
        off.clear();
        periods.read(&mut off);
        let blocked = off.iter().map(|off| match off.kind {
            Kind::BlockedSum { ns } => ns,
            _ => 0,
        });
        assert!(blocked.sum::<u64>() > 2_000_000);
        assert!(Periods::of(i32::MAX, None).is_none());
    }
}
