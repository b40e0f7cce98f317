//! Samples of one thread, as the kernel takes them: registers, and on a CPU the top of the stack.

use core::sync::atomic::{AtomicU64, Ordering::*};
use std::io;

/// A sample.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// Registers of the program.
    pub registers: Registers,
    /// Bytes of the stack, from the stack pointer on.
    pub stack: Vec<u8>,
}

/// A frame pointer that is not known: no memory is there, so a path that needs it ends, and does not seem to have reached its root.
pub const UNKNOWN_FRAME: u64 = 1;

/// The registers that are needed to follow a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Program counter.
    pub address: u64,
    /// Stack pointer.
    pub stack: u64,
    /// Frame pointer.
    pub frame: u64,
    /// Return address, if a register has it.
    pub link: u64,
}

/// Bytes of the stack in a sample, and of a ring, from most to fewest: the kernel limits the rings' memory.
const SIZES: [(u32, usize); 3] = [(32 << 10, 512 << 10), (16 << 10, 128 << 10), (8 << 10, 32 << 10)];

/// When a thread leaves a CPU its registers are sampled alone, as its stack stays as it is while it is blocked. The newest are wanted,
/// those of some hundred times before them have room.
const SIZES_LEAVING: [(u32, usize); 1] = [(0, 16 << 10)];

/// `PERF_COUNT_SW_TASK_CLOCK`.
const TASK_CLOCK: u64 = 1;
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;
const TYPE_SOFTWARE: u32 = 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const USE_CLOCK: u64 = 1 << 25;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;

/// Registers by the kernel's numbers, which is their order in a sample.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

fn registers(values: &[u64]) -> Option<Registers> {
    #[cfg(target_arch = "x86_64")]
    let [frame, stack, address] = *values.first_chunk()?;
    #[cfg(target_arch = "x86_64")]
    let link = 0;
    #[cfg(target_arch = "aarch64")]
    let [frame, link, stack, address] = *values.first_chunk()?;
    Some(Registers { address, stack, frame, link })
}

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

/// The ring of one thread, which the kernel fills until it is dropped.
pub struct SampleRing {
    base: *mut u8,
    page: usize,
    bytes: usize,
    has_stacks: bool,
}

// SAFETY: the mapping belongs to the value alone.
unsafe impl Send for SampleRing {}

impl SampleRing {
    /// Begins to sample a thread, once every `period_ns` of its CPU time.
    ///
    /// # Errors
    /// If the thread is gone, or the kernel refuses (`perf_event_paranoid`, a limit of memory or of open files).
    pub fn open(tid: i32, period_ns: u64) -> io::Result<SampleRing> {
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        // Time in the kernel is sampled if that is allowed.
        for exclude in [0, EXCLUDE_KERNEL] {
            for size in SIZES {
                match SampleRing::open_one(tid, (TASK_CLOCK, period_ns), exclude, size) {
                    Ok(ring) => return Ok(ring),
                    Err(error) => refused = error,
                }
            }
        }
        Err(refused)
    }

    /// Begins to sample the registers of a thread whenever it leaves a CPU.
    ///
    /// # Errors
    /// As [`SampleRing::open`]; and without privileges, as the kernel switches threads itself.
    pub fn open_leaving(tid: i32) -> io::Result<SampleRing> {
        SampleRing::open_one(tid, (CONTEXT_SWITCHES, 1), 0, SIZES_LEAVING[0])
    }

