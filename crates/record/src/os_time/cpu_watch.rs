//! The CPUs of a process and of its threads, while it runs: into the side stream when something is new.

use super::side_file::SideFile;
use crate::clock;
use crate::cpus::{Cgroups, CpuTime, Mask, Quota, Throttled, online};
use std::time::{Duration, Instant};
use taskscope_event::Code;
use taskscope_event::models::system;

/// Interval between two readings of others' CPU use and of throttling: files that the kernel generates on
/// each read.
const PERIOD: Duration = Duration::from_millis(200);
/// Maximum duration of a reading, half of the kernel's tick: if the reading thread had no CPU meanwhile, times and sums are not of
/// one moment.
const MAX_READING_NS: u64 = 5_000_000;

#[derive(Default)]
pub(super) struct CpuWatch {
    /// The CPUs that the process may use.
    mask: Option<Mask>,
    /// Known from the first check on.
    cgroups: Option<Cgroups>,
    quota: Option<Quota>,
    /// The last throttling account and its time.
    throttled: Option<(u64, Throttled)>,
    time: Option<CpuTime>,
    threads: Vec<ThreadMask>,
    last: Option<Instant>,
    /// Found, and not written yet.
    coming: Vec<(Code, Vec<u8>)>,
}

/// The mask of a living thread, as it was read last.
struct ThreadMask {
    /// Id in the trace.
    tid: i64,
    mask: Mask,
    /// When it was read so first.
    at: u64,
    /// Whether it has been stored, which happens after two equal readings: runtimes bind threads to one CPU
    /// after another while they inspect the machine.
    stored: bool,
}

impl CpuWatch {
    pub fn new(mask: Option<Mask>) -> CpuWatch {
        CpuWatch { mask, ..CpuWatch::default() }
    }

    /// Reads masks of the threads, given by their ids in the system and in the trace.
    pub fn look_at_threads(&mut self, threads: impl Iterator<Item = (i32, i64)>) {
        threads.for_each(|(os_tid, tid)| self.look_at_thread(os_tid, tid));
    }

    /// Reads limits and use of the CPUs, if that was long ago or it is the `last` time.
    pub fn look_at_process(&mut self, last: bool) {
        if last || self.last.is_none_or(|last| last.elapsed() >= PERIOD) {
            self.last = Some(Instant::now());
            self.read_process();
        }
    }

    /// The calling thread detaches.
    pub fn leaves(&mut self, tid: i64) {
        self.look_at_thread(0, tid);
        self.threads.retain(|thread| thread.tid != tid);
    }

    fn look_at_thread(&mut self, os_tid: i32, tid: i64) {
        let Some(mask) = Mask::thread_affinity(os_tid) else { return };
        let new = ThreadMask { tid, mask, at: clock::kernel_ns(), stored: false };
        match self.threads.iter_mut().find(|thread| thread.tid == tid) {
            Some(known) if known.mask != new.mask => *known = new,
            Some(known) if !known.stored => {
                known.stored = true;
                let at = known.at.to_le_bytes();
                self.found(system::BOUND, &[&at, &tid.to_le_bytes(), new.mask.bytes()]);
            }
            Some(_) => {}
            None => self.threads.push(new),
        }
    }

    fn read_process(&mut self) {
        if self.cgroups.is_none()
            && let Some(mask) = self.mask.clone()
        {
            self.found(system::CPUS, &[&online().to_le_bytes(), mask.bytes()]);
        }
        let cgroups = self.cgroups.get_or_insert_with(Cgroups::calling_process);
        let (quota, throttled) = (cgroups.quota(), cgroups.throttled());
        let before = clock::kernel_ns();
        let time = self.mask.as_ref().and_then(CpuTime::of);
        let now = clock::kernel_ns();
        let time = time.filter(|_| now.saturating_sub(before) <= MAX_READING_NS);
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

    /// Writes the findings into the stream, which is at `clock`.
    pub fn write(&mut self, stream: &mut SideFile, clock: u64) {
        for (code, data) in self.coming.drain(..) {
            stream.jumbo(clock, code, &[&data]);
        }
    }
}

/// The new value, if it is known and differs from `known`, which it replaces.
fn changed<T: Clone + PartialEq>(known: &mut Option<T>, new: Option<T>) -> Option<T> {
    let new = new.filter(|new| known.as_ref() != Some(new))?;
    Some(known.insert(new).clone())
}
