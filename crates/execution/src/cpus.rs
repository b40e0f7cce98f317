//! The CPUs that processes and threads may use, and how much of them they could have.

use std::fmt;

/// A set of CPUs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuSet(Vec<u64>);

/// Higher numbers are not of CPUs.
const MAX_CPUS: usize = 1 << 19;

impl CpuSet {
    /// The set of these CPUs; numbers that no CPU has are left out.
    pub fn of(cpus: impl IntoIterator<Item = usize>) -> CpuSet {
        let mut words = Vec::new();
        for cpu in cpus.into_iter().filter(|cpu| *cpu < MAX_CPUS) {
            if cpu / 64 >= words.len() {
                words.resize(cpu / 64 + 1, 0);
            }
            words[cpu / 64] |= 1 << (cpu % 64);
        }
        CpuSet(words)
    }

    /// The set of a mask: bit *n* of byte *b* is CPU 8 *b* + *n*.
    pub fn from_mask(mask: &[u8]) -> CpuSet {
        let mask = &mask[..mask.len().min(MAX_CPUS / 8)];
        let used = mask.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        CpuSet(mask[..used].chunks(8).map(word).collect())
    }

    /// The set of a list as [`Display`](fmt::Display) writes it; `None` of any other text.
    pub fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::default();
        for range in list.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= MAX_CPUS {
                return None;
            }
            set.add(&CpuSet::of(first..=last));
        }
        Some(set)
    }

    /// Adds the CPUs of `other`.
    pub fn add(&mut self, other: &CpuSet) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    /// Number of CPUs.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether a CPU is in both.
    pub fn overlaps(&self, other: &CpuSet) -> bool {
        self.0.iter().zip(&other.0).any(|(word, other)| word & other != 0)
    }

    /// Whether each of its CPUs is in the other set, too.
    pub fn is_within(&self, other: &CpuSet) -> bool {
        let other_word = |at: usize| other.0.get(at).copied().unwrap_or(0);
        self.0.iter().enumerate().all(|(at, word)| word & !other_word(at) == 0)
    }

    /// The numbers of the CPUs, rising.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let bits = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

impl fmt::Display for CpuSet {
    /// Formats like the kernel's lists of CPUs: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

/// A limit of CPU time, of a control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Thousandths of a CPU.
    pub millicpus: u64,
    /// The group, as `/proc/PID/cgroup` names it. Processes of one host in the same group share the limit.
    pub cgroup: String,
}

/// Time in which control groups of a process had reached their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// Between this reading, in nanoseconds of the trace's clock …
    pub start: u64,
    /// … and this one.
    pub end: u64,
    /// Enforcement periods in which a limit was reached.
    pub periods: u64,
    /// Nanoseconds without a CPU, summed over the CPUs on which a group had something to run; may exceed the time between the readings.
    pub ns: u64,
}

/// Use of a process's allowed CPUs between two readings. The kernel counts `busy_ns` and `stolen_ns` in ticks, mostly of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoad {
    /// First reading, nanoseconds of the trace's clock.
    pub start: u64,
    /// Second reading.
    pub end: u64,
    /// Nanoseconds, summed over the CPUs, in which they ran something: the process, others, the kernel.
    pub busy_ns: u64,
    /// Nanoseconds, summed over the CPUs, in which the hypervisor ran other machines on them.
    pub stolen_ns: u64,
    /// CPU time of the process in nanoseconds, of all its threads.
    pub own_ns: u64,
}

impl CpuLoad {
    /// Nanoseconds in which other processes and the kernel used the CPUs; child processes are others.
    pub fn others_ns(&self) -> u64 {
        self.busy_ns.saturating_sub(self.own_ns)
    }
}

