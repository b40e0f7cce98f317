//! How busy CPUs were, and how much of it was the process.

use super::Mask;
use crate::watched_process;
use std::fs;

/// Sums since boot of a set of CPUs, and of the process since its start. Between two readings, the growth of
/// the difference is the time of other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds in which the CPUs ran something, interrupts included. The kernel counts in ticks, mostly of 10 ms.
    pub busy_ns: u64,
    /// Nanoseconds in which the hypervisor ran something else on them.
    pub stolen_ns: u64,
    /// CPU time of the watched process, of all its threads, in nanoseconds.
    pub own_ns: u64,
}

impl CpuTime {
    /// Times of the CPUs in `mask`; `None` if the kernel has no counts for one of them.
    pub fn of(mask: &Mask) -> Option<CpuTime> {
        // SAFETY: no preconditions.
        let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|n| *n > 0)?;
        let (busy, stolen) = sums(&fs::read_to_string("/proc/stat").ok()?, mask)?;
        let ns = |count: u64| count.saturating_mul(1_000_000_000 / ticks);
        Some(CpuTime { busy_ns: ns(busy), stolen_ns: ns(stolen), own_ns: own_ns()? })
    }
}

fn own_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The kernel's number of the clock of another process (`CPUCLOCK_SCHED`).
    let clock = watched_process::other().map_or(libc::CLOCK_PROCESS_CPUTIME_ID, |pid| !pid << 3 | 2);
    // SAFETY: writes to the value.
    let read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    read.then(|| seconds * 1_000_000_000 + nanos)
}

/// Ticks in which the CPUs were busy, and in which they were stolen.
fn sums(stat: &str, mask: &Mask) -> Option<(u64, u64)> {
    let (mut found, mut busy, mut stolen) = (0, 0_u64, 0_u64);
    for line in stat.lines().take_while(|line| line.starts_with("cpu")) {
        let mut words = line["cpu".len()..].split(' ');
        // The first line, of all CPUs, has no number.
        let Some(cpu) = words.next().and_then(|cpu| cpu.parse::<usize>().ok()) else { continue };
        if !mask.has(cpu) {
            continue;
        }
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in the first two.
        let [user, nice, system, _, _, irq, softirq, ..] = ticks[..] else { return None };
        busy = [user, nice, system, irq, softirq].iter().fold(busy, |sum, ticks| sum.saturating_add(*ticks));
        stolen = stolen.saturating_add(ticks.get(7).copied().unwrap_or(0));
        found += 1;
    }
    (found > 0 && found == mask.cpus().count()).then_some((busy, stolen))
}

/// The number of CPUs that are online on the node; 0 if unknown.
pub fn online() -> u32 {
    // Not by `sysconf`, which some C libraries answer from the calling thread's mask.
    fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|list| count(&list)).unwrap_or(0)
}

/// Number of CPUs in a list such as `0-3,8`.
fn count(list: &str) -> Option<u32> {
    let mut sum = 0_u32;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum = sum.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_masks_cpus_count() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 1000 1000 4 5 6 7 0\ncpu1 10 0 0 0 0 0 0 0 0 0\n\
                    cpu3 1 1 1 1\nintr 5\ncpu0 7 7 7 7 7 7 7\n";
        let mask = |cpus: u8| Mask::from_cpus_of_byte(cpus);
        assert_eq!(sums(stat, &mask(0b001)), Some((15, 6)));
        assert_eq!(sums(stat, &mask(0b011)), Some((25, 6)));
        // CPU 2 is offline, CPU 3 has too few columns.
        assert_eq!(sums(stat, &mask(0b101)), None);
        assert_eq!(sums(stat, &mask(0b1000)), None);
        assert_eq!(sums("", &mask(1)), None);
    }

    #[test]
    fn online_cpus_are_counted_from_their_list() {
        assert_eq!(
            ["0-3,8\n", "0", "2-1", "", "0-4294967295"].map(count),
            [Some(5), Some(1), None, None, None]
        );
    }

    #[test]
    fn the_process_uses_part_of_its_cpus_time() {
        let Some(before) = CpuTime::of(&Mask::process_affinity().unwrap()) else {
            println!("skipped: no /proc/stat here");
            return;
        };
        let mut sum = 0_u64;
        while own_ns().unwrap() < before.own_ns + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let after = CpuTime::of(&Mask::process_affinity().unwrap()).unwrap();
        assert!(after.own_ns > before.own_ns && after.busy_ns >= before.busy_ns);
    }
}