    fn open_one(
        tid: i32,
        (event, period): (u64, u64),
        exclude: u64,
        (stack, bytes): (u32, usize),
    ) -> io::Result<SampleRing> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: event,
            sample_period: period,
            sample_type: SAMPLE_TIME | SAMPLE_REGISTERS | if stack > 0 { SAMPLE_STACK } else { 0 },
            flags: exclude | EXCLUDE_HYPERVISOR | USE_CLOCK,
            registers: REGISTERS,
            stack,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        // SAFETY: the attributes are readable; a new shared mapping of a descriptor that is then closed: the mapping keeps the event.
        let base = unsafe {
            let fd = libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                tid,
                -1_i32,
                -1_i32,
                CLOSE_ON_EXEC,
            );
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let base =
                libc::mmap(core::ptr::null_mut(), page + bytes, access, libc::MAP_SHARED, fd as i32, 0);
            let error = io::Error::last_os_error();
            libc::close(fd as i32);
            if base == libc::MAP_FAILED {
                return Err(error);
            }
            base
        };
        Ok(SampleRing { base: base.cast(), page, bytes, has_stacks: stack > 0 })
    }

    /// Takes the samples since the last call, in the order of time. Returns the number of those that found the ring full.
    pub fn take(&mut self, mut each: impl FnMut(Sample)) -> u64 {
        let (head, mut at) = (self.counter(HEAD).load(Acquire), self.counter(TAIL).load(Relaxed));
        let mut lost = 0;
        while head.wrapping_sub(at) >= 8 && head.wrapping_sub(at) <= self.bytes as u64 {
            let start = self.copy(at, 8);
            let kind = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
            let size = u64::from(u16::from_le_bytes([start[6], start[7]]));
            if size < 8 || size > head.wrapping_sub(at) {
                break;
            }
            let body = self.copy(at.wrapping_add(8), size as usize - 8);
            match kind {
                RECORD_SAMPLE => sample(&body, self.has_stacks).into_iter().for_each(&mut each),
                RECORD_LOST => lost += word(&body, 8).unwrap_or(0),
                _ => {}
            }
            at = at.wrapping_add(size);
        }
        self.counter(TAIL).store(head, Release);
        lost
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the first page of the mapping, aligned, and accessed by atomic operations alone on both sides.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Bytes of the ring, from a position that counts on behind its end.
    fn copy(&self, position: u64, length: usize) -> Vec<u8> {
        let mut copied = vec![0; length];
        let first = (position % self.bytes as u64) as usize;
        let before_end = length.min(self.bytes - first);
        // SAFETY: both parts are inside the ring, and the kernel writes nothing between the counters that were read.
        unsafe {
            let data = self.base.add(self.page);
            core::ptr::copy_nonoverlapping(data.add(first), copied.as_mut_ptr(), before_end);
            core::ptr::copy_nonoverlapping(data, copied.as_mut_ptr().add(before_end), length - before_end);
        }
        copied
    }
}

impl Drop for SampleRing {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value, which nothing refers to any more.
        unsafe { libc::munmap(self.base.cast(), self.page + self.bytes) };
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Decodes a sample: time, registers behind a word with their kind (0: none), and if it has one the stack, behind its length and before its
/// used length.
fn sample(body: &[u8], has_stack: bool) -> Option<Sample> {
    let at = word(body, 0)?;
    if word(body, 8)? == 0 {
        return None;
    }
    let count = REGISTERS.count_ones() as usize;
    let values: Vec<u64> = (0..count).map_while(|number| word(body, 16 + 8 * number)).collect();
    if !has_stack {
        return Some(Sample { at, registers: registers(&values)?, stack: Vec::new() });
    }
    let stack = 16 + 8 * count;
    let length = usize::try_from(word(body, stack)?).ok()?;
    let bytes = body.get(stack + 8..)?.get(..length)?;
    let used = word(body, stack + 8 + length).map_or(0, |used| used.min(length as u64) as usize);
    Some(Sample { at, registers: registers(&values)?, stack: bytes[..used].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_decoded_and_malformed_ones_left_out() {
        let count = REGISTERS.count_ones() as usize;
        let mut words = vec![77_u64, 2];
        words.extend((1..=count as u64).map(|number| number * 100));
        words.extend([16, 0x1111, 0x2222, 8]);
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = sample(&body, true).unwrap();
        let same_without = sample(&body, false).unwrap();
        assert_eq!((same_without.registers, same_without.stack.len()), (found.registers, 0));
        assert_eq!((found.at, found.stack.len()), (77, 8));
        assert_eq!(found.stack, 0x1111_u64.to_le_bytes());
        assert_eq!(found.registers.address, count as u64 * 100);
        assert!((0..body.len() - 8).all(|length| sample(&body[..length], true).is_none()), "cut");
        let mut kernel = body.clone();
        kernel[8] = 0;
        assert_eq!(sample(&kernel, true), None, "a thread of the kernel");
    }

    #[test]
    fn a_thread_that_computes_is_sampled() {
        // SAFETY: no preconditions.
        let own = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        let mut ring = match SampleRing::open(own, 100_000) {
            Ok(ring) => ring,
            Err(why) => return println!("skipped: no perf_event_open here ({why})"),
        };
        let mut found = Vec::new();
        while found.len() < 3 {
            ring.take(|sample| found.push(sample));
        }
        assert!(found.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert!(found.iter().all(|sample| sample.registers.address != 0 && !sample.stack.is_empty()));
        assert!(SampleRing::open(i32::MAX, 1).is_err());
    }
}