/// The CPUs of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// CPUs that the process may use: by its mask at the start, or by that of any of its threads.
    pub allowed: CpuSet,
    /// CPUs that were online on the node; `None` if not known.
    pub online: Option<u32>,
    /// The lowest limit of its control groups; `None` if there is none, or it is not known.
    pub quota: Option<Quota>,
    /// Times at which the limit was reached, in order; empty if never, or not known.
    pub throttled: Vec<Throttled>,
    /// Times in which a signal had stopped the process (SIGSTOP: `cpulimit`, Ctrl-Z, a debugger), start and first
    /// nanosecond after it, in order; empty if never, or not known.
    pub stopped: Vec<(u64, u64)>,
    /// Use of the allowed CPUs, in time order, without gaps; empty if not known.
    pub loads: Vec<CpuLoad>,
}

impl CpuFacts {
    /// The process's maximum, in thousandths of a CPU: its allowed CPUs, or its quota if that is less.
    pub fn millicpus(&self) -> u64 {
        let allowed = 1000 * self.allowed.len() as u64;
        self.quota.as_ref().map_or(allowed, |quota| quota.millicpus.min(allowed))
    }

    /// Nanoseconds of throttling, as [`Throttled::ns`].
    pub fn throttled_ns(&self) -> u64 {
        self.throttled.iter().fold(0, |sum, part| sum.saturating_add(part.ns))
    }

    /// Nanoseconds in which the process was stopped.
    pub fn stopped_ns(&self) -> u64 {
        self.stopped.iter().fold(0, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)))
    }

    /// The total use over the time in which it is known; `None` without such a time. It is at most all of the time: sums that were
    /// read later than the clock have more.
    pub fn load(&self) -> Option<CpuLoad> {
        let (first, rest) = self.loads.split_first()?;
        let sum = rest.iter().fold(*first, |sum, load| CpuLoad {
            start: sum.start,
            end: load.end,
            busy_ns: sum.busy_ns.saturating_add(load.busy_ns),
            stolen_ns: sum.stolen_ns.saturating_add(load.stolen_ns),
            own_ns: sum.own_ns.saturating_add(load.own_ns),
        });
        let time_ns = sum.end.saturating_sub(sum.start).saturating_mul(self.allowed.len().max(1) as u64);
        Some(CpuLoad { busy_ns: sum.busy_ns.min(time_ns), ..sum })
    }
}

/// The host of a loom: its name up to the first dot.
pub fn host(loom: &str) -> &str {
    loom.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_lists_and_read_back() {
        for list in ["", "0", "0-3,8", "1,3,63-64,200", "127-129"] {
            assert_eq!(CpuSet::parse(list).unwrap().to_string(), list);
        }
        assert_eq!(CpuSet::from_mask(&[0b101, 0, 0, 0, 0, 0, 0, 0, 0b11, 0]), CpuSet::of([0, 2, 64, 65]));
        assert_eq!(CpuSet::of([5, 4, 5, usize::MAX]).len(), 2);
        assert!(CpuSet::from_mask(&[0; 9]).is_empty() && !CpuSet::of([64]).overlaps(&CpuSet::of([0, 63])));
        for odd in ["3-1", "a", "-", "0-99999999999", "999999999", "1-2-3"] {
            assert_eq!(CpuSet::parse(odd), None, "{odd}");
        }
        assert_eq!(CpuSet::from_mask(&vec![255; 1 << 20]).len(), MAX_CPUS);
    }

    #[test]
    fn limits_and_loads_are_summed_up() {
        let load = |start, own_ns| CpuLoad { start, end: start + 10, busy_ns: 15, stolen_ns: 1, own_ns };
        let mut facts = CpuFacts { allowed: CpuSet::of(0..4), ..CpuFacts::default() };
        assert_eq!((facts.millicpus(), facts.load(), facts.throttled_ns()), (4000, None, 0));
        facts.quota = Some(Quota { millicpus: 1500, cgroup: "/".into() });
        facts.loads = vec![load(0, 5), load(10, 7)];
        let all = facts.load().unwrap();
        assert_eq!((facts.millicpus(), all.start, all.end, all.others_ns()), (1500, 0, 20, 18));
        facts.loads[1].busy_ns = 1000;
        assert_eq!(facts.load().unwrap().busy_ns, 80);
    }
}
