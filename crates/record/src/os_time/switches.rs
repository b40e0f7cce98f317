//! A thread's context switches, from the kernel's ring of them.
//!
//! A software event of `perf_event_open` that counts nothing, with a record at each switch: the time, whether
//! the thread goes or comes, and whether it was taken off although it could run (preempted) or not (blocked). The rule
//! `perf_event_paranoid` ≤ 2 lets every program see its own.
//!
//! A thread that was blocked is runnable from its wake-up until it gets a CPU, and no record says when it was woken.
//! The sum of these delays is what `run_delay` in `schedstat` grew beyond the preempted intervals; it is
//! apportioned to the blocked intervals of the same look, so that all runnable time of a thread is its `run_delay`.

use super::schedstat::{Schedstat, Sums};
use super::{Kind, OffCpu};
use crate::clock;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Room for 2047 switches between two looks.
const RING_BYTES: usize = 32 << 10;

/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;
const TYPE_SOFTWARE: u32 = 1;
const SAMPLE_TIME: u64 = 1 << 2;
/// `exclude_kernel`, `exclude_hv`, `sample_id_all`, `use_clockid`, `context_switch`.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 18 | 1 << 25 | 1 << 26;
const CLOEXEC: libc::c_ulong = 8;

const RECORD_LOST: u32 = 2;
const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_PREEMPTED: u16 = 1 << 14;

/// `struct perf_event_attr`, version 5.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    registers_in_interrupt: u64,
    aux_watermark: u32,
    stack_depth: u16,
    reserved: u16,
}

/// Blocked intervals shorter than this are summed up.
const BRIEF_NS: u64 = 20_000;
/// Blocked intervals of one look that are stored by themselves, the longest ones.
const MAX_SINGLE: usize = 256;
/// A thread that has been blocked for longer than this is reported while it still is.
const LONG_NS: u64 = 20_000_000;
/// Readings of sums in which the thread was not switched meanwhile.
const MAX_TRIES: usize = 3;

/// Byte offsets of `data_head` and `data_tail` in the first page of the mapping.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of one thread. The kernel keeps it until it is unmapped; no descriptor is held.
pub(super) struct Switches {
    base: *mut u8,
    page: usize,
    /// The thread is off the CPU.
    out: Option<Out>,
    schedstat: Schedstat,
    /// Sums at the last look that needed them.
    sums: Option<Sums>,
    /// Preempted time since then.
    preempted_ns: u64,
    /// No record was seen since the begin.
    is_first: bool,
    /// The run delay has a part of the first interval that is not in it.
    owes_first: bool,
    /// Run delay that was not apportioned yet; negative where a switch was seen before the sum had it.
    owed_ns: i64,
    /// Blocked intervals that are in sums only.
    pub coalesced: u64,
    /// Thousandths of the ring that the last look found in use.
    pub filled: u32,
}

#[derive(Clone, Copy)]
struct Out {
    since: u64,
    is_blocked: bool,
    is_reported: bool,
}

// SAFETY: the mapping belongs to the value alone.
unsafe impl Send for Switches {}

