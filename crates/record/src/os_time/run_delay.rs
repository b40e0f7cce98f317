//! How long a thread waited for a CPU, as the kernel sums it up.

use super::OffCpu;
use crate::clock;
use std::io::Read;

/// A thread's `schedstat`, and what it said last.
pub(super) struct RunDelay {
    /// Opened at each reading: a descriptor that is held could be closed by the program.
    path: String,
    at: u64,
    delay_ns: u64,
}

impl RunDelay {
    /// `None` where the kernel does not tell.
    pub fn of(os_tid: i32) -> Option<Self> {
        let mut delay = RunDelay { path: format!("/proc/self/task/{os_tid}/schedstat"), at: 0, delay_ns: 0 };
        (delay.at, delay.delay_ns) = delay.look()?;
        Some(delay)
    }

    /// What came since the last reading.
    pub fn read(&mut self) -> Option<OffCpu> {
        let (at, delay_ns) = self.look()?;
        let (start, ns) = (self.at, delay_ns.saturating_sub(self.delay_ns));
        (self.at, self.delay_ns) = (at, delay_ns);
        // A wait is summed up when it ends: one longer than the period began before it.
        let start = start.min(at.saturating_sub(ns));
        (ns > 0).then_some(OffCpu { start, end: at, exact: false, ns })
    }

    fn look(&self) -> Option<(u64, u64)> {
        let mut text = [0; 96];
        let length = std::fs::File::open(&self.path).ok()?.read(&mut text).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        // Time on a CPU, time runnable without one, times put on one.
        let delay = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((clock::kernel_ns(), delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_thread_has_a_run_delay() {
        let Some(mut delay) = RunDelay::of(crate::thread::os_tid()) else {
            println!("skipped: this kernel has no schedstat (CONFIG_SCHED_INFO)");
            return;
        };
        let before = delay.at;
        // As if the thread had just waited for longer than the period.
        delay.delay_ns = 0;
        if let Some(off) = delay.read() {
            assert!(off.start <= before.max(off.end - off.ns) && !off.exact && off.ns > 0);
            assert!(off.end - off.start >= off.ns.min(off.end));
        }
        assert!(RunDelay::of(i32::MAX).is_none());
    }
}
