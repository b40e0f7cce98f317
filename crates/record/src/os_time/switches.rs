//! A thread's context switches, from the kernel's ring of them.
//!
//! A software event of `perf_event_open` that counts nothing, with a record at each switch: the time, its
//! direction, and whether the thread was taken off although it could run (preempted) or not (blocked). With
//! `perf_event_paranoid` ≤ 2 every program may see its own.
//!
//! A thread that was blocked is runnable from its wake-up until it gets a CPU, and no record has the wake-up.
//! The sum of these delays is the growth of `run_delay` in `schedstat` beyond the preempted intervals; it is
//! apportioned to the blocked intervals of the same reading, so that all runnable time of a thread is its
//! `run_delay`.
//!
//! Two stretches of a thread's time have no records: from its attach until its ring is open, and from a full
//! ring until the next reading. For these the sums determine runnable and blocked time: their growth beyond
//! the known intervals. A stretch ends at the next record, or at a reading that does not find the thread
//! waiting for a CPU, as that wait enters the sums when it is over.

use super::off_cpu::{Kind, OffCpu};
use super::schedstat::{MIN_BLOCKED_NS, Schedstat, Standing, Sums};
use crate::clock;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Room for 2047 switches between two readings.
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
/// Blocked intervals of one reading that are stored individually, the longest ones.
const MAX_SINGLE: usize = 256;
/// A thread that has been blocked for longer than this is reported while it still is.
const LONG_NS: u64 = 20_000_000;
/// Readings of sums in which the thread was not switched meanwhile.
const MAX_TRIES: usize = 3;
/// A ring with less room has lost records, or is about to: one of a switch, and one of a loss before it.
const MIN_ROOM: u64 = 64;

/// Byte offsets of `data_head` and `data_tail` in the first page of the mapping.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of one thread. The kernel keeps it until it is unmapped; no descriptor is held.
pub(super) struct Switches {
    base: *mut u8,
    page: usize,
    schedstat: Schedstat,
    /// The thread is off the CPU.
    out: Option<Out>,
    /// Start of a stretch without records that is not over.
    unseen_since: Option<u64>,
    /// Records before this time belong to a stretch that the sums have covered.
    known_from: u64,
    /// Time of the newest record.
    last_record: u64,
    /// Sums when they were balanced with the intervals last.
    sums: Option<Sums>,
    since_balance: SinceBalance,
    /// Run delay that was not apportioned yet; negative if a switch was seen before the sum contained it.
    owed_ns: i64,
    /// Blocked intervals that are in sums only.
    pub coalesced: u64,
    /// Thousandths of the ring in use at the last reading.
    pub filled: u32,
}

/// Intervals that ended since the last balance of the sums, nanoseconds.
#[derive(Clone, Copy, Default)]
struct SinceBalance {
    preempted_ns: u64,
    /// Preempted and blocked time, without the part before the balance.
    off_ns: u64,
    /// First start and last end of stretches without records, and their time.
    unseen: Option<(u64, u64)>,
    unseen_ns: u64,
}

impl SinceBalance {
    fn add_unseen(&mut self, start: u64, end: u64) {
        if start < end {
            self.unseen = Some((self.unseen.map_or(start, |unseen| unseen.0), end));
            self.unseen_ns += end - start;
        }
    }

    /// Splits the stretches without records of the time `all` into runnable and blocked time. The thread was
    /// on a CPU for `on_cpu` in all, has been off it for the last `off_now`, and run delay of `owed` belongs
    /// to no known interval.
    fn split_unseen(
        &self,
        all: std::ops::Range<u64>,
        on_cpu: u64,
        off_now: u64,
        owed: u64,
        waits: bool,
    ) -> (u64, u64) {
        let seen = all.end.saturating_sub(all.start).saturating_sub(self.unseen_ns);
        let on_seen = seen.saturating_sub(self.off_ns).saturating_sub(off_now);
        let rest = self.unseen_ns.saturating_sub(on_cpu.saturating_sub(on_seen));
        let delay = if waits { rest } else { owed.min(rest) };
        (delay, rest - delay)
    }
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
    /// Opens the ring of a thread with these sums at its attach (`attached`). `None` if the kernel does not
    /// let the program see its switches.
    pub fn of(os_tid: i32, attached: Option<Sums>) -> Option<Self> {
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
        (base != libc::MAP_FAILED).then(|| Switches {
            base: base.cast(),
            page,
            schedstat: Schedstat::of(os_tid),
            out: None,
            unseen_since: Some(attached.map_or_else(clock::kernel_ns, |sums| sums.at)),
            known_from: 0,
            last_record: 0,
            sums: attached,
            since_balance: SinceBalance::default(),
            owed_ns: 0,
            coalesced: 0,
            filled: 0,
        })
    }