impl Switches {
    /// `None` where the kernel does not let the program see its switches.
    pub fn of(os_tid: i32) -> Option<Self> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: DUMMY,
            sample_period: 1,
            sample_type: SAMPLE_TIME,
            flags: FLAGS,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let page = crate::disk_file::page_bytes();
        if !RING_BYTES.is_multiple_of(page) {
            return None;
        }
        // SAFETY: the attributes are readable; a new shared mapping of a descriptor that is then closed.
        let base = unsafe {
            let fd = libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                os_tid,
                -1_i32,
                -1_i32,
                CLOEXEC,
            );
            if fd < 0 {
                return None;
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let base =
                libc::mmap(core::ptr::null_mut(), page + RING_BYTES, access, libc::MAP_SHARED, fd as i32, 0);
            libc::close(fd as i32);
            base
        };
        (base != libc::MAP_FAILED).then(|| {
            let mut switches = Switches {
                base: base.cast(),
                page,
                out: None,
                schedstat: Schedstat::of(os_tid),
                sums: None,
                preempted_ns: 0,
                is_first: false,
                owes_first: false,
                owed_ns: 0,
                coalesced: 0,
                filled: 0,
            };
            switches.begin();
            switches
        })
    }

    /// Reads where the thread stands now. Earlier switches are not looked at.
    fn begin(&mut self) {
        let (sums, head) = self.read_sums();
        self.sums = sums;
        self.drain(head, &mut Vec::new());
        self.preempted_ns = 0;
        // Which of both it is off the CPU for, if it is. The next record says whether it was: one that puts it back ends
        // this interval, one that takes it off replaces it.
        let since = clock::kernel_ns();
        if self.out.is_none()
            && let Some(is_blocked) = self.schedstat.is_blocked()
        {
            self.out = Some(Out { since, is_blocked, is_reported: false });
            self.is_first = true;
        }
    }

    /// The last sums that were read.
    pub fn sums(&self) -> Option<Sums> {
        self.sums
    }

    /// Appends the intervals off the CPU that have ended since the last call, in their order, and a blocked one that has
    /// not ended by `now` once. Returns how many records the kernel had no room for.
    pub fn read(&mut self, now: u64, off: &mut Vec<OffCpu>) -> u64 {
        let first = off.len();
        let head = self.head();
        if head != self.tail().load(Relaxed) {
            let (sums, head) = self.read_sums();
            let untold = self.drain(head, off);
            if untold > 0 {
                self.sum_up_lost(sums, off, first);
            } else {
                self.apportion(sums, off, first);
            }
            self.coalesce(off, first);
            if untold > 0 {
                return untold;
            }
        }
        if let Some(out) = self.out.as_mut().filter(|out| out.is_blocked && !out.is_reported)
            && out.since.saturating_add(LONG_NS) < now
        {
            out.is_reported = true;
            off.push(OffCpu { start: out.since, end: now, kind: Kind::StillBlocked });
            off[first..].sort_by_key(|off| off.end);
        }
        0
    }

    /// The same at the end of the recording: an interval that has not ended ends now.
    pub fn read_last(&mut self, off: &mut Vec<OffCpu>) -> u64 {
        let untold = self.read(0, off);
        // The sums of the whole recording, also of a thread that was never blocked.
        self.sums = self.schedstat.read().or(self.sums);
        let end = clock::kernel_ns();
        if let Some(out) = self.out.take().filter(|out| out.since < end && (out.is_blocked || !self.is_first))
        {
            let kind = if out.is_blocked { Kind::Blocked { delay_ns: 0 } } else { Kind::Preempted };
            off.push(OffCpu { start: out.since, end, kind });
        }
        untold
    }

    /// The sums and the ring's head at one moment, if the thread lets it happen.
    fn read_sums(&self) -> (Option<Sums>, u64) {
        let mut head = self.head();
        let mut sums = None;
        for _ in 0..MAX_TRIES {
            sums = self.schedstat.read();
            let after = self.head();
            if std::mem::replace(&mut head, after) == after {
                break;
            }
        }
        (sums, head)
    }

    fn head(&self) -> u64 {
        // SAFETY: in the first page of the mapping, aligned; the kernel writes it.
        unsafe { &*self.base.add(HEAD).cast::<AtomicU64>() }.load(Acquire)
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: in the first page of the mapping, aligned; only this side writes it.
        unsafe { &*self.base.add(TAIL).cast::<AtomicU64>() }
    }

    /// Appends the intervals that end before `to`, a position of the ring's head.
    fn drain(&mut self, to: u64, off: &mut Vec<OffCpu>) -> u64 {
        let mut at = self.tail().load(Relaxed);
        self.filled = (to.wrapping_sub(at).min(RING_BYTES as u64) * 1000 / RING_BYTES as u64) as u32;
        let mut untold = 0;
        while to.wrapping_sub(at) >= 8 && to.wrapping_sub(at) <= RING_BYTES as u64 {
            let header = self.word(at);
            let (kind, misc, size) = (header as u32, (header >> 32) as u16, header >> 48);
            match kind {
                RECORD_SWITCH if size >= 16 => self.switch(misc, self.word(at + 8), off),
                RECORD_LOST => {
                    untold += self.word(at + 16);
                    self.out = None;
                }
                _ => {}
            }
            // Sizes are multiples of 8; another one would be no ring of the kernel's.
            if size < 8 || size % 8 != 0 {
                at = to;
                break;
            }
            at += size;
        }
        self.tail().store(at.min(to), Release);
        untold
    }

    fn switch(&mut self, misc: u16, at: u64, off: &mut Vec<OffCpu>) {
        let is_first = std::mem::take(&mut self.is_first);
        if misc & MISC_SWITCH_OUT != 0 {
            let is_blocked = misc & MISC_PREEMPTED == 0;
            self.out = Some(Out { since: at, is_blocked, is_reported: false });
        } else if let Some(out) = self.out.take().filter(|out| out.since < at) {
            let kind = if out.is_blocked { Kind::Blocked { delay_ns: 0 } } else { Kind::Preempted };
            if !out.is_blocked {
                self.preempted_ns += at - out.since;
                // The sum has a wait that began before this look as a whole.
                self.owes_first |= is_first;
            }
            off.push(OffCpu { start: out.since, end: at, kind });
        }
    }

    /// Gives the blocked intervals of a look their shares of what the run delay grew beyond preempted intervals: equal
    /// ones, but none more than its interval.
    fn apportion(&mut self, sums: Option<Sums>, off: &mut [OffCpu], first: usize) {
        let (Some(before), Some(sums)) = (self.sums, sums) else {
            (self.sums, self.preempted_ns, self.owed_ns) = (sums, 0, 0);
            return;
        };
        let grown = sums.run_delay.saturating_sub(before.run_delay);
        self.owed_ns = self.owed_ns.saturating_add_unsigned(grown).saturating_sub_unsigned(self.preempted_ns);
        (self.sums, self.preempted_ns) = (Some(sums), 0);
        if std::mem::take(&mut self.owes_first)
            && let Some(first) = off.get_mut(first).filter(|off| matches!(off.kind, Kind::Preempted))
            && let Ok(before) = u64::try_from(self.owed_ns)
        {
            // With blocked intervals in the same look it can be a part of their delays, which is small beside a wait.
            first.start = first.start.saturating_sub(before);
            self.owed_ns = 0;
        }
        let is_blocked = |off: &&mut OffCpu| matches!(off.kind, Kind::Blocked { .. });
        let mut blocked: Vec<&mut OffCpu> = off[first..].iter_mut().filter(is_blocked).collect();
        let Some(mut left) = u64::try_from(self.owed_ns).ok().filter(|left| *left > 0) else { return };
        if blocked.is_empty() {
            return;
        }
        blocked.sort_unstable_by_key(|off| off.end - off.start);
        let mut open = blocked.len() as u64;
        for off in blocked {
            let share = (left / open).min(off.end - off.start);
            off.kind = Kind::Blocked { delay_ns: share };
            left -= share;
            open -= 1;
        }
        self.owed_ns = left as i64;
    }

    /// Appends, for a look that has lost records, sums in their place.
    fn sum_up_lost(&mut self, sums: Option<Sums>, off: &mut Vec<OffCpu>, first: usize) {
        let known: u64 = off[first..].iter().map(|off| off.end - off.start).sum();
        let preempted = std::mem::take(&mut self.preempted_ns);
        (self.owed_ns, self.owes_first) = (0, false);
        let before = std::mem::replace(&mut self.sums, sums);
        if let (Some(before), Some(sums)) = (before, sums) {
            off.extend(beyond_known(before, sums, preempted, known.saturating_sub(preempted)));
        }
    }

    /// Sums up the brief blocked intervals of a look, and of very many the shorter ones.
    fn coalesce(&mut self, off: &mut Vec<OffCpu>, first: usize) {
        let blocked_ns = |off: &OffCpu| match off.kind {
            Kind::Blocked { .. } => Some(off.end - off.start),
            _ => None,
        };
        let mut lengths: Vec<u64> = off[first..].iter().filter_map(blocked_ns).collect();
        let least = if lengths.len() > MAX_SINGLE {
            let (_, at, _) = lengths.select_nth_unstable_by(MAX_SINGLE, |a, b| b.cmp(a));
            BRIEF_NS.max(*at + 1)
        } else {
            BRIEF_NS
        };
        let (mut start, mut end, mut blocked, mut delays, mut intervals) = (u64::MAX, 0, 0, 0, 0);
        let mut row = 0;
        off.retain(|off| {
            row += 1;
            match off.kind {
                Kind::Blocked { delay_ns } if row > first && off.end - off.start < least => {
                    (start, end) = (start.min(off.start), off.end);
                    blocked += off.end - off.start - delay_ns;
                    delays += delay_ns;
                    intervals += 1;
                    false
                }
                _ => true,
            }
        });
        self.coalesced += intervals;
        if delays > 0 {
            off.push(OffCpu { start, end, kind: Kind::RunDelay { ns: delays } });
        }
        if blocked > 0 {
            off.push(OffCpu { start, end, kind: Kind::BlockedSum { ns: blocked } });
        }
        off[first..].sort_by_key(|off| off.end);
    }

    /// The word at a position of the stream of records, all of which are multiples of 8 long.
    fn word(&self, at: u64) -> u64 {
        let offset = (at % RING_BYTES as u64) as usize & !7;
        // SAFETY: within the ring, aligned; the kernel has written it before the head.
        unsafe { self.base.add(self.page + offset).cast::<u64>().read_volatile() }
    }
}

