//! The CPUs of a process and of its threads, while it runs: into the side stream when something is new.

use super::side_file::SideFile;
use crate::clock;
use crate::cpus::{Cgroups, CpuTime, Mask, Quota, Throttled, online};
use std::time::{Duration, Instant};
use taskscope_event::Code;
use taskscope_event::models::system;

/// Between two readings of what others used and of throttling: files that the kernel writes anew at each one.
const PERIOD: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct CpuWatch {
    /// What the process may use.
    mask: Option<Mask>,
    /// Known from the first look on.
    cgroups: Option<Cgroups>,
    quota: Option<Quota>,
    /// As it was at a time.
    throttled: Option<(u64, Throttled)>,
    time: Option<CpuTime>,
    /// Masks of living threads, by their ids in the trace, as they were read last.
    threads: Vec<(i64, Mask)>,
    last: Option<Instant>,
    /// Found, and not written yet.
    coming: Vec<(Code, Vec<u8>)>,
}

impl CpuWatch {
    pub fn new(mask: Option<Mask>) -> CpuWatch {
        CpuWatch { mask, ..CpuWatch::default() }
    }

    /// Reads masks of the threads, given by their ids in the system and in the trace, and from time to time the rest;
    /// all of it where it is the `last` look.
    pub fn look(&mut self, threads: impl Iterator<Item = (i32, i64)>, last: bool) {
        for (os_tid, tid) in threads {
            self.look_at_thread(os_tid, tid);
        }
        if last || self.last.is_none_or(|last| last.elapsed() >= PERIOD) {
            self.last = Some(Instant::now());
            self.look_at_process();
        }
    }

    /// The calling thread detaches.
    pub fn leaves(&mut self, tid: i64) {
        self.look_at_thread(0, tid);
        self.threads.retain(|(known, _)| *known != tid);
    }

    fn look_at_thread(&mut self, os_tid: i32, tid: i64) {
        let Some(mask) = Mask::of_thread(os_tid) else { return };
        match self.threads.iter_mut().find(|(known, _)| *known == tid) {
            Some((_, known)) if *known == mask => return,
            Some((_, known)) => *known = mask.clone(),
            None => self.threads.push((tid, mask.clone())),
        }
        self.found(system::BOUND, &[&clock::kernel_ns().to_le_bytes(), &tid.to_le_bytes(), mask.bytes()]);
    }

    fn look_at_process(&mut self) {
        if self.cgroups.is_none()
            && let Some(mask) = self.mask.clone()
        {
            self.found(system::CPUS, &[&online().to_le_bytes(), mask.bytes()]);
        }
        let cgroups = self.cgroups.get_or_insert_with(Cgroups::of_process);
        let (quota, throttled) = (cgroups.quota(), cgroups.throttled());
        let time = self.mask.as_ref().and_then(CpuTime::of);
        let now = clock::kernel_ns();
        let at = now.to_le_bytes();
        if let Some(new) = changed(&mut self.quota, quota) {
            let millicpus = new.millicpus.to_le_bytes();
            self.found(system::QUOTA, &[&at, &millicpus, new.cgroup.as_bytes(), &[0]]);
        }
        if let Some(throttled) = throttled
            && let Some((start, before)) = self.throttled.replace((now, throttled))
            && before != throttled
        {
            let periods = throttled.periods.saturating_sub(before.periods).to_le_bytes();
            let ns = throttled.ns.saturating_sub(before.ns).to_le_bytes();
            self.found(system::THROTTLED, &[&start.to_le_bytes(), &at, &periods, &ns]);
        }
        if let Some(new) = changed(&mut self.time, time) {
            let CpuTime { busy_ns, stolen_ns, own_ns } = new;
            let sums = [busy_ns, stolen_ns, own_ns].map(u64::to_le_bytes);
            self.found(system::CPU_TIME, &[&at, &sums[0], &sums[1], &sums[2]]);
        }
    }

    fn found(&mut self, code: Code, parts: &[&[u8]]) {
        self.coming.push((code, parts.concat()));
    }

    /// Puts what was found into the stream, whose clock is at `clock`.
    pub fn write(&mut self, stream: &mut SideFile, clock: u64) {
        for (code, data) in self.coming.drain(..) {
            stream.jumbo(clock, code, &[&data]);
        }
    }
}

/// The new value, where it is known and another than the `known` one, which it replaces.
fn changed<T: Clone + PartialEq>(known: &mut Option<T>, new: Option<T>) -> Option<T> {
    let new = new.filter(|new| known.as_ref() != Some(new))?;
    Some(known.insert(new).clone())
}