    /// The last sums that were read.
    pub fn sums(&self) -> Option<Sums> {
        self.sums
    }

    /// Appends the intervals off the CPU that have ended since the last call, in their order, and once a
    /// blocked one that has not ended by `now`. Returns the number of records dropped by the kernel.
    pub fn read(&mut self, now: u64, off: &mut Vec<OffCpu>) -> u64 {
        let first = off.len();
        let mut missing = 0;
        if self.head() != self.tail().load(Relaxed) || self.unseen_since.is_some() {
            let (sums, head) = self.read_sums();
            let room = (RING_BYTES as u64).saturating_sub(head.wrapping_sub(self.tail().load(Relaxed)));
            missing = self.drain(head, off);
            if room < MIN_ROOM {
                self.lose();
            }
            match self.unseen_since {
                Some(since) => self.end_unseen(since, false, off, first),
                None => self.balance(sums, false, off, first),
            }
            self.coalesced += coalesce(off, first);
        }
        if let Some(out) = self.out.as_mut().filter(|out| out.is_blocked && !out.is_reported)
            && out.since.saturating_add(LONG_NS) < now
        {
            out.is_reported = true;
            off.push(OffCpu { start: out.since, end: now, kind: Kind::StillBlocked });
            off[first..].sort_by_key(|off| off.end);
        }
        missing
    }

    /// [`read`](Self::read) at the end of the recording: an open interval ends now.
    pub fn read_last(&mut self, off: &mut Vec<OffCpu>) -> u64 {
        let missing = self.read(0, off);
        if let Some(since) = self.unseen_since {
            let first = off.len();
            self.end_unseen(since, true, off, first);
        }
        // The sums of the whole recording, also of a thread that was never blocked.
        self.sums = self.schedstat.read().or(self.sums);
        let end = clock::kernel_ns();
        if let Some(out) = self.out.take().filter(|out| out.since < end) {
            let kind = if out.is_blocked { Kind::Blocked { delay_ns: 0 } } else { Kind::Preempted };
            off.push(OffCpu { start: out.since, end, kind });
        }
        missing
    }

    /// Begins a stretch without records at the newest one.
    fn lose(&mut self) {
        self.out = None;
        let since = self.last_record.max(self.known_from);
        self.unseen_since.get_or_insert(since);
    }

    /// Ends a stretch without records now, unless the thread waits for a CPU and this is not the `last`
    /// reading.
    fn end_unseen(&mut self, since: u64, last: bool, off: &mut Vec<OffCpu>, first: usize) {
        let sums = self.schedstat.read();
        let standing = sums.and_then(|sums| self.schedstat.standing(sums.on_cpu));
        let waits = standing == Some(Standing::Waits);
        if waits && !last {
            return;
        }
        self.unseen_since = None;
        if let Some(sums) = sums {
            self.known_from = sums.at;
            self.since_balance.add_unseen(since, sums.at);
            let blocked = Out { since: sums.at, is_blocked: true, is_reported: false };
            self.out = (standing == Some(Standing::Blocked)).then_some(blocked);
        }
        self.balance(sums, waits, off, first);
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
        let mut missing = 0;
        while to.wrapping_sub(at) >= 8 && to.wrapping_sub(at) <= RING_BYTES as u64 {
            let header = self.word(at);
            let (kind, misc, size) = (header as u32, (header >> 32) as u16, header >> 48);
            match kind {
                RECORD_SWITCH if size >= 16 => self.switch(misc, self.word(at + 8), off),
                RECORD_LOST => {
                    missing += self.word(at + 16);
                    // A full ring was seen, and the sums have covered it.
                    if self.last_record > self.known_from {
                        self.lose();
                    }
                }
                _ => {}
            }
            // The kernel's sizes are multiples of 8; another one is not a valid ring.
            if size < 8 || size % 8 != 0 {
                at = to;
                break;
            }
            at += size;
        }
        self.tail().store(at.min(to), Release);
        missing
    }