/// What the kernel's sums have grown by from `before` to `after`, beyond known intervals of `preempted` and `blocked`
/// nanoseconds: sums over the whole period.
fn beyond_known(before: Sums, after: Sums, preempted: u64, blocked: u64) -> impl Iterator<Item = OffCpu> {
    let (start, end) = (before.at, after.at.max(before.at));
    let run_delay = after.run_delay.saturating_sub(before.run_delay);
    let on_cpu = after.on_cpu.saturating_sub(before.on_cpu);
    let all_blocked = (end - start).saturating_sub(run_delay.saturating_add(on_cpu));
    let delay = Kind::RunDelay { ns: run_delay.saturating_sub(preempted) };
    let blocked = Kind::BlockedSum { ns: all_blocked.saturating_sub(blocked) };
    let is_some = |kind: &Kind| !matches!(kind, Kind::RunDelay { ns: 0 } | Kind::BlockedSum { ns: 0 });
    [delay, blocked].into_iter().filter(is_some).map(move |kind| OffCpu { start, end, kind })
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.page + RING_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lost_records_would_have_had_is_the_growth_of_the_sums() {
        let before = Sums { at: 1_000, on_cpu: 100, run_delay: 50 };
        let after = Sums { at: 11_000, on_cpu: 3_100, run_delay: 5_050 };
        let sums = |preempted, blocked| -> Vec<(u64, u64, &str, u64)> {
            let of = |off: OffCpu| match off.kind {
                Kind::RunDelay { ns } => (off.start, off.end, "delay", ns),
                Kind::BlockedSum { ns } => (off.start, off.end, "blocked", ns),
                _ => unreachable!("only sums are made"),
            };
            beyond_known(before, after, preempted, blocked).map(of).collect()
        };
        assert_eq!(sums(1_500, 400), [(1_000, 11_000, "delay", 3_500), (1_000, 11_000, "blocked", 1_600)]);
        // Known intervals can have more than the sums, which are read at another moment.
        assert_eq!(sums(5_001, 2_000), []);
    }

    #[test]
    fn a_thread_that_shares_its_cpu_sees_that_it_is_taken_away() {
        // SAFETY: plain memory of the right type.
        let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above; the CPU is one that this thread may use.
        unsafe { libc::CPU_SET(libc::sched_getcpu() as usize, &mut one) };
        // SAFETY: the set is readable and as long as told.
        let pin = move || unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) };
        let busy = |ms| {
            let begin = std::time::Instant::now();
            while begin.elapsed() < std::time::Duration::from_millis(ms) {
                std::hint::spin_loop();
            }
        };
        let watched = std::thread::spawn(move || {
            let mut switches = Switches::of(crate::thread::os_tid())?;
            pin();
            let rival = std::thread::spawn(move || {
                pin();
                busy(60);
            });
            let start = crate::clock::kernel_ns();
            busy(80);
            let end = crate::clock::kernel_ns();
            rival.join().ok()?;
            let mut off = Vec::new();
            let untold = switches.read(0, &mut off);
            Some((off, untold, start, end))
        });
        let Some((off, untold, start, end)) = watched.join().unwrap() else {
            println!("skipped: no perf_event_open here; /proc/sys/kernel/perf_event_paranoid = 2 would do");
            return;
        };
        assert_eq!(untold, 0);
        assert!(off.iter().all(|off| off.start < off.end));
        let preempted = off.iter().filter(|off| matches!(off.kind, Kind::Preempted));
        let inside = preempted.filter(|off| off.start >= start && off.end <= end);
        let lost: u64 = inside.map(|off| off.end - off.start).sum();
        assert!(lost > 10_000_000 && lost < end - start, "{lost} of {} ns", end - start);
    }
}
