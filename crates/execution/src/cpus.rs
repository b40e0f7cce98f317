//! The CPUs that processes and threads may use, and how much of them they could have.

use crate::{Execution, ThreadIndex};
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
    pub fn of_mask(mask: &[u8]) -> CpuSet {
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

    /// How many CPUs.
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
    /// As the kernel writes lists of CPUs: `0-3,8`.
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

    /// The total use over the time in which it is known; `None` without such a time.
    pub fn load(&self) -> Option<CpuLoad> {
        let (first, rest) = self.loads.split_first()?;
        Some(rest.iter().fold(*first, |sum, load| CpuLoad {
            start: sum.start,
            end: load.end,
            busy_ns: sum.busy_ns.saturating_add(load.busy_ns),
            stolen_ns: sum.stolen_ns.saturating_add(load.stolen_ns),
            own_ns: sum.own_ns.saturating_add(load.own_ns),
        }))
    }
}

/// Workers that share CPUs, and no CPU with other workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    /// The host.
    pub host: String,
    /// The CPUs on which they may run.
    pub cpus: CpuSet,
    /// Their common maximum, in thousandths of a CPU: the CPUs, or a quota that is less.
    pub millicpus: u64,
    /// The limit that makes it less than the CPUs.
    pub quota: Option<Quota>,
    /// The workers.
    pub workers: Vec<ThreadIndex>,
    /// Most of them that lived at a time.
    pub workers_at_once: usize,
}

impl CpuGroup {
    /// Whether there are more workers at a time than CPUs for them.
    pub fn is_oversubscribed(&self) -> bool {
        1000 * self.workers_at_once as u64 > self.millicpus
    }
}

/// The host of a loom: its name up to the first dot.
pub fn host(loom: &str) -> &str {
    loom.split('.').next().unwrap_or_default()
}

impl Execution {
    /// The CPUs that a thread may use: by its own mask, else by its process's; `None` if neither is known.
    pub fn cpus_of(&self, thread: ThreadIndex) -> Option<&CpuSet> {
        let thread = self.threads.get(thread.index())?;
        let process = || self.processes.get(thread.process.index())?.cpus.as_ref().map(|cpus| &cpus.allowed);
        thread.cpus.as_ref().or_else(process)
    }

    /// The workers by the CPUs that they share, across processes of one host. Workers with unknown CPUs are in none.
    pub fn cpu_groups(&self) -> Vec<CpuGroup> {
        let mut groups: Vec<CpuGroup> = Vec::new();
        for (index, thread) in self.workers() {
            let process = &self.processes[thread.process.index()];
            let Some(cpus) = self.cpus_of(index).filter(|cpus| !cpus.is_empty()) else { continue };
            let facts = process.cpus.as_ref();
            // A quota that is no less than the CPUs joins nobody.
            let quota = facts.filter(|facts| facts.millicpus() < 1000 * facts.allowed.len() as u64);
            let quota = quota.and_then(|facts| facts.quota.clone());
            let mut group = CpuGroup {
                host: host(&process.loom).to_owned(),
                cpus: cpus.clone(),
                millicpus: 0,
                quota,
                workers: vec![index],
                workers_at_once: 0,
            };
            let (joined, others): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|other| joins(&group, other));
            groups = others;
            for other in joined {
                group.cpus.add(&other.cpus);
                group.workers.extend(other.workers);
                // Of two limits that hold for parts the lower one is nearer to what holds for both.
                let lower = |quota: &Quota| (quota.millicpus, quota.cgroup.clone());
                group.quota = group.quota.into_iter().chain(other.quota).min_by_key(lower);
            }
            groups.push(group);
        }
        for group in &mut groups {
            group.workers.sort_unstable();
            let all = 1000 * group.cpus.len() as u64;
            group.quota = group.quota.take().filter(|quota| quota.millicpus < all);
            group.millicpus = group.quota.as_ref().map_or(all, |quota| quota.millicpus);
            group.workers_at_once = self.most_at_once(&group.workers);
        }
        groups.sort_by_key(|group| group.workers.first().copied());
        groups
    }

    /// How many of the threads lived at a time, at most.
    fn most_at_once(&self, threads: &[ThreadIndex]) -> usize {
        let mut ends: Vec<(u64, i64)> = Vec::new();
        for thread in threads {
            let track = &self.threads[thread.index()].track;
            ends.extend([(track.start(), 1), (track.end(), -1)]);
        }
        // At one time, those that end go first.
        ends.sort_unstable();
        let (mut now, mut most) = (0_i64, 0_i64);
        for (_, step) in ends {
            now += step;
            most = most.max(now);
        }
        most as usize
    }
}