    fn switch(&mut self, misc: u16, at: u64, off: &mut Vec<OffCpu>) {
        self.last_record = at;
        if let Some(since) = self.unseen_since.take() {
            self.since_balance.add_unseen(since, at);
            self.known_from = at.max(since);
        }
        if misc & MISC_SWITCH_OUT != 0 {
            let (since, is_blocked) = (at.max(self.known_from), misc & MISC_PREEMPTED == 0);
            self.out = Some(Out { since, is_blocked, is_reported: false });
        } else if let Some(out) = self.out.take().filter(|out| out.since < at) {
            let kind = if out.is_blocked { Kind::Blocked { delay_ns: 0 } } else { Kind::Preempted };
            if !out.is_blocked {
                self.since_balance.preempted_ns += at - out.since;
            }
            let balanced = self.sums.map_or(0, |sums| sums.at);
            self.since_balance.off_ns += at.saturating_sub(out.since.max(balanced));
            off.push(OffCpu { start: out.since, end: at, kind });
        }
    }

    /// Balances the sums with the intervals since the last time: the growth of run delay beyond preempted
    /// intervals goes to stretches without records as far as the thread was not on a CPU there, and the rest
    /// to the blocked intervals of this reading: equal shares, but none more than its interval. The rest of
    /// these stretches was blocked, or runnable if the thread still `waits`.
    fn balance(&mut self, sums: Option<Sums>, waits: bool, off: &mut Vec<OffCpu>, first: usize) {
        let known = std::mem::take(&mut self.since_balance);
        let (Some(before), Some(sums)) = (self.sums, sums) else {
            (self.sums, self.owed_ns) = (sums, 0);
            return;
        };
        self.sums = Some(sums);
        let grown = sums.run_delay.saturating_sub(before.run_delay);
        self.owed_ns =
            self.owed_ns.saturating_add_unsigned(grown).saturating_sub_unsigned(known.preempted_ns);
        if let Some((start, end)) = known.unseen {
            let off_now = self.out.map_or(0, |out| sums.at.saturating_sub(out.since.max(before.at)));
            let on_cpu = sums.on_cpu.saturating_sub(before.on_cpu);
            let owed = u64::try_from(self.owed_ns).unwrap_or(0);
            let (delay, blocked) = known.split_unseen(before.at..sums.at, on_cpu, off_now, owed, waits);
            self.owed_ns = self.owed_ns.saturating_sub_unsigned(delay.min(owed));
            if delay > 0 {
                off.push(OffCpu { start, end, kind: Kind::RunDelay { ns: delay } });
            }
            if blocked >= MIN_BLOCKED_NS {
                off.push(OffCpu { start, end, kind: Kind::BlockedSum { ns: blocked } });
            }
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

    /// The word at a position of the stream of records, all of which are multiples of 8 long.
    fn word(&self, at: u64) -> u64 {
        let offset = (at % RING_BYTES as u64) as usize & !7;
        // SAFETY: within the ring, aligned; the kernel has written it before the head.
        unsafe { self.base.add(self.page + offset).cast::<u64>().read_volatile() }
    }
}

/// Sums up the brief blocked intervals from `first` on, and of very many the shorter ones; returns their number.
fn coalesce(off: &mut Vec<OffCpu>, first: usize) -> u64 {
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
    if delays > 0 {
        off.push(OffCpu { start, end, kind: Kind::RunDelay { ns: delays } });
    }
    if blocked > 0 {
        off.push(OffCpu { start, end, kind: Kind::BlockedSum { ns: blocked } });
    }
    off[first..].sort_by_key(|off| off.end);
    intervals
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and without other references.
        unsafe { libc::munmap(self.base.cast(), self.page + RING_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    #[test]
    fn sums_reveal_stretches_without_records() {
        let mut known = SinceBalance { preempted_ns: 1_500, off_ns: 2_000, ..SinceBalance::default() };
        known.add_unseen(0, 3_000);
        known.add_unseen(5_000, 5_000);
        known.add_unseen(6_000, 8_000);
        assert_eq!((known.unseen, known.unseen_ns), (Some((0, 8_000)), 5_000));
        // In 5 000 ns with records it was on a CPU for 2 500, so for 500 in those without.
        assert_eq!(known.split_unseen(0..10_000, 3_000, 500, 4_000, false), (4_000, 500));
        assert_eq!(known.split_unseen(0..10_000, 3_000, 500, 400, true), (4_500, 0));
        // Sums and records are of different moments.
        assert_eq!(known.split_unseen(0..10_000, 9_000, 500, 400, false), (0, 0));
        assert_eq!(known.split_unseen(0..10_000, 0, 9_000, 6_000, false), (5_000, 0));
    }

    #[test]
    fn brief_waits_are_summed_and_counted() {
        let blocked = |start, end, delay_ns| OffCpu { start, end, kind: Kind::Blocked { delay_ns } };
        // One of an earlier reading, which stays.
        let mut off = vec![blocked(0, 5, 0)];
        off.extend((0..100).map(|n| blocked(10 + n * 10, 14 + n * 10, 1)));
        off.push(OffCpu { start: 1_100, end: 1_105, kind: Kind::Preempted });
        off.push(blocked(2_000, 2_000 + BRIEF_NS, 7));
        assert_eq!(coalesce(&mut off, 1), 100);
        let rows: Vec<_> = off.iter().map(|off| (off.start, off.end)).collect();
        assert_eq!(rows, [(0, 5), (10, 1_004), (10, 1_004), (1_100, 1_105), (2_000, 2_000 + BRIEF_NS)]);
        assert!(matches!(off[1].kind, Kind::RunDelay { ns: 100 }));
        assert!(matches!(off[2].kind, Kind::BlockedSum { ns: 300 }));
        // Among many long ones the longest stay.
        let mut off: Vec<_> =
            (0..1_000).map(|n| blocked(n * 1_000_000, n * 1_000_000 + BRIEF_NS + n, 0)).collect();
        assert_eq!(coalesce(&mut off, 0), 1_000 - MAX_SINGLE as u64);
        assert_eq!(off.len(), MAX_SINGLE + 1);
        assert!(off.iter().all(|off| off.end - off.start >= BRIEF_NS + 744));
    }

    #[test]
    fn a_thread_that_shares_its_cpu_sees_that_it_is_taken_away() {
        // SAFETY: plain memory of the right type.
        let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above; the CPU is one that this thread may use.
        unsafe { libc::CPU_SET(libc::sched_getcpu() as usize, &mut one) };
        // SAFETY: the set is readable and has the given length.
        let pin = move || unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) };
        let own_cpu_ns = || {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `time` is valid for writing.
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let watched = std::thread::spawn(move || {
            let mut switches = Switches::of(crate::os_thread::os_tid(), None)?;
            pin();
            // The rival publishes its own time on the CPU, until it is no longer wanted.
            let (used, is_wanted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(true)));
            let rival_state = (used.clone(), is_wanted.clone());
            let rival = std::thread::spawn(move || {
                pin();
                while rival_state.1.load(Relaxed) {
                    rival_state.0.store(own_cpu_ns(), Relaxed);
                }
            });
            while used.load(Relaxed) == 0 {
                std::hint::spin_loop();
            }
            let (start, used_before) = (crate::clock::kernel_ns(), used.load(Relaxed));
            while used.load(Relaxed) < used_before + 20_000_000 {
                std::hint::spin_loop();
            }
            let (rivals, end) = (used.load(Relaxed) - used_before, crate::clock::kernel_ns());
            is_wanted.store(false, Relaxed);
            rival.join().ok()?;
            let mut off = Vec::new();
            let missing = switches.read(0, &mut off);
            Some((off, missing, start, end, rivals))
        });
        let Some((off, missing, start, end, rivals)) = watched.join().unwrap() else {
            println!("skipped: no perf_event_open here; /proc/sys/kernel/perf_event_paranoid = 2 would do");
            return;
        };
        assert_eq!(missing, 0);
        assert!(off.iter().all(|off| off.start < off.end));
        let preempted = off.iter().filter(|off| matches!(off.kind, Kind::Preempted));
        let inside = preempted.filter(|off| off.start >= start && off.end <= end);
        let lost: u64 = inside.map(|off| off.end - off.start).sum();
        // The kernel stamps a switch and the thread's time at different moments.
        assert!(
            lost > rivals / 2 && lost < end - start,
            "{lost} of {} ns, {rivals} the rival's",
            end - start
        );
    }
}
