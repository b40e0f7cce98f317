//! Workers by the CPUs that they share.

use crate::cpus::{CpuSet, Quota, host};
use crate::execution::Execution;
use crate::ids::ThreadIndex;

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
            // A quota of at least the CPUs joins no processes.
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
                // Of two limits on parts, the lower one is nearer to the limit of both.
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

    /// Largest number of the threads alive at a time.
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
    use crate::{Change, CpuFacts, ExecutionBuilder, Observer, ProcessIndex, Section, State};

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
        // A mask that overlaps both belongs to both.
        assert_eq!(groups(&[bound("0"), bound("3"), bound("0-3")]), [row(3, "0-3", 4000, false)]);
        // One limit for both, though they share no CPU; a limit above the CPUs is none.
        let limited = |cpus, limit| ("a", cpus, Some((limit, "/job")));
        assert_eq!(groups(&[limited("0-1", 1500), limited("2-3", 1500)]), [row(2, "0-3", 1500, true)]);
        assert_eq!(groups(&[limited("0", 9000), limited("1", 9000)]).len(), 2);
    }
}