fn joins(one: &CpuGroup, other: &CpuGroup) -> bool {
    let same_limit = match (&one.quota, &other.quota) {
        (Some(one), Some(other)) => one.cgroup == other.cgroup,
        _ => false,
    };
    one.host == other.host && (same_limit || one.cpus.overlaps(&other.cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, ExecutionBuilder, Observer, ProcessIndex, Section, State};

    #[test]
    fn sets_are_written_as_lists_and_read_back() {
        for list in ["", "0", "0-3,8", "1,3,63-64,200", "127-129"] {
            assert_eq!(CpuSet::parse(list).unwrap().to_string(), list);
        }
        assert_eq!(CpuSet::of_mask(&[0b101, 0, 0, 0, 0, 0, 0, 0, 0b11, 0]), CpuSet::of([0, 2, 64, 65]));
        assert_eq!(CpuSet::of([5, 4, 5, usize::MAX]).len(), 2);
        assert!(CpuSet::of_mask(&[0; 9]).is_empty() && !CpuSet::of([64]).overlaps(&CpuSet::of([0, 63])));
        for odd in ["3-1", "a", "-", "0-99999999999", "999999999", "1-2-3"] {
            assert_eq!(CpuSet::parse(odd), None, "{odd}");
        }
        assert_eq!(CpuSet::of_mask(&vec![255; 1 << 20]).len(), MAX_CPUS);
    }

    /// Workers by their hosts and masks, all alive at once, in one process each; with a quota in a group of this name.
    /// Host, allowed CPUs and limit of a process's worker.
    type Worker<'a> = (&'a str, &'a str, Option<(u64, &'a str)>);

    fn groups(workers: &[Worker<'_>]) -> Vec<(usize, String, u64, bool)> {
        let mut builder = ExecutionBuilder::new();
        for (number, (host, ..)) in workers.iter().enumerate() {
            let process = builder.add_process(&format!("{host}.{number}"), number as i64);
            let thread = builder.add_thread(process, number as i64);
            builder.change(thread, 10, Change::Becomes(Section::of(State::Task)));
            builder.change(thread, 10, Change::ThreadWorks);
            builder.change(thread, 20, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        for (number, (_, allowed, quota)) in workers.iter().enumerate() {
            let quota = quota.map(|(millicpus, cgroup)| Quota { millicpus, cgroup: cgroup.to_owned() });
            let allowed = CpuSet::parse(allowed).unwrap();
            let facts = CpuFacts { allowed, quota, ..CpuFacts::default() };
            execution.processes[ProcessIndex(number as u32).index()].cpus = Some(facts);
        }
        let shown = |group: &CpuGroup| {
            (group.workers_at_once, group.cpus.to_string(), group.millicpus, group.is_oversubscribed())
        };
        execution.cpu_groups().iter().map(shown).collect()
    }

    #[test]
    fn workers_share_cpus_by_masks_hosts_and_limits() {
        let row = |workers, cpus: &str, millicpus, over| (workers, cpus.to_owned(), millicpus, over);
        // Four ranks of a node with one mask; another node's CPUs have the same numbers.
        let [a, b] = [("a", "0-1", None), ("b", "0-1", None)];
        assert_eq!(groups(&[a, a, a, a, b]), [row(4, "0-1", 2000, true), row(1, "0-1", 2000, false)]);
        // Bound one by one, two of them to the same CPU.
        let bound = |cpu| ("a", cpu, None);
        assert_eq!(
            groups(&[bound("0"), bound("0"), bound("1"), bound("2")]),
            [row(2, "0", 1000, true), row(1, "1", 1000, false), row(1, "2", 1000, false)]
        );
        // What overlaps both is of both.
        assert_eq!(groups(&[bound("0"), bound("3"), bound("0-3")]), [row(3, "0-3", 4000, false)]);
        // One limit for both, though they share no CPU; a limit above the CPUs is none.
        let limited = |cpus, limit| ("a", cpus, Some((limit, "/job")));
        assert_eq!(groups(&[limited("0-1", 1500), limited("2-3", 1500)]), [row(2, "0-3", 1500, true)]);
        assert_eq!(groups(&[limited("0", 9000), limited("1", 9000)]).len(), 2);
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
    }
}
