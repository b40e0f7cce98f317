//! A thread's context switches, from the kernel's ring of them.
//!
//! A software event of `perf_event_open` that counts nothing, with a record at each switch: the time, whether
//! the thread goes or comes, and whether it was taken off although it could run. The rule
//! `perf_event_paranoid` ≤ 2 lets every program see its own.

use super::OffCpu;
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

/// Byte offsets of `data_head` and `data_tail` in the first page of the mapping.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The ring of one thread. The kernel keeps it until it is unmapped; no descriptor is held.
pub(super) struct Switches {
    base: *mut u8,
    page: usize,
    /// Since when the thread has been off although it could run.
    out: Option<u64>,
    /// Thousandths of the ring that the last look found in use.
    pub filled: u32,
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
        (base != libc::MAP_FAILED).then(|| Switches { base: base.cast(), page, out: None, filled: 0 })
    }

    /// Appends the times off the CPU that have ended since the last call, in their order. Returns how
    /// many records the kernel had no room for.
    pub fn drain(&mut self, off: &mut Vec<OffCpu>) -> u64 {
        // SAFETY: both words lie in the first page, aligned; the kernel writes one, we the other.
        let (head, tail) =
            unsafe { (&*self.base.add(HEAD).cast::<AtomicU64>(), &*self.base.add(TAIL).cast::<AtomicU64>()) };
        let (to, mut at) = (head.load(Acquire), tail.load(Relaxed));
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
        tail.store(at.min(to), Release);
        untold
    }

    fn switch(&mut self, misc: u16, at: u64, off: &mut Vec<OffCpu>) {
        if misc & MISC_SWITCH_OUT != 0 {
            self.out = (misc & MISC_PREEMPTED != 0).then_some(at);
        } else if let Some(start) = self.out.take().filter(|start| *start < at) {
            off.push(OffCpu { start, end: at, exact: true, ns: at - start });
        }
    }

    /// The word at a position of the stream of records, all of which are multiples of 8 long.
    fn word(&self, at: u64) -> u64 {
        let offset = (at % RING_BYTES as u64) as usize & !7;
        // SAFETY: within the ring, aligned; the kernel has written it before the head.
        unsafe { self.base.add(self.page + offset).cast::<u64>().read_volatile() }
    }
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
            let untold = switches.drain(&mut off);
            Some((off, untold, start, end))
        });
        let Some((off, untold, start, end)) = watched.join().unwrap() else {
            println!("skipped: no perf_event_open here; /proc/sys/kernel/perf_event_paranoid = 2 would do");
            return;
        };
        assert_eq!(untold, 0);
        assert!(off.iter().all(|off| off.start < off.end && off.exact));
        let inside = off.iter().filter(|off| off.start >= start && off.end <= end);
        let lost: u64 = inside.map(|off| off.end - off.start).sum();
        assert!(lost > 10_000_000 && lost < end - start, "{lost} of {} ns", end - start);
    }
}
